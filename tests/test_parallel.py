"""NPU2xx: backends of process groups, wrappers for several devices, collectives."""

import ast

import pytest
from tests.helpers import CATALOGUE, SHIM, check, code, each_fix, findings, fixed

from npulens.analysis import analyze
from npulens.catalog.model import Applicability, Severity, Target
from npulens.text.document import Document

DIST = "import torch\nimport torch.distributed as dist\n"
DDP = "from torch.nn.parallel import DistributedDataParallel as DDP\n"

BACKENDS = [
    "dist.init_process_group(⟦NPU201:'nccl'⟧)",
    "def main():\n    dist_params = dict(backend=⟦NPU201:'nccl'⟧)\n    start(**dist_params)",
    "dist_params = dict(backend=⟦NPU201:'nccl'⟧)",
    "dist_params = {'backend': ⟦NPU201:'nccl'⟧}",
    "env = dict(mp='fork', dist_cfg=dict(backend=⟦NPU201:'nccl'⟧))",
    "dist.init_process_group(backend=⟦NPU201:'nccl'⟧, rank=0)",
    "dist.init_process_group(⟦NPU201:'cpu:gloo,cuda:nccl'⟧)",
    "dist.init_process_group(⟦NPU201:'cuda:nccl,cpu:gloo'⟧)",
    "dist.init_process_group(⟦NPU201:'nccl'⟧ if cuda else 'gloo')",
    "dist.new_group([0, 1], None, ⟦NPU201:'nccl'⟧)",
    "dist.new_subgroups(backend=⟦NPU201:'nccl'⟧)",
    "dist.new_subgroups_by_enumeration(ranks, backend=⟦NPU201:'nccl'⟧)",
    "dist.is_backend_available(⟦NPU201:'nccl'⟧)",
    "dist.Backend(⟦NPU201:'nccl'⟧)",
    "kind = ⟦NPU201:'nccl'⟧\ndist.init_process_group(kind)",
    "kind = ⟦NPU201:'nccl'⟧\ndist.init_process_group(backend=kind)\nok = kind == ⟦NPU201:'nccl'⟧",
    "BACKEND = ⟦NPU201:'nccl'⟧\ndist.init_process_group(BACKEND)",
    "def setup(kind=⟦NPU201:'nccl'⟧):\n    dist.init_process_group(kind, rank=0)",
    "def setup(dist_backend: str = ⟦NPU201:'nccl'⟧): ...",
    "class Config:\n    dist_backend: str = ⟦NPU201:'nccl'⟧",
    "from dataclasses import field\nclass C:\n    backend: str = field(default=⟦NPU201:'nccl'⟧)",
    "parser.add_argument('--dist-backend', default=⟦NPU201:'nccl'⟧)",
    "launch(distributed_backend=⟦NPU201:'nccl'⟧)",
    "class Config:\n    distributed_backend: str = ⟦NPU201:'nccl'⟧",
    "options = {'distributed_backend': ⟦NPU201:'nccl'⟧}",
    "backends = {'gpu': ⟦NPU201:'nccl'⟧, 'cpu': 'gloo'}",
    "backends = {⟦NPU110:'cuda'⟧: ⟦NPU201:'nccl'⟧, 'cpu': 'gloo'}",
    "pg = ⟦NPU203:torch._C._distributed_c10d.ProcessGroupNCCL⟧(store, 0, 1)",
    "parser.add_argument('--dist_backend', default=⟦NPU201:'nccl'⟧,\n"
    "                    choices=[⟦NPU201:'nccl'⟧, 'gloo'])",
    "@click.option('--backend', default=⟦NPU201:'nccl'⟧,\n"
    "              type=click.Choice([⟦NPU201:'nccl'⟧, 'gloo']))\ndef f(backend): ...",
    "flags.DEFINE_enum('backend', ⟦NPU201:'nccl'⟧, [⟦NPU201:'nccl'⟧, 'gloo'], 'which')",
    "parser.add_argument('--backend', default=⟦NPU201:'nccl'⟧, choices=ALLOWED)",
    "ok = dist.get_backend() == ⟦NPU201:'nccl'⟧",
    "ok = dist.get_backend() != ⟦NPU201:'nccl'⟧",
    "d = a if dist.get_backend() == ⟦NPU201:'nccl'⟧ else b",
    "def test_tensors():\n    import ⟦NPU602:pycuda⟧\n    dist.init_process_group(⟦NPU201:'nccl'⟧)",
    "ok = args.backend in [⟦NPU201:'nccl'⟧, 'gloo']",
    "ok = dist.get_backend() == ⟦NPU201:dist.Backend.NCCL⟧",
    "dist.init_process_group(⟦NPU201:dist.Backend.NCCL⟧)",
    "from torch.distributed import Backend\ndist.init_process_group(⟦NPU201:Backend.NCCL⟧)",
    "from torch.distributed import distributed_c10d as c\nb = ⟦NPU201:c.Backend.NCCL⟧",
    "from accelerate import InitProcessGroupKwargs as K\nK(backend=⟦NPU201:'nccl'⟧)",
    "from lightning.pytorch.strategies import DDPStrategy\n"
    "DDPStrategy(process_group_backend=⟦NPU201:'nccl'⟧)",
    "import deepspeed\ndeepspeed.init_distributed(⟦NPU201:'nccl'⟧)",
    "import deepspeed\ndeepspeed.init_distributed(dist_backend=⟦NPU201:'nccl'⟧)",
    "import ignite.distributed as idist\nidist.Parallel(backend=⟦NPU201:'nccl'⟧)",
    "import ignite.distributed as idist\nidist.initialize(⟦NPU201:'nccl'⟧)",
    "if args.backend == ⟦NPU201:'nccl'⟧:\n    os.environ['NCCL_X'] = '1'\n    torch.ones(1)",
    "⟦NPU203:torch.distributed.ProcessGroupNCCL.Options⟧(is_high_priority_stream=True)",
    "ok = ⟦NPU203:dist.is_nccl_available⟧()",
    "v = ⟦NPU203:torch.cuda.nccl.version⟧()",
    "mesh = torch.distributed.init_device_mesh(⟦NPU110:'cuda'⟧, (2, 2))",
    "from torch.distributed.device_mesh import DeviceMesh\nDeviceMesh(⟦NPU110:'cuda'⟧, [0, 1])",
    "import torch.multiprocessing as mp\nmp.spawn(f, nprocs=⟦NPU101:torch.cuda.device_count⟧())",
    # places that names alone had hidden
    "@patch('torch.distributed.init_process_group')\n"
    "def test_starts(made):\n"
    "    start(backend=⟦NPU201:'nccl'⟧)\n"
    "    made.assert_called_once()",
    "def test_nccl_window():\n    dist.init_process_group(⟦NPU201:'nccl'⟧)",
    "class TestNCCLMemory:\n"
    "    def test(self):\n"
    "        dist.new_group([0], backend=⟦NPU201:'nccl'⟧)",
    "if get_backend() == ⟦NPU201:'nccl'⟧:\n    warn('see the NCCL guide')",
    "if backend == ⟦NPU201:'nccl'⟧:\n    service = NCCLCopyService()",
    "def _nccl_version():\n    return ⟦NPU203:torch.cuda.nccl.version⟧()",
]


@pytest.mark.parametrize("snippet", BACKENDS)
def test_nccl_is_found(snippet: str) -> None:
    check(DIST + snippet)


NO_BACKENDS = [
    "import torch_npu\noptions = torch_npu._C._distributed_c10d.ProcessGroupHCCL.Options()",
    # a group that is never made, and a barrier that both backends have
    "def wait(up):\n    on_cards = up and dist.get_backend() == 'nccl'\n"
    "    dist.barrier(device_ids=[0]) if on_cards else dist.barrier()",
    "def wait():\n    if dist.get_backend() == 'nccl':\n        dist.barrier(device_ids=[0])\n"
    "    else:\n        dist.barrier()",
    "def wait():\n    if dist.get_backend() == dist.Backend.NCCL:\n"
    "        dist.barrier(device_ids=[0])\n    else:\n        dist.barrier()",
    # what arguments to hand on repeat
    "class GroupKwargs(Handler):\n    backend: Optional[str] = 'nccl'\n    timeout: int = 600",
    # a number that NCCL has of its own, settings of mmcv, choices that are no backends
    "seconds = 1800 if self.backend != 'nccl' else 600",
    "bootstrap_backend = 'nccl'",
    "@parametrize('refit_backend', [param('nvshmem', marks=m), 'nccl', 'gloo'])\n"
    "def test(refit_backend): ...",
    # NCCL's own matters
    "def setup():\n    if ⟦NPU112:torch.version.cuda⟧ is not None:\n"
    "        return torch.cuda.nccl.version()",
    "ok = ⟦NPU112:torch.version.cuda⟧ and dist.is_nccl_available()",
    "dist.init_process_group('hccl')",
    "dist.init_process_group(backend='gloo')",
    "dist.init_process_group()",
    "NCCL_BACKEND = 'nccl'",
    "nccl_backend = 'nccl'",
    "print('backend is nccl')",
    '"""The backend is nccl."""',
    "# backend = 'nccl'",
    "raise ValueError('nccl backend')",
    "bootstrap_backend: Literal['nccl', 'gloo'] = 'nccl'",
    "class C:\n    comm_backend: Optional[Literal['nccl', 'ucc']] = 'nccl'",
    "def f(backend: Literal['nccl', 'gloo'] = 'nccl'): ...",
    "def f(backend: Literal['nccl', 'gloo']):\n    return backend == 'nccl'",
    "Name = Literal['nccl', 'nvshmem']\ndef f(backend: Name):\n    return backend == 'nccl'",
    "parser.add_argument('--distributed-backend', default='nccl', choices=['nccl', 'gloo'])",
    "ok = args.distributed_backend == 'nccl'",
    "import megatron_setup\nlaunch(distributed_backend='nccl')",
    "backends = {'cuda': 'nccl', 'npu': 'hccl', 'cpu': 'gloo'}",
    "backends = {'cuda': 'nccl', 'xpu': 'xccl', 'cpu': 'gloo'}",
    "run(['pretrain_gpt.py', '--distributed-backend', 'nccl'])",
    "parser.add_argument('--backend', default='hccl', choices=['nccl', 'gloo', 'hccl'])",
    "parser.add_argument('--backend', default='gloo', choices=['gloo', 'mpi'])",
    "parser.add_argument('--backend', help='nccl')",
    "ok = dist.get_backend() in ('nccl', 'hccl')",
    "backend = {'npu': 'hccl'}.get(kind, 'nccl' if dist.is_nccl_available() else 'gloo')",
    "backends = {'npu': 'hccl', 'cuda': 'nccl'}",
    "backend = 'hccl' if is_npu_available() else 'nccl'",
    "class Backend:\n    NCCL = 'nccl'\nb = Backend.NCCL",
    "from mine import Backend\nb = Backend.NCCL",
    "torch.distributed.barrier(device_ids=[0])",
]


@pytest.mark.parametrize("snippet", NO_BACKENDS)
def test_what_is_not_a_backend_for_the_npu_to_change(snippet: str) -> None:
    check("from typing import Literal, Optional\n" + DIST + snippet)


CHANGED = [
    (
        "p.add_argument('--backend', default='nccl', choices=['nccl', 'gloo'])",
        "p.add_argument('--backend', default='hccl', choices=['nccl', 'gloo', 'hccl'])",
    ),
    (
        'p.add_argument("--backend", default="nccl", choices=("nccl",  # GPU\n    "gloo",))',
        'p.add_argument("--backend", default="hccl", choices=("nccl",  # GPU\n'
        '    "gloo", "hccl",))',
    ),
    (
        "p.add_argument('--backend', default='nccl', choices=['gloo', 'hccl'])",
        "p.add_argument('--backend', default='hccl', choices=['gloo', 'hccl'])",
    ),
    (
        "p.add_argument('--backend', default='nccl', choices=ALLOWED)",
        "p.add_argument('--backend', default='nccl', choices=ALLOWED)",
    ),
    (
        "BACKENDS = ['nccl', 'gloo']\n"
        "p.add_argument('--backend', default='nccl', choices=BACKENDS)",
        "BACKENDS = ['hccl', 'gloo']\n"
        "p.add_argument('--backend', default='hccl', choices=BACKENDS)",
    ),
    (
        "click.option('--backend', default='nccl', type=click.Choice(['gloo', 'nccl']))",
        "click.option('--backend', default='hccl', type=click.Choice(['gloo', 'nccl', 'hccl']))",
    ),
    ("init(backend='cpu:gloo,cuda:nccl')", "init(backend='cpu:gloo,npu:hccl')"),
    ("init(backend='cuda:nccl,cpu:gloo')", "init(backend='npu:hccl,cpu:gloo')"),
    (
        "import ignite.distributed as idist\nidist.initialize('nccl')",
        "import ignite.distributed as idist\nidist.initialize('nccl')",
    ),
]


@pytest.mark.parametrize(("before", "after"), CHANGED)
def test_backends_are_changed(before: str, after: str) -> None:
    assert fixed(before) == after


def test_a_default_alone_is_never_moved_out_of_its_choices() -> None:
    source = "p.add_argument('--backend', default='nccl', choices=['nccl', 'gloo'])\n"
    for _, _, result in each_fix(source):
        call = ast.parse(result).body[0].value  # type: ignore[attr-defined]
        options = {k.arg: ast.literal_eval(k.value) for k in call.keywords}
        assert options["default"] == "hccl"
        assert options["default"] in options["choices"]


SHIMMED = [
    "dist.init_process_group('nccl')",
    "dist.init_process_group(backend=dist.Backend.NCCL)",
    "dist.new_group(backend='nccl')",
    "ok = dist.is_nccl_available()",
    "backend = 'nccl'\ndist.init_process_group(backend)",
    "p.add_argument('--backend', default='nccl', choices=['nccl', 'gloo'])",
    "ok = dist.get_backend() == ⟦NPU201:'nccl'⟧",
    "ok = dist.get_backend() == ⟦NPU201:dist.Backend.NCCL⟧",
    "ok = dist.get_backend() in (dist.Backend.GLOO, ⟦NPU201:dist.Backend.NCCL⟧)",
    "m = ⟦NPU202:torch.nn.DataParallel⟧(m)",
    "parts = ⟦NPU204:torch.nn.parallel.scatter⟧(x, [0, 1])",
    "v = ⟦NPU203:torch.cuda.nccl.version⟧()",
    "def f():\n    t = torch.ones(1, dtype=⟦NPU207:torch.double⟧, device='npu')\n"
    "    dist.all_reduce(t)",
]


@pytest.mark.parametrize("snippet", SHIMMED)
def test_with_the_shim_only_what_it_leaves(snippet: str) -> None:
    check(DIST + snippet, SHIM)


WRAPPERS = [
    "def test_step(self):\n    m = ⟦NPU202:nn.DataParallel⟧(make())\n"
    "    m(x).sum().backward()\n    return m.state_dict()",
    "if n_gpu > 1:\n    m = ⟦NPU202:nn.DataParallel⟧(m)",
    "from mmcv.parallel import ⟦NPU202:MMDataParallel⟧\nm = MMDataParallel(m, device_ids=[0])",
    "import mmcv\nm = ⟦NPU202:mmcv.parallel.MMDataParallel⟧(m)",
    "from mmcv.parallel import ⟦NPU603:MMDistributedDataParallel as W⟧\nm = W(m)",
    "from ⟦NPU606:torch_geometric⟧ import nn as g\nm = ⟦NPU202:g.DataParallel⟧(m)",
    "class T:\n    def wrap(self, m):\n        if self.args.n_gpu > 1:\n"
    "            m = ⟦NPU202:nn.DataParallel⟧(m)\n        return m",
    "import torch\nd = ⟦NPU110:'cuda'⟧ if ⟦NPU101:torch.cuda.is_available⟧() else 'cpu'\n"
    "if d == ⟦NPU110:'cuda'⟧:\n    m = ⟦NPU202:nn.DataParallel⟧(m)",
    "m = ⟦NPU202:nn.DataParallel⟧(m)",
    "m = ⟦NPU202:nn.DataParallel⟧(m, device_ids=[0, 1])",
    "m = ⟦NPU202:nn.DataParallel⟧(m).cuda_if_needed()",
    "m.features = ⟦NPU202:nn.DataParallel⟧(m.features)",
    "W = ⟦NPU202:nn.DataParallel⟧ if many else None",
    "y = ⟦NPU202:nn.parallel.data_parallel⟧(m, x, [0, 1])",
    "from torch.nn.parallel import ⟦NPU202:data_parallel⟧\ny = data_parallel(m, x)",
    "from torch.nn import ⟦NPU202:DataParallel⟧\nif isinstance(m, DataParallel): m = m.module",
    "from torch.nn import ⟦NPU202:DataParallel⟧\nm = DataParallel(m)\nisinstance(m, DataParallel)",
    "from torch.nn import ⟦NPU202:DataParallel⟧\nclass MyDataParallel(DataParallel): ...",
    "ok = isinstance(m, ⟦NPU202:nn.DataParallel⟧)",
    "ok = type(m) is ⟦NPU202:nn.DataParallel⟧",
    "y = ⟦NPU204:nn.parallel.replicate⟧(m, [0, 1])",
    "y = ⟦NPU204:nn.parallel.gather⟧(ys, 0)",
    "from torch.nn.parallel._functions import ⟦NPU204:Scatter⟧, ⟦NPU204:Gather⟧",
    "from torch.nn.parallel import ⟦NPU204:comm⟧\n⟦NPU204:comm⟧.reduce_add(xs)",
    "from torch.nn.parallel.scatter_gather import ⟦NPU204:scatter_kwargs⟧",
    "m = DDP(m, device_ids=⟦NPU205:[0, 1]⟧)",
    "m = nn.parallel.DistributedDataParallel(m, device_ids=⟦NPU205:(0, 1, 2)⟧)",
    "m = DDP(m, device_ids=⟦NPU206:[0]⟧, output_device=0)",
    # places that names alone had hidden
    "def test_prefix(self):\n"
    "    m = ⟦NPU202:nn.DataParallel⟧(make())\n"
    "    m.load_state_dict(make().state_dict())",
    "npu = is_npu_available()\n"
    "class T:\n"
    "    def wrap(self, m):\n"
    "        if self.args.n_gpu > 1:\n"
    "            m = ⟦NPU202:nn.DataParallel⟧(m)\n"
    "        return m",
    "def wrap(m, x):\n"
    "    if x.device.type == ⟦NPU111:'cuda'⟧:\n"
    "        m = ⟦NPU202:nn.DataParallel⟧(m)\n"
    "    return m",
]


@pytest.mark.parametrize("snippet", WRAPPERS)
def test_wrappers_for_one_process_are_found(snippet: str) -> None:
    check("from torch import nn\n" + DDP + snippet)


NO_WRAPPERS = [
    # wrapped models that are refused
    "from torch.nn import DataParallel\ndef f(m):\n    assert not isinstance(m, DataParallel)",
    "def f(m):\n    assert not isinstance(m, nn.DataParallel), 'one card for each process'",
    "def f(m):\n    if isinstance(m, nn.DataParallel):\n        raise TypeError(m)",
    # names of parameters, tested without any device
    # the module knows NPUs, and whoever counts devices says one of them
    "m = DDP(m, device_ids=[local_rank])",
    "m = DDP(m, device_ids=[args.local_rank], output_device=args.local_rank)",
    "m = DDP(m)",
    "m = DDP(m, device_ids=None)",
    "m = DDP(m, device_ids=[])",
    "m = Wrapper(m, device_ids=[0, 1])",
    "net = m.module",
    "ok = isinstance(m, (nn.DataParallel, nn.parallel.DistributedDataParallel))",
    "ok = isinstance(m, (nn.DataParallel, DDP))",
    "ok = isinstance(m, nn.DataParallel) or isinstance(m, DDP)",
    "ok = isinstance(m, nn.DataParallel | DDP)",
    "ok = type(m) in (nn.DataParallel, DDP)",
    "kinds = [nn.DataParallel, DDP]",
    "from torch.nn.parallel import DataParallel\nok = isinstance(m, (DataParallel, DDP))",
    "from torch.nn import DataParallel as D\nok = isinstance(m, D) or isinstance(m, DDP)",
    "from torch.nn import DataParallel\nclass DataParallelStrategy:\n"
    "    def setup(self, m) -> DataParallel:\n        return DataParallel(m)",
    "class DataParallel: ...\nm = DataParallel(m)",
    "from mine import DataParallel\nm = DataParallel(m)",
    "from mine.parallel import scatter, gather\nscatter(x, [0, 1])",
    "import torch.distributed as dist\ndist.scatter(x, xs)\ndist.gather(x, xs)",
    "ok = hasattr(m, 'module')",
    "y = nn.parallel.parallel_apply(ms, xs)",
]


@pytest.mark.parametrize("snippet", NO_WRAPPERS)
def test_wrappers_that_are_right(snippet: str) -> None:
    check("from torch import nn\n" + DDP + snippet)


def test_asking_for_a_wrapper_is_a_hint() -> None:
    for source in (
        "import torch\nok = isinstance(m, torch.nn.DataParallel)\n",
        "import torch\nok = m.__class__ == torch.nn.DataParallel\n",
        "from torch.nn import DataParallel\nok = isinstance(m, DataParallel)\n",
    ):
        assert [f.effective_severity for f in findings(source)] == [Severity.HINT], source
    made = "from torch.nn import DataParallel\nm = DataParallel(m)\n"
    assert [f.effective_severity for f in findings(made)] == [Severity.ERROR]


def test_the_local_rank_is_offered_where_there_is_one() -> None:
    before = DDP + "local_rank = rank()\nm = DDP(m, device_ids=[0, 1])\n"
    assert fixed(before) == before.replace("[0, 1]", "[local_rank]")
    before = DDP + "m = DDP(m, device_ids=[0, 1])\n"
    assert fixed(before) == before


REDUCED = [
    "t = None\n    if x:\n        t = torch.tensor([x], dtype=⟦NPU207:torch.double⟧, device=d)\n"
    "        dist.all_reduce(t)",
    "t = old if ok else torch.zeros(2, dtype=⟦NPU207:torch.float64⟧, device=d)\n"
    "    dist.all_reduce(t)",
    "t = torch.tensor([1.0], dtype=⟦NPU207:torch.float64⟧, device='npu')\n    dist.all_reduce(t)",
    "t = torch.zeros(2, dtype=⟦NPU207:torch.double⟧, device=d)\n    dist.all_reduce(t, op=op)",
    "t = torch.zeros(2, dtype=⟦NPU207:torch.double⟧, device=d)\n    dist.all_reduce(t)\n"
    "    t = ⟦NPU805:t.tolist()⟧",
    "t = torch.zeros(2, dtype=⟦NPU207:torch.float64⟧).to(d)\n    dist.all_reduce(t)",
    "t = torch.zeros(2, dtype=⟦NPU207:torch.float64⟧).npu()\n    dist.all_reduce(t)",
    "t = torch.zeros(2, dtype=⟦NPU207:torch.float64⟧, device=d)\n"
    "    dist.reduce_scatter_tensor(t, x)",
    "t = torch.zeros(2, dtype=torch.float32, device=d)\n    dist.all_reduce(t)",
    "t = torch.zeros(2, dtype=torch.float64)\n    dist.all_reduce(t)",
    "t = torch.zeros(2, dtype=torch.float64, device='cpu')\n    dist.all_reduce(t)",
    "t = torch.zeros(2, dtype=⟦NPU306:torch.float64⟧, device=d)\n    dist.broadcast(t, 0)",
    "t = torch.zeros(2, dtype=⟦NPU306:torch.float64⟧, device=d)\n    t = t.float()\n"
    "    dist.all_reduce(t)",
    "t = torch.zeros(2, dtype=torch.int64, device=d)\n    dist.all_reduce(t)",
    "t = torch.zeros(2, dtype=⟦NPU306:torch.float64⟧, device=d)\n    mine.all_reduce(t)",
]


@pytest.mark.parametrize("snippet", REDUCED)
def test_what_hccl_cannot_reduce(snippet: str) -> None:
    check(DIST + "def f(d, x, op):\n    " + snippet)


# One process for each card.

TRAINED_ELSEWHERE = """
def train(model, batches):
    for x in batches:
        model(x).sum().backward()
"""

IMPORTS = """\
import torch
from torch import nn
from torch.utils.data import DataLoader

from mine import Net, data
"""
SETUP = """\
local_rank = int(os.environ["LOCAL_RANK"])
torch.npu.set_device(local_rank)
torch.distributed.init_process_group(backend="hccl")
"""
TRAINED = """
for epoch in range(3):
    # one pass
    for x in loader:
        model(x).sum().backward()
"""
TRAINED_SAMPLED = TRAINED.replace("# one pass\n", "# one pass\n    sampler.set_epoch(epoch)\n")
SAMPLER = "sampler = torch.utils.data.distributed.DistributedSampler(data)\n"
WRAPPED = 'DistributedDataParallel(Net().to(f"npu:{local_rank}"), device_ids=[local_rank])'


def indented(text: str) -> str:
    return "".join("    " + line if line.strip() else line for line in text.splitlines(True))


SCRIPTS = {
    "module": (
        IMPORTS
        + "loader = DataLoader(data, shuffle=True)  # all\nmodel = nn.DataParallel(Net())"
        + TRAINED,
        "import os\n"
        + IMPORTS.replace("import torch\n", "import torch\nimport torch_npu  # noqa: F401\n", 1)
        + SETUP
        + SAMPLER
        + "loader = DataLoader(data, sampler=sampler)  # all\n"
        + f"model = nn.parallel.{WRAPPED}"
        + TRAINED_SAMPLED,
    ),
    "environment-first": (
        "import os\n"
        + IMPORTS
        + "os.environ['OMP_NUM_THREADS'] = '4'\n"
        + "loader = DataLoader(data, shuffle=True)\nmodel = nn.DataParallel(Net())"
        + TRAINED,
        "import os\n"
        + IMPORTS.replace("import torch\n", "import torch\nimport torch_npu  # noqa: F401\n", 1)
        + "os.environ['OMP_NUM_THREADS'] = '4'\n"
        + SETUP
        + SAMPLER
        + "loader = DataLoader(data, sampler=sampler)\n"
        + f"model = nn.parallel.{WRAPPED}"
        + TRAINED_SAMPLED,
    ),
    "positional-and-imported": (
        "import os, torch, torch_npu\nfrom torch.nn import DataParallel\n"
        "from torch.utils import data as d\nfrom mine import Net, data\n"
        "loader = d.DataLoader(data, 8, True, num_workers=2)\n"
        "model = DataParallel(Net(), [0, 1], 0)" + TRAINED,
        "import os, torch, torch_npu\nfrom torch.nn.parallel import DistributedDataParallel\n"
        "from torch.utils import data as d\nfrom mine import Net, data\n"
        + SETUP
        + SAMPLER
        + "loader = d.DataLoader(data, 8, sampler=sampler, num_workers=2, "
        "persistent_workers=True)\n" + f"model = {WRAPPED}" + TRAINED_SAMPLED,
    ),
    "guard-and-alias": (
        "import os\nimport torch\nimport torch_npu  # noqa: F401\n"
        "from torch.nn.parallel import DataParallel as P\n"
        "from torch.utils.data import DataLoader\nfrom mine import Net, data\n"
        "if __name__ == '__main__':\n"
        + indented("loader = DataLoader(data, shuffle=False)\nmodel = P(module=Net())" + TRAINED),
        "import os\nimport torch\nimport torch_npu  # noqa: F401\n"
        "from torch.nn.parallel import DistributedDataParallel as P\n"
        "from torch.utils.data import DataLoader\nfrom mine import Net, data\n"
        "if __name__ == '__main__':\n"
        + indented(
            SETUP
            + SAMPLER.replace("(data)", "(data, shuffle=False)")
            + "loader = DataLoader(data, sampler=sampler)\nmodel = "
            + WRAPPED.replace("DistributedDataParallel", "P").replace("P(", "P(module=")
            + TRAINED
        ),
    ),
    "main-with-two-loaders": (
        IMPORTS
        + "def main():\n"
        + '    """Train."""\n'
        + indented(
            "device = torch.device('cuda:0')\n"
            "loader = DataLoader(build(data, 'train'), shuffle=True)\n"
            "held_out = DataLoader(build(data, 'test'), shuffle=False)\n"
            "model = Net()\n"
            "if torch.cuda.is_available() and torch.cuda.device_count() > 1:\n"
            "    model = nn.DataParallel(model)\n"
            "if isinstance(model, nn.DataParallel):\n    print('wrapped')" + TRAINED
        )
        + "\nmain()\n",
        "import os\n"
        + IMPORTS.replace("import torch\n", "import torch\nimport torch_npu  # noqa: F401\n", 1)
        + "def main():\n"
        + '    """Train."""\n'
        + indented(
            SETUP + "device = torch.device('npu')\n"
            "dataset = build(data, 'train')\n"
            + SAMPLER.replace("(data)", "(dataset)")
            + "loader = DataLoader(dataset, sampler=sampler)\n"
            "held_out = DataLoader(build(data, 'test'), shuffle=False)\n"
            "model = Net()\n"
            "if torch.npu.is_available() and torch.npu.device_count() > 1:\n"
            "    model = nn.parallel."
            + WRAPPED.replace("Net()", "model")
            + "\nif isinstance(model, nn.parallel.DistributedDataParallel):\n    print('wrapped')"
            + TRAINED_SAMPLED
        )
        + "\nmain()\n",
    ),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_becomes_one_process_for_each_card(name: str) -> None:
    before, after = SCRIPTS[name]
    assert fixed(before) == after
    assert "NPU2" not in str([f.rule.code for f in findings(after)])


def test_a_loader_may_be_handed_to_the_function_that_trains() -> None:
    source = (
        IMPORTS + TRAINED_ELSEWHERE + "loader = DataLoader(data, shuffle=True)\n"
        "model = nn.DataParallel(Net())\n"
        "for epoch in range(2):\n    train(model, loader)\n"
    )
    result = fixed(source)
    assert "sampler.set_epoch(epoch)\n    train(model, loader)" in result
    assert "DataParallel(Net())" in fixed(source.replace("train(model, loader)", "test(loader)"))


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_edit_is_never_safe(name: str) -> None:
    own = [f for f in findings(SCRIPTS[name][0]) if f.rule.name == "data-parallel"]
    assert {fix.applicability.value for f in own for fix in f.fixes} == {"unsafe"}


BOTH_WAYS = """\
import torch
from torch import nn

from project import Net, dataset, hooks, several


def main():
    m = Net()
    if several:
        torch.distributed.init_process_group("nccl")
        m = nn.parallel.DistributedDataParallel(m)
    else:
        m = nn.DataParallel(m)
    for batch in dataset:
        m(batch).sum().backward()
    {last}


main()
"""
STAYING = ("print(m)", "torch.save(m.state_dict(), 'x')", "return m(batch)", "return [batch]")
GIVEN_AWAY = (
    *("return m", "return batch, m", "return {'model': m}"),
    *("hooks.register(m)", "hooks.register([m])", "hooks.register(1, *(batch, [m]))"),
    *("hooks.save(dict(model=m))", "hooks.save({'model': m})", "hooks.kept = list((m, batch))"),
)


@pytest.mark.parametrize("last", [*STAYING, *GIVEN_AWAY])
def test_a_model_that_others_get_keeps_its_wrapper(last: str) -> None:
    text = fixed(BOTH_WAYS.format(last=last))
    assert ("m = nn.DataParallel(m)" in text) == (last in GIVEN_AWAY)


BASE = SCRIPTS["module"][0]


@pytest.mark.parametrize(
    "condition",
    [
        "if torch.cuda.device_count() >= 2:",
        "cards = torch.cuda.device_count()\nif cards > 1:",
        "if not torch.cuda.device_count() < 2:",
        "if torch.cuda.device_count() > 1 or args.parallel:",
        "if use_cuda:",
        "if str(device) == 'cuda' and torch.cuda.is_available():",
        "if args.device == 'npu':",
    ],
)
def test_the_model_may_be_wrapped_where_there_are_several_cards(condition: str) -> None:
    wrapping = f"model = Net()\n{condition}\n    model = nn.DataParallel(model)"
    source = BASE.replace("model = nn.DataParallel(Net())", wrapping)
    assert "DistributedDataParallel(" in fixed(source)


UNCLEAR = {
    "sampler-there": BASE.replace("shuffle=True", "sampler=mine"),
    "batch-sampler": BASE.replace("shuffle=True", "batch_sampler=mine"),
    "options-unpacked": BASE.replace("shuffle=True", "**options"),
    "shuffle-not-literal": BASE.replace("shuffle=True", "shuffle=args.shuffle"),
    "two-loaders": BASE.replace("model =", "other = DataLoader(data, shuffle=True)\nmodel =", 1),
    "loader-elsewhere": BASE.replace(
        "loader = DataLoader(data, shuffle=True)  # all\n",
        "def make():\n    return DataLoader(data, shuffle=True)\nloader = make()\n",
    ),
    "two-wrappers": BASE.replace("\nfor epoch", "\nother = nn.DataParallel(Net())\nfor epoch"),
    "loader-for-something-else": BASE.replace("for x in loader", "for x in stream"),
    "no-training": BASE.replace(".backward()", ".item()"),
    "group-there": BASE.replace("loader =", "torch.distributed.init_process_group()\nloader ="),
    "set-device": BASE.replace("loader =", "torch.npu.set_device(1)\nloader ="),
    "numbered-device": BASE.replace("model(x)", "model(x.cuda(1))"),
    "device-by-number": BASE.replace("model(x)", "model(x.to('cuda:1'))"),
    "device-composed": BASE.replace("model(x)", "model(x.to(f'cuda:{gpu}'))"),
    "condition": BASE.replace(
        "model = nn.DataParallel(Net())",
        "model = Net()\nif args.many:\n    model = nn.DataParallel(model)",
    ),
    "several-conditions": BASE.replace(
        "model = nn.DataParallel(Net())",
        "model = Net()\nif torch.cuda.device_count() > 1 and many:\n"
        "    model = nn.DataParallel(model)",
    ),
    "four-cards": BASE.replace(
        "model = nn.DataParallel(Net())",
        "model = Net()\nif torch.cuda.device_count() > 3:\n    model = nn.DataParallel(model)",
    ),
    "other-arm": BASE.replace(
        "model = nn.DataParallel(Net())",
        "model = Net()\nif torch.cuda.device_count() < 2: pass\nelse:\n"
        "    model = nn.DataParallel(model)",
    ),
    "dimension": BASE.replace("nn.DataParallel(Net())", "nn.DataParallel(Net(), dim=1)"),
    "comment-inside": BASE.replace("(Net())", "(Net(),\n    # both\n    device_ids=[0, 1])"),
    "one-line": BASE.replace("loader =", "x = 1; loader ="),
    "os-is-another": "from mine import os\n" + BASE,
    "library": IMPORTS
    + "def train(data):\n"
    + indented("loader = DataLoader(data, shuffle=True)\nmodel = nn.DataParallel(Net())" + TRAINED),
    "method": IMPORTS
    + "class T:\n    def run(self):\n"
    + indented(
        indented(
            "loader = DataLoader(data, shuffle=True)\nmodel = nn.DataParallel(Net())" + TRAINED
        )
    ),
    "functional": BASE + "        nn.parallel.data_parallel(model, x)\n",
}


@pytest.mark.parametrize("name", UNCLEAR)
def test_what_is_not_clear_is_explained_and_not_edited(name: str) -> None:
    source = UNCLEAR[name]
    ast.parse(source)
    own = [f for f in findings(source) if f.rule.name == "data-parallel"]
    assert own
    for finding in own:
        assert finding.fixes == ()
        assert "DistributedSampler" in finding.message("en")
        assert "DistributedSampler" in finding.message("zh")


def test_lines_keep_their_ending() -> None:
    before, after = SCRIPTS["module"]
    assert fixed(before.replace("\n", "\r\n")) == after.replace("\n", "\r\n")


def test_broken_code_elsewhere_costs_only_the_edit() -> None:
    source = code(
        """
        import torch
        model = torch.nn.DataParallel(model)
        x = (
        """
    )
    assert {f.rule.code for f in findings(source)} == {"NPU001", "NPU202"}


@pytest.mark.parametrize("path", ["tests/test_zero.py", "scripts/nccl_two_streams.py", "train.py"])
def test_the_name_of_a_file_settles_no_process_group(path: str) -> None:
    source = "import torch.distributed as dist\ndist.init_process_group('nccl')\n"
    found = analyze(Document(path, source), CATALOGUE, Target())
    assert [finding.rule.code for finding in found] == ["NPU201"]


def test_settings_of_mmcv_are_no_error() -> None:
    """Its newer releases take HCCL by themselves."""
    (found,) = findings("dist_params = dict(backend='nccl')\n")
    assert found.effective_severity is Severity.INFO


def test_the_group_is_made_where_its_modules_are_there() -> None:
    """Scripts extend `sys.path` before they import."""
    text = """\
import sys
sys.path.append("..")
import os
import torch
from torch import nn
from torch.utils.data import DataLoader

model = nn.DataParallel(Net()).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1)
loader = DataLoader(data, batch_size=4, shuffle=True)
for x in loader:
    model(x).sum().backward()
    optimizer.step()
"""
    result = fixed(text)
    assert "DistributedDataParallel(" in result
    assert result.index("import torch\n") < result.index("local_rank = int(os.environ")


BRANCHES = (
    "import torch\nfrom torch import nn\n\n"
    "def main(args, net):\n"
    "    if args.distributed:\n"
    "        net = nn.parallel.DistributedDataParallel(net)\n"
    "    else:\n"
    "        {}\n"
    "    train(net)\n\n"
    "def train(net):\n"
    "    net(1).backward()\n"
)
"""A script that may run in several processes."""


@pytest.mark.parametrize(
    ("wrapped", "bare"),
    [
        ("net = nn.DataParallel(net)", "pass"),
        ("net = nn.DataParallel(net, device_ids=[0, 1]).half()", "net = net.half()"),
        ("net = nn.DataParallel(module=net)\n        net.half()", "net.half()"),
        ("net.a = nn.DataParallel(net.a)\n        net.b = 1", "net.b = 1"),
        ("net = nn.DataParallel(net if a else b)", "net = (net if a else b)"),
    ],
)
def test_a_script_with_processes_does_without_the_wrapper(wrapped: str, bare: str) -> None:
    assert fixed(BRANCHES.format(wrapped), Applicability.UNSAFE) == BRANCHES.format(bare)


@pytest.mark.parametrize(
    "source",
    [
        BRANCHES.format("net = nn.DataParallel(net)") + "    torch.save(net.module, 'a')\n",
        BRANCHES.format("net = nn.DataParallel(net)") + "    save(net)\n",
        BRANCHES.format("net = nn.DataParallel(net)").replace(".backward()", ""),
        BRANCHES.format("return nn.DataParallel(net)"),
        BRANCHES.format("net = nn.DataParallel(  # all\n            net)"),
        BRANCHES.format("net = nn.DataParallel(*nets)"),
    ],
)
def test_a_wrapper_that_may_be_needed_stays(source: str) -> None:
    assert "nn.DataParallel(" in fixed(source, Applicability.UNSAFE)
