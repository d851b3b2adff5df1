"""Documents, positions and spans: text, and nothing about Python or NPUs.

Offsets count code points. `document.py` converts the columns of `ast` as they come in, and those
of the protocol in both directions. `kinds.py` says by name or first line what a file is.
Notebooks are JSON of which the Python cells are one text, each behind a line that marks its cell
(`notebooks.py`); writing changes only the `source` of changed cells, and edits never join two.
`sources.py` gives the text of a file of any kind, and the bytes for another text. Regular
expressions of all floors that few runs need are compiled late (`late_patterns.py`).
"""
