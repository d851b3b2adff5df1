"""PyTorch's own APIs: what each release does not support or limits, and what only looks like it."""

import json
import re
from pathlib import Path

import pytest
from tests.helpers import CATALOGUE, check, findings, unmarked

from npulens.analysis import analyze, judge
from npulens.catalog.loader import with_verified_names
from npulens.catalog.model import Finding, Severity, Target, TorchVersion
from npulens.catalog.native_tables import NativeEntry, includes
from npulens.checks.entries import longest_entry
from npulens.text.document import Document

NATIVE = CATALOGUE.native
RELEASES = [TorchVersion(2, minor) for minor in range(6, 14)]
WITH_NAMES = with_verified_names(CATALOGUE)
HEADER = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"


UNSUPPORTED = [
    "⟦NPU503:torch.std_mean⟧(x)",
    "import torch as t\n⟦NPU503:t.var_mean⟧(x)",
    "F.pad(x, 1); ⟦NPU503:F.pdist⟧(x)",
    "⟦NPU503:nn.functional.pdist⟧(x)",
    "⟦NPU503:nn.MaxPool3d⟧(2)",
    "⟦NPU503:torch.nn.modules.pooling.MaxPool3d⟧(2)",
    "⟦NPU503:torch.nn.modules.MaxPool3d⟧(2)",
    "class Net(⟦NPU503:nn.TransformerEncoder⟧):\n    pass",
    "layers = [⟦NPU503:nn.AvgPool3d⟧, nn.ReLU]",
    "def move_to_cpu(parts):\n    return ⟦NPU503:torch.std_mean⟧(parts)",
    "def cpu_offload(parts):\n    return ⟦NPU503:torch.std_mean⟧(parts)",
    "def f(n):\n    y = torch.rand(n)\n    y = y.to(d)\n    return ⟦NPU503:torch.std_mean⟧(y)",
    "def f(y, n):\n    if n:\n        y = torch.rand(n)\n    return ⟦NPU503:torch.std_mean⟧(y)",
    "⟦NPU503:torch.std_mean⟧(torch.rand(3, device=d))",
    "def f(k):\n    y = torch.rand(3, **k)\n    return ⟦NPU503:torch.std_mean⟧(y)",
    "if required_torch_version(min_version=1.0):\n    ⟦NPU503:torch.std_mean⟧(x)",
    "class Net(nn.Module):\n    def __init__(self):\n        self.pool = ⟦NPU503:nn.AvgPool3d⟧(2)\n"
    "    def forward(self, y):\n        return self.pool(y)",
    "class Net(nn.Module):\n    def __init__(self):\n        self.pool = ⟦NPU503:nn.AvgPool3d⟧(2)\n"
    "    def forward(self, y):\n        for layer in self.children():\n            y = layer(y)\n"
    "        return y",
    "class Net(Base):\n    def __init__(self):\n        self.pool = ⟦NPU503:nn.AvgPool3d⟧(2)",
    "from torch.distributed.optim import ⟦NPU503:DistributedOptimizer⟧\n"
    "def f(o):\n    return isinstance(o, DistributedOptimizer) or DistributedOptimizer(o)",
    "pool = ⟦NPU503:F.adaptive_max_pool2d⟧",
    "from torch.func import ⟦NPU503:jvp⟧",
    "from torch.func import ⟦NPU503:jacrev as jacobian⟧",
    "from torch import func\n⟦NPU503:func.jacfwd⟧(f)",
    "from torch.nn.utils.rnn import (\n    pad_sequence,\n    ⟦NPU503:pack_padded_sequence⟧,\n)",
    "from torch.nn.utils import rnn\n⟦NPU503:rnn.pack_sequence⟧(x)",
    "def f():\n    import torch.fft as fft\n    return ⟦NPU503:fft.fftshift⟧(1)",
    "class A:\n    def __init__(self):\n        self.op = torch.fft\n"
    "    def g(self, x):\n        return ⟦NPU503:self.op.fftfreq⟧(x)",
    "⟦NPU503:getattr(torch, 'poisson')⟧(x)",
    "list(map(⟦NPU503:torch.nanquantile⟧, []))",
    "from torch.fft import *\n⟦NPU503:fftshift⟧(1)",
    "if True:\n    y = ⟦NPU503:torch.from_dlpack⟧(x)",
    "⟦NPU503:torch.Tensor.mode⟧(x)",
    "torch.zeros(3).⟦NPU503:mode⟧()",
    "y = torch.zeros(3)\ny.⟦NPU503:mode⟧(dim=0)",
    "y = F.relu(x)\ny.⟦NPU503:to_sparse⟧()",
    "def f(y: torch.Tensor):\n    return y.⟦NPU503:mode⟧()",
    "from torch import Tensor\ndef f(y: Tensor):\n    return y.⟦NPU503:to_sparse_csr⟧()",
    "from typing import Optional\ndef f(y: Optional[torch.Tensor] = None):\n"
    "    return y.⟦NPU503:unique_consecutive⟧()",
    "def f(y: torch.Tensor | None):\n    return y.⟦NPU503:qscheme⟧()",
    "class A:\n    def __init__(self):\n        self.x = torch.ones(2)\n"
    "    def g(self):\n        return self.x.⟦NPU503:mode⟧()",
    "class A:\n    def __init__(self, x: torch.Tensor):\n        self.x = x\n"
    "    def g(self):\n        return self.x.⟦NPU503:share_memory_⟧()",
    "class Net(nn.Module):\n    def forward(self, y):\n        return y.⟦NPU503:mode⟧(dim=1)",
    "class Base(nn.Module):\n    pass\nclass Net(Base):\n    def forward(self, y):\n"
    "        return y.float().⟦NPU503:to_sparse⟧()",
    "class Net(nn.Module):\n    def forward(self, y):\n        y = y.view(-1)\n"
    "        return y.⟦NPU503:unique_consecutive⟧()",
    "torch.ones(3).float().view(-1).⟦NPU503:to_mkldnn⟧()",
    "(torch.ones(3) * 2 + 1).⟦NPU503:mode⟧()",
    "torch.ones(3)[0].⟦NPU503:mode⟧()",
    "nn.Parameter(torch.ones(3)).data.⟦NPU503:mode⟧()",
    "y = torch.ones(3)\nz = y\nz.⟦NPU503:is_shared⟧()",
    "torch.ones(3).⟦NPU503:mode⟧().values",
    "⟦NPU503:nn.utils.clip_grad_norm⟧([], 1.0)",
    "⟦NPU503:torch.export.export⟧(x, ())",
    "torch.zeros(3, device=d).⟦NPU503:share_memory_⟧()",
    "F.gelu = wrap(⟦NPU503:F.pdist⟧)",
    "from torch.distributed.fsdp import FullyShardedDataParallel as FSDP\n"
    "s = ⟦NPU503:FSDP.optim_state_dict⟧(m, o)\n"
    "s = FSDP.rekey_optim_state_dict(s, k, m)  # names alone, on the host\n"
    "kind = FSDP.get_state_dict_type(m)",
]

LIMITED = [
    "⟦NPU501:torch.linalg.lstsq⟧(x, x)",
    "⟦NPU501:torch.nested.nested_tensor⟧([])",
    "torch.ones(3).⟦NPU501:apply_⟧(abs)",
    "torch.ones(3).⟦NPU501:double⟧()",
    "torch.ones(3).⟦NPU501:map_⟧(x, abs)",
    "F.max_pool2d(x, 2, dilation=⟦NPU501:2⟧)",
    "F.max_pool2d(x, 2, 2, 0, ⟦NPU501:(2, 2)⟧)",
    "F.max_pool2d(x, 2, return_indices=⟦NPU501:True⟧)",
    "F.interpolate(x, scale_factor=⟦NPU501:2.0⟧)",
    "F.interpolate(x, None, ⟦NPU501:scale⟧)",
    "F.interpolate(x, size=3, mode=⟦NPU501:'nearest-exact'⟧)",
    "torch.topk(x, 3, sorted=⟦NPU501:False⟧)",
    "torch.ones(9).topk(3, sorted=⟦NPU501:False⟧)",
    "from torch import topk\ntopk(x, 3, sorted=⟦NPU501:False⟧)",
    "nn.LSTM(4, 4, dropout=⟦NPU501:0.1⟧)",
    "nn.LSTM(4, 4, 1, True, False, 0.0, False, ⟦NPU501:2⟧)",
    "nn.KLDivLoss(log_target=⟦NPU501:True⟧)",
    "import torch.distributed.rpc as rpc\n⟦NPU501:rpc.init_rpc⟧('worker')",
    "torch.hann_window(⟦NPU501:20000⟧)",
    "torch.compile(net, backend=⟦NPU501:'cudagraphs'⟧)",
    "@torch.compile(mode=⟦NPU501:'max-autotune'⟧, fullgraph=True)\ndef f(y): pass",
    "from torch import compile\ncompile(net, backend=⟦NPU501:'tensorrt'⟧)",
    "from torch.nn.attention.flex_attention import ⟦NPU501:flex_attention⟧, create_block_mask",
]

TYPES = [
    "def f(y: torch.Tensor):\n    return ⟦NPU504:torch.angle⟧(y.to(⟦NPU306:torch.complex128⟧))",
    "⟦NPU504:torch.softmax⟧(torch.ones(3, dtype=⟦NPU306:torch.float64⟧, device=d), 0)",
    "torch.ones(3, dtype=⟦NPU306:torch.double⟧, device=d).⟦NPU504:cumsum⟧(0)",
    "def f(y: torch.Tensor):\n    return y.to(dtype=⟦NPU306:torch.float64⟧).⟦NPU504:cumsum⟧(0)",
    "def f(y: torch.Tensor):\n"
    "    return ⟦NPU504:torch.angle⟧(y.to(d, ⟦NPU306:torch.complex128⟧ if a else None))",
    "⟦NPU504:torch.softmax⟧("
    "torch.ones(3, dtype=None if a else ⟦NPU306:torch.float64⟧, device=d), 0)",
]

NOTHING = [
    # Names of others
    "class Camera:\n    def mode(self): ...\nCamera().mode()",
    "def f(y): return y.mode()",
    "import pandas as pd\npd.Series([1]).mode()",
    "class Net(nn.Module):\n    def mode(self): ...\n    def forward(self, y): return self.mode()",
    "class Net(nn.Module):\n    def forward(self, y: dict): return y.values()",
    "class Net(nn.Module):\n    def forward(self, y):\n        y['a']\n        return y.mode()",
    "class Net(nn.Module):\n    def forward(self, y):\n"
    "        return y.mode() if isinstance(y, Box) else y",
    "class Net(nn.Module):\n    def forward(self, *y): return y.mode()",
    "class Net(nn.Module):\n    def forward(self, y=None): return y.mode()",
    "class Net(nn.Module):\n    def sample(self, y): return y.mode()",
    "class Net:\n    def forward(self, y): return y.mode()",
    "posterior = vae.encode(x)\nposterior.mode()",
    "y = torch.load('x')\ny.mode()",
    "y = torch.ones(3)\ny = make(y)\ny.mode()",
    "y = torch.ones(3) if fast else Box()\ny.mode()",
    "def std_mean(x): ...\nstd_mean(x)",
    "import numpy as np\nnp.fft.fftshift(x)",
    "import jax\njax.jvp(f)",
    "from jax import jvp, jacrev\njvp(f)",
    "class torch2:\n    std_mean = 1\ntorch2.std_mean",
    "def f(torch): return torch.std_mean(1)",
    "self = 1\nfunc = Func()\nfunc.jvp()",
    "try:\n    from torch.func import other\nexcept ImportError:\n    from mine import other",
    "sparse = scipy.sparse\nsparse.to_sparse_csr()",
    "model.interpolate(scale_factor=2)",
    "from .functional import jvp\njvp()",
    # Mentions
    "# torch.std_mean(x)",
    "text = 'torch.std_mean'",
    "def f():\n    'torch.std_mean(x)'",
    "isinstance(x, nn.MaxPool3d)",
    "isinstance(x, (nn.MaxPool3d, nn.AvgPool3d))",
    "issubclass(x, nn.RNN)",
    "def f(m: nn.RNN) -> nn.AvgPool3d: ...",
    "m: nn.RNN",
    "type(x) is nn.RNN",
    "table = {nn.RNN: 1}",
    "hasattr(torch, 'std_mean')",
    "Layer = Union[nn.RNN, nn.MaxPool3d]",
    "sizes[nn.RNN] = 3",
    "F.pdist = wrap(F.pdist)",
    "torch.zeros(3).share_memory_()",
    "torch.ones(3, device='cpu').share_memory_()",
    "print('torch.std_mean is slow')",
    # For the host, or for another accelerator
    "sizes = torch.unique_consecutive(torch.tensor([each.shape[-1] for each in xs]))",
    "def make_weight_cpu(parts):\n    return torch.cat(parts).to_dense()",
    "def split(m):\n    d = torch.neuron.current_device()\n    return torch.std_mean(m.to(d))",
    "def attend_cudnn(q):\n    with torch.nn.attention.sdpa_kernel(b):\n        return f(q)",
    "torch.unique_consecutive(torch.zeros_like(x, device='cpu'))",
    "def grid(n):\n    base = torch.linspace(1, 0, n)\n    base = 2 * base / (1 + base)\n"
    "    return torch.unique_consecutive(base)",
    "def trace(model):\n    image = torch.randn(1, 3)\n    torch.export.export(model, (image,))",
    "def trace(model):\n    image = torch.randn(1, 3)\n"
    "    torch.export.export(model, args=(image,))",
    # Never run
    "if required_torch_version(max_version=0.4):\n    clip = torch.nn.utils.clip_grad_norm",
    "class Net(nn.Module):\n    def __init__(self):\n        self.pool = nn.AvgPool3d(2)\n"
    "    def forward(self, y):\n        return y",
    "from torch.distributed.optim import DistributedOptimizer\n"
    "def f(o):\n    return isinstance(o, (DistributedOptimizer, A))",
    # The profiler in types, and ranges around CUDA libraries
    "def make() -> torch.profiler.profile:\n    plan: torch.profiler.schedule = None",
    "Profiler = Union[torch.profiler.profile, None]",
    "with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as p: pass",
    "def pick(t):\n    t['mtia'] = torch.profiler.ProfilerActivity.MTIA",
    "class TextDataset:\n    def __getitem__(self, i):\n"
    "        return torch.unique_consecutive(self.units[i])",
    "def f(n):\n    n = torch.LongTensor(n)\n    return n.unique_consecutive()",
    # Supported, or nothing to be seen
    "torch.std(x), torch.mean(x)",
    "torch.vmap(f)",
    "torch.func.vmap(f)",
    "nn.DataParallel",
    "o = torch.optim.Adam([])\no.step()",
    "x.to(d); torch.ones(3).to('cpu')",
    "torch.ones(3).cpu().mode()",
    "F.max_pool2d(x, 2, dilation=1)",
    "F.max_pool2d(x, 2, dilation=d)",
    "F.max_pool2d(x, 2, return_indices=False)",
    "F.max_pool2d(*a, **k)",
    "F.interpolate(x, size=3, mode='bilinear')",
    "F.interpolate(x, size=3, scale_factor=None)",
    "F.interpolate(x, size=3, mode=mode)",
    "torch.topk(x, 3)",
    "torch.topk(x, 3, sorted=True)",
    "nn.LSTM(4, 4, dropout=0.0)",
    "nn.LSTM(4, 4, dropout=p)",
    "nn.GELU(approximate='tanh')",
    "import torch.distributed.rpc as rpc\nrpc.init_rpc('w', backend=b)",
    "import torch.distributed.rpc as rpc\nrpc.init_rpc('w', **options)",
    "torch.cumsum(torch.ones(3, dtype=torch.float64), 0)",
    "torch.cumsum(torch.ones(3, dtype=torch.float64, device='cpu'), 0)",
    "torch.cumsum(torch.ones(3, dtype=torch.float32, device=d), 0)",
    "torch.cumsum(torch.ones(3).to(torch.float64), 0)",
    "torch.cumsum(x.to(torch.float64), 0)",
    "def f(y: torch.Tensor): return y.to(torch.complex64).reshape(-1)",
    "nn.Linear(2, 2, dtype=torch.float64)",
    "torch.relu(x)",
]


def with_header(snippet: str) -> str:
    """The snippet behind the usual imports."""
    return f"{HEADER}x = load()\n{snippet}\n"


@pytest.mark.parametrize("snippet", UNSUPPORTED + LIMITED + TYPES)
def test_found(snippet: str) -> None:
    check(with_header(snippet), torch=(2, 13))


@pytest.mark.parametrize("snippet", NOTHING)
def test_not_found(snippet: str) -> None:
    found = findings(with_header(snippet), torch=(2, 13))
    assert not [f for f in found if f.rule.family == "api"]


def test_there_is_enough_of_both() -> None:
    assert len(UNSUPPORTED + LIMITED + TYPES) >= 60
    assert len(NOTHING) >= 60


@pytest.mark.parametrize(
    ("snippet", "versions"),
    [
        ("torch.cdist(x, x)", {6}),
        ("nn.GRU(2, 2)", {6, 8, 9, 10}),
        ("torch.unique_consecutive(x)", {6, 8, 9, 10, 11, 12, 13}),
        ("torch.fft.ifftshift(x)", {6, 7, 8, 11, 12, 13}),
        ("torch.compiler.assume_constant_result(x)\ntorch.compile(x)", {6, 8, 9, 10}),
        ("torch.accelerator.get_device_capability()", {12, 13}),
        ("nn.Transformer()", {8}),
        ("nn.MultiheadAttention(2, 2)", {6}),
        ("F.grid_sample(x, x)", {6}),
        ("torch.std_mean(x)", set(range(6, 14))),
        ("torch.mean(x)", set()),
    ],
)
def test_the_release_decides(snippet: str, versions: set[int]) -> None:
    found = {
        version.minor
        for version in RELEASES
        if any(f.rule.code == "NPU503" for f in findings(with_header(snippet), torch=version))
    }
    assert found == versions


@pytest.mark.parametrize(
    ("snippet", "minor", "since"),
    [
        ("nn.MaxPool2d(2)", 6, "2.7"),
        ("nn.MultiheadAttention(2, 2)", 6, "2.7"),
        ("torch.nn.utils.clip_grad_norm_(x, 1.0)", 6, "2.7"),
        ("nn.GRU(2, 2)", 8, "2.11"),
    ],
)
def test_what_later_tables_list_is_said_in_passing(snippet: str, minor: int, since: str) -> None:
    (found,) = findings(with_header(snippet), torch=(2, minor))
    assert found.effective_severity is Severity.INFO
    assert f"from PyTorch {since} on" in found.message("en")


def test_a_release_without_a_table_has_that_of_the_nearest() -> None:
    code = with_header("torch.cdist(x, x)")
    assert [f.rule.code for f in findings(code, torch=(2, 1))] == ["NPU503"]
    assert findings(code, torch=(2, 14)) == ()


def crossed_out() -> list[tuple[NativeEntry, TorchVersion]]:
    return [
        (entry, version)
        for entry in NATIVE.entries.values()
        for version in RELEASES
        if any(
            limit.kind.rule.code == "NPU503" and includes(limit.versions, version)
            for limit in entry.limits
        )
    ]


def found_or_settled(code: str, version: TorchVersion) -> list[Finding]:
    """All that is found; what matters to a compiler alone is settled."""
    judged = judge(Document("x.py", code), CATALOGUE, Target(version))
    return [*judged.findings, *judged.settled]


def test_every_api_crossed_out_is_found_through_an_alias() -> None:
    """In each release; a rule written by hand may speak of it instead."""
    checked = 0
    for entry, version in crossed_out():
        assert not any(entry.api.startswith(f"{symbol}.") for symbol in CATALOGUE.symbols)
        code = f"import torch as library\nlibrary{entry.api.removeprefix('torch')}\n"
        found = found_or_settled(code, version)
        assert [(f.rule.code, f.arguments["symbol"]) for f in found] == [("NPU503", entry.api)]
        assert code[slice(*found[0].span)] == code.splitlines()[1]
        checked += 1
    assert checked > 1400


def test_every_api_crossed_out_is_found_where_it_is_imported() -> None:
    for entry, version in crossed_out():
        module, _, name = entry.api.rpartition(".")
        if module.rpartition(".")[2][:1].isupper():
            continue  # a member of a class
        code = f"from {module} import {name} as other\n"
        found = found_or_settled(code, version)
        assert [f.arguments["symbol"] for f in found] == [entry.api]


def test_an_api_is_not_told_twice() -> None:
    for symbol in (
        "torch.backends.cuda.enable_flash_sdp",
        "torch.nn.DataParallel",
        "torch.cuda.memory_usage",
        "torch.profiler.ProfilerActivity.name",
    ):
        found = findings(f"import torch\n{symbol}\n", torch=(2, 13))
        assert len(found) == 1
        assert found[0].rule.code not in ("NPU503", "NPU504")


def test_texts_are_whole_in_both_languages() -> None:
    for entry in NATIVE.entries.values():
        for limit in entry.limits:
            if limit.note is not None:
                for text in limit.note:
                    assert text.endswith((".", "。"))
                    assert "{" not in text
                    assert "None" not in text


def test_message_names_the_release_and_what_to_use() -> None:
    [found] = findings("import torch\ntorch.std_mean(1)\n", torch=(2, 7))
    assert found.message("en") == (
        "`torch.std_mean` is not supported on the NPU with PyTorch 2.7. "
        "It can be written with `torch.std`, `torch.mean`."
    )
    assert "PyTorch 2.7" in found.message("zh")
    assert found.effective_severity is Severity.WARNING


@pytest.mark.parametrize("minor", range(6, 14))
def test_a_function_whose_module_the_tables_have_is_no_finding(minor: int) -> None:
    source = "import torch.nn.functional as F\nF.conv3d(x, w)\n"
    assert findings(source, torch=(2, minor)) == ()


def test_a_suppression_counts() -> None:
    assert findings("import torch\ntorch.std_mean(1)  # npulens: ignore[NPU503]\n") == ()


def test_triggers_are_words_of_the_names() -> None:
    assert not NATIVE.triggers & {"to", "sum", "mode", "torch", "functional", "nn", "Module"}
    for snippet in UNSUPPORTED + LIMITED + TYPES:
        source, _ = unmarked(snippet)
        words = re.findall(r"\w+", source) + re.findall(r"\.\w+", source)
        assert CATALOGUE.triggers.intersection(words), snippet


# Names that are not listed


def unverified(code: str, version: tuple[int, int] = (2, 13)) -> list[str]:
    found = analyze(Document("x.py", code), WITH_NAMES, Target(TorchVersion(*version)))
    return [f.arguments["symbol"] for f in found if f.rule.code == "NPU505"]


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("torch.quantile(1, 2)", ["torch.quantile"]),
        ("from torch import quantile", ["torch.quantile"]),
        ("torch.no_such_name", ["torch.no_such_name"]),
        ("torch.nn.parameter.Parameter", []),
        ("torch.nn.Parameter", []),
        ("torch.amp.autocast", []),
        ("torch.inference_mode()", []),
        ("torch.no_grad()", []),
        ("torch.nn.Linear.weight", []),
        ("torch.nn.modules.linear.Linear", []),
        ("torch.float32, torch.long, torch.Size, torch.pi, torch.channels_last", []),
        ("torch.nn, torch.optim, torch.distributed.fsdp", []),
        ("from torch import nn\nfrom torch.utils.data import DataLoader", []),
        ("torch.std_mean(1)", []),
        ("torch.cuda.synchronize()", []),
        ("torch._C._jit_pass_inline", []),
        ("torch.__version__", []),
        ("x.quantile(1)", []),
    ],
)
def test_unverified(code: str, names: list[str]) -> None:
    assert unverified(f"import torch\n{code}\n") == names


def test_a_name_may_be_listed_in_one_release_only() -> None:
    code = "import torch\ntorch.scatter_add(1)\n"
    assert unverified(code, (2, 7)) == []
    assert unverified(code, (2, 13)) == ["torch.scatter_add"]


def test_unverified_names_are_off_by_default() -> None:
    rule = CATALOGUE.rules["NPU505"]
    assert not rule.enabled
    assert rule.severity is Severity.HINT
    assert findings("import torch\ntorch.quantile(1, 2)\n") == ()
    assert [r.code for r in CATALOGUE.rules.values() if not r.enabled] == ["NPU505"]


# What became of each fact

ROOT = Path(__file__).resolve().parents[1]
COVERAGE = [
    line.split("\t")
    for line in (ROOT / "tests" / "data" / "native_coverage.tsv")
    .read_text(encoding="utf-8")
    .splitlines()[1:]
]


def test_coverage_is_that_of_the_rules() -> None:
    assert len([row for row in COVERAGE if row[0] == "native_api_support"]) == 3451
    for fact, api, outcome in COVERAGE:
        kind, _, what = outcome.partition(": ")
        entry = NATIVE.entries.get(api) if fact == "native_api_support" else None
        if entry is not None:
            named = {limit.kind.rule.name for limit in entry.limits}
            assert kind == "rule", api
            assert set(what.split(", ")) == named, api
        elif kind == "rule":
            prefixes = [api.rsplit(".", n)[0] for n in range(api.count("."))]
            symbols = [CATALOGUE.symbols[p].rule.name for p in prefixes if p in CATALOGUE.symbols]
            method = CATALOGUE.methods.get(api.rpartition(".")[2])
            assert what in (symbols[:1] or [method.rule.name if method else None]), api
        else:
            assert kind == "out", api
    told = {row[1] for row in COVERAGE if row[0] == "native_api_support"}
    assert NATIVE.entries.keys() <= told


def test_coverage_page_counts_the_same() -> None:
    page = (ROOT / "docs" / "coverage" / "native.md").read_text(encoding="utf-8")
    counted = sum(int(n) for n in re.findall(r"^\| (?:rule|out): .* \| (\d+) \|$", page, re.M))
    assert counted == len(COVERAGE)
    for outcome in {row[2] for row in COVERAGE}:
        assert f"| {outcome} | " in page


def test_the_list_of_names_is_that_of_the_facts() -> None:
    listed = json.loads((ROOT / "rules/native/verified.json").read_text(encoding="utf-8"))
    names = {name for found in listed.values() for name in found}
    assert names == {
        api for fact, api, _ in COVERAGE if fact in ("native_api_support", "private_apis")
    }


def test_hand_written_entries_come_first() -> None:
    class Given:
        catalogue = CATALOGUE

    for api in NATIVE.entries:
        assert longest_entry(api, Given()) is None, api  # type: ignore[arg-type]


def test_minor_advice_is_given_once_for_a_file() -> None:
    source = (
        "import torch\nfrom torch.nn import functional as F\n\n\n"
        "def f(x: torch.Tensor):\n    x = F.interpolate(x, scale_factor=2)\n"
        "    return F.interpolate(x, scale_factor=2)\n"
    )
    assert [finding.rule.code for finding in findings(source)] == ["NPU501"]
