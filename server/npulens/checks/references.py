"""References to names that a table knows, through any alias."""

import ast
from dataclasses import replace

from npulens.catalog.messages import message
from npulens.catalog.model import Fix, Severity
from npulens.catalog.settlements import Settlement
from npulens.catalog.tables import SymbolEntry
from npulens.checks.context import Context
from npulens.checks.entries import exists, is_unknown, longest_entry, needs_newer, report_entry
from npulens.checks.purpose import out_of_reach
from npulens.checks.replacements import is_alias, npu_fix
from npulens.checks.shared_rules import UNKNOWN_API, UNSUPPORTED_API
from npulens.syntax.meanings import (
    Instance,
    Member,
    Qualified,
    canonical,
    qualified_names,
    resolve,
    resolve_name,
)
from npulens.syntax.scopes import Scope, function_of, is_bound, lookup
from npulens.syntax.values import (
    Imported,
    Name,
    dotted_name,
    expression,
    literal_attribute,
    names_around,
)
from npulens.syntax.walking import choices
from npulens.text.spans import Span

_SEEDS = frozenset({"torch.cuda.manual_seed", "torch.cuda.manual_seed_all"})
_SEEDING = "torch.manual_seed("
_SEEDS_ALL_SINCE = (2, 1)
"""Source: torch/random.py, whose `_seed_custom_device` calls the plugin of a device."""


def attribute(node: ast.Attribute, scope: Scope, context: Context) -> None:
    """`torch.cuda.synchronize`, `c.synchronize`, `self.backend.synchronize`."""
    name = dotted_name(node)
    if name is None:
        _imported_module(node, scope, context)
        _member_of_result(node, scope, context)
    elif isinstance(node.ctx, ast.Load) or _is_module(name.root, node, scope):
        _reference(node, name, scope, context)


def _is_module(root: str, node: ast.expr, scope: Scope) -> bool:
    """Whether a name is a module, so that storing to an attribute changes the module itself."""
    values = resolve_name(Name(root), scope, (node.lineno, node.col_offset))
    return any(isinstance(value, Qualified) for value in values)


def _imported_module(node: ast.Attribute, scope: Scope, context: Context) -> None:
    """`importlib.import_module("torch").cuda.synchronize()`."""
    path: list[str] = []
    inner: ast.expr = node
    while isinstance(inner, ast.Attribute):
        path.insert(0, inner.attr)
        inner = inner.value
    value = expression(inner) if isinstance(inner, ast.Call) else None
    if isinstance(value, Imported):
        qualified = canonical(".".join((value.qualified, *path)))
        entry = longest_entry(qualified, context)
        if entry is not None and not (context.facts.shim.is_active and entry.shimmed):
            report_entry(_owner(node, _levels(qualified, entry)), entry, [], context)


def _member_of_result(node: ast.Attribute, scope: Scope, context: Context) -> None:
    """`torch.cuda.get_device_properties(0).major`."""
    if not isinstance(node.value, ast.Call) or node.attr not in context.catalogue.lacking_names:
        return
    for value in resolve(node.value, scope):
        if isinstance(value, Instance):
            qualified = f"{value.name}.{node.attr}"
            entry = context.catalogue.symbols.get(_cuda_name(qualified, context) or qualified)
            if entry is not None and entry.becomes is None:
                settled = out_of_reach(entry.rule, node, scope, context)
                report_entry(node, entry, [], context, settled)
                return


def assigned(node: ast.Assign | ast.AnnAssign, scope: Scope, context: Context) -> None:
    """`dev = torch.cuda`: fixing the value mends every use of the name."""
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    name = dotted_name(target)
    if name is not None and node.value is not None:
        context.notes.alias_names[node.value] = ".".join((name.root, *name.path))


def patched(node: ast.Assign, scope: Scope, context: Context) -> None:
    """`torch.cuda.synchronize = torch.npu.synchronize`, which makes the name of CUDA work."""
    for target in node.targets:
        name = dotted_name(target)
        if (
            name is not None
            and name.path
            and any(each.startswith("torch.cuda.") for each in qualified_names(target, scope))
            and context.code.mentions_npu(node.value)
        ):
            context.settle(context.span(target), "npu-way-beside", node.value)


def bare_name(node: ast.Name, scope: Scope, context: Context) -> None:
    """A name that only `from torch.cuda import *` can have brought."""
    name = Name(node.id)
    if is_bound(node.id, scope):
        return
    for value in resolve_name(name, scope, None):
        entry = context.catalogue.symbols.get(value.name) if isinstance(value, Qualified) else None
        if entry is not None:
            _report_reference(node, name, entry.symbol, entry, scope, context)
            return


def imported_name(node: ast.Name, scope: Scope, context: Context) -> None:
    """A use of what `from torch.cuda.amp import autocast` brings: its import says what to do."""
    if not context.may_be_brought(node, scope):
        return
    span = context.span(node)
    if span in context.reported.spans or _is_within_last(span, context):
        return
    for value in resolve_name(Name(node.id), scope, (node.lineno, node.col_offset)):
        if not isinstance(value, Qualified):
            continue
        entry = context.catalogue.symbols.get(value.name)
        if entry is None and value.name.startswith("torch."):
            entry = _library_within(value.name, context)
        if entry is not None:
            patched = context.by_shim(entry.shimmed) is not None
            context.settle(span, "by-shim" if patched else "reported-at-import")
            report_entry(node, entry, [], context)
            return


def _library_within(qualified: str, context: Context) -> SymbolEntry | None:
    """A part of PyTorch that counts as a library, such as `torch.utils.ffi` with all in it."""
    libraries = context.catalogue.libraries
    names = (name for name in names_around(qualified) if name.count(".") > 1)
    return next((libraries[name] for name in names if name in libraries), None)


def _is_within_last(span: Span, context: Context) -> bool:
    """Whether a place begins what was found last, as `cuda` does in `cuda.synchronize`."""
    findings = context.reported.findings
    return bool(findings) and findings[-1].span.start == span.start


def literal_getattr(node: ast.Call, scope: Scope, context: Context) -> None:
    """`getattr(torch, "cuda")`."""
    name = literal_attribute(node)
    if name is not None:
        _reference(node, name, scope, context)


def default_tensor_type(node: ast.Call, scope: Scope, context: Context) -> None:
    """`torch.set_default_tensor_type(torch.cuda.FloatTensor)`, which takes no NPU type at all."""
    if not context.lookups.contains("set_default_tensor_type"):
        return
    if "torch.set_default_tensor_type" not in qualified_names(node.func, scope):
        return
    for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
        for chosen in choices(argument):
            names = qualified_names(chosen, scope)
            if isinstance(chosen, ast.Constant) and isinstance(chosen.value, str):
                names = [chosen.value]
            for name in names:
                entry = context.catalogue.symbols.get(name)
                if entry is not None and name.startswith("torch.cuda."):
                    call = 'torch.set_default_device("npu")'
                    context.report(entry.rule, context.span(chosen), name, [], replacement=call)


def _reference(node: ast.expr, name: Name, scope: Scope, context: Context) -> None:
    values = resolve_name(name, scope, (node.lineno, node.col_offset))
    certain = len(values) == 1
    for value in values:
        if isinstance(value, Qualified):
            if _missing_on_npu(node, name, value.name, scope, context):
                return
            entry = longest_entry(value.name, context)
            if entry is not None and _is_optional(name, value, node, scope):
                used = _owner(node, _levels(value.name, entry))
                context.settle(context.span(used), "reported-at-import")
            if entry is not None:
                if certain or not is_alias(name, value.name):
                    _report_reference(node, name, value.name, entry, scope, context)
                return  # of an alias that may be something else the definition is reported
        elif isinstance(value, Member):
            entry = context.catalogue.symbols.get(_cuda_name(value.name, context) or value.name)
            if entry is not None and entry.becomes is None:
                _report_reference(node, name, value.name, entry, scope, context)
                return


def _is_optional(name: Name, value: Qualified, node: ast.expr, scope: Scope) -> bool:
    """Whether a name of another library is something else where that is not installed."""
    if value.name.startswith("torch"):
        return False
    return len(lookup(name.root, scope, (node.lineno, node.col_offset)) or ()) > 1


def _report_reference(
    node: ast.expr, name: Name, qualified: str, entry: SymbolEntry, scope: Scope, context: Context
) -> None:
    settled = out_of_reach(entry.rule, node, scope, context) or context.by_shim(entry.shimmed)
    if entry.rule.family == "layout" and context.regions.is_under_cuda_test(context.span(node)):
        settled = settled or Settlement("no-effect")  # a switch of CUDA libraries, set for CUDA
    if is_unknown(qualified, entry):
        symbol = ".".join(qualified.split(".")[:3])
        target = _owner(node, len(qualified.split(".")) - 3)
        if not context.facts.shim.is_active:
            rule = context.catalogue.required(UNKNOWN_API)
            context.report(rule, context.span(target), symbol, [], settled=settled)
        return
    target = _owner(node, _levels(qualified, entry))
    if context.span(target) in context.reported.spans:
        return
    written = dotted_name(target) or name
    fixes: list[Fix] = []
    if exists(entry, context):
        fixes += npu_fix(target, written, entry, scope, context)
    if entry.symbol in _SEEDS and _is_seeded_by_torch(scope, context):
        entry = replace(entry, severity=Severity.INFO, note=message("check.seeded-beside"))
    report_entry(target, entry, fixes, context, settled)


def _is_seeded_by_torch(scope: Scope, context: Context) -> bool:
    """Whether a function, or the module, also calls what seeds all devices."""
    if (
        context.target.torch_version < _SEEDS_ALL_SINCE
        or "seeds" not in context.facts.signs.decisive_words
    ):
        return False
    function = function_of(scope.function_parent())
    return function is None or _SEEDING in context.source(function)


def _levels(qualified: str, entry: SymbolEntry) -> int:
    """How many attributes a reference goes beyond the symbol of an entry."""
    return qualified.count(".") - entry.symbol.count(".")


def _owner(node: ast.expr, levels: int) -> ast.expr:
    """The expression so many attributes further in."""
    for _ in range(max(levels, 0)):
        if isinstance(node, ast.Attribute):
            node = node.value
    return node


def _missing_on_npu(
    node: ast.expr, name: Name, qualified: str, scope: Scope, context: Context
) -> bool:
    """`torch.npu.CUDAGraph`: somebody replaced the word cuda, but the name differs there."""
    cuda_name = _cuda_name(qualified, context)
    entry = None if cuda_name is None else longest_entry(cuda_name, context)
    if cuda_name is None or entry is None or entry.symbol == "torch.cuda":
        return False
    levels = cuda_name.count(".") - entry.symbol.count(".")
    found = qualified.rsplit(".", levels)[0] if levels else qualified
    becomes = entry.becomes and canonical(entry.becomes).removesuffix("()")
    if becomes == found and exists(entry, context):
        return False
    is_renamed = becomes is not None and becomes != found
    target = _owner(node, levels)
    if context.span(target) not in context.reported.spans:
        written = dotted_name(target) or name
        fixes = npu_fix(target, written, entry, scope, context) if exists(entry, context) else []
        note = entry.note if exists(entry, context) else needs_newer(entry)
        rule = context.catalogue.required("npu-api-missing" if is_renamed else UNSUPPORTED_API)
        replacement = entry.becomes or ""
        context.report(rule, context.span(target), found, fixes, replacement=replacement, note=note)
    return True


def _cuda_name(qualified: str, context: Context) -> str | None:
    """The CUDA name of something of torch_npu: that of its class, or letter by letter."""
    owner, _, member = qualified.rpartition(".")
    cuda_owner = context.catalogue.counterparts.get(owner)
    if cuda_owner is not None and "npu" in owner:
        return f"{cuda_owner}.{member}"
    if qualified.startswith("torch.npu."):
        return "torch.cuda" + qualified.removeprefix("torch.npu")
    return None
