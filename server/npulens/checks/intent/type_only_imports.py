"""Imports whose names are only in annotations and in questions for types: nothing of them runs.

Only the whole module shows how an imported name is used; this is looked up for modules that have a
finding at such an import.
"""

import ast
from collections.abc import Iterator, Sequence

from npulens.catalog.model import Finding
from npulens.catalog.rule_properties import SettledBy
from npulens.checks.shared_rules import GRAD_SCALER
from npulens.checks.whole_module import WholeModule
from npulens.syntax.bindings import Function
from npulens.syntax.walking import nodes_below

_SCALER = "GradScaler"
_TYPE_QUESTIONS = frozenset({"isinstance", "issubclass"})
_ATTRIBUTE_QUESTIONS = frozenset({"getattr", "hasattr"})


def without_types_only(findings: Sequence[Finding], module: WholeModule) -> list[Finding]:
    """The findings without those at imports of what is only inspected, and never run."""
    if not any(_may_be_import(finding, module.text) for finding in findings):
        return list(findings)
    imports = _Imports(module)
    called = {f.span.start for f in findings if _is_of_scaler(f)}
    return [f for f in findings if not (_is_ours(f) and imports.is_only_queried(f, called))]


def _is_of_scaler(finding: Finding) -> bool:
    symbol = finding.arguments.get("symbol", "")
    return finding.rule.family == "precision" and symbol.endswith(_SCALER)


def _is_ours(finding: Finding) -> bool:
    return SettledBy.TYPE_ONLY in finding.rule.settled_by or _is_of_scaler(finding)


def _may_be_import(finding: Finding, text: str) -> bool:
    """Whether a place may be a name in an import; a quick look at what precedes it."""
    if not _is_ours(finding):
        return False
    offset = finding.span.start
    line = text[text.rfind("\n", 0, offset) + 1 : offset]
    if line.strip() == "from" or "import" in line:
        return True
    opened = text.rfind("(", 0, offset)
    return opened > text.rfind(")", 0, offset) and text[:opened].rstrip().endswith("import")


class _Imports:
    """The imports of a module by their places, and what is done with each name."""

    def __init__(self, module: WholeModule) -> None:
        self._span = module.lines.span
        self._text = module.text
        self._aliases: dict[int, list[ast.alias]] = {}
        self._uses: dict[str, list[ast.Name]] = {}
        self._queried: set[ast.AST] = set()
        self._callees: set[ast.AST] = set()
        self._functions: list[range] = []
        for node in module.nodes:
            self._note(node)

    def _note(self, node: ast.AST) -> None:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            self._aliases.update((self._span(alias).start, [alias]) for alias in node.names)
            if isinstance(node, ast.ImportFrom) and node.module:
                # Of a module that names come from there is one finding for all of them.
                place = self._text.find(node.module, self._span(node).start)
                self._aliases[place] = node.names
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            self._uses.setdefault(node.id, []).append(node)
        elif isinstance(node, ast.Call):
            self._callees.add(node.func)
            self._queried.update(_questions(node))
        for annotation in _annotations(node):
            self._queried.update(nodes_below(annotation))
        if isinstance(node, Function):
            self._functions.append(range(*self._span(node)))

    def is_only_queried(self, finding: Finding, called: set[int]) -> bool:
        """Whether a finding is at an import of which nothing runs.

        `called` has the places of the findings on gradient scalers.
        """
        aliases = self._aliases.get(finding.span.start, [])
        return bool(aliases) and all(
            self._is_alias_only_queried(each, finding, called) for each in aliases
        )

    def _is_alias_only_queried(self, alias: ast.alias, finding: Finding, called: set[int]) -> bool:
        uses = self._uses.get(alias.asname or alias.name, [])
        around = [each for each in self._functions if finding.span.start in each]
        if around:
            uses = [use for use in uses if self._span(use).start in around[-1]]
        if finding.rule.name == GRAD_SCALER:  # a call that is no finding names the right device
            return bool(uses) and all(
                use in self._queried
                or (use in self._callees and self._span(use).start not in called)
                for use in uses
            )
        return bool(uses) and self._queried.issuperset(uses)


def _questions(call: ast.Call) -> Iterator[ast.AST]:
    """What a call only inspects: the types of `isinstance`, the owner of `hasattr`."""
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    if name in _TYPE_QUESTIONS:
        for argument in call.args[1:]:
            yield from nodes_below(argument)
    elif name in _ATTRIBUTE_QUESTIONS:
        yield from call.args[:1]


def _annotations(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, Function) and node.returns is not None:
        yield node.returns
    elif isinstance(node, (ast.arg, ast.AnnAssign)) and node.annotation is not None:
        yield node.annotation
