"""The checks: one pass over the tree, and what it needs; the checks themselves are below.

`segments` holds a module in segments, with what these have to know of each other: a check reads
that from its `Context` and never from the text of its own segment.

Statements without a trigger word are not visited, nor functions that hold neither one nor a name
that represents one (`relevance_filter.py`). Words that are common elsewhere count only behind a
dot, in quotes or where the module binds them. The visitor (`visitor.py`) walks the rest once, with
its own stack, and gives each node with its scope to the checks that `registry.py` names for its
kind. A check resolves what an expression means and reports through its `Context`, which adds what
settles the place.

What only the whole module shows is added at the end (`whole_module.py` and what `intent` holds).
`insertions.py` binds the import of `torch_npu` and the line ends; `suppression.py` applies
comments last, on the whole text.
"""
