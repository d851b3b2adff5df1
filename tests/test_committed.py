"""`fix` compares files with what is committed, and runs nothing that a repository names."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from commands import CODE, command, git, invoke
from npulens.workspace.files.git import GitError, GitTrees

pytestmark = [
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
    pytest.mark.skipif(os.name == "nt", reason="programs here are shell scripts"),
]


@pytest.fixture(autouse=True)
def here(inner: Path) -> Path:
    return inner


def commit(folder: Path, *options: str) -> None:
    git("init", "-q", *options, at=folder)
    git("add", "-A", at=folder)
    git("commit", "-qm", "x", at=folder)


@pytest.fixture
def tree(here: Path) -> Path:
    (here / "a.py").write_text(CODE)
    (here / "sub").mkdir()
    (here / "sub/b.txt").write_text("text\n")
    (here / "link").symlink_to("a.py")
    commit(here)
    return here


def is_changed(folder: Path) -> bool:
    return bool(GitTrees([folder / "a.py"]).changed)


def touch(folder: Path) -> None:
    """Let no file have the time that git knows, so that each has to be read."""
    for path in folder.rglob("*"):
        if ".git" not in path.parts and path.is_file() and not path.is_symlink():
            os.utime(path, (1_000_000_000, 1_000_000_000))


class TestPrograms:
    """Of a repository that came with a project, say in an archive."""

    @pytest.fixture
    def program(self, tmp_path: Path) -> str:
        file = tmp_path / "program"
        file.write_text(f"#!/bin/sh\ntouch '{tmp_path}/ran'\ncat\n")
        file.chmod(0o755)
        return str(file)

    def fixed(self, tree: Path, tmp_path: Path) -> None:
        """Fix, with every file to be read again, and see that no program was run."""
        touch(tree)
        (tmp_path / "ran").unlink(missing_ok=True)
        result = command("fix")
        assert not (tmp_path / "ran").exists()
        assert (result.returncode, result.stderr) == (0, b"")
        assert "torch_npu" in (tree / "a.py").read_text()

    def test_the_program_would_run(self, tree: Path, tmp_path: Path, program: str) -> None:
        git("config", "filter.x.clean", program, at=tree)
        (tree / ".git/info/attributes").write_text("* filter=x\n")
        touch(tree)
        git("status", at=tree)
        assert (tmp_path / "ran").exists()

    @pytest.mark.parametrize("kind", ["clean", "smudge", "process"])
    @pytest.mark.parametrize("place", [".git/info/attributes", ".gitattributes"])
    def test_filters(self, tree: Path, tmp_path: Path, program: str, kind: str, place: str) -> None:
        (tree / place).write_text("* filter=x\n")
        if place == ".gitattributes":
            commit(tree)
        git("config", f"filter.x.{kind}", program, at=tree)
        git("config", "filter.x.required", "true", at=tree)
        self.fixed(tree, tmp_path)

    @pytest.mark.family(6)
    @pytest.mark.parametrize(
        "key",
        [
            *("core.fsmonitor", "core.pager", "pager.status", "pager.ls-tree", "core.editor"),
            *("core.sshCommand", "core.gitProxy", "credential.helper", "diff.external"),
            *("alias.ls-tree", "alias.check-attr", "gpg.program", "core.askPass"),
            *("uploadpack.packObjectsHook", "core.alternateRefsCommand"),
        ],
    )
    @pytest.mark.parametrize("is_included", [False, True])
    def test_settings(
        self, tree: Path, tmp_path: Path, program: str, key: str, is_included: bool
    ) -> None:
        value = f"!{program}" if key.startswith("alias") else program
        if is_included:
            git("config", "--file", str(tree / ".git/more"), key, value)
            git("config", "include.path", "more", at=tree)
        else:
            git("config", key, value, at=tree)
        self.fixed(tree, tmp_path)

    def test_conversions_for_differences(self, tree: Path, tmp_path: Path, program: str) -> None:
        (tree / ".git/info/attributes").write_text("* diff=x merge=x\n")
        for key in ("diff.x.textconv", "diff.x.command", "merge.x.driver"):
            git("config", key, program, at=tree)
        self.fixed(tree, tmp_path)

    @pytest.mark.parametrize("folder", ["hooks", "elsewhere"])
    def test_hooks(self, tree: Path, tmp_path: Path, program: str, folder: str) -> None:
        place = tree / ".git" / folder
        place.mkdir(exist_ok=True)
        git("config", "core.hooksPath", str(place), at=tree)
        for name in ("post-index-change", "fsmonitor-watchman", "post-checkout", "pre-commit"):
            shutil.copy(program, place / name)
        self.fixed(tree, tmp_path)

    def test_a_submodule_with_its_own(self, tree: Path, tmp_path: Path, program: str) -> None:
        library = tmp_path / "library"
        library.mkdir()
        (library / "c.py").write_text(CODE)
        commit(library)
        git("submodule", "add", "-q", str(library), "sub/library", at=tree)
        git("commit", "-qm", "y", at=tree)
        inner = tree / "sub/library"
        for key in ("core.fsmonitor", "filter.x.clean", "core.sshCommand"):
            git("config", key, program, at=inner)
        (tree / ".git/modules/sub/library/info").mkdir(exist_ok=True)
        (tree / ".git/modules/sub/library/info/attributes").write_text("* filter=x\n")
        self.fixed(tree, tmp_path)
        assert "torch_npu" in (inner / "c.py").read_text()

    def test_missing_objects_are_not_fetched(
        self, tree: Path, tmp_path: Path, program: str
    ) -> None:
        for key, value in (
            ("extensions.partialClone", "origin"),
            ("remote.origin.url", f"ext::{program}"),
            ("remote.origin.promisor", "true"),
            ("remote.origin.uploadpack", program),
            ("protocol.ext.allow", "always"),
        ):
            git("config", key, value, at=tree)
        name = git("rev-parse", "HEAD^{tree}", at=tree).strip()
        (tree / ".git/objects" / name[:2] / name[2:]).unlink()
        result = command("fix")
        assert not (tmp_path / "ran").exists()
        assert result.returncode == 2
        assert b"nothing is fixed: git refuses: " in result.stderr

    def test_a_program_called_git(self, tree: Path, tmp_path: Path, program: str) -> None:
        shutil.copy(program, tree / "git")
        commit(tree)
        touch(tree)
        path = f".:{os.environ['PATH']}"
        assert command("fix", environment={"PATH": path}).returncode == 0
        assert not (tmp_path / "ran").exists()


def edit(tree: Path) -> None:
    (tree / "sub/b.txt").write_text("other\n")


def edit_to_the_same_size(tree: Path) -> None:
    (tree / "sub/b.txt").write_text("TEXT\n")


def stage(tree: Path) -> None:
    edit(tree)
    git("add", "-A", at=tree)


def stage_and_take_back(tree: Path) -> None:
    stage(tree)
    (tree / "sub/b.txt").write_text("text\n")


def remove(tree: Path) -> None:
    (tree / "sub/b.txt").unlink()


def stage_removal(tree: Path) -> None:
    git("rm", "-q", "--cached", "sub/b.txt", at=tree)


def add_a_file(tree: Path) -> None:
    (tree / "new.py").write_text(CODE)
    git("add", "new.py", at=tree)


def promise_a_file(tree: Path) -> None:
    (tree / "new.py").write_text(CODE)
    git("add", "-N", "new.py", at=tree)


def lead_elsewhere(tree: Path) -> None:
    (tree / "link").unlink()
    (tree / "link").symlink_to("sub/b.txt")


def replace_by_a_link(tree: Path) -> None:
    (tree / "sub/b.txt").unlink()
    (tree / "sub/b.txt").symlink_to("../a.py")


def replace_by_a_folder(tree: Path) -> None:
    (tree / "sub/b.txt").unlink()
    (tree / "sub/b.txt").mkdir()


def replace_by_a_pipe(tree: Path) -> None:
    (tree / "sub/b.txt").unlink()
    os.mkfifo(tree / "sub/b.txt")


def stage_a_mode(tree: Path) -> None:
    git("update-index", "--chmod=+x", "sub/b.txt", at=tree)


def leave_a_merge(tree: Path) -> None:
    git("checkout", "-qb", "other", at=tree)
    stage(tree)
    git("commit", "-qm", "y", at=tree)
    git("checkout", "-q", "-", at=tree)
    (tree / "sub/b.txt").write_text("third\n")
    git("commit", "-qam", "z", at=tree)
    with pytest.raises(subprocess.CalledProcessError):
        git("merge", "-q", "other", at=tree)


CHANGES = [
    *(edit, edit_to_the_same_size, stage, stage_and_take_back, remove, stage_removal, add_a_file),
    *(promise_a_file, lead_elsewhere, replace_by_a_link, replace_by_a_folder, replace_by_a_pipe),
    *(stage_a_mode, leave_a_merge),
]


@pytest.mark.family(5)
@pytest.mark.parametrize("change", CHANGES)
def test_changes_are_seen_as_git_sees_them(tree: Path, change: Callable[[Path], None]) -> None:
    change(tree)
    assert git("status", "--porcelain", "--untracked-files=no", at=tree) != ""
    assert is_changed(tree)
    assert command("fix").returncode == 2
    assert (tree / "a.py").read_text() == CODE


def untouched(tree: Path) -> None:
    pass


def refreshed(tree: Path) -> None:
    touch(tree)
    git("status", at=tree)


def skipped(tree: Path) -> None:
    git("update-index", "--skip-worktree", "sub/b.txt", at=tree)
    remove(tree)


def assumed(tree: Path) -> None:
    git("update-index", "--assume-unchanged", "sub/b.txt", at=tree)
    edit(tree)


def packed(tree: Path) -> None:
    git("gc", "-q", at=tree)
    git("pack-refs", "--all", at=tree)


def detached(tree: Path) -> None:
    git("checkout", "-q", "--detach", at=tree)


def version_4(tree: Path) -> None:
    git("update-index", "--index-version", "4", at=tree)


def sparse(tree: Path) -> None:
    (tree / "far/deep").mkdir(parents=True)
    (tree / "far/deep/c.py").write_text(CODE)
    commit(tree)
    git("sparse-checkout", "init", "--cone", "--sparse-index", at=tree)
    git("sparse-checkout", "set", "sub", at=tree)
    assert not (tree / "far").exists()


def untracked(tree: Path) -> None:
    (tree / "new.py").write_text(CODE)


def without_sum(tree: Path) -> None:
    git("config", "index.skipHash", "true", at=tree)
    git("update-index", "--force-write-index", at=tree)


SAME = [untouched, touch, refreshed, skipped, assumed, packed, detached, version_4, sparse]


@pytest.mark.parametrize("step", [*SAME, untracked, without_sum])
def test_what_is_committed_is_no_change(tree: Path, step: Callable[[Path], None]) -> None:
    step(tree)
    assert not is_changed(tree)
    assert git("status", "--porcelain", "--untracked-files=no", at=tree) == ""


def test_repositories_of_sha256(here: Path) -> None:
    (here / "a.py").write_text(CODE)
    commit(here, "--object-format=sha256")
    touch(here)
    assert not is_changed(here)
    (here / "a.py").write_text(CODE * 2)
    assert is_changed(here)


def test_before_the_first_commit(here: Path) -> None:
    (here / "a.py").write_text(CODE)
    git("init", "-q", at=here)
    trees = GitTrees([here / "a.py"])
    assert trees.changed == []
    assert trees.is_unknown(here / "a.py")
    git("add", "a.py", at=here)
    assert is_changed(here)


def test_a_linked_working_tree(tree: Path, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    git("worktree", "add", "-q", str(linked), at=tree)
    touch(linked)
    assert not is_changed(linked)
    edit(linked)
    assert is_changed(linked)
    assert not is_changed(tree)


def test_a_submodule_at_another_commit(tree: Path, tmp_path: Path) -> None:
    library = tmp_path / "library"
    library.mkdir()
    (library / "a.py").write_text(CODE)
    commit(library)
    git("submodule", "add", "-q", str(library), "library", at=tree)
    git("commit", "-qm", "y", at=tree)
    assert not is_changed(tree)
    (tree / "library/a.py").write_text(CODE * 2)
    assert is_changed(tree / "library")
    git("commit", "-qam", "z", at=tree / "library")
    assert not is_changed(tree / "library")
    assert is_changed(tree)


def test_settings_of_the_environment_do_not_lead_elsewhere(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a hook of git, where variables name another index."""
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_WORK_TREE"):
        monkeypatch.setenv(name, str(tmp_path / "nothing"))
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "nonsense")
    assert not is_changed(tree)


class TestTranslations:
    """Where git stores something else than the file holds."""

    def test_line_ends(self, here: Path) -> None:
        (here / "a.py").write_bytes(CODE.replace("\n", "\r\n").encode())
        git("init", "-q", at=here)
        git("config", "core.autocrlf", "true", at=here)
        commit(here)
        assert b"\r" not in subprocess.check_output(["git", "show", "HEAD:a.py"], cwd=here)
        touch(here)
        assert not is_changed(here)
        (here / "a.py").write_bytes(CODE.replace("\n", "\r\n").encode() + b"x = 1\r\n")
        assert is_changed(here)

    def test_git_lfs(self, here: Path) -> None:
        pointer = (
            "version https://git-lfs.github.com/spec/v1\n"
            "oid sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881\nsize 1\n"
        )
        (here / "a.py").write_text(CODE)
        (here / "model.bin").write_text(pointer)
        (here / ".gitattributes").write_text("*.bin filter=lfs diff=lfs merge=lfs -text\n")
        git("init", "-q", at=here)
        for kind in ("clean", "smudge", "process"):  # as where it is not installed
            git("config", f"filter.lfs.{kind}", "", at=here)
        commit(here)
        assert not is_changed(here)
        (here / "model.bin").write_text("x")
        assert not is_changed(here)

    def test_what_only_a_filter_could_tell_is_said(self, here: Path, tmp_path: Path) -> None:
        (here / "a.py").write_text(CODE)
        (here / "n.txt").write_text("one two\n")
        (here / ".gitattributes").write_text("*.txt filter=strip\n")
        git("init", "-q", at=here)
        git("config", "filter.strip.clean", "sed s/two//", at=here)
        commit(here)
        assert not is_changed(here)
        touch(here)
        result = command("fix")
        assert result.returncode == 2
        assert result.stderr.decode() == (
            "npulens: nothing is fixed: only a filter, and none is run, could tell whether "
            f"{here}/n.txt is committed; --allow-dirty does without git\n"
        )
        (here / "a.py").write_text(CODE * 2)  # this is known without one
        assert is_changed(here)


@pytest.mark.parametrize(
    "damage",
    [
        lambda tree: (tree / ".git/HEAD").write_text("ref: ../../x\n"),
        lambda tree: (tree / ".git/HEAD").write_text("nonsense\n"),
        lambda tree: (tree / ".git/HEAD").unlink(),
        lambda tree: (tree / ".git/index").write_bytes(b"DIRC"),
        lambda tree: shutil.rmtree(tree / ".git/objects"),
        lambda tree: (
            (tree / ".git/HEAD").write_text("ref: refs/heads/x\n")
            and (tree / ".git/refs/heads/x").symlink_to("x")
        ),
    ],
)
def test_damage_is_a_sentence(tree: Path, damage: Callable[[Path], object]) -> None:
    damage(tree)
    with pytest.raises(GitError):
        GitTrees([tree / "a.py"])
    code, output, errors = invoke("fix")
    assert (code, output, len(errors.splitlines())) == (2, "", 1)
    assert errors.startswith("npulens: nothing is fixed: ")


@pytest.mark.skipif(sys.platform == "darwin", reason="names there are of other characters")
def test_names_that_are_any_bytes(here: Path) -> None:
    (here / "a.py").write_text(CODE)
    Path(os.fsdecode(os.fsencode(here) + b"/\xff \n\xe6\x96.py")).write_text(CODE)
    commit(here)
    touch(here)
    assert not is_changed(here)
