"""Reading and taking out arguments of a call."""

import ast

from npulens.catalog.model import Edit
from npulens.checks.context import Context
from npulens.syntax.scopes import Scope, function_of
from npulens.syntax.walking import nodes_below
from npulens.text.spans import Span

Argument = ast.expr | ast.keyword


def keyword_of(call: ast.Call, name: str) -> ast.keyword | None:
    """The keyword argument of this name."""
    return next((keyword for keyword in call.keywords if keyword.arg == name), None)


def argument_of(call: ast.Call, name: str, position: int) -> ast.expr | None:
    """What a parameter is given, by its name or at its position."""
    named = keyword_of(call, name)
    if named is not None:
        return named.value
    return call.args[position] if position < len(call.args) else None


def is_spread(call: ast.Call) -> bool:
    """Whether `*arguments` or `**options` hide what is passed."""
    return any(isinstance(a, ast.Starred) for a in call.args) or any(
        keyword.arg is None for keyword in call.keywords
    )


def spread_keywords(call: ast.Call, scope: Scope) -> list[ast.keyword]:
    """What the `**settings` of a call hold, as the function around gives it to that name.

    `settings = {"gpus": 2}`, `settings = dict(gpus=2)`, `settings["gpus"] = 2`.
    """
    names = {getattr(k.value, "id", "") for k in call.keywords if k.arg is None} - {""}
    function = function_of(scope)
    found: list[ast.keyword] = []
    for part in nodes_below(function) if names and function is not None else ():
        if not isinstance(part, ast.Assign) or len(part.targets) != 1:
            continue
        target, value = part.targets[0], part.value
        if isinstance(target, ast.Subscript) and getattr(target.value, "id", "") in names:
            found += _keyword(target.slice, value, target)
        elif getattr(target, "id", "") in names and isinstance(value, ast.Dict):
            for key, given in zip(value.keys, value.values, strict=True):
                found += _keyword(key, given, key)
        elif getattr(target, "id", "") in names and isinstance(value, ast.Call):
            found += value.keywords if getattr(value.func, "id", "") == "dict" else ()
    return found


def _keyword(key: ast.expr | None, value: ast.expr, start: ast.expr | None) -> list[ast.keyword]:
    """A key of a dictionary and its value as an argument, from a node on; none for other keys."""
    if start is None or not isinstance(key, ast.Constant) or not isinstance(key.value, str):
        return []
    keyword = ast.copy_location(ast.keyword(arg=key.value, value=value), start)
    keyword.end_lineno, keyword.end_col_offset = value.end_lineno, value.end_col_offset
    return [keyword]


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
        # All that is between the brackets, so that no comma is left alone.
        opening = context.code.text.find("(", context.span(call.func).end)
        removed = Span(opening + 1, context.span(call).end - 1)
    if "#" in context.code.text[slice(*removed)] or is_bracketed(argument, removed, context):
        return None
    return Edit(removed, "")


def is_bracketed(argument: Argument, removed: Span, context: Context) -> bool:
    """Whether an argument is in brackets of its own, half of which would be taken out."""
    around = context.code.text[slice(*removed)].replace(context.source(argument), "", 1)
    return "(" in around or ")" in around
