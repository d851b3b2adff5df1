"""What an analysis holds is freed with it, and does not wait for the garbage collector."""

import gc

import pytest

from helpers import findings

MODEL = """import torch
from torch import nn


def half(x):
    return torch.cat((-x[..., 1:], x[..., :1]), dim=-1)


class Norm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.stream = torch.cuda.Stream()

    def forward(self, x):
        variance = x.pow(2).mean(-1, keepdim=True)
        return self.weight * x * torch.rsqrt(variance + 1e-6)


class Model(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = Norm(dim)
        self.device = "cuda" if torch.cuda.is_available() else "cpu"

    def select(self, x, scores):
        keep = scores > 0.5
        return x[keep]

    def forward(self, x, scores):
        def again(y):
            return self.select(y, scores) * 2

        for _ in range(3):
            x = again(self.norm(x).to(self.device))
        return [each.item() for each in x if each.sum() > 0]
"""
SCRIPT = """import torch

if torch.cuda.is_available() and not torch.npu.is_available():
    torch.cuda.set_device(0)
model = torch.nn.DataParallel(torch.nn.Linear(2, 2)).cuda()
for step in range(10):
    model(torch.rand(2, 2).cuda()).sum().backward()
"""


@pytest.mark.parametrize("text", [MODEL, SCRIPT], ids=["model", "script"])
def test_an_analysis_leaves_no_circles(text: str) -> None:
    assert findings(text)  # what is read once is read now
    gc.collect()
    gc.disable()
    try:
        findings(text)
        assert gc.collect() < 50  # `ast.dump` leaves some
    finally:
        gc.enable()
