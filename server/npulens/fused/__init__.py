"""Idioms that an NPU operator replaces, recognised by what the code computes.

A pattern is a pair of PyTorch functions in `rules/fused/*.py`. The first is evaluated like any
function, its parameters are variables; `matching.py` unifies it with each node of a graph: sums
and products in any order and grouping, numbers up to the digits people write, casts and copies
looked through where the pattern says so. Of overlapping matches the larger counts. Which operators
the patterns of a file have is compiled, and the file read where code has them, too
(`known_patterns.py`).

A rewrite replaces the expression that computes the result. Statements go that nobody else reads,
calls and captured names excepted (`removal.py`). Then the function is evaluated again without
them: only if everything that stays computes the same nodes as before, and each input of the
operator can be written at this place (`writable_values.py`), is there an edit. The second fix
keeps the code and puts a way for the NPU in front of it.

Only functions are evaluated that can match by their text, with that of the helpers and methods they
use (`candidates.py`), those of other modules among them (`parts_elsewhere.py`), and that add to
what a helper holds alone (`parts.py`). What is found in a helper alone counts only where no caller
in the module holds a larger computation; a helper of another module is reported there. Results are
kept by function, in offsets from its first line.
"""
