"""Tools of the NPU that are set up so that they do nothing."""

import pytest

from helpers import findings, fixed, unmarked

HEAD = "import os\nimport torch\nimport torch_npu\n"
PROFILE = "with torch_npu.profiler.profile(⟦schedule=s⟧) as p:\n"
LOOP = PROFILE + "    for x in loader:\n        train(x)\n"
DEBUGGER = "from msprobe.pytorch import PrecisionDebugger\n"
FOUND = [
    LOOP,
    "torch_npu.profiler.schedule(wait=1, active=⟦0⟧)",
    "⟦torch_npu.profiler.schedule⟧(0, 1, 2)",
    "torch_npu.profiler._ExperimentalConfig(⟦aic_metrics=m⟧)",
    "torch_npu.profiler._ExperimentalConfig(L.Level_none, ⟦aic_metrics=m⟧)",
    f"{DEBUGGER}⟦PrecisionDebugger.start⟧()",
    f"{DEBUGGER}d = PrecisionDebugger()\n⟦d.start⟧(model)",
    f"{DEBUGGER}while True:\n    d = ⟦PrecisionDebugger⟧('a.json')\n    d.stop()",
    f"{DEBUGGER}for a in b:\n    for c in a:\n        d = ⟦PrecisionDebugger⟧()\n        d.stop()",
    f"{DEBUGGER}d = PrecisionDebugger()\n"
    "with torch_npu.profiler.profile() as p:\n    ⟦d.start⟧()\n    d.stop()",
    "y = torch_npu.npu_swiglu(x)\n⟦torch.onnx.export⟧(model, x, 'a.onnx')",
    "torch.distributed.init_process_group('hccl', init_method=⟦'tcp//:127.0.0.1:29500'⟧)",
    "def f():\n    torch.distributed.init_process_group('hccl')\n"
    "    os.environ[⟦'HCCL_DETERMINISTIC'⟧] = 'true'",
]
NOT_FOUND = [
    LOOP + "        p.step()\n",
    PROFILE + "    train(loader, p)\n",
    PROFILE + "    self.profiler = p\n",
    "with torch_npu.profiler.profile() as p:\n    train()",
    "with torch.profiler.profile(schedule=s) as p:\n    train()",
    "torch_npu.profiler.schedule(wait=0, active=n)",
    "torch_npu.profiler.schedule(2)",
    "torch_npu.profiler._ExperimentalConfig(profiler_level=level, aic_metrics=m)",
    "torch_npu.profiler._ExperimentalConfig(aic_metrics=A.AiCoreNone)",
    f"{DEBUGGER}d = PrecisionDebugger()\nd.start()\nd.stop()",
    "server.start()",
    "torch.onnx.export(model, x, 'a.onnx')",
    "torch.distributed.init_process_group('hccl', init_method='env://')",
    "torch.distributed.init_process_group('hccl', init_method=f'tcp://{host}')",
    "def f():\n    os.environ['HCCL_DETERMINISTIC'] = 'true'\n"
    "    torch.distributed.init_process_group('hccl')",
    "def f():\n    torch.distributed.init_process_group('hccl')\n"
    "def g():\n    os.environ['HCCL_DETERMINISTIC'] = 'true'",
]


def places(text: str) -> list[str]:
    return [text[slice(*f.span)] for f in findings(text) if f.rule.code == "NPU508"]


@pytest.mark.parametrize("snippet", FOUND)
def test_what_does_nothing(snippet: str) -> None:
    marked = snippet.replace("⟦", "⟦NPU508:")
    text, expected = unmarked(HEAD + marked + "\n")
    assert places(text) == [text[mark.start : mark.end] for mark in expected]


@pytest.mark.parametrize("snippet", NOT_FOUND)
def test_what_does_something(snippet: str) -> None:
    plain = snippet.replace("⟦", "").replace("⟧", "")
    assert places(HEAD + plain + "\n") == []


def test_names_mean_what_the_positions_meant() -> None:
    before = "import torch_npu\n\ns = torch_npu.profiler.schedule(0, 1, 2)\n"
    assert "schedule(wait=0, active=1, warmup=2)" in fixed(before)


def test_a_loop_that_ends_early_gets_no_step() -> None:
    text = HEAD + LOOP.replace("⟦", "").replace("⟧", "") + "        break\n"
    assert fixed(text) == text
