"""Prints how many of the places that were labelled by reading have a finding in their line.

    python scripts/recall.py FOLDER [--missed]

FOLDER holds checkouts of the repositories that `tests/data/recall_labels.tsv` names, each under
its last name; those that are not there are left out, and named. A place counts as found if a
finding covers its line, so one that is told at another line of the file counts as missed.
"""

import json
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

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


def main() -> None:
    folder = Path(sys.argv[1])
    totals: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    lines: dict[str, set[tuple[str, int]]] = {}
    for label in labels():
        checkout = folder / label.repository.rpartition("/")[2]
        if label.repository not in lines:
            lines[label.repository] = found_lines(checkout) if checkout.is_dir() else set()
            if not checkout.is_dir():
                print(f"{label.repository} is not there")
        if not label.line or not checkout.is_dir():
            continue
        is_found = (label.path, label.line) in lines[label.repository]
        totals[label.verdict, label.certainty][f"{label.category} found"] += is_found
        totals[label.verdict, label.certainty][label.category] += 1
        if not is_found and "--missed" in sys.argv:
            print(f"missed: {label.repository} {label.path}:{label.line} {label.note}")
    for (verdict, certainty), counts in sorted(totals.items()):
        names = sorted(name for name in counts if not name.endswith(" found"))
        found, total = sum(counts[f"{n} found"] for n in names), sum(counts[n] for n in names)
        parts = ", ".join(f"{n} {counts[f'{n} found']}/{counts[n]}" for n in names)
        print(f"{verdict}, {certainty}: {found} of {total} ({found / total:.1%}): {parts}")


def labels() -> list[Label]:
    rows = [r for r in LABELS.read_text(encoding="utf-8").splitlines() if not r.startswith("#")]
    parts = (row.split("\t") for row in rows[1:])
    return [Label(p[0], p[1], int(p[2]), *p[3:]) for p in parts]


def found_lines(checkout: Path) -> set[tuple[str, int]]:
    """The lines of a checkout that findings cover."""
    command = ["check", "--no-cache", "--output-format", "json", "--exit-zero", "."]
    done = subprocess.run(
        [sys.executable, "-m", "npulens", *command], cwd=checkout, capture_output=True, check=True
    )
    return {
        (Path(each["path"]).as_posix(), line)
        for each in json.loads(done.stdout)
        for line in range(each["line"], each["end_line"] + 1)
    }


if __name__ == "__main__":
    main()
