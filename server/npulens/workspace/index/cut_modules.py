"""Modules cut at unindented lines into what they define: far quicker than to parse them.

Where the cutting errs, as inside a string, less is known.
"""

import re
from collections.abc import Iterable, Iterator

from npulens.workspace.index.contents import Content

_STATEMENT = re.compile(rb"\n(?=[^\s#)\]}])")
_FUNCTION = re.compile(rb"(?:async )?def (\w+)\(")
_DEFINITION = re.compile(rb"(?:def|class) (\w+)[(:]|(\w+) = lambda\b")
_BASES = re.compile(rb"class \w+\(([^()]*)\)")
_WORD = re.compile(rb"\w+")
_LETTERS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
_ASSIGNED = re.compile(rb"\w+ = ")
_CONTEXT = re.compile(rb"(?:from|import|if|elif|else|try|except|finally)\b")
_LONGEST_CONSTANT = 200
_MOST_KEPT = 4
_MOST_CALLED = 20
"""Definitions of its module that one is looked through for."""


class CutModule:
    """The definitions among the statements of a module, and what they call.

    Args:
        data: The module.
        with_classes: Classes and lambdas with a name are definitions, too, not functions alone;
            of classes those are followed that are bases.

    Attributes:
        texts: The definitions by their names.
    """

    def __init__(self, data: bytes, *, with_classes: bool = False) -> None:
        self._defined = _DEFINITION if with_classes else _FUNCTION
        self._statements = _STATEMENT.split(data)
        named = ((self._name_of(statement), statement) for statement in self._statements)
        self.texts = {name: text for name, text in named if name is not None}
        self._calls: dict[bytes, list[bytes]] = {}

    def reached(self, names: Iterable[bytes], limit: int = _MOST_CALLED) -> set[bytes]:
        """Definitions by their names, and so many of the module that they call."""
        reached: set[bytes] = set()
        pending = list(names)
        while pending and len(reached) < limit:
            name = pending.pop()
            if name in self.texts and name not in reached:
                reached.add(name)
                pending += self._called_in(name)
        return reached

    def text_from(self, name: bytes) -> bytes:
        """The text of a definition and of those of the module that it calls."""
        return b"\n".join(self.texts[each] for each in self.reached([name]))

    def calls_from(self, name: bytes) -> set[bytes]:
        """What a definition calls, and those of the module that it calls."""
        return {called for each in self.reached([name]) for called in self._called_in(each)}

    def excerpt(self, names: Iterable[bytes], limit: int | None = None) -> bytes:
        """Some definitions, those that they call, imports and short constants of the module."""
        kept = self.reached(names, len(self._statements) if limit is None else limit)
        return b"\n".join(each for each in self._statements if self._is_kept(each, kept)) + b"\n"

    def _is_kept(self, statement: bytes, definitions: set[bytes]) -> bool:
        name = self._name_of(statement)
        if name is not None:
            return name in definitions
        is_short = len(statement) < _LONGEST_CONSTANT and _ASSIGNED.match(statement) is not None
        return is_short or _CONTEXT.match(statement) is not None

    def _name_of(self, statement: bytes) -> bytes | None:
        defined = self._defined.match(statement)
        return None if defined is None else defined[1] or defined[2]

    def _is_class(self, name: bytes) -> bool:
        return self.texts.get(name, b"").startswith(b"class ")

    def _called_in(self, name: bytes) -> list[bytes]:
        calls = self._calls.get(name)
        if calls is None:
            text = self.texts[name]
            bases = _BASES.match(text)
            called = (each for each in _called_in(text) if not self._is_class(each))
            calls = self._calls[name] = list(called)
            calls += () if bases is None else _WORD.findall(bases[1])
        return calls


class CutModules:
    """Modules that are cut; the last ones are kept, since each is asked for several things."""

    def __init__(self, *, with_classes: bool = False) -> None:
        self._with_classes = with_classes
        self._known: dict[str, CutModule] = {}

    def of(self, content: Content) -> CutModule:
        """The definitions of a module."""
        if content.digest not in self._known:
            if len(self._known) >= _MOST_KEPT:
                self._known.clear()  # those of a large project would be much at once
            cut = CutModule(content.data, with_classes=self._with_classes)
            self._known[content.digest] = cut
        return self._known[content.digest]


def _called_in(text: bytes) -> Iterator[bytes]:
    """The words before brackets, but for those that `def` defines.

    Cutting at brackets is several times as fast as an expression that begins with any word.
    """
    for part in text.split(b"(")[:-1]:
        before = part.rstrip(_LETTERS)
        if len(before) < len(part) and not before.endswith(b"def "):
            yield part[len(before) :]
