"""What killed runs leave behind is removed by the next one, and nothing else."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from commands import CODE, invoke
from npulens.workspace.files.owners import mark

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")

DAYS_AGO = time.time() - 2 * 86_400


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "src/sub").mkdir(parents=True)
    for name in ("src/a.py", "src/sub/b.py"):
        (tmp_path / name).write_text(CODE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob(".npulens-*"))


STOPPED = """
import os, signal, sys, time
{patch}
from npulens.cli.main import main
sys.argv = ["npulens", *sys.argv[1:]]
main()
"""
IN_WRITING = "os.fsync = lambda handle: {what}"
IN_MIGRATION = (
    "from npulens.workspace.migrating import migration\nmigration._migrate = lambda *_: {what}"
)
KILLED = "os.kill(os.getpid(), signal.SIGKILL)"
WAITING = "(print('waiting', flush=True), sys.stdin.read())"


def started(patch: str, *arguments: str) -> subprocess.Popen[str]:
    """The command, which is killed, or waits, at a certain moment."""
    command = [sys.executable, "-c", STOPPED.format(patch=patch), *arguments]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def killed(patch: str, *arguments: str) -> None:
    run = started(patch.format(what=KILLED), *arguments)
    run.communicate(timeout=60)
    assert run.returncode == -signal.SIGKILL


FIX = ("fix", "src", "--allow-dirty", "--jobs", "1")
IN_PLACE = ("migrate", "src", "--in-place", "--allow-dirty", "--jobs", "1")


@pytest.mark.parametrize("first", [FIX, IN_PLACE])
@pytest.mark.parametrize("second", [FIX, IN_PLACE])
def test_of_a_run_killed_while_it_wrote(
    here: Path, first: tuple[str, ...], second: tuple[str, ...]
) -> None:
    killed(IN_WRITING, *first)
    assert left_in(here)
    assert (here / "src/a.py").read_text() == CODE
    assert invoke(*second)[0] == 0
    assert left_in(here) == []
    assert "torch_npu" in (here / "src/sub/b.py").read_text()


def test_of_a_migration_killed_before_its_end(here: Path) -> None:
    """Also where the next one makes another folder in the same place."""
    killed(IN_MIGRATION, "migrate", "src", "-o", "first")
    assert len([path for path in here.iterdir() if path.name.startswith(".npulens-")]) == 2
    assert invoke("migrate", "src", "-o", "second")[0] == 0
    assert {path.name for path in here.iterdir()} == {"src", "second"}


@pytest.mark.parametrize(
    ("patch", "first", "others"),
    [
        (IN_WRITING, FIX, [FIX]),
        (IN_MIGRATION, ("migrate", "src", "-o", "first"), [("migrate", "src", "-o", "second")]),
        (IN_MIGRATION, IN_PLACE, [FIX]),
    ],
)
def test_a_run_that_goes_on_keeps_what_is_its_own(
    here: Path, patch: str, first: tuple[str, ...], others: list[tuple[str, ...]]
) -> None:
    run = started(patch.format(what=WAITING), *first)
    assert run.stdout is not None
    assert run.stdout.readline() == "waiting\n"
    before = left_in(here)
    assert before
    for arguments in others:
        assert invoke(*arguments)[0] == 0
    assert left_in(here) == before
    _, errors = run.communicate("", timeout=60)
    assert "Traceback" not in errors
    assert left_in(here) == []


def test_of_another_machine_it_stays_for_a_day(here: Path) -> None:
    src = here / "src"
    (src / ".npulens-0123abcd-77-abcdefgh").write_text("of another machine")
    (src / ".npulens-abcd_fg1").write_text("of an earlier version")
    (here / ".npulens-0123456789ab/src").mkdir(parents=True)
    (here / ".npulens-0123456789ab.lock").write_text("0123abcd-77")
    (here / ".npulens-ba9876543210").mkdir()
    names = left_in(here)
    commands = [FIX, ("migrate", "src", "-o", "dst")]
    for arguments in commands:
        invoke(*arguments)
    assert left_in(here) == sorted([*names, *left_in(here / "dst")])
    for path in [*src.glob(".npulens-*"), *here.glob(".npulens-*")]:
        os.utime(path, (DAYS_AGO, DAYS_AGO))
    for arguments in (FIX, ("migrate", "src", "-o", "other")):
        invoke(*arguments)
    assert [*src.glob(".npulens-*"), *here.glob(".npulens-*")] == []


def test_what_only_looks_like_it_stays(here: Path, tmp_path: Path) -> None:
    src, gone = here / "src", f".npulens-{mark().partition('-')[0]}-999999999-abcdefgh"
    (src / ".npulens-notes.txt").write_text("of the user")
    (src / gone).mkdir()
    (src / "sub" / gone).symlink_to(here / "src/a.py")
    (src / ".npulens-0123456789ab").symlink_to(here / "src/sub")
    (src / ".npulens_cache").mkdir()
    for path in src.iterdir():
        os.utime(path, (DAYS_AGO, DAYS_AGO), follow_symlinks=False)
    names = sorted(path.name for path in src.rglob(".npulens*"))
    invoke(*FIX)
    assert sorted(path.name for path in src.rglob(".npulens*")) == names
    assert (src / "sub/b.py").exists()
