"""The device of a script: the variable that holds it already, or one that is introduced."""

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from npulens.catalog.model import Edit, TorchVersion
from npulens.fixes.one_code.rewritten_places import Places
from npulens.fixes.one_code.vocabulary import CHECKED_SINCE
from npulens.syntax.bindings import Function
from npulens.syntax.meanings import qualified_names
from npulens.syntax.scopes import FunctionScope, Scope, is_bound
from npulens.syntax.values import last_name
from npulens.syntax.walking import nodes_below
from npulens.text.lines import LineMap, line_ending
from npulens.text.spans import Span

_DEVICE = "torch.device"
_CURRENT = "torch.accelerator.current_accelerator"
NAMES = ("device", "any_device", "accelerator_device")
"""Of the variable that is introduced, the first that is free."""
_PARAMETER = "device"
_FEW = 2
"""So many variables may each have the whole expression."""
_MOST = 8
"""So many variables of a block are looked at."""
_ACCELERATOR = "accelerate.Accelerator"
_MAKERS = frozenset({"device", "Accelerator"})
"""How calls are spelled that make a device; others are not looked up."""
_FRAMEWORKS = {
    "transformers.Trainer": "accelerator.device",
    "transformers.trainer.Trainer": "accelerator.device",
    "lightning.LightningModule": "device",
    "lightning.pytorch.LightningModule": "device",
    "pytorch_lightning.LightningModule": "device",
}
"""Classes whose instances hold their device, by the attribute that does."""


class Device(NamedTuple):
    """How a device is written at a place.

    Attributes:
        text: The expression that is the device.
        kind: The expression that is its type, a string.
    """

    text: str
    kind: str


class _Variable(NamedTuple):
    """A variable that holds the device that a script chooses.

    Attributes:
        name: It.
        statement: The assignment.
        function: The function it is in, `None` if that is the module.
        device: How it is used.
    """

    name: str
    statement: ast.stmt
    function: ast.AST | None
    device: Device


class _Attribute(NamedTuple):
    """An attribute that holds the device of a class: its owner, its use, where it is set."""

    owner: str
    device: Device
    statement: ast.stmt


class Devices:
    """Finds the device for a place of a module, or introduces one.

    Args:
        places: The parts of the module and their places.
        tree: The module.
        torch: What the module calls `torch`.
        release: The release of PyTorch to run on.
        name: What the variable is called that is introduced.

    Attributes:
        is_free: Whether that name means nothing else where it is used.
        is_sure: Whether what is used is the device that CUDA's code meant. A parameter may be the
            CPU as well.
    """

    def __init__(
        self,
        places: Places,
        tree: ast.Module,
        torch: str,
        release: TorchVersion,
        name: str,
    ) -> None:
        self._owners = places.owners
        self._tree = tree
        self._torch = torch
        self._release = release
        self._name = name
        self._variables: dict[ast.AST, list[_Variable]] = {}
        self._composed: set[str] = set()
        self._stores: dict[ast.AST, Counter[str]] = {}
        self._count = 0
        self._attributes: dict[ast.AST, _Attribute] = {}
        self._first_use: int | None = None
        self.is_free = True
        self.is_sure = True
        for node, scope in places.nodes:
            if isinstance(node, (ast.Global, ast.ImportFrom)) and _binds(node, name):
                self.is_free = False
            elif isinstance(node, ast.Name):
                self.is_free &= node.id != name or is_bound(name, scope)
            elif isinstance(node, ast.ClassDef):
                self._note_framework(node, scope)
            elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                self._note_variables(node, scope)
                self._note_attribute(node, scope)

    def _note_variables(self, node: ast.Assign | ast.AnnAssign, scope: Scope) -> None:
        for name, value in _assigned(node):
            if _is_composed(value):
                self._composed.add(name)
            device = _chosen(name, value, scope, self._torch)
            if device is not None:
                function = scope.node if isinstance(scope, FunctionScope) else None
                found = _Variable(name, node, function, device)
                self._variables.setdefault(self._owners[node], []).append(found)
                self._count += 1

    @property
    def chosen(self) -> str:
        """An expression that is the device a machine has."""
        torch = self._torch
        if self._release >= CHECKED_SINCE:
            found = f"{torch}.accelerator.current_accelerator(check_available=True)"
            return f'{found} or {torch}.device("cpu")'
        found = f"{torch}.accelerator.current_accelerator()"
        return f'{found} if {torch}.accelerator.is_available() else {torch}.device("cpu")'

    def at(self, node: ast.expr, scope: Scope) -> Device | None:
        """The device for a place; `None` if no variable can be introduced for it.

        Args:
            node: Where it is needed.
            scope: Where its names are looked up.
        """
        around = list(self._around(node))
        current: Scope | None = scope
        while current is not None:
            function = current.node if isinstance(current, FunctionScope) else None
            if isinstance(function, Function) and node not in nodes_of_head(function):
                if _PARAMETER in parameters_with_values(function) and not _names(node, _PARAMETER):
                    kind = f"{self._torch}.device({_PARAMETER}).type"
                    self.is_sure = False
                    return Device(_PARAMETER, kind)
                found = self._variable(function, node, around) or self._attribute(current, node)
                if found is not None:
                    return found
            current = getattr(current, "owner", None) or current.parent
        return self._variable(None, node, around) or self._introduced(around, scope)

    def is_chosen_by(self, statement: ast.AST) -> bool:
        """Whether a statement is one of few that say what a variable for the device holds."""
        return self._count <= _FEW and any(
            each.statement is statement
            for each in self._variables.get(self._owners.get(statement, self._tree), ())
        )

    def edit(self, lines: LineMap) -> Edit | None:
        """What introduces the variable, `None` if nothing needs it."""
        if self._first_use is None:
            return None
        imports = [
            s
            for s in self._tree.body[: self._first_use]
            if isinstance(s, (ast.Import, ast.ImportFrom))
        ]
        end = imports[-1].end_lineno or 0
        place = lines.starts[end] if end < len(lines.starts) else len(lines.text)
        newline = line_ending(lines.text)
        return Edit(Span(place, place), f"{newline}{self._name} = {self.chosen}{newline}")

    def _variable(
        self, function: ast.AST | None, node: ast.expr, around: list[ast.AST]
    ) -> Device | None:
        """What a variable of a function, or of the module, holds at a node."""
        assigned = {name for each in around for name, _ in _assigned(each)}
        for block in around:
            for each in self._variables.get(block, ())[:_MOST]:
                is_before = each.statement.lineno < node.lineno and each.statement not in around
                is_other = each.name not in assigned and not _names(node, each.name)
                if each.function is function and is_before and is_other:
                    return self._as_used(each)
        return None

    def _as_used(self, variable: _Variable) -> Device:
        """A string is its type, unless another assignment puts the number of a card into it."""
        name, device = variable.name, variable.device
        if device.kind != name or name not in self._composed:
            return device
        return Device(name, f"{self._torch}.device({name}).type")

    def _note_framework(self, node: ast.ClassDef, scope: Scope) -> None:
        """A class derived from one that holds its device."""
        names = [name for base in node.bases for name in qualified_names(base, scope)]
        attribute = next((_FRAMEWORKS[name] for name in names if name in _FRAMEWORKS), None)
        if attribute is not None:
            device = Device(f"self.{attribute}", f"self.{attribute}.type")
            self._attributes[node] = _Attribute("self", device, node)

    def _note_attribute(self, node: ast.AST, scope: Scope) -> None:
        """`self.device = torch.device("cuda")` of a constructor, always reached."""
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if not isinstance(target, ast.Attribute) or not isinstance(target.value, ast.Name):
            return
        if not isinstance(node, ast.Assign) or not isinstance(scope, FunctionScope):
            return
        function = scope.node
        if not isinstance(function, ast.FunctionDef) or function.name != "__init__":
            return
        owner, name = self._owners[function], f"{target.value.id}.{target.attr}"
        device = _chosen(name, node.value, scope, self._torch)
        arguments = function.args.args
        is_own = bool(arguments) and arguments[0].arg == target.value.id
        if device is None or not is_own or self._owners[node] is not function:
            return
        if owner not in self._stores:
            parts = (part for part in nodes_below(owner) if isinstance(part, ast.Attribute))
            self._stores[owner] = Counter(p.attr for p in parts if isinstance(p.ctx, ast.Store))
        if self._stores[owner][target.attr] == 1:
            self._attributes.setdefault(owner, _Attribute(target.value.id, device, node))

    def _attribute(self, scope: Scope, node: ast.expr) -> Device | None:
        """What an attribute holds in a method of its class at a node."""
        assert isinstance(scope, FunctionScope)
        function = scope.node
        found = self._attributes.get(self._owners[function])
        if found is None or not isinstance(function, ast.FunctionDef) or function.decorator_list:
            return None
        arguments = function.args.args
        is_method = bool(arguments) and arguments[0].arg == found.owner
        is_set = isinstance(found.statement, ast.Assign) and found.statement.lineno < node.lineno
        is_there = function.name != "__init__" or is_set
        if not is_method or not is_there:
            return None
        self.is_sure &= isinstance(found.statement, ast.Assign)
        return found.device

    def _introduced(self, around: list[ast.AST], scope: Scope) -> Device | None:
        """The variable that is introduced behind the imports of the module."""
        index = next(i for i, s in enumerate(self._tree.body) if s in around)
        before = self._tree.body[:index]
        if not any(map(imports_torch, before)) and first_import(self._tree, before) is None:
            return None
        self.is_free &= not is_bound(self._name, scope)
        if self._first_use is None or index < self._first_use:
            self._first_use = index
        return Device(self._name, f"{self._name}.type")

    def _around(self, node: ast.AST) -> Iterator[ast.AST]:
        while node in self._owners:
            yield node
            node = self._owners[node]
        yield node


def _binds(node: ast.Global | ast.ImportFrom, name: str) -> bool:
    """Whether a statement may give the module a name that is not seen otherwise."""
    names = node.names if isinstance(node, ast.Global) else [each.name for each in node.names]
    return name in names or ("*" in names and name == NAMES[0])


def imports_torch(statement: ast.AST) -> bool:
    """Whether a statement imports torch or a part of it."""
    if isinstance(statement, ast.ImportFrom):
        names = [statement.module or ""] if not statement.level else []
    else:
        names = [a.name for a in statement.names] if isinstance(statement, ast.Import) else []
    return any(name.partition(".")[0] == "torch" for name in names)


def first_import(tree: ast.Module, before: Iterable[ast.stmt]) -> ast.Import | None:
    """The import in front of which a module imports torch that does so nowhere, if it may."""
    first = next((s for s in before if isinstance(s, ast.Import)), None)
    return None if any(map(imports_torch, nodes_below(tree))) else first


def _names(node: ast.AST, name: str) -> bool:
    """Whether an expression is made of a variable, such as the number of a device."""
    return any(isinstance(part, ast.Name) and part.id == name for part in nodes_below(node))


def nodes_of_head(function: ast.AST) -> set[ast.AST]:
    """What of a function is evaluated outside of it: decorators, defaults, annotations."""
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return set()
    heads: list[ast.AST] = [*function.decorator_list, function.args]
    return {part for head in heads for part in nodes_below(head)}


def parameters_with_values(
    function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda,
) -> set[str]:
    """Those that always hold something: whose default is not `None` and no empty string."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [*([None] * (len(positional) - len(arguments.defaults))), *arguments.defaults]
    pairs = [*zip(positional, defaults, strict=True)]
    pairs += zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return {
        each.arg
        for each, default in pairs
        if not (isinstance(default, ast.Constant) and default.value in (None, ""))
    }


def _assigned(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name):
                yield target.id, node.value
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
        yield node.target.id, node.value


def _chosen(name: str, value: ast.expr, scope: Scope, torch: str) -> Device | None:
    """How a variable is used whose value chooses a device of CUDA, or none."""
    if _is_for_any(value, scope):
        return Device(name, f"{name}.type")
    if isinstance(value, ast.Call):
        callee = value.func
        spelled = last_name(callee)
        if spelled not in _MAKERS:
            return None
        made = qualified_names(callee, scope)
        if _ACCELERATOR in made:
            return Device(f"{name}.device", f"{name}.device.type")
        if _DEVICE not in made or not value.args:
            return None
        return Device(name, f"{name}.type") if _names_cuda(value.args[0]) else None
    if isinstance(value, (ast.IfExp, ast.Constant)) and _names_cuda(value):
        return Device(name, f"{torch}.device({name}).type" if _has_index(value) else name)
    return None


def _is_for_any(value: ast.expr, scope: Scope) -> bool:
    """`torch.accelerator.current_accelerator() or torch.device("cpu")`, written before."""
    arms: list[ast.expr] = []
    if isinstance(value, ast.BoolOp) and isinstance(value.op, ast.Or):
        arms = value.values
    elif isinstance(value, ast.IfExp):
        arms = [value.body, value.orelse]
    calls = [each for each in arms if isinstance(each, ast.Call)]
    names = [qualified_names(each.func, scope)[:1] for each in calls]
    return names == [[_CURRENT], [_DEVICE]]


def _is_composed(value: ast.expr) -> bool:
    """Whether a string is put together: `f"cuda:{rank}"`, `"cuda:" + rank`."""
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Attribute) and value.func.attr == "format"
    return isinstance(value, (ast.JoinedStr, ast.BinOp))


def _names_cuda(value: ast.expr) -> bool:
    arms = (value.body, value.orelse) if isinstance(value, ast.IfExp) else (value,)
    return any(text == "cuda" or text.startswith("cuda:") for text in map(_text, arms))


def _has_index(value: ast.expr) -> bool:
    arms = (value.body, value.orelse) if isinstance(value, ast.IfExp) else (value,)
    return any(":" in _text(arm) for arm in arms)


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.JoinedStr):
        node = node.values[0] if node.values and isinstance(node.values[0], ast.expr) else node
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
