"""What a training script does: its steps, and what takes part in them.

`training_script.py` is the door: from a tree, or all files of a program (`program.py`), to the
loops that train. `call_sites.py` knows which call runs which function in which loops, `updates.py`
what goes backward and what updates weights, `step_loops.py` which loop is the one that makes a step
of each turn.
`frameworks.py` recognises programs whose loop is in a library. `node_places.py` knows where each
node stands, `flow.py` follows a value back to what makes it, `participants.py` tells the loaders
that steps take their data from and the models whose parameters optimizers are given.
`made_optimizers.py` has the statements that make those, `step_ends.py` where a step is over,
`loss_regions.py` what computes a loss.

Everything is found by what calls and names lead to. What is not clear is refused with a reason and
a line: whoever writes into a script must not guess.
"""
