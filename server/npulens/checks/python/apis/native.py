"""PyTorch's own APIs that the NPU lacks or limits in the release aimed at."""

import ast
import re

from npulens.catalog.model import Finding
from npulens.catalog.native_tables import TENSOR, NativeEntry, NativeLimit, includes
from npulens.catalog.settlements import Settlement
from npulens.checks.context import Context
from npulens.checks.device_words import last_identifier
from npulens.checks.entries import longest_entry
from npulens.checks.purpose import ON_HOST
from npulens.checks.python.apis.native_arguments import argument_breaking
from npulens.checks.python.apis.unverified import report_unverified
from npulens.checks.tensors import (
    is_on_host,
    is_tensor,
    made_on_cpu,
    on_cpu,
    tensor_method,
    tensor_type,
)
from npulens.syntax.meanings import Member, Qualified, Value, canonical, resolve, resolve_name
from npulens.syntax.scopes import FunctionScope, Scope, is_bound
from npulens.syntax.values import Name, dotted_name, literal_attribute
from npulens.text.spans import Span

_UNIONS = frozenset({"Union", "Optional", "Type", "type", "Callable", "ClassVar", "Annotated"})
_EXPORT = "torch.export.export"


def attribute(node: ast.Attribute, scope: Scope, context: Context) -> None:
    """`torch.func.jvp`, `F.pdist`, `tensor.mode`; a mere mention of a class is none."""
    native = context.catalogue.native
    mentioned_for = context.notes.mentions.get(node)
    if not isinstance(node.ctx, ast.Load):
        return
    if node.attr not in native.words and (native.verified is None or mentioned_for is not None):
        return
    name = dotted_name(node)
    values = resolve(node, scope) if name is not None else []
    entry = _entry(values, context)
    if entry is not None:
        is_method = not isinstance(values[0], Qualified)
        if mentioned_for is not None:
            context.settle(_attribute_span(node, is_method, context), mentioned_for)
        if not (is_method and _is_exempt(node.value, entry, scope)):
            _report_always(entry, _attribute_span(node, is_method, context), scope, context)
    elif mentioned_for is not None:
        return
    elif len(values) == 1 and isinstance(values[0], Qualified):
        report_unverified(values[0].name, context.span(node), context)
    else:
        method = native.entries.get(f"{TENSOR}.{node.attr}")
        if method is None or _is_exempt(node.value, method, scope):
            return
        if is_tensor(node.value, scope, context):
            _report_always(method, _attribute_span(node, True, context), scope, context)


def _is_exempt(receiver: ast.expr, entry: NativeEntry, scope: Scope) -> bool:
    """Whether a tensor is on the CPU, where its methods do what they should."""
    on_device = any(limit.kind.on_device for limit in entry.limits)
    return on_cpu(receiver) or (on_device and made_on_cpu(receiver, scope))


def literal_getattr(node: ast.Call, scope: Scope, context: Context) -> None:
    """`getattr(torch.func, "jvp")`."""
    name = literal_attribute(node)
    if name is not None and name.path[-1] in context.catalogue.native.words:
        place = (node.lineno, node.col_offset)
        entry = _entry(resolve_name(name, scope, place), context)
        if entry is not None:
            _report_always(entry, context.span(node), scope, context)


def imported(node: ast.ImportFrom, scope: Scope, context: Context) -> None:
    """`from torch.func import jvp`."""
    if node.level or not node.module or not node.module.startswith("torch"):
        return
    for alias in node.names:
        name = canonical(f"{node.module}.{alias.name}")
        entry = _entry([Qualified(name)], context)
        if entry is not None:
            _report_always(entry, context.span(alias), scope, context)
        elif alias.name != "*":
            report_unverified(name, context.span(alias), context)


def bare_name(node: ast.Name, scope: Scope, context: Context) -> None:
    """A name that only `from torch.func import *` can have brought."""
    if node.id in context.catalogue.native.words and not is_bound(node.id, scope):
        entry = _entry(resolve_name(Name(node.id), scope, None), context)
        if entry is not None:
            _report_always(entry, context.span(node), scope, context)


def called(node: ast.Call, scope: Scope, context: Context) -> None:
    """Arguments that the NPU does not take, and types of tensors that it does not compute with."""
    called_entry = _called_entry(node, scope, context)
    if called_entry is None:
        return
    entry, owner = called_entry
    function = node.func
    limits = _limits(entry, context)
    inputs = _inputs(entry, node, owner)
    if any(limit.always for limit in limits) and _are_on_host(inputs, scope, context):
        context.notes.mentions[function] = "on-host"
        return
    if all(limit.always for limit in limits) or context.lookups.is_for_others(scope):
        return
    operand = owner if owner is not None else (node.args[0] if node.args else None)
    for limit in limits:
        if limit.dtypes:
            found = operand and tensor_type(operand, scope, context)
            if found in limit.dtypes and _counts(entry, context):
                span = _attribute_span(function, owner is not None, context)
                _report(limit, entry.api, span, context, found)
        elif limit.argument is not None:
            place = argument_breaking(limit, node)
            if place is None or (owner is not None and not is_tensor(owner, scope, context)):
                continue
            if _counts(entry, context) and not _are_on_host(inputs, scope, context):
                _report(limit, entry.api, context.span(place), context)


def _are_on_host(inputs: list[ast.expr], scope: Scope, context: Context) -> bool:
    return any(is_on_host(value, scope, context) for value in inputs)


def _called_entry(
    node: ast.Call, scope: Scope, context: Context
) -> tuple[NativeEntry, ast.expr | None] | None:
    """The entry of what is called, and of a method the tensor it belongs to."""
    native = context.catalogue.native
    function = node.func
    if isinstance(function, ast.Attribute):
        if function.attr not in native.words:
            return None
    elif not isinstance(function, ast.Name) or (
        function.id not in native.words and function.id not in context.facts.aliases
    ):
        return None
    values = resolve(function, scope)
    entry = _entry(values, context)
    owner = None
    if isinstance(function, ast.Attribute) and not any(isinstance(v, Qualified) for v in values):
        owner = function.value
        if entry is None:
            entry = native.entries.get(f"{TENSOR}.{function.attr}")
    return None if entry is None else (entry, owner)


def _inputs(entry: NativeEntry, call: ast.Call, owner: ast.expr | None) -> list[ast.expr]:
    """What a call computes with: its first argument, or what a model is traced with."""
    if owner is not None:
        return [owner]
    first = call.args[:1]
    if entry.api == _EXPORT:
        first = [*call.args[1:2], *(k.value for k in call.keywords if k.arg == "args")]
    if first and isinstance(first[0], (ast.Tuple, ast.List)):
        return first[0].elts
    return first


def mentioned(node: ast.AST, scope: Scope, context: Context) -> None:
    """Notes what only names a class or function: annotations, `isinstance`, what is replaced."""
    mentions: list[ast.expr | None] = []
    annotation: ast.expr | None = None
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "issubclass"):
            mentions += node.args[1:]
        context.notes.annotations.update(_host_profile(node))
    elif isinstance(node, ast.Compare):
        mentions += node.comparators
    elif isinstance(node, (ast.arg, ast.AnnAssign)):
        annotation = node.annotation
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        annotation = node.returns
    elif isinstance(node, ast.ExceptHandler):
        mentions.append(node.type)
    elif isinstance(node, ast.Dict):
        mentions += node.keys
    elif isinstance(node, ast.Subscript):
        if last_identifier(node.value) in _UNIONS:
            annotation = node.slice  # `Union[nn.RNN, nn.GRU]`
        mentions.append(node.slice)  # `layers[nn.RNN]`
    elif isinstance(node, ast.Assign):
        mentions += _checked_types(node, scope, context)
        context.notes.mentions.update((part, "reported-at-use") for part in _replaced(node))
        unused = _unused_layer(node, scope, context)
        context.notes.mentions.update(dict.fromkeys(unused, "unreachable"))
    if annotation is not None:
        types = _types(annotation)
        context.notes.annotations.update(types)
        context.notes.mentions.update(dict.fromkeys(types, "type-only"))
    for mention in mentions:
        if mention is not None and not isinstance(mention, (ast.Name, ast.Constant)):
            context.notes.mentions.update(dict.fromkeys(_types(mention), "type-only"))


def _checked_types(node: ast.Assign, scope: Scope, context: Context) -> list[ast.expr]:
    """The types of `layers = (nn.RNN, nn.GRU)` in a function with `isinstance(layer, layers)`."""
    name = last_identifier(node.targets[0])
    if not isinstance(node.value, ast.Tuple) or not name or not isinstance(scope, FunctionScope):
        return []
    text = context.source(scope.node)
    is_checked = re.search(rf"\bisinstance\([^()\n]*,\s*{name}\)", text)
    return [] if is_checked is None else [node.value]


def _host_profile(node: ast.Call) -> list[ast.expr]:
    """What `profile(activities=[ProfilerActivity.CPU])` names: it records the host alone."""
    given = next((k.value for k in node.keywords if k.arg == "activities"), None)
    if not isinstance(given, (ast.List, ast.Tuple, ast.Set)):
        return []
    if not all(isinstance(e, ast.Attribute) and e.attr == "CPU" for e in given.elts):
        return []
    return [node.func, *given.elts]


def _replaced(node: ast.Assign) -> list[ast.expr]:
    """`F.pdist` in `F.pdist = wrap(F.pdist)`."""
    if not isinstance(node.value, ast.Call) or not node.value.args:
        return []
    names = [name for target in node.targets if (name := dotted_name(target)) and name.path]
    return [argument for argument in node.value.args if dotted_name(argument) in names]


def _unused_layer(node: ast.Assign, scope: Scope, context: Context) -> list[ast.expr]:
    """`nn.AvgPool3d` in `self.pool = nn.AvgPool3d(2)` of a module that never uses `pool`."""
    call = node.value
    if not isinstance(scope, FunctionScope) or scope.owner is None:
        return []
    if not isinstance(call, ast.Call):
        return []
    if last_identifier(call.func) not in context.catalogue.native.words:
        return []
    name = dotted_name(node.targets[0])
    if name is None or len(name.path) != 1:
        return []
    owner = scope.owner.node
    return [call.func] if context.lookups.layer_words(owner)[name.path[0]] == 1 else []


def _types(node: ast.expr) -> list[ast.expr]:
    """The attributes in an expression that names types; calls are no part of it."""
    found: list[ast.expr] = []
    pending: list[ast.AST] = [node]
    while pending:
        part = pending.pop()
        if isinstance(part, ast.Attribute):
            found.append(part)
        elif isinstance(part, (ast.Tuple, ast.List, ast.Subscript, ast.BinOp)):
            pending += ast.iter_child_nodes(part)
    return found


def _entry(values: list[Value], context: Context) -> NativeEntry | None:
    """The entry of what something means, if it can mean nothing else."""
    native = context.catalogue.native
    entries = []
    for value in values:
        if isinstance(value, Qualified):
            entries.append(native.entry(value.name))
        elif isinstance(value, Member):
            method = tensor_method(value.name, native)
            entries.append(native.entry(value.name if method is None else method))
        else:
            return None
    return entries[0] if entries and all(entry is not None for entry in entries) else None


def _attribute_span(node: ast.expr, is_method: bool, context: Context) -> Span:
    """Of a method the name alone, of anything else all of it."""
    whole = context.span(node)
    if is_method and isinstance(node, ast.Attribute):
        return Span(whole.end - len(node.attr), whole.end)
    return whole


def _limits(entry: NativeEntry, context: Context) -> list[NativeLimit]:
    version = context.catalogue.native.listed(context.target.torch_version)
    return [limit for limit in entry.limits if includes(limit.versions, version)]


def _counts(entry: NativeEntry, context: Context) -> bool:
    """Whether no rule written by hand covers the same."""
    return longest_entry(entry.api, context) is None


def _report_always(entry: NativeEntry, span: Span, scope: Scope, context: Context) -> None:
    """The first limit that every use of an API meets."""
    for limit in _limits(entry, context):
        if limit.always and span not in context.reported.spans and _counts(entry, context):
            settled = ON_HOST if context.lookups.is_for_others(scope) else None
            _report(limit, entry.api, span, context, settled=settled)
            return


def _report(
    limit: NativeLimit,
    api: str,
    span: Span,
    context: Context,
    dtype: str | None = None,
    settled: Settlement | None = None,
) -> None:
    arguments = {
        "symbol": api,
        "replacement": "",
        "version": str(context.target.torch_version),
        "type": dtype or "",
    }
    kind = limit.kind
    if settled is None and kind.settled:
        settled = Settlement(kind.settled)
    context.add(Finding(kind.rule, span, arguments, limit.note, (), kind.severity), settled)
