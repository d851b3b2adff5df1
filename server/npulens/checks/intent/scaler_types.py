"""Gradient scalers that are imported to name a type, or made for a device that callers choose.

Only the whole module tells how an imported name is used; this is looked up for modules that have
such a finding.
"""

import ast
from collections.abc import Iterator, Sequence

from npulens.catalog.model import Finding
from npulens.checks.whole_module import WholeModule
from npulens.syntax.bindings import Function
from npulens.syntax.walking import nodes_below
from npulens.text.lines import LineMap

_NAME = "GradScaler"
_NEUTRAL_RULE = "grad-scaler"


def without_types_only(findings: Sequence[Finding], module: WholeModule) -> list[Finding]:
    """The findings without imports of `GradScaler` that need no other one.

    Every use is an annotation or, of the scaler that takes a device, a call that is no finding.
    """
    kept, text = list(findings), module.text
    if not any(
        _is_of_scaler(finding) and text.startswith(_NAME, finding.span.start)
        for finding in findings
    ):
        return kept
    tree = module.tree
    lines = LineMap(text)
    by_place = {f.span.start: f for f in findings if _is_of_scaler(f)}
    annotated = set(_annotated(tree))
    called = {n.func for n in nodes_below(tree) if isinstance(n, ast.Call)}
    for alias in _imports(tree):
        finding = by_place.get(lines.offset(alias.lineno, alias.col_offset))
        if finding is None:
            continue
        uses = list(_uses(tree, alias.asname or alias.name))
        harmless = annotated
        if finding.rule.name == _NEUTRAL_RULE:
            places = {u: lines.offset(u.lineno, u.col_offset) for u in uses}
            harmless = annotated | {u for u in uses if u in called and places[u] not in by_place}
        if uses and harmless.issuperset(uses):
            kept.remove(finding)
    return kept


def _is_of_scaler(finding: Finding) -> bool:
    symbol = finding.arguments.get("symbol", "")
    return finding.rule.family == "precision" and symbol.endswith(_NAME)


def _imports(tree: ast.Module) -> Iterator[ast.alias]:
    for node in nodes_below(tree):
        if isinstance(node, ast.ImportFrom):
            yield from (alias for alias in node.names if alias.name == _NAME)


def _uses(tree: ast.Module, name: str) -> Iterator[ast.Name]:
    for node in nodes_below(tree):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            yield node


def _annotated(tree: ast.Module) -> Iterator[ast.AST]:
    """Every node inside of an annotation."""
    for node in nodes_below(tree):
        parts: list[ast.expr | None] = []
        if isinstance(node, Function):
            parts = [node.returns]
        elif isinstance(node, (ast.arg, ast.AnnAssign)):
            parts = [node.annotation]
        for part in parts:
            yield from () if part is None else nodes_below(part)
