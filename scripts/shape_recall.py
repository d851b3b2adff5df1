"""Prints how many labelled places of dynamic shapes and waits `shapes` and `check` find.

    python scripts/shape_recall.py FOLDER --list 1 [--missed]

FOLDER holds checkouts of the repositories of a list of `tests/data/dynamic_labels.tsv`, each under
its last name; those that are not there are left out, and named. A place is found if what is
reported covers its line, or is an argument of a call that begins there. `extra` are lines of the
labelled files that are reported and are no place: batches of other sizes, tensors that grow and
explicit synchronization, which the labels do not have, are not counted among them. What `shapes`
says stays on the host is taken for no place.
"""

import argparse
import ast
import json
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

LABELS = Path(__file__).parents[1] / "tests" / "data" / "dynamic_labels.tsv"
_NOT_LABELLED = frozenset({"NPU807", "NPU808", "NPU809", "NPU810"})
_IN_TRAINING = "train"
_ON_HOST = "host"
_SELECTED = ("NPU8", "NPU912")


class Label(NamedTuple):
    """A line: what is done there, where that belongs to, and whether it is surely so."""

    number: str
    repository: str
    path: str
    line: int
    kind: str
    where: str
    certainty: str
    note: str


class Reported(NamedTuple):
    """The lines of a checkout that places cover, with the text of each place."""

    by_shapes: dict[tuple[str, int], list[str]]
    by_check: dict[tuple[str, int], list[str]]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--list", dest="number", default="1", metavar="NUMBER")
    parser.add_argument("--missed", action="store_true", help="list what is not found")
    asked = parser.parse_args()
    counts: Counter[tuple[str, str]] = Counter()
    extra: Counter[str] = Counter()
    by_repository: dict[str, list[Label]] = defaultdict(list)
    for label in labels():
        if label.number == asked.number:
            by_repository[label.repository].append(label)
    for repository, places in by_repository.items():
        checkout = asked.folder / repository.rpartition("/")[2]
        if not checkout.is_dir():
            print(f"{repository} is not there")
            continue
        reported = reported_in(checkout)
        for label in sure(places):
            _count(label, reported, counts, list_missed=asked.missed)
        files = {label.path for label in places}
        known = {(label.path, label.line) for label in places if label.certainty != "no"}
        extra["shapes"] += _outside(reported.by_shapes, files, known)
        extra["check"] += _outside(reported.by_check, files, known)
    for where in sorted({where for where, _ in counts}):
        numbers = (counts[where, kind] for kind in ("shapes", "check", "all"))
        print("{:12} shapes {:4}  check {:4}  of {:4}".format(where, *numbers))
    print(f"extra: shapes {extra['shapes']}, check {extra['check']}")


def _count(
    label: Label, reported: Reported, counts: Counter[tuple[str, str]], *, list_missed: bool
) -> None:
    place = (label.path, label.line)
    found = {"shapes": place in reported.by_shapes, "check": place in reported.by_check}
    for where in (label.where, "all"):
        counts[where, "all"] += 1
        for face, is_found in found.items():
            counts[where, face] += is_found
    is_missed = not found["shapes"] or (label.where == _IN_TRAINING and not found["check"])
    if list_missed and is_missed:
        print(f"missed: {label.repository} {label.path}:{label.line} {found} {label.kind}")


def sure(places: Iterable[Label]) -> list[Label]:
    """The lines that surely are a place on the device, each once."""
    found = {
        (label.path, label.line): label
        for label in reversed(list(places))
        if label.certainty == "sure" and label.where != "host"
    }
    return sorted(found.values(), key=lambda label: (label.path, label.line))


def labels(path: Path = LABELS) -> list[Label]:
    """The labelled lines, whose first row names the columns."""
    rows = [r for r in path.read_text(encoding="utf-8").splitlines() if not r.startswith("#")]
    parts = (row.split("\t") for row in rows[1:])
    return [Label(p[0], p[1], p[2], int(p[3]), *p[4:8]) for p in parts]


def reported_in(checkout: Path) -> Reported:
    """What both commands report of a checkout."""
    check = ["check", "--no-cache", "--exit-zero", "--select", ",".join(_SELECTED)]
    return Reported(_lines(["shapes"], checkout), _lines(check, checkout))


def _lines(command: list[str], checkout: Path) -> dict[tuple[str, int], list[str]]:
    done = subprocess.run(
        [sys.executable, "-m", "npulens", *command, "--output-format", "json", "."],
        cwd=checkout,
        capture_output=True,
        check=True,
    )
    found: dict[tuple[str, int], list[str]] = defaultdict(list)
    for each in json.loads(done.stdout):
        text = each.get("symbol") or each["message"]
        if each["code"] in _NOT_LABELLED or "synchronize" in text:
            continue
        if each.get("reached") == _ON_HOST or not each["code"].startswith(_SELECTED):
            continue
        path = Path(each["path"])
        place = (each["line"], each["column"], each["end_line"], each["end_column"])
        starts = _calls_of_arguments(checkout / path)
        for line in range(starts.get(place, each["line"]), each["end_line"] + 1):
            found[path.as_posix(), line].append(f"{each['line']}: {text}")
    return found


@lru_cache(maxsize=1)
def _calls_of_arguments(file: Path) -> dict[tuple[int, int, int, int], int]:
    """The lines where calls begin, by the places of the arguments that they have."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return {}
    found = {}
    for call in ast.walk(tree):
        if isinstance(call, ast.Call):
            for given in (*call.args, *(keyword.value for keyword in call.keywords)):
                end_line, end = given.end_lineno or 0, given.end_col_offset or 0
                found[given.lineno, given.col_offset + 1, end_line, end + 1] = call.lineno
    return found


def _outside(
    reported: dict[tuple[str, int], list[str]], files: set[str], known: set[tuple[str, int]]
) -> int:
    """How many places of labelled files cover no labelled line."""
    texts: dict[tuple[str, str], set[int]] = defaultdict(set)
    for (path, line), places in reported.items():
        if path in files:
            for place in places:
                texts[path, place].add(line)
    return sum(
        all((path, line) not in known for line in lines) for (path, _), lines in texts.items()
    )


if __name__ == "__main__":
    main()
