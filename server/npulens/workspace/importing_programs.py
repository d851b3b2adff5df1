"""The programs of a project that import a script: what is started, where the script is a part."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from npulens.training.program import Module, Program
from npulens.workspace.imported_modules import module_in, modules_for
from npulens.workspace.index.import_lines import imported_modules
from npulens.workspace.project.own_modules import project_root

_MOST_FILES = 400
_MOST_ABOVE = 12
_MOST_PROGRAMS = 3
_NO_CODE = frozenset({"node_modules", "site-packages", "build", "dist", "venv"})
_MAIN = b"__main__"


class ImportingPrograms:
    """Finds the programs that import a script.

    Args:
        script: Its file.
    """

    def __init__(self, script: Path) -> None:
        self._script = script.resolve()

    def __call__(self, module: Module) -> Sequence[Program]:
        """The programs, with the module of the script as a part of them."""
        found = []
        for path in self._starts():
            start = module_in(path, path.stem)
            if start is not None:
                find = modules_for(path, {self._script: module})
                found.append(Program(start, find))
        return found

    def _starts(self) -> list[Path]:
        """The files that lead to the script and are started: nothing imports them."""
        root = project_root(self._script) or self._script.parent
        imported = {path: frozenset(_names(path)) for path in _files(root)}
        pending, known, starts = [self._script], {self._script}, list[Path]()
        while pending and len(known) < _MOST_ABOVE:
            at = pending.pop(0)
            above = [p for p, names in imported.items() if p not in known and _has(names, at)]
            if not above and at != self._script:
                starts.append(at)
            known.update(above)
            for path in above:
                (starts if _MAIN in path.read_bytes() else pending).append(path)
        return starts[:_MOST_PROGRAMS]


def _files(root: Path) -> list[Path]:
    """The files with code of a project, up to a number of them."""
    found: list[Path] = []
    for folder, inner, names in os.walk(root):
        inner[:] = sorted(n for n in inner if n not in _NO_CODE and not n.startswith("."))
        found += (Path(folder, n).resolve() for n in sorted(names) if n.endswith(".py"))
        if len(found) >= _MOST_FILES:
            break
    return found[:_MOST_FILES]


def _has(names: frozenset[str], path: Path) -> bool:
    """Whether imports may mean a file: by its name, and that of its folder where they have one."""
    module = path.parent if path.name == "__init__.py" else path.with_suffix("")
    for name in names:
        folder, _, last = name.rpartition(".")
        if last == module.name and folder.rpartition(".")[2] in ("", module.parent.name):
            return True
    return False


def _names(path: Path) -> Iterator[str]:
    try:
        data = path.read_bytes()
    except OSError:
        return
    yield from imported_modules(data)
