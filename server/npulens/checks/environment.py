"""Environment variables of the CUDA world."""

import ast

from npulens.catalog.model import Applicability, Edit, Fix
from npulens.checks.context import Context
from npulens.checks.titles import use
from npulens.syntax.scopes import Scope
from npulens.text.spans import Span


def variable(node: ast.AST, scope: Scope, context: Context) -> None:
    """A string that is exactly the name of such a variable."""
    assert isinstance(node, ast.Constant)
    entry = context.catalogue.environment.get(node.value) if isinstance(node.value, str) else None
    if entry is None:
        return
    span = context.span(node)
    fixes: list[Fix] = []
    at = context.text.find(entry.variable, *span)
    if entry.becomes is not None and entry.fix is not Applicability.MANUAL and at >= 0:
        edit = Edit(Span(at, at + len(entry.variable)), entry.becomes)
        fixes.append(Fix(use(entry.becomes), entry.fix, (edit,)))
    context.report(
        entry.rule, span, entry.variable, fixes, replacement=entry.becomes or "", note=entry.note
    )
