"""Turning `transfer_to_npu` on in the script that starts a program."""

import ast

from npulens.catalog.messages import message
from npulens.catalog.model import Applicability, Edit, Fix, MigrationStyle
from npulens.fixes.shim_edits import FOR_EFFECT, run_time_migration
from npulens.syntax.parsing import tree_or_none
from npulens.text.lines import LineMap, line_ending
from npulens.text.spans import Span


def start_with_shim(text: str) -> Fix | None:
    """The import of the shim, beside that of torch or before all that a script imports.

    `None` if the text does not parse, imports nothing or has the shim.
    """
    beside_torch = run_time_migration(text, add=True)
    if beside_torch is not None:
        return beside_torch
    tree = tree_or_none(text)
    first = None if tree is None else next(filter(_imports, tree.body), None)
    if first is None or "transfer_to_npu" in text:
        return None
    lines = LineMap(text)
    start = lines.starts[first.lineno - 1]
    if text[start : lines.offset(first.lineno, first.col_offset)].strip():
        return None
    newline = line_ending(text)
    edit = Edit(Span(start, start), FOR_EFFECT + newline)
    return Fix(
        message("fix.run-through-shim"), Applicability.UNSAFE, (edit,), MigrationStyle.RUNTIME_SHIM
    )


def _imports(node: ast.stmt) -> bool:
    """Whether a statement imports something, or holds in a `try` what does."""
    if isinstance(node, ast.ImportFrom):
        return node.module != "__future__"
    return isinstance(node, (ast.Import, ast.Try))
