"""Modules that are saved and loaded as a whole, and not by their weights.

Sources: PyTorch, `torch.load` since 2.6 (`weights_only=True` unless something else is given) and
its notes on saving and loading; Ascend/pytorch, torch_npu/utils/serialization.py, which takes the
same default.
"""

import ast
from collections.abc import Iterator, Sequence
from math import inf
from typing import NamedTuple

from npulens.catalog.messages import message
from npulens.catalog.model import Applicability, Edit, Finding, Fix, Severity
from npulens.catalog.tables import Catalogue
from npulens.checks.arguments import is_spread, keyword_of
from npulens.checks.titles import add
from npulens.checks.whole_module import WholeModule
from npulens.syntax.meanings import qualified_names
from npulens.syntax.scopes import ClassScope, FunctionScope, Scope
from npulens.syntax.values import Name, dotted_name
from npulens.syntax.walking import parents_below
from npulens.text.late_patterns import late
from npulens.text.spans import Span

_RULE = "whole-module-file"
_LOAD, _SAVE = "torch.load", "torch.save"
_MODES = ("weights_only", "pickle_module")
_OF_MODULES = frozenset(
    {"eval", "parameters", "named_parameters", "modules", "named_modules", "children", "forward"}
)
"""Methods that modules have, and no dictionary, tensor or optimizer."""
_OF_OBJECTS = _OF_MODULES | {"state_dict", "load_state_dict"}
_SAVED = late(r"save\(\s*([A-Za-z_][\w.]*)\s*,")
_LOADED = late(r"load\((?=(?:(?s:.{0,200}?)\)\S*\.(\w+)\()?)")
_ASSIGNED = late(r"([A-Za-z_][\w.]*)[ \t]*=[\s(]*(?:\w+\.)?\Z")
_LONGEST = 120
_USED = late(rf"(?:\[[^\]\n]*\])*(?:\.(?:\w+(?:\(\))?\.)*(?:{'|'.join(sorted(_OF_OBJECTS))})\b|\()")
"""Where a text saves or loads a variable, and what follows one that is used as an object."""
_MANY = 50
_ALLOWED = late(r"safe_globals|NO_WEIGHTS_ONLY_LOAD|\btorch\.load[ \t]*=(?!=)")
"""What has whole modules loaded all the same: types that are allowed, another default."""


def whole_modules(module: WholeModule, catalogue: Catalogue) -> Iterator[Finding]:
    """`model = torch.load(path)`, then `model.eval()`; `torch.save(model, path)`."""
    if not _may_be_whole(module.text):
        return  # else each key would cost a walk over the module
    loads, saves = list(_calls_of(_LOAD, module)), list(_calls_of(_SAVE, module))
    if _ALLOWED.search(module.text) is not None or not (loads or saves):
        return
    uses, rule = _Uses(module), catalogue.required(_RULE)
    saved = [call for call in saves if uses.is_module(call.args[0])]
    files = {file for call in saved for file in _files(call.args[1:2])}
    for call in filter(_leaves_default, loads):
        if uses.is_loaded_object(call) or not files.isdisjoint(_files(call.args[:1])):
            arguments = {"symbol": _LOAD, "replacement": "weights_only=False"}
            note, fixes = message("whole-module.load"), _allowing(call, module)
            yield Finding(rule, module.lines.span(call.func), arguments, note, fixes)
    if saved and _MODES[0] not in module.text:
        arguments = {"symbol": _SAVE, "replacement": ".state_dict()"}
        span, note = module.lines.span(saved[0].func), message("whole-module.save")
        yield Finding(rule, span, arguments, note, severity=Severity.HINT)


def _may_be_whole(text: str) -> bool:
    """Whether a variable that is saved or loaded is asked for what objects have, by the text."""
    if "torch" not in text or ("load(" not in text and "save(" not in text):
        return False
    names = {found[1].removesuffix(".module") for found in _SAVED.finditer(text)}
    for found in _LOADED.finditer(text):
        if found[1] in _OF_OBJECTS:
            return True
        assigned = _ASSIGNED.search(text, max(0, found.start() - _LONGEST), found.start())
        if assigned is not None:
            names.add(assigned[1])
    return len(names) > _MANY or any(_is_used(name, text) for name in names)


def _is_used(name: str, text: str) -> bool:
    """Whether a name is called, or asked for what objects alone have."""
    at = text.find(name)
    while at >= 0:
        is_whole = not (text[at - 1 : at].isalnum() or text[at - 1 : at] in ("_", "."))
        if is_whole and _USED.match(text, at + len(name)):
            return True
        at = text.find(name, at + 1)
    return False


def _files(paths: Sequence[ast.expr]) -> Iterator[str]:
    """What names a file in the same way everywhere: `"model.pt"`, `args.save`."""
    for path in paths:
        if isinstance(path, (ast.Constant, ast.Attribute)):
            yield ast.unparse(path)


def _calls_of(name: str, module: WholeModule) -> Iterator[ast.Call]:
    """The calls of a function that are given something."""
    for node, scope in module.scoped:
        if isinstance(node, ast.Call) and node.args and name in qualified_names(node.func, scope):
            yield node


def _leaves_default(call: ast.Call) -> bool:
    return not is_spread(call) and all(keyword_of(call, mode) is None for mode in _MODES)


def _allowing(call: ast.Call, module: WholeModule) -> tuple[Fix, ...]:
    """The argument that has a whole module loaded, behind the others."""
    written = "weights_only=False"
    last = max(module.lines.span(each).end for each in (*call.args, *call.keywords))
    end = module.lines.span(call).end
    if module.text[last:end] != ")":
        return ()  # a comma, a comment or brackets around the last argument
    edit = Edit(Span(last, last), f", {written}")
    return (Fix(add(written), Applicability.UNSAFE, (edit,)),)


class _Variable(NamedTuple):
    """A name in a function, or an attribute of `self` in a class."""

    place: ast.AST | None
    name: Name


class _Uses:
    """What is done with the variables of a module."""

    def __init__(self, module: WholeModule) -> None:
        self._span = module.lines.span
        self._parents = parents_below(module.tree)
        self._variables: dict[ast.AST, _Variable] = {}
        self._reads: dict[_Variable, list[ast.expr]] = {}
        self._writes: dict[_Variable, list[ast.expr]] = {}
        for node, scope in module.scoped:
            if isinstance(node, (ast.Name, ast.Attribute)):
                self._note(node, scope)

    def _note(self, node: ast.Name | ast.Attribute, scope: Scope) -> None:
        name = dotted_name(node)
        if name is not None:
            variable = self._variables[node] = _Variable(_place(name, scope), name)
            of_kind = self._reads if isinstance(node.ctx, ast.Load) else self._writes
            of_kind.setdefault(variable, []).append(node)

    def is_loaded_object(self, call: ast.Call) -> bool:
        """Whether what is loaded, or an entry of it, is asked for what objects alone have."""
        asked, last = self._followed(call)
        if not _OF_OBJECTS.isdisjoint(asked):
            return True
        parent = self._parents.get(last)
        if not isinstance(parent, ast.Assign) or len(parent.targets) != 1:
            return False
        variable = self._variables.get(parent.targets[0])
        if variable is None:
            return False
        start, end = self._span(parent).end, self._next_write(variable, parent)
        return any(
            not _OF_OBJECTS.isdisjoint(self._followed(read)[0]) or self._is_called(read)
            for read in self._reads.get(variable, ())
            if variable.name.root == "self" or start <= self._span(read).start < end
        )

    def _next_write(self, variable: _Variable, written: ast.Assign) -> float:
        """Where a variable is given something else; an attribute never is for sure."""
        starts = (self._span(each).start for each in self._writes[variable])
        end = self._span(written).end
        return min((start for start in starts if start >= end), default=inf)

    def is_module(self, saved: ast.expr) -> bool:
        """Whether the variable that is saved is asked for what modules alone have."""
        while isinstance(saved, ast.Attribute) and saved.attr == "module":
            saved = saved.value
        variable = self._variables.get(saved)
        reads = () if variable is None else self._reads.get(variable, ())
        asked = (parent for each in reads if (parent := self._parents.get(each)) is not None)
        return any(isinstance(each, ast.Attribute) and each.attr in _OF_MODULES for each in asked)

    def _is_called(self, node: ast.expr) -> bool:
        parent = self._parents.get(node)
        return isinstance(parent, ast.Call) and parent.func is node

    def _followed(self, node: ast.expr) -> tuple[set[str], ast.expr]:
        """The methods called along `node["model"].float().eval()`, and its end."""
        asked: set[str] = set()
        while True:
            parent = self._parents.get(node)
            if isinstance(parent, ast.Call) and parent.func is node:
                if isinstance(node, ast.Attribute):
                    asked.add(node.attr)
            elif not isinstance(parent, (ast.Attribute, ast.Subscript)) or parent.value is not node:
                return asked, node
            node = parent


def _place(name: Name, scope: Scope) -> ast.AST | None:
    """The function whose variable a name is; of `self.model` the class."""
    current: Scope | None = scope
    while current is not None:
        if name.root == "self" and name.path:
            if isinstance(current, ClassScope):
                return current.node
        elif isinstance(current, FunctionScope) and name.root in current.names:
            return current.node
        current = getattr(current, "owner", None) or current.parent
    return None
