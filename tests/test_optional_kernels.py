"""CUDA kernels of a project: what it does without need not be ported, and tests of them are theirs."""

# ruff: noqa: E501

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from npulens.cli.main import cli

SOURCE = 'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("scan", &scan); }\n'
SETUP = (
    "from setuptools import setup\nfrom torch.utils.cpp_extension import CUDAExtension\n"
    "setup(ext_modules=[CUDAExtension('scan_cuda', ['csrc/scan.cu'])])\n"
)
BUILT = {"setup.py": SETUP, "csrc/scan.cu": SOURCE}
FUSED = "import scan_cuda\n\ndef fused(x):\n    return scan_cuda.scan(x)\n"
TRIED = "try:\n    from {} import {}\nexcept ImportError:\n    {} = None\n"

USED = TRIED.format("pack", "scan_cuda", "scan_cuda")
FALLING_BACK = USED + "def run(x):\n    if scan_cuda is None:\n        return slow(x)\n"

IMPORTED = {
    "tried": ({"a.py": FALLING_BACK + "    return scan_cuda.scan(x)\n"}, False),
    "tried where it is used": (
        {
            "a.py": "def find():\n    try:\n        import scan_cuda\n        return scan_cuda\n"
            "    except ImportError:\n        import scan_host\n        return scan_host\n"
        },
        False,
    ),
    "tried, and called through a function": (
        {
            "a.py": USED + "class Scan(Function):\n    def forward(ctx, x):\n"
            "        return scan_cuda.scan(x)\n\ndef slow(x):\n    return x\n\n"
            "def run(x):\n    return slow(x) if small else x\n\n"
            "def choose(x):\n    if scan_cuda is None:\n        return slow(x)\n    return Scan.apply(x)\n"
        },
        False,
    ),
    "tried, and called in any case": (
        {"a.py": USED + "def run(x):\n    return scan_cuda.scan(x)\n"},
        True,
    ),
    "tried, and refused": (
        {
            "a.py": USED + "def run(x):\n    if scan_cuda is not None:\n"
            "        return scan_cuda.scan(x)\n    raise ImportError('scan_cuda')\n"
        },
        True,
    ),
    "tried, or compiled": (
        {
            "pack/__init__.py": "",
            "pack/backend.py": "from torch.utils.cpp_extension import load\n"
            "_backend = load(name='scan_cuda', sources=['csrc/scan.cu'])\n",
            "pack/a.py": "try:\n    import scan_cuda as _backend\nexcept ImportError:\n"
            "    from .backend import _backend\n\ndef run(x):\n    return _backend.scan(x)\n",
        },
        True,
    ),
    "tried, and given on": ({"a.py": USED + "kernels = scan_cuda\n"}, True),
    "by a module that is tried": (
        {"fused.py": FUSED, "a.py": TRIED.format("fused", "fused", "f")},
        False,
    ),
    "tested besides": (
        {
            "fused.py": FUSED,
            "a.py": TRIED.format("fused", "fused", "f"),
            "unit_test.py": "import scan_cuda\nscan_cuda.scan(x)\n",
        },
        False,
    ),
    "plainly": ({"fused.py": FUSED}, True),
    "plainly by one of two": (
        {"fused.py": FUSED, "a.py": TRIED.format("fused", "fused", "f"), "b.py": "import fused\n"},
        True,
    ),
    "by nobody": ({"a.py": "import torch\n"}, True),
    "failing is the end": (
        {"a.py": "try:\n    import scan_cuda\nexcept ImportError:\n    raise\n"},
        True,
    ),
}


@pytest.mark.parametrize(("files", "found"), IMPORTED.values(), ids=IMPORTED)
def test_an_extension_is_as_needed_as_its_importers(
    files: dict[str, str], found: bool, tmp_path: Path
) -> None:
    told = check(tmp_path, {**BUILT, **files})
    assert (("setup.py", "NPU601") in told) == (("csrc/scan.cu", "NPU607") in told) == found


def test_sources_that_a_build_file_puts_together(tmp_path: Path) -> None:
    setup = SETUP.replace("['csrc/scan.cu']", "[join(here, f) for f in ['scan.cu', 'bind.cpp']]")
    files = {
        "setup.py": setup,
        "csrc/scan.cu": "__global__ void scan() {}\n",
        "csrc/bind.cpp": SOURCE,
        "a.py": FUSED,
    }
    assert {("csrc/bind.cpp", "NPU607"), ("a.py", "NPU612")} <= check(tmp_path, files)


def test_a_registered_operator_is_needed(tmp_path: Path) -> None:
    source = SOURCE + 'TORCH_LIBRARY(pack, m) { m.def("scan", &scan); }\n'
    files = {"csrc/scan.cu": source, "a.py": USED}
    assert ("csrc/scan.cu", "NPU607") in check(tmp_path, {"setup.py": SETUP, **files})


LOADER = """
from torch.utils.cpp_extension import load
kernel = None

def load_kernel():
    global kernel
    kernel = load("scan", ["csrc/scan.cu"])

class Scan(Function):
    def forward(ctx, x):
        run = kernel.scan
        return run(x)

def slow(x):
    return x.cumsum(0)

"""
TRY_LOAD = (
    "def prepare():\n    try:\n        load_kernel()\n    except Exception:\n        pass\n\n"
)
CATCHING = LOADER.replace(
    '    kernel = load("scan", ["csrc/scan.cu"])',
    '    try:\n        kernel = load("scan", ["csrc/scan.cu"])\n    except Exception:\n        pass',
)
LOADED = {
    "failing": (
        LOADER
        + TRY_LOAD
        + "def run(x):\n    try:\n        return Scan.apply(x)\n    except Exception:\n        return slow(x)\n",
        False,
    ),
    "no kernel": (
        LOADER
        + TRY_LOAD
        + "def run(x):\n    if kernel is None or small:\n        return slow(x)\n    else:\n        return Scan.apply(x)\n",
        False,
    ),
    "no kernel, left before": (
        LOADER
        + TRY_LOAD
        + "def run(x):\n    if kernel is None:\n        return slow(x)\n    y = x + 1\n    return Scan.apply(y)\n",
        False,
    ),
    "another device": (
        CATCHING
        + "def run(x):\n    if x.device.type == 'cuda':\n        return Scan.apply(x)\n    return slow(x)\n",
        False,
    ),
    "the number of the kernel is compared": (
        LOADER
        + TRY_LOAD
        + "def check():\n    return kernel.size == 3\n\n"
        + "def run(x):\n    if kernel is None:\n        return slow(x)\n    return Scan.apply(x)\n",
        False,
    ),
    "without asking": (LOADER + TRY_LOAD + "def run(x):\n    return Scan.apply(x)\n", True),
    "zeros instead": (
        LOADER
        + TRY_LOAD
        + "def run(x):\n    if kernel is None:\n        return torch.zeros_like(x)\n    return Scan.apply(x)\n",
        True,
    ),
    "another question": (
        CATCHING + "def run(x):\n    if small:\n        return slow(x)\n    return Scan.apply(x)\n",
        True,
    ),
    "loaded without care": (
        LOADER
        + "load_kernel()\ndef run(x):\n    if kernel is None:\n        return slow(x)\n    return Scan.apply(x)\n",
        True,
    ),
    "one of two uses": (
        LOADER
        + TRY_LOAD
        + "def run(x):\n    if kernel is None:\n        return slow(x)\n    return Scan.apply(x)\n\n"
        + "def other(x):\n    return Scan.apply(x)\n",
        True,
    ),
}


@pytest.mark.parametrize(("module", "found"), LOADED.values(), ids=LOADED)
def test_a_source_with_another_way(module: str, found: bool, tmp_path: Path) -> None:
    told = check(tmp_path, {"csrc/scan.cu": SOURCE, "a.py": module})
    assert (("csrc/scan.cu", "NPU607") in told) == found


COMPILER = (
    "import torch.utils.cpp_extension\n\ndef get_plugin(name, sources):\n"
    "    return torch.utils.cpp_extension.load(name=name, sources=sources)\n"
)
THROUGH = CATCHING.replace(
    "from torch.utils.cpp_extension import load", "from ops import get_plugin"
).replace("load(", "get_plugin(")
ASKED = "def run(x):\n    if x.is_cuda:\n        return Scan.apply(x)\n    return slow(x)\n"


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"a.py": THROUGH + ASKED}, False),
        ({"a.py": THROUGH + "def run(x):\n    return Scan.apply(x)\n"}, True),
        (
            {"a.py": THROUGH + ASKED, "b.py": "from ops import get_plugin\nget_plugin('b', s)\n"},
            True,
        ),
    ],
)
def test_what_compiles_only_such_sources(
    files: dict[str, str], found: bool, tmp_path: Path
) -> None:
    told = check(tmp_path, {"csrc/scan.cu": SOURCE, "ops.py": COMPILER, **files})
    assert (("ops.py", "NPU601") in told) == found


@pytest.mark.parametrize(
    ("sources", "found"),
    [
        ({"count.cpp": SOURCE}, False),
        ({"count.cpp": SOURCE, "scan.cu": SOURCE}, True),
        ({"count.cpp": '#include "cuda.h"\n' + SOURCE}, True),
        ({}, True),
    ],
)
def test_a_project_without_cuda_sources_compiles_for_the_host(
    sources: dict[str, str], found: bool, tmp_path: Path
) -> None:
    module = "from torch.utils.cpp_extension import load\nop = load('count', find())\n"
    assert (("a.py", "NPU601") in check(tmp_path, {**sources, "a.py": module})) == found


def check(folder: Path, files: dict[str, str]) -> set[tuple[str, str]]:
    """The path and the code of each finding about libraries in a project of some files."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    arguments = ["check", str(folder.resolve()), "--output-format", "json", "--select", "NPU6"]
    found = json.loads(CliRunner().invoke(cli, arguments).stdout)
    root = folder.resolve()
    return {(str(Path(f["path"]).resolve().relative_to(root)), f["code"]) for f in found}


OTHER_WAY = "try:\n    import scan_cuda as k\nexcept ImportError:\n    {}\n\ndef run(x):\n    return k.scan(x)\n"


@pytest.mark.parametrize(
    ("other", "found"),
    [
        ("from plain import scan as k", False),
        ("class k:\n        scan = staticmethod(slow)", False),
        ("k = None", True),
        ("pass", True),
        ("import scan_cuda as k", True),
        ("from built import kernels as k", True),
    ],
)
def test_what_takes_the_place_of_an_extension(other: str, found: bool, tmp_path: Path) -> None:
    loads = "from torch.utils.cpp_extension import load\nkernels = load('scan', ['csrc/scan.cu'])\n"
    told = check(tmp_path, {**BUILT, "built.py": loads, "a.py": OTHER_WAY.format(other)})
    assert (("a.py", "NPU612") in told) == found
    assert ("a.py", "NPU608") not in told


def test_a_cuda_module_from_elsewhere(tmp_path: Path) -> None:
    """What no file of the project builds, and no table knows."""
    files = {
        "corr.py": "import torch\ntry:\n    import alt_cuda_corr\nexcept ImportError:\n    pass\n"
        "def f(x):\n    return alt_cuda_corr.forward(x)\n",
        "boxes.py": "import torch\nimport my_cuda_boxes\nfrom tools import run_cuda\n",
        "my_cuda_boxes.py": "import torch\n",
    }
    assert check(tmp_path, files) == {("corr.py", "NPU602")}
