"""What is known of names of other modules, found as the imports of a module have them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from pathlib import PurePath
from typing import Any, Generic, TypeVar

Known = TypeVar("Known")


@dataclass(frozen=True)
class OtherModules(Generic[Known]):
    """Functions or classes of other modules.

    Attributes:
        known: What is known, each with the path of its module without the ending, and its name.
    """

    known: frozenset[tuple[str, str, Known]]
    path: str

    def find(self, qualified: str) -> Known | None:
        """What is known of a name as the imports have it, `pack.boxes.keep` or `..boxes.keep`."""
        found: Known | None = _finder(self.known)(self._folder, qualified)
        return found

    def names_in(self, qualified: str) -> Iterator[str]:
        """The names of a module of which something is known."""
        for name in _by_module(self.known).get(qualified.rpartition(".")[2], ()):
            if self.find(member_of(qualified, name)) is not None:
                yield name

    @property
    def is_empty(self) -> bool:
        return not self.known

    @cached_property
    def _folder(self) -> str:
        return PurePath(self.path).parent.as_posix()


def member_of(module: str, name: str) -> str:
    """A name of a module as an import has it, whose dots may be all there is of the module."""
    return f"{module}{name}" if module.endswith(".") else f"{module}.{name}"


@lru_cache(maxsize=16)
def _finder(known: frozenset[tuple[str, str, Any]]) -> Callable[[str, str], Any]:
    """`_found` with answers that are kept as long as what they are of.

    Modules beside each other ask the same.
    """
    return lru_cache(maxsize=4096)(partial(_found, _by_name(known)))


def _found(by_name: Mapping[str, Mapping[str, Any]], folder: str, qualified: str) -> Any:
    """What is known of a name for modules of a folder."""
    module, _, name = qualified.rpartition(".")
    places = by_name.get(name)
    if places is None:
        return None
    around = folder.split("/")
    if not qualified.startswith("."):
        return _absolute(module.split("."), around, places)
    inner = qualified.lstrip(".")
    ups = len(qualified) - len(inner) - 1
    above = around[: len(around) - ups]
    return places.get("/".join((*above, *inner.split(".")[:-1])).removeprefix("./"))


def _absolute(module: list[str], folder: list[str], places: Mapping[str, Any]) -> Any:
    """What is in the module of this name that is nearest, seen from the importing one."""
    outside = {}
    for place in places:
        parts = place.split("/")
        if parts[-len(module) :] == module:
            outside[place] = parts[: -len(module)]
    own = [part for part in folder if part != "."]
    around = [place for place, root in outside.items() if own[: len(root)] == root]
    if around:
        return places[max(around, key=lambda place: len(outside[place]))]
    is_clear = len(module) > 1 and len(outside) == 1
    return places[next(iter(outside))] if is_clear else None


def _by_name(known: frozenset[tuple[str, str, Any]]) -> Mapping[str, Mapping[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for path, name, each in known:
        found.setdefault(name, {})[path] = each
    return found


@lru_cache(maxsize=16)
def _by_module(known: frozenset[tuple[str, str, Any]]) -> Mapping[str, frozenset[str]]:
    """The names by the last part of the path of their module."""
    found: dict[str, set[str]] = {}
    for path, name, _ in known:
        found.setdefault(path.rpartition("/")[2], set()).add(name)
    return {module: frozenset(names) for module, names in found.items()}
