"""The functions of a module that are worth evaluating on shapes."""

import ast
import re
import sys
from collections.abc import Iterator
from functools import cached_property

from npulens.checks.segments.analysed_module import AnalysedModule
from npulens.checks.segments.segment import Segment
from npulens.graphs.definitions import FunctionHere
from npulens.shapes.evaluation.elsewhere import Elsewhere
from npulens.shapes.ranking.call_graph import CallGraph
from npulens.shapes.ranking.described import MODULE, Block, code_span, lines_span, text_of
from npulens.shapes.ranking.evaluation_prefilter import (
    Sources,
    functions_of,
    indexing_parameter,
    is_host_code,
)
from npulens.syntax.bindings import Function
from npulens.syntax.scopes import FunctionScope, ModuleScope, Scope
from npulens.syntax.values import Imported

_PIPELINE = re.compile(r"pad_sequence|interpolate|DataLoader|Collat|collat|Loader\(")
"""What functions hold that decide on the size of batches."""


class Candidates:
    """Functions that hold a source of shapes that depend on data, or call one that does.

    Places that score too low to be reported are left out if `reported_only`; with `every_function`
    it counts for nothing what a function holds.
    """

    def __init__(
        self,
        module: AnalysedModule,
        graph: CallGraph,
        elsewhere: Elsewhere,
        *,
        reported_only: bool,
        every_function: bool,
    ) -> None:
        self._module = module
        self._call_graph = graph
        self._elsewhere = elsewhere
        self._reported_only = reported_only
        self._every_function = every_function

    def among(self, segment: Segment, scope: ModuleScope) -> Iterator[FunctionHere]:
        """The functions of a segment that are worth it, and statements of the module as such."""
        text = segment.parsed.text
        is_of_host = self._call_graph.is_of_host and not self._every_function
        if is_of_host and _PIPELINE.search(text) is None:
            return
        if self._reported_only and self._call_graph.is_cold_file:
            return
        sources = self._sources(segment)
        if sources.is_empty and not (self._every_function or self._calls_helper(text)):
            return
        lines = segment.parsed.lines
        for function in functions_of(segment.parsed.body, self._module.definitions.all):
            span = code_span(function.node, lines)
            if is_of_host or (is_host_code(function) and not self._every_function):
                if _PIPELINE.search(text, *span) is not None:
                    yield function
            elif self._every_function or sources.has_some(*span) or self._calls_helper(text, *span):
                yield function
        for node in segment.parsed.body:
            is_run = isinstance(node, (Block, ast.Assign))
            if is_run and (self._every_function or sources.has_some(*lines_span(node, lines))):
                yield _as_function(node, scope)

    def _sources(self, segment: Segment) -> Sources:
        if segment.shapes.sources is None:
            segment.shapes.sources = Sources(segment.words)
        assert isinstance(segment.shapes.sources, Sources)
        return segment.shapes.sources

    def _calls_helper(self, text: str, start: int = 0, end: int = sys.maxsize) -> bool:
        return self.helpers is not None and any(
            not (_is_part(text[found.start() - 1 : found.start()]))
            for found in self.helpers.finditer(text, start, end)
        )

    @cached_property
    def helpers(self) -> re.Pattern[str] | None:
        """Calls of functions of the module that hold a source, or that a mask is passed to."""
        containing: list[str] = []
        indexing: list[str] = []
        for segment in self._module.segments:
            containing += self._other_names(segment)
            sources = self._sources(segment)
            lines = segment.parsed.lines
            for node in segment.parsed.body:
                if isinstance(node, Function):
                    if sources.has_some(*code_span(node, lines)):
                        containing.append(node.name)
                    elif indexing_parameter(node, text_of(node, lines)):
                        indexing.append(node.name)
        parts = [rf"(?:{'|'.join(sorted(containing))})\("] if containing else []
        kept = self._kept(containing)
        if kept:
            parts.append(rf"self\.(?:{'|'.join(kept)})\(")
        if indexing:
            parts.append(rf"(?:{'|'.join(sorted(indexing))})\([^\n]{{0,200}} (?:==|!=|<=?|>=?) ")
        return re.compile("|".join(parts)) if parts else None

    def _kept(self, names: list[str]) -> list[str]:
        """Attributes that such functions are put into: `self.pool = global_mean_pool`."""
        plain = [name for name in names if name.isidentifier()]
        if not plain:
            return []
        put = re.compile(rf"\bself\.(\w{{1,60}}) = (?:{'|'.join(sorted(plain))})\s*$", re.MULTILINE)
        texts = (
            segment.parsed.text
            for segment in self._module.segments
            if "self" in segment.words.identifiers
            and not segment.words.identifiers.isdisjoint(plain)
        )
        return sorted({found[1] for text in texts for found in put.finditer(text)})

    def _other_names(self, segment: Segment) -> Iterator[str]:
        """Other names under which operators of the tables or functions of modules are imported."""
        catalogue = self._module.catalogue
        for name, bindings in segment.bindings.names.items():
            for binding in bindings:
                value = binding.value
                qualified = value.qualified if isinstance(value, Imported) else ""
                if qualified in catalogue.operators:
                    is_of_pytorch = qualified.startswith("torch.")
                    if not (is_of_pytorch and qualified.endswith(f".{name}")):
                        yield name
                        continue
                for rest in catalogue.library_operators.get(qualified, ()):
                    if self._is_named(rest.rpartition(".")[2]):
                        yield rf"{name}\.{rest}"
                if qualified and not self._elsewhere.returned.is_empty:
                    yield from self._of_other_modules(name, qualified)

    def _is_named(self, word: str) -> bool:
        return any(word in segment.words.identifiers for segment in self._module.segments)

    def _of_other_modules(self, name: str, qualified: str) -> Iterator[str]:
        """How functions of other modules are called whose results depend on data."""
        if self._elsewhere.returned.find(qualified) is not None:
            yield name
        elif not qualified.startswith("torch"):
            yield from (rf"{name}\.{each}" for each in self._elsewhere.returned.names_in(qualified))


def _is_part(before: str) -> bool:
    """Whether what follows is part of another name; looked for first it takes five times longer."""
    return before.isalnum() or before in ("_", ".")


def _as_function(node: ast.stmt, scope: Scope) -> FunctionHere:
    """A statement of the module, evaluated as if it were a function of its own."""
    nothing = ast.arguments([], [], None, [], [], None, [])
    made = ast.FunctionDef(MODULE, nothing, [node], [], None)
    ast.copy_location(made, node)
    return FunctionHere(made, FunctionScope(made, scope))
