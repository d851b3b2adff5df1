"""What only the whole module tells of a finding about an import: who calls it, what it is for.

A piece of a module does not see this, so it is done where the findings of all pieces are together,
and only for modules that have such a finding.
"""

import ast
import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cached_property

from npulens.catalog.model import Finding, ProjectFacts
from npulens.checks.intent.optional_code import (
    asks_for_kernels,
    asks_for_library,
    is_absence,
    is_refused,
    tried_parts,
)
from npulens.checks.whole_module import WholeModule
from npulens.syntax.walking import nodes_below
from npulens.text.lines import LineMap

_EXTENSION = "cuda-extension"
_LOADER = "torch.utils.cpp_extension.load"
_GUARDED = frozenset({_EXTENSION, "cuda-library"})
_TYPES_ONLY = frozenset(
    {"native-api-unsupported", "library-needs-npu-build", "unported-part-of-library"}
)
_WITH_OTHER_WAYS = frozenset({"library-needs-npu-build", "unverified-library"})
_ABSENCE = re.compile(r"\bnot\b.*(?:available|AVAILABLE)")
_WORKS_UNUSED = "torchvision."
"""What can be imported without a build for the NPU."""
_FOR_SOME_GPU = re.compile(r"capability|properties\(|blackwell|hopper|\bsm_?\d", re.IGNORECASE)
_SKIPS = re.compile(r"\bskip\([\s\S]*allow_module_level\s*=\s*True")
_TO_HOST = frozenset({"cpu", "numpy"})
_TYPE_QUESTIONS = frozenset({"isinstance", "issubclass"})
_ATTRIBUTE_QUESTIONS = frozenset({"getattr", "hasattr"})

Function = ast.FunctionDef | ast.AsyncFunctionDef


def without_handled_imports(
    findings: Sequence[Finding], module: WholeModule, project: ProjectFacts
) -> list[Finding]:
    """The findings without those about imports that the rest of the module makes harmless.

    Left out are libraries and extensions loaded in a function that is only called where they work
    or where their failing is caught, a shared `load(..., with_cuda=condition)`, classes imported
    for `isinstance` alone, operators imported and never used, and what a module imports again that
    it had tried before. So is what is imported in tests that are skipped unless there is a certain
    GPU or library. Of a module with one for the NPU beside it, so is what only runs on request:
    somebody chose its device.
    A module that is only imported where its libraries are there has nothing to tell of them, and
    where a project has C++ sources and none for CUDA, what it loads runs on the host.
    """
    if project.compiles_for_host:
        findings = [f for f in findings if _symbol(f) != _LOADER]
    if str(module.place) in project.optional_modules:
        findings = [f for f in findings if f.rule.family != "library"]
    if str(module.place.parent) in project.folders_with_npu:
        findings = [f for f in findings if not _is_on_request(f, module.text)]
    if not any(_may_be_handled(finding, module.text) for finding in findings):
        return list(findings)
    imports = _Imports(module.tree, module.text, module.place.stem == "__init__")
    return [finding for finding in findings if not imports.handles(finding)]


def _may_be_handled(finding: Finding, text: str) -> bool:
    """Whether a finding is worth a look at the whole module, which costs a walk over it."""
    if finding.rule.name in _GUARDED | _WITH_OTHER_WAYS:
        return True
    return finding.rule.name in _TYPES_ONLY and _is_at_import(text, finding.span.start)


def _is_at_import(text: str, offset: int) -> bool:
    """Whether a place may be a name in an import, by what stands before it."""
    line = text[text.rfind("\n", 0, offset) + 1 : offset]
    if line.strip() == "from" or "import" in line:
        return True
    opened = text.rfind("(", 0, offset)
    return opened > text.rfind(")", 0, offset) and text[:opened].rstrip().endswith("import")


def _is_on_request(finding: Finding, text: str) -> bool:
    """Whether a function loads a CUDA library, or exports a model for some runtime."""
    is_export = finding.arguments.get("symbol") == "torch.export.export"
    if finding.rule.name != "cuda-library" and not is_export:
        return False
    line = text.rfind("\n", 0, finding.span.start) + 1
    return text[line : line + 1].isspace()


def _symbol(finding: Finding) -> str:
    return finding.arguments.get("symbol", "")


def _imported_packages(statement: ast.stmt) -> list[str]:
    """The packages that an import takes something from."""
    if isinstance(statement, ast.ImportFrom):
        return [(statement.module or "").partition(".")[0]]
    if isinstance(statement, ast.Import):
        return [alias.name.partition(".")[0] for alias in statement.names]
    return []


class _Imports:
    """The imports of a module by their places, its functions, and where these are called.

    All of it is gathered once, so that a module with many findings costs time in proportion.
    """

    def __init__(self, tree: ast.Module, text: str, is_package: bool) -> None:
        self._tree = tree
        self._text = text
        self._is_package = is_package
        self._lines = LineMap(text)
        self._functions = [node for node in tree.body if isinstance(node, Function)]
        self._starts = [self._start(node) for node in self._functions]
        self._aliases: dict[int, list[ast.alias]] = {}
        self._uses: dict[str, list[ast.Name]] = {}
        self._calls: dict[str, list[ast.Call]] = {}
        self._called_at: dict[int, ast.Call] = {}
        self._values: dict[str, list[ast.expr]] = {}
        self._asked: set[ast.AST] = set()
        for node in nodes_below(tree):
            self._note(node)
        self._safe = {
            part
            for node in nodes_below(tree)
            for safe in self._safe_parts(node)
            for part in nodes_below(safe)
            if isinstance(part, ast.Name)
        }
        self._guarded: dict[str, bool] = {}
        self._brought: dict[Function, dict[str, list[tuple[int, bool]]]] = {}
        self._tried = {
            name
            for node in tree.body
            if isinstance(node, ast.Try)
            for part in tried_parts(node, self._source)
            for name in _imported_packages(part)
        }

    def _note(self, node: ast.AST) -> None:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            self._aliases.update((self._start(alias), [alias]) for alias in node.names)
            if isinstance(node, ast.ImportFrom) and node.module:
                # Of a module that names come from there is one finding for all of them.
                place = self._text.find(node.module, self._start(node))
                self._aliases[place] = node.names
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            self._uses.setdefault(node.id, []).append(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            self._calls.setdefault(node.func.id, []).append(node)
            self._called_at[self._start(node)] = node
            if node.func.id in _TYPE_QUESTIONS:
                for argument in node.args[1:]:
                    self._asked.update(nodes_below(argument))
            elif node.func.id in _ATTRIBUTE_QUESTIONS:
                self._asked.update(node.args[:1])
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            self._values.setdefault(node.targets[0].id, []).append(node.value)

    def handles(self, finding: Finding) -> bool:
        """Whether nothing is to be decided about an import, for what the module does with it."""
        aliases = self._aliases.get(finding.span.start, [])
        name = (aliases[0].asname or aliases[0].name) if len(aliases) == 1 else ""
        uses = self._uses.get(name, [])
        if finding.rule.name in _WITH_OTHER_WAYS and aliases and self._was_tried(finding):
            return True
        if finding.rule.name in _WITH_OTHER_WAYS and self._gets_host_arrays(name, uses):
            return True
        if _symbol(finding).startswith(_WORKS_UNUSED) and self._are_idle(aliases, finding):
            return True
        if self._is_of_skipped_tests(finding):
            return True
        if finding.rule.name in _TYPES_ONLY:
            around = self._function_around(finding.span.start)
            return bool(aliases) and all(self._is_only_asked(alias, around) for alias in aliases)
        if finding.rule.name not in _GUARDED:
            return False
        if finding.span.start > self._skipped_from:
            return True
        is_extension = finding.rule.name == _EXTENSION and bool(uses)
        if is_extension and self._is_shared_loader(self._calls.get(name, [])):
            return True
        call = self._called_at.get(finding.span.start)
        if finding.rule.name == _EXTENSION and call is not None and self._is_shared_loader([call]):
            return True
        if is_extension and all(self._is_in_guarded(use) for use in uses):
            return True
        owner = self._function_around(finding.span.start)
        return owner is not None and self._is_guarded(owner)

    def _is_only_asked(self, alias: ast.alias, around: Function | None) -> bool:
        """Whether a name is used where it is imported, and only to ask for types or attributes."""
        uses = self._uses.get(alias.asname or alias.name, [])
        if around is not None:
            uses = [use for use in uses if self._function_around(self._start(use)) is around]
        return bool(uses) and self._asked.issuperset(uses)

    def _gets_host_arrays(self, name: str, uses: list[ast.Name]) -> bool:
        """Whether an operator is only called with what was brought to the CPU before."""
        calls = self._calls.get(name, [])
        return bool(calls) and len(calls) == len(uses) and all(map(self._is_on_host, calls))

    def _is_on_host(self, call: ast.Call) -> bool:
        owner = self._innermost.get(call)
        if owner is None or not call.args or not isinstance(call.args[0], ast.Name):
            return False
        if owner not in self._brought:
            self._brought[owner] = _brought_to_host(owner)
        lines = self._brought[owner].get(call.args[0].id, [])
        before = bisect_left(lines, (call.lineno, False))
        return before > 0 and lines[before - 1][1]

    def _was_tried(self, finding: Finding) -> bool:
        """Whether a function imports a library that the module does without elsewhere."""
        package = _symbol(finding).partition(".")[0]
        return package in self._tried and self._line_is_indented(finding.span.start)

    def _are_idle(self, aliases: list[ast.alias], finding: Finding) -> bool:
        """Whether the module names nothing of an import again, not even for others to import."""
        line_end = self._text.find("\n", finding.span.end)
        if not aliases or self._is_package or "#" in self._text[finding.span.end : line_end]:
            return False
        names = [alias.asname or alias.name.partition(".")[0] for alias in aliases]
        return not any(
            name == "*" or name in self._uses or re.search(rf"[\"']{name}[\"']", self._text)
            for name in names
        )

    def _is_of_skipped_tests(self, finding: Finding) -> bool:
        if finding.rule.family != "library" or not self._tests_are_skipped:
            return False
        return self._line_is_indented(finding.span.start)

    def _line_is_indented(self, offset: int) -> bool:
        line = self._text.rfind("\n", 0, offset) + 1
        return self._text[line : line + 1].isspace()

    def _is_shared_loader(self, calls: Sequence[ast.Call]) -> bool:
        """Whether each call of `load` leaves it to a condition whether CUDA is compiled."""
        return bool(calls) and all(
            any(k.arg == "with_cuda" and not isinstance(k.value, ast.Constant) for k in c.keywords)
            for c in calls
        )

    def _function_around(self, offset: int) -> Function | None:
        """The function of the module that holds a place."""
        index = bisect_right(self._starts, offset) - 1
        if index < 0 or offset >= self._end(self._functions[index]):
            return None
        return self._functions[index]

    def _is_guarded(self, function: Function) -> bool:
        """Whether a function is only called where what it loads works, or where it may fail."""
        if function.name not in self._guarded:
            self._guarded[function.name] = False
            uses = [
                use
                for use in self._uses.get(function.name, [])
                if self._function_around(self._start(use)) is not function
            ]
            self._guarded[function.name] = bool(uses) and all(
                use in self._safe or self._is_in_guarded(use) for use in uses
            )
        return self._guarded[function.name]

    def _is_in_guarded(self, use: ast.expr) -> bool:
        """Whether a use is in a function that is itself only called with care."""
        around = self._function_around(self._start(use))
        return around is not None and self._is_guarded(around)

    def _safe_parts(self, node: ast.AST) -> Sequence[ast.AST]:
        """What of a statement runs only where a library or CUDA is there, or may fail."""
        if isinstance(node, ast.Try):
            return tried_parts(node, self._source)
        if isinstance(node, ast.If):
            test = self._meaning(node.test)
            asked = asks_for_kernels(test)
            return [] if not asked or _ABSENCE.search(test) else node.body
        if isinstance(node, ast.ClassDef) and is_refused(node, self._source):
            return node.body
        return []

    def _meaning(self, test: ast.expr) -> str:
        """The text of a test, or of all that its name is ever assigned."""
        if isinstance(test, ast.Name):
            values = self._values.get(test.id, [])
            if len(values) == 1:
                return self._source(values[0])
        return self._source(test)

    def _source(self, node: ast.AST) -> str:
        return self._text[self._start(node) : self._end(node)]

    def _start(self, node: ast.AST) -> int:
        return self._lines.offset(node.lineno, node.col_offset)  # type: ignore[attr-defined]

    def _end(self, node: ast.AST) -> int:
        return self._lines.offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    @cached_property
    def _skipped_from(self) -> float:
        """Where a module of tests is left that does not run without some library."""
        for node in self._tree.body:
            if not isinstance(node, ast.If) or not _SKIPS.search(self._source(node.body[-1])):
                continue
            test = self._source(node.test)
            if is_absence(test) and asks_for_library(test):
                return self._end(node)
        return float("inf")

    @cached_property
    def _tests_are_skipped(self) -> bool:
        """Whether all tests of the module are left out without a library or a certain GPU."""
        marks = self._values.get("pytestmark", [])
        asked = [
            f"{self._source(part)} {self._meaning(part)}"
            for mark in marks
            for part in nodes_below(mark)
            if isinstance(part, ast.Name)
        ]
        texts = [self._source(mark) for mark in marks if "skipif" in self._source(mark)]
        return bool(texts) and any(
            asks_for_library(text) or _FOR_SOME_GPU.search(text) for text in [*texts, *asked]
        )

    @cached_property
    def _innermost(self) -> dict[ast.Call, Function]:
        """The function that each call stands in."""
        return {
            part: function
            for function in nodes_below(self._tree)
            if isinstance(function, Function)
            for part in nodes_below(function)
            if isinstance(part, ast.Call)
        }


def _brought_to_host(function: Function) -> dict[str, list[tuple[int, bool]]]:
    """The lines that assign to each name, and whether from there on it is on the CPU.

    That is what `.cpu()` or `.numpy()` gave, and parts of it.
    """
    assigned = [
        (node.lineno, node.targets[0].id, node.value)
        for node in nodes_below(function)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    ]
    found: dict[str, list[tuple[int, bool]]] = {}
    for line, name, value in sorted(assigned, key=lambda each: each[0]):
        while isinstance(value, ast.Subscript):
            value = value.value
        callee = value.func if isinstance(value, ast.Call) else None
        is_brought = isinstance(callee, ast.Attribute) and callee.attr in _TO_HOST
        if isinstance(value, ast.Name) and value.id in found:
            is_brought = found[value.id][-1][1]
        found.setdefault(name, []).append((line, is_brought))
    return found
