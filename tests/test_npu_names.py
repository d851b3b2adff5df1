"""Code for the NPU: names and arguments that its software has, and those that it has not."""

import pytest

from helpers import check, findings, fixed

HEAD = "import torch\nimport torch_npu\n"
FOUND = [
    "⟦NPU506:torch_npu.profiler.AiCMetrics.Pipe⟧",
    "⟦NPU506:torch.npu.set_compile⟧(jit_compile=False)",
    "⟦NPU506:torch.npu.mstx.range_begin⟧('a')",
    "y = ⟦NPU506:torch_npu.npu_rmsnorm⟧(x, w)",
    "from torch_npu.profiler import ⟦NPU506:ProfilerLevels⟧",
    "from torch_npu.profiler import ProfilerLevel as L\nx = ⟦NPU506:L.Level3⟧",
    "p = torch_npu.profiler\nx = ⟦NPU506:p.ProfilerActivity.GPU⟧",
    "⟦NPU506:torch_npu.contrib.npu_nms⟧(b)",
    "with torch_npu.profiler.profile() as p:\n    print(⟦NPU506:p.key_averages⟧().table())",
    "p = torch_npu.profiler.profile()\n⟦NPU506:p.events⟧()",
    "torch_npu.profiler.profile(⟦NPU507:[1]⟧)",
    "torch_npu.profiler.profile(⟦NPU507:config=c⟧)",
    "torch_npu.profiler.profile(⟦NPU507:post_processing_timeout_s=3⟧)",
    "torch_npu.profiler.schedule(wait=1, ⟦NPU507:actives=2⟧)",
    "torch_npu.profiler.schedule(⟦NPU507:'1'⟧, active=2)",
    "torch_npu.profiler._ExperimentalConfig(⟦NPU507:msprof_tx='true'⟧)",
    "torch_npu.profiler._ExperimentalConfig(⟦NPU507:profiler_level='level1'⟧)",
    "torch.npu.amp.autocast(⟦NPU507:'npu'⟧)",
    "torch.npu.amp.autocast(⟦NPU507:device_type='npu'⟧, dtype=torch.float16)",
    "torch.npu.amp.GradScaler(⟦NPU507:device='npu'⟧)",
    "torch.npu.set_compile_mode(⟦NPU507:jit=False⟧)",
    'torch.npu.set_option({⟦NPU507:"ACL_OP_COMPILER_CACHE_MODE"⟧: "on"})',
    'torch.npu.set_option({⟦NPU507:"ACL_OP_SELECT_IMPL_MODE"⟧: "high_precision"})',
    'o.hccl_config = {⟦NPU507:"hccl_buffer_sizes"⟧: 200}',
    'o.hccl_config = {⟦NPU507:"qos_service_level"⟧: 8}',
    "torch_npu.npu_fusion_attention(q, k, v, head_num=8, input_layout='BSH', ⟦NPU507:attn_mask=m⟧)",
    "from msprobe.pytorch import PrecisionDebugger as D\nD(⟦NPU507:level='L3'⟧)",
    "from msprobe.pytorch import PrecisionDebugger as D\nD('a.json', ⟦NPU507:model=m⟧)",
]
NOT_FOUND = [
    "torch_npu.profiler.AiCMetrics.PipeUtilization",
    "torch_npu.profiler.AiCMetrics.__members__",
    "torch_npu.npu_operator_of_our_own(x)",
    "with torch_npu.profiler.profile() as p:\n    p.step()\n    p.export_stacks('a')",
    "with torch_npu.profiler.profile() as p:\n    print(p.step_num)",
    "torch_npu.npu_swiglu(x, dim=-1)",
    "torch_npu.npu_swiglu(x, of_a_newer_release=1)",
    "torch.npu.mstx.mark('a')",
    "torch.npu.global_step_inc()",
    "torch.npu.a_function_of_ours = f\ntorch.npu.a_function_of_ours()",
    "torch_npu.profiler.profile(**options)",
    "torch_npu.profiler.schedule(*numbers)",
    "torch_npu.profiler.schedule(0, 1, 2)",
    "torch_npu.profiler.schedule(wait=steps, active=2)",
    "torch_npu.profiler._ExperimentalConfig(gc_detect_threshold=None, l2_cache=flag)",
    "torch_npu.profiler._ExperimentalConfig(export_type=[torch_npu.profiler.ExportType.Db])",
    "torch.npu.amp.GradScaler(2.0**10, enabled=flag)",
    'torch.npu.set_option({"jitCompile": "enable", name: 1, **more})',
    "torch.npu.set_option(options)",
    'o.hccl_config = {"hccl_buffer_size": size}',
    "o.hccl_config = config",
    "class A:\n    npu_rmsnorm = 1\nA.npu_rmsnorm",
    "for p in (torch_npu.profiler, torch.profiler):\n    p.ProfilerLevels",
]


@pytest.mark.parametrize("snippet", FOUND)
def test_what_the_software_has_not(snippet: str) -> None:
    head = HEAD if "msprobe" not in snippet else ""
    check(head + snippet + "\n")


@pytest.mark.parametrize("snippet", NOT_FOUND)
def test_what_it_has_or_may_have(snippet: str) -> None:
    found = findings(HEAD + snippet + "\n")
    assert [f.rule.code for f in found if f.rule.code in ("NPU113", "NPU506", "NPU507")] == []


def test_without_the_software_nothing_is_said() -> None:
    assert not findings("o.hccl_config = {'a': 1}\nprofiler.profile(config=1)\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = p.profile(config=c)\n", "x = p.profile(experimental_config=c)\n"),
        ("x = p.profile(acc_events=True)\n", "x = p.profile()\n"),
        ("x = p.profile(acc_events=True, with_stack=a)\n", "x = p.profile(with_stack=a)\n"),
        ("x = p._ExperimentalConfig(mstx='TRUE')\n", "x = p._ExperimentalConfig(mstx=True)\n"),
        ("x = p.ProfilerLevel.level2\n", "x = p.ProfilerLevel.Level2\n"),
    ],
)
def test_fixes(before: str, after: str) -> None:
    head = "import torch_npu.profiler as p\n\n"
    assert fixed(head + before) == head + after
