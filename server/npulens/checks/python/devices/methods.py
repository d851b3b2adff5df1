"""Methods and properties of tensors and modules: `.cuda()`, `.is_cuda`."""

import ast
from collections.abc import Iterator

from npulens.catalog.messages import message
from npulens.catalog.model import Applicability, Edit, Fix, ImportNeed, Severity
from npulens.catalog.tables import MethodEntry
from npulens.checks.context import Context
from npulens.checks.function_names import called_names
from npulens.checks.python.devices.losses import has_no_tensor
from npulens.checks.replacements import with_plugin
from npulens.checks.titles import use
from npulens.syntax.bindings import class_definition
from npulens.syntax.meanings import (
    Instance,
    Literal,
    Local,
    LocalInstance,
    Member,
    Qualified,
    Value,
    qualified_names,
    resolve,
    resolve_name,
)
from npulens.syntax.scopes import Scope, function_of, is_own_attribute, receiver_class
from npulens.syntax.values import Defined, Name, dotted_name
from npulens.text.spans import Span


def called(node: ast.Call, scope: Scope, context: Context) -> None:
    """`model.cuda()`, `(x.cpu if small else x.cuda)()`."""
    if isinstance(node.func, ast.Attribute):
        entry = context.catalogue.methods.get(node.func.attr)
        if entry is not None and entry.called and (entry.is_of_library or _fits(node)):
            _method(node.func, entry, scope, context, node)
    elif isinstance(node.func, ast.IfExp) and _fits(node):
        _taken(node.func, scope, context)


def assigned(node: ast.Assign, scope: Scope, context: Context) -> None:
    """`move = model.cuda`, where the same function has `move()`."""
    target = node.targets[0]
    if not isinstance(target, ast.Name) or not isinstance(node.value, (ast.Attribute, ast.IfExp)):
        return
    function = function_of(scope)
    if function is None or not any(_methods_taken(node.value, context)):
        return
    if target.id in called_names(function):
        _taken(node.value, scope, context)


def _taken(value: ast.expr, scope: Scope, context: Context) -> None:
    """A method that is taken without a call, or one of two."""
    for arm, entry in _methods_taken(value, context):
        _method(arm, entry, scope, context, None)


def _methods_taken(
    value: ast.expr, context: Context
) -> Iterator[tuple[ast.Attribute, MethodEntry]]:
    for arm in [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]:
        entry = context.catalogue.methods.get(arm.attr) if isinstance(arm, ast.Attribute) else None
        if isinstance(arm, ast.Attribute) and entry is not None and entry.called:
            yield arm, entry


def referenced(node: ast.Attribute, scope: Scope, context: Context) -> None:
    """`tensor.is_cuda`."""
    entry = context.catalogue.methods.get(node.attr)
    if entry is None or not isinstance(node.ctx, ast.Load):
        return
    if not entry.called:
        _method(node, entry, scope, context, None)
    elif any(owner in qualified_names(node.value, scope) for owner in entry.owners):
        _unbound(node, entry, context)


_PARAMETERS = frozenset({"device", "non_blocking", "memory_format"})
"""Of `torch.Tensor.cuda`; that of modules has fewer."""


def _fits(call: ast.Call) -> bool:
    """Whether a call has arguments that a method of tensors or modules takes."""
    names = [keyword.arg for keyword in call.keywords]
    return len(call.args) <= 2 and all(n is None or n in _PARAMETERS for n in names)


def _is_storage(node: ast.expr, scope: Scope) -> bool:
    """`tensor.untyped_storage()`: the shim leaves it alone, and it has no `is_npu`.

    So does what `torch.load` passes to `lambda storage, location: storage.cuda()`.
    """
    if isinstance(node, ast.Name):
        function = getattr(scope, "node", None)
        parameters = function.args.args if isinstance(function, ast.Lambda) else []
        return len(parameters) == 2 and parameters[0].arg == node.id and node.id == "storage"
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "untyped_storage"
    )


def _unbound(node: ast.Attribute, entry: MethodEntry, context: Context) -> None:
    """`map(torch.Tensor.cuda, tensors)`."""
    if entry.becomes is None:
        return
    if node.attr in context.facts.own.tensor_method_overrides:
        return  # a class here overrides it and names what it overrides
    end = context.span(node).end
    span = Span(end - len(node.attr), end)
    edits = (Edit(span, entry.becomes),)
    fix = Fix(use(f".{entry.becomes}"), entry.fix, edits, imports=ImportNeed.PLUGIN_BESIDE_TORCH)
    replacement = f".{entry.becomes}"
    context.report(
        entry.rule,
        span,
        f".{node.attr}",
        [fix],
        replacement=replacement,
        note=entry.note,
        settled=context.by_shim(entry.shimmed),
    )


_LIKE_PYTORCH = frozenset({"jittor", "oneflow", "paddle"})
"""Frameworks whose tensors have `.cuda()` as well."""


def _is_of_like_framework(context: Context) -> bool:
    """Whether the module imports such a framework, and PyTorch not."""
    roots = context.lookups.import_roots
    return "torch" not in roots and not roots.isdisjoint(_LIKE_PYTORCH)


def _method(
    node: ast.Attribute, entry: MethodEntry, scope: Scope, context: Context, call: ast.Call | None
) -> None:
    storage = _is_storage(node.value, scope)
    if _is_something_else(node, scope, context) or _is_of_like_framework(context):
        return
    whole = context.span(node)
    span = Span(whole.end - len(node.attr), whole.end)
    fixes = _npu_fix(node, entry, span, scope, context, call) if entry.called or not storage else []
    note, severity, settled = entry.note, None, None
    if entry.is_of_library:
        settled = context.fallback(node)
    elif entry.called and has_no_tensor(node.value, scope):
        note, severity = message("check.moves-nothing"), Severity.INFO
    if not entry.called and _is_in_operator(scope):
        fixes = [fix.to_be_read() for fix in fixes]
    call_mark = "()" if entry.called else ""
    replacement = f".{entry.becomes}{call_mark}" if entry.becomes else ""
    if _may_lack_method(node.value, entry, scope, context):
        replacement = f'.to("{entry.becomes}")'
    symbol = f".{node.attr}{call_mark}"
    settled = settled or context.by_shim(entry.shimmed and not storage)
    context.report(
        entry.rule,
        span,
        symbol,
        fixes,
        replacement=replacement,
        note=note,
        severity=severity,
        settled=settled,
    )


def _is_in_operator(scope: Scope) -> bool:
    """Whether a function is one of an operator with its own gradient: `forward(ctx, x)`.

    What it passes to its kernels, `use_cuda = x.is_cuda`, may be meant for CUDA alone.
    """
    function = function_of(scope)
    arguments = function.args.args if function is not None else []
    return bool(arguments) and arguments[0].arg == "ctx"


def _is_something_else(node: ast.Attribute, scope: Scope, context: Context) -> bool:
    """Whether the receiver is known not to be a tensor or module of PyTorch."""
    own = resolve(node, scope)
    if is_own_attribute(node, scope) or (own and all(isinstance(v, Local) for v in own)):
        return True  # what this file defines
    if any(isinstance(v, Qualified) and _is_function(v.name, node.attr, context) for v in own):
        return True  # what another module of the project defines
    name = dotted_name(node)
    owner = None if name is None or len(name.path) != 1 else receiver_class(name, scope)
    if owner is not None and _inherits(class_definition(owner.node), node.attr, context):
        return True
    receivers = resolve(node.value, scope)
    if receivers and all(_is_foreign(value, node.attr, context) for value in receivers):
        return True
    if isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name):
        overrides = context.facts.own.tensor_method_overrides
        return node.value.func.id == "super" and node.attr in overrides
    return False


def _is_foreign(value: Value, method: str, context: Context) -> bool:
    if isinstance(value, (Instance, Member)) and _has_own(value.name, method, context):
        return True
    if isinstance(value, Qualified):
        # A module; a member of somebody else's package may well be a tensor or a model.
        return "." not in value.name or value.name.startswith("torch.")
    if isinstance(value, LocalInstance) and value.definition.is_class:
        own = any(name == method for name, _ in value.definition.members)
        return own or not value.definition.bases or _inherits(value.definition, method, context)
    return isinstance(value, (Literal, Local))


def _inherits(definition: Defined, method: str, context: Context) -> bool:
    """Whether a class of this file gets a method from one of another module of the project."""
    bases = (base for base in definition.bases if isinstance(base, Name))
    values = (value for base in bases for value in resolve_name(base, context.module, None))
    return any(
        isinstance(value, Qualified) and _has_own(value.name, method, context) for value in values
    )


def _is_function(name: str, method: str, context: Context) -> bool:
    """Whether a name is that of a function of the project: `cuda` of `utils.cuda(batch)`."""
    return f"{method}()" in (context.facts.own.classes_elsewhere.find(name) or ())


def _has_own(name: str, method: str, context: Context) -> bool:
    """Whether a class of another module of the project, or its method, is one by this name.

    What its own method returns, `batch = batch.cuda()`, is taken to be one again.
    """
    owner = name.removesuffix(f".{method}")
    return method in (context.facts.own.classes_elsewhere.find(owner) or ())


def _npu_fix(
    node: ast.Attribute,
    entry: MethodEntry,
    span: Span,
    scope: Scope,
    context: Context,
    call: ast.Call | None,
) -> list[Fix]:
    if entry.becomes is None or entry.fix is Applicability.MANUAL:
        return []
    applicability = entry.fix
    own = context.facts.own
    may_be_own = (
        node.attr in own.tensor_method_overrides
        or node.attr in context.lookups.imported_methods(own.classes_elsewhere)
    )
    if may_be_own and not _is_tensor(node.value, scope):
        applicability = Applicability.UNSAFE
    if _may_lack_method(node.value, entry, scope, context):
        if call is None or call.args or call.keywords:
            return []
        edit = Edit(Span(span.start, context.span(call).end), f'to("{entry.becomes}")')
        edits, need = with_plugin((edit,), ImportNeed.PLUGIN_BESIDE_TORCH, scope, context)
        return [Fix(use(f".{edit.replacement}"), applicability, edits, imports=need)]
    edits, need = with_plugin(
        (Edit(span, entry.becomes),), ImportNeed.PLUGIN_BESIDE_TORCH, scope, context
    )
    title = use(f".{entry.becomes}" + ("()" if entry.called else ""))
    return [Fix(title, applicability, edits, imports=need)]


_WITHOUT_METHOD = frozenset({"torch_geometric"})
"""Libraries whose objects have `.cuda()` and `.to()`, and no `.npu()`: batches of graphs."""
_PACKED = frozenset({"pack_padded_sequence", "pack_sequence"})
"""What makes a `PackedSequence`, which is no tensor: the same is true of it."""


def _may_lack_method(node: ast.expr, entry: MethodEntry, scope: Scope, context: Context) -> bool:
    """Whether a receiver of `.cuda()` may be such an object, neither tensor nor module for sure."""
    if not entry.called or entry.is_of_library or entry.becomes is None:
        return False
    values = resolve(node, scope)
    if any(getattr(value, "name", "").rpartition(".")[2] in _PACKED for value in values):
        return True
    if context.lookups.import_roots.isdisjoint(_WITHOUT_METHOD):
        return False
    return not _is_tensor(node, scope) and not any(isinstance(v, LocalInstance) for v in values)


def _is_tensor(node: ast.expr, scope: Scope) -> bool:
    return any(
        isinstance(value, Member) or getattr(value, "name", "").startswith("torch.")
        for value in resolve(node, scope)
    )
