"""Devices that go to a library that knows CPUs and NVIDIA's GPUs alone.

`"npu"` would be refused there, while `"cuda" if torch.cuda.is_available() else "cpu"` stays on the
host. Only the whole module shows where a name goes; this is looked up for modules that name such a
library.
"""

import ast
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from npulens.catalog.model import Finding, Fix
from npulens.checks.whole_module import WholeModule
from npulens.syntax.bindings import with_defaults
from npulens.syntax.values import root_name
from npulens.syntax.walking import nodes_below, parents_below
from npulens.text.stretches import Stretches

_LIBRARIES = ("ctranslate2", "faster_whisper")
"""Source: OpenNMT/CTranslate2 src/devices.cc (cpu, cuda, auto); the other is built on it."""


def outside_of_own_devices(findings: Sequence[Finding], module: WholeModule) -> list[Finding]:
    """The findings without devices for such a library; fixes of shared devices become unsafe."""
    if not any(library in module.text for library in _LIBRARIES):
        return list(findings)
    devices = _Devices(module)
    found = (devices.judged(finding) for finding in findings)
    return [finding for finding in found if finding is not None]


class _Devices:
    """The places of devices for the libraries; `_own` has those that go nowhere else."""

    def __init__(self, module: WholeModule) -> None:
        self._span = module.lines.span
        self._parents = parents_below(module.tree)
        self._uses: dict[str, list[ast.AST]] = {}
        for node in module.nodes:
            self._uses.setdefault(_key(node), []).append(node)
        self._own, self._shared = Stretches(), Stretches()
        passed: set[ast.AST] = set()
        for call in _calls(module.nodes):
            for argument in (*call.args, *(keyword.value for keyword in call.keywords)):
                self._own.add(self._span(argument))
                passed.update(nodes_below(argument))
        for key in {_key(node) for node in passed} - {""}:
            self._follow(self._uses[key], passed)

    def judged(self, finding: Finding) -> Finding | None:
        """A finding as it is to be reported, `None` if there is nothing to report."""
        if finding.rule.family != "device":
            return finding
        if self._own.contains(finding.span):
            return None
        if self._shared.contains(finding.span):
            return replace(finding, fixes=tuple(map(Fix.to_be_read, finding.fixes)))
        return finding

    def _follow(self, uses: Sequence[ast.AST], passed: AbstractSet[ast.AST]) -> None:
        """Note where a name gets its values, and where it is compared."""
        compared = {p: None for each in uses if isinstance(p := self._parents[each], ast.Compare)}
        read = [each for each in uses if isinstance(getattr(each, "ctx", None), ast.Load)]
        is_own = all(each in passed or self._parents[each] in compared for each in read)
        places = self._own if is_own else self._shared
        for node in (*compared, *self._values(uses)):
            places.add(self._span(node))
        for node in self._tests(uses):
            self._shared.add(self._span(node))

    def _values(self, uses: Iterable[ast.AST]) -> Iterator[ast.expr]:
        """What is assigned to a name, and its default as a parameter."""
        for use in uses:
            parent = self._parents[use]
            if isinstance(use, ast.arg):
                default = _default(parent, use)
            else:
                is_stored = isinstance(getattr(use, "ctx", None), ast.Store)
                is_assigned = isinstance(parent, (ast.Assign, ast.AnnAssign)) and is_stored
                default = getattr(parent, "value", None) if is_assigned else None
            if isinstance(default, ast.expr):
                yield default

    def _tests(self, uses: Iterable[ast.AST]) -> Iterator[ast.expr]:
        """What decides which value is assigned to a name; other things may hang on it."""
        for use in uses:
            parent = self._parents[use]
            if isinstance(parent, (ast.Assign, ast.AnnAssign)):
                around = self._parents[parent]
                if isinstance(around, ast.If):
                    yield around.test


def _calls(nodes: Sequence[ast.AST]) -> Iterator[ast.Call]:
    """Calls of what is imported from the libraries."""
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            roots = [(each, each.name.partition(".")[0]) for each in node.names]
            names.update(each.asname or root for each, root in roots if root in _LIBRARIES)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            is_one = (node.module or "").partition(".")[0] in _LIBRARIES
            names.update(each.asname or each.name for each in node.names if is_one)
    for node in nodes:
        if isinstance(node, ast.Call) and root_name(node.func) in names:
            yield node


def _key(node: ast.AST) -> str:
    """`device` or `self.device`; empty for what is no such name."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return getattr(node, "id", "") or (node.arg if isinstance(node, ast.arg) else "")


def _default(arguments: ast.AST, parameter: ast.arg) -> ast.expr | None:
    """The default of a parameter."""
    assert isinstance(arguments, ast.arguments)
    return next((value for each, value in with_defaults(arguments) if each is parameter), None)
