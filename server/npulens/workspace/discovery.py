"""Which files to check."""

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_SUFFIXES = (".py", ".pyi")
_SKIPPED_FOLDERS = frozenset(
    """
    .bzr .direnv .eggs .git .hg .ipynb_checkpoints .mypy_cache .nox .pytest_cache .ruff_cache .svn
    .tox .venv __pycache__ build dist node_modules site-packages venv
    """.split()
)
"""What a walk does not enter; a user who wants one names it."""
_VIRTUAL_ENVIRONMENT_MARKER = "pyvenv.cfg"


@dataclass
class Discovery:
    """What was found.

    Attributes:
        files: The files, each once, those of a folder sorted by path.
        problems: A sentence for each path or folder that cannot be used.
    """

    files: list[Path] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def discover(paths: Sequence[str], exclude: Sequence[str], root: Path) -> Discovery:
    """The files among `paths`, and the Python files below the folders among them.

    A file named is always taken. Below a folder, links to folders are not followed, nor links to
    files outside of it.

    Args:
        paths: What the user names.
        exclude: Patterns as in `.gitignore` for what to leave out below folders.
        root: The folder to which these patterns are relative.
    """
    found = Discovery()
    seen: set[str] = set()

    def add(file: str) -> None:
        if (real := os.path.realpath(file)) not in seen:
            seen.add(real)
            found.files.append(Path(file))

    is_excluded = _exclusion(exclude, root)
    for path in paths:
        try:
            mode = os.stat(path).st_mode
        except OSError as error:
            found.problems.append(_problem(path, error))
            continue
        if stat.S_ISREG(mode):
            add(path)
        elif stat.S_ISDIR(mode):
            is_empty = True
            for file in _python_files(path, is_excluded, found.problems):
                is_empty = False
                add(file)
            if is_empty:
                but = " that is not excluded" if exclude else ""
                found.problems.append(f"{path}: no Python file{but} in this folder")
        else:
            found.problems.append(f'{path}: neither a file nor a folder; "-" reads standard input')
    return found


def _problem(path: str, error: OSError) -> str:
    return f"{path or repr(path)}: {error.strerror}"


_Exclusion = Callable[[str], bool]
"""Whether a path, with a slash behind it if it is a folder, is excluded."""


def _exclusion(patterns: Sequence[str], root: Path) -> _Exclusion:
    if not patterns:
        return lambda path: False
    from pathspec import GitIgnoreSpec

    spec = GitIgnoreSpec.from_lines(patterns)
    prefix = os.path.join(os.path.abspath(root), "")

    def is_excluded(path: str) -> bool:
        absolute = os.path.abspath(path)
        if not absolute.startswith(prefix):
            return False
        slash = "/" if path.endswith("/") else ""
        return spec.match_file(absolute[len(prefix) :].replace(os.sep, "/") + slash)

    return is_excluded


def _python_files(top: str, is_excluded: _Exclusion, problems: list[str]) -> Iterator[str]:
    real_top = os.path.join(os.path.realpath(top), "")
    folders = [top]
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(folder) as iterator:
                entries = sorted(iterator, key=lambda entry: entry.name)
        except OSError as error:
            problems.append(_problem(folder, error))
            continue
        if folder != top and any(entry.name == _VIRTUAL_ENVIRONMENT_MARKER for entry in entries):
            continue
        subfolders = []
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name not in _SKIPPED_FOLDERS and not is_excluded(entry.path + "/"):
                    subfolders.append(entry.path)
            elif entry.name.endswith(_SUFFIXES) and not is_excluded(entry.path):
                if entry.is_file(follow_symlinks=False) or _is_file_within(entry, real_top):
                    yield entry.path
        folders += reversed(subfolders)


def _is_file_within(link: "os.DirEntry[str]", real_top: str) -> bool:
    return os.path.isfile(link.path) and os.path.realpath(link.path).startswith(real_top)
