"""From a finding to changed text: edits, imports, and applying them.

Edits are made with line feeds and end lines as the text does. `imports.py` decides where `import
torch_npu` goes, once all findings of a module are known. `edit_guard.py` compares each edit with
the text that it expects, and drops one inside of a string or comment that is not about a word of
the rules. `apply.py` applies fixes until nothing changes; a result that parses worse than before
is refused. `multi_device/` makes one process for each card of a
script; `distributed.py`, `data_loaders.py` and `numbered_cards.py` do so with edits for the fix of
the check for `DataParallel`, and `remaining_cuda.py` sees what is left. `shim_edits.py` and
`starting_shim.py` write the start under `transfer_to_npu`.
"""
