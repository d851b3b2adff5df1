"""Fixes for batches padded to their longest: padding on to the next multiple of a fixed number."""

import ast
from collections.abc import Mapping
from types import NoneType

from npulens.catalog.messages import message
from npulens.catalog.model import Applicability, Edit, Fix
from npulens.checks.arguments import keyword_of
from npulens.syntax.walking import nodes_below
from npulens.text.lines import LineMap
from npulens.text.spans import Span

BUCKET = 128
"""The explanation of the rule names this number, too."""
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda)


def collator_fix(node: ast.Call, lines: LineMap) -> Fix | None:
    """The argument of a collator of transformers that requests it, if it may not be there yet."""
    if any(keyword.arg is None for keyword in node.keywords):
        return None
    parts: list[ast.expr | ast.keyword] = [*node.args, *node.keywords]
    end = max((lines.span(part).end for part in parts), default=lines.span(node).end - 1)
    text = f"{', ' if parts else ''}pad_to_multiple_of={BUCKET}"
    title = message("fix.add", code=text.lstrip(", "))
    return Fix(title, Applicability.UNSAFE, (Edit(Span(end, end), text),))


def sequence_fix(node: ast.Call, lines: LineMap, parents: Mapping[ast.AST, ast.AST]) -> Fix | None:
    """`pad` around or behind `pad_sequence`; `None` where that cannot be written plainly."""
    value = given_argument(node, 2, "padding_value")
    is_first = given_argument(node, 1, "batch_first")
    number = value.operand if isinstance(value, ast.UnaryOp) else value
    if not isinstance(number, (ast.Constant, ast.Name, ast.Attribute, NoneType)):
        return None
    is_spread = any(isinstance(argument, ast.Starred) for argument in node.args)
    if is_spread or not isinstance(is_first, (ast.Constant, NoneType)):
        return None
    over = 1 if is_first is not None and is_first.value else 0
    filled = "" if value is None else f", value={lines.text[slice(*lines.span(value))]}"
    statement = parents.get(node)
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
        name = statement.targets[0].id
        edits = _line_behind(statement, f"{name} = {_padded(name, name, over, filled)}", lines)
    elif _is_in_comprehension(node, parents):
        return None
    else:
        name = _free_name(parents)
        start, end = lines.span(node)
        before, behind = _padded(f"{name} := \0", name, over, filled).split("\0")
        edits = [Edit(Span(start, start), before), Edit(Span(end, end), behind)]
    if not edits:
        return None
    title = message("shape.pad", number=BUCKET)
    return Fix(title, Applicability.UNSAFE, tuple(edits), module="torch")


def _padded(what: str, name: str, over: int, filled: str) -> str:
    """The call of `pad`, which counts dimensions from the last."""
    behind = f"(0, 0) * ({name}.dim() - {over + 1})"
    amount = f"{behind} + (0, -{name}.shape[{over}] % {BUCKET})"
    return f"torch.nn.functional.pad({what}, {amount}{filled})"


def given_argument(node: ast.Call, index: int, name: str) -> ast.expr | None:
    """An argument of a call by place or name."""
    if index < len(node.args):
        return node.args[index]
    keyword = keyword_of(node, name)
    return None if keyword is None else keyword.value


def _line_behind(statement: ast.Assign, text: str, lines: LineMap) -> list[Edit]:
    """A line of its own behind a statement that has its lines to itself; else nothing."""
    start, end = lines.span(statement)
    first = lines.starts[statement.lineno - 1]
    indent = lines.text[first:start]
    stop = lines.text.find("\n", end)
    stop = len(lines.text) if stop < 0 else stop
    stop -= lines.text[stop - 1] == "\r"
    rest = lines.text[end:stop].strip()
    if indent.strip() or (rest and not rest.startswith("#")) or len(statement.targets) != 1:
        return []
    return [Edit(Span(stop, stop), f"\n{indent}{text}")]


def _is_in_comprehension(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> bool:
    outer = parents.get(node)
    while outer is not None and not isinstance(outer, _COMPREHENSIONS):
        outer = parents.get(outer)
    return outer is not None


def _free_name(parents: Mapping[ast.AST, ast.AST]) -> str:
    """A name that the function does not use."""
    used = {node.id for node in parents if isinstance(node, ast.Name)}
    used |= {node.arg for node in parents if isinstance(node, ast.arg)}
    return next(
        n for n in ("padded", *(f"padded_{i}" for i in range(len(used) + 1))) if n not in used
    )


def is_padded_on(node: ast.Call, function: ast.AST) -> bool:
    """Whether the result of `pad_sequence` is padded on to a multiple of some number."""
    names = {
        target.id
        for part in nodes_below(function)
        if isinstance(part, ast.Assign) and part.value is node
        for target in part.targets
        if isinstance(target, ast.Name)
    }
    for part in nodes_below(function):
        callee = part.func if isinstance(part, ast.Call) else None
        if not (isinstance(part, ast.Call) and part.args and isinstance(callee, ast.Attribute)):
            continue
        first = part.args[0]
        is_of = node in nodes_below(first) or (isinstance(first, ast.Name) and first.id in names)
        if callee.attr == "pad" and is_of and any(map(_is_rest, nodes_below(part))):
            return True
    return False


def _is_rest(node: ast.AST) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod)
