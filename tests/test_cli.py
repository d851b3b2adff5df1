import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import npulens
from commands import CLEAN, CODE, codes, command, invoke, records
from npulens.catalog.loader import load_catalogue
from npulens.catalog.model import Applicability, Target
from npulens.catalog.tables import Catalogue
from npulens.report.human import underlined
from npulens.report.report_wording import Totals, environment_language
from npulens.text.document import Document
from npulens.text.spans import Span
from npulens.verdicts.ledger import Judgement
from npulens.workspace.runs import run as run_module
from npulens.workspace.runs.file_report import FileReport
from npulens.workspace.runs.processes import in_processes
from npulens.workspace.runs.run import Checker
from npulens.workspace.settings.configuration import Configuration

on_posix = pytest.mark.skipif(os.name == "nt", reason="means something on POSIX only")


pytestmark = pytest.mark.usefixtures("here")


class TestExitCodes:
    @pytest.mark.parametrize(
        ("code", "expected"), [(CODE, 1), (CLEAN, 0), ("", 0), ("import torch\nx = (", 1)]
    )
    def test_of_check(self, here: Path, code: str, expected: int) -> None:
        (here / "a.py").write_text(code)
        assert command("check", "a.py").returncode == expected
        assert command("check").returncode == expected
        assert command("check", "-", stdin=code.encode()).returncode == expected

    def test_trouble_outweighs_findings(self, here: Path) -> None:
        (here / "a.py").write_text(CODE)
        result = command("check", "missing.py", "a.py")
        assert result.returncode == 2
        assert b"NPU101" in result.stdout

    def test_version(self) -> None:
        result = command("--version")
        assert result.returncode == 0
        assert result.stdout.decode().split() == ["npulens,", "version", npulens.__version__]

    @pytest.mark.parametrize(
        "arguments",
        [
            [],
            ["chek"],
            ["check", "--nonsense"],
            ["check", "--output-format", "xml"],
            ["check", "--jobs", "0"],
            ["check", "--torch-version", "new"],
            ["check", "--torch-version", "2.5"],
            ["check", "--torch-version", "2.14"],
            ["check", "--torch-version", "3.7"],
            ["check", "--migration-style", "cuda"],
            ["check", "-", "a.py"],
            ["check", "--stdin-filename", "a.py", "b.py"],
            ["rule"],
        ],
    )
    def test_of_wrong_usage(self, here: Path, arguments: list[str]) -> None:
        (here / "a.py").write_text(CLEAN)
        result = command(*arguments)
        assert result.returncode == 2
        assert result.stdout == b""
        assert b"Traceback" not in result.stderr


class TestBadInput:
    """One sentence on stderr, exit code 2."""

    def refused(self, *arguments: str, stdin: bytes = b"") -> str:
        result = command("check", *arguments, stdin=stdin)
        assert (result.returncode, result.stdout) == (2, b"")
        lines = result.stderr.decode().splitlines()
        assert len(lines) == 1
        return lines[0].removeprefix("npulens: ")

    def test_missing_path(self) -> None:
        assert self.refused("missing.py") == "missing.py: No such file or directory"
        assert self.refused("") == "'': No such file or directory"
        assert self.refused("x" * 300 + "/a.py").endswith("/a.py: File name too long")

    def test_folder_without_python_files(self, here: Path) -> None:
        (here / "a.txt").write_text("")
        assert self.refused() == ".: no Python file in this folder"

    @on_posix
    def test_pipe_without_writer(self, here: Path) -> None:
        os.mkfifo(here / "a.py")
        assert self.refused("a.py") == 'a.py: neither a file nor a folder; "-" reads standard input'

    @pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs Linux")
    def test_file_whose_reading_fails_even_for_root(self) -> None:
        result = command("check", "/proc/self/mem")
        assert (result.returncode, result.stdout) == (
            2,
            b"1 file not read (--show-skipped lists them).\n",
        )
        assert result.stderr == b"npulens: /proc/self/mem: cannot be read: Input/output error\n"

    @on_posix
    def test_file_without_permission(self, here: Path) -> None:
        (here / "a.py").write_text(CODE)
        (here / "a.py").chmod(0)
        if os.access("a.py", os.R_OK):
            pytest.skip("this user may read everything")
        assert self.refused("a.py") == "a.py: cannot be read: Permission denied"

    @on_posix
    def test_link_loop(self, here: Path) -> None:
        (here / "a.py").symlink_to("a.py")
        assert self.refused("a.py").startswith("a.py: Too many levels of symbolic links")

    def test_broken_configuration(self, here: Path) -> None:
        (here / "a.py").write_text(CODE)
        (here / "npulens.toml").write_text("select = [\n")
        assert self.refused("a.py").startswith(f"{here}/npulens.toml: not valid TOML: ")
        (here / "npulens.toml").write_text('select = ["NPU1", "NPU998"]\n')
        assert self.refused("a.py").startswith(
            f'{here}/npulens.toml: "select": there is no rule "NPU998"'
        )
        (here / "npulens.toml").write_text('extend-rules = ["ours.json"]\n')
        assert self.refused("a.py").startswith(f"{here}/ours.json: cannot be read: ")

    def test_wrong_options(self, here: Path) -> None:
        (here / "a.py").write_text(CODE)
        assert self.refused("a.py", "--select", "cuda-ap") == (
            '--select: there is no rule "cuda-ap"; did you mean "cuda-api"?'
        )
        assert self.refused("a.py", "--ignore", "X").startswith("--ignore: there is no rule")
        assert self.refused("a.py", "--config", "x.toml") == "x.toml: no such file"

    @on_posix
    def test_standard_input_closed(self) -> None:
        result = subprocess.run(
            f'"{sys.executable}" -m npulens check - <&-', shell=True, capture_output=True
        )
        assert result.returncode == 2
        assert result.stderr == b"npulens: standard input is closed\n"

    def test_json_stays_json(self, here: Path) -> None:
        result = command("check", "--output-format", "json", "missing.py")
        assert json.loads(result.stdout) == []
        assert result.returncode == 2


@pytest.mark.parametrize(
    ("data", "detail"),
    [
        (b"import torch\nx = '\0'\n", "Byte 18 is a NUL character."),
        (b"import torch\nx = '\xff'\n", "Byte 18 is not text in its encoding."),
        (b"# coding: klingon\nimport torch\n", "It declares an encoding"),
        ("import torch\n".encode("utf-16"), "It is UTF-16 or UTF-32"),
    ],
)
def test_what_is_no_text_is_a_finding(here: Path, data: bytes, detail: str) -> None:
    (here / "a.py").write_bytes(data)
    (here / "b.py").write_text(CODE)
    unreadable, other = records()
    assert (unreadable["code"], unreadable["line"], unreadable["column"]) == ("NPU003", 1, 1)
    assert f"This file cannot be read. {detail}" in unreadable["message"]
    [said, _] = command(
        "check", "--output-format", "concise", "--language", "zh"
    ).stdout.splitlines()
    reason = said.decode().partition("无法读取该文件。")[2]
    assert reason.endswith("。")
    assert detail[:6] not in reason
    assert other["path"] == "b.py"
    assert codes("--select", "NPU101") == ["NPU003", "NPU101"]
    assert codes("-", stdin=data) == ["NPU003"]
    assert b"NPU003" in command("check").stdout


def test_a_huge_file_is_a_finding(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "MAX_FILE_SIZE", 100)
    (here / "a.py").write_text("#" * 101)
    assert codes() == codes("-", stdin=b"#" * 101) == ["NPU003"]
    (here / "a.py").write_text("#" * 100)
    assert codes() == []


@pytest.mark.parametrize(
    "code",
    ["x = 1\n", "this is no Python", "x = '\\xff'", "# résumé\n", "import numpy as np\n", "\n" * 9],
)
def test_files_of_no_interest_are_not_even_parsed(
    here: Path, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(run_module, "judge", fail)
    (here / "a.py").write_text(code, encoding="latin-1")
    assert invoke("check")[0] == 0


def test_words_of_the_users_rules_are_of_interest(here: Path) -> None:
    text = {"en": "Not `{symbol}`.", "zh": "不用 `{symbol}`。"}
    rules = {
        "family": "ours",
        "rules": [
            {
                "code": "OUR001",
                "name": "no-gpukit",
                "severity": "info",
                "message": text,
                "explanation": text,
            }
        ],
        "symbols": [{"symbol": "gpukit.sync", "rule": "no-gpukit", "source": "us"}],
    }
    (here / "ours.json").write_text(json.dumps(rules))
    (here / "npulens.toml").write_text('extend-rules = ["ours.json"]\n')
    (here / "a.py").write_text("import gpukit\ngpukit.sync()\n")
    (record,) = records()
    assert (record["code"], record["family"], record["severity"]) == ("OUR001", "ours", "info")
    assert record["message"] == "Not `gpukit.sync`."
    assert "不用" in invoke("rule", "OUR001", "--language", "zh")[1]


class TestJson:
    FIELDS = {"path", "line", "column", "end_line", "end_column", "code", "name", "family"} | {
        "severity",
        "message",
        "fix",
        "related",
    }

    def test_fields(self, here: Path) -> None:
        (here / "a.py").write_text('import torch\n名 = "😀"; torch.cuda.synchronize()\n')
        (record,) = records()
        assert set(record) == self.FIELDS
        place = {key: record[key] for key in ("line", "column", "end_line", "end_column")}
        assert place == {"line": 2, "column": 10, "end_line": 2, "end_column": 32}
        assert record["path"] == "a.py"
        assert (record["code"], record["name"]) == ("NPU101", "cuda-api")
        assert (record["family"], record["severity"]) == ("device", "error")
        assert set(record["fix"]) == {"title", "applicability", "edits"}
        assert record["fix"]["applicability"] == "safe"
        assert {**place, "new_text": "torch.npu.synchronize"} in record["fix"]["edits"]

    def test_no_fix_is_null(self, here: Path) -> None:
        (here / "a.py").write_text("import torch\nx = (\n")
        (record,) = records()
        assert record["fix"] is None

    def test_lines(self, here: Path) -> None:
        (here / "a.py").write_text(CODE + "torch.cuda.empty_cache()\n")
        (here / "b.py").write_text(CODE)
        _, output, _ = invoke("check", "--output-format", "jsonl")
        assert output.endswith("}\n")
        assert [json.loads(line) for line in output.splitlines()] == records()
        assert len(records()) == 3

    def test_nothing_found(self, here: Path) -> None:
        (here / "a.py").write_text(CLEAN)
        assert invoke("check", "--output-format", "json") == (0, "[]\n", "")
        assert invoke("check", "--output-format", "jsonl") == (0, "", "")

    @pytest.mark.skipif(sys.platform != "linux", reason="needs paths that are any bytes")
    def test_path_that_is_no_text(self, here: Path) -> None:
        path = os.fsdecode(b"\xff.py")
        (here / path).write_text(CODE)
        (record,) = json.loads(command("check", "--output-format", "json").stdout)
        assert record["path"] == path


HUMAN = """\
a.py:3:2: error NPU101 cuda-api: `torch.cuda.synchronize` needs CUDA; on the NPU use \
`torch.npu.synchronize`.
 3 |     torch.cuda.synchronize()
   |     ^^^^^^^^^^^^^^^^^^^^^^
   = help: Use `torch.npu.synchronize` (safe fix)

Found 1 problem in 1 file (1 fixable).
"""


class TestHuman:
    def test_text(self, here: Path) -> None:
        (here / "a.py").write_text("import torch\nif torch:\n\ttorch.cuda.synchronize()\n")
        assert invoke("check") == (1, HUMAN, "")
        (here / "a.py").write_text(CLEAN)
        assert invoke("check") == (0, "Found no problems in 1 file.\n", "")

    @pytest.mark.parametrize(
        ("text", "fault", "shown"),
        [
            ("x = cuda()", "cuda", ["x = cuda()", "    ^^^^"]),
            ("\tcuda", "cuda", ["    cuda", "    ^^^^"]),
            ("a\tcuda", "cuda", ["a   cuda", "    ^^^^"]),
            ("变量 = cuda", "cuda", ["变量 = cuda", "       ^^^^"]),
            ("变量 = cuda", "变量", ["变量 = cuda", "^^^^"]),
            ("'😀' + cuda", "cuda", ["'😀' + cuda", "       ^^^^"]),
            ("e\u0301 = cuda", "cuda", ["e\u0301 = cuda", "    ^^^^"]),
            ("ｃｕ.cuda", "cuda", ["ｃｕ.cuda", "     ^^^^"]),
            ("a\ncuda(\n)", "cuda(\n)", ["cuda(", "^^^^^"]),
            ("a\r\ncuda(\r\n)", "cuda(\r\n)", ["cuda(", "^^^^^"]),
            ("a\n", "", ["a", "^"]),
            ("'\x1b[31m' + cuda", "cuda", ["'␛[31m' + cuda", "          ^^^^"]),
            ("'\u202e' + cuda", "cuda", ["'�' + cuda", "      ^^^^"]),
            ("\x0ccuda", "cuda", ["␌cuda", " ^^^^"]),
        ],
    )
    def test_carets(self, text: str, fault: str, shown: list[str]) -> None:
        start = text.index(fault)
        assert list(underlined(Document("a.py", text), Span(start, start + len(fault)))) == shown

    @pytest.mark.parametrize("length", [0, 1, 59, 60, 61, 200, 100_000])
    @pytest.mark.parametrize("rest", [0, 1, 95, 96, 97, 5000])
    def test_long_lines_are_cut(self, length: int, rest: int) -> None:
        text = "x" * length + "cuda" + "y" * rest + "\n"
        source, carets = underlined(Document("a.py", text), Span(length, length + 4))
        assert source[carets.index("^") :].startswith("cuda")
        assert carets.count("^") == 4
        assert len(source) <= 162
        assert source.startswith("…") == (length > 60)
        assert source.endswith("…") == (rest > 156 - min(length, 60))

    @on_posix
    def test_colour_on_a_terminal_only(self, here: Path) -> None:
        import pty

        (here / "a.py").write_text(CODE)

        def seen(environment: dict[str, str]) -> bytes:
            main_end, terminal = pty.openpty()
            process = subprocess.Popen(
                [sys.executable, "-m", "npulens", "check"],
                stdout=terminal,
                env={**os.environ, **environment},
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

        assert b"\x1b[31m" in seen({})
        assert b"\x1b" not in seen({"NO_COLOR": "1"})
        assert b"\x1b" not in command("check").stdout

    def test_languages(self, here: Path) -> None:
        (here / "a.py").write_text(CODE)
        assert "错误 NPU101" in invoke("check", "--language", "zh")[1]
        assert "建议: 改用" in invoke("check", "--language", "zh")[1]
        (here / "npulens.toml").write_text('language = "zh"\n')
        assert "错误 NPU101" in invoke("check")[1]
        assert "error NPU101" in invoke("check", "--language", "en")[1]


@pytest.mark.parametrize(
    ("environment", "language"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "de_DE.UTF-8"}, "en"),
        ({"LC_MESSAGES": "zh_TW", "LANG": "en_US"}, "zh"),
        ({"LC_ALL": "C", "LANG": "zh_CN"}, "en"),
        ({"LC_ALL": "", "LANG": "zh_CN"}, "zh"),
        ({"NPULENS_LANGUAGE": "zh", "LC_ALL": "C"}, "zh"),
        ({"NPULENS_LANGUAGE": "en", "LC_ALL": "zh_CN"}, "en"),
    ],
)
def test_language_of_the_environment(environment: dict[str, str], language: str) -> None:
    assert environment_language(environment) == language


def test_summary() -> None:
    def found(problems: int, advice: int, files: int, safe: int, unsafe: int) -> Totals:
        totals = Totals()
        totals._problems, totals._advice, totals._files = problems, advice, files
        totals._fixes.update({Applicability.SAFE: safe, Applicability.UNSAFE: unsafe})
        return totals

    assert found(2, 0, 1, 1, 0).line(9, "en") == "Found 2 problems in 1 file (1 fixable)."
    assert Totals().line(3, "zh") == "已检查 3 个文件，未发现问题。"
    assert found(4, 1, 2, 3, 1).line(9, "zh") == (
        "在 2 个文件中发现 4 个问题和 1 条建议（3 个可自动修复，1 个有不安全修复）。"
    )


class TestSettings:
    def test_of_the_nearest_configuration(self, here: Path) -> None:
        (here / "project/src").mkdir(parents=True)
        (here / "project/src/a.py").write_text(CODE)
        (here / "project/npulens.toml").write_text('ignore = ["NPU101"]\n')
        (here / "npulens.toml").write_text('ignore = ["NPU1", "NPU2"]\n')
        for path in ("project", "project/src", "project/src/a.py"):
            assert codes(path) == []
            assert codes(path, "--ignore", "NPU2") == ["NPU101"]
        stdin = CODE.encode()
        assert codes("--stdin-filename", "project/src/new.py", stdin=stdin) == []
        assert codes("-", "--config", "project/npulens.toml", stdin=stdin) == []

    def test_options_replace_the_configuration(self, here: Path) -> None:
        (here / "a.py").write_text(CODE)
        (here / "npulens.toml").write_text('select = ["NPU2"]\ntorch-version = "2.7"\n')
        assert codes() == []
        assert codes("--select", "NPU2,NPU101") == ["NPU101"]
        assert codes("--select", "NPU2", "--select", "cuda-api") == ["NPU101"]
        assert codes("--select", "NPU1", "--ignore", "NPU101") == []

    def test_target(self, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        targets: list[Target] = []

        def remember(document: Document, catalogue: Catalogue, target: Target) -> Judgement:
            targets.append(target)
            return Judgement(())

        monkeypatch.setattr(run_module, "judge", remember)
        (here / "a.py").write_text(CODE)
        (here / "npulens.toml").write_text('torch-version = "2.7"\nmigration-style = "npu"\n')
        invoke("check")
        invoke("check", "--torch-version", "2.6.0", "--migration-style", "device-agnostic")
        assert [str(t.torch_version) for t in targets] == ["2.7", "2.6"]
        assert [t.style.value for t in targets] == ["npu", "device-agnostic"]

    def test_exclude(self, here: Path) -> None:
        (here / "gen").mkdir()
        (here / "gen/a.py").write_text(CODE)
        (here / "b.py").write_text(CLEAN)
        (here / "npulens.toml").write_text('exclude = ["gen/"]\n')
        assert codes() == []
        assert codes("gen/a.py") == ["NPU101"]


def test_standard_input(here: Path) -> None:
    stdin = CODE.encode()
    for arguments, path in [
        (["-"], "-"),
        (["--stdin-filename", "x/a.py"], "x/a.py"),
        (["--stdin-filename", "x/a.py", "-"], "x/a.py"),
    ]:
        (record,) = records(*arguments, stdin=stdin)
        assert record["path"] == path
    assert b"-:2:1: error NPU101" in command("check", "-", stdin=stdin).stdout
    windows = b"\xef\xbb\xbf" + CODE.replace("\n", "\r\n").encode()
    assert [record["column"] for record in records("-", stdin=windows)] == [1]


def reports_of(paths: list[Path], jobs: int | None = None) -> list[FileReport]:
    checker = Checker(load_catalogue(), Configuration())
    return list(in_processes(Checker.check_file, checker, paths, jobs))


class TestManyFiles:
    @pytest.fixture
    def many(self, here: Path) -> list[Path]:
        paths = []
        for index in range(40):
            path = here / f"{index:02}.py"
            path.write_text(CODE if index % 3 else f"x = {index}\n")
            paths.append(path)
        paths[7].write_bytes(b"import torch\0")
        paths[9].unlink()
        return paths

    def test_processes_change_nothing(self, many: list[Path]) -> None:
        reports = [reports_of(many, jobs) for jobs in (1, 2, 7)]
        assert reports[0] == reports[1] == reports[2]
        assert [report.path for report in reports[0]] == [str(path) for path in many]
        problem = reports[0][9].problem
        assert problem is not None
        assert problem.en == "cannot be read: No such file or directory"

    def test_started_anew(self, many: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
        expected = reports_of(many, 1)
        monkeypatch.setattr("threading.active_count", lambda: 2)
        assert reports_of(many, 2) == expected

    def test_command(self, many: list[Path]) -> None:
        outputs = {command("check", "--jobs", jobs, "--no-cache").stdout for jobs in ("1", "3")}
        assert len(outputs) == 1
        assert command("check").stdout in outputs

    def test_no_files(self) -> None:
        assert reports_of([]) == []


class TestEnding:
    def test_a_mistake_in_one_file(self, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail_in_a(document: Document, *_: object) -> Judgement:
            if Path(document.path).name == "a.py":
                raise KeyError("oops")
            return Judgement(())

        monkeypatch.setattr(run_module, "judge", fail_in_a)
        (here / "a.py").write_text(CODE)
        (here / "b.py").write_text(CODE)
        code, output, errors = invoke("check")
        assert code == 2
        assert output == (
            "Found no problems in 1 file.\n1 file not read (--show-skipped lists them).\n"
        )
        assert errors == "npulens: a.py: internal error (KeyError), please report it\n"
        monkeypatch.setenv("NPULENS_TRACEBACK", "1")
        _, _, errors = invoke("check")
        assert "Traceback" in errors
        assert "fail_in_a" in errors

    BROKEN = (
        "import sys, npulens.catalog.loader as loader\n"
        "def load_catalogue(_): raise ZeroDivisionError\n"
        "loader.load_catalogue = load_catalogue\n"
        "from npulens.cli.main import main\n"
        "sys.argv = ['npulens', 'check']\n"
        "main()\n"
    )

    def test_a_mistake_elsewhere(self, here: Path) -> None:
        (here / "a.py").write_text(CODE)

        def run(**environment: str) -> tuple[int, str]:
            result = subprocess.run(
                [sys.executable, "-c", self.BROKEN],
                capture_output=True,
                env={**os.environ, **environment},
            )
            assert result.stdout == b""
            return result.returncode, result.stderr.decode()

        sentence = "npulens: internal error (ZeroDivisionError), please report it\n"
        assert run() == (2, sentence)
        code, errors = run(NPULENS_TRACEBACK="1")
        assert code == 2
        assert errors.startswith(sentence + "Traceback")

    @on_posix
    @pytest.mark.parametrize("jobs", ["1", "2"])
    def test_nobody_reads_on(self, here: Path, jobs: str) -> None:
        for index in range(40):
            (here / f"{index}.py").write_text(CODE * 50)
        process = subprocess.Popen(
            [sys.executable, "-m", "npulens", "check", "--jobs", jobs],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(30) != 0

    @on_posix
    @pytest.mark.parametrize("jobs", ["1", "2"])
    def test_interrupt(self, here: Path, jobs: str) -> None:
        for index in range(400):
            (here / f"{index:03}.py").write_text(CODE * 60)
        process = subprocess.Popen(
            [sys.executable, "-m", "npulens", "check", "--jobs", jobs],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert process.stdout is not None
        process.stdout.read(10)
        os.killpg(process.pid, signal.SIGINT)
        started = time.monotonic()
        _, errors = process.communicate(timeout=30)
        assert time.monotonic() - started < 10
        assert process.returncode == 130
        assert errors.strip() == b""

    @on_posix
    def test_output_closed(self, here: Path) -> None:
        (here / "a.py").write_text(CODE)
        result = subprocess.run(
            f'"{sys.executable}" -m npulens check >&-', shell=True, stderr=subprocess.PIPE
        )
        assert (result.returncode, result.stderr) == (1, b"")

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
    def test_output_full(self, here: Path) -> None:
        (here / "a.py").write_text(CODE)
        with Path("/dev/full").open("wb") as full:
            result = subprocess.run(
                [sys.executable, "-m", "npulens", "check"], stdout=full, stderr=subprocess.PIPE
            )
        assert result.returncode == 2
        assert result.stderr == b"npulens: stopped: No space left on device\n"


@pytest.mark.parametrize(
    "environment",
    [
        {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "gbk"},
    ],
)
def test_output_is_utf8_in_any_locale(here: Path, environment: dict[str, str]) -> None:
    (here / "a.py").write_text("import torch\n变量 = torch.cuda.synchronize()\n", encoding="utf-8")
    result = command("check", "--language", "zh", environment=environment)
    assert " 2 | 变量 = torch.cuda.synchronize()" in result.stdout.decode("utf-8")
    assert "错误" in result.stdout.decode("utf-8")


class TestRule:
    @pytest.mark.parametrize("name", ["NPU105", "npu105", "cuda-method"])
    def test_page(self, name: str) -> None:
        code, page, _ = invoke("rule", name)
        assert code == 0
        assert page.startswith("# NPU105 cuda-method\n\nFamily: device · Severity: error\n")
        rule = load_catalogue().rules["NPU105"]
        for part in (rule.message.en, rule.explanation.en):
            assert part in page
        for example in rule.examples:
            assert example.before in page
            assert example.after is None or example.after in page

    def test_chinese(self) -> None:
        assert "级别: 错误" in invoke("rule", "NPU105", "--language", "zh")[1]

    @pytest.mark.parametrize(
        ("name", "ending"),
        [
            ("cuda-metod", '"cuda-metod"; did you mean "cuda-method"?'),
            ("Q7", '"Q7"'),
        ],
    )
    def test_unknown(self, name: str, ending: str) -> None:
        result = command("rule", name)
        assert (result.returncode, result.stdout) == (2, b"")
        assert result.stderr.decode() == f"npulens: there is no rule {ending}\n"


def test_what_is_not_needed_is_not_imported(here: Path) -> None:
    (here / "a.py").write_text(CODE)

    def imported(*arguments: str) -> set[str]:
        result = subprocess.run(
            [sys.executable, "-X", "importtime", "-m", "npulens", *arguments], capture_output=True
        )
        assert result.returncode in (0, 1)
        names = (line.rpartition("|")[2].strip() for line in result.stderr.decode().splitlines())
        return set(names)

    checking = imported("check")
    assert "npulens.analysis" in checking
    unwanted = {"pygls", "lsprotocol", "tomllib", "tomli", "libcst"}
    unwanted |= {"multiprocessing", "concurrent.futures", "traceback", "difflib", "asyncio"}
    assert not checking & unwanted
    own = {name for name in imported("--version") if name.startswith("npulens")}
    commands = {"npulens.cli.main", "npulens.cli.help", "npulens.cli.refusals"}
    assert own == {"npulens", "npulens.cli", *commands}
