"""Calls of PyTorch as nodes: arguments in the order of the operator, then arithmetic as such."""

from collections.abc import Callable, Mapping, Sequence

from npulens.graphs.algebra import add, divide, multiply, negate, power, square_root, subtract
from npulens.graphs.nodes import (
    ATTRIBUTE,
    CONSTANT,
    TUPLE,
    Graph,
    Node,
    is_constant,
    number,
    stripped,
)
from npulens.graphs.operators import WITHOUT_EFFECT, Signature, parameter_name
from npulens.graphs.pairs import (
    complex_number,
    complex_pairs,
    flattened,
    flipped,
    real_and_imaginary,
)
from npulens.graphs.permutations import transpose
from npulens.graphs.products import batched, batched_with_sum
from npulens.graphs.ranks import know_rank, rank_of
from npulens.graphs.tensor_views import floor_divide, unsqueeze


def bound_arguments(
    graph: Graph,
    signature: Signature,
    positional: Sequence[Node],
    keywords: Mapping[str, Node],
) -> dict[str, Node] | None:
    """What each parameter of an operator gets; `None` if the call has others or lacks some.

    `dtype` is kept under this name.
    """
    parameters = signature.parameters
    if len(positional) > len(parameters):
        return None
    bound = {p.name: node for p, node in zip(parameters, positional, strict=False)}
    names = {parameter.name for parameter in parameters} | {"dtype"}
    for keyword, node in keywords.items():
        name = parameter_name(keyword)
        if name in names and name not in bound:
            bound[name] = node
        elif keyword not in WITHOUT_EFFECT:
            return None
    for parameter in parameters:
        if parameter.name not in bound:
            if parameter.required:
                return None
            bound[parameter.name] = graph.constant(parameter.default)
    return bound


def operation(graph: Graph, signature: Signature, bound: dict[str, Node]) -> Node:
    """The node of an operator with these arguments."""
    dtype = bound.pop("dtype", None)
    operands = [bound[parameter.name] for parameter in signature.parameters]
    for position, parameter in enumerate(signature.parameters):
        if parameter.name == "dim":
            operands[position] = _one_dimension(operands[position])
    form = _FORMS.get(signature.operator)
    node = None if form is None else form(graph, *operands)
    node = node or graph.node(signature.operator, tuple(operands))
    if dtype is None or is_constant(dtype, None):
        return node
    return graph.node("cast", (node, dtype))


def _one_dimension(dimension: Node) -> Node:
    """`dim=(-1,)` and `dim=[-1]` are `dim=-1`, and so is `dim=x.ndim - 1`."""
    if dimension.operator == TUPLE and len(dimension.operands) == 1:
        return dimension.operands[0]
    if dimension.operator == "add":
        for amount, rank in (dimension.operands, dimension.operands[::-1]):
            if is_constant(amount, -1) and (rank.operator == "dim" or rank.label == "ndim"):
                return amount
    return dimension


def _added(graph: Graph, one: Node, other: Node, alpha: Node) -> Node:
    return add(graph, one, multiply(graph, alpha, other))


def _subtracted(graph: Graph, one: Node, other: Node, alpha: Node) -> Node:
    return subtract(graph, one, multiply(graph, alpha, other))


def _divided(graph: Graph, one: Node, other: Node, rounding: Node) -> Node | None:
    if is_constant(rounding, None):
        return divide(graph, one, other)
    return floor_divide(graph, one, other) if is_constant(rounding, "floor") else None


def _norm(graph: Graph, tensor: Node, order: Node, *over: Node) -> Node | None:
    if not is_constant(order, 2):
        return None
    squared = power(graph, tensor, graph.constant(2))
    return square_root(graph, graph.node("sum", (squared, *over)))


def _softmax(graph: Graph, tensor: Node, dimension: Node) -> Node:
    """The last dimension is -1, where the code shows how many there are."""
    position, rank = number(dimension), rank_of(tensor) or _rank_of_scores(tensor, dimension)
    if position is not None and rank and position == rank - 1:
        dimension = graph.constant(-1)
    return graph.node("softmax", (_without_shift(graph, tensor, dimension), dimension))


def _rank_of_scores(scores: Node, dimension: Node) -> int | None:
    """Three, where `q.transpose(1, 2) @ k` is normalised along the last dimension there is then."""
    if not is_constant(dimension, 2):
        return None
    if scores.operator == "multiply":
        scores = next((part for part in scores.operands if part.operator == "matmul"), scores)
    if scores.operator != "matmul":
        return None
    left, right = (stripped(operand, {"contiguous"}) for operand in scores.operands)
    swapped = [number(operand) for operand in left.operands[1:]]
    if left.operator != "transpose" or swapped != [1, 2] or right.operator == "transpose":
        return None
    for node in (left, right, *scores.operands):
        know_rank(node, 3)
    return 3


def _without_shift(graph: Graph, tensor: Node, dimension: Node) -> Node:
    """The `x` of `a * (x - x.amax(-1, keepdim=True))`, times a number: a shift changes nothing."""
    if tensor.operator == "multiply" and number(tensor.operands[0]) is not None:
        factor, inner = tensor.operands
        return multiply(graph, factor, _without_shift(graph, inner, dimension))
    return _with_maximum(tensor, dimension)


def _squeezed(graph: Graph, tensor: Node, dimension: Node) -> Node | None:
    """Numbers stay in front."""
    if tensor.operator != "multiply" or number(tensor.operands[0]) is None:
        return None
    inner = graph.node("squeeze", (tensor.operands[1], dimension))
    return multiply(graph, tensor.operands[0], inner)


def _likelihood(
    graph: Graph,
    logarithms: Node,
    target: Node,
    weight: Node,
    averaged: Node,
    ignored: Node,
    reduced: Node,
    reduction: Node,
) -> Node | None:
    """`size_average` and `reduce` say what `reduction` says today."""
    if is_constant(averaged, None) and is_constant(reduced, None):
        return None
    if any(node.operator != CONSTANT for node in (averaged, reduced)):
        return None
    is_summed = is_constant(averaged, False)
    name = "none" if is_constant(reduced, False) else "sum" if is_summed else "mean"
    none = graph.constant(None)
    operands = (logarithms, target, weight, none, ignored, none, graph.constant(name))
    return graph.node("nll_loss", operands)


def _mean(graph: Graph, tensor: Node, *over: Node) -> Node | None:
    """The sign of a loss stays in front."""
    if tensor.operator != "multiply" or number(tensor.operands[0]) != -1:
        return None
    return negate(graph, graph.node("mean", (tensor.operands[1], *over)))


_LOGARITHMS = frozenset({"log_softmax", "gather", "index", "squeeze"})


def _logarithm(graph: Graph, tensor: Node) -> Node | None:
    """Those of a softmax, and of a sum of powers of e."""
    if tensor.operator == "softmax":
        return graph.node("log_softmax", tensor.operands)
    if tensor.operator in ("gather", "index", "squeeze"):  # of what was chosen of it
        inner = _logarithm(graph, tensor.operands[0])
        is_known = inner is not None and inner.operator in _LOGARITHMS
        return (
            graph.node(tensor.operator, (inner, *tensor.operands[1:]), tensor.label)
            if is_known and inner is not None
            else None
        )
    if tensor.operator == "sum" and tensor.operands[0].operator == "exp":
        (inner,), over = tensor.operands[0].operands, tensor.operands[1:]
        return graph.node("logsumexp", (inner, *over))
    return None


def _split_evenly(graph: Graph, tensor: Node, sections: Node, dimension: Node) -> Node | None:
    """Into so many parts, as `chunk` does of what can be divided."""
    if not isinstance(number(sections), int):
        return None
    return graph.node("chunk", (tensor, sections, dimension))


def _joined(graph: Graph, parts: Node, dimension: Node) -> Node | None:
    """Tensors that get one more dimension each and are joined along it are stacked."""
    if parts.operator != TUPLE or not all(
        part.operator == "unsqueeze" and part.operands[1] is dimension for part in parts.operands
    ):
        return real_and_imaginary(graph, parts, dimension, "cat")
    inner = graph.node(TUPLE, tuple(part.operands[0] for part in parts.operands))
    return _stacked(graph, inner, dimension) or graph.node("stack", (inner, dimension))


def _stacked(graph: Graph, parts: Node, dimension: Node) -> Node | None:
    return real_and_imaginary(graph, parts, dimension, "stack")


def _drawn(graph: Graph, given: Node, probability: Node) -> Node | None:
    """`bernoulli(full(sizes, p))` as a tensor of these sizes that is filled with draws."""
    if not is_constant(probability, None) or given.operator != "full" or len(given.operands) < 2:
        return None
    assert isinstance(given.label, tuple)
    if "fill_value" in given.label or "size" in given.label:
        return None
    sizes, probability, *options = given.operands
    empty = graph.node("empty", (sizes, *options), given.label)
    return graph.node("bernoulli", (empty, probability))


def _dropout(graph: Graph, tensor: Node, probability: Node, training: Node) -> Node:
    if is_constant(probability, 0) or is_constant(training, False):
        return tensor
    return graph.node("dropout", (tensor, probability, training))


_FORMS: dict[str, Callable[..., Node | None]] = {
    "rsqrt": lambda graph, one: power(graph, one, graph.constant(-0.5)),
    "square": lambda graph, one: power(graph, one, graph.constant(2)),
    "reciprocal": lambda graph, one: power(graph, one, graph.constant(-1)),
    "sqrt": square_root,
    "neg": negate,
    "pow": power,
    "mul": multiply,
    "div": _divided,
    "add": _added,
    "sub": _subtracted,
    "rsub": lambda graph, one, other, alpha: _subtracted(graph, other, one, alpha),
    "addcmul": lambda graph, one, left, right, value: _added(
        graph, one, multiply(graph, left, right), value
    ),
    "norm": _norm,
    "unsqueeze": unsqueeze,
    "transpose": transpose,
    "flatten": flattened,
    "flip": flipped,
    "view_as_complex": complex_pairs,
    "bmm": batched,
    "baddbmm": batched_with_sum,
    "softmax": _softmax,
    "dropout": _dropout,
    "log": _logarithm,
    "squeeze": _squeezed,
    "mean": _mean,
    "nll_loss": _likelihood,
    "tensor_split": _split_evenly,
    "cat": _joined,
    "stack": _stacked,
    "complex": complex_number,
    "bernoulli": _drawn,
    "scaled_dot_product_attention": lambda graph, *operands: graph.node("sdpa", operands),
}
"""Operators with more than one way to be written; `None` is for one that stays as it is."""


def softmax_of_powers(graph: Graph, left: Node, right: Node) -> Node | None:
    """`exp(x) / exp(x).sum(-1, keepdim=True)` as the softmax of x; it may be less its maximum."""
    for powers, inverse in ((left, right), (right, left)):
        if powers.operator != "exp" or inverse.operator != "power":
            continue
        total, exponent = inverse.operands
        if not (is_constant(exponent, -1) and total.operator == "sum"):
            continue
        tensor, dimension, keeps = total.operands
        if tensor is powers and is_constant(keeps, True):
            shifted = _without_shift(graph, powers.operands[0], dimension)
            return graph.node("softmax", (shifted, dimension))
    return None


def _with_maximum(tensor: Node, dimension: Node) -> Node:
    """The x of `x - x.amax(-1, keepdim=True)`, which has the same softmax."""
    if tensor.operator == "add":
        for one, other in (tensor.operands, tensor.operands[::-1]):
            if other.operator == "multiply" and is_constant(other.operands[0], -1):
                greatest = stripped(other.operands[1], {"detach"})
                if greatest.operator in ("index", "element", ATTRIBUTE):  # with the places
                    greatest = stripped(greatest.operands[0], {"detach"})
                if _is_maximum(greatest, one, dimension):
                    return one
    return tensor


def _is_maximum(greatest: Node, tensor: Node, dimension: Node) -> bool:
    """Whether a value is the greatest of each row along a dimension, or of a whole tensor."""
    if greatest.operator not in ("amax", "max"):
        return False
    of, over, _ = greatest.operands
    of = stripped(of, {"detach"})
    return of is tensor and (over is dimension or is_constant(over, None))
