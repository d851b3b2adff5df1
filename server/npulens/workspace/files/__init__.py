"""Finding, reading and writing files and trees, so that nothing is ever half-written.

`discovery.py` says which files there are. What git tracks is read from its index as data and
within bounds (`git_index.py`), kept by `tracked.py` as long as the index is the same. What is
passed over is kept with its reason (`not_read.py`), for the last line of every command. Whether
files are as committed is found out in `committed.py`: a repository may come with a project, so
git is never started in it, but in an empty one that borrows its objects. `relevance.py` says from
its bytes whether a file can have findings: PyTorch is imported in one of its lines, or a word of
the catalogue stands in it.

`writing.py` replaces a file: a temporary file beside it, synced, then renamed, and only if the
file still holds what was read. The name of that file says which machine and process made it, so
that the next run removes what a killed one left (`leftovers.py`). Symbolic links are followed, so
they stay. An encoding that would not give back the same bytes, a further hard link or a read-only
file is a reason to leave the file alone and say so. `staging.py` makes a copy beside its
destination, under the name the user gives.
"""
