"""Suppression comments."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from npulens.syntax.strings import comments
from npulens.text.spans import Span

_IGNORE = re.compile(r"#\s*npulens:\s*ignore(?P<file>-file)?(?P<list>\s*\[(?P<codes>[^\]]*)\])?\s*")
_CODE = re.compile(r"[\w-]+")


class Suppression(NamedTuple):
    """`# npulens: ignore[NPU101]`.

    Attributes:
        span: The comment from `#` on, up to the closing bracket.
        codes: The codes or names in brackets with where they stand; empty silences all.
        whole_file: `ignore-file`.
    """

    span: Span
    codes: tuple[tuple[str, Span], ...]
    whole_file: bool


def suppressions(text: str) -> Iterator[Suppression]:
    """The suppression comments of a Python text, none of them inside a string."""
    if "npulens" not in text:
        return
    for start, end in comments(text):
        for match in _IGNORE.finditer(text, start, end):
            first = match.start("codes")
            codes = tuple(
                (code.group(), Span(first + code.start(), first + code.end()))
                for code in _CODE.finditer(match.group("codes") or "")
            )
            stripped = match.group().rstrip()
            yield Suppression(
                Span(match.start(), match.start() + len(stripped)),
                codes,
                match.group("file") is not None,
            )
