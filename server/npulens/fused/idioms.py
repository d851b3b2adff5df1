"""The idioms of a module, looked for piece by piece."""

import ast
import re
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache

from npulens.catalog.model import Finding, MigrationStyle, PatternSource
from npulens.catalog.tables import Catalogue
from npulens.checks.pieces import Piece
from npulens.fused.patterns import read_patterns
from npulens.fused.recognition import Recognizer, functions_worth_reading
from npulens.graphs.definitions import Definitions
from npulens.syntax.bindings import Function
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
        self._words = words_pattern(catalogue.patterns)

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
        if self._words is None or not self._has_torch or not self._may_hold_some(piece):
            return
        text, body = piece.parsed.text, piece.parsed.body
        definitions = self._definitions
        definitions.asked = set()
        functions = list(
            functions_worth_reading(text, body, definitions, self._words, self.helpers)
        )
        if not functions:
            return
        patterns = read_patterns(self._catalogue.patterns)
        recognizer = Recognizer(text, definitions, patterns, self._catalogue, self._style)
        piece.idioms, piece.inlined = recognizer.idioms(functions)
        own = {name for name in definitions.asked if self._texts.get(name) == text}
        piece.asked = {name: self._texts.get(name) for name in definitions.asked - own}

    @cached_property
    def _inlined(self) -> frozenset[tuple[ast.AST, str]]:
        return frozenset().union(*(piece.inlined for piece in self._pieces))

    def _may_hold_some(self, piece: Piece) -> bool:
        text = piece.parsed.text
        return self._computes(piece) or any(helper in text for helper in self.helpers)

    def _computes(self, piece: Piece) -> bool:
        if piece.computes is None:
            piece.computes = (
                self._words is not None and self._words.search(piece.parsed.text) is not None
            )
        return piece.computes

    @cached_property
    def _has_torch(self) -> bool:
        """Whether the module imports PyTorch; other frameworks have modules alike."""
        return any(_IMPORT.search(piece.parsed.text) for piece in self._pieces)

    @cached_property
    def helpers(self) -> frozenset[str]:
        """Functions of the module that hold a part of some computation; their callers may too."""
        return frozenset(
            node.name
            for piece in self._pieces
            if self._computes(piece)
            for node in piece.parsed.body
            if isinstance(node, Function)
        )

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
def words_pattern(sources: tuple[PatternSource, ...]) -> re.Pattern[str] | None:
    """An expression for the words of patterns, `None` if there are none."""
    words = sorted({word for source in sources for word in source.words})
    return re.compile("|".join(map(re.escape, words))) if words else None
