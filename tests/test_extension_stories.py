"""CUDA extensions of a project as one story: what builds them, who imports them, what is called."""

import json
from pathlib import Path
from typing import Any

import pytest

from commands import invoke
from helpers import code

HELPER = code(
    """
    import os
    from setuptools import setup
    from torch.utils.cpp_extension import BuildExtension, CUDAExtension


    def make_cuda_ext(name, module, sources):
        return CUDAExtension(
            name="%s.%s" % (module, name),
            sources=[os.path.join(*module.split("."), source) for source in sources],
            extra_compile_args={"cxx": [], "nvcc": ["-O2", "-gencode=arch=compute_80"]},
        )


    setup(
        ext_modules=[
            make_cuda_ext(name="box_cuda", module="pack.ops.box", sources=["src/box.cu"]),
            make_cuda_ext("pool_cuda", "pack.ops.pool", ["src/pool.cpp", "src/pool.cu"]),
        ],
        cmdclass={"build_ext": BuildExtension},
    )
    """
)
USE = code(
    """
    from . import box_cuda


    def overlap(a, b):
        result = b.new_zeros(4)
        box_cuda.overlap(a, b, result)
        return result


    def keep(a):
        return box_cuda.keep(a)
    """
)


def places(folder: Path, files: dict[str, str]) -> dict[str, list[tuple[int, str, str]]]:
    """The line, code and reason (empty for a finding) of each place, by the file."""
    found: dict[str, list[tuple[int, str, str]]] = {}
    for record in records(folder, files):
        place = record["line"], record["code"], record.get("reason", "")
        found.setdefault(record["path"], []).append(place)
    return {path: sorted(each) for path, each in found.items()}


def records(folder: Path, files: dict[str, str]) -> list[dict[str, Any]]:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    arguments = ("--output-format", "json", "--explain-silence", "--no-cache")
    return list(json.loads(invoke("check", ".", *arguments)[1]))


def test_a_helper_that_makes_extensions(here: Path) -> None:
    files = {"setup.py": HELPER, "pack/__init__.py": "", "pack/ops/box/use.py": USE}
    found = places(here, files)
    built = "reported-at-build"
    assert found["setup.py"] == [
        (3, "NPU601", built),
        (3, "NPU601", built),
        (7, "NPU601", built),
        (10, "NPU601", built),
        (10, "NPU601", built),
        (16, "NPU601", ""),
        (16, "NPU601", built),
        (17, "NPU601", ""),
        (17, "NPU601", built),
        (19, "NPU601", built),
    ]
    assert found["pack/ops/box/use.py"] == [
        (1, "NPU612", ""),
        (6, "NPU608", "reported-at-import"),
        (11, "NPU608", "reported-at-import"),
    ]


def test_the_message_says_what_builds_it_and_related_places_where_it_is_used(here: Path) -> None:
    files = {"setup.py": HELPER, "pack/__init__.py": "", "pack/ops/box/use.py": USE}
    [found] = [r for r in records(here, files) if r["code"] == "NPU612"]
    assert found["message"].endswith("`setup.py:16` builds it.")
    assert "built" not in found["message"]
    assert [place["line"] for place in found["related"]] == [6, 11]
    assert invoke("explain", "pack/ops/box/use.py:6")[1].endswith("[reported-at-import]\n")
    assert "settled NPU601" in invoke("explain", "setup.py:19")[1]


SETUP = (
    "from torch.utils.cpp_extension import CUDAExtension\n"
    "setup(ext_modules=[CUDAExtension('{}', ['a.cu'])])\n"
)
IMPORTS = [
    ("pack._C", "pack/a.py", "from . import _C\n_C.f(x)\n"),
    ("pack._C", "pack/sub/a.py", "from .. import _C as kernels\nkernels.f(x)\n"),
    ("pack._C", "tools/a.py", "from pack import _C\n_C.f(x)\n"),
    ("pack._C", "tools/a.py", "import pack._C\npack._C.f(x)\n"),
    ("pack._C", "tools/a.py", "from pack._C import f\nf(x)\n"),
    ("box_cuda", "tools/a.py", "import box_cuda\nbox_cuda.f(x)\n"),
    ("box_cuda", "tools/a.py", "import box_cuda as _backend\n_backend.f(x)\n"),
    ("box_cuda", "pack/ops/a.py", "from .box_cuda import f\nf(x)\n"),
    ("box_cuda", "pack/ops/a.py", "from . import box_cuda\nbox_cuda.f(x)\n"),
    (
        "box_cuda",
        "pack/a.py",
        "import importlib\nk = importlib.import_module('box_cuda'); k.f(x)\n",
    ),
]


@pytest.mark.parametrize(("name", "file", "text"), IMPORTS)
def test_an_import_that_only_the_build_answers(name: str, file: str, text: str, here: Path) -> None:
    found = places(here, {"setup.py": SETUP.format(name), "pack/__init__.py": "", file: text})[file]
    line = 2 if "importlib" in text else 1
    assert sorted(found, key=lambda place: place[1], reverse=True) == [
        (line, "NPU612", ""),
        (2, "NPU608", "reported-at-import"),
    ]


NO_IMPORTS = [
    {"pack/_C.py": "", "a.py": "from pack import _C\n_C.f(x)\n"},
    {"pack/_C/__init__.py": "", "a.py": "import pack._C\n"},
    {"a.py": "from torchvision import _C\n_C.f(x)\n"},
    {"pack/kernels.py": "_C = 1\n", "pack/a.py": "from .kernels import _C\n_C.f(x)\n"},
]


@pytest.mark.parametrize("files", NO_IMPORTS)
def test_names_that_are_something_else(files: dict[str, str], here: Path) -> None:
    (here / ".git").mkdir()
    found = places(here, {"setup.py": SETUP.format("pack._C"), "pack/__init__.py": "", **files})
    assert set(found) == {"setup.py"}


def test_an_extension_that_is_built_or_else_compiled(here: Path) -> None:
    backend = code(
        """
        from torch.utils.cpp_extension import load

        _backend = load(name="grid", extra_cuda_cflags=["-O3"], sources=["grid.cu"])
        """
    )
    use = code(
        """
        try:
            import _grid as _backend
        except ImportError:
            from .backend import _backend


        def encode(x):
            return _backend.encode(x)
        """
    )
    files = {"pack/setup.py": SETUP.format("_grid"), "pack/backend.py": backend, "pack/a.py": use}
    found = places(here, files)
    assert found["pack/backend.py"] == [
        (1, "NPU601", "reported-at-build"),
        (3, "NPU601", ""),
        (3, "NPU601", "reported-at-build"),
        (3, "NPU601", "reported-at-build"),
    ]
    assert found["pack/a.py"] == [
        (2, "NPU612", ""),
        (4, "NPU612", "reported-at-import"),
        (8, "NPU608", "reported-at-import"),
    ]


def test_a_module_that_builds_what_it_calls(here: Path) -> None:
    text = code(
        """
        import torch.utils.cpp_extension as builders

        fused = builders.load("fused", sources=["fused.cu"])


        def act(x):
            return fused.act(x).sum()
        """
    )
    source = 'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("act", &act); }\n'
    found = places(here, {"a.py": text, "fused.cu": source})["a.py"]
    assert found == [
        (3, "NPU601", ""),
        (3, "NPU601", "reported-at-build"),
        (7, "NPU608", "reported-at-build"),
    ]


def test_registered_operators_are_said_once(here: Path) -> None:
    source = 'TORCH_LIBRARY_IMPL(boxes, CUDA, m) { m.impl("nms", nms); m.impl("iou", iou); }\n'
    calls = "torch.ops.boxes.nms(b)\ntorch.ops.boxes.iou(b)\n"
    loaded = "import torch\ntorch.ops.load_library('boxes.so')\n" + calls
    files = {"a.cu": source, "a.py": "import torch\n" + calls, "b.py": loaded}
    found = places(here, files)
    assert found["a.py"] == [(2, "NPU608", ""), (3, "NPU608", "reported-once")]
    assert found["b.py"] == [
        (2, "NPU612", ""),
        (3, "NPU608", "reported-at-import"),
        (4, "NPU608", "reported-at-import"),
    ]


def test_a_helper_that_loads_extensions(here: Path) -> None:
    kernels = code(
        """
        from torch.utils import cpp_extension


        def load(folder):
            def compiled(name, sources):
                return cpp_extension.load(
                    name=name, sources=sources, extra_cuda_cflags=["--use_fast_math"]
                )

            compiled("row_softmax_cuda", [folder / "softmax.cpp", folder / "softmax_kernel.cu"])
        """
    )
    use = "import torch\n\ndef f(x):\n    import row_softmax_cuda as k\n    return k.run(x)\n"
    found = places(here, {"kernels/__init__.py": kernels, "model/softmax.py": use})
    assert found["model/softmax.py"] == [
        (4, "NPU612", ""),
        (5, "NPU608", "reported-at-import"),
    ]


def test_a_builder_that_is_chosen(here: Path) -> None:
    setup = code(
        """
        import torch
        from torch.utils.cpp_extension import CUDA_HOME, CppExtension, CUDAExtension


        def extensions():
            extension, sources = CppExtension, ["a.cpp"]
            if torch.cuda.is_available() and CUDA_HOME is not None:
                extension = CUDAExtension
                sources += ["a.cu"]
            return [extension("pack._C", sources)]
        """
    )
    found = places(here, {"setup.py": setup, "a.py": "import pack._C\n"})
    assert (10, "NPU601", "") in found["setup.py"]
    assert (2, "NPU601", "reported-at-build") in found["setup.py"]
    assert found["a.py"] == [(1, "NPU612", "")]


def test_a_builder_that_is_handed_on_is_reported_at_its_import(here: Path) -> None:
    text = "from torch.utils.cpp_extension import CUDAExtension\nbuild = partial(CUDAExtension)\n"
    assert places(here, {"build.py": text})["build.py"] == [
        (1, "NPU601", ""),
        (2, "NPU601", "reported-at-import"),
    ]


MOVES = {
    "_C.f(x.cuda())": True,
    "x = x.cuda()\n    _C.f(x)": True,
    "x = x.to('cuda').contiguous()\n    y = x[0]\n    _C.f(y)": True,
    "x, n = x.cuda(), 4\n    _C.f(x, n)": True,
    "device = 'cuda'\n    out = torch.zeros(4, device=device)\n    _C.f(x, out)": True,
    "out = torch.cuda.FloatTensor(4)\n    _C.f(x, out)": True,
    "y = model(x.cuda())\n    _C.f(y)": False,
    "y = x.cuda()\n    _C.f(x)\n    return y": False,
    "y = _C.f(x)\n    return y.cuda()": False,
    "_C.f(x)\n    x = x.cuda()\n    return x": False,
}


@pytest.mark.parametrize("body", MOVES)
def test_no_safe_fix_puts_an_npu_in_front_of_a_kernel(body: str, here: Path) -> None:
    text = f"import torch\nfrom pack import _C\n\ndef run(x, model):\n    {body}\n"
    files = {"setup.py": SETUP.format("pack._C"), "pack/__init__.py": "", "a.py": text}
    before = [r for r in records(here, files) if r["path"] == "a.py" and r["code"] < "NPU2"]
    assert before
    told = [r for r in before if "`_C.f`" in r["message"]]
    assert bool(told) == MOVES[body]
    invoke("fix", "a.py")
    fixed = (here / "a.py").read_text()
    assert ("cuda" in fixed.replace("'cuda' if", "")) == MOVES[body]
    (here / "a.py").write_text(text)
    invoke("fix", "a.py", "--unsafe-fixes")
    assert "cuda" not in (here / "a.py").read_text()


CMAKE = code(
    """
    cmake_minimum_required(VERSION 3.18)
    project(boxes LANGUAGES CXX CUDA)  # and kernels.cu
    find_package(pybind11 REQUIRED)
    set(SOURCES bind.cpp kernels.cu)
    add_library(helpers STATIC helpers.cu)
    pybind11_add_module(boxes_cuda ${SOURCES})
    set(CMAKE_CUDA_ARCHITECTURES 80)
    find_package(CUDNN REQUIRED)
    set(CMAKE_CUDA_COMPILER nvcc)
    include_directories(${CUDA_INCLUDE_DIRS})
    """
)


def test_a_module_that_cmake_builds(here: Path) -> None:
    files = {"CMakeLists.txt": CMAKE, "pack/a.py": "import boxes_cuda\nboxes_cuda.nms(b)\n"}
    found = places(here, files)
    built = "reported-at-build"
    assert found["CMakeLists.txt"] == [
        (2, "NPU601", built),
        (4, "NPU601", built),
        (5, "NPU601", built),
        (5, "NPU601", built),
        (6, "NPU601", ""),
        (7, "NPU601", built),
        (8, "NPU601", built),
        (9, "NPU601", built),
        (10, "NPU601", built),
    ]
    assert found["pack/a.py"] == [(1, "NPU612", ""), (2, "NPU608", "reported-at-import")]
    [told] = [r for r in records(here, files) if r["code"] == "NPU612"]
    assert told["message"].endswith("`CMakeLists.txt:6` builds it.")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("find_package(Torch)\nCUDA_ADD_LIBRARY(a SHARED a.cpp)\n", [2]),
        ("find_package(Torch)\nadd_library(a SHARED\n  # of CUDA\n  a.cu b.cpp)\n", [2]),
        ("find_package(Torch)\nfile(GLOB S src/*.cu)\nadd_library(a MODULE ${S})\n", [3]),
        ("find_package(Torch)\nadd_library(a a.cu)\nadd_library(b b.cu)\n", [2]),
        ("find_package(Torch)\nadd_library(a SHARED a.cpp)\n", []),
        ("project(game CUDA)\nadd_executable(game a.cu)\n", [1]),
        ("find_package(TensorRT)\nadd_executable(game a.cpp)\n", [1]),
        ("add_executable(game a.cpp)\ntarget_link_libraries(game nvinfer cudart)\n", [2]),
        ("project(game CXX)\nadd_executable(game a.cpp)\n", []),
        ('find_package(Torch)\n# add_library(a a.cu)\nmessage("add_library(a a.cu)")\n', []),
        ("find_package(Torch)\nadd_library(a a.cu", [2]),
    ],
)
def test_targets_of_cmake(text: str, found: list[int], here: Path) -> None:
    told = places(here, {"CMakeLists.txt": text}).get("CMakeLists.txt", [])
    assert [line for line, _, reason in told if not reason] == found


def test_a_library_that_the_project_brings_along_is_reported_where_it_is_built(
    here: Path,
) -> None:
    found = places(
        here,
        {
            "pyproject.toml": "",
            "submodules/simple-knn/setup.py": (
                "from setuptools import setup\n"
                "from torch.utils.cpp_extension import CUDAExtension\n"
                "setup(ext_modules=[CUDAExtension('simple_knn._C', ['knn.cu'])])\n"
            ),
            "submodules/simple-knn/simple_knn/__init__.py": "from ._C import distances\n",
            "submodules/simple-knn/simple_knn/more.py": (
                "import torch\nfrom simple_knn import _C\ny = _C.distances(x)\n"
            ),
            "train.py": "import torch\nfrom simple_knn import distances\ny = distances(x)\n",
        },
    )
    assert (2, "NPU602", "reported-at-build") in found["train.py"]
    assert (2, "NPU612", "") in found["submodules/simple-knn/simple_knn/more.py"]


def test_an_extension_of_pytorch_before_1_0(here: Path) -> None:
    """`create_extension` compiled C; the kernels came as objects, so that no source is for CUDA."""
    build = code(
        """
        from torch.utils.ffi import create_extension

        ffi = create_extension(
            "_ext.boxes",
            sources=["src/boxes_cuda.c"],
            relative_to=__file__,
            with_cuda=True,
            extra_objects=["src/boxes.cu.o"],
        )
        """
    )
    files = {
        "net/ops/build.py": build,
        "net/ops/boxes.py": "from ._ext import boxes\n\n\ndef f(x):\n    return boxes.f(x)\n",
        "net/host/build.py": build.replace("with_cuda=True", "with_cuda=False"),
        "net/host/boxes.py": "from ._ext import boxes\n\n\ndef f(x):\n    return boxes.f(x)\n",
    }
    found = places(here, files)
    assert found["net/ops/boxes.py"][0][:2] == (1, "NPU612")
    assert "net/host/boxes.py" not in found


def test_an_extension_that_is_imported_or_else_built_is_reported_at_the_build(here: Path) -> None:
    use = code(
        """
        import importlib.util

        is_installed = importlib.util.find_spec("hull_2D") is not None
        if not is_installed:
            from torch.utils.cpp_extension import load

            hull_2D = load(name="hull_2D", sources=["hull.cpp", "hull2D.cu"])
        else:
            import hull_2D


        def hull(x):
            return hull_2D.forward(x)
        """
    )
    found = places(here, {"setup.py": SETUP.format("hull_2D"), "use.py": use})["use.py"]
    assert (7, "NPU601", "") in found
    assert (9, "NPU612", "reported-at-build") in found


NVCC = code(
    """
    import subprocess
    from torch.utils import cpp_extension


    def release(folder):
        return subprocess.check_output([folder + "/bin/nvcc", "-V"], text=True)


    def build():
        print(release(cpp_extension.CUDA_HOME))
        flags = ["-O3", "--use_fast_math", "-U__CUDA_NO_HALF_OPERATORS__"]
        return cpp_extension.load(name="box", sources=["box.cu"], extra_cuda_cflags=flags)
    """
)


def test_the_compiler_and_where_it_is_belong_to_what_is_built(here: Path) -> None:
    reason = "reported-at-build"
    assert places(here, {"kernels.py": NVCC})["kernels.py"] == [
        (6, "NPU906", ""),
        *[(10, "NPU601", reason), (11, "NPU601", reason), (11, "NPU601", reason)],
        *[(12, "NPU601", ""), (12, "NPU601", reason), (12, "NPU601", reason)],
    ]


def test_an_extension_that_a_module_hands_on(here: Path) -> None:
    setup = (
        "from torch.utils.cpp_extension import CUDAExtension\n"
        "setup(ext_modules=[CUDAExtension('pack._C', ['a.cu'])])\n"
    )
    use = "from .wrapper import kernels as k\n\n\ndef f(x):\n    return k.keep(x)\n"
    files = {
        "setup.py": setup,
        "pack/__init__.py": "",
        "pack/wrapper.py": "from . import _C as kernels\n",
        "pack/use.py": use,
        "pack/other.py": use.replace(".wrapper", "pack.wrapper"),
        "pack/free.py": (
            "try:\n    from . import _C as free\nexcept ImportError:\n    free = None\n"
        ),
        "pack/without.py": use.replace(".wrapper", ".free").replace("kernels", "free"),
    }
    found = places(here, files)
    for name in ("pack/use.py", "pack/other.py"):
        assert found[name] == [(1, "NPU612", ""), (5, "NPU608", "reported-at-import")]
    assert (1, "NPU612", "") not in found.get("pack/without.py", [])


def test_an_extension_that_a_helper_loads(here: Path) -> None:
    loader = (
        "from torch.utils.cpp_extension import load\n\n\ndef get(name, sources):\n"
        "    return load(name=name, sources=sources)\n\n\nbox = get('box_ext', ['box.cu'])\n"
    )
    use = "from .loader import box\n\n\ndef f(x):\n    return box.keep(x)\n"
    found = places(here, {"pack/__init__.py": "", "pack/loader.py": loader, "pack/use.py": use})
    assert found["pack/use.py"] == [(1, "NPU612", ""), (5, "NPU608", "reported-at-import")]
