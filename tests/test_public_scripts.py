"""The list of public scripts that are migrated and run, and the page of what came of them."""

import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from npulens.workspace.verifying.outcomes import Status

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

import instrument_public  # noqa: E402
import train_public  # noqa: E402
from public_scripts import made_up, manifest  # noqa: E402

ONE_CODE, VERIFIED = (manifest.public_scripts(each) for each in ("one-code", "verify"))
ALL = {manifest.name_of(each): each for each in [*ONE_CODE, *VERIFIED]}
OPTIONAL = {
    *("data", "files", "arguments", "environment", "processes", "cwd"),
}
NEEDED = {"project", "commit", "folder", "kind", "packages", "tries", "command"}


@pytest.mark.parametrize("name", ALL)
def test_a_script_says_where_it_is_and_what_it_needs(name: str) -> None:
    script = ALL[name]
    assert set(script) >= NEEDED and set(script) <= NEEDED | OPTIONAL
    assert re.fullmatch(r"[\w.-]+/[\w.-]+", script["project"])
    assert re.fullmatch(r"[0-9a-f]{40}", script["commit"])
    assert script["kind"] in manifest.KINDS
    assert set(script["tries"]) <= {"one-code", "verify"} and script["tries"]
    assert script["command"][0].endswith((".py", ".ipynb"))
    for path in (script["folder"], *script.get("data", {}), script.get("cwd", ".")):
        assert not Path(path).is_absolute() and ".." not in Path(path).parts
    kinds = (kind for kind in script.get("data", {}).values() if isinstance(kind, str))
    assert set(kinds) <= set(made_up.KINDS)


def test_there_are_enough_of_them_of_every_kind_and_each_once() -> None:
    assert len({manifest.name_of(each) for each in VERIFIED}) == len(VERIFIED) >= 30
    assert len({each["project"] for each in VERIFIED}) >= 20
    assert {each["kind"] for each in VERIFIED} == set(manifest.KINDS)


@pytest.mark.parametrize("kind", sorted(set(made_up.KINDS) - {"causal model", "font"}))
def test_data_is_the_same_whenever_it_is_made(kind: str, tmp_path: Path) -> None:
    made = []
    for name in ("one", "other"):
        made_up.make(tmp_path / name, kind, random.Random("seed"))
        made.append((tmp_path / name).read_bytes())
    assert made[0] == made[1] and made[0]


def result(status: str, steps: int = 0, problem: str = "") -> dict[str, Any]:
    comparison = {"problem": problem, "divergence": None}
    text = f"{status}: at train.py:3"
    return {"status": status, "message": text, "steps": steps, "comparison": comparison}


def test_the_page_shows_what_trains_and_why_the_rest_does_not() -> None:
    script = VERIFIED[0]
    good = result("limit-reached", 2)
    found = dict.fromkeys(train_public.MODES, good) | {"unsafe": result("not-ready")}
    page = train_public.page([script], {manifest.name_of(script): found})
    assert "| yes | 2 | not-ready | 2 | 2 |" in page
    assert "- 1, unsafe: not-ready: at train.py:3" in page
    assert "| of all | 1 of 1 | 0 of 1 | 1 of 1 | 1 of 1 |" in page
    found["unsafe"] = result("passed", 2, "needs apex at train.py:1")
    page = train_public.page([script], {manifest.name_of(script): found})
    assert "| no | 2 | 2 |" in page
    assert "- 1, CPU: the original does not run: needs apex at train.py:1" in page


def test_the_page_has_every_script_and_no_verdict_without_a_reason() -> None:
    page = (ROOT / "docs" / "runs.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| ([^|]+) \| `([^`]+)` \|(.*)\|$", page, re.MULTILINE)
    assert len(rows) >= 30
    known = {each["project"] for each in VERIFIED}
    words = {each.value for each in Status} | {"refused", "-"}
    for number, project, _, cells in rows:
        assert project in known
        verdicts = [cell.strip() for cell in cells.split("|")][-4:]
        assert all(verdict.isdecimal() or verdict in words for verdict in verdicts)
        if any(verdict in words - {"-"} for verdict in verdicts):
            assert re.search(rf"^- {number}, ", page, re.MULTILINE)


def test_what_takes_too_long_is_said_and_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ends_late(command: list[str], **_: object) -> None:
        (tmp_path / "train.py").write_text("changed")
        raise subprocess.TimeoutExpired(command, 1)

    (tmp_path / "train.py").write_text("as it is")
    run = instrument_public.Run(tmp_path, {"command": ["train.py"], "packages": []}, None)
    monkeypatch.setattr(subprocess, "run", ends_late)
    assert "takes more than" in run.compared("profiler", [1.0])
    assert (tmp_path / "train.py").read_text() == "as it is"
    assert "takes more than" in run.losses()


def test_sums_count_what_is_alike() -> None:
    cells = ["near", "near, 3 left out", "needs the file a.json at b.py:1"]
    results = {
        f"o/p {n} a.py": dict.fromkeys(instrument_public.KINDS, c) for n, c in enumerate(cells)
    }
    last = instrument_public.table(results).splitlines()[-1]
    assert last.startswith("| all | 2 near, 1 needs a file |")
