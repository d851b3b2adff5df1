"""From a file and its findings to what it should hold instead.

`file_fixes.py` goes from the bytes of a file to those that it should hold; `workspace/files`
writes them.
"""
