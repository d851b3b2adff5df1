"""One projection where a gated activation joins the outputs of two.

`joined_module.py` reads a module once. `joined_pairs.py` finds the calls that join two outputs, in
one plain form; `linear_layers.py` asks whether the layers are made alike, `other_uses.py` whether
something else names them, `merge_obstacles.py` whether something changes or loads their weights by
shape or name. `one_projection.py` writes one instead; `merging.py` is the door. All of it works on
the tree of LibCST, and only where a user asks; what is not the plain form is refused with a reason.
"""
