"""The checks: one pass over the tree, and what it needs; the checks themselves are below."""
