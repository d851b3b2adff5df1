"""Words of shell text, with their quotes, expansions and here-documents."""

import re
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from npulens.syntax.shell_tree import Block, Command, Heredoc, Step, Word
from npulens.text.spans import Span

DEEPEST = 32
"""How deep brackets may be; deeper ones are read as plain text."""
_LONGEST_ARITHMETIC = 4000
"""How far the end of `((` is looked for: where there is none, the text is read again."""
_BLANKS = re.compile(r"(?:[ \t\r\f\v]|\\(?:\r?\n|\Z))+")
"""A backslash that ends the text goes on with nothing: people leave it behind the last option."""
_COMMENT = re.compile(r"#[^\n]*")
_FILLED_IN = re.compile(r"<<[ \t]*(?:parameters|pipeline|matrix)\.[\w.-]+[ \t]*>>")
"""`<< parameters.cuda >>`, which CircleCI fills in: part of a word and no here-document."""
_REDIRECT = re.compile(
    rf"(?!{_FILLED_IN.pattern})(?:&>>?|(?:\d+|\{{[A-Za-z_]\w*\}})?"
    r"(?:(?P<heredoc><<-?)(?!<)|<<<|<>|<&|>&|>>|>\||[<>](?!\()))"
)
_PLAIN = re.compile(r"[^ \t\r\f\v\n'\"\\$`;&|()<>]+")
_SINGLE = re.compile(r"'[^']*'")
_DOLLAR_SINGLE = re.compile(r"\$'(?:[^'\\]|\\[\s\S])*'")
_BACKQUOTED = re.compile(r"(?:[^`\\]|\\[\s\S])*")
_IN_DOUBLE = re.compile(r"(?:[^\"\\$`]|\\[\s\S])+")
_IN_BRACES = re.compile(r"(?:[^}'\"\\$`]|\\[\s\S])+")
_IN_ARITHMETIC = re.compile(r"(?:[^()'\"\\$`]|\\[\s\S])+")
_IN_HEREDOC = re.compile(r"(?:[^\\$`]|\\[\s\S])+")
_PATTERN_OPERATOR = re.compile(r"\$\{!?(?:\w+|[@*#?])(?:\[[^\]]*\])?[#%/^,]")
"""After these, single quotes quote also inside of double ones."""
_ARRAY = re.compile(r"[A-Za-z_]\w*(?:\[[^\]\n]*\])?\+?=\(")
_INDEXED = re.compile(r"[A-Za-z_]\w*\[[^\][\n'\"\\$`]*\]\+?=")
_QUOTES = re.compile(r"['\"\\]")


class _Lines:
    """The lines of a text by their content, to find the ends of here-documents."""

    def __init__(self, text: str, start: int, end: int) -> None:
        self._starts: dict[str, list[int]] = {}
        self._exact: dict[str, list[int]] = {}
        for match in re.compile(r"^[^\n]*$", re.MULTILINE).finditer(text, start, end):
            line = match.group().rstrip("\r")
            self._exact.setdefault(line, []).append(match.start())
            self._starts.setdefault(line.strip(" \t\r"), []).append(match.start())

    def find(self, delimiter: str, span: Span, *, is_indented: bool) -> int:
        """The line that ends a here-document, or the end of the text.

        A script that is indented in another text has all its lines indented, so one with
        blanks ends it if there is none without.
        """
        indented = self._starts.get(delimiter.strip(" \t\r"), [])
        exact = indented if is_indented else self._exact.get(delimiter, [])
        for starts in (exact, indented):
            index = bisect_left(starts, span.start)
            if index < len(starts) and starts[index] < span.end:
                return starts[index]
        return span.end


@dataclass(slots=True)
class _Pending:
    """A here-document whose body is still to come."""

    command: Command
    place: Span
    delimiter: str
    is_quoted: bool
    is_indented: bool


class WordReader(ABC):
    """Its place in a text, and what is open around it; each method goes on behind what it reads."""

    def __init__(self, text: str, start: int, end: int) -> None:
        self.comments: list[Span] = []
        self.broken: list[int] = []
        self._text = text
        self._at = start
        self._start, self._end = start, end
        self._depth = 0
        self._closers: list[frozenset[str]] = []
        self._pending: list[_Pending] = []
        self._no_arithmetic: set[int] = set()
        self._lines: _Lines | None = None

    @abstractmethod
    def whole(self) -> Block:
        """All commands up to the end of the text."""

    @abstractmethod
    def _enclosed(self) -> Block:
        """Commands up to a closing bracket, which is read."""

    def _blanks(self) -> None:
        blanks = _BLANKS.match(self._text, self._at, self._end)
        if blanks is not None:
            self._at = blanks.end()
        comment = _COMMENT.match(self._text, self._at, self._end)
        if comment is not None:
            self.comments.append(Span(*comment.span()))
            self._at = comment.end()

    def _lines_and_blanks(self) -> None:
        """Pass over everything between two words of a construct that may span lines."""
        while True:
            self._blanks()
            if self._at >= self._end or self._text[self._at] != "\n":
                return
            self._at += 1
            self._heredocs()

    def _surplus(self, length: int) -> None:
        """Pass over what closes nothing."""
        self.broken.append(self._at)
        self._at += length

    def _close(self, mark: str) -> None:
        """Pass over what ends a construct."""
        if self._text.startswith(mark, self._at, self._end):
            self._at += len(mark)
        else:
            self.broken.append(self._at)

    def _taken(self, length: int) -> Word:
        self._at += length
        return Word(Span(self._at - length, self._at))

    # Words

    def _word(self) -> Word:
        word = Word(Span(self._at, self._at))
        if self._depth < DEEPEST and (array := _ARRAY.match(self._text, self._at, self._end)):
            self._at = array.end() - 1
            self._array(word)
        indexed = _INDEXED.match(self._text, self._at, self._end)
        if indexed is not None:
            self._at = indexed.end()
        self._parts(word)
        word.span = Span(word.span.start, self._at)
        return word

    def _array(self, word: Word) -> None:
        start = self._at
        self._at += 1
        elements = Command(is_array=True)
        while self._at < self._end:
            self._lines_and_blanks()
            if self._at >= self._end or self._text[self._at] == ")":
                break
            elements.words.append(self._element())
        self._close(")")
        word.inner.append((Span(start, self._at), Block([Step(elements, "")])))

    def _element(self) -> Word:
        word = Word(Span(self._at, self._at))
        self._parts(word)
        if self._at == word.span.start:
            self._surplus(1)  # `;` and the like, which do not belong here
        word.span = Span(word.span.start, self._at)
        return word

    def _parts(self, word: Word) -> None:
        while self._at < self._end:
            plain = _PLAIN.match(self._text, self._at, self._end)
            if plain is not None:
                self._at = plain.end()
                if self._text.startswith("(", self._at, self._end) and plain.group()[-1] in "?*+@!":
                    self._pattern_group(word)
            elif not self._quoted_or_expansion(word):
                return

    def _quoted_or_expansion(self, word: Word) -> bool:
        """A part of a word that is not plain; `False` if the word ends here."""
        character = self._text[self._at]
        if character == "\\":
            if _BLANKS.match(self._text, self._at, self._end):
                return False
            self._at = min(self._at + 2, self._end)
        elif character == "'":
            self._skip(_SINGLE)
        elif character == '"':
            self._double(word)
        elif character in "$`":
            self._expansion(word)
        elif self._text.startswith(("<(", ">("), self._at, self._end):
            self._substitution(word, 2)
        elif filled_in := _FILLED_IN.match(self._text, self._at, self._end):
            self._at = filled_in.end()
        else:
            return False
        return True

    def _skip(self, pattern: re.Pattern[str]) -> None:
        """Pass over a text in single quotes."""
        match = pattern.match(self._text, self._at, self._end)
        if match is None:
            self.broken.append(self._at)
        self._at = self._end if match is None else match.end()

    def _pattern_group(self, word: Word) -> None:
        """`@(a|b)`, with whatever is in it."""
        if self._depth >= DEEPEST:
            return
        self._depth += 1
        self._at += 1
        while self._at < self._end and self._text[self._at] != ")":
            start = self._at
            self._parts(word)
            if self._at == start and self._text[self._at] != ")":
                self._at += 1
        self._close(")")
        self._depth -= 1

    # Expansions

    def _double(self, word: Word) -> None:
        self._at += 1
        while self._at < self._end:
            plain = _IN_DOUBLE.match(self._text, self._at, self._end)
            if plain is not None:
                self._at = plain.end()
            elif self._text[self._at] == '"':
                self._at += 1
                return
            else:
                self._expansion(word, in_double=True)
        self.broken.append(self._at)

    def _expansion(self, word: Word, *, in_double: bool = False) -> None:
        """What starts with `$` or a backquote; alone, both are literal."""
        if self._depth >= DEEPEST:
            self._at += 1
            return
        self._depth += 1
        self._expanded(word, in_double)
        self._depth -= 1

    def _expanded(self, word: Word, in_double: bool) -> None:
        following = self._text[self._at + 1 : min(self._at + 3, self._end)]
        if self._text[self._at] == "`":
            self._backquoted(word)
        elif following[:1] == "{":
            self._braces(word, in_double)
        elif following == "((" and self._arithmetic(word, 3):
            pass
        elif following[:1] == "(":
            self._substitution(word, 2)
        elif following[:1] == "'" and not in_double:
            self._skip(_DOLLAR_SINGLE)
        else:
            self._at += 1

    def _substitution(self, word: Word, opening: int) -> None:
        start = self._at
        self._at += opening
        if self._depth >= DEEPEST:
            return
        self._depth += 1
        block = self._enclosed()
        self._depth -= 1
        word.inner.append((Span(start, self._at), block))

    def _backquoted(self, word: Word) -> None:
        start = self._at
        self._at += 1
        content = _BACKQUOTED.match(self._text, self._at, self._end)
        end = self._end if content is None else content.end()
        with self._until(end):
            block = self.whole()
        self._close("`")
        word.inner.append((Span(start, self._at), block))

    def _braces(self, word: Word, in_double: bool) -> None:
        quotes = not in_double or _PATTERN_OPERATOR.match(self._text, self._at, self._end)
        self._at += 2
        while self._at < self._end:
            plain = _IN_BRACES.match(self._text, self._at, self._end)
            if plain is not None:
                self._at = plain.end()
            elif self._text[self._at] == "}":
                self._at += 1
                return
            elif self._text[self._at] == "'":
                self._at += 1 if not quotes else 0
                if quotes:
                    self._skip(_SINGLE)
            elif self._text[self._at] == '"':
                self._double(word)
            elif self._text[self._at] == "\\":
                self._at += 1
            else:
                self._expansion(word, in_double=in_double)
        self.broken.append(self._at)

    def _arithmetic(self, word: Word, opening: int) -> bool:
        """`$((...))` or `((...))`; `False` if these are brackets around commands."""
        start = self._at
        if start in self._no_arithmetic:
            return False
        pending = list(self._pending)
        grown: list[list[Any]] = [
            self.comments,
            self.broken,
            word.inner,
            *(p.command.heredocs for p in pending),
        ]
        kept = [(each, len(each)) for each in grown]
        self._at += opening
        outer, self._end = self._end, min(self._end, start + _LONGEST_ARITHMETIC)
        is_arithmetic = self._arithmetic_end(word)
        self._end = outer
        if is_arithmetic:
            return True
        self._no_arithmetic.add(start)
        self._at, self._pending = start, pending
        for each, length in kept:
            del each[length:]
        return False

    def _arithmetic_end(self, word: Word) -> bool:
        open_brackets = 0
        while self._at < self._end:
            plain = _IN_ARITHMETIC.match(self._text, self._at, self._end)
            if plain is not None:
                self._at = plain.end()
                continue
            character = self._text[self._at]
            if character == ")" and not open_brackets:
                is_end = self._text.startswith("))", self._at, self._end)
                self._at += 2 if is_end else 1
                return is_end
            if character in "()":
                open_brackets += 1 if character == "(" else -1
                self._at += 1
            elif character == '"':
                self._double(word)
            elif character == "'":
                self._skip(_SINGLE)
            elif character == "\\":
                self._at += 1
            else:
                self._expansion(word, in_double=True)
        return False

    # Redirections

    def _redirect_at(self) -> re.Match[str] | None:
        return _REDIRECT.match(self._text, self._at, self._end)

    def _redirect(self, redirect: re.Match[str], command: Command) -> None:
        self._at = redirect.end()
        blanks = _BLANKS.match(self._text, self._at, self._end)
        if blanks is not None:
            self._at = blanks.end()
        word = self._word()
        if redirect["heredoc"] is None:
            if word.span.start < word.span.end:
                command.redirects.append(word)
            return
        raw = self._text[slice(*word.span)]
        delimiter = _QUOTES.sub("", raw)
        if raw:
            is_indented = redirect["heredoc"] == "<<-"
            pending = _Pending(command, word.span, delimiter, delimiter != raw, is_indented)
            self._pending.append(pending)

    def _heredocs(self) -> None:
        """The bodies of here-documents, which start behind the end of a line."""
        pending, self._pending = self._pending, []
        for each in pending:
            if self._lines is None:
                self._lines = _Lines(self._text, self._start, self._end)
            rest = Span(self._at, self._end)
            end = self._lines.find(each.delimiter, rest, is_indented=each.is_indented)
            span = Span(self._at, end)
            body = Word(span)
            if not each.is_quoted:
                self._expand_heredoc(body)
            each.command.heredocs.append(Heredoc(span, body, each.place))
            line_end = self._text.find("\n", end, self._end)
            self._at = self._end if line_end < 0 else line_end + 1

    def _expand_heredoc(self, body: Word) -> None:
        with self._until(body.span.end):
            while self._at < self._end:
                plain = _IN_HEREDOC.match(self._text, self._at, self._end)
                if plain is not None:
                    self._at = plain.end()
                else:
                    self._expansion(body, in_double=True)

    @contextmanager
    def _until(self, end: int) -> Iterator[None]:
        """Read no further than `end`, where here-documents of the text outside are not yet due."""
        outer, self._end = self._end, end
        pending, self._pending = self._pending, []
        closers, self._closers = self._closers, []
        yield
        self._heredocs()  # those that are still to come have no body
        self._end, self._pending, self._closers = outer, pending, closers
