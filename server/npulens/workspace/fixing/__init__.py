"""From a file and its findings to what it should hold instead.

`file_fixes.py` goes from the bytes of a file to those that it should hold; `workspace/files`
writes them. `change_log.py` says what was done, and `effort.py` estimates what is left, for the log
and the report.
"""
