"""What an operator asks of its arguments together, and how a rewrite sees to it.

PyTorch promotes types and broadcasts dimensions where a fused operator refuses them. Where the
code does not show that arguments agree, they are made to: a cast that changes nothing where they
do, and dimensions of length one in front.
"""

import ast

from npulens.fused.matching import Match, is_type_of
from npulens.fused.writable_values import Sources, atom
from npulens.graphs.nodes import INPUT, LIBRARY, Node, is_constant, number, reachable, stripped
from npulens.graphs.operators import CASTS
from npulens.graphs.ranks import rank_of
from npulens.syntax.parsing import expression_tree
from npulens.syntax.walking import nodes_below

RESULT_TYPE = "torch.result_type"
_VIEWS = frozenset({"transpose", "unsqueeze", "view", "reshape", "permute", "size"})
_MOVING = frozenset({"index", "unsqueeze", "transpose", "reshape", "expand", "contiguous"})
_COPYING = frozenset({"cast", "contiguous"})
_PLACED = frozenset({"unsqueeze", "reshape", "expand", "permute", "unflatten", "repeat"})
"""What puts dimensions where they belong: whoever writes it has looked at the other operand."""
_FEWEST = 3
"""Of dimensions that a tensor has, and tables beside it: packed tokens, heads and their size."""


def adapted(match: Match, name: str, sources: Sources) -> str | None:
    """What is written behind a variable, so that it agrees with the others; `None` if that fails.

    `[None, None].to(x.dtype)` behind cosines of two dimensions, nothing behind what agrees.
    """
    parts = (_dimensions(match, name, sources), _type(match, name, sources))
    return None if None in parts else "".join(part for part in parts if part is not None)


def cast_text(cast: Node, sources: Sources) -> str | None:
    """A cast as it is appended to an expression."""
    _, *targets = cast.operands
    if len(targets) != 1:
        return None
    if targets[0].operator == LIBRARY:
        name = str(targets[0].label).removeprefix("torch.")
        method = next((method for method, cast in CASTS.items() if cast == name), None)
        return None if method is None else f".{method}()"
    target = sources.of(targets[0])
    return None if target is None else f".to({target})"


def may_be_repeated(source: str) -> bool:
    """Whether computing an expression several times costs nothing: it calls no more than views."""
    nodes = list(nodes_below(expression_tree(source)))
    calls = (node.func for node in nodes if isinstance(node, ast.Call))
    return not any(isinstance(getattr(node, "op", None), ast.MatMult) for node in nodes) and all(
        isinstance(callee, ast.Attribute) and callee.attr in _VIEWS for callee in calls
    )


def _type(match: Match, name: str, sources: Sources) -> str | None:
    leader = _leader(match)
    wanted = match.pattern.one_type
    if name == leader or name not in wanted or leader not in match.bound:
        return ""
    if leader != wanted[0] and name != wanted[0]:
        return ""  # tables that are made together
    if _have_one_type(match, name, leader):
        return ""
    if name in match.pattern.may_be_float32 and _is_float32(match.bound[name]):
        return ""
    cast = match.argument_casts.get(leader, match.bound[leader])
    if cast.operator == "cast":
        return cast_text(cast, sources)
    written = _written_type(cast, sources)
    return None if written is None else f".to({written})"


def _leader(match: Match) -> str:
    """The variable whose type the others take.

    A result that is cast back was computed in a wider type, that of the tables, unless the tensor
    has been cast up itself.
    """
    wanted = match.pattern.one_type
    if len(wanted) < 3 or not match.is_cast_back or _is_cast(match, wanted[0]):
        return wanted[0] if wanted else ""
    return wanted[1]


def _is_cast(match: Match, name: str) -> bool:
    return name in match.argument_casts or match.bound[name].operator == "cast"


def _have_one_type(match: Match, name: str, leader: str) -> bool:
    """Whether the code shows that two variables are of one type."""
    first, second = (stripped(match.bound[each], _MOVING) for each in (name, leader))
    pairs = ((first, second), (second, first))
    if any(node.operator == "cast" and is_type_of(node, other) for node, other in pairs):
        return True
    targets = [node.operands[1:] for node in (first, second) if node.operator == "cast"]
    return len(targets) == 2 and targets[0] == targets[1]


def _is_float32(node: Node) -> bool:
    """Whether a value is computed in float32, as `1 + self.weight.float()`."""
    if node.operator == "cast":
        return str(node.operands[1].label) == "torch.float32"
    return node.operator in ("add", "multiply") and any(map(_is_float32, node.operands))


def _dimensions(match: Match, name: str, sources: Sources) -> str | None:
    wanted = match.pattern.one_rank
    if name not in wanted[1:] or wanted[0] not in match.bound:
        return ""
    node, leader = match.bound[name], match.bound[wanted[0]]
    own, whole = rank_of(node), rank_of(leader)
    if own and whole:
        missing = whole - own
        return f"[{', '.join(['None'] * missing)}]" if missing > 0 else ""
    if _is_placed(node) and (not own or own >= _FEWEST):
        return ""
    first, second = (
        _written(each, sources) or _written(stripped(each, _COPYING), sources)
        for each in (leader, node)
    )
    if first is None or second is None:
        return None
    return f"[(None,) * ({first}.dim() - {second}.dim())]"


def _is_placed(node: Node) -> bool:
    """Whether code has given a table its dimensions with those of the tensor in sight."""
    return any(
        (each.operator in _PLACED and not _may_lack_the_first(each))
        or (each.operator == "index" and any(is_constant(i, None) for i in each.operands[1:]))
        for each in reachable(node)
    )


def _may_lack_the_first(node: Node) -> bool:
    """`cos.unsqueeze(1)` of a parameter, which has three dimensions if that has two."""
    is_of_parameter = stripped(node.operands[0], _COPYING).operator == INPUT
    return node.operator == "unsqueeze" and is_of_parameter and number(node.operands[1]) != 0


def _written_type(node: Node, sources: Sources) -> str | None:
    """The data type of a value, without computing it once more."""
    written = _written(node, sources) or _written(stripped(node, {"contiguous"}), sources)
    if written is None and node.operator in ("add", "multiply"):
        parts = [part for part in (_written(each, sources) for each in node.operands) if part]
        return f"{RESULT_TYPE}({', '.join(parts)})" if len(parts) == 2 else None
    return None if written is None else f"{written}.dtype"


def _written(node: Node, sources: Sources) -> str | None:
    """Something of the type and dimensions of a value, which costs nothing to write once more."""
    source = sources.of(node)
    if source is not None and may_be_repeated(source) and not _computes(source):
        return atom(source)
    others = [each for each in node.operands if number(each) is None]
    is_same = node.operator in ("add", "multiply") and len(others) == 1
    return _written(others[0], sources) if is_same else None


def _computes(source: str) -> bool:
    return any(isinstance(node, ast.BinOp) for node in nodes_below(expression_tree(source)))
