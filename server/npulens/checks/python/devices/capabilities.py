"""Compute capabilities that are unpacked, indexed or compared: the NPU gives `None` for one.

Told of code for the NPU as well, where somebody has replaced the word `cuda`.
"""

import ast
from collections.abc import Iterator

from npulens.catalog.settlements import Settlement
from npulens.checks.context import Context
from npulens.checks.purpose import out_of_reach
from npulens.checks.shared_rules import UNSUPPORTED_API
from npulens.syntax.meanings import Instance, resolve
from npulens.syntax.scopes import Scope

_TakingApart = ast.Assign | ast.Compare | ast.Starred | ast.Subscript
_CAPABILITY = "torch.cuda.get_device_capability"
_RESULTS = frozenset({Instance(_CAPABILITY), Instance("torch.npu.get_device_capability")})


def taken_apart(node: _TakingApart, scope: Scope, context: Context) -> None:
    """`major, minor = torch.cuda.get_device_capability()`, `capability[0]`, `>= (8, 0)`."""
    if "capability" not in context.facts.signs.decisive_words:
        return
    entry = context.catalogue.symbols[_CAPABILITY]
    rule = context.catalogue.required(UNSUPPORTED_API)
    for value in _taken_apart(node):
        if not isinstance(value, (ast.Call, ast.Name, ast.Attribute)):
            continue
        meanings = resolve(value, scope)
        if not meanings or not all(meaning in _RESULTS for meaning in meanings):
            continue
        settled = out_of_reach(rule, node, scope, context)
        if _is_checked_for_none(value, context):
            settled = Settlement("no-effect")
        reported = value.func if isinstance(value, ast.Call) else value
        context.report(
            rule, context.span(reported), _CAPABILITY, [], note=entry.note, settled=settled
        )


def _taken_apart(node: _TakingApart) -> Iterator[ast.expr]:
    """What would raise an error if it were `None`."""
    if isinstance(node, ast.Subscript):
        if isinstance(node.ctx, ast.Load):
            yield node.value
    elif isinstance(node, ast.Assign):
        if any(isinstance(target, (ast.Tuple, ast.List)) for target in node.targets):
            yield node.value
    elif isinstance(node, ast.Starred):
        yield node.value
    else:
        if any(isinstance(each, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)) for each in node.ops):
            yield node.left
            yield from node.comparators


def _is_checked_for_none(value: ast.expr, context: Context) -> bool:
    """Whether the code compares a name with `None` first."""
    if isinstance(value, ast.Call):
        return False
    return context.source(value) in context.facts.signs.checked_for_none
