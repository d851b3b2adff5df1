"""The release of CUDA that is taken apart: `None` with the PyTorch that the NPU uses."""

import ast
from collections.abc import Iterator
from dataclasses import replace

from npulens.catalog.model import Applicability, Edit, Fix, Severity
from npulens.checks.context import Context
from npulens.checks.entries import report_symbol
from npulens.checks.purpose import out_of_reach
from npulens.checks.titles import use
from npulens.syntax.meanings import qualified_names
from npulens.syntax.scopes import Scope
from npulens.syntax.values import last_name

_VERSION = "torch.version.cuda"
_OTHERWISE = '"0.0"'
"""A release that is before all others, so that code for newer ones is left out."""
_READERS = frozenset(
    {"int", "float", "parse", "Version", "LooseVersion", "StrictVersion", "parse_version"}
    | {"digit_version", "TorchVersion"}
)
"""What makes a version of a text, and fails for `None`."""


def taken_apart(
    node: ast.Attribute | ast.Call | ast.Compare, scope: Scope, context: Context
) -> None:
    """`torch.version.cuda.split(".")`, `float(torch.version.cuda)`, and what orders it."""
    for part in _taken_apart(node):
        if _VERSION not in qualified_names(part, scope):
            continue
        span, entry = context.span(part), context.catalogue.symbols[_VERSION]
        text = f"{context.source(part)} or {_OTHERWISE}"
        is_argument = isinstance(node, ast.Call)
        edit = Edit(span, text if is_argument else f"({text})")
        fix = Fix(use(text), Applicability.UNSAFE, (edit,))
        report_symbol(span, entry, [fix], context, out_of_reach(entry.rule, part, scope, context))


def otherwise(node: ast.BoolOp, scope: Scope, context: Context) -> None:
    """`torch.version.cuda or "0.0"`: what stands in for `None` is there."""
    first, second = node.values[:2]
    is_text = isinstance(second, ast.Constant) and isinstance(second.value, str)
    is_or = isinstance(node.op, ast.Or) and isinstance(first, ast.Attribute)
    if is_or and is_text and _VERSION in qualified_names(first, scope):
        context.settle(context.span(first), "no-effect")


def recorded(node: ast.Dict | ast.Assign, scope: Scope, context: Context) -> None:
    """`{"cuda": torch.version.cuda}`, `row["cuda"] = str(torch.version.cuda)`: `None` is kept."""
    values = node.values if isinstance(node, ast.Dict) else [node.value]
    if isinstance(node, ast.Assign) and not isinstance(node.targets[0], ast.Subscript):
        return
    for value in values:
        part = value.args[0] if isinstance(value, ast.Call) and len(value.args) == 1 else value
        is_shown = part is value or last_name(getattr(value, "func", value)) == "str"
        if not is_shown or not isinstance(part, ast.Attribute) or part.attr != "cuda":
            continue
        if _VERSION in qualified_names(part, scope):
            entry = replace(context.catalogue.symbols[_VERSION], severity=Severity.INFO)
            settled = out_of_reach(entry.rule, part, scope, context)
            report_symbol(context.span(part), entry, [], context, settled)


def _taken_apart(node: ast.Attribute | ast.Call | ast.Compare) -> Iterator[ast.Attribute]:
    """What fails if it is `None`, as far as it may be the release."""
    found: list[ast.expr] = []
    if isinstance(node, ast.Attribute):
        found = [node.value]
    elif isinstance(node, ast.Call):
        found = node.args[:1] if last_name(node.func) in _READERS else []
    elif any(isinstance(each, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)) for each in node.ops):
        found = [node.left, *node.comparators]
    yield from (each for each in found if isinstance(each, ast.Attribute) and each.attr == "cuda")
