"""Which files to check."""

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from npulens.text.kinds import Kind, kind_by_first_line, kind_by_name
from npulens.workspace.configuration import absolute
from npulens.workspace.files.gitignore import Ignores, ignores_above
from npulens.workspace.files.patterns import Patterns, read_pattern

_NOT_WALKED = (".pyw", ".jsonc")
_LOCK_FILES = frozenset(
    {"package-lock.json", "package.json", "tsconfig.json", "composer.json", "pnpm-lock.yaml"}
    | {"conda-lock.yml", "npulens.toml", "tokenizer.json", "vocab.json", "tokenizer_config.json"}
)
"""Files that people write with tools, and that say nothing of devices."""
_LARGEST_SETTINGS = 256_000
"""In bytes; below a folder, larger files of settings are data. One that is named is read."""
_SHEBANG_LENGTH = 200
_SKIPPED_FOLDERS = {
    ".bzr",
    ".direnv",
    ".eggs",
    ".git",
    ".hg",
    ".ipynb_checkpoints",
    ".mypy_cache",
    ".nox",
    ".npulens_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".svn",
    ".tox",
    ".venv",
    "__pycache__",
    "build",
    "dist",
    "node_modules",
    "npulens-migration",
    "site-packages",
    "venv",
}
"""What a walk does not enter; a user who wants one names it."""
_VIRTUAL_ENVIRONMENT_MARKER = "pyvenv.cfg"


@dataclass
class Discovery:
    """What was found.

    Attributes:
        files: The files, each once, those of a folder in a fixed order.
        folders: The folders that were named.
        problems: The paths and folders that cannot be used, and why.
    """

    files: list[Path] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)


def discover(
    paths: Sequence[str],
    exclude: Sequence[str],
    root: Path,
    respect_gitignore: bool = True,
    force_exclude: bool = False,
) -> Discovery:
    """The files among `paths`, and those below the folders among them that npulens reads.

    A file named is taken, unless `force_exclude` is asked for. Below a folder, links to folders are
    not followed, nor links to files outside of it.

    Args:
        paths: What the user names.
        exclude: Patterns as in `.gitignore` for what to leave out below folders.
        root: The folder to which these patterns are relative.
        respect_gitignore: Whether what git ignores is left out below folders.
        force_exclude: Whether what these patterns name, and files that tools write, are left out
            even where they are named, as by a hook that names all changed files.
    """
    found = Discovery()
    seen: set[str] = set()

    def add(file: str, real: str) -> None:
        if real not in seen:
            seen.add(real)
            found.files.append(Path(file))

    is_excluded = _exclusion(exclude, root)
    for path in paths:
        if force_exclude and (is_excluded(path) or os.path.basename(path) in _LOCK_FILES):  # noqa: PTH119
            continue
        try:
            # pathlib takes an empty path for the current folder, which an unset variable of a
            # shell script does not mean.
            mode = os.stat(path).st_mode  # noqa: PTH116
        except OSError as error:
            found.problems[path] = str(error.strerror)
            continue
        if stat.S_ISREG(mode):
            add(path, os.path.realpath(path))
        elif stat.S_ISDIR(mode):
            found.folders.append(Path(path))
            is_empty = True
            ignores = ignores_above(os.path.realpath(path)) if respect_gitignore else None
            for file, real in _files_below(str(Path(path)), is_excluded, ignores, found.problems):
                is_empty = False
                add(file, real)
            if is_empty:
                but = " that is not excluded" if exclude else ""
                if ignores and any(_files_below(str(Path(path)), is_excluded, None, {})):
                    but = " that git does not ignore (respect-gitignore = false takes them)"
                found.problems[path] = f"no Python file{but} in this folder"
        else:
            found.problems[path] = 'neither a file nor a folder; "-" reads standard input'
    return found


_Exclusion = Callable[[str], bool]
"""Whether a path, with a slash at its end if it is a folder, is excluded."""


def _exclusion(patterns: Sequence[str], root: Path) -> _Exclusion:
    if not patterns:
        return lambda path: False
    excluding = Patterns(map(read_pattern, patterns))
    root = absolute(root)

    def is_excluded(path: str) -> bool:
        try:
            relative = absolute(Path(path)).relative_to(root).as_posix()
        except ValueError:
            return False
        return excluding.ignores(relative + "/" if path.endswith("/") else relative) is True

    return is_excluded


def _is_wanted(entry: os.DirEntry[str]) -> bool:
    """Whether a file below a folder is one to check, by its name and, if need be, first line."""
    kind = kind_by_name(entry.name)
    if kind is Kind.PYTHON:
        return not entry.name.endswith(_NOT_WALKED)
    if kind is None:
        return "." not in entry.name and _starts_as_script(entry)
    if entry.name in _LOCK_FILES or entry.name.endswith(_NOT_WALKED):
        return False
    try:
        return kind in (Kind.SHELL, Kind.NOTEBOOK) or entry.stat().st_size <= _LARGEST_SETTINGS
    except OSError:
        return True  # whoever reads it says why that fails


def _starts_as_script(entry: os.DirEntry[str]) -> bool:
    try:
        if not entry.is_file(follow_symlinks=False) or not os.access(entry.path, os.R_OK):
            return False
        with Path(entry.path).open("rb") as file:
            start = file.read(_SHEBANG_LENGTH)
    except OSError:
        return False
    line = start.partition(b"\n")[0].decode("latin-1")
    return kind_by_first_line(line) is not None


def _files_below(
    top: str, is_excluded: _Exclusion, above: Ignores | None, problems: dict[str, str]
) -> Iterator[tuple[str, str]]:
    """Each file below a folder, and its path with all links resolved.

    `above` is what git ignores in the folder, or `None` if that does not matter.
    """
    real_top = os.path.realpath(top).rstrip(os.sep)
    folders = [(top, real_top, above)]
    while folders:
        folder, real_folder, ignores = folders.pop()
        try:
            with os.scandir(folder) as iterator:
                entries = sorted(iterator, key=lambda entry: entry.name)
        except OSError as error:
            problems[folder] = str(error.strerror)
            continue
        if folder != top and any(entry.name == _VIRTUAL_ENVIRONMENT_MARKER for entry in entries):
            continue
        if ignores is not None:
            ignores = ignores.inside(real_folder, [entry.name for entry in entries])
        subfolders = []
        for entry in entries:
            real = f"{real_folder}{os.sep}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                if entry.name in _SKIPPED_FOLDERS or is_excluded(entry.path + "/"):
                    continue
                if ignores is None or not ignores.ignores(real + "/"):
                    subfolders.append((entry.path, real, ignores))
                continue
            if not _is_wanted(entry) or is_excluded(entry.path):
                continue
            if ignores is not None and ignores.ignores(real):
                continue
            if entry.is_file(follow_symlinks=False):
                yield entry.path, real
            elif entry.is_symlink():
                target = os.path.realpath(entry.path)
                if target.startswith(real_top + os.sep) and Path(target).is_file():
                    yield entry.path, target
        folders += reversed(subfolders)
