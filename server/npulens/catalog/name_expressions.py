"""How long it may take to match a regular expression of a user's rule file.

Python tries all ways in which an expression may fit a text, one after the other. Here they are
counted, with texts as long as those that are looked up, and what has too many is refused.
"""

import re

LONGEST_VALUE = 300
"""In characters; longer names and values in scripts and settings are not looked up."""
_MOST_WAYS = 1_000_000
_TOKEN = re.compile(
    r"""
    (?P<group>\((?:\?:|(?!\?)))
    | (?P<end>\))
    | (?P<or>\|)
    | (?P<often>(?:[*+?]|\{(?P<least>\d*)(?P<comma>,?)(?P<most>\d*)\})\??)
    | (?P<one>\\[^\d]|\[\^?\]?(?:\\.|[^\]\\])*\]|[^()|*+?\\\[])
    """,
    re.VERBOSE | re.DOTALL,
)


def is_quick(expression: str) -> bool:
    """Whether an expression, which is a valid one, takes little time for each text.

    It may repeat single characters, not groups, and look neither ahead nor back.
    """
    counts = [_Ways()]
    position = 0
    while position < len(expression):
        token = _TOKEN.match(expression, position)
        if token is None:
            return False
        position = token.end()
        if token["group"]:
            counts.append(_Ways())
        elif token["end"]:
            inner = counts.pop().all()
            counts[-1].add(inner, is_group=True)
        elif token["or"]:
            counts[-1].begin_alternative()
        elif token["often"]:
            if not counts[-1].repeat(_repetitions(token)):
                return False
        else:
            counts[-1].add(1)
        if counts[-1].all() > _MOST_WAYS:
            return False
    return True


def _repetitions(token: re.Match[str]) -> int:
    """In how many ways something may be repeated."""
    sign = token["often"][0]
    if sign == "?":
        return 2
    if sign in "*+" or (token["comma"] and not token["most"]):
        return LONGEST_VALUE
    if not token["comma"]:
        return 1
    return max(1, int(token["most"]) - int(token["least"] or 0) + 1)


class _Ways:
    """In how many ways the alternatives of a group, as far as they are read, may fit a text."""

    def __init__(self) -> None:
        self._others = 0
        self._before = self._last = 1
        self._is_group = False

    def all(self) -> int:
        return self._others + self._before * self._last

    def add(self, ways: int, *, is_group: bool = False) -> None:
        self._before *= self._last
        self._last, self._is_group = ways, is_group

    def begin_alternative(self) -> None:
        self._others = self.all()
        self._before = self._last = 1
        self._is_group = False

    def repeat(self, ways: int) -> bool:
        """Count that what came last is repeated; whether that is allowed."""
        if self._is_group and ways != 2:
            return False
        self._last = self._last + 1 if self._is_group else ways
        return True
