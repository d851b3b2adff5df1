"""The checks: one pass over the tree, and one file for each kind of thing that is looked for."""
