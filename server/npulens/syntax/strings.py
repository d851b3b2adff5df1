"""Where string literals and comments lie, without a tokenizer that gives up on broken code."""

import re
from collections.abc import Iterator

from npulens.text.spans import Span

_TRIPLE_END = {
    '"""': re.compile(r'[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"""', re.DOTALL),
    "'''": re.compile(r"[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*'''", re.DOTALL),
}
_SHORT = (
    r'"[^"\\\r\n]*(?:\\(?:\r\n|.)[^"\\\r\n]*)*"?|'
    r"'[^'\\\r\n]*(?:\\(?:\r\n|.)[^'\\\r\n]*)*'?"
)
_TOKEN = re.compile(r'"""|\'\'\'|' + _SHORT + r"|#[^\r\n]*|[()\[\]{}]", re.DOTALL)
_COMMENT_OR_STRING = re.compile(
    r'"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"""|'
    r"'''[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*'''|" + _SHORT + r"|#[^\r\n]*",
    re.DOTALL,
)
_CONTINUED = re.compile(r"\\\r?\n?\Z")


class LexicalState:
    """What is still open at the end of the text read so far.

    Attributes:
        quote: The triple quote of an unfinished string, or empty.
        depth: How many brackets are open, never negative.
        continued: The last line ends with a backslash.
    """

    __slots__ = ("continued", "depth", "quote")

    def __init__(self) -> None:
        self.quote = ""
        self.depth = 0
        self.continued = False

    def read(self, text: str) -> None:
        """Go on over `text`, which starts where the text read before ended."""
        position = 0
        if self.quote:
            end = _TRIPLE_END[self.quote].match(text)
            if end is None:
                return
            position, self.quote = end.end(), ""
        ends_in_comment = False
        while (token := _TOKEN.search(text, position)) is not None:
            position = token.end()
            first = text[token.start()]
            ends_in_comment = first == "#"
            if first in "([{":
                self.depth += 1
            elif first in ")]}":
                self.depth = max(0, self.depth - 1)
            elif token.group() in _TRIPLE_END:
                end = _TRIPLE_END[token.group()].match(text, position)
                if end is None:
                    self.quote = token.group()
                    return
                position = end.end()
        self.continued = (
            not (ends_in_comment and position >= len(text.rstrip("\r\n")))
            and _CONTINUED.search(text) is not None
        )


def comments(text: str) -> Iterator[Span]:
    """Where the comments of a text are."""
    return (span for span in comments_and_strings(text) if text[span.start] == "#")


def comments_and_strings(text: str) -> Iterator[Span]:
    """Where the comments and the string literals of a text are; prefixes of strings are outside."""
    return (Span(*match.span()) for match in _COMMENT_OR_STRING.finditer(text))
