"""Which files of a project use PyTorch, and which of those each script that is started imports."""

import re
from collections.abc import Collection, Iterable
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from npulens.text.kinds import Kind, kind_by_name
from npulens.workspace.index.contents import Content, Contents
from npulens.workspace.index.fact_memo import FactMemo
from npulens.workspace.index.import_lines import imported_names
from npulens.workspace.index.module_files import ModuleFiles, all_reached
from npulens.workspace.project.training_scripts import is_test

_IS_STARTED = re.compile(rb"^if[ \t(]+__name__[ \t]*==", re.MULTILINE)
_SOURCES = ("", "src", "source", "python", "lib")
"""Folders of a project that its packages lie in."""


class Script(NamedTuple):
    """A script, and the files of the project that it imports, itself among them."""

    path: Path
    reached: frozenset[Path]


class ReachedFiles:
    """Follows the imports of a project.

    Imports are read from the text, so one in a comment counts too: what is reached may be too
    much, and is too little only where a name is made up while the program runs. `libraries` are
    packages of PyTorch's world, besides those whose names start with `torch`.
    """

    def __init__(
        self, files: Iterable[Path], root: Path, libraries: Collection[str], memo: FactMemo
    ) -> None:
        self._root = root
        self._libraries = libraries
        self._memo = memo
        self._contents = Contents()
        self._files = tuple(files)
        self._known: dict[tuple[Path, Path], frozenset[Path]] = {}
        self._modules = {file for file in self._files if kind_by_name(file.name) is Kind.PYTHON}
        self._by_name = ModuleFiles(map(str, self._modules))

    def without_torch(self) -> frozenset[Path]:
        """The Python files that import neither PyTorch nor a library of its world."""
        return frozenset(file for file in self._modules if not self._uses_torch(file))

    def scripts(self) -> list[Script]:
        """The scripts that reach a file with PyTorch, those that reach most first; no tests."""
        started = [file for file in sorted(self._modules) if self._is_started(file)]
        found = [Script(file, self.reached_from(file)) for file in started]
        using = [each for each in found if any(map(self._uses_torch, each.reached))]
        return sorted(using, key=lambda each: -len(each.reached))

    def _uses_torch(self, file: Path) -> bool:
        roots = {name.partition(".")[0] for name in self._imports(self._contents.of(file))}
        return any(root.startswith("torch") or root in self._libraries for root in roots)

    def _is_started(self, file: Path) -> bool:
        if is_test(file, self._root):
            return False
        return _IS_STARTED.search(self._contents.of(file).data) is not None

    def reached_from(self, script: Path) -> frozenset[Path]:
        """The files of the project that a script imports, itself among them."""
        beside = script.parent
        return frozenset(all_reached([script], lambda file: self._imported_by(file, beside)))

    def _imported_by(self, file: Path, beside: Path) -> frozenset[Path]:
        """The modules of the project that a file imports, where a script of a folder runs."""
        if (file, beside) not in self._known:
            search_path = [str(each) for each in (beside, *(self._root / s for s in _SOURCES))]
            names = self._imports(self._contents.of(file))
            run = (self._by_name.run_by(name, str(file), search_path) for name in names)
            self._known[file, beside] = frozenset(map(Path, chain.from_iterable(run)))
        return self._known[file, beside]

    def _imports(self, content: Content) -> tuple[str, ...]:
        return imported_names(content, self._memo)
