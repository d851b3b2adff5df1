"""One file for each kind of thing that is looked for in Python."""
