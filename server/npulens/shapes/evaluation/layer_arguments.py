"""What the calls in a constructor say of layers: how much comes out, and what stays as it is."""

import ast
import re
import sys
from collections.abc import Set as AbstractSet

from npulens.graphs.definitions import FunctionHere
from npulens.shapes.operators.shape_rearranging import product_text
from npulens.shapes.values.size_texts import size_text
from npulens.syntax.bindings import Function, with_defaults
from npulens.syntax.by_node import once_by_node
from npulens.syntax.meanings import qualified_names
from npulens.syntax.walking import inner_nodes, nodes_below

_CONVOLUTIONS = tuple(f"{kind}{n}d" for kind in ("Conv", "ConvTranspose") for n in (1, 2, 3))
_RECURRENT = ("LSTM", "GRU", "RNN")
_NORMS = tuple(f"{kind}Norm{n}d" for kind in ("Batch", "Instance") for n in (1, 2, 3))
_SIZES: dict[str, tuple[int, str]] = {
    "Linear": (1, "out_features"),
    "Embedding": (1, "embedding_dim"),
    "LayerNorm": (0, "normalized_shape"),
    "RMSNorm": (0, "normalized_shape"),
    "GroupNorm": (1, "num_channels"),
    "MultiheadAttention": (0, "embed_dim"),
    **dict.fromkeys(_NORMS, (0, "num_features")),
    **dict.fromkeys(_CONVOLUTIONS, (1, "out_channels")),
    **dict.fromkeys(_RECURRENT, (1, "hidden_size")),
}
"""The parameter of layers that says what comes out, by place and name."""
_KEEPING = ("Norm", "LU", "Dropout", "Identity", "Sigmoid", "Tanh")
_WORD = re.compile(r"\w+")
_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.comprehension)


def size_given(node: ast.Call, name: str, changing: frozenset[str]) -> str:
    """How many features or channels come out of a layer, by the call that makes it.

    Args:
        node: The call.
        name: The qualified name of the layer.
        changing: Names of the constructor that mean several values.
    """
    layer = name.rpartition(".")[2]
    given = None
    if layer in _SIZES and not _is_spread(node):
        given = argument(node, *_SIZES[layer])
    text = "?" if given is None else settled_text(size_text(given), changing)
    if layer not in _RECURRENT or text == "?":
        return text
    if argument(node, 8, "proj_size") is not None:
        return "?"
    match argument(node, 6, "bidirectional"):
        case None | ast.Constant(value=False):
            return text
        case ast.Constant(value=True):
            return product_text(["2", text])
    return "?"


def keeps_lengths(node: ast.Call, name: str) -> bool:
    """Whether a convolution surely leaves lengths as they are: by numbers that are written."""
    if name.rpartition(".")[2] not in _CONVOLUTIONS[:3] or _is_spread(node):
        return False
    numbers = []
    for place, keyword, default in (
        (2, "kernel_size", None),
        (3, "stride", 1),
        (4, "padding", 0),
        (5, "dilation", 1),
    ):
        given = argument(node, place, keyword)
        if isinstance(given, ast.Constant) and given.value == "same":
            return True
        number = default if given is None else _number(given)
        if number is None:
            return False
        numbers.append(number)
    kernel, stride, padding, dilation = numbers
    return stride == 1 and 2 * padding == dilation * (kernel - 1)


def layer_by_default(callee: ast.expr, method: FunctionHere) -> str:
    """The layer that a parameter stands for if it is left out, of those that keep shapes.

    Whatever is given for `norm_layer` or `act_layer` keeps them, too.
    """
    if not isinstance(callee, ast.Name):
        return ""
    values = [value for arg, value in with_defaults(method.node.args) if arg.arg == callee.id]
    if not values:
        return ""
    for node in inner_nodes(method.node):
        match node:
            case ast.Assign([ast.Name(name)], value) if name == callee.id:
                values.append(value)
    for value in values:
        found = qualified_names(value, method.scope) if value is not None else []
        name = found[0] if found else ""
        if name.startswith("torch.nn.") and name.rstrip("123d").endswith(_KEEPING):
            return name
    return ""


def settled_text(text: str, changing: AbstractSet[str]) -> str:
    """A size as the code calls it, `?` if one of its names means several values there."""
    return text if not changing or changing.isdisjoint(_WORD.findall(text)) else "?"


def argument(node: ast.Call, place: int, keyword: str) -> ast.expr | None:
    """An argument by name or place."""
    named = next((k.value for k in node.keywords if k.arg == keyword), None)
    return node.args[place] if named is None and len(node.args) > place else named


@once_by_node
def tensors_made(method: Function) -> dict[str, ast.expr]:
    """What a constructor makes parameters and buffers of, by attribute, where a call says so."""
    found: dict[str, ast.expr] = {}
    local: dict[str, ast.expr] = {}
    for node in inner_nodes(method):
        match node:
            case ast.Assign([ast.Name(name)], value):
                local[name] = value
            case ast.Assign(
                [ast.Attribute(ast.Name(), attribute)],
                ast.Call(ast.Name("Parameter") | ast.Attribute(_, "Parameter"), [made, *_]),
            ):
                found.setdefault(attribute, made)
            case ast.Call(
                ast.Attribute(_, "register_buffer" | "register_parameter"),
                [ast.Constant(str(attribute)), made, *_],
            ):
                found.setdefault(attribute, made)
    return {
        name: made if changes_after(made, method) else local.get(getattr(made, "id", ""), made)
        for name, made in found.items()
    }


def is_sent(node: ast.expr) -> bool:
    """Whether something is made on a device: `zeros(1).to(device)`, `zeros(1, device=device)`."""
    match node:
        case ast.Call(ast.Attribute(ast.Call(), "to" | "cuda" | "npu")):
            return True
        case ast.Call():
            return any(keyword.arg == "device" for keyword in node.keywords)
    return False


def is_number(node: ast.expr) -> bool:
    """Whether what a constructor keeps is a number, or an argument as it was given."""
    match node:
        case ast.Constant(int() | float()) | ast.Name():
            return True
        case ast.BinOp(left, _, right):
            return is_number(left) and is_number(right)
        case ast.UnaryOp(_, operand):
            return is_number(operand)
        case ast.Attribute(ast.Name(), _):
            return True
        case ast.Call(ast.Attribute(ast.Name("math"), _)):
            return True
        case ast.Call(ast.Name("int" | "float"), [_]):
            return True
    return False


def changes_after(node: ast.expr, method: Function) -> bool:
    """Whether an expression is a name that a function binds again behind it."""
    return isinstance(node, ast.Name) and node.id in names_bound_after(node, method)


@once_by_node
def assigned_attributes(method: Function) -> frozenset[str]:
    """The attributes that a method assigns, of `self` or of anything else."""
    nodes = inner_nodes(method)
    return frozenset(_bound(node)[1:] for node in nodes if isinstance(node, ast.Attribute)) - {""}


def names_bound_after(node: ast.expr, method: Function) -> frozenset[str]:
    """The names and attributes that a function binds again behind a place, or in a loop."""
    last = _last_bindings(method)
    return frozenset(name.removeprefix(".") for name, line in last.items() if line > node.lineno)


@once_by_node
def _last_bindings(method: Function) -> dict[str, int]:
    """The line where each name or attribute is bound last; behind all lines, in a loop."""
    last: dict[str, int] = {}
    for node in nodes_below(method):
        if isinstance(node, _LOOPS):
            inside = (_bound(each) for each in nodes_below(node))
            last.update((name, sys.maxsize) for name in inside if name)
        elif isinstance(node, (ast.Name, ast.Attribute)) and _bound(node):
            name = _bound(node)
            last[name] = max(last.get(name, 0), node.lineno)
    return last


def _bound(node: ast.AST) -> str:
    """The name or attribute that a node binds, empty if it is none that does."""
    if not isinstance(node, (ast.Name, ast.Attribute)) or not isinstance(node.ctx, ast.Store):
        return ""
    return node.id if isinstance(node, ast.Name) else f".{node.attr}"


def _number(node: ast.expr) -> int | None:
    value = node.value if isinstance(node, ast.Constant) else None
    return value if type(value) is int else None


def _is_spread(node: ast.Call) -> bool:
    return any(isinstance(each, ast.Starred) for each in node.args) or any(
        keyword.arg is None for keyword in node.keywords
    )
