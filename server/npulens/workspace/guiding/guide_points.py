"""The phases and points of the guide, as `rules/guide.toml` has them."""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from npulens.catalog.model import LocalizedText
from npulens.catalog.shipped_rules import rules_folder
from npulens.text.toml import parse_toml

GUIDE_FILE = "guide.toml"


class Need(NamedTuple):
    """What answers a point; of several fields that are set any may.

    Attributes:
        findings: There are none that are `safe` to fix, `unsafe`, `manual`, `blockers`, `advice`,
            or `any`.
        families: Of these families of rules alone.
        rules: Of these rules alone.
        names: The code uses one of these names of libraries.
        strings: It has one of these strings.
        reached: Names and strings count only in what the script that trains imports, itself
            among it, as far as that script is known.
        written: A file of one of the kinds matches this regular expression.
        kinds: These kinds of files.
        instruments: The lines of one of these instruments are in the code.
        without_instruments: The lines of none of these are.
        training: A loop that trains is understood.
        trains: Something computes gradients, or starts the training of a library.
        run: The script ran on the emulated NPU: `migrated` without more fixes, or `any`.
        results: A file or folder whose name matches one of these patterns was written.
    """

    findings: str = ""
    families: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    strings: tuple[str, ...] = ()
    reached: bool = False
    written: str = ""
    kinds: tuple[str, ...] = ()
    instruments: tuple[str, ...] = ()
    without_instruments: tuple[str, ...] = ()
    training: bool = False
    trains: bool = False
    run: str = ""
    results: tuple[str, ...] = ()


class Point(NamedTuple):
    """A point of the guide.

    Attributes:
        text: What it is about, in a sentence or two.
        command: What closes it, or is the next step; empty where there is none.
        then: The command once what `begun` says is in the code.
        read: Where to read on: pages of npulens, its commands, documents of Ascend.
        needs: What answers it, all of them; empty for what a person ticks.
        only_if: What has to hold for it to be needed.
    """

    id: str
    phase: str
    title: LocalizedText
    text: LocalizedText
    command: str
    then: str
    begun: Need | None
    read: tuple[str, ...]
    needs: tuple[Need, ...]
    only_if: Need | None


class PhaseTitle(NamedTuple):
    """A phase of the migration."""

    id: str
    title: LocalizedText


class GuidePlan(NamedTuple):
    """All phases and points, in their order."""

    phases: tuple[PhaseTitle, ...]
    points: tuple[Point, ...]

    @property
    def needs(self) -> tuple[Need, ...]:
        """All that any point asks."""
        single = [need for p in self.points for need in (p.begun, p.only_if) if need is not None]
        return (*single, *(need for point in self.points for need in point.needs))


@lru_cache(maxsize=1)
def guide_plan() -> GuidePlan:
    """The guide, read when first needed."""
    return read_plan(rules_folder() / GUIDE_FILE)


def read_plan(path: Path) -> GuidePlan:
    """The guide that a file describes."""
    content = parse_toml(path.read_text(encoding="utf-8"))
    phases = (PhaseTitle(each["id"], LocalizedText(**each["title"])) for each in content["phases"])
    return GuidePlan(tuple(phases), tuple(map(_point, content["points"])))


def _point(table: Mapping[str, Any]) -> Point:
    return Point(
        table["id"],
        table["phase"],
        LocalizedText(**table["title"]),
        LocalizedText(**table["text"]),
        table.get("command", ""),
        table.get("then", ""),
        _need(table["begun"]) if "begun" in table else None,
        tuple(table.get("read", ())),
        tuple(map(_need, table.get("needs", ()))),
        _need(table["only-if"]) if "only-if" in table else None,
    )


def _need(table: Mapping[str, Any]) -> Need:
    fields: dict[str, Any] = {name.replace("-", "_"): value for name, value in table.items()}
    fields.update((k, tuple(v)) for k, v in fields.items() if isinstance(v, list))
    return Need(**fields)
