"""A temporary copy of a project, so that a run leaves the files of the user as they are."""

import os
import shutil
from pathlib import Path

from npulens.catalog.messages import LocalizedError, about, message, os_error

MAX_BYTES = 1 << 30
"""Larger projects hold data or checkpoints, which are not copied for each run."""

_LEFT_OUT = {
    *(".git", ".hg", ".svn", "__pycache__", "node_modules", ".npulens_cache"),
    *(".mypy_cache", ".ruff_cache", ".pytest_cache", ".tox", ".nox"),
}


class CopyError(LocalizedError):
    """The project cannot be copied; the text says why."""


def copy_project(folder: Path, target: Path) -> None:
    """Copy the files of a folder, without version control, caches and environments.

    Symbolic links stay links: data that a link leads to is read where it lies.

    Raises:
        CopyError: It is too large, or cannot be read.
    """
    total = 0
    for current, folders, files in os.walk(folder):
        here = Path(current)
        inside = target / here.relative_to(folder)
        inside.mkdir(parents=True, exist_ok=True)
        for name in list(folders):
            path = here / name
            if name in _LEFT_OUT or (path / "pyvenv.cfg").is_file():
                folders.remove(name)
            elif path.is_symlink():
                folders.remove(name)
                _copy_link(path, inside / name)
        for name in files:
            path = here / name
            try:
                if path.is_symlink():
                    _copy_link(path, inside / name)
                elif path.is_file():  # no pipe and no socket
                    total += path.stat().st_size
                    if total > MAX_BYTES:
                        size = MAX_BYTES >> 30
                        raise CopyError(message("error.too-much-to-copy", folder=folder, size=size))
                    shutil.copy2(path, inside / name)
            except OSError as error:
                problem = message("error.cannot-be-copied", reason=os_error(error))
                raise CopyError(about(path, problem)) from error


def _copy_link(path: Path, copy: Path) -> None:
    """The same link; what it says relative to its own folder is resolved if it leads outside."""
    link = path.readlink()
    leads_up = link.is_absolute() or link.parts[:1] == (os.pardir,)
    copy.symlink_to(os.path.realpath(path) if leads_up else link)
