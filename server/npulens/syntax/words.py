"""Words in texts of any language."""

import re
from functools import lru_cache

from npulens.text.spans import Span

_NAME = re.compile(r"[A-Za-z_]\w*")


def identifiers_in(text: str) -> frozenset[str]:
    """What looks like an identifier of Python in a text, comments and strings included."""
    return frozenset(_NAME.findall(text))


@lru_cache(maxsize=1024)
def identifier_in(part: str) -> str:
    """The longest identifier in a part of a text, nothing if there is none.

    Wherever the part stands, an identifier of the text holds it.
    """
    return max(_NAME.findall(part), key=len, default="")


def word_at(text: str, offset: int) -> Span | None:
    """The letters, digits and underscores around a place, `None` if there are none."""
    start = end = offset
    while start and _is_part(text[start - 1]):
        start -= 1
    while end < len(text) and _is_part(text[end]):
        end += 1
    return Span(start, end) if start < end else None


def _is_part(character: str) -> bool:
    return character.isalnum() or character == "_"
