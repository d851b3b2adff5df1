"""What the steps make of expressions in LibCST."""

from collections.abc import Sequence

import libcst as cst

from npulens.fixes.multi_device.actions import Change

_CLOSED = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.Dict)
"""What `**` may stand before without brackets."""


def text_of(node: cst.CSTNode) -> str:
    """The text of a node."""
    return cst.Module([]).code_for_node(node)


def parsed(text: str) -> cst.BaseExpression:
    """An expression from its text."""
    return cst.parse_expression(text)


def inner_model(node: cst.BaseExpression) -> cst.BaseExpression:
    """`model` becomes `model.module`."""
    return cst.Attribute(node, cst.Name("module"))


def perhaps_inner_model(node: cst.BaseExpression) -> cst.BaseExpression:
    """`model` becomes the model in it, or itself if it is no wrapper."""
    text = text_of(node)
    return parsed(f'getattr({text}, "module", {text})')


def called(function: str, *more: str) -> Change:
    """`x` becomes `function(x, more)`."""

    def change(node: cst.BaseExpression) -> cst.BaseExpression:
        given = [cst.Arg(node), *map(argument, more)]
        return cst.Call(parsed(function), given)

    return change


def replaced(text: str) -> Change:
    """Anything becomes another expression."""

    def change(node: cst.BaseExpression) -> cst.BaseExpression:
        new = parsed(text)
        return new.with_changes(lpar=node.lpar, rpar=node.rpar) if node.lpar else new

    return change


def chosen(otherwise: str, condition: str) -> Change:
    """`x` becomes `x if condition else otherwise`."""

    def change(node: cst.BaseExpression) -> cst.BaseExpression:
        return cst.IfExp(test=parsed(condition), body=node, orelse=parsed(otherwise))

    return change


def with_argument(text: str) -> Change:
    """A call gets one more keyword argument; behind `**options` there may be none before it."""

    def change(node: cst.BaseExpression) -> cst.BaseExpression:
        if not isinstance(node, cst.Call):
            return node
        return node.with_changes(args=appended(node.args, argument(text)))

    return change


def on_others(name: str, value: str, is_first: str, argument: str) -> Change:
    """All processes but the first give a call one more option.

    Args:
        name: Its name.
        value: Its value.
        is_first: The expression for whether a process is the first.
        argument: The keyword argument for it, where there are no `**options`: they may have one.
    """

    def change(node: cst.BaseExpression) -> cst.BaseExpression:
        if not isinstance(node, cst.Call):
            return node
        options = [each for each in node.args if each.star == "**"]
        if not options:
            return with_argument(argument)(node)
        given = options[-1].value
        text = text_of(given) if isinstance(given, _CLOSED) else f"({text_of(given)})"
        chosen = parsed(f'({text} if {is_first} else {{**{text}, "{name}": {value}}})')
        return node.with_deep_changes(options[-1], value=chosen)

    return change


def with_function(text: str) -> Change:
    """A call calls another function."""

    def change(node: cst.BaseExpression) -> cst.BaseExpression:
        return node.with_changes(func=parsed(text)) if isinstance(node, cst.Call) else node

    return change


def argument(text: str) -> cst.Arg:
    """An argument from its text: `name=value` or a value."""
    call = parsed(f"f({text})")
    assert isinstance(call, cst.Call)
    return call.args[0].with_changes(comma=cst.MaybeSentinel.DEFAULT)


def appended(given: Sequence[cst.Arg], new: cst.Arg) -> list[cst.Arg]:
    """Arguments with one more; a call over several lines keeps its layout."""
    arguments = list(given)
    if not arguments:
        return [new]
    last = arguments[-1]
    between = [each.comma for each in arguments[:-1]]
    comma = between[-1] if between else cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    if isinstance(comma, cst.Comma) and comma.whitespace_after.empty:
        comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    if isinstance(last.comma, cst.Comma):  # that one ends the call, those before it separate
        arguments[-1] = last.with_changes(comma=comma)
        return [*arguments, new.with_changes(comma=last.comma)]
    nothing = cst.SimpleWhitespace("")
    arguments[-1] = last.with_changes(comma=comma, whitespace_after_arg=nothing)
    return [*arguments, new.with_changes(whitespace_after_arg=last.whitespace_after_arg)]


def without(given: Sequence[cst.Arg], gone: cst.Arg) -> list[cst.Arg]:
    """Arguments without one of them."""
    at = next(n for n, each in enumerate(given) if each is gone)
    kept = [*given[:at], *given[at + 1 :]]
    if kept and at == len(given) - 1:
        kept[-1] = kept[-1].with_changes(
            comma=gone.comma, whitespace_after_arg=gone.whitespace_after_arg
        )
    return kept
