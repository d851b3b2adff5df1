"""C++ and CUDA extensions: what sources bind for Python, and who calls it."""

# ruff: noqa: E501

import time
from dataclasses import replace
from pathlib import Path

import pytest

from helpers import CATALOGUE, check, marked, unmarked
from helpers import Mark as FoundMark
from lsp_client import LspClient
from npulens.analysis import StatementCache, analyze, judge
from npulens.catalog.model import Target
from npulens.catalog.project_model import ExtensionFacts, ExtensionName, ProjectFacts
from npulens.checks.other_files.cpp_bindings import cpp_binding_findings
from npulens.checks.other_files.native_tokens import tokens
from npulens.text.document import Document
from npulens.workspace.files.discovery import discover
from npulens.workspace.project.own_modules import project_root
from npulens.workspace.project.project_facts import project_facts
from npulens.workspace.runs.run import Checker
from npulens.workspace.settings.configuration import Configuration


def check_source(snippet: str, path: str = "csrc/kernels.cu", target: Target | None = None) -> None:
    """Assert that the marked bindings of a source are found, and nothing else."""
    source, expected = unmarked(snippet)
    found = analyze(Document(path, source), CATALOGUE, target or Target())
    marks = [FoundMark(*finding.span, finding.rule.code) for finding in found]
    assert marked(source, marks) == marked(source, expected)


MODULE = "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) "


@pytest.mark.parametrize(
    "snippet",
    [
        MODULE + '{ m.def(⟦NPU607:"nms"⟧, &nms); }',
        'PYBIND11_MODULE( _ext , module ) { module.def(⟦NPU607:"f"⟧, f); }',
        MODULE
        + '{\n  m.def(\n      ⟦NPU607:"nms"⟧,\n      &nms,\n      "keep", py::arg("boxes"), py::arg("scores"));\n}',
        MODULE + '{\n  m.def(⟦NPU607:"a"⟧, &a)\n   .def("b", &b);\n}',
        MODULE
        + '{ m.doc() = "boxes"; m.def(⟦NPU607:"x"⟧, [](int v) { return v; }, "doc"); m.def("y", &y); }',
        MODULE + '{ py::class_<Box>(m, "Box").def("area", &Box::area); m.def(⟦NPU607:"z"⟧, &z); }',
        MODULE + '{\n#ifdef WITH_CUDA\n  m.def(⟦NPU607:"nms"⟧, &nms);\n#endif\n}',
        MODULE
        + '{ /* m.def("old", &old); */ m.def(⟦NPU607:"new_one"⟧, &g); // m.def("no", &no);\n}',
        'TORCH_LIBRARY(boxes, m) { m.def(⟦NPU607:"nms(Tensor b, float t) -> Tensor"⟧, &nms); }',
        'TORCH_LIBRARY_FRAGMENT(boxes, lib) { lib.def(⟦NPU607:"nms.overload(Tensor b) -> Tensor"⟧, nms); }',
        'TORCH_LIBRARY_IMPL(boxes, CUDA, m) { m.impl(⟦NPU607:"nms"⟧, &nms_cuda); }',
        'TORCH_LIBRARY_IMPL(boxes, CUDA, m) { m.impl(TORCH_SELECTIVE_NAME(⟦NPU607:"boxes::nms"⟧), TORCH_FN(nms)); }',
        'TORCH_LIBRARY_EXPAND(boxes, ops) { ops.def("f(Tensor a) -> Tensor"); ops.impl(⟦NPU607:"f"⟧, torch::kCUDA, &f); }',
        'static auto r = torch::RegisterOperators().op(⟦NPU607:"boxes::nms"⟧, &nms);',
        'static auto r = torch::RegisterOperators(⟦NPU607:"boxes::nms(Tensor b) -> Tensor"⟧, &nms);',
        'auto text = R"(PYBIND11_MODULE(a, m) { m.def("x"); })";\n'
        + MODULE
        + '{ m.def(⟦NPU607:"y"⟧, &y); }',
        "int big = 1'000'000; char quote = '\"';\n" + MODULE + '{ m.def(⟦NPU607:"y"⟧, &y); }',
        MODULE + '{ m.def(⟦NPU607:"f"⟧, &f);',
        MODULE + '{ m.def(⟦NPU607:"f"⟧, &f, "算子"); }',
        MODULE
        + '{ m.def(⟦NPU607:"f"⟧, &f); }\nTORCH_LIBRARY_IMPL(b, CUDA, m) { m.impl(⟦NPU607:"f"⟧, &f); m.impl("g", &g); }',
    ],
)
def test_bindings_of_a_cuda_source(snippet: str) -> None:
    check_source(snippet)


@pytest.mark.parametrize(
    "snippet",
    [
        "#include <ATen/cuda/CUDAContext.h>\n" + MODULE + '{ m.def(⟦NPU607:"f"⟧, &f); }',
        '#include "nms_cuda.h"\n' + MODULE + '{ m.def(⟦NPU607:"f"⟧, &f); }',
        "void f() { kernel<<<1, 2>>>(x); }\n" + MODULE + '{ m.def(⟦NPU607:"f"⟧, &f); }',
        "Tensor f_cuda(Tensor x);\nTensor f(Tensor x) { return f_cuda(x); }\n"
        + MODULE
        + '{ m.def(⟦NPU607:"f"⟧, &f); }',
        "#define CHECK(x) TORCH_CHECK(x.is_cuda())\ncudaStream_t s;\n"
        + MODULE
        + '{ m.def(⟦NPU607:"f"⟧, &f); }',
        'TORCH_LIBRARY(b, m) { m.def("f(Tensor x) -> Tensor"); }\nTORCH_LIBRARY_IMPL(b, CUDA, m) { m.impl(⟦NPU607:"f"⟧, f); }\nTORCH_LIBRARY_IMPL(b, CPU, m) { m.impl("f", f_cpu); }',
    ],
)
def test_a_cpp_source_that_shows_cuda(snippet: str) -> None:
    check_source(snippet, "csrc/binding.cpp")


@pytest.mark.parametrize(
    "snippet",
    [
        MODULE + '{ m.def("build_index", &build_index); }',
        "// launches cuda kernels\n" + MODULE + '{ m.def("f", &f, "not on CUDA"); }',
        "Tensor f(Tensor x) { TORCH_CHECK(!x.is_cuda()); return x; }\n"
        + MODULE
        + '{ m.def("f", &f); }',
        "#ifdef WITH_CUDA\n#include <cuda_runtime.h>\nvoid g() { cudaFree(0); }\n#endif\n"
        + MODULE
        + '{ m.def("f", &f); }',
        "#if 0\nvoid g() { cudaFree(0); }\n#endif\n" + MODULE + '{ m.def("f", &f); }',
        '#include "torch_npu/csrc/framework.h"\n#include "f_cuda.h"\n'
        + MODULE
        + '{ m.def("f", &f); }',
        'TORCH_LIBRARY_IMPL(b, PrivateUse1, m) { m.impl("f", f_npu); }\nTORCH_LIBRARY_IMPL(b, CUDA, m) { m.impl("f", f); }',
        "#include <sycl/sycl.hpp>\nvoid cuda_like();\n" + MODULE + '{ m.def("f", &f); }',
        'TORCH_LIBRARY(b, m) { m.def("f(Tensor x) -> Tensor"); }',
        'TORCH_LIBRARY_IMPL(b, CPU, m) { m.impl("f", f); }',
        'TORCH_LIBRARY_IMPL(b, Meta, m) { m.impl("f", f); }',
        'cudaStream_t s; void g(Table m) { m.def("f", 1); }',
        'const char* s = "PYBIND11_MODULE(a, m) { m.def(x); } cudaFree";',
        "int device = kCUDA; bool use_cuda;\n" + MODULE + '{ m.def("f", &f); }',
    ],
)
def test_sources_without_cuda_or_for_other_devices(snippet: str) -> None:
    check_source(snippet, "csrc/binding.cpp")


@pytest.mark.parametrize("folder", ["cpu", "xpu", "npu", "mlu", "rocm", "attention_ck"])
def test_folders_of_other_devices(folder: str) -> None:
    check_source("void f_cuda();\n" + MODULE + '{ m.def("f", &f); }', f"csrc/{folder}/binding.cpp")


def test_words_between_keyword_arguments_are_no_operators() -> None:
    text = MODULE + '{ m.def("f", &f, py::arg("buffer"), py::arg("x.def")); }'
    found = cpp_binding_findings(text, CATALOGUE, "a.cu")
    assert [finding.arguments["symbol"] for finding in found] == ["f"]


def test_a_block_of_bindings_is_one_finding_that_names_them() -> None:
    text = MODULE + "{ " + " ".join(f'm.def("f{i}", &f);' for i in range(20)) + " }"
    (found,) = cpp_binding_findings(text, CATALOGUE, "a.cu")
    names = found.arguments["symbol"].split(", ")
    assert names[:2] == ["f0", "f1"] and names[-1] == "..."
    assert len(names) < 20


def test_checks_that_refuse_the_npu_are_named_once() -> None:
    text = (
        "#define CHECK_CUDA(x) TORCH_CHECK(x.device().is_cuda(), #x)\n"
        "#define CHECK_CPU(x) TORCH_CHECK(!x.is_cuda(), #x)\n"
        "// AT_ASSERTM(x.is_cuda())\n"
        "void g(Tensor x) { AT_ASSERTM(x.type().is_cuda(), 1); if (x.is_cuda()) cudaFree(0); }\n"
        "void h(Tensor x, Tensor y) { TORCH_CHECK(x.is_cuda() == y.is_cuda()); }\n"
        + MODULE
        + '{ m.def("f", &f); }\nPYBIND11_MODULE(b, m) { m.def("g", &g); }'
    )
    first, second = cpp_binding_findings(text, CATALOGUE, "a.cu")
    lines = [text.count("\n", 0, part.span.start) + 1 for part in first.related]
    assert lines == [1, 4] and second.related == ()
    assert {text[slice(*part.span)] for part in first.related} == {"is_cuda()"}


def test_examples_of_the_rules_about_sources() -> None:
    for name in ("cuda-operator", "cuda-operator-call", "cuda-extension-import"):
        rule = CATALOGUE.rule_named(name)
        assert rule is not None
        built = {("pack", "_C", ExtensionName("pack._C", "setup.py", 1, False))}
        names = frozenset(built) if name == "cuda-extension-import" else frozenset()
        extensions = ExtensionFacts(operators=frozenset({("_ext", "nms")}), names=names)
        facts = ProjectFacts(extensions=extensions)
        target = replace(Target(), project=facts)
        for example, path in [(e.before, e.before.split()[-1]) for e in rule.examples]:
            path = example.split("\n")[0].removeprefix("// ") if "//" in example else "a.py"
            assert [f.rule.name for f in analyze(Document(path, example), CATALOGUE, target)] == [
                name
            ]
        for text in rule.valid:
            path = text.split("\n")[0].removeprefix("// ") if "//" in text else "a.py"
            assert name not in [
                f.rule.name for f in analyze(Document(path, text), CATALOGUE, target)
            ]


# Hostile sources.


@pytest.mark.endurance
@pytest.mark.parametrize(
    "part",
    [
        *("/*", '"', "'", 'R"(', 'R"x(', "#", "//", "\\\n", "PYBIND11_MODULE(a, m) {", "m.def("),
        *("m.def(;", "RegisterOperators(", "PYBIND11_MODULE(", "{", "}", "#if 0\n", "#else\n"),
        *("#endif\n", "\0é", 'm.def("', " \t", "<<", "1'"),
        'PYBIND11_MODULE(a, m) { m.def("x", [](){',
    ],
)
def test_hostile_sources_take_time_in_proportion(part: str) -> None:
    def seconds(times: int) -> float:
        text = "cuda PYBIND11_MODULE(a, m) { " + part * times
        start = time.process_time()
        cpp_binding_findings(text, CATALOGUE, "a.cu")
        return time.process_time() - start

    seconds(2_000)
    assert seconds(40_000) < max(40 * seconds(4_000), 3.0)


def test_tokens_have_their_places() -> None:
    text = 'a::b("x y") /* c */ <<< "é" // d\nR"z(")")z"'
    found = [(token.kind, text[slice(*token.span)]) for token in tokens(text)]
    assert ("string", '"x y"') in found and ("string", '"é"') in found
    assert ("string", 'R"z(")")z"') in found
    assert not any("c" in word or "d" in word for _, word in found)


# Calls from Python, with what is known of the project.

FACTS = ProjectFacts(
    extensions=ExtensionFacts(
        frozenset(
            {("_ext", "nms"), ("boxes_cuda", "iou"), ("", "fused")}
            | {("_ext", "get_compiler_version"), ("_ext", "has_cuda")}
        ),
        frozenset({"boxes.nms"}),
    )
)


@pytest.mark.parametrize(
    "snippet",
    [
        "from . import _ext\nk = ⟦NPU608:_ext.nms⟧(b)\n",
        "import project._ext as e\nk = ⟦NPU608:e.nms⟧(b)\n",
        "from . import _ext\ndef f(b):\n    if b.⟦NPU106:is_cuda⟧:\n        return ⟦NPU608:_ext.nms⟧(b)\n    else:\n        raise ValueError\n",
        "from . import _ext\ndef f(b):\n    if b.⟦NPU106:is_cuda⟧:\n        k = ⟦NPU608:_ext.nms⟧(b)\n    else:\n        k = _ext.nms_cpu(b)\n    return k\n",
        "from . import _ext\ndef f(b):\n    if b.is_cuda:\n        k = _ext.nms(b)\n    else:\n        k = slow(b)\n    return k\n",
        "from project import _ext\nclass A:\n    def f(self):\n        return ⟦NPU608:_ext.nms⟧(self.b)\n",
        "from ._ext import nms as n\nk = ⟦NPU608:n⟧(b)\n",
        "import boxes_cuda\nk = ⟦NPU608:boxes_cuda.iou⟧(a, b)\n",
        "import torch\nk = ⟦NPU608:torch.ops.boxes.nms⟧(b)\n",
        "import torch\nk = ⟦NPU608:torch.ops.boxes.nms.default⟧(b)\n",
        "import torch\nk = torch.ops.boxes.nms.default._schema.is_backward_compatible_with(s)\n",
        "from torch.utils.cpp_extension import load\ne = ⟦NPU601:load⟧(name='x', sources=s)\nk = e.fused(b)\n",
        "import importlib\ne = importlib.import_module('project._ext')\nk = ⟦NPU608:e.nms⟧(b)\n",
        # no bound operators
        "from torchvision.ops import box_iou\nk = box_iou(b)\n",
        "k = boxes.nms(b)\nself.nms(b)\nnms(b)\n",
        "import torch\nk = torch.ops.other.nms(b)\nj = torch.ops.boxes.area(b)\n",
        "from . import _ext\nk = _ext.area(b)\nj = _ext.nms\n",
        "import torch.distributed as dist\ndist.iou(b)\n",
        "from project.boxes import iou\niou(b)\n",
        "_ext = object()\n_ext.nms(b)\n",
        # how it was built
        "from . import _ext\nk = _ext.get_compiler_version()\nj = _ext.has_cuda()\n",
    ],
)
def test_calls_of_bound_operators(snippet: str) -> None:
    source, expected = unmarked(snippet)
    target = replace(Target(), project=FACTS)
    for cache in (None, StatementCache()):
        found = analyze(Document("a.py", source), CATALOGUE, target, cache)
        marks = [FoundMark(*finding.span, finding.rule.code) for finding in found]
        assert marked(source, marks) == marked(source, expected)
    unknown = analyze(Document("a.py", source), CATALOGUE, Target())
    assert "NPU608" not in [finding.rule.code for finding in unknown]


def test_a_cache_follows_the_project() -> None:
    cache, document = StatementCache(), Document("a.py", "from . import _ext\n_ext.nms(1)\n")
    assert analyze(document, CATALOGUE, Target(), cache) == ()
    found = analyze(document, CATALOGUE, replace(Target(), project=FACTS), cache)
    assert [finding.rule.code for finding in found] == ["NPU608"]


# What is read of a project.


def facts(folder: Path) -> ProjectFacts:
    found = discover([str(folder)], (), folder)
    return project_facts(found.files, [folder], CATALOGUE)


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_py", ".py").replace("_cu", ".cu")
        path = path.with_name(path.name.replace("_cpp", ".cpp"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


SETUP = """
from torch.utils.cpp_extension import CUDAExtension
setup(ext_modules=[CUDAExtension("pkg._C", ["csrc/bind.cpp", "csrc/kernel.cu"])])
"""
BIND = MODULE + '{ m.def("nms", &nms); }'


def test_names_of_extension_modules_come_from_the_build_file(tmp_path: Path) -> None:
    write(tmp_path, setup_py=SETUP, csrc__bind_cpp=BIND, csrc__kernel_cu="")
    found = facts(tmp_path)
    assert found.extensions.operators == {("_C", "nms")}
    assert found.extensions.beside_cuda == {str(tmp_path / "csrc/bind.cpp")}


def test_a_plain_cpp_helper_is_no_cuda(tmp_path: Path) -> None:
    setup = SETUP.replace(', "csrc/kernel.cu"', "").replace("CUDAExtension", "CppExtension")
    write(tmp_path, setup_py=setup, csrc__bind_cpp=BIND)
    assert facts(tmp_path).extensions.operators == frozenset()


def test_an_operator_that_is_ported_is_left_out(tmp_path: Path) -> None:
    impl = 'TORCH_LIBRARY_IMPL(b, {}, m) {{ m.impl("f", f); m.impl("{}", g); }}'
    write(tmp_path, a_cpp=impl.format("CUDA", "g"), b_cpp=impl.format("PrivateUse1", "h"))
    assert facts(tmp_path).extensions.registered == {"b.g"}


@pytest.mark.parametrize(
    ("file", "own"),
    [
        ("triton.py", {"triton"}),
        ("apex/__init__.py", {"apex"}),
        ("src/apex/__init__.py", {"apex"}),
        ("megatron/core/__init__.py", {"megatron"}),
        ("tools/apex/__init__.py", {"apex"}),
        ("pkg/triton.py", {"triton"}),
        ("pkg/kernels/triton/run.sh", set()),
        ("configs/deepspeed/zero.json", set()),
        ("train.py", set()),
    ],
)
def test_own_modules(tmp_path: Path, file: str, own: set[str]) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True) if not path.parent.exists() else None
    path.write_text("")
    (tmp_path / "main.py").write_text("")
    assert facts(tmp_path).own_modules == own


def test_imports_from_a_module_of_the_project_are_its_own(tmp_path: Path) -> None:
    text = "from apex.parallel import LARC\nfrom mmcv.parallel import MMDataParallel\n"
    for name in ("apex/__init__.py", "mmcv/__init__.py"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()
    (tmp_path / "main.py").write_text(text)
    own = analyze(Document("main.py", text), CATALOGUE, Target(project=facts(tmp_path)))
    assert [finding.rule.code for finding in own] == []
    assert len(analyze(Document("main.py", text), CATALOGUE, Target())) == 2


def test_a_copy_of_a_library_is_the_library(tmp_path: Path) -> None:
    (tmp_path / "apex/optimizers").mkdir(parents=True)
    for name in ("apex/__init__.py", "apex/optimizers/__init__.py", "main.py"):
        (tmp_path / name).write_text("")
    assert facts(tmp_path).own_modules == {"apex"}
    (tmp_path / "apex/optimizers/fused_adam.py").write_text("import amp_C\n")
    assert facts(tmp_path).own_modules == frozenset()


def test_a_module_inside_a_package_hides_nothing(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg/__init__.py").write_text("")
    (tmp_path / "pkg/triton.py").write_text("")
    assert facts(tmp_path).own_modules == frozenset()


def test_a_module_beside_a_build_file_is_one_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "hopper").mkdir()
    for name in ("__init__.py", "flash_attn_interface.py", "setup.py"):
        (tmp_path / "hopper" / name).write_text("")
    assert facts(tmp_path).own_modules == {"flash_attn_interface"}


def test_sources_that_are_no_text_are_read_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_bytes(b"// \xff\xfe caf\xe9\n" + BIND.encode())
    checker = Checker(CATALOGUE, Configuration())
    report = checker.check_file(tmp_path / "a.cu")
    assert [f.rule.code for f in report.findings] == ["NPU607"] and report.problem is None
    (tmp_path / "setup.py").write_text("def broken(:\n")
    assert facts(tmp_path).extensions.operators == {("", "nms")}


def test_python_files_are_checked_with_their_project(tmp_path: Path) -> None:
    write(tmp_path, setup_py=SETUP, csrc__bind_cpp=BIND, csrc__kernel_cu="")
    (tmp_path / "use.py").write_text("from pkg import _C\n_C.nms(1)\n")
    checker = Checker(CATALOGUE, Configuration(), facts(tmp_path))
    assert [f.rule.code for f in checker.check_file(tmp_path / "use.py").findings] == ["NPU612"]
    bind = checker.check_file(tmp_path / "csrc/bind.cpp")
    assert [f.rule.code for f in bind.findings] == ["NPU607"]


def test_the_root_of_a_project(tmp_path: Path) -> None:
    (tmp_path / "setup.py").write_text("")
    assert project_root(tmp_path / "pkg/sub/a.py") == tmp_path


@pytest.mark.parametrize(
    "snippet",
    [
        "from torch.utils.cpp_extension import load_inline\ne = ⟦NPU601:load_inline⟧('n', cpp, cuda)\n",
        "import torch.utils.cpp_extension as c\ne = ⟦NPU601:c.load_inline⟧('n', cuda_sources=[s], cpp_sources='')\n",
        "from torch.utils.cpp_extension import load_inline\ne = load_inline('n', cpp_sources=[s])\n",
        "from torch.utils.cpp_extension import load_inline\ne = load_inline('n', s, cuda_sources=[])\n".replace(
            "cuda_sources=[]", "cuda_sources=None"
        ),
        "from torch.utils.cpp_extension import BuildExtension, CppExtension\n",
        "from .cpp_extension import load, CUDAExtension\ne = load('n')\n",
    ],
)
def test_extensions_built_from_python(snippet: str) -> None:
    check(snippet)


def test_the_editor_knows_the_project(tmp_path: Path) -> None:
    write(tmp_path, setup_py=SETUP, csrc__bind_cpp=BIND, csrc__kernel_cu="")
    path = tmp_path / "use.py"
    path.write_text("from pkg import _C\n_C.nms(1)\n")
    with LspClient() as client:
        client.initialize()
        client.open(path.as_uri(), path.read_text())
        [found] = client.diagnostics(path.as_uri(), 1)
        assert found["code"] == "NPU612"


def test_no_fix_hands_a_tensor_of_the_npu_to_a_kernel_of_cuda() -> None:
    text = "from . import _ext\ndef f(b):\n    if b.is_cuda:\n        _ext.f_gpu(b)\n    else:\n        _ext.f(b)\n"
    (finding,) = analyze(Document("a.py", text), CATALOGUE, Target())
    assert (finding.rule.code, finding.fixes) == ("NPU106", ())


def test_cuda_sources_are_found_whoever_builds_them() -> None:
    """`CppExtension` compiles what it is given; each build is found for itself."""
    text = (
        "from torch.utils.cpp_extension import CppExtension, CUDAExtension\n"
        'a = CppExtension("a", sources=["a.cpp", "a.cu"])\n'
        'b = CppExtension("b", ["b.cpp"])\n'
        'c = CUDAExtension("c", ["c.cu"])\n'
    )
    judged = judge(Document("setup.py", text), CATALOGUE, Target())
    lines = [text.count("\n", 0, f.span.start) + 1 for f in judged.findings]
    assert lines == [2, 4]
    settled = {text[slice(*f.span)]: f.settlement for f in judged.settled}
    for source, builder in (('"a.cu"', "CppExtension"), ('"c.cu"', "CUDAExtension")):
        at = settled[source]
        assert at is not None and at.reason == "reported-at-build"
        assert at.span is not None and text[slice(*at.span)] == builder


def test_a_build_that_is_left_out_without_the_toolkit_is_found() -> None:
    text = (
        "import torch\nfrom torch.utils.cpp_extension import CUDA_HOME, CUDAExtension\n"
        "def extensions():\n    if not torch.cuda.is_available() or CUDA_HOME is None:\n"
        '        return []\n    return [CUDAExtension("a", ["a.cu"])]\n'
    )
    found = analyze(Document("setup.py", text), CATALOGUE, Target())
    assert [text[f.span.start :] for f in found if f.rule.code == "NPU601"] == [
        'CUDAExtension("a", ["a.cu"])]\n'
    ]


def test_all_code_of_a_built_extension_is_settled_at_its_build(tmp_path: Path) -> None:
    files = {
        "setup.py": "import glob\n\nfrom setuptools import setup\n"
        "from torch.utils.cpp_extension import CUDAExtension\n\n"
        'setup(ext_modules=[CUDAExtension("boxes", glob.glob("csrc/*"))])\n',
        "csrc/nms.cu": "#include <vector>\n__global__ void nms() {}\nint a;\n",
        "csrc/nms.cpp": "void nms_kernel_wrapper(int n);\n\nvoid nms(int n) {\n  nms_kernel_wrapper(n);\n}\n",
        "csrc/text.cpp": "int lines() { return 1; }\n",
        "other/one.cu": "int a;\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    every = discover([str(tmp_path)], (), tmp_path).files
    project = project_facts(every, [tmp_path], CATALOGUE)
    settled = {
        file.name: [(found.span, found.settlement and found.settlement.reason) for found in judged]
        for file in every
        if file.suffix in (".cu", ".cpp")
        for judged in [
            judge(Document(str(file), file.read_text()), CATALOGUE, Target(project=project)).settled
        ]
    }
    reason = "reported-at-build"
    assert settled == {
        "nms.cu": [((18, 28), reason)],
        "nms.cpp": [((8, 72), reason)],
        "text.cpp": [],
        "one.cu": [],
    }
    alone = judge(Document("csrc/nms.cu", files["csrc/nms.cu"]), CATALOGUE, Target())
    assert alone.settled == ()
