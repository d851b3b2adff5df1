"""The hotspots of a module, looked for piece by piece."""

import ast
import re
import sys
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from npulens.catalog.model import ProjectFacts, ReturnedShape
from npulens.catalog.tables import Catalogue, OperatorEntry
from npulens.checks.pieces import Hint, Hotspot, Piece
from npulens.graphs.definitions import Definitions, FunctionHere
from npulens.shapes.call_graph import CallGraph
from npulens.shapes.callers import handed_from_host
from npulens.shapes.described import MODULE, Block, code_span, lines_span, text_of
from npulens.shapes.elsewhere import Elsewhere, summary_of
from npulens.shapes.events import Recorder
from npulens.shapes.evidence import parameters
from npulens.shapes.frames import Session
from npulens.shapes.reporting import Reporter, name_of
from npulens.shapes.runtimes import runtime_names
from npulens.shapes.scoring import Reach
from npulens.shapes.statements import evaluate
from npulens.shapes.values import UNKNOWN, Value
from npulens.shapes.worth import Sources, functions_of, indexing_parameter, is_host_code
from npulens.syntax.bindings import Function
from npulens.syntax.scopes import FunctionScope, ModuleNames, ModuleScope, Scope
from npulens.syntax.values import Imported
from npulens.text.spans import Span

_PIPELINE = re.compile(r"pad_sequence|interpolate|DataLoader|[Cc]ollat|Loader\(")
"""What functions hold that decide on the size of batches."""
_IMPORT = re.compile(r"^[ \t]*(?:from|import)\b.*\b(?:torch|transformers)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Ranked:
    """A hotspot with its place in the module.

    Attributes:
        hotspot: What it is; spans are in the text of the module.
        score: How much it hurts, from 0 to 100.
        function: `function` or `Class.method`.
        reach: From where that is reached.
    """

    hotspot: Hotspot
    score: int
    function: str
    reach: Reach


class Hotspots:
    """Where shapes depend on data and where the host waits, in one module.

    Args:
        pieces: The module.
        names: The names of the module.
        catalogue: Has the operators and their rules.
        project: What is known of other modules.
        path: Tells what the module is for.
        told_only: Nothing is asked about places that score too low to be told, nor for hints.
    """

    def __init__(
        self,
        pieces: Sequence[Piece],
        names: ModuleNames,
        catalogue: Catalogue,
        project: ProjectFacts,
        path: str,
        *,
        told_only: bool = False,
    ) -> None:
        self._pieces = pieces
        self._names = names
        self._catalogue = catalogue
        self._elsewhere = Elsewhere(project.returned_shapes, path)
        self._unused = project.unused_names
        self._path = path
        self._told_only = told_only

    def find(self) -> None:
        """Look through the pieces of which that is not known, or that rest on what has changed."""
        for piece in self._pieces:
            if piece.hotspots is None or self._have_changed(piece):
                piece.hotspots, piece.quiet_hotspots, piece.hints = (), (), ()
                piece.looked_up, piece.looked_through = {}, {}
                if self._has_torch:
                    self._look_through(piece)

    def ranked(self) -> list[Ranked]:
        """All hotspots of the module, the worst first."""
        graph = self._call_graph
        found = [
            Ranked(hotspot, graph.score(hotspot), hotspot.function, graph.reach(hotspot.function))
            for hotspot in self._placed()
            if graph.counts(hotspot)
        ]
        return sorted(found, key=lambda each: (-each.score, each.hotspot.span))

    def returned(self, wanted: Container[str]) -> dict[str, ReturnedShape]:
        """What functions of the module return, those whose result depends on data.

        Args:
            wanted: The names of functions that are asked about.
        """
        found = {}
        for name, function in self._definitions.functions.items():
            if name not in wanted or is_host_code(function) or not self._has_torch:
                continue
            recorder, value = _evaluated(function, self._session(), {})
            waits = any(event.waits for event in recorder.events.values())
            summary = summary_of(value, waits=waits)
            if summary is not None:
                found[name] = summary
        return found

    def hints(self) -> list[Hint]:
        """What an editor can show besides the findings, in order of place."""
        found: dict[Span, Hint] = {}
        starts = {id(piece): start for start, piece in self._starts}
        for piece in self._pieces:
            for hint in piece.hints:
                home = self._homes.get(hint.home, piece) if hint.home else piece
                moved = hint.shifted(starts[id(home)])
                before = found.get(moved.span)
                if before is None or not before.is_dynamic:
                    found[moved.span] = moved
        return sorted(found.values())

    def _placed(self) -> list[Hotspot]:
        """The hotspots in offsets of the module, each once."""
        placed: dict[tuple[Span, str], Hotspot] = {}
        starts = {id(piece): start for start, piece in self._starts}
        for piece in self._pieces:
            for hotspot in piece.hotspots or ():
                moved = self._moved(hotspot, piece, starts)
                key = (moved.span, moved.rule)
                before = placed.get(key)
                if before is not None:
                    used = dict.fromkeys((*before.used, *moved.used))
                    moved = replace(before, used=tuple(used)[:8])
                placed[key] = moved
        for piece in self._pieces:
            for hotspot in piece.quiet_hotspots:
                moved = self._moved(hotspot, piece, starts)
                placed.setdefault((moved.span, moved.rule), replace(moved, is_rare=True))
        return list(placed.values())

    def _moved(self, hotspot: Hotspot, piece: Piece, starts: Mapping[int, int]) -> Hotspot:
        start = starts[id(self._homes.get(hotspot.home, piece) if hotspot.home else piece)]
        used = []
        for home, span in hotspot.used:
            owner = self._homes.get(home, piece) if home else piece
            used.append(("", span.shifted(starts[id(owner)])))
        return replace(
            hotspot,
            span=hotspot.span.shifted(start),
            home="",
            used=tuple(sorted(used)),
            fixes=tuple(fix.shifted(start) for fix in hotspot.fixes),
        )

    @property
    def _starts(self) -> Iterator[tuple[int, Piece]]:
        start = 0
        for piece in self._pieces:
            yield start, piece
            start += len(piece.parsed.text)

    def _have_changed(self, piece: Piece) -> bool:
        if any(self._texts.get(name) != text for name, text in piece.looked_up.items()):
            return True
        return any(
            self._call_graph.is_quiet(name) != is_quiet
            for name, is_quiet in piece.looked_through.items()
        )

    def _look_through(self, piece: Piece) -> None:
        functions = list(self._worth_reading(piece))
        if not functions:
            return
        is_quiet = {each: self._call_graph.is_quiet(name_of(each)) for each in functions}
        definitions = self._definitions
        definitions.asked = set()
        told = self._reported(piece, [each for each in functions if not is_quiet[each]])
        piece.hotspots, piece.hints = tuple(told.hotspots), tuple(told.hints)
        if not self._told_only:
            quiet = self._reported(piece, [each for each in functions if is_quiet[each]])
            piece.quiet_hotspots = tuple(quiet.hotspots)
            piece.hints += tuple(quiet.hints)
        piece.looked_through = {name_of(each): is_quiet[each] for each in functions}
        own = {name for name in definitions.asked if self._texts.get(name) == piece.parsed.text}
        piece.looked_up = {name: self._texts.get(name) for name in definitions.asked - own}

    def _reported(self, piece: Piece, functions: Sequence[FunctionHere]) -> Reporter:
        """What is found in some functions of a piece."""
        hints = not self._told_only
        reporter = Reporter(self.homes, piece, self._runtimes, with_hints=hints)
        known = self._session()
        found = [(function, _evaluated(function, known, {})[0]) for function in functions]
        for function, recorder in found:
            from_host = handed_from_host(function, known.handed.get(function.node, {}))
            if from_host and recorder.events:
                recorder, _ = _evaluated(function, known, from_host)
            reporter.add(function, recorder)
        return reporter

    def _session(self) -> Session:
        operators, methods = self._catalogue.operators, _methods(self._catalogue)
        return Session(self._definitions, operators, methods, Recorder(), self._elsewhere)

    def _worth_reading(self, piece: Piece) -> Iterator[FunctionHere]:
        text = piece.parsed.text
        if self._call_graph.is_of_host and _PIPELINE.search(text) is None:
            return
        if self._told_only and self._call_graph.is_cold_file:
            return
        sources = self._sources(piece)
        if sources.is_empty and not self._calls_helper(text):
            return
        lines = piece.parsed.lines
        for function in functions_of(piece.parsed.body, self._definitions):
            span = code_span(function.node, lines)
            if self._call_graph.is_of_host or is_host_code(function):
                if _PIPELINE.search(text, *span) is not None:
                    yield function
            elif sources.has_some(*span) or self._calls_helper(text, *span):
                yield function
        scope = self._scopes[id(piece)]
        for node in piece.parsed.body:
            is_run = isinstance(node, Block | ast.Assign)
            if is_run and sources.has_some(*lines_span(node, lines)):
                yield _as_function(node, scope)

    def _sources(self, piece: Piece) -> Sources:
        if piece.sources is None:
            piece.sources = Sources(piece.parsed.text, piece.words)
        assert isinstance(piece.sources, Sources)
        return piece.sources

    def _calls_helper(self, text: str, start: int = 0, end: int = sys.maxsize) -> bool:
        return self._helpers is not None and self._helpers.search(text, start, end) is not None

    @cached_property
    def _helpers(self) -> re.Pattern[str] | None:
        """Calls of functions of the module that hold a source, or that a mask is handed to."""
        holding: list[str] = []
        indexing: list[str] = []
        for piece in self._pieces:
            holding += self._other_names(piece)
            sources = self._sources(piece)
            lines = piece.parsed.lines
            for node in piece.parsed.body:
                if isinstance(node, Function):
                    if sources.has_some(*code_span(node, lines)):
                        holding.append(node.name)
                    elif indexing_parameter(node, text_of(node, lines)):
                        indexing.append(node.name)
        parts = [rf"(?:{'|'.join(sorted(holding))})\("] if holding else []
        if indexing:
            parts.append(rf"(?:{'|'.join(sorted(indexing))})\([^\n]{{0,200}} (?:==|!=|<=?|>=?) ")
        return re.compile(rf"(?<![\w.])(?:{'|'.join(parts)})") if parts else None

    def _other_names(self, piece: Piece) -> Iterator[str]:
        """Names under which operators of the tables are imported, if they are others.

        Also those of functions of other modules.
        """
        for name, bindings in piece.bindings.names.items():
            for binding in bindings:
                value = binding.value
                qualified = value.qualified if isinstance(value, Imported) else ""
                is_other = not qualified.endswith(f".{name}")
                if is_other and qualified in self._catalogue.operators:
                    yield name
                elif qualified and not self._elsewhere.is_empty:
                    yield from self._of_other_modules(name, qualified)

    def _of_other_modules(self, name: str, qualified: str) -> Iterator[str]:
        """How functions of other modules are called whose results depend on data."""
        if self._elsewhere.find(qualified) is not None:
            yield name
        elif not qualified.startswith("torch"):
            yield from (rf"{name}\.{each}" for each in self._elsewhere.functions_in(qualified))

    @property
    def helpers(self) -> str:
        """What the findings of all statements depend on, besides what they look up."""
        found = (self._helpers, self._runtimes)
        return "|".join("" if pattern is None else pattern.pattern for pattern in found)

    @cached_property
    def _runtimes(self) -> re.Pattern[str] | None:
        """Names of the module that stand for runtimes of other accelerators or of the host."""
        names = sorted(runtime_names(piece.bindings for piece in self._pieces))
        return re.compile(rf"\b(?:{'|'.join(names)})\b") if names else None

    @cached_property
    def _has_torch(self) -> bool:
        return any(_IMPORT.search(piece.parsed.text) for piece in self._pieces)

    @cached_property
    def _scopes(self) -> dict[int, ModuleScope]:
        return {id(p): ModuleScope(self._names, i) for i, p in enumerate(self._pieces)}

    @cached_property
    def _definitions(self) -> Definitions:
        definitions = Definitions()
        for piece in self._pieces:
            definitions.add(piece.parsed.body, self._scopes[id(piece)])
        return definitions

    @cached_property
    def homes(self) -> dict[ast.AST, tuple[str, Piece]]:
        """For the nodes of functions and methods the top-level name and the piece they are in."""
        found: dict[ast.AST, tuple[str, Piece]] = {}
        for piece in self._pieces:
            for function in functions_of(piece.parsed.body, self._definitions):
                owner = function.owner
                name = function.node.name if owner is None else owner.node.name
                found[function.node] = (name, piece)
        return found

    @cached_property
    def _homes(self) -> dict[str, Piece]:
        return {name: piece for piece in self._pieces for name in piece.bindings.names}

    @cached_property
    def _texts(self) -> dict[str, str]:
        return {name: p.parsed.text for p in self._pieces for name in p.bindings.names}

    @cached_property
    def _call_graph(self) -> CallGraph:
        return CallGraph(self._pieces, self._definitions, self._path, self._unused)


def _evaluated(
    function: FunctionHere, known: Session, given: Mapping[str, Value]
) -> tuple[Recorder, Value]:
    """What is found in a function, of whose parameters some may be known, and what it returns."""
    recorder = Recorder()
    session = replace(known, recorder=recorder, active=[], results={}, calls=0, steps=0)
    names = dict(parameters(function.node, function.node.name == "forward"))
    if function.receiver is not None:
        names[function.receiver] = UNKNOWN
    try:
        return recorder, evaluate(session, function, {**names, **given})
    except RecursionError:
        return Recorder(), UNKNOWN


def _methods(catalogue: Catalogue) -> Mapping[str, OperatorEntry]:
    return {
        name.rpartition(".")[2]: entry
        for name, entry in catalogue.operators.items()
        if entry.method
    }


def _as_function(node: ast.stmt, scope: Scope) -> FunctionHere:
    """A statement of the module, evaluated as if it were a function of its own."""
    nothing = ast.arguments([], [], None, [], [], None, [])
    made = ast.FunctionDef(MODULE, nothing, [node], [], None)
    ast.copy_location(made, node)
    return FunctionHere(made, FunctionScope(made, scope))
