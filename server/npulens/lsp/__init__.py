"""The language server face: protocol types, and nothing that is not in them.

The server puts each text of a document into a slot where the newest wins; one thread analyses,
and everything an editor requests is looked up in the last analysis. There is no delay: an idle
thread takes a text at once. An analysis that a newer text has superseded ends at the next
function, and what it has found out stays in the cache. A document, or all cells of a notebook, is
a `View`: one text to analyse, and the parts of the client that it consists of.

`connection` knows streams and frames, `session` the documents and their analyses, `requests` what a
client requests. Each group of features has a file with a function `register`; `features.py` puts
them together.
`edits.py` is for what a user may untick; `pipe.py` writes without waiting. `verifying.py` takes
the commands that run scripts and loads `script_runs.py` when needed; `run_diagnostics.py` keeps
what was seen with the text it belongs to. `guiding_command.py` takes the command for the migration
guide, and `guide_answers.py` answers it. The report is shown by running `npulens report` beside
the server, since `lsp` and `report` do not know each other.
"""
