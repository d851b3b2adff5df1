"""The idioms of a module, looked for piece by piece."""

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import chain

from npulens.catalog.model import Finding, PatternSource, Target
from npulens.catalog.tables import Catalogue
from npulens.checks.pieces import Piece, Recognition
from npulens.fused.candidates import Candidates, Parts, Places, parts_in, word_places
from npulens.fused.chosen_activations import activations_by_default
from npulens.fused.parts import Needs, Part
from npulens.fused.patterns import read_patterns
from npulens.fused.recognition import Recognizer
from npulens.graphs.definitions import Definitions, ModuleDefinitions
from npulens.graphs.interfaces import Interfaces
from npulens.verdicts.file_role import FileRole, file_role

_IMPORT = re.compile(r"^[ \t]*(?:from|import)\b.*\btorch", re.MULTILINE)


class Idioms:
    """What NPU operators can replace in a module.

    Args:
        pieces: The module.
        definitions: What the module defines.
        catalogue: Has the patterns and their rules.
        target: Says which fixes come first, and what the project tells.
        path: The path of the module.
        place: Its path within the project.
        is_kept: What is found is asked for again after an edit.
        go_on: Called now and then; what it raises ends the search, which can be taken up again.
    """

    def __init__(
        self,
        pieces: Sequence[Piece],
        definitions: ModuleDefinitions,
        catalogue: Catalogue,
        target: Target,
        path: str,
        place: str,
        *,
        is_kept: bool,
        go_on: Callable[[], None],
    ) -> None:
        self._go_on = go_on
        self._is_kept = is_kept
        self._pieces = pieces
        self._shared = definitions
        self._catalogue = catalogue
        self._target = target
        self._path = path
        self._place = place
        self._needs = _needs_of(catalogue.patterns)

    def find(self) -> None:
        """Look through the pieces of which that is not known, or that rest on what has changed."""
        for piece in self._pieces:
            is_same = self._interfaces.are(piece.asked)
            known = piece.recognized_before if piece.recognized is None else piece.recognized
            if not (
                is_same and piece.recognized is not None and all(map(self._holds, known.values()))
            ):
                found = self._look_through(piece, known if is_same else {})
                piece.recognized_before, piece.recognized = {}, found

    def findings(self, piece: Piece) -> Iterator[Finding]:
        """The findings in a piece; of a helper, none that belong to a larger computation."""
        starts = piece.parsed.lines.starts
        for recognition in (piece.recognized or {}).values():
            for idiom in recognition.idioms:
                if (idiom.function, idiom.rule) not in self._inlined:
                    yield idiom.finding.shifted(starts[idiom.function.lineno - 1])

    def _holds(self, recognition: Recognition) -> bool:
        """Whether all functions that were asked for are what they were."""
        return not recognition.rests_on or recognition.rests_on <= self._nodes

    def _look_through(
        self, piece: Piece, known: Mapping[ast.AST, Recognition]
    ) -> dict[ast.AST, Recognition]:
        """What is found in the functions of a piece, but for what is known and holds still."""
        is_on_host = FileRole.HOST in file_role(
            self._place
        )  # where data is prepared, nothing runs on the NPU
        if is_on_host or not self._has_torch or not self._may_hold_some(piece):
            return {}
        lines, definitions = piece.parsed.lines, self._definitions
        definitions.asked = set(piece.asked) if known else set()
        candidates = Candidates(
            lines,
            piece.words,
            definitions,
            self._places(piece),
            self._helpers,
            self._parts,
            self._needs,
            bool(piece.npu_words),
        )
        functions = list(candidates.among(piece.parsed.body))
        if not functions:
            return {}
        patterns = read_patterns(self._catalogue.patterns)
        style, configured = self._target.style, self._configured
        recognizer = Recognizer(lines, definitions, patterns, self._catalogue, style, configured)
        recognized: dict[ast.AST, Recognition] = {}
        for function in functions:
            found = known.get(function.node)
            if found is None or not self._holds(found):
                self._go_on()
                found = recognizer.recognize(function)
            recognized[function.node] = found
        if self._is_kept:
            owners = {each.owner.node.name for each in functions if each.owner is not None}
            piece.asked = {name: self._interfaces.of(name) for name in definitions.asked | owners}
        return recognized

    @cached_property
    def _configured(self) -> Mapping[str, str]:
        return activations_by_default(self._pieces, self._target.project, self._path)

    @cached_property
    def _inlined(self) -> frozenset[tuple[ast.AST, str]]:
        found = (each.inlined for p in self._pieces for each in (p.recognized or {}).values())
        return frozenset().union(*found)

    @cached_property
    def _nodes(self) -> frozenset[ast.AST]:
        """The functions of the module, and the methods of its classes."""
        definitions = self._definitions
        methods = (each.methods.values() for each in definitions.classes.values())
        functions = chain(definitions.functions.values(), *methods)
        return frozenset(function.node for function in functions)

    @cached_property
    def _interfaces(self) -> Interfaces:
        return Interfaces(self._shared)

    def _may_hold_some(self, piece: Piece) -> bool:
        text = piece.parsed.text
        return bool(self._places(piece)) or any(name in text for name in self._helpers)

    def _places(self, piece: Piece) -> Places:
        if piece.word_places is None:
            piece.word_places = word_places(piece.words, self._needs.words)
        return piece.word_places

    @cached_property
    def _has_torch(self) -> bool:
        """Whether the module imports PyTorch; other frameworks have modules alike."""
        return any(
            piece.torch_import is not None or _IMPORT.search(piece.parsed.text)
            for piece in self._pieces
        )

    @property
    def traits(self) -> frozenset[tuple[str, frozenset[str]]]:
        """The functions and classes that hold a part of some computation, with what that is."""
        return frozenset((name, part.traits()) for name, part in self._parts.items())

    @cached_property
    def _helpers(self) -> Parts:
        functions = self._definitions.functions
        return {name: part for name, part in self._parts.items() if name in functions}

    @cached_property
    def _parts(self) -> Parts:
        parts: dict[str, Part] = {}
        for piece in self._pieces:
            if piece.parts is None:
                places = self._places(piece)
                body, lines = piece.parsed.body, piece.parsed.lines
                piece.parts = parts_in(body, lines, places) if places else {}
            for name, part in piece.parts.items():
                assert isinstance(part, Part)
                parts[name] = part
        return parts

    @cached_property
    def _definitions(self) -> Definitions:
        return self._shared.all


@lru_cache(maxsize=4)
def _needs_of(sources: tuple[PatternSource, ...]) -> Needs:
    return Needs(sources)
