"""Trains scripts in one process, and rewritten in two with half the batch, and compares parameters.

    python scripts/train_in_two.py CHECKOUTS CASES [NAME ...] [--work FOLDER] [--python PYTHON]

CASES is a Python file with a dictionary `CASES`, from a name to a `dict` of

- `repo`: the folder of the project in CHECKOUTS, and `entry`: the script;
- `prepare(folder, batch)`: makes data and sets the size of the batch, in a copy of the project;
- `args`: arguments of the script, `{B}` in them is the size of the batch;
- `B`: the size of the whole batch (8), `steps`: how many updates of weights are compared (4);
- `cwd`: where the script is run, `timeout`: seconds (150);
- `env`: more variables, among them those that the runs know (`public_scripts/compared_run.py`);
- `stubs`: modules in whose place something stands that does nothing;
- `extra`: a file beside CASES that is run before the script.

Each process sees the samples in the order of the dataset and computes in double precision on the
CPU (`public_scripts/compared_run.py`), so that rounding is no difference. Batch norm is one over
the processes, as `SyncBatchNorm` is. Nothing of the projects is kept but in the folder of `--work`.
It ends with 1 if a run failed or parameters differ.
"""

import argparse
import os
import runpy
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from npulens.fixes.multi_device.script_rewriting import distributed_program
from npulens.fixes.scripts import NPU_CARDS, UnclearError
from npulens.workspace.migrating.project_modules import project_modules, started_file

DRIVER = Path(__file__).with_name("public_scripts") / "compared_run.py"
_PAUSE = 0.2
"""Seconds between two looks at processes."""
_DIGITS = 1e-5
"""Relative and absolute difference up to which parameters are equal."""

Case = Mapping[str, Any]


class FailedError(Exception):
    """A run came to no comparison; the text says where."""


class Comparison(NamedTuple):
    """What came of two runs."""

    is_equal: bool
    text: str


def main() -> int:
    """Compare what is asked for; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkouts", type=Path, metavar="CHECKOUTS")
    parser.add_argument("cases", type=Path, metavar="CASES")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--work", type=Path, metavar="FOLDER", help="keep the runs there")
    parser.add_argument("--python", default=sys.executable, help="what runs the scripts")
    asked = parser.parse_args()
    cases: dict[str, Case] = runpy.run_path(str(asked.cases))["CASES"]
    is_equal = True
    beside = asked.cases.resolve().parent
    with tempfile.TemporaryDirectory() as scratch:
        work = (asked.work or Path(scratch)).resolve()
        for name in asked.names or cases:
            runs = Runs(cases[name], asked.checkouts, beside, work / name, asked.python)
            try:
                found = runs.compared()
            except FailedError as error:
                found = Comparison(False, f"failed, {error}")
            print(f"{name}: {found.text}", flush=True)
            is_equal = is_equal and found.is_equal
    return 0 if is_equal else 1


class Runs:
    """The runs of a case: one process with the whole batch, two with half of it."""

    def __init__(self, case: Case, checkouts: Path, beside: Path, work: Path, python: str) -> None:
        self._case = case
        self._project = checkouts / case["repo"]
        self._beside = beside
        self._work = work
        self._python = python

    def compared(self) -> Comparison:
        """Run, and compare.

        Raises:
            FailedError: A run failed, or the script is not rewritten.
        """
        shutil.rmtree(self._work, ignore_errors=True)
        one = self._run(1)[0]
        first, second = self._run(2)
        apart = difference(first["params"], second["params"])
        if apart:
            raise FailedError(f"the two processes differ by {apart:.1e}")
        largest = difference(one["params"], first["params"])
        pairs = zip(one["params"], first["params"], strict=True)
        is_equal = all(torch.allclose(a, b, rtol=_DIGITS, atol=_DIGITS) for a, b in pairs)
        count = sum(each.numel() for each in one["params"])
        words = "equal" if is_equal else "differs"
        text = f"{words}, {one['steps']} steps, {count:,} parameters, largest {largest:.1e}"
        return Comparison(is_equal, text)

    def _run(self, world: int) -> list[dict[str, Any]]:
        batch = self._case.get("B", 8) // world
        folder = self._work / str(world)
        ignored = shutil.ignore_patterns(".git")
        shutil.copytree(self._project, folder, symlinks=True, ignore=ignored)
        self._case.get("prepare", lambda *_: None)(folder, batch)
        if world > 1:
            rewrite(folder, self._case["entry"])
        inside = folder / self._case.get("cwd", ".")
        script = os.path.relpath(folder / self._case["entry"], inside)
        given = [each.format(B=batch) for each in self._case.get("args", ())]
        command = [self._python, str(DRIVER), script, *given]
        self._start(command, inside, world)
        return [torch.load(self._work / f"{world}.{rank}.pt") for rank in range(world)]

    def _start(self, command: Sequence[str], inside: Path, world: int) -> None:
        running: list[subprocess.Popen[bytes]] = []
        logs = [self._work / f"{world}.{rank}.log" for rank in range(world)]
        for rank, log in enumerate(logs):
            variables = {**os.environ, **self._variables(world, rank)}
            variables.pop("PYTHONPATH", None)
            with log.open("w") as stream:
                running.append(
                    subprocess.Popen(
                        command,
                        cwd=inside,
                        env=variables,
                        stdin=subprocess.DEVNULL,
                        stdout=stream,
                        stderr=subprocess.STDOUT,
                    )
                )
        try:
            self._wait(running, logs)
        finally:
            for each in running:
                each.kill()

    def _wait(self, running: Sequence[subprocess.Popen[bytes]], logs: Sequence[Path]) -> None:
        """Wait for all, or for the first that fails: others would wait for it in vain."""
        end = time.monotonic() + self._case.get("timeout", 150)
        while True:
            codes = [each.poll() for each in running]
            for log, code in zip(logs, codes, strict=True):
                if code:
                    text = log.read_text(errors="replace")[-1500:]
                    raise FailedError(f"{log} ends with {code}:\n{text}")
            if None not in codes:
                return
            if time.monotonic() > end:
                raise FailedError(f"{len(running)} processes: not in time")
            time.sleep(_PAUSE)

    def _variables(self, world: int, rank: int) -> dict[str, str]:
        extra = self._case.get("extra")
        return {
            "WORLD_SIZE": str(world),
            "LOCAL_RANK": str(rank),
            "RANK": str(rank),
            "OMP_NUM_THREADS": "1",
            "TORCHDYNAMO_DISABLE": "1",
            "MPLBACKEND": "agg",
            "WANDB_MODE": "disabled",
            "HF_HUB_OFFLINE": "1",
            "PYTHONWARNINGS": "ignore",
            "COMPARED_OUT": str(self._work / f"{world}.{rank}.pt"),
            "COMPARED_NOTE": str(self._work / "note"),
            "COMPARED_STEPS": str(self._case.get("steps", 4)),
            "COMPARED_STUBS": ",".join(self._case.get("stubs", ())),
            "COMPARED_EXTRA": "" if extra is None else str(self._beside / extra),
            **self._case.get("env", {}),
        }


def rewrite(folder: Path, entry: str) -> None:
    """Rewrite a program where it is.

    Raises:
        FailedError: It is not clear how.
    """
    script = folder / entry
    try:
        found = project_modules(folder, script)
        program = distributed_program(started_file(folder, script), None, NPU_CARDS, found)
    except UnclearError as error:
        raise FailedError(f"refused, {error.path}:{error.line}: {error.text.en}") from error
    for path, text in program.texts.items():
        (folder / path).write_text(text, encoding="utf-8")


def difference(one: Sequence[torch.Tensor], other: Sequence[torch.Tensor]) -> float:
    """The largest difference between parameters."""
    pairs = zip(one, other, strict=True)
    return max(float((a - b).abs().max()) for a, b in pairs if a.numel())


if __name__ == "__main__":
    sys.exit(main())
