"""How sizes read that the code names and nobody knows: `n_head` of `self.n_head`."""

import ast

_LONGEST = 24
_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "//",
}


def size_text(node: ast.expr) -> str:
    """A name, a number or what is computed of them, attributes by their last name; or `?`."""
    text = _text(node)
    return text if text and len(text) <= _LONGEST else "?"


def _text(node: ast.expr) -> str:
    match node:
        case ast.Name(name):
            return name
        case ast.Attribute(ast.Name() | ast.Attribute(), attribute):
            return attribute
        case ast.Constant(int(number)) if type(number) is int:
            return str(number)
        case ast.BinOp(left, operator, right) if type(operator) in _OPERATORS:
            sides = _side(left, operator), _side(right)
            return f"{sides[0]} {_OPERATORS[type(operator)]} {sides[1]}" if all(sides) else ""
        case ast.Call(ast.Name("int"), [inner]):
            return _text(inner)
    return ""


def _side(node: ast.expr, before: ast.operator | None = None) -> str:
    """One side of an operation, in brackets unless it is the left one of several products."""
    text = _text(node)
    is_product = isinstance(before, ast.Mult)
    if not isinstance(node, ast.BinOp) or (is_product and isinstance(node.op, ast.Mult)):
        return text
    return f"({text})" if text else ""
