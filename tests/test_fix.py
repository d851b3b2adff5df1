"""`npulens fix` and `check --fix`: what they write, what they leave alone, what can go wrong."""

import ast
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from commands import CLEAN, CODE, command, invoke

pytestmark = pytest.mark.usefixtures("here")

FIXED = "import torch\nimport torch_npu  # noqa: F401\ntorch.npu.synchronize()\n"
MIXED = 'import torch\ntorch.cuda.synchronize()\ntorch.cuda.nvtx.range_push("x")\n'
on_posix = pytest.mark.skipif(os.name == "nt", reason="means something on POSIX only")
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="needs names that are any bytes")


def git(*arguments: str) -> str:
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "core.autocrlf=false"]
    result = subprocess.run(
        ["git", *identity, *arguments], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


class TestFix:
    def test_safe_fixes(self, here: Path) -> None:
        (here / "a.py").write_text(CODE)
        (here / "clean.py").write_text(CLEAN)
        code, output, _ = invoke("fix")
        assert (here / "a.py").read_text() == FIXED
        assert (code, output) == (
            0,
            "Found no problems in 2 files.\nFixed 1 problem in 1 file.\n",
        )
        assert invoke("fix")[1].endswith("Fixed 0 problems in 0 files.\n")

    def test_what_is_left_is_told(self, here: Path) -> None:
        (here / "a.py").write_text(MIXED)
        code, output, _ = invoke("fix")
        assert code == 1
        assert "a.py:4:1: warning NPU502" in output or "NPU502" in output
        assert " 4 | torch.cuda.nvtx.range_push" in output
        assert output.endswith("Fixed 1 problem in 1 file.\n")

    def test_unsafe_fixes(self, here: Path) -> None:
        (here / "a.py").write_text(MIXED)
        code, _, _ = invoke("fix", "--unsafe-fixes")
        assert code == 0
        assert "cuda" not in (here / "a.py").read_text()

    def test_some_rules(self, here: Path) -> None:
        (here / "a.py").write_text(CODE + 'x = torch.ones(1, device="cuda")\n')
        invoke("fix", "--select", "NPU110")
        text = (here / "a.py").read_text()
        assert 'device="npu"' in text
        assert "torch.cuda.synchronize()" in text

    def test_paths(self, here: Path) -> None:
        for name in ("a.py", "b.py"):
            (here / name).write_text(CODE)
        invoke("fix", "b.py")
        assert (here / "a.py").read_text() == CODE
        assert (here / "b.py").read_text() == FIXED

    def test_other_kinds_of_files(self, here: Path) -> None:
        (here / "run.sh").write_text("#!/bin/sh\nexport CUDA_VISIBLE_DEVICES=0,1\npython a.py\n")
        invoke("fix", "--unsafe-fixes")
        assert "ASCEND_RT_VISIBLE_DEVICES=0,1" in (here / "run.sh").read_text()

    def test_of_check(self, here: Path) -> None:
        (here / "a.py").write_text(MIXED)
        code, output, errors = invoke("check", "--fix", "--output-format", "concise")
        assert code == 1
        assert output.startswith("a.py:4:1: NPU502 ")
        assert output.count("\n") == 1
        assert errors == "Fixed 1 problem in 1 file.\n"
        assert invoke("check", "--fix", "--unsafe-fixes")[0] == 0

    def test_chinese(self, here: Path) -> None:
        (here / "a.py").write_text(CODE)
        assert invoke("fix", "--language", "zh")[1].endswith("已在 1 个文件中修复 1 个问题。\n")

    def test_style_of_the_configuration(self, here: Path) -> None:
        (here / "a.py").write_text(CODE)
        (here / "npulens.toml").write_text('migration-style = "device-agnostic"\n')
        invoke("fix")
        assert "torch.accelerator.synchronize()" in (here / "a.py").read_text()

    def test_what_pytorch_loads_is_not_imported(self, here: Path) -> None:
        (here / "a.py").write_text("import torch\n\nx = torch.zeros(2).cuda()\n")
        (here / "b.py").write_text("from torch.cuda import synchronize\n\nsynchronize()\n")
        (here / "c.py").write_text("def f():\n    import torch\n    return torch.rand(2).cuda()\n")
        (here / "npulens.toml").write_text("autoload = true\n")
        invoke("fix")
        assert (here / "a.py").read_text() == "import torch\n\nx = torch.zeros(2).npu()\n"
        assert "from torch_npu.npu import synchronize" in (here / "b.py").read_text()
        assert "torch_npu" not in (here / "c.py").read_text()

    def test_the_cache_is_not_believed(self, here: Path) -> None:
        (here / "a.py").write_text(CODE)
        invoke("check")
        (file,) = (here / ".npulens_cache").glob("*.json")
        before = file.read_bytes()
        invoke("fix")
        assert (here / "a.py").read_text() == FIXED
        assert file.read_bytes() == before

    @pytest.mark.parametrize(
        "arguments",
        [
            ["check", "--fix", "-"],
            ["check", "--unsafe-fixes"],
            ["check", "--allow-dirty"],
            ["check", "--fix", "--add-suppressions"],
            ["check", "--fix", "--watch"],
            ["fix", "--select", "NPU998"],
            ["fix", "missing.py"],
        ],
    )
    def test_wrong_usage(self, here: Path, arguments: list[str]) -> None:
        (here / "a.py").write_text(CODE)
        result = command(*arguments, stdin=CODE.encode())
        assert result.returncode == 2
        assert b"Traceback" not in result.stderr
        assert (here / "a.py").read_text() == CODE or "missing.py" in arguments


class TestWhatStays:
    @pytest.mark.parametrize(
        ("before", "after"),
        [
            (CODE.encode(), FIXED.encode()),
            (CODE.replace("\n", "\r\n").encode(), FIXED.replace("\n", "\r\n").encode()),
            (CODE.replace("\n", "\r").encode(), FIXED.replace("\n", "\r").encode()),
            (CODE.rstrip().encode(), FIXED.rstrip().encode()),
            (b"\xef\xbb\xbf" + CODE.encode(), b"\xef\xbb\xbf" + FIXED.encode()),
            (
                f"# coding: gbk\n# 注释\n{CODE}".encode("gbk"),
                f"# coding: gbk\n# 注释\n{FIXED}".encode("gbk"),
            ),
            (
                f"# coding: latin-1\n# caf\xe9\n{CODE}".encode("latin-1"),
                f"# coding: latin-1\n# caf\xe9\n{FIXED}".encode("latin-1"),
            ),
            (
                f"x = 1\x0c\n# \u2028\n{CODE}".encode(),
                f"x = 1\x0c\n# \u2028\n{FIXED}".encode(),
            ),
        ],
        ids=["lf", "crlf", "cr", "no-end", "bom", "gbk", "latin-1", "form-feed"],
    )
    def test_encoding_and_line_endings(self, here: Path, before: bytes, after: bytes) -> None:
        (here / "a.py").write_bytes(before)
        assert invoke("fix")[0] == 0
        assert (here / "a.py").read_bytes() == after

    def test_mixed_line_endings(self, here: Path) -> None:
        (here / "a.py").write_bytes(b"import torch\r\nx = 1\ntorch.cuda.synchronize()\r\n")
        invoke("fix")
        text = (here / "a.py").read_bytes()
        assert text.startswith(b"import torch\r\n")
        assert text.endswith(b"x = 1\ntorch.npu.synchronize()\r\n")

    @on_posix
    @pytest.mark.parametrize("mode", [0o644, 0o755, 0o600, 0o4711 & 0o777])
    def test_mode(self, here: Path, mode: int) -> None:
        (here / "a.py").write_text(CODE)
        (here / "a.py").chmod(mode)
        assert invoke("fix")[0] == 0
        assert stat.S_IMODE((here / "a.py").stat().st_mode) == mode

    @on_posix
    def test_symbolic_link(self, here: Path) -> None:
        (here / "real").mkdir()
        (here / "real/b.py").write_text(CODE)
        (here / "a.py").symlink_to("real/b.py")
        assert invoke("fix", "a.py")[0] == 0
        assert (here / "a.py").is_symlink()
        assert (here / "real/b.py").read_text() == FIXED
        assert not (here / "real/b.py").is_symlink()

    @on_posix
    def test_hard_link_is_left_alone(self, here: Path) -> None:
        (here / "a.py").write_text(CODE)
        os.link(here / "a.py", here / "same.txt")
        result = command("fix", "a.py")
        assert result.returncode == 2
        assert b"a.py: not fixed: has further hard links" in result.stderr
        assert (here / "a.py").read_text() == CODE

    def test_nothing_else_lies_there_afterwards(self, here: Path) -> None:
        (here / "a.py").write_text(CODE)
        invoke("fix")
        assert [path.name for path in here.iterdir()] == ["a.py"]

    @pytest.mark.parametrize(
        "data",
        [
            b"import torch\nx = '\xff'\ntorch.cuda.synchronize()\n",
            b"\0torch.cuda",
            b"# coding: x\nimport torch\n",
        ],
    )
    def test_what_cannot_be_read(self, here: Path, data: bytes) -> None:
        (here / "a.py").write_bytes(data)
        assert invoke("fix")[0] == 1
        assert (here / "a.py").read_bytes() == data

    def test_an_encoding_that_forgets(self, here: Path) -> None:
        """NEC's and IBM's codes of one character: cp932 writes it in one way only."""
        data = b"# coding: cp932\n# \xfa\x5c\n" + CODE.encode()
        (here / "a.py").write_bytes(data)
        result = command("fix")
        assert result.returncode == 2
        assert b"a.py: not fixed: cp932 would not give back the same bytes" in result.stderr
        assert (here / "a.py").read_bytes() == data

    def test_an_encoding_that_forgets_where_nothing_is_merged(self, here: Path) -> None:
        (here / "a.py").write_bytes(b"# coding: cp932\n# \xfa\x5c\nx = 1\n")
        result = command("fix", "--unsafe-fixes", "--merge-projections")
        assert (result.returncode, result.stderr) == (0, b"")


class TestTrouble:
    def not_fixed(self, *arguments: str) -> str:
        result = command("fix", *arguments)
        assert result.returncode == 2
        (line,) = result.stderr.decode().splitlines()
        return line

    @on_posix
    def test_read_only_file(self, here: Path) -> None:
        (here / "a.py").write_text(CODE)
        (here / "a.py").chmod(0o444)
        (here / "b.py").write_text(CODE)
        assert self.not_fixed() == "npulens: a.py: not fixed: is read-only"
        assert (here / "a.py").read_text() == CODE
        assert (here / "b.py").read_text() == FIXED, "the others are fixed"

    @on_posix
    def test_folder_without_permission(self, here: Path) -> None:
        (here / "sub").mkdir()
        (here / "sub/a.py").write_text(CODE)
        (here / "sub").chmod(0o555)
        try:
            if os.access(here / "sub", os.W_OK):
                pytest.skip("this user may write everywhere")
            assert "cannot be written: Permission denied" in self.not_fixed()
        finally:
            (here / "sub").chmod(0o755)

    @pytest.mark.skipif(sys.platform != "linux", reason="needs limits of file sizes")
    def test_full_disk(self, here: Path) -> None:
        """A file may not grow beyond a limit: the write fails in the middle."""
        import resource

        text = CODE + "# " + "x" * 200_000 + "\n"
        (here / "a.py").write_text(text)

        def limit() -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

        result = subprocess.run(
            [sys.executable, "-m", "npulens", "fix"], capture_output=True, preexec_fn=limit
        )
        assert result.returncode == 2
        assert result.stderr == b"npulens: a.py: not fixed: cannot be written: File too large\n"
        assert (here / "a.py").read_text() == text
        assert [path.name for path in here.iterdir()] == ["a.py"]

    def test_changed_meanwhile(self, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from npulens.workspace.fixing import file_fixes

        (here / "a.py").write_text(CODE)
        fix_text = file_fixes.fix_text

        def edit_and_fix(*arguments, **options):  # type: ignore[no-untyped-def]
            (here / "a.py").write_text(CODE + "# mine\n")
            return fix_text(*arguments, **options)

        monkeypatch.setattr(file_fixes, "fix_text", edit_and_fix)
        code, _, errors = invoke("fix")
        assert code == 2
        assert errors == "npulens: a.py: not fixed: was changed by somebody else meanwhile\n"
        assert (here / "a.py").read_text() == CODE + "# mine\n"

    @on_linux
    @pytest.mark.parametrize("name", [b"a\nb.py", b"\xff\xfe.py", b"a\tb.py", b" .py", b"-x.py"])
    def test_strange_names(self, here: Path, name: bytes) -> None:
        path = here / os.fsdecode(name)
        path.write_text(CODE)
        result = command("fix")
        assert (result.returncode, result.stderr) == (0, b"")
        assert path.read_text() == FIXED

    @on_posix
    def test_killed_while_writing(self, here: Path) -> None:
        """Whenever it ends, each file is as before or wholly fixed, and a second run ends it."""
        long = CODE + "# text\n" * 2000
        wanted = FIXED + "# text\n" * 2000
        files = [here / f"{index:03}.py" for index in range(150)]
        for file in files:
            file.write_text(long)
        process = subprocess.Popen(
            [sys.executable, "-m", "npulens", "fix", "--jobs", "1"], stdout=subprocess.DEVNULL
        )
        while process.poll() is None and files[20].read_text() == long:
            time.sleep(0.001)
        process.kill()
        process.wait(30)
        texts = [file.read_text() for file in files]
        assert all(text in (long, wanted) for text in texts)
        assert wanted in texts
        assert invoke("fix")[0] == 0
        assert all(file.read_text() == wanted for file in files)

    def test_two_runs_at_once(self, here: Path) -> None:
        files = [here / f"{index:03}.py" for index in range(60)]
        for file in files:
            file.write_text(CODE)
        runs = [
            subprocess.Popen(
                [sys.executable, "-m", "npulens", "fix", "--jobs", "1"],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
            for _ in range(2)
        ]
        for run in runs:
            _, errors = run.communicate(timeout=60)
            assert run.returncode in (0, 2)
            lines = errors.decode().splitlines()
            assert all(line.endswith("was changed by somebody else meanwhile") for line in lines)
        assert all(file.read_text() == FIXED for file in files)

    @on_posix
    def test_interrupt(self, here: Path) -> None:
        for index in range(120):
            (here / f"{index:03}.py").write_text(CODE * 60)
        process = subprocess.Popen(
            [sys.executable, "-m", "npulens", "fix"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        while process.poll() is None and (here / "003.py").read_text() == CODE * 60:
            time.sleep(0.001)
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=30)
        assert process.returncode == 130
        for path in here.glob("*.py"):
            ast.parse(path.read_text())


class TestGit:
    @pytest.fixture
    def tree(self, here: Path) -> Path:
        git("init", "--quiet")
        (here / "a.py").write_text(CODE)
        (here / "b.txt").write_text("x")
        git("add", "-A")
        git("commit", "--quiet", "-m", "x")
        return here

    def test_clean(self, tree: Path) -> None:
        assert command("fix").returncode == 0
        assert (tree / "a.py").read_text() == FIXED

    @pytest.mark.parametrize("staged", [True, False])
    def test_changes_in_no_commit(self, tree: Path, staged: bool) -> None:
        (tree / "b.txt").write_text("y")
        if staged:
            git("add", "-A")
        for arguments in (["fix"], ["check", "--fix"]):
            result = command(*arguments)
            assert (result.returncode, result.stdout) == (2, b"")
            assert result.stderr.decode() == (
                f"npulens: nothing is fixed: {tree} has changes that are in no commit; "
                "commit them, or give --allow-dirty\n"
            )
            assert (tree / "a.py").read_text() == CODE
        assert command("fix", "--allow-dirty").returncode == 0
        assert (tree / "a.py").read_text() == FIXED

    def test_files_that_git_does_not_know(self, tree: Path) -> None:
        (tree / "new.py").write_text(CODE)
        result = command("fix")
        assert result.returncode == 2
        assert b"new.py: not fixed: is not in git" in result.stderr
        assert (tree / "new.py").read_text() == CODE
        assert (tree / "a.py").read_text() == FIXED
        assert command("fix", "--allow-dirty").returncode == 0
        assert (tree / "new.py").read_text() == FIXED

    def test_from_a_folder_below(self, tree: Path) -> None:
        (tree / "sub").mkdir()
        (tree / "sub/c.py").write_text(CODE)
        git("add", "-A")
        result = subprocess.run(
            [sys.executable, "-m", "npulens", "fix"], cwd=tree / "sub", capture_output=True
        )
        assert result.returncode == 2
        assert b"has changes that are in no commit" in result.stderr

    def test_without_git(self, tree: Path) -> None:
        result = command("fix", environment={"PATH": ""})
        assert result.returncode == 2
        assert b"nothing is fixed: git cannot be run: " in result.stderr
        assert b"--allow-dirty" in result.stderr
        assert (tree / "a.py").read_text() == CODE

    @on_posix
    def test_programs_that_the_tree_names_are_not_run(self, tree: Path) -> None:
        (tree / ".git/watcher").write_text(f"#!/bin/sh\ntouch '{tree}/ran'\n")
        (tree / ".git/watcher").chmod(0o755)
        git("config", "core.fsmonitor", ".git/watcher")
        assert command("fix").returncode == 0
        assert not (tree / "ran").exists()


class TestDiff:
    def patch(self, *arguments: str) -> bytes:
        result = command("fix", "--diff", *arguments)
        assert result.stderr == b""
        assert result.returncode == (1 if result.stdout else 0)
        return result.stdout

    CONTENTS = (
        CODE.encode(),
        MIXED.encode() * 3,
        CODE.replace("\n", "\r\n").encode(),
        CODE.rstrip().encode(),
        (CODE + "x = 1\n" * 50 + CODE).encode(),
        b"\xef\xbb\xbf" + CODE.encode(),
        f"# coding: gbk\n# 注释\n{CODE}".encode("gbk"),
        f"x = 1\x0c\n# \u2028 \x1c\n{CODE}".encode(),
        ("# text\n" * 25_000 + CODE).encode(),
    )

    @on_linux
    @pytest.mark.parametrize("repository", [True, False])
    def test_git_applies_it(self, here: Path, repository: bool) -> None:
        if repository:
            git("init", "--quiet")
        names = [b"a.py", b"a b.py", b'q"\\.py', b"new\nline.py", b"\xff.py", "变量.py".encode()]
        names += [b"sub/c.py", b"tab\t.py", b"last.py"]
        (here / "sub").mkdir()
        files = [here / os.fsdecode(name) for name in names]
        for file, content in zip(files, self.CONTENTS, strict=True):
            file.write_bytes(content)
        patch = self.patch()
        assert [file.read_bytes() for file in files] == list(self.CONTENTS), "nothing is written"
        applied = subprocess.run(
            ["git", "apply", "--whitespace=nowarn", "-"], input=patch, capture_output=True
        )
        assert applied.returncode == 0, applied.stderr
        by_patch = [file.read_bytes() for file in files]
        for file, content in zip(files, self.CONTENTS, strict=True):
            file.write_bytes(content)
        command("fix", "--allow-dirty")
        assert by_patch == [file.read_bytes() for file in files]

    def test_in_a_dirty_tree(self, here: Path) -> None:
        git("init", "--quiet")
        (here / "a.py").write_text(CODE)
        git("add", "-A")
        assert b"+torch.npu.synchronize()\n" in self.patch()

    def test_nothing_to_change(self, here: Path) -> None:
        (here / "a.py").write_text(CLEAN)
        assert self.patch() == b""

    def test_files_that_cannot_be_read(self, here: Path) -> None:
        (here / "a.py").write_text(CODE)
        result = command("fix", "--diff", "a.py", "missing.py")
        assert result.returncode == 2
        assert result.stdout.startswith(b"diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ ")
        assert result.stderr == b"npulens: missing.py: No such file or directory\n"

    def test_processes_change_nothing(self, here: Path) -> None:
        for index in range(40):
            (here / f"{index:02}.py").write_text(CODE * 3)
        assert self.patch("--jobs", "1") == self.patch("--jobs", "3")


def test_the_next_step_is_named_where_a_script_trains(here: Path) -> None:
    (here / "train.py").write_text(
        "import torch\nx = torch.ones(1).cuda()\nprint(x)\nx.backward()\n"
    )
    assert invoke("fix")[1].splitlines()[-1] == (
        "Next, see it run on an emulated NPU: npulens verify --as-is train.py"
    )
    assert "verify" not in invoke("fix")[1]  # nothing was changed
    (here / "train.py").unlink()
    (here / "other.py").write_text("import torch\ntorch.cuda.synchronize()\n")
    output = invoke("fix", "--language", "zh")[1]
    assert "Fixed" not in output
    assert "verify" not in output
