"""Modules that a build of their own compiles: in a part of the project, or in another project."""

from pathlib import Path

import pytest

from helpers import CATALOGUE
from npulens.analysis import judge
from npulens.catalog.model import Target
from npulens.text.document import Document
from test_extension_stories import places, records

BUILD = """from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

setup(
    name="fastmaths",
    packages=["fastmaths"],
    ext_modules=[
        CUDAExtension(
            "fastmaths.copies",
            ["src/copies.cu"],
            extra_compile_args=dict(nvcc=["-O3"]),
        ),
    ],
    cmdclass={"build_ext": BuildExtension},
)
"""
USE = "import torch\nfrom fastmaths import gather\n\n\ndef run(x):\n    return gather(x)\n"
FOUND = [(2, "NPU612", ""), (6, "NPU608", "reported-at-import")]
PACKAGES = {
    "imports its extension": ("from .copies import gather\n", FOUND),
    "by its full name": ("from fastmaths.copies import gather\n", FOUND),
    "among other imports": ("import os\nfrom . import copies\n\ngather = copies.gather\n", FOUND),
    "has another way": (
        "try:\n    from .copies import gather\nexcept ImportError:\n    gather = None\n",
        [],
    ),
    "when it is asked": (
        "def gather(x):\n    from .copies import gather as g\n    return g(x)\n",
        [],
    ),
    "does without": ("def gather(x):\n    return x[0]\n", []),
}


@pytest.mark.parametrize(("text", "found"), PACKAGES.values(), ids=PACKAGES)
def test_a_package_that_needs_its_extension(
    text: str, found: list[tuple[int, str, str]], here: Path
) -> None:
    files = {
        "kernels/setup.py": BUILD,
        "kernels/fastmaths/__init__.py": text,
        "kernels/src/copies.cu": "__global__ void copies() {}\n",
        "model.py": USE,
    }
    assert places(here, files).get("model.py", []) == found


def test_flags_for_the_compiler_are_told_with_the_build(here: Path) -> None:
    found = places(here, {"setup.py": BUILD, "src/copies.cu": "__global__ void a() {}\n"})
    assert (11, "NPU601", "reported-at-build") in found["setup.py"]


CERTAIN = ["roi_cuda", "my_diff_gaussian_rasterization", "depth_diff_gauss", "diff_gs_rasterizer"]
LIKELY = [
    *("fast_kernels", "my_kernel", "_ext", "_C", "boxes_ext", "boxes_cext"),
    *("weighted_flash_decoding", "my_flash_attention", "gaussian_rasterizer"),
    *("gsplat_panorama", "spconv_more", "flash_attn_more"),
]
NEITHER = [
    *("ipykernel", "flashtext", "kernel", "extras", "backends", "gpu", "text_extra", "rich_text"),
    *("torch_kernelspec", "extension", "my_backend", "operators", "fast_ops"),
    *("train_gpu", "video_backends"),  # both are names of scripts and of plain modules, too
]


def imports(names: list[str]) -> str:
    return "import torch\n" + "".join(f"import {name}\n" for name in names)


def test_names_of_modules_say_what_they_are(here: Path) -> None:
    names = [*CERTAIN, *LIKELY, *NEITHER]
    found = records(here, {"run.py": imports(names)})
    told = {(names[each["line"] - 2], each["code"], each["severity"]) for each in found}
    certain = {(name, "NPU602", "error") for name in CERTAIN}
    assert told == certain | {(name, "NPU606", "hint") for name in LIKELY}


def test_modules_without_pytorch_are_left_alone(here: Path) -> None:
    text = imports(LIKELY).replace("import torch", "import numpy")
    assert places(here, {"run.py": text}) == {}


def test_an_extension_of_the_project_is_one_although_others_have_that_name(here: Path) -> None:
    build = BUILD.replace("fastmaths.copies", "correlation_cuda")
    use = "import torch\nimport correlation_cuda\n\ny = correlation_cuda.forward(torch.ones(2))\n"
    found = places(here, {"ops/setup.py": build, "ops/src/copies.cu": "", "ops/run.py": use})
    assert found["ops/run.py"] == [(2, "NPU612", ""), (4, "NPU608", "reported-at-import")]


def test_modules_of_the_project_are_left_alone(here: Path) -> None:
    own = {f"tools/{name}.py": "def part(): ...\n" for name in [*CERTAIN, *LIKELY]}
    assert places(here, {"run.py": imports([*CERTAIN, *LIKELY]), **own}) == {}


def test_imports_that_may_fail_are_left_alone(here: Path) -> None:
    tried = "try:\n    import {} as m\nexcept ImportError:\n    m = None\n"
    text = "import torch\n" + "".join(tried.format(name) for name in LIKELY)
    found = places(here, {"run.py": text}).get("run.py", [])
    assert {code for _, code, reason in found if not reason} <= {"NPU613"}


def test_what_a_star_brings_is_told_with_its_import() -> None:
    code = "from pynvml import *\n\n\ndef used():\n    nvmlInit()\n    return print(1)\n"
    judged = judge(Document("run.py", code), CATALOGUE, Target())
    assert [found.rule.code for found in judged.findings] == ["NPU602"]
    (use,) = judged.settled
    assert code[slice(*use.span)] == "nvmlInit"


def test_a_kernel_that_cupy_compiles_is_told_with_the_import_of_cupy() -> None:
    code = "import cupy\n\nkernel = '''\nextern \"C\" __global__ void up(int n) {}\n'''\n"
    judged = judge(Document("run.py", code), CATALOGUE, Target())
    (kernel,) = judged.settled
    assert code[slice(*kernel.span)].startswith("'''")
