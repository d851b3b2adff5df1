"""What git knows: whether a change to a file can be taken back."""

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

from npulens.workspace.configuration import absolute


class GitError(Exception):
    """Git cannot say; the text says why, in a part of a sentence."""


class GitTrees:
    """The working trees that some files are in, each asked once."""

    def __init__(self, files: Iterable[Path]) -> None:
        """Find the trees.

        Args:
            files: The files, links among them for what they lead to.

        Raises:
            GitError: Git cannot be asked.
        """
        self._roots: dict[str, str | None] = {}
        roots = {self._root(os.path.dirname(_real(file))) for file in files}  # noqa: PTH120
        self._tracked: set[str] = set()
        self.changed: list[str] = []
        for root in sorted(root for root in roots if root is not None):
            if _git(root, "status", "--porcelain", "-z", "--untracked-files=no"):
                self.changed.append(root)
            listed = _git(root, "ls-files", "-z").split(b"\0")
            self._tracked.update(f"{root}/{os.fsdecode(name)}" for name in listed if name)

    def is_unknown(self, file: Path) -> bool:
        """Whether a file lies in a tree, and git does not keep it."""
        real = _real(file)
        root = self._root(os.path.dirname(real))  # noqa: PTH120
        return root is not None and real not in self._tracked

    def _root(self, folder: str) -> str | None:
        passed = []
        while folder not in self._roots:
            passed.append(folder)
            above = os.path.dirname(folder)  # noqa: PTH120
            if os.path.exists(f"{folder}/.git"):  # noqa: PTH110
                self._roots[folder] = folder
            elif above == folder:
                self._roots[folder] = None
            folder = folder if folder in self._roots else above
        root = self._roots[folder]
        self._roots.update(dict.fromkeys(passed, root))
        return root


def _real(file: Path) -> str:
    return os.path.realpath(absolute(file))


def _git(root: str, *arguments: str) -> bytes:
    # A program that the tree names as its file watcher is not run, and no lock is taken.
    command = ["git", "-c", "core.fsmonitor=false", "--no-optional-locks", "-C", root, *arguments]
    try:
        result = subprocess.run(command, capture_output=True, check=False)
    except OSError as error:
        raise GitError(f"git cannot be run: {error.strerror}") from error
    if result.returncode:
        lines = result.stderr.decode("utf-8", "replace").splitlines() or ["no reason given"]
        raise GitError(f"git refuses: {lines[0]}")
    return result.stdout
