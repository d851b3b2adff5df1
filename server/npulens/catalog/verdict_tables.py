"""What is known of conditions on an NPU, and the wording of reasons: `rules/verdicts/`."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from npulens.catalog.model import LocalizedText


@dataclass(frozen=True, slots=True)
class ConditionTable:
    """What names answer on an NPU.

    Attributes:
        names: Qualified names of what is called or read in conditions: `holds`, or the reason why
            it does not hold.
        cards: Those that say what an NVIDIA card is.
        makers: Words for devices of other makers.
        places: Words for places that have no NPU.
        exports: Words for what is done to a model instead of running it.
        beside_exports: What else occurs in such names.
        host_instead: What moves something to a GPU that works on the host as well.
        gone: Names that no release of PyTorch for the NPU has.
    """

    names: Mapping[str, str]
    cards: frozenset[str]
    makers: frozenset[str]
    places: frozenset[str]
    exports: frozenset[str] = frozenset()
    beside_exports: frozenset[str] = frozenset()
    host_instead: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()

    def is_export(self, words: Collection[str]) -> bool:
        """Whether the words of a name say that a model is exported, and nothing else."""
        exporting = self.exports.intersection(words)
        return bool(exporting) and self.exports | self.beside_exports >= {*words}


NO_CONDITIONS = ConditionTable({}, frozenset(), frozenset(), frozenset())


def read_conditions(folder: Path, gone: frozenset[str]) -> ConditionTable:
    """Read the table from the folder of the rules; what is gone is known from rules."""
    content = _read(folder, "conditions.json")
    names = {
        name: kind
        for kind in ("holds", "other-device", "cuda-alone", "type-only")
        for name in _names(content, kind)
    }
    return ConditionTable(
        names,
        frozenset(_names(content, "card")),
        frozenset(content["makers"]),
        frozenset(content["places"]),
        frozenset(content["exports"]["words"]),
        frozenset(content["exports"]["beside"]),
        frozenset(_names(content, "host-instead")),
        gone,
    )


class ReasonWording(NamedTuple):
    """The wording of a reason.

    Attributes:
        why: Why nothing is to be done, of one place.
        counted: The text for a number of such places: `61 with a fallback`.
    """

    why: LocalizedText
    counted: LocalizedText


@lru_cache(maxsize=1)
def read_reasons(folder: Path) -> Mapping[str, ReasonWording]:
    """The wording of every reason, read when first needed."""
    content = _read(folder, "reasons.json")
    return {
        name: ReasonWording(_localized(wording), _localized(wording["counted"]))
        for name, wording in content.items()
    }


def _localized(wording: Mapping[str, Any]) -> LocalizedText:
    return LocalizedText(wording["en"], wording["zh"])


def _names(content: Mapping[str, Any], kind: str) -> list[str]:
    names: list[str] = content[kind]["names"]
    return names


def _read(folder: Path, name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "verdicts" / name).read_text(encoding="utf-8"))
    return content
