"""Migrating trees, and how much is left to people.

A migration works on a copy beside its destination, since paths count in the analysis.
`migration.py` fixes until what counts for the files stays the same, and the folder is renamed at
the end: it is there as a whole or not at all. `readiness.py` says in which state a file is.
"""
