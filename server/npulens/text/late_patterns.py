"""Regular expressions that are compiled at their first use.

There are hundreds in the modules, a run needs some of them, and to compile all took a seventh of
the time of a check of one small file.
"""

import re
from typing import Any, AnyStr, cast


def late(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """What `re.compile` gives, as far as its methods and attributes go."""
    return cast("re.Pattern[AnyStr]", _Late(pattern, flags))


class _Late:
    """Stands for an expression, and has its methods from the first of them on."""

    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self.pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found = getattr(re.compile(self.pattern, self._flags), name)
        setattr(self, name, found)  # so that it is not asked for again
        return found
