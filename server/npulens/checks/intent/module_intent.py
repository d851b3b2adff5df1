"""What a module and the code around a finding are meant for, told by names and by its own calls.

A module that exports for TensorRT is not moved, what steers the compiler matters where something is
compiled, and an author who names torch_npu in a comment has thought of it. This is looked up where
the findings of a whole module are together, and only for modules with such a finding.
"""

import ast
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property

from npulens.catalog.model import Finding, ProjectFacts
from npulens.checks.whole_module import WholeModule
from npulens.syntax.strings import comments
from npulens.syntax.walking import nodes_below
from npulens.text.lines import LineMap

_STEERING = frozenset(
    f"torch.compiler.{name}"
    for name in ("allow_in_graph", "assume_constant_result", "disable", "reset")
)
"""Names that tell the compiler what to leave alone; without a compiler they do nothing."""
_SCRIPT = "torch.jit.script"
_CHOICE_OF_ATTENTION = "torch.nn.attention.sdpa_kernel"
_BOTH_ATTENTIONS = {"FLASH_ATTENTION", "MATH"}
_EXPORT_API = "torch.export."
_EXTENSION = "cuda-extension"
_NEEDS_BUILD = frozenset({"library-needs-npu-build", "unported-part-of-library"})
_LIBRARIES = _NEEDS_BUILD | {"cuda-library", "unverified-library"}

_FOR_EDGE = re.compile(r"executorch", re.IGNORECASE)
_EXPORTS = re.compile(r"export", re.IGNORECASE)
_OF_CUDA_GRAPHS = re.compile(r"cuda_?graph", re.IGNORECASE)
_OF_NPU = re.compile(r"(?:^|_)npu(?:_|$)|NPU")
_SPEAKS_OF_NPU = re.compile(r"torch_npu|\bNPUs?\b|\bAscend\b")
_LINES_OF_COMMENT = 5
"""So many lines above a finding a comment still speaks of it."""

Named = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def without_other_intents(
    findings: Sequence[Finding], module: WholeModule, project: ProjectFacts
) -> list[Finding]:
    """The findings without those that code of this kind has nothing to decide about."""
    if not any(_may_be_left_out(finding) for finding in findings):
        return list(findings)
    intents = _Intents(module.tree, module, project)
    return [f for f in findings if not (_may_be_left_out(f) and intents.leaves_out(f))]


def _may_be_left_out(finding: Finding) -> bool:
    symbol = _symbol(finding)
    return (
        finding.rule.name in _LIBRARIES
        or finding.rule.name == _EXTENSION
        or symbol in _STEERING
        or symbol in (_SCRIPT, _CHOICE_OF_ATTENTION)
        or symbol.startswith(_EXPORT_API)
    )


def _symbol(finding: Finding) -> str:
    return finding.arguments.get("symbol", "")


class _Intents:
    """A module with its functions and classes by their places, each with the one around it."""

    def __init__(self, tree: ast.Module, module: WholeModule, project: ProjectFacts) -> None:
        self._tree = tree
        self._text = module.text
        self._lines = LineMap(module.text)
        self._project = project
        self._path = module.place

    def leaves_out(self, finding: Finding) -> bool:
        """Whether nothing is to be decided about what was found, for what the code is."""
        symbol, rule = _symbol(finding), finding.rule.name
        start = finding.span.start
        if symbol in _STEERING:
            return not self._compiles or start in self._handed_on
        if symbol == _SCRIPT:
            if self._is_called_alone(start) or start in self._outdated:
                return True
            return any(start in span for span in self._tried)
        if symbol == _CHOICE_OF_ATTENTION:
            return self._has_code_for_npu or self._excludes_no_attention
        if symbol.startswith(_EXPORT_API):
            return _FOR_EDGE.search(self._path.stem) is not None
        around = [node.name for node in self._around(finding.span.start)]
        if rule == _EXTENSION:
            return any(self._has_twin_for_npu(name) for name in around)
        return self._is_of_other_runtime(symbol, rule, around) or self._is_commented(finding)

    def _is_of_other_runtime(self, symbol: str, rule: str, around: list[str]) -> bool:
        """Whether a library is used to export for another runtime, or in a CUDA graph."""
        if any(_OF_CUDA_GRAPHS.search(name) for name in around):
            return True
        names = [self._path.stem, *around]
        return rule in _NEEDS_BUILD and any(_EXPORTS.search(name) for name in names)

    def _has_twin_for_npu(self, name: str) -> bool:
        """Whether the project has a class for the NPU for one that is called after CUDA."""
        return "CUDA" in name and name.replace("CUDA", "NPU") in self._project.npu_classes

    def _is_commented(self, finding: Finding) -> bool:
        """Whether a comment right above speaks of the NPU."""
        line = bisect_right(self._lines.starts, finding.span.start) - 1
        return any(line - _LINES_OF_COMMENT <= at <= line for at in self._lines_about_npu)

    def _is_called_alone(self, offset: int) -> bool:
        """Whether what is scripted here is a function that the module calls at most, and no more.

        Unchanged it computes the same, so that it does not matter who turns scripting off.
        """
        function = self._scripted.get(offset)
        return function is not None and self._callees.issuperset(self._uses.get(function, []))

    def _around(self, offset: int) -> Iterator[Named]:
        """The functions and classes around a place, from the innermost on."""
        index = bisect_right(self._starts, offset) - 1
        node = self._named[index] if index >= 0 else None
        while node is not None:
            if offset < self._lines.offset(node.end_lineno or 0, node.end_col_offset or 0):
                yield node
            node = self._owners[node]

    @cached_property
    def _compiles(self) -> bool:
        """Whether the module calls `torch.compile`, under any name of torch."""
        torch, is_imported = {"torch"}, False
        for node in nodes_below(self._tree):
            if isinstance(node, ast.Import):
                torch.update(a.asname for a in node.names if a.name == "torch" and a.asname)
            elif isinstance(node, ast.ImportFrom) and node.module == "torch":
                is_imported = is_imported or any(a.name == "compile" for a in node.names)
        return is_imported or any(
            isinstance(node, ast.Attribute)
            and node.attr == "compile"
            and isinstance(node.value, ast.Name)
            and node.value.id in torch
            for node in nodes_below(self._tree)
        )

    @cached_property
    def _handed_on(self) -> set[int]:
        """Where a function does to its parameter what it is called after: `disable(func)`.

        Who calls it decides whether the compiler matters.
        """
        return {
            self._lines.offset(call.lineno, call.col_offset)
            for function in self._named
            if isinstance(function, ast.FunctionDef)
            for call in nodes_below(function)
            if isinstance(call, ast.Call)
            and isinstance(call.func, ast.Attribute)
            and call.func.attr == function.name
            and len(call.args) == 1
            and self._name(call.args[0]) in {argument.arg for argument in function.args.args}
        }

    @cached_property
    def _outdated(self) -> set[int]:
        """Values of names to which the module also assigns `torch.compile`, for newer releases."""
        assigned = [
            (node.targets[0].id, node.value)
            for node in nodes_below(self._tree)
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        ]
        newer = {
            name
            for name, value in assigned
            if isinstance(value, ast.Attribute) and value.attr == "compile"
        }
        return {
            self._lines.offset(value.lineno, value.col_offset)
            for name, value in assigned
            if name in newer
        }

    @cached_property
    def _has_code_for_npu(self) -> bool:
        """Whether a function of the module is called after the NPU."""
        return any(_OF_NPU.search(node.name) for node in self._named)

    @cached_property
    def _excludes_no_attention(self) -> bool:
        """Whether each choice names the fused kernel and the formula, so that both stay allowed."""
        choices = [
            {part.attr for part in nodes_below(node) if isinstance(part, ast.Attribute)}
            for node in nodes_below(self._tree)
            if isinstance(node, ast.Call)
            and (node.func.attr if isinstance(node.func, ast.Attribute) else self._name(node.func))
            == "sdpa_kernel"
        ]
        return bool(choices) and all(choice >= _BOTH_ATTENTIONS for choice in choices)

    @cached_property
    def _tried(self) -> list[range]:
        """Where code stands that may fail in any way: something else is done then."""
        return [
            range(
                self._lines.offset(node.body[0].lineno, 0),
                self._lines.offset(
                    node.body[-1].end_lineno or 0, node.body[-1].end_col_offset or 0
                ),
            )
            for node in nodes_below(self._tree)
            if isinstance(node, ast.Try)
            and any(self._name(handler.type) in ("", "Exception") for handler in node.handlers)
        ]

    @staticmethod
    def _name(node: ast.expr | None) -> str:
        return node.id if isinstance(node, ast.Name) else ""

    @cached_property
    def _lines_about_npu(self) -> list[int]:
        """Lines, from 0, with a comment that names the NPU."""
        if _SPEAKS_OF_NPU.search(self._text) is None:
            return []
        return [
            bisect_right(self._lines.starts, span.start) - 1
            for span in comments(self._text)
            if _SPEAKS_OF_NPU.search(self._text[slice(*span)])
        ]

    @cached_property
    def _owners(self) -> dict[Named, Named | None]:
        owners: dict[Named, Named | None] = {}
        pending: list[tuple[ast.AST, Named | None]] = [(self._tree, None)]
        while pending:
            node, owner = pending.pop()
            if isinstance(node, Named):
                owners[node] = owner
                owner = node
            pending += [(child, owner) for child in ast.iter_child_nodes(node)]
        return owners

    @cached_property
    def _named(self) -> list[Named]:
        return sorted(self._owners, key=lambda node: (node.lineno, node.col_offset))

    @cached_property
    def _starts(self) -> list[int]:
        return [self._lines.offset(node.lineno, node.col_offset) for node in self._named]

    @cached_property
    def _scripted(self) -> dict[int, str]:
        """Functions of the module by the places of their plain decorators."""
        return {
            self._lines.offset(decorator.lineno, decorator.col_offset): node.name
            for node in self._tree.body
            if isinstance(node, ast.FunctionDef)
            for decorator in node.decorator_list
            if not isinstance(decorator, ast.Call)
        }

    @cached_property
    def _uses(self) -> dict[str, list[ast.Name]]:
        uses: dict[str, list[ast.Name]] = {}
        for node in nodes_below(self._tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                uses.setdefault(node.id, []).append(node)
        return uses

    @cached_property
    def _callees(self) -> set[ast.expr]:
        return {node.func for node in nodes_below(self._tree) if isinstance(node, ast.Call)}
