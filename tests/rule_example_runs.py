"""Runs the fixed examples of the rules on the emulated NPU, in one process of their own.

Reads a JSON object from standard input, the text of each example by a name such as `NPU703/0`, and
prints one: what failed for each, or an empty text.
"""

import json
import os
import sys
import traceback
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
import torch_npu
from torch import Tensor, nn


class Total(nn.Module):
    """A model whose result is a loss."""

    def __init__(self) -> None:
        super().__init__()
        self.head, self.body = nn.Linear(4, 4), nn.Linear(4, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.body(self.head(x)).sum()


def given(*shape: int) -> Tensor:
    return torch.randn(*shape, device="npu", requires_grad=True)


def backward(result: Tensor) -> None:
    assert result.is_npu
    result.sum().backward()


def trains(example: dict[str, Any]) -> None:
    model = Total()
    before = [parameter.detach().clone() for parameter in model.parameters()]
    example["train"](model, [torch.ones(2, 4, device="npu"), torch.ones(2, 4, device="npu")])
    after = list(model.parameters())
    assert all(each.is_npu for each in after)
    assert not torch.equal(before[0], after[0].detach().cpu())


CALLS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "NPU207/0": lambda e: e["dist"].get_backend() == "hccl" and e["total"](3, "npu"),
    "NPU701/0": lambda e: backward(e["RootMeanSquareNorm"](8).npu()(given(2, 8))),
    "NPU703/0": lambda e: backward(e["gated"](given(2, 8))),
    "NPU704/0": lambda e: backward(e["gated"](given(2, 8))),
    "NPU705/0": lambda e: backward(e["activated"](given(2, 8))),
    "NPU705/1": lambda e: backward(e["activated"](given(2, 8))),
    "NPU706/0": lambda e: backward(
        e["rotated"](given(1, 2, 3, 8), given(1, 1, 3, 8), given(1, 1, 3, 8))
    ),
    "NPU706/1": lambda e: backward(
        e["rotary"](given(1, 2, 3, 8), given(1, 1, 3, 8), given(1, 1, 3, 8))
    ),
    "NPU707/0": lambda e: backward(e["CausalAttention"](16, 2, 8, 0.0).npu()(given(2, 8, 16))),
    "NPU708/0": lambda e: backward(e["attention"](*(given(2, 6, 2, 8) for _ in range(3)))),
    "NPU708/1": lambda e: backward(e["attention"](*(given(2, 6, 2, 8) for _ in range(3)), 0.3)),
    "NPU713/0": lambda e: backward(e["loss"](given(3, 5), torch.tensor([1, 0, 4]).npu())),
    **{f"NPU716/{number}": trains for number in range(10)},
    "NPU801/1": lambda e: e["count"](given(4)),
    "NPU802/0": lambda e: backward(e["loss"](given(4), torch.tensor([1, 255, 2, 3]).npu())),
    "NPU803/0": lambda e: e["cleaned"](given(4).detach()),
    "NPU807/0": lambda e: list(e["loader_of"](list(range(64)))),
}
"""What is done with an example that only defines something."""


def names() -> dict[str, Any]:
    """What examples take for granted."""
    model = nn.Linear(4, 3).npu()
    return {
        "__name__": "example",
        "args": SimpleNamespace(amp=True),
        "criterion": nn.CrossEntropyLoss(),
        "device": "npu",
        "groups": lambda each: each.parameters(),
        "loader": [(torch.ones(2, 4).npu(), torch.tensor([0, 2]).npu())],
        "model": model,
        "optimizer": torch.optim.SGD(model.parameters(), 0.1),
        "x": torch.ones(2, 3).npu().t(),
    }


def problem(name: str, text: str) -> str:
    """What went wrong with an example, or an empty text."""
    example = names()
    try:
        exec(compile(text, name, "exec"), example)
        if name in CALLS:
            CALLS[name](example)
    except Exception:
        return traceback.format_exc()
    return ""


def main() -> None:
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29611", "RANK": "0"}
    os.environ |= {"WORLD_SIZE": "1", "LOCAL_RANK": "0"}
    sys.modules["apex"] = ModuleType("apex")
    results = {}
    assert torch_npu.npu.is_available()
    for name, text in json.load(sys.stdin).items():
        results[name] = problem(name, text)
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
