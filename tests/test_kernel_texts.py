"""Kernels of CUDA that stand as text in a module, and options of commands in strings."""

import pytest

from helpers import CATALOGUE, check_file
from npulens.analysis import judge
from npulens.catalog.model import Target
from npulens.text.document import Document

KERNEL = "'''\nextern \"C\" {}(const int n, float* x) {{ x[0] = 1; }}\n'''"
FOUND = KERNEL.format("⟦NPU607:__global__ void up⟧")


@pytest.mark.parametrize(
    "snippet",
    [
        f"up = {FOUND}\n",
        f"import torch\n\nKERNELS = dict(a={FOUND})\n",
        'HELP = "a kernel is marked with __global__"\n',
    ],
)
def test_kernels_are_found_in_strings(snippet: str) -> None:
    check_file("ops.py", snippet, {"NPU607"})


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        ("import cupy\n", "reported-at-import"),
        ("from pycuda.compiler import SourceModule\n", "reported-at-import"),
        ("from torch.utils.cpp_extension import load_inline\n", "reported-at-build"),
    ],
)
def test_what_compiles_them_is_reported_instead(before: str, reason: str) -> None:
    text = f"{before}up = {KERNEL.format('__global__ void up')}\n"
    judged = judge(Document("ops.py", text), CATALOGUE, Target())
    assert "NPU607" not in [finding.rule.code for finding in judged.findings]
    settled = [found for found in judged.settled if found.rule.code == "NPU607"]
    assert [found.settlement.reason for found in settled if found.settlement] == [reason]


@pytest.mark.parametrize(
    "snippet",
    [
        'words = ["--data x", "--device ⟦NPU902:cuda⟧"]\nrun("python a.py " + " ".join(words))\n',
        'args = parser.parse_args(["--device=⟦NPU902:cuda:1⟧", "--dist-backend=⟦NPU902:nccl⟧"])\n',
        'def argv():\n    return ["--data", "x", "--device", "⟦NPU902:cuda⟧", "--seed", "1"]\n',
        'PAIRS = ["--name", "cuda"]\n',
        'ARGS = ["--device", r"⟦NPU902:cuda⟧"]\nMORE = ["--device", """⟦NPU902:cuda⟧"""]\n',
        'HELP = "--device cuda to train on a card"\nOTHER = "--name=cuda"\n',
    ],
)
def test_options_of_commands_are_found_in_strings(snippet: str) -> None:
    check_file("launch.py", snippet, {"NPU902"})
