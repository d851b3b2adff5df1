"""The migration guide as text for people (`guide_text.py`) and in Markdown (`guide_markdown.py`).

What it says of a point is in `point_wording.py`; as plain data it comes from
`npulens.workspace.guiding`.
"""
