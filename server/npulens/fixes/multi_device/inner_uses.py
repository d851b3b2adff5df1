"""Where a script means the model inside of its wrapper.

The wrapper has what training needs; everything else is read from the model in it, as
`model.module`. A method of the model's own would go around the wrapper, and the cards would train
apart: it is refused where gradients are computed, unless it computes with no parameter.
"""

import ast
import re
from collections.abc import Iterator

from npulens.fixes.multi_device.models import Aliases, returns_itself
from npulens.fixes.multi_device.reading import Reading, last_name
from npulens.syntax.bindings import Function
from npulens.syntax.walking import nodes_below

_OF_WRAPPER = frozenset(
    {"eval", "forward", "module", "no_sync", "parameters", "requires_grad_"}
    | {"train", "training", "zero_grad", "device"}
)
_OF_MODULE = frozenset(
    {"apply", "buffers", "children", "extra_repr", "get_parameter", "get_submodule"}
    | {"load_state_dict", "modules", "named_buffers", "named_children", "named_modules"}
    | {"named_parameters", "register_buffer", "register_forward_hook", "state_dict", "to", "cuda"}
    | {"npu", "cpu", "half", "float", "double", "bfloat16", "type", "save_pretrained", "save"}
    | {
        "gradient_checkpointing_enable",
        "gradient_checkpointing_disable",
        "print_trainable_parameters",
    }
)
"""Methods of every module, and of those of transformers, that do not compute."""
_ASKS = frozenset(
    {"isinstance", "hasattr", "getattr", "setattr", "len", "print", "str", "repr", "type"}
)
_OUTSIDE = re.compile(
    r"deepcopy|ema|averag|summary|flops|watch|save|load|export|trace|script", re.I
)


def inner_uses(reading: Reading, aliases: Aliases) -> Iterator[ast.expr]:
    """The expressions that hold a wrapped model and stand for the model in it.

    Raises:
        UnclearError: Something goes around the wrapper.
    """
    for node in reading.flow.places:
        if isinstance(node, ast.expr) and aliases.is_wrapped(node):
            if not _is_inner(reading, node):
                continue
            yield node


def _is_inner(reading: Reading, node: ast.expr) -> bool:
    parent = reading.parents[node]
    if isinstance(parent, ast.keyword):
        parent = reading.parents[parent]
    if isinstance(parent, ast.Attribute):
        return _attribute(reading, parent)
    if isinstance(parent, ast.Subscript) and parent.value is node:
        _require_outside_training(reading, parent, parent)
        return True
    if isinstance(parent, (ast.For, ast.comprehension)) and parent.iter is node:
        return True
    if isinstance(parent, ast.Call) and parent.func is not node:
        return _given(reading, parent)
    call = _saving_call(reading, node)
    return call is not None


def _attribute(reading: Reading, node: ast.Attribute) -> bool:
    if node.attr in _OF_WRAPPER:
        return False
    parent = reading.parents[node]
    is_called = isinstance(parent, ast.Call) and parent.func is node
    if isinstance(parent, ast.Call) and is_called and returns_itself(parent):
        # `model = model.to(device)` stays the wrapper, `model.cpu().state_dict()` asks the model
        outer = reading.parents[parent]
        return isinstance(outer, (ast.Attribute, ast.Expr)) or _is_given(parent, outer)
    if is_called and node.attr not in _OF_MODULE:
        if not _is_without_parameters(reading, node):
            _require_outside_training(reading, node, parent)
    elif isinstance(parent, (ast.Attribute, ast.Subscript)) and parent.value is node:
        called: ast.AST = parent
        while isinstance(called, (ast.Attribute, ast.Subscript)) and isinstance(
            reading.parents[called], (ast.Attribute, ast.Subscript)
        ):
            called = reading.parents[called]
        outer = reading.parents[called]
        is_called = isinstance(outer, ast.Call) and outer.func is called
        if is_called and last_name(called) not in _OF_MODULE | _OF_WRAPPER | _OF_TENSOR:  # type: ignore[arg-type]
            _require_outside_training(reading, node, outer)
    return True


def _is_given(node: ast.expr, outer: ast.AST) -> bool:
    """Whether an expression is an argument, as of `deepcopy(model.cpu())`."""
    return isinstance(outer, ast.keyword) or (
        isinstance(outer, ast.Call) and outer.func is not node
    )


_OF_TENSOR = frozenset(
    {"data", "norm", "abs", "pow", "sum", "mean", "view", "reshape", "clone", "detach", "item", "t"}
    | {"numpy", "tolist", "size", "fill_", "copy_", "clamp_", "mul_", "add_", "append", "update"}
)


def _require_outside_training(reading: Reading, node: ast.expr, call: ast.AST) -> None:
    if (
        isinstance(reading.parents[call], ast.Call) or isinstance(call, ast.Call)
    ) and reading.trains_at(node):
        source = reading.source(node)
        raise reading.unclear(node, "distributed.around-the-wrapper", code=source)


def _given(reading: Reading, call: ast.Call) -> bool:
    """Whether what a call is given has to be the model inside."""
    if reading.flow.functions_run(call) or reading.flow.class_made(call) is not None:
        return False
    name = last_name(call.func)
    if name == "isinstance" and len(call.args) > 1:
        classes = [n for n in nodes_below(call.args[1]) if isinstance(n, (ast.Name, ast.Attribute))]
        if any(last_name(each) == "DataParallel" for each in classes):
            return False  # asks for the wrapper
    if name in _ASKS or _OUTSIDE.search(name):
        return True
    statement = reading.parents[call]
    return isinstance(statement, ast.Expr) or not reading.trains_at(call)


def _saving_call(reading: Reading, node: ast.expr) -> ast.Call | None:
    """`torch.save({"model": model}, path)`: the call, if the model is part of what it saves."""
    outer: ast.AST = node
    while isinstance(outer, (ast.expr, ast.keyword)):
        outer = reading.parents[outer]
        if isinstance(outer, ast.Call):
            is_saved = last_name(outer.func) in ("save", "save_checkpoint", "dump")
            return outer if is_saved and node is not outer.func else None
    return None


def _is_without_parameters(reading: Reading, node: ast.Attribute) -> bool:
    """Whether a method of the model computes with none of its parameters, as `init_hidden`."""
    methods = list(_methods(reading, node))
    return bool(methods) and all(_computes_nothing(each, methods) for each in methods)


def _methods(reading: Reading, node: ast.Attribute) -> Iterator[Function]:
    """The methods of a name, in the classes of the file and of modules that it imports."""
    for value in reading.flow.origins(node.value):
        if not isinstance(value.node, ast.Call):
            continue
        owner = reading.flow.class_made(value.node)
        method = None if owner is None else reading.program.method(owner, node.attr)
        if method is not None:
            yield method


_HARMLESS = frozenset({"parameters", "train", "eval", "modules", "size"})


def _computes_nothing(method: Function, _: list[Function]) -> bool:
    for node in nodes_below(method):
        if isinstance(node, ast.Call):
            function = node.func
            if isinstance(function, ast.Name) and function.id == "self":
                return False
            if (
                isinstance(function, (ast.Attribute, ast.Subscript))
                and _root(function) == "self"
                and last_name(function) not in _HARMLESS
            ):
                return False
        elif isinstance(node, ast.Attribute) and node.attr in ("weight", "bias"):
            return False
    return True


def _root(node: ast.expr) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return getattr(node, "id", "")
