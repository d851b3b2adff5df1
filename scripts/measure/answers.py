"""What npulens says of the lines of a checkout, asked as a user asks."""

import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from measure.place import Place

_OTHER_FAMILIES = frozenset({"fused", "dynamic"})
"""Families that are about speed on the NPU, and so cover lines without answering for them."""
FOUND = "found"


class Answers:
    """The answer for each line of a checkout.

    Args:
        records: What `check --explain-silence --output-format json` prints.
    """

    def __init__(self, records: list[dict[str, Any]]) -> None:
        self._lines: dict[tuple[str, int], set[str]] = defaultdict(set)
        for record in records:
            if record["family"] not in _OTHER_FAMILIES:
                self._read(record)

    def _read(self, record: dict[str, Any]) -> None:
        path = Path(record["path"]).as_posix()
        answer = record["reason"] if record.get("verdict") == "settled" else FOUND
        for line in range(record["line"], record["end_line"] + 1):
            self._lines[path, line].add(answer)
        for related in record.get("related", ()):
            there = Path(related.get("path", path)).as_posix()
            self._lines[there, related["line"]].add(answer)

    def of(self, place: Place) -> str:
        """`found`, the name of a reason, or nothing."""
        answers = {each for line in place.lines for each in self._lines.get((place.path, line), ())}
        return FOUND if FOUND in answers else min(answers, default="")


def answers(checkout: Path) -> Answers:
    """What npulens says of a checkout."""
    command = ["check", "--no-cache", "--explain-silence", "--output-format", "json"]
    done = subprocess.run(
        [sys.executable, "-m", "npulens", *command, "--exit-zero", "."],
        cwd=checkout,
        capture_output=True,
        check=True,
        env={**os.environ, "NO_COLOR": "1"},
    )
    return Answers(json.loads(done.stdout or b"[]"))
