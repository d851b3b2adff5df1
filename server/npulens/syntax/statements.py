"""A module as a row of top-level statements, the unit of reuse between two versions of a text."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from npulens.syntax.parsing import SyntaxProblem, parse
from npulens.syntax.recovery import recover
from npulens.syntax.splicing import edited_class
from npulens.syntax.strings import LexicalState
from npulens.text.lines import LineMap

_STATEMENT_START = re.compile(
    r"^(?!(?:else|elif|except|finally)\b|<{7}|={7}|>{7}|\|{7})(?=[^\s#)\]}])(@)?", re.MULTILINE
)
_TRIPLE_QUOTE = re.compile(r'"""|\'\'\'')


@dataclass(frozen=True)
class ParsedText:
    """A text that starts and ends at top-level statements, and its tree.

    Attributes:
        text: The text; all positions in `body` count from its start.
        body: Its statements, without those that do not parse.
        problems: What does not parse.
        base: The version before that does, if this one was read in its place and does not.
    """

    text: str
    body: list[ast.stmt]
    problems: tuple[SyntaxProblem, ...]
    base: "ParsedText | None" = None

    @cached_property
    def lines(self) -> LineMap:
        """Where the lines of the text start."""
        return LineMap(self.text)


def parse_whole(text: str) -> ParsedText:
    """A text in one piece; where it has errors, what can be recovered of it."""
    parsed = parse(text)
    if not isinstance(parsed, SyntaxProblem):
        return ParsedText(text, parsed.body, ())
    recovered = recover(text)
    # The parser's own first error is the truest; recovery may have moved it.
    return ParsedText(text, recovered.body, tuple(recovered.problems) or (parsed,))


def split_statements(text: str) -> Iterator[str]:
    """Cut a text into pieces that each hold one top-level statement, or several on one line.

    Only white space at the start of a line, triple quotes and line continuations are looked at, so
    in broken code, or code with unindented lines in brackets, a piece may be too short. Pieces in
    a row are always the text.
    """
    start = 0
    state = LexicalState()
    read_to = 0
    decorated = False
    for match in _STATEMENT_START.finditer(text):
        position = match.start()
        if position:
            gap = text[read_to:position]
            if state.quote or state.continued or _TRIPLE_QUOTE.search(gap) or "\\" in gap:
                state.read(gap)
            read_to = position
            if state.quote or state.continued:
                continue
            if decorated:
                decorated = match.group(1) is not None
                continue
            if text[start:position].strip():
                yield text[start:position]
                start = position
        decorated = match.group(1) is not None
    if start < len(text) or not text:
        yield text[start:]


def parse_text(text: str) -> list[ParsedText]:
    """A text in one piece if it parses, else statement by statement."""
    parsed = parse(text)
    if not isinstance(parsed, SyntaxProblem):
        return [ParsedText(text, parsed.body, ())]
    return [parse_whole(piece) for piece in split_statements(text)]


def parse_statements(text: str, known: dict[str, ParsedText]) -> list[ParsedText]:
    """A text piece by piece, each taken from `known` if an earlier version had it.

    The pieces together read exactly as `parse_text` would read the text.
    """
    texts = list(split_statements(text))
    spliced = _spliced(texts, known)
    pieces = []
    broken = False
    for piece_text in texts:
        piece = known.get(piece_text) or spliced.get(piece_text)
        if piece is None:
            piece = parse_whole(piece_text)
        broken = broken or (bool(piece.problems) and piece_text not in spliced)
        pieces.append(piece)
    if broken and len(pieces) > 1:
        whole = parse(text)
        if not isinstance(whole, SyntaxProblem):
            return [ParsedText(text, whole.body, ())]
    return pieces


def _spliced(texts: list[str], known: dict[str, ParsedText]) -> dict[str, ParsedText]:
    """The one piece that is new, if it is one of before in which a method was edited."""
    new = [text for text in texts if text not in known]
    gone = known.keys() - set(texts) if len(new) == 1 else ()
    if len(gone) != 1:
        return {}
    before, text = known[next(iter(gone))], new[0]
    base = before.base or before
    found = None if base.problems else edited_class(base.lines, base.body, text)
    if found is None:
        return {}
    problems = tuple(found.problems)
    return {text: ParsedText(text, found.body, problems, base if problems else None)}
