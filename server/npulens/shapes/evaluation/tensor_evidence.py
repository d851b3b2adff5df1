"""What the text of a function shows of its names: which are tensors, and which are arrays."""

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from npulens.graphs.interfaces import OF_MODULES
from npulens.shapes.values.shape_values import (
    CONSTANT,
    FOREIGN,
    LIKELY,
    UNKNOWN,
    Items,
    Tensor,
    Value,
    items_of,
)
from npulens.syntax.bindings import Function, with_defaults
from npulens.syntax.by_node import once_by_node
from npulens.syntax.parsing import expression_tree
from npulens.syntax.values import Name, dotted_name, last_name
from npulens.syntax.walking import inner_nodes, nodes_below

Comprehension = ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp
_WITH_OWN_NAMES = frozenset({ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp, ast.Lambda})
_METHOD_NAMES = (
    "bool unsqueeze view detach permute softmax log_softmax sigmoid masked_fill masked_fill_ "
    "scatter_ "
    "scatter gather index_select long new_zeros new_ones new_full new_tensor new_empty "
    "contiguous backward chunk unbind topk numel index_add_ index_copy_ masked_select nonzero "
    "expand expand_as view_as cuda is_cuda npu is_npu requires_grad requires_grad_ bfloat16 half "
    "register_hook grad_fn clamp clamp_ clamp_min type_as scatter_add_ logsumexp"
)
TENSOR_METHODS = frozenset(_METHOD_NAMES.split())
"""Attributes that tensors have and hardly anything else."""
_NOT_TENSORS = frozenset({"numel", "expand", "nonzero", "chunk", "gather", "scatter"})
"""Of these, what other classes have too; alone they prove nothing."""
_PROOFS = TENSOR_METHODS - _NOT_TENSORS
_PROPERTIES = frozenset({"is_cuda", "is_npu", "requires_grad", "grad_fn"})
"""Those of them that are not called; `args.cuda` is a flag."""
_OF_ARRAYS = frozenset({"astype", "copy"})
"""Methods that arrays of NumPy and tables have, and tensors have not."""
_NUMPY = frozenset({"np", "numpy"})
_OF_PYTORCH = frozenset({"torch", "nn", "F"})
_ASKING = frozenset({"isscalar", "ndim", "shape", "size", "iterable", "issubdtype"})
"""Functions of NumPy that are given anything."""
KINDS = {"BoolTensor": "bool", "LongTensor": "int", "IntTensor": "int", "FloatTensor": "float"}
_TELLING = {
    **dict.fromkeys(OF_MODULES, "module"),
    **dict.fromkeys(_OF_ARRAYS, "array"),
    **{name: name for name in ("device", "shape")},
}
"""What attributes tell of their owner; a device and a shape, both together, have tensors."""
_LISTS = frozenset({"List", "list", "Sequence", "Tuple", "tuple", "Iterable", "OptMultiList"})
_NUMBERS = frozenset({"int", "float", "bool"})
_NO_TENSORS = frozenset({"str", "ndarray", "dict", "Dict", "Path", "DataLoader", "device", "dtype"})
_LONGEST_ANNOTATION = 100
_TENSORS = frozenset({"Tensor", "Parameter", *KINDS})
_LIBRARIES = frozenset({"torch", "F", "functional"})
_TAKING_ONE = (
    "abs exp log sqrt sigmoid tanh relu softmax log_softmax sum mean max min argmax argmin "
    "topk sort argsort cumsum clamp matmul mm bmm mul add sub div pow transpose unsqueeze "
    "squeeze flatten reshape gather index_select masked_select nonzero unique where isnan "
    "isinf logical_and logical_or norm cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss "
    "kl_div normalize binary_cross_entropy binary_cross_entropy_with_logits interpolate pad "
    "one_hot permute chunk zeros_like ones_like rand_like randn_like empty_like full_like"
)
_OF_ONE_TENSOR = frozenset(_TAKING_ONE.split())
"""Functions of PyTorch that take a tensor first, and nothing else there."""
_OF_TWO_TENSORS = frozenset(
    {"max", "min", "maximum", "minimum", "matmul", "mm", "bmm", "fmax", "fmin"}
)
"""Those that take a second one, or the number of a dimension, which no index of several axes is."""

_REDUCING = frozenset({"mean", "sum", "max", "min", "std", "any", "all", "item"})
"""Methods that tensors share with arrays, and modules lack."""
_SENDING = (ast.Call, ast.Tuple)
"""What may be assigned to replace names by their copies on the device."""


class Known(NamedTuple):
    """Names, also dotted ones, that a function shows to be something by what it does with them.

    Attributes:
        tensors: It checks for what only tensors have, such as a device and a shape, or passes
            them to what takes tensors.
        arrays: It calls what arrays have and tensors lack, or computes with them by NumPy.
        modules: It calls what modules have and tensors lack, such as `eval()`.
        scalars: A backward pass begins at them, so they are tensors of one element.
        moved: It moves them to the device itself, so before that they are on the host.
        terms: What such a scalar is the sum of; tensors as well, very likely.
    """

    tensors: frozenset[str]
    arrays: frozenset[str]
    modules: frozenset[str]
    scalars: frozenset[str]
    moved: frozenset[str]
    terms: frozenset[str]


@once_by_node
def known_names(node: ast.AST) -> Known:
    """What a function or comprehension shows of names."""
    found: dict[ast.AST, Name] = {}
    owners: dict[str, list[ast.expr]] = {}
    moved: set[Name | None] = set()
    of_numpy: list[ast.expr] = []
    own: list[tuple[Comprehension | ast.Lambda, frozenset[str]]] = []
    engines: set[ast.AST] = set()
    scalars: set[Name | None] = set()
    sent: list[str] = []
    sums: list[ast.Assign | ast.AugAssign] = []
    numbers: set[str] = set()
    placed_here: set[Name | None] = set()
    reduced: dict[ast.AST, Name | None] = {}
    part: Any
    for part in inner_nodes(node):
        kind = part.__class__  # this loop sees every node of a function
        if kind is ast.Attribute or kind is ast.Call:
            owner = _proven(part)
            name = None if owner is None else dotted_name(owner)
            if name is not None and name.root not in ("torch", "F", "np", "nn"):
                found[part] = name
            elif kind is ast.Attribute and part.attr in _TELLING:
                owners.setdefault(_TELLING[part.attr], []).append(part.value)
            called = getattr(part.func, "attr", "") if kind is ast.Call else ""
            if called in _OF_TWO_TENSORS:
                found.update(_second_of(part))
            elif called and (of_host := _of_host(part, called)):
                of_numpy += of_host
            elif called in _REDUCING and not part.args:
                reduced[part] = dotted_name(part.func.value)
            elif called == "backward":
                scalars.add(dotted_name(_differentiated(part)))
                engines.update([part] if part.args else [])  # `engine.backward(loss)`
        elif kind is ast.Assign and part.value.__class__ in _SENDING:
            sent += _sent(part)
            placed_here.update(map(dotted_name, part.targets) if _is_placed(part.value) else ())
        elif kind is ast.Assign and part.value.__class__ is ast.Constant:
            numbers.update(getattr(target, "id", "") for target in part.targets)
        elif kind is ast.AugAssign or (kind is ast.Assign and part.value.__class__ is ast.BinOp):
            sums.append(part)
        elif kind is ast.Expr:
            moved.add(_moved_in_place(part))
        elif kind in _WITH_OWN_NAMES and part is not node:
            own.append((part, _own_names(part)))
    found = {part: name for part, name in found.items() if part not in engines}
    found.update({part: name for part, name in reduced.items() if name and name in placed_here})
    _leave_out_own(found, own)
    modules = moved | _named(owners.get("module", []))
    placed, shaped = owners.get("device", []), owners.get("shape", [])
    lent = frozenset().union(*(targets for _, targets in own))
    both = _named(placed) & _named(shaped) if placed and shaped else set[Name]()
    both = {name for name in both if name.root not in lent and (name.path or name.root != "self")}
    arrays = {getattr(owner, "id", "") for owner in owners.get("array", [])} - {""}
    arrays |= _bound_once_at_most(node, _computed_with(of_numpy)) if of_numpy else set()
    known = _written({*found.values(), *both} - modules)
    to_device = frozenset(sent) & known
    terms = _written(_terms(sums, scalars, numbers)) if sums and scalars else frozenset[str]()
    return Known(known, frozenset(arrays), _written(modules), _written(scalars), to_device, terms)


@once_by_node
def unpacked_names(node: ast.AST) -> frozenset[str]:
    """Names that loops unpack, and those that `x, y = batch` does: `for x, y in loader`."""
    found: set[str] = set()
    for part in inner_nodes(node):
        targets: list[ast.expr] = []
        if isinstance(part, (ast.For, ast.AsyncFor, ast.comprehension)):
            targets = [elements_bound(part)]
        elif isinstance(part, ast.Assign) and isinstance(part.value, ast.Name):
            targets = part.targets
        for target in targets:
            if isinstance(target, (ast.Tuple, ast.List)):
                found.update(each.id for each in nodes_below(target) if isinstance(each, ast.Name))
    return frozenset(found)


def elements_bound(loop: ast.For | ast.AsyncFor | ast.comprehension) -> ast.expr:
    """What a loop binds, without the number that `enumerate` counts."""
    match loop.iter, loop.target:
        case ast.Call(ast.Name("enumerate")), ast.Tuple([_, element]):
            return element
    return loop.target


def _leave_out_own(
    found: dict[ast.AST, Name], own: Iterable[tuple[Comprehension | ast.Lambda, frozenset[str]]]
) -> None:
    """Leave out what comprehensions and lambdas show of names that they bind."""
    roots = {name.root for name in found.values()}
    for comprehension, targets in own:
        if not targets.isdisjoint(roots):
            for part in inner_nodes(comprehension):
                if part in found and found[part].root in targets:
                    del found[part]


@once_by_node
def computes_on(node: ast.AST) -> str:
    """Whether a function computes by `tensors` or by `arrays` alone; empty if it shows neither."""
    roots = {part.id for part in nodes_below(node) if isinstance(part, ast.Name)}
    if known_names(node).tensors or not roots.isdisjoint(_OF_PYTORCH):
        return "tensors"
    return "" if roots.isdisjoint(_NUMPY) else "arrays"


def _computed_with(given: Sequence[ast.expr]) -> set[str]:
    """The names that NumPy computes with, as `a` and `b` of `np.bincount(n * a[k] + b)`."""
    left, names = [*given], set[str]()
    while left:
        match left.pop():
            case ast.Name(name):
                names.add(name)
            case ast.Subscript(owner) | ast.UnaryOp(operand=owner):
                left.append(owner)
            case ast.Call(ast.Attribute(owner, "astype")):
                left.append(owner)
            case ast.BinOp(first, _, second) | ast.Compare(first, _, [second]):
                left += first, second
    return names


def _of_host(call: ast.Call, called: str) -> list[ast.expr]:
    """What is given to what takes nothing of a device.

    That are functions of NumPy, and types of PyTorch: `x` of `torch.LongTensor(x.nonzero())`.
    """
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    if getattr(owner, "id", "") in _NUMPY:
        return call.args if called not in _ASKING else []
    match call.args if called in KINDS else []:
        case [ast.Call(ast.Attribute(owner, "nonzero"), [], [])]:
            return [owner]
        case [ast.Subscript(owner, ast.Call(ast.Attribute(attr="nonzero"), [], []))]:
            return [owner]
    return []


@once_by_node
def counted_names(node: ast.AST) -> frozenset[str]:
    """Names that a function counts to, so that they are numbers: `range(start, n)`."""
    calls = (part for part in nodes_below(node) if isinstance(part, ast.Call))
    ranges = (call for call in calls if getattr(call.func, "id", "") == "range")
    return frozenset(each.id for call in ranges for each in call.args if isinstance(each, ast.Name))


def _bound_once_at_most(node: ast.AST, names: set[str]) -> set[str]:
    """Those of some names that hold one thing in a function, and what they are other names of."""
    bound, others = Counter[str](), dict[str, str]()
    for part in nodes_below(node):
        match part:
            case ast.Name(name, ast.Store() | ast.Del()) | ast.arg(name):
                bound[name] += 1
            case ast.Assign([ast.Name(name)], ast.Name(other)):
                others[name] = other
    parameters_bound = {part.arg for part in nodes_below(node) if isinstance(part, ast.arg)}
    once = {name for name, count in bound.items() if count == 1}
    held = names - bound.keys() | names & once & parameters_bound
    aliases = {name for name in names & once & others.keys() if others[name] in once | held}
    return held | aliases | {others[name] for name in aliases}


def _named(nodes: list[ast.expr]) -> set[Name]:
    return {name for name in map(dotted_name, nodes) if name is not None}


def _written(names: Iterable[Name | None]) -> frozenset[str]:
    return frozenset(".".join((name.root, *name.path)) for name in names if name is not None)


def _moved_in_place(node: Any) -> Name | None:
    """`model` of the statement `model.cuda()`: of a tensor the copy would be lost."""
    match node.value:
        case ast.Call(ast.Attribute(owner, "cuda" | "npu" | "to" | "half" | "float" | "cpu")):
            return dotted_name(owner)
    return None


def _sent(node: Any) -> list[str]:
    """Names that an assignment replaces by their copies on the device: `x = x.cuda()`."""
    found = []
    for target in node.targets:
        pairs = [(target, node.value)]
        if target.__class__ is ast.Tuple and node.value.__class__ is ast.Tuple:
            pairs = list(zip(target.elts, node.value.elts, strict=False))
        for name, value in pairs:
            match value:
                case ast.Call(ast.Attribute(ast.Name(moved), "cuda" | "npu")):
                    is_sent = True
                case ast.Call(ast.Attribute(ast.Name(moved), "to"), arguments):
                    is_sent = any(map(is_accelerator, arguments))
                case _:
                    continue
            if is_sent and getattr(name, "id", "") == moved:
                found.append(moved)
    return found


def _differentiated(call: Any) -> ast.expr:
    """Where a backward pass begins: `loss` of `loss.backward()` and `engine.backward(loss)`."""
    node: ast.expr = call.args[0] if call.args else call.func.value
    match node:
        case ast.Call(ast.Attribute(attr="scale"), [scaled]):
            return scaled
        case ast.BinOp(left, ast.Div() | ast.Mult()):
            return left
    return node


def _terms(
    sums: Sequence[ast.Assign | ast.AugAssign], scalars: set[Name | None], numbers: set[str]
) -> set[Name]:
    """The names that are added up to what a backward pass begins at, with factors or without."""
    found = set[Name]()
    for node in sums:
        target = node.target if isinstance(node, ast.AugAssign) else node.targets[0]
        if dotted_name(target) not in scalars:
            continue
        if isinstance(node, ast.AugAssign) and not isinstance(node.op, ast.Add):
            continue
        left = [node.value]
        while left:
            match left.pop():
                case ast.BinOp(first, ast.Add(), second):
                    left += first, second
                case ast.BinOp(ast.Name(factor), ast.Mult(), ast.Name(name)):
                    # Which of two names is the weight is known only if it is a number.
                    found.update({Name(name)} if factor in numbers else ())
                case ast.BinOp(_, ast.Mult(), ast.Name(name)) | ast.Name(name):
                    found.add(Name(name))
    return found


def _is_placed(node: ast.expr) -> bool:
    """`y.to(device)`, which arrays lack; quantities with units have `y.to("m")`."""
    match node:
        case ast.Call(ast.Attribute(attr="to"), [ast.Name() | ast.Attribute()]):
            return True
    return False


def _own_names(node: Comprehension | ast.Lambda) -> frozenset[str]:
    """The names that a lambda or comprehension binds."""
    if isinstance(node, ast.Lambda):
        return frozenset(each.arg for each in node.args.args)
    return targets_of(node)


def targets_of(node: Comprehension) -> frozenset[str]:
    """The names that a comprehension binds, which are its own."""
    targets = (part for generator in node.generators for part in nodes_below(generator.target))
    return frozenset(part.id for part in targets if isinstance(part, ast.Name))


def _proven(node: Any) -> ast.expr | None:
    """What an attribute or call shows to be a tensor: the owner of `.unsqueeze`, `.sum(dim=1)`."""
    if node.__class__ is ast.Attribute:
        if node.attr in _PROPERTIES:
            return node.value
        return None if node.attr in OF_MODULES else _copied(node.value)
    callee = node.func
    if not isinstance(callee, ast.Attribute):
        return None
    if callee.attr in _OF_ONE_TENSOR and node.args and last_name(callee.value) in _LIBRARIES:
        return _indexed(node.args[0])
    if callee.attr in _PROOFS:
        return callee.value
    if callee.attr == "to" and any(map(is_accelerator, node.args)):
        return callee.value  # as `.cuda()` does
    shows = any(keyword.arg in ("dim", "keepdim") for keyword in node.keywords)
    return callee.value if shows else None


def _second_of(node: Any) -> Mapping[ast.AST, Name]:
    """`y` of `torch.max(x, y[:, 2:])`, by the node that shows it."""
    match node:
        case ast.Call(ast.Attribute(owner), [_, ast.Subscript() as second, *_]):
            name = dotted_name(_indexed(second)) if last_name(owner) == "torch" else None
            return {} if name is None else {second: name}
    return {}


def _copied(node: ast.expr) -> ast.expr | None:
    """`x` of `x.cpu()`, behind which an attribute is read: a module would be kept."""
    match node:
        case ast.Call(ast.Attribute(owner, "cpu"), [], []):
            return owner
    return None


def _indexed(node: ast.expr) -> ast.expr:
    """What is indexed, or the expression itself: `x` of `x[:, 0]`."""
    while isinstance(node, ast.Subscript) and _is_of_tensor(node.slice):
        node = node.value
    return node


def _is_of_tensor(index: ast.expr) -> bool:
    """Whether an index is one that lists and dictionaries do not take."""
    return isinstance(index, ast.Tuple) or (
        isinstance(index, ast.Constant) and index.value in (None, ...)
    )


def is_accelerator(node: ast.expr) -> bool:
    """`torch.accelerator.current_accelerator()`, or the type of that."""
    if isinstance(node, ast.Attribute) and node.attr == "type":
        node = node.value
    return isinstance(node, ast.Call) and last_name(node.func) == "current_accelerator"


def annotated(annotation: ast.expr | None) -> Value:
    """What a parameter with an annotation holds."""
    if annotation is None:
        return UNKNOWN
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        if len(annotation.value) > _LONGEST_ANNOTATION:
            return UNKNOWN
        try:
            return annotated(expression_tree(annotation.value))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return UNKNOWN
    if isinstance(annotation, ast.BinOp):
        parts = [annotated(part) for part in (annotation.left, annotation.right)]
        return next((_unsure(part) for part in parts if part not in (UNKNOWN, FOREIGN)), UNKNOWN)
    if isinstance(annotation, ast.Subscript):
        return _subscripted(annotation)
    name = last_name(annotation)
    if name in _TENSORS:
        return Tensor(kind=KINDS.get(name, ""))
    if name in _NUMBERS:
        return CONSTANT
    return FOREIGN if name in _NO_TENSORS else UNKNOWN


def _subscripted(annotation: ast.Subscript) -> Value:
    name, inside = last_name(annotation.value), annotation.slice
    if name == "Optional":
        return _unsure(annotated(inside))
    if name in _LISTS:
        if name in ("tuple", "Tuple") and isinstance(inside, ast.Tuple) and not _is_open(inside):
            return items_of(tuple(map(annotated, inside.elts)))
        first = inside.elts[0] if isinstance(inside, ast.Tuple) and inside.elts else inside
        return Items(annotated(first))
    if name == "Union" and isinstance(inside, ast.Tuple):
        parts = {annotated(part) for part in inside.elts} - {UNKNOWN}
        return _unsure(parts.pop()) if len(parts) == 1 else UNKNOWN
    return FOREIGN if name in _NO_TENSORS else UNKNOWN


def _is_open(inside: ast.Tuple) -> bool:
    """`Tuple[int, ...]`."""
    return any(isinstance(each, ast.Constant) and each.value is ... for each in inside.elts)


def _unsure(value: Value) -> Value:
    return value._replace(is_sure=False) if isinstance(value, Tensor) else value


def parameters(node: Function, is_forward: bool) -> Iterator[tuple[str, Value]]:
    """What the parameters of a function hold when nothing is known of its callers.

    Args:
        node: The function.
        is_forward: It is the `forward` of a module, so that parameters without a default are
            likely tensors.
    """
    arguments = node.args
    defaults = dict(with_defaults(arguments))
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        value = annotated(argument.annotation)
        if argument.annotation is None:
            match defaults.get(argument):
                case ast.Constant(int() | float()):
                    value = CONSTANT
                case ast.Constant(str()):
                    value = FOREIGN
                case None if is_forward:
                    value = LIKELY
        yield argument.arg, value
    for rest in (arguments.vararg, arguments.kwarg):
        if rest is not None:
            yield rest.arg, UNKNOWN
