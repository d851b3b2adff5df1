"""Patterns for files as git reads them in `.gitignore`.

The time for one path grows with the lengths of pattern and path at most by their product: where a
`*` or `**` may match more than one text, the shortest that lets what follows fit is taken, and
never another one. Regular expressions for such patterns take time to the power of their stars.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

_LONGEST = 4096
"""In characters; so long is a path at most."""
_TOKEN = re.compile(
    r"\\(?P<escaped>.)|\[(?P<negated>[!^]?)(?P<class>\]?(?:\\.|[^\]\\])*)\]|.", re.S
)
_ESCAPED_IN_CLASS = re.compile(r"\\(.)|([\[&~|\\^])", re.S)
_ANY = re.compile(r"\*{2,}")
_LITERAL = re.compile(r"[^*?\[\\]*")

_Fits = Callable[[str], bool]
"""Whether a name fits."""


class Pattern(NamedTuple):
    """One pattern.

    Attributes:
        is_negated: It takes back what others before it ignore.
        needs_folder: It fits folders alone.
        parts: What the names of a path must fit, one after the other; `None` for any names.
    """

    is_negated: bool
    needs_folder: bool
    parts: tuple[_Fits | None, ...]

    def fits(self, names: Sequence[str], *, is_folder: bool) -> bool:
        """Whether a path, given by its names, is one that the pattern means."""
        return (is_folder or not self.needs_folder) and _fit(self.parts, names)


class Patterns:
    """Patterns, of which the last that fits a path decides."""

    def __init__(self, patterns: Iterable[Pattern]) -> None:
        self._patterns = tuple(patterns)[::-1]

    def ignores(self, path: str) -> bool | None:
        """Whether a path is ignored; `None` if no pattern is about it.

        What is in a folder that is ignored is ignored as well.

        Args:
            path: From the folder of the patterns, with `/` between names, and behind a folder.
        """
        names = path.rstrip("/").split("/")
        decision = None
        for end in range(1, len(names) + 1):
            is_folder = end < len(names) or path.endswith("/")
            for pattern in self._patterns:
                if pattern.fits(names[:end], is_folder=is_folder):
                    decision = not pattern.is_negated
                    break
            if decision and end < len(names):
                return True
        return decision


@lru_cache(maxsize=4096)
def read_pattern(line: str) -> Pattern:
    """The pattern in a line that is neither empty nor a comment.

    Raises:
        ValueError: It is none.
    """
    text = _without_blanks(line)
    is_negated = text.startswith("!")
    text = text.removeprefix("!")
    needs_folder = text.endswith("/")
    text = text.removesuffix("/")
    if not text or len(text) > _LONGEST:
        raise ValueError("no pattern")
    is_anchored = "/" in text
    names = text.removeprefix("/").split("/")
    parts: list[_Fits | None] = [] if is_anchored else [None]
    if not is_anchored:
        parts.append(_of_name(text))
    else:
        parts += (None if _ANY.fullmatch(name) else _of_name(name) for name in names)
        if parts[-1] is None:  # all that is in a folder, but not the folder
            parts.append(_of_name("*"))
    return Pattern(is_negated, needs_folder, tuple(parts))


def _without_blanks(line: str) -> str:
    """Without the blanks at its end, but for one behind a backslash."""
    text = line.rstrip(" ")
    is_escaped = (len(text) - len(text.rstrip("\\"))) % 2 == 1
    return text + " " if is_escaped and len(text) < len(line) else text


def _fit(parts: Sequence[_Fits | None], names: Sequence[str]) -> bool:
    part = name = 0
    after_any: tuple[int, int] | None = None
    while name < len(names):
        expected = parts[part] if part < len(parts) else None
        if part < len(parts) and expected is None:
            part += 1
            after_any = part, name
        elif expected is not None and expected(names[name]):
            part, name = part + 1, name + 1
        elif after_any is not None:
            after_any = after_any[0], after_any[1] + 1
            part, name = after_any
        else:
            return False
    return all(expected is None for expected in parts[part:])


def _of_name(text: str) -> _Fits:
    """What a name has to fit.

    Raises:
        ValueError: It is no pattern.
    """
    if _LITERAL.fullmatch(text):
        return text.__eq__
    blocks = _blocks(text)
    if len(blocks) == 1:
        whole, _ = blocks[0]
        return lambda name: whole.fullmatch(name) is not None
    return _Stars(blocks).fit


_Block = tuple[re.Pattern[str], int]
"""What is between two stars, and how many characters it fits."""


def _blocks(text: str) -> list[_Block]:
    blocks, expression, length = [], "", 0
    for token in _TOKEN.finditer(text):
        if token[0] == "*":
            blocks.append((_compiled(expression), length))
            expression, length = "", 0
        else:
            expression, length = expression + _of_character(token), length + 1
    return [*blocks, (_compiled(expression), length)]


def _of_character(token: re.Match[str]) -> str:
    """The expression for what fits one character."""
    if token["escaped"] is not None:
        return re.escape(token["escaped"])
    if token["class"] is not None:
        within = _ESCAPED_IN_CLASS.sub(lambda found: "\\" + (found[1] or found[2]), token["class"])
        within = "\\" + within if within.startswith("]") else within
        return f"[{'^' if token['negated'] else ''}{within}]"
    if token[0] in "[\\":
        raise ValueError("it has no end")
    return "." if token[0] == "?" else re.escape(token[0])


def _compiled(expression: str) -> re.Pattern[str]:
    try:
        return re.compile(expression, re.DOTALL)
    except re.error as error:
        raise ValueError(str(error)) from error


class _Stars:
    """A name with stars: what is between them, each as far to the left as it can be."""

    def __init__(self, blocks: Sequence[_Block]) -> None:
        self._first, *self._middle, self._last = blocks

    def fit(self, name: str) -> bool:
        first, position = self._first
        if first.match(name) is None:
            return False
        for block, length in self._middle:
            found = block.search(name, position)
            if found is None:
                return False
            position = found.start() + length
        last, length = self._last
        return (
            len(name) - length >= position and last.fullmatch(name, len(name) - length) is not None
        )
