"""Imports that fixes leave without use go with them, and torch_npu is imported once."""

import pytest

from helpers import AGNOSTIC, code, fixed

ATTENTION = """
import math
{imports}
import torch
from torch import nn
import torch.nn.functional as F


def attention(q, k, v):
    scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.size(-1))
    return torch.matmul(F.softmax(scores, dim=-1), v)
{below}
class Block(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        batch, heads, length, size = q.shape
        return attention(q, k, v)
"""
ADAM = """
import torch
{statement}


def main(model, loader):
    model = model.cuda()
    optimizer = {call}(model.parameters(), lr=1e-3)
    for x in loader:
        loss = model(x.cuda()).sum()
        loss.backward()
        optimizer.step()
{below}
"""


def adam(statement: str, call: str, below: str = "") -> str:
    return fixed(ADAM.format(statement=statement, call=call, below=below))


@pytest.mark.parametrize(
    ("statement", "call"),
    [
        ("from torch.optim import AdamW", "AdamW"),
        ("import torch.optim as optim", "optim.AdamW"),
        ("from torch import optim", "optim.AdamW"),
    ],
)
def test_an_import_goes_with_its_only_use(statement: str, call: str) -> None:
    text = adam(statement, call)
    assert "NpuFusedAdamW(" in text
    assert statement not in text


def test_the_other_names_of_an_import_stay() -> None:
    text = adam(
        "from torch.optim import SGD, AdamW, lr_scheduler", "AdamW", "print(SGD, lr_scheduler)"
    )
    assert "from torch.optim import SGD, lr_scheduler\n" in text


KEPT = {
    "used elsewhere": ("from torch.optim import AdamW", "print(AdamW)"),
    "for others": ("from torch.optim import AdamW", "__all__ = ['main', 'AdamW']"),
    "said to be needed": ("from torch.optim import AdamW  # noqa: F401", ""),
    "in a text": ("from torch.optim import AdamW", "def f(x: 'AdamW'): ..."),
    "under a condition": ("if 1:\n    from torch.optim import AdamW\n    print()", ""),
    "tried": ("try:\n    from torch.optim import AdamW\nexcept ImportError:\n    raise", ""),
}


@pytest.mark.parametrize(("statement", "below"), KEPT.values(), ids=KEPT)
def test_what_may_have_another_use_stays(statement: str, below: str) -> None:
    text = adam(statement, "AdamW", below)
    assert "torch.optim import AdamW" in text


def test_what_nobody_used_before_was_there_for_a_reason() -> None:
    text = adam("from torch.optim import AdamW\nimport plugins", "AdamW")
    assert "import plugins\n" in text


def test_a_named_plugin_needs_no_word_to_linters() -> None:
    text = adam("from torch.optim import AdamW", "AdamW")
    assert "torch_npu.optim." in text
    assert "import torch_npu\n" in text
    assert "noqa" not in text


def test_a_function_leaves_the_import_to_the_module() -> None:
    source = code(
        """
        import torch
        from torch import nn


        class Norm(nn.Module):
            def __init__(self, size):
                super().__init__()
                self.weight = nn.Parameter(torch.ones(size))

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


        class Net(nn.Module):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                torch.cuda.nvtx.range_push("net")
                return x
        """
    )
    text = fixed(source, AGNOSTIC)
    assert "npu_rms_norm" in text
    assert text.count("import torch_npu") == 1
