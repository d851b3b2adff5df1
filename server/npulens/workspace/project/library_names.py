"""Modules of PyTorch that modules of a project hand on: `from .common import torch`."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Any

from npulens.catalog.model import LibraryName
from npulens.syntax.bindings import bindings_of
from npulens.syntax.parsing import SyntaxProblem, parse
from npulens.syntax.values import Imported
from npulens.workspace.project.contents import Content, Modules
from npulens.workspace.project.handing_on import handed_on, place_of
from npulens.workspace.project.memo import Memo, text
from npulens.workspace.project.module_imports import ModuleImport, module_imports

_STAR = b"import *"
_TRACES = (b"cuda", b"nccl", b"DataParallel")
"""A file that takes all of a module and names none of these has next to nothing to be told."""
_NAMED = (b"import torch", b", torch")
_FROM_OTHER = re.compile(rb"from[ \t]+(?!torch\b)")
_MODULES = frozenset(
    {
        *("torch", "torch.nn", "torch.nn.functional", "torch.nn.parallel", "torch.distributed"),
        *("torch.backends", "torch.backends.cudnn", "torch.multiprocessing", "torch.optim"),
        *("torch.utils", "torch.utils.data", "torch.autograd", "torch.amp", "torch.jit"),
    }
)
"""What is handed on of `torch.cuda`, and classes, are told where they are imported first."""
_Facts = frozenset[tuple[str, str, LibraryName]]


def library_names(modules: Modules, memo: Memo) -> _Facts:
    """Names of modules of PyTorch that others take from a module, by its path without ending.

    Only modules are looked at from which some file takes everything, or something called `torch`.

    Args:
        modules: The Python files of the project.
        memo: What is known of them.
    """
    wanted = {
        _last_part(file, import_)
        for file, content in modules.items()
        if _takes(content, memo)
        for import_ in module_imports(content, memo)
        if import_.level >= 0 and any(name in ("*", "torch") for name, _ in import_.names)
    }
    found = {
        (place_of(file), name): known
        for file, content in modules.items()
        if PurePath(place_of(file)).name in wanted and b"torch" in content.data
        for name, known in _names(content, memo)
    }
    found.update(handed_on(modules, found, memo))
    return frozenset((path, name, known) for (path, name), known in found.items())


def _takes(content: Content, memo: Memo) -> bool:
    """Whether a file may take something of PyTorch from a module that is none of PyTorch's."""
    return memo.is_so("takes of PyTorch", content.digest, lambda: _may_take(content.data))


def _may_take(data: bytes) -> bool:
    if _STAR in data and any(trace in data for trace in _TRACES):
        return True
    return any(_is_from_other(data, named) for named in _NAMED)


def _is_from_other(data: bytes, named: bytes) -> bool:
    place = data.find(named)
    while place >= 0:
        start, end = data.rfind(b"\n", 0, place) + 1, place + len(named)
        is_whole = not (data[end : end + 1].isalnum() or data.startswith(b"_", end))
        if is_whole and _FROM_OTHER.match(data, start) is not None:
            return True
        place = data.find(named, end)
    return False


def _last_part(file: Path, import_: ModuleImport) -> str:
    """The last part of the name of the module that is imported from."""
    if import_.module:
        return import_.module.rpartition(".")[2]
    return file.parents[min(import_.level, len(file.parents)) - 1].name


def _names(content: Content, memo: Memo) -> list[tuple[str, LibraryName]]:
    """The names at the top of a module that stand for modules of PyTorch."""

    def answer() -> list[tuple[str, str, bool]]:
        tree = parse(content.text)
        if isinstance(tree, SyntaxProblem):
            return []
        names = bindings_of(tree.body, ()).names
        listed = _listed(tree)
        return [
            (name, value.qualified, not name.startswith("_") if listed is None else name in listed)
            for name, bindings in names.items()
            for value in (bindings[0].value,)
            if len(bindings) == 1 and isinstance(value, Imported)
            if value.qualified in _MODULES
        ]

    return memo.recall("names of libraries", (content.digest,), answer, _read_names)


def _listed(tree: ast.Module) -> set[str] | None:
    """The strings in `__all__`; `None` without one."""
    listed: set[str] | None = None
    for node in tree.body:
        if isinstance(node, (ast.Assign, ast.AugAssign)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(each, ast.Name) and each.id == "__all__" for each in targets):
                listed = (listed or set()) | set(_strings(node.value))
    return listed


def _strings(node: ast.expr) -> Iterator[str]:
    for element in getattr(node, "elts", ()):
        if isinstance(element, ast.Constant) and isinstance(element.value, str):
            yield element.value


def _read_names(plain: Any) -> list[tuple[str, LibraryName]]:
    found = []
    for name, qualified, is_public in plain:
        if not isinstance(is_public, bool):
            raise TypeError("no name")
        found.append((text(name), LibraryName(text(qualified), is_public)))
    return found
