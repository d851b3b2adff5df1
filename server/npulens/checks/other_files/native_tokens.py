"""C++ and CUDA sources as tokens: without comments, with strings as strings, in linear time."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from npulens.text.late_patterns import late
from npulens.text.spans import Span


class Token(NamedTuple):
    """One token.

    Attributes:
        kind: `name`, `string`, `directive` or `mark`.
        text: A name, what is between the quotes, a preprocessor line, or a mark.
        span: Where it is.
    """

    kind: str
    text: str
    span: Span


# What has no end runs to the end of the text, so that no part is searched twice.
_TOKEN = late(
    r"""
    (?P<comment>//(?:[^\\\n]|\\[\s\S])* | /\*[\s\S]*?(?:\*/|\Z))
  | (?P<raw>(?:u8|[uUL])?R"(?P<delimiter>[^()\\\s"]{0,16})\([\s\S]*?(?:\)(?P=delimiter)"|\Z))
  | (?P<string>(?:u8|[uUL])?"(?:[^"\\\n]|\\[\s\S])*"?)
  | (?P<number>\.?\d(?:'?[\w.])*)
  | (?P<character>'(?:[^'\\\n]|\\[\s\S])*'?)
  | (?P<directive>^[ \t]*\#(?:[^\\\n/]|\\[\s\S]|/(?![/*]))*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<mark><<<|::|->|[(){}\[\];,.!&<>=:\#~])
    """,
    re.VERBOSE | re.MULTILINE,
)
_CONDITION = late(r"\s*#\s*(if|ifdef|ifndef|elif|elifdef|else|endif)\b(.*)", re.DOTALL)


def tokens(text: str) -> Iterator[Token]:
    """The tokens that say something; numbers, characters and comments do not."""
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or ""
        span = Span(match.start(), match.end())
        if match["name"] is not None or match["mark"] is not None:
            yield Token(kind, match.group(), span)
        elif match["string"] is not None:
            yield Token("string", match.group().partition('"')[2].removesuffix('"'), span)
        elif match["raw"] is not None:
            inner = match.group().partition("(")[2]
            yield Token("string", inner.rpartition(")")[0], span)
        elif match["directive"] is not None:
            yield Token("directive", match.group(), span)


class Condition(NamedTuple):
    """An open `#if`: whether its text is never compiled, or only for CUDA."""

    is_dead: bool
    is_for_cuda: bool


def live_tokens(text: str) -> Iterator[tuple[Token, bool]]:
    """Tokens that some build compiles, and whether only one with CUDA does."""
    open_conditions: list[Condition] = []
    dead = cuda = 0
    for token in tokens(text):
        match = _CONDITION.match(token.text) if token.kind == "directive" else None
        if match is None:
            if not dead:
                yield token, cuda > 0
            continue
        word, test = match.groups()
        if not word.startswith("if") and open_conditions:
            left = open_conditions.pop()
            dead -= left.is_dead
            cuda -= left.is_for_cuda
        if word != "endif":
            condition = _condition(word, test)
            open_conditions.append(condition)
            dead += condition.is_dead
            cuda += condition.is_for_cuda


def _condition(word: str, test: str) -> Condition:
    is_for_cuda = word != "ifndef" and "CUDA" in test.upper() and "!" not in test
    return Condition(word == "if" and test.strip() == "0", is_for_cuda)
