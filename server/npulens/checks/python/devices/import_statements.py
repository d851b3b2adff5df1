"""Imports of names that a table knows."""

import ast
import re
from dataclasses import replace
from typing import NamedTuple

from npulens.catalog.messages import message
from npulens.catalog.model import Applicability, Edit, Fix, Severity
from npulens.catalog.settlements import Settlement
from npulens.catalog.tables import SymbolEntry
from npulens.checks.context import Context
from npulens.checks.entries import exists, is_unknown, longest_entry, report_entry
from npulens.checks.purpose import out_of_reach
from npulens.checks.python.devices.shim_imports import bound_before_shim
from npulens.checks.shared_rules import UNKNOWN_API
from npulens.checks.titles import use
from npulens.fixes.imports import FOR_EFFECT
from npulens.syntax.meanings import canonical
from npulens.syntax.scopes import ModuleScope, Scope
from npulens.text.spans import Span

_FROM = re.compile(r"from\s+([\w.]+)")
_PLUGIN_MEMBER = re.compile(r"npu|hccl")
_MOST_NAMES = 100
"""Of one import that is rewritten: for each of its names all of them are looked at."""


class _Target(NamedTuple):
    """Where an imported name comes from after a fix."""

    module: str
    member: str
    applicability: Applicability


def imported(node: ast.Import | ast.ImportFrom, scope: Scope, context: Context) -> None:
    """`import torch.cuda as c`, `from torch import cuda`, `from torch.cuda import synchronize`."""
    if isinstance(node, ast.ImportFrom) and (node.level or not node.module):
        return
    for alias in node.names:
        written = written_name(node, alias)
        entry = longest_entry(written, context)
        if entry is None:
            _switches_imported(alias, written, context)
            continue
        settled = out_of_reach(entry.rule, alias, scope, context)
        shim = context.by_shim(entry.shimmed)
        if shim is not None and isinstance(scope, ModuleScope) and isinstance(node, ast.ImportFrom):
            bound_before_shim(node, alias, entry, context)
        if context.span(alias) not in context.reported.spans:
            _report(node, alias, entry, written, context, settled or shim)


def _switches_imported(alias: ast.alias, written: str, context: Context) -> None:
    """`import torch.backends.cudnn as cudnn`: what is used of it has findings of its own."""
    entry = context.catalogue.switch_modules.get(written)
    if entry is not None:
        context.settle(context.span(alias), "no-effect")
        context.report(entry.rule, context.span(alias), written, [])


def written_name(node: ast.Import | ast.ImportFrom, alias: ast.alias) -> str:
    """The full name of what an alias imports; of a star, the module."""
    if isinstance(node, ast.Import):
        return canonical(alias.name)
    return canonical(f"{node.module}.{alias.name}".removesuffix(".*"))


def module_span(node: ast.ImportFrom, context: Context) -> Span:
    """The place of the module behind `from`."""
    whole, module = context.span(node), node.module or ""
    start = context.code.text.find(module, *whole)
    return Span(start, start + len(module)) if start >= 0 else whole


def _report(
    node: ast.Import | ast.ImportFrom,
    alias: ast.alias,
    entry: SymbolEntry,
    written: str,
    context: Context,
    settled: Settlement | None,
) -> None:
    if is_unknown(written, entry):
        if not context.facts.shim.is_active:
            rule = context.catalogue.required(UNKNOWN_API)
            context.report(rule, context.span(alias), written, [], settled=settled)
        return
    fixes: list[Fix] = []
    if isinstance(node, ast.Import) and alias.asname is None and _is_of_cuda(entry):
        entry = replace(entry, severity=Severity.INFO, note=message("check.in-every-build"))
    if written == entry.symbol:
        if isinstance(node, ast.Import):
            fixes = _module_fix(alias, entry, context)
        elif len(node.names) <= _MOST_NAMES:
            fixes = from_fix(node, alias, entry, context)
    report_entry(alias, entry, fixes, context, settled)


def _is_of_cuda(entry: SymbolEntry) -> bool:
    return entry.symbol == "torch.cuda" or entry.symbol.startswith("torch.cuda.")


def _module_fix(alias: ast.alias, entry: SymbolEntry, context: Context) -> list[Fix]:
    """For `import torch.cuda` and `import torch.cuda as c`."""
    span = context.span(alias)
    if entry.becomes is None:
        return []
    if alias.asname is None:
        # What is used of it has a finding of its own, which imports what it needs.
        kept = "torch" if entry.becomes.startswith("torch") else entry.symbol.rpartition(".")[0]
        return [Fix(use(f"import {kept}"), Applicability.SAFE, (Edit(span, kept),))] if kept else []
    target = _npu_target(entry, context)
    if target is None:
        return []
    becomes = f"{target.module}.{target.member}"
    isolation = f"alias:{alias.asname}"
    edits = (Edit(span, f"{becomes} as {alias.asname}"),)
    return [Fix(use(becomes), target.applicability, edits, isolation=isolation)]


def _npu_target(entry: SymbolEntry, context: Context) -> _Target | None:
    becomes = entry.becomes
    if becomes is None or entry.fix is Applicability.MANUAL or becomes.endswith("()"):
        return None
    if not exists(entry, context):
        return None
    if becomes.startswith("torch.npu"):
        becomes = "torch_npu" + becomes.removeprefix("torch")
    module, _, member = becomes.rpartition(".")
    return _Target(module, member, entry.fix)


def from_fix(
    node: ast.ImportFrom, alias: ast.alias, entry: SymbolEntry, context: Context
) -> list[Fix]:
    """For `from torch import cuda` and `from torch.cuda import synchronize`."""
    target = _npu_target(entry, context)
    if target is None:
        return []
    becomes = f"{target.module}.{target.member}"
    if alias.name == "*":
        edit = Edit(context.span(node), f"from {becomes} import *")
        return [Fix(use(becomes), Applicability.UNSAFE, (edit,))]
    edits = _whole_statement(node, target, context) or _moved_out(node, alias, target, context)
    if not edits:
        return []
    edits += _plugin_before(node, target, context)
    isolation = f"alias:{alias.asname or alias.name}"
    return [Fix(use(becomes), target.applicability, edits, isolation=isolation)]


def _whole_statement(node: ast.ImportFrom, target: _Target, context: Context) -> tuple[Edit, ...]:
    """Change the module, and the names that differ there, if all names go to the same module."""
    module = _FROM.match(context.source(node))
    if module is None:
        return ()
    start = context.span(node).start
    edits = [Edit(Span(start + module.start(1), start + module.end(1)), target.module)]
    for alias in node.names:
        written = written_name(node, alias)
        entry = context.catalogue.symbols.get(written) or context.catalogue.libraries.get(written)
        other = _npu_target(entry, context) if entry is not None else None
        if other is None or other[::2] != target[::2]:
            return ()
        if other.member != alias.name:
            edits.append(Edit(context.span(alias), _as(other.member, alias)))
    return tuple(edits)


def _as(member: str, alias: ast.alias) -> str:
    bound = alias.asname or alias.name
    return member if bound == member else f"{member} as {bound}"


def _moved_out(
    node: ast.ImportFrom, alias: ast.alias, target: _Target, context: Context
) -> tuple[Edit, ...]:
    """Take one name out of a `from` import and give it a statement of its own behind it."""
    new = f"from {target.module} import {_as(target.member, alias)}"
    span, source = context.span(node), context.source(node)
    if len(node.names) == 1:
        return () if "#" in source else (Edit(span, new),)
    indentation = context.before_on_line(node)
    if indentation.strip():
        return ()
    index = node.names.index(alias)
    if index + 1 < len(node.names):
        removed = Span(context.span(alias).start, context.span(node.names[index + 1]).start)
    else:
        removed = Span(context.span(node.names[index - 1]).end, context.span(alias).end)
    if "#" in context.code.text[slice(*removed)]:
        return ()
    return (Edit(removed, ""), Edit(Span(span.end, span.end), f"\n{indentation}{new}"))


def _plugin_before(node: ast.ImportFrom, target: _Target, context: Context) -> tuple[Edit, ...]:
    """Import torch_npu first where it adds the name to a module of torch."""
    adds = target.module.startswith("torch.") and _PLUGIN_MEMBER.search(target.member)
    if not adds or context.facts.imports_torch_npu or context.target.loads_plugin:
        return ()
    start = context.span(node).start
    indentation = context.before_on_line(node)
    if indentation.strip():
        return (Edit(Span(start, start), "import torch_npu; "),)
    return (Edit(Span(start, start), f"{FOR_EFFECT}\n{indentation}"),)
