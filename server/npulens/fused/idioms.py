"""The idioms of a module, looked for piece by piece."""

import ast
import re
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache

from npulens.catalog.model import Finding, MigrationStyle, PatternSource
from npulens.catalog.tables import Catalogue
from npulens.checks.pieces import Piece
from npulens.fused.candidates import Candidates, helpers_in, word_places
from npulens.fused.patterns import read_patterns
from npulens.fused.recognition import Recognizer
from npulens.graphs.definitions import Definitions
from npulens.syntax.scopes import ModuleNames, ModuleScope

_IMPORT = re.compile(r"^[ \t]*(?:from|import)\b.*\btorch", re.MULTILINE)


class Idioms:
    """What NPU operators can replace in a module.

    Args:
        pieces: The module.
        names: The names of the module.
        catalogue: Has the patterns and their rules.
        style: Which fixes come first.
    """

    def __init__(
        self,
        pieces: Sequence[Piece],
        names: ModuleNames,
        catalogue: Catalogue,
        style: MigrationStyle,
    ) -> None:
        self._pieces = pieces
        self._names = names
        self._catalogue = catalogue
        self._style = style
        self._words = _words_of(catalogue.patterns)

    def find(self) -> None:
        """Look through the pieces of which that is not known, or that rest on what has changed."""
        for piece in self._pieces:
            if piece.idioms is None or self._have_changed(piece):
                self._look_through(piece)

    def findings(self, piece: Piece) -> Iterator[Finding]:
        """The findings in a piece; of a helper, none that belong to a larger computation."""
        for idiom in piece.idioms or ():
            if (idiom.function, idiom.rule) not in self._inlined:
                yield idiom.finding

    def _have_changed(self, piece: Piece) -> bool:
        """Whether definitions that the idioms of a piece rest on are not what they were."""
        return any(self._texts.get(name) != text for name, text in piece.asked.items())

    def _look_through(self, piece: Piece) -> None:
        piece.idioms, piece.inlined, piece.asked = [], frozenset(), {}
        if not self._has_torch or not self._may_hold_some(piece):
            return
        text, body, lines = piece.parsed.text, piece.parsed.body, piece.parsed.lines
        definitions = self._definitions
        definitions.asked = set()
        functions = list(
            Candidates(lines, definitions, self._places(piece), self.helpers).among(body)
        )
        if not functions:
            return
        patterns = read_patterns(self._catalogue.patterns)
        recognizer = Recognizer(lines, definitions, patterns, self._catalogue, self._style)
        piece.idioms, piece.inlined = recognizer.idioms(functions)
        own = {name for name in definitions.asked if self._texts.get(name) == text}
        piece.asked = {name: self._texts.get(name) for name in definitions.asked - own}

    @cached_property
    def _inlined(self) -> frozenset[tuple[ast.AST, str]]:
        return frozenset().union(*(piece.inlined for piece in self._pieces))

    def _may_hold_some(self, piece: Piece) -> bool:
        text = piece.parsed.text
        return bool(self._places(piece)) or any(helper in text for helper in self.helpers)

    def _places(self, piece: Piece) -> tuple[int, ...]:
        if piece.word_places is None:
            piece.word_places = word_places(piece.parsed.text, piece.words, self._words)
        return piece.word_places

    @cached_property
    def _has_torch(self) -> bool:
        """Whether the module imports PyTorch; other frameworks have modules alike."""
        return any(_IMPORT.search(piece.parsed.text) for piece in self._pieces)

    @cached_property
    def helpers(self) -> frozenset[str]:
        """Functions of the module that hold a part of some computation; their callers may too."""
        return frozenset().union(*(self._helpers_of(piece) for piece in self._pieces))

    def _helpers_of(self, piece: Piece) -> frozenset[str]:
        if piece.helpers is None:
            places = self._places(piece)
            found = helpers_in(piece.parsed.body, piece.parsed.lines, places) if places else ()
            piece.helpers = frozenset(found)
        return piece.helpers

    @cached_property
    def _definitions(self) -> Definitions:
        definitions = Definitions()
        for index, piece in enumerate(self._pieces):
            definitions.add(piece.parsed.body, ModuleScope(self._names, index))
        return definitions

    @cached_property
    def _texts(self) -> dict[str, str]:
        """For each name that the module defines, the text of the piece that does."""
        return {name: p.parsed.text for p in self._pieces for name in p.bindings.names}


@lru_cache(maxsize=4)
def _words_of(sources: tuple[PatternSource, ...]) -> tuple[str, ...]:
    return tuple(sorted({word for source in sources for word in source.words}))
