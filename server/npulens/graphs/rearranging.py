"""`einops`, as far as it cuts the last dimension in two, joins the last two or reduces the last."""

import re
from collections.abc import Mapping
from string import ascii_lowercase

from npulens.graphs.nodes import CONSTANT, TUPLE, Graph, Node
from npulens.graphs.pairs import flattened
from npulens.graphs.permutations import permute


def rearranged(
    graph: Graph, tensor: Node, formula: Node, lengths: Mapping[str, Node]
) -> Node | None:
    """The node of a rearrangement, `None` for all but `... (a b) -> ... a b` and its reverse."""
    if formula.operator != CONSTANT or not isinstance(formula.value, str):
        return None
    before, arrow, after = formula.value.partition("->")
    if not arrow:
        return None
    joined_before, joined_after = _last_two_joined(before), _last_two_joined(after)
    order = _order(before.split(), after.split())
    if order:
        return permute(graph, tensor, [graph.constant(position) for position in order])
    parts = _parts_in_front(before.split(), after.split())
    if parts is not None:
        name, is_first = parts
        counted = [lengths.get(name, graph.constant(-1)), graph.constant(-1)]
        into = graph.node(TUPLE, tuple(counted if is_first else counted[::-1]))
        cut = graph.node("unflatten", (tensor, graph.constant(-1), into))
        return graph.node("unbind", (cut, graph.constant(-2 if is_first else -1)))
    if joined_before is not None and joined_before == after.split():
        sizes = [lengths.get(name, graph.constant(-1)) for name in after.split()[-2:]]
        into = graph.node(TUPLE, tuple(sizes))
        return graph.node("unflatten", (tensor, graph.constant(-1), into))
    if joined_after is not None and joined_after == before.split():
        start, end = graph.constant(-2), graph.constant(-1)
        pairs = flattened(graph, tensor, start, end)
        return pairs or graph.node("flatten", (tensor, start, end))
    return None


def reduced(graph: Graph, tensor: Node, formula: Node, how: Node) -> Node | None:
    """`einops.reduce` over the last dimension, which is kept with size one or not."""
    if formula.operator != CONSTANT or not isinstance(formula.value, str):
        return None
    if how.operator != CONSTANT or how.value not in ("mean", "sum"):
        return None
    before, _, after = formula.value.partition("->")
    (*leading, last), kept = before.split() or [""], after.split()
    if not last.isidentifier() or kept not in (leading, [*leading, "1"]):
        return None
    over = graph.constant(-1), graph.constant(kept != leading)
    return graph.node(str(how.value), (tensor, *over))


def letters(graph: Graph, formula: Node) -> Node:
    """The recipe of `einops.einsum`, whose axes have names, as that of `torch.einsum`."""
    if formula.operator != CONSTANT or not isinstance(formula.value, str):
        return formula
    names = dict.fromkeys(re.findall(r"[A-Za-z_]\w*", formula.value))
    if len(names) > len(ascii_lowercase):
        return formula
    short = dict(zip(names, ascii_lowercase, strict=False))
    recipe = re.sub(r"[A-Za-z_]\w*", lambda axis: short[axis[0]], formula.value)
    return graph.constant(recipe.replace(" ", ""))


def _order(before: list[str], after: list[str]) -> list[int]:
    """Where each dimension comes from, if nothing is done but to put them in another order."""
    is_plain = all(name.isidentifier() for name in before) and len({*before}) == len(before) > 1
    return [before.index(name) for name in after] if is_plain and {*before} == {*after} else []


def _parts_in_front(before: list[str], after: list[str]) -> tuple[str, bool] | None:
    """What counts the parts in `b n (two d) -> two b n d`, and whether it is the first of both."""
    if len(before) < 2:
        return None
    *leading, one, other = before
    first, second = one.removeprefix("("), other.removesuffix(")")
    if not (one.startswith("(") and other.endswith(")")) or "(" in "".join(leading):
        return None
    for name, kept in ((first, second), (second, first)):
        if after == [name, *leading, kept]:
            return name, name == first
    return None


def _last_two_joined(side: str) -> list[str] | None:
    """The names of `b n (d r)` without its brackets, if these are around the last two only."""
    leading, opened, rest = side.strip().partition("(")
    inner = rest[:-1].split()
    if not opened or not rest.endswith(")") or "(" in rest or len(inner) != 2:
        return None
    return [*leading.split(), *inner]
