"""Merging projections of a file, as far as the rest of its project allows."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
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
    path: Path,
    text: str,
    configuration: Configuration,
    line: int | None = None,
) -> "tuple[str, Sequence[MergeRefusedError]]":
    """A text of a file with one projection for each two that can be merged, and why others cannot.

    Files of its project are read, also those that settings exclude: they may name a layer that
    would be gone.

    Args:
        path: The file.
        text: What it holds, or will.
        configuration: What counts for it.
        line: The line of the only call whose projections are to be merged, `None` for all.
    """
    if _OPERATOR.search(text) is None:
        return text, ()
    try:
        merge = _merging()
    except ModuleNotFoundError:
        return text, [MergeRefusedError(1, "distributed.needs-libcst")]
    project = _Project(absolute(path), configuration)
    merged = merge(text, project.find, project.has_hook, line)
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


class _Project:
    """The other files of the project of a file."""

    def __init__(self, path: Path, configuration: Configuration) -> None:
        self._path = path
        self._root = project_root(path) or path.parent
        self._configuration = replace(configuration, exclude=())
        self._code = cache(plain_code)
        self._texts: list[tuple[str, str]] | None = None

    @property
    def has_hook(self) -> bool:
        """Whether the PyTorch of the project has the hook."""
        if self._configuration.torch_version is not None:
            return self._configuration.torch_version >= _HOOK_SINCE
        return not requires_older(self._path.parent, _HOOK_SINCE)

    def find(self, pattern: Callable[[bool], re.Pattern[str]], *words: str) -> Place | None:
        """Where a file has a pattern; comments and long texts of Python do not count."""
        patterns = {is_python: pattern(is_python) for is_python in (True, False)}
        for file, text in self._other_texts():
            if words and not any(word in text for word in words):
                continue
            is_python = file.endswith((".py", ".pyi"))
            found = patterns[is_python].search(text)
            if found is not None and is_python:
                found = patterns[is_python].search(text := self._code(text))
            if found is not None:
                return Place(file, line_of(text, found))
        return None

    def _other_texts(self) -> list[tuple[str, str]]:
        if self._texts is None:
            found = discover_for(self._configuration, [str(self._root)]).files
            others = [file for file in found if absolute(file) != self._path]
            self._texts = [(self._shown(file), _text(file)) for file in others]
        return self._texts

    def _shown(self, file: Path) -> str:
        root = self._root
        return file.relative_to(root).as_posix() if file.is_relative_to(root) else str(file)


def _text(file: Path) -> str:
    return read(str(file)).decode("utf-8", "replace")
