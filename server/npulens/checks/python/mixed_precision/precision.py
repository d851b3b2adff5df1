"""Numbers as such: double precision on the device, determinism, training without autocast."""

import ast
import re
from collections.abc import Iterator

from npulens.catalog.messages import message
from npulens.catalog.model import Severity
from npulens.checks.arguments import argument_of, keyword_of
from npulens.checks.context import Context
from npulens.syntax.bindings import parameters_of
from npulens.syntax.meanings import Instance, Literal, qualified_names, resolve
from npulens.syntax.scopes import ModuleScope, Scope, definitions_around, function_of
from npulens.syntax.values import last_name
from npulens.syntax.walking import choices, nodes_below
from npulens.text.spans import Span

_DOUBLES = frozenset(
    {"torch.float64", "torch.double", "torch.DoubleTensor", "torch.complex128", "torch.cdouble"}
)
_LAST_NAMES = frozenset(name.rpartition(".")[2] for name in _DOUBLES)
_TENSOR_TYPE = "torch.DoubleTensor"
_METHODS = frozenset({"double", "cdouble"})
_CONVERTING = frozenset({"to", "type", "double", "cdouble"})
_ON_HOST = re.compile(r"\bnumpy\b|\bnp\.|\.cpu\(|[\"']cpu[\"']")
"""What shows that a function computes on the host."""
_DEFAULTS = frozenset({"torch.set_default_dtype", "torch.set_default_tensor_type"})
_DEVICE_METHODS = frozenset({"cuda", "npu"})
_CURRENT = Instance("torch.accelerator.current_accelerator")


def double(node: ast.Call, scope: Scope, context: Context) -> None:
    """`x.cuda().double()`, `torch.zeros(3, dtype=torch.float64, device="cuda")`."""
    if isinstance(node.func, ast.Attribute):
        _converted(node, node.func, scope, context)
    device, dtype = keyword_of(node, "device"), keyword_of(node, "dtype")
    if device is not None and dtype is not None:
        names = qualified_names(node.func, scope)
        is_torch = bool(names) and names[0].startswith("torch.")
        is_sure = _on_device(device.value, scope)
        if (is_sure and is_torch) or not _is_written(device.value, scope):
            _report_double(dtype.value, scope, context, likely=not is_sure)
    elif _sets_default(node, scope, context):
        _report_double(node.args[0], scope, context)
    if isinstance(node.func, ast.Attribute) and _names_doubles(node):
        if _was_moved(node.func, scope):
            _report_making(node, scope, context)
        elif _may_be_on_device(node.func, scope, context):
            _report_making(node, scope, context, likely=True)


def _names_doubles(call: ast.Call) -> bool:
    """Whether a call may make doubles, by its words alone, which is cheap to see."""
    if last_name(call.func) in _METHODS:
        return True
    values = (*call.args, *(keyword.value for keyword in call.keywords))
    return any(
        (isinstance(part, ast.Attribute) and part.attr in _LAST_NAMES)
        or (isinstance(part, ast.Constant) and part.value == _TENSOR_TYPE)
        for value in values
        for part in choices(value)
    )


def _may_be_on_device(method: ast.Attribute, scope: Scope, context: Context) -> bool:
    """Whether a method is one of an argument, and nothing says that this is on the host."""
    function = function_of(scope)
    if method.attr not in _CONVERTING or function is None:
        return False
    passed = {parameter.arg for parameter, _ in parameters_of(function.args)}
    if _begins_with(method.value) not in passed - {"self", "cls"}:
        return False
    return _ON_HOST.search(context.source(function)) is None


def _was_moved(method: ast.Attribute, scope: Scope) -> bool:
    """`value = torch.rand(2).cuda() * 0.01`, then `value.double()`: all its values are moved."""
    function = function_of(scope)
    if method.attr not in _CONVERTING or not isinstance(method.value, ast.Name):
        return False
    values = [
        part.value
        for part in (nodes_below(function) if function is not None else ())
        if isinstance(part, ast.Assign)
        and any(getattr(target, "id", "") == method.value.id for target in part.targets)
    ]
    return bool(values) and all(_is_moved(value, scope) for value in values)


def _is_moved(value: ast.expr, scope: Scope) -> bool:
    """Whether a call in an expression moves to the device, and none to the host."""
    calls = [
        part
        for part in nodes_below(value)
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute)
    ]
    is_on_host = any(last_name(call.func) in ("cpu", "numpy") for call in calls)
    return not is_on_host and any(_moves(call, scope) for call in calls)


def _begins_with(node: ast.expr) -> str:
    """`x` of `x[0].flatten().shape`."""
    while not isinstance(node, ast.Name):
        if isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        else:
            return ""
    return node.id


def _sets_default(node: ast.Call, scope: Scope, context: Context) -> bool:
    """`torch.set_default_dtype(...)` in a module that puts something on the device."""
    return (
        len(node.args) == 1
        and context.facts.signs.evidence.names_device
        and not _DEFAULTS.isdisjoint(qualified_names(node.func, scope))
    )


def _converted(node: ast.Call, method: ast.Attribute, scope: Scope, context: Context) -> None:
    """A method that puts on the device after one that makes doubles, the reverse, or both."""
    if method.attr == "to" and _names_doubles(node):
        values = [*node.args, *(keyword.value for keyword in node.keywords)]
        if any(_on_device(value, scope) for value in values):
            for value in values:
                _report_double(value, scope, context)
    inner = method.value
    if not isinstance(inner, ast.Call) or not isinstance(inner.func, ast.Attribute):
        return
    for making, moving in ((inner, node), (node, inner)):
        if _names_doubles(making) and _moves(moving, scope):
            _report_making(making, scope, context)


def _report_making(call: ast.Call, scope: Scope, context: Context, *, likely: bool = False) -> None:
    """A call that makes doubles; `likely` if the tensor may also be on the host."""
    method, dtype = last_name(call.func), keyword_of(call, "dtype")
    if dtype is not None and any(n.startswith("torch.") for n in qualified_names(call.func, scope)):
        _report_double(dtype.value, scope, context)
    if method in ("to", "type"):
        for value in [*call.args, *(keyword.value for keyword in call.keywords)]:
            _report_double(value, scope, context, likely=likely)
    elif method in _METHODS and not call.args and not call.keywords:
        end = context.span(call.func).end
        _report_place(Span(end - len(method), end), f".{method}()", context, likely=likely)


def _moves(call: ast.Call, scope: Scope) -> bool:
    """Whether a call puts a tensor or a module on the device."""
    method = last_name(call.func)
    if method in _DEVICE_METHODS:
        return True
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    return method == "to" and any(_on_device(value, scope) for value in values)


def _on_device(node: ast.expr, scope: Scope) -> bool:
    """Whether an expression names the device, is made of one, or is PyTorch's accelerator."""
    if isinstance(node, ast.Call) and "torch.device" in qualified_names(node.func, scope):
        return bool(node.args) and _on_device(node.args[0], scope)
    if isinstance(node, ast.Attribute) and node.attr == "type":
        return _CURRENT in resolve(node.value, scope)
    return any(
        value == _CURRENT
        or (isinstance(value, Literal) and value.text.partition(":")[0] in ("cuda", "npu"))
        for value in resolve(node, scope)
    )


def _is_written(node: ast.expr, scope: Scope) -> bool:
    """Whether a device is a literal, such as `"cpu"`, or none at all."""
    if isinstance(node, ast.Call) and "torch.device" in qualified_names(node.func, scope):
        return bool(node.args) and _is_written(node.args[0], scope)
    values = resolve(node, scope)
    return isinstance(node, ast.Constant) or any(isinstance(v, Literal) for v in values)


def _report_double(node: ast.expr, scope: Scope, context: Context, *, likely: bool = False) -> None:
    for chosen in choices(node):
        names = qualified_names(chosen, scope) if isinstance(chosen, ast.Attribute) else []
        if isinstance(chosen, ast.Constant) and chosen.value == _TENSOR_TYPE:
            names = [chosen.value]
        if names and names[0] in _DOUBLES:
            _report_place(context.span(chosen), names[0], context, likely=likely)


def _report_place(span: Span, symbol: str, context: Context, *, likely: bool) -> None:
    if span not in context.reported.spans:
        rule = context.catalogue.required("double-on-device")
        note, severity = (message("check.if-on-the-npu"), Severity.INFO) if likely else (None, None)
        context.report(rule, span, symbol, [], note=note, severity=severity)


def deterministic(node: ast.Call, scope: Scope, context: Context) -> None:
    """`torch.use_deterministic_algorithms(True)` where collectives decide about the sums too."""
    if not context.facts.signs.evidence.collectives_unordered:
        return
    value = argument_of(node, "mode", 0)
    if not isinstance(value, ast.Constant) or value.value is not True:
        return
    name = "torch.use_deterministic_algorithms"
    if name in qualified_names(node.func, scope):
        rule = context.catalogue.required("deterministic-collectives")
        context.report(rule, context.span(node.func), name, [])


def training_loop(node: ast.For | ast.While, scope: Scope, context: Context) -> None:
    """`for batch in loader: ... loss.backward() ... optimizer.step()` in a script."""
    if not context.facts.signs.evidence.trains_in_full_precision:
        return
    if any(isinstance(node, ast.ClassDef) for node in definitions_around(scope)):
        return
    if not (isinstance(scope, ModuleScope) or context.facts.signs.evidence.is_script):
        return
    calls = list(_method_calls(node))
    backward = (call for call, owner, name in calls if name == "backward" and "loss" in owner)
    loss = next(backward, None)
    if loss is None or not any(name == "step" and "opt" in owner for _, owner, name in calls):
        return
    span = context.span(loss)
    if span not in context.reported.spans:
        rule = context.catalogue.required("no-mixed-precision")
        context.report(rule, span, context.source(loss), [])


def _method_calls(node: ast.stmt) -> Iterator[tuple[ast.Call, str, str]]:
    """Calls that are statements, each with the name in small letters that it is a method of."""
    for inner in nodes_below(node):
        if isinstance(inner, ast.Expr) and isinstance(inner.value, ast.Call):
            callee = inner.value.func
            if isinstance(callee, ast.Attribute) and isinstance(callee.value, ast.Name):
                yield inner.value, callee.value.id.lower(), callee.attr
