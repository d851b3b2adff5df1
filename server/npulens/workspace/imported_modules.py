"""The modules of a project that a script imports, as the script that is run would import them."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from npulens.catalog.messages import LocalizedError
from npulens.fixes.scripts import read_script
from npulens.syntax.parsing import tree_or_none
from npulens.training.program import FindModule, Module
from npulens.workspace.fixing.rewriting_files import read_source
from npulens.workspace.project.own_modules import project_root


def imported_modules(script: Path) -> FindModule:
    """Finds modules by their full names.

    The folder of the script is where Python looks first; scripts put the folders above it on the
    path of Python.
    """
    return modules_for(script, {})


def modules_for(script: Path, known: Mapping[Path, Module]) -> FindModule:
    """The same, where some files are read already."""
    script = script.resolve()
    root = project_root(script) or _started_in(script)
    folders = [each for each in script.parents if each.is_relative_to(root)]

    @cache
    def find(name: str) -> Module | None:
        parts = name.split(".")
        for folder in folders:
            for path in (
                folder.joinpath(*parts, "__init__.py"),
                folder.joinpath(*parts[:-1], f"{parts[-1]}.py"),
            ):
                if path != script and path.is_file() and path.resolve().is_relative_to(root):
                    read = known.get(path.resolve())
                    return module_in(path, name) if read is None else read._replace(name=name)
        return None

    return find


def _started_in(script: Path) -> Path:
    """Where a script of no marked project is run: the working directory, if it is above it."""
    here = Path.cwd()
    return here if script.is_relative_to(here) else script.parent


def module_in(path: Path, name: str) -> Module | None:
    """The module that a file holds, under a name; `None` if it cannot be read."""
    try:
        text = read_source(path).text
    except LocalizedError:
        return None
    tree = tree_or_none(text)
    if tree is None:
        return None
    scope = read_script(tree, text).module
    return Module(name, tree, scope, path.name == "__init__.py")
