"""Conditions on several of a pattern's variables together, and those that read the constructor."""

from collections.abc import Callable, Sequence
from itertools import islice

from npulens.fused.known_activations import is_gelu_by_default, may_be_silu
from npulens.graphs.functions import Evaluator
from npulens.graphs.nodes import (
    ATTRIBUTE,
    CONSTANT,
    INPUT,
    LIBRARY,
    OPAQUE,
    SELECT,
    TUPLE,
    Node,
    number,
    reachable,
    stripped,
)
from npulens.graphs.pairs import SLICE

Relation = Callable[[Sequence[Node], Evaluator], bool]

_PRODUCTS = frozenset({"linear", "matmul", "einsum", "baddbmm"})
_PARTS = frozenset({"half", "element", "index", "every_second"})
_SAME_SIZE = frozenset({"cast", "contiguous", "dropout", "silu", "gelu", "relu", "masked_fill"})
_LOOKED_THROUGH = _SAME_SIZE | {"reshape", "transpose", "permute"}
_BROADCAST = frozenset({"unsqueeze", "mean", "sum", "amax", "parameter", "size", CONSTANT})
_ONE_FACTOR_NAMES = ("scale", "mask", "weight", "shift", "alpha", "beta", "prob", "score", "coef")
"""Arguments with such names are broadcast."""
_WITHOUT_VALUES = frozenset({"size", "shape", "dim", "ones_like", "zeros_like", ATTRIBUTE})
"""What asks a tensor for its sizes, its type, or where it is."""
_REARRANGED = frozenset({"cast", "contiguous", "reshape", "unsqueeze", "squeeze"})
_MAX_DEPTH = 16
_MAX_NODES = 2000


def _are_alike(nodes: Sequence[Node], evaluator: Evaluator) -> bool:
    """Two tensors of one size and type, as far as the code shows: nothing is broadcast."""
    one, other = (_main_part(node) for node in nodes)
    if one is other or any(_is_broadcast(node, evaluator) for node in nodes):
        return False
    if _is_computed_from(one, other) or _is_computed_from(other, one):
        return False  # a derivative, or a norm of what is activated
    types = {_type_of(node) for node in nodes} - {None}
    if len(types) > 1:
        return False
    if one.operator == other.operator == "apply":
        return _give_one_size(one, other, evaluator)
    is_cut = one.operator == other.operator and one.operator in _PARTS
    return not is_cut or one.operands[0] is not other.operands[0] or _are_parts(one, other)


def _main_part(node: Node) -> Node:
    """A tensor without the bias that is added and what only changes its shape or type."""
    while True:
        if node.operator in _LOOKED_THROUGH:
            node = node.operands[0]
        elif node.operator == "add":
            terms = [term for term in node.operands if term.operator in _PRODUCTS]
            if len(terms) != 1:
                return node
            (node,) = terms
        else:
            return node


def _is_computed_from(node: Node, source: Node) -> bool:
    return any(inner is source for inner in islice(reachable(node), _MAX_NODES))


def _type_of(node: Node) -> str | None:
    """The type that a cast gives, where it says which."""
    node = stripped(node, {"contiguous"})
    if node.operator != "cast" or len(node.operands) != 2:
        return None
    target = node.operands[1]
    return str(target.label) if target.operator == LIBRARY else None


def _is_broadcast(node: Node, evaluator: Evaluator, depth: int = 0) -> bool:
    """Whether a factor may be smaller than the other: it is pooled, a number, a parameter."""
    operator, operands = node.operator, node.operands
    if depth > _MAX_DEPTH or operator in _BROADCAST:
        return True
    if operator == INPUT:
        return _is_one_factor(str(node.label))
    if operator == ATTRIBUTE:
        return True  # of the module, and not of what it is called with
    if operator == "index":
        return any(part.operator == CONSTANT and part.value is None for part in operands[1:])
    if operator == "apply":
        module = evaluator.initial(operands[0]) or operands[0]
        inputs = operands[1:2]
        return "Pool" in repr(module.label) or any(
            _is_broadcast(tensor, evaluator, depth + 1) for tensor in inputs
        )
    if operator in ("add", "multiply", SELECT):
        parts = operands[operator == SELECT :]
        return all(_is_broadcast(part, evaluator, depth + 1) for part in parts)
    if operator in _LOOKED_THROUGH or operator in _PRODUCTS:
        tensor = operands[operator == "einsum"]  # behind the recipe
        return _is_broadcast(tensor, evaluator, depth + 1)
    return False


def _is_one_factor(name: str) -> bool:
    return any(word in name.lower() for word in _ONE_FACTOR_NAMES)


def _give_one_size(one: Node, other: Node, evaluator: Evaluator) -> bool:
    """Whether two modules may give tensors of one size, as far as their constructors show."""
    modules = [evaluator.initial(node.operands[0]) or node.operands[0] for node in (one, other)]
    first, second = modules
    linear = [module for module in modules if _is_linear(module)]
    if len(linear) == 2 and first is not second:
        return len(first.operands) > 1 and first.operands[1] is second.operands[1]
    return True


def _is_linear(module: Node) -> bool:
    return isinstance(module.label, tuple) and module.label[0] == "torch.nn.Linear"


def _are_parts(one: Node, other: Node) -> bool:
    """Parts of one tensor, cut alike, and not in turn."""
    if one.operator == "every_second":
        return False
    tensor, *place = one.operands
    _, *other_place = other.operands
    if one.operator == "element" and tensor.operator == "split":
        lengths = tensor.operands[1].operands if tensor.operands[1].operator == TUPLE else ()
        at = [number(node) for node in (place[0], other_place[0])]
        if not lengths:
            return True  # the last may be shorter, but then their product fails
        return all(isinstance(i, int) and i < len(lengths) for i in at) and (
            lengths[int(at[0] or 0)] is lengths[int(at[1] or 0)]
        )
    if one.operator != "index":
        return tensor.operator in ("chunk", "unbind") or one.operator == "half"
    return not any(part.operator == SLICE and _steps(part) for part in (*place, *other_place))


def _steps(part: Node) -> bool:
    return part.operands[2].operator != CONSTANT or part.operands[2].value not in (None, 1)


def _is_activation(nodes: Sequence[Node], evaluator: Evaluator) -> bool:
    (node,) = nodes
    return node.operator != LIBRARY and may_be_silu(node, evaluator)


def _is_gelu(nodes: Sequence[Node], evaluator: Evaluator) -> bool:
    function, *arguments = nodes
    return function.operator != LIBRARY and is_gelu_by_default(function, arguments, evaluator)


def _is_one_of_many(nodes: Sequence[Node], evaluator: Evaluator) -> bool:
    """Whether one of the values is an item of a sequence that a loop goes through."""
    return any(_is_item(node) for node in nodes)


def _is_expert_with_its_own(nodes: Sequence[Node], evaluator: Evaluator) -> bool:
    """Whether one of many experts is given what a loop takes for it: `x[index == i]`."""
    expert, tokens = nodes
    names = (str(node.label) for node in islice(reachable(expert), _MAX_NODES))
    tokens = stripped(tokens, _REARRANGED)
    picked = tokens.operands[1:] if tokens.operator == "index" else (tokens,)
    return (
        _is_item(expert)
        and any("expert" in name.lower() for name in names)
        and any(map(_is_item, (n for each in picked for n in islice(reachable(each), 40))))
        and tokens.operator in ("index", "element", OPAQUE)
    )


def _is_item(node: Node) -> bool:
    """`experts[i]` or `i` of a loop over experts; for a module of many, what is in its place."""
    if node.operator in ("index", "element", "transpose", ATTRIBUTE):
        return any(_is_item(operand) for operand in node.operands)
    return node.operator == OPAQUE and isinstance(node.label, tuple) and node.label[0] == "item"


def _is_per_sample(nodes: Sequence[Node], evaluator: Evaluator) -> bool:
    """Whether a tensor has one number for each sample of another: sizes `(len(x), 1, 1)`."""
    drawn, x = nodes
    sizes = drawn.operands[drawn.operator not in ("rand", "empty") :]
    if drawn.operator == "empty" and isinstance(drawn.label, tuple):
        sizes = sizes[: len(sizes) - len(drawn.label)]
    if len(sizes) == 1 and sizes[0].operator in (TUPLE, "add"):
        return _starts_with_length(sizes[0], x)
    return len(sizes) > 1 and _are_ones(sizes[1:]) and _is_length(sizes[0], x)


def _starts_with_length(sizes: Node, x: Node) -> bool:
    """`(len(x), 1, 1)` or `(len(x),) + (1,) * (x.ndim - 1)`."""
    if sizes.operator == TUPLE:
        return (
            len(sizes.operands) > 1
            and _are_ones(sizes.operands[1:])
            and (_is_length(sizes.operands[0], x))
        )
    return any(
        one.operator == TUPLE and len(one.operands) == 1 and _is_length(one.operands[0], x)
        for one in sizes.operands
    )


def _are_ones(sizes: Sequence[Node]) -> bool:
    return all(number(size) == 1 for size in sizes)


def _is_length(size: Node, x: Node) -> bool:
    """Whether a size is that of the first dimension of a tensor, by what else is one or a name."""
    if size.operator != "size":
        return size.operator in (INPUT, ATTRIBUTE)
    return number(size.operands[1]) == 0 and any(
        size.operands[0] is node for node in islice(reachable(x), _MAX_DEPTH)
    )


def _is_made_of(nodes: Sequence[Node], evaluator: Evaluator) -> bool:
    """Whether a parameter was made as a row of just so many numbers."""
    if len(nodes) < 2:
        return True  # the pattern is another one, without a width
    parameter, width = (evaluator.initial(node) or node for node in nodes)
    if parameter.operator != "parameter":
        return False
    created = parameter.operands[0]
    if not created.operands or created.operator not in ("ones", "zeros", "empty"):
        return False
    size = created.operands[0]
    return (size.operands[-1] if size.operator == TUPLE and size.operands else size) is width


def _are_apart(nodes: Sequence[Node], evaluator: Evaluator) -> bool:
    """Whether the first of two, where there is one, is computed without values of the second."""
    if len(nodes) < 2:
        return True
    first, second = nodes
    pending, seen = [first], {first}
    while pending and len(seen) < _MAX_NODES:
        node = pending.pop()
        if node is second:
            return False
        new = [o for o in node.operands if o not in seen and node.operator not in _WITHOUT_VALUES]
        seen.update(new)
        pending += new
    return True


def _is_last_by_default(nodes: Sequence[Node], evaluator: Evaluator) -> bool:
    """Whether a dimension is what a constructor is given, and the last where it is not."""
    (node,) = nodes
    default = evaluator.default(evaluator.initial(node) or node)
    return default is not None and number(default) == -1


RELATIONS: dict[str, Relation] = {
    "activation": _is_activation,
    "alike": _are_alike,
    "apart": _are_apart,
    "gelu": _is_gelu,
    "last by default": _is_last_by_default,
    "made of": _is_made_of,
    "one of many": _is_one_of_many,
    "per sample": _is_per_sample,
    "expert with its own": _is_expert_with_its_own,
}
