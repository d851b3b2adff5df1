"""Reading and taking out arguments of a call."""

import ast

from npulens.catalog.model import Edit
from npulens.checks.context import Context
from npulens.text.spans import Span

Argument = ast.expr | ast.keyword


def keyword_of(call: ast.Call, name: str) -> ast.keyword | None:
    """The keyword argument of this name."""
    return next((keyword for keyword in call.keywords if keyword.arg == name), None)


def is_spread(call: ast.Call) -> bool:
    """Whether `*arguments` or `**options` hide what is passed."""
    return any(isinstance(a, ast.Starred) for a in call.args) or any(
        keyword.arg is None for keyword in call.keywords
    )


def without(call: ast.Call, argument: Argument, context: Context) -> Edit | None:
    """The edit that takes an argument out with its comma; `None` if a comment would go with it."""
    arguments: list[Argument] = [*call.args, *call.keywords]
    arguments.sort(key=lambda a: (a.lineno, a.col_offset))
    index = arguments.index(argument)
    if index + 1 < len(arguments):
        removed = Span(context.span(argument).start, context.span(arguments[index + 1]).start)
    elif index:
        removed = Span(context.span(arguments[index - 1]).end, context.span(argument).end)
    else:
        # All that stands between the brackets, so that no comma is left alone.
        opening = context.text.find("(", context.span(call.func).end)
        removed = Span(opening + 1, context.span(call).end - 1)
    if "#" in context.text[slice(*removed)] or is_bracketed(argument, removed, context):
        return None
    return Edit(removed, "")


def is_bracketed(argument: Argument, removed: Span, context: Context) -> bool:
    """Whether an argument stands in brackets of its own, half of which would be taken out."""
    around = context.text[slice(*removed)].replace(context.source(argument), "", 1)
    return "(" in around or ")" in around
