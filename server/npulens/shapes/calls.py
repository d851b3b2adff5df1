"""Evaluates calls: operators of PyTorch, layers, methods, and functions of the same file."""

import ast
import re

from npulens.graphs.definitions import FunctionHere
from npulens.shapes.builtins import BUILTINS, of_math
from npulens.shapes.evidence import TENSOR_METHODS
from npulens.shapes.expressions import Expressions, on_device
from npulens.shapes.extents import opened
from npulens.shapes.factories import (
    FACTORIES,
    LIKE,
    NEW,
    is_host_device,
    kind_of_type,
    made,
    made_like,
)
from npulens.shapes.frames import MAX_CALLS, MAX_DEPTH
from npulens.shapes.layers import layer_result
from npulens.shapes.operators import Applied, apply_operator
from npulens.shapes.pipelines import (
    COLLATORS,
    LOADER_COST,
    LOADERS,
    PADDING_COST,
    RANDOM,
    RANDOM_NUMBER,
    SIZE_COST,
    has_random_size,
    keeps_last_batch,
    pads_to_longest,
)
from npulens.shapes.sources import meets, result_of
from npulens.shapes.values import (
    CONSTANT,
    FOREIGN,
    HOST_BATCH,
    UNKNOWN,
    Closure,
    Foreign,
    Items,
    Layer,
    Layers,
    Number,
    Size,
    Table,
    Tensor,
    Value,
    either,
    sources_of,
)
from npulens.shapes.wording import DROP_LAST, FEW_SIZES, FIXED_LENGTH, FIXED_SIZE

_OF_TENSORS = re.compile(r"torch\.(?:nn\.functional\.|linalg\.|special\.|fft\.|Tensor\.)?[a-z]\w*")
_NO_TENSOR = frozenset(
    "no_grad enable_grad inference_mode set_grad_enabled device manual_seed load save compile "
    "get_default_dtype set_default_dtype is_tensor is_floating_point is_complex is_grad_enabled "
    "finfo iinfo get_rng_state set_rng_state seed jit typename autocast broadcast_shapes "
    "initial_seed result_type can_cast numel is_storage is_inference is_nonzero_ "
    "is_autocast_enabled set_num_threads get_num_threads dtype Generator stride".split()
)
_MODULES = frozenset(
    "torch.nn torch.cuda torch.npu torch.distributed torch.utils torch.jit".split()
)
_SIZE_COST = 55
_CONSTRUCTORS = {
    "torch.Tensor": "float",
    "torch.FloatTensor": "float",
    "torch.LongTensor": "long",
    "torch.IntTensor": "int",
    "torch.BoolTensor": "bool",
}
_PAD = "torch.nn.utils.rnn.pad_sequence"
_NUMBERS = frozenset({"dim", "ndimension", "element_size", "data_ptr", "get_device", "stride"})
_FLAGS = frozenset({"is_contiguous", "is_floating_point", "is_complex", "is_pinned"})
_LISTS = frozenset(
    {"append", "extend", "insert", "copy", "pop", "index", "count", "remove", "sort"}
)


class Calls(Expressions):
    """The part of an evaluation that is about calls."""

    def call(self, node: ast.Call) -> Value:
        """What a call returns."""
        result = self._result(node)
        if result is UNKNOWN and any(k.arg == "return_tensors" for k in node.keywords):
            return HOST_BATCH
        return result

    def _result(self, node: ast.Call) -> Value:
        name = self.qualified(node.func) if isinstance(node.func, ast.Name | ast.Attribute) else ""
        if name:
            return self._library(node, name)
        if isinstance(node.func, ast.Attribute):
            return self._method(node, node.func)
        if isinstance(node.func, ast.Name):
            return self._named_function(node, node.func.id)
        return self._called(node, self.read(node.func))

    def invoke(
        self, function: FunctionHere, arguments: list[Value], keywords: dict[str, Value]
    ) -> Value:
        """What a function of this file returns; see `functions.py`."""
        raise NotImplementedError

    def run_closure(
        self, closure: Closure, arguments: list[Value], keywords: dict[str, Value]
    ) -> Value:
        """What a nested function returns."""
        raise NotImplementedError

    # Libraries

    def _library(self, node: ast.Call, name: str) -> Value:
        short = name.rpartition(".")[2]
        definition = self.session.definitions
        if "." not in name and name in definition.functions:
            return self._named_function(node, name)
        call = self._applied(node, short)
        entry = self.session.operators.get(name)
        if entry is not None and meets(entry, call):
            return self._source(node, name, call)
        self._pipeline(node, name, call)
        if RANDOM.fullmatch(name):
            return RANDOM_NUMBER
        if name.startswith("math."):
            return of_math(self, node, call)
        if name.startswith("torch.nn.") and short[:1].isupper():
            return FOREIGN if name == "torch.nn.Module" else _layer(name, call)
        if name in _CONSTRUCTORS:
            return Tensor(kind=kind_of_type(Foreign(_CONSTRUCTORS[name])), on_host=True)
        if name == "torch.device":
            return call.arguments[0] if call.arguments else FOREIGN
        if name in ("torch.utils.checkpoint.checkpoint", "functools.partial"):
            return self._through(call)
        if name in ("copy.deepcopy", "copy.copy"):
            return call.first
        if name == _PAD:
            return self._operator(node, call)
        if name.startswith("einops."):
            return call.result(opened(call.sources))
        if _OF_TENSORS.fullmatch(name) and short not in _NO_TENSOR and name not in _MODULES:
            return self._torch(node, call)
        if name.startswith(("numpy.", "np.")):
            return Foreign("numpy")
        return UNKNOWN

    def _pipeline(self, node: ast.Call, name: str, call: Applied) -> None:
        """What makes batches of other sizes."""
        if name in LOADERS and keeps_last_batch(node, call):
            self.report("loader-keeps-last-batch", node, DROP_LAST, LOADER_COST, waits=False)
        elif name in COLLATORS and pads_to_longest(call):
            self.report("padding-to-longest", node, FIXED_LENGTH, PADDING_COST, waits=False)
        elif name == _PAD and "collate" in self.function.node.name:
            self.report("padding-to-longest", node, FIXED_LENGTH, PADDING_COST, waits=False)
        elif name == "torch.nn.functional.interpolate" and has_random_size(call):
            self.report("random-size", node, FEW_SIZES, SIZE_COST, waits=False)

    def _torch(self, node: ast.Call, call: Applied) -> Value:
        if call.name in FACTORIES:
            self._check_sizes(node, call)
            if call.name in ("tensor", "as_tensor") and call.arguments:
                self._elements_read(node, call.arguments[0])
            return made(call, call.keywords.get("device"))
        if call.name in LIKE:
            return made_like(call)
        return self._operator(node, call)

    def _operator(self, node: ast.Call, call: Applied) -> Value:
        result = apply_operator(call)
        sources = frozenset().union(*(tensor.sources for tensor in call.tensors))
        self.uses(sources, node)
        return result

    def _source(self, node: ast.Call, name: str, call: Applied) -> Value:
        """An operator of the tables."""
        entry = self.session.operators[name]
        if entry.method and not call.tensors and not on_device(call.first):
            return result_of(entry, call, frozenset())  # of what it works on nothing is known
        tensors = call.tensors
        if tensors and all(tensor.on_host or not tensor.is_sure for tensor in tensors):
            hosts = all(tensor.on_host for tensor in tensors)
            if hosts or entry.rule.name == "host-read":
                return result_of(entry, call, frozenset())
        is_shape = entry.rule.name != "host-read"
        fixed = bool(tensors) and all(tensor.is_fixed for tensor in tensors)
        found = self.report(
            entry.rule.name,
            node,
            entry.advice,
            entry.cost,
            waits=entry.waits,
            is_shape=is_shape and not fixed,
        )
        self.uses(frozenset().union(*(tensor.sources for tensor in tensors)), node)
        return result_of(entry, call, frozenset() if fixed else found)

    def _check_sizes(self, node: ast.Call, call: Applied) -> None:
        """Sizes that are read from tensors."""
        if call.name in ("tensor", "as_tensor", "from_numpy", "full", "asarray", "FloatTensor"):
            values = list(call.arguments[:1]) if call.name == "full" else []
        else:
            values = [*call.arguments, *(v for k, v in call.keywords.items() if k == "size")]
        flat = [e for v in values for e in ((v.elements or ()) if isinstance(v, Items) else (v,))]
        reads = any(on_device(value) for value in flat)
        if reads or any(
            isinstance(value, Number) and self.are_values(value.sources) for value in flat
        ):
            found = self.report(
                "size-from-data", node, FIXED_SIZE, _SIZE_COST, waits=reads, is_shape=True
            )
            made_dynamic = Number("?", found)
            call.arguments = [self._sized(value, made_dynamic) for value in call.arguments]

    def _sized(self, value: Value, dynamic: Number) -> Value:
        if isinstance(value, Items) and value.elements is not None:
            elements = tuple(self._sized(element, dynamic) for element in value.elements)
            return value._replace(elements=elements)
        if on_device(value) and isinstance(value, Tensor):
            return CONSTANT if value.is_fixed else dynamic
        if isinstance(value, Number) and value.sources:
            return value._replace(sources=value.sources | dynamic.sources)
        return value

    def _elements_read(self, node: ast.Call, value: Value) -> None:
        """`torch.tensor([a, b])` of tensors reads each."""
        if isinstance(value, Items):
            parts = value.elements if value.elements is not None else (value.each,)
            if any(on_device(part) for part in parts):
                entry = self.session.operators.get("torch.Tensor.item")
                if entry is not None:
                    self.report("host-read", node, entry.advice, entry.cost)

    # Methods

    def _method(self, node: ast.Call, callee: ast.Attribute) -> Value:
        owner = self.function.owner
        if isinstance(callee.value, ast.Name) and callee.value.id == self.function.receiver:
            if owner is not None:
                method = self.session.definitions.method(owner, callee.attr)
                if method is not None:
                    return self._own(node, method)
            return self._called(node, self._attribute(callee))
        value = self.read(callee.value)
        if isinstance(value, Tensor):
            return self._of_tensor(node, callee, value)
        if isinstance(value, Items) and callee.attr in _LISTS:
            return self._of_list(node, callee, value)
        if isinstance(value, Size) and callee.attr == "numel":
            return Number("?", value.shape.sources)
        if isinstance(value, Layer | Layers) and callee.attr == "forward":
            return self._called(node, value)
        if isinstance(value, Table):
            return self._of_table(node, callee, value)
        if isinstance(value, Layers) and callee.attr in ("values", "items"):
            return Items(value.each)
        if isinstance(value, Layer) and value.definition is not None:
            method = self.session.definitions.method(value.definition, callee.attr)
            if method is not None:
                return self._own(node, method)
        if value is UNKNOWN and callee.attr in TENSOR_METHODS:
            return self._of_tensor(node, callee, Tensor(is_sure=False))
        self._applied(node, "")
        return UNKNOWN

    def _of_tensor(self, node: ast.Call, callee: ast.Attribute, value: Tensor) -> Value:
        call = self._applied(node, callee.attr)
        name = callee.attr
        if name in ("size", "numel", "nelement"):
            return self._measured(name, value, call)
        if name in _NUMBERS or name in _FLAGS:
            return CONSTANT
        if name in NEW:
            self._check_sizes(node, call)
            return made(call, call.keywords.get("device") or Foreign("device"))._replace(
                on_host=value.on_host
            )
        host = self._copied(node, name, value, call)
        if host is not None:
            return host
        call.arguments = [value, *call.arguments]
        entry = self.session.methods.get(name)
        if entry is not None and meets(entry, call):
            if not value.is_sure and name not in ("item", "masked_select", "nonzero"):
                return result_of(entry, call, frozenset())
            if value.on_host or (not value.is_sure and name in ("item", "nonzero")):
                return result_of(entry, call, frozenset())
            return self._source(node, entry.operator, call)
        if name == "type" and len(call.arguments) == 2:
            return value._replace(kind=kind_of_type(call.arguments[1]))
        result = self._operator(node, call)
        if name.endswith("_") and not name.endswith("__") and isinstance(result, Tensor):
            result = result._replace(is_fixed=False)
            if isinstance(callee.value, ast.Name):
                self.names[callee.value.id] = result
        return result

    def _measured(self, name: str, value: Tensor, call: Applied) -> Value:
        if name != "size":
            return Number("?", value.sources)
        if not call.arguments and "dim" not in call.keywords:
            return Size(value.shape)
        place = call.get(0, "dim")
        number = place.value if isinstance(place, Number) else None
        if number is None:
            return Number("?", value.sources)
        dim = value.shape.at(number)
        return Number(dim.text, dim.sources, dim.is_rest)

    def _copied(self, node: ast.Call, name: str, value: Tensor, call: Applied) -> Value | None:
        """`to`, `cuda`, `cpu`: where the copy is."""
        if name in ("cuda", "npu"):
            return value._replace(on_host=False)
        if name not in ("to", "cpu"):
            return None
        given = [*call.arguments, *call.keywords.values()]
        if name == "cpu" or any(is_host_device(each) for each in given):
            waits = not any(
                keyword.arg == "non_blocking" for keyword in node.keywords
            ) and on_device(value)
            entry = self.session.methods.get("cpu")
            if waits and entry is not None:
                self.report("host-read", node, entry.advice, entry.cost)
            return value._replace(on_host=True)
        kinds = [kind_of_type(each) for each in given if isinstance(each, Foreign)]
        kind = next(filter(None, kinds), "")
        if kind:
            return value._replace(kind=kind)
        names = [each.name for each in given if isinstance(each, Foreign)]
        only_type = len(given) == 1 and any(n == "dtype" or n.startswith("torch.") for n in names)
        return value._replace(kind="") if only_type else value._replace(on_host=False)

    def _of_list(self, node: ast.Call, callee: ast.Attribute, value: Items) -> Value:
        call = self._applied(node, callee.attr)
        if callee.attr == "pop":
            return value.each
        if callee.attr == "copy":
            return value
        if callee.attr not in ("append", "extend", "insert") or not call.arguments:
            return UNKNOWN
        added = call.arguments[-1]
        name = callee.value.id if isinstance(callee.value, ast.Name) else ""
        sources = value.sources | self.controlled_since(self.made_at.get(name, 0))
        if callee.attr == "extend":
            sources |= added.sources if isinstance(added, Items) else frozenset()
            added = self.element_of(added)
        each = added if value.elements == () else either(value.each, added)
        if name:
            self.names[name] = Items(each, None, sources)
        return UNKNOWN

    def _of_table(self, node: ast.Call, callee: ast.Attribute, value: Table) -> Value:
        call = self._applied(node, callee.attr)
        entries = dict(value.entries)
        if callee.attr in ("get", "pop") and isinstance(call.first, Foreign):
            return entries.get(call.first.name, UNKNOWN)
        if callee.attr == "values":
            return Items(_any_of(entries))
        return UNKNOWN

    # Functions, layers

    def _named_function(self, node: ast.Call, name: str) -> Value:
        if name in self.names:
            return self._called(node, self.names[name])
        function = self.session.definitions.function(name)
        if function is not None:
            return self._own(node, function)
        found = self.session.definitions.classes.get(name)
        if found is not None:
            self._applied(node, "")
            return Layer(name, found)
        builtin = BUILTINS.get(name)
        if builtin is not None:
            return builtin(self, node, self._applied(node, name))
        self._applied(node, "")
        return UNKNOWN

    def _called(self, node: ast.Call, value: Value) -> Value:
        call = self._applied(node, "")
        if isinstance(value, Closure):
            return self.run_closure(value, list(call.arguments), call.keywords)
        if isinstance(value, Layer):
            if value.definition is not None:
                method = self.session.definitions.method(value.definition, "forward")
                if method is not None:
                    return self.invoke(method, list(call.arguments), call.keywords)
            result = layer_result(value, call)
            self.uses(sources_of(result), node)
            return result
        return UNKNOWN

    def _own(self, node: ast.Call, function: FunctionHere) -> Value:
        call = self._applied(node, "")
        spread = any(isinstance(argument, ast.Starred) for argument in node.args)
        if spread or any(keyword.arg is None for keyword in node.keywords):
            return self.invoke(function, [], {})
        return self.invoke(function, list(call.arguments), call.keywords)

    def _through(self, call: Applied) -> Value:
        """`checkpoint(function, x)`."""
        first, rest = call.first, list(call.arguments[1:])
        return self.run_closure(first, rest, {}) if isinstance(first, Closure) else UNKNOWN

    def _applied(self, node: ast.Call, name: str) -> Applied:
        arguments: list[Value] = []
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                value = self.read(argument.value)
                if isinstance(value, Items) and value.elements is not None:
                    arguments += value.elements
                    continue
                if isinstance(value, Size) and not value.shape.is_open:
                    arguments += [Number(d.text, d.sources, d.is_rest) for d in value.shape.lead]
                    continue
                arguments.append(value)
            else:
                arguments.append(self.read(argument))
        keywords = {k.arg or "": self.read(k.value) for k in node.keywords}
        return Applied(name, arguments, keywords)

    def can_look_into(self, node: ast.AST) -> bool:
        """Whether a call of a function may be looked into."""
        active = self.session.active
        if len(active) > MAX_DEPTH or node in active or self.session.calls >= MAX_CALLS:
            return False
        self.session.calls += 1
        return True


def _layer(name: str, call: Applied) -> Value:
    return Tensor() if name == "torch.nn.Parameter" else Layer(name)


def _any_of(entries: dict[str, Value]) -> Value:
    result: Value = UNKNOWN
    for index, value in enumerate(entries.values()):
        result = value if index == 0 else either(result, value)
    return result
