"""Memory formats and switches of CUDA libraries: what is found, what is not, what it becomes."""

import ast

import pytest

from helpers import (
    AGNOSTIC,
    NPU,
    SHIM,
    check,
    each_fix,
    findings,
    fixed,
    parses,
    unmarked,
)
from npulens.catalog.model import Applicability, Severity

FOUND = [
    # channels_last in calls
    "x = x.to(memory_format=⟦NPU401:torch.channels_last⟧)",
    "x = x.to(memory_format=⟦NPU401:torch.channels_last_3d⟧)",
    "model = model.to(memory_format=⟦NPU401:torch.channels_last⟧)",
    "model.to(memory_format=⟦NPU401:torch.channels_last⟧)",
    "x = x.to(device, memory_format=⟦NPU401:torch.channels_last⟧)",
    "x = x.⟦NPU105:cuda⟧(memory_format=⟦NPU401:torch.channels_last⟧)",
    "x = x.contiguous(memory_format=⟦NPU401:torch.channels_last⟧)",
    "x = x.clone(memory_format=⟦NPU401:torch.channels_last⟧)",
    "x = torch.empty(1, 2, 3, 4, memory_format=⟦NPU401:torch.channels_last⟧)",
    "x = torch.empty_like(y, memory_format=⟦NPU401:torch.channels_last⟧)",
    "f = ⟦NPU401:torch.channels_last_3d⟧ if a else b",
    "x = x.to(memory_format=⟦NPU401:torch.channels_last⟧ if nhwc else torch.contiguous_format)",
    "if args.channels_last:\n    model = model.to(memory_format=⟦NPU401:torch.channels_last⟧)",
    "with torch.no_grad(): y = m(x.to(memory_format=⟦NPU401:torch.channels_last⟧))",
    "import torch as th\nx = x.to(memory_format=⟦NPU401:th.channels_last⟧)",
    "class M:\n    def f(self): return self.x.to(memory_format=⟦NPU401:torch.channels_last⟧)",
    "def f(x, name):\n    fits = name == 'conv'\n    return x.to("
    "memory_format=⟦NPU401:torch.channels_last⟧ if fits else torch.contiguous_format)",
    # chosen elsewhere
    "fmt = ⟦NPU401:torch.channels_last⟧\nx = x.to(memory_format=fmt)",
    "from torch import ⟦NPU401:channels_last⟧\nx = x.to(memory_format=channels_last)",
    "def f(x, fmt=⟦NPU401:torch.channels_last⟧): return x.to(memory_format=fmt)",
    "convert_weights(model, ⟦NPU401:torch.channels_last⟧)",
    # asked for
    "ok = x.is_contiguous(memory_format=⟦NPU403:torch.channels_last⟧)",
    "if x.is_contiguous(memory_format=⟦NPU403:torch.channels_last_3d⟧): pass",
    "def f(x):\n    last = x.is_contiguous(memory_format=⟦NPU403:torch.channels_last⟧)\n"
    "    assert last\n    return x if last else x.clone()",
    # cuDNN
    "⟦NPU402:torch.backends.cudnn.benchmark⟧ = True",
    "⟦NPU402:torch.backends.cudnn.benchmark⟧ = config.benchmark",
    "⟦NPU402:torch.backends.cudnn.deterministic⟧ = True",
    "⟦NPU402:torch.backends.cudnn.benchmark_limit⟧ = 3",
    "def blur_cuda(x): return x.to(memory_format=⟦NPU401:torch.channels_last⟧)",
    "import torch.backends.cudnn as cudnn\n⟦NPU402:cudnn.benchmark⟧ = True",
    "from torch.backends import cudnn\n⟦NPU402:cudnn.deterministic⟧ = True",
    "version = ⟦NPU112:torch.backends.cudnn.version⟧()",
    "if ⟦NPU112:torch.backends.cudnn.is_available⟧(): pass",
    # TF32
    "⟦NPU402:torch.backends.cuda.matmul.allow_tf32⟧ = True",
    "⟦NPU402:torch.backends.cudnn.allow_tf32⟧ = False",
    "⟦NPU402:torch.backends.cuda.matmul.fp32_precision⟧ = 'tf32'",
    "⟦NPU402:torch.backends.cudnn.conv.fp32_precision⟧ = 'ieee'",
    "⟦NPU402:torch.backends.fp32_precision⟧ = 'tf32'",
    "⟦NPU402:torch.backends.cudnn.rnn.fp32_precision⟧ = 'tf32'",
    "⟦NPU404:torch.set_float32_matmul_precision('high')⟧",
    "⟦NPU404:torch.set_float32_matmul_precision('medium')⟧",
    "from torch import set_float32_matmul_precision as p\n⟦NPU404:p('high')⟧",
    "if exact:\n    ⟦NPU402:torch.backends.cudnn.allow_tf32⟧ = False\n"
    "else:\n    ⟦NPU402:torch.backends.cudnn.allow_tf32⟧ = True",
    "⟦NPU402:torch.backends.cuda.matmul.allow_tf32⟧ = not strict",
    "if not is_tf32_available():\n    ⟦NPU402:torch.backends.cudnn.allow_tf32⟧ = False",
    "def seed(n):\n    ⟦NPU402:torch.backends.cudnn.deterministic⟧ = True\n"
    "def exact():\n    torch.use_deterministic_algorithms(True)",
    "from torch.backends import cudnn\ncudnn.benchmark, ⟦NPU402:cudnn.deterministic⟧ = False, True",
    "def seed(n, cuda_deterministic=True):\n    if cuda_deterministic:\n"
    "        ⟦NPU402:torch.backends.cudnn.deterministic⟧ = True\n"
    "        torch.backends.cudnn.benchmark = False\n"
    "    else:\n        ⟦NPU402:torch.backends.cudnn.benchmark⟧ = True",
    # attention, linear algebra
    "⟦NPU402:torch.backends.cuda.enable_flash_sdp⟧(True)",
    "⟦NPU402:torch.backends.cuda.enable_math_sdp⟧(False)",
    "⟦NPU402:torch.backends.cuda.enable_mem_efficient_sdp⟧(False)",
    "⟦NPU402:torch.backends.cuda.enable_cudnn_sdp⟧(False)",
    "with ⟦NPU402:torch.backends.cuda.sdp_kernel⟧(enable_math=False): pass",
    "ok = ⟦NPU402:torch.backends.cuda.flash_sdp_enabled⟧()",
    "⟦NPU402:torch.backends.cuda.preferred_linalg_library⟧('magma')",
    "⟦NPU402:torch.backends.cuda.cufft_plan_cache⟧.max_size = 10",
    "⟦NPU402:torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction⟧ = False",
    "if ⟦NPU112:torch.backends.cuda.is_built⟧(): pass",
    # places that names alone had hidden
    "if wanted and is_tf32_available():\n"
    "    ⟦NPU402:torch.backends.cuda.matmul.allow_tf32⟧ = True\n"
    "    torch.backends.cudnn.allow_tf32 = True",
    "class Run:\n"
    "    def setup(self, wanted):\n"
    "        if wanted and self.device.type == ⟦NPU111:'cuda'⟧:\n"
    "            self.m.to(memory_format=⟦NPU401:torch.channels_last⟧)",
    "class Norm(torch.autograd.Function):\n"
    "    def forward(ctx, x):\n"
    "        last = x.is_contiguous(memory_format=⟦NPU403:torch.channels_last⟧)\n"
    "        return norm_cuda.forward(x, last)",
    "def blur_ref(x): ...\n"
    "def blur_cuda(x): return x.to(memory_format=⟦NPU401:torch.channels_last⟧)",
]

NOT_FOUND = [
    # values that ask for what the NPU does anyway
    "torch.backends.cudnn.benchmark = False",
    "torch.backends.cudnn.deterministic = False",
    "torch.backends.cudnn.enabled = True",
    "torch.backends.cudnn.enabled = False",
    "torch.backends.cudnn.enabled = args.cudnn",
    "class Net:\n    def f(self): self.conv = torch.nn.Conv2d(1, 1, 3)\n"
    "torch.backends.cudnn.allow_tf32 = True",
    "torch.backends.cuda.matmul.allow_tf32 = False",
    "class Model:\n    pass\ntorch.backends.cudnn.allow_tf32 = True\nmodel = Model()",
    "from torch.backends import cudnn\ncudnn.benchmark, cudnn.enabled = False, True",
    # asked for in the way that counts on the NPU too
    "def seed(n):\n    torch.use_deterministic_algorithms(True)\n"
    "    torch.backends.cudnn.deterministic = True",
    # a block of switches for CUDA alone
    "if ⟦NPU101:torch.cuda.is_available⟧():\n"
    "    ⟦NPU402:torch.backends.cuda.matmul.allow_tf32⟧ = True\n"
    "    torch.backends.cudnn.benchmark = True",
    "if ⟦NPU101:torch.cuda.is_available⟧():\n"
    "    model.to(device)\n    ⟦NPU402:torch.backends.cudnn.benchmark⟧ = True",
    # a question of which both answers are provided for
    "def f(x):\n    last = x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last)\n"
    "    return x.permute(0, 2, 3, 1) if last else x",
    # a flag made from the device type
    "def f(x, device_type):\n    fits = device_type == ⟦NPU111:'cuda'⟧ or old\n"
    "    return x.to(memory_format=torch.channels_last if fits else torch.contiguous_format)",
    # where only GPUs with TF32 come
    "class State:\n    def restore(self):\n        torch.backends.cudnn.benchmark = self.saved",
    "import os\ndef seed():\n    os.environ['HCCL_DETERMINISTIC'] = 'true'\n"
    "    torch.backends.cudnn.deterministic = True\n    torch.backends.cudnn.benchmark = False",
    "def undo():\n    torch.use_deterministic_algorithms(False)\n"
    "    torch.backends.cudnn.deterministic = False",
    # a switch that is asked or carried along, and not set
    "state = State(benchmark=torch.backends.cudnn.benchmark)",
    "flags = [torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic]",
    "if torch.backends.cudnn.enabled: pass",
    "if ready and not torch.backends.cudnn.enabled: pass",
    "log(f'{torch.backends.cudnn.allow_tf32=}')",
    # a branch of CUDA, an operator of its kernels, a way of CUDA beside another
    "x = x.to(memory_format=torch.contiguous_format)",
    "x = x.contiguous()",
    "x = x.clone(memory_format=torch.preserve_format)",
    "x = x.to(memory_format=fmt)",
    "x = x.to(memory_format=args.memory_format)",
    "x = torch.empty_like(y, memory_format=torch.legacy_contiguous_format)",
    "x = x.contiguous(memory_format=y.suggest_memory_format())",
    "ok = x.is_contiguous()",
    "ok = x.is_contiguous(memory_format=fmt)",
    "def f(x, memory_format: torch.memory_format): return x.to(memory_format=memory_format)",
    # asked about, listed
    "if fmt == torch.channels_last: pass",
    "if fmt in (torch.channels_last, torch.channels_last_3d): pass",
    "if fmt is not torch.channels_last: pass",
    "formats = {'nhwc': torch.channels_last, 'nchw': torch.contiguous_format}",
    "names = {torch.channels_last: 'nhwc', torch.contiguous_format: 'nchw'}",
    "FORMATS = [torch.contiguous_format, torch.channels_last]",
    "FORMATS = {torch.contiguous_format, torch.channels_last}",
    # names and strings that look alike
    "x = norm(x, data_format='channels_last')",
    "if data_format not in ['channels_last', 'channels_first']: raise ValueError(data_format)",
    "parser.add_argument('--channels-last', action='store_true')",
    "if args.channels_last: pass",
    "channels_last = True",
    "def f(x, channels_last=False): return x",
    "from mine import channels_last\nx = x.to(memory_format=channels_last)",
    "class torch:\n    channels_last = 1\nx = torch.channels_last",
    "import tensorflow as tf\ntf.keras.backend.set_image_data_format('channels_last')",
    "class ChannelDimension:\n    LAST = 'channels_last'",
    # texts
    "'''torch.backends.cudnn.benchmark = True and x.to(memory_format=torch.channels_last)'''",
    "# torch.backends.cuda.matmul.allow_tf32 = True\nx = 1",
    "print('torch.backends.cudnn.benchmark')",
    "log.warning('set torch.channels_last')",
    # other backends
    "torch.backends.mkldnn.enabled = True",
    "torch.backends.mps.is_available()",
    "torch.backends.openmp.is_available()",
    "torch.backends.opt_einsum.enabled = False",
    "with torch.backends.cudnn.flags(enabled=False): pass",
    "import torch.backends.cudnn",
    "import torch.backends.cudnn as cudnn",
    "class cudnn: ...\ncudnn.benchmark = True",
    "from mine import backends\nbackends.cudnn.benchmark = True",
    "config.cudnn.benchmark = True",
    "config['cudnn_benchmark'] = True",
    "self.benchmark = True",
    "x.deterministic = True",
    # harmless, or right already
    "torch.set_float32_matmul_precision('highest')",
    "torch.set_float32_matmul_precision(precision)",
    "trainer.set_float32_matmul_precision('high')",
    "torch.get_float32_matmul_precision()",
    "torch.npu.matmul.allow_hf32 = True",
    "torch.npu.conv.allow_hf32 = False",
    "torch.use_deterministic_algorithms(True)",
    "import torch_npu\ntorch_npu.npu.set_compile_mode(jit_compile=False)",
    "if is_npu_available():\n    torch.npu.matmul.allow_hf32 = True\n"
    "elif torch.cuda.is_available():\n    torch.backends.cuda.matmul.allow_tf32 = True",
]


@pytest.mark.parametrize("snippet", FOUND)
def test_what_is_found(snippet: str) -> None:
    check("import torch\n" + snippet)


@pytest.mark.parametrize("snippet", NOT_FOUND)
def test_what_is_not_found(snippet: str) -> None:
    check("import torch\n" + snippet)


@pytest.mark.parametrize("snippet", FOUND)
def test_every_fix_alone_leaves_python(snippet: str) -> None:
    source, _ = unmarked("import torch\n" + snippet)
    for _, _, result in each_fix(source):
        ast.parse(result)
    for style in (NPU, AGNOSTIC, SHIM):
        assert parses(fixed(source, style))


def test_there_are_enough_of_both() -> None:
    assert min(len(FOUND), len(NOT_FOUND)) >= 40


@pytest.mark.parametrize("snippet", [s for s in FOUND if "NPU4" in s and "NPU105" not in s])
def test_the_runtime_shim_patches_none_of_it(snippet: str) -> None:
    check("import torch\n" + snippet, SHIM)


# Formats taken out, in safe fixes: only the order in memory changes.
FORMATS = [
    ("x.to(memory_format=torch.channels_last)", "x.to(memory_format=torch.contiguous_format)"),
    ("x.to(memory_format=th.channels_last_3d)", "x.to(memory_format=th.contiguous_format)"),
    ("x.to(device, memory_format=torch.channels_last)", "x.to(device)"),
    ("x.to(memory_format=torch.channels_last, dtype=d)", "x.to(dtype=d)"),
    ("x.to(d, memory_format=torch.channels_last, copy=True)", "x.to(d, copy=True)"),
    ("x.contiguous(memory_format=torch.channels_last)", "x.contiguous()"),
    ("x.contiguous(memory_format=torch.channels_last,)", "x.contiguous()"),
    ("x.clone( memory_format=torch.channels_last )", "x.clone()"),
    ("torch.empty(1, 2, memory_format=torch.channels_last)", "torch.empty(1, 2)"),
    ("torch.empty_like(x, memory_format=torch.channels_last_3d)", "torch.empty_like(x)"),
    (
        "x.to(\n    device,\n    memory_format=torch.channels_last,\n)",
        "x.to(\n    device,\n)",
    ),
    (
        "x.to(device,  # there\n    memory_format=torch.channels_last)",
        "x.to(device,  # there\n    memory_format=torch.contiguous_format)",
    ),
    (
        "x.to(device, memory_format=(torch.channels_last))",
        "x.to(device)",
    ),
]


@pytest.mark.parametrize(("before", "after"), FORMATS)
def test_formats_are_taken_out(before: str, after: str) -> None:
    head = "import torch\nimport torch as th\n"
    assert fixed(f"{head}x = {before}\n", NPU, Applicability.SAFE) == f"{head}x = {after}\n"


# Formats chosen at run time: perhaps for other devices too, so the fix has to be read.
CHOSEN = [
    (
        "x.to(memory_format=usual if a else torch.channels_last)",
        "x.to(memory_format=torch.contiguous_format)",
    ),
    (
        "x.to(memory_format=torch.channels_last if a else torch.contiguous_format)",
        "x.to(memory_format=torch.contiguous_format)",
    ),
    (
        "x.to(d, memory_format=torch.contiguous_format if a else torch.channels_last)",
        "x.to(d)",
    ),
    (
        "x.to(d, memory_format=torch.channels_last if f() else torch.contiguous_format)",
        "x.to(d, memory_format=torch.contiguous_format if f() else torch.contiguous_format)",
    ),
]


@pytest.mark.parametrize(("before", "after"), CHOSEN)
def test_a_choice_of_formats_has_to_be_read(before: str, after: str) -> None:
    head = "import torch\nusual = torch.contiguous_format\n"
    assert fixed(f"{head}x = {before}\n") == f"{head}x = {after}\n"
    assert fixed(f"{head}x = {before}\n", NPU, Applicability.SAFE) == f"{head}x = {before}\n"


def test_a_function_of_ones_own_may_need_the_argument() -> None:
    source = "import torch\nx = convert(x, memory_format=torch.channels_last)\n"
    assert fixed(source, NPU, Applicability.SAFE) == source
    assert fixed(source) == source.replace("channels_last", "contiguous_format")


def test_code_for_gpus_too_keeps_the_format_that_they_gain_by() -> None:
    source = "import torch\nx = x.contiguous(memory_format=torch.channels_last)\n"
    assert fixed(source, AGNOSTIC) == source


# Switches, below `import torch`.
SWITCHES = [
    ("torch.backends.cuda.matmul.allow_tf32 = on", "torch.npu.matmul.allow_hf32 = on"),
    ("torch.backends.cudnn.allow_tf32 = False", "torch.npu.conv.allow_hf32 = False"),
    (
        "torch.backends.cuda.matmul.fp32_precision = 'tf32'",
        "torch.npu.matmul.allow_hf32 = True",
    ),
    ("torch.backends.cudnn.conv.fp32_precision = 'ieee'", "torch.npu.conv.allow_hf32 = False"),
    ("torch.set_float32_matmul_precision('high')", "torch.npu.matmul.allow_hf32 = True"),
]


@pytest.mark.parametrize(("before", "after"), SWITCHES)
def test_hf32_for_tf32_has_to_be_read(before: str, after: str) -> None:
    source = f"import torch\n{before}\n"
    assert fixed(source) == f"import torch\nimport torch_npu  # noqa: F401\n{after}\n"
    assert fixed(source, NPU, Applicability.SAFE) == source


def test_determinism_of_cudnn_is_not_that_of_all_operators() -> None:
    """`use_deterministic_algorithms(True)` raises where the flag never did."""
    source = "import torch\ntorch.backends.cudnn.deterministic = True\n"
    (finding,) = findings(source)
    assert finding.fixes == ()
    assert finding.note is not None
    assert "warn_only=True" in finding.note.en
    assert "warn_only=True" in finding.note.zh


UNTOUCHED = [
    "torch.backends.cudnn.benchmark = True",
    "torch.backends.cudnn.deterministic = True",
    "torch.backends.cudnn.deterministic = False",
    "torch.backends.cudnn.deterministic = args.deterministic",
    "torch.use_deterministic_algorithms(False)",
    "torch.use_deterministic_algorithms(True)\ntorch.backends.cudnn.deterministic = True",
    "ok = x.is_contiguous(memory_format=torch.channels_last)",
    "fmt = torch.channels_last",
    "torch.backends.cuda.matmul.fp32_precision = precision",
    "torch.backends.fp32_precision = 'tf32'",
    "ok = torch.set_float32_matmul_precision('high')",
]


@pytest.mark.parametrize("snippet", UNTOUCHED)
def test_what_has_no_fix(snippet: str) -> None:
    source = f"import torch\n{snippet}\n"
    assert fixed(source) == source


SEVERITIES = [
    ("torch.backends.cudnn.benchmark = True", Severity.INFO),
    ("old = torch.backends.cudnn.benchmark", Severity.HINT),
    ("torch.backends.cudnn.deterministic = True", Severity.WARNING),
    ("torch.backends.cudnn.deterministic = args.deterministic", Severity.WARNING),
    ("torch.backends.cuda.matmul.allow_tf32 = True", Severity.INFO),
    ("torch.backends.cuda.enable_flash_sdp(True)", Severity.HINT),
    ("with torch.backends.cuda.sdp_kernel(): pass", Severity.INFO),
    ("torch.set_float32_matmul_precision('high')", Severity.INFO),
    ("ok = x.is_contiguous(memory_format=torch.channels_last)", Severity.INFO),
    ("x = x.contiguous(memory_format=torch.channels_last)", Severity.WARNING),
]


@pytest.mark.parametrize(("snippet", "severity"), SEVERITIES)
def test_a_harmless_switch_does_not_nag(snippet: str, severity: Severity) -> None:
    assert [f.effective_severity for f in findings(f"import torch\n{snippet}\n")] == [severity]


def test_cudnn_beside_deterministic_algorithms_is_a_hint() -> None:
    source = "torch.use_deterministic_algorithms(True)\ntorch.backends.cudnn.deterministic = True\n"
    assert [f.effective_severity for f in findings("import torch\n" + source)] == [Severity.HINT]


def test_tuning_by_trial_is_told_of_once() -> None:
    source = "import torch\ntorch.backends.cudnn.benchmark = True\n"
    assert len(findings(source + "def f():\n    torch.backends.cudnn.benchmark = True\n")) == 1
