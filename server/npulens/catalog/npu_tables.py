"""What the software of the NPU has: the names of its modules, the arguments of its functions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from npulens.catalog.model import LocalizedText, Rule
from npulens.catalog.npu_releases import ReleaseTable
from npulens.catalog.npu_variables import NpuVariables


@dataclass(frozen=True, slots=True)
class MembersEntry:
    """All names that a module, a class or an enumeration has had in any release.

    Attributes:
        owner: Its qualified name, such as `torch_npu.profiler.AiCMetrics`.
        names: The names in it.
        prefix: Only names that start with it are judged; empty for all.
        grows: Builds and newer releases add names, so that only those are judged which are much
            like one of `names`.
        renamed: Names that are written for others.
        source: Where the names were read.
    """

    owner: str
    rule: Rule
    names: frozenset[str]
    prefix: str
    grows: bool
    renamed: Mapping[str, str]
    source: str


@dataclass(frozen=True, slots=True)
class SignatureEntry:
    """The arguments that a function takes in any release.

    Attributes:
        callable: Its qualified name; `.name` for an attribute that a dictionary is assigned to.
        parameters: The names of all of them, those first that may be given by position.
        positional: How many may be given by position, or `None` if that is not known.
        grows: As with names, for arguments.
        dictionary: The only argument is a dictionary, and `parameters` are its keys.
        renamed: Names that are written for others.
        drops: Names that others of its kind take, and that can be left out.
        types: The type of an argument: `bool`, `int`, `float` or `str`.
        choices: The values that an argument may have.
        older: Arguments that only older releases take.
        note: What is said of these.
        source: Where the signature was read.
    """

    callable: str
    rule: Rule
    parameters: tuple[str, ...]
    positional: int | None
    grows: bool
    dictionary: bool
    renamed: Mapping[str, str]
    drops: tuple[str, ...]
    types: Mapping[str, str]
    choices: Mapping[str, tuple[Any, ...]]
    older: tuple[str, ...]
    note: LocalizedText | None
    source: str


@dataclass(frozen=True, slots=True)
class NpuTable:
    """All of it.

    Attributes:
        members: By the qualified name of the owner.
        signatures: By the qualified name of what is called.
        variables: The variables that it reads.
        releases: Those of torch_npu, and what goes with them.
    """

    members: Mapping[str, MembersEntry]
    signatures: Mapping[str, SignatureEntry]
    variables: NpuVariables = field(default_factory=NpuVariables)
    releases: ReleaseTable = field(default_factory=ReleaseTable)

    @property
    def roots(self) -> frozenset[str]:
        """The packages that it is about."""
        names = (*self.members, *self.signatures)
        return frozenset(name.lstrip(".").partition(".")[0] for name in names)


NO_NPU_TABLE = NpuTable({}, {})
