"""What the code shows of attention masks: causal ones, and ones of floats."""

from npulens.graphs.nodes import ATTRIBUTE, CONSTANT, SELECT, Node, is_constant, number
from npulens.graphs.pairs import SLICE, is_first
from npulens.graphs.scalars import Initial, is_lowest

_MAX_DEPTH = 12
_VIEWS = frozenset({"reshape", "unsqueeze", "contiguous", "cast", "expand", "detach"})
_ONES = frozenset({"ones", "ones_like", "full"})


def diagonal(node: Node, initial: Initial, dropped: bool = True, depth: int = 0) -> str | None:
    """Which diagonal a boolean mask leaves out all above, and nothing else; `None` for no mask.

    "start" is the main diagonal, "end" the one that ends bottom right.

    Args:
        node: The mask.
        initial: Knows attributes.
        dropped: Whether true means left out, or kept.
        depth: How far the mask has been followed.
    """
    if depth > _MAX_DEPTH:
        return None
    operator, operands = node.operator, node.operands
    if operator == ATTRIBUTE:
        assigned = initial(node)
        return None if assigned is None else diagonal(assigned, initial, dropped, depth + 1)
    if operator == "logical_not":
        return diagonal(operands[0], initial, not dropped, depth + 1)
    if operator in ("eq", "ne") and operands[1].operator == CONSTANT:
        inverted = (operator == "eq") == (not operands[1].value)
        return diagonal(operands[0], initial, dropped is not inverted, depth + 1)
    if operator in _VIEWS:
        return diagonal(operands[0], initial, dropped, depth + 1)
    if operator == "index":
        inner = diagonal(operands[0], initial, dropped, depth + 1)
        return inner and _cut_out(operands[1:], inner)
    if operator == ("triu" if dropped else "tril") and operands[0].operator in _ONES:
        return _diagonal(operands[1], dropped)
    return None


def _diagonal(offset: Node, dropped: bool) -> str | None:
    """`triu(ones, 1)` starts at the corner, `triu(ones, columns - rows + 1)` ends there."""
    amount = number(offset)
    if amount is not None:
        return "start" if amount == int(dropped) else None
    if offset.operator != "add":
        return None
    terms = _terms(offset)
    constants = [number(term) for term in terms if number(term) is not None]
    negative = [t for t in terms if t.operator == "multiply" and is_constant(t.operands[0], -1)]
    return "end" if sum(filter(None, constants)) == int(dropped) and len(negative) == 1 else None


def _terms(node: Node) -> list[Node]:
    if node.operator != "add":
        return [node]
    return [term for operand in node.operands for term in _terms(operand)]


def _cut_out(items: tuple[Node, ...], inner: str) -> str | None:
    """What part of a triangle is taken: rows and columns from the start, or the last rows."""
    slices = [item for item in items if item.operator == SLICE]
    if len(slices) < 2:
        return inner if not slices else None
    rows, columns = slices[-2:]
    if not is_first(columns.operands[0]):
        return None
    if is_first(rows.operands[0]):
        return inner
    start, stop, _ = rows.operands
    negated = [t for t in _terms(start) if t.operator == "multiply"]
    is_last_rows = stop is columns.operands[1] and stop in _terms(start) and len(negated) == 1
    return "end" if is_last_rows else None


def is_float_mask(node: Node, initial: Initial, depth: int = 0) -> bool:
    """Whether the code shows that a mask is of floats, to be added to scores."""
    if depth > _MAX_DEPTH:
        return False
    operator, operands = node.operator, node.operands
    if operator == "masked_fill":
        return is_lowest(operands[2], initial)
    if operator == "stored":
        # mask[:n, :n] = -inf; what a loop stores is not known
        is_filled = is_lowest(operands[-1], initial)
        return is_filled or is_float_mask(operands[0], initial, depth + 1)
    if operator == "multiply":
        return any(is_lowest(operand, initial) for operand in operands)
    if operator == "full":
        return len(operands) > 1 and is_lowest(operands[1], initial)
    if operator == "cast":
        target = str(operands[1].label) if len(operands) > 1 else ""
        if target in ("torch.float32", "torch.float16", "torch.bfloat16"):
            return True
        if target == "dtype" and operands[1].operands != (operands[0],):
            return True  # that of the query
        return target != "torch.bool" and is_float_mask(operands[0], initial, depth + 1)
    if operator == ATTRIBUTE:
        assigned = initial(node)
        return assigned is not None and is_float_mask(assigned, initial, depth + 1)
    if operator == SELECT:
        return any(is_float_mask(operand, initial, depth + 1) for operand in operands[1:])
    if operator in _VIEWS or operator in ("triu", "tril", "index", "transpose"):
        return is_float_mask(operands[0], initial, depth + 1)
    return operator == "add" and any(is_float_mask(o, initial, depth + 1) for o in operands)


def is_learned_bias(node: Node, initial: Initial, depth: int = 0) -> bool:
    """Whether a mask is taken from parameters: relative positions that a model learns."""
    if depth > _MAX_DEPTH:
        return False
    operator, operands = node.operator, node.operands
    if operator == ATTRIBUTE:
        assigned = initial(node)
        return assigned is not None and assigned.operator == "parameter"
    if operator == "apply" and operands[0].operator == ATTRIBUTE:
        assigned = initial(operands[0])
        return assigned is not None and _EMBEDDING in str(assigned.label)
    if operator == SELECT:
        return any(is_learned_bias(operand, initial, depth + 1) for operand in operands[1:])
    if operator in ("add", "multiply"):
        return any(is_learned_bias(operand, initial, depth + 1) for operand in operands)
    moves = operator in _VIEWS or operator in ("index", "transpose", "permute", "sigmoid")
    return moves and is_learned_bias(operands[0], initial, depth + 1)


_EMBEDDING = "torch.nn.Embedding"
