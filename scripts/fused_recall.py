"""Prints how many labelled places of fused operators `check` finds.

    python scripts/fused_recall.py FOLDER --list 1 [--missed]

FOLDER holds checkouts of the repositories of a list of `tests/data/fused_labels.tsv`, each under
its last name; those that are not there are left out, and named. A place is found if a finding of
its operator, with a fix or without, lies in the same outermost class or function; outside of any,
if it is at most four lines away. A call of a library for CUDA is found if the finding names the
operator.
"""

import argparse
import ast
import json
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

LABELS = Path(__file__).parents[1] / "tests" / "data" / "fused_labels.tsv"
_NEAR_MISS = "NPU719"
_LIBRARY = "NPU602"
_CODES = {
    "rms_norm": ("NPU701", "NPU702"),
    "add_rms_norm": ("NPU702",),
    "swiglu": ("NPU703",),
    "geglu": ("NPU704",),
    "gelu": ("NPU705",),
    "fast_gelu": ("NPU705",),
    "rotary": ("NPU706",),
    "attention": ("NPU707", "NPU710"),
    "masked_softmax": ("NPU710", "NPU707"),
    "flash_attention": ("NPU708",),
    "sdpa": ("NPU709",),
    "moe": ("NPU712",),
    "cross_entropy": ("NPU713",),
    "drop_path": ("NPU714",),
    "detection": ("NPU715",),
    "optimizer": ("NPU716",),
}


class Label(NamedTuple):
    """A computation, the operator that it resembles, and whether it is one: yes, manual or no."""

    number: str
    repository: str
    path: str
    line: int
    operator: str
    fusable: str
    function: str
    note: str


class Reported(NamedTuple):
    """Where a finding is, and its rule."""

    path: str
    line: int
    code: str
    message: str


_NAMED = {
    "rms_norm": ("npu_rms_norm",),
    "add_rms_norm": ("npu_add_rms_norm",),
    "swiglu": ("npu_swiglu",),
    "geglu": ("npu_geglu",),
    "rotary": ("npu_rotary_mul",),
}
"""What findings on libraries name for an operator."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--list", required=True, metavar="NUMBER")
    parser.add_argument("--missed", action="store_true", help="list what is not found")
    asked = parser.parse_args()
    by_repository: dict[str, list[Label]] = defaultdict(list)
    for label in labels():
        if label.number == asked.list:
            by_repository[label.repository].append(label)
    counts: Counter[tuple[str, str, str]] = Counter()
    for repository, places in by_repository.items():
        checkout = asked.folder / repository.rpartition("/")[2]
        if not checkout.is_dir():
            print(f"{repository} is not there")
            continue
        found = reported_in(checkout)
        for label in places:
            is_found = _is_found(label, found, checkout)
            for operator in (label.operator, "all"):
                counts[operator, label.fusable, "of"] += 1
                counts[operator, label.fusable, "found"] += is_found
            if asked.missed and is_found is (label.fusable == "no"):
                kind = "extra" if is_found else "missed"
                print(
                    f"{kind}: {repository} {label.path}:{label.line} {label.operator} {label.note}"
                )
    for operator in sorted({operator for operator, _, _ in counts}):
        parts = (
            f"{fusable} {counts[operator, fusable, 'found']}/{counts[operator, fusable, 'of']}"
            for fusable in ("yes", "manual", "no")
        )
        print(f"{operator:16}", *parts)


def _is_found(label: Label, found: list[Reported], checkout: Path) -> bool:
    first, last = _definition(label, checkout)
    return any(
        each.path == label.path and first <= each.line <= last and _is_of(each, label.operator)
        for each in found
    )


def _is_of(reported: Reported, operator: str) -> bool:
    if reported.code == _LIBRARY:
        return any(name in reported.message for name in _NAMED.get(operator, ()))
    return reported.code in (*_CODES[operator], _NEAR_MISS)


def _definition(label: Label, checkout: Path) -> tuple[int, int]:
    """The lines of the outermost definition around a place, else those near to it."""
    try:
        tree = ast.parse((checkout / label.path).read_text(encoding="utf-8"))
    except SyntaxError:
        return label.line - 4, label.line + 4
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            last = node.end_lineno or node.lineno
            if node.lineno <= label.line <= last:
                return node.lineno, last
    return label.line - 4, label.line + 4


def labels(path: Path = LABELS) -> list[Label]:
    """The labelled places, whose first row names the columns."""
    rows = [r for r in path.read_text(encoding="utf-8").splitlines() if not r.startswith("#")]
    parts = (row.split("\t") for row in rows[1:])
    return [Label(p[0], p[1], p[2], int(p[3]), *p[4:8]) for p in parts]


def reported_in(checkout: Path) -> list[Reported]:
    """The findings of fused operators in a checkout."""
    command = [
        "check",
        "--no-cache",
        "--exit-zero",
        "--select",
        f"NPU7,{_LIBRARY}",
        "--output-format",
        "json",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "npulens", *command, "."],
        cwd=checkout,
        capture_output=True,
        check=True,
    )
    return [
        Reported(Path(each["path"]).as_posix(), each["line"], each["code"], each["message"])
        for each in json.loads(done.stdout)
    ]


if __name__ == "__main__":
    main()
