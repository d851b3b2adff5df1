"""From a program that trains on one device to one process for each card, by LibCST.

`planning.py` decides from what is understood of a script and its modules (`npulens.training`) what
is to be changed in them: `averaging.py`, `models.py`, `inner_uses.py`, `loaders.py`,
`first_process.py`, `figures.py` and `entry.py` each find one part of the plan or refuse with a
reason, since half a change would train each card on its own and look as if it worked.
`set_by_data.py` and `counted_cards.py` find what else would differ between processes or grow with
their number, `other_parameters.py` why parameters still come out different than on one card.
`steps.py` says what becomes of the nodes of a plan, and `transformer.py` does all of it in one pass
over each file. `script_rewriting.py` is the door; it and what makes trees of LibCST are imported by
`npulens migrate --distributed` alone.
"""
