"""How long the command takes for a tree, beside what others need for the same files.

    python tests/benchmarks/check_runs.py FOLDER [--share N]

A copy of the tree is checked: with one process and two, filling a cache, with it, and after one
file changed; then a report is written with the cache. Beside it, in turns: `ast.parse` of the same
Python files, `ruff check` without its cache if it is installed, and LibCST with names resolved, of
every fiftieth file and scaled by size.

Of each run the time by the clock and the time of processors is told; where a machine is busy only
the second can be compared. A check with one process stands between two runs of `ast.parse`, for
the clock of a machine may vary within minutes; of some such turns the one with the median ratio
counts. The peak of memory is the sum over a run's processes, looked at ten times a second; pages
that they share count for each, so it is an upper bound.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

LIBCST_SHARE = 50
TURNS = 3
PARSE = """
import ast, sys, warnings
warnings.simplefilter("ignore")
for name in sys.stdin.read().splitlines():
    try:
        ast.parse(open(name, "rb").read())
    except (SyntaxError, ValueError):
        pass
"""
RESOLVE = """
import sys
import libcst
from libcst.metadata import MetadataWrapper, QualifiedNameProvider
for name in sys.stdin.read().splitlines():
    try:
        MetadataWrapper(libcst.parse_module(open(name, "rb").read())).resolve(QualifiedNameProvider)
    except libcst.ParserSyntaxError:
        pass
"""


class Run(NamedTuple):
    """What a run took: seconds by the clock and of processors, MiB at its peak."""

    clock: float
    work: float
    memory: float


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--share", type=int, default=1, help="check every Nth file only")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        files = copied(options.folder, place / "tree", options.share)
        runs = measured(place, files)
    size = sum(length for _, length in files)
    print(f"{len(files)} Python files, {size / 1e6:.1f} MB, {os.cpu_count()} processors")
    if options.share > 1:
        print(f"a sample: every {options.share}th file of {options.folder.name}")
    for label, run in runs.items():
        print(f"{label:28} {run.clock:8.2f} s {run.work:8.2f} s of work {run.memory:6.0f} MiB")
    for one, other in (
        ("one process", "ast.parse"),
        ("two processes", "one process"),
        ("warm", "one process"),
        ("median file changed", "one process"),
        ("largest file changed", "one process"),
        ("report after a check", "one process"),
        ("one process", "ruff check"),
        ("LibCST with names", "one process"),
    ):
        if one in runs and other in runs:
            clock, work = (runs[one][n] / runs[other][n] for n in (0, 1))
            print(f"{one} / {other}: {clock:.3f} by the clock, {work:.3f} of work")


def copied(folder: Path, tree: Path, share: int) -> list[tuple[str, int]]:
    """Copy a tree, or a part of its files; the Python files there with their sizes."""
    for number, file in enumerate(sorted(folder.rglob("*"))):
        if file.is_file() and not file.is_symlink() and number % share == 0:
            target = tree / file.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
    return [(str(file), file.stat().st_size) for file in sorted(tree.rglob("*.py"))]


def measured(place: Path, files: list[tuple[str, int]]) -> dict[str, Run]:
    check = [sys.executable, "-m", "npulens", "check", "tree", "--output-format", "jsonl"]
    names = "\n".join(name for name, _ in files)
    by_size = sorted(files, key=lambda file: file[1])
    # From here on the bytecode of npulens is there.
    run([sys.executable, "-m", "npulens", "check", __file__], place)
    turns = [turn(check, names, place) for _ in range(TURNS)]
    parsing, checking = sorted(turns, key=lambda each: each[1].work / each[0].work)[TURNS // 2]
    runs = {
        "ast.parse": parsing,
        "one process": checking,
        "two processes": run([*check, "--no-cache", "--jobs", "2"], place),
        "filling the cache": run([*check, "--jobs", "1"], place),
        "warm": min(run([*check, "--jobs", "1"], place) for _ in range(3)),
    }
    for label, (file, _) in (("median", by_size[len(by_size) // 2]), ("largest", by_size[-1])):
        with Path(file).open("a", encoding="utf-8") as changed:
            changed.write("\n# import torch\n")
        runs[f"{label} file changed"] = run([*check, "--jobs", "1"], place)
    report = [sys.executable, "-m", "npulens", "report", "tree", "-o", "report.html"]
    runs["report after a check"] = run([*report, "--jobs", "1"], place)
    ruff = shutil.which("ruff") or shutil.which("ruff", path=Path(sys.executable).parent)
    if ruff is not None:
        runs["ruff check"] = run([ruff, "check", "--isolated", "--no-cache", "-q", "tree"], place)
    sample = files[::LIBCST_SHARE]
    scale = sum(size for _, size in files) / sum(size for _, size in sample)
    took = run([sys.executable, "-c", RESOLVE], place, "\n".join(name for name, _ in sample))
    runs["LibCST with names"] = Run(took.clock * scale, took.work * scale, took.memory)
    return runs


def turn(check: list[str], names: str, place: Path) -> tuple[Run, Run]:
    """What parsing takes before and after a check, on average, and what the check takes."""
    parse = [sys.executable, "-c", PARSE]
    before = run(parse, place, names)
    checked = run([*check, "--no-cache", "--jobs", "1"], place)
    after = run(parse, place, names)
    return Run(*((one + other) / 2 for one, other in zip(before, after, strict=True))), checked


def run(command: list[str], place: Path, text: str = "") -> Run:
    """Run a command that says nothing we want to know."""
    before, start = os.times(), time.perf_counter()
    environment = {n: v for n, v in os.environ.items() if n != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(
        command,
        cwd=place,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    peak = [0.0]
    watcher = threading.Thread(target=watch, args=(process, peak))
    watcher.start()
    _, errors = process.communicate(text.encode())
    clock = time.perf_counter() - start
    watcher.join()
    assert process.returncode in (0, 1), errors.decode()
    after = os.times()
    work = after.children_user + after.children_system
    return Run(clock, work - before.children_user - before.children_system, peak[0])


def watch(process: "subprocess.Popen[bytes]", peak: list[float]) -> None:
    while process.poll() is None:
        peak[0] = max(peak[0], memory_below(process.pid))
        time.sleep(0.1)


def memory_below(pid: int) -> float:
    """What a process and those that it started hold, in MiB; nothing where that is not told."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()
    except OSError:
        return 0.0
    own = sum(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    return own / 1024 + sum(memory_below(int(child)) for child in children)


if __name__ == "__main__":
    main()
