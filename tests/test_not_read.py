"""No command says that all is well while files were not read."""

import json
import os
from pathlib import Path

import pytest

from commands import CLEAN, CODE, invoke

on_posix = pytest.mark.skipif(os.name == "nt", reason="links and pipes of POSIX")


@pytest.fixture(autouse=True)
def here(inner: Path) -> Path:
    return inner


def make(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        path = folder / name.replace("__", "/").replace("_py", ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def project(here: Path, tmp_path: Path) -> Path:
    """Some of each: two folders and four files that are not read, and what does not count."""
    make(here, src__a_py=CLEAN, env__lib__b_py=CODE, src__gen__c_py=CODE, src__d_py=CODE)
    src = here / "src"
    (src / ".gitignore").write_text("gen/\nd.py\nimages/\n")
    (src / "env").mkdir()
    (src / "env/pyvenv.cfg").write_text("")
    make(src, env__lib__b_py=CODE, images__readme_txt="", out__e_py=CODE)
    (src / "images/picture.png").write_bytes(b"\x89PNG")
    (src / "utf16.py").write_bytes(CODE.encode("utf-16"))
    (src / "data.json").write_text("[" + "1," * 200_000 + "1]")
    make(tmp_path, other_py=CODE)
    (src / "link.py").symlink_to(tmp_path / "other.py")
    (src / "gone.py").symlink_to(tmp_path / "nothing.py")
    (src / "notes.txt").write_text("no kind that is read")
    (src / "npulens.toml").write_text('exclude = ["out/"]\nignore = ["NPU003"]\n')
    return src


LISTED = """\
src/d.py: git ignores it and does not track it
src/data.json: too large
src/env/: a virtual environment
src/gen/: git ignores it and does not track it
src/link.py: a link that leads out of the folder
src/out/: excluded by the configuration
src/utf16.py: cannot be read as text
"""
NUMBER = "2 folders and 4 files not read"
CHINESE = "2 个目录和 4 个文件未读取"


@on_posix
class TestCommands:
    @pytest.mark.parametrize("arguments", [("check",), ("check", "--statistics"), ("fix",)])
    def test_say_how_many(self, project: Path, arguments: tuple[str, ...]) -> None:
        for _ in range(2):  # also with what an earlier run knew
            code, output, errors = invoke(*arguments, "src")
            assert (code, errors) == (0, "")
            assert output.endswith(f"\n{NUMBER} (--show-skipped lists them).\n")
        assert invoke(*arguments, "src", "--language", "zh")[1].endswith(
            f"\n{CHINESE}（--show-skipped 可列出）。\n"
        )

    @pytest.mark.parametrize("command", ["check", "fix"])
    def test_say_which(self, project: Path, command: str) -> None:
        lines = invoke(command, "src", "--show-skipped")[1].splitlines()
        assert sorted(line for line in lines if line.startswith("src/")) == LISTED.splitlines()
        assert lines[-1] == f"{NUMBER}."

    @pytest.mark.parametrize("form", ["json", "jsonl", "csv", "sarif", "github", "gitlab", "junit"])
    def test_output_for_programs_stays_what_it_is(self, project: Path, form: str) -> None:
        _, output, errors = invoke("check", "src", "--output-format", form)
        assert NUMBER not in output
        assert errors == f"{NUMBER} (--show-skipped lists them).\n"
        errors = invoke("check", "src", "--output-format", form, "--show-skipped")[2]
        assert sorted(errors.splitlines()[:-1]) == LISTED.splitlines()

    def test_a_file_of_output_ends_so_too(self, project: Path, here: Path) -> None:
        assert invoke("check", "src", "--output-file", "found.txt")[1] == ""
        assert (here / "found.txt").read_text().splitlines()[-1].startswith(NUMBER)

    def test_a_patch_is_nothing_else(self, project: Path) -> None:
        assert invoke("fix", "--diff", "src") == (0, "", f"{NUMBER} (--show-skipped lists them).\n")

    @pytest.mark.parametrize("options", [("-o", "dst"), ("--in-place", "--allow-dirty")])
    def test_a_migration(self, project: Path, here: Path, options: tuple[str, ...]) -> None:
        code, output, _ = invoke("migrate", "src", *options, "--show-skipped")
        assert code == 0
        assert f"\nLeft to do: no problems known; {NUMBER}.\n" in output
        listed = [line for line in output.splitlines() if ": " in line][:7]
        assert [f"src/{line}" for line in listed] == LISTED.splitlines()
        log = here / options[1].replace("--allow-dirty", "src") / "npulens-migration"
        assert NUMBER in (log / "change_log.md").read_text()
        assert "- `gen`: git ignores it" in (log / "change_log.md").read_text()
        kept = json.loads((log / "change_log.json").read_text())["not_read"]
        assert {"path": "env", "folder": True, "reason": "environment"} in kept
        assert {"path": "utf16.py", "folder": False, "reason": "not-readable-as-text"} in kept
        assert len(kept) == 7

    @pytest.mark.parametrize("form", ["markdown", "html"])
    def test_a_report(self, project: Path, form: str) -> None:
        _, output, errors = invoke("report", "src", "--format", form)
        assert NUMBER in output
        for name in ("d.py", "data.json", "env/", "gen/", "link.py"):
            assert name in output
        assert "excluded by" not in output
        assert errors == f"{NUMBER} (--show-skipped lists them).\n"


def test_nothing_is_said_where_all_was_read(here: Path) -> None:
    make(here, a_py=CLEAN)
    for name in ("__pycache__", ".git", ".ipynb_checkpoints", "npulens-migration"):
        make(here / name, b_py=CODE)
    for arguments in (("check",), ("check", "--show-skipped")):
        assert invoke(*arguments) == (0, "Found no problems in 1 file.\n", "")


def test_a_folder_of_which_nothing_is_read(here: Path) -> None:
    make(here, a_py=CODE)
    (here / ".gitignore").write_text("*.py\n")
    code, output, errors = invoke("check", "--show-skipped")
    assert code == 2
    assert output == "a.py: git ignores it and does not track it\n1 file not read.\n"
    assert "git does not ignore" in errors


@on_posix
def test_a_special_file_counts(here: Path) -> None:
    make(here, a_py=CLEAN)
    os.mkfifo(here / "b.py")
    output = invoke("check", "--show-skipped")[1]
    assert output.endswith("b.py: neither a file nor a folder\n1 file not read.\n")
