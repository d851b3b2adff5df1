"""What can be written in place of a symbol, and what must be imported for it."""

import ast
import re

from npulens.catalog.model import Applicability, Edit, Fix, ImportNeed
from npulens.catalog.tables import SymbolEntry
from npulens.checks.context import Context
from npulens.checks.titles import use
from npulens.fixes.imports import imports_module, plugin_edit, torch_import
from npulens.syntax.meanings import Qualified, canonical, resolve_name
from npulens.syntax.scopes import Scope, function_of, is_bound
from npulens.syntax.values import Name

_TORCH = ("torch.", "torch_npu.")
_NEEDS_PLUGIN = re.compile(r"npu|hccl|HCCL|mstx")


def npu_fix(
    node: ast.expr, written: Name, entry: SymbolEntry, scope: Scope, context: Context
) -> list[Fix]:
    if entry.becomes is None or entry.fix is Applicability.MANUAL:
        return []
    if entry.becomes.endswith("()") and isinstance(
        getattr(node, "ctx", None), (ast.Store, ast.Del)
    ):
        return []
    if not entry.becomes.startswith(_TORCH):
        return _other_package(node, written, entry, scope, context)
    text = _spelled(entry.becomes, written, node, scope, context)
    if text is None:
        return []
    need = _import_need(text, entry, scope)
    edits: tuple[Edit, ...] = (Edit(context.span(node), text),)
    if need is not ImportNeed.NOTHING:
        edits, need = with_plugin(edits, need, scope, context)
    alias = _alias(written, entry.symbol) or context.notes.alias_names.get(node, "")
    isolation = f"alias:{alias}" if alias else ""
    return [Fix(use(text), entry.fix, edits, isolation=isolation, imports=need)]


def _other_package(
    node: ast.expr, written: Name, entry: SymbolEntry, scope: Scope, context: Context
) -> list[Fix]:
    """The fix for a symbol of a user's rule, which is of no package that npulens knows."""
    becomes = canonical(entry.becomes or "")
    module, _, member = becomes.rpartition(".")
    root = becomes.partition(".")[0]
    place = (node.lineno, node.col_offset)
    isolation = f"alias:{alias}" if (alias := context.notes.alias_names.get(node)) else ""
    for length in range(len(written.path), -1, -1):
        name = Name(written.root, written.path[:length])
        if resolve_name(name, scope, place) == [Qualified(module)]:
            text = ".".join((name.root, *name.path, member))
            return [
                Fix(use(text), entry.fix, (Edit(context.span(node), text),), isolation=isolation)
            ]
    if is_bound(root, scope) and resolve_name(Name(root), scope, place) != [Qualified(root)]:
        return []
    # Where only functions import the package, the module may have a reason to.
    applicability = entry.fix if is_bound(root, context.module) else Applicability.UNSAFE
    edit = Edit(context.span(node), becomes)
    return [Fix(use(becomes), applicability, (edit,), isolation=isolation, module=module)]


def _import_need(text: str, entry: SymbolEntry, scope: Scope) -> ImportNeed:
    becomes = entry.becomes or ""
    if text.startswith("torch_npu."):
        return ImportNeed.PLUGIN_NAME
    if text.startswith("torch.") and not is_bound("torch", scope):
        return ImportNeed.TORCH_NAME
    if _NEEDS_PLUGIN.search(becomes):
        return ImportNeed.PLUGIN
    return ImportNeed.NOTHING


def is_alias(written: Name, symbol: str) -> bool:
    """Whether a part of the symbol is hidden in a name, such as `c` for `torch.cuda`."""
    return _alias(written, symbol) != ""


def _alias(written: Name, symbol: str) -> str:
    """What represents the first part of a symbol, empty if that is just the module torch."""
    names, parts = [written.root, *written.path], symbol.split(".")
    while len(names) > 1 and len(parts) > 1 and names[-1] == parts[-1]:
        names.pop()
        parts.pop()
    return ".".join(names) if len(parts) > 1 else ""


def _spelled(
    becomes: str, written: Name, node: ast.expr, scope: Scope, context: Context
) -> str | None:
    """How a full name can be written at a node, with the names already used there."""
    place = (node.lineno, node.col_offset)
    for length in range(len(written.path), -1, -1):
        names = (written.root, *written.path[:length])
        values = resolve_name(Name(names[0], names[1:]), scope, place)
        if len(values) == 1 and isinstance(values[0], Qualified):
            owner = values[0].name
            if canonical(becomes).startswith(owner + "."):
                return ".".join(names) + canonical(becomes)[len(owner) :]
    if becomes.startswith("torch_npu."):
        return becomes
    if context.torch_name(scope, node) is not None:
        return becomes
    if becomes.startswith("torch.npu"):
        return "torch_npu" + becomes.removeprefix("torch")
    return becomes if is_bound("torch", scope) is False else None


def with_plugin(
    edits: tuple[Edit, ...], need: ImportNeed, scope: Scope, context: Context
) -> tuple[tuple[Edit, ...], ImportNeed]:
    """Edits that use torch_npu with what imports it, and what is left to import at module level."""
    is_named = need is ImportNeed.PLUGIN_NAME
    local = local_import(scope, context, is_named=is_named)
    return (edits, need) if local is None else ((*edits, *local), ImportNeed.NOTHING)


def local_import(scope: Scope, context: Context, *, is_named: bool = False) -> list[Edit] | None:
    """The edits that import torch_npu beside a function's own import of torch.

    `None` if the module imports torch, and so torch_npu for all its functions; an empty list if a
    function imports torch_npu already. Of functions in each other the outermost counts.
    """
    if context.facts.imports_torch or context.facts.imports_torch_npu:
        return None
    found: list[Edit] | None = None
    for function in [f for each in scope.around() if (f := function_of(each)) is not None]:
        place = torch_import(function.body, context.code.lines)
        if place is not None:
            if imports_module(function.body, "torch_npu"):
                return []
            is_loaded = context.target.loads_plugin and not is_named
            edit = plugin_edit(place, context.code.text, is_named=is_named)
            found = [] if is_loaded else [edit]
    return found
