"""Evaluates calls: functions of PyTorch, methods of tensors, modules, functions of the file."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from types import MappingProxyType, NoneType

from npulens.graphs.algebra import power, square_root
from npulens.graphs.calls import bound_arguments
from npulens.graphs.definitions import (
    ClassHere,
    Definitions,
    FunctionHere,
    each_as_call,
    is_generator,
    is_plain,
)
from npulens.graphs.frames import Call, Frame
from npulens.graphs.libraries import library_function
from npulens.graphs.modules import INSTANCE, Modules
from npulens.graphs.nodes import (
    ATTRIBUTE,
    AVAILABLE,
    CONSTANT,
    GLOBAL,
    LIBRARY,
    OPAQUE,
    SELECT,
    TUPLE,
    Graph,
    Node,
    number,
)
from npulens.graphs.operators import VIEWS, function_operator
from npulens.graphs.other_definitions import OtherDefinitions
from npulens.graphs.ranks import know_rank, rank_of
from npulens.graphs.rearranging import letters, rearranged, reduced
from npulens.graphs.scalars import is_scalar
from npulens.graphs.tensor_views import element
from npulens.syntax.bindings import with_defaults
from npulens.syntax.pytorch_names import IN_ALL_RELEASES
from npulens.syntax.scopes import FunctionScope

_MAX_DEPTH = 4
_MAX_STATEMENTS = 40
"""Deeper calls and longer functions are taken as unknown."""

_HARMLESS_DECORATORS = frozenset(
    {"staticmethod", "classmethod", "torch.jit.script", "torch.compile", "torch.no_grad"}
    | {"torch.jit.script_if_tracing", "torch.jit.export", "torch.inference_mode", "override"}
    | {"torch.jit.ignore", "torch.compiler.disable", "typing.override", "typing.no_type_check"}
)
_CREATED = frozenset({"ones", "zeros", "full", "empty", "arange", "tensor", "finfo"})


_NOTHING_AROUND: Mapping[str, Node] = MappingProxyType({})


class Invocations(Modules):
    """Calls, looked into as far as their callee is known."""

    visited: set[ast.AST]
    owner: ClassHere | None = None

    def __init__(self, graph: Graph, definitions: Definitions, elsewhere: OtherDefinitions) -> None:
        super().__init__(graph, definitions, elsewhere)
        self.led_elsewhere: set[ast.AST] = set()
        """Calls of what is looked at by itself: of other modules, or kept in an attribute."""
        self._mapping: dict[int, Call] = {}
        """Calls of `map`, by the serial of their value."""
        self._partial: dict[int, Call] = {}
        """Those of `functools.partial`."""

    def returned(self, function: FunctionHere, names: dict[str, Node], frame: Frame) -> Node | None:
        """What a call of a function of this file gives, `None` if that is not known."""
        raise NotImplementedError

    def initialized(self, owner: ClassHere) -> dict[str, Node]:
        """What constructors of a class assign to attributes of `self`, and no other method does."""
        raise NotImplementedError

    def call(self, node: ast.Call, frame: Frame) -> Node:
        """What a call computes."""
        if ast.Starred in [a.__class__ for a in node.args] or None in [
            k.arg for k in node.keywords
        ]:
            return self._spread(node, frame)
        callee = node.func
        names = self.reexported_libraries(callee, frame)
        owner = None
        if not names and isinstance(callee, ast.Attribute):
            owner = self.value(callee.value, frame)
        positional = self.values(node.args, frame)
        keywords = {k.arg: self.value(k.value, frame) for k in node.keywords if k.arg is not None}
        call = Call(node, positional, keywords, frame)
        if names:
            label = self.label_elsewhere(names, frame)
            if label is not None:
                return self._apply(self.graph.node(GLOBAL, (), label), call)
            return self._library_call(names[0], call)
        if isinstance(callee, ast.Attribute) and owner is not None:
            return self._method_call(owner, callee.attr, call)
        if isinstance(callee, ast.Name):
            return self._named_call(callee, call)
        return self._apply(self.value(callee, frame), call)

    def _spread(self, node: ast.Call, frame: Frame) -> Node:
        """`f(*args, **options)`: not known what it is called with, except for sizes of views."""
        callee = node.func
        is_view = isinstance(callee, ast.Attribute) and callee.attr in VIEWS and not node.keywords
        if is_view and not self.reexported_libraries(callee, frame):
            assert isinstance(callee, ast.Attribute)
            owner = self.value(callee.value, frame)
            sizes = self._sequence(ast.Tuple(node.args, ast.Load()), frame)
            return self._view(callee.attr, owner, sizes.operands)
        operands = [self.value(node.func, frame)]
        for argument in node.args:
            inner = argument.value if isinstance(argument, ast.Starred) else argument
            operands.append(self.value(inner, frame))
        operands += [self.value(keyword.value, frame) for keyword in node.keywords]
        return self.unknown(node, operands)

    def _library_call(self, name: str, call: Call) -> Node:
        tail, positional = name.rpartition(".")[2], call.positional
        signature = function_operator(name)
        if signature is not None:
            bound = bound_arguments(self.graph, signature, positional, call.keywords)
            if bound is not None:
                return self._operation(signature, bound)
        if name.startswith("torch.nn."):
            return self._constructed(name, call)
        if name == "functools.partial" and positional:
            self._partial[
                (value := self._applied(self.graph.node(LIBRARY, (), name), call)).serial
            ] = call
            return value
        calculated = self._calculated(name, positional)
        if calculated is not None:
            return calculated
        if name == "torch.einsum" and positional:
            return self._einsum(positional)
        known = library_function(self.graph, name, positional, call.keywords)
        if known is not None:
            return known
        if name.startswith("einops."):
            known = self._by_einops(tail, call)
            if known is not None:
                return known
        if tail in VIEWS and name.startswith("torch.") and positional:
            return self._view(tail, positional[0], positional[1:])
        if name == "torch.tensor" and positional and self._is_plain_number(positional[0], call):
            return positional[0]
        created = self._created(name, call)
        return created or self._not_known(self.graph.node(LIBRARY, (), name), call)

    def _created(self, name: str, call: Call) -> Node | None:
        """A tensor that is made of sizes."""
        tail = name.removeprefix("torch.")
        if tail == name:
            return None
        if tail == "rand":
            return self.graph.node("rand", _sizes(call.positional), self.number_of(call.node))
        if tail == "arange" and call.keywords.keys() <= {"device", "dtype"}:
            return self.graph.node("arange", tuple(call.positional), ())
        if tail in _CREATED:
            return self.graph.node(tail, call.arguments, tuple(call.keywords))
        return None

    def _calculated(self, name: str, positional: Sequence[Node]) -> Node | None:
        """What functions of numbers compute."""
        if name in ("math.sqrt", "numpy.sqrt") and len(positional) == 1:
            return square_root(self.graph, positional[0])
        if name in ("math.pow", "numpy.power") and len(positional) == 2:
            return power(self.graph, positional[0], positional[1])
        return None

    def _by_einops(self, name: str, call: Call) -> Node | None:
        """What functions of einops compute, as far as it is known."""
        positional, keywords = call.positional, call.keywords
        if name == "rearrange" and len(positional) == 2:
            return rearranged(self.graph, positional[0], positional[1], keywords)
        if name == "reduce" and len(positional) == 3 and not keywords:
            return reduced(self.graph, *positional)
        if name == "einsum" and len(positional) > 1 and not keywords:
            *tensors, recipe = positional
            return self._einsum([letters(self.graph, recipe), *tensors])
        return None

    def _is_plain_number(self, value: Node, call: Call) -> bool:
        """Whether a value is a number where it is computed with: constructors keep a tensor."""
        is_kept = call.frame.function.node.name == "__init__"
        return not is_kept and is_scalar(value, self.initial)

    def _method_call(self, owner: Node, name: str, call: Call) -> Node:
        frame = call.frame
        if owner is self.receiver and self.owner is not None:
            method = self.elsewhere.method(self.definitions, self.owner, name)
            if method is not None:
                return self._inlined(method, owner, call) or self._not_known(owner, call)
        static = self._static_method(owner, name)
        if static is not None:
            return self._inlined(static, None, call) or self._not_known(owner, call)
        if owner is self.receiver and name == "register_buffer" and len(call.positional) > 1:
            self._registered(owner, call.positional, frame)
        if (owner.serial, name) in frame.attributes or owner is self.receiver:
            return self._apply(self.attribute(owner, name, frame), call)
        known = self._tensor_method(owner, name, call)
        return known or self._applied(self.attribute(owner, name, frame), call)

    def _static_method(self, owner: Node, name: str) -> FunctionHere | None:
        """The static method of this name, where the owner is a class of the project."""
        found = self.class_named(owner)
        if found is None:
            return None
        method = self.elsewhere.method(self.definitions, found, name)
        return method if method is not None and "staticmethod" in method.decorators else None

    def class_named(self, named: Node) -> ClassHere | None:
        """The class that a name of this or of another module stands for."""
        label = str(named.label)
        if named.operator != GLOBAL or not label.rpartition(".")[2][:1].isupper():
            return None
        if "." in label:
            return self.elsewhere.class_named(label)
        self.definitions.queried.add(label)
        return self.definitions.classes.get(label)

    def _registered(self, owner: Node, positional: Sequence[Node], frame: Frame) -> None:
        """`self.register_buffer("name", tensor)` assigns an attribute."""
        name, tensor = positional[:2]
        if name.operator == CONSTANT:
            frame.attributes[owner.serial, str(name.value)] = tensor

    def _not_known(self, called: Node, call: Call) -> Node:
        return self.unknown(call.node, (called, *call.arguments))

    def _applied(self, called: Node, call: Call) -> Node:
        return self.graph.node("apply", (called, *call.arguments), self.number_of(call.node))

    def _named_call(self, callee: ast.Name, call: Call) -> Node:
        called = self.read(callee, call.frame)
        if called.operator != GLOBAL:
            return self._apply(called, call)
        function = self._function(called)
        if function is not None:
            return self._inlined(function, None, call) or self._not_known(called, call)
        if callee.id == "hasattr" and self._is_in_all_releases(call.node.args, call.frame):
            return self.graph.node(AVAILABLE)
        if callee.id in ("int", "float", "tuple", "list") and len(call.positional) == 1:
            return call.positional[0]
        if callee.id == "len" and len(call.positional) == 1:
            return self.graph.node("size", (call.positional[0], self.graph.constant(0)))
        if callee.id == "map" and len(call.positional) == 2 and not call.keywords:
            self._mapping[(value := self._not_known(called, call)).serial] = call
            return value
        return self._not_known(called, call)

    def _function(self, named: Node) -> FunctionHere | None:
        """The function that a name of this or of another module stands for."""
        label = str(named.label)
        return self.elsewhere.function(label) if "." in label else self.definitions.function(label)

    def _is_in_all_releases(self, arguments: Sequence[ast.expr], frame: Frame) -> bool:
        """`hasattr(functional, "scaled_dot_product_attention")`: no release is without it."""
        match arguments:
            case [owner, ast.Constant(str(name))]:
                owners = self.reexported_libraries(owner, frame)
                return any(f"{each}.{name}" in IN_ALL_RELEASES for each in owners)
        return False

    def mapped(self, value: Node, count: int, frame: Frame) -> Node:
        """What `map(function, things)` gives where so many names take it, as a tuple.

        Or `(function(thing) for thing in things)`.
        """
        listed = self.listed.get(value.serial)
        each = None if listed is None else each_as_call(listed)
        if each is not None:
            call = Call(each, self.values([each.func, *each.args], frame), {}, frame)
        elif value.serial in self._mapping:
            call = self._mapping[value.serial]
        else:
            return value
        function, things = call.positional
        parts = [element(self.graph, things, index) for index in range(count)]
        results = (self._apply(function, Call(call.node, [p], {}, frame)) for p in parts)
        return self.graph.node(TUPLE, tuple(results))

    def _apply(self, called: Node, call: Call) -> Node:
        """A call of a value: a module, or a function in a variable or attribute."""
        known = self.initial(called) or called
        if known.operator == SELECT and all(map(_is_function, known.operands[1:])):
            condition, one, other = known.operands
            return self.select(condition, self._apply(one, call), self._apply(other, call))
        if known.operator == LIBRARY and _is_function(known):
            return self._library_call(str(known.label), call)
        if known.operator == GLOBAL:
            function = self._function(known)
            result = function and self._inlined(function, None, call)
            return result or self._not_known(called, call)
        method = self._plain_forward(known)
        if method is not None:
            result = self._inlined(method, called, call)
            self.led_elsewhere.add(call.node)
            return result or self._applied(called, call)
        bound = self._partial.get(known.serial)
        if bound is not None:
            function_of, *first = bound.positional
            keywords = {**bound.keywords, **call.keywords}
            whole = Call(call.node, [*first, *call.positional], keywords, call.frame)
            return self._apply(function_of, whole)
        nested = self.nested.get(known.serial)
        if nested is not None:
            result = self._inlined(nested.function, None, call, nested.around.names)
            self.led_elsewhere.add(call.node)
            return result or self._not_known(called, call)
        if not call.keywords and len(call.positional) == 1:
            (tensor,) = call.positional
            result = self._module_result(known, tensor, call.frame)
            result = result or self._norm_module_result(known, called, tensor, call.frame)
            if result is not None:
                return self._with_own_probability(called, result)
        if not call.keywords and len(call.positional) == 2:
            result = self._loss_result(known, call.positional, call.frame)
            if result is not None:
                return result
        result = self._applied(called, call)
        if _keeps_rank(known) and call.positional:
            rank = rank_of(call.positional[0])
            if rank:
                know_rank(result, rank)
        return result

    def _plain_forward(self, module: Node) -> FunctionHere | None:
        """What an instance of a class of the project computes that holds no other module."""
        if module.operator != OPAQUE or not module.operands:
            return None
        owner = self.class_named(module.operands[0])
        return None if owner is None or not is_plain(owner) else owner.methods.get("forward")

    def initial(self, value: Node) -> Node | None:
        """What the constructor assigned to an attribute of `self`, if that is all there is."""
        if value.operator != ATTRIBUTE or self.owner is None:
            return None
        if value.operands[0] is not self.receiver:
            return None
        return self.initialized(self.owner).get(str(value.label))

    def _inlined(
        self,
        function: FunctionHere,
        owner: Node | None,
        call: Call,
        around: Mapping[str, Node] = _NOTHING_AROUND,
    ) -> Node | None:
        """What a function of this file returns for these arguments."""
        frame = call.frame
        if function.place:
            self.led_elsewhere.add(call.node)  # what changes there changes what is analysed for
        elif not isinstance(function.scope.parent, FunctionScope):
            self.visited.add(function.node)  # others are part of the function around
        if frame.depth >= _MAX_DEPTH or not _can_be_inlined(function):
            return None
        given = list(call.positional)
        if function.receiver is not None and owner is not None:
            given.insert(0, owner)
        names = self._parameters(function, given, call.keywords)
        if names is None:
            return None
        return self.returned(function, {**around, **names}, frame)

    def _parameters(
        self, function: FunctionHere, positional: Sequence[Node], keywords: Mapping[str, Node]
    ) -> dict[str, Node] | None:
        """What each parameter gets; `None` if the call has others or lacks some."""
        arguments = function.node.args
        has_rest = arguments.vararg is not None or arguments.kwarg is not None
        if has_rest or len(positional) > len(function.positional):
            return None
        given = {p.arg: node for p, node in zip(function.positional, positional, strict=False)}
        left = {parameter.arg for parameter in function.parameters} - given.keys()
        defaults = {parameter.arg: default for parameter, default in with_defaults(arguments)}
        if not keywords.keys() <= left <= keywords.keys() | defaults.keys():
            return None
        given.update(keywords)
        left_out = defaults.keys() - given.keys()
        return given | {n: self._default(d) for n, d in defaults.items() if n in left_out}

    def _default(self, node: ast.expr) -> Node:
        if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
            value = self.graph.constant(node.operand.value)  # type: ignore[arg-type]
            amount = number(value)
            if isinstance(node.op, ast.USub) and amount is not None:
                return self.graph.constant(-amount)
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float, str, NoneType)):
            return self.graph.constant(node.value)
        match node:  # `alpha=32 ** 2`
            case ast.BinOp(ast.Constant(int() | float()), operator, ast.Constant(int() | float())):
                left, right = self._default(node.left), self._default(node.right)
                return self.binary(operator, left, right)
        return self.unknown(node)


def _keeps_rank(module: Node) -> bool:
    """Whether a module of PyTorch gives as many dimensions as it is given."""
    if module.operator != INSTANCE or not isinstance(module.label, tuple):
        return False
    return str(module.label[0]) in ("torch.nn.Linear", "torch.nn.LayerNorm")


def _is_function(value: Node) -> bool:
    """Whether a value is a function by its name: of this file, or of a library."""
    tail = str(value.label).rpartition(".")[2]
    return value.operator == GLOBAL or (value.operator == LIBRARY and tail[:1].islower())


def _sizes(positional: Sequence[Node]) -> tuple[Node, ...]:
    """Sizes that are given one by one, or as one sequence."""
    if len(positional) == 1 and positional[0].operator == TUPLE:
        return positional[0].operands
    return tuple(positional)


def _can_be_inlined(function: FunctionHere) -> bool:
    node = function.node
    if isinstance(node, ast.AsyncFunctionDef) or len(node.body) > _MAX_STATEMENTS:
        return False
    if node.decorator_list and not function.decorators <= _HARMLESS_DECORATORS:
        return False
    return not is_generator(function)
