"""What git knows: whether a change to a file can be taken back."""

import os
from collections.abc import Iterable
from pathlib import Path

from npulens.catalog.messages import LocalizedError, message, os_error
from npulens.workspace.files.committed import CommittedError, first_change
from npulens.workspace.files.git_index import UnreadableIndexError, read_index
from npulens.workspace.files.repository import RepositoryError, repository_at
from npulens.workspace.settings.configuration import absolute


class GitError(LocalizedError):
    """Git cannot say; the text says why, in a part of a sentence."""


class GitTrees:
    """The working trees that some files are in, each queried once."""

    def __init__(self, files: Iterable[Path]) -> None:
        """Find the trees of files; a link counts for what it leads to.

        Raises:
            GitError: It cannot be known what is committed.
        """
        self._roots: dict[str, str | None] = {}
        roots = {self._root(os.path.dirname(_real(file))) for file in files}  # noqa: PTH120
        self._tracked: set[str] = set()
        self.changed: list[str] = []
        for root in sorted(root for root in roots if root is not None):
            self._look_at(root)

    def is_unknown(self, file: Path) -> bool:
        """Whether a file lies in a tree, and git does not keep it."""
        real = _real(file)
        root = self._root(os.path.dirname(real))  # noqa: PTH120
        return root is not None and real.replace(os.sep, "/") not in self._tracked

    def _look_at(self, root: str) -> None:
        repository = repository_at(root)
        if repository is None:
            raise GitError(message("git.no-repository", root=root))
        try:
            index = read_index(repository)
            if first_change(repository, index) is not None:
                self.changed.append(root)
        except UnreadableIndexError as error:
            raise GitError(message("git.unreadable-index", root=root)) from error
        except RepositoryError as error:
            raise GitError(message("git.no-commit", root=root)) from error
        except CommittedError as error:
            raise GitError(error.text) from error
        except OSError as error:  # as where there is no place for temporary files
            raise GitError(message("git.cannot-be-run", reason=os_error(error))) from error
        folder = root.replace(os.sep, "/").rstrip("/")
        self._tracked.update(f"{folder}/{entry.path}" for entry in index.entries)

    def _root(self, folder: str) -> str | None:
        passed = []
        while folder not in self._roots:  # folders may be nested more deeply than calls can be
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
