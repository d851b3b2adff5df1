"""The variables that the software of the NPU reads, and which of them a wrong name means."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from npulens.catalog.near_names import is_one_slip

_PREFIXES = (
    *("HCCL_", "ASCEND_", "NPU_", "ACL_", "PYTORCH_NPU_", "TORCH_NPU_", "TORCH_HCCL_"),
    *("TASK_QUEUE", "CPU_AFFINITY", "COMBINED_", "MULTI_STREAM", "MSPROBE_"),
)
"""How the names of variables of the NPU begin; others are not judged."""
_SHORTEST_JUDGED = 10


@dataclass(frozen=True)
class NpuVariables:
    """The known names.

    Attributes:
        names: Variables that users set.
        others: More that are read, by tools and projects, too: nobody means one by another name.
        renamed: Names that are written for others.
    """

    names: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()
    renamed: Mapping[str, str] = field(default_factory=dict)

    __hash__ = object.__hash__

    def meant(self, name: str) -> str | None:
        """The variable that is meant by a name that nothing reads, or `None`."""
        if len(name) < _SHORTEST_JUDGED or not name.startswith(_PREFIXES):
            return None
        if name in self.names or name in self.others:
            return None
        if name in self.renamed:
            return self.renamed[name]
        found = self._by_letters.get(_letters(name)) or self._by_words.get(_words(name))
        near = found or tuple(known for known in sorted(self.names) if is_one_slip(name, known))
        return near[0] if len(near) == 1 else None

    @cached_property
    def _by_letters(self) -> Mapping[str, tuple[str, ...]]:
        return _grouped((_letters(name), name) for name in self.names)

    @cached_property
    def _by_words(self) -> Mapping[str, tuple[str, ...]]:
        return _grouped((_words(name), name) for name in self.names)


def npu_variables(lists: Iterable[Mapping[str, Any]]) -> NpuVariables:
    """What these lists hold, the fields of `npu-variables`."""
    names: set[str] = set()
    others: set[str] = set()
    renamed: dict[str, str] = {}
    for fields in lists:
        names.update(fields["names"].split())
        others.update(fields["others"].split())
        renamed |= fields["renamed"]
    return NpuVariables(frozenset(names), frozenset(others), renamed)


def _grouped(pairs: Iterable[tuple[str, str]]) -> Mapping[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for key, name in pairs:
        found[key] = (*found.get(key, ()), name)
    return found


def _letters(name: str) -> str:
    return name.replace("_", "")


def _words(name: str) -> str:
    return " ".join(sorted(name.split("_")))
