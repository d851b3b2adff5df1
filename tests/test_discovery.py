import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from npulens.workspace.files.discovery import Discovery, discover


def make(folder: Path, *paths: str) -> None:
    for path in paths:
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")


def found(*paths: str, exclude: Sequence[str] = ()) -> list[str]:
    return [file.as_posix() for file in discover(paths, exclude, Path()).files]


@pytest.fixture(autouse=True)
def here(inner: Path) -> Path:
    return inner


def test_folders_are_walked_in_a_fixed_order(here: Path) -> None:
    make(here, "b.py", "a/z.py", "a/b/c.pyi", "a.py", "B.py", "notes.txt", "x.pyc", "c/y.py")
    assert found(".") == ["B.py", "a.py", "b.py", "a/z.py", "a/b/c.pyi", "c/y.py"]


@pytest.mark.parametrize(
    ("paths", "files"),
    [
        (["src"], ["src/a.py"]),
        (["src/"], ["src/a.py"]),
        (["./src"], ["src/a.py"]),
        (["src/../src"], ["src/../src/a.py"]),
        (["src/a.py", "src"], ["src/a.py"]),
        (["src", "."], ["src/a.py"]),
        (["train", "."], ["train", "src/a.py"]),
        (["train", "./train"], ["train"]),
    ],
)
def test_each_file_is_found_once_and_as_named(
    here: Path, paths: list[str], files: list[str]
) -> None:
    make(here, "src/a.py", "train")
    assert found(*paths) == files


@pytest.mark.parametrize(
    "folder",
    [".git", ".tox", ".venv", "venv", "build", "dist", "node_modules", "site-packages"],
)
def test_usual_folders_are_entered_only_when_named(here: Path, folder: str) -> None:
    make(here, "a.py", f"x/{folder}/lib/b.py")
    assert found(".") == ["a.py"]
    assert found(f"x/{folder}") == [f"x/{folder}/lib/b.py"]


@pytest.mark.parametrize(
    ("start", "is_read"),
    [
        ("import os, sys as s\nimport torch\n", True),
        ("# the test\n\nfrom torch.utils import data\n", True),
        ('"""Train."""\nimport torch.nn as nn\n', True),
        ("import the data first\n", False),
        ("from here on import\n", False),
        ("some text\nimport torch\n", False),
        ("", False),
    ],
)
def test_a_program_without_an_ending_is_known_by_its_first_import(
    here: Path, start: str, is_read: bool
) -> None:
    make(here, "a.py")
    (here / "program").write_text(start)
    assert found(".") == (["a.py", "program"] if is_read else ["a.py"])


def test_a_virtual_environment_of_any_name_is_not_entered(here: Path) -> None:
    make(here, "a.py", "my-env/pyvenv.cfg", "my-env/lib/b.py")
    assert found(".") == ["a.py"]
    assert found("my-env") == ["my-env/lib/b.py"]


@pytest.mark.parametrize(
    ("pattern", "kept"),
    [
        ("gen/", ["a.py", "src/a_pb2.py"]),
        ("*_pb2.py", ["a.py", "gen/b.py", "src/gen/c.py"]),
        ("/gen", ["a.py", "src/a_pb2.py", "src/gen/c.py"]),
        ("/a.py", ["gen/b.py", "src/a_pb2.py", "src/gen/c.py"]),
        ("src/**/c.py", ["a.py", "gen/b.py", "src/a_pb2.py"]),
        ("# a comment", ["a.py", "gen/b.py", "src/a_pb2.py", "src/gen/c.py"]),
    ],
)
def test_exclude(here: Path, pattern: str, kept: list[str]) -> None:
    make(here, "a.py", "gen/b.py", "src/a_pb2.py", "src/gen/c.py")
    assert found(".", exclude=[pattern]) == kept
    assert found("gen/b.py", "a.py", exclude=[pattern]) == ["gen/b.py", "a.py"]


def test_what_is_named_may_be_excluded(here: Path) -> None:
    (here / "gen").mkdir()
    for name in ("a.py", "gen/b.py", "package.json", "run.sh"):
        (here / name).write_text("")
    names = ["gen/b.py", "a.py", str(here / "gen/b.py"), "package.json", "run.sh"]
    for pattern in ("gen/", "gen", "/gen/*.py"):
        files = discover(names, [pattern], Path(), force_exclude=True).files
        assert [file.as_posix() for file in files] == ["a.py", "run.sh"]


def test_exclude_is_relative_to_its_root(here: Path) -> None:
    make(here, "gen/a.py", "sub/gen/b.py")
    result = discover(["."], ["/gen"], here / "sub")
    assert result.files == [Path("gen/a.py")]
    assert discover([str(here)], ["/gen"], here).files == [here / "sub/gen/b.py"]


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")
class TestLinks:
    def test_to_folders_are_not_followed(self, here: Path, tmp_path: Path) -> None:
        make(tmp_path, "other/b.py")
        make(here, "a.py")
        (here / "loop").symlink_to(here)
        (here / "other").symlink_to(tmp_path / "other")
        assert found(".") == ["a.py"]

    def test_a_link_named_is_followed(self, here: Path, tmp_path: Path) -> None:
        make(tmp_path, "other/b.py")
        (here / "other").symlink_to(tmp_path / "other")
        (here / "c.py").symlink_to(tmp_path / "other/b.py")
        assert found("other") == ["other/b.py"]
        assert found("c.py") == ["c.py"]

    def test_to_files_outside_are_not_followed(self, here: Path, tmp_path: Path) -> None:
        make(tmp_path, "b.py", "here-too/c.py")
        make(here, "a.py")
        (here / "b.py").symlink_to(tmp_path / "b.py")
        (here / "c.py").symlink_to("../here-too/c.py")
        assert found(".") == ["a.py"]

    def test_to_files_inside_are_the_same_file(self, here: Path) -> None:
        make(here, "a.py", "script")
        (here / "b.py").symlink_to("a.py")
        (here / "c.py").symlink_to("script")
        assert found(".") == ["a.py", "c.py"]

    def test_that_lead_nowhere_are_harmless(self, here: Path) -> None:
        make(here, "a.py")
        (here / "b.py").symlink_to("b.py")
        (here / "c.py").symlink_to("missing.py")
        assert found(".") == ["a.py"]

    def test_a_file_has_its_own_name_and_not_that_of_a_link(self, here: Path) -> None:
        (here / "z").mkdir()
        (here / "z" / "real.py").write_text("x = 1\n")
        (here / "a").mkdir()
        (here / "a" / "link.py").symlink_to(here / "z" / "real.py")
        assert [file.name for file in discover([str(here)], (), here).files] == ["real.py"]

    def test_walk_starts_at_a_link(self, here: Path) -> None:
        make(here, "real/a.py", "real/sub/script")
        (here / "real/b.py").symlink_to("sub/script")
        (here / "link").symlink_to("real")
        assert found("link", "real") == ["link/a.py", "link/b.py"]


def problems(*paths: str) -> dict[str, str]:
    result: Discovery = discover(paths, [], Path())
    assert result.files == []
    return {path: problem.en for path, problem in result.problems.items()}


def test_what_cannot_be_used_is_told(here: Path) -> None:
    make(here, "empty/notes.txt", "skipped/build/lib/a.py")
    for path in ("missing.py", "missing/folder", ""):
        assert problems(path) == {path: "No such file or directory"}
    for path in ("empty", "skipped"):
        assert problems(path) == {path: "no Python file in this folder"}
    assert "not excluded" in discover(["empty"], ["x"], Path()).problems["empty"].en


def test_one_bad_path_does_not_hide_the_others(here: Path) -> None:
    make(here, "a.py")
    result = discover(["missing", "a.py"], [], Path())
    assert result.files == [Path("a.py")]
    assert list(result.problems) == ["missing"]


def test_a_folder_may_look_like_a_file(here: Path) -> None:
    make(here, "x.py/a.py")
    assert found(".") == found("x.py") == ["x.py/a.py"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
def test_a_pipe_is_never_opened(here: Path) -> None:
    make(here, "a.py")
    os.mkfifo(here / "b.py")
    assert found(".") == ["a.py"]
    assert problems("b.py") == {"b.py": 'neither a file nor a folder; "-" reads standard input'}


def test_a_link_loop_named_is_a_problem(here: Path) -> None:
    (here / "b.py").symlink_to("b.py")
    assert list(problems("b.py")) == ["b.py"]


def test_a_folder_that_cannot_be_read(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(here, "a.py", "closed/b.py")
    scandir = os.scandir

    def refuse(path: str) -> object:
        if path.endswith("closed"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    result = discover(["."], [], Path())
    assert result.files == [Path("a.py")]
    assert result.problems["./closed"].en == "Permission denied"


def write(folder: Path, **texts: str) -> None:
    """Make files of which some have a text; `__` in a name stands for a slash."""
    for name, text in texts.items():
        path = folder / name.replace("__", "/").replace("gitignore", ".gitignore")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


IGNORED = [
    ("*_gen.py", ["b_gen.py", "sub/c_gen.py", "sub/deep/d_gen.py"]),
    ("/b_gen.py", ["b_gen.py"]),
    ("sub/c_gen.py", ["sub/c_gen.py"]),
    ("c_gen.py", ["sub/c_gen.py"]),
    ("deep", ["sub/deep/d.py", "sub/deep/d_gen.py"]),
    ("deep/", ["sub/deep/d.py", "sub/deep/d_gen.py"]),
    ("d.py/", []),
    ("/deep", []),
    ("**/deep/*.py", ["sub/deep/d.py", "sub/deep/d_gen.py"]),
    ("sub/**", ["sub/c_gen.py", "sub/deep/d.py", "sub/deep/d_gen.py"]),
    ("sub/*", ["sub/c_gen.py", "sub/deep/d.py", "sub/deep/d_gen.py"]),
    ("sub/*\n!sub/c_gen.py", ["sub/deep/d.py", "sub/deep/d_gen.py"]),
    ("*.py\n!a.py", ["b_gen.py", "sub/c_gen.py", "sub/deep/d.py", "sub/deep/d_gen.py"]),
    ("*.py\n!deep/", [*("a.py", "b_gen.py"), "sub/c_gen.py", "sub/deep/d.py", "sub/deep/d_gen.py"]),
    ("*.py\n!deep", [*("a.py", "b_gen.py"), "sub/c_gen.py", "sub/deep/d.py", "sub/deep/d_gen.py"]),
    ("sub/\n!sub/c_gen.py", ["sub/c_gen.py", "sub/deep/d.py", "sub/deep/d_gen.py"]),
    ("[ab]*.py", ["a.py", "b_gen.py"]),
    ("[!ab]*.py", ["sub/c_gen.py", "sub/deep/d.py", "sub/deep/d_gen.py"]),
    ("?.py", ["a.py", "sub/deep/d.py"]),
    ("\\a.py", ["a.py"]),
    ("a.py   ", ["a.py"]),
    ("a.py\r\nd.py", ["a.py", "sub/deep/d.py"]),
    ("# a.py\n\n   \n!", []),
    ("[\n[z-a]\na.py", ["a.py"]),
]
TREE = ["a.py", "b_gen.py", "sub/c_gen.py", "sub/deep/d.py", "sub/deep/d_gen.py"]


@pytest.mark.parametrize(("text", "ignored"), IGNORED)
def test_what_git_ignores_is_left_out(here: Path, text: str, ignored: list[str]) -> None:
    make(here, *TREE)
    (here / ".gitignore").write_bytes(text.encode())
    assert set(found(".", "a.py")) == {*TREE, "a.py"} - set(ignored) | {"a.py"}
    assert discover(["."], [], Path(), respect_gitignore=False).files == [*map(Path, TREE)]


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize(("text", "ignored"), IGNORED)
def test_the_table_of_ignored_files_is_what_git_says(
    here: Path, text: str, ignored: list[str]
) -> None:
    make(here, *TREE)
    (here / ".gitignore").write_bytes(text.encode())
    subprocess.run(["git", "init", "-q"], check=True)
    told = subprocess.run(["git", "check-ignore", *TREE], capture_output=True, check=False)
    assert told.stdout.decode().split() == ignored


def test_ignore_files_further_down_come_first(here: Path) -> None:
    make(here, *TREE)
    write(here, gitignore="*_gen.py\n", sub__gitignore="!c_gen.py\n/deep/d.py\n")
    assert found(".") == ["a.py", "sub/c_gen.py"]


def test_ignore_files_above_count_up_to_the_repository(here: Path) -> None:
    make(here, *TREE, ".git/HEAD")
    write(here, gitignore="d.py\n/c_gen.py\n", sub__gitignore="d_gen.py\n")
    write(here.parent, gitignore="*.py\n")
    assert found("sub") == ["sub/c_gen.py"]
    (here / ".git/info").mkdir()
    (here / ".git/info/exclude").write_text("/sub/c_*\n!b_gen.py\n")
    assert "git does not ignore" in discover(["sub"], [], Path()).problems["sub"].en
    assert found(".") == ["a.py", "b_gen.py"]


def test_a_folder_that_is_ignored_and_named_is_taken(here: Path) -> None:
    make(here, ".git/HEAD", "out/a.py", "out/sub/b.py", "out/sub/c.py")
    write(here, gitignore="/out/\n*.py\n", out__sub__gitignore="c.py\n")
    assert found("out") == ["out/a.py", "out/sub/b.py"]
    assert found("out/sub") == ["out/sub/b.py"]


def test_a_repository_inside_another_has_its_own_rules(here: Path) -> None:
    make(here, ".git/HEAD", "a.py", "inner/.git/HEAD", "inner/a.py", "inner/b.py")
    write(here, gitignore="a.py\n", inner__gitignore="b.py\n")
    assert found(".") == ["inner/a.py"]


def test_ignore_files_that_are_none(here: Path, tmp_path: Path) -> None:
    make(here, *TREE)
    (tmp_path / "list").write_text("*.py\n")
    (here / ".gitignore").symlink_to(tmp_path / "list")
    (here / "sub/.gitignore").mkdir()
    (here / "sub/deep/.gitignore").write_bytes(b"\xff\xfe\0*\n" + b"x" * 2_000_000)
    assert found(".") == TREE


def test_a_hostile_pattern_costs_no_more_than_others(here: Path) -> None:
    name = "a" * 240
    (here / ".gitignore").write_text(f"{'*a' * 30}b\n{'**/' * 30}b\n{'*a' * 4}b\nlast.py\n")
    make(here, f"{name}.py", "last.py")
    started = time.perf_counter()
    assert found(".") == [f"{name}.py"]
    assert time.perf_counter() - started < 5
