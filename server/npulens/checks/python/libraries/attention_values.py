"""What the code around a call of an attention function shows of its arguments."""

import ast
from collections.abc import Iterator

from npulens.syntax.bindings import Function, parameters_of
from npulens.syntax.scopes import FunctionScope, Scope, function_of, receiver_class
from npulens.syntax.values import dotted_name, last_name
from npulens.syntax.walking import nodes_below

_MAX_DEPTH = 6
_SAME_SHAPE = frozenset(
    {"contiguous", "half", "bfloat16", "float", "to", "type", "detach", "clone", "requires_grad_"}
)
_SAME_RANK = _SAME_SHAPE | {
    "transpose",
    "swapaxes",
    "flip",
    "type_as",
    "masked_fill",
    "cuda",
    "npu",
}
_PARTS = frozenset({"chunk", "split", "tensor_split"})


def is_plain(node: ast.expr) -> bool:
    """Whether an expression costs nothing and can be written twice: `q`, `self.q`, `qkv[0]`."""
    if isinstance(node, ast.Subscript):
        return is_plain(node.value) and not any(isinstance(n, ast.Call) for n in nodes_below(node))
    return dotted_name(node) is not None


def is_repeatable(node: ast.expr) -> bool:
    """Whether an expression calls nothing, so that it may be evaluated twice."""
    unlike = ast.Call | ast.Await | ast.NamedExpr | ast.Yield | ast.YieldFrom | ast.Lambda
    return not any(isinstance(inner, unlike) for inner in nodes_below(node))


def of_same_shape(node: ast.expr) -> ast.expr:
    """The tensor on the same device before `.contiguous()`, `.to(dtype)` and the like."""
    while (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _SAME_SHAPE
        and all(map(_is_dtype, node.args))
        and all(map(_is_dtype, node.keywords))
    ):
        node = node.func.value
    return node


def _is_dtype(node: ast.expr | ast.keyword) -> bool:
    """Whether an argument says in which type, and not on which device."""
    if isinstance(node, ast.keyword):
        return node.arg in ("dtype", "memory_format", "non_blocking")
    name = dotted_name(node)
    return name is not None and ("dtype" in (name.root, *name.path)[-1] or name.root == "torch")


def assigned_values(node: ast.expr, scope: Scope) -> list[ast.expr]:
    """What is assigned to a name of the function or to an attribute of `self`, in order.

    An assignment to several names yields its whole value. What a caller passes for a parameter is
    not among them.
    """
    name = dotted_name(node)
    if name is None:
        return []
    owner = receiver_class(name, scope)
    if owner is not None and len(name.path) == 1:
        return [value for target, value in _assignments(owner.node) if dotted_name(target) == name]
    function = _function_of(name.root, scope)
    if function is None or name.path:
        return []
    return [value for target, value in _assignments(function) if name.root in _names(target)]


def _function_of(name: str, scope: Scope) -> Function | None:
    """The function that binds a name."""
    functions = (each for each in scope.around() if isinstance(each, FunctionScope))
    binding = next((each for each in functions if name in each.names), None)
    return None if binding is None else function_of(binding)


def _parameter(node: ast.expr, scope: Scope) -> ast.arg | None:
    """The parameter that a name is."""
    function = _function_of(node.id, scope) if isinstance(node, ast.Name) else None
    if function is None or not isinstance(node, ast.Name):
        return None
    return next((each for each, _ in parameters_of(function.args) if each.arg == node.id), None)


def _assignments(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    found = [n for n in nodes_below(node) if isinstance(n, (ast.Assign, ast.AnnAssign))]
    for statement in sorted(found, key=lambda n: (n.lineno, n.col_offset)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        if statement.value is not None:
            yield from ((target, statement.value) for target in targets)


def _names(target: ast.expr) -> set[str]:
    """The names a target binds; an attribute or an element of something binds none."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return {name for element in target.elts for name in _names(element)}
    return {target.id} if isinstance(target, ast.Name) else set()


def is_number(node: ast.expr, scope: Scope, depth: int = 0) -> bool:
    """Whether an expression is certainly a number, and not `None`."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float))
    if isinstance(node, ast.UnaryOp):
        return is_number(node.operand, scope, depth)
    if isinstance(node, ast.BinOp):
        return True
    if isinstance(node, ast.IfExp):
        return all(is_number(part, scope, depth) for part in (node.body, node.orelse))
    if isinstance(node, ast.BoolOp):
        return isinstance(node.op, ast.Or) and is_number(node.values[-1], scope, depth)
    if isinstance(node, ast.Call):
        name = dotted_name(node.func)
        return name is not None and name.root in ("math", "float")
    parameter = _parameter(node, scope)
    if parameter is not None:
        annotation = parameter.annotation
        return isinstance(annotation, ast.Name) and annotation.id in ("float", "int")
    values = assigned_values(node, scope) if depth < _MAX_DEPTH else []
    return bool(values) and all(is_number(value, scope, depth + 1) for value in values)


def rank(node: ast.expr, scope: Scope, line: int, depth: int = 0) -> int | None:
    """How many dimensions a tensor has, as far as its last shaping before a line shows."""
    if depth > _MAX_DEPTH:
        return None
    if isinstance(node, ast.Call):
        return _rank_of_call(node, scope, line, depth + 1)
    if isinstance(node, ast.Subscript):
        return _rank_of_part(node, scope, line, depth + 1)
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        return rank(node.elt, scope, line, depth + 1)
    before = [value for value in assigned_values(node, scope) if value.lineno < line]
    return rank(before[-1], scope, before[-1].lineno, depth + 1) if before else None


def _rank_of_call(node: ast.Call, scope: Scope, line: int, depth: int) -> int | None:
    name = last_name(node.func)
    if name == "rearrange" and len(node.args) > 1:
        return _rank_of_pattern(node.args[1])
    if name == "map" and node.args and isinstance(node.args[0], ast.Lambda):
        return rank(node.args[0].body, scope, line, depth)
    if name == "unbind" and node.args and not isinstance(node.args[0], (ast.Constant, ast.UnaryOp)):
        return _less(rank(node.args[0], scope, line, depth))  # `torch.unbind(qkv, 2)`
    if not isinstance(node.func, ast.Attribute):
        return None
    if name in ("view", "reshape", "permute"):
        sizes = node.args
        if len(sizes) == 1 and isinstance(sizes[0], (ast.Tuple, ast.List)):
            sizes = sizes[0].elts
        spread = any(isinstance(size, ast.Starred) for size in sizes)
        return len(sizes) if len(sizes) > 1 and not spread else None
    inner = rank(node.func.value, scope, line, depth)
    if name == "unbind":
        return _less(inner)
    if name == "unsqueeze":
        return None if inner is None else inner + 1
    return inner if name in _SAME_RANK or name in _PARTS else None


def _rank_of_pattern(node: ast.expr) -> int | None:
    """Of `b s (h d) -> b s h d`, the axes of the result."""
    if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
        return None
    result = node.value.partition("->")[2]
    if "..." in result:
        return None
    outside = ""
    depth = 0
    for character in result:
        depth += (character == "(") - (character == ")")
        outside += character if depth == 0 else ""
    return len(outside.replace(")", " x ").split())


def _rank_of_part(node: ast.Subscript, scope: Scope, line: int, depth: int) -> int | None:
    inner = rank(node.value, scope, line, depth)
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    for part in parts:
        if isinstance(part, ast.Constant) and isinstance(part.value, int):
            inner = _less(inner)
        elif not isinstance(part, ast.Slice):
            return None
    return inner


def _less(number: int | None) -> int | None:
    return None if number is None else number - 1
