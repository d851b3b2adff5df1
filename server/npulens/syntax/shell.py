"""Shell text as commands and words, read once from left to right.

Not a shell: nothing is expanded, and what is broken is read as far as it goes. A command inside
`$(...)`, backquotes or parentheses is a command of its own; so are the elements of an array.
"""

import re
from dataclasses import dataclass, field

from npulens.text.spans import Span

_CODE = re.compile(
    r"(?P<space>(?:[ \t\r\f\v]|\\\r?\n)+)"
    r"|(?P<newline>\n)"
    r"|(?P<plain><<<|\d*>&[\d-]?|&>>?|[^\s'\"\\$;&|()#<>`\d]+)"
    r"|(?P<heredoc><<-?[ \t]*(?P<quote>['\"]?)(?P<delimiter>[\w.!-]+)(?P=quote))"
    r"|(?P<quoted>\$?'[^']*(?:'|\Z))"
    r"|(?P<open>\$\(|\()"
    r"|(?P<close>\))"
    r"|(?P<double>\")"
    r"|(?P<back>`)"
    r"|(?P<end>[;&|])"
    r"|(?P<hash>#)"
    r"|(?P<other>\\.|\$\{\#|[\s\S])",
)
_DOUBLE = re.compile(
    r"(?P<plain>[^\"\\$`]+|\\[\s\S]|\$(?!\()|\\)|(?P<open>\$\()|(?P<double>\")|(?P<back>`)"
)
_LINE_END = re.compile(r"\n|\Z")


@dataclass(slots=True)
class Command:
    """A simple command.

    Attributes:
        words: Its words with their quotes; an empty one stands for the output of a command, and
            parts a word in two.
        is_substituted: It stands in `$(...)` or backquotes, so that its output is used.
        is_piped: Its output goes to another command.
        heredocs: The bodies of its here-documents.
    """

    words: list[Span] = field(default_factory=list)
    is_substituted: bool = False
    is_piped: bool = False
    heredocs: list[Span] = field(default_factory=list)


@dataclass(slots=True)
class ShellText:
    """The commands and comments of a text, in order of their starts or nearly so."""

    commands: list[Command] = field(default_factory=list)
    comments: list[Span] = field(default_factory=list)


def read_shell(text: str, start: int = 0, end: int | None = None) -> ShellText:
    """The commands between two offsets of a text."""
    return _Reader(text, start, len(text) if end is None else end).read()


class _Reader:
    """Its place in the text, and the commands that are open around it."""

    def __init__(self, text: str, start: int, end: int) -> None:
        self._text = text
        self._position = start
        self._end = end
        self._found = ShellText()
        self._command = Command()
        self._word: int | None = None
        self._in_double = False
        self._outer: list[tuple[str, Command, bool]] = []
        self._heredocs: list[tuple[Command, str]] = []

    def read(self) -> ShellText:
        while self._position < self._end:
            pattern = _DOUBLE if self._in_double else _CODE
            token = pattern.match(self._text, self._position, self._end)
            if token is None:  # the patterns take any character; this is for safety's sake
                break
            self._take(token.lastgroup or "", token)
        while self._outer:
            self._close()
        self._end_command(self._end)
        return self._found

    def _take(self, kind: str, token: re.Match[str]) -> None:
        at, after = token.span()
        self._position = after
        if kind in ("plain", "quoted", "other", "double"):
            self._word = at if self._word is None else self._word
            if kind == "double":
                self._in_double = not self._in_double
        elif kind == "space":
            self._end_word(at)
        elif kind == "newline":
            self._end_command(at)
            self._skip_heredocs()
        elif kind == "end":
            self._command.is_piped = token.group() == "|"
            self._end_command(at)
        elif kind == "open":
            self._open(token.group(), at)
        elif kind == "close":
            self._close_at(at)
        elif kind == "back":
            self._backquote(at)
        elif kind == "hash":
            self._comment(at)
        elif kind in ("heredoc", "quote", "delimiter"):
            self._end_word(at)
            self._heredocs.append((self._command, token.group("delimiter")))

    def _open(self, bracket: str, at: int) -> None:
        self._end_word(at)
        if bracket != "(":
            self._command.words.append(Span(at, at))
        substituted = bracket != "(" or self._command.is_substituted
        self._outer.append((bracket, self._command, self._in_double))
        self._command, self._in_double = Command([], substituted), False

    def _close_at(self, at: int) -> None:
        self._end_command(at)
        if self._outer and self._outer[-1][0] != "`":
            self._close()

    def _backquote(self, at: int) -> None:
        if self._outer and self._outer[-1][0] == "`" and not self._in_double:
            self._end_command(at)
            self._close()
        else:
            self._open("`", at)

    def _close(self) -> None:
        self._end_command(self._position)
        _, self._command, self._in_double = self._outer.pop()

    def _comment(self, at: int) -> None:
        if self._word is not None:
            return  # `a#b`, `${#name}`
        line_end = _LINE_END.search(self._text, at, self._end)
        self._position = line_end.start() if line_end is not None else self._end
        self._found.comments.append(Span(at, self._position))

    def _end_word(self, at: int) -> None:
        if self._word is not None:
            self._command.words.append(Span(self._word, at))
            self._word = None

    def _end_command(self, at: int) -> None:
        self._end_word(at)
        if self._command.words:
            self._found.commands.append(self._command)
        self._command = Command([], self._command.is_substituted)

    def _skip_heredocs(self) -> None:
        for command, delimiter in self._heredocs:
            ending = re.compile(rf"^[ \t]*{re.escape(delimiter)}[ \t\r]*$", re.MULTILINE)
            end = ending.search(self._text, self._position, self._end)
            body_end = end.start() if end is not None else self._end
            command.heredocs.append(Span(self._position, body_end))
            self._position = end.end() if end is not None else self._end
        self._heredocs = []
