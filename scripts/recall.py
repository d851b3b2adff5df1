"""Prints how many of the places that were labelled by reading are answered by a finding.

    python scripts/recall.py FOLDER [--labels FILE] [--missed]

FOLDER holds checkouts of the repositories that FILE names (`tests/data/recall_labels.tsv` if none
is given), each under its last name; those that are not there are left out, and named. The line of a
label in a notebook is that of the file. Three figures
are given for each kind of place: a finding covers its line; besides, a finding at another line is
about it, which names it as related or for which it is settled (`reported-at-build` and the like);
all.
"""

import argparse
import json
import subprocess
import sys
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from npulens.text.notebooks import CellMark, cell_marks, notebook_text

LABELS = Path(__file__).parents[1] / "tests" / "data" / "recall_labels.tsv"


class Label(NamedTuple):
    """A place, and what has to be done there; line 0 stands for a file without any."""

    repository: str
    path: str
    line: int
    category: str
    verdict: str
    certainty: str
    note: str


class Answers(NamedTuple):
    """The lines of a checkout that findings cover, and those that others are about."""

    found: frozenset[tuple[str, int]]
    beside: frozenset[tuple[str, int]]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--labels", type=Path, default=LABELS, metavar="FILE")
    parser.add_argument("--missed", action="store_true", help="list what has no answer")
    asked = parser.parse_args()
    totals: dict[tuple[str, str], Counter[tuple[str, str]]] = defaultdict(Counter)
    given: dict[str, Answers | None] = {}
    for label in labels(asked.labels):
        checkout = asked.folder / label.repository.rpartition("/")[2]
        if label.repository not in given:
            given[label.repository] = answers(checkout) if checkout.is_dir() else None
            if not checkout.is_dir():
                print(f"{label.repository} is not there")
        answer = given[label.repository]
        if not label.line or answer is None:
            continue
        place = (label.path, label.line)
        is_found = place in answer.found
        counts = totals[label.verdict, label.certainty]
        counts[label.category, "all"] += 1
        counts[label.category, "found"] += is_found
        counts[label.category, "beside"] += not is_found and place in answer.beside
        if asked.missed and not is_found and place not in answer.beside:
            kind = f"{label.verdict}, {label.certainty}, {label.category}"
            print(f"missed: {label.repository} {label.path}:{label.line} ({kind}) {label.note}")
    for (verdict, certainty), counts in sorted(totals.items()):
        _print_counts(f"{verdict}, {certainty}", counts)


def _print_counts(title: str, counts: Counter[tuple[str, str]]) -> None:
    names = sorted({name for name, _ in counts})
    found, beside, whole = (sum(counts[n, k] for n in names) for k in ("found", "beside", "all"))
    print(f"{title}: {found} in their line ({found / whole:.1%}), {beside} told elsewhere", end="")
    print(f" (together {(found + beside) / whole:.1%}), of {whole}")
    for name in names:
        numbers = (counts[name, kind] for kind in ("found", "beside", "all"))
        print("    {:16}{:5}{:5}{:5}".format(name, *numbers))


def labels(path: Path = LABELS) -> list[Label]:
    """The labelled places of a list, whose first row names the columns."""
    rows = [r for r in path.read_text(encoding="utf-8").splitlines() if not r.startswith("#")]
    parts = (row.split("\t") for row in rows[1:])
    return [Label(p[0], p[1], int(p[2]), *p[3:]) for p in parts]


def answers(checkout: Path) -> Answers:
    """What is said of a checkout, by file and line."""
    command = ["check", "--no-cache", "--explain-silence", "--output-format", "json"]
    done = subprocess.run(
        [sys.executable, "-m", "npulens", *command, "--exit-zero", "."],
        cwd=checkout,
        capture_output=True,
        check=True,
    )
    found: set[tuple[str, int]] = set()
    beside: set[tuple[str, int]] = set()
    for each in json.loads(done.stdout):
        path = Path(each["path"]).as_posix()
        lines = {(path, line) for line in lines_of(each, checkout / path)}
        if each.get("verdict") != "settled":
            found |= lines
            related = (lines_of(other, checkout / path) for other in each["related"])
            beside |= {(path, next(iter(lines))) for lines in related}
        elif each["reason"].startswith("reported-"):
            beside |= lines
    return Answers(frozenset(found), frozenset(beside))


def lines_of(place: dict[str, Any], path: Path) -> range:
    """The lines of a file that a place in it covers; in a notebook a place has a cell."""
    first, last = place["line"], place.get("end_line", place["line"])
    mark = _cells(path).get(place["cell"]) if place.get("cell") is not None else None
    if mark is None:
        return range(first, last + 1)
    first, last = (mark.file_line + (line - 1) * mark.step for line in (first, last))
    return range(first, last + 1)


@cache
def _cells(path: Path) -> dict[int, CellMark]:
    return {mark.number: mark for mark in cell_marks(notebook_text(path.read_bytes()))}


if __name__ == "__main__":
    main()
