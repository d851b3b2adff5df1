"""Rule files made of libraries: what a library leads to is found in the code that uses it."""
# ruff: noqa: E501 (a function to a line)

import json
import time
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from commands import invoke, records

LACKS = "torch.cuda.jiterator._create_jit_fn"
"""Something that the NPU does not have at all."""
USE = f"{LACKS}('code')"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def library(files: dict[str, str], folder: str = "suite") -> dict[str, Any]:
    """The rule file of a library with these files."""
    for name, text in {"__init__.py": "", **files}.items():
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text).replace("USE", USE), encoding="utf-8")
        for parent in list(path.relative_to(folder).parents)[:-1]:
            Path(folder, parent, "__init__.py").touch()
    code, output, errors = invoke("check", "--as-library", folder, "--output-file", "suite.json")
    assert (code, output) == (0, ""), errors
    content: dict[str, Any] = json.loads(Path("suite.json").read_text(encoding="utf-8"))
    return content


def stopped(files: dict[str, str]) -> list[str]:
    content = library(files)
    return [entry["symbol"] for name in ("libraries", "symbols") for entry in content[name]]


def chains(files: dict[str, str]) -> dict[str, str]:
    found = library(files)["symbols"]
    return {entry["symbol"]: entry["note"]["en"].split("`")[1] for entry in found}


HEAD = "import torch\n"
SHAPES = {
    "in the body": ("def f():\n    USE", ["f"]),
    "through a call": ("def f():\n    g()\n\ndef g():\n    USE", ["f", "g"]),
    "through a private function": ("def f():\n    _g()\n\ndef _g():\n    USE", ["f"]),
    "in a loop, a with and an argument": (
        "def f(xs):\n    for x in xs:\n        with x:\n            print(x, [USE for y in x])",
        ["f"],
    ),
    "cycles": (
        "def f():\n    g()\n\ndef g():\n    f()\n    h()\n\ndef h():\n    g()\n    USE",
        ["f", "g", "h"],
    ),
    "a cycle of nothing": ("def f():\n    g()\n\ndef g():\n    f()", []),
    "one arm of two": ("def f(x):\n    if x:\n        USE\n    else:\n        x()", []),
    "without another arm": ("def f(x):\n    if x:\n        USE", []),
    "both arms": (
        "def f(x):\n    if x:\n        USE\n    else:\n        g()\ndef g(): USE",
        ["f", "g"],
    ),
    "or an error": ("def f(x):\n    if x:\n        USE\n    else:\n        raise OSError", ["f"]),
    "an expression of two": ("def f(x):\n    return USE if x else x", []),
    "the rest of a condition": ("def f(x):\n    return x and USE", []),
    "in a lambda": ("def f(x):\n    return lambda: USE", []),
    "tried": ("def f():\n    try:\n        USE\n    except RuntimeError:\n        pass", []),
    "tried and refused": (
        "def f():\n    try:\n        USE\n    except RuntimeError as e:\n        raise OSError from e",
        ["f"],
    ),
    "after an early return for devices": (
        "def f(x):\n    if not x.fused_available:\n        return x\n    USE",
        [],
    ),
    "after an early return": ("def f(x):\n    if x is None:\n        return x\n    USE", ["f"]),
    "guarded by the author": (
        "def f(x):\n    if x.device.type == 'npu':\n        return x\n    USE",
        [],
    ),
    "matched": ("def f(x):\n    match x:\n        case 1:\n            USE", []),
    "methods through self": (
        "class A:\n    def f(self):\n        self._g()\n    def _g(self):\n        USE\n    def h(self): ...",
        ["A.f"],
    ),
    "a constructor": (
        "class A:\n    def __init__(self):\n        USE\n    def f(self): ...",
        ["A"],
    ),
    "a forward": ("class A(torch.nn.Module):\n    def forward(self, x):\n        USE", ["A"]),
    "a function for autograd": (
        "class _F(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx):\n        USE\n"
        "run = _F.apply\ndef f():\n    run()",
        ["f"],
    ),
    "a base class": (
        "class A:\n    def f(self):\n        USE\n    def g(self): ...\nclass B(A):\n    def g(self):\n"
        "        super().f()\nclass C(A):\n    def f(self): ...",
        ["A.f", "B.f", "B.g"],
    ),
    "what the base calls": (
        "class A:\n    def f(self):\n        self.g()\n    def g(self): ...\nclass B(A):\n"
        "    def g(self):\n        USE",
        ["B.f", "B.g"],
    ),
    "a property": (
        "class A:\n    @property\n    def p(self):\n        return USE\n    def f(self):\n"
        "        return self.p\n    def g(self):\n        return self.q\n    def q(self): USE",
        ["A.f", "A.p", "A.q"],
    ),
    "instances of known classes": (
        "class A:\n    def f(self):\n        USE\n\ndef f():\n    a = A()\n    a.f()\n\n"
        "def g():\n    A().f()\n\ndef h(a):\n    a.f()\n\n"
        "class B:\n    def __init__(self):\n        self.a = A()\n    def k(self):\n        self.a.f()",
        ["A.f", "B.k", "f", "g"],
    ),
    "a decorator": (
        "def cuda_only(f):\n    def inner(*a):\n        USE\n        return f(*a)\n    return inner\n\n"
        "@cuda_only\ndef g():\n    ...\n\nclass A:\n    @cuda_only\n    def f(self): ...",
        ["A.f", "cuda_only", "g"],
    ),
    "a name that hides another": ("def g(): USE\n\ndef f(g):\n    g()", ["g"]),
    "one of two definitions": (
        "try:\n    import fast\n    def f(): USE\nexcept ImportError:\n    def f(): ...",
        [],
    ),
    "a fix that is safe": ("def f():\n    torch.cuda.synchronize()", []),
    "silenced": (f"def f():\n    {USE}  # npulens: ignore", []),
    "a deep chain": (
        "".join(f"def f{n}():\n    f{n + 1}()\n" for n in range(60)) + "def f60(): USE",
        sorted(f"f{n}" for n in range(61)),
    ),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_of_code(name: str) -> None:
    text, expected = SHAPES[name]
    assert stopped({"a.py": HEAD + text}) == [f"suite.a.{each}" for each in expected]


MODULES = {
    "ops/__init__.py": "from .kernels import fast as quick, slow\nfrom . import more\nfrom .all import *\n",
    "ops/kernels.py": HEAD + "def fast():\n    USE\n\ndef slow(): ...\n",
    "ops/more.py": "import suite.ops.kernels as k\nfrom suite import ops\n\n"
    "def f():\n    k.fast()\n\ndef g():\n    ops.quick()\n\ndef h():\n    from .kernels import fast\n    fast()\n",
    "ops/all.py": "from .kernels import fast\n_hidden = fast\neverything = fast\n",
    "tests/test_a.py": "from suite.ops import quick\ndef f(): quick()\n",
}


def test_modules_and_other_names() -> None:
    assert stopped(MODULES) == [
        "suite.ops.everything",
        "suite.ops.fast",
        "suite.ops.kernels.fast",
        *("suite.ops.more.f", "suite.ops.more.g", "suite.ops.more.h"),
        "suite.ops.quick",
    ]
    assert chains(MODULES)["suite.ops.more.g"] == (
        f"suite.ops.more.g -> suite.ops.kernels.fast -> {LACKS}"
    )


def test_a_module_that_cannot_be_imported_takes_others_with_it() -> None:
    content = library(
        {
            "kernels/__init__.py": "from . import low\n",
            "kernels/low.py": "import cupy\n\ndef f(): ...\n",
            "uses.py": "from .kernels.low import f\n\ndef g(): ...\n",
            "lazy.py": "def g():\n    from .kernels import low\n    low.f()\n\ndef h(): ...\n",
            "careful.py": "try:\n    from .kernels import low\nexcept ImportError:\n    low = None\n",
            "types.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from . import kernels\n",
        }
    )
    assert [entry["symbol"] for entry in content["libraries"]] == ["suite.kernels", "suite.uses"]
    assert [entry["symbol"] for entry in content["symbols"]] == ["suite.lazy.g"]
    assert "`suite.uses -> suite.kernels" in content["libraries"][1]["note"]["en"]


PROJECT = """\
import suite.ops as so
from suite.ops import quick
from suite.ops.more import f
from suite.ops.kernels import slow


def main():
    so.quick()
    slow()
"""


def test_a_project_is_told_of_calls_into_the_library() -> None:
    library(MODULES)
    Path("app").mkdir()
    Path("app/npulens.toml").write_text('extend-rules = ["../suite.json"]\n')
    Path("app/main.py").write_text(PROJECT)
    found = records("app")
    assert [(r["line"], r["code"]) for r in found] == [
        (2, "SUITE001"),
        (3, "SUITE001"),
        (8, "SUITE001"),
    ]
    assert f"`suite.ops.quick -> suite.ops.kernels.fast -> {LACKS}`" in found[0]["message"]
    assert "(suite/ops/kernels.py:3)" in found[0]["message"]
    chinese = records("app", "--language", "zh")[0]["message"]
    assert "目前无法在 NPU 上运行" in chinese
    assert invoke("rule", "SUITE001", "--config", "app/npulens.toml")[0] in (0, 2)


def test_methods_and_modules_in_a_project() -> None:
    library(
        {
            "nets.py": HEAD
            + "class Net:\n    def run(self):\n        USE\n\nclass Bad:\n    def __init__(self): USE",
            "low.py": "import cupy\ndef f(): ...",
        }
    )
    Path("app").mkdir()
    Path("app/npulens.toml").write_text('extend-rules = ["../suite.json"]\n')
    Path("app/main.py").write_text(
        "import suite.low\nfrom suite.nets import Bad, Net\nnet = Net()\nnet.run()\n"
    )
    assert [(r["line"], r["column"]) for r in records("app")] == [(1, 8), (2, 24), (4, 1)]


def test_diamonds_cost_time_in_proportion() -> None:
    """Twice as many ways at each step; the tool of today lists them all."""
    levels = 200
    text = HEAD + "".join(
        f"def f{n}():\n    a{n}()\n    b{n}()\ndef a{n}():\n    f{n + 1}()\ndef b{n}():\n    f{n + 1}()\n"
        for n in range(levels)
    )
    started = time.perf_counter()
    content = library({"a.py": f"{text}def f{levels}(): USE\n"})
    assert time.perf_counter() - started < 20
    assert len(content["symbols"]) == 3 * levels + 1
    note = content["symbols"][0]["note"]["en"]
    assert " -> ... -> " in note
    assert len(note) < 1000


def test_what_cannot_be_read_is_told_and_the_rest_is_written() -> None:
    Path("suite").mkdir()
    Path("suite/__init__.py").write_text("")
    Path("suite/bad.py").write_text("def f(:\n")
    Path("suite/a.py").write_text(f"{HEAD}def f():\n    {USE}\n")
    code, output, errors = invoke("check", "--as-library", "suite")
    assert code == 2
    assert "suite/bad.py: left out: line 1 cannot be parsed" in errors
    assert "In 2 modules of suite, 1 public API does not run on the NPU." in errors
    assert [entry["symbol"] for entry in json.loads(output)["symbols"]] == ["suite.a.f"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["a.py"], "needs one folder"),
        (["suite", "suite"], "needs one folder"),
        (["--statistics", "suite"], "writes a rule file and nothing else"),
        (["--fix", "suite"], "writes a rule file and nothing else"),
        (["-"], "writes a rule file and nothing else"),
        (["--output-file", "no/x.json", "suite"], "no/x.json: cannot be written: no such folder"),
    ],
)
def test_what_cannot_be_meant(arguments: list[str], sentence: str) -> None:
    Path("suite").mkdir()
    Path("suite/__init__.py").write_text("")
    Path("a.py").write_text("")
    code, _, errors = invoke("check", "--as-library", *arguments)
    assert code == 2
    assert sentence in errors


def test_the_same_library_gives_the_same_file(here: Path) -> None:
    library(MODULES)
    before = Path("suite.json").read_bytes()
    invoke("check", "--as-library", str(here / "suite"), "--output-file", "2.json", "--jobs", "2")
    assert Path("2.json").read_bytes() == before
