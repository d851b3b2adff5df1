"""Findings of a module seen together: one leads, the others are settled with a reason.

A CUDA extension is one story: each of its places is found for itself, then the call that builds
it or its import leads (`extension_builds.py`, `extension_uses.py`). `kernel_inputs.py` follows
what is given to a kernel back through names of the function: moving that is no safe fix. A
condition on a tensor's device that leads to a kernel of the module, with another way behind it,
is settled (`kernel_arms.py`).

Libraries that an import may leave out are looked at last (`library_hints.py`).
`needed_libraries.py` finds those that the code cannot do without by default: a refusal or an
unasked call is followed up through conditions, defaults of parameters and the uses of the
function around. The first import of each other library gets the hint, with what `stand_ins.py`
finds in its place.
"""
