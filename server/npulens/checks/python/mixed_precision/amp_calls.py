"""Calls that set up mixed precision: gradient scalers, autocast and its decorators.

`torch.cuda.amp` and `torch.amp` take other arguments than `torch.npu.amp` does, so what a call
becomes depends on what is passed to it.
"""

import ast
from dataclasses import replace

from npulens.catalog.model import Applicability, Edit, Fix, Severity
from npulens.checks.arguments import is_spread, keyword_of, without
from npulens.checks.context import Context
from npulens.checks.entries import exists, report_symbol
from npulens.checks.replacements import npu_fix
from npulens.checks.titles import use
from npulens.syntax.bindings import Function, parameters_of
from npulens.syntax.meanings import Literal, qualified_names, resolve
from npulens.syntax.scopes import Scope
from npulens.syntax.values import dotted_name
from npulens.syntax.walking import nodes_below
from npulens.text.spans import Span

_CUDA_SCALERS = frozenset({"torch.cuda.amp.GradScaler", "torch.cuda.amp.grad_scaler.GradScaler"})
_NEUTRAL_SCALERS = frozenset(
    {"torch.GradScaler", "torch.amp.GradScaler", "torch.amp.grad_scaler.GradScaler"}
)
_CALLS = frozenset(
    {
        "torch.cuda.amp.autocast",
        "torch.get_autocast_gpu_dtype",
        "torch.set_autocast_gpu_dtype",
        "torch.cuda.amp.GradScaler",
        "torch.cuda.amp.custom_fwd",
        "torch.cuda.amp.custom_bwd",
    }
)
_LAST_NAMES = frozenset(name.rpartition(".")[2] for name in _CALLS)
_DECORATORS = frozenset({"custom_fwd", "custom_bwd"})
_POSITION_OF_ENABLED = 4
"""Of `torch.cuda.amp.GradScaler`; for the NPU it is `dynamic`."""


def called(node: ast.Call, scope: Scope, context: Context) -> None:
    """`torch.cuda.amp.autocast()`, `torch.amp.GradScaler("cuda")`."""
    if not _may_be_amp(node.func, context):
        return
    names = qualified_names(node.func, scope)
    if len(names) != 1:
        return
    name = names[0]
    if name in _CUDA_SCALERS and _is_switched_off(node):
        context.reported.spans.add(context.span(node.func))
        return
    if name in _CUDA_SCALERS:
        _positional_enabled(node, context)
    if name in _CALLS and isinstance(node.func, ast.Attribute):
        position = _enabled_keyword(node, context) if name in _CUDA_SCALERS else None
        more = () if position is None else (position,)
        _report(node.func, name, more, scope, context)
    elif name in _NEUTRAL_SCALERS:
        _neutral_scaler(node, name, scope, context)


def _is_switched_off(node: ast.Call) -> bool:
    """`GradScaler(enabled=False)`, which passes on what it gets on every device."""
    enabled = keyword_of(node, "enabled")
    return enabled is not None and getattr(enabled.value, "value", None) is False


def type_named(node: Function | ast.AnnAssign, scope: Scope, context: Context) -> None:
    """`scaler: torch.amp.GradScaler`: the annotation makes none, what makes it is looked at."""
    if not context.lookups.contains("GradScaler"):
        return
    if isinstance(node, ast.AnnAssign):
        annotations: list[ast.expr | None] = [node.annotation]
    else:
        annotations = [*(p.annotation for p, _ in parameters_of(node.args)), node.returns]
    for annotation in annotations:
        for part in () if annotation is None else nodes_below(annotation):
            if isinstance(part, ast.Attribute) and part.attr == "GradScaler":
                context.settle_all((part,), "type-only")


def compared(node: ast.Compare, scope: Scope, context: Context) -> None:
    """`getattr(torch.cuda.amp, "autocast") is not None`: is PyTorch new enough? It always is."""
    if not context.lookups.contains("cuda.amp") or not isinstance(node.ops[0], (ast.Is, ast.IsNot)):
        return
    operands = node.left.args[:1] if isinstance(node.left, ast.Call) else [node.left]
    names = (name for part in operands for name in qualified_names(part, scope))
    if any(name.startswith("torch.cuda.amp") for name in names):
        context.settle_all((node.left, *operands), "older-torch")


def _may_be_amp(callee: ast.expr, context: Context) -> bool:
    """Whether the last name may be that of a scaler, as in `self.scaler_class()`; a quick look."""
    if isinstance(callee, ast.Attribute):
        if callee.attr in _LAST_NAMES:
            return dotted_name(callee) is not None
        is_own = getattr(callee.value, "id", "") == "self" and context.lookups.contains(
            "GradScaler"
        )
        return is_own or f".{callee.attr}" in context.facts.aliases
    return isinstance(callee, ast.Name) and (
        callee.id in _LAST_NAMES
        or callee.id in context.facts.aliases
        or context.lookups.contains("GradScaler")
    )


def _positional_enabled(node: ast.Call, context: Context) -> None:
    """The fifth argument of the CUDA scaler switches it; that of the NPU scaler does not."""
    edit = _enabled_keyword(node, context)
    if edit is not None:
        rule = context.catalogue.required("grad-scaler-position")
        source = context.source(node.args[-1])
        text = f"enabled={source}"
        fixes = [Fix(use(text), Applicability.SAFE, (edit,))]
        context.report(rule, context.span(node.args[-1]), source, fixes, replacement=text)


def _enabled_keyword(node: ast.Call, context: Context) -> Edit | None:
    """The edit that names the fifth argument, which works with both classes."""
    if len(node.args) != _POSITION_OF_ENABLED + 1 or is_spread(node):
        return None
    start = context.span(node.args[-1]).start
    before = context.code.text[context.span(node.args[-2]).end : start]
    return None if "(" in before else Edit(Span(start, start), "enabled=")


def decorated(node: ast.FunctionDef, scope: Scope, context: Context) -> None:
    """`@torch.cuda.amp.custom_fwd`, a decorator that is not called."""
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Attribute) and decorator.attr in _DECORATORS:
            names = qualified_names(decorator, scope)
            if names and names[0] in _CALLS:
                _report(decorator, names[0], (), scope, context)


def _report(
    node: ast.expr, name: str, more: tuple[Edit, ...], scope: Scope, context: Context
) -> None:
    """The finding of the name alone; `more` is what else the plain fix has to change."""
    entry = context.catalogue.symbols.get(name)
    written = dotted_name(node)
    if entry is None or written is None or (context.facts.shim.is_active and entry.shimmed):
        return
    fixes = npu_fix(node, written, entry, scope, context) if exists(entry, context) else []
    fixes = [replace(fix, edits=(*fix.edits, *more)) for fix in fixes]
    report_symbol(context.span(node), entry, fixes, context)


def _neutral_scaler(node: ast.Call, name: str, scope: Scope, context: Context) -> None:
    """`torch.amp.GradScaler` means CUDA by default."""
    entry = context.catalogue.symbols.get(name)
    if entry is None:
        return
    context.reported.spans.add(context.span(node.func))  # the call says more than the name
    device = node.args[0] if node.args else None
    keyword = keyword_of(node, "device")
    if device is None and keyword is not None:
        device = keyword.value
    if device is None and is_spread(node):
        return
    if device is not None and not _is_cuda(device, scope):
        return
    if device is not None:
        context.reported.spans.add(context.span(device))
    removed = keyword if keyword is not None else device
    fixes = _scaler_fixes(node, removed, scope, context)
    report_symbol(
        context.span(node.func), replace(entry, severity=Severity.WARNING), fixes, context
    )


def _is_cuda(node: ast.expr, scope: Scope) -> bool:
    """Whether an argument is the string itself; a name is mended where it is bound."""
    return isinstance(node, ast.Constant) and any(
        isinstance(value, Literal) and value.text == "cuda" for value in resolve(node, scope)
    )


def _scaler_fixes(
    node: ast.Call, removed: ast.expr | ast.keyword | None, scope: Scope, context: Context
) -> list[Fix]:
    fixes: list[Fix] = []
    cuda_entry = context.catalogue.symbols.get("torch.cuda.amp.GradScaler")
    written = dotted_name(node.func)
    if cuda_entry is not None and written is not None:
        for fix in npu_fix(node.func, written, cuda_entry, scope, context):
            edits = _without_device(node, removed, context)
            if edits is not None:
                safety = Applicability.UNSAFE if is_spread(node) else Applicability.SAFE
                fixes.append(Fix(fix.title, safety, (*fix.edits, *edits), imports=fix.imports))
    return fixes


def _without_device(
    node: ast.Call, removed: ast.expr | ast.keyword | None, context: Context
) -> list[Edit] | None:
    """The edits that leave the arguments in the NPU's order."""
    edits: list[Edit] = []
    if removed is not None:
        edit = without(node, removed, context)
        if edit is None:
            return None
        edits.append(edit)
    if len(node.args) > _POSITION_OF_ENABLED + 1:
        if removed is not node.args[0]:
            return None
        start = context.span(node.args[_POSITION_OF_ENABLED + 1]).start
        edits.append(Edit(Span(start, start), "enabled="))
    return edits
