"""Evaluates calls: operators of PyTorch, layers, methods, and functions of the same file."""

import ast
import re

from npulens.catalog.messages import message
from npulens.checks.arguments import is_spread
from npulens.graphs.definitions import ClassHere, FunctionHere
from npulens.graphs.interfaces import OF_MODULES
from npulens.shapes.evaluation.builtins import BUILTINS
from npulens.shapes.evaluation.callee_symbols import names_in, renamed, renaming
from npulens.shapes.evaluation.callers import named_parameters
from npulens.shapes.evaluation.indexing import entry_of
from npulens.shapes.evaluation.kept_values import (
    UPDATING,
    fields_of,
    kept_by,
    kept_by_meter,
    kept_elsewhere,
)
from npulens.shapes.evaluation.layer_arguments import assigned_attributes
from npulens.shapes.evaluation.shape_frames import KEEPING, MAX_CALLS, MAX_DEPTH, PassedArguments
from npulens.shapes.evaluation.shape_libraries import Libraries
from npulens.shapes.evaluation.tensor_evidence import (
    TENSOR_METHODS,
    unpacked_names,
)
from npulens.shapes.operators.factories import NEW, is_host_device, kind_of_type, made
from npulens.shapes.operators.layers import layer_result
from npulens.shapes.operators.shape_operators import TRANSFERS
from npulens.shapes.operators.shape_sources import meets, result_of
from npulens.shapes.operators.tensor_methods import is_method_of_tensors
from npulens.shapes.values.applied import Applied
from npulens.shapes.values.shape_rules import HOST_READ
from npulens.shapes.values.shape_values import (
    ARRAY,
    CONSTANT,
    FOREIGN,
    HOST_BATCH,
    LIKELY,
    POSSIBLE_MASK,
    UNKNOWN,
    Closure,
    Foreign,
    Items,
    Layer,
    Layers,
    Meter,
    Number,
    Size,
    Table,
    Tensor,
    Value,
    any_of,
    are_deep,
    either,
    element_of,
    is_on_host,
    items_of,
    sources_of,
    unsure,
)
from npulens.syntax.values import dotted_name

_NUMBERS = frozenset(
    {"dim", "ndimension", "element_size", "data_ptr", "get_device", "stride", "is_contiguous"}
    | {"is_floating_point", "is_complex", "is_pinned"}
)
_OF_TENSORS_OR_ARRAYS = frozenset(
    {"item", "cpu", "mean", "sum", "max", "min", "std", "var", "norm", "argmax", "argmin"}
    | {"any", "all", "unique", "nonzero", "clone"}
)
"""What is called of tensors, and hardly of anything else but arrays."""
_OF_MASKS = TENSOR_METHODS | {"float", "int", "double", "byte"}
"""What a comparison has only if it is a tensor."""
_OF_MODEL: dict[str, Value] = {
    "parameters": Items(Tensor()),
    "named_parameters": Items(items_of((FOREIGN, Tensor()))),
}
"""What only modules have."""
_SIZED = frozenset({"view", "reshape", "expand", "new_zeros", "new_ones", "new_empty", "split"})
_SHOWING = frozenset(
    {"add_scalar", "add_scalars", "add_histogram", "add_image", "add_images", "add_audio"}
    | {"set_postfix", "log_value", "log_scalar", "log_metric", "log_metrics"}
)
"""What writes values for TensorBoard, progress bars and their like, which reads tensors."""
_TYPE = re.compile(r"torch\.(?:cuda\.)?[A-Z][a-z0-9]*Tensor")
"""Types of tensors that say where these are."""
_LOGGING = frozenset({"info", "warning", "error", "critical"})
_WRITING = _SHOWING | _LOGGING | {"format", "log", "decode", "batch_decode"}
"""Names of all methods that may write what they are given."""
_PRINT_COST, _MOVE_COST = 35, 40
_RECORDERS = frozenset(
    {"wandb.log", "swanlab.log", "mlflow.log_metric", "mlflow.log_metrics"}
    | {"tensorboard_logger.log_value"}
)
"""Functions of libraries that read values to keep them."""
_LENGTHS_READ = frozenset(
    {"split", "split_with_sizes", "repeat", "tile", "narrow", "expand", "topk", "multinomial"}
)
"""Methods of tensors that come to a length that may have been read from values."""
_SIZES_READ = _LENGTHS_READ | {"view", "reshape", "unflatten"}
"""Those that read lengths from tensors that they are given for them."""
_SENDING = frozenset({"to", "cuda", "npu"})
_LISTS = frozenset(
    {"append", "extend", "insert", "copy", "pop", "index", "count", "remove", "sort"}
)
_OF_CONTAINERS = frozenset({"pop", "append", "extend", "items", "keys", "values", "get", "update"})
"""Methods that lists and dictionaries have, which can be copied as well, and arrays lack."""
_OF_TABLES = frozenset({"items", "keys", "values", "get", "pop", "update"})


class Calls(Libraries):
    """The part of an evaluation that is about calls."""

    def call(self, node: ast.Call) -> Value:
        """What a call returns."""
        result = self._result(node)
        if result is UNKNOWN and any(k.arg == "return_tensors" for k in node.keywords):
            return HOST_BATCH
        return result

    def _result(self, node: ast.Call) -> Value:
        name = self.qualified(node.func) if isinstance(node.func, (ast.Name, ast.Attribute)) else ""
        if name.endswith(".multi_apply"):
            return self._for_each(node)
        if name in self.session.definitions.functions:
            return self.named_function(node, name)
        if name in _RECORDERS:
            return self._shown(node)
        if name:
            return self.library(node, name)
        if isinstance(node.func, ast.Attribute):
            return self._method(node, node.func)
        if isinstance(node.func, ast.Name):
            return self.named_function(node, node.func.id)
        return self._called(node, self.read(node.func))

    def invoke(
        self, function: FunctionHere, arguments: list[Value], keywords: dict[str, Value]
    ) -> Value:
        """What a function of this file returns; see `functions.py`."""
        raise NotImplementedError

    # Methods

    def _method(self, node: ast.Call, callee: ast.Attribute) -> Value:
        owner = self.function.owner
        if isinstance(callee.value, ast.Name) and callee.value.id == self.receiver:
            method = self._method_of(owner, callee.attr)
            if method is not None:
                return self._own(node, method, is_of_self=method.owner is owner)
            return self._called(node, self._attribute(callee))
        value = self._owner(node, callee)
        if callee.attr in KEEPING and value in (UNKNOWN, LIKELY) and self.is_module(callee.value):
            self.applied(node, "")
            return UNKNOWN  # the module itself
        shown = _shown_tensor(value, callee.attr)
        if shown is not None:
            result = self._of_tensor(node, callee, shown)
            return unsure(result) if shown == LIKELY and shown is not value else result
        text = self._as_text(node, callee) if callee.attr in _WRITING else None
        if text is not None:
            return text
        if value == ARRAY:
            self.applied(node, "")
            return UNKNOWN if callee.attr in _OF_CONTAINERS else ARRAY
        if isinstance(value, Items) and callee.attr in _LISTS:
            return self._of_list(node, callee, value)
        if isinstance(value, Size) and callee.attr == "numel":
            return Number("?", value.shape.sources)
        if isinstance(value, Table):
            return self._of_table(node, callee, value)
        if isinstance(value, (Layer, Layers)):
            kept = self._of_layer(node, callee.attr, value)
            if kept is not UNKNOWN:
                return kept
        method = self._method_of(getattr(value, "definition", None), callee.attr)
        if method is not None or isinstance(value, Meter):
            result = UNKNOWN if method is None else self._own(node, method)
            self._keep(node, callee, value if isinstance(value, Meter) else method)
            return result
        if value is UNKNOWN and callee.attr == "tolist" and self._is_in_module():
            return self._of_tensor(node, callee, LIKELY)
        return self._of_something(node, callee, value)

    def _owner(self, node: ast.Call, callee: ast.Attribute) -> Value:
        """What a method is called of; a batch that is moved is not known any more."""
        is_behind = self.behind is node
        self.behind = None if callee.attr in OF_MODULES else callee.value
        value = self.read(callee.value)
        self.behind = node if is_behind else None
        return UNKNOWN if value == HOST_BATCH and callee.attr in _SENDING else value

    def _is_in_module(self) -> bool:
        """Whether this is a method of a class with a `forward`, which hardly has arrays."""
        return self._method_of(self.function.owner, "forward") is not None

    def _of_something(self, node: ast.Call, callee: ast.Attribute, value: Value) -> Value:
        """What a method returns of something that nobody knows."""
        if callee.attr == "type" and value is UNKNOWN and len(node.args) == 1:
            call = self.applied(node, "")
            place = _place_of_type(call.first)
            return Tensor() if place is False else UNKNOWN
        if callee.attr == "to" and value is UNKNOWN and self._is_unpacked(callee.value):
            self.applied(node, "")
            return LIKELY
        is_batch = value == HOST_BATCH
        if callee.attr in TENSOR_METHODS and (
            value is UNKNOWN or is_batch or isinstance(value, Items)
        ):
            on_host = is_batch or (isinstance(value, Items) and is_on_host(value.each))
            return self._of_tensor(node, callee, Tensor(on_host=on_host, is_sure=False))
        if value is UNKNOWN and callee.attr == UPDATING:
            self._keep(node, callee, None)
        self.applied(node, "")
        return _OF_MODEL.get(callee.attr, UNKNOWN)

    def _keep(
        self, node: ast.Call, callee: ast.Attribute, method: FunctionHere | Meter | None
    ) -> None:
        """Note the tensors that an instance keeps; without its method that is very likely."""
        owner = dotted_name(callee.value)
        given = self.applied(node, "")
        if owner is None or not (node.args or node.keywords):
            return
        if method is None:
            kept = kept_by_meter(given.first) if given.arguments else {}
        elif isinstance(method, Meter):
            kept = kept_elsewhere(method.keeper, callee.attr, given.arguments, given.keywords)
        else:
            places = dict(zip(named_parameters(method), given.arguments, strict=False))
            kept = kept_by(method, {**places, **given.keywords})
        for attribute, value in kept.items():
            self.names[".".join((owner.root, *owner.path, attribute))] = value
        if kept:
            self.with_parts.add(owner.root)

    def _shown(self, node: ast.Call) -> Value:
        """A call that turns what it is given into text or a picture."""
        for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
            self.shown(argument)
        match node.func:
            case ast.Attribute(ast.Constant(str(text)), "format"):
                self._fields_shown(node, text)
        return FOREIGN

    def _fields_shown(self, node: ast.Call, text: str) -> None:
        """`"{loss.val:.3f}".format(loss=losses)`, which reads an attribute of what it is given."""
        for keyword in node.keywords:
            if keyword.arg is not None and isinstance(keyword.value, ast.Name):
                names = [f"{keyword.value.id}.{each}" for each in fields_of(text, keyword.arg)]
                values = [self.names[name] for name in names if name in self.names]
                self.host_reads(node, values, message("shape.stay"), _PRINT_COST)

    def _as_text(self, node: ast.Call, callee: ast.Attribute) -> Value | None:
        """A method that writes what it is given, in text, a picture or a record of the run."""
        is_text = _is_format(callee) or self._is_format_of_name(callee)
        if callee.attr in _SHOWING or is_text or self._keeps_table(node, callee):
            return self._shown(node)
        if _is_filled_in(node, callee) or _turns_to_text(callee):
            given = self.applied(node, "").arguments
            self.host_reads(node, given, message("shape.stay"), _PRINT_COST)
            return FOREIGN
        return None

    def _is_format_of_name(self, callee: ast.Attribute) -> bool:
        """`line.format(loss)` where `line = "{:.3f}"` stands before."""
        if callee.attr != "format" or not isinstance(callee.value, ast.Name):
            return False
        text = self.named(callee.value.id)
        return isinstance(text, Foreign) and "{" in text.name

    def _keeps_table(self, node: ast.Call, callee: ast.Attribute) -> bool:
        """`run.log({"loss": loss})`, which reads tensors to keep them."""
        match node.args:
            case [ast.Dict(), *_]:
                return callee.attr == "log"
            case [ast.Name(name), *_]:
                return callee.attr == "log" and isinstance(self.names.get(name), Table)
        return False

    def _method_of(self, owner: ClassHere | None, name: str) -> FunctionHere | None:
        return None if owner is None else self.session.definitions.method(owner, name)

    def _of_tensor(self, node: ast.Call, callee: ast.Attribute, value: Tensor) -> Value:
        call = self.applied(node, callee.attr)
        name = callee.attr
        if name in _SIZED:
            call.arguments = self.as_sizes(node, call.arguments)
        if name in _SIZES_READ:
            is_new = name in _LENGTHS_READ and (name != "expand" or not self._had_length(call))
            self.check_lengths(node, call, of_numbers=is_new)
        if name in _OF_TABLES and not value.is_sure:
            return UNKNOWN
        if name in ("size", "numel", "nelement"):
            return self._measured(name, value, call)
        if name in _NUMBERS:
            return CONSTANT
        if name in NEW:
            self.check_sizes(node, call)
            new = made(call, call.keywords.get("device") or Foreign("device"))
            new = new._replace(on_host=value.on_host)
            return self.configured(node, new) if name == "new_tensor" else new
        if name == "item" and not self.around and self._is_drawn(callee.value):
            return CONSTANT
        host = self._copied(node, name, value, call)
        if host is not None:
            return host
        call.arguments = [value, *call.arguments]
        entry = self.session.methods.get(name)
        if name == "nonzero" and "as_tuple" in call.keywords:
            value = value._replace(is_sure=True)  # that of NumPy has no such parameter
        if entry is not None and meets(entry, call):
            if value.on_host:
                return result_of(entry, call, frozenset())
            return self.source(node, entry.operator, call)
        if name == "type" and len(call.arguments) == 2:
            return self._of_type(node, value, call.arguments[1])
        return self._operated(node, callee, value, call)

    def _of_type(self, node: ast.Call, value: Tensor, given: Value) -> Tensor:
        """`x.type(torch.FloatTensor)`: types of PyTorch from before 0.4 say where it is, too."""
        place = _place_of_type(given)
        if place and not value.on_host:
            advice = message("shape.stay")
            found = self.report(HOST_READ, node, advice, _MOVE_COST, is_sure=value.is_sure)
            value = value._replace(copied=found)
        on_host = value.on_host if place is None else place
        return value._replace(kind=kind_of_type(given), on_host=on_host)

    def _is_unpacked(self, node: ast.expr) -> bool:
        """Whether something is a part of a batch: `y` of `for x, y in loader`."""
        return isinstance(node, ast.Name) and node.id in unpacked_names(self.function.node)

    def _had_length(self, call: Applied) -> bool:
        """Whether a tensor was made before of a length that this one is expanded to."""
        return any(
            isinstance(each, Number) and not each.sources.isdisjoint(self.sized)
            for each in call.arguments
        )

    def _operated(
        self, node: ast.Call, callee: ast.Attribute, value: Tensor, call: Applied
    ) -> Value:
        """What a method returns that is in no table of sources."""
        name = callee.attr
        result = self.operator(node, call)
        if not value.is_sure and not self._shows_tensor(name):
            return unsure(result) if self._may_be_of_tensor(name) else UNKNOWN
        if name.endswith("_") and not name.endswith("__") and isinstance(result, Tensor):
            result = result._replace(is_fixed=False)
            if isinstance(callee.value, ast.Name):
                self.names[callee.value.id] = result
        return result

    def _may_be_of_tensor(self, method: str) -> bool:
        """Whether tensors have such a method; graphs of DGL have `num_edges()`."""
        is_known = method in TENSOR_METHODS or method in self.session.methods
        return is_known or is_method_of_tensors(method)

    def _shows_tensor(self, method: str) -> bool:
        """Whether a method shows that what very likely is a tensor is one.

        Arrays have some of them, too, but a forward pass is given none.
        """
        is_shared = method in _OF_TENSORS_OR_ARRAYS and self.function.node.name != "forward"
        return is_of_tensors(method) and not is_shared

    def _is_drawn(self, node: ast.expr) -> bool:
        """A number drawn once from a generator that is passed in, such as a seed."""
        return (
            isinstance(node, ast.Call)
            and self.qualified(node.func) == "torch.randint"
            and any(keyword.arg == "generator" for keyword in node.keywords)
        )

    def _measured(self, name: str, value: Tensor, call: Applied) -> Value:
        if name == "size" and not call.arguments and "dim" not in call.keywords:
            return Size(value.shape)
        number = call.number(0, "dim") if name == "size" else None
        return Number("?", value.sources) if number is None else Number(*value.shape.at(number))

    def _copied(self, node: ast.Call, name: str, value: Tensor, call: Applied) -> Value | None:
        """`to`, `cuda`, `cpu`: where the copy is."""
        if name in ("cuda", "npu"):
            return self._sent(node, value)
        if name not in ("to", "cpu"):
            return None
        given = [*call.arguments, *call.keywords.values()]
        if name == "cpu" or any(is_host_device(each) for each in given):
            entry = self.session.methods.get("cpu")
            if entry is not None and not value.on_host and "non_blocking" not in call.keywords:
                # Behind `x.cpu()` nothing is read of a module, which would be kept.
                is_sure = value.is_sure or (name == "cpu" and node is self.behind)
                found = self.report(HOST_READ, node, entry.advice, entry.cost, is_sure=is_sure)
                return value._replace(on_host=True, copied=found)
            return value._replace(on_host=True)
        kind = next(filter(None, map(kind_of_type, given)), "")
        if kind:
            value = value._replace(kind=kind)
            first = call.arguments[:1]
            is_type_only = kind_of_type(first[0]) if first else "device" not in call.keywords
            return value if is_type_only else self._sent(node, value)
        names = [each.name for each in given if isinstance(each, Foreign)]
        only_type = len(given) == 1 and any(n == "dtype" or n.startswith("torch.") for n in names)
        return value._replace(kind="") if only_type else self._sent(node, value)

    def _sent(self, node: ast.Call, value: Tensor) -> Tensor:
        """A copy on the device; what its name comes to hold later is there, too."""
        self.moved -= {getattr(getattr(node.func, "value", None), "id", "")}
        return value._replace(on_host=False)

    def _of_list(self, node: ast.Call, callee: ast.Attribute, value: Items) -> Value:
        call = self.applied(node, callee.attr)
        if callee.attr == "pop":
            return value.each
        if callee.attr == "copy":
            return value
        if callee.attr not in ("append", "extend", "insert") or not call.arguments:
            return UNKNOWN
        added = call.arguments[-1]
        name = callee.value.id if isinstance(callee.value, ast.Name) else ""
        # What decided about this statement, apart from what decided about the list.
        sources = value.sources.union(*self.control[self.made_at.get(name, 0) :])
        if callee.attr == "extend":
            sources |= added.sources if isinstance(added, Items) else frozenset()
            added = element_of(added)
        each = added if value.elements == () else either(value.each, added)
        if name:
            self.names[name] = Items(UNKNOWN if are_deep([each]) else each, None, sources)
        return UNKNOWN

    def _of_layer(self, node: ast.Call, name: str, value: Layer | Layers) -> Value:
        """What methods return that all modules have, or lists of them."""
        if name == "forward":
            return self._called(node, value)
        if isinstance(value, Layers):
            return Items(value.each) if name in ("values", "items") else UNKNOWN
        is_own = self._method_of(value.definition, name) is not None
        return value if name in KEEPING and not is_own else UNKNOWN

    def _of_table(self, node: ast.Call, callee: ast.Attribute, value: Table) -> Value:
        call = self.applied(node, callee.attr)
        if callee.attr in ("get", "pop"):
            return entry_of(value, call.first)
        if callee.attr == "values":
            return Items(any_of(value.parts))
        if callee.attr == "items":
            return Items(items_of((UNKNOWN, any_of(value.parts))))
        return UNKNOWN

    # Functions, layers

    def named_function(self, node: ast.Call, name: str) -> Value:
        """What a function of this file, or of Python, returns."""
        if name in self.names:
            return self._called(node, self.names[name])
        function = self.session.definitions.function(name)
        if function is not None:
            return self._own(node, function)
        found = self.session.definitions.classes.get(name)
        if found is not None:
            self.applied(node, "")
            return Layer(name, found)
        if name == "map":
            return self._mapped(node)
        builtin = BUILTINS.get(name)
        if builtin is not None:
            return builtin(self, node, self.applied(node, name))
        layer = self.made_by_module(node.func)
        return self._called(node, Layer(layer) if layer else UNKNOWN)

    def _for_each(self, node: ast.Call) -> Value:
        """`multi_apply(function, a, b)` of mmdet: what it returns for each element, in lists."""
        call = self.applied(node, "")
        function = self._function_argument(node.args[0]) if node.args else None
        if function is None or any(isinstance(argument, ast.Starred) for argument in node.args):
            return UNKNOWN
        given = list(map(element_of, call.arguments[1:]))
        result = self.invoke(function, given, call.keywords)
        if not isinstance(result, Items) or result.elements is None:
            return UNKNOWN
        return items_of(tuple(Items(element) for element in result.elements))

    def _mapped(self, node: ast.Call) -> Value:
        """`map(function, a, b)`."""
        call = self.applied(node, "")
        given = list(map(element_of, call.arguments[1:]))
        if isinstance(call.first, Closure):
            return Items(self.run_closure(call.first, given, {}))
        function = self._function_argument(node.args[0]) if node.args else None
        return Items(UNKNOWN if function is None else self.invoke(function, given, {}))

    def _function_argument(self, node: ast.expr) -> FunctionHere | None:
        """The function or method of this file that is passed to another."""
        match node:
            case ast.Name(name):
                return self.session.definitions.function(name)
            case ast.Attribute(ast.Name(owner), name) if owner == self.receiver:
                return self._method_of(self.function.owner, name)
        return None

    def _called(self, node: ast.Call, value: Value) -> Value:
        call = self.applied(node, "")
        if isinstance(value, Closure):
            return self.run_closure(value, list(call.arguments), call.keywords)
        if isinstance(value, Foreign) and value.name in self.session.operators:
            return self.library(node, value.name)
        if isinstance(value, Layer):
            method = self._method_of(value.definition, "forward")
            if method is not None:
                return self._from_module(value, method, call)
            result = self._in_turn(node, value, call) if value.parts else layer_result(value, call)
            self.uses(sources_of(result), node)
            return result
        if value is UNKNOWN and call.arguments and self.is_module(node.func):
            return LIKELY  # or several, or what has some
        return UNKNOWN

    def _in_turn(self, node: ast.Call, layer: Layer, call: Applied) -> Value:
        """What the modules of a `Sequential` make of a tensor, some tensor if one is not known."""
        result: Value = call.first
        for part in layer.parts:
            method = self._method_of(part.definition, "forward")
            if method is not None:
                result = self._from_module(part, method, Applied("", [result]))
            elif part.parts:
                result = self._in_turn(node, part, Applied("", [result]))
            elif not part.name:
                result = LIKELY
            else:
                result = layer_result(part, Applied("", [result]))
            if result is UNKNOWN:
                result = LIKELY
        return layer_result(Layer(""), call) if result == LIKELY else result

    def _own(self, node: ast.Call, function: FunctionHere, *, is_of_self: bool = False) -> Value:
        call = self.applied(node, "")
        if is_of_self:
            given = dict(zip(named_parameters(function), call.arguments, strict=False))
            values = {**given, **call.keywords}
            self.session.passed_arguments.append(PassedArguments(function.node, node, values))
        if is_spread(node):
            result = self.invoke(function, [], {})
        else:
            result = self.invoke(function, list(call.arguments), call.keywords)
        shared = names_in((*call.arguments, *call.keywords.values()))
        if is_of_self and self.function.owner is not None:
            lineage = self.session.definitions.lineage(self.function.owner)
            methods = (method for each in lineage for method in each.methods.values())
            shared = shared.union(*(assigned_attributes(method.node) for method in methods))
        return renamed(result, renaming(shared, {}))

    def _from_module(self, layer: Layer, method: FunctionHere, call: Applied) -> Value:
        """What a module of the file returns, its lengths called as they are here."""
        result = self.invoke(method, list(call.arguments), call.keywords)
        shared = names_in((*call.arguments, *call.keywords.values()))
        return renamed(result, renaming(shared, dict(layer.given)))

    def can_look_into(self, node: ast.AST) -> bool:
        """Whether a call of a function may be looked into."""
        active = self.session.active
        if len(active) > MAX_DEPTH or node in active or self.session.calls >= MAX_CALLS:
            return False
        self.session.calls += 1
        return True


def _shown_tensor(value: Value, method: str) -> Tensor | None:
    """The tensor whose method is called, also where only the method shows that it is one."""
    if isinstance(value, Tensor):
        return value
    if value == POSSIBLE_MASK and method in _OF_MASKS:
        return Tensor(kind="bool")
    is_shown = value in (UNKNOWN, POSSIBLE_MASK) and method in _OF_TENSORS_OR_ARRAYS
    # No number of Python has these: another function has put something else there.
    is_shown = is_shown or (isinstance(value, Number) and method in ("item", "cpu", "backward"))
    return LIKELY if is_shown else None


def _place_of_type(value: Value) -> bool | None:
    """Whether tensors of a type are on the host: `torch.FloatTensor`, `torch.cuda.FloatTensor`."""
    match value:
        case Foreign(name) if _TYPE.fullmatch(name) is not None:
            return ".cuda." not in name
    return None


def _is_format(callee: ast.Attribute) -> bool:
    """`"...".format`."""
    is_text = isinstance(callee.value, ast.Constant) and isinstance(callee.value.value, str)
    return is_text and callee.attr == "format"


def _is_filled_in(node: ast.Call, callee: ast.Attribute) -> bool:
    """`logger.info("%f", loss)`."""
    match node.args:
        case [ast.Constant(str()), _, *_]:
            return callee.attr in _LOGGING
    return False


def _turns_to_text(callee: ast.Attribute) -> bool:
    """Whether a method of a tokenizer makes text of tokens; models have `decode`, too."""
    if callee.attr == "batch_decode":
        return True
    name = dotted_name(callee.value) if callee.attr == "decode" else None
    return name is not None and "tokenizer" in (name.path or (name.root,))[-1]


def is_of_tensors(method: str) -> bool:
    """Whether a method is one that tensors have."""
    return method in TENSOR_METHODS or method.removesuffix("_") in TRANSFERS
