"""What of the facts on precision, profiling and launching is a rule, and why the rest is not.

The facts are in `instrumentation.json` of the folder that `make_coverage_page.py` reads. They come
in sections; where all entries of one are left out for the same reason, the section says it once.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

FILE = "instrumentation.json"

NEVER_WRITTEN = "corrections of what guides for the NPU say; no working GPU code has it"
PRECISION_TOOL = "setting up the precision tools; nothing in GPU code asks for it"
PROFILING_TOOL = "setting up the profiler; nothing in GPU code asks for it"
RESULTS = "about reading results, not about code"
OF_NPU_CODE = "mistakes in code that is written for the NPU"
SUITE = "about setting the suites up, or left to them: no mistake that a script shows"
OPERATION = "about running a cluster or a machine, not about code"
NPU_ONLY = "set on the NPU only; no CUDA code names it"
UNREAD = "only the name is known"
AS_ON_GPU = "the same on the GPU and the NPU"
DEPLOYMENT = "export and deployment, after training"
DETERMINISM = "setting up repeatable runs; nothing in GPU code asks for it"
APEX_BUILD = "options of the apex build for the NPU; its use is as on the GPU"
NPU_TUNING = "a way to tune the NPU that has no counterpart in GPU code"
KNOWLEDGE = "background for the other facts"

COVERED: dict[str, tuple[str, ...]] = {
    "corrected name 27": ("npu-tool-use",),
    "lint inst.prof.mixed_schedule": ("cuda-profiler",),
    "lint inst.prof.positional_schedule": ("npu-tool-use",),
    "lint inst.prof.step_missing": ("npu-tool-use",),
    "corrected name 16": ("npu-tool-use",),
    "msprobe msprobe.config_check.apply_patches": ("npu-tool-use",),
    "msprobe msprobe.config_check.ctor": ("npu-tool-use",),
    "msprobe msprobe.pattern.config_check": ("npu-tool-use",),
    "determinism det.seeds": ("unseeded-generator",),
    "export save.patterns": ("checkpoint-device", "whole-module-file"),
    "export save.npu": ("checkpoint-device", "whole-module-file"),
    "lint inst.msprobe.no_stop": ("npu-tool-use",),
    "lint inst.msprobe.in_loop": ("npu-tool-use",),
    "lint inst.msprobe.with_profiler": ("npu-tool-use",),
    "lint inst.amp.positional": ("grad-scaler-position", "npu-argument"),
    "lint inst.onnx.npu_nodes": ("npu-tool-use",),
    "msprobe msprobe.debugger.start": ("npu-tool-use",),
    "msprobe msprobe.debugger.stop": ("npu-tool-use",),
    "msprobe msprobe.pattern.dump": ("npu-tool-use",),
    "profiler prof.pattern.static": ("npu-tool-use",),
    "export onnx.export": ("npu-tool-use",),
    "determinism det.lint.1": ("npu-tool-use",),
    "corrected name 01": ("npu-api-missing",),
    "corrected name 02": ("npu-api-missing",),
    "corrected name 03": ("npu-argument",),
    "corrected name 04": ("npu-argument", "npu-name-unknown"),
    "corrected name 05": ("npu-argument",),
    "corrected name 11": ("npu-name-unknown",),
    "corrected name 20": ("npu-api-missing",),
    "corrected name 21": ("npu-name-unknown",),
    "corrected name 22": ("npu-argument",),
    "corrected name 24": ("npu-variable-value",),
    "corrected name 28": ("npu-argument",),
    "lint inst.prof.kwargs": ("npu-argument",),
    "lint inst.msprobe.model_kw": ("npu-argument",),
    "lint inst.opt.deprecated": ("npu-argument",),
    "lint inst.opt.value": ("npu-argument",),
    "lint inst.dist.hccl_key": ("npu-argument",),
    "mixed precision amp.wrong_names": ("npu-api-missing",),
    "export option.set_option": ("npu-argument",),
    "export option.implmode_advice": ("npu-argument",),
    "distributed dist.pg_options": ("npu-argument",),
    "distributed dist.async_error": ("npu-variable-value",),
    "profiler prof.experimental_config": ("npu-argument",),
    "profiler prof.enums": ("npu-name-unknown",),
    "profiler prof.mstx": ("npu-name-unknown",),
    "profiler acc_events=": ("npu-argument",),
    "profiler post_processing_timeout_s=": ("npu-argument",),
    "profiler prof.key_averages()/events()": ("npu-name-unknown",),
    "msprobe msprobe.debugger.ctor": ("npu-argument",),
    "corrected name 07": ("cuda-profiler",),
    "corrected name 08": ("cuda-profiler",),
    "lint inst.prof.cuda_activity": ("cuda-profiler",),
    "lint inst.prof.expcfg": ("cuda-profiler",),
    "profiler prof.profile": ("cuda-profiler",),
    "profiler prof.activities": ("cuda-profiler",),
    "profiler prof.schedule": ("cuda-profiler",),
    "profiler prof.handler": ("cuda-profiler",),
    "profiler prof.action": ("cuda-profiler",),
    "profiler torch.profiler.profile": ("cuda-profiler",),
    "profiler ProfilerActivity.CPU": ("cuda-profiler",),
    "profiler ProfilerActivity.CUDA": ("cuda-profiler",),
    "profiler torch.profiler.schedule": ("cuda-profiler",),
    "profiler torch.profiler.tensorboard_trace_handler": ("cuda-profiler",),
    "profiler experimental_config=torch._C._profiler._ExperimentalConfig(...)": ("cuda-profiler",),
    "mixed precision amp.npu.autocast": ("cuda-amp", "cuda-autocast-device"),
    "mixed precision amp.npu.gradscaler": ("cuda-amp", "grad-scaler", "scaler-order"),
    "mixed precision amp.custom_fwd": ("cuda-amp",),
    "mixed precision amp.hardware": ("no-mixed-precision",),
    "mixed precision apex.initialize": ("apex-amp",),
    "mixed precision apex.scale_loss": ("apex-amp",),
    "mixed precision apex.optimizers": ("cuda-library-name",),
    "export option.compile_mode": ("jit-compile-mode",),
    "distributed dist.init": ("nccl-backend",),
    "distributed dist.dp": ("data-parallel",),
    "distributed dist.pattern.single_to_ddp": ("data-parallel",),
    "determinism HCCL_INTRA_ROCE_ENABLE / HCCL_INTRA_PCIE_ENABLE": (
        "npu-variable-value",
        "npu-variables-together",
    ),
    "determinism det.torch": ("deterministic-collectives",),
    "determinism det.hf32": ("tf32-products", "cuda-backend-switch"),
    "determinism det.lint.2": ("cuda-backend-switch",),
    "determinism HCCL_DETERMINISTIC": ("deterministic-collectives", "npu-variables-together"),
    "determinism ASCEND_LAUNCH_BLOCKING": ("cuda-environment", "slow-environment"),
    "determinism phase performance": ("slow-environment",),
    "performance perf.affinity": ("untuned-launch",),
    "performance perf.gc": ("cleanup-in-training-loop",),
    "performance perf.dataloader": ("loader-without-workers", "loader-restarts-workers"),
    "performance perf.symptoms": ("sync-in-training-loop", "untuned-launch"),
    "corrected name 10": ("npu-tool-command",),
    "corrected name 13": ("npu-tool-config",),
    "corrected name 14": ("npu-tool-command",),
    "corrected name 15": ("npu-tool-command",),
    "corrected name 23": ("npu-variables-together",),
    "lint inst.prof.level0_metrics": ("npu-tool-config",),
    "lint inst.msprobe.old_config": ("npu-tool-config",),
    "lint inst.asd.both": ("npu-variables-together",),
    "lint inst.asd.thresh": ("npu-variables-together",),
    "lint inst.dist.master": ("launch-numbers",),
    "lint inst.amp.bf16_scaler": ("scaler-order",),
    "mixed precision amp.pattern": ("scaler-order",),
    "msprobe msprobe.config_check.cli": ("npu-tool-command",),
    "msprobe msprobe.config_json.common": ("npu-tool-config",),
    "msprobe msprobe.config_json.task": ("npu-tool-config",),
    "msprobe msprobe.compare": ("npu-tool-command",),
    "msprobe msprobe.acc_check": ("npu-tool-command",),
    "msprobe msprobe.overflow": ("npu-tool-command", "npu-tool-config"),
    "msprobe msprobe.graph": ("npu-tool-command",),
    "msprobe version 1.0 .. 8.3.3": ("npu-tool-command",),
    "msprobe version 26.0.0, 26.1.x": ("npu-tool-command",),
    "msprobe version 26.2.0": ("npu-tool-command",),
    "msprobe renamed run_ut": ("npu-tool-command",),
    "msprobe renamed multi_run_ut": ("npu-tool-command",),
    "msprobe renamed graph": ("npu-tool-command",),
    "msprobe renamed nan_analyze": ("npu-tool-command",),
    "msprobe renamed task overflow_check": ("npu-tool-config",),
    "msprobe renamed task free_benchmark / grad_probe": ("npu-tool-config",),
    "msprobe renamed code_mapping / op_generate / run_overflow_check": ("npu-tool-command",),
    "profiler prof.dynamic.config": ("npu-tool-config",),
    "msprof-analyze mpa.advisor": ("npu-tool-command",),
    "msprof-analyze mpa.compare": ("npu-tool-command",),
    "msprof-analyze mpa.cluster": ("npu-tool-command",),
    "msprof-analyze mpa.other": ("npu-tool-command",),
    "silent errors asd.config": ("npu-variable-value", "npu-variables-together"),
    "silent errors asd.enable": ("npu-variable-value", "npu-variables-together"),
    "silent errors asd.thresh": ("npu-variables-together",),
    "export atc.cli": ("npu-tool-command",),
    "distributed dist.script_vars": ("launch-numbers",),
    "distributed dist.torchrun": ("launch-numbers",),
}
"""Entries with the names of the rules that say what they say, at least of GPU code."""

SUITE_RULE = "suite-option"
_SUITE = re.compile(
    r"suites (?:--|relation |ms\.sh\.(?:[1-9]|10|11)\Z|llm\.deprecated|options known by name)"
)
"""Options of the training suites, what goes together, and names that are misspelt."""

SECTIONS = {
    "corrected name": NEVER_WRITTEN,
    "lint": OF_NPU_CODE,
    "msprobe": PRECISION_TOOL,
    "profiler": PROFILING_TOOL,
    "msprof-analyze": PROFILING_TOOL,
    "mixed precision": KNOWLEDGE,
    "silent errors": NPU_ONLY,
    "export": DEPLOYMENT,
    "distributed": OPERATION,
    "suites": SUITE,
    "determinism": DETERMINISM,
    "performance": NPU_TUNING,
}

WRITTEN = "no mistake in code: `npulens instrument` writes it where it belongs"
GUIDED = "no mistake in code: `npulens guide` has it as a step"

EXCEPTIONS = {
    "msprobe msprobe.debugger.step": WRITTEN,
    "msprobe msprobe.monitor.v1": WRITTEN,
    "msprobe msprobe.pattern.monitor": WRITTEN,
    "msprobe msprobe.monitor.v2": (
        "a second way to what `npulens instrument monitor` writes, for releases from 26 alone"
    ),
    "msprobe msprobe.seed_all": (
        "`npulens instrument determinism` writes what it does, without the tool"
    ),
    "determinism phase precision": GUIDED,
    "determinism det.data": GUIDED,
    "corrected name 06": "what a report holds; no name or value is wrong",
    "corrected name 09": "advice on a number that is right for other uses",
    "corrected name 17": "when a script may be stopped, which is not in it",
    "corrected name 18": RESULTS,
    "corrected name 19": RESULTS,
    "corrected name 25": "which releases go together; older pairs are right, too",
    "profiler record_shapes, profile_memory, with_stack, with_modules": AS_ON_GPU,
    "profiler with_flops": "an argument of the profiler that does nothing on the NPU, and no harm",
    "profiler use_cuda=": "an argument of the profiler that does nothing on the NPU, and no harm",
    "profiler self_cuda_time_total (export_stacks)": (
        "not built yet: methods of the profiler that the NPU's one lacks"
    ),
    "profiler output": RESULTS,
    "mixed precision apex.versions": APEX_BUILD,
    "mixed precision apex.pattern": APEX_BUILD,
    "distributed dist.launch_ways": AS_ON_GPU,
    "distributed dist.ranktable": NPU_ONLY,
    "suites ms.sh.12": "`CUDA_DEVICE_MAX_CONNECTIONS` has to stay, so it must not be reported",
    "suites ms.sh.13": "the option has its way in any case",
    "suites relation 04 of --virtual-optimizer": "no release has the other option",
    "suites relation 37 of --compress-optimizer": "no release has the other option",
    "determinism ATB_MATMUL_SHUFFLE_K_ENABLE": UNREAD,
    "determinism phase migration": KNOWLEDGE,
    "determinism phase long run": OPERATION,
    "determinism det.lint.3": OF_NPU_CODE,
    "performance HOST_CACHE_CAPACITY": UNREAD,
    "performance TORCH_HCCL_STATUS_SAVE_PATH / TORCH_HCCL_STATUS_SAVE_INTERVAL": UNREAD,
    "performance ACL_STREAM_TIMEOUT": UNREAD,
    "performance TORCH_NPU_USE_PARALLEL_TCPSTORE, ENABLE_TIERED_PARALLEL_TCPSTORE": UNREAD,
    "performance perf.limits": UNREAD,
    "performance GLOO_SOCKET_IFNAME, TOKENIZERS_PARALLELISM=false, OMP_NUM_THREADS=1": AS_ON_GPU,
}
"""Entries that are left out for another reason than their section."""


def rules_of(entry: str) -> tuple[str, ...]:
    """The names of the rules that say what an entry says."""
    if _SUITE.match(entry) is not None and entry not in EXCEPTIONS:
        return (SUITE_RULE,)
    return COVERED.get(entry, ())


def entries(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Each entry of the file, and the reason should no rule cover it."""
    for entry in _names(facts):
        section = next(name for name in SECTIONS if entry.startswith(f"{name} "))
        yield entry, EXCEPTIONS.get(entry, SECTIONS[section])


def _names(facts: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"corrected name {each['n']:02}" for each in facts["seed_corrections"])
    yield from (f"lint {each['id']}" for each in facts["lint_candidates"]["items"])
    yield from _sections(facts)
    yield from (f"msprobe version {each['range']}" for each in facts["msprobe"]["generations"])
    yield from (f"msprobe renamed {old}" for old in facts["msprobe"]["renames_8_to_26"])
    yield from (f"profiler {each['torch']}" for each in facts["profiler"]["torch_to_npu"])
    yield "profiler output"
    yield from (
        f"silent errors torch_npu {each['torch_npu product']}"
        for each in facts["silent_error_detection"]["version_table"]
    )
    suites = facts["mindspeed"]
    yield from (f"suites {each['flag']}" for each in suites["flags"])
    yield from (f"suites {each['id']}" for each in suites["script_checks"])
    for index, each in enumerate(suites["flag_relations"]["items"], 1):
        yield f"suites relation {index:02} of {each['feature']}"
    yield "suites options known by name"
    yield from (f"determinism {each['name']}" for each in facts["determinism"]["env"])
    yield from (f"determinism phase {each['phase']}" for each in facts["determinism"]["phases"])
    yield from (f"determinism {each['id']}" for each in facts["determinism"]["lint"])
    yield from (
        f"performance {each['name']}" for each in facts["performance"]["env_beyond_env_vars_json"]
    )


def _sections(facts: Mapping[str, Any]) -> Iterator[str]:
    """What every section has: facts, and patterns of several steps."""
    for key, name in (
        ("msprobe", "msprobe"),
        ("profiler", "profiler"),
        ("msprof_analyze", "msprof-analyze"),
        ("mixed_precision", "mixed precision"),
        ("silent_error_detection", "silent errors"),
        ("export", "export"),
        ("distributed", "distributed"),
        ("mindspeed", "suites"),
        ("determinism", "determinism"),
        ("performance", "performance"),
    ):
        for each in [*facts[key]["facts"], *facts[key].get("patterns", ())]:
            yield f"{name} {each['id']}"
