"""The modules of a project that a script of it imports, as trees."""

import ast
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from npulens.syntax.parsing import module_tree
from npulens.workspace.fixing.rewriting_files import UnreadableError, read_source


def project_modules(root: Path, entry: Path) -> Callable[[str], ast.Module | None]:
    """Finds modules by their full names, as the script that is run would import them.

    Args:
        root: The root of the project.
        entry: The script; its folder is where Python looks first.
    """

    @lru_cache(maxsize=64)
    def find(name: str) -> ast.Module | None:
        parts = name.split(".")
        for folder in dict.fromkeys((entry.parent, root)):
            for path in (folder.joinpath(*parts, "__init__.py"), _module(folder, parts)):
                if path.is_file() and path.resolve().is_relative_to(root.resolve()):
                    return _tree(path)
        return None

    return find


def _module(folder: Path, parts: list[str]) -> Path:
    return folder.joinpath(*parts[:-1], f"{parts[-1]}.py")


def _tree(path: Path) -> ast.Module | None:
    try:
        return module_tree(read_source(path).text)
    except (UnreadableError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
