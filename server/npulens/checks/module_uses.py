"""What only the whole module tells of a finding about an import: who calls it, what it is for.

A piece of a module does not see this, so it is done where the findings of all pieces are together,
and only for modules that have such a finding.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from urllib.parse import unquote

from npulens.catalog.model import Finding, ProjectFacts
from npulens.checks.optional_code import asks_for_library, is_refused, tried_parts
from npulens.syntax.parsing import SyntaxProblem, parse
from npulens.text.lines import LineMap

_EXTENSION = "cuda-extension"
_GUARDED = frozenset({_EXTENSION, "cuda-library"})
_TYPES_ONLY = frozenset({"native-api-unsupported"})
_DEVICE_QUESTION = re.compile(r"cuda\w*_available|cuda\.is_available|ninja_available|_can_run\(")
_TYPE_QUESTIONS = frozenset({"isinstance", "issubclass"})

Function = ast.FunctionDef | ast.AsyncFunctionDef


def without_handled_imports(
    findings: Sequence[Finding], text: str, path: str, project: ProjectFacts
) -> list[Finding]:
    """The findings without those about imports that the rest of the module makes harmless.

    Left out are libraries and extensions loaded in a function that is only called where they work
    or where their failing is caught, a shared `load(..., with_cuda=condition)`, and classes
    imported for `isinstance` alone. Of a module with one for the NPU beside it, so is what only
    runs on request: somebody chose its device before.
    """
    # An editor calls its documents by their addresses.
    folder = PurePath(unquote(path.removeprefix("file://"))).parent
    if str(folder) in project.folders_with_npu:
        findings = [f for f in findings if not _is_on_request(f, text)]
    names = _GUARDED | _TYPES_ONLY
    if not any(finding.rule.name in names for finding in findings):
        return list(findings)
    tree = parse(text)
    if isinstance(tree, SyntaxProblem):
        return list(findings)
    module = _Module(tree, text)
    return [finding for finding in findings if not module.handles(finding)]


def _is_on_request(finding: Finding, text: str) -> bool:
    """Whether a function loads a CUDA library, or exports a model for some runtime."""
    is_export = finding.arguments.get("symbol") == "torch.export.export"
    if finding.rule.name != "cuda-library" and not is_export:
        return False
    line = text.rfind("\n", 0, finding.span.start) + 1
    return text[line : line + 1].isspace()


class _Module:
    """The imports of a module by their places, its functions, and where these are called."""

    def __init__(self, tree: ast.Module, text: str) -> None:
        self._text = text
        self._lines = LineMap(text)
        self._tree = tree
        self._nodes = list(ast.walk(tree))
        self._aliases = {
            self._start(alias): alias
            for node in self._nodes
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }
        self._guarded: dict[str, bool] = {}

    def handles(self, finding: Finding) -> bool:
        """Whether nothing is to be decided about an import, for what the module does with it."""
        alias = self._aliases.get(finding.span.start)
        if finding.rule.name in _TYPES_ONLY:
            return alias is not None and self._is_for_types(alias.asname or alias.name)
        if finding.rule.name not in _GUARDED:
            return False
        if finding.rule.name == _EXTENSION and alias is not None:
            name = alias.asname or alias.name
            if self._is_shared_loader(name):
                return True
            users = self._functions_with(name)
            if users and all(self._is_guarded(function) for function in users):
                return True
        owner = self._function_around(finding.span.start)
        return owner is not None and self._is_guarded(owner)

    def _is_for_types(self, name: str) -> bool:
        """Whether an imported name is only asked for with `isinstance`."""
        asked = {
            part
            for node in self._nodes
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in _TYPE_QUESTIONS
            for argument in node.args[1:]
            for part in ast.walk(argument)
        }
        uses = self._uses(name)
        return bool(uses) and asked.issuperset(uses)

    def _is_shared_loader(self, name: str) -> bool:
        """Whether each call of `load` leaves it to a condition whether CUDA is compiled."""
        calls = [n for n in self._nodes if isinstance(n, ast.Call) and _called(n) == name]
        return bool(calls) and all(
            any(k.arg == "with_cuda" and not isinstance(k.value, ast.Constant) for k in c.keywords)
            for c in calls
        )

    def _functions_with(self, name: str) -> list[Function]:
        """The functions of the module that use a name; empty if anything else uses it."""
        uses = self._uses(name)
        found = [
            (function, [part for part in uses if _holds(function, part)])
            for function in self._tree.body
            if isinstance(function, Function)
        ]
        users = [function for function, parts in found if parts]
        return users if sum(len(parts) for _, parts in found) == len(uses) else []

    def _uses(self, name: str) -> list[ast.expr]:
        return [
            node
            for node in self._nodes
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
        ]

    def _function_around(self, offset: int) -> Function | None:
        """The function of the module that holds a place."""
        for node in self._tree.body:
            if isinstance(node, Function) and self._start(node) <= offset < self._end(node):
                return node
        return None

    def _is_guarded(self, function: Function) -> bool:
        """Whether a function is only called where what it loads works, or where it may fail."""
        if function.name not in self._guarded:
            self._guarded[function.name] = False
            uses = [use for use in self._uses(function.name) if not _holds(function, use)]
            safe = {part for node in self._safe_parts() for part in ast.walk(node)}
            self._guarded[function.name] = bool(uses) and all(
                use in safe or self._is_in_guarded(use) for use in uses
            )
        return self._guarded[function.name]

    def _is_in_guarded(self, use: ast.expr) -> bool:
        """Whether a use is in a function that is itself only called with care."""
        around = self._function_around(self._start(use))
        return around is not None and self._is_guarded(around)

    def _safe_parts(self) -> Iterator[ast.AST]:
        """What runs only where a library or CUDA is there, or where its absence is caught."""
        for node in self._nodes:
            if isinstance(node, ast.Try):
                yield from tried_parts(node, self._source)
            elif isinstance(node, ast.If):
                test = self._meaning(node.test)
                asked = asks_for_library(test) or _DEVICE_QUESTION.search(test) is not None
                if asked and not re.search(r"\bnot\b.*(?:available|AVAILABLE)", test):
                    yield from node.body
            elif isinstance(node, ast.ClassDef) and is_refused(node, self._source):
                yield from node.body

    def _meaning(self, test: ast.expr) -> str:
        """The text of a test, or of what its name was last assigned before it."""
        if isinstance(test, ast.Name):
            values = [
                node.value
                for node in self._nodes
                if isinstance(node, ast.Assign)
                and isinstance(node.targets[0], ast.Name)
                and node.targets[0].id == test.id
                and node.lineno < test.lineno
            ]
            if len(values) == 1:
                return self._source(values[0])
        return self._source(test)

    def _source(self, node: ast.AST) -> str:
        return self._text[self._start(node) : self._end(node)]

    def _start(self, node: ast.AST) -> int:
        return self._lines.offset(node.lineno, node.col_offset)  # type: ignore[attr-defined]

    def _end(self, node: ast.AST) -> int:
        return self._lines.offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]


def _called(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _holds(outer: Function, inner: ast.expr) -> bool:
    return outer.lineno <= inner.lineno <= (outer.end_lineno or outer.lineno)
