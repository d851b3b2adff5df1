"""The idioms of a module, looked for segment by segment."""

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, lru_cache
from itertools import chain

from npulens.catalog.model import Finding, PatternSource
from npulens.checks.segments.analysed_module import AnalysedModule
from npulens.checks.segments.fused_answers import Recognition
from npulens.checks.segments.segment import Segment
from npulens.fused.candidates import Candidates, Parts, Places, parts_in, word_places
from npulens.fused.chosen_activations import activations_by_default
from npulens.fused.parts import Needs, Part
from npulens.fused.parts_elsewhere import helpers_elsewhere, parts_elsewhere
from npulens.fused.recognition import Recognizer
from npulens.graphs.definitions import ClassHere
from npulens.verdicts.file_role import FileRole, file_role

_IMPORT = re.compile(r"^[ \t]*(?:from|import)\b.*\btorch", re.MULTILINE)


class Idioms:
    """What NPU operators can replace in a module.

    Args:
        module: The module.
        is_kept: Results are needed again after an edit.
        check_cancelled: Called now and then; what it raises ends the search, which can be taken up
            again.
    """

    def __init__(
        self, module: AnalysedModule, *, is_kept: bool, check_cancelled: Callable[[], None]
    ) -> None:
        self._check_cancelled = check_cancelled
        self._is_kept = is_kept
        self._module = module
        self._segments = module.segments
        self._needs = _needs_of(module.catalogue.patterns)

    def find(self) -> None:
        """Look through segments of which that is not known, or that rest on what has changed."""
        for segment in self._segments:
            is_same = self._module.interfaces.are(segment.fused.queried)
            fused, known = segment.fused, segment.fused.known
            if not (
                is_same
                and fused.recognized is not None
                and all(map(self._is_valid, known.values()))
            ):
                found = self._look_through(segment, known if is_same else {})
                fused.recognized_before, fused.recognized = {}, found

    def findings(self, segment: Segment) -> Iterator[Finding]:
        """The findings in a segment; of a helper, none that belong to a larger computation."""
        starts = segment.parsed.lines.starts
        for recognition in (segment.fused.recognized or {}).values():
            for idiom in recognition.idioms:
                if (idiom.function, idiom.rule) not in self._inlined:
                    yield idiom.finding.shifted(starts[idiom.function.lineno - 1])

    def _is_valid(self, recognition: Recognition) -> bool:
        """Whether all functions that were queried are what they were."""
        return not recognition.rests_on or recognition.rests_on <= self._nodes

    def _look_through(
        self, segment: Segment, known: Mapping[ast.AST, Recognition]
    ) -> dict[ast.AST, Recognition]:
        """What is found in the functions of a segment, but for what is known and holds still."""
        # Where data is prepared, nothing runs on the NPU.
        is_on_host = FileRole.HOST in file_role(
            self._module.target.project.place_of(self._module.path)
        )
        if is_on_host or not self._has_torch or not self._may_contain_some(segment):
            return {}
        definitions = self._module.definitions.all
        definitions.queried = set(segment.fused.queried) if known else set()
        places = self._places(segment)
        candidates = Candidates(
            segment, self._module, places, self._helpers, self._part_of, self._needs
        )
        functions = list(candidates.among(segment.parsed.body))
        if not functions:
            return {}
        recognizer = Recognizer(segment.parsed.lines, self._module, self._configured)
        recognized: dict[ast.AST, Recognition] = {}
        for function in functions:
            found = known.get(function.node)
            if found is None or not self._is_valid(found):
                self._check_cancelled()
                found = recognizer.recognize(function)
            recognized[function.node] = found
        if self._is_kept:
            segment.fused.queried = self._module.interfaces.behind(functions)
        return recognized

    @cached_property
    def _configured(self) -> Mapping[str, str]:
        return activations_by_default(self._module)

    @cached_property
    def _inlined(self) -> frozenset[tuple[ast.AST, str]]:
        found = ((s.fused.recognized or {}).values() for s in self._segments)
        return frozenset().union(*(each.inlined for each in chain.from_iterable(found)))

    @cached_property
    def _nodes(self) -> frozenset[ast.AST]:
        """The functions of the module, and the methods of its classes."""
        definitions = self._module.definitions.all
        owners = (each.methods for each in definitions.classes.values())
        return frozenset(f.node for each in (definitions.functions, *owners) for f in each.values())

    def _may_contain_some(self, segment: Segment) -> bool:
        text = segment.parsed.text
        return bool(self._places(segment)) or any(name in text for name in self._helpers)

    def _places(self, segment: Segment) -> Places:
        if segment.fused.word_places is None:
            segment.fused.word_places = word_places(segment.words, self._needs.words)
        return segment.fused.word_places

    @cached_property
    def _has_torch(self) -> bool:
        """Whether the module imports PyTorch; other frameworks have modules alike."""
        texts = (segment.parsed.text for segment in self._segments)
        return self._module.facts.imports_torch or any(map(_IMPORT.search, texts))

    @property
    def traits(self) -> frozenset[tuple[str, frozenset[str]]]:
        """The functions and classes that hold a part of some computation, with what that is."""
        return frozenset((name, part.traits()) for name, part in self._parts.items())

    @cached_property
    def _helpers(self) -> Parts:
        functions = self._module.definitions.all.functions
        own = {name: part for name, part in self._parts.items() if name in functions}
        return {**helpers_elsewhere(self._module, self._needs.words), **own}

    def _part_of(self, owner: ClassHere) -> Part | None:
        if not owner.place:
            return self._parts.get(owner.node.name)
        source = self._module.elsewhere.source(owner.place)
        return parts_elsewhere(source, self._needs.words).get(owner.node.name)

    @cached_property
    def _parts(self) -> Parts:
        parts: dict[str, Part] = {}
        for segment in self._segments:
            if segment.fused.parts is None:
                places = self._places(segment)
                body, lines = segment.parsed.body, segment.parsed.lines
                segment.fused.parts = parts_in(body, lines, places) if places else {}
            for name, part in segment.fused.parts.items():
                assert isinstance(part, Part)
                parts[name] = part
        return parts


@lru_cache(maxsize=4)
def _needs_of(sources: tuple[PatternSource, ...]) -> Needs:
    return Needs(sources)
