"""What functions of other libraries compute, written as what PyTorch's would."""

from collections.abc import Mapping, Sequence

from npulens.graphs.algebra import add, multiply, subtract
from npulens.graphs.calls import bound_arguments
from npulens.graphs.nodes import TUPLE, Graph, Node, is_constant
from npulens.graphs.operators import Parameter, Signature
from npulens.graphs.tensor_views import half

_ROTARY = Signature(
    "rotary",
    (
        *(Parameter(name, required=True) for name in ("input", "cos", "sin")),
        Parameter("interleaved", False, False),
        Parameter("inplace", False, False),
        Parameter("seqlen_offsets", False, 0),
        Parameter("cu_seqlens", False, None),
        Parameter("max_seqlen", False, None),
    ),
)
_FUNCTIONS = frozenset(
    f"flash_attn.layers.rotary.{name}"
    for name in ("apply_rotary_emb", "apply_rotary_emb_func", "apply_rotary_emb_torch")
)


def library_function(
    graph: Graph, name: str, positional: Sequence[Node], keywords: Mapping[str, Node]
) -> Node | None:
    """The computation of a call, `None` where it is not known or does more than compute."""
    if name not in _FUNCTIONS:
        return None
    bound = bound_arguments(graph, _ROTARY, positional, keywords)
    if bound is None or not is_constant(bound["inplace"], False):
        return None
    if not is_constant(bound["seqlen_offsets"], 0) or not is_constant(bound["cu_seqlens"], None):
        return None
    return _rotary(graph, bound)


def _rotary(graph: Graph, bound: Mapping[str, Node]) -> Node | None:
    """Tables of `(sequence, half of the head)` beside `(batch, sequence, heads, head)`."""
    x = bound["input"]
    cos, sin = (_between(graph, bound[name]) for name in ("cos", "sin"))
    last = graph.constant(-1)
    if is_constant(bound["interleaved"], False):
        one, other = (half(graph, x, index, last) for index in (0, 1))
    elif is_constant(bound["interleaved"], True):
        one, other = (graph.node("every_second", (x, graph.constant(i))) for i in (0, 1))
    else:
        return None
    parts = (
        subtract(graph, multiply(graph, one, cos), multiply(graph, other, sin)),
        add(graph, multiply(graph, one, sin), multiply(graph, other, cos)),
    )
    if is_constant(bound["interleaved"], True):
        return graph.node("interleave", parts)
    return graph.node("cat", (graph.node(TUPLE, parts), last))


def _between(graph: Graph, table: Node) -> Node:
    widened = graph.node("unsqueeze", (table, graph.constant(0)))
    return graph.node("unsqueeze", (widened, graph.constant(2)))
