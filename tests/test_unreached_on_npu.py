"""What is settled because an NPU never comes there is not run on the emulated NPU.

Each script in `tests/device_arms` takes both arms of its conditions. It is migrated and run by
`verify`, and the lines that ran are compared with those that are settled.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from commands import invoke
from helpers import CATALOGUE
from npulens.analysis import judge
from npulens.catalog.model import Target
from npulens.syntax.scopes import Scope
from npulens.text.document import Document
from npulens.text.places import place_at
from npulens.verdicts import regions
from npulens.verdicts.answers import Answer
from npulens.verdicts.conditions import Known, answer
from npulens.workspace.verifying import verification
from npulens.workspace.verifying.original_lines import original_lines
from npulens.workspace.verifying.verified_run import RunResult

pytestmark = pytest.mark.emulated

SCRIPTS = {path.stem: path for path in sorted(Path(__file__).with_name("device_arms").iterdir())}
NEVER_RUN = frozenset(
    {"cuda-alone", "elsewhere", "fallback", "never-runs-on-npu", "npu-way-beside"}
    | {"older-torch", "other-device"}
)
"""Reasons that say that an NPU does not come to a place."""
FEWEST = {"availability": 5, "device_types": 3, "flags": 8, "libraries": 5, "npu_beside": 6}
"""So many lines at least are settled in a script: with none, nothing would be compared."""


def test_all_scripts_are_known() -> None:
    assert SCRIPTS.keys() == FEWEST.keys()


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_line_runs_that_an_npu_never_comes_to(
    name: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = SCRIPTS[name].read_text(encoding="utf-8")
    settled = dict(_never_run(text))
    ran, failure = _lines_that_ran(text, here, monkeypatch)
    assert {line: reason for line, reason in settled.items() if line in ran} == {}
    assert not failure
    assert len(settled) >= FEWEST[name]


def test_an_inverted_answer_is_noticed(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison is able to fail."""

    def inverted(test: ast.expr, scope: Scope, known: Known) -> Answer:
        return answer(test, scope, known).negated()

    text = SCRIPTS["availability"].read_text(encoding="utf-8")
    ran, _ = _lines_that_ran(text, here, monkeypatch)
    monkeypatch.setattr(regions, "answer", inverted)
    assert any(line in ran for line, _ in _never_run(text))


def _never_run(text: str) -> Iterator[tuple[int, str]]:
    """The lines, with the reason, that an NPU does not come to by what is settled there.

    What decides stands on a line of its own: a condition runs itself, and an import is tried.
    """
    document = Document("script.py", text)
    imports = {
        node.lineno
        for node in ast.walk(ast.parse(text))
        if isinstance(node, (ast.Import, ast.ImportFrom))
    }
    for finding in judge(document, CATALOGUE, Target()).settled:
        settlement = finding.settlement
        if settlement is None or settlement.reason not in NEVER_RUN or settlement.span is None:
            continue
        line = place_at(document, finding.span.start).line
        if line not in imports and line != place_at(document, settlement.span.start).line:
            yield line, settlement.reason


def _lines_that_ran(text: str, here: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[set[int], str]:
    """The lines of a migrated script that run on the emulated NPU, and what it failed with."""
    (here / "script.py").write_text(text, encoding="utf-8")
    found: set[int] = set()
    run = verification.run

    def noting(task: Any, device: Any, folder: Path, *others: Any) -> RunResult:
        result = run(task, device, folder, *others)
        after = (folder / "script.py").read_text(encoding="utf-8").splitlines()
        lines = original_lines(text.splitlines(), after)
        found.update(lines[line - 1] for report in result.reports for line in report["lines"])
        return result

    with monkeypatch.context() as patched:
        patched.setattr(verification, "run", noting)
        code, output, errors = invoke("verify", "--steps", "2", "script.py")
    assert found, output + errors
    return found, output + errors if code else ""
