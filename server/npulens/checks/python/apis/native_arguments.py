"""Literal arguments, compared with what an API takes."""

import ast

from npulens.catalog.native_tables import NativeLimit
from npulens.checks.arguments import is_spread
from npulens.syntax.values import is_none


def argument_breaking(limit: NativeLimit, call: ast.Call) -> ast.expr | None:
    """The argument of a call that breaks a limit; of one that is missing, the function called.

    Only values that are written in the call count: what a name represents may be anything.
    """
    assert limit.argument is not None
    unpacks = is_spread(call)
    value = next((k.value for k in call.keywords if k.arg == limit.argument), None)
    if value is None and limit.position is not None and not unpacks:
        value = call.args[limit.position] if limit.position < len(call.args) else None
    if value is None:
        is_missing = limit.absent and not unpacks and not _is_about_nothing(call)
        return call.func if is_missing else None
    if limit.given:
        return None if is_none(value) else value
    try:
        constant = ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return value if _breaks(limit, constant) else None


def _is_about_nothing(call: ast.Call) -> bool:
    """`fork_rng(devices=[])`: whatever would be missing, it is for no device."""
    given = [keyword.value for keyword in call.keywords if keyword.arg == "devices"]
    return any(isinstance(each, (ast.List, ast.Tuple)) and not each.elts for each in given)


def _breaks(limit: NativeLimit, constant: object) -> bool:
    if limit.only:
        parts = constant if isinstance(constant, (tuple, list)) else (constant,)
        return not all(_is_one_of(part, limit.only) for part in parts)
    if limit.unlike:
        return _is_one_of(constant, limit.unlike)
    if isinstance(constant, bool) or not isinstance(constant, (int, float)):
        return False
    below = limit.below is not None and constant < limit.below
    return below or (limit.above is not None and constant > limit.above)


def _is_one_of(constant: object, values: tuple[object, ...]) -> bool:
    return any(type(constant) is type(value) and constant == value for value in values)
