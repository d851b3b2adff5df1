"""A module in segments: what each of them says, and what they have to know of each other.

`segment.py` reads a segment; names given to what takes a device are searched for when they are
first queried (`device_uses.py`). What the parts above have come to know of a segment is kept in a
record for each of them: `fused_answers.py`, `shape_answers.py`.

`module_facts.py` puts together what all segments have to know: whether the shim is imported, which
names represent a table symbol, what the text says of its author's intentions
(`author_evidence.py`), which words occur anywhere in it (`module_words.py`), and which CUDA
extensions the project builds (`own_extensions.py`). In a command a segment is the whole file: a
check that searched the text of its own segment would answer otherwise there. All this together is
what the parts of an analysis are given (`analysed_module.py`).

While target, facts and names stay equal, the findings of unchanged segments hold and are only
moved. If names changed, `changes.py` follows which segments have to be looked at again;
`following.py` moves what was found in functions when only a comment was edited.
"""
