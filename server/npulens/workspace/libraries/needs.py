"""What is known of a library: its modules, and what each definition cannot do without."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from npulens.catalog.model import LocalizedText


class Obstacle(NamedTuple):
    """Something that a line needs and the NPU does not have.

    Attributes:
        file: The file, from the folder that holds the library.
        line: The line, from 1.
        at_import: Whether an import stops at it; some things fail only where they are used.
    """

    symbol: str
    file: str
    line: int
    severity: str
    at_import: bool
    text: LocalizedText


class Reference(NamedTuple):
    """A definition that runs.

    Attributes:
        kind: `name` as the module knows it, `absolute` from the root, `self` or `super` for a
            method, `property` for an attribute that may be one, `module` that is imported.
    """

    kind: str
    path: str


class Steps(NamedTuple):
    """All of these run."""

    parts: "tuple[Need, ...]"


class Ways(NamedTuple):
    """One of these runs."""

    parts: "tuple[Need, ...]"


Need = Obstacle | Reference | Steps | Ways
NOTHING = Steps(())


@dataclass(frozen=True, slots=True)
class Function:
    """A function or method: what it needs, decorators included."""

    need: Need
    is_property: bool = False


@dataclass(frozen=True, slots=True)
class Class:
    """A class.

    Attributes:
        bases: Its bases, as the module calls them.
        attributes: What makes the attributes of its instances, where one call does.
    """

    bases: tuple[str, ...]
    need: Need
    methods: Mapping[str, Function]
    attributes: Mapping[str, str]


class Binding(NamedTuple):
    """What a name of a module represents: `own`, `absolute`, `alias` or `other`, and for whom."""

    kind: str
    path: str = ""


@dataclass(frozen=True, slots=True)
class Module:
    """A module.

    Attributes:
        is_package: It is the `__init__` of a package.
        names: What its names represent; of several, any.
        stars: The modules of which it takes all names.
        functions: Its functions; those inside of others as `f.<locals>.g`.
    """

    name: str
    is_package: bool
    need: Need
    names: Mapping[str, tuple[Binding, ...]]
    stars: tuple[str, ...]
    functions: Mapping[str, Function]
    classes: Mapping[str, Class]
