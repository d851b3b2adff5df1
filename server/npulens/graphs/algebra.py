"""Arithmetic in one canonical form.

Division is multiplication by a power, subtraction adds a negative, a root is a power; numbers are
computed. What users wrote as a product of three stays two products: how factors are grouped is a
matter of matching, since a grouped factor may have a name of its own.
"""

import math

from npulens.graphs.nodes import CONSTANT, Graph, Node, is_constant, number, stripped

_HALF = 0.5


def add(graph: Graph, left: Node, right: Node) -> Node:
    """`left + right`."""
    a, b = number(left), number(right)
    if a is not None and b is not None:
        return _computed(graph, a + b)
    if a == 0:
        return right
    if b == 0:
        return left
    return _log_softmax(graph, left, right) or graph.node("add", _ordered(left, right))


def _log_softmax(graph: Graph, left: Node, right: Node) -> Node | None:
    """`x - x.logsumexp(-1, keepdim=True)`."""
    for one, other in ((left, right), (right, left)):
        negative = _negative_of(other)
        if negative is not None and negative.operator == "logsumexp":
            found = _less_its_logsumexp(graph, one, negative)
            if found is not None:
                return found
        chosen = _negative_of(one)
        if chosen is not None and other.operator == "logsumexp":
            found = _less_its_logsumexp(graph, chosen, other)
            if found is not None:
                return negate(graph, found)
    return None


def _negative_of(node: Node) -> Node | None:
    """The `x` of `-x`."""
    return (
        node.operands[1] if node.operator == "multiply" and number(node.operands[0]) == -1 else None
    )


def _less_its_logsumexp(graph: Graph, node: Node, total: Node) -> Node | None:
    """`x - x.logsumexp(-1, keepdim=True)`, or some of its elements less that of their row."""
    tensor, dimension, keeps = total.operands
    if keeps.operator != CONSTANT:
        return None
    if node is tensor and keeps.value is True:
        return graph.node("log_softmax", (tensor, dimension))
    squeezed = node.operator == "squeeze"
    chosen = node.operands[0] if squeezed else node
    if chosen.operator not in ("gather", "index") or chosen.operands[0] is not tensor:
        return None
    loses_dimension = squeezed if chosen.operator == "gather" else _picks_in_rows(chosen)
    if keeps.value is loses_dimension:
        return None
    logarithms = graph.node("log_softmax", (tensor, dimension))
    found = graph.node(chosen.operator, (logarithms, *chosen.operands[1:]), chosen.label)
    return graph.node("squeeze", (found, *node.operands[1:])) if squeezed else found


def _picks_in_rows(index: Node) -> bool:
    """`x[arange(n), targets]`."""
    return len(index.operands) == 3 and index.operands[1].operator == "arange"


def negate(graph: Graph, operand: Node) -> Node:
    """`-operand`."""
    return multiply(graph, graph.constant(-1), operand)


def subtract(graph: Graph, left: Node, right: Node) -> Node:
    """`left - right`."""
    return add(graph, left, negate(graph, right))


def multiply(graph: Graph, left: Node, right: Node) -> Node:
    """`left * right`; a number is first, and only one."""
    a, b = number(left), number(right)
    if a is not None and b is not None:
        return _computed(graph, a * b)
    if b is not None:
        left, right, a = right, left, b
    if a == 1:
        return right
    if a is not None and right.operator == "multiply":
        inner = number(right.operands[0])
        if inner is not None:
            return multiply(graph, _computed(graph, a * inner), right.operands[1])
    if a is not None:
        return graph.node("multiply", (left, right))
    if left is right:
        return power(graph, left, graph.constant(2))
    joined = _joined_powers(graph, left, right)
    if joined is not None:
        return joined
    for one, other in ((left, right), (right, left)):
        # Two times x times x is two times the square of x.
        has_number = one.operator == "multiply" and number(one.operands[0]) is not None
        raised = _raised(graph, one.operands[1] if has_number else one, other)
        if raised is not None:
            return multiply(graph, one.operands[0], raised) if has_number else raised
    for one, other in ((left, right), (right, left)):
        found = _negated(graph, one, other) or _gated(graph, one, other)
        if found is not None:
            return found
    return graph.node("multiply", _ordered(left, right))


def _raised(graph: Graph, one: Node, base: Node) -> Node | None:
    """`x * x` and `x ** 2 * x` as powers of x."""
    if one is base:
        return power(graph, base, graph.constant(2))
    if one.operator != "power" or one.operands[0] is not base:
        return None
    exponent = number(one.operands[1])
    if not isinstance(exponent, int) or exponent < 2:
        return None  # a norm is a quotient with a root
    return power(graph, base, graph.constant(exponent + 1))


def _negated(graph: Graph, left: Node, right: Node) -> Node | None:
    """`x * -y` as the negative of `x * y`."""
    if right.operator != "multiply" or number(right.operands[0]) != -1:
        return None
    return multiply(graph, right.operands[0], multiply(graph, left, right.operands[1]))


def _gated(graph: Graph, left: Node, logistic: Node) -> Node | None:
    """`x * sigmoid(x)` as the SiLU it is, also with other factors before it: `a * x`."""
    if logistic.operator != "sigmoid":
        return None
    (operand,) = logistic.operands
    if left is operand:
        return graph.node("silu", (operand,))
    if left.operator == "multiply":
        for one, other in (left.operands, left.operands[::-1]):
            if other is operand:
                return multiply(graph, one, graph.node("silu", (operand,)))
    return None


def _joined_powers(graph: Graph, left: Node, right: Node) -> Node | None:
    """`d ** -0.25 * (d ** -0.25 * x)` as `d ** -0.5 * x`; roots of the same number."""
    for one, other in ((left, right), (right, left)):
        if one.operator != "power" or other.operator not in ("power", "multiply"):
            continue
        parts = other.operands if other.operator == "multiply" else (other,)
        for index, part in enumerate(parts):
            if part.operator == "power" and part.operands[0] is one.operands[0]:
                exponent = add(graph, one.operands[1], part.operands[1])
                joined = power(graph, one.operands[0], exponent)
                rest = parts[:index] + parts[index + 1 :]
                return multiply(graph, joined, rest[0]) if rest else joined
    return None


def divide(graph: Graph, left: Node, right: Node) -> Node:
    """`left / right`."""
    divisor = number(right)
    if divisor:
        return multiply(graph, left, _computed(graph, 1 / divisor))
    return multiply(graph, left, power(graph, right, graph.constant(-1)))


def power(graph: Graph, base: Node, exponent: Node) -> Node:
    """`base ** exponent`."""
    a, b = number(base), number(exponent)
    if a is not None and b is not None:
        return _power_of_numbers(graph, base, exponent, a, b)
    if b == 1:
        return base
    if b is not None and base.operator == "power":
        inner = number(base.operands[1])
        # (x ** 2) ** 0.5 is abs(x), not x.
        if inner is not None and (inner % 2 != 0 or b == int(b)):
            return power(graph, base.operands[0], _computed(graph, inner * b))
    if b == 2 and base.operator == "multiply" and all(map(_is_root, base.operands)):
        # The square of a length over the root of a width is a mean of squares.
        left, right = (power(graph, part, exponent) for part in base.operands)
        return mean_of_sum(graph, left, right) or multiply(graph, left, right)
    if b == -1:
        logit = _logistic(base)
        if logit is not None:
            return graph.node("sigmoid", (negate(graph, logit),))
    return graph.node("power", (base, exponent))


def square_root(graph: Graph, operand: Node) -> Node:
    """The root of a node or number."""
    return power(graph, operand, graph.constant(_HALF))


def _is_root(node: Node) -> bool:
    """A number, a root or its inverse."""
    if node.operator != "power":
        return number(node) is not None
    return number(node.operands[1]) in (_HALF, -_HALF)


def _logistic(node: Node) -> Node | None:
    """The `y` of `1 + exp(y)`."""
    if node.operator != "add":
        return None
    for one, other in (node.operands, node.operands[::-1]):
        if number(one) == 1 and other.operator == "exp":
            return other.operands[0]
    return None


def _ordered(left: Node, right: Node) -> tuple[Node, Node]:
    return (left, right) if left.serial <= right.serial else (right, left)


def _power_of_numbers(graph: Graph, base: Node, exponent: Node, a: float, b: float) -> Node:
    try:
        result = float(a) ** float(b)
    except (OverflowError, ZeroDivisionError):
        result = 0j
    if isinstance(result, complex):
        return graph.node("power", (base, exponent))
    return _computed(graph, result)


def _computed(graph: Graph, value: float) -> Node:
    """A computed number; the last digits do not count, `1 / math.sqrt(64)` is `64 ** -0.5`."""
    if isinstance(value, int):
        return graph.constant(value if abs(value) < 1e15 else float(value))
    if not math.isfinite(value):
        return graph.constant(value)
    return graph.constant(float(f"{value:.12g}"))


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
    other = stripped(other, _SIZE_KEPT)
    while tensor is not other and tensor.operator in _SIZE_KEPT:
        tensor = tensor.operands[0]
    return tensor is other


_SIZE_KEPT = frozenset({"cast", "contiguous", "power", "abs"})
