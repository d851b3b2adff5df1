"""The modules of a project that a script imports, as the script that is run would import them."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from npulens.catalog.messages import LocalizedError
from npulens.fixes.scripts import read_script
from npulens.syntax.parsing import tree_or_none
from npulens.syntax.walking import nodes_below
from npulens.training.program import FindModule, Module
from npulens.workspace.fixing.rewriting_files import read_source
from npulens.workspace.project.own_modules import project_root


def imported_modules(script: Path) -> FindModule:
    """Finds modules by their full names.

    The folder of the script is where Python looks first; scripts put the folders above it on the
    path of Python, and those that they name: `sys.path.append("src")`.
    """
    return modules_for(script, {})


def modules_for(script: Path, known: Mapping[Path, Module]) -> FindModule:
    """The same, where some files are read already."""
    script = script.resolve()
    root = project_root(script) or _started_in(script)
    folders = [each for each in script.parents if each.is_relative_to(root)]
    folders += [each for each in _added_folders(script, folders) if each.is_relative_to(root)]

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


def _added_folders(script: Path, folders: Sequence[Path]) -> Iterator[Path]:
    """The folders that a script puts on the path of Python, by the names in what it says.

    They are looked for from where it may be started; that is above it.
    """
    try:
        tree = tree_or_none(read_source(script).text)
    except LocalizedError:
        return
    for value in () if tree is None else _added(tree):
        names = [n.value for n in nodes_below(value) if isinstance(n, ast.Constant)]
        parts = [each for each in names if isinstance(each, str) and each and "\0" not in each]
        below = [each for each in parts if each.strip("./")]
        for folder in folders if below else ():
            found = (folder.joinpath(*some).resolve() for some in (parts, below))
            yield from dict.fromkeys(each for each in found if each.is_dir())


def _added(tree: ast.Module) -> Iterator[ast.expr]:
    """`x` of `sys.path.append(x)`, `sys.path.insert(0, x)` and `sys.path += x`."""
    for node in nodes_below(tree):
        if isinstance(node, ast.AugAssign) and ast.unparse(node.target) == "sys.path":
            yield node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            is_added = node.func.attr in ("append", "insert", "extend")
            if is_added and node.args and ast.unparse(node.func.value) == "sys.path":
                yield node.args[-1]


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
