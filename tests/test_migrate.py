"""`npulens migrate`: the copy, the log, the styles, and what bad input gets."""

import csv
import io
import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from commands import CLEAN, CODE, command, invoke
from migration_projects import PROJECTS, write_project
from npulens.workspace.migrating import migration as migration_module

pytestmark = pytest.mark.usefixtures("here")

LOG = "npulens-migration"
FIXED = "import torch\nimport torch_npu  # noqa: F401\ntorch.npu.synchronize()\n"
LEFT = 'import torch\ntorch.cuda.synchronize()\ntorch.cuda.nvtx.range_push("x")\n'
on_posix = pytest.mark.skipif(os.name == "nt", reason="means something on POSIX only")
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="needs what Linux alone has")
STYLES = ["npu", "device-agnostic", "runtime-shim"]


@pytest.fixture
def source(here: Path) -> Path:
    """A folder with a file to fix, one to leave, and one that is no text."""
    folder = here / "src"
    folder.mkdir()
    (folder / "a.py").write_text(CODE)
    (folder / "clean.py").write_text(CLEAN)
    (folder / "data.bin").write_bytes(b"\x00\xfftorch.cuda")
    return folder


def contents(root: Path) -> dict[str, bytes]:
    """What all files of a tree hold, without the log."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and LOG not in path.relative_to(root).parts
    }


def log_of(root: Path) -> dict[str, Any]:
    return log_of_folder(root / LOG)


def log_of_folder(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "change_log.json").read_bytes())
    return found


def leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith(".npulens-")]


def git(*arguments: str) -> str:
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "core.autocrlf=false"]
    result = subprocess.run(
        ["git", *identity, *arguments], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


class TestProjects:
    @pytest.mark.family(10)
    @pytest.mark.parametrize("style", STYLES)
    @pytest.mark.parametrize("options", [[], ["--unsafe-fixes"]], ids=["safe", "unsafe"])
    @pytest.mark.parametrize("name", PROJECTS)
    def test_a_project(self, here: Path, name: str, options: list[str], style: str) -> None:
        write_project(PROJECTS[name], here / "src")
        options = [*options, "--migration-style", style]
        code, output, errors = invoke("migrate", "src", "-o", "dst", *options)
        assert errors == ""
        assert output.startswith("dst: changed ")
        before, after = contents(here / "src"), contents(here / "dst")
        assert after.keys() == before.keys()
        for path, data in after.items():
            if path.endswith(".py"):
                compile(data, path, "exec", dont_inherit=True)
        log = log_of(here / "dst")
        assert code == (1 if log["left"] else 0)
        assert {path for path in after if after[path] != before[path]} == set(log["changed"])
        # A second run changes nothing, and a check finds what the log says is left.
        assert invoke("migrate", "dst", "-o", "dst2", *options)[0] == code
        assert contents(here / "dst2") == after
        assert log_of(here / "dst2")["changes"] == []
        arguments = ["--no-cache", "--output-format", "json", "--migration-style", style]
        found = json.loads(invoke("check", *arguments, "dst")[1])
        keys = ("line", "column", "code")
        assert sorted((f["path"].removeprefix("dst/"), *(f[k] for k in keys)) for f in found) == (
            sorted((each["path"], *(each[k] for k in keys)) for each in log["left"])
        )

    def test_each_edit_is_in_the_log(self, here: Path) -> None:
        write_project(PROJECTS["classifier"], here / "src")
        invoke("migrate", "src", "-o", "dst", "--unsafe-fixes")
        for change in log_of(here / "dst")["changes"]:
            lines = (here / "src" / change["path"]).read_text().splitlines()
            assert change["code"].startswith("NPU")
            if change["before"]:
                shown = change["before"].splitlines()
                assert lines[change["line"] - 1 :][: len(shown)] == shown
            assert change["after"] != change["before"]

    def test_names_with_cuda_go_and_those_of_the_npu_come(self, here: Path) -> None:
        write_project(PROJECTS["classifier"], here / "src")
        invoke("migrate", "src", "-o", "dst", "--unsafe-fixes")
        text = (here / "dst" / "main.py").read_text()
        assert "torch.npu.set_device(args.gpu)" in text
        assert "torch.cuda" not in text
        assert "ASCEND_RT_VISIBLE_DEVICES=0,1" in (here / "dst" / "run.sh").read_text()

    def test_the_shim_is_turned_on_where_programs_start(self, here: Path) -> None:
        write_project(PROJECTS["language-model"], here / "src")
        (here / "src" / "start.py").write_text("'''Starts.'''\nfrom train import main\n\nmain()\n")
        (here / "src" / "test_model.py").write_text("import torch\n\nprint(torch.ones(3))\n")
        (here / "src" / "tools.py").write_text("print('no torch')\n")
        (here / "src" / "pack").mkdir()
        (here / "src" / "pack" / "__init__.py").write_text("")
        old = "import warnings\nfrom torch import nn\nwarnings.warn('moved')\n"
        (here / "src" / "pack" / "old.py").write_text(old)  # acts, but is no script
        invoke("migrate", "src", "-o", "dst", "--migration-style", "runtime-shim")
        texts = {p.name: p.read_text() for p in (here / "dst").rglob("*.py")}
        shimmed = {name for name, text in texts.items() if "import transfer_to_npu" in text}
        # train.py is imported by start.py, which brings the shim along.
        assert shimmed == {"start.py"}
        assert texts["start.py"] == (
            "'''Starts.'''\nfrom torch_npu.contrib import transfer_to_npu  # noqa: F401\n"
            "from train import main\n\nmain()\n"
        )
        assert "torch.cuda.synchronize()" in texts["train.py"]
        [change] = [c for c in log_of(here / "dst")["changes"] if c["path"] == "start.py"]
        assert (change["code"], change["line"], change["before"]) == (None, 2, "")


class TestCopy:
    def test_what_is_not_changed_stays_as_it_is(self, here: Path, source: Path) -> None:
        for name, mode in (("clean.py", 0o755), ("data.bin", 0o440)):
            (source / name).chmod(mode)
            os.utime(source / name, ns=(10**18, 10**18))
        (source / "empty").mkdir(mode=0o750)
        code, output, _ = invoke("migrate", "src", "-o", "dst")
        assert (code, output) == (
            0,
            "dst: changed 1 of 3 files in 2 edits.\n"
            "Left to do: no problems known.\n"
            "Next, see it run on an emulated NPU: cd dst && npulens verify --as-is SCRIPT\n",
        )
        assert (here / "dst" / "a.py").read_text() == FIXED
        for name in ("clean.py", "data.bin"):
            old, new = (source / name).stat(), (here / "dst" / name).stat()
            assert (new.st_mode, new.st_mtime_ns) == (old.st_mode, old.st_mtime_ns)
        assert (here / "dst" / "empty").is_dir()
        assert contents(source)["a.py"] == CODE.encode()
        assert leftovers(here) == []

    @on_posix
    def test_modes_that_forbid_to_write(self, here: Path, source: Path) -> None:
        inner = source / "inner"
        inner.mkdir()
        (inner / "b.py").write_text(CODE)
        (inner / "b.py").chmod(0o555)
        inner.chmod(0o555)
        try:
            assert invoke("migrate", "src", "-o", "dst")[0] == 0
        finally:
            inner.chmod(0o755)
        copy = here / "dst" / "inner"
        assert (copy / "b.py").read_text() == FIXED
        assert stat.S_IMODE((copy / "b.py").stat().st_mode) == 0o555
        assert stat.S_IMODE(copy.stat().st_mode) == 0o555
        copy.chmod(0o755)

    @on_posix
    def test_links(self, here: Path, source: Path) -> None:
        (source / "inner").mkdir()
        (here / "outside").mkdir()
        (source / "inner" / "same.py").symlink_to("../a.py")
        (source / "absolute").symlink_to(source / "inner")
        (source / "broken").symlink_to("nowhere")
        (source / "around").symlink_to("../src/clean.py")
        (source / "out").symlink_to("../outside")
        (source / "loop").symlink_to("loop")
        (source / ".venv").mkdir()
        (source / "tool").symlink_to(".venv")
        os.mkfifo(source / "pipe")
        code, _, errors = invoke("migrate", "src", "-o", "dst")
        assert code == 0
        found = [path for path in (here / "dst").rglob("*") if path.is_symlink()]
        links = {path.name: str(path.readlink()) for path in found}
        assert links == {
            "same.py": "../a.py",
            "absolute": "inner",
            "broken": "nowhere",
            "around": "clean.py",
            "loop": "loop",
        }
        assert (here / "dst" / "inner" / "same.py").read_text() == FIXED
        left_out = {e["path"]: e["reason"] for e in log_of(here / "dst")["not_copied"]}
        assert left_out == {
            "out": "leads-outside",
            ".venv": "not-wanted",
            "tool": "leads-to-left-out",
            "pipe": "special",
        }
        assert "out -> ../outside: not copied: a link that leads out of the folder" in errors
        assert "pipe: not copied" in errors

    def test_what_belongs_to_the_folder_stays_there(self, here: Path, source: Path) -> None:
        for name in (".git", "__pycache__", ".npulens_cache", "env"):
            (source / name).mkdir()
            (source / name / "x.py").write_text(CODE)
        (source / "env" / "pyvenv.cfg").write_text("")
        (source / "build" / "lib").mkdir(parents=True)
        (source / "build" / "lib" / "x.py").write_text(CODE)
        invoke("migrate", "src", "-o", "dst")
        names = {path.name for path in (here / "dst").iterdir()}
        assert names == {"a.py", "clean.py", "data.bin", "build", LOG}
        # As everywhere, what was built is not read.
        assert (here / "dst" / "build" / "lib" / "x.py").read_text() == CODE

    @on_linux
    def test_names_that_are_any_bytes(self, here: Path, source: Path) -> None:
        for name in (b"new\nline.py", b"\xff\xfe.py", "名 前.py".encode()):
            with open(os.fsencode(source) + b"/" + name, "w") as file:  # noqa: PTH123
                file.write(CODE)
        destination = os.fsdecode(os.fsencode(here) + b"/dst\xff\n")
        result = command("migrate", "src", "-o", destination)
        assert (result.returncode, result.stderr) == (0, b"")
        copy = os.fsencode(destination)
        for name in (b"new\nline.py", b"\xff\xfe.py", "名 前.py".encode()):
            with open(copy + b"/" + name) as file:  # noqa: PTH123
                assert file.read() == FIXED
        log = log_of(Path(destination))
        assert {"new\nline.py", "\udcff\udcfe.py", "名 前.py"} < set(log["changed"])

    def test_settings_above_the_folder_count(self, here: Path, source: Path) -> None:
        (source / "old").mkdir()
        (source / "old" / "b.py").write_text(CODE)
        (here / "npulens.toml").write_text('exclude = ["src/old"]\n')
        invoke("migrate", "src", "-o", "dst")
        assert (here / "dst" / "old" / "b.py").read_text() == CODE
        assert (here / "dst" / "a.py").read_text() == FIXED

    def test_settings_in_the_folder_count(self, here: Path, source: Path) -> None:
        (source / "old").mkdir()
        (source / "old" / "b.py").write_text(CODE)
        (source / "npulens.toml").write_text(
            'exclude = ["/old"]\nmigration-style = "device-agnostic"\n'
        )
        invoke("migrate", "src", "-o", "dst")
        assert (here / "dst" / "old" / "b.py").read_text() == CODE
        assert "torch.accelerator.synchronize()" in (here / "dst" / "a.py").read_text()
        assert log_of(here / "dst")["style"] == "device-agnostic"

    @pytest.mark.parametrize("jobs", ["1", "2"])
    def test_the_number_of_processes_changes_nothing(self, here: Path, jobs: str) -> None:
        write_project(PROJECTS["language-model"], here / "src")
        for name in ("one", "other"):
            given = jobs if name == "other" else "1"
            assert command("migrate", "src", "-o", name, "--jobs", given).returncode == 1
        assert contents(here / "one") == contents(here / "other")
        for path in (here / "one" / LOG).iterdir():
            same = (here / "other" / LOG / path.name).read_bytes().replace(b"other:", b"one:")
            assert same == path.read_bytes()


class TestLog:
    def test_what_is_left_comes_by_effort(self, here: Path) -> None:
        write_project(PROJECTS["kernels"], here / "src")
        invoke("migrate", "src", "-o", "dst")
        left = log_of(here / "dst")["left"]
        assert [each["minutes"] for each in left] == sorted(
            (each["minutes"] for each in left), reverse=True
        )
        assert left[0]["code"] == "NPU601"
        text = (here / "dst" / LOG / "change_log.md").read_text()
        assert text.index("NPU601") < text.index("NPU612")
        assert "### Days each" in text

    def test_advice_comes_last(self, here: Path) -> None:
        write_project(PROJECTS["classifier"], here / "src")
        invoke("migrate", "src", "-o", "dst")
        advice = [each["advice"] for each in log_of(here / "dst")["left"]]
        assert advice == sorted(advice)
        assert set(advice) == {False, True}

    def test_for_people(self, here: Path, source: Path) -> None:
        (source / "a.py").write_text(LEFT.replace('"x"', '"```"'))
        assert invoke("migrate", "src", "-o", "dst")[0] == 1
        text = (here / "dst" / LOG / "change_log.md").read_text()
        assert "@@ 2 NPU101: Use `torch.npu.synchronize` (safe fix)\n" in text
        assert "-torch.cuda.synchronize()\n+torch.npu.synchronize()\n" in text
        assert "- `a.py`:4 NPU502 " in text
        assert text.count("```diff") == 1

    def test_in_chinese(self, here: Path, source: Path) -> None:
        (source / "a.py").write_text(LEFT)
        _, output, _ = invoke("migrate", "src", "-o", "dst", "--language", "zh")
        assert output.startswith("dst：共 3 个文件，改动其中 1 个，共 2 处编辑。\n待处理：1 个问题")
        text = (here / "dst" / LOG / "change_log.md").read_text(encoding="utf-8")
        assert "## 待处理" in text
        assert "## 改动" in text

    def test_what_needs_nothing_is_counted(self, here: Path, source: Path) -> None:
        text = "try:\n    import {0}\nexcept ImportError:\n    {0} = None\n"
        (source / "a.py").write_text(CODE + text.format("flash_attn") + 'print("cuda:0")\n')
        (source / "b.py").write_text(text.format("flash_attn") + text.format("cupy"))
        for name, options in (("dst", ()), ("zh", ("--language", "zh"))):
            assert invoke("migrate", "src", "-o", name, *options)[0] == 1  # the hints are left
        log = log_of(here / "dst")
        assert [(each["path"], each["line"], each["code"]) for each in log["left"]] == [
            ("a.py", 5, "NPU613"),
            ("b.py", 6, "NPU613"),
        ]
        assert [(each["reason"], each["places"]) for each in log["settled"]] == [
            ("reported-once", 1),
            ("text", 1),
        ]
        assert log["settled"][1]["text"] == "this is text for people"
        assert log["fallbacks"] == [
            {"path": "a.py", "line": 5, "name": "flash_attn"},  # in the migrated file
            {"path": "b.py", "line": 2, "name": "flash_attn"},
            {"path": "b.py", "line": 6, "name": "cupy"},
        ]
        text = (here / "dst" / LOG / "change_log.md").read_text()
        assert "## What needs nothing, and why\n\n- 1× `reported-once`: this is reported" in text
        assert "`npulens check --explain-silence` lists each place" in text
        assert "- `flash_attn`: `a.py`:5, `b.py`:2\n" in text
        text = (here / "zh" / LOG / "change_log.md").read_text(encoding="utf-8")
        assert "## 无需处理的位置及原因" in text
        assert "### 有替代实现，因此保持原样" in text

    def test_elsewhere(self, here: Path, source: Path) -> None:
        invoke("migrate", "src", "-o", "dst", "--log-folder", "told")
        assert not (here / "dst" / LOG).exists()
        assert (here / "told" / "change_log.md").exists()
        code, _, errors = invoke("migrate", "src", "-o", "dst2", "--log-folder", "told")
        assert code == 2
        assert errors.startswith("npulens: --log-folder told: is not empty")
        for place in ("src/log", "dst2/log", "dst2", "no/where"):
            code, _, errors = invoke("migrate", "src", "-o", "dst2", "--log-folder", place)
            assert code == 2
            assert errors.startswith(f"npulens: --log-folder {place}: ")
        invoke("migrate", "src", "--in-place", "--log-folder", "told2")
        assert log_of_folder(here / "told2")["changed"] == ["a.py"]
        assert not (source / LOG).exists()

    def test_what_cannot_be_fixed_is_told(self, here: Path, source: Path) -> None:
        (source / "bad.py").write_bytes(b"import torch\nx = '\xff'\n")
        code, _, _ = invoke("migrate", "src", "-o", "dst")
        assert code == 1
        assert [each["code"] for each in log_of(here / "dst")["left"]] == ["NPU003"]
        assert (here / "dst" / "bad.py").read_bytes() == b"import torch\nx = '\xff'\n"


PLACES = ["File", "Start Line", "End Line", "OP", "Tips"]
TABLES = {
    "unsupported_api.csv": PLACES,
    "unknown_api.csv": PLACES,
    "api_precision_advice.csv": PLACES,
    "api_performance_advice.csv": PLACES,
    "cuda_op_list.csv": ["File", "Api"],
    "change_list.csv": ["File", "Start Line", "End Line", "Operation Type", "Message"],
    "affinity_api_call.csv": [
        *("File", "Start Line", "End Line", "Api Type", "Api Call Name", "Affinity Api Name")
    ],
}
"""The files that readers of the vendor's tool know, with their columns."""


class TestTables:
    def tables(self, files: Mapping[str, str], here: Path) -> dict[str, list[list[str]]]:
        write_project(files, here / "src")
        invoke("migrate", "src", "-o", "dst")
        found = {}
        for name in TABLES:
            text = (here / "dst" / LOG / name).read_text(encoding="utf-8")
            found[name] = list(csv.reader(io.StringIO(text)))
        return found

    def test_columns(self, here: Path) -> None:
        found = self.tables({"a.py": CLEAN}, here)
        assert {name: rows[0] for name, rows in found.items()} == TABLES
        assert all(len(rows) == 1 for rows in found.values())

    def test_rows(self, here: Path) -> None:
        found = self.tables(
            {
                "a.py": "import torch\nimport triton\ny = torch.unique_consecutive(x)\n"
                "m = torch.nn.DataParallel(n)\n",
                "b.py": CODE,
                "norm.py": PROJECTS["language-model"]["model.py"],
                "amp.py": "from apex import amp\nmodel, opt = amp.initialize(model, opt)\n",
                **PROJECTS["kernels"],
            },
            here,
        )
        unsupported = found["unsupported_api.csv"]
        assert ["a.py", "4", "4", "torch.nn.DataParallel"] in [row[:4] for row in unsupported]
        assert ["lltm.py", "lltm_cuda"] in found["cuda_op_list.csv"]
        assert ["b.py", "2", "2", "MODIFY", "Use `torch.npu.synchronize`"] in found[
            "change_list.csv"
        ]
        assert ["b.py", "2", "2", "INSERT"] in [row[:4] for row in found["change_list.csv"]]
        assert ["norm.py", "14", "14", "rms-norm"] in [
            row[:4] for row in found["affinity_api_call.csv"]
        ]
        assert all(len(row) == len(TABLES[name]) for name, rows in found.items() for row in rows)

    @on_posix
    def test_nothing_is_a_formula(self, here: Path) -> None:
        found = self.tables({"=1+1.py": LEFT, "@x.py": LEFT, "-y.py": LEFT, "+z.py": LEFT}, here)
        cells = [cell for rows in found.values() for row in rows for cell in row]
        assert "'=1+1.py" in cells
        assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]


REFUSED: dict[str, tuple[list[str], str]] = {
    "no place": (["src"], "either -o DST or --in-place"),
    "two places": (["src", "-o", "dst", "--in-place"], "either -o DST or --in-place"),
    "dirty copy": (["src", "-o", "dst", "--allow-dirty"], "--allow-dirty needs --in-place"),
    "missing": (["none", "-o", "dst"], "none: there is no such folder"),
    "empty name": (["", "-o", "dst"], "'': there is no such folder"),
    "file": (["src/a.py", "-o", "dst"], "src/a.py: is no folder"),
    "itself": (["src", "-o", "src"], "src: is what is to be migrated; --in-place does that"),
    "inside": (["src", "-o", "src/new"], "src/new: lies in the folder"),
    "around": (["deep/src", "-o", "deep"], "deep: holds the folder"),
    "through a link": (["src", "-o", "link/new"], "link/new: lies in the folder"),
    "not empty": (["src", "-o", "full"], "full: is not empty; name a folder"),
    "a file there": (["src", "-o", "full/a.txt"], "full/a.txt: is a file"),
    "a link there": (["src", "-o", "toempty"], "toempty: is a link"),
    "no parent": (["src", "-o", "no/where"], "no/where: cannot be made: there is no folder no"),
    "unknown rule": (["src", "-o", "dst", "--select", "NPU998"], 'there is no rule "NPU998"'),
    "half distributed": (["src", "-o", "dst", "--distributed"], "--distributed and --entry"),
    "entry alone": (["src", "-o", "dst", "--entry", "a.py"], "--distributed and --entry"),
    "no entry": (
        ["src", "-o", "dst", "--distributed", "--entry", "../full/a.txt"],
        "--entry ../full/a.txt: there is no such file in src",
    ),
}


class TestBadInput:
    @pytest.mark.family(6)
    @on_posix
    @pytest.mark.parametrize("name", REFUSED)
    def test_refusals(self, here: Path, source: Path, name: str) -> None:
        arguments, message = REFUSED[name]
        for folder in ("full", "empty", "deep"):
            (here / folder).mkdir()
        (here / "full" / "a.txt").write_text("mine")
        (here / "toempty").symlink_to("empty")
        (here / "link").symlink_to("src")
        write_project({"src/a.py": CODE}, here / "deep")
        before = contents(here)
        result = command("migrate", *arguments)
        errors = result.stderr.decode()
        assert result.returncode == 2, errors
        assert message in errors
        assert errors.count("\n") == 1 or "Usage" in errors
        assert contents(here) == before
        assert leftovers(here) == []

    @on_posix
    def test_an_empty_folder_is_taken(self, here: Path, source: Path) -> None:
        (here / "dst").mkdir()
        assert invoke("migrate", "src", "-o", "dst")[0] == 0
        assert (here / "dst" / "a.py").read_text() == FIXED

    @on_linux
    def test_a_destination_that_cannot_be_written(self, here: Path, source: Path) -> None:
        result = command("migrate", "src", "-o", "/sys/npulens")
        assert result.returncode == 2
        assert result.stderr.startswith(b"npulens: /sys/npulens: cannot be written: ")
        assert result.stderr.count(b"\n") == 1

    @on_posix
    @pytest.mark.skipif(os.name != "nt" and os.geteuid() == 0, reason="root may read all")
    def test_a_source_that_cannot_be_read(self, here: Path, source: Path) -> None:
        (source / "a.py").chmod(0)
        code, _, errors = invoke("migrate", "src", "-o", "dst")
        assert (code, errors) == (2, "npulens: src/a.py: cannot be read: Permission denied\n")
        assert not (here / "dst").exists()

    @pytest.mark.parametrize("name", ["src", "."])
    def test_a_source_that_fails(
        self, here: Path, source: Path, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fails(root: Path, *_: Any) -> Any:
            raise OSError(5, "Input/output error", str(root / "a.py"))

        monkeypatch.setattr(migration_module, "copy_tree", fails)
        monkeypatch.chdir(source if name == "." else here)
        code, _, errors = invoke("migrate", name, "-o", str(here / "dst"))
        shown = "a.py" if name == "." else "src/a.py"
        assert (code, errors) == (2, f"npulens: {shown}: cannot be read: Input/output error\n")
        assert leftovers(here) == []

    @on_linux
    @pytest.mark.parametrize("where", ["copying", "fixing", "logging"])
    def test_a_full_disk(self, here: Path, source: Path, where: str) -> None:
        """Files above a limit cannot be written: no disk is full, but the call fails as if."""
        import resource

        limit = 100_000
        if where == "copying":
            (source / "data.bin").write_bytes(b"x" * 3 * limit)
        elif where == "fixing":
            (source / "a.py").write_text(CODE + "# " + "x" * (limit - len(CODE) - 5) + "\n")
        else:
            (source / "a.py").write_text("import torch\n" + "torch.cuda.synchronize()\n" * 900)
        before = contents(source)
        result = subprocess.run(
            [sys.executable, "-m", "npulens", "migrate", "src", "-o", "dst", "--jobs", "1"],
            capture_output=True,
            timeout=60,
            check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
        )
        assert result.returncode == 2
        assert result.stderr == b"npulens: dst: cannot be written: File too large\n"
        assert contents(source) == before
        assert not (here / "dst").exists()
        assert leftovers(here) == []

    @pytest.mark.parametrize("change", ["written", "new", "gone"])
    def test_a_source_that_changes(
        self, here: Path, source: Path, change: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def meanwhile(*arguments: Any) -> Any:
            if change == "written":
                (source / "clean.py").write_text(CLEAN + "\n")
            elif change == "new":
                (source / "later.py").write_text(CLEAN)
            else:
                (source / "clean.py").unlink(missing_ok=True)
            return facts(*arguments)

        facts: Callable[..., Any] = migration_module.project_facts
        monkeypatch.setattr(migration_module, "project_facts", meanwhile)
        code, _, errors = invoke("migrate", "src", "-o", "dst")
        name = "later.py" if change == "new" else "clean.py"
        assert (code, errors) == (
            2,
            f"npulens: nothing is migrated: src/{name} changed meanwhile; try again\n",
        )
        assert not (here / "dst").exists()

    def test_a_destination_that_appears(
        self, here: Path, source: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def meanwhile(*arguments: Any) -> Any:
            (here / "dst").mkdir(exist_ok=True)
            (here / "dst" / "mine").write_text("mine")
            return facts(*arguments)

        facts: Callable[..., Any] = migration_module.project_facts
        monkeypatch.setattr(migration_module, "project_facts", meanwhile)
        code, _, errors = invoke("migrate", "src", "-o", "dst")
        assert code == 2
        assert errors.startswith("npulens: dst: is not empty")
        assert contents(here / "dst") == {"mine": b"mine"}


MANY = 1000


@on_linux
@pytest.mark.endurance
class TestInterruption:
    def many(self, here: Path) -> Path:
        folder = here / "many"
        folder.mkdir()
        for number in range(MANY):
            (folder / f"m{number:04}.py").write_text(CODE)
        return folder

    def started(self, *arguments: str) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            [sys.executable, "-m", "npulens", "migrate", *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def wait_for(self, happens: Callable[[], bool], process: "subprocess.Popen[bytes]") -> None:
        until = time.monotonic() + 50
        while not happens():
            assert process.poll() is None, "ended too early to be interrupted"
            assert time.monotonic() < until
            time.sleep(0.002)

    @pytest.mark.parametrize("stage", ["copying", "fixing"])
    def test_a_kill_leaves_no_half_copy(self, here: Path, stage: str) -> None:
        source = self.many(here)
        before = contents(source)

        def happens() -> bool:
            copied = list(here.glob(".npulens-*/dst/m0[2-9]00.py"))
            if stage == "copying":
                return bool(copied)
            return any("npu" in path.read_text() for path in copied)

        process = self.started("many", "-o", "dst")
        self.wait_for(happens, process)
        process.kill()
        process.wait()
        assert not (here / "dst").exists()
        assert contents(source) == before
        # Nothing has to be cleaned up, and the workers that were forked are gone by themselves.
        code, _, errors = invoke("migrate", "many", "-o", "dst")
        assert (code, errors) == (0, "")
        assert set(contents(here / "dst").values()) == {FIXED.encode()}
        assert leftovers(here) == []
        assert not _running_in_session(process.pid)

    def test_a_kill_in_place_leaves_whole_files(self, here: Path) -> None:
        source = self.many(here)
        process = self.started("many", "--in-place")
        self.wait_for(lambda: "npu" in (source / "m0200.py").read_text(), process)
        process.kill()
        process.wait()
        texts = [path.read_text() for path in source.glob("m*.py")]
        assert len(texts) == MANY
        assert set(texts) == {CODE, FIXED}
        assert invoke("migrate", "many", "--in-place")[0] == 0
        assert {p.read_text() for p in source.glob("m*.py")} == {FIXED}

    @pytest.mark.parametrize("place", [["-o", "dst"], ["--in-place"]], ids=["copy", "in-place"])
    def test_two_runs_at_once(self, here: Path, place: list[str]) -> None:
        self.many(here)
        first = self.started("many", *place)
        lock = ".npulens-*.lock" if "-o" in place else "many/.npulens-migrating"
        self.wait_for(lambda: bool(list(here.glob(lock))), first)
        second = command("migrate", "many", *place)
        assert second.returncode == 2
        name = "dst" if "-o" in place else "many"
        assert second.stderr.decode() == (
            f"npulens: {name}: another run is migrating it; wait for that one\n"
        )
        assert first.wait(60) == 0
        assert leftovers(here) == []
        assert not (here / "many" / ".npulens-migrating").exists()

    def test_control_c(self, here: Path) -> None:
        self.many(here)
        process = self.started("many", "-o", "dst")
        self.wait_for(lambda: bool(list(here.glob(".npulens-*/dst/m0100.py"))), process)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()
        assert not (here / "dst").exists()
        assert leftovers(here) == []


def _running_in_session(session: int) -> list[str]:
    """The processes of a session that still run; one that ended may wait to be collected."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(path.parent.name)
    return found


class TestInPlace:
    def test_without_git(self, here: Path, source: Path) -> None:
        code, output, _ = invoke("migrate", "src", "--in-place")
        assert code == 0
        assert output.startswith("src: changed 1 of 2 files in 2 edits.\n")
        assert (source / "a.py").read_text() == FIXED
        assert log_of(source)["changed"] == ["a.py"]

    def test_a_clean_tree(self, here: Path, source: Path) -> None:
        git("init", "-q", "src")
        git("-C", "src", "add", "a.py", "clean.py")
        git("-C", "src", "commit", "-qm", "x")
        (source / "b.py").write_text(CODE)  # git could not take this back
        code, _, errors = invoke("migrate", "src", "--in-place")
        assert code == 2
        assert errors.startswith("npulens: b.py: not fixed: is not in git")
        assert (source / "a.py").read_text() == FIXED
        assert (source / "b.py").read_text() == CODE
        code, _, errors = invoke("migrate", "src", "--in-place")
        assert code == 2
        assert "src has changes that are in no commit; commit them, or give --allow" in errors
        assert invoke("migrate", "src", "--in-place", "--allow-dirty")[0] == 0
        assert (source / "b.py").read_text() == FIXED
        # Each run has a log of its own.
        assert log_of(source)["changed"] == ["a.py"]
        second = json.loads((source / LOG / "2" / "change_log.json").read_bytes())
        assert second["changed"] == ["b.py"]

    def test_a_second_run_changes_nothing(self, here: Path, source: Path) -> None:
        invoke("migrate", "src", "--in-place")
        before = contents(source)
        code, output, _ = invoke("migrate", "src", "--in-place")
        assert code == 0
        assert "changed 0 of 2 files in 0 edits" in output
        assert contents(source) == before

    @on_posix
    def test_no_link_is_followed_out(self, here: Path, source: Path) -> None:
        (here / "other.py").write_text(CODE)
        (source / "out.py").symlink_to("../other.py")
        (source / "in.py").symlink_to("a.py")
        invoke("migrate", "src", "--in-place")
        assert (here / "other.py").read_text() == CODE
        assert (source / "a.py").read_text() == FIXED
        assert (source / "in.py").is_symlink()

    def test_a_file_that_changes(
        self, here: Path, source: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def meanwhile(*arguments: Any) -> Any:
            for fixed in processes(*arguments):
                (source / "a.py").write_text(CODE + "# mine\n")
                yield fixed

        processes: Callable[..., Any] = migration_module.in_processes
        monkeypatch.setattr(migration_module, "in_processes", meanwhile)
        code, _, errors = invoke("migrate", "src", "--in-place")
        assert code == 2
        assert errors == "npulens: a.py: not fixed: was changed by somebody else meanwhile\n"
        assert (source / "a.py").read_text() == CODE + "# mine\n"

    def test_control_c_leaves_a_log(
        self, here: Path, source: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def meanwhile(*arguments: Any) -> Any:
            yield next(processes(*arguments))
            raise KeyboardInterrupt

        processes: Callable[..., Any] = migration_module.in_processes
        monkeypatch.setattr(migration_module, "in_processes", meanwhile)
        invoke("migrate", "src", "--in-place")
        assert log_of(source)["changed"] == ["a.py"]
        assert (source / "a.py").read_text() == FIXED
        assert not (source / ".npulens-migrating").exists()

    def test_a_script_that_git_does_not_know(self, here: Path, source: Path) -> None:
        git("init", "-q", "src")
        git("-C", "src", "add", "clean.py")
        git("-C", "src", "commit", "-qm", "x")
        style = ["--migration-style", "runtime-shim"]
        code, _, errors = invoke("migrate", "src", "--in-place", *style)
        assert code == 2
        assert errors.startswith("npulens: a.py: not fixed: is not in git")

    def test_the_shim_in_place(self, here: Path, source: Path) -> None:
        invoke("migrate", "src", "--in-place", "--migration-style", "runtime-shim")
        assert (source / "a.py").read_text() == (
            "import torch\nfrom torch_npu.contrib import transfer_to_npu  # noqa: F401\n"
            "torch.cuda.synchronize()\n"
        )


def test_progress_is_for_terminals_only(here: Path, source: Path) -> None:
    result = command("migrate", "src", "-o", "dst", environment={"TERM": "xterm"})
    assert b"[" not in result.stderr
    assert b"\x1b" not in result.stdout + result.stderr


def test_the_log_of_an_earlier_run_is_neither_read_nor_copied(here: Path, source: Path) -> None:
    write_project(PROJECTS["processes"], source)
    invoke("migrate", "src", "-o", "dst")
    assert "nccl" in (here / "dst" / LOG / "change_log.json").read_text()
    found = json.loads(invoke("check", "--no-cache", "--output-format", "json", "dst")[1])
    assert not [each for each in found if LOG in each["path"]]
    invoke("migrate", "dst", "-o", "dst2")
    assert log_of(here / "dst2")["changes"] == []


TRAINING = "import torch\nloss = torch.ones(1).cuda()\nprint(loss)\nloss.backward()\n"


@pytest.mark.parametrize(
    ("files", "script"),
    [
        ({"jobs/train.py": TRAINING, "tests/test_it.py": TRAINING}, "jobs/train.py"),
        ({"a.py": TRAINING, "b.py": TRAINING}, "SCRIPT"),
        ({"a.py": "import torch\ntorch.cuda.synchronize()\n"}, "SCRIPT"),
    ],
)
@pytest.mark.parametrize(
    ("place", "change"), [(("-o", "dst"), "cd dst && "), (("--in-place",), "cd src && ")]
)
def test_the_next_step_is_named(
    here: Path, files: dict[str, str], script: str, place: tuple[str, ...], change: str
) -> None:
    for name, text in files.items():
        (here / "src" / name).parent.mkdir(parents=True, exist_ok=True)
        (here / "src" / name).write_text(text)
    last = invoke("migrate", "src", *place)[1].splitlines()[-1]
    assert last == (f"Next, see it run on an emulated NPU: {change}npulens verify --as-is {script}")
