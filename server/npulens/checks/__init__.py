"""The checks: one pass over the tree, and what it needs; the checks themselves are below.

`segments.py` gathers what segments of a module have to know of each other: whether the shim is
imported, which names are given to something that takes a device, which names stand for a table
symbol, what the text says of its author's intentions (`author_evidence.py`), which words stand
anywhere in it (`module_words.py`), and every module-level name with its expressions. A check that
asked the text of its own segment would answer otherwise in a command, where a segment may be the
whole file. While target, facts and names stay equal, the findings of unchanged segments hold and
are only moved; if names changed, `changes.py` follows which segments have to be looked at again.

Statements without a trigger word are not visited, nor functions that hold neither one nor a name
that stands for one (`relevance_filter.py`). Words that are common elsewhere count only behind a
dot, in quotes or where the module binds them. The visitor (`visitor.py`) walks the rest once, with
its own stack, and gives each node with its scope to the checks that `registry.py` names for its
kind. A check asks what an expression means and reports through its `Context`, which adds what
settles the place.

What only the whole module shows is added at the end (`whole_module.py` and what `intent` holds).
`insertions.py` binds the import of `torch_npu` and the line ends; `suppression.py` applies
comments last, on the whole text.
"""
