"""What git tracks is read, wherever it lies and whatever it is called."""

import contextlib
import hashlib
import os
import random
import shutil
import time
from pathlib import Path

import pytest

from commands import CODE, git, invoke
from npulens.workspace.files.discovery import discover
from npulens.workspace.files.git_index import UnreadableIndexError, parse_index

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture(autouse=True)
def here(inner: Path) -> Path:
    return inner


def make(folder: Path, *paths: str) -> None:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(CODE)


def committed(folder: Path, *paths: str) -> None:
    """A repository with these files, also where `.gitignore` names them."""
    make(folder, *paths)
    git("init", "-q", at=folder)
    git("add", "-f", *paths, at=folder)
    git("commit", "-qm", "x", at=folder)


def found(*paths: str) -> list[str]:
    return [file.as_posix() for file in discover(paths, [], Path()).files]


def test_a_tracked_file_in_an_ignored_folder(here: Path) -> None:
    (here / ".gitignore").write_text("out/\n*_gen.py\n")
    committed(here, "a.py", "out/deep/b.py", "c_gen.py")
    make(here, "out/new.py", "out/deep/new.py", "out/other/new.py", "d_gen.py", "new.py")
    assert found(".") == ["a.py", "c_gen.py", "new.py", "out/deep/b.py"]


@pytest.mark.parametrize(
    "folder", ["dist", "build", "venv", "env", ".venv", "node_modules", "src/dist", "x/build/y"]
)
@pytest.mark.parametrize("ignore", ["", "dist/\nbuild/\nvenv/\nenv/\n.venv/\nnode_modules/\n"])
def test_a_tracked_package_of_any_name(here: Path, folder: str, ignore: str) -> None:
    (here / ".gitignore").write_text(ignore)
    committed(here, "a.py", f"{folder}/deep/utils.py")
    assert found(".") == ["a.py", f"{folder}/deep/utils.py"]
    assert invoke("check", ".")[0] == 1


@pytest.mark.parametrize(
    "path",
    ["dist/lib/b.py", "build/lib/pkg/__init__.py", "node_modules/gyp/a.py", "venv/lib/b.py"],
)
def test_untracked_output_is_left_out(here: Path, path: str) -> None:
    committed(here, "a.py")
    make(here, path)
    assert found(".") == ["a.py"]


@pytest.mark.parametrize("marker", ["pyvenv.cfg", "conda-meta/history"])
def test_of_an_environment_only_what_is_tracked(here: Path, marker: str) -> None:
    committed(here, "a.py", "env/train.py")
    make(here, f"env/{marker}", "env/lib/b.py", "other/b.py", f"other/{marker}")
    assert found(".") == ["a.py", "env/train.py"]


def test_installed_packages_are_never_read_unasked(here: Path) -> None:
    """Somebody committed an environment: it is still the code of others."""
    committed(here, "a.py", "venv/lib/python3.11/site-packages/torch/b.py", "venv/pyvenv.cfg")
    assert found(".") == ["a.py"]


@pytest.mark.parametrize("folder", ["dist", "build", "venv"])
@pytest.mark.parametrize("is_in_git", [True, False])
def test_an_untracked_folder_with_python_files_is_source(
    here: Path, folder: str, is_in_git: bool
) -> None:
    """Where git knows nothing of it, what lies directly in the folder shows what it is."""
    if is_in_git:
        committed(here, "a.py")
    make(here, "a.py", f"{folder}/__init__.py", f"{folder}/deep/b.py")
    assert found(".") == ["a.py", f"{folder}/__init__.py", f"{folder}/deep/b.py"]
    (here / folder / "pyvenv.cfg").write_text("")
    assert found(".") == ["a.py"]


def test_a_folder_with_a_dockerfile_is_no_output(here: Path) -> None:
    make(here, "docker/build/Dockerfile", "build/lib/Dockerfile")
    assert found(".") == ["docker/build/Dockerfile"]


def test_an_ignored_folder_with_python_files_is_output(here: Path) -> None:
    (here / ".gitignore").write_text("build/\n")
    committed(here, "a.py")
    make(here, "build/b.py")
    assert found(".") == ["a.py"]


def test_a_repository_inside_another(here: Path) -> None:
    (here / ".gitignore").write_text("third/\n")
    committed(here, "a.py", "third/kept.py")
    (here / "sub").mkdir()
    (here / "sub/.gitignore").write_text("*.py\n")
    committed(here / "sub", "b.py", "dist/c.py")
    make(here, "sub/new.py")
    committed(here / "third/inner", "d.py")
    assert found(".") == ["a.py", "sub/b.py", "sub/dist/c.py", "third/kept.py"]
    assert found("third/inner") == ["third/inner/d.py"]


def test_a_submodule(here: Path, tmp_path: Path) -> None:
    """Also below an ignored folder; its `.git` is a file that leads to the repository."""
    committed(tmp_path / "library", "b.py", "build/c.py")
    (here / ".gitignore").write_text("third/\n")
    committed(here, "a.py")
    git("submodule", "add", "-q", "-f", str(tmp_path / "library"), "third/build", at=here)
    (here / "third/build/.gitignore").write_text("*.py\n")
    make(here, "third/build/new.py", "third/new.py")
    assert (here / "third/build/.git").is_file()
    assert found(".") == ["a.py", "third/build/b.py", "third/build/build/c.py"]


def test_a_linked_working_tree(here: Path, tmp_path: Path) -> None:
    (here / ".gitignore").write_text("out/\n")
    committed(here, "a.py", "out/b.py")
    git("add", ".gitignore", at=here)
    git("commit", "-qm", "y", at=here)
    git("worktree", "add", "-q", str(tmp_path / "linked"), at=here)
    make(tmp_path / "linked", "out/new.py")
    names = [
        Path(file).relative_to(tmp_path).as_posix() for file in found(str(tmp_path / "linked"))
    ]
    assert names == ["linked/a.py", "linked/out/b.py"]


def test_a_folder_of_a_repository_named_by_its_own_path(here: Path) -> None:
    (here / ".gitignore").write_text("gen/\n")
    committed(here, "a.py", "src/gen/b.py", "src/dist/lib/c.py")
    make(here, "src/gen/new.py", "src/build/lib/new.py")
    expected = ["src/dist/lib/c.py", "src/gen/b.py"]
    assert found("src") == expected
    assert found(str(here / "src")) == [str(here / path) for path in expected]


def test_a_file_named_is_taken_in_any_case(here: Path) -> None:
    (here / ".gitignore").write_text("out/\n")
    committed(here, "a.py")
    make(here, "out/b.py", "build/lib/c.py")
    assert found("out/b.py", "build/lib/c.py") == ["out/b.py", "build/lib/c.py"]


def test_all_that_git_ignores_may_be_asked_for(here: Path) -> None:
    (here / ".gitignore").write_text("out/\n")
    committed(here, "a.py", "dist/lib/b.py")
    make(here, "out/c.py", "build/lib/d.py")
    files = discover(["."], [], Path(), respect_gitignore=False).files
    assert [file.as_posix() for file in files] == ["a.py", "dist/lib/b.py", "out/c.py"]


@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_every_version_of_the_index(here: Path, version: str) -> None:
    (here / ".gitignore").write_text("*\n")
    paths = ["a.py", "out/" + "long/" * 40 + "b.py", "out/文件.py", "out/x y.py", "out/z.py"]
    committed(here, *paths)
    git("update-index", "--index-version", version, at=here)
    if version == "3":
        git("update-index", "--skip-worktree", "out/z.py", at=here)
    assert (here / ".git/index").read_bytes()[7] == int(version)
    assert sorted(found(".")) == sorted(paths)


def test_a_repository_of_sha256(here: Path) -> None:
    (here / ".gitignore").write_text("*\n")
    make(here, "out/a.py")
    git("init", "-q", "--object-format=sha256", at=here)
    git("add", "-f", "out/a.py", at=here)
    assert found(".") == ["out/a.py"]


def signed(data: bytes) -> bytes:
    return data + hashlib.sha1(data).digest()


class TestDamage:
    """What cannot be read tells nothing, and costs little."""

    @pytest.fixture
    def index(self, here: Path) -> Path:
        (here / ".gitignore").write_text("out/\n")
        committed(here, "a.py", "out/b.py")
        assert found(".") == ["a.py", "out/b.py"]
        return here / ".git/index"

    @pytest.mark.parametrize(
        "change",
        [
            lambda data: b"",
            lambda data: data[:50],
            lambda data: data[:-1],
            lambda data: bytes([data[0] ^ 1]) + data[1:],
            lambda data: signed(b"DIRC" + (9).to_bytes(4, "big") + data[8:-20]),
            lambda data: signed(data[:8] + b"\xff" * 4 + data[12:-20]),
            lambda data: signed(data[:-20] + b"link\0\0\0\x04abcd"),
            lambda data: signed(data[:-20] + b"ABCD\xff\xff\xff\xff"),
            lambda data: signed(data[:-20].replace(b"out/b.py", b"../../b")),
        ],
    )
    def test_is_as_if_git_tracked_nothing(self, index: Path, change: object) -> None:
        index.write_bytes(change(index.read_bytes()))  # type: ignore[operator]
        assert found(".") == ["a.py"]

    def test_it_may_be_no_file(self, index: Path, tmp_path: Path) -> None:
        index.rename(tmp_path / "elsewhere")
        index.symlink_to(tmp_path / "elsewhere")
        assert found(".") == ["a.py"]
        index.unlink()
        os.mkfifo(index)
        assert found(".") == ["a.py"]

    def test_any_bytes_end_soon(self, index: Path) -> None:
        data = index.read_bytes()[:-20]
        chance = random.Random(5)
        for _ in range(2_000):
            damaged = bytearray(data)
            for _ in range(chance.randrange(1, 4)):
                damaged[chance.randrange(len(damaged))] = chance.randrange(256)
            with contextlib.suppress(UnreadableIndexError):
                parse_index(signed(bytes(damaged)))

    def test_paths_that_repeat_each_other_are_not_kept(self) -> None:
        """Version 4 writes of a path only what is new: a small file may hold long paths."""
        status = bytes(40) + bytes(20)
        first = status + b"\0\0\0" + b"x/" * 2_000 + b"a\0"
        further = status + b"\0\0\x01b\0"
        number = 300_000
        header = b"DIRC" + (4).to_bytes(4, "big") + (number + 1).to_bytes(4, "big")
        started = time.perf_counter()
        with pytest.raises(UnreadableIndexError):
            parse_index(signed(header + first + further * number))
        assert time.perf_counter() - started < 5

    @pytest.mark.parametrize("text", ["", "gitdir: ", "gitdir: /", "gitdir: .git", "x" * 20_000])
    def test_a_git_file_that_leads_nowhere(self, here: Path, text: str) -> None:
        make(here, "a.py", "sub/b.py")
        (here / "sub/.git").write_text(text)
        assert found(".") == ["a.py", "sub/b.py"]


def test_a_migrated_copy_has_all_that_git_tracks_fixed(here: Path) -> None:
    """Its history is not copied with it, so the source says what counts."""
    src = here / "src"
    src.mkdir()
    (src / ".gitignore").write_text("out/\n")
    committed(src, "a.py", "out/b.py", "dist/lib/c.py", "venv/d.py")
    make(src, "out/new.py", "build/lib/new.py", ".venv/lib/e.py")
    assert invoke("migrate", "src", "-o", "dst")[0] == 0
    fixed = CODE.replace("cuda", "npu").replace(
        "torch\n", "torch\nimport torch_npu  # noqa: F401\n", 1
    )
    for path in ("a.py", "out/b.py", "dist/lib/c.py", "venv/d.py"):
        assert (here / "dst" / path).read_text() == fixed, path
    for path in ("out/new.py", "build/lib/new.py"):
        assert (here / "dst" / path).read_text() == CODE, path
    assert not (here / "dst/.venv").exists()


def test_ten_thousand_files_cost_little(here: Path) -> None:
    for folder in range(100):
        make(here, *(f"p{folder}/module_{number}.py" for number in range(100)))
    before = time.process_time()
    assert len(found(".")) == 10_000
    without = time.process_time() - before
    git("init", "-q", at=here)
    git("add", "-A", at=here)
    before = time.process_time()
    assert len(found(".")) == 10_000
    assert time.process_time() - before < without * 3 + 0.2
