"""`.npulens_cache`: what it changes (the time), and what it must not (anything else)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from commands import CLEAN, CODE, codes, command, invoke, records
from npulens.catalog.loader import load_catalogue
from npulens.catalog.model import Shim
from npulens.catalog.project_model import ProjectFacts
from npulens.text.document import Document
from npulens.workspace.index import contents as contents_module
from npulens.workspace.project import returned_shapes as shapes_module
from npulens.workspace.runs import cache as cache_module
from npulens.workspace.runs import run as run_module
from npulens.workspace.runs.cache import FindingCache
from npulens.workspace.runs.file_report import FileReport
from npulens.workspace.runs.finding_records import finding_of, record_of
from npulens.workspace.runs.run import Checker
from npulens.workspace.settings.configuration import Configuration

pytestmark = pytest.mark.usefixtures("here")

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "train_gpu.py"


@pytest.fixture
def analysed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that are analysed from here on."""
    paths: list[str] = []
    judge = run_module.judge

    def remember(document: Document, *others):  # type: ignore[no-untyped-def]
        paths.append(os.path.relpath(document.path))
        return judge(document, *others)

    monkeypatch.setattr(run_module, "judge", remember)
    return paths


def states(here: Path) -> list[Path]:
    return sorted((here / ".npulens_cache").glob("*.json"))


def facts(here: Path) -> list[Path]:
    return sorted((here / ".npulens_cache").glob("*.facts"))


class TestReuse:
    def test_what_is_known_is_not_analysed(self, here: Path, analysed: list[str]) -> None:
        (here / "a.py").write_text(EXAMPLE.read_text())
        (here / "b.py").write_text(CODE)
        (here / "c.py").write_text(CLEAN)
        first = invoke("check")
        assert analysed == ["a.py", "b.py", "c.py"]
        assert invoke("check") == first
        assert len(analysed) == 3
        (here / "b.py").write_text(CODE + CODE)
        assert invoke("check") == invoke("check", "--no-cache")
        assert analysed[3:] == ["b.py", "a.py", "b.py", "c.py"]

    def test_every_format_is_the_same(self, here: Path) -> None:
        (here / "a.py").write_text(EXAMPLE.read_text())
        for form in ("human", "json", "sarif", "gitlab"):
            arguments = ("check", "--output-format", form)
            assert invoke(*arguments) == invoke(*arguments) == invoke(*arguments, "--no-cache")

    def test_language_and_form_need_nothing_new(self, here: Path, analysed: list[str]) -> None:
        (here / "a.py").write_text(CODE)
        invoke("check")
        assert "错误" in invoke("check", "--language", "zh")[1]
        assert records()[0]["code"] == "NPU101"
        assert analysed == ["a.py"]

    def test_a_file_is_known_by_its_content(self, here: Path, analysed: list[str]) -> None:
        (here / "a.py").write_text(CODE)
        invoke("check")
        found = (here / "a.py").stat()
        (here / "a.py").write_text(CODE.replace("synchronize", "empty_cache"))
        os.utime(here / "a.py", ns=(found.st_atime_ns, found.st_mtime_ns))
        assert "empty_cache" in invoke("check")[1]
        os.utime(here / "a.py")
        invoke("check")
        assert analysed == ["a.py", "a.py"]

    def test_what_cannot_be_read_is_told_again(self, here: Path) -> None:
        (here / "a.py").write_bytes(b"import torch\n\xff")
        assert codes() == codes() == ["NPU003"]

    def test_deleted_files_are_forgotten(self, here: Path) -> None:
        for name in ("a.py", "b.py"):
            (here / name).write_text(CODE)
        invoke("check")
        (here / "a.py").unlink()
        (here / "c.py").write_text(CODE)
        invoke("check")
        (state,) = states(here)
        assert set(json.loads(state.read_bytes().split(b"\n", 1)[1])) == {"b.py", "c.py"}

    def test_in_the_folder_of_the_configuration(self, here: Path) -> None:
        (here / "npulens.toml").write_text("")
        (here / "sub").mkdir()
        (here / "sub/a.py").write_text(CODE)
        subprocess.run([sys.executable, "-m", "npulens", "check"], cwd=here / "sub", check=False)
        assert len(states(here)) == 1
        assert not (here / "sub/.npulens_cache").exists()

    def test_no_cache(self, here: Path) -> None:
        (here / "a.py").write_text(CODE)
        invoke("check", "--no-cache")
        assert not (here / ".npulens_cache").exists()
        invoke("check")
        before = states(here)[0].read_bytes()
        (here / "a.py").write_text(CLEAN)
        invoke("check", "--no-cache")
        assert states(here)[0].read_bytes() == before

    def test_neither_git_nor_npulens_look_into_it(self, here: Path) -> None:
        (here / "a.py").write_text(CODE)
        subprocess.run(["git", "init", "--quiet"], check=True)
        invoke("check")
        seen = subprocess.run(["git", "status", "--porcelain"], capture_output=True, check=True)
        assert seen.stdout == b"?? a.py\n"
        (here / ".npulens_cache/b.py").write_text(CODE)
        assert {record["path"] for record in records()} == {"a.py"}


class TestWhatFindingsDependOn:
    """Each change below changes the findings of a file that is the same as before."""

    def differs(self, here: Path, before: list[str], *arguments: str) -> None:
        after = codes(*arguments)
        assert after == codes("--no-cache", *arguments)
        assert after != before

    def test_settings(self, here: Path) -> None:
        (here / "a.py").write_text(CODE)
        before = codes()
        self.differs(here, before, "--ignore", "NPU101")
        self.differs(here, before, "--select", "NPU2")
        (here / "npulens.toml").write_text('[per-file-ignores]\n"a.py" = ["NPU1"]\n')
        self.differs(here, before)

    def test_severities(self, here: Path) -> None:
        (here / "a.py").write_text(CODE)
        assert records()[0]["severity"] == "error"
        (here / "npulens.toml").write_text('[severities]\nNPU101 = "hint"\n')
        assert records()[0]["severity"] == "hint"
        (here / "npulens.toml").write_text('[severities]\nNPU101 = "info"\n')
        assert records()[0]["severity"] == "info"

    def test_style(self, here: Path) -> None:
        (here / "a.py").write_text(CODE)
        first = records()[0]["fix"]
        second = records("--migration-style", "device-agnostic")[0]["fix"]
        assert first != second
        assert records()[0]["fix"] == first

    def test_torch_version(self, here: Path) -> None:
        (here / "a.py").write_text("import torch\nx = torch.accelerator.current_device_index()\n")
        results = [
            json.dumps(records(*more, "--torch-version", version))
            for version in ("2.6", "2.13", "2.6")
            for more in ([], ["--no-cache"])
        ]
        assert results[0] == results[1] == results[4] == results[5]
        assert results[2] == results[3]

    def test_rules_of_the_user(self, here: Path) -> None:
        text = {"en": "No.", "zh": "不。"}

        def write(symbol: str) -> None:
            rule = {"code": "OUR001", "name": "ours", "severity": "info"}
            rules = {
                "family": "ours",
                "rules": [{**rule, "message": text, "explanation": text}],
                "symbols": [{"symbol": symbol, "rule": "ours", "source": "us"}],
            }
            (here / "ours.json").write_text(json.dumps(rules))

        (here / "npulens.toml").write_text('extend-rules = ["ours.json"]\n')
        (here / "a.py").write_text("import gpukit\ngpukit.a()\n")
        write("gpukit.b")
        before = codes()
        write("gpukit.a")
        self.differs(here, before)

    def test_other_files_of_the_project(self, here: Path) -> None:
        (here / "a.py").write_text("import torch\nimport xformers\n")
        before = codes()
        (here / "xformers").mkdir()
        (here / "xformers/__init__.py").write_text("")
        self.differs(here, before)

    def test_the_shim_in_another_file(self, here: Path) -> None:
        (here / "lib.py").write_text(CODE)
        (here / "run.py").write_text("import torch\nimport lib\nlib.go()\n")
        before = codes()
        shim = "import torch_npu\nfrom torch_npu.contrib import transfer_to_npu\n"
        (here / "run.py").write_text(f"import torch\n{shim}import lib\nlib.go()\n")
        self.differs(here, before)

    def test_the_name_of_the_file(self, here: Path) -> None:
        checker_cache = FindingCache(here, load_catalogue(), Configuration(), ProjectFacts())
        digests = {
            checker_cache.digest(path, shim, data, "")
            for path in ("a.py", "tests/a.py")
            for shim in Shim
            for data in (b"", b"x")
        }
        assert len(digests) == 2 * len(Shim) * 2

    def test_the_program_itself(self, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (here / "a.py").write_text(CODE)
        invoke("check")
        monkeypatch.setattr("npulens.__version__", "99.0")
        invoke("check")
        assert len(states(here)) == 2
        monkeypatch.setattr(cache_module, "_program", lambda: [("changed.py", 1, 1)])
        invoke("check")
        assert len(states(here)) == 3

    def test_few_states_are_kept(self, here: Path) -> None:
        (here / "a.py").write_text(CODE)
        for number in range(101, 112):
            invoke("check", "--ignore", f"NPU{number}")
        assert len(states(here)) == 8


MASKED = """import torch


def chosen(x: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    return x[scores > 0.5]
"""
SHAPES = {
    "pack/__init__.py": "",
    "pack/deep.py": MASKED,
    "pack/utils.py": """import torch
from .deep import chosen


def handed_on(x: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    return chosen(x, scores) + 1
""",
    "pack/net.py": """import torch
from .utils import handed_on


def forward(x: torch.Tensor, scores: torch.Tensor):
    return handed_on(x, scores) * 2
""",
    "pack/masks.py": """import torch


def padding(lengths: torch.Tensor, longest: int = 0) -> torch.Tensor:
    longest = longest if longest > 0 else lengths.max().item()
    return torch.arange(longest, device=lengths.device) >= lengths.unsqueeze(-1)
""",
    "pack/masked.py": """import torch
from .masks import padding


def forward(x: torch.Tensor, lengths: torch.Tensor):
    return x * padding(lengths, x.size(1)) + padding(lengths)
""",
    "pack/configuration.py": "class UnitConfig:\n    hidden_act: str = 'silu'\n",
    "pack/modeling.py": """import torch
from torch import nn
from transformers.activations import ACT2FN
from .configuration import UnitConfig


class Unit(nn.Module):
    def __init__(self, config: UnitConfig):
        super().__init__()
        self.act_fn = ACT2FN[config.hidden_act]

    def forward(self, gate, up):
        return self.act_fn(gate) * up
""",
    "pack/kernel.py": "import triton\nimport triton.language as tl\n",
    "pack/tried.py": "try:\n    from .kernel import scale\nexcept ImportError:\n    scale = None\n",
    "setup.py": "from torch.utils.cpp_extension import CUDAExtension\n"
    "CUDAExtension('pack._C', ['csrc/op.cu'])\n",
    "csrc/op.cu": "#include <torch/extension.h>\n#include <cuda.h>\n"
    'PYBIND11_MODULE(_C, m) { m.def("scale", &scale); }\n',
    "pack/uses.py": "import torch\nfrom pack import _C\n_C.scale(torch.ones(2))\n",
    "pack/ops/scale.py": "class Scale:\n    sources = ['csrc/op.cu']\n",
    "pack/ops/npu/scale.py": "class Scale:\n    sources = []\n",
}
"""A project in which each kind of fact is found."""


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The modules of which it is evaluated what they return."""
    paths: list[str] = []
    analyze = shapes_module.analyze_returned_shapes

    def remember(document: Document, *others):  # type: ignore[no-untyped-def]
        paths.append(os.path.relpath(document.path))
        return analyze(document, *others)

    monkeypatch.setattr(shapes_module, "analyze_returned_shapes", remember)
    return paths


class TestFacts:
    """What files say of each other is known by their content as well."""

    @pytest.fixture
    def project(self, here: Path) -> Path:
        for name, text in SHAPES.items():
            (here / name).parent.mkdir(parents=True, exist_ok=True)
            (here / name).write_text(text)
        return here

    def same(self, *arguments: str) -> list[str]:
        """The places of findings, which are those without the cache."""
        found = records(*arguments)
        assert found == records("--no-cache", *arguments)
        return [f"{record['path']}:{record['code']}" for record in found]

    def test_what_is_known_is_not_evaluated(self, project: Path, evaluated: list[str]) -> None:
        first = invoke("check")
        assert evaluated
        evaluated.clear()
        assert invoke("check") == first
        assert not evaluated
        (project / "pack/other.py").write_text(MASKED + "from pack import other\n")
        invoke("check")
        assert {*map(os.path.relpath, evaluated)} == {
            "pack/other.py",
            "pack/utils.py",
        }  # this as others are known

    def test_each_file_is_read_once_for_all_facts(
        self, project: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        paths: list[str] = []
        read = contents_module.read
        monkeypatch.setattr(contents_module, "read", lambda path: paths.append(path) or read(path))
        (project / "pack/shim.py").write_text("from torch_npu.contrib import transfer_to_npu\n")
        invoke("check")
        assert sorted(paths) == sorted({*paths})
        assert len([path for path in paths if path.endswith(".py")]) == 15

    def test_a_callee_in_another_file(self, project: Path) -> None:
        told = "pack/net.py:NPU801"
        assert told in self.same()
        (project / "pack/deep.py").write_text(MASKED.replace("x[scores > 0.5]", "x * scores"))
        assert told not in self.same()
        (project / "pack/deep.py").write_text(MASKED)
        assert told in self.same()
        (project / "pack/utils.py").write_text(SHAPES["pack/utils.py"].replace("deep", "none"))
        assert told not in self.same()

    @pytest.mark.parametrize(
        ("name", "text", "told"),
        [
            ("pack/plain.py", "from .kernel import scale\n", "pack/kernel.py:NPU604"),
            ("pack/tried.py", "", "pack/kernel.py:NPU604"),
        ],
    )
    def test_who_imports_a_module(self, project: Path, name: str, text: str, told: str) -> None:
        before = self.same()
        (project / name).write_text(text)
        after = self.same()
        assert any(each.startswith(told) for each in after)
        assert not any(each.startswith(told) for each in before)

    def test_rules_of_the_user(self, project: Path) -> None:
        self.same()
        assert len(facts(project)) == 1
        (project / "ours.json").write_text(json.dumps({"family": "ours", "rules": []}))
        (project / "npulens.toml").write_text('extend-rules = ["ours.json"]\n')
        self.same()
        assert len(facts(project)) == 2

    def test_answers_of_any_form(self, project: Path) -> None:
        expected = records("--no-cache")
        invoke("check")
        (file,) = facts(project)
        keys = list(json.loads(file.read_bytes().split(b"\n", 1)[1]))
        for value in (
            *(0, 1.5, "x", True, {}, {"a": 1}, {"a": True, "configures": None}),
            *([0], [[]], [[0]], [["x"]], [[["x"]]], ["x", 1]),
            *([1e999], [["x", 1e999]], [["x", ["x"]]], [[1, "x", [], True, True]], [[], [[]]]),
            *([["x", ["tensor", 5, 1, 1, "", [], False]]], [["x", "abcdefg"]], ["\ud800"]),
            [[["", "x", True, "", True, [0, "x"], 0]], True, True],
            [["padding", ["tensor", [""], False, False, "bool", [], True, [[-5, "longest"]]]]],
        ):
            file.write_bytes(signed(json.dumps(dict.fromkeys(keys, value)).encode()))
            _, output, errors = invoke("check", "--output-format", "json")
            assert isinstance(json.loads(output), list)
            assert errors == ""
        file.write_bytes(signed(json.dumps(dict.fromkeys(keys, 0)).encode()))
        assert records() == expected

    @pytest.mark.parametrize("data", [b"", b"[]\n[]", b"x" * 100, b"[" * 100_000])
    def test_damage(self, project: Path, data: bytes) -> None:
        expected = invoke("check")
        (file,) = facts(project)
        for damaged in (data, signed(data)):
            file.write_bytes(damaged)
            assert invoke("check") == expected

    def test_a_report_after_a_check(self, project: Path, analysed: list[str]) -> None:
        invoke("check")
        analysed.clear()
        code, page, _ = invoke("report", ".")
        assert code == 0
        assert not analysed
        assert "handed_on(x, scores)" in page.partition("## Dynamic shapes")[2]
        assert page == invoke("report", ".", "--no-cache")[1]
        assert analysed

    def test_one_file_alone_forgets_no_other(self, project: Path, evaluated: list[str]) -> None:
        invoke("check")
        invoke("check", "pack/uses.py")
        evaluated.clear()
        invoke("check")
        assert not evaluated


class TestTrouble:
    @pytest.mark.parametrize(
        "damage",
        [
            lambda data: b"",
            lambda data: data[: len(data) // 2],
            lambda data: data[:100] + b"\0\xff" + data[102:],
            lambda data: data.replace(b"NPU101", b"NPU102"),
            lambda data: b"[]\n[]",
            lambda data: signed(b"[]"),
            lambda data: signed(b'{"a.py": 1}'),
            lambda data: signed(b'{"a.py": ["x", [1]]}'),
            lambda data: signed(b"[" * 100_000),
            lambda data: signed(data.split(b"\n", 1)[1].replace(b"NPU101", b"NPU999")),
            lambda data: signed(data.split(b"\n", 1)[1].replace(b'"safe"', b'"unheard"')),
            lambda data: signed(data.split(b"\n", 1)[1].replace(b"[[", b"[null,[")),
        ],
    )
    def test_damage(self, here: Path, damage) -> None:  # type: ignore[no-untyped-def]
        (here / "a.py").write_text(CODE)
        first = invoke("check")
        (state,) = states(here)
        state.write_bytes(damage(state.read_bytes()))
        assert invoke("check") == first
        assert invoke("check") == first

    def test_data_is_never_run(self) -> None:
        source = Path(cache_module.__file__).read_text() + Path(run_module.__file__).read_text()
        assert not any(word in source for word in ("pickle", "marshal", "eval(", "exec("))

    def test_folder_that_cannot_be_made(self, here: Path) -> None:
        (here / "a.py").write_text(CODE)
        (here / ".npulens_cache").write_text("I am a file")
        code, output, errors = invoke("check")
        assert (code, errors) == (1, "")
        assert "NPU101" in output
        assert (here / ".npulens_cache").read_text() == "I am a file"

    @pytest.mark.skipif(os.name == "nt", reason="means something on POSIX only")
    def test_folder_that_cannot_be_written(self, here: Path) -> None:
        (here / "a.py").write_text(CODE)
        (here / ".npulens_cache").mkdir()
        (here / ".npulens_cache").chmod(0o555)
        try:
            code, _, errors = invoke("check")
        finally:
            (here / ".npulens_cache").chmod(0o755)
        assert (code, errors) == (1, "")

    def test_runs_at_once(self, here: Path) -> None:
        for index in range(60):
            (here / f"{index:02}.py").write_text(CODE * (index % 3))
        expected = command("check", "--no-cache").stdout
        for _ in range(2):
            runs = [
                subprocess.Popen(
                    [sys.executable, "-m", "npulens", "check", "--jobs", jobs],
                    stdout=subprocess.PIPE,
                )
                for jobs in ("1", "2", "1")
            ]
            assert [run.communicate(timeout=60)[0] for run in runs] == [expected] * 3
        assert len(states(here)) == 1
        names = {path.name for path in (here / ".npulens_cache").iterdir()}
        assert len(facts(here)) == 1
        kept = {states(here)[0].name, facts(here)[0].name}
        assert names == {*kept, ".gitignore", "CACHEDIR.TAG"}


def signed(body: bytes) -> bytes:
    return cache_module._checksum(body) + b"\n" + body


def test_findings_come_back_as_they_were() -> None:
    catalogue = load_catalogue()
    checker = Checker(catalogue, Configuration())
    snippets = [EXAMPLE.read_text()]
    snippets += [example.before for rule in catalogue.rules.values() for example in rule.examples]
    count = 0
    for text in snippets:
        report: FileReport = checker.check_bytes("a.py", text.encode())
        for finding in report.findings:
            record = json.loads(json.dumps(record_of(finding)))
            assert finding_of(record, catalogue.rules) == finding
            count += 1
    assert count > 100
