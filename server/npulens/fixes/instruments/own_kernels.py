"""Calls of kernels that a project compiles itself, which mostly take float32 alone."""

import ast
from collections.abc import Iterator
from functools import cached_property

from npulens.syntax.meanings import Member, Qualified, resolve
from npulens.syntax.scopes import Scope
from npulens.syntax.values import last_name
from npulens.syntax.walking import nodes_below
from npulens.training.flow import Flow
from npulens.training.program import Module, Program, absolute_name

_LOADED = ("torch.utils.cpp_extension.load.", "torch.utils.cpp_extension.load_inline.")
_CASTS = ("custom_fwd", "autocast")
_TO_FLOAT32 = ("float", "double")


class OwnKernels:
    """Finds the kernels of a program: what it loads, what it builds, what its packages lack."""

    def __init__(self, program: Program, flow: Flow) -> None:
        self._program, self._flow = program, flow

    def run_by(self, call: ast.Call) -> ast.expr | None:
        """The kernel that a call runs, itself or in a `Function` that is applied."""
        place = self._flow.places.get(call)
        if place is None or any(map(_is_cast, call.args)):
            return None
        if self._is_kernel(call.func, place.scope):
            return call.func
        return next(filter(None, map(self._in_function, self._applied(call.func))), None)

    def _applied(self, called: ast.expr) -> Iterator[ast.ClassDef]:
        """The classes of `Norm.apply`, also where it has a name: `norm = Norm.apply`."""
        if not isinstance(called, (ast.Name, ast.Attribute)):
            return
        for node in (called, *(value.node for value in self._flow.origins(called))):
            if isinstance(node, ast.Attribute) and node.attr == "apply":
                scope = self._program.module_with[node].scope
                for made in self._program.meant(node.value, scope):
                    if isinstance(made, ast.ClassDef) and _is_function(made):
                        yield made

    def _in_function(self, owner: ast.ClassDef) -> ast.expr | None:
        """The kernel that a forward pass runs, unless it has its arguments cast."""
        forward = self._program.method(owner, "forward")
        if forward is None:
            return None
        nodes = [*nodes_below(forward)]
        if any(_is_cast(n) or getattr(n, "id", getattr(n, "attr", "")) in _CASTS for n in nodes):
            return None
        scope = self._program.module_with[owner].scope
        called = (node.func for node in nodes if isinstance(node, ast.Call))
        return next((each for each in called if self._is_kernel(each, scope)), None)

    def _is_kernel(self, called: ast.expr, scope: Scope) -> bool:
        module = self._program.module_at(scope)
        for value in resolve(called, scope):
            if isinstance(value, Member) and value.name.startswith(_LOADED):
                return True
            if isinstance(value, Qualified) and self._is_compiled(value.name, module):
                return True
        return False

    def _is_compiled(self, name: str, at: Module) -> bool:
        """Whether a name is of a module that is no Python of the project, but a part of it."""
        parts = absolute_name(name, at).split(".")
        if len(parts) < 2 or len(self._program.modules) == 1:
            return False
        for end in range(len(parts) - 1, 0, -1):
            package = self._program.module(".".join(parts[:end]))
            if package is not None:
                is_inner = package.is_package and len(parts) > end + 1
                return is_inner and not _has_name(package, parts[end])
        return name.startswith(".") or parts[0] in self._built

    @cached_property
    def _built(self) -> set[str]:
        """The names of the extensions that the `setup.py` of the project builds."""
        folders = {each.name.rpartition(".")[0] for each in self._program.modules}
        above = {
            ".".join(folder.split(".")[:end])
            for folder in folders
            for end in range(folder.count(".") + 2)
        }
        found = (self._program.module(f"{each}.setup".lstrip(".")) for each in above)
        calls = (n for m in found if m for n in nodes_below(m.tree) if isinstance(n, ast.Call))
        return {
            node.value.rpartition(".")[2]
            for call in calls
            if last_name(call.func).endswith("Extension")
            for node in (*call.args[:1], *(k.value for k in call.keywords if k.arg == "name"))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }


def _has_name(package: Module, name: str) -> bool:
    """Whether a package binds a name, or may do so."""
    imports = (node for node in package.tree.body if isinstance(node, ast.ImportFrom))
    return name in package.scope.module.names or any(
        alias.name == "*" for node in imports for alias in node.names
    )


def _is_function(owner: ast.ClassDef) -> bool:
    return any(last_name(base) == "Function" for base in owner.bases)


def _is_cast(node: ast.AST) -> bool:
    """Whether a value is made float32: `x.float()`."""
    return isinstance(node, ast.Call) and last_name(node.func) in _TO_FLOAT32
