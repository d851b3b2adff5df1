"""The hotspots of a module, looked for segment by segment."""

import ast
import re
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain

from npulens.catalog.project_model import ReturnedShape
from npulens.checks.segments.analysed_module import AnalysedModule
from npulens.checks.segments.segment import Segment, never_cancel
from npulens.checks.segments.shape_answers import (
    Evaluation,
    Hint,
    Hotspot,
    NamedShapes,
    ShapeAnswers,
)
from npulens.graphs.definitions import FunctionHere
from npulens.shapes.evaluation.elsewhere import Elsewhere, summary_of
from npulens.shapes.evaluation.optional import OptionalParameter, optional_parameters
from npulens.shapes.evaluation.shape_frames import Session
from npulens.shapes.ranking.call_graph import CallGraph
from npulens.shapes.ranking.described import text_of
from npulens.shapes.ranking.evaluation_prefilter import functions_of, is_host_code
from npulens.shapes.ranking.evaluations import evaluated, evaluations
from npulens.shapes.ranking.named_shapes import name_shapes
from npulens.shapes.ranking.reporting import Home, Reporter, name_of
from npulens.shapes.ranking.runtimes import runtime_names
from npulens.shapes.ranking.scoring import Reach
from npulens.shapes.ranking.shape_candidates import Candidates
from npulens.shapes.ranking.span_remapping import Places
from npulens.shapes.values.events import Recorder
from npulens.syntax.other_modules import OtherModules

_IMPORT = re.compile(r"^[ \t]*(?:from|import)\b.*\b(?:torch|transformers)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Ranked:
    """A hotspot with its place in the module.

    Attributes:
        hotspot: What it is; spans are in the text of the module.
        score: How much it hurts, from 0 to 100.
        reach: From where that is reached.
    """

    hotspot: Hotspot
    score: int
    reach: Reach


class Hotspots:
    """Where shapes depend on data and where the host waits, in one module.

    Args:
        module: The module.
        reported_only: Places that score too low to be reported are left out, and so are hints.
        every_function: Also functions are evaluated that hold no word of a source.
        check_cancelled: Called now and then; what it raises ends the search, which can be taken up
            again.
    """

    def __init__(
        self,
        module: AnalysedModule,
        *,
        reported_only: bool = False,
        every_function: bool = False,
        check_cancelled: Callable[[], None] = never_cancel,
    ) -> None:
        self._check_cancelled = check_cancelled
        self._module = module
        self._segments = module.segments
        members = module.target.project.members
        self._elsewhere = Elsewhere(
            OtherModules(members.returned_shapes, module.path),
            OtherModules(members.keepers, module.path),
        )
        self._known = replace(module.known, in_step=True)
        self._reported_only = reported_only
        self._every_function = every_function

    def find(self) -> None:
        """Look through segments of which that is not known, or that rest on what has changed."""
        for segment, scope in zip(self._segments, self._module.definitions.scopes, strict=True):
            shapes = segment.shapes
            if not self._module.interfaces.are(shapes.queried):
                shapes.evaluations = {}
            if shapes.hotspots is None or self._have_changed(shapes):
                shapes.hotspots = None
                functions = list(self._candidates.among(segment, scope)) if self._has_torch else []
                if functions:
                    # A name of a runtime anywhere in a class counts for all of it.
                    known = shapes.evaluations if self._runtimes is None else {}
                    self._look_through(segment, functions, known)
                else:
                    shapes.hotspots = shapes.exempt_hotspots = shapes.hints = ()
                    shapes.evaluations, shapes.looked_through = {}, {}

    def ranked(self) -> list[Ranked]:
        """All hotspots of the module, the worst first."""
        if not any(s.shapes.hotspots or s.shapes.exempt_hotspots for s in self._segments):
            return []
        graph = self._call_graph
        found = [
            Ranked(hotspot, graph.score(hotspot), graph.reach(hotspot.function))
            for hotspot in Places(self._segments, self.homes).hotspots()
            if graph.counts(hotspot)
        ]
        return sorted(found, key=lambda each: (-each.score, each.hotspot.span))

    def hints(self) -> list[Hint]:
        """What an editor can show besides the findings, in order of place."""
        return Places(self._segments, self.homes).hints()

    def named(self) -> NamedShapes:
        """The shapes of names in all functions, and what these take and give."""
        if not self._has_torch:
            return NamedShapes()
        places = Places(self._segments, self.homes)
        return name_shapes(self._module, self._session(), self._reporter, places)

    def returned(self, wanted: Container[str]) -> dict[str, ReturnedShape]:
        """What functions of the module return, those whose result depends on data.

        Args:
            wanted: The names of functions that are requested.
        """
        found = {}
        for name, function in self._module.definitions.all.functions.items():
            if name not in wanted or is_host_code(function) or not self._has_torch:
                continue
            session = self._session()
            optional = optional_parameters(function.node)
            value = evaluated(function, session, {each.name: each.left_out for each in optional})
            synchronizes = any(event.synchronizes for event in session.recorder.events.values())
            summary = summary_of(value, synchronizes=synchronizes)
            if summary is not None:
                deciding = filter(partial(self._is_fixed_with, function), optional)
                unless = tuple((each.place, each.name) for each in deciding)
                found[name] = summary._replace(unless=unless)
        return found

    def _is_fixed_with(self, function: FunctionHere, parameter: OptionalParameter) -> bool:
        """Whether the result of a function depends on no data where a parameter is given."""
        given = {parameter.name: parameter.given}
        value = evaluated(function, self._session(), given, frozenset(given))
        return summary_of(value, synchronizes=False) is None

    def _have_changed(self, shapes: ShapeAnswers) -> bool:
        """Whether evaluations are needed anew, or functions are reached from elsewhere now."""
        if len(shapes.evaluations) < len(shapes.looked_through):
            return True
        if any(not each.rests_on <= self.homes.keys() for each in shapes.evaluations.values()):
            return True
        looked_through = shapes.looked_through.items()
        return any(self._call_graph.is_exempt(name) != before for name, before in looked_through)

    def _look_through(
        self,
        segment: Segment,
        functions: Sequence[FunctionHere],
        known: Mapping[ast.AST, Evaluation],
    ) -> None:
        """Evaluate functions of a segment, but for those of which it is known and holds still."""
        shapes, evaluate = segment.shapes, partial(self._evaluated, segment, known=known)
        self._module.definitions.all.queried = set(shapes.queried) if known else set()
        is_exempt = {each: self._call_graph.is_exempt(name_of(each)) for each in functions}
        reported = evaluate([each for each in functions if not is_exempt[each]])
        callers = self._callers_of_silent(segment, functions, reported)
        is_exempt.update(dict.fromkeys(callers, False))
        reported.update(evaluate(callers))
        exempt = {}
        if not self._reported_only:
            exempt = evaluate([each for each in functions if is_exempt[each]])
        if not self._reported_only:
            shapes.queried = self._module.interfaces.behind([*functions, *callers])
        shapes.evaluations = {**reported, **exempt}
        shapes.hotspots = tuple(chain.from_iterable(e.hotspots for e in reported.values()))
        shapes.exempt_hotspots = tuple(chain.from_iterable(e.hotspots for e in exempt.values()))
        shapes.hints = tuple(chain.from_iterable(e.hints for e in shapes.evaluations.values()))
        shapes.looked_through = {name_of(each): is_exempt[each] for each in (*functions, *callers)}

    def _callers_of_silent(
        self,
        segment: Segment,
        functions: Sequence[FunctionHere],
        evaluations: Mapping[ast.AST, Evaluation],
    ) -> list[FunctionHere]:
        """Methods that call one where nothing was found, though it holds a source.

        What they pass may show that it is a tensor.
        """
        silent = [
            f"self.{function.node.name}("
            for function in functions
            if function.receiver is not None
            and function.node in evaluations
            and not evaluations[function.node].has_events
        ]
        if not silent:
            return []
        lines, known = segment.parsed.lines, {function.node for function in functions}
        return [
            function
            for function in functions_of(segment.parsed.body, self._module.definitions.all)
            if function.node not in known
            and not is_host_code(function)
            and not self._call_graph.is_exempt(name_of(function))
            and any(call in text_of(function.node, lines) for call in silent)
        ]

    def _evaluated(
        self,
        segment: Segment,
        functions: Sequence[FunctionHere],
        known: Mapping[ast.AST, Evaluation],
    ) -> dict[ast.AST, Evaluation]:
        """What is found in some functions of a segment, by their nodes."""
        if not functions:
            return {}
        reporter = self._reporter(segment)
        return evaluations(functions, self._session(), reporter, known, self.homes)

    def _reporter(self, segment: Segment) -> Reporter:
        return Reporter(
            self.homes,
            segment,
            self._runtimes,
            is_of_host=self._call_graph.is_of_host,
            with_hints=not self._reported_only,
            all_shapes=self._every_function,
        )

    def _session(self) -> Session:
        catalogue = self._module.catalogue
        return Session(
            self._module.definitions.all,
            catalogue.operators,
            catalogue.tensor_methods,
            Recorder(notes_names=not self._reported_only),
            self._elsewhere,
            self._check_cancelled,
            self._names_host,
            self._known,
        )

    @cached_property
    def _names_host(self) -> bool:
        return any("cpu" in segment.words.identifiers for segment in self._segments)

    @property
    def helpers(self) -> str:
        """What the findings of all statements depend on, besides what they look up."""
        found = (self._candidates.helpers, self._runtimes)
        return "|".join("" if pattern is None else pattern.pattern for pattern in found)

    @cached_property
    def _runtimes(self) -> re.Pattern[str] | None:
        """Names of the module that represent runtimes of other accelerators or of the host."""
        names = sorted(runtime_names(segment.bindings for segment in self._segments))
        return re.compile(rf"\b(?:{'|'.join(names)})\b") if names else None

    @cached_property
    def _has_torch(self) -> bool:
        texts = (segment.parsed.text for segment in self._segments)
        return self._module.facts.imports_torch or any(map(_IMPORT.search, texts))

    @cached_property
    def homes(self) -> dict[ast.AST, Home]:
        """The functions of the module and the methods of its classes, by their nodes."""
        return {
            function.node: Home(
                name_of(function), segment, starts[function.node.lineno - 1], (function.node,)
            )
            for segment in self._segments
            for starts in (segment.parsed.lines.starts,)
            for function in functions_of(segment.parsed.body, self._module.definitions.all)
        }

    @cached_property
    def _candidates(self) -> Candidates:
        return Candidates(
            self._module,
            self._call_graph,
            self._elsewhere,
            reported_only=self._reported_only,
            every_function=self._every_function,
        )

    @cached_property
    def _call_graph(self) -> CallGraph:
        return CallGraph(self._module)
