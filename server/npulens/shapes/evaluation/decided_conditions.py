"""Conditions that no device decides, and that count for shapes alone.

What a condition comes to on an NPU is decided by `verdicts/conditions.py`. Here is what no device
decides: which framework's arms are read, which attention a model of the module can have, and
whether a list has elements.
"""

import ast
import re
from collections.abc import Iterable

from npulens.graphs.definitions import ClassHere
from npulens.syntax.values import last_name, root_name

_FRAMEWORK_NAMES = frozenset({"framework", "return_tensors"})
_FRAMEWORKS: dict[object, bool] = {"pt": True, "tf": False, "jax": False, "flax": False}
_ATTENTION = re.compile(r"_?attn_implementation")
_SUPPORTS = re.compile(r"_supports_flash_attn(?:_2)?")
_PRETRAINED = "PreTrainedModel"


def of_framework(node: ast.expr) -> bool | None:
    """`self.framework == "pt"`, where the other frameworks have arms of their own."""
    match node:
        case ast.Compare(
            named, [ast.Eq() | ast.NotEq() as operator, *_], [ast.Constant(value), *_]
        ):
            if _last_of(named) in _FRAMEWORK_NAMES and value in _FRAMEWORKS:
                return _FRAMEWORKS[value] == isinstance(operator, ast.Eq)
    return None


def checks_for_flash(node: ast.expr) -> bool:
    """`config._attn_implementation == "flash_attention_2"`."""
    match node:
        case ast.Compare(named, [ast.Eq(), *_], [ast.Constant(str(value)), *_]):
            return "flash" in value and _ATTENTION.fullmatch(_last_of(named)) is not None
    return False


def _last_of(node: ast.expr) -> str:
    """`c` of `a.b.c`; empty for what is not plain attributes of a name."""
    return last_name(node) if root_name(node) else ""


def checked_for_elements(node: ast.expr) -> str:
    """`parts` of the condition `parts` or `len(parts) > 0`; empty for another one."""
    match node:
        case ast.Name(name):
            return name
        case ast.Compare(
            ast.Call(ast.Name("len"), [ast.Name(name)]),
            [ast.Gt() | ast.NotEq(), *_],
            [ast.Constant(0), *_],
        ):
            return name
    return ""


def lacks_flash(classes: Iterable[ClassHere]) -> bool:
    """Whether the models of a module are its own, and none says that it has flash attention.

    The library refuses to build such a model with it (transformers,
    `PreTrainedModel._check_and_adjust_attn_implementation`).
    """
    found = list(classes)
    own = any(_PRETRAINED in each.base_names for each in found)
    return own and not any(_supports(each.node) for each in found)


def _supports(node: ast.ClassDef) -> bool:
    return any(
        isinstance(target, ast.Name) and _SUPPORTS.fullmatch(target.id) is not None
        for statement in node.body
        if isinstance(statement, ast.Assign)
        and not (isinstance(statement.value, ast.Constant) and statement.value.value is False)
        for target in statement.targets
    )
