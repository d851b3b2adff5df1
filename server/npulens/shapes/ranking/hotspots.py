"""The hotspots of a module, looked for piece by piece."""

import ast
import re
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain

from npulens.catalog.model import ProjectFacts, ReturnedShape
from npulens.catalog.tables import Catalogue, OperatorEntry
from npulens.checks.pieces import Evaluation, Hint, Hotspot, Piece, to_the_end
from npulens.graphs.definitions import Definitions, FunctionHere, ModuleDefinitions
from npulens.graphs.interfaces import Interfaces
from npulens.shapes.evaluation.elsewhere import Elsewhere, summary_of
from npulens.shapes.evaluation.optional import OptionalParameter, optional_parameters
from npulens.shapes.evaluation.shape_frames import Session
from npulens.shapes.ranking.call_graph import CallGraph
from npulens.shapes.ranking.evaluations import evaluated, evaluations
from npulens.shapes.ranking.placing import Places
from npulens.shapes.ranking.reporting import Home, Reporter, name_of
from npulens.shapes.ranking.runtimes import runtime_names
from npulens.shapes.ranking.scoring import Reach
from npulens.shapes.ranking.shape_candidates import Candidates
from npulens.shapes.ranking.worth import functions_of, is_host_code
from npulens.shapes.values.events import Recorder
from npulens.syntax.scopes import ModuleScope
from npulens.verdicts.conditions import Known

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
        definitions: What the module defines.
        catalogue: Has the operators and their rules.
        project: What is known of other modules.
        path: Tells what the module is for.
        known: What is known for its conditions.
        told_only: Nothing is asked about places that score too low to be told, nor for hints.
        go_on: Called now and then; what it raises ends the search, which can be taken up again.
    """

    def __init__(
        self,
        pieces: Sequence[Piece],
        definitions: ModuleDefinitions,
        catalogue: Catalogue,
        project: ProjectFacts,
        path: str,
        known: Known,
        *,
        told_only: bool = False,
        go_on: Callable[[], None] = to_the_end,
    ) -> None:
        self._go_on = go_on
        self._pieces = pieces
        self._shared = definitions
        self._catalogue = catalogue
        self._elsewhere = Elsewhere(project.returned_shapes, path)
        self._unused = project.unused_names
        self._place = project.place_of(path)
        self._is_unused = path in project.unused_modules
        self._known = replace(known, in_step=True)
        self._told_only = told_only

    def find(self) -> None:
        """Look through the pieces of which that is not known, or that rest on what has changed."""
        for piece in self._pieces:
            if not self._interfaces.are(piece.looked_up):
                piece.evaluations = {}
            if piece.hotspots is None or self._have_changed(piece):
                piece.hotspots = None
                functions = list(self._candidates.among(piece)) if self._has_torch else []
                if functions:
                    # What is said of runtimes anywhere in a class counts for all of it.
                    known = piece.evaluations if self._runtimes is None else {}
                    self._look_through(piece, functions, known)
                else:
                    piece.hotspots = piece.quiet_hotspots = piece.hints = ()
                    piece.evaluations, piece.looked_through = {}, {}

    def ranked(self) -> list[Ranked]:
        """All hotspots of the module, the worst first."""
        if not any(piece.hotspots or piece.quiet_hotspots for piece in self._pieces):
            return []
        graph = self._call_graph
        found = [
            Ranked(hotspot, graph.score(hotspot), hotspot.function, graph.reach(hotspot.function))
            for hotspot in Places(self._pieces, self.homes).hotspots()
            if graph.counts(hotspot)
        ]
        return sorted(found, key=lambda each: (-each.score, each.hotspot.span))

    def hints(self) -> list[Hint]:
        """What an editor can show besides the findings, in order of place."""
        return Places(self._pieces, self.homes).hints()

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
            optional = optional_parameters(function.node)
            value = evaluated(function, session, {each.name: each.left_out for each in optional})
            waits = any(event.waits for event in session.recorder.events.values())
            summary = summary_of(value, waits=waits)
            if summary is not None:
                deciding = filter(partial(self._is_fixed_with, function), optional)
                unless = tuple((each.place, each.name) for each in deciding)
                found[name] = summary._replace(unless=unless)
        return found

    def _is_fixed_with(self, function: FunctionHere, parameter: OptionalParameter) -> bool:
        """Whether the result of a function depends on no data where a parameter is given."""
        given = {parameter.name: parameter.given}
        value = evaluated(function, self._session(), given, frozenset(given))
        return summary_of(value, waits=False) is None

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

    def _look_through(
        self,
        piece: Piece,
        functions: Sequence[FunctionHere],
        known: Mapping[ast.AST, Evaluation],
    ) -> None:
        """Evaluate functions of a piece, but for those of which that holds still.

        Args:
            piece: The piece.
            functions: Those of its functions that count.
            known: What was found from its functions on before.
        """
        self._definitions.asked = set(piece.looked_up) if known else set()
        is_quiet = {each: self._call_graph.is_quiet(name_of(each)) for each in functions}
        told = self._evaluated(piece, [each for each in functions if not is_quiet[each]], known)
        quiet = {}
        if not self._told_only:
            quiet = self._evaluated(piece, [each for each in functions if is_quiet[each]], known)
            owners = {each.owner.node.name for each in functions if each.owner is not None}
            asked = self._definitions.asked | owners
            piece.looked_up = {name: self._interfaces.of(name) for name in asked}
        piece.evaluations = {**told, **quiet}
        piece.hotspots = tuple(chain.from_iterable(each.hotspots for each in told.values()))
        piece.quiet_hotspots = tuple(chain.from_iterable(each.hotspots for each in quiet.values()))
        piece.hints = tuple(chain.from_iterable(e.hints for e in piece.evaluations.values()))
        piece.looked_through = {name_of(each): is_quiet[each] for each in functions}

    def _evaluated(
        self, piece: Piece, functions: Sequence[FunctionHere], known: Mapping[ast.AST, Evaluation]
    ) -> dict[ast.AST, Evaluation]:
        """What is found in some functions of a piece, by their nodes."""
        if not functions:
            return {}
        reporter = Reporter(self.homes, piece, self._runtimes, with_hints=not self._told_only)
        found = evaluations(functions, self._session(), reporter, known, self.homes)
        return {function.node: each for function, each in zip(functions, found, strict=True)}

    def _session(self) -> Session:
        operators, methods = self._catalogue.operators, _methods(self._catalogue)
        return Session(
            self._definitions,
            operators,
            methods,
            Recorder(notes_names=not self._told_only),
            self._elsewhere,
            self._go_on,
            self._names_host,
            self._known,
        )

    @cached_property
    def _names_host(self) -> bool:
        return any("cpu" in piece.words.identifiers for piece in self._pieces)

    @property
    def helpers(self) -> str:
        """What the findings of all statements depend on, besides what they look up."""
        found = (self._candidates.helpers, self._runtimes)
        return "|".join("" if pattern is None else pattern.pattern for pattern in found)

    @cached_property
    def _runtimes(self) -> re.Pattern[str] | None:
        """Names of the module that stand for runtimes of other accelerators or of the host."""
        names = sorted(runtime_names(piece.bindings for piece in self._pieces))
        return re.compile(rf"\b(?:{'|'.join(names)})\b") if names else None

    @cached_property
    def _has_torch(self) -> bool:
        return any(
            piece.torch_import is not None or _IMPORT.search(piece.parsed.text)
            for piece in self._pieces
        )

    @cached_property
    def _scopes(self) -> dict[int, ModuleScope]:
        pairs = zip(self._pieces, self._shared.scopes, strict=True)
        return {id(piece): scope for piece, scope in pairs}

    @cached_property
    def _definitions(self) -> Definitions:
        return self._shared.all

    @cached_property
    def homes(self) -> dict[ast.AST, Home]:
        """The functions of the module and the methods of its classes, by their nodes."""
        return {
            function.node: Home(
                name_of(function), piece, starts[function.node.lineno - 1], (function.node,)
            )
            for piece in self._pieces
            for starts in (piece.parsed.lines.starts,)
            for function in functions_of(piece.parsed.body, self._definitions)
        }

    @cached_property
    def _interfaces(self) -> Interfaces:
        return Interfaces(self._shared)

    @cached_property
    def _candidates(self) -> Candidates:
        return Candidates(
            self._pieces,
            self._scopes,
            self._definitions,
            self._call_graph,
            self._catalogue,
            self._elsewhere,
            told_only=self._told_only,
        )

    @cached_property
    def _call_graph(self) -> CallGraph:
        return CallGraph(
            self._pieces, self._definitions, self._place, self._unused, self._is_unused
        )


def _methods(catalogue: Catalogue) -> Mapping[str, OperatorEntry]:
    return {
        name.rpartition(".")[2]: entry
        for name, entry in catalogue.operators.items()
        if entry.method
    }
