"""Python source: statements, recovery, scopes, qualified names and constants.

`statements.py` cuts a module into segments. Without a cache a text is one segment. For an open
document each top-level statement is one, cut at unindented lines; a segment whose text was there
before is taken over with its tree and bindings, wherever it is now. All positions in a segment
count from its start. If one method was edited and no line came or went, that method alone is
parsed (`splicing.py`), also while it does not parse: the last version that did is remembered. An
edit within a comment leaves all trees as they are (`commenting.py`).

A segment that does not parse is cut by indentation into its statements, and these into headers and
bodies, until only what is broken is lost (`recovery.py`). Before, the whole text is parsed once:
the cutting may have been wrong, not the code.

Of each segment the names it binds are collected, with expressions: what the tree alone says, such
as "attribute `cuda` of the name `torch`". These are plain tuples, which can be compared between
versions (`values.py`, `bindings.py`). What an expression means is resolved in its scope
(`meanings.py`): qualified names, strings, instances of library classes. Names of other modules
are found as imports have them, relative ones and those that packages re-export included
(`other_modules.py`).

`shell.py` makes a tree of commands, in which `if`, `case`, lists and substitutions are kept apart
and no text is lost. `settings.py` reads YAML, JSON, TOML and INI by line and token, with places
of values, also while they are being typed. `cells.py` reads what a notebook gives to a shell.
"""
