"""What is known of the modules of a project, each by its content.

`contents.py` reads each file once, and `fact_memo.py` keeps the answer to each question about a
content, so that a file that has not changed is not read again; the cache keeps the answers in a
`.facts` file. Questions about thousands of files are answered from their bytes (`import_lines.py`);
a module that matters is parsed once, for its summary (`module_summary.py`): imports, classes,
functions, names of libraries. `module_files.py` says which files an import runs, and
`cut_modules.py` cuts modules into definitions without parsing them, and `re_exports.py` carries
what is known of a name to the modules that have it from others.

The queries are in `workspace/project/`. **A change inside a function changes nothing that is known
of others**, unless it changes one of these: what the function returns, what it computes with
tensors if others import it, what it imports, which names it uses.
"""
