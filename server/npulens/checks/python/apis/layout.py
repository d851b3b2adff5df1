"""Memory formats that suit cuDNN."""

import ast

from npulens.catalog.model import Applicability, Edit, Fix, MigrationStyle
from npulens.catalog.tables import SymbolEntry
from npulens.checks.arguments import keyword_of, without
from npulens.checks.context import Context
from npulens.checks.titles import remove, use
from npulens.syntax.meanings import qualified_names
from npulens.syntax.scopes import Scope
from npulens.syntax.values import dotted_name
from npulens.syntax.walking import names_in, nodes_below

_METHODS = frozenset({"to", "contiguous", "clone", "cuda", "npu", "cpu", "resize_", "resize_as_"})
_FORMATS = frozenset({"torch.channels_last", "torch.channels_last_3d"})


def memory_format(node: ast.Call, scope: Scope, context: Context) -> None:
    """`x.to(memory_format=torch.channels_last)`, `torch.empty(2, 3, memory_format=...)`."""
    keyword = keyword_of(node, "memory_format")
    if keyword is None:
        return
    value = keyword.value
    branches = [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
    if isinstance(value, ast.IfExp) and _is_chosen_by_device(value.test, scope, context):
        context.settle_all(branches, "no-effect")
    for branch in branches:
        entry = _format_entry(branch, scope, context)
        if entry is not None:
            _report_format(node, keyword, branch, entry, scope, context)


def _is_chosen_by_device(test: ast.expr, scope: Scope, context: Context) -> bool:
    """Whether the function made a flag from the device type: `fits = device_type == "cuda"`."""
    flags = context.lookups.names_of(scope).of_device
    return not flags.isdisjoint(names_in(test))


def _format_entry(node: ast.expr, scope: Scope, context: Context) -> SymbolEntry | None:
    """What the table says of a format that is written out; of a variable its value is found."""
    if not isinstance(node, ast.Attribute) or not node.attr.startswith("channels_last"):
        return None
    names = qualified_names(node, scope)
    if len(names) != 1 or names[0] not in _FORMATS:
        return None
    return context.catalogue.symbols.get(names[0])


def _report_format(
    call: ast.Call,
    keyword: ast.keyword,
    written: ast.expr,
    entry: SymbolEntry,
    scope: Scope,
    context: Context,
) -> None:
    span = context.span(written)
    if span in context.reported.spans:
        return
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if method == "is_contiguous":
        rule = context.catalogue.required("channels-last-question")
        context.report(rule, span, entry.symbol, [])
        return
    replaced = written
    if isinstance(keyword.value, ast.IfExp) and _is_contiguous_else(keyword.value, written, scope):
        replaced = keyword.value
    fix = _contiguous(call, keyword, written, replaced, scope, context)
    fixes = [] if fix is None else [fix]
    context.report(entry.rule, span, entry.symbol, fixes, note=entry.note)


def _is_contiguous_else(choice: ast.IfExp, written: ast.expr, scope: Scope) -> bool:
    """Whether the other choice is the usual format, and requesting the choice does nothing."""
    other = choice.orelse if written is choice.body else choice.body
    does_nothing = not any(isinstance(node, ast.Call) for node in nodes_below(choice.test))
    return does_nothing and "torch.contiguous_format" in qualified_names(other, scope)


def _contiguous(
    call: ast.Call,
    keyword: ast.keyword,
    written: ast.expr,
    replaced: ast.expr,
    scope: Scope,
    context: Context,
) -> Fix | None:
    """Without the format; `.to()` of it alone keeps its argument, for a module has no other way.

    A GPU still gains by the format, so in code for both the fix has to be read; so it has where a
    function of one's own takes the format, or the format is chosen at run time.
    `replaced` is `written`, or the whole choice around it.
    """
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    agnostic = context.target.style is MigrationStyle.DEVICE_AGNOSTIC
    names = qualified_names(call.func, scope)
    known = method in _METHODS or any(name.startswith("torch.") for name in names)
    decided = not isinstance(keyword.value, ast.IfExp)
    is_safe = known and decided and not agnostic
    safety = Applicability.SAFE if is_safe else Applicability.UNSAFE
    only_format = method == "to" and len(call.args) + len(call.keywords) == 1
    if keyword.value is replaced and known and not only_format:
        edit = without(call, keyword, context)
        if edit is not None:
            title = use(".contiguous()") if method == "contiguous" else remove("memory_format")
            return Fix(title, safety, (edit,))
    root = dotted_name(written)
    if root is None:
        return None
    text = ".".join((root.root, *root.path[:-1], "contiguous_format"))
    return Fix(use(text), safety, (Edit(context.span(replaced), text),))


def queried_choice(node: ast.Assign, scope: Scope, context: Context) -> None:
    """`last = x.is_contiguous(memory_format=torch.channels_last)`, then `a if last else b`.

    Both answers are provided for, so it does not matter that the NPU gives one alone.
    """
    if not context.lookups.contains("is_contiguous(memory_format"):
        return
    if getattr(node.targets[0], "id", "") not in context.lookups.names_of(scope).chosen_by:
        return
    for part in nodes_below(node.value):
        if isinstance(part, ast.Call) and getattr(part.func, "attr", "") == "is_contiguous":
            context.settle_all((keyword.value for keyword in part.keywords), "no-effect")


def known_formats(
    node: ast.Compare | ast.Dict | ast.List | ast.Tuple | ast.Set, scope: Scope, context: Context
) -> None:
    """`fmt == torch.channels_last`, `{"nhwc": torch.channels_last}`: not a use."""
    if isinstance(node, ast.Compare):
        parts: list[ast.expr] = [node.left, *node.comparators]
    elif isinstance(node, ast.Dict):
        parts = [*(key for key in node.keys if key is not None), *node.values]
    else:
        parts = node.elts
    for part in parts:
        if _format_entry(part, scope, context) is not None:
            context.settle(context.span(part), "no-effect")
