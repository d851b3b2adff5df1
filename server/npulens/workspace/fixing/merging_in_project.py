"""Merging projections of a file, as far as the rest of its project allows."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from npulens.catalog.model import TorchVersion
from npulens.fixes.fix_differences import lines_in
from npulens.fixes.merging.merge_obstacles import Place, line_of, plain_code
from npulens.fixes.merging.merge_refusals import MergeRefusedError
from npulens.fixes.scripts import UnclearError
from npulens.workspace.files.discovery import discover_for
from npulens.workspace.index.contents import read
from npulens.workspace.project.own_modules import project_root
from npulens.workspace.settings.configuration import Configuration, absolute
from npulens.workspace.settings.project_version import requires_older

if TYPE_CHECKING:
    from npulens.fixes.merging.merging import Merged

_OPERATOR = re.compile(r"\bnpu_(?:swi|ge)glu\(")
_JOINED = re.compile(r"\bnpu_(?:swi|ge)glu\(\s*(?:\w+\.)?(?:cat|concat|concatenate)\(")
_HOOK_SINCE = TorchVersion(2, 5)
"""`register_load_state_dict_pre_hook` is public since then, says the documentation of PyTorch."""


def joined_projections(text: str, start: int = 0, end: int | None = None) -> int | None:
    """Where a part of a text may join outputs of two layers for one operator, `None` if nowhere."""
    found = _JOINED.search(text, start, len(text) if end is None else end)
    return None if found is None else found.start()


def merged_in_project(
    path: Path, text: str, project: "Project", line: int | None = None
) -> "tuple[str, Sequence[MergeRefusedError]]":
    """A text of a file with one projection for each two that can be merged, and why others cannot.

    Args:
        path: The file.
        text: What it holds, or will.
        project: The project of the file.
        line: The line of the only call whose projections are to be merged, `None` for all.
    """
    if _OPERATOR.search(text) is None:
        return text, ()
    try:
        merge = _merging()
    except ModuleNotFoundError:
        return text, [MergeRefusedError(1, "distributed.needs-libcst")]
    find = partial(project.find, project.shown(path))
    merged = merge(text, find, project.has_hook, line)
    return merged.text, merged.refusals


def told(refusals: Sequence[MergeRefusedError], read: str, seen: str) -> Sequence[UnclearError]:
    """Reasons with lines of the text that a user sees; they have those of the one that was read."""
    line_in_seen = lines_in(read, seen)
    return [refusal.told(line_in_seen) for refusal in refusals]


def _merging() -> "Callable[..., Merged]":
    """What does it; its library is loaded here alone.

    Raises:
        ModuleNotFoundError: It is not installed.
    """
    from npulens.fixes.merging.merging import with_merged_projections

    return with_merged_projections


def project_of(path: Path, configuration: Configuration) -> "Project":
    """The project of a file, as it is now."""
    path = absolute(path)
    return Project(project_root(path) or path.parent, configuration)


@dataclass(frozen=True)
class Project:
    """The files below a folder, also those that settings exclude: they may name a layer."""

    root: Path
    configuration: Configuration

    @cached_property
    def has_hook(self) -> bool:
        """Whether its PyTorch has the hook."""
        if self.configuration.torch_version is not None:
            return self.configuration.torch_version >= _HOOK_SINCE
        return not requires_older(self.root, _HOOK_SINCE)

    def shown(self, path: Path) -> str:
        """How a file is named."""
        path = absolute(path)
        is_below = path.is_relative_to(self.root)
        return path.relative_to(self.root).as_posix() if is_below else str(path)

    def find(
        self,
        own: str,
        python: re.Pattern[str],
        others: re.Pattern[str] | None = None,
        word: str = "",
    ) -> Place | None:
        """Where another file than one has a pattern, as `Find` asks."""
        if others is None and not word:
            places: Iterable[Place] = self._first_places(python)
        else:
            places = self._places(python, others or python, word)
        return next((place for place in places if place.path != own), None)

    def _first_places(self, pattern: re.Pattern[str]) -> Sequence[Place]:
        """Two, of which one is not in the file that it is asked for."""
        if pattern not in self._found:
            self._found[pattern] = [*islice(self._places(pattern, pattern, ""), 2)]
        return self._found[pattern]

    def _places(
        self, python: re.Pattern[str], others: re.Pattern[str], word: str
    ) -> Iterator[Place]:
        """Of each file the first place; comments and long texts of Python do not count."""
        for file, text in self._texts:
            if word not in text:
                continue
            is_python = file.endswith((".py", ".pyi"))
            found = (python if is_python else others).search(text)
            if found is not None and is_python:
                text = plain_code(text)
                found = python.search(text)
            if found is not None:
                yield Place(file, line_of(text, found))

    @cached_property
    def _found(self) -> dict[re.Pattern[str], Sequence[Place]]:
        return {}

    @cached_property
    def _texts(self) -> list[tuple[str, str]]:
        configuration = replace(self.configuration, exclude=())
        files = discover_for(configuration, [str(self.root)]).files
        return [(self.shown(file), _text(file)) for file in files]


def _text(file: Path) -> str:
    return read(str(file)).decode("utf-8", "replace").replace("\r\n", "\n")
