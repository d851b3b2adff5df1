"""Evaluates calls of functions of PyTorch and other libraries."""

import ast
import re
from collections.abc import Sequence

from npulens.catalog.messages import message
from npulens.catalog.project_model import ReturnedShape
from npulens.shapes.evaluation.builtins import of_math
from npulens.shapes.evaluation.elsewhere import depends_on_shape, value_of
from npulens.shapes.evaluation.indexing import Indexing
from npulens.shapes.evaluation.optional import is_given
from npulens.shapes.evaluation.shape_frames import is_wrapper
from npulens.shapes.evaluation.tensor_evidence import KINDS
from npulens.shapes.operators.factories import (
    FACTORIES,
    FROM_DATA,
    LIKE,
    SIZED,
    made,
    made_like,
)
from npulens.shapes.operators.named_axes import contracted, rearranged
from npulens.shapes.operators.pipelines import (
    PAD,
    PIPELINE_COST,
    RANDOM,
    RANDOM_NUMBER,
    rule_of_batches,
)
from npulens.shapes.operators.shape_operators import apply_operator
from npulens.shapes.operators.shape_sources import meets, result_of
from npulens.shapes.values.applied import Applied
from npulens.shapes.values.shape_rules import (
    DYNAMIC_OPERATOR,
    HOST_READ,
)
from npulens.shapes.values.shape_values import (
    ARRAY,
    CONSTANT,
    FOREIGN,
    LIKELY,
    POSSIBLE_MASK,
    UNKNOWN,
    Closure,
    Items,
    Layer,
    Number,
    Size,
    Tensor,
    Value,
    may_be_on_device,
    on_device,
    sources_of,
)
from npulens.shapes.values.size_texts import size_text
from npulens.shapes.values.symbolic_dims import ANY_LENGTH, NO_SOURCES, SCALAR, Dim, opened

_OF_TENSORS = re.compile(r"torch\.(?:nn\.functional\.|linalg\.|special\.|fft\.|Tensor\.)?[a-z]\w*")
_OTHERS = (
    "no_grad enable_grad inference_mode set_grad_enabled device manual_seed load save compile "
    "get_default_dtype set_default_dtype is_tensor is_floating_point is_complex is_grad_enabled "
    "finfo iinfo get_rng_state set_rng_state seed jit typename autocast broadcast_shapes "
    "initial_seed result_type can_cast numel is_storage is_inference is_nonzero_ "
    "is_autocast_enabled get_device_module set_num_threads get_num_threads dtype Generator stride"
)
_NO_TENSOR = frozenset(_OTHERS.split())
_MODULES = frozenset(
    {"torch.nn", "torch.cuda", "torch.npu", "torch.distributed", "torch.utils", "torch.jit"}
)
_READ_COST, _CALL_COST = 40, 35
_SIZE_KEYWORDS = frozenset({"size", "shape", "split_size", "split_size_or_sections"})
_CONSTRUCTORS = {"torch.Tensor": "float", **{f"torch.{name}": KINDS[name] for name in KINDS}}
_NORMS = frozenset(f"torch.nn.utils.{name}" for name in ("clip_grad_norm_", "get_total_norm"))
_PASSING_ON = frozenset({"copy.deepcopy", "copy.copy", "torch.autograd.Variable"})
_OF_ONE_PLACE = frozenset({"equal", "allclose", "isclose"})


class Libraries(Indexing):
    """The part of an evaluation that is about functions of libraries."""

    def run_closure(
        self, closure: Closure, arguments: list[Value], keywords: dict[str, Value]
    ) -> Value:
        """What a nested function returns; see `functions.py`."""
        raise NotImplementedError

    def library(self, node: ast.Call, name: str) -> Value:
        """What a function of a library returns, by its qualified name."""
        short = name.rpartition(".")[2]
        call = self.applied(node, short)
        if name.startswith("torch.") and POSSIBLE_MASK in call.arguments:
            call.arguments = [_as_mask(value) for value in call.arguments]
        entry = self.session.operators.get(name)
        if entry is not None and meets(entry, call):
            return self.source(node, name, call)
        self._pipeline(node, name, call)
        if RANDOM.fullmatch(name):
            return RANDOM_NUMBER
        if name.startswith("math."):
            return of_math(self, node, call)
        made = self._constructor(node, name, call)
        if made is not UNKNOWN:
            return made
        if name == "torch.device":
            return call.arguments[0] if call.arguments else FOREIGN
        if name in ("torch.utils.checkpoint.checkpoint", "functools.partial"):
            first, rest = call.first, list(call.arguments[1:])
            return self.run_closure(first, rest, {}) if isinstance(first, Closure) else UNKNOWN
        if name in _PASSING_ON:
            is_module = call.first is UNKNOWN and node.args and self.is_module(node.args[0])
            return Layer("") if is_module else call.first
        if name == PAD:
            return self.operator(node, call)
        if name.startswith("einops.") or name == "torch.einsum":
            return self._by_pattern(node, call)
        if _OF_TENSORS.fullmatch(name) and short not in _NO_TENSOR and name not in _MODULES:
            return self._torch(node, call)
        if name.startswith(("numpy.", "np.", "pandas.", "scipy.sparse.")):
            return ARRAY
        if name.startswith("torch.distributed."):
            self._exchanged(node)
        returned = self.session.elsewhere.returned.find(name)
        return self.kept(name) if returned is None else self._returned(node, call, returned)

    def _exchanged(self, node: ast.Call) -> None:
        """What other processes send replaces what tensors were made of."""
        for argument in node.args:
            value = self.read(argument) if isinstance(argument, ast.Name) else UNKNOWN
            if isinstance(value, Items) and isinstance(value.each, Tensor):
                value = Items(value.each._replace(is_fixed=False), None, value.sources)
            elif isinstance(value, Tensor):
                value = value._replace(is_fixed=False)
            if isinstance(argument, ast.Name) and value is not UNKNOWN:
                self.names[argument.id] = value

    def _constructor(self, node: ast.Call, name: str, call: Applied) -> Value:
        """A layer, a parameter, a module in another form, a norm, or a tensor on the host."""
        if isinstance(call.first, Layer) and is_wrapper(node.func, self.function):
            return call.first
        if name.startswith("torch.nn.") and name.rpartition(".")[2][:1].isupper():
            if name == "torch.nn.Parameter":
                return Tensor()
            return FOREIGN if name == "torch.nn.Module" else Layer(name)
        if name in _NORMS:
            return Tensor(SCALAR, "float")
        kind = _CONSTRUCTORS.get(name)
        if kind is not None and call.arguments:
            self._elements_read(node, call.arguments[0])
        return UNKNOWN if kind is None else Tensor(kind=kind, on_host=True)

    def _by_pattern(self, node: ast.Call, call: Applied) -> Value:
        """What names its dimensions: functions of einops, `torch.einsum`."""
        if call.name not in ("rearrange", "repeat", "reduce", "einsum"):
            return call.result(opened(call.sources))
        for keyword in node.keywords:
            if keyword.arg is not None:
                value = self.as_size(keyword.value, call.keywords[keyword.arg])
                call.keywords[keyword.arg] = value

        def named(axis: str) -> Dim:
            held = self.names.get(axis)
            is_other = axis in self.issued and self.issued[axis] is not node
            if is_other or held is not None:
                return ANY_LENGTH
            return Dim(axis) if self.issue(axis, node) else ANY_LENGTH

        result = contracted(call, named) if call.name == "einsum" else rearranged(call, named)
        self.uses(call.sources, node)
        return result

    def _returned(self, node: ast.Call, call: Applied, returned: ReturnedShape) -> Value:
        """What a function of another module returns, whose shape depends on data."""
        if call.tensors and all(tensor.on_host for tensor in call.tensors):
            return UNKNOWN
        if any(is_given(call.get(place, name)) for place, name in returned.unless):
            return UNKNOWN
        self.report(
            DYNAMIC_OPERATOR,
            node,
            message("shape.fixed-size"),
            _CALL_COST,
            synchronizes=returned.synchronizes,
            is_shape=depends_on_shape(returned),
            is_elsewhere=True,
        )
        return value_of(returned, node)

    def _pipeline(self, node: ast.Call, name: str, call: Applied) -> None:
        """What makes batches of other sizes."""
        found = rule_of_batches(node, name, call, self.function.node)
        if found is not None:
            rule, advice = found
            self.report(rule, node, message(advice), PIPELINE_COST, synchronizes=False)

    def _torch(self, node: ast.Call, call: Applied) -> Value:
        if call.name in FACTORIES:
            if call.name in SIZED:
                call.arguments = self.as_sizes(node, call.arguments)
            self.check_sizes(node, call)
            if call.name in ("tensor", "as_tensor") and call.arguments:
                self._elements_read(node, call.arguments[0])
            new = made(call, call.keywords.get("device"))
            return self.configured(node, new) if call.name in FROM_DATA else new
        if call.name in LIKE:
            return made_like(call)
        if call.name in ("interpolate", "upsample"):
            self._size_read(node, call)
        if call.name in ("topk", "multinomial", "split", "narrow", "tile"):
            sizes = Applied(call.name, call.arguments[1:], call.keywords)
            self.check_lengths(node, sizes, of_numbers=True)
            call.arguments = [*call.arguments[:1], *sizes.arguments]
        return self.operator(node, call)

    def _size_read(self, node: ast.Call, call: Applied) -> None:
        """A size or a factor to interpolate to that was read from values."""
        given = (call.get(1, "size"), call.get(2, "scale_factor"))
        sources = NO_SOURCES.union(*(sources_of(each) for each in given if each is not None))
        if self.are_values(sources):
            self.sized_by_data(node, synchronizes=False, is_sure=self.are_sure(sources))

    def operator(self, node: ast.Call, call: Applied) -> Value:
        """What an operator returns that is in no table."""
        if call.first == ARRAY:
            return ARRAY  # PyTorch takes none, so it is a tensor of the host
        result = apply_operator(call)
        sources = frozenset().union(*(tensor.sources for tensor in call.tensors))
        self.uses(sources, node)
        return result

    def source(self, node: ast.Call, name: str, call: Applied) -> Value:
        """An operator of the tables."""
        entry = self.session.operators[name]
        tensors = call.tensors
        if call.first == ARRAY:
            return ARRAY
        if not tensors and entry.gives != "nothing" and UNKNOWN not in call.arguments:
            return result_of(entry, call, frozenset())  # it works on something else
        if call.name in _OF_ONE_PLACE and any(tensor.on_host for tensor in tensors):
            return result_of(entry, call, frozenset())  # then the other one is, too
        if tensors and all(tensor.on_host for tensor in tensors):
            return result_of(entry, call, frozenset())
        is_shape = entry.rule.name != HOST_READ
        is_sure = any(map(on_device, tensors)) or entry.gives == "nothing"
        fixed = bool(tensors) and all(tensor.is_fixed for tensor in tensors)
        found = self.report(
            entry.rule.name,
            node,
            entry.advice,
            entry.cost,
            synchronizes=entry.waits,
            is_shape=is_shape and not fixed,
            is_sure=is_sure,
        )
        self.uses(frozenset().union(*(tensor.sources for tensor in tensors)), node)
        return result_of(entry, call, frozenset() if fixed else found)

    def check_sizes(self, node: ast.Call, call: Applied) -> None:
        """Sizes that are read from tensors."""
        name = call.name.removeprefix("new_")
        if name in ("tensor", "as_tensor", "from_numpy", "full", "asarray", "FloatTensor"):
            values = list(call.arguments[:1]) if name == "full" else []
        elif name in ("linspace", "logspace"):
            ends = [value for value in call.arguments[:2] if may_be_on_device(value)]
            if ends:
                self.host_reads(node, ends, message("shape.host-numbers"), _READ_COST)
            values = [call.get(2, "steps") or UNKNOWN]
        else:
            values = [*call.arguments, *(v for k, v in call.keywords.items() if k == "size")]
        if any(isinstance(getattr(argument, "slice", None), ast.Slice) for argument in node.args):
            return  # a part is no number
        flat = [e for v in values for e in ((v.elements or ()) if isinstance(v, Items) else (v,))]
        read = [value for value in flat if may_be_on_device(value)]
        if LIKELY in read and self.is_given_parameter(node):
            read = [value for value in read if value != LIKELY]  # a length, and no tensor
        from_values = any(
            isinstance(value, Number) and self.are_values(value.sources) for value in flat
        )
        if read and not from_values and all(value.is_fixed for value in read):
            self.host_reads(node, read, message("shape.host-numbers"), _READ_COST)
            call.arguments = [self._sized(value, CONSTANT) for value in call.arguments]
        elif read or from_values:
            self.sized.update(*(each.sources for each in flat if isinstance(each, Number)))
            is_sure = any(map(on_device, read)) or self.are_sure(
                frozenset().union(*(v.sources for v in flat if isinstance(v, Number)))
            )
            found = self.sized_by_data(node, synchronizes=bool(read), is_sure=is_sure)
            made_dynamic = Number("?", found)
            call.arguments = [self._sized(value, made_dynamic) for value in call.arguments]

    def check_lengths(self, node: ast.Call, call: Applied, *, of_numbers: bool) -> None:
        """Lengths that a method is given: tensors that are read for them, numbers that were.

        Numbers count if `of_numbers`; a tensor may have had such a length before.
        """
        flat = [
            part
            for value in (*call.arguments, *call.keywords.values())
            for part in (value.parts if isinstance(value, Items) else (value,))
        ]
        tensors = [value for value in flat if on_device(value) and value.kind != "bool"]
        numbers = [
            value
            for value in flat
            if of_numbers and isinstance(value, Number) and self.are_values(value.sources)
        ]
        if not tensors and not numbers:
            return
        is_sure = bool(tensors) or any(self.are_sure(number.sources) for number in numbers)
        found = self.sized_by_data(node, synchronizes=bool(tensors), is_sure=is_sure)
        dynamic = Number("?", found)
        call.arguments = [self._sized(value, dynamic) for value in call.arguments]

    def configured(self, node: ast.Call, made_of: Tensor) -> Tensor:
        """A tensor that was made of numbers, which are fixed if the configuration has them."""
        is_fixed = bool(node.args) and self._is_configured(node.args[0])
        return made_of._replace(is_fixed=made_of.is_fixed or is_fixed)

    def _is_configured(self, node: ast.expr) -> bool:
        """Numbers that are written, or that a constructor keeps as it was given them."""
        match node:
            case ast.List(parts) | ast.Tuple(parts):
                return all(map(self._is_configured, parts))
            case ast.Constant(value):
                return isinstance(value, (int, float))
            case ast.Attribute(ast.Name(name), attribute) if name == self.receiver:
                is_kept = self.is_from_constructor(attribute)
                return is_kept and not isinstance(self.read(node), Tensor)
        return False

    def _sized(self, value: Value, dynamic: Number) -> Value:
        if isinstance(value, Items):
            if value.elements is None:
                return value._replace(each=self._sized(value.each, dynamic))
            elements = tuple(self._sized(element, dynamic) for element in value.elements)
            return value._replace(elements=elements)
        if may_be_on_device(value):
            return CONSTANT if value.is_fixed else dynamic
        if isinstance(value, Number) and value.sources:
            return value._replace(sources=dynamic.sources)
        return value

    def _elements_read(self, node: ast.Call, value: Value) -> None:
        """`torch.tensor([a, b])` of tensors reads each."""
        if isinstance(value, Items):
            entry = self.session.operators.get("torch.Tensor.item")
            if entry is not None:
                self.host_reads(node, value.parts, entry.advice, entry.cost)

    def as_sizes(self, node: ast.Call, values: Sequence[Value]) -> list[Value]:
        """Arguments that are sizes: what nobody knows of them is called as the code does."""
        if len(values) != len(node.args):
            return list(values)
        return [self.as_size(*each) for each in zip(node.args, values, strict=True)]

    def as_size(self, node: ast.expr, value: Value) -> Value:
        """A value that is a size: what nobody knows of it is called as the code does."""
        if isinstance(node, (ast.Tuple, ast.List)) and isinstance(value, Items):
            parts = value.elements
            if parts is not None and len(parts) == len(node.elts):
                named = tuple(map(self.as_size, node.elts, parts))
                return value._replace(elements=named)
        text = size_text(node) if value is UNKNOWN or value == CONSTANT else "?"
        if text == "?":
            return value
        return CONSTANT if self.told(text) == "?" else Number(text)

    def applied(self, node: ast.Call, name: str) -> Applied:
        """The arguments of a call."""
        arguments: list[Value] = []
        for argument in node.args:
            is_spread = isinstance(argument, ast.Starred)
            value = self.read(argument.value if isinstance(argument, ast.Starred) else argument)
            if is_spread and isinstance(value, Items) and value.elements is not None:
                arguments += value.elements
            elif is_spread and isinstance(value, Size) and not value.shape.is_open:
                arguments += [Number(*dim) for dim in value.shape.lead]
            else:
                arguments.append(value)
        keywords = {k.arg or "": self.read(k.value) for k in node.keywords}
        for keyword in node.keywords:
            if keyword.arg in _SIZE_KEYWORDS:
                keywords[keyword.arg] = self.as_size(keyword.value, keywords[keyword.arg])
        return Applied(name, arguments, keywords)


def _as_mask(value: Value) -> Value:
    """A comparison that PyTorch is given: a tensor."""
    return Tensor(kind="bool") if value == POSSIBLE_MASK else value
