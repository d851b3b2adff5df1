"""Bad days of a run: killed, raced, files that change under it, odd names, too many files."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
import xml.dom.minidom
from pathlib import Path

import pytest

from commands import CODE, command, invoke, records

pytestmark = pytest.mark.endurance

FIXED = "import torch\nimport torch_npu  # noqa: F401\ntorch.npu.synchronize()\n"
on_posix = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="names and limits of Linux")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def started(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "npulens", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def killed(run: subprocess.Popen[bytes]) -> None:
    """End a run and its processes at once, as `kill -9` and a lack of memory do."""
    os.killpg(run.pid, signal.SIGKILL)
    run.communicate(timeout=60)


@on_posix
def test_a_fix_of_a_thousand_files_is_killed(here: Path) -> None:
    """Again and again, at other moments: no file is half-written, and the rest is done later."""
    files = [here / f"{index:04}.py" for index in range(1000)]
    for file in files:
        file.write_text(CODE)
    for moment in (1, 150, 400, 700):
        run = started("fix", "--allow-dirty", "--jobs", "2")
        while run.poll() is None and files[moment].read_text() == CODE:
            time.sleep(0.001)
        killed(run)
        texts = {file.read_text() for file in files}
        assert texts <= {CODE, FIXED}
        assert FIXED in texts
    left = {path.name for path in here.iterdir()} - {file.name for file in files}
    assert all(name.startswith(".npulens-") for name in left), left
    assert len(left) <= 4  # what each run was about to put in place
    assert invoke("fix", "--allow-dirty")[0] == 0
    assert {file.read_text() for file in files} == {FIXED}


@on_posix
def test_a_check_is_killed_and_the_next_is_as_good(here: Path) -> None:
    for index in range(200):
        (here / f"{index:03}.py").write_text(CODE)
    expected = invoke("check", "--no-cache", "--output-format", "json")
    for pause in (0.2, 0.5, 0.8):
        run = started("check", "--jobs", "2")
        time.sleep(pause)
        killed(run)
    assert invoke("check", "--output-format", "json") == expected
    assert invoke("check", "--output-format", "json") == expected


def test_two_checks_at_once_share_a_cache(here: Path) -> None:
    for index in range(60):
        (here / f"{index:03}.py").write_text(CODE)
    runs = [started("check", "--output-format", "json", "--jobs", "1") for _ in range(3)]
    outputs = {run.communicate(timeout=120) for run in runs}
    assert [run.returncode for run in runs] == [1, 1, 1]
    assert len(outputs) == 1
    assert invoke("check", "--output-format", "json")[1].encode() == outputs.pop()[0]


def test_files_come_go_and_change_under_a_run(here: Path) -> None:
    """Whatever is seen of them: valid output, a sentence for what is gone, and no traceback."""
    files = [here / f"{index:03}.py" for index in range(150)]
    for file in files:
        file.write_text(CODE * 20)
    stop = threading.Event()
    chance = random.Random(7)

    def disturb() -> None:
        while not stop.is_set():
            file = chance.choice(files)
            if file.exists() and chance.random() < 0.3:
                file.unlink(missing_ok=True)
            else:
                file.write_text(CODE * chance.randrange(30))
            time.sleep(0.001)

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        for arguments in (("check", "--jobs", "2"), ("check", "--no-cache"), ("fix", "--diff")):
            form = () if "--diff" in arguments else ("--output-format", "json")
            result = command(*arguments, *form)
            assert result.returncode in (0, 1, 2)
            assert b"Traceback" not in result.stderr
            assert b"internal error" not in result.stderr
            for line in result.stderr.decode().splitlines():
                is_count = re.fullmatch(r"\d+ files? not read .*", line) is not None
                assert is_count or line.endswith("No such file or directory"), line
            if form:
                json.loads(result.stdout)
    finally:
        stop.set()
        thread.join()


NAMES = [
    b"a\nb.py",
    b"\xff\xfe.py",
    "\u202e\u6607.py".encode(),
    b"a,b:c%.py",
    b"<a>&.py",
    b"a b.py",
]


@on_linux
def test_odd_names_in_every_form(here: Path) -> None:
    for name in NAMES:
        (here / os.fsdecode(name)).write_text(CODE)
    for form in ("human", "concise", "json", "jsonl", "csv", "sarif", "github", "gitlab", "junit"):
        result = command("check", "--output-format", form)
        assert (result.returncode, result.stderr) == (1, b""), form
        text = result.stdout.decode("utf-8")  # whatever a name is, the report is text
        if form in ("json", "sarif", "gitlab"):
            json.loads(text)
        elif form in ("jsonl", "concise", "github"):
            assert text.count("\n") == len(NAMES)
            for line in text.splitlines() if form == "jsonl" else ():
                json.loads(line)
        elif form == "junit":
            xml.dom.minidom.parseString(text)
    assert invoke("check", "--write-baseline", "known.json")[0] == 0
    assert invoke("check", "--baseline", "known.json")[0] == 0


@on_linux
@pytest.mark.parametrize("arguments", [(), ("--as-library",), ("--write-baseline",)])
def test_a_place_where_nothing_can_be_written(here: Path, arguments: tuple[str, ...]) -> None:
    (here / "a.py").write_text(CODE)
    place = "/proc/self/out.json"
    option = arguments if arguments == ("--write-baseline",) else (*arguments, "--output-file")
    result = command("check", *option, place, ".")
    assert result.returncode == 2
    lines = [line for line in result.stderr.decode().splitlines() if line.startswith("npulens: ")]
    assert len(lines) == 1
    assert lines[0].startswith(f"npulens: {place}: cannot be written: ") or "/proc/" in lines[0]


@on_linux
def test_a_full_disk_keeps_the_old_report(here: Path) -> None:
    """A file may not grow beyond a limit, so that the write fails in the middle."""
    import resource

    (here / "a.py").write_text(CODE * 3000)
    (here / "out.json").write_text("old")

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    arguments = ["check", "a.py", "--output-format", "json", "--output-file", "out.json"]
    result = subprocess.run(
        [sys.executable, "-m", "npulens", *arguments],
        capture_output=True,
        preexec_fn=limit,
    )
    assert result.returncode == 2
    assert result.stderr == b"npulens: out.json: cannot be written: File too large\n"
    assert (here / "out.json").read_text() == "old"
    assert not list(here.glob(".npulens-*"))


def write_many(root: Path) -> None:
    """Twenty thousand files, in each twentieth of which one thing is found."""
    for folder in range(200):
        (root / f"{folder:03}").mkdir(parents=True)
        for file in range(100):
            text = CODE if file % 20 == 0 else f"VALUE = {file}\n"
            (root / f"{folder:03}" / f"{file:02}.py").write_text(text)


def measured(*arguments: str) -> tuple[int, int]:
    """Run the command with its output in `out.jsonl`: its exit code, and MiB at its peak."""
    script = (
        "import resource, subprocess, sys\n"
        "command = [sys.executable, '-m', 'npulens', *sys.argv[1:]]\n"
        "run = subprocess.run(command, stdout=open('out.jsonl', 'w'))\n"
        "print(run.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)\n"
    )
    output = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, timeout=600
    )
    code, peak = map(int, output.stdout.split())
    return code, peak


@on_linux
def test_twenty_thousand_files(here: Path) -> None:
    """Memory stays small: what is kept of a file is its path."""
    write_many(here)
    for _ in range(2):
        code, peak = measured("check", "--output-format", "jsonl")
        assert code == 1
        assert len(Path("out.jsonl").read_text().splitlines()) == 1000
        assert peak < 200, f"{peak} MiB"
    assert len(records("000")) == 5


@on_linux
def test_a_migration_of_twenty_thousand_files(here: Path) -> None:
    write_many(here / "src")
    code, peak = measured("migrate", "src", "-o", "dst")
    assert code == 0
    assert Path("out.jsonl").read_text().startswith("dst: changed 1000 of 20000 files")
    assert peak < 200, f"{peak} MiB"
    assert (here / "dst/199/80.py").read_text() != CODE
    assert (here / "dst/199/81.py").read_text() == "VALUE = 81\n"
    assert not list(here.glob(".npulens-*"))
