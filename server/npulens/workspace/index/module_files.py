"""Which files of a project an import runs."""

import os
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

_Node = TypeVar("_Node", bound=Hashable)


class ModuleFiles:
    """The Python files of a project, found by the names of their modules."""

    def __init__(self, files: Iterable[str]) -> None:
        self._files = frozenset(files)
        self._found: dict[tuple[str, str], tuple[str, ...]] = {}

    def run_by(self, name: str, importer: str, search_path: Iterable[str]) -> tuple[str, ...]:
        """What the import of a module runs: the packages on the way to it, and itself.

        Args:
            name: Its name, with the dots of a relative import.
            importer: The file that imports it.
            search_path: The folders in which it is looked for if it has no dots, in order.
        """
        plain = name.lstrip(".")
        dots = len(name) - len(plain)
        if not dots:
            return next(filter(None, (self._below(each, plain) for each in search_path)), ())
        folder = importer
        for _ in range(dots):
            folder = os.path.dirname(folder)  # noqa: PTH120 (of thousands)
        return self._below(folder, plain)

    def _below(self, folder: str, name: str) -> tuple[str, ...]:
        if (folder, name) not in self._found:
            above, _, last = name.rpartition(".")
            around = self._below(folder, above) if above else ()
            place = os.sep.join((folder, *name.split(".")))  # noqa: PTH118
            own = (f"{place}{os.sep}__init__.py", f"{place}.py") if last else ()
            there = [each for each in own if each in self._files]
            self._found[folder, name] = (*around, *there[:1])
        return self._found[folder, name]


def all_reached(
    start: Iterable[_Node], following: Callable[[_Node], Iterable[_Node]]
) -> set[_Node]:
    """Some nodes, and all that lies behind them."""
    reached: set[_Node] = set()
    pending = list(start)
    while pending:
        node = pending.pop()
        if node not in reached:
            reached.add(node)
            pending += following(node)
    return reached
