"""What a function does with its own names, each gathered in one walk."""

import ast
from dataclasses import dataclass

from npulens.syntax.bindings import Function, Place
from npulens.syntax.by_node import once_by_node
from npulens.syntax.walking import nodes_below

_DEVICE_TYPES = frozenset({"type", "device_type"})


@dataclass(frozen=True, slots=True)
class FunctionNames:
    """Names of a function by what is done with them.

    Attributes:
        refused: What decides only whether it raises, and not by being absent:
            `if "x" in name: raise ...`.
        chosen_by: What only chooses between two values: `a if name else b`.
        of_device: What was assigned a comparison of the device type with CUDA.
        errors: What handlers call the error.
        error_texts: What was assigned the text of one: `text = str(error).lower()`.
    """

    refused: frozenset[str] = frozenset()
    chosen_by: frozenset[str] = frozenset()
    of_device: frozenset[str] = frozenset()
    errors: frozenset[str] = frozenset()
    error_texts: frozenset[str] = frozenset()


NO_NAMES = FunctionNames()


@once_by_node
def names_in(function: Function) -> FunctionNames:
    """The names of a function."""
    loads: dict[str, set[ast.AST]] = {}
    refusals: set[ast.AST] = set()
    choices: set[ast.AST] = set()
    of_device: set[str] = set()
    errors: set[str] = set()
    texts: dict[str, str] = {}
    for part in nodes_below(function):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
            loads.setdefault(part.id, set()).add(part)
        elif isinstance(part, ast.If) and isinstance(part.body[-1], ast.Raise):
            if not any(map(_asks_for_absence, nodes_below(part.test))):
                refusals.update(nodes_below(part.test))
        elif isinstance(part, ast.ExceptHandler) and part.name:
            errors.add(part.name)
        elif isinstance(part, ast.IfExp):
            choices.update(nodes_below(part.test))
        elif isinstance(part, ast.Assign) and any(map(_checks_for_cuda, nodes_below(part.value))):
            of_device.update(target.id for target in part.targets if isinstance(target, ast.Name))
        elif isinstance(part, ast.Assign) and (shown := shown_name(part.value)):
            texts |= {t.id: shown for t in part.targets if isinstance(t, ast.Name)}
    return FunctionNames(
        frozenset(name for name, uses in loads.items() if refusals.issuperset(uses)),
        frozenset(name for name, uses in loads.items() if choices.issuperset(uses)),
        frozenset(of_device),
        frozenset(errors),
        frozenset(name for name, shown in texts.items() if shown in errors),
    )


def shown_name(node: ast.expr) -> str:
    """The name of what is made a text: `error` of `str(error).lower()`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
    is_text = isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("str", "repr")
    shown = node.args[0] if is_text and isinstance(node, ast.Call) and node.args else None
    return shown.id if isinstance(shown, ast.Name) else ""


@once_by_node
def called_names(function: Function) -> frozenset[str]:
    """The plain names that a function calls."""
    calls = (part.func for part in nodes_below(function) if isinstance(part, ast.Call))
    return frozenset(callee.id for callee in calls if isinstance(callee, ast.Name))


@once_by_node
def assignments(function: Function | ast.Lambda) -> dict[Place, ast.Assign]:
    """The assignments of a function by where they end."""
    parts = (part for part in nodes_below(function) if isinstance(part, ast.Assign))
    return {(part.end_lineno or 0, part.end_col_offset or 0): part for part in parts}


def _asks_for_absence(node: ast.AST) -> bool:
    """`not name`, `name is None`, `name == ""`, `len(name) != 1`."""
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Not)
    if not isinstance(node, ast.Compare):
        return False
    other = node.comparators[0]
    if isinstance(node.ops[0], ast.NotEq):
        return True
    return isinstance(node.ops[0], (ast.Is, ast.Eq)) and getattr(other, "value", 0) in (None, "")


def _checks_for_cuda(node: ast.AST) -> bool:
    """`device_type == "cuda"`, `x.device.type == "cuda"`."""
    if not isinstance(node, ast.Compare):
        return False
    left = node.left
    name = left.attr if isinstance(left, ast.Attribute) else getattr(left, "id", "")
    return name in _DEVICE_TYPES and any(
        isinstance(other, ast.Constant) and other.value == "cuda" for other in node.comparators
    )
