"""Tensors that are moved to a device and passed to a CUDA kernel of the project.

With an NPU in its place the kernel gets memory that it cannot read, so such an edit has to be read.
"""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace

from npulens.catalog.messages import message
from npulens.catalog.model import Applicability, Finding, Fix
from npulens.checks.shared_rules import EXTENSION_CALL
from npulens.checks.whole_module import WholeModule
from npulens.syntax.bindings import Function, target_names
from npulens.syntax.values import root_name
from npulens.syntax.walking import nodes_below
from npulens.text.spans import Span

_FAMILIES = frozenset({"device", "api"})
_TORCH = "torch"
_PLACING = frozenset(
    {"to", "type", "type_as", "new_tensor", "new_zeros", "new_ones", "new_empty", "new_full"}
)
"""Methods whose arguments say where their result is."""
_MOST_STEPS = 400
"""So many expressions are followed back from the kernels of one function."""


def with_careful_moves(findings: Sequence[Finding], module: WholeModule) -> list[Finding]:
    """The findings with no safe fix for what moves the data of such a kernel, and a note why."""
    kernels = {f.span: f for f in findings if f.rule.name == EXTENSION_CALL and _is_needed(f)}
    if not kernels or not any(_has_safe_move(finding) for finding in findings):
        return list(findings)
    moved = _Moves(module, kernels).places()
    return [_careful(finding, moved) for finding in findings]


def _is_needed(finding: Finding) -> bool:
    settled = finding.settlement
    return settled is None or settled.reason.startswith("reported-")


def _has_safe_move(finding: Finding) -> bool:
    is_move = finding.rule.family in _FAMILIES and finding.settlement is None
    return is_move and any(fix.applicability is Applicability.SAFE for fix in finding.fixes)


def _careful(finding: Finding, moved: Sequence[tuple[Span, str]]) -> Finding:
    if not _has_safe_move(finding):
        return finding
    place = finding.span
    kernel = next((k for span, k in moved if span.start <= place.start < span.end), None)
    if kernel is None:
        return finding
    note = message("check.moved-to-kernel", kernel=kernel)
    return replace(finding, fixes=tuple(map(Fix.to_be_read, finding.fixes))).with_note(note)


class _Moves:
    """What the functions of a module make of the data that they pass to kernels.

    The findings about calls of kernels come by where the names of the kernels are.
    """

    def __init__(self, module: WholeModule, kernels: dict[Span, Finding]) -> None:
        self._nodes = module.nodes
        self._span = module.lines.span
        self._kernels = kernels

    def places(self) -> list[tuple[Span, str]]:
        """The expressions that data for a kernel comes from, each with the name of the kernel."""
        functions = [node for node in self._nodes if isinstance(node, Function)]
        return [place for function in functions for place in self._in_function(function)]

    def _in_function(self, function: Function) -> Iterator[tuple[Span, str]]:
        nodes = list(nodes_below(function))
        calls = [
            (node, self._kernels[span].arguments["symbol"])
            for node in nodes
            if isinstance(node, ast.Call) and (span := self._span(node.func)) in self._kernels
        ]
        if not calls:
            return
        assigned: dict[str, list[ast.Assign]] = {}
        for node in nodes:
            if isinstance(node, ast.Assign):
                for name in (name for target in node.targets for name in target_names(target)):
                    assigned.setdefault(name, []).append(node)
        for call, kernel in calls:
            values = [*call.args, *(keyword.value for keyword in call.keywords)]
            pending: list[tuple[ast.expr, int]] = [(value, call.lineno) for value in values]
            seen: set[str] = set()
            for _ in range(_MOST_STEPS):
                if not pending:
                    break
                value, line = pending.pop()
                for part in _sources(value):
                    if not isinstance(part, ast.Name):
                        yield self._place(part), kernel
                    elif part.id not in seen:
                        seen.add(part.id)
                        pending += [
                            (each, a.lineno)
                            for a in assigned.get(part.id, ())
                            if a.lineno <= line
                            for each in _values_for(a, part.id)
                        ]

    def _place(self, node: ast.expr) -> Span:
        """Where a device is named: a name of PyTorch, a text, or that of a method."""
        span = self._span(node)
        if isinstance(node, ast.Attribute) and root_name(node) != _TORCH:
            return Span(span.end - len(node.attr), span.end)
        return span


def _values_for(statement: ast.Assign, name: str) -> Iterator[ast.expr]:
    """What an assignment gives to one of its names: `a, b = x.cuda(), y`."""
    value = statement.value
    for target in statement.targets:
        is_tuple = isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, ast.Tuple)
        if is_tuple and len(target.elts) == len(value.elts):  # type: ignore[attr-defined]
            for each, given in zip(target.elts, value.elts, strict=True):  # type: ignore[attr-defined]
                if name in target_names(each):
                    yield given
        elif name in target_names(target):
            yield value


def _sources(value: ast.expr) -> Iterator[ast.expr]:
    """The names that a value is made of, and the places that name its device.

    Methods, parts and PyTorch's functions give the same data; what else is called gives other data.
    """
    pending: list[ast.AST] = [value]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield node.func
            pending.append(node.func.value)
            if node.func.attr in _PLACING or root_name(node.func) == _TORCH:
                pending += (*node.args, *(keyword.value for keyword in node.keywords))
        elif isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
            pending.append(node.value)
        elif isinstance(node, (ast.Tuple, ast.List)):
            pending += node.elts
        elif isinstance(node, ast.IfExp):
            pending += (node.body, node.orelse)
        elif isinstance(node, (ast.Name, ast.Constant, ast.JoinedStr, ast.BinOp)):
            yield node
