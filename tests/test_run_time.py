"""Migration at run time: who imports `transfer_to_npu`, what it patches, and what is left."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from commands import invoke, records
from helpers import SHIM, check, code, fixed
from lsp_client import LspClient, Message
from npulens.analysis import analyze
from npulens.catalog.loader import load_catalogue
from npulens.catalog.model import Shim, Target
from npulens.cli.main import cli
from npulens.fixes.apply import apply_edits
from npulens.fixes.shim_edits import shim_rewrite
from npulens.text.document import Document
from npulens.workspace.project.shim import ShimFinder

IMPORT = "from torch_npu.contrib import transfer_to_npu\n"
MADE = "from torch_npu.contrib import transfer_to_npu  # noqa: F401\n"

# Ways to turn the shim on; `torch.cuda.synchronize()` behind each is no finding.
ON = [
    "from torch_npu.contrib import transfer_to_npu",
    "from torch_npu.contrib import transfer_to_npu as _",
    "from torch_npu.contrib import transfer_to_npu  # noqa: F401",
    "import torch_npu.contrib.transfer_to_npu",
    "from torch_npu.contrib.transfer_to_npu import *",
    "import importlib; importlib.import_module('torch_npu.contrib.transfer_to_npu')",
    "try:\n    from torch_npu.contrib import transfer_to_npu\nexcept ImportError:\n    pass",
    "if NPU:\n    from torch_npu.contrib import transfer_to_npu",
    "def start():\n    from torch_npu.contrib import transfer_to_npu",
    "import mindspeed.megatron_adaptor  # noqa",
    "from mindspeed.megatron_adaptor import repatch",
    "from mindspeed import megatron_adaptor",
    "from mindspeed_llm import megatron_adaptor",
    "from modellink.tasks.megatron_adaptor import get_megatron_module",
    "import os\nos.environ['TORCH_TRANSFER_TO_NPU'] = '1'",
]
OFF = [
    "# from torch_npu.contrib import transfer_to_npu",
    '"""Add `from torch_npu.contrib import transfer_to_npu` for the NPU."""',
    "message = 'from torch_npu.contrib import transfer_to_npu'",
    "from mindspeed.core import megatron_adaptor",
    "def repatch():\n    from mindspeed.megatron_adaptor import repatch",
    "import mindspeed",
    "print('needs transfer_to_npu of torch_npu')",
    "from .contrib import transfer_to_npu",
    "from mylib.contrib import transfer_to_npu  # not that of torch_npu",
    "transfer_to_npu = None  # torch_npu",
    "import os\nos.environ['TORCH_TRANSFER_TO_NPU'] = '0'",
]


@pytest.mark.parametrize("statement", ON)
def test_the_shim_is_on(statement: str) -> None:
    check(f"{statement}\nimport torch\ntorch.cuda.synchronize()\n")


@pytest.mark.parametrize("statement", OFF)
def test_a_word_turns_nothing_on(statement: str) -> None:
    check(f"{statement}\nimport torch\n⟦NPU101:torch.cuda.synchronize⟧()\n")


# The points that transfer_to_npu does not handle; each stays a finding under it.
LEFT = {
    "01-backend-test": "import torch.distributed as dist\ndist.get_backend() == ⟦NPU201:'nccl'⟧",
    "01-backend-list": "assert backend in ['gloo', ⟦NPU201:'nccl'⟧]",
    "02-device-type": "x.device.type == ⟦NPU111:'cuda'⟧",
    "02-device-string": "str(x.device).startswith(⟦NPU111:'cuda'⟧)",
    "03-device-object": "torch.device(⟦NPU110:'cuda'⟧)",
    "04-script": "f = ⟦NPU501:torch.jit.script⟧(f)",
    "04-script-decorator": "@⟦NPU501:torch.jit.script⟧\ndef f(x): ...\nf.save(p)",
    "05-channels-last": "x.to(memory_format=⟦NPU401:torch.channels_last⟧)",
    "06-data-parallel": "⟦NPU202:torch.nn.DataParallel⟧(m)",
    "07-float64": "⟦NPU107:torch.cuda.DoubleTensor⟧(3)",
    "08-nvtx": "⟦NPU502:torch.cuda.nvtx.range_push⟧('a')",
    "08-nccl": "⟦NPU203:torch.cuda.nccl.version⟧()",
    "08-arch-list": "⟦NPU103:torch.cuda.get_arch_list⟧()",
    "08-cudart": "⟦NPU103:torch.cuda.cudart⟧()",
    "08-temperature": "⟦NPU103:torch.cuda.temperature⟧()",
    "08-submodule": "⟦NPU101:torch.cuda.memory.memory_allocated⟧()",
    "09-build": "⟦NPU112:torch.version.cuda⟧ is not None",
    "09-capability": "⟦NPU103:torch.cuda.get_device_capability⟧() >= (8, 0)",
    "10-tf32": "⟦NPU402:torch.backends.cuda.matmul.allow_tf32⟧ = True",
    "10-cudnn": "⟦NPU402:torch.backends.cudnn.benchmark⟧ = True",
    "11-type-string": "x.type(⟦NPU107:'torch.cuda.FloatTensor'⟧)",
    "11-default-type": "torch.set_default_tensor_type(⟦NPU107:torch.cuda.FloatTensor⟧)",
    "12-scaler": "⟦NPU303:torch.amp.GradScaler⟧()",
    "12-custom-fwd": "torch.amp.custom_fwd(device_type=⟦NPU302:'cuda'⟧)",
    "13-function": "torch.load(f, map_location=lambda storage, loc: storage.⟦NPU105:cuda⟧(0))",
    "14-pinning": "torch.utils.data.DataLoader(d, pin_memory_device=⟦NPU110:'cuda'⟧)",
    "14-fork": "torch.random.fork_rng(device_type=⟦NPU110:'cuda'⟧)",
    "14-pinned": "x.is_pinned(⟦NPU110:'cuda'⟧)",
    "14-stream": "torch.Stream(device=⟦NPU110:'cuda'⟧)",
    "15-visible": "import os\nos.environ[⟦NPU901:'CUDA_VISIBLE_DEVICES'⟧] = '0'",
    "15-nccl": "import os\nos.environ[⟦NPU901:'NCCL_DEBUG'⟧] = 'INFO'",
    "18-order": "def f(device=torch.device(⟦NPU110:'cuda'⟧)): ...",
    "16-extension": "import torch.utils.cpp_extension as e\n⟦NPU601:e.CUDAExtension⟧('a', [])",
}


@pytest.mark.parametrize("name", LEFT)
def test_what_the_shim_leaves_stays_a_finding(name: str) -> None:
    check(f"import torch\n{IMPORT}{LEFT[name]}\n")
    check(f"import torch\n{LEFT[name]}\n", SHIM)


SILENT = [
    "torch.load(f, map_location='cuda')",
    "move = lambda x: x.cuda()",
    "add = lambda x, y: x.cuda() + y",
    "torch.cuda.get_device_name(0)",
    "torch.cuda.get_device_properties(0).total_memory",
    "torch.cuda.FloatTensor(3)",
    "torch.cuda.synchronize()",
    "x.is_cuda",
    "model.cuda(0)",
    "torch.autocast('cuda')",
    "torch.distributed.init_process_group('nccl')",
    "torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA])",
    "device = 'cuda'",
]


@pytest.mark.parametrize("snippet", SILENT)
def test_what_the_shim_patches_is_no_finding(snippet: str) -> None:
    check(f"import torch\n{IMPORT}{snippet}\n")
    check(f"import torch\n{snippet}\n", SHIM)


# What an adaptor of MindSpeed patches besides; the shim alone leaves the second of each.
ADAPTED = [
    ("x.type() == 'torch.cuda.FloatTensor'", "x.type() == ⟦NPU107:'torch.cuda.FloatTensor'⟧"),
    (
        "x.type() in ('torch.cuda.HalfTensor', 'torch.HalfTensor')",
        "x.type() in (⟦NPU107:'torch.cuda.HalfTensor'⟧, 'torch.HalfTensor')",
    ),
    ("from megatron.core import mpu", "from ⟦NPU604:megatron.core⟧ import mpu"),
    (
        "from apex.optimizers import FusedAdam",
        "from apex.optimizers import ⟦NPU603:FusedAdam⟧",
    ),
]


@pytest.mark.parametrize(("adapted", "shimmed"), ADAPTED)
def test_what_an_adaptor_patches_is_no_finding(adapted: str, shimmed: str) -> None:
    check(f"import torch\nimport mindspeed.megatron_adaptor\n{adapted}\n")
    check(f"import torch\n{IMPORT}{shimmed}\n")
    found = analyze(
        Document("a.py", f"import torch\n{adapted}\n"),
        load_catalogue(),
        Target(shim=Shim.ADAPTED),
    )
    assert not found


@pytest.mark.parametrize(
    "snippet",
    ["x.type(⟦NPU107:'torch.cuda.FloatTensor'⟧)", "from apex.optimizers import ⟦NPU603:FusedLAMB⟧"],
)
def test_what_an_adaptor_leaves_stays_a_finding(snippet: str) -> None:
    check(f"import torch\nimport mindspeed.megatron_adaptor\n{snippet}\n")


# What `from torch... import` takes before the shim is not patched.
EARLY = [
    ("from torch.cuda.amp import ⟦NPU114:GradScaler⟧", ""),
    ("from torch.cuda.amp import ⟦NPU114:GradScaler as Scaler⟧", ""),
    ("from torch.cuda import ⟦NPU114:synchronize⟧, ⟦NPU114:Stream⟧", "synchronize()"),
    ("from torch.distributed import ⟦NPU114:is_nccl_available⟧", ""),
    ("try:\n    from torch.cuda.amp import ⟦NPU114:autocast⟧\nexcept ImportError:\n    pass", ""),
    ("from torch import zeros", "zeros(3, device=⟦NPU110:'cuda'⟧)"),
    ("from torch import zeros as z", "z(3, device=⟦NPU110:f'cuda:{i}'⟧)"),
    ("from torch import load", "load(path, ⟦NPU110:'cuda:0'⟧)"),
    ("from torch import Generator", "Generator(⟦NPU110:'cuda'⟧)"),
    (
        "from torch.distributed import init_process_group",
        "init_process_group(⟦NPU201:'nccl'⟧)",
    ),
    # modules, and classes that the shim changes from within
    ("from torch import cuda", "cuda.synchronize()"),
    ("from torch.cuda import amp", "amp.GradScaler()"),
    ("from torch import nn", "nn.Linear(2, 2, device='cuda').cuda()"),
    ("from torch import autocast", "autocast('cuda')"),
    ("from torch.distributed import new_group", "new_group(backend='nccl')"),
    ("from torch.distributed.device_mesh import DeviceMesh", "DeviceMesh('cuda', [0])"),
    # not of torch, or not before
    ("from mylib import zeros", "zeros(3, device='cuda')"),
    ("from torch import zeros", "torch.zeros(3, device='cuda')"),
    ("from torch import zeros", "zeros(3)"),
    ("x = 1", "from torch.cuda.amp import GradScaler\nGradScaler()"),
    ("x = 1", "from torch import zeros\nzeros(3, device='cuda')"),
    ("from torch import zeros", "from torch import zeros\nzeros(3, device='cuda')"),
    ("def f():\n    from torch.cuda.amp import GradScaler\n    GradScaler()", "f()"),
    ("if TYPE_CHECKING:\n    from torch.cuda.amp import GradScaler", "x: GradScaler"),
]


@pytest.mark.parametrize(("before", "after"), EARLY)
def test_the_order_of_imports_counts(before: str, after: str) -> None:
    check(f"import torch\n{before}\n{IMPORT}{after}\n")


def test_under_a_configuration_the_order_is_not_known() -> None:
    check("from torch.cuda.amp import GradScaler\nGradScaler()\n", SHIM)


def test_a_shim_in_a_function_comes_after_all_imports() -> None:
    check(
        code("""
            from torch.cuda.amp import ⟦NPU114:GradScaler⟧


            def main():
                from torch_npu.contrib import transfer_to_npu

                GradScaler()
        """)
    )


MOVED = [
    (
        f"import torch\nfrom torch.cuda import synchronize\n{IMPORT}\nsynchronize()\n",
        f"import torch\n{IMPORT}from torch.cuda import synchronize\n\nsynchronize()\n",
    ),
    (
        "from torch.cuda.amp import GradScaler\nfrom torch.cuda import synchronize\n"
        f"{IMPORT}synchronize()\n",
        f"{IMPORT}from torch.cuda.amp import GradScaler\n"
        "from torch.cuda import synchronize\nsynchronize()\n",
    ),
    # not on lines of its own: to be done by hand
    (
        f"from torch.cuda import synchronize\nx = 1; {IMPORT}synchronize()\n",
        f"from torch.cuda import synchronize\nx = 1; {IMPORT}synchronize()\n",
    ),
]


@pytest.mark.parametrize(("before", "after"), MOVED)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_the_fix_imports_the_shim_first(before: str, after: str, newline: str) -> None:
    assert fixed(before.replace("\n", newline), SHIM) == after.replace("\n", newline)


@pytest.mark.parametrize("shim", [Shim.ABSENT, Shim.ACTIVE, Shim.LATE])
def test_the_analysis_is_told_about_the_scripts(shim: Shim) -> None:
    source = "import torch\nfrom torch.cuda import synchronize\nx.cuda()\nx.device.type == 'cuda'\n"
    found = analyze(Document("a.py", source), load_catalogue(), Target(shim=shim))
    assert [finding.rule.code for finding in found] == {
        Shim.ABSENT: ["NPU101", "NPU105", "NPU111"],
        Shim.ACTIVE: ["NPU111"],
        Shim.LATE: ["NPU114", "NPU111"],
    }[shim]
    assert not any(f.fixes for f in found if f.rule.code == "NPU114")


# The import graph

TREES: dict[str, tuple[dict[str, str], dict[str, Shim]]] = {
    "a module of a shimmed script": (
        {"train.py": f"import torch\n{IMPORT}import model\n", "model.py": ""},
        {"model.py": Shim.ACTIVE},
    ),
    "a module imported before the shim": (
        {"train.py": f"import model\n{IMPORT}", "model.py": "from ops import f\n", "ops.py": ""},
        {"model.py": Shim.LATE, "ops.py": Shim.LATE},
    ),
    "transitively, through packages and relative imports": (
        {
            "train.py": f"{IMPORT}import pkg.a\n",
            "pkg/__init__.py": "",
            "pkg/a.py": "from . import b\nfrom .c import (\n    d,  # (x)\n    e,\n)\n",
            "pkg/b.py": "from ..pkg import f\n",
            "pkg/c.py": "",
            "pkg/f.py": "",
            "pkg/unused.py": "",
        },
        {f"pkg/{name}.py": Shim.ACTIVE for name in ("__init__", "a", "b", "c", "f")},
    ),
    "a script without the shim has the last word": (
        {
            "train.py": f"{IMPORT}import model, data\n",
            "test_gpu.py": "import tools\n",
            "evaluate.py": "import model\n\nif __name__ == '__main__':\n    model.run()\n",
            "model.py": "import layers\n",
            "layers.py": "",
            "data.py": "",
        },
        {"data.py": Shim.ACTIVE},
    ),
    "plain code at the top makes a script": (
        {
            "train.py": f"{IMPORT}import model\n",
            "old.py": "import model\nmodel.run()\n",
            "model.py": "",
        },
        {},
    ),
    "a module with a self-test is no script": (
        {
            "train.py": f"{IMPORT}import model\n",
            "model.py": "import ops\nif __name__ == '__main__':\n    print(1)\n",
            "ops.py": "",
        },
        {"model.py": Shim.ACTIVE, "ops.py": Shim.ACTIVE},
    ),
    "tests are no scripts": (
        {
            "train.py": f"{IMPORT}import model\n",
            "tests/test_model.py": "import model\nmodel.run()\n",
            "model.py": "",
        },
        {"model.py": Shim.ACTIVE},
    ),
    "the shim in a module of its own": (
        {
            "train.py": "import early\nimport compat\nimport model\n",
            "compat.py": f"import torch\n{IMPORT}",
            "model.py": "",
            "early.py": "",
        },
        {
            "train.py": Shim.ACTIVE,
            "compat.py": Shim.LATE,
            "early.py": Shim.LATE,
            "model.py": Shim.ACTIVE,
        },
    ),
    "an import in a function happens later": (
        {"train.py": f"def main():\n    import model\n{IMPORT}main()\n", "model.py": ""},
        {"model.py": Shim.ACTIVE},
    ),
    "by environment variable": (
        {
            "train.py": "import os\nos.environ['TORCH_TRANSFER_TO_NPU'] = '1'\nimport model\n",
            "model.py": "",
        },
        {"model.py": Shim.ACTIVE},
    ),
    "by environment variable between imports": (
        {
            "train.py": (
                "import os\nimport early\nimport numpy\n"
                "os.environ['TORCH_TRANSFER_TO_NPU'] = '1'\nimport model\n"
            ),
            "early.py": "",
            "model.py": "",
        },
        {"early.py": Shim.LATE, "model.py": Shim.ACTIVE},
    ),
    "sources below src": (
        {"train.py": f"{IMPORT}from pkg import model\n", "src/pkg/model.py": ""},
        {"src/pkg/model.py": Shim.ACTIVE},
    ),
    "scripts in a folder, modules above it": (
        {"tools/train.py": f"{IMPORT}from pkg.model import f\n", "pkg/model.py": ""},
        {"pkg/model.py": Shim.ACTIVE},
    ),
    "circles": (
        {"train.py": f"{IMPORT}import a\n", "a.py": "import b\n", "b.py": "import a\n"},
        {"a.py": Shim.ACTIVE, "b.py": Shim.ACTIVE},
    ),
    "two shimmed scripts, one of them late": (
        {"a.py": f"{IMPORT}import model\n", "b.py": f"import model\n{IMPORT}", "model.py": ""},
        {"model.py": Shim.LATE},
    ),
    "only a comment": (
        {"train.py": "# transfer_to_npu\nimport model\n", "model.py": ""},
        {},
    ),
    "an adaptor of MindSpeed": (
        {
            "train.py": "import mindspeed.megatron_adaptor  # noqa\nimport model\n",
            "generate.py": "from mindspeed_llm import megatron_adaptor\nimport text\n",
            "early.py": "from modellink.tasks import inference\n",
            "model.py": "",
            "text.py": "",
        },
        {"model.py": Shim.ADAPTED, "text.py": Shim.ADAPTED},
    ),
    "an adaptor for which a block asks": (
        {
            "train.py": "import pkg.model\n",
            "pkg/__init__.py": "if NPU:\n    import mindspeed.megatron_adaptor\n",
            "pkg/model.py": "",
            "pkg/lazy.py": "import importlib\n",
        },
        {
            "train.py": Shim.ADAPTED,
            "pkg/__init__.py": Shim.LATE,
            "pkg/model.py": Shim.ADAPTED,
            "pkg/lazy.py": Shim.ADAPTED,
        },
    ),
    "an adaptor for which a function asks, or only types do": (
        {
            "train.py": "import model\n\n\ndef main():\n    import suite\n\n\nmain()\n",
            "typed.py": "if TYPE_CHECKING:\n    import suite\nimport model\n\nmodel.run()\n",
            "suite.py": "import mindspeed.megatron_adaptor\nimport layers\n",
            "model.py": "",
            "layers.py": "",
        },
        {},
    ),
    "a package that imports the shim, and who reaches into it": (
        {
            "pkg/__init__.py": f"from . import early\nfrom . import compat\n{IMPORT}",
            "pkg/compat.py": IMPORT,
            "pkg/early.py": "",
            "pkg/lazy.py": "",
            "pkg/tool.py": "if __name__ == '__main__':\n    print(1)\n",
            "pkg/kernels/setup.py": "",
            "pkg/lists.py": f"import core\n{IMPORT}",
            "train.py": f"{IMPORT}import core\n",
            "core.py": "",
        },
        {
            "core.py": Shim.ACTIVE,
            "pkg/compat.py": Shim.LATE,
            "pkg/early.py": Shim.LATE,
            "pkg/lazy.py": Shim.ACTIVE,
        },
    ),
    "a test has no say in the order": (
        {
            "train.py": f"{IMPORT}import model\n",
            "tests/test_model.py": f"import model\n{IMPORT}",
            "model.py": "",
        },
        {"model.py": Shim.ACTIVE},
    ),
    "code at the top of a module in a package is no script": (
        {
            "train.py": f"{IMPORT}import pkg.layers\n",
            "pkg/__init__.py": "",
            "pkg/layers.py": "",
            "pkg/specs.py": "from pkg import layers\n\nlayers.register()\n",
        },
        {f"pkg/{name}.py": Shim.ACTIVE for name in ("__init__", "layers")},
    ),
    "no shim at all": ({"train.py": "import model\n", "model.py": ""}, {}),
    "what is no Python": (
        {"train.py": f"{IMPORT}import model\n", "model.py": "def (:\x00"},
        {"model.py": Shim.ACTIVE},
    ),
}


def written(tree: Mapping[str, str], folder: Path) -> list[Path]:
    paths = []
    for name, text in tree.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths


@pytest.mark.parametrize("name", TREES)
def test_what_scripts_lead_to(name: str, tmp_path: Path) -> None:
    tree, expected = TREES[name]
    states = ShimFinder().states(written(tree, tmp_path), tmp_path)
    assert {Path(p).relative_to(tmp_path).as_posix(): s for p, s in states.items()} == expected


def test_a_finder_sees_what_is_saved(tmp_path: Path) -> None:
    files = written({"train.py": f"{IMPORT}import model\n", "model.py": ""}, tmp_path)
    finder = ShimFinder()
    model = str(tmp_path / "model.py")
    assert finder.states(files, tmp_path) == {model: Shim.ACTIVE}
    (tmp_path / "train.py").write_text("import model\nmodel.run()\n", encoding="utf-8")
    assert finder.states(files, tmp_path) == {}
    (tmp_path / "train.py").write_text(f"import model\n{IMPORT}", encoding="utf-8")
    assert finder.states(files, tmp_path) == {model: Shim.LATE}
    (tmp_path / "model.py").unlink()
    assert set(finder.states(files, tmp_path)) <= {model}


WITHOUT = {
    "straight code": ({"train.py": "import torch\nx = torch.ones(2).cuda()\n"}, {"train.py"}),
    "a module that names CUDA": (
        {"train.py": "import model\nmodel.run()\n", "model.py": "import torch\nx.cuda()\n"},
        {"train.py"},
    ),
    "with the shim": ({"train.py": f"import torch\n{IMPORT}x = torch.ones(2).cuda()\n"}, set()),
    "nothing of CUDA": ({"train.py": "import torch\nprint(torch.ones(2))\n"}, set()),
    "a module": ({"tools.py": "import torch\n\ndef f(x):\n    return x.cuda()\n"}, set()),
    "a test": ({"test_x.py": "import torch\nprint(torch.ones(2).cuda())\n"}, set()),
    "what does not parse": ({"run.py": "import torch\nprint(x.cuda())\ny = (\n"}, {"run.py"}),
    "one of two scripts": (
        {
            "first.py": f"import torch\n{IMPORT}import model\n",
            "second.py": "import model\nmodel.run()\n",
            "model.py": "import torch\nx.cuda()\n",
        },
        {"second.py"},
    ),
}


@pytest.mark.parametrize("name", WITHOUT)
def test_a_program_starts_without_the_shim(name: str, here: Path) -> None:
    tree, expected = WITHOUT[name]
    written(tree, here)
    (here / "npulens.toml").write_text('migration-style = "runtime-shim"\n')
    found = [each for each in records(".") if each["code"] == "NPU115"]
    assert {each["path"] for each in found} == expected
    for style in ("npu", "device-agnostic"):
        left = records(".", "--migration-style", style)
        assert "NPU115" not in {each["code"] for each in left}


def test_the_fix_puts_the_shim_where_a_program_starts(here: Path) -> None:
    written({"train.py": "import torch\nx = torch.ones(2).cuda()\n"}, here)
    style = ["--migration-style", "runtime-shim"]
    invoke("fix", "--unsafe-fixes", "--allow-dirty", *style, "train.py")
    text = (here / "train.py").read_text()
    assert text == (
        "import torch\nfrom torch_npu.contrib import transfer_to_npu  # noqa: F401\n"
        "x = torch.ones(2).cuda()\n"
    )
    assert records("train.py", *style) == []


def test_an_editor_says_that_a_program_starts_without_the_shim(here: Path) -> None:
    """Until the import is typed, though nothing is saved."""
    (here / "npulens.toml").write_text('migration-style = "runtime-shim"\n')
    text = "import torch\nx = torch.ones(2).cuda()\n"
    written({"train.py": text}, here)
    with LspClient() as client:
        client.initialize(workspaceFolders=[{"uri": here.as_uri(), "name": "here"}])
        uri = (here / "train.py").as_uri()
        client.open(uri, text)
        assert [each["code"] for each in client.diagnostics(uri, 1)] == ["NPU115"]
        client.change(uri, 2, {"text": text.replace("torch\n", f"torch\n{IMPORT}", 1)})
        assert client.diagnostics(uri, 2) == []


# The command

PROJECT = {
    "train.py": f"import torch\n{IMPORT}import model\n",
    "model.py": "import torch\ntorch.cuda.synchronize()\nx.device.type == 'cuda'\n",
    "other.py": "import torch\ntorch.cuda.synchronize()\n",
}


def codes_of(*arguments: str) -> dict[str, list[str]]:
    result = CliRunner().invoke(cli, ["check", "--output-format", "json", *arguments])
    found: dict[str, list[str]] = {}
    for each in json.loads(result.stdout):
        found.setdefault(Path(each["path"]).name, []).append(each["code"])
    return found


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_check_reads_a_folder_with_its_scripts(tmp_path: Path, jobs: str) -> None:
    written(PROJECT, tmp_path)
    assert codes_of(str(tmp_path), "--jobs", jobs) == {
        "model.py": ["NPU111"],
        "other.py": ["NPU101"],
    }


def test_a_file_alone_is_read_with_the_scripts_of_its_project(tmp_path: Path) -> None:
    written(PROJECT, tmp_path)
    model = str(tmp_path / "model.py")
    assert codes_of(model) == {"model.py": ["NPU101", "NPU111"]}
    (tmp_path / "npulens.toml").write_text("", encoding="utf-8")
    assert codes_of(model) == {"model.py": ["NPU111"]}


# The server


def uri_of(path: Path) -> str:
    return path.as_uri()


def codes(diagnostics: list[Message]) -> list[str]:
    return [each["code"] for each in diagnostics]


def test_the_editor_reads_a_file_with_the_scripts_of_its_folder(tmp_path: Path) -> None:
    train, model, _ = written(PROJECT, tmp_path)
    with LspClient() as client:
        client.initialize(rootUri=uri_of(tmp_path))
        client.open(uri_of(model), PROJECT["model.py"])
        assert codes(client.diagnostics(uri_of(model), 1)) == ["NPU111"]
        client.open(uri_of(train), PROJECT["train.py"])
        assert client.diagnostics(uri_of(train), 1) == []
        # Without the shim in the script, which is saved, the open module is looked at again.
        text = "import torch\nimport model\nmodel.run()\n"
        train.write_text(text, encoding="utf-8")
        client.change(uri_of(train), 2, {"text": text})
        client.published.clear()
        client.save(uri_of(train))
        assert codes(client.diagnostics(uri_of(model), 1)) == ["NPU101", "NPU111"]


# Adding and removing the shim

ADDED = [
    ("import torch\nx = 1\n", 0, f"import torch\n{MADE}x = 1\n"),
    (
        "import torch\nimport torch_npu  # noqa: F401\nx = 1\n",
        0,
        f"import torch\nimport torch_npu  # noqa: F401\n{MADE}x = 1\n",
    ),
    (
        "import torch\nimport torch_npu  # noqa: F401\nx = 1\n",
        1,
        f"import torch\nimport torch_npu  # noqa: F401\n{MADE}x = 1\n",
    ),
    ("import torch\nimport torch.nn as nn\n", 1, f"import torch\nimport torch.nn as nn\n{MADE}"),
    ("import torch", 0, f"import torch\n{MADE[:-1]}"),
    (
        '"""Doc."""\r\nimport torch\r\nx = 1\r\n',
        1,
        f'"""Doc."""\r\nimport torch\r\n{MADE[:-1]}\r\nx = 1\r\n',
    ),
]
REMOVED = [
    (f"import torch\n{IMPORT}x = 1\n", 1, "import torch\nx = 1\n"),
    ("import torch\nimport torch_npu.contrib.transfer_to_npu\n", 1, "import torch\n"),
    (f"import torch\n{IMPORT[:-1]}", 1, "import torch\n"),
    (f"import torch\n{IMPORT[:-1]}  # noqa: F401\nx = 1\n", 1, "import torch\nx = 1\n"),
]
NOTHING = [
    (f"import torch\n{IMPORT}", 0),  # it is there
    (f"import torch\nx = 1\n\ndef f():\n    {IMPORT}", 0),
    ("import os\nx = 1\n", 0),
    ("import torch\nx = 1\n", 1),
    ('"""\nimport torch\n"""\n', 1),  # a text
    (f'x = """\n{IMPORT}"""\n', 1),
    ("from torch_npu.contrib import transfer_to_npu, other\n", 0),
    ("from torch_npu.contrib import other\n", 0),
    ("import torchvision\n", 0),
    ("def f():\n    import torch\n", 1),
    ("x = (\nimport torch\n", 1),
]


def rewritten(text: str, line: int) -> str | None:
    start = len("".join(text.splitlines(keepends=True)[:line]))
    fix = shim_rewrite(text, start, start)
    return None if fix is None else apply_edits(text, fix.edits)


@pytest.mark.parametrize(("before", "line", "after"), [*ADDED, *REMOVED])
def test_the_shim_is_added_and_removed(before: str, line: int, after: str) -> None:
    assert rewritten(before, line) == after


@pytest.mark.parametrize(("text", "line"), NOTHING)
def test_elsewhere_there_is_nothing_to_rewrite(text: str, line: int) -> None:
    assert rewritten(text, line) is None


def test_the_editor_offers_to_add_and_remove_the_shim(tmp_path: Path) -> None:
    uri = uri_of(tmp_path / "script.py")
    text = "import torch\n\nx.cuda()\n"
    with LspClient() as client:
        capabilities = client.initialize(locale="zh-CN")
        assert "refactor.rewrite" in capabilities["codeActionProvider"]["codeActionKinds"]
        client.open(uri, text)
        assert codes(client.diagnostics(uri, 1)) == ["NPU105"]
        [action] = client.code_actions(uri, (0, 0), (0, 12))
        assert action["kind"] == "refactor.rewrite"
        assert action["title"] == "通过 `transfer_to_npu` 在 NPU 上运行"
        [edit] = action["edit"]["changes"][uri]
        assert (edit["range"]["start"], edit["newText"]) == ({"line": 1, "character": 0}, MADE)

        client.change(uri, 2, {"text": f"import torch\n{IMPORT}\nx.cuda()\n"})
        assert client.diagnostics(uri, 2) == []
        [action] = client.code_actions(uri, (1, 3), (1, 3))
        assert action["title"] == "移除 `transfer_to_npu`"
        assert client.code_actions(uri, (1, 3), (1, 3), only=["refactor"]) == [action]
        assert not client.code_actions(uri, (1, 3), (1, 3), only=["quickfix"])
        assert not client.code_actions(uri, (0, 0), (0, 0))
        assert not client.code_actions(uri, (3, 0), (3, 3))


def test_an_action_of_another_kind_is_not_ours(tmp_path: Path) -> None:
    uri = uri_of(tmp_path / "script.py")
    with LspClient() as client:
        client.initialize()
        client.open(uri, "import torch\n\nx.cuda()\n")
        assert not client.code_actions(uri, (0, 0), (2, 8), only=["source.fixAll.other"])
        kinds = [a["kind"] for a in client.code_actions(uri, (0, 0), (0, 0), only=[""])]
        assert kinds == ["refactor.rewrite"]


# What is replaced by hand, and what hands CUDA itself around.
PATCHED = [
    "torch.cuda.synchronize = torch.npu.synchronize",
    "torch.cuda.CUDAGraph = torch.npu.NPUGraph",
    "torch.cuda.graph = npu_graph_wrapper",
    "torch.cuda.Stream = torch.cuda.stream = torch.npu.Stream",
    "manager.register_patch('torch.cuda.get_device_capability', capability)",
    "add_patches('torch.cuda.FloatTensor', mine)",
    "saved = ⟦NPU101:torch.cuda.synchronize⟧",
    "⟦NPU101:torch.cuda.synchronize⟧ = lambda: None",
    "⟦NPU101:torch.cuda.synchronize⟧.calls = torch.npu",
    "register(⟦NPU107:'torch.cuda.FloatTensor'⟧, mine)",
    "manager.register_patch(⟦NPU107:'torch.cuda.FloatTensor'⟧)",
    "from unittest import mock\nmock.patch(⟦NPU107:'torch.cuda.FloatTensor'⟧, mine)",
]


@pytest.mark.parametrize("snippet", PATCHED)
def test_the_target_of_a_patch_is_no_finding(snippet: str) -> None:
    check(f"import torch\nimport torch_npu\n{snippet}\n")
