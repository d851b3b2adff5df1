"""One projection where a gated activation joins the outputs of two.

`joined_projections.py` finds the two, `merging.py` is the door and writes one instead, with a hook
that reads checkpoints that have two. It works on the tree of LibCST, and only where a user asks.
"""
