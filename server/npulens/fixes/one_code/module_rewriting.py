"""A module whose device code is written for CUDA, the NPU and the CPU alike.

What is written names no vendor's device and imports no vendor's package. On CUDA it makes the same
calls as before, on the CPU it does what the original did there, and on the NPU what its port does.
All of a module is one set of edits, so that no part of it leaves a condition without its device.
"""

import ast
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from npulens.catalog.model import Edit, TorchVersion
from npulens.fixes.distributed import DATA_PARALLEL
from npulens.fixes.one_code.devices import NAMES, first_import, imports_torch
from npulens.fixes.one_code.neutral_functions import CUDA
from npulens.fixes.one_code.rewritten_places import places_of
from npulens.fixes.one_code.vendor_arms import VendorArms
from npulens.fixes.one_code.vocabulary import (
    AUTOCAST_TYPES,
    AUTOCASTS,
    CALLED,
    DECORATORS,
    NEUTRAL_AUTOCASTS,
    NEUTRAL_SCALERS,
    SCALERS,
    TENSOR_TYPES,
    TYPING,
)
from npulens.fixes.scripts import Script, joined, read_script
from npulens.syntax.meanings import Qualified, qualified_names, resolve_name
from npulens.syntax.scopes import Scope, is_bound
from npulens.syntax.values import Name
from npulens.text.spans import Span


class Rewriting(NamedTuple):
    """What is written.

    Attributes:
        edits: All edits of the module.
        places: Places of CUDA that they take away.
        arms: Conditions that stay, because they lead to code for CUDA alone.
        is_sure: Whether every device does what the original did there, or its port.
    """

    edits: tuple[Edit, ...]
    places: frozenset[Span]
    arms: frozenset[Span]
    is_sure: bool


def rewritten(
    tree: ast.Module, text: str, found: Mapping[Span, str], release: TorchVersion
) -> Rewriting | None:
    """The edits that make a module one code; `None` if its imports do not do.

    Args:
        tree: The module.
        text: Its text.
        found: Where something is that is about CUDA's device, with what the NPU has for it in the
            same form, if anything.
        release: The release of PyTorch to run on.
    """
    script = read_script(tree, text)
    torch = next((n for n in _torch_names(tree) if _is_torch(n, script)), "")
    added = None if torch else _import(script)
    if not torch and added is None:
        return None
    places = places_of(script)
    for name in NAMES:
        rewriter = _Rewriter(script, torch or "torch", found, release, places, name)
        if rewriter.run():
            break
    else:
        return None
    edits = [*rewriter.edits]
    if edits and added is not None:
        edits = [added, *edits]
    gone, arms = frozenset(rewriter.places), frozenset(rewriter.arms)
    return Rewriting(joined(edits), gone, arms, rewriter.is_all_sure)


def _import(script: Script) -> Edit | None:
    """`import torch` before the first import of something of it, else before the first of all.

    Not where something has that name, or a function imports it when it is called.
    """
    if is_bound("torch", script.module):
        return None
    first = next(filter(imports_torch, script.tree.body), None)
    first = first or first_import(script.tree, script.tree.body)
    return None if first is None else script.line_before(first, ("import torch",))


def _torch_names(tree: ast.Module) -> Iterator[str]:
    blocks = (each.body for each in tree.body if isinstance(each, (ast.Try, ast.If)))
    for statement in [*tree.body, *(s for body in blocks for s in body)]:
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                if alias.name == "torch" or (alias.name.startswith("torch.") and not alias.asname):
                    yield alias.asname or "torch"


def _is_torch(name: str, script: Script) -> bool:
    return resolve_name(Name(name), script.module, None) == [Qualified("torch")]


class _Rewriter(VendorArms):
    """Writes everything that can be written."""

    def run(self) -> bool:
        """Write everything that can be written; whether the name of its device is free."""
        for node, scope in self._nodes:
            if node in self._done:
                continue
            before = len(self.edits)
            if isinstance(node, ast.Call):
                self._call(node, scope)
            if isinstance(node, (ast.Attribute, ast.Name)) and node not in self._done:
                self._name(node, scope)
            elif isinstance(node, ast.ImportFrom):
                self._import(node)
            elif isinstance(node, ast.Expr):
                self._arm(node, scope)
            elif isinstance(node, (ast.List, ast.Tuple, ast.Set)):
                self._activities(node, scope)
            elif isinstance(node, ast.Compare):
                self._comparison(node, scope)
            elif isinstance(node, ast.keyword):
                self._cards(node)
            elif isinstance(node, (ast.Constant, ast.JoinedStr)) and node not in self._done:
                self._string(node, scope)
            if isinstance(node, (ast.Call, ast.Compare)) and len(self.edits) > before:
                self._conditions[node] = self.edits[before:]
        self._keep_arms()
        self._imports_of_modules()
        introduced = self._devices.edit(self._script.lines)
        if introduced is not None:
            self.edits.append(introduced)
        return self._devices.is_free or introduced is None

    @property
    def is_all_sure(self) -> bool:
        """Whether every device does what the original did there, or its port."""
        return self.is_sure and self._devices.is_sure

    def _call(self, node: ast.Call, scope: Scope) -> None:
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if method == "cuda" and isinstance(node.func, ast.Attribute):
            self._moved(node, node.func, scope)
        elif method == "startswith":
            self._started(node)
        elif method in CALLED or isinstance(node.func, ast.Name):
            self._function_of_torch(node, scope)

    def _function_of_torch(self, node: ast.Call, scope: Scope) -> None:
        names = qualified_names(node.func, scope)
        name = names[0] if len(names) == 1 else ""
        if name == "torch.device" and len(node.args) == 1:
            self._made_device(node, scope)
        elif name in AUTOCASTS or name in NEUTRAL_AUTOCASTS:
            self._autocast(node, name, scope)
        elif name in DATA_PARALLEL:
            self._data_parallel(node, scope)
        elif name in SCALERS or name in NEUTRAL_SCALERS:
            self._scaler(node, name, scope)
        elif name in DECORATORS and not node.args:
            self._decorator(node, name, scope)
        elif name in AUTOCAST_TYPES:
            self._autocast_type(node, name, scope)
        elif isinstance(node.func, ast.Attribute) and node.func.attr in TYPING:
            self._typed(node, name, scope)
        elif name.startswith(CUDA):
            last = name.removeprefix(CUDA)
            if last in TENSOR_TYPES:
                self._made(node, last, scope)
            else:
                self._function(node, last)
