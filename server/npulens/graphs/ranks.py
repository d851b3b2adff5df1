"""How many dimensions tensors have, where the code shows it."""

from npulens.graphs.nodes import CONSTANT, OPAQUE, SELECT, TUPLE, Node, number

_MAX_DEPTH = 12
_KEEPS_RANK = frozenset(
    {"cast", "contiguous", "detach", "softmax", "dropout", "masked_fill", "transpose", "linear"}
    | {"silu", "gelu", "half", "every_second", "roll", "triu", "tril", "layer_norm", "narrow"}
    | {"rms_norm", "repeat_interleave", "power", "sigmoid", "normalize", "chunk", "split"}
)

_TENSORS = frozenset({"permute", "reshape", "transpose", "contiguous"})
"""What is unpacked along its first dimension."""


def rank_of(node: Node, depth: int = 0) -> int | None:
    """The number of dimensions of a value, `None` if the code does not show it, 0 if it varies."""
    known = node.rank
    if known is not None or depth > _MAX_DEPTH or not node.operands:
        return known
    operator, operands = node.operator, node.operands
    if operator in ("permute", "expand", "reshape"):
        return _by_sizes(operator, operands, depth)
    if operator == "matmul":
        ranks = [rank_of(operand, depth + 1) for operand in operands]
        return max((rank for rank in ranks if rank is not None), default=None)
    if operator in ("add", "multiply", SELECT):
        return _of_several(operands[operator == SELECT :], depth)
    if operator == OPAQUE:
        return _rearranged(operands)
    inner = rank_of(operands[0], depth + 1)
    if not inner or operator in _KEEPS_RANK:
        return inner
    if operator == "unsqueeze":
        return inner + 1
    if operator == "element" and operands[0].operator in ("unbind", "chunk", "split"):
        return inner
    if operator == "element" and operands[0].operator in _TENSORS:
        return inner - 1
    if operator == "unflatten" and operands[2].operator == TUPLE:
        return inner + len(operands[2].operands) - 1
    if operator == "unbind":
        return inner - 1
    if operator == "index" and all(number(item) is not None for item in operands[1:]):
        return inner - len(operands) + 1
    return None


def know_rank(node: Node, rank: int) -> None:
    """Note what the use of a value shows of its dimensions."""
    if node.rank is None:
        node.rank = rank


def _by_sizes(operator: str, operands: tuple[Node, ...], depth: int) -> int | None:
    """Sizes are given one by one, or as the shape of something else."""
    sizes = operands[1:]
    if len(sizes) == 1 and number(sizes[0]) is None:
        if operator == "reshape" and sizes[0].operator == "shape":
            return rank_of(sizes[0].operands[0], depth + 1)
        return None
    return None if any(size.operator == "spread" for size in sizes) else len(sizes)


def _of_several(operands: tuple[Node, ...], depth: int) -> int | None:
    """The rank of a sum or choice: all of its tensors have it, as far as they are known."""
    ranks = {rank_of(operand, depth + 1) for operand in operands} - {None}
    return ranks.pop() if len(ranks) == 1 else 0 if ranks else None


def _rearranged(operands: tuple[Node, ...]) -> int | None:
    """`rearrange(x, "b n (h d) -> b h n d")` of einops."""
    if len(operands) < 3 or operands[0].label not in ("einops.rearrange", "einops.repeat"):
        return None
    recipe = operands[2]
    if recipe.operator != CONSTANT or not isinstance(recipe.value, str):
        return None
    axes, inside = 0, False
    for word in recipe.value.partition("->")[2].replace("(", " ( ").replace(")", " ) ").split():
        if word == "...":
            return None
        if word in "()":
            inside = word == "("
            axes += inside
        else:
            axes += not inside
    return axes or None
