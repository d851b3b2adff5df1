"""Conditions that are decided before any data: for another device, for export and the like."""

import ast
import re
from collections.abc import Callable, Iterable

from npulens.graphs.definitions import ClassHere
from npulens.syntax.values import dotted_name

_EXPORTS = re.compile(
    r"(?:is_)?(?:in_)?onnx_(?:export|trace|tracing)|is_(?:in_)?(?:onnx|torchscript|exporting|tracing"
    r"|scripting|exportable|compiling|dynamo_compiling|torchdynamo_compiling)|(?:for_|in_)?export(?:ing|_mode)?|torchscript"
)
_OF_DEVICES = re.compile(
    r"_?(?:\w{1,40}_)?(?:device|device_type|device_name|platform|mode)|dev|type"
)
_HELD_ELSEWHERE = re.compile(r"offload|out|dest|target|map|stor|cach|buffer|load|save|param|optim")
_OTHER_DEVICES = frozenset({"cpu", "mps", "xpu", "hpu", "xla", "tpu", "meta"})
_FRAMEWORK_NAMES = frozenset({"framework", "return_tensors"})
_FRAMEWORKS: dict[object, bool] = {"pt": True, "tf": False, "jax": False, "flax": False}
_ATTENTION = re.compile(r"_?attn_implementation")
_SUPPORTS = re.compile(r"_supports_flash_attn(?:_2)?")
_PRETRAINED = "PreTrainedModel"

Leaf = Callable[[ast.expr], bool | None]


def decided(node: ast.expr, leaf: Leaf) -> bool | None:
    """What a condition is whatever the data; `None` if it depends on more.

    Args:
        node: The condition.
        leaf: Decides about parts that are no `not`, `and` or `or`.
    """
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = decided(node.operand, leaf)
        return None if inner is None else not inner
    if not isinstance(node, ast.BoolOp):
        return leaf(node)
    settling = isinstance(node.op, ast.Or)
    parts = [decided(value, leaf) for value in node.values]
    if settling in parts:
        return settling
    return None if None in parts else not settling


def decided_by_place(node: ast.expr) -> bool | None:
    """What asks for export, for compilation or for another device is where the NPU runs a step."""
    if isinstance(node, ast.Compare):
        framework = _of_framework(node)
        return _of_device(node) if framework is None else framework
    named = dotted_name(node.func if isinstance(node, ast.Call) else node)
    if named is None:
        return None
    last = named.path[-1] if named.path else named.root
    return False if _EXPORTS.fullmatch(last) is not None else None


def _of_framework(node: ast.Compare) -> bool | None:
    """`self.framework == "pt"`, where the other frameworks have arms of their own."""
    named, other = dotted_name(node.left), node.comparators[0]
    if named is None or (named.root, *named.path)[-1] not in _FRAMEWORK_NAMES:
        return None
    value = other.value if isinstance(other, ast.Constant) else None
    if not isinstance(node.ops[0], (ast.Eq, ast.NotEq)) or value not in _FRAMEWORKS:
        return None
    return _FRAMEWORKS[value] == isinstance(node.ops[0], ast.Eq)


def _of_device(node: ast.Compare) -> bool | None:
    """`device.type == "cpu"`, `mode != "cpu"`, `device.type in ("cpu", "mps")`."""
    named = dotted_name(node.left)
    if named is None or len(node.ops) != 1:
        return None
    last = (named.root, *named.path)[-1]
    if _OF_DEVICES.fullmatch(last) is None or _HELD_ELSEWHERE.search(last) is not None:
        return None
    other = node.comparators[0]
    if isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
        if isinstance(other, ast.Call) and len(other.args) == 1:
            other = other.args[0]  # torch.device("cpu")
        return isinstance(node.ops[0], ast.NotEq) if _is_other(other) else None
    if isinstance(node.ops[0], (ast.In, ast.NotIn)) and isinstance(other, (ast.Tuple, ast.List)):
        is_out = bool(other.elts) and all(map(_is_other, other.elts))
        return isinstance(node.ops[0], ast.NotIn) if is_out else None
    return None


def _is_other(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in _OTHER_DEVICES


def asks_for_flash(node: ast.expr) -> bool:
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


def asked_for_elements(node: ast.expr) -> str:
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
