"""Calls of PyTorch as nodes: arguments in the order of the operator, then arithmetic as such."""

from collections.abc import Mapping, Sequence

from npulens.graphs.algebra import add, divide, multiply, negate, power, square_root, subtract
from npulens.graphs.nodes import TUPLE, Graph, Node, is_constant, number
from npulens.graphs.operators import WITHOUT_EFFECT, Signature, parameter_name
from npulens.graphs.pairs import complex_pairs, flattened
from npulens.graphs.permutations import transpose
from npulens.graphs.products import batched, batched_with_sum
from npulens.graphs.ranks import rank_of
from npulens.graphs.tensor_views import floor_divide, unsqueeze


def bound_arguments(
    graph: Graph,
    signature: Signature,
    positional: Sequence[Node],
    keywords: Mapping[str, Node],
) -> dict[str, Node] | None:
    """What each parameter of an operator gets; `None` if the call has others or lacks some.

    Args:
        graph: Where default values become nodes.
        signature: The parameters.
        positional: The arguments by position.
        keywords: The arguments by name; `dtype` is kept under this name.
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
    node = _arithmetic(graph, signature.operator, operands)
    if node is None:
        node = _shaped(graph, signature.operator, operands)
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


def _arithmetic(graph: Graph, operator: str, operands: list[Node]) -> Node | None:
    one = operands[0]
    if operator in _POWERS:
        return power(graph, one, graph.constant(_POWERS[operator]))
    if operator == "sqrt":
        return square_root(graph, one)
    if operator == "neg":
        return negate(graph, one)
    if operator == "pow":
        return power(graph, one, operands[1])
    if operator == "mul":
        return multiply(graph, one, operands[1])
    if operator == "div":
        rounding = operands[2]
        if is_constant(rounding, None):
            return divide(graph, one, operands[1])
        return floor_divide(graph, one, operands[1]) if is_constant(rounding, "floor") else None
    if operator == "add":
        return add(graph, one, multiply(graph, operands[2], operands[1]))
    if operator == "sub":
        return subtract(graph, one, multiply(graph, operands[2], operands[1]))
    if operator == "rsub":
        return subtract(graph, operands[1], multiply(graph, operands[2], one))
    if operator == "addcmul":
        product = multiply(graph, operands[1], operands[2])
        return add(graph, one, multiply(graph, operands[3], product))
    return None


_POWERS = {"rsqrt": -0.5, "square": 2, "reciprocal": -1}


def _shaped(graph: Graph, operator: str, operands: list[Node]) -> Node:
    """Operators with more than one way to be written, besides arithmetic."""
    one = operands[0]
    if operator == "sum":
        return graph.node("sum", tuple(operands))
    if operator == "norm" and is_constant(operands[1], 2):
        squared = power(graph, one, graph.constant(2))
        return square_root(graph, graph.node("sum", (squared, *operands[2:])))
    if operator == "unsqueeze":
        return unsqueeze(graph, one, operands[1])
    if operator == "transpose":
        return transpose(graph, one, *operands[1:])
    if operator == "flatten":
        pairs = flattened(graph, *operands)
        return pairs or graph.node(operator, tuple(operands))
    if operator == "view_as_complex":
        return complex_pairs(graph, one) or graph.node(operator, (one,))
    if operator == "bmm":
        return batched(graph, *operands)
    if operator == "baddbmm":
        return batched_with_sum(graph, operands)
    if operator == "softmax":
        return _softmax(graph, *operands)
    if operator == "dropout":
        return _dropout(graph, one, operands[1:])
    if operator == "scaled_dot_product_attention":
        return graph.node("sdpa", tuple(operands))
    return graph.node(operator, tuple(operands))


def _softmax(graph: Graph, tensor: Node, dimension: Node) -> Node:
    """The last dimension is -1, where the code shows how many there are."""
    position, rank = number(dimension), rank_of(tensor)
    if position is not None and rank and position == rank - 1:
        dimension = graph.constant(-1)
    return graph.node("softmax", (tensor, dimension))


def _dropout(graph: Graph, tensor: Node, arguments: list[Node]) -> Node:
    probability = arguments[0]
    training = arguments[1] if len(arguments) > 1 else graph.constant(True)
    if is_constant(probability, 0) or is_constant(training, False):
        return tensor
    return graph.node("dropout", (tensor, probability, training))


def mean_of_sum(graph: Graph, left: Node, right: Node) -> Node | None:
    """`x.sum(-1) / x.size(-1)` as the mean it is; the arguments of a product, in either order."""
    for total, inverse in ((left, right), (right, left)):
        if total.operator != "sum" or inverse.operator != "power":
            continue
        length, exponent = inverse.operands
        if not (is_constant(exponent, -1) and length.operator == "size"):
            continue
        tensor, dimension = length.operands
        if dimension is total.operands[1] and _is_of_size(total.operands[0], tensor):
            return graph.node("mean", total.operands)
    return None


def _is_of_size(tensor: Node, other: Node) -> bool:
    """Whether a tensor is another, its powers or casts."""
    while other.operator in _SIZE_KEPT:
        other = other.operands[0]
    while tensor is not other and tensor.operator in _SIZE_KEPT:
        tensor = tensor.operands[0]
    return tensor is other


_SIZE_KEPT = frozenset({"cast", "contiguous", "power", "abs"})
