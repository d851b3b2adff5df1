"""How many dimensions a tensor has, where its views tell."""

from npulens.graphs.nodes import TUPLE, Node, number

_SAME = frozenset(
    {"cast", "contiguous", "half", "every_second", "transpose", "dropout", "softmax", "silu"}
    | {"layer_norm", "rms_norm", "normalize", "roll", "masked_fill"}
)
_MAX_STEPS = 64


def rank(node: Node) -> int | None:
    """The number of dimensions, `None` if it is not known."""
    more = 0
    for _ in range(_MAX_STEPS):
        if node.operator in ("reshape", "permute"):
            sizes = node.operands[1:]
            counted = [size for size in sizes if number(size) is not None or len(sizes) > 1]
            known = counted and not any(size.operator == "spread" for size in sizes)
            return len(sizes) + more if known else None
        if node.operator == "unsqueeze":
            more += 1
        elif node.operator == "unflatten" and node.operands[2].operator == TUPLE:
            more += len(node.operands[2].operands) - 1
        elif node.operator == "element" and node.operands[0].operator in ("chunk", "split"):
            node = node.operands[0]
        elif node.operator not in _SAME:
            return None
        node = node.operands[0]
    return None
