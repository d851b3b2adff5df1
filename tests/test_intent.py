"""What code is meant for: findings that say nothing where a module or a function stands for it."""

# ruff: noqa: E501

from dataclasses import replace
from pathlib import Path

import pytest

from helpers import CATALOGUE, marked, unmarked
from helpers import Mark as FoundMark
from npulens.analysis import analyze
from npulens.catalog.model import Target, TorchVersion
from npulens.text.document import Document
from npulens.workspace.files.discovery import discover
from npulens.workspace.project.project_facts import project_facts


def check_file(path: str, snippet: str, target: Target | None = None) -> None:
    """Assert that the marked places of a file are found, and nothing else."""
    source, expected = unmarked(snippet)
    found = analyze(Document(path, source), CATALOGUE, target or Target())
    marks = [FoundMark(*finding.span, finding.rule.code) for finding in found]
    assert marked(source, marks) == marked(source, expected)


T = "import torch\n"
NMS = "def {}(b, s):\n    from torchvision.ops import {}\n    return nms(b, s, 0.5)\n"


@pytest.mark.parametrize(
    ("path", "snippet"),
    [
        # the compiler
        ("a.py", T + "@torch.compiler.disable\ndef f(): ...\n"),
        ("a.py", T + "@torch.compiler.disable\ndef f(): ...\nre.compile(x)\n"),
        (
            "a.py",
            T + "def disable(f):\n    return torch.compiler.disable(f)\ndef g(f):\n"
            "    return torch.compile(f)\n",
        ),
        # scripted functions
        ("a.py", T + "@torch.jit.script\ndef f(x):\n    return x\ny = f(x)\n"),
        ("a.py", T + "@torch.jit.script\ndef f(x):\n    return x\n"),
        ("a.py", T + "@⟦NPU501:torch.jit.script⟧\ndef f(x):\n    return x\nexport(f)\n"),
        ("a.py", T + "fuse = ⟦NPU501:torch.jit.script⟧\nif new:\n    fuse = unchanged\n"),
        ("a.py", T + "@⟦NPU501:torch.jit.script⟧\ndef f(x):\n    return x\nf(x)\nf.save('f')\n"),
        (
            "a.py",
            T
            + "def f(g):\n    try:\n        return torch.jit.script(g)\n    except Exception:\n        return g\n",
        ),
        (
            "a.py",
            T
            + "def f(g):\n    try:\n        return ⟦NPU501:torch.jit.script⟧(g)\n    except KeyError:\n        return g\n",
        ),
        # attention
        (
            "a.py",
            "from torch.nn.attention import SDPBackend as B, ⟦NPU501:sdpa_kernel⟧\n"
            "with sdpa_kernel([B.MATH, B.EFFICIENT_ATTENTION]):\n    y = f(q)\n",
        ),
        (
            "a.py",
            T
            + "def attend(q):\n    with ⟦NPU501:torch.nn.attention.sdpa_kernel⟧(b):\n        return f(q)\n",
        ),
        # exporting
        ("a.py", T + "e = ⟦NPU503:torch.export.export⟧(m, x)\n"),
        ("trtllm/convert.py", "from ⟦NPU602:tensorrt_llm⟧ import Builder\n"),
        ("a.py", "from ⟦NPU602:tensorrt_llm⟧ import Builder\n"),
        ("a.py", "def convert(m):\n    import ⟦NPU602:tensorrt⟧\n    return tensorrt\n"),
        ("trtllm/convert.py", "import ⟦NPU602:cupy⟧\n"),
        ("a.py", NMS.format("run", "⟦NPU604:nms⟧")),
        ("exporter.py", "import ⟦NPU602:cupy⟧\n"),
        # operators on what was brought to the CPU
        (
            "a.py",
            "from ⟦NPU604:mmcv.ops⟧ import nms\ndef f(boxes, s):\n    a = boxes.cpu()\n    return nms(boxes, s, 0.5)\n",
        ),
        (
            "a.py",
            "from ⟦NPU604:mmcv.ops⟧ import nms\ndef f(boxes, s):\n    a = boxes.cpu()\n    a = a.to(s)\n    return nms(a, s, 0.5)\n",
        ),
        # tests that do not run without a library
        (
            "test_a.py",
            "import pytest\nif not ready:\n    pytest.skip('not ready', allow_module_level=True)\n"
            "import ⟦NPU602:transformer_engine as te⟧\n",
        ),
        (
            "test_a.py",
            "import pytest\npytestmark = [pytest.mark.skipif(not ready, reason='no'), pytest.mark.slow]\n"
            "def test():\n    import ⟦NPU602:transformer_engine_torch⟧\n",
        ),
        # kernels for CUDA, other frameworks
        ("kernels/forward.py", "import ⟦NPU602:cutlass⟧\n"),
        ("kernels/grace_hopper.py", "import ⟦NPU602:cutlass⟧\n"),
        ("tools/reproduce.py", "import ⟦NPU602:cutlass⟧\n"),
        ("PyTorch/Detection/input.py", "from ⟦NPU602:nvidia.dali⟧ import fn\n"),
        # functions of an extension that may be missing
        (
            "a.py",
            "def is_cuda_extension_usable():\n    x = torch.ones(2, device=⟦NPU110:'cuda'⟧)\n    return run(x)\n",
        ),
        (
            "a.py",
            "def load_cuda_extension():\n    from torch.utils.cpp_extension import load\n    return ⟦NPU601:load⟧('x', s)\n",
        ),
        # the same question for the NPU, and a word that only looks like it
        (
            "a.py",
            T
            + "def npu_available(): ...\ndef cuda_available():\n    return torch.cuda.is_available()\n",
        ),
        (
            "a.py",
            T + "def set_input_size(n): ...\n"
            "def cuda_available():\n    return ⟦NPU101:torch.cuda.is_available⟧()\n",
        ),
        # names that are only asked for
        ("a.py", "from mmcv.ops import RoIPool\nk = isinstance(m, RoIPool)\n"),
        (
            "a.py",
            "from ⟦NPU604:mmcv.ops⟧ import RoIPool\nk = isinstance(m, RoIPool) or RoIPool(2)\n",
        ),
        (
            "a.py",
            "from ⟦NPU604:mmcv.ops⟧ import RoIPool, RoIAlign\nk = isinstance(m, RoIPool)\nRoIAlign(2)\n",
        ),
        (
            "a.py",
            "def f():\n    import bitsandbytes as bnb\n    return getattr(bnb, 'devices', ())\n"
            "def g(bnb):\n    return bnb.nn\n",
        ),
        (
            "a.py",
            "def f(m):\n    import bitsandbytes as bnb\n    return isinstance(m, bnb.nn.Linear8bitLt)\n",
        ),
        (
            "a.py",
            "import ⟦NPU604:bitsandbytes as bnb⟧\ndef f(m):\n    return ⟦NPU605:bnb.nn.Linear8bitLt⟧(m)\n",
        ),
        # imports that nothing uses
        ("a.py", "from ⟦NPU604:mmcv.ops⟧ import nms\n"),
        ("__init__.py", "from torchvision.ops import ⟦NPU604:nms⟧\n"),
        ("a.py", "from torchvision.ops import ⟦NPU604:nms⟧  # for others\n"),
        ("a.py", "from torchvision.ops import ⟦NPU604:nms⟧\n__all__ = ['nms']\n"),
        # libraries of which the module has tried another part
        (
            "a.py",
            "try:\n    import detectron2\nexcept ImportError:\n    detectron2 = None\n"
            "def f():\n    from detectron2.checkpoint import Loader\n    return Loader()\n",
        ),
        (
            "a.py",
            "def f():\n    from ⟦NPU606:detectron2.checkpoint⟧ import Loader\n    return Loader()\n",
        ),
        # authors who thought of the NPU
        (
            "a.py",
            "def f(b):\n    # A fast one.\n"
            "    import torchvision\n    return ⟦NPU604:torchvision.ops.nms⟧(b)\n",
        ),
        # patches of a compiler without kernels
        (
            "a.py",
            "from triton.runtime.cache import FileCacheManager\nfrom triton import __version__\n",
        ),
        ("a.py", "from ⟦NPU604:triton⟧ import jit, __version__\n"),
        # data that is prepared on the host
        ("pack/dataset/normal.py", T + "def f(m):\n    return torch.std_mean(m, dim=0)\n"),
        ("pack/models/norm.py", T + "def f(m):\n    return ⟦NPU503:torch.std_mean⟧(m, dim=0)\n"),
        (
            "pack/dataset/ahead.py",
            T + "def f(m):\n    return ⟦NPU503:torch.std_mean⟧(m.⟦NPU105:cuda⟧(), dim=0)\n",
        ),
    ],
)
def test_what_code_is_meant_for(path: str, snippet: str) -> None:
    check_file(path, snippet)


def test_a_module_that_calls_a_supported_function() -> None:
    for minor, code in ((7, "nn.MaxPool1d"), (8, "⟦NPU503:nn.MaxPool1d⟧")):
        check_file("a.py", f"from torch import nn\np = {code}(2)\n", Target(TorchVersion(2, minor)))


BUILDER = "class {}Builder:\n    def sources(self):\n        return ['csrc/{}.cpp']\n"
BINDING = '#include "cuda.h"\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{ m.def("{}", &f); }}\n'


def test_sources_that_a_builder_for_the_npu_stands_in_for(tmp_path: Path) -> None:
    files = {
        "builders/adam.py": BUILDER.format("Adam", "adam"),
        "builders/lamb.py": BUILDER.format("Lamb", "lamb"),
        "builders/npu/adam.py": "class AdamBuilder(NPUBuilder):\n    pass\n",
        "csrc/adam.cpp": BINDING.format("adam"),
        "csrc/lamb.cpp": BINDING.format("lamb"),
        "pkg/ops/csrc/lamb.cpp": BINDING.format("lamb"),
        "pkg/ops/csrc/other/lamb.cpp": BINDING.format("other"),
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    facts = project_facts(discover([str(tmp_path)], (), tmp_path).files, [tmp_path], CATALOGUE)
    target = replace(Target(), project=facts)
    told = {
        name
        for name, text in files.items()
        if name.endswith(".cpp")
        and analyze(Document(str(tmp_path / name), text), CATALOGUE, target)
    }
    assert told == {"csrc/lamb.cpp", "pkg/ops/csrc/other/lamb.cpp"}
    assert {name for _, name in facts.extensions.operators} == {"lamb", "other"}


BUILDS = [
    "if torch.cuda.is_available():\n    kind = CUDAExtension\nelse:\n    kind = CppExtension",
    "kind = CUDAExtension if torch.cuda.is_available() else CppExtension",
    "if (torch.cuda.is_available() and CUDA_HOME is not None) or FORCED:\n    kind = CUDAExtension",
    "if CUDA_HOME is not None and (torch.cuda.is_available() or FORCED):\n    kind = CUDAExtension",
    "with_cuda = torch.cuda.is_available() and CUDA_HOME is not None",
    "with_cuda = cpp_extension.CUDA_HOME and torch.cuda.is_available()",
    "if ⟦NPU101:torch.cuda.is_available⟧():\n    kind = CppExtension",
    "if not ⟦NPU101:torch.cuda.is_available⟧():\n    kind = CUDAExtension",
    "if torch.cuda.is_available() or CUDA_HOME is None:\n    kind = CppExtension",
    "if torch.cuda.is_available():\n    kind = CUDAExtension\n    ⟦NPU101:torch.cuda.synchronize⟧()",
]
"""Of what decides if an extension is built for CUDA nothing is told: it is right on the NPU."""


@pytest.mark.parametrize("snippet", BUILDS)
def test_what_is_built_for_cuda(snippet: str) -> None:
    imports = "import torch\nfrom torch.utils import cpp_extension\n"
    imports += "from torch.utils.cpp_extension import CUDA_HOME, CppExtension\n"
    check_file("setup.py", f"{imports}{snippet}\n")
