"""Runs the fixed examples of the rules on the emulated NPU, in one process of their own.

Reads a JSON object from standard input, the text of each example by a name such as `NPU703/0`, and
prints one: what failed for each, or an empty text.
"""

import ast
import json
import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
import torch.distributed as dist
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


def distributed(example: dict[str, Any]) -> None:
    """Train in one process, with a group of its own."""
    if dist.is_initialized():
        dist.destroy_process_group()
    example["main"]()
    assert dist.get_backend() == "hccl"


def one_group(example: dict[str, Any]) -> None:
    assert example["dist"].get_backend() == "hccl"
    example["total"](3, "npu")


def gated_unit(example: dict[str, Any]) -> None:
    settings = SimpleNamespace(width=4, inner=6, hidden_act="silu")
    unit = example["GatedUnit"](settings).npu()
    x = given(2, 4)
    result = unit(x)
    by_hand = unit.out(unit.act(unit.gate(x)) * unit.up(x))
    torch.testing.assert_close(result.cpu(), by_hand.cpu())
    backward(result)


def asked(example: dict[str, Any]) -> None:
    """The program of the NPU was started, of which there is a double on the path."""
    mark = Path(os.environ["NPU_SMI_MARK"])
    assert mark.read_text().strip() == "info"


def adversarial(example: dict[str, Any]) -> None:
    """Two models, each of which is trained."""
    models = [nn.Linear(4, 1).npu(), nn.Linear(4, 4).npu()]
    before = [model.weight.detach().clone() for model in models]
    optimizers = [torch.optim.SGD(model.parameters(), 0.1) for model in models]
    example["train"](*models, *optimizers, [torch.ones(2, 4).npu()] * 8)  # the scale is found
    after = [model.weight for model in models]
    assert not any(torch.equal(*each) for each in zip(before, after, strict=True))


def padded(example: dict[str, Any]) -> None:
    samples = [SimpleNamespace(ids=torch.ones(n)) for n in (3, 130)]
    assert example["collate"](samples).shape == (2, 256)


CALLS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "NPU202/1": distributed,
    "NPU207/0": one_group,
    "NPU304/2": adversarial,
    "NPU609/0": asked,
    "NPU701/0": lambda e: backward(e["RootMeanSquareNorm"](8).npu()(given(2, 8))),
    "NPU703/0": lambda e: backward(e["gated"](given(2, 8))),
    "NPU703/1": gated_unit,
    "NPU704/0": lambda e: backward(e["gated"](given(2, 8))),
    "NPU705/0": lambda e: backward(e["activated"](given(2, 8))),
    "NPU705/1": lambda e: backward(e["activated"](given(2, 8))),
    "NPU706/0": lambda e: backward(e["rotated"](given(1, 2, 3, 8), given(1, 3, 8), given(1, 3, 8))),
    "NPU706/1": lambda e: backward(e["rotary"](given(1, 2, 3, 8), given(3, 8), given(3, 8))),
    "NPU707/0": lambda e: backward(e["CausalAttention"](16, 2, 8, 0.0).npu()(given(2, 8, 16))),
    "NPU708/0": lambda e: backward(e["attention"](*(given(2, 6, 2, 8) for _ in range(3)))),
    "NPU708/1": lambda e: backward(e["attention"](*(given(2, 6, 2, 8) for _ in range(3)), 0.3)),
    "NPU713/0": lambda e: backward(e["loss"](given(3, 5), torch.tensor([1, 0, 4]).npu())),
    **{f"NPU716/{number}": trains for number in range(12)},
    "NPU801/1": lambda e: e["count"](given(4)),
    "NPU802/0": lambda e: backward(e["loss"](given(4), torch.tensor([1, 255, 2, 3]).npu())),
    "NPU803/0": lambda e: e["cleaned"](given(4).detach()),
    "NPU807/0": lambda e: list(e["loader_of"](list(range(64)))),
    "NPU808/1": padded,
    "NPU811/0": lambda e: e["step"](
        torch.nn.Linear(4, 3).npu(), given(2, 4), torch.tensor([0, 2]).npu()
    ),
    "NPU915/0": lambda e: e["main"](Total(), torch.ones(16, 4)),
    "NPU916/0": lambda e: e["main"](Total().npu(), torch.ones(16, 4), "npu"),
    "NPU918/0": lambda e: e["main"](Total().npu(), [torch.ones(2, 4, device="npu")]),
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
        "experimental": None,
        "graphs": [torch.ones(2)],
        "groups": lambda each: each.parameters(),
        "loader": [(torch.ones(2, 4).npu(), torch.tensor([0, 2]).npu())],
        "metrics": torch_npu.profiler.AiCMetrics.PipeUtilization,
        "model": model,
        "optimizer": torch.optim.SGD(model.parameters(), 0.1),
        "train": lambda *_: None,
        "weight": torch.ones(2).npu(),
        "x": torch.ones(2, 3).npu().t(),
    }


def only_defines(text: str) -> bool:
    """Whether an example does nothing unless it is called."""
    quiet = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)
    statements = [node for node in ast.parse(text).body if not isinstance(node, quiet)]
    return all(isinstance(node, ast.If) and "__main__" in ast.dump(node) for node in statements)


def problem(name: str, text: str) -> str:
    """What went wrong with an example, or an empty text."""
    example = names()
    try:
        exec(compile(text, name, "exec"), example)
        if name in CALLS:
            CALLS[name](example)
        elif only_defines(text) and "def " in text:
            return "only defines something, and nothing is done with that"
    except Exception:
        return traceback.format_exc()
    return ""


def doubles(folder: Path) -> None:
    """What examples import or start, of which only the names matter here."""
    sys.modules["apex"] = ModuleType("apex")
    project = ModuleType("project")
    project.Net, project.dataset = Total, torch.ones(64, 4).npu()  # type: ignore[attr-defined]
    activations = ModuleType("transformers.activations")
    activations.ACT2FN = {"silu": nn.SiLU()}  # type: ignore[attr-defined]
    timm, adamp = ModuleType("timm.optim"), ModuleType("adamp")
    timm.RMSpropTF = adamp.AdamP = torch.optim.SGD  # type: ignore[attr-defined]
    probe = ModuleType("msprobe.pytorch")
    probe.seed_all = lambda seed, mode: None  # type: ignore[attr-defined]
    parents = {name: ModuleType(name) for name in ("transformers", "timm", "msprobe")}
    graphs = ModuleType("torch_geometric.loader")
    graphs.DataLoader = list  # type: ignore[attr-defined]
    parents["torch_geometric"] = ModuleType("torch_geometric")
    doubled = (project, activations, timm, adamp, probe, graphs)
    sys.modules |= parents | {each.__name__: each for each in doubled}
    program = folder / "npu-smi"
    program.write_text('#!/bin/sh\necho "$@" > "$NPU_SMI_MARK"\n')
    program.chmod(0o755)
    os.environ["NPU_SMI_MARK"] = str(folder / "asked")
    os.environ["PATH"] = os.pathsep.join([str(folder), os.environ["PATH"]])


def main() -> None:
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0", "RANK": "0"}
    os.environ |= {"WORLD_SIZE": "1", "LOCAL_RANK": "0"}
    results = {}
    assert torch_npu.npu.is_available()
    with tempfile.TemporaryDirectory() as folder:
        doubles(Path(folder))
        for name, text in json.load(sys.stdin).items():
            results[name] = problem(name, text)
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
