"""Uses of `torch.jit.script` that compute the same without it, whoever turns scripting off."""

import ast
from collections.abc import Sequence

from npulens.catalog.model import Finding
from npulens.checks.whole_module import WholeModule
from npulens.syntax.bindings import Function
from npulens.syntax.walking import nodes_below
from npulens.text.lines import LineMap

_SCRIPT = "torch.jit.script"
_ALL = frozenset({None, "Exception"})


def without_plain_scripts(findings: Sequence[Finding], module: WholeModule) -> list[Finding]:
    """The findings without those on functions that are decorated and called, and no more.

    Nor are there those where a failure of any kind is caught: something else is done then.
    """
    found = {f.span.start for f in findings if f.arguments.get("symbol") == _SCRIPT}
    if not found:
        return list(findings)
    scripts = _Scripts(module.tree, LineMap(module.text))
    plain = set(filter(scripts.is_plain, found))
    return [
        finding
        for finding in findings
        if finding.arguments.get("symbol") != _SCRIPT or finding.span.start not in plain
    ]


class _Scripts:
    """The decorated functions of a module, how they are used, and what may fail in it."""

    def __init__(self, tree: ast.Module, lines: LineMap) -> None:
        self._lines = lines
        self._decorated: dict[int, str] = {}
        self._tried: list[range] = []
        self._uses: dict[str, list[ast.expr]] = {}
        self._callees: set[ast.expr] = set()
        for node in nodes_below(tree):
            if isinstance(node, Function):
                self._decorated |= {self._start(each): node.name for each in node.decorator_list}
            elif isinstance(node, ast.Try) and not _ALL.isdisjoint(map(_caught, node.handlers)):
                self._tried.append(range(self._start(node.body[0]), self._end(node.body[-1])))
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                self._uses.setdefault(node.id, []).append(node)
            elif isinstance(node, ast.Call):
                self._callees.add(node.func)

    def is_plain(self, offset: int) -> bool:
        """Whether what is scripted at a place is only called, or may fail."""
        function = self._decorated.get(offset)
        if function is not None and self._callees.issuperset(self._uses.get(function, [])):
            return True
        return any(offset in tried for tried in self._tried)

    def _start(self, node: ast.expr | ast.stmt) -> int:
        return self._lines.offset(node.lineno, node.col_offset)

    def _end(self, node: ast.stmt) -> int:
        return self._lines.offset(node.end_lineno or 0, node.end_col_offset or 0)


def _caught(handler: ast.ExceptHandler) -> str | None:
    """The name of what a handler catches; `None` of all, empty of what has no single name."""
    return None if handler.type is None else getattr(handler.type, "id", "")
