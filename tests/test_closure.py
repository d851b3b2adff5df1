"""Places of NVIDIA's world that npulens neither finds nor settles: they may only become fewer."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from commands import git
from corpora import packages

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "scripts" / "closure.py"
CEILING = ROOT / "tests" / "data" / "closure.json"
OWN = ["examples", "tests/training_scripts"]
MARGIN = 3
"""So many fewer than the ceiling may be unexplained before it has to be lowered."""
REPEAT = (
    "python scripts/closure.py --json tests/data/closure.json "
    f"{' '.join(OWN)} .corpora/*; --unexplained lists the places"
)


def _listed(*arguments: str | Path) -> str:
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout


@pytest.mark.endurance
def test_no_more_places_are_unexplained_than_before(tmp_path: Path) -> None:
    numbers = tmp_path / "closure.json"
    _listed("--json", numbers, *OWN, *packages())
    now: dict[str, dict[str, Any]] = json.loads(numbers.read_text())
    ceiling: dict[str, dict[str, Any]] = json.loads(CEILING.read_text())
    assert now.keys() == ceiling.keys(), f"other packages: {REPEAT}"
    for name, then in ceiling.items():
        assert now[name]["places"] == then["places"], f"{name} has other places: {REPEAT}"
        unexplained = now[name]["unexplained"]
        assert unexplained <= then["unexplained"], f"{name}: more are unexplained: {REPEAT}"
        assert unexplained >= then["unexplained"] - MARGIN, f"{name}: lower the ceiling: {REPEAT}"


FILES = {
    "train.py": """\
import torch
from torch.cuda.amp import autocast

print("cuda")
if device.type == "mps":
    model.cuda()
with autocast():
    model(torch.ones(2, device="cuda:0"))
kind = {"cuda": 1}[name]
load(impl="cuda", transport="nccl")
""",
    "run.sh": "#!/bin/bash\n# nvidia-smi\nexport NCCL_DEBUG=INFO\npython train.py --gpus 2\n",
    "Dockerfile": "FROM nvidia/cuda:12.1.1-devel-ubuntu22.04\nRUN nvcc --version\n",
    "requirements.txt": "numpy\nflash-attn>=2\nnvidia-cublas-cu12==12.1\n",
    "ignored.md": "model.cuda()\n",
}
TABLE = """\
                              places   found settled unexplained
checkout                           9       7       2           0\
"""


def test_places_are_listed_and_compared(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    for name, text in FILES.items():
        (checkout / name).write_text(text)
    (checkout / "untracked.py").write_text("x.cuda()\n")
    git("init", "-q", at=checkout)
    git("add", *FILES, at=checkout)
    output = _listed("--unexplained", "--kinds", checkout)
    assert output.startswith(TABLE)
    assert "1 other-device, 1 reported-at-import" in output


def test_what_has_no_answer_is_listed(tmp_path: Path) -> None:
    """Nothing is known of a variable that no table has."""
    (tmp_path / "a.py").write_text('import os\nos.environ["CUDA_OF_NOBODY"] = "1"\n')
    output = _listed("--unexplained", tmp_path)
    assert output.endswith(f"{tmp_path.name}/a.py:2: variable: CUDA_OF_NOBODY\n")
