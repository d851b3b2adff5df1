"""Runs public scripts as they are and as the device-agnostic style writes them, and compares.

    python scripts/one_code_in_public.py CLONES [--packages FOLDER]

CLONES holds clones of the projects in `public_scripts/scripts.json`, by their names without their
owners. What is not there is skipped, and said. Each script runs four times: as it is
on the CPU; as it is written on the CPU, where no torch_npu is; as it is written on the emulated
NPU; and as it is there, with `transfer_to_npu`. The numbers that they print have to be equal: of
the second run with the first, of the third with the first or the fourth. Scripts may do something
else where there is an accelerator, shuffle say. `--packages` holds torchvision and the like if
npulens' own environment has none. Nothing of the projects is kept.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
SERVER = HERE.parent / "server"
_NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
_RUNNER = """
import os, runpy, sys
{imports}
sys.argv = sys.argv[1:]
sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))
runpy.run_path(sys.argv[0], run_name="__main__")
"""
_NPU = "import torch_npu"
_SHIM = f"{_NPU}\nfrom torch_npu.contrib import transfer_to_npu"
_SECONDS = 300


class Run(NamedTuple):
    """How a run ended, and the numbers that it printed."""

    code: int
    numbers: list[float]
    error: str


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("clones", type=Path, metavar="CLONES")
    parser.add_argument("--packages", type=Path, metavar="FOLDER")
    asked = parser.parse_args()
    scripts = json.loads((HERE / "public_scripts" / "scripts.json").read_text(encoding="utf-8"))
    verdicts = []
    for script in scripts:
        clone = asked.clones / script["project"].partition("/")[2]
        name = f"{script['project']} {script['folder']}"
        verdict = tried(clone, script, asked.packages) if clone.is_dir() else "skipped: no clone"
        verdicts.append(verdict)
        print(f"{name}: {verdict}", flush=True)
    print(f"{sum(v.startswith('agrees') for v in verdicts)} of {len(scripts)} agree")


def tried(clone: Path, script: dict[str, str | list[str]], packages: Path | None) -> str:
    """What comes of one script."""
    commit, folder = f"{script['commit']}", f"{script['folder']}"
    command = list(script["command"])
    with tempfile.TemporaryDirectory() as scratch:
        before, after = Path(scratch, "before"), Path(scratch, "after")
        before.mkdir()
        archive = ["git", "-C", str(clone), "archive", commit, "--", f"{folder}/*.py"]
        packed = subprocess.run(archive, capture_output=True, check=True).stdout
        depth = f"--strip-components={len(Path(folder).parts)}"
        subprocess.run(["tar", "x", "-C", str(before), depth], input=packed, check=True)
        (before / "results").mkdir()
        shutil.copytree(before, after)
        write(after)
        original = run(before, command, "", packages)
        if original.code:
            return f"does not run as it is: {original.error}"
        host, npu = run(after, command, "", packages), run(after, command, _NPU, packages)
        if host.code or npu.code:
            return f"FAILS: {host.error or npu.error}"
        if host.numbers != original.numbers:
            return "DIFFERS on the CPU"
        if npu.numbers == original.numbers:
            return f"agrees everywhere, {len(npu.numbers)} numbers"
        shimmed = run(before, command, _SHIM, packages)
        is_same = npu.numbers == shimmed.numbers
        return "agrees with the original on each device" if is_same else "DIFFERS on the NPU"


def write(folder: Path) -> None:
    """Apply all fixes of the style."""
    options = ["--unsafe-fixes", "--allow-dirty", "--torch-version", "2.13"]
    command = ["-m", "npulens", "fix", *options, "--migration-style", "device-agnostic", "."]
    environment = {**os.environ, "PYTHONPATH": str(SERVER)}
    subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, check=False
    )


def run(folder: Path, command: Sequence[str], imports: str, packages: Path | None) -> Run:
    """Run a script; `imports` come before it."""
    paths = [SERVER, SERVER / "npulens_emulator" / "stand_in"] if imports else []
    paths.append(HERE / "public_scripts")
    paths += [] if packages is None else [packages.resolve()]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "NPULENS_PUBLIC_SCRIPT": "1",
        "MPLBACKEND": "Agg",
        "OMP_NUM_THREADS": "1",  # sums of several threads differ from run to run
    }
    arguments = [sys.executable, "-W", "ignore", "-c", _RUNNER.format(imports=imports), *command]
    try:
        ended = subprocess.run(
            arguments, cwd=folder, env=environment, capture_output=True, text=True, timeout=_SECONDS
        )
    except subprocess.TimeoutExpired:
        return Run(1, [], f"no end within {_SECONDS} s")
    last = ended.stderr.strip().rpartition("\n")[2] if ended.returncode else ""
    return Run(ended.returncode, [float(n) for n in _NUMBER.findall(ended.stdout)], last)


if __name__ == "__main__":
    main()
