"""What arithmetic makes of numbers, lists and types of tensors."""

import ast
from collections.abc import Sequence

from npulens.shapes.values.shape_values import Items, Number, Tensor, Value, either, items_of


def put_together(first: Value, second: Value) -> Value:
    """A list behind another."""
    assert isinstance(first, Items)
    assert isinstance(second, Items)
    if first.elements is not None and second.elements is not None:
        return items_of((*first.elements, *second.elements))
    return Items(either(first.each, second.each), None, first.sources | second.sources)


def of_numbers(node: ast.BinOp | ast.AugAssign, first: Number, second: Number) -> Number:
    """A number from two."""
    sources = first.sources | second.sources
    if "random" in (first.text, second.text):
        return Number("random", sources)
    if not sources:
        return Number(_text(node, first, second))
    is_rest = isinstance(node.op, ast.Sub) and not first.sources and not second.is_rest
    return Number("?", sources, is_rest)


def _text(node: ast.BinOp | ast.AugAssign, first: Number, second: Number) -> str:
    """How a number reads that is computed: as a number if both are written, or as the code."""
    if first.value is not None and second.value is not None:
        number = _computed(node.op, first.value, second.value)
        return "?" if number is None else str(number)
    is_short = isinstance(node, ast.BinOp) and all(
        isinstance(side, (ast.Name, ast.Constant)) for side in (node.left, node.right)
    )
    return ast.unparse(node) if is_short and "?" not in (first.text, second.text) else "?"


def _computed(op: ast.operator, first: int, second: int) -> int | None:
    match op:
        case ast.Add():
            return first + second
        case ast.Sub():
            return first - second
        case ast.Mult():
            return first * second
        case ast.FloorDiv() if second:
            return first // second
        case ast.Mod() if second:
            return first % second
    return None


def kind_of(op: ast.operator, operands: Sequence[Tensor], first: Value, second: Value) -> str:
    """The type of what is computed from tensors, empty if it is not known."""
    kinds = {operand.kind for operand in operands}
    if kinds == {"bool"} and len(operands) == 2 and not isinstance(op, (ast.Sub, ast.Div)):
        return "bool"
    if isinstance(op, ast.Div):
        return "float"
    if isinstance(op, (ast.BitAnd, ast.BitOr, ast.BitXor)):
        return "bool" if "bool" in kinds and "int" not in kinds else ""
    if "float" in kinds:
        return "float"
    if kinds == {"bool"}:
        # Releases before 1.2 had masks of bytes, which `1 - mask` turned around.
        return "bool" if isinstance(op, ast.Sub) and first == Number("1") else ""
    return "int" if kinds == {"int"} and _are_whole(first, second) else ""


def _are_whole(*values: Value) -> bool:
    return all(
        isinstance(value, Tensor) or (isinstance(value, Number) and value.value is not None)
        for value in values
    )
