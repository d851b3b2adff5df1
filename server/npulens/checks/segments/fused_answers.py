"""What is known of the computations in a segment that operators of the NPU replace."""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from npulens.catalog.model import Finding
from npulens.graphs.interfaces import Interface


class Idiom(NamedTuple):
    """A computation found in a function, and the rule that its pattern belongs to.

    Places of the finding count from the first line of the function.
    """

    function: ast.stmt
    rule: str
    finding: Finding


class Recognition(NamedTuple):
    """What was found in one function.

    Attributes:
        inlined: Functions that were looked into for one of these, each with its rule: what is
            found there alone is part of a larger computation here.
        rests_on: The functions that were queried: it holds as long as these are what they were.
    """

    idioms: tuple[Idiom, ...]
    inlined: frozenset[tuple[ast.AST, str]]
    rests_on: frozenset[ast.AST]


@dataclass(slots=True)
class FusedAnswers:
    """What `fused` has come to know of one segment.

    Attributes:
        word_places: Where words of computations are, each with the word; `None` until queried.
        parts: Its functions and classes that hold such words; `None` until queried.
        recognized: The computations found in it, by the nodes of its functions; `None` until
            they are looked for.
        recognized_before: What was found in them before an edit.
        queried: The interfaces that these rest on, by name.
    """

    word_places: Sequence[tuple[int, str]] | None = None
    parts: Mapping[str, object] | None = None
    recognized: dict[ast.AST, Recognition] | None = None
    recognized_before: dict[ast.AST, Recognition] = field(default_factory=dict)
    queried: dict[str, Interface | None] = field(default_factory=dict)

    @property
    def known(self) -> dict[ast.AST, Recognition]:
        """What was found last, also before an edit."""
        return self.recognized_before if self.recognized is None else self.recognized

    def take_over(self, before: "FusedAnswers") -> None:
        """Keep what holds for functions that an edit of one statement has left as they were."""
        self.recognized_before, self.queried = before.known, before.queried

    def forget(self) -> None:
        """Forget the computations, which have to be looked for anew."""
        self.recognized, self.recognized_before = None, {}
