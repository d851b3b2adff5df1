"""What our own fixes write is no evidence that somebody has thought of the NPU."""

from pathlib import Path
from textwrap import indent

import pytest

from commands import codes, invoke
from helpers import check, code, marks, unmarked

BESIDE_A_FIX = [
    code(
        """
        import torch
        import apex

        def train(model, loader, criterion):
            model = model.{cuda}()
            model = ⟦NPU501:torch.jit.script⟧(model)
            model = ⟦NPU603:apex.parallel.convert_syncbn_model⟧(model)
            model = ⟦NPU603:apex.parallel.DistributedDataParallel⟧(model)
        """
    ),
    code(
        """
        import torch
        import torch.nn as nn

        model = nn.Linear(3, 3)
        model = model.{cuda}()
        model = ⟦NPU202:nn.DataParallel⟧(model)
        """
    ),
    code(
        """
        import torch.nn as nn
        from torch.nn.parallel import ⟦NPU202:data_parallel⟧

        def forward(model, x, ngpu):
            if x.is_{cuda} and ngpu > 1:
                return data_parallel(model, x, range(ngpu))
            return model(x)
        """
    ),
    code(
        """
        import torch
        import torch.nn as nn

        def wrap(model, args):
            if args.n_gpu > 1:
                model = ⟦NPU202:nn.DataParallel⟧(model)
            if torch.{cuda}.is_available():
                torch.{cuda}.empty_cache()
            return model
        """
    ),
    code(
        """
        import torch
        import torch.nn as nn

        def wrap(model, device):
            match device.type:
                case "{cuda}":
                    return ⟦NPU202:nn.DataParallel⟧(model)
        """
    ),
    code(
        """
        import torch
        import torch.nn as nn

        def wrap(model, x, many):
            return ⟦NPU202:nn.DataParallel⟧(model) if many else model.{cuda}()
        """
    ),
    code(
        """
        import torch

        def train(loader, model, loss: torch.Tensor):
            for label in loader:
                label = label.{cuda}()
                if ⟦NPU805:label[-1].item()⟧ == 0:
                    continue
                model(label).backward()
        """
    ),
]


@pytest.mark.parametrize("snippet", BESIDE_A_FIX)
def test_what_stands_beside_a_fix_is_found(snippet: str) -> None:
    check(snippet.format(cuda="npu"))


@pytest.mark.parametrize("snippet", BESIDE_A_FIX)
def test_it_was_found_before(snippet: str) -> None:
    source, wanted = unmarked(snippet.format(cuda="cuda"))
    assert {mark.code for mark in marks(source)} >= {mark.code for mark in wanted}


HALF_FIXED = [
    "def run(x):\n    if ⟦NPU101:torch.cuda.is_available⟧() and x.is_npu:\n        return x + 1",
    "def run(x, many):\n    if many and ⟦NPU101:torch.cuda.device_count⟧() > 1 and x.is_npu:\n"
    "        return x + 1",
    'backend = "gloo" if not ⟦NPU101:torch.cuda.is_available⟧() else "hccl"',
    'device = torch.device(⟦NPU110:"cuda"⟧)\nif __name__ == "__main__":\n'
    '    device = torch.device(⟦NPU110:"cuda"⟧)\n    model = torch.nn.Linear(2, 2).npu()',
    'device = ⟦NPU110:"cuda"⟧\nif many:\n    device = "npu:0"',
]


@pytest.mark.parametrize("snippet", HALF_FIXED)
def test_the_other_half_of_what_is_fixed_is_found(snippet: str) -> None:
    check(f"import torch\nimport torch_npu\n\n{snippet}\n")


BESIDE_THE_ACCELERATOR = [
    "t = torch.tensor([1, 2], dtype=⟦NPU306:torch.float64⟧, device={device})",
    "x = x.to({device}).⟦NPU306:double⟧()",
    "def total(scores):\n    scores = scores.to({device})\n    amount = scores.sum()\n"
    "    if ⟦NPU806:amount > 0⟧:\n        loss.backward()",
]


@pytest.mark.parametrize("snippet", BESIDE_THE_ACCELERATOR)
@pytest.mark.parametrize("end", ["", ".type"])
def test_what_stands_beside_a_fix_for_any_device_is_found(snippet: str, end: str) -> None:
    device = f"torch.accelerator.current_accelerator(){end}"
    check(f"import torch\n\n{snippet.format(device=device)}\n")


IN_BRANCHES_FOR_THE_NPU = [
    "if x.is_npu:\n    y = ⟦NPU202:nn.parallel.data_parallel⟧(model, x)",
    "if torch.npu.is_available():\n    model = ⟦NPU202:nn.DataParallel⟧(model)",
    'if device.type == "npu":\n    model = ⟦NPU202:nn.DataParallel⟧(model)',
    "if args.use_npu:\n    model = model.⟦NPU105:cuda⟧()",
    'if device.type in ("cuda", "npu"):\n    model = ⟦NPU202:nn.DataParallel⟧(model)',
]


@pytest.mark.parametrize("branch", IN_BRANCHES_FOR_THE_NPU)
def test_a_branch_that_the_npu_takes_is_looked_at(branch: str) -> None:
    function = f"def run(model, x, device, args):\n{indent(branch, '    ')}\n"
    check(f"import torch\nimport torch.nn as nn\n\n{function}")


def test_after_a_fix_the_report_counts_what_is_left(here: Path) -> None:
    source = (
        "import torch\nimport torch.nn as nn\n\nmodel = nn.Linear(3, 3)\nmodel = model.cuda()\n"
    )
    (here / "train.py").write_text(f"{source}model = nn.DataParallel(model)\n")
    status, output, _ = invoke("fix", "train.py")
    assert status == 1
    assert "NPU202" in output
    assert codes("train.py") == ["NPU202"]
