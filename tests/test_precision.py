"""Mixed precision, double precision, determinism: what is found, what is not, what it becomes."""

import ast

import pytest

from helpers import (
    AGNOSTIC,
    CATALOGUE,
    NPU,
    SHIM,
    check,
    code,
    each_fix,
    findings,
    fixed,
    parses,
    unmarked,
)
from npulens.catalog.model import Applicability, Severity

SHARDED = "from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler\n"

FOUND = [
    # torch.cuda.amp by any name
    "with ⟦NPU301:torch.cuda.amp.autocast⟧(): pass",
    "with ⟦NPU301:torch.cuda.amp.autocast⟧(enabled=False): pass",
    "@⟦NPU301:torch.cuda.amp.autocast⟧()\ndef f(x): return x",
    "from torch.cuda.amp import ⟦NPU301:autocast⟧, ⟦NPU301:GradScaler⟧\nscaler = GradScaler()",
    "from torch.cuda import ⟦NPU301:amp⟧\nwith ⟦NPU301:amp.autocast⟧(): pass",
    "import ⟦NPU301:torch.cuda.amp as amp⟧\nwith ⟦NPU301:amp.autocast⟧(): pass",
    "cast = ⟦NPU301:torch.cuda.amp.autocast⟧",
    "from torch.cuda.amp import ⟦NPU301:custom_fwd⟧, ⟦NPU301:custom_bwd⟧",
    "@⟦NPU301:torch.cuda.amp.custom_fwd⟧(cast_inputs=torch.float16)\ndef f(ctx, x): return x",
    "from torch.cuda.amp.grad_scaler import ⟦NPU301:GradScaler⟧",
    "from torch.cuda.amp.autocast_mode import ⟦NPU301:autocast⟧",
    "scaler = ⟦NPU301:torch.cuda.amp.GradScaler⟧(1024.0)",
    # autocast of a device type
    "with torch.autocast(⟦NPU302:'cuda'⟧): pass",
    "with torch.autocast(device_type=⟦NPU302:'cuda'⟧, dtype=torch.bfloat16): pass",
    "with torch.amp.autocast(⟦NPU302:'cuda'⟧, enabled=False): pass",
    "@torch.autocast(⟦NPU302:'cuda'⟧)\ndef f(x): return x",
    "from torch import autocast\nwith autocast(⟦NPU302:'cuda'⟧): pass",
    "from torch.amp import autocast\nwith autocast(device_type=⟦NPU302:'cuda'⟧): pass",
    "with torch.autocast(⟦NPU302:'cuda'⟧ if ok else 'cpu'): pass",
    "context = torch.autocast(⟦NPU302:'cuda'⟧)\nwith context: pass",
    "device_type = ⟦NPU110:'cuda'⟧\nwith torch.autocast(device_type): pass",
    "@torch.amp.custom_fwd(device_type=⟦NPU302:'cuda'⟧)\ndef f(ctx, x): return x",
    "dtype = torch.get_autocast_dtype(⟦NPU302:'cuda'⟧)",
    "dtype = ⟦NPU302:torch.get_autocast_gpu_dtype⟧()",
    "on = torch.is_autocast_enabled(⟦NPU302:'cuda'⟧)",
    "on = ⟦NPU302:torch.is_autocast_enabled⟧()",
    "if ⟦NPU302:torch.is_autocast_enabled⟧() and x.shape[1] % 2 == 0:\n    x = x.half()",
    "ok = torch.amp.is_autocast_available(⟦NPU302:'cuda'⟧)",
    # torch.amp.GradScaler
    "scaler = ⟦NPU303:torch.amp.GradScaler⟧()",
    f"{SHARDED}scaler = ⟦NPU303:ShardedGradScaler⟧()",
    f"{SHARDED}scaler = ⟦NPU303:ShardedGradScaler⟧(enabled=on)",
    f"{SHARDED}scaler = ShardedGradScaler(⟦NPU303:'cuda'⟧)",
    f"{SHARDED}scaler = ShardedGradScaler(device='npu')\nother = ShardedGradScaler(**options)",
    "scaler = ⟦NPU303:torch.amp.GradScaler⟧('cuda')",
    "scaler = ⟦NPU303:torch.amp.GradScaler⟧(device='cuda', enabled=on)",
    "scaler = ⟦NPU303:torch.amp.GradScaler⟧(enabled=on)",
    "from torch.amp import ⟦NPU303:GradScaler⟧\nscaler = ⟦NPU303:GradScaler⟧()",
    # positional `enabled`
    "def f():\n    make = ⟦NPU303:torch.amp.GradScaler⟧\n    return ⟦NPU303:make⟧('cuda')",
    "class T:\n    make = ⟦NPU303:torch.amp.GradScaler⟧\n"
    "    def f(self):\n        return ⟦NPU303:self.make⟧()",
    "class T:\n    def __init__(self):\n        self.make = ⟦NPU303:torch.amp.GradScaler⟧\n"
    "        self.scaler = ⟦NPU303:self.make⟧('cuda')",
    "s = ⟦NPU301:torch.cuda.amp.GradScaler⟧(1.0, 2.0, 0.5, 9, ⟦NPU305:False⟧)",
    "from torch.cuda.amp import ⟦NPU301:GradScaler⟧\ns = GradScaler(1.0, 2.0, 0.5, 9, ⟦NPU305:on⟧)",
    # a type and a scaler, asked and used; a branch whose device is chosen here
    "from torch.amp import ⟦NPU303:GradScaler⟧\ndef f(s: GradScaler): ...\n"
    "f(⟦NPU303:GradScaler⟧())",
    "from torch.cuda.amp import ⟦NPU301:GradScaler⟧\ndef f(s: GradScaler): ...\nf(GradScaler())",
    "if ⟦NPU101:torch.cuda.is_available⟧():\n    with torch.autocast(⟦NPU302:'cuda'⟧): pass",
    "device = torch.device(⟦NPU110:'cuda'⟧)\nif device.type == ⟦NPU111:'cuda'⟧:\n"
    "    with torch.autocast(⟦NPU302:'cuda'⟧): pass",
    "def run(f):\n    import ⟦NPU602:flash_attn⟧\n    with torch.autocast(⟦NPU302:'cuda'⟧): f()",
    # apex
    "from apex import amp\nm, o = ⟦NPU304:amp.initialize⟧(m, o, opt_level='O2')",
    "from apex import amp\nwith ⟦NPU304:amp.scale_loss⟧(loss, o) as s:\n    s.backward()",
    "import apex\nm = ⟦NPU304:apex.amp.initialize⟧(m)",
    "from apex import amp as a\nnorm(⟦NPU304:a.master_params⟧(o), 1.0)",
    "from apex import amp\nif not has_apex:\n    raise ImportError\nelse:\n"
    "    m, o = ⟦NPU304:amp.initialize⟧(m, o)",
    "def f(m, o):\n    from apex import amp\n    return ⟦NPU304:amp.initialize⟧(m, o)",
    "from apex import amp\nsave({'amp': ⟦NPU304:amp.state_dict⟧()})",
    "import apex.amp as amp\n⟦NPU304:amp.load_state_dict⟧(state)",
    # double precision on the device
    "x = x.⟦NPU105:cuda⟧().⟦NPU306:double⟧()",
    "x = x.⟦NPU306:double⟧().⟦NPU105:cuda⟧()",
    "x = x.npu().⟦NPU306:double⟧()",
    "def f():\n    x = torch.rand(2).npu() * 2\n    return g(x.⟦NPU306:double⟧())",
    "x = x.⟦NPU306:double⟧().to('npu')",
    "x = x.to('npu').to(⟦NPU306:torch.float64⟧)",
    "x = x.type(⟦NPU306:torch.float64⟧).npu()",
    "x = x.to(⟦NPU110:'cuda'⟧, ⟦NPU306:torch.float64⟧)",
    "x = x.to(device='npu:0', dtype=⟦NPU306:torch.double⟧)",
    "x = torch.zeros(3, dtype=⟦NPU306:torch.float64⟧, device='npu')",
    "x = torch.randn(3, device=torch.device('npu', 0), dtype=⟦NPU306:torch.double⟧)",
    "d = 'npu' if ok else 'cpu'\nx = torch.ones(3, device=d, dtype=⟦NPU306:torch.float64⟧)",
    "torch.set_default_dtype(⟦NPU306:torch.float64⟧)\nx = torch.ones(3).npu()",
    "torch.set_default_tensor_type(⟦NPU306:torch.DoubleTensor⟧)\nx = torch.ones(3).npu()",
    "torch.set_default_tensor_type(⟦NPU306:'torch.DoubleTensor'⟧)\nx = torch.ones(3).npu()",
    "x = torch.zeros(3, dtype=⟦NPU306:torch.float64⟧ if a else torch.float32, device='npu')",
    "x = x.to('npu', torch.float32 if a else ⟦NPU306:torch.double⟧)",
    "x = torch.zeros(3, dtype=⟦NPU306:torch.float64⟧).npu()",
    "x = torch.arange(3, dtype=⟦NPU306:torch.float64⟧ if a else None).to('npu')",
    # determinism
    "⟦NPU307:torch.use_deterministic_algorithms⟧(True)\n"
    "torch.distributed.init_process_group('hccl')",
    "from torch.nn.parallel import DistributedDataParallel as DDP\nmodel = DDP(model)\n"
    "⟦NPU307:torch.use_deterministic_algorithms⟧(True)",
    "from torch.distributed import init_process_group\ninit_process_group('hccl')\n"
    "⟦NPU307:torch.use_deterministic_algorithms⟧(mode=True, warn_only=True)",
    # no mixed precision
    "model.npu()\nfor x in loader:\n    loss = model(x)\n    ⟦NPU308:loss.backward()⟧\n"
    "    optimizer.step()",
    "def main():\n    model.npu()\n    for e in range(3):\n        for x in loader:\n"
    "            loss = model(x)\n            ⟦NPU308:loss.backward()⟧\n            opt.step()\n"
    "if __name__ == '__main__':\n    main()",
    "model.npu()\nfor x in a:\n    loss = model(torch.nn.utils.rnn.pad_sequence(x))\n"
    "    ⟦NPU308:loss.backward()⟧\n    opt.step()",
    "torch.accelerator.set_device_index(0)\nm.to(torch.accelerator.current_accelerator())\n"
    "for x in a:\n    loss = m(x)\n    ⟦NPU308:loss.backward()⟧\n    opt.step()",
    "m.npu()\nfor x in a:\n    ⟦NPU308:loss.backward()⟧\n    opt.step()\n"
    "for x in b:\n    loss.backward()\n    opt.step()",
    # places that names alone had hidden
    "def heuristic():\n"
    "    dtype = ⟦NPU302:torch.get_autocast_gpu_dtype⟧()\n"
    "    release = tuple(map(int, ⟦NPU112:torch.version.cuda⟧.split('.')))\n"
    "    return 0 if release >= (11, 8) or dtype == torch.float16 else 1",
    "def cast(x, device_type):\n"
    "    if device_type == ⟦NPU111:'cuda'⟧:\n"
    "        return x.to(⟦NPU302:torch.get_autocast_gpu_dtype⟧())\n"
    "    return x",
    "def run(f):\n"
    "    with torch.autocast(⟦NPU302:'cuda'⟧):\n"
    "        f()\n"
    "    import ⟦NPU602:transformer_engine.pytorch as te⟧",
    "from project.cuda_ext import gather\n"
    "class Gather:\n"
    "    @⟦NPU301:torch.cuda.amp.custom_fwd⟧\n"
    "    def forward(ctx, x): return gather.run(x)",
    "import project._C as kernels\n@⟦NPU301:torch.cuda.amp.custom_fwd⟧\ndef f(ctx, x): ...",
    "if new:\n"
    "    from project.cuda_ext import a as k\n"
    "else:\n"
    "    from project.cuda_ext import b as k\n"
    "@⟦NPU301:torch.cuda.amp.custom_bwd⟧\n"
    "def f(ctx, x): ...",
    "from apex import amp\nif self.use_apex:\n    m, o = ⟦NPU304:amp.initialize⟧(m, o)",
    "from apex import amp\nif is_apex_available():\n    save(⟦NPU304:amp.state_dict⟧())",
]

NOT_FOUND = [
    "def f(s):\n    s.x = torch.rand(2).npu()\n    for x in s.all:\n        g(x.double())",
    "def f(y):\n    x = torch.rand(2).npu()\n    x = y.mean()\n    return g(x.double())",
    # the type only chooses a heuristic of a CUDA library
    # what is optimised is no model
    "code = torch.zeros(8).npu()\nopt = torch.optim.Adam([code])\nfor x in a:\n"
    "    loss = far(code)\n    loss.backward()\n    opt.step()",
    # a scaler that never scales
    "s = torch.cuda.amp.GradScaler(enabled=False)",
    # recurrent layers
    "class Tagger:\n    lstm = torch.nn.LSTM(1, 1)\nmodel.npu()\nfor x in a:\n"
    "    loss = model(x)\n    loss.backward()\n    opt.step()",
    # types, an import that calls with a device of the caller tell nothing of
    "def save(scaler: torch.amp.GradScaler | None = None): ...",
    "def save(scaler: torch.cuda.amp.GradScaler): ...",
    "class Run:\n    scaler: torch.amp.GradScaler",
    "from torch.amp import GradScaler\ndef save(scaler: GradScaler): ...",
    "from torch.cuda.amp import GradScaler as S\ndef save(scaler: S | None) -> S: ...",
    "def make(**options):\n    from torch.amp.grad_scaler import GradScaler\n"
    "    return GradScaler(**options)",
    # is PyTorch new enough
    "if getattr(torch.cuda.amp, 'autocast') is not None:\n    has_amp = True",
    # branches of CUDA, what is made of its kernels and libraries
    "def run(f):\n    if ⟦NPU112:torch.version.cuda⟧ is not None:\n"
    "        with torch.autocast('cuda'):\n            f()",
    "def run(f):\n    if n > 1 and ⟦NPU112:torch.version.cuda⟧:\n"
    "        with torch.autocast('cuda'):\n            f()",
    # ported
    "import torch_npu  # noqa: F401\nwith torch.npu.amp.autocast(): pass",
    "from torch_npu.npu.amp import GradScaler\ns = GradScaler(1.0, 2.0, 0.5, 9, True, enabled=on)",
    "s = torch.npu.amp.GradScaler(1.0, 2.0, 0.5, 9, False)",
    "with torch.autocast('npu'): pass",
    "s = torch.amp.GradScaler('npu')",
    "s = torch.amp.GradScaler(device='npu')",
    "@torch.amp.custom_fwd(device_type='npu')\ndef f(ctx, x): return x",
    # device-agnostic
    "with torch.autocast(device.type): pass",
    "with torch.autocast(device_type=x.device.type, enabled=False): pass",
    "s = torch.amp.GradScaler(device)",
    "s = torch.amp.GradScaler(device=device.type)",
    "s = torch.amp.GradScaler(torch.accelerator.current_accelerator().type)",
    "s = torch.amp.GradScaler(**options)",
    "s = torch.amp.GradScaler(*options)",
    # other devices
    "with torch.autocast('cpu', dtype=torch.bfloat16): pass",
    "with torch.cpu.amp.autocast(): pass",
    "s = torch.amp.GradScaler('cpu')",
    # names that look alike
    "class autocast: ...\nwith autocast(): pass",
    "from mine.amp import autocast, GradScaler\nwith autocast(): s = GradScaler()",
    "from mine import amp\nm, o = amp.initialize(m, o, opt_level='O1')",
    "amp.initialize(m, o)",
    "class amp:\n    @staticmethod\n    def scale_loss(x, o): ...\namp.scale_loss(loss, o)",
    "model.load_state_dict(model.state_dict())",
    # texts
    "'''Uses torch.cuda.amp.autocast() and apex.amp.initialize.'''",
    "# torch.cuda.amp.GradScaler()\nx = 1",
    "print('apex.amp.initialize')",
    "log.info('torch.cuda.amp')",
    # fallbacks for old releases of torch
    "dtype = (torch.get_autocast_dtype(kind) if hasattr(torch, 'get_autocast_dtype')\n"
    "    else torch.get_autocast_gpu_dtype())",
    "on = (torch.is_autocast_enabled(kind) if TORCH_GREATER_EQUAL_2_4\n"
    "    else torch.is_autocast_enabled())",
    "try:\n    on = torch.is_autocast_enabled(kind)\nexcept TypeError:\n"
    "    on = torch.is_autocast_enabled()",
    "on = torch.is_autocast_enabled(x.device.type)",
    "original = torch.is_autocast_enabled",
    "s = torch.amp.GradScaler(d) if TORCH_GREATER_EQUAL_2_4 else torch.cuda.amp.GradScaler()",
    "try:\n    s = torch.amp.GradScaler(device=d)\nexcept TypeError:\n"
    "    s = torch.cuda.amp.GradScaler()",
    "if version >= (2, 4):\n    cast = torch.amp.autocast(kind)\nelse:\n"
    "    cast = torch.cuda.amp.autocast()",
    "try:\n    if version():\n        cast = torch.amp.autocast\n    else:\n"
    "        cast = None\nexcept AttributeError:\n    cast = torch.cuda.amp.autocast",
    # apex where there is another way
    # doubles on the CPU, or who knows where
    "x = torch.tensor(values, dtype=torch.float64)",
    "x = x.double()",
    "x = x.to(torch.float64)",
    "x = x.double().cpu()",
    "x = torch.zeros(3, dtype=torch.float64, device='cpu')",
    "x = torch.zeros(3, dtype=torch.float32, device='npu')",
    "x = x.npu().float()",
    "x = x.npu().half().sum()",
    "x = shape.double(3).to('npu')",
    "torch.set_default_dtype(torch.float64)",
    "torch.set_default_tensor_type(torch.DoubleTensor)",
    "x = numpy.zeros(3, dtype=torch.float64).npu()",
    "x = torch.zeros(3, dtype=torch.float64 if a else torch.float32)",
    "torch.set_default_dtype(torch.float64)\ninputs = f(input())",
    "x = x.npu().to(torch.float32)",
    "x = x.npu().type(kind)",
    "torch.set_default_dtype(torch.float32)\nx.npu()",
    "x = numpy.zeros(3, dtype=numpy.float64)",
    # determinism
    "torch.use_deterministic_algorithms(True)",
    "torch.use_deterministic_algorithms(False)\ntorch.distributed.init_process_group('hccl')",
    "import os\nos.environ['HCCL_DETERMINISTIC'] = 'true'\n"
    "torch.use_deterministic_algorithms(True)\ntorch.distributed.init_process_group('hccl')",
    "from torch.nn.parallel import DistributedDataParallel\n"
    "torch.use_deterministic_algorithms(True)",
    "torch.use_deterministic_algorithms(on)\ntorch.distributed.init_process_group('hccl')",
    # training loops with precision, without a device, in libraries
    "for x in loader:\n    loss = model(x)\n    loss.backward()\n    optimizer.step()",
    "for inputs in loader:\n    loss = model(inputs)\n    loss.backward()\n    optimizer.step()",
    "model.npu().half()\nfor x in loader:\n    loss.backward()\n    optimizer.step()",
    "model.npu()\nfor x in loader:\n    with torch.autocast('npu'):\n        loss = model(x)\n"
    "    loss.backward()\n    optimizer.step()",
    "from accelerate import Accelerator\nx.npu()\nfor x in a:\n    loss.backward()\n    opt.step()",
    "import deepspeed\nx.npu()\nfor x in a:\n    loss.backward()\n    opt.step()",
    "def train(model, opt):\n    model.npu()\n    for x in a:\n        loss.backward()\n"
    "        opt.step()",
    "class Engine:\n    def fit(self):\n        self.m.npu()\n        for x in a:\n"
    "            loss.backward()\n            opt.step()\nif __name__ == '__main__':\n    pass",
    "x.npu()\nfor x in a:\n    loss.backward()",
    "x.npu()\nfor x in a:\n    engine.backward(loss)\n    engine.step()",
    "x.npu()\nfor x in a:\n    opt.step()\n    scheduler.step()",
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


# What it becomes, below `import torch` and `import torch_npu`.
FIXED = [
    ("s = torch.cuda.amp.GradScaler()", "s = torch.npu.amp.GradScaler()"),
    (
        "s = torch.cuda.amp.GradScaler(1.0, 2.0, 0.5, 9, False)",
        "s = torch.npu.amp.GradScaler(1.0, 2.0, 0.5, 9, enabled=False)",
    ),
    ("s = torch.amp.GradScaler()", "s = torch.npu.amp.GradScaler()"),
    ("s = torch.amp.GradScaler('cuda')", "s = torch.npu.amp.GradScaler()"),
    ("s = torch.amp.GradScaler(device='cuda')", "s = torch.npu.amp.GradScaler()"),
    ("s = torch.amp.GradScaler('cuda', 9.0)", "s = torch.npu.amp.GradScaler(9.0)"),
    (
        "s = torch.amp.GradScaler('cuda', 1.0, 2.0, 0.5, 9, False)",
        "s = torch.npu.amp.GradScaler(1.0, 2.0, 0.5, 9, enabled=False)",
    ),
    (
        "s = torch.amp.GradScaler(enabled=on, device='cuda')",
        "s = torch.npu.amp.GradScaler(enabled=on)",
    ),
    (
        "s = torch.amp.GradScaler(\n    device='cuda',\n    enabled=on,\n)",
        "s = torch.npu.amp.GradScaler(\n    enabled=on,\n)",
    ),
    ("with torch.autocast('cuda'): pass", "with torch.autocast('npu'): pass"),
    ("with torch.cuda.amp.autocast(True): pass", "with torch.npu.amp.autocast(True): pass"),
    (
        "@torch.cuda.amp.custom_fwd\ndef f(ctx, x): return x",
        "@torch.npu.amp.custom_fwd\ndef f(ctx, x): return x",
    ),
]


@pytest.mark.parametrize(("before", "after"), FIXED)
def test_safe_fixes_for_the_npu(before: str, after: str) -> None:
    result = fixed(f"import torch\n{before}\n", NPU, Applicability.SAFE)
    assert result == f"import torch\nimport torch_npu  # noqa: F401\n{after}\n"


CHOSEN = (
    'device = torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")'
)
KIND, ON = "device.type", 'device.type != "cpu"'
AGNOSTIC_FIXES = [
    (
        "with torch.cuda.amp.autocast(): pass",
        f"with torch.amp.autocast(device_type={KIND}, enabled={ON}): pass",
    ),
    (
        "with torch.cuda.amp.autocast(on, torch.bfloat16): pass",
        f"with torch.amp.autocast(device_type={KIND}, enabled=on and {ON}, dtype=torch.bfloat16):"
        " pass",
    ),
    (
        "with torch.cuda.amp.autocast(enabled=a or b): pass",
        f"with torch.amp.autocast(device_type={KIND}, enabled=(a or b) and {ON}): pass",
    ),
    (
        "with torch.cuda.amp.autocast(enabled=False): pass",
        f"with torch.amp.autocast(device_type={KIND}, enabled=False): pass",
    ),
    (
        "s = torch.cuda.amp.GradScaler(9.0)",
        f"s = torch.amp.GradScaler({KIND}, 9.0, enabled={ON})",
    ),
    ("s = torch.amp.GradScaler()", f"s = torch.amp.GradScaler({KIND}, enabled={ON})"),
    (
        "s = torch.amp.GradScaler('cuda', 9.0)",
        f"s = torch.amp.GradScaler({KIND}, 9.0, enabled={ON})",
    ),
    (
        "s = torch.amp.GradScaler(device='cuda')",
        f"s = torch.amp.GradScaler(device={KIND}, enabled={ON})",
    ),
    (
        "@torch.cuda.amp.custom_fwd(cast_inputs=torch.float16)\ndef f(ctx, x): return x",
        f"@torch.amp.custom_fwd(device_type={KIND}, cast_inputs=torch.float16)\n"
        "def f(ctx, x): return x",
    ),
    ("with torch.autocast('cuda'): pass", f"with torch.autocast({KIND}, enabled={ON}): pass"),
    (
        "@torch.cuda.amp.custom_bwd\ndef f(ctx, x): return x",
        f"@torch.amp.custom_bwd(device_type={KIND})\ndef f(ctx, x): return x",
    ),
    ("dtype = torch.get_autocast_gpu_dtype()", f"dtype = torch.get_autocast_dtype({KIND})"),
    ("torch.set_autocast_gpu_dtype(dtype)", f"torch.set_autocast_dtype({KIND}, dtype)"),
]


@pytest.mark.parametrize(("before", "after"), AGNOSTIC_FIXES)
def test_device_agnostic_fixes(before: str, after: str) -> None:
    written = fixed(f"import torch\n{before}\n", AGNOSTIC)
    assert written == f"import torch\n\n{CHOSEN}\n{after}\n"


def test_what_was_imported_by_name_is_called_in_full() -> None:
    before = "from torch.amp import GradScaler\n\nscaler = GradScaler('cuda')\n"
    after = "import torch_npu\n\nscaler = torch_npu.npu.amp.GradScaler()\n"
    assert fixed(before) == after


def test_the_fifth_argument_is_named_where_only_the_import_changes() -> None:
    before = "from torch.cuda.amp import GradScaler\n\ns = GradScaler(1.0, 2.0, 0.5, 9, on)\n"
    after = (
        "from torch_npu.npu.amp import GradScaler\n\ns = GradScaler(1.0, 2.0, 0.5, 9, enabled=on)\n"
    )
    assert fixed(before, NPU, Applicability.SAFE) == after


# With `transfer_to_npu` only what it does not patch is left.
SHIMMED = [
    "s = torch.cuda.amp.GradScaler()",
    "with torch.cuda.amp.autocast(): pass",
    "with torch.autocast('cuda'): pass",
    "with torch.amp.autocast('cuda'): pass",
    "from torch.cuda.amp import autocast, GradScaler",
    "s = ⟦NPU303:torch.amp.GradScaler⟧()",
    "s = ⟦NPU303:torch.amp.GradScaler⟧('cuda')",
    "s = torch.cuda.amp.GradScaler(1.0, 2.0, 0.5, 9, ⟦NPU305:False⟧)",
    "@torch.amp.custom_fwd(device_type=⟦NPU302:'cuda'⟧)\ndef f(ctx, x): return x",
    "from apex import amp\nm, o = ⟦NPU304:amp.initialize⟧(m, o)",
    "x = x.cuda().⟦NPU306:double⟧()",
]


@pytest.mark.parametrize("snippet", SHIMMED)
def test_with_the_runtime_shim(snippet: str) -> None:
    check("import torch\n" + snippet, SHIM)


def test_severities() -> None:
    found = findings("from torch.amp import GradScaler\ns = GradScaler()\n")
    assert [f.effective_severity for f in found] == [Severity.HINT, Severity.WARNING]


# apex.

APEX = code("""
    import torch
    from apex import amp

    def main(model, optimizer, loader):
        model, optimizer = amp.initialize(model, optimizer, opt_level="O1", verbosity=0)
        for images, labels in loader:
            images = images.npu()

            output = model(images)
            # the loss
            loss = criterion(
                output,
                labels,
            )
            optimizer.zero_grad()
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
            torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), 1.0)
            optimizer.step()
            print(loss.item())
        torch.save({"amp": amp.state_dict()}, "last.pt")
    """)
NATIVE = code("""
    import torch
    import torch_npu  # noqa: F401

    def main(model, optimizer, loader):
        scaler = torch.npu.amp.GradScaler()
        for images, labels in loader:
            images = images.npu()

            with torch.npu.amp.autocast():
                output = model(images)
                # the loss
                loss = criterion(
                    output,
                    labels,
                )
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            print(loss.item())
        torch.save({"amp": scaler.state_dict()}, "last.pt")
    """)


@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_apex_becomes_native_mixed_precision(newline: str) -> None:
    result = fixed(APEX.replace("\n", newline))
    assert result == NATIVE.replace("\n", newline)


def test_apex_is_repaired_once_for_the_whole_script() -> None:
    fixes = [fix for fix in each_fix(APEX) if fix[0] == "npu"]
    assert [(style, safety) for style, safety, _ in fixes] == [("npu", "unsafe")]
    assert fixed(APEX, NPU, Applicability.SAFE) == APEX


def test_the_level_of_apex_may_be_an_option() -> None:
    result = fixed(APEX.replace('opt_level="O1"', "opt_level=args.level, num_losses=1"))
    assert 'scaler = torch.npu.amp.GradScaler(enabled=args.level != "O0")' in result
    assert 'with torch.npu.amp.autocast(enabled=args.level != "O0"):' in result


def test_an_import_of_apex_that_refuses_to_go_on_without_goes() -> None:
    refusing = 'try:\n    from apex import amp\nexcept ImportError:\n    raise SystemExit("apex")\n'
    assert fixed(APEX.replace("from apex import amp\n", refusing)) == NATIVE


def test_each_optimizer_of_apex_needs_a_loss_and_one_step() -> None:
    example = next(r for r in CATALOGUE.rules.values() if r.code == "NPU304").examples[-1]
    assert example.after is not None
    for old, new in (
        ("critic_optimizer.step()", "if ready:\n            critic_optimizer.step()"),
        ("amp.scale_loss(made, maker_optimizer, loss_id=1) as", "nothing() as"),
    ):
        source = example.before.replace(old, new)
        assert source != example.before
        assert not any(f.fixes for f in findings(source) if f.rule.code == "NPU304")


OTHER_SHAPES = [
    ('opt_level="O1"', 'opt_level="O2"'),
    ('opt_level="O1"', "loss_scale=128.0"),
    ("verbosity=0)", "verbosity=0  # quiet\n    )"),
    ('opt_level="O1"', "opt_level=level()"),
    ("optimizer) as scaled_loss", "optimizer, loss_id=number) as scaled_loss"),
    ("model, optimizer = amp", "net, optimizer = amp"),
    ("model, optimizer = amp.initialize(model, optimizer,", "model = amp.initialize(model,"),
    ("optimizer) as scaled_loss", "[optimizer]) as scaled_loss"),
    ("optimizer) as scaled_loss", "optimizer, delay_unscale=True) as scaled_loss"),
    ("scaled_loss.backward()", "scaled_loss.backward(retain_graph=True)"),
    ("        optimizer.step()\n", "        if ready:\n            optimizer.step()\n"),
    ("output = model(images)", "output = compute(model, images)"),
    ("output = model(images)", 'output = model(images, """\n    text""")'),
    ("print(loss.item())", "scaler = 1"),
    ("print(loss.item())", "keep(amp)"),
    ("from apex import amp\n", "from apex import amp, optimizers\n"),
    ("def main(", "def main2():\n    from apex import amp\n\ndef main("),
    (
        "from apex import amp\n",
        "try:\n    from apex import amp\nexcept ImportError:\n    amp = None\n",
    ),
]


@pytest.mark.parametrize(("old", "new"), OTHER_SHAPES)
def test_apex_in_another_shape_is_left_to_a_person(old: str, new: str) -> None:
    source = APEX.replace(old, new)
    assert source != APEX
    found = [f for f in findings(source) if f.rule.code == "NPU304"]
    assert found
    assert not any(f.fixes for f in found)


def test_a_use_of_apex_in_another_function_holds_the_fix_back() -> None:
    source = APEX + "\ndef other(loss, o):\n    with amp.scale_loss(loss, o) as s:\n        pass\n"
    assert not any(f.fixes for f in findings(source) if f.rule.code == "NPU304")


# Where a tensor that is handed over may be on the NPU.
HANDED = [
    ("def rope(x, freqs):\n    return x[0].to(torch.float64)", True),
    ("def embed(position):\n    return position.type(torch.float64)", True),
    ("class Net(torch.nn.Module):\n    def forward(self, x):\n        return x.double()", True),
    ("def test(x):\n    return x.cdouble()", True),
    ("def grid(device):\n    return torch.ones(3, dtype=torch.float64, device=device)", True),
    ("def grid(x):\n    return wigner(3, dtype=torch.double, device=x.device)", True),
    ("def grid():\n    return torch.ones(3, dtype=torch.double, device='cpu')", False),
    ("def metric(x):\n    return x.cpu().double()", False),
    ("def metric(x):\n    return x.double().numpy()", False),
    ("def metric(x):\n    y = np.asarray(x)\n    return x.double()", False),
    ("def make():\n    x = torch.ones(3)\n    return x.to(torch.float64)", False),
    ("def run(x):\n    return x.to(torch.float32)", False),
]


@pytest.mark.parametrize(("text", "is_reported"), HANDED)
def test_double_precision_that_may_be_on_the_device_is_told_as_such(
    text: str, is_reported: bool
) -> None:
    found = findings("import torch\n" + text)
    told = [(f.rule.code, f.effective_severity.value) for f in found]
    assert told == ([("NPU306", "info")] if is_reported else [])
