"""Real editors without a screen: open a file, see its findings, fix them, save, see them gone."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lsp_client import server_environment

SCRIPTS = Path(__file__).parent / "editors"
TEXT = 'import torch\n\nname = "中文 😀"; torch.cuda.synchronize()\nx = torch.ones(2).cuda()\n'
FIXED = (
    "import torch\nimport torch_npu  # noqa: F401\n\n"
    'name = "中文 😀"; torch.npu.synchronize()\nx = torch.ones(2).npu()\n'
)


def needs(program: str) -> None:
    """Skip without an editor, except where it was promised to be there."""
    if shutil.which(program) is None:
        reason = f"{program} is not installed; bash scripts/install_editors.sh does that"
        if os.environ.get("NPULENS_EDITORS") == "required":
            pytest.fail(reason)
        pytest.skip(reason)


def run(command: list[str], file: Path) -> list[str]:
    environment = {**server_environment(), "FILE": str(file), "PYTHON": sys.executable}
    environment["HOME"] = str(file.parent)  # nobody's settings
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def test_neovim(tmp_path: Path) -> None:
    needs("nvim")
    file = tmp_path / "train model.py"
    file.write_text(TEXT, encoding="utf-8")
    script = str(SCRIPTS / "neovim.lua")
    said = run(["nvim", "--headless", "-u", "NONE", "-n", "-S", script], file)
    assert [line for line in said if line.startswith("seen")] == ["seen: NPU101", "seen: NPU105"]
    assert sum(line.startswith("applied: ") for line in said) == 2
    assert "left: 0" in said
    assert file.read_text(encoding="utf-8") == FIXED


def test_emacs(tmp_path: Path) -> None:
    needs("emacs")
    file = tmp_path / "train model.py"
    file.write_text(TEXT, encoding="utf-8")
    said = run(["emacs", "--batch", "-l", str(SCRIPTS / "eglot.el")], file)
    assert sum(line.startswith("seen: ") for line in said) == 2
    assert sum(line.startswith("applied: ") for line in said) == 2
    assert "left: 0" in said
    assert file.read_text(encoding="utf-8") == FIXED
