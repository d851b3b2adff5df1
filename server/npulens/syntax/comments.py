"""Suppression comments."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from npulens.syntax.strings import comments
from npulens.text.spans import Span

_IGNORE = re.compile(
    r"#\s*npulens:\s*ignore(?P<file>-file)?(?![\w-])(?:\s*\[(?P<codes>[^\]]*)\]|(?!\s*\[))"
)
_CODE = re.compile(r"[\w-]+")


class Suppression(NamedTuple):
    """`# npulens: ignore[NPU101]`.

    Attributes:
        span: The comment from `#` on, up to the closing bracket.
        codes: The codes or names in brackets, `None` if there are no brackets: then all.
        whole_file: `ignore-file`.
    """

    span: Span
    codes: tuple[str, ...] | None
    whole_file: bool


def suppressions(
    text: str, comments_of: Callable[[str], Iterable[Span]] = comments
) -> Iterator[Suppression]:
    """The suppression comments of a text, outside of strings, as `comments_of` finds comments."""
    if "npulens" not in text:
        return
    for start, end in comments_of(text):
        for match in _IGNORE.finditer(text, start, end):
            listed = match.group("codes")
            codes = None if listed is None else tuple(_CODE.findall(listed))
            yield Suppression(Span(*match.span()), codes, match.group("file") is not None)
