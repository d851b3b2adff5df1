"""Merging projections of a file, as far as the rest of its project allows."""

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from npulens.fixes.scripts import UnclearError
from npulens.workspace.files.discovery import discover_for
from npulens.workspace.index.contents import read
from npulens.workspace.project.own_modules import project_root
from npulens.workspace.settings.configuration import Configuration, absolute

if TYPE_CHECKING:
    from npulens.fixes.merging.merging import Merged

_OPERATOR = re.compile(r"\bnpu_(?:swi|ge)glu\(\s*(?:torch\.)?cat\(")


def joins_projections(text: str) -> bool:
    """Whether a text may have outputs of two layers that are joined for one operator."""
    return _OPERATOR.search(text) is not None


def merged_in_project(
    path: Path, text: str, configuration: Configuration
) -> tuple[str, Sequence[UnclearError]]:
    """A text of a file with one projection for each two that can be merged, and why others cannot.

    Files of its project are read, since they may name a layer that would be gone.
    """
    if not joins_projections(text):
        return text, ()
    try:
        merged = _merging()(text, _Project(path, configuration).find)
    except UnclearError as error:
        return text, (error,)
    return merged.text, merged.refusals


def _merging() -> "Callable[..., Merged]":
    """What does it; its library is loaded here alone.

    Raises:
        UnclearError: It is not installed.
    """
    try:
        from npulens.fixes.merging.merging import with_merged_projections
    except ModuleNotFoundError as error:
        raise UnclearError(1, "distributed.needs-libcst") from error
    return with_merged_projections


class _Project:
    """The other files of the project of a file."""

    def __init__(self, path: Path, configuration: Configuration) -> None:
        self._path = absolute(path)
        self._configuration = configuration

    def find(self, pattern: re.Pattern[str]) -> tuple[str, int] | None:
        """Where one of them has a pattern: its path and a line."""
        for file, text in self._texts:
            found = pattern.search(text)
            if found is not None:
                return file, text.count("\n", 0, found.start()) + 1
        return None

    @cached_property
    def _texts(self) -> list[tuple[str, str]]:
        root = project_root(self._path) or self._path.parent
        found = discover_for(self._configuration, [str(root)]).files
        others = [file for file in found if absolute(file) != self._path]
        return [(_shown(file, root), read(str(file)).decode("utf-8", "replace")) for file in others]


def _shown(file: Path, root: Path) -> str:
    return file.relative_to(root).as_posix() if file.is_relative_to(root) else str(file)
