"""The hotspots of a module, looked for piece by piece."""

import ast
import re
import sys
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from npulens.catalog.model import ProjectFacts, ReturnedShape
from npulens.catalog.tables import Catalogue, OperatorEntry
from npulens.checks.pieces import Evaluation, Hint, Hotspot, Piece
from npulens.graphs.definitions import Definitions, FunctionHere
from npulens.graphs.interfaces import Interfaces
from npulens.shapes.call_graph import CallGraph
from npulens.shapes.callers import handed_from_host
from npulens.shapes.described import MODULE, Block, code_span, lines_span, text_of
from npulens.shapes.elsewhere import Elsewhere, summary_of
from npulens.shapes.events import Recorder
from npulens.shapes.evidence import parameters
from npulens.shapes.frames import Handed, Session
from npulens.shapes.reporting import Home, Reporter, name_of
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
            if not self._interfaces.are(piece.looked_up):
                piece.evaluations = {}
            if piece.hotspots is None or self._have_changed(piece):
                # What is said of runtimes anywhere in a class counts for all of it.
                known = piece.evaluations if self._runtimes is None else {}
                piece.evaluations = {}
                piece.hotspots, piece.quiet_hotspots, piece.hints = (), (), ()
                piece.looked_through = {}
                if self._has_torch:
                    self._look_through(piece, known)

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
            session = self._session()
            value = _evaluated(function, session, {})
            waits = any(event.waits for event in session.recorder.events.values())
            summary = summary_of(value, waits=waits)
            if summary is not None:
                found[name] = summary
        return found

    def hints(self) -> list[Hint]:
        """What an editor can show besides the findings, in order of place."""
        found: dict[Span, Hint] = {}
        for start, piece in self._starts:
            for hint in piece.hints:
                moved = hint._replace(
                    span=hint.span.shifted(self._place_of(hint.home, start)),
                    home="",
                    sources=tuple(
                        ("", span.shifted(self._place_of(home, start)))
                        for home, span in hint.sources
                    ),
                )
                before = found.get(moved.span)
                if before is None or not before.is_dynamic:
                    found[moved.span] = moved
        return sorted(found.values())

    def _placed(self) -> list[Hotspot]:
        """The hotspots in offsets of the module, each once."""
        placed: dict[tuple[Span, str], Hotspot] = {}
        for start, piece in self._starts:
            for hotspot in piece.hotspots or ():
                moved = self._moved(hotspot, start)
                key = (moved.span, moved.rule)
                before = placed.get(key)
                if before is not None:
                    used = dict.fromkeys((*before.used, *moved.used))
                    moved = replace(before, used=tuple(used)[:8])
                placed[key] = moved
        for start, piece in self._starts:
            for hotspot in piece.quiet_hotspots:
                moved = self._moved(hotspot, start)
                placed.setdefault((moved.span, moved.rule), replace(moved, is_rare=True))
        return list(placed.values())

    def _moved(self, hotspot: Hotspot, start: int) -> Hotspot:
        """A hotspot of a piece that starts at an offset, in offsets of the module."""
        place = self._place_of(hotspot.home, start)
        used = (("", span.shifted(self._place_of(home, start))) for home, span in hotspot.used)
        return replace(
            hotspot,
            span=hotspot.span.shifted(place),
            home="",
            used=tuple(sorted(used)),
            fixes=tuple(fix.shifted(place) for fix in hotspot.fixes),
        )

    def _place_of(self, home: str, start: int) -> int:
        """Where a function of the module starts; of no function, where the piece does."""
        return self._places[home] if home else start

    @cached_property
    def _places(self) -> dict[str, int]:
        starts = {id(piece): start for start, piece in self._starts}
        return {home.name: starts[id(home.piece)] + home.start for home in self.homes.values()}

    @property
    def _starts(self) -> Iterator[tuple[int, Piece]]:
        start = 0
        for piece in self._pieces:
            yield start, piece
            start += len(piece.parsed.text)

    def _have_changed(self, piece: Piece) -> bool:
        """Whether evaluations are needed anew, or functions are reached from elsewhere now."""
        if len(piece.evaluations) < len(piece.looked_through):
            return True
        return not all(map(self._holds, piece.evaluations.values())) or any(
            self._call_graph.is_quiet(name) != is_quiet
            for name, is_quiet in piece.looked_through.items()
        )

    def _holds(self, evaluation: Evaluation) -> bool:
        """Whether all functions that an evaluation rests on are what they were."""
        return evaluation.rests_on <= self.homes.keys()

    def _look_through(self, piece: Piece, known: Mapping[ast.AST, Evaluation]) -> None:
        """Evaluate the functions of a piece, but for those of which that holds still.

        Args:
            piece: The piece.
            known: What was found from its functions on before.
        """
        functions = list(self._worth_reading(piece))
        if not functions:
            return
        is_quiet = {each: self._call_graph.is_quiet(name_of(each)) for each in functions}
        self._definitions.asked = set(piece.looked_up) if known else set()
        told = self._evaluations(piece, [each for each in functions if not is_quiet[each]], known)
        quiet = []
        if not self._told_only:
            quiet = self._evaluations(piece, [each for each in functions if is_quiet[each]], known)
            owners = {each.owner.node.name for each in functions if each.owner is not None}
            asked = self._definitions.asked | owners
            piece.looked_up = {name: self._interfaces.of(name) for name in asked}
        piece.hotspots = tuple(hotspot for each in told for hotspot in each.hotspots)
        piece.quiet_hotspots = tuple(hotspot for each in quiet for hotspot in each.hotspots)
        piece.hints = tuple(hint for each in (*told, *quiet) for hint in each.hints)
        piece.looked_through = {name_of(each): is_quiet[each] for each in functions}
        evaluated = [each for each in functions if not is_quiet[each]]
        evaluated += [each for each in functions if is_quiet[each] and not self._told_only]
        piece.evaluations = {
            function.node: evaluation
            for function, evaluation in zip(evaluated, [*told, *quiet], strict=True)
        }

    def _evaluations(
        self, piece: Piece, functions: Sequence[FunctionHere], known: Mapping[ast.AST, Evaluation]
    ) -> list[Evaluation]:
        """What is found in some functions of a piece."""
        reporter = Reporter(self.homes, piece, self._runtimes, with_hints=not self._told_only)
        session = self._session()
        found: list[Evaluation] = []
        for function in functions:
            before = known.get(function.node)
            if before is None or not self._holds(before):
                before = _evaluation(function, session, reporter, {})
            found.append(before)
        handed: dict[ast.AST, dict[ast.Call, Mapping[str, Value]]] = {}
        for evaluation in found:
            for each in evaluation.handed:
                assert isinstance(each, Handed)
                handed.setdefault(each.method, {})[each.call] = each.values
        for index, function in enumerate(functions):
            evaluation = found[index]
            calls = handed.get(function.node, {}) if evaluation.has_events else {}
            from_host = handed_from_host(function, calls)
            if from_host != evaluation.from_host:
                again = _evaluation(function, session, reporter, from_host)
                # What it hands on counts as it is for any arguments.
                found[index] = replace(again, handed=evaluation.handed, has_events=True)
        return found

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
    def homes(self) -> dict[ast.AST, Home]:
        """The functions of the module and the methods of its classes, by their nodes."""
        return {
            function.node: Home(name_of(function), piece, starts[function.node.lineno - 1])
            for piece in self._pieces
            for starts in (piece.parsed.lines.starts,)
            for function in functions_of(piece.parsed.body, self._definitions)
        }

    @cached_property
    def _interfaces(self) -> Interfaces:
        return Interfaces(self._definitions)

    @cached_property
    def _call_graph(self) -> CallGraph:
        return CallGraph(self._pieces, self._definitions, self._path, self._unused)


def _evaluation(
    function: FunctionHere, known: Session, reporter: Reporter, from_host: Mapping[str, Value]
) -> Evaluation:
    """What is found in a function, of whose parameters some are known to be on the host."""
    session = _session_for(known)
    _evaluated(function, session, from_host)
    hotspots, hints = reporter.report(function, session.recorder)
    return Evaluation(
        hotspots,
        hints,
        frozenset(session.visited),
        tuple(session.handed),
        bool(session.recorder.events),
        from_host,
    )


def _session_for(known: Session) -> Session:
    """What the evaluation of one function begins with."""
    return replace(
        known,
        recorder=Recorder(),
        active=[],
        results={},
        visited=[],
        handed=[],
        calls=0,
        steps=0,
    )


def _evaluated(function: FunctionHere, session: Session, given: Mapping[str, Value]) -> Value:
    """What a function returns, of whose parameters some may be known; the session has the rest."""
    names = dict(parameters(function.node, function.node.name == "forward"))
    if function.receiver is not None:
        names[function.receiver] = UNKNOWN
    try:
        return evaluate(session, function, {**names, **given})
    except RecursionError:
        session.recorder = Recorder()
        return UNKNOWN


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
