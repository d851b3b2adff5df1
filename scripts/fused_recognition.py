"""Compare what npulens recognises with what a reader found in the same functions.

    python scripts/fused_recognition.py FOLDER > verdicts.tsv

FOLDER holds the packages of `tests/data/fused_recognition.tsv`. Each row of that table gets a
verdict: `matched` (fusable, found), `missed` (fusable, not found), `wrong` (not fusable, found
with a fix), `noted` (found without a fix), `left` (rightly not found). Counts go to stderr.
"""

import argparse
import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from npulens.analysis import analyze
from npulens.catalog.loader import load_catalogue
from npulens.catalog.model import Finding, Target
from npulens.catalog.tables import Catalogue
from npulens.text.document import Document

_TABLE = Path(__file__).parents[1] / "tests" / "data" / "fused_recognition.tsv"
_CODES = {
    "rms_norm": ("NPU701", "NPU702"),
    "swiglu": ("NPU703",),
    "geglu": ("NPU704",),
    "rotary": ("NPU706",),
    "attention": ("NPU707", "NPU710"),
    "flash_attention": ("NPU708",),
    "sdpa": ("NPU709",),
}


class Row(NamedTuple):
    """A function that a simple search suggested, and what a reader says of it."""

    package: str
    path: str
    line: int
    function: str
    operator: str
    fusable: str
    key: str
    reason: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    counts: Counter[tuple[str, str, str]] = Counter()
    print(
        "package", "path", "line", "function", "operator", "fusable", "verdict", "reason", sep="\t"
    )
    for row, found in _compared(folder):
        verdict = _verdict(row, found)
        counts[row.operator, row.fusable, verdict] += 1
        print(*row[:6], verdict, row.reason, sep="\t")
    for key, count in sorted(counts.items()):
        print(*key, count, file=sys.stderr)


def _rows() -> Iterator[Row]:
    for line in _TABLE.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith(("#", "package\t")):
            package, path, number, *rest = line.split("\t")
            yield Row(package, path, int(number), *rest)


def _compared(folder: Path) -> Iterator[tuple[Row, list[Finding]]]:
    catalogue = load_catalogue()
    known: dict[Path, dict[int, list[Finding]]] = {}
    for row in _rows():
        path = _file(folder, row)
        if path not in known:
            known[path] = _by_function(path, catalogue)
        yield row, [f for f in known[path].get(row.line, ()) if _offers(f, row.operator)]


def _offers(finding: Finding, operator: str) -> bool:
    """Whether a finding is about an operator; one of SwiGLU may offer GEGLU for another setting."""
    if finding.rule.code in _CODES[operator]:
        return True
    return operator == "geglu" and any("npu_geglu" in fix.title.en for fix in finding.fixes)


def _by_function(path: Path, catalogue: Catalogue) -> dict[int, list[Finding]]:
    """The findings of a file by the line of the innermost function that they are in."""
    document = Document(path.name, path.read_text(encoding="utf-8"))
    functions = [
        range(node.lineno, (node.end_lineno or node.lineno) + 1)
        for node in ast.walk(ast.parse(document.text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    found: dict[int, list[Finding]] = {}
    for finding in analyze(document, catalogue, Target()):
        line = document.position_at(finding.span.start).line + 1
        around = [lines for lines in functions if line in lines]
        if finding.rule.family == "fused" and around:
            found.setdefault(max(lines.start for lines in around), []).append(finding)
    return found


def _file(folder: Path, row: Row) -> Path:
    for place in (folder / row.package / row.path, folder / row.package / row.package / row.path):
        if place.is_file():
            return place
    raise SystemExit(f"{folder}: has no {row.package}/{row.path}")


def _verdict(row: Row, found: list[Finding]) -> str:
    has_fix = any(finding.fixes for finding in found)
    if row.fusable == "yes":
        return "matched" if found else "missed"
    if has_fix:
        return "wrong" if row.fusable == "no" else "matched"
    return "noted" if found else "left"


if __name__ == "__main__":
    main()
