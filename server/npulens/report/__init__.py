"""Findings as text: for people, for programs, and the pages of the rules.

`formats.py` says what a form is; each has a file. For the report page `page_model.py` and
`page_contents.py` say what is shown, `page_html.py` with `templates/` and `page_markdown.py` how.
"""
