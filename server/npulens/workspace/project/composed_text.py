"""Strings that a build file puts together: names of extension modules."""

import ast
from collections.abc import Mapping

_MAX_DEPTH = 12


def composed_text(node: ast.expr | None, values: Mapping[str, ast.expr], depth: int = 0) -> str:
    """What an expression comes to, empty if that is not known.

    Args:
        node: The expression: `f"{module}.{name}"`, `"%s.%s" % (module, name)`, `module + name`.
        values: What names represent.
        depth: How many expressions are around it.
    """
    parts = _parts(node, values, depth + 1) if depth < _MAX_DEPTH else None
    return "" if parts is None else "".join(parts)


def _parts(node: ast.expr | None, values: Mapping[str, ast.expr], depth: int) -> list[str] | None:
    """The parts of a string; `None` if one of them is not known."""

    def of(*nodes: ast.expr) -> list[str] | None:
        found = [composed_text(part, values, depth) for part in nodes]
        return found if all(found) else None

    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else None
    if isinstance(node, ast.Name):
        value = values.get(node.id)
        rest = {name: each for name, each in values.items() if name != node.id}
        known = "" if value is None else composed_text(value, rest, depth)
        return [known] if known else None
    if isinstance(node, ast.JoinedStr):
        return of(*node.values)
    if isinstance(node, ast.FormattedValue):
        return of(node.value)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return of(node.left, node.right)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        given = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
        return _filled(composed_text(node.left, values, depth), "%s", of(*given))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        before = composed_text(node.func.value, values, depth)
        if node.func.attr == "format":
            return _filled(before, "{}", of(*node.args))
        if (
            node.func.attr == "join"
            and node.args
            and isinstance(node.args[0], (ast.List, ast.Tuple))
        ):
            words = of(*node.args[0].elts)
            return None if words is None or not before else [before.join(words)]
    return None


def _filled(template: str, mark: str, given: list[str] | None) -> list[str] | None:
    """A template with its marks replaced."""
    segments = template.split(mark)
    if given is None or len(segments) != len(given) + 1:
        return None
    return [part for pair in zip(segments, [*given, ""], strict=True) for part in pair]
