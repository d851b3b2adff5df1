"""`scripts/train_in_two.py`: what it says of runs; what stands for them writes what is asked."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from test_migrate_distributed import SCRIPT

COMMAND = Path(__file__).parents[1] / "scripts" / "train_in_two.py"
STAND_IN = f"""\
#!{sys.executable}
import os, shutil, sys, time

world, rank = os.environ["WORLD_SIZE"], os.environ["LOCAL_RANK"]
if os.environ["BEHAVIOR"] == "fails" and world == "2":
    if rank == "0":
        time.sleep(60)  # as a process that waits for the other
    sys.exit("out of luck")
made = world if os.environ["BEHAVIOR"] == "differs" else "1"
shutil.copy(os.path.join(os.path.dirname(__file__), f"{{made}}.pt"), os.environ["COMPARED_OUT"])
"""


@pytest.mark.parametrize(
    ("behavior", "code", "words"),
    [
        ("trains", 0, ["case: equal, 4 steps, 2 parameters, largest 0.0e+00"]),
        ("differs", 1, ["case: differs, 4 steps, 2 parameters, largest 1.0e+00"]),
        ("fails", 1, ["case: failed, ", "2.1.log ends with 1:", "out of luck"]),
    ],
)
def test_it_says_what_came_of_runs(
    tmp_path: Path, behavior: str, code: int, words: list[str]
) -> None:
    for value in (1, 2):
        parameters = [torch.full((2,), float(value))]
        torch.save({"steps": 4, "params": parameters}, tmp_path / f"{value}.pt")
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "train.py").write_text(SCRIPT)
    case = {"repo": "project", "entry": "train.py", "env": {"BEHAVIOR": behavior}, "timeout": 50}
    (tmp_path / "cases.py").write_text(f"CASES = {{'case': {case}}}\n")
    stand_in = tmp_path / "python"
    stand_in.write_text(STAND_IN)
    stand_in.chmod(0o755)
    command = [sys.executable, COMMAND, tmp_path, tmp_path / "cases.py", "--python", stand_in]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    for each in words:
        assert each in done.stdout
