"""The command line: a file for each command, and exit codes.

`main.py` lists the commands and imports one when it is called, so that `--help` stays quick.
"""
