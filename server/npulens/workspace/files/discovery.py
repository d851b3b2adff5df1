"""Which files to check."""

import os
import re
import stat
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from npulens.catalog.messages import message, os_error
from npulens.catalog.model import LocalizedText
from npulens.text.kinds import Kind, kind_by_first_line, kind_by_name
from npulens.workspace.files import folders
from npulens.workspace.files.gitignore import Ignores, ignores_above
from npulens.workspace.files.not_read import NotRead, Reason
from npulens.workspace.settings.configuration import Configuration, absolute
from npulens.workspace.settings.path_patterns import Patterns, read_pattern

_NOT_WALKED = (".pyw", ".jsonc")
_LOCK_FILES = frozenset(
    {"package-lock.json", "package.json", "tsconfig.json", "composer.json", "pnpm-lock.yaml"}
    | {"conda-lock.yml", "npulens.toml", "tokenizer.json", "vocab.json", "tokenizer_config.json"}
    | {"Cargo.toml", "pyvenv.cfg"}
)
"""Files that people write with tools, and that say nothing of devices."""
_LARGEST_SETTINGS = 256_000
"""In bytes; below a folder, larger files of settings are data. One that is named is read."""
_START_LENGTH = 2_000
_PYTHON_START = re.compile(
    r"\A\ufeff?(?:[ \t]*(?:#[^\n]*)?\r?\n)*"
    r"(?:(?P<quotes>\"{3}|'{3})(?:[^\\]|\\.)*?(?P=quotes)(?:[ \t]*(?:#[^\n]*)?\r?\n)+)?"
    r"(?:import[ \t]+[A-Za-z_][\w.]*(?:[ \t]+as[ \t]+\w+)?"
    r"(?:[ \t]*,[ \t]*[A-Za-z_][\w.]*(?:[ \t]+as[ \t]+\w+)?)*[ \t]*(?:#[^\n]*)?\r?\n"
    r"|from[ \t]+[.\w]+[ \t]+import[ \t]+[(*A-Za-z_])"
)
"""A program of Python whose name says nothing begins with an import, after comments."""
_NEVER_ENTERED = folders.HISTORY | folders.CACHES | {folders.LOG_FOLDER}
"""Folders below one that is named that hold nothing to read, whatever git says."""
_MOST_LOOKED_AT = 1_000
"""So many names in a folder show whether it holds anything that is read."""


@dataclass
class Discovery:
    """What was found.

    Attributes:
        files: The files, each once, those of a folder in a fixed order.
        problems: The paths and folders that cannot be used, and why.
        passed_over: The files and folders below those that are not taken, and why.
    """

    files: list[Path] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)
    problems: dict[str, LocalizedText] = field(default_factory=dict)
    passed_over: list[NotRead] = field(default_factory=list)

    def not_read(self) -> list[NotRead]:
        """What is passed over, but for folders that hold nothing that npulens reads."""
        return [
            each
            for each in self.passed_over
            if not each.is_folder or each.reason is Reason.OUTSIDE or _may_contain_wanted(each.path)
        ]


def discover(
    paths: Sequence[str],
    exclude: Sequence[str],
    root: Path,
    respect_gitignore: bool = True,
    force_exclude: bool = False,
    original: Path | None = None,
) -> Discovery:
    """The files among `paths`, and those below the folders among them that npulens reads.

    A file named is taken, unless `force_exclude` is requested. Below a folder, links to folders are
    not followed, nor links to files outside of it. What git tracks is taken, whatever it is called
    and whatever `.gitignore` says of it.

    Args:
        paths: What the user names.
        exclude: Patterns as in `.gitignore` for what to leave out below folders.
        root: The folder to which these patterns are relative.
        respect_gitignore: Whether what git ignores is left out below folders.
        force_exclude: Whether what these patterns name, and files that tools write, are left out
            even where they are named, as by a hook that names all changed files.
        original: The folder of which the one that is named is a copy without its history: git
            runs there.
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
            found.problems[path] = os_error(error)
            continue
        if stat.S_ISREG(mode):
            add(path, os.path.realpath(path))
        elif stat.S_ISDIR(mode):
            found.folders.append(Path(path))
            walk = _Walk(path, is_excluded, respect_gitignore, original, found)
            walked = list(walk.files())
            # A file has its own name, not that of a link to it, whichever comes first.
            for is_link in (False, True):
                for each in walked:
                    if each.is_link is is_link:
                        add(each.path, each.real)
            if not walked:
                found.problems[path] = _nothing_in(found.passed_over, exclude)
        else:
            found.problems[path] = message("error.neither-file-nor-folder")
    return found


def discover_for(
    configuration: Configuration,
    paths: Sequence[str],
    force_exclude: bool = False,
    original: Path | None = None,
) -> Discovery:
    """The same with what a configuration leaves out."""
    exclude, ignores = configuration.exclude, configuration.respect_gitignore
    return discover(paths, exclude, configuration.root, ignores, force_exclude, original)


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


def _nothing_in(passed_over: Sequence[NotRead], exclude: Sequence[str]) -> LocalizedText:
    """That no file of a folder is read, and what could be done about it."""
    if any(each.reason is Reason.IGNORED for each in passed_over):
        return message("error.all-ignored")
    return message("error.all-excluded" if exclude else "error.no-python-file")


def _is_wanted(entry: os.DirEntry[str]) -> bool:
    """Whether a file below a folder is of a kind that is read, by its name or how it begins."""
    if _has_wanted_name(entry.name):
        return True
    no_kind = kind_by_name(entry.name) is None and "." not in entry.name
    return no_kind and _starts_as_script(entry)


def _has_wanted_name(name: str) -> bool:
    if name == folders.STATE_FILE:
        return False
    known = kind_by_name(name) is not None
    return known and name not in _LOCK_FILES and not name.endswith(_NOT_WALKED)


def _is_data(entry: os.DirEntry[str]) -> bool:
    """Whether a file of settings is too large for what a person writes."""
    kind = kind_by_name(entry.name)
    if kind in (None, Kind.PYTHON, Kind.SHELL, Kind.NOTEBOOK):
        return False
    try:
        return entry.stat().st_size > _LARGEST_SETTINGS
    except OSError:
        return False  # whoever reads it says why that fails


def _may_contain_wanted(folder: str) -> bool:
    """Whether a folder holds a file that is read, or so many others that nobody looks further."""
    left = _MOST_LOOKED_AT
    pending = deque([folder])
    while pending:
        try:
            with os.scandir(pending.popleft()) as entries:
                for entry in entries:
                    left -= 1
                    if not left or _has_wanted_name(entry.name):
                        return True
                    if entry.is_dir(follow_symlinks=False) and entry.name not in _NEVER_ENTERED:
                        pending.append(entry.path)
        except OSError:  # noqa: PERF203 (nobody looks further)
            return True
    return False


def _starts_as_script(entry: os.DirEntry[str]) -> bool:
    try:
        if not entry.is_file(follow_symlinks=False) or not os.access(entry.path, os.R_OK):
            return False
        with Path(entry.path).open("rb") as file:
            start = file.read(_START_LENGTH).decode("latin-1")
    except OSError:
        return False
    is_script = kind_by_first_line(start.partition("\n")[0]) is not None
    return is_script or _PYTHON_START.match(start) is not None


class _Place(NamedTuple):
    """A folder on the way of a walk, or a file in one.

    Attributes:
        path: As it is named.
        real: With all links resolved.
        known: The same where git knows it, which is elsewhere if this is a copy.
    """

    path: str
    real: str
    known: str
    ignores: Ignores


class _Walked(NamedTuple):
    """A file that is taken: its path, that with all links resolved, and whether it is a link."""

    path: str
    real: str
    is_link: bool


class _Walk:
    """The way through a folder that was named."""

    def __init__(
        self,
        top: str,
        is_excluded: _Exclusion,
        respect_gitignore: bool,
        original: Path | None,
        found: Discovery,
    ) -> None:
        self._top = str(Path(top))
        self._real_top = os.path.realpath(top).rstrip(os.sep)
        self._is_excluded = is_excluded
        self._is_copy = original is not None
        self._found = found
        known = os.path.realpath(original or top)
        ignores = ignores_above(known, respect_gitignore)
        self._start = _Place(self._top, self._real_top, known.rstrip(os.sep), ignores)

    def files(self) -> Iterator[_Walked]:
        """Each file that is taken."""
        pending = [self._start]
        while pending:
            folder = pending.pop()
            try:
                with os.scandir(folder.path) as iterator:
                    entries = sorted(iterator, key=lambda entry: entry.name)
            except OSError as error:
                self._found.problems[folder.path] = os_error(error)
                self._pass_over(folder.path, Reason.CANNOT_BE_READ, is_folder=True)
                continue
            ignores = self._inside(folder, [entry.name for entry in entries])
            if ignores is None:
                self._pass_over(folder.path, Reason.ENVIRONMENT, is_folder=True)
                continue
            subfolders: list[_Place] = []
            for entry in entries:
                name = os.sep + entry.name
                inside = _Place(entry.path, folder.real + name, folder.known + name, ignores)
                if entry.is_dir(follow_symlinks=False):
                    subfolders += self._entered(entry.name, inside)
                else:
                    yield from self._taken(entry, inside)
            pending += reversed(subfolders)

    def _inside(self, folder: _Place, names: list[str]) -> Ignores | None:
        """What counts in a folder that holds these names, `None` if it is an environment."""
        ignores = folder.ignores
        is_environment = any(name in names for name in folders.ENVIRONMENT_MARKERS)
        if is_environment and folder is not self._start:
            alone = ignores.tracked_alone(folder.known)
            if alone is None:
                return None
            ignores = alone
        if self._is_copy and os.path.lexists(f"{folder.known}/.git"):
            names = [*names, ".git"]
        return ignores.inside(folder.known, names)

    def _entered(self, name: str, folder: _Place) -> Iterator[_Place]:
        """A folder, if it is looked into."""
        if name in _NEVER_ENTERED:
            return
        reason = self._reason_against(name, folder)
        ignores = folder.ignores.below(folder.known) if reason is None else None
        if reason is not None or ignores is None:
            self._pass_over(folder.path, reason or Reason.IGNORED, is_folder=True)
        else:
            yield folder._replace(ignores=ignores)

    def _reason_against(self, name: str, folder: _Place) -> Reason | None:
        """Why a folder is not looked into, apart from what git ignores."""
        if self._is_excluded(folder.path + "/"):
            return Reason.EXCLUDED
        if name == folders.INSTALLED:
            return Reason.INSTALLED
        if name not in folders.ENVIRONMENTS and name not in folders.BUILT:
            return None
        if folder.ignores.tracked.has_folder(folder.known) or folders.is_source(folder.path):
            return None
        return Reason.ENVIRONMENT if name in folders.ENVIRONMENTS else Reason.BUILT

    def _taken(self, entry: os.DirEntry[str], file: _Place) -> Iterator[_Walked]:
        """A file, if it is read."""
        is_link = entry.is_symlink()
        if is_link and os.path.isdir(entry.path):  # noqa: PTH112 (a loop is no mistake for it)
            if not self._is_inside(os.path.realpath(file.path)):
                self._pass_over(file.path, Reason.OUTSIDE, is_folder=True)
        elif _is_wanted(entry):
            real = os.path.realpath(file.path) if is_link else file.real
            reason = self._reason_against_file(entry, file, real)
            if reason is None:
                yield _Walked(file.path, real, is_link)
            elif not is_link or os.path.exists(real):  # noqa: PTH110 (else there is nothing)
                self._pass_over(file.path, reason)

    def _reason_against_file(
        self, entry: os.DirEntry[str], file: _Place, real: str
    ) -> Reason | None:
        if self._is_excluded(file.path):
            return Reason.EXCLUDED
        if file.ignores.ignores(file.known):
            return Reason.IGNORED
        if not self._is_inside(real):
            return Reason.OUTSIDE
        if not (os.path.isfile(real) if entry.is_symlink() else entry.is_file()):  # noqa: PTH113
            return Reason.SPECIAL
        return Reason.TOO_LARGE if _is_data(entry) else None

    def _is_inside(self, real: str) -> bool:
        return real.startswith(self._real_top + os.sep)

    def _pass_over(self, path: str, reason: Reason, *, is_folder: bool = False) -> None:
        self._found.passed_over.append(NotRead(str(Path(path)), reason, is_folder))
