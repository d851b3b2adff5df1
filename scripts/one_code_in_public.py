"""Runs public scripts as they are and as the device-agnostic style writes them, and compares.

    python scripts/one_code_in_public.py CLONES [--packages FOLDER] [--only TEXT]

CLONES holds clones of the projects in `public_scripts/scripts.json`, by their names without their
owners. What is not there is skipped, and said. Each script runs as it is and as it is written

* on the CPU, where no torch_npu is: the same numbers have to be printed;
* on a CUDA of recorded calls (`public_scripts/recorded_cuda.py`): the same numbers, and the same is
  asked of the device in the same order;
* on the emulated NPU: what is written prints the numbers of the CPU, or those that the script
  prints there as it is, with `transfer_to_npu`. Scripts may do something else where there is an
  accelerator, shuffle say.

`--packages` holds torchvision and the like if npulens' own environment has none. Data is made up
(`public_scripts/made_up.py`), and clocks run alike. Nothing of the projects is kept.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from public_scripts.manifest import parser, public_scripts, unpack

HERE = Path(__file__).resolve().parent
SERVER = HERE.parent / "server"
_NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
_RUNNER = """
import os, runpy, sys
{before}
sys.argv = sys.argv[1:]
sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))
runpy.run_path(sys.argv[0], run_name="__main__")
"""
_NPU = "import torch_npu"
_BEFORE = {
    "CPU": "",
    "CUDA": "import recorded_cuda; recorded_cuda.begin(os.environ['NPULENS_EVENTS'])",
    "NPU": _NPU,
    "shim": f"{_NPU}\nfrom torch_npu.contrib import transfer_to_npu",
}
"""What comes before a script, by the device it runs on."""
_SECONDS = 300


class Run(NamedTuple):
    """How a run ended, the numbers that it printed, and on CUDA what it asked for."""

    code: int
    numbers: list[float]
    error: str
    events: list[str] | None = None


class Verdict(NamedTuple):
    """What comes of a script on one device; `None` if it does not run there as it is."""

    agrees: bool | None
    words: str


def main() -> None:
    asked = parser(__doc__).parse_args()
    agreeing = tried_scripts = 0
    for script in public_scripts("one-code"):
        name = " ".join([script["project"], script["folder"], script["command"][0]])
        clone = asked.clones / script["project"].partition("/")[2]
        if asked.only not in name:
            continue
        if not clone.is_dir():
            print(f"{name}: skipped, no clone", flush=True)
            continue
        verdicts = tried(clone, script, asked.packages)
        print(f"{name}:", "; ".join(f"{d} {v.words}" for d, v in verdicts.items()), flush=True)
        found = [verdict.agrees for verdict in verdicts.values()]
        agreeing += False not in found and True in found
        tried_scripts += 1
    print(f"{agreeing} of {tried_scripts} agree")


def tried(clone: Path, script: dict[str, Any], packages: Path | None) -> dict[str, Verdict]:
    """What comes of one script, by device."""
    with tempfile.TemporaryDirectory() as scratch:
        before, after = Path(scratch, "before"), Path(scratch, "after")
        unpack(clone, script, before, packages)
        shutil.copytree(before, after)
        write(after)

        def on(folder: Path, device: str) -> Run:
            more = script.get("arguments", {}).get(device, [])
            environment = script.get("environment", {})
            return run(folder, [*script["command"], *more], device, packages, environment)

        host = on(before, "CPU")
        return {
            "CPU": compared(host, on(after, "CPU")),
            "CUDA": compared(on(before, "CUDA"), on(after, "CUDA")),
            "NPU": compared_on_npu(on(after, "NPU"), host, lambda: on(before, "shim")),
        }


def write(folder: Path) -> None:
    """Apply all fixes of the style."""
    options = ["--unsafe-fixes", "--allow-dirty", "--torch-version", "2.13"]
    command = ["-m", "npulens", "fix", *options, "--migration-style", "device-agnostic", "."]
    environment = {**os.environ, "PYTHONPATH": str(SERVER)}
    subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, check=False
    )


def run(
    folder: Path,
    command: Sequence[str],
    device: str,
    packages: Path | None,
    environment: dict[str, str],
) -> Run:
    """Run a script in a copy of its folder."""
    with tempfile.TemporaryDirectory() as scratch:
        copy, events = Path(scratch, "copy"), Path(scratch, "events.json")
        shutil.copytree(folder, copy)
        given = {**environment, "NPULENS_EVENTS": str(events)}
        ended = started(copy, command, device, [packages] if packages else [], given)
        last = ended.stderr.strip().rpartition("\n")[2][:120] if ended.returncode else ""
        printed = ended.stdout or ended.stderr  # loggers write to the latter
        numbers = [float(n) for n in _NUMBER.findall(printed)]
        noted = json.loads(events.read_text(encoding="utf-8")) if events.exists() else None
        return Run(ended.returncode, numbers, last, noted)


def started(
    folder: Path,
    command: Sequence[str],
    device: str,
    packages: list[Path],
    given: dict[str, str],
) -> subprocess.CompletedProcess[str]:
    """Run a script where it is, until it ends or takes too long."""
    emulator = [SERVER, SERVER / "npulens_emulator" / "stand_in"]
    paths = emulator if device in ("NPU", "shim") else []
    paths = [*paths, HERE / "public_scripts", *(each.resolve() for each in packages), folder]
    environment = {
        **os.environ,
        **given,
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "NPULENS_PUBLIC_SCRIPT": "compared",
        "MPLBACKEND": "Agg",
        "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1",  # scripts load whole models
        "OMP_NUM_THREADS": "1",  # sums of several threads differ from run to run
    }
    before = _BEFORE[device]
    arguments = [sys.executable, "-W", "ignore", "-c", _RUNNER.format(before=before), *command]
    try:
        return subprocess.run(
            arguments, cwd=folder, env=environment, capture_output=True, text=True, timeout=_SECONDS
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(arguments, 1, "", f"no end within {_SECONDS} s")


def compared(before: Run, after: Run) -> Verdict:
    """A script as it is and as it is written, on one device."""
    if before.code:
        return Verdict(None, f"does not run as it is ({before.error})")
    if after.code:
        return Verdict(False, f"FAILS ({after.error})")
    if after.numbers != before.numbers:
        return Verdict(False, "DIFFERS in numbers")
    if before.events is None or after.events is None:
        return Verdict(True, f"agrees in {len(after.numbers)} numbers")
    if not before.events:
        return Verdict(None, "is asked for nothing")
    pairs = enumerate(zip_longest(before.events, after.events))
    difference = next(((i, old, new) for i, (old, new) in pairs if old != new), None)
    if difference is not None:
        at, old, new = difference
        return Verdict(False, f"DIFFERS at event {at}: {old!r} became {new!r}")
    numbers, events = len(after.numbers), len(after.events)
    return Verdict(True, f"agrees in {numbers} numbers and {events} events")


def compared_on_npu(npu: Run, host: Run, as_it_is: Callable[[], Run]) -> Verdict:
    """What is written on the NPU, compared with the CPU or with the script as it is there."""
    if not npu.code and not host.code and npu.numbers == host.numbers:
        return Verdict(True, "agrees with the CPU")
    shimmed = as_it_is()
    if shimmed.code:
        return Verdict(None, f"does not run as it is ({shimmed.error})")
    if npu.code:
        return Verdict(False, f"FAILS ({npu.error})")
    is_same = npu.numbers == shimmed.numbers
    return Verdict(is_same, "agrees with the original there" if is_same else "DIFFERS in numbers")


if __name__ == "__main__":
    main()
