"""A module as a row of top-level statements, the unit of reuse between two versions of a text."""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from npulens.syntax.commenting import is_in_comment
from npulens.syntax.parsing import SyntaxProblem, parse
from npulens.syntax.recovery import recover
from npulens.syntax.splicing import edited_class
from npulens.syntax.strings import LexicalState
from npulens.text.lines import LineMap

_STATEMENT_START = re.compile(
    r"^(?!(?:else|elif|except|finally)\b|<{7}|={7}|>{7}|\|{7})(?=[^\s#)\]}])(@)?", re.MULTILINE
)
_AHEAD = 2
"""So many earlier segments are compared with the text at a place: one may be gone."""
_TRIPLE_QUOTE = re.compile(r'"""|\'\'\'')


@dataclass(frozen=True)
class ParsedText:
    """A text that starts and ends at top-level statements, and its tree.

    Attributes:
        text: The text; all positions in `body` count from its start.
        body: Its statements, without those that do not parse.
        base: The version before that does, if this one was read in its place and does not.
        is_joined: It parses as a whole alone: `split_statements` cuts inside of a statement of it.
    """

    text: str
    body: list[ast.stmt]
    problems: tuple[SyntaxProblem, ...]
    base: "ParsedText | None" = None
    is_joined: bool = False

    @cached_property
    def lines(self) -> LineMap:
        """Where the lines of the text start."""
        return LineMap(self.text)


def parse_piece(text: str) -> ParsedText:
    """One top-level statement, or some; where it has errors, what can be recovered of it."""
    parsed = parse(text)
    if not isinstance(parsed, SyntaxProblem):
        return ParsedText(text, parsed.body, ())
    recovered = recover(text)
    # The parser's own first error is the truest; recovery may have moved it.
    return ParsedText(text, recovered.body, tuple(recovered.problems) or (parsed,))


def split_statements(text: str, before: Iterable[str] = ()) -> Iterator[str]:
    """Cut a text into segments that each hold one top-level statement, or several on one line.

    Only white space at the start of a line, triple quotes and line continuations are looked at, so
    in broken code, or code with unindented lines in brackets, a segment may be too short. Segments
    in a row are always the text. Where those of an earlier version occur again nothing is read.
    """
    known = list(before)
    start = index = 0
    while start < len(text) or not text:
        found = next(
            (i for i in range(index, index + _AHEAD) if _is_at(known, i, text, start)), None
        )
        if found is not None:
            index = found + 1
            end = start + len(known[found])
        else:
            end = _end_of_statement(text, start)
            index += not _is_at(known, index, text, end)
        yield text[start:end]
        if not text:
            return
        start = end


def _is_at(known: Sequence[str], index: int, text: str, start: int) -> bool:
    """Whether a text has a segment at a place, and a statement begins behind it."""
    if index >= len(known) or not text.startswith(known[index], start):
        return False
    end = start + len(known[index])
    # The last one ended with its text: a string or decorators may be left open there.
    is_closed = index < len(known) - 1
    return end == len(text) or (is_closed and _STATEMENT_START.match(text, end) is not None)


def _end_of_statement(text: str, start: int) -> int:
    """Where the next statement begins behind the one at `start`."""
    state = LexicalState()
    read_to = start
    decorated = False
    for match in _STATEMENT_START.finditer(text, start):
        position = match.start()
        if position > start:
            gap = text[read_to:position]
            if state.quote or state.continued or _TRIPLE_QUOTE.search(gap) or "\\" in gap:
                state.read(gap)
            read_to = position
            if state.quote or state.continued:
                continue
            if not decorated and text[start:position].strip():
                return position
        decorated = match.group(1) is not None
    return len(text)


def parse_text(text: str) -> ParsedText:
    """A text as a whole; where it has errors, what can be recovered of it."""
    parsed = parse(text)
    if not isinstance(parsed, SyntaxProblem):
        return ParsedText(text, parsed.body, ())
    return joined(text, [parse_piece(segment) for segment in split_statements(text)])


def joined(text: str, segments: Sequence[ParsedText]) -> ParsedText:
    """The text of some segments in a row as one segment, whose positions count from its start.

    What parses is read once more, with empty lines in the place of the rest; moving the positions
    of all its nodes takes longer.
    """
    if len(segments) == 1:
        return segments[0]
    readable = ("\n" * _line_ends(p) if p.problems else p.text for p in segments)
    body, problems, line = parse_piece("".join(readable)).body, list[SyntaxProblem](), 0
    for segment in segments:
        if segment.problems:
            recovered = parse_piece(segment.text)  # nodes of its own, which can be moved
            body += (ast.increment_lineno(statement, line) for statement in recovered.body)
            problems += (problem.moved(line) for problem in recovered.problems)
        line += _line_ends(segment)
    body.sort(key=lambda statement: (statement.lineno, statement.col_offset))
    return ParsedText(text, body, tuple(problems))


def _line_ends(segment: ParsedText) -> int:
    return len(segment.lines.starts) - 1


def parse_statements(text: str, known: dict[str, ParsedText]) -> list[ParsedText]:
    """The segments of `parse_text`, each taken from `known` if an earlier version had it."""
    whole_before = known.get(text)
    if whole_before is not None and whole_before.is_joined:
        return [whole_before]
    known = {segment: parsed for segment, parsed in known.items() if not parsed.is_joined}
    texts = list(split_statements(text, known))
    # Of two equal definitions only the second counts: each needs a tree of its own.
    known = {
        segment: known[segment]
        for segment, n in Counter(texts).items()
        if n == 1 and segment in known
    }
    spliced = _spliced(texts, known)
    segments = [known.get(each) or spliced.get(each) or parse_piece(each) for each in texts]
    is_broken = any(each.problems and each.text not in spliced for each in segments)
    if is_broken and len(segments) > 1:
        whole = parse(text)
        if not isinstance(whole, SyntaxProblem):
            return [ParsedText(text, whole.body, (), is_joined=True)]
    return segments


def _spliced(texts: list[str], known: dict[str, ParsedText]) -> dict[str, ParsedText]:
    """The one segment that is new, if it is one of before with another comment or method."""
    new = [text for text in texts if text not in known]
    gone = known.keys() - set(texts) if len(new) == 1 else ()
    if len(gone) != 1:
        return {}
    before, text = known[next(iter(gone))], new[0]
    if not before.problems and is_in_comment(before.lines, before.body, text):
        return {text: ParsedText(text, before.body, ())}
    base = before.base or before
    found = None if base.problems else edited_class(base.lines, base.body, text)
    if found is None:
        return {}
    problems = tuple(found.problems)
    return {text: ParsedText(text, found.body, problems, base if problems else None)}
