"""What today's migration tool gets wrong, one row for each shape, under the peer study's own names.

FN: it says nothing. FP: it says something wrong. BR: it breaks the code. ND, SC: its answer depends
on chance, its cost explodes. RO: it refuses input. KEEP: it does this well, and so must we.

A row that `waits for` something fails today because that is not here yet.

Left out, because they are about other things than analysis and fixes:

| name | why |
| --- | --- |
| FP-03, FP-05, FN-12 in `.cc` | C++ sources; FN-12 has a row for a `.cu` file below |
| FN-15 | its run-time report; here `NPU8xx` will say it statically, see the row below |
| FP-04 | it guesses operators from the names in C++ files; rows below show such calls are silent |
| FP-14 | a wrong sum in its summary table; the count of our own summary is tested instead |
| BR-39 to BR-42, SC-02 | hooks put into a copy of the program; npulens runs nothing |
| UX-01, UX-03 | its option for CSV files, its resource file |
| UX-02, SEC-01 | trees that were converted: `test_peer_migration.py`, `test_migrate.py` |
| jedi, caches, result folders | npulens has none of them |
| a file of another user | cannot be made in a test; permissions are never asked for |
"""

import ast
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from helpers import bug, code, findings, fixed, marked, marks, unmarked
from npulens.cli.main import cli

HEAD = "import os\nimport torch\nimport torch.nn as nn\nimport torch.distributed as dist\n"


def case(name: str, *values: object) -> Any:
    """A row that passes."""
    return pytest.param(*values, id=name)


def waits(family: str, name: str, *values: object) -> Any:
    """A row for the rules of a family that are not here yet."""
    return bug(f"waits for {family}", *values)._replace(id=name)


# Findings. Each snippet stands behind HEAD; what is marked must be found.

MISSES = [
    case("FN-01-conditional", "W = ⟦NPU202:nn.DataParallel⟧ if a else DDP\nW(m)"),
    case("FN-01-table", "WRAP = {'d': ⟦NPU202:nn.DataParallel⟧}\nWRAP['d'](m)"),
    case("FN-01-isinstance", "isinstance(m, ⟦NPU202:nn.DataParallel⟧)"),
    case("FN-01-annotation", "def f(m: ⟦NPU202:nn.DataParallel⟧): ..."),
    case("FN-01-alias", "wrap = ⟦NPU202:nn.DataParallel⟧\nwrap(m)"),
    waits("NPU5xx", "FN-01-recurrent", "cls = ⟦NPU501:nn.GRU⟧\ncls(3, 3)"),
    case("FN-02-module", "from torch.nn import *\n⟦NPU202:DataParallel⟧(m)"),
    case("FN-02-cuda", "from torch.cuda import ⟦NPU101:*⟧\nsynchronize()"),
    case("FN-03-getattr", '⟦NPU202:getattr(nn, "DataParallel")⟧(m)'),
    case("FN-03-module", "c = ⟦NPU101:getattr(torch, 'cuda')⟧"),
    case(
        "FN-03-importlib",
        "import importlib\n⟦NPU501:importlib.import_module('torch').jit.script⟧(x)",
    ),
    case("FN-04-import", "from torch.nn.parallel import ⟦NPU202:DataParallel⟧\nDataParallel(m)"),
    case("FN-04-dotted", "⟦NPU202:torch.nn.parallel.DataParallel⟧(m)"),
    case("FN-06-to", "model.to(memory_format=⟦NPU401:torch.channels_last⟧)"),
    case("FN-06-contiguous", "x.contiguous(memory_format=⟦NPU401:torch.channels_last⟧)"),
    case("FN-06-name", "fmt = ⟦NPU401:torch.channels_last⟧"),
    case("FN-07-build", "⟦NPU112:torch.version.cuda⟧ is not None"),
    case("FN-07-visible", "os.environ[⟦NPU901:'CUDA_VISIBLE_DEVICES'⟧]"),
    case("FN-07-nccl", "os.environ[⟦NPU901:'NCCL_DEBUG'⟧] = 'INFO'"),
    case("FN-07-cudnn", "⟦NPU402:torch.backends.cudnn.benchmark_limit⟧ = 3"),
    case(
        "FN-09",
        "class A:\n    t = torch\n    def f(self, x):\n        ⟦NPU501:self.t.jit.script⟧(x)",
    ),
    case("FN-10", "from torch.nn import ⟦NPU202:DataParallel as DP⟧\nDP(m)"),
    # A call that breaks a rule is found in whatever stands around it.
    case(
        "FN-11-recursion",
        "def ping(n):\n    ⟦NPU101:torch.cuda.synchronize⟧()\n    pong(n)\n"
        "def pong(n):\n    ping(n - 1)\n    x.⟦NPU105:cuda⟧()",
    ),
    case(
        "FN-11-redefinition",
        "if a:\n    def f(): ⟦NPU101:torch.cuda.synchronize⟧()\n"
        "else:\n    def f(): ⟦NPU101:torch.cuda.empty_cache⟧()",
    ),
    case(
        "FN-11-inherited",
        "class Base:\n    def forward(self, x):\n        return x.⟦NPU105:cuda⟧()\n"
        "class Net(Base): ...\nclass Model:\n    def __init__(self): self.net = Net()\n"
        "    def forward(self, x): return self.net(x)",
    ),
    case("FN-11-decorated", "@decorate\ndef f(): ⟦NPU101:torch.cuda.synchronize⟧()"),
    case("FN-11-partial", "functools.partial(⟦NPU101:torch.cuda.synchronize⟧, 0)"),
    case("FN-11-map", "map(⟦NPU101:torch.cuda.set_device⟧, range(8))"),
    case("FN-11-module-level", "⟦NPU101:torch.cuda.synchronize⟧()"),
    case("FN-16-channels-last", "x.to(memory_format=⟦NPU401:torch.channels_last⟧)"),
    case("FN-16-graph", "⟦NPU102:torch.cuda.CUDAGraph⟧()"),
    case("FN-16-properties", "⟦NPU102:torch.cuda.get_device_properties⟧(0)"),
    case("FN-18-from-torch", "from torch import ⟦NPU101:cuda⟧\n⟦NPU101:cuda.manual_seed_all⟧(1)"),
    case("FN-18-formatted", "x.to(⟦NPU110:f'cuda'⟧)"),
    case("FN-18-available", "⟦NPU203:dist.is_nccl_available⟧()"),
    case("FN-18-backend", "⟦NPU201:dist.Backend.NCCL⟧"),
]


@pytest.mark.parametrize("snippet", MISSES)
def test_what_it_misses_is_found(snippet: str) -> None:
    source, expected = unmarked(f"{HEAD}{snippet}\n")
    assert expected, "nothing is marked"
    found = marks(source)
    assert set(expected) <= set(found), marked(source, found)


@pytest.mark.parametrize("snippet", [row for row in MISSES if not row.marks])
def test_what_it_misses_is_said_once(snippet: str) -> None:
    source, _ = unmarked(f"{HEAD}{snippet}\n")
    spans = [mark[:2] for mark in marks(source)]
    assert len(spans) == len(set(spans))


# Something of a family must be said, wherever its rules put it.
FAMILIES = [
    *(
        case(f"FN-05-{name.partition('.')[0]}", f"import {name}\n{use}", "NPU6")
        for name, use in {
            "amp_C": "amp_C.multi_tensor_scale(65536, x)",
            "flash_attn": "flash_attn.flash_attn_func(q, k, v)",
            "xformers.ops": "xformers.ops.memory_efficient_attention(q, k, v)",
            "transformer_engine.pytorch as te": "te.Linear(3, 3)",
            "bitsandbytes as bnb": "bnb.optim.Adam8bit(p)",
            "pynvml": "pynvml.nvmlInit()",
            "cupy": "cupy.zeros(3)",
            "triton": "@triton.jit\ndef kernel(x): ...",
        }.items()
    ),
    case("FN-05-numba", "from numba import cuda\n@cuda.jit\ndef f(x): ...", "NPU6"),
    case(
        "FN-05-apex-optimizer",
        "from apex.optimizers import FusedAdam\nFusedAdam(p)",
        "NPU6",
    ),
    case(
        "FN-05-apex-amp",
        "from apex import amp\nmodel, opt = amp.initialize(model, opt)",
        "NPU3",
    ),
    *(
        case(f"FN-08-{name}", snippet, "NPU5")
        for name, snippet in {
            "chain": "x = torch.ones(3)\nx.view(3).mode()",
            "annotated": "def helper(x: torch.Tensor):\n    return x.unique_consecutive()",
        }.items()
    ),
    case(
        "FN-08-parameter",
        "class A(nn.Module):\n    def __init__(self, w):\n"
        "        self.p = nn.Parameter(w)\n    def f(self):\n        return self.p.to_sparse()",
        "NPU5",
    ),
    case("FN-03-unsupported", "torch.unique_consecutive(x)", "NPU5"),
    case("FN-05-compiler", "@torch.func.jacrev\ndef f(x): ...", "NPU5"),
    case(
        "FN-13-rms-norm",
        "class RMSNorm(nn.Module):\n    def forward(self, x):\n"
        "        v = x.pow(2).mean(-1, keepdim=True)\n"
        "        return self.weight * x * torch.rsqrt(v + self.eps)",
        "NPU7",
    ),
    case("FN-13-swiglu", "def f(a, b):\n    return nn.functional.silu(a) * b", "NPU703"),
    case(
        "FN-13-attention",
        "def f(q, k, v):\n    return torch.softmax(q @ k.transpose(-2, -1) / 8, -1) @ v",
        "NPU7",
    ),
    waits("NPU8xx", "FN-14-masked-store", "x = torch.ones(3)\nx[x > 0] = 0", "NPU8"),
    waits("NPU8xx", "FN-15-masked-load", "y = torch.ones(3)\nz = y[y > 0]", "NPU8"),
    case("FN-18-profiler", "torch.autograd.profiler.profile(use_cuda=True)", "NPU502"),
    waits("NPU502", "FN-18-sort", "p.key_averages().table(sort_by='cuda_time_total')", "NPU5"),
]


@pytest.mark.parametrize(("snippet", "prefix"), FAMILIES)
def test_what_it_misses_has_a_family(snippet: str, prefix: str) -> None:
    found = [finding.rule.code for finding in findings(f"{HEAD}{snippet}\n")]
    assert any(each.startswith(prefix) for each in found), found


NOTES = [
    case("FN-16-graph", "torch.cuda.CUDAGraph()", "inference"),
    case("FN-16-properties", "torch.cuda.get_device_properties(0)", "`multi_processor_count`"),
    case("FN-16-capability", "torch.cuda.get_device_capability()", "TORCH_NPU_DEVICE_CAPABILITY"),
    case("FN-16-double", "torch.cuda.DoubleTensor(3)", ""),
]


@pytest.mark.parametrize(("snippet", "words"), NOTES)
def test_limits_are_said(snippet: str, words: str) -> None:
    [finding] = findings(f"{HEAD}{snippet}\n")
    assert finding.note is not None
    assert words in finding.message("en")


# Nothing. Each snippet stands behind HEAD and is no finding, unless marked.

ALARMS = [
    case("FP-01-dict", "d = {}\nd[key] = val"),
    case("FP-01-list", "lst[i] = v"),
    case("FP-01-state", "state[k] = state_dict[k]"),
    case("FP-02-dtype", "x.to(torch.float16)"),
    case("FP-02-date", "Date().to('utc')"),
    case("FP-02-non-blocking", "x.to(d, non_blocking=args.nb)"),
    case("FP-04-rank", "from mylib import comm\ncomm.get_rank()\ncomm.get_world_size()"),
    case("FP-04-layer-norm", "nn.functional.layer_norm(x, (3,))"),
    case("FP-04-all-reduce", "dist.all_reduce(x)\ndist.broadcast(x, 0)"),
    case("FP-04-dynamo", "torch._dynamo.reset()"),
    case("FP-06-parameter", "nn.Parameter(x)"),
    case("FP-06-npu", "torch.npu.is_available()"),
    case("FP-06-xpu", "torch.xpu.is_available()\ntorch.xpu.synchronize()"),
    case("FP-06-mlu", "torch.mlu.current_device()"),
    case("FP-06-names", "torch.inference_mode()\ntorch.Size([3])\ntorch.multiprocessing.spawn(f)"),
    case("FP-06-destroy", "dist.destroy_process_group()"),
    case(
        "FP-07",
        "class torch:\n    class cuda:\n        @staticmethod\n        def foo(): ...\n"
        "torch.foo()\ntorch.cuda.foo()",
    ),
    case("FP-08-inner", "DropPath()(x)"),
    case("FP-09", "opt = torch.optim.Adam(p)\nopt.step()"),
    case("FP-09-scheduler", "s = torch.optim.lr_scheduler.StepLR(opt, 3)\ns.step()"),
    case("FP-10", "class Mish:\n    def forward(self, input):\n        return input"),
    case("FP-11-loader", "torch.utils.data.DataLoader(ds, pin_memory=args.pin)"),
    case("FP-11-buckets", "nn.parallel.DistributedDataParallel(m, bucket_cap_mb=1000)"),
    case("FP-12", "nn.Linear(3, 3)\nnn.Linear(4, 4)"),
    case(
        "FP-13",
        "def outer():\n    def inner():\n        ⟦NPU101:torch.cuda.synchronize⟧()\n"
        "    return inner",
    ),
    case("FN-01-isinstance-of-own", "isinstance(m, DataParallel)"),
    # what a migration tool left, and rightly so: no device, or none that can be told
    case("FN-18-suffix", "x.to(f'{d}cuda')"),
    case("FN-18-list", "extras = 'cuda,cpu'"),
    case("FN-18-option", "x.to(cfg['gpu'])"),
    case("FN-18-rank", "x.new_zeros(3, device=rank)\nx.to(int_rank)\nx.to(interp)"),
]


@pytest.mark.parametrize("snippet", ALARMS)
def test_its_false_alarms_are_none(snippet: str) -> None:
    source, expected = unmarked(f"{HEAD}{snippet}\n")
    found = marks(source)
    assert marked(source, found) == marked(source, expected)


# Fixes: the code behind HEAD, and what becomes of it. Where HEAD needs the plugin, it gets it.


def same(name: str, snippet: str) -> Any:
    """Code that every fix leaves alone."""
    return case(name, snippet, snippet)


REWRITES = [
    same("BR-01", "def cuda(x): ...\ncuda(b)"),
    same(
        "BR-02",
        "class Box:\n    def cuda(self): ...\n    @property\n    def is_cuda(self): ...\n"
        "b = Box()\nb.cuda()\nb.is_cuda",
    ),
    same("BR-03-keyword", "opts = {'cuda': True}\ndef run(cuda=False): ...\nrun(**opts)"),
    same("BR-03-vars", "vars(args)['cuda']"),
    same("BR-03-getattr", "getattr(args, 'cuda', False)"),
    same("BR-04-attribute", "cfg.CUDA"),
    same("BR-04-enum", "class DeviceType:\n    CUDA = 1\nDeviceType.CUDA"),
    same("BR-05-fish", 'x = "barracuda: a fish"'),
    same("BR-05-file", 'x = "ckpt_cuda:0.pt"'),
    same("BR-05-link", 'x = "https://pytorch.org/docs/stable/torch.cuda.html"'),
    same("BR-05-source", "SOURCE = '''\nc10::cuda::getCurrentCUDAStream();\n'''"),
    case(
        "BR-06",
        "dist.init_process_group('cuda:nccl,cpu:gloo')",
        "dist.init_process_group('npu:hccl,cpu:gloo')",
    ),
    same("BR-07", "print('torch.cuda on cuda:0')"),
    same("BR-08", "self.t.to(*args, **kw)"),
    same("BR-09", "x.to(**kw)"),
    same("BR-10-copy", "x.to(copy=True)"),
    same("BR-10-keywords", "x.to(non_blocking=True, device=d)"),
    case(
        "BR-10-cuda",
        "x.to(non_blocking=True, device='cuda')",
        "x.to(non_blocking=True, device='npu')",
    ),
    same("BR-11-next", "x.to(next(it))"),
    same("BR-11-yield", "def f():\n    x.to((yield))"),
    same("BR-11-await", "async def f():\n    x.to(await g())"),
    case(
        "BR-11-current",
        "torch.zeros(3, device=torch.cuda.current_device())",
        "torch.zeros(3, device=torch.npu.current_device())",
    ),
    same("BR-12", "x.to(\n    d\n)\ntorch.zeros(\n    3,\n    device=(\n        d\n    ),\n)"),
    case("BR-12-cuda", "x.to(\n    'cuda'  # c\n)", "x.to(\n    'npu'  # c\n)"),
    same("BR-13", "x.to({0: a}[k])\ntorch.zeros(3, device={0: a}[k])"),
    same("BR-14", "x.to(d := g())"),
    same("BR-15", "hasattr(model.module, 'x')"),
    same("BR-16", "hasattr(self.net.module, 'x')\nhasattr(get().module, 'x')"),
    same("BR-19", "def f(torch):\n    torch.cuda.synchronize()"),
    case(
        "BR-20",
        "def a():\n    backend = torch.cuda\n    backend.synchronize()\n"
        "def b(backend):\n    backend.synchronize()\n"
        "def c():\n    backend = Foo()\n    backend.synchronize()",
        "def a():\n    backend = torch.npu\n    backend.synchronize()\n"
        "def b(backend):\n    backend.synchronize()\n"
        "def c():\n    backend = Foo()\n    backend.synchronize()",
    ),
    case("BR-21-graph", "torch.cuda.CUDAGraph()", "torch.npu.NPUGraph()"),
    case(
        "BR-21-allocator",
        "from torch.cuda.memory import CUDAPluggableAllocator",
        "from torch_npu.npu.memory import NPUPluggableAllocator as CUDAPluggableAllocator",
    ),
    case(
        "BR-22",
        "from torch.profiler import ProfilerActivity\nProfilerActivity.CUDA",
        "from torch_npu.profiler import ProfilerActivity\nProfilerActivity.NPU",
    ),
    same("BR-24", "torch.device('cpu')\ntorch.device('meta')"),
    same("BR-25", "foo.set_device(3)\nlogger.to(sink)\nr.to(weights)"),
    case("BR-25-method", "x.cuda(non_blocking=True)", "x.npu(non_blocking=True)"),
    same("BR-27", "from torch.utils.data import DataLoader\nDataLoader(ds, 32, True)"),
    same("BR-28", "torch.utils.data.DataLoader(ds, batch_sampler=bs)"),
    same("BR-29", "torch.utils.data.DataLoader(ImageFolder(d), shuffle=True)"),
    same("BR-30", "from torch.utils import data\ndata.DataLoader(ds)"),
    case(
        "BR-31",
        "model = Net()\nmodel = nn.parallel.DistributedDataParallel(model.cuda())",
        "model = Net()\nmodel = nn.parallel.DistributedDataParallel(model.npu())",
    ),
    same("BR-33", "def f():\n    return torch.utils.data.DataLoader(ds, shuffle=True)"),
    same("BR-34", "json.load(open('a'))\nopen(0)\nos.makedirs(exist_ok=True, name=d)"),
    same("BR-35", "class Net(nn.Module):\n    def forward(self, x):\n        return x.relu()"),
    same("BR-36", "x.to(dt)\ntorch.zeros(3, device=x.device)"),
    same("BR-37", "import torch_npu  # noqa: F401\ntorch.npu.synchronize()\nx.npu()\nx.to('npu')"),
    same("BR-38-literal", "def f(kind: Literal['nccl', 'ucc'] = 'nccl'): ..."),
    case(
        "BR-38-backend",
        "def f(backend: Literal['nccl', 'ucc'] = 'nccl'): ...",
        "def f(backend: Literal['nccl', 'ucc'] = 'nccl'): ...",
    ),
    same("BR-39", "parser.set_defaults(func=cmd)"),
    case(
        "BR-17",
        "import gc, torch.cuda as c\nc.synchronize()",
        "import gc, torch_npu.npu as c\nc.synchronize()",
    ),
]


@pytest.mark.parametrize(("before", "after"), REWRITES)
def test_its_broken_rewrites_are_right(before: str, after: str) -> None:
    text = fixed(f"{HEAD}{before}\n")
    if before == after:
        assert text == f"{HEAD}{before}\n"
    else:
        assert text.endswith(f"\n{after}\n")
        head = text.removesuffix(f"{after}\n")
        assert head.replace("import torch_npu  # noqa: F401\n", "", 1) == HEAD


@pytest.mark.parametrize("names", ["amp_C, os", "numpy, amp_C"], ids=["BR-17-os", "BR-17-numpy"])
def test_an_import_keeps_its_other_names(names: str) -> None:
    tree = ast.parse(fixed(f"import {names}\n"))
    kept = {alias.name for node in tree.body for alias in getattr(node, "names", ())}
    assert kept >= set(names.split(", ")) - {"amp_C"}


FILES = [
    case(
        "BR-18-lazy",
        "def a():\n    import torch\n\n\n"
        "def b():\n    import torch\n\n    torch.cuda.synchronize()\n",
        "def a():\n    import torch\n\n\ndef b():\n    import torch\n"
        "    import torch_npu  # noqa: F401\n\n"
        "    torch.npu.synchronize()\n",
    ),
    case(
        "BR-18-type-checking",
        "if TYPE_CHECKING:\n    import torch\n\n\ndef b():\n    import torch\n"
        "    torch.cuda.synchronize()\n",
        "if TYPE_CHECKING:\n    import torch\n\n\ndef b():\n    import torch\n"
        "    import torch_npu  # noqa: F401\n    torch.npu.synchronize()\n",
    ),
    case(
        "BR-19-no-import",
        "def f(torch):\n    torch.cuda.synchronize()\n",
        "def f(torch):\n    torch.cuda.synchronize()\n",
    ),
    case(
        "BR-26",
        "try:\n    import torch\nexcept ImportError:\n    torch = None\n\n"
        "torch.cuda.synchronize()\n",
        "try:\n    import torch\nexcept ImportError:\n    torch = None\n"
        "else:\n    import torch_npu  # noqa: F401\n\n"
        "torch.npu.synchronize()\n",
    ),
    case(
        "BR-35",
        "import torch\n\n\nclass Net(torch.nn.Module):\n    pass\n",
        "import torch\n\n\nclass Net(torch.nn.Module):\n    pass\n",
    ),
    case(
        "BR-37",
        "import torch\nimport torch_npu  # noqa: F401\n\ntorch.cuda.synchronize()\n",
        "import torch\nimport torch_npu  # noqa: F401\n\ntorch.npu.synchronize()\n",
    ),
    case(
        "RO-crlf",
        "import torch\r\n\r\ntorch.cuda.synchronize()  # c\r\n",
        "import torch\r\nimport torch_npu  # noqa: F401\r\n\r\ntorch.npu.synchronize()  # c\r\n",
    ),
]


@pytest.mark.parametrize(("before", "after"), FILES)
def test_whole_files(before: str, after: str) -> None:
    assert fixed(before) == after


DATA_PARALLEL = [
    case("BR-31", "model = Net()\nmodel = nn.DataParallel(model).cuda()"),
    case("BR-32", "if n > 1:\n    model = nn.DataParallel(model)"),
]


@pytest.mark.parametrize("snippet", DATA_PARALLEL)
def test_a_wrapped_model_stays_wrapped(snippet: str) -> None:
    """Neither is the wrapper taken away, nor another put around it."""
    source = f"{HEAD}{snippet}\n"
    text = fixed(source)
    assert len(re.findall(r"(?:DataParallel|DistributedDataParallel)\(", text)) == 1
    assert "NPU202" in [finding.rule.code for finding in findings(source)]


# Nothing depends on chance.

DISPUTED = [
    case(
        "ND-01-class",
        "try:\n    from torch.nn import DataParallel as W\nexcept ImportError:\n"
        "    from mylib import W\nW(m)\n",
    ),
    case(
        "ND-01-function",
        "try:\n    from torch.cuda import synchronize as sync\nexcept ImportError:\n"
        "    from mylib import sync\nsync()\n",
    ),
]


@pytest.mark.parametrize("source", DISPUTED)
def test_hash_seeds_change_nothing(source: str) -> None:
    answers = set()
    command = [sys.executable, "-m", "npulens", "check", "--output-format", "jsonl"]
    for seed in range(4):
        answers.add(
            subprocess.run(
                [*command, "--stdin-filename", "a.py", "-"],
                input=source,
                capture_output=True,
                text=True,
                check=False,
                env={**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": _package()},
            ).stdout
        )
    [answer] = answers
    assert "NPU" in answer


def _package() -> str:
    import npulens

    return str(Path(npulens.__file__).parents[1])


# Cost in proportion to size.


def diamonds(count: int) -> str:
    """Functions that each call two that call the next: 2 to the power of `count` ways down."""
    text = "import torch\ndef f0():\n    torch.cuda.synchronize()\n"
    for index in range(1, count + 1):
        below = f"f{3 * (index - 1)}"
        text += f"def f{3 * index - 2}(): {below}()\ndef f{3 * index - 1}(): {below}()\n"
        text += f"def f{3 * index}():\n    f{3 * index - 2}()\n    f{3 * index - 1}()\n"
    return text


LARGE: list[Any] = [
    case("SC-01", diamonds, 400, 1),
    case("SC-03-sum", lambda n: f"import torch\ns = {' + '.join(['a'] * n)}\nx.cuda()\n", 3000, 1),
    case("SC-03-chain", lambda n: f"import torch\ny = x{'.relu()' * n}.cuda()\n", 400, 1),
    case(
        "SC-04",
        lambda n: "import torch\n" + "".join(f"x{i} = torch.zeros({i}).cuda()\n" for i in range(n)),
        4000,
        4000,
    ),
]


@pytest.mark.parametrize(("make", "size", "count"), LARGE)
def test_large_files_are_analysed(make: Callable[[int], str], size: int, count: int) -> None:
    started = time.process_time()
    assert len(findings(make(size))) == count
    assert time.process_time() - started < 20


def test_many_fixes_are_made_at_once() -> None:
    """SC-04: 4,000 lines kept the other tool busy for over five minutes."""
    lines = "".join(f"x{i} = torch.zeros({i}).cuda()\n" for i in range(1000))
    started = time.process_time()
    text = fixed("import torch\n" + lines)
    assert text == "import torch\nimport torch_npu  # noqa: F401\n" + lines.replace(
        ".cuda()", ".npu()"
    )
    assert time.process_time() - started < 30


# Files that it refuses or spoils.

CALL = "import torch\ntorch.cuda.synchronize()\n"


def checked(*paths: Path, exit_code: int = 1) -> list[dict[str, Any]]:
    arguments = ["check", "--output-format", "jsonl", *map(str, paths)]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == exit_code, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def codes(*paths: Path, exit_code: int = 1) -> list[str]:
    return [each["code"] for each in checked(*paths, exit_code=exit_code)]


@pytest.mark.parametrize("name", ["test (1).py", "a+b.py", "训练.py", "a b.py", "-x.py", "x[1].py"])
def test_names_of_files_do_not_matter(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "项目 (1)+"
    folder.mkdir()
    (folder / name).write_text(CALL, encoding="utf-8")
    [finding] = checked(folder)
    assert Path(finding["path"]).name == name


def test_a_file_alone_and_standard_input_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(CALL, encoding="utf-8")
    assert codes(path) == ["NPU101"]
    result = CliRunner().invoke(cli, ["check", "-", "--output-format", "jsonl"], input=CALL)
    assert (result.exit_code, json.loads(result.stdout)["code"]) == (1, "NPU101")


def test_links_are_followed_when_named(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(CALL, encoding="utf-8")
    link = tmp_path / "link.py"
    link.symlink_to(path)
    folder = tmp_path / "folder"
    folder.symlink_to(tmp_path, target_is_directory=True)
    assert codes(link) == ["NPU101"]
    assert codes(folder) == ["NPU101"]


def test_permissions_do_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(CALL, encoding="utf-8")
    path.chmod(0o666)
    assert codes(tmp_path) == ["NPU101"]


def test_a_file_over_ten_megabytes_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(CALL + "# " + "x" * 11_000_000 + "\n", encoding="utf-8")
    assert codes(path) == ["NPU101"]


def test_what_cannot_be_read_is_told_apart(tmp_path: Path) -> None:
    contents = {
        "broken.py": b"import torch\ndef f(:\n    pass\ntorch.cuda.synchronize()\n",
        "bytes.py": b"import torch\nx = '\xff\xfe\xfa'\n",
        "utf16.py": CALL.encode("utf-16"),
    }
    for name, data in contents.items():
        (tmp_path / name).write_bytes(data)
    found: dict[str, list[str]] = {}
    messages = set()
    for each in checked(tmp_path):
        found.setdefault(Path(each["path"]).name, []).append(each["code"])
        messages.add(each["message"])
    assert found == {
        "broken.py": ["NPU001", "NPU101"],
        "bytes.py": ["NPU003"],
        "utf16.py": ["NPU003"],
    }
    assert len(messages) == 4


def test_many_files_need_no_answer(tmp_path: Path) -> None:
    for index in range(5001):
        (tmp_path / f"m{index}.py").write_bytes(b"x = 1\n")
    (tmp_path / "a.py").write_text(CALL, encoding="utf-8")
    result = CliRunner().invoke(cli, ["check", str(tmp_path)], input="")
    assert result.exit_code == 1
    assert result.output.rstrip().startswith(str(tmp_path / "a.py"))
    assert "Found 1 problem in 1 file" in result.output


def test_the_summary_counts_findings_once(tmp_path: Path) -> None:
    """FP-14: it counted the findings of one file again for each other file."""
    for index in range(6):
        (tmp_path / f"m{index}.py").write_text(CALL, encoding="utf-8")
    result = CliRunner().invoke(cli, ["check", str(tmp_path)])
    assert "Found 6 problems in 6 files" in result.output


SPOILED = [
    case("BR-23-latin-1", "latin-1", "# Ärger: ü\n"),
    case("BR-23-gbk", "gbk", "# 训练脚本\n"),
    case("RO-bom", "utf-8-sig", "# 训练\n"),
]


@pytest.mark.parametrize(("encoding", "comment"), SPOILED)
def test_encodings_are_read(encoding: str, comment: str, tmp_path: Path) -> None:
    cookie = "" if encoding == "utf-8-sig" else f"# -*- coding: {encoding} -*-\n"
    path = tmp_path / "a.py"
    path.write_bytes(f"{cookie}{comment}{CALL}".encode(encoding))
    [finding] = checked(path)
    assert finding["code"] == "NPU101"


NEW_SYNTAX = [
    case("RO-match", "match d:\n    case [x, *_]:\n        ⟦NPU101:torch.cuda.synchronize⟧()"),
    case("RO-with", "with (open(a) as f, open(b) as g):\n    ⟦NPU101:torch.cuda.synchronize⟧()"),
    case(
        "RO-except-star",
        "try:\n    ⟦NPU101:torch.cuda.synchronize⟧()\nexcept* ValueError:\n    pass",
    ),
    case("RO-nested", "x = f'{f\"{d}\"}'\n⟦NPU101:torch.cuda.synchronize⟧()"),
]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="except* is younger")
@pytest.mark.parametrize("snippet", NEW_SYNTAX)
def test_new_syntax_is_read(snippet: str) -> None:
    source, expected = unmarked(f"{HEAD}{snippet}\n")
    assert marks(source) == expected


def test_syntax_newer_than_this_python_costs_one_statement() -> None:
    """PEP 695 and PEP 701, which need Python 3.12."""
    source = code("""
        import torch


        def first[T](x: T) -> T:
            return x


        type Pair = tuple[int, int]
        torch.cuda.synchronize()
    """)
    assert [f.rule.code for f in findings(source) if f.rule.code != "NPU004"] == ["NPU101"]


OTHER_FILES = [
    case("FN-17-launch", "run.sh", "torchrun train.py --backend nccl\n", "NPU"),
    case("FN-17-yaml", "conf.yaml", "device: cuda\n", "NPU"),
    case("FN-17-requirements", "requirements.txt", "flash-attn==2.6\n", "NPU905"),
    case(
        "FN-17-notebook",
        "a.ipynb",
        json.dumps(
            {
                "cells": [
                    {
                        "cell_type": "code",
                        "execution_count": None,
                        "metadata": {},
                        "outputs": [],
                        "source": CALL.splitlines(keepends=True),
                    }
                ],
                "metadata": {"language_info": {"name": "python"}},
                "nbformat": 4,
                "nbformat_minor": 5,
            }
        ),
        "NPU101",
    ),
    case(
        "FN-12",
        "op.cu",
        "#include <torch/extension.h>\n__global__ void k() {}\n"
        'PYBIND11_MODULE(n, m) { m.def("f", &f); }\n',
        "NPU6",
    ),
]


@pytest.mark.parametrize(("name", "text", "prefix"), OTHER_FILES)
def test_other_files_are_looked_at(name: str, text: str, prefix: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "main.py").write_text(CALL, encoding="utf-8")
    found = [each["code"] for each in checked(tmp_path) if Path(each["path"]).name == name]
    assert any(each.startswith(prefix) for each in found), found


# What it does well.

KEPT = [
    case("KEEP-module-alias", "import torch.nn as n\n⟦NPU202:n.DataParallel⟧(m)"),
    case("KEEP-cuda-alias", "import ⟦NPU101:torch.cuda as tc⟧\n⟦NPU101:tc.synchronize⟧()"),
    case("KEEP-from-alias", "from torch import ⟦NPU101:cuda as c⟧\n⟦NPU101:c.synchronize⟧()"),
    case("KEEP-function", "from torch.cuda.amp import ⟦NPU301:autocast⟧"),
    case("KEEP-lazy", "def f():\n    import torch as t\n    ⟦NPU101:t.cuda.synchronize⟧()"),
    case(
        "KEEP-try",
        "try:\n    import torch as t\nexcept ImportError:\n    t = None\n"
        "⟦NPU101:t.cuda.synchronize⟧()",
    ),
    case(
        "KEEP-base-class",
        "class Wrapped(⟦NPU202:nn.DataParallel⟧):\n    pass",
    ),
    case("KEEP-decorator", "@⟦NPU501:torch.jit.script⟧\ndef f(x): ...\nf.save(p)"),
    case("KEEP-own-mode", "class A:\n    def mode(self): ...\nA().mode()"),
]


@pytest.mark.parametrize("snippet", KEPT)
def test_what_it_does_well_is_kept(snippet: str) -> None:
    source, expected = unmarked(f"{HEAD}{snippet}\n")
    assert set(expected) <= set(marks(source)), marked(source, marks(source))
    if not expected:
        assert marks(source) == []


# Nothing of the study is forgotten.

STUDY = [
    *(f"FN-{number:02}" for number in range(1, 19)),
    *(f"FP-{number:02}" for number in range(1, 15)),
    *(f"BR-{number:02}" for number in range(1, 43)),
    "ND-01",
    *(f"SC-{number:02}" for number in range(1, 5)),
    *(f"UX-{number:02}" for number in range(1, 4)),
    "SEC-01",
]


def test_each_finding_of_the_study_has_a_row_or_a_reason() -> None:
    assert __doc__ is not None
    text = Path(__file__).read_text(encoding="utf-8").partition("# Nothing of the study")[0]
    named = set(re.findall(r"\b[A-Z]{2,3}-\d\d\b", text))
    for first, last in re.findall(r"([A-Z]{2}-\d\d) to ([A-Z]{2}-\d\d)", __doc__):
        numbers = range(int(first[3:]), int(last[3:]) + 1)
        named.update(f"{first[:3]}{number:02}" for number in numbers)
    assert named >= set(STUDY), sorted(set(STUDY) - named)
