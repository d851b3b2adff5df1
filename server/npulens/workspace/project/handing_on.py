"""What packages hand on: names that they import from their modules."""

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath
from typing import TypeVar

from npulens.workspace.project.contents import Modules
from npulens.workspace.project.memo import Memo
from npulens.workspace.project.module_imports import import_words, module_imports

PACKAGE = "__init__"
"""The stem of the file that a package itself is."""

_PACKAGE_FILE = f"{PACKAGE}.py"

Known = TypeVar("Known")


def handed_on(
    modules: Modules, found: Mapping[tuple[str, str], Known], memo: Memo
) -> Iterator[tuple[tuple[str, str], Known]]:
    """The same functions or classes under the names of packages that import them.

    Args:
        modules: The Python files of the project.
        found: What is known of some, by the place of their module and their name.
        memo: What is known of the modules.
    """
    if not found:
        return
    by_module: dict[str, dict[str, Known]] = {}
    for (path, name), each in found.items():
        by_module.setdefault(path, {})[name] = each
    names = {name for _, name in found}
    for file, content in modules.items():
        if file.name != _PACKAGE_FILE:
            continue
        if b"import *" not in content.data and names.isdisjoint(import_words(content, memo).names):
            continue
        for import_ in module_imports(content, memo):
            if not import_.is_at_top or import_.level < 1:
                continue
            known = by_module.get(_origin(file, import_.level, import_.module), {})
            for name, known_as in import_.names:
                for own in known if name == "*" else {name} & known.keys():
                    yield (place_of(file), own if name == "*" else known_as), known[own]


def _origin(file: Path, level: int, module: str) -> str:
    """The place of the module that a package imports from."""
    folder = file.parent
    for _ in range(level - 1):
        folder = folder.parent
    return folder.joinpath(*module.split(".")).as_posix()


def place_of(file: Path) -> str:
    """The path of a module without its ending; of a package its folder."""
    path = PurePath(file)
    return (path.parent if path.stem == PACKAGE else path.with_suffix("")).as_posix()
