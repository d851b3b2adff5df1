"""Uses of `torch.jit.script` that compute the same without it, whoever turns scripting off."""

import ast
from collections.abc import Sequence

from npulens.catalog.model import Finding
from npulens.checks.whole_module import WholeModule
from npulens.syntax.bindings import Function

_SCRIPT = "torch.jit.script"
_ALL = frozenset({None, "Exception"})


def without_plain_scripts(findings: Sequence[Finding], module: WholeModule) -> list[Finding]:
    """The findings without those on functions that are decorated and called, and no more.

    Nor are there those where a failure of any kind is caught: something else is done then.
    """
    found = {f.span.start for f in findings if f.arguments.get("symbol") == _SCRIPT}
    if not found:
        return list(findings)
    scripts = _Scripts(module)
    plain = set(filter(scripts.is_plain, found))
    return [
        finding
        for finding in findings
        if finding.arguments.get("symbol") != _SCRIPT or finding.span.start not in plain
    ]


class _Scripts:
    """The decorated functions of a module, how they are used, and what may fail in it."""

    def __init__(self, module: WholeModule) -> None:
        span = module.lines.span
        self._decorated: dict[int, str] = {}
        self._tried: list[range] = []
        self._uses: dict[str, list[ast.expr]] = {}
        self._callees: set[ast.expr] = set()
        for node in module.nodes:
            if isinstance(node, Function):
                self._decorated |= {span(each).start: node.name for each in node.decorator_list}
            elif isinstance(node, ast.Try) and not _ALL.isdisjoint(map(_caught, node.handlers)):
                self._tried.append(range(span(node.body[0]).start, span(node.body[-1]).end))
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


def _caught(handler: ast.ExceptHandler) -> str | None:
    """The name of what a handler catches; `None` of all, empty of what has no single name."""
    return None if handler.type is None else getattr(handler.type, "id", "")
