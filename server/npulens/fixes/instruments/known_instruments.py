"""The instruments that exist.

Names and arguments are those of torch_npu and of msprobe 26 (`mindstudio-probe`); sources:
Ascend/pytorch `torch_npu/profiler/`, its guide of the Ascend PyTorch Profiler and the page of
`NPU_ASD_CONFIG`; Ascend/msprobe `msprobe/pytorch/dump/debugger/precision_debugger.py`,
`msprobe/core/config_check/config_checker.py`, `msprobe/pytorch/monitor/module_hook.py`.
"""

from npulens.fixes.instruments.instrument_model import Instrument

_PROFILER = """\
{npu_profiler} = torch_npu.profiler.profile(
    activities=[
        torch_npu.profiler.ProfilerActivity.CPU,
        torch_npu.profiler.ProfilerActivity.NPU,
    ],
    schedule=torch_npu.profiler.schedule(wait=0, warmup=1, active=2, repeat=1, skip_first=10),
    on_trace_ready=torch_npu.profiler.tensorboard_trace_handler("./npu_profile"),
    record_shapes=True,
    experimental_config=torch_npu.profiler._ExperimentalConfig(
        profiler_level=torch_npu.profiler.ProfilerLevel.Level1,
        aic_metrics=torch_npu.profiler.AiCMetrics.PipeUtilization,
    ),
)"""

_DUMP_SETTINGS = """\
{
  "task": "statistics",
  "dump_path": "./msprobe_dump",
  "rank": [],
  "step": [0, 1],
  "level": "L1",
  "statistics": {
    "scope": [],
    "list": [],
    "data_mode": ["all"],
    "summary_mode": "statistics"
  }
}
"""

_MONITOR_SETTINGS = """\
{
  "targets": {},
  "start_step": 0,
  "step_interval": 1,
  "module_ranks": [],
  "format": "csv",
  "ops": ["min", "max", "mean", "norm", "nans"],
  "wg_distribution": true,
  "alert": {
    "rules": [{"rule_name": "AnomalyTurbulence", "args": {"threshold": 0.5}}],
    "dump": true
  }
}
"""

INSTRUMENTS = (
    Instrument(
        "profiler",
        "instrument.profiler",
        "instrument.profiler-next",
        imports=("import torch_npu", _PROFILER),
        before=("{npu_profiler}.start()",),
        step_end=("{npu_profiler}.step()",),
        after=("{npu_profiler}.stop()",),
        names=("npu_profiler",),
        not_with=frozenset({"dump", "monitor", "config-check"}),
    ),
    Instrument(
        "step-time",
        "instrument.step-time",
        "instrument.step-time-next",
        imports=("import time as npu_time", "import torch_npu", "{npu_step_ends} = []"),
        step_end=(
            "torch_npu.npu.synchronize()",
            "{npu_step_ends}.append(npu_time.perf_counter())",
            'print("step %d: %.1f ms" % (len({npu_step_ends}), '
            "1000 * ({npu_step_ends}[-1] - {npu_step_ends}[-2:][0])))",
        ),
        names=("npu_step_ends",),
    ),
    Instrument(
        "dump",
        "instrument.dump",
        "instrument.dump-next",
        imports=(
            "from pathlib import Path as NpuPath",
            "from msprobe.pytorch import PrecisionDebugger as NpuDebugger",
            "{npu_debugger} = NpuDebugger("
            'config_path=str(NpuPath(__file__).with_name("msprobe_dump.json")))',
        ),
        step_begin=("{npu_debugger}.start()",),
        turn_end=("{npu_debugger}.stop()", "{npu_debugger}.step()"),
        names=("npu_debugger",),
        not_with=frozenset({"profiler", "monitor"}),
        settings=("msprobe_dump.json", _DUMP_SETTINGS),
    ),
    Instrument(
        "config-check",
        "instrument.config-check",
        "instrument.config-check-next",
        top=(
            "from msprobe.core.config_check import ConfigChecker as NpuConfigChecker",
            'NpuConfigChecker.apply_patches("pytorch")',
        ),
        prepared=('NpuConfigChecker(model={model}, output_zip_path="./config_check.zip")',),
    ),
    Instrument(
        "monitor",
        "instrument.monitor",
        "instrument.monitor-next",
        imports=(
            "from pathlib import Path as NpuPath",
            "from msprobe.pytorch import TrainerMon as NpuTrainerMon",
            'npu_settings = str(NpuPath(__file__).with_name("msprobe_monitor.json"))',
        ),
        prepared=(
            "npu_monitor = NpuTrainerMon(npu_settings, params_have_main_grad=False)",
            "npu_monitor.set_monitor("
            "{model}, optimizer={optimizer}, grad_acc_steps={accumulation})",
        ),
        takes_models=True,
        not_with=frozenset({"profiler", "dump"}),
        settings=("msprobe_monitor.json", _MONITOR_SETTINGS),
    ),
    Instrument(
        "determinism",
        "instrument.determinism",
        "instrument.determinism-next",
        top=(
            "import os as npu_os",
            'npu_os.environ.setdefault("HCCL_DETERMINISTIC", "true")',
        ),
        imports=(
            "import random as npu_random",
            "import torch as npu_torch",
            "import torch_npu",
            "npu_random.seed(1234)",
            "npu_torch.manual_seed(1234)",
            "torch_npu.npu.manual_seed_all(1234)",
            "npu_torch.use_deterministic_algorithms(True)",
        ),
    ),
    Instrument(
        "silent-errors",
        "instrument.silent-errors",
        "instrument.silent-errors-next",
        top=("import os as npu_os", 'npu_os.environ.setdefault("NPU_ASD_CONFIG", "enable:true")'),
    ),
    Instrument(
        "bfloat16",
        "instrument.bfloat16",
        "instrument.bfloat16-next",
        imports=("import torch_npu",),
        not_with=frozenset({"float16"}),
        dtype="bfloat16",
    ),
    Instrument(
        "float16",
        "instrument.float16",
        "instrument.float16-next",
        imports=("import torch_npu", "{npu_scaler} = torch_npu.npu.amp.GradScaler()"),
        names=("npu_scaler",),
        not_with=frozenset({"bfloat16"}),
        dtype="float16",
    ),
)

BY_NAME = {each.name: each for each in INSTRUMENTS}
