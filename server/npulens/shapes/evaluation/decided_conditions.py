"""Conditions that no device decides, and that count for shapes alone.

What a condition comes to on an NPU is decided by `verdicts/conditions.py`. Here is what no device
decides: which framework's arms are read, which attention a model of the module can have, and
whether a list has elements.
"""

import ast
import re
from collections.abc import Iterable

from npulens.graphs.definitions import ClassHere
from npulens.syntax.values import dotted_name

_FRAMEWORK_NAMES = frozenset({"framework", "return_tensors"})
_FRAMEWORKS: dict[object, bool] = {"pt": True, "tf": False, "jax": False, "flax": False}
_ATTENTION = re.compile(r"_?attn_implementation")
_SUPPORTS = re.compile(r"_supports_flash_attn(?:_2)?")
_PRETRAINED = "PreTrainedModel"


def of_framework(node: ast.expr) -> bool | None:
    """`self.framework == "pt"`, where the other frameworks have arms of their own."""
    if not isinstance(node, ast.Compare):
        return None
    named, other = dotted_name(node.left), node.comparators[0]
    if named is None or (named.root, *named.path)[-1] not in _FRAMEWORK_NAMES:
        return None
    value = other.value if isinstance(other, ast.Constant) else None
    if not isinstance(node.ops[0], (ast.Eq, ast.NotEq)) or value not in _FRAMEWORKS:
        return None
    return _FRAMEWORKS[value] == isinstance(node.ops[0], ast.Eq)


def checks_for_flash(node: ast.expr) -> bool:
    """`config._attn_implementation == "flash_attention_2"`."""
    if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], ast.Eq):
        return False
    named, other = dotted_name(node.left), node.comparators[0]
    return (
        named is not None
        and _ATTENTION.fullmatch((named.root, *named.path)[-1]) is not None
        and isinstance(other, ast.Constant)
        and isinstance(other.value, str)
        and "flash" in other.value
    )


def checked_for_elements(node: ast.expr) -> str:
    """`parts` of the condition `parts` or `len(parts) > 0`; empty for another one."""
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Gt, ast.NotEq)):
        length, other = node.left, node.comparators[0]
        is_zero = isinstance(other, ast.Constant) and other.value == 0
        if is_zero and isinstance(length, ast.Call) and len(length.args) == 1:
            is_length = isinstance(length.func, ast.Name) and length.func.id == "len"
            node = length.args[0] if is_length else node
    return node.id if isinstance(node, ast.Name) else ""


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
