"""What `check` leaves out, accepts and counts; watching; the small commands beside it."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import tomli

from commands import CLEAN, CODE, codes, command, invoke, records
from npulens.catalog.loader import load_catalogue
from npulens.cli.main import cli

pytestmark = pytest.mark.usefixtures("here")

MIXED = """\
import torch
torch.cuda.synchronize()
torch.cuda.nvtx.range_push("x")
torch.cuda.synchronize()
"""
on_posix = pytest.mark.skipif(os.name == "nt", reason="means something on POSIX only")


class TestStatistics:
    def test_text(self, here: Path) -> None:
        (here / "a.py").write_text(MIXED)
        (here / "b.py").write_text(CODE)
        assert invoke("check", "--statistics") == (
            1,
            "3  NPU101 cuda-api (3 fixable)\n"
            "1  NPU502 cuda-profiler (1 with unsafe fixes)\n"
            "Found 4 problems in 2 files (3 fixable, 1 with unsafe fixes).\n",
            "",
        )
        assert "3 个可自动修复" in invoke("check", "--statistics", "--language", "zh")[1]

    def test_json(self, here: Path) -> None:
        (here / "a.py").write_text(MIXED)
        _, output, _ = invoke("check", "--statistics", "--output-format", "json")
        assert [(row["code"], row["count"]) for row in json.loads(output)] == [
            ("NPU101", 2),
            ("NPU502", 1),
        ]

    def test_nothing(self, here: Path) -> None:
        (here / "a.py").write_text(CLEAN)
        assert invoke("check", "--statistics") == (0, "Found no problems in 1 file.\n", "")
        assert invoke("check", "--statistics", "--output-format", "json")[:2] == (0, "[]\n")

    def test_other_forms(self, here: Path) -> None:
        assert command("check", "--statistics", "--output-format", "sarif").returncode == 2


class TestLeavingOut:
    def test_exit_zero(self, here: Path) -> None:
        (here / "a.py").write_text(CODE)
        assert invoke("check", "--exit-zero")[0] == 0
        assert "NPU101" in invoke("check", "--exit-zero")[1]
        assert command("check", "--exit-zero", "missing.py").returncode == 2

    def test_min_severity(self, here: Path) -> None:
        (here / "a.py").write_text(MIXED)
        (here / "npulens.toml").write_text('[severities]\nNPU101 = "hint"\nNPU502 = "warning"\n')
        expected = {"error": [], "warning": ["NPU502"], "info": ["NPU502"]}
        expected["hint"] = ["NPU101", "NPU502", "NPU101"]
        for lowest, wanted in expected.items():
            assert codes("--min-severity", lowest) == wanted
            assert invoke("check", "--min-severity", lowest)[0] == bool(wanted)

    def test_severities(self, here: Path) -> None:
        (here / "a.py").write_text(MIXED)
        (here / "npulens.toml").write_text('[severities]\nNPU = "info"\ncuda-api = "error"\n')
        severities = {record["code"]: record["severity"] for record in records()}
        assert severities == {"NPU101": "error", "NPU502": "info"}

    def test_per_file_ignores(self, here: Path) -> None:
        (here / "tests").mkdir()
        for name in ("a.py", "b.py", "tests/a.py"):
            (here / name).write_text(MIXED)
        (here / "npulens.toml").write_text(
            '[per-file-ignores]\n"tests/" = ["NPU1"]\n"/b.py" = ["cuda-api", "NPU502"]\n'
        )
        found = {record["path"] + " " + record["code"] for record in records()}
        assert found == {"a.py NPU101", "a.py NPU502", "tests/a.py NPU502"}
        assert codes("tests/a.py") == ["NPU502"]
        assert codes("--stdin-filename", "b.py", stdin=MIXED.encode()) == []
        assert codes("-", stdin=MIXED.encode()) == ["NPU101", "NPU502", "NPU101"]

    @pytest.mark.parametrize(
        ("text", "sentence"),
        [
            ("per-file-ignores = 1", '"per-file-ignores" must be a table of patterns'),
            ('[per-file-ignores]\n"a" = "x"', '"per-file-ignores" must be a list of texts'),
            ('[per-file-ignores]\n"a" = ["NPU998"]', '"per-file-ignores": there is no rule'),
            ('severities = "x"', '"severities" must be a table of rules'),
            ('[severities]\nNPU1 = "bad"', '"severities" must be "error" or "warning"'),
            ('[severities]\ncuda-apj = "info"', 'there is no rule "cuda-apj"; did you mean'),
        ],
    )
    def test_wrong_settings(self, here: Path, text: str, sentence: str) -> None:
        (here / "a.py").write_text(CODE)
        (here / "npulens.toml").write_text(text)
        result = command("check")
        assert (result.returncode, result.stdout) == (2, b"")
        assert sentence in result.stderr.decode()


class TestBaseline:
    def accept(self) -> None:
        assert invoke("check", "--write-baseline", "base.json")[0] == 0

    def new(self, *arguments: str) -> list[tuple[str, int]]:
        found = records("--baseline", "base.json", *arguments)
        return [(record["code"], record["line"]) for record in found]

    def test_what_is_there_is_accepted(self, here: Path) -> None:
        (here / "a.py").write_text(MIXED)
        self.accept()
        assert self.new() == []
        assert invoke("check", "--baseline", "base.json")[0] == 0
        (here / "a.py").write_text(MIXED + "torch.cuda.empty_cache()\n")
        assert self.new() == [("NPU101", 5)]
        assert invoke("check", "--baseline", "base.json")[0] == 1

    @pytest.mark.parametrize(
        ("text", "new"),
        [
            ("# a\n\n\n" + MIXED, []),
            (MIXED.replace("torch.cuda.s", "if x:\n    torch.cuda.s"), []),
            (MIXED.replace("\n", "\r\n"), []),
            ("\n".join(reversed(MIXED.splitlines()[1:])).join(["import torch\n", "\n"]), []),
            (MIXED + "torch.cuda.synchronize()\n", [("NPU101", 5)]),
            (MIXED.replace('"x"', '"y"'), [("NPU502", 3)]),
            (CODE, []),
        ],
        ids=["moved", "indented", "crlf", "reordered", "once-more", "changed", "fewer"],
    )
    def test_lines_move(self, here: Path, text: str, new: list[tuple[str, int]]) -> None:
        (here / "a.py").write_text(MIXED)
        self.accept()
        (here / "a.py").write_text(text, newline="")
        assert self.new() == new

    def test_other_files(self, here: Path) -> None:
        (here / "a.py").write_text(CODE)
        self.accept()
        (here / "b.py").write_text(CODE)
        assert self.new() == [("NPU101", 2)]
        assert self.new("./a.py") == self.new(str(here / "a.py")) == []

    def test_from_another_folder(self, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (here / "sub").mkdir()
        (here / "sub/a.py").write_text(CODE)
        self.accept()
        monkeypatch.chdir(here / "sub")
        assert records("--baseline", "../base.json") == []

    def test_written_the_same_way_each_time(self, here: Path) -> None:
        for name in ("b.py", "a.py"):
            (here / name).write_text(MIXED)
        self.accept()
        first = (here / "base.json").read_bytes()
        self.accept()
        assert (here / "base.json").read_bytes() == first

    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            (None, "cannot be read: No such file or directory"),
            ("{", "is no baseline: not valid JSON"),
            ("[]", "is no baseline that this version"),
            ('{"version": 99}', "is no baseline that this version"),
            ('{"version": 1, "accepted": {"a.py": {"NPU101 x": "1"}}}', "is no baseline: "),
        ],
    )
    def test_wrong_files(self, here: Path, content: str | None, reason: str) -> None:
        (here / "a.py").write_text(CODE)
        if content is not None:
            (here / "base.json").write_text(content)
        result = command("check", "--baseline", "base.json")
        assert (result.returncode, result.stdout) == (2, b"")
        assert result.stderr.decode().startswith(f"npulens: base.json: {reason}")

    def test_that_cannot_be_written(self, here: Path) -> None:
        (here / "a.py").write_text(CODE)
        result = command("check", "--write-baseline", "missing/base.json")
        assert result.returncode == 2
        assert b"missing/base.json: cannot be written: No such file" in result.stderr


class TestSuppressions:
    def suppressed(self, here: Path, text: str, name: str = "a.py") -> str:
        (here / name).write_text(text, newline="")
        invoke("check", "--add-suppressions", name)
        return (here / name).read_bytes().decode()

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            (CODE, "import torch\ntorch.cuda.synchronize()  # npulens: ignore[NPU101]\n"),
            (
                CODE.replace("\n", "\r\n"),
                "import torch\r\ntorch.cuda.synchronize()  # npulens: ignore[NPU101]\r\n",
            ),
            (CODE.rstrip(), "import torch\ntorch.cuda.synchronize()  # npulens: ignore[NPU101]"),
            (
                "import torch\ntorch.cuda.synchronize()  # why\n",
                "import torch\ntorch.cuda.synchronize()  # why  # npulens: ignore[NPU101]\n",
            ),
            (
                "import torch\ntorch.cuda.synchronize(), x.cuda()  # npulens: ignore[NPU105]\n",
                "import torch\ntorch.cuda.synchronize(), x.cuda()"
                "  # npulens: ignore[NPU105, NPU101]\n",
            ),
            (
                "import torch\nx = (torch.cuda.synchronize(),\n  1)\n",
                "import torch\nx = (torch.cuda.synchronize(),  # npulens: ignore[NPU101]\n  1)\n",
            ),
        ],
        ids=["plain", "crlf", "no-end", "comment", "merged", "brackets"],
    )
    def test_python(self, here: Path, text: str, expected: str) -> None:
        assert self.suppressed(here, text) == expected
        assert codes("a.py") == []
        assert self.suppressed(here, expected) == expected

    @pytest.mark.parametrize(
        "text",
        [
            "import torch\ntorch.cuda.synchronize() \\\n    if x else 1\n",
            'import torch\nx = torch.cuda.synchronize(), """\ncuda""", torch.cuda.synchronize()\n',
            "import torch\nx = (\n",
        ],
        ids=["backslash", "string", "broken"],
    )
    def test_programs_stay_what_they_are(self, here: Path, text: str) -> None:
        import ast

        after = self.suppressed(here, text)
        try:
            assert ast.dump(ast.parse(after)) == ast.dump(ast.parse(text))
        except SyntaxError:
            assert after == text

    def test_other_kinds(self, here: Path) -> None:
        script = "#!/bin/sh\nexport CUDA_VISIBLE_DEVICES=0\n"
        assert self.suppressed(here, script, "run.sh").endswith("=0  # npulens: ignore[NPU901]\n")
        assert codes("run.sh") == []
        settings = '{"device": "cuda"}\n'
        assert self.suppressed(here, settings, "a.json") == settings

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("a.json", '{"device": "cuda"}\n'),
            (".env", "CUDA_VISIBLE_DEVICES=0\n"),
            ("Dockerfile", "FROM x\nRUN nvidia-smi\n"),
        ],
    )
    def test_kinds_without_comments_are_named(self, here: Path, name: str, text: str) -> None:
        (here / name).write_text(text)
        result = command("check", "--add-suppressions", name)
        reason = "it takes no comments; use per-file-ignores or a baseline"
        assert result.stderr.decode() == f"npulens: {name}: not suppressed: {reason}\n"
        assert result.returncode == 2
        (here / name).write_text("\n")
        assert command("check", "--add-suppressions", name).returncode == 0

    def test_what_is_told(self, here: Path) -> None:
        (here / "a.py").write_text(MIXED)
        code, output, _ = invoke("check", "--add-suppressions")
        assert code == 0
        assert "Suppressed 3 problems in 1 file.\n3 places are settled (3 suppressed by" in output
        (here / "a.py").write_text(CODE)
        assert "添加忽略注释" in invoke("check", "--add-suppressions", "--language", "zh")[1]


class TestConfig:
    SETTINGS = """\
torch-version = "2.8"
migration-style = "device-agnostic"
autoload = true
select = ["NPU1", "NPU2"]
extend-select = []
ignore = ["NPU104"]
exclude = ["a \\"b\\"/"]
extend-rules = []
respect-gitignore = false
language = "zh"

[per-file-ignores]
"tests/*.py" = ["NPU1"]

[severities]
"NPU101" = "info"

[reasons]
"fallback" = "warning"
"""

    def test_what_is_written_is_shown(self, here: Path) -> None:
        (here / "npulens.toml").write_text(self.SETTINGS)
        code, output, _ = invoke("config", "--show")
        assert code == 0
        assert output == f"# from {here}/npulens.toml\n{self.SETTINGS}"

    def test_defaults(self, here: Path) -> None:
        _, output, _ = invoke("config", "--show")
        shown = tomli.loads(output)
        assert (shown["torch-version"], shown["migration-style"]) == ("2.13", "npu")
        (here / "requirements.txt").write_text("torch==2.7.1\n")
        _, output, _ = invoke("config", "--show")
        assert 'torch-version = "2.7"  # by the requirements of the project\n' in output

    def test_of_a_path(self, here: Path) -> None:
        (here / "sub").mkdir()
        (here / "sub/npulens.toml").write_text('language = "zh"\n')
        assert 'language = "zh"' in invoke("config", "--show", "sub")[1]
        assert 'language = "zh"' in invoke("config", "--show", "--config", "sub/npulens.toml")[1]
        assert 'language = "zh"' not in invoke("config", "--show")[1]

    def test_wrong(self, here: Path) -> None:
        (here / "npulens.toml").write_text("x = 1\n")
        result = command("config", "--show")
        assert (result.returncode, result.stdout) == (2, b"")
        assert command("config").returncode == 2


DYNAMIC = {code for code in load_catalogue().rules if code.startswith("NPU80")}


class TestCompletion:
    @pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
    def test_script(self, shell: str) -> None:
        code, output, _ = invoke("completion", shell)
        assert code == 0
        assert "_NPULENS_COMPLETE" in output
        assert command("completion", "tcsh").returncode == 2

    @pytest.mark.parametrize(
        ("words", "expected"),
        [
            (["npulens", ""], set(cli.commands)),
            (["npulens", "check", "--output-format", "s"], {"sarif"}),
            (["npulens", "fix", "--d"], {"--diff"}),
            (["npulens", "check", "--select", "npu80"], DYNAMIC),
            (
                ["npulens", "check", "--ignore", "cuda-api,NPU80"],
                {f"cuda-api,{c}" for c in DYNAMIC},
            ),
            (["npulens", "rule", "host-"], {"host-read"}),
        ],
    )
    def test_words(self, words: list[str], expected: set[str]) -> None:
        result = command(
            environment={
                "_NPULENS_COMPLETE": "bash_complete",
                "COMP_WORDS": " ".join(words),
                "COMP_CWORD": str(len(words) - 1),
            }
        )
        found = {line.partition(",")[2] for line in result.stdout.decode().splitlines()}
        assert found == expected


@on_posix
class TestTerminal:
    def errors_on_a_terminal(self, here: Path, **environment: str) -> bytes:
        import pty

        for index in range(300):
            (here / f"{index:03}.py").write_text(CODE * 20)
        main_end, terminal = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-m", "npulens", "check", "--no-cache", "--jobs", "1"],
            stdout=subprocess.DEVNULL,
            stderr=terminal,
            env={**os.environ, "TERM": "xterm", **environment},
        )
        os.close(terminal)
        output = b""
        try:
            while chunk := os.read(main_end, 4096):
                output += chunk
        except OSError:  # how Linux says that the other end is closed
            pass
        os.close(main_end)
        assert process.wait(30) == 1
        return output

    def test_progress(self, here: Path) -> None:
        shown = self.errors_on_a_terminal(here)
        assert b"/300" in shown
        assert shown.endswith(b"\r\x1b[K"), "nothing is left of it"

    def test_no_progress_elsewhere(self, here: Path) -> None:
        assert self.errors_on_a_terminal(here, TERM="dumb") == b""
        assert command("check", "--no-cache", "--jobs", "1").stderr == b""


@on_posix
def test_watch(here: Path) -> None:
    (here / "a.py").write_text(CODE)
    process: Any = subprocess.Popen(
        [sys.executable, "-u", "-m", "npulens", "check", "--watch", "--output-format", "concise"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    guard = threading.Timer(60, process.kill)  # lines that do not come end the test
    guard.start()
    try:
        assert process.stdout.readline().startswith("a.py:2:1: NPU101 ")
        (here / "a.py").write_text("#\n" + CODE)
        assert process.stdout.readline().startswith("a.py:3:1: NPU101 ")
        (here / "npulens.toml").write_text("select = 1\n")
        assert '"select" must be a list' in process.stderr.readline()
        (here / "npulens.toml").write_text('exclude = ["c.py"]\n')
        assert process.stdout.readline().startswith("a.py:3:1: NPU101 ")
        (here / "b.py").write_text(CODE)
        lines = [process.stdout.readline() for _ in range(2)]
        assert [line.split(":")[0] for line in lines] == ["a.py", "b.py"]
    finally:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
        guard.cancel()
    assert process.returncode == 130
    assert errors.strip() == ""


@pytest.mark.parametrize("name", ["check", "fix"])
def test_what_hooks_name_may_be_excluded(here: Path, name: str) -> None:
    (here / "old").mkdir()
    for file in ("a.py", "old/b.py"):
        (here / file).write_text(CODE)
    (here / "npulens.toml").write_text('exclude = ["old/"]\n')
    invoke(name, "--force-exclude", "a.py", "old/b.py")
    assert (here / "old/b.py").read_text() == CODE
    assert "old/b.py" not in invoke("check", "--force-exclude", "a.py", "old/b.py")[1]
    assert "old/b.py" in invoke("check", "a.py", "old/b.py")[1]
    assert invoke("check", "--force-exclude", "old/b.py")[0] == 0


@pytest.mark.parametrize("name", cli.commands)
def test_the_examples_of_the_help_are_understood(name: str) -> None:
    _, text, _ = invoke(name, "--help")
    examples = re.findall(rf"^ +npulens {name}(.*)$", text, re.MULTILINE)
    assert len(examples) >= 2
    for example in examples:
        arguments = shlex.split(example.partition(" > ")[0])
        cli.commands[name].make_context(name, arguments).close()
