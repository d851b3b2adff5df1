"""Which expressions are known to be tensors, and of which type.

A method such as `mode` says nothing by its name; only a receiver that is surely a tensor does.
"""

import ast

from npulens.catalog.native_tables import TENSOR, TYPE_NAMES, NativeTable
from npulens.checks.context import Context
from npulens.checks.function_names import assignments
from npulens.syntax.bindings import Function, Place
from npulens.syntax.meanings import (
    Instance,
    Local,
    Member,
    Qualified,
    qualified_names,
    resolve,
    resolve_name,
)
from npulens.syntax.scopes import (
    ClassScope,
    FunctionScope,
    Scope,
    ScopedBinding,
    lookup,
    receiver_class,
)
from npulens.syntax.values import UNKNOWN, Called, Either, Expression, Name, Nothing, dotted_name
from npulens.syntax.walking import choices, nodes_below

_MAX_DEPTH = 12
_NO_TENSOR = frozenset({"items", "keys", "values", "get", "append", "pop", "update", "decode"})


def is_tensor(node: ast.expr, scope: Scope, context: Context, depth: int = 0) -> bool:
    """Whether an expression can be nothing but a tensor."""
    if depth > _MAX_DEPTH:
        return False
    native = context.catalogue.native
    values = resolve(node, scope)
    if values and all(
        isinstance(value, (Instance, Member)) and _is_result(value.name, native) for value in values
    ):
        return True
    name = dotted_name(node)
    if name is not None:
        return _name_is_tensor(name, scope, (node.lineno, node.col_offset), native, 0)
    member = node.func if isinstance(node, ast.Call) else node
    if isinstance(member, ast.Attribute):
        is_known = f"{TENSOR}.{member.attr}" in native.tensors
        return is_known and is_tensor(member.value, scope, context, depth + 1)
    if isinstance(node, ast.BinOp):
        sides = (node.left, node.right)
        return any(is_tensor(side, scope, context, depth + 1) for side in sides)
    if isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
        return is_tensor(node.operand, scope, context, depth + 1)
    return isinstance(node, ast.Subscript) and is_tensor(node.value, scope, context, depth + 1)


def tensor_method(member: str, native: NativeTable) -> str | None:
    """`torch.Tensor.mode` for `torch.zeros.mode`, the member of what `torch.zeros` returned."""
    owner, _, method = member.rpartition(".")
    return f"{TENSOR}.{method}" if _is_result(owner, native) else None


def _is_result(name: str, native: NativeTable) -> bool:
    """Whether a tensor is what a function returned, or a method of what it returned."""
    methods = 0
    while name not in native.tensors:
        name, _, method = name.rpartition(".")
        methods += 1
        if f"{TENSOR}.{method}" not in native.tensors or methods > _MAX_DEPTH:
            return False
    return True


def _name_is_tensor(
    name: Name, scope: Scope, place: Place | None, native: NativeTable, depth: int
) -> bool:
    """A name bound to what a method of a tensor returned, or a parameter of `forward`."""
    if depth > _MAX_DEPTH or receiver_class(name, scope) is not None:
        return False
    if name.path:
        owner = Name(name.root, name.path[:-1])
        is_part = f"{TENSOR}.{name.path[-1]}" in native.tensors
        return is_part and _name_is_tensor(owner, scope, place, native, depth + 1)
    found = lookup(name.root, scope, place)
    return bool(found) and all(
        _is_forward_parameter(bound, name.root)
        or _value_is_tensor(bound.binding.value, bound, native, depth)
        for bound in found or ()
    )


def _value_is_tensor(value: Expression, of: ScopedBinding, native: NativeTable, depth: int) -> bool:
    place = of.binding.place
    if isinstance(value, Either):
        kept = [option for option in value.options if not isinstance(option, Nothing)]
        return bool(kept) and all(_value_is_tensor(o, of, native, depth) for o in kept)
    if isinstance(value, Name):
        return _name_is_tensor(value, of.scope, place, native, depth + 1)
    if not isinstance(value, Called):
        return False
    values = resolve_name(value.callee, of.scope, place)
    if values and all(isinstance(v, Qualified) and v.name in native.tensors for v in values):
        return True
    path = value.callee.path
    if not path or f"{TENSOR}.{path[-1]}" not in native.tensors:
        return False
    return _name_is_tensor(Name(value.callee.root, path[:-1]), of.scope, place, native, depth + 1)


def _is_forward_parameter(bound: ScopedBinding, name: str) -> bool:
    """What `forward` of a module is passed, unless it has a type or is used as something else."""
    function = bound.scope
    if bound.binding.value != UNKNOWN or not isinstance(function, FunctionScope):
        return False
    node = function.node
    if not isinstance(node, Function) or node.name != "forward" or function.owner is None:
        return False
    plain = [*node.args.posonlyargs, *node.args.args][1:]
    if not any(arg.arg == name and arg.annotation is None for arg in plain):
        return False
    if bound.binding.place != (0, 0) or not _is_module(function.owner):
        return False
    return not any(_is_no_tensor(part, name) for part in nodes_below(node))


def _is_module(owner: ClassScope, depth: int = 0) -> bool:
    """Whether a class derives from `torch.nn.Module`."""
    pending: list[Name] = [n for b in owner.node.bases if (n := dotted_name(b)) is not None]
    place = (owner.node.lineno, owner.node.col_offset)
    for _ in range(_MAX_DEPTH):
        if not pending:
            return False
        for value in resolve_name(pending.pop(), owner, place):
            if isinstance(value, Qualified) and value.name.startswith("torch.nn."):
                return True
            if isinstance(value, Local):
                pending += value.definition.bases
    return False


def _is_no_tensor(node: ast.AST, name: str) -> bool:
    """Whether a use of a name shows a dictionary, a list or a text."""
    if isinstance(node, ast.Subscript):
        key = node.slice
        is_key = isinstance(key, ast.Constant) and isinstance(key.value, str)
        return is_key and _is_name(node.value, name)
    if isinstance(node, ast.Attribute):
        return node.attr in _NO_TENSOR and _is_name(node.value, name)
    if isinstance(node, (ast.For, ast.comprehension)):
        return _is_name(node.iter, name)
    if isinstance(node, (ast.Starred, ast.FormattedValue)):
        return _is_name(node.value, name)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        is_query = node.func.id in ("isinstance", "zip", "enumerate", "len")
        return is_query and any(_is_name(argument, name) for argument in node.args)
    return False


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def tensor_type(node: ast.expr, scope: Scope, context: Context) -> str | None:
    """The type of a tensor on a device, of those an NPU may lack: `float64` and complex numbers.

    It is recognized by `x.to(torch.float64)` and `torch.ones(2, dtype=torch.float64,
    device=device)`; a tensor made without a device is on the CPU, where every type is fine.
    """
    if not isinstance(node, ast.Call) or on_cpu(node):
        return None
    if isinstance(node.func, ast.Attribute) and node.func.attr in ("to", "type"):
        if is_tensor(node.func.value, scope, context) and not made_on_cpu(node.func.value, scope):
            types = [*node.args, *(k.value for k in node.keywords if k.arg == "dtype")]
            return _first_type(types, scope)
        return None
    keywords = {keyword.arg: keyword.value for keyword in node.keywords}
    if "dtype" not in keywords or "device" not in keywords:
        return None
    made = qualified_names(node.func, scope)
    if any(name in context.catalogue.native.tensors for name in made):
        return _first_type([keywords["dtype"]], scope)
    return None


def made_on_cpu(node: ast.expr, scope: Scope) -> bool:
    """Whether an expression is a call that makes a tensor without naming a device."""
    if not isinstance(node, ast.Call):
        return False
    if on_cpu(node):
        return True
    made = qualified_names(node.func, scope)
    return bool(made) and all(keyword.arg != "device" for keyword in node.keywords)


_FACTORIES = frozenset(
    f"torch.{name}"
    for name in (
        *("arange", "empty", "eye", "from_numpy", "full", "linspace", "logspace", "ones"),
        *("rand", "randint", "randn", "randperm", "zeros"),
        *("BoolTensor", "DoubleTensor", "FloatTensor", "IntTensor", "LongTensor"),
    )
)
_Use = tuple[str, int, int]
"""A name, and where it is."""
_MOVES = frozenset({"to", "cuda", "npu", "type_as", "type", "new_tensor"})


def is_on_host(
    node: ast.expr,
    scope: Scope,
    context: Context,
    known: dict[_Use, bool] | None = None,
    depth: int = 0,
) -> bool:
    """Whether an expression is a tensor that was made on the CPU and never moved.

    Names are followed through the assignments of their function. A tensor that is made in the
    place itself only counts if it is explicitly on the CPU, or made of numbers of the host.
    `known` is what was found out about uses of names; it is given if the expression is the value
    of one.
    """
    if depth > _MAX_DEPTH:
        return False
    inner: list[ast.expr] = []
    if isinstance(node, ast.Call):
        if on_cpu(node):
            return True
        names = qualified_names(node.func, scope)
        if "torch.tensor" in names and _is_of_numbers(node):
            return all(keyword.arg not in ("device", None) for keyword in node.keywords)
        if _FACTORIES.intersection(names):
            return known is not None and all(k.arg not in ("device", None) for k in node.keywords)
        if isinstance(node.func, ast.Attribute) and node.func.attr not in _MOVES:
            inner = [node.func.value]
    elif isinstance(node, ast.BinOp):
        inner = [node.left, node.right]
    elif isinstance(node, ast.Subscript):
        inner = [node.value]
    elif isinstance(node, ast.Name) and isinstance(scope, FunctionScope):
        return _name_is_on_host(node, scope, context, {} if known is None else known)
    return any(is_on_host(part, scope, context, known, depth + 1) for part in inner)


def _is_of_numbers(node: ast.Call) -> bool:
    """`torch.tensor([len(x) for x in xs])`; of another tensor it is where that one is."""
    displays = (ast.List, ast.ListComp, ast.Tuple, ast.Constant)
    return bool(node.args) and isinstance(node.args[0], displays)


def _name_is_on_host(
    node: ast.Name, scope: FunctionScope, context: Context, known: dict[_Use, bool]
) -> bool:
    """Whether all that a name may represent here was assigned in its function, on the CPU."""
    use = (node.id, node.lineno, node.col_offset)
    if use in known or len(known) > _MAX_DEPTH:
        return known.get(use, False)
    known[use] = False
    found = lookup(node.id, scope, (node.lineno, node.col_offset)) or []
    places = {bound.binding.place for bound in found if bound.scope is scope}
    if not places or (0, 0) in places or len(places) < len(found):
        return False  # a parameter, or from elsewhere
    assigned = assignments(scope.node)
    values = [
        assigned[place].value
        for place in places
        if place in assigned and _is_name(assigned[place].targets[0], node.id)
    ]
    known[use] = (
        bool(values)
        and len(values) == len(found)
        and all(is_on_host(value, scope, context, known) for value in values)
    )
    return known[use]


def _first_type(written: list[ast.expr], scope: Scope) -> str | None:
    """The first such type that expressions may name."""
    chosen = (choice for node in written for choice in choices(node))
    return next((t for choice in chosen if (t := _type_named(choice, scope))), None)


def _type_named(node: ast.expr, scope: Scope) -> str | None:
    names = qualified_names(node, scope)
    if len(names) != 1 or not names[0].startswith("torch."):
        return None
    return TYPE_NAMES.get(names[0].removeprefix("torch."))


def on_cpu(node: ast.expr) -> bool:
    """Whether an expression brings its value to the CPU: `x.cpu()`, `device="cpu"`."""
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute) and node.func.attr == "cpu":
        return True
    values = [*node.args, *(k.value for k in node.keywords if k.arg == "device")]
    return any(isinstance(value, ast.Constant) and value.value == "cpu" for value in values)
