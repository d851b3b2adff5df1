"""Migration at run time: what was taken from torch before `transfer_to_npu` patched it."""

import ast
from collections.abc import Iterator

from npulens.catalog.messages import message
from npulens.catalog.model import Applicability, Edit, Finding, Fix, ImportNeed
from npulens.catalog.model import MigrationStyle as Style
from npulens.catalog.tables import Catalogue, SymbolEntry
from npulens.checks.context import Context
from npulens.checks.whole_module import WholeModule
from npulens.fixes.imports import running_imports
from npulens.fixes.shim_edits import SHIM_NAME, STATEMENT
from npulens.fixes.starting_shim import start_with_shim
from npulens.syntax.meanings import qualified_names
from npulens.syntax.scopes import Scope
from npulens.text.spans import Span

_PATCHED_WITHIN = frozenset(
    {
        "torch.amp.autocast",
        "torch.amp.autocast_mode.autocast",
        "torch.autocast",
        "torch.distributed.DeviceMesh",
        "torch.distributed.device_mesh.DeviceMesh",
        "torch.distributed.new_group",
        "torch.distributed.tensor.DeviceMesh",
    }
)
"""What stays the same object: the shim changes a method of it, or a function that it calls.

Source: Ascend/pytorch, torch_npu/contrib/transfer_to_npu.py.
"""


def bound_before_shim(
    node: ast.ImportFrom, alias: ast.alias, entry: SymbolEntry, context: Context
) -> None:
    """`from torch.cuda.amp import GradScaler` above the import of the shim."""
    bound = alias.asname or alias.name
    if bound not in context.facts.shim.unpatched_names:
        return
    if _is_module(entry, context):
        return  # the shim patches what is in it
    rule = context.catalogue.required("bound-before-shim")
    context.report(rule, context.span(alias), entry.symbol, _moved_shim(node, context))


def missing_shim(module: WholeModule, catalogue: Catalogue) -> Iterator[Finding]:
    """A program without the shim, reported at its first import of torch, or else its first one."""
    imports = list(running_imports(module.tree.body))
    if not imports:
        return
    of_torch = (node for node in imports if _is_of_torch(node))
    node = next(of_torch, imports[0])
    fix = start_with_shim(module.text)
    fixes = () if fix is None else (fix,)
    span = module.lines.span(node)
    rule = catalogue.required("shim-not-imported")
    yield Finding(rule, span, {"symbol": SHIM_NAME, "replacement": STATEMENT}, fixes=fixes)


def _is_of_torch(node: ast.Import | ast.ImportFrom) -> bool:
    if isinstance(node, ast.ImportFrom):
        return not node.level and (node.module or "").partition(".")[0] == "torch"
    return any(alias.name.partition(".")[0] == "torch" for alias in node.names)


def is_unpatched(callee: ast.expr, scope: Scope, context: Context) -> bool:
    """Whether a function was taken from torch by name before the shim patched it there."""
    if not isinstance(callee, ast.Name) or callee.id not in context.facts.shim.unpatched_names:
        return False
    return not _PATCHED_WITHIN.intersection(qualified_names(callee, scope))


def _is_module(entry: SymbolEntry, context: Context) -> bool:
    inside = entry.symbol + "."
    return entry.symbol.islower() and any(s.startswith(inside) for s in context.catalogue.symbols)


def _moved_shim(node: ast.ImportFrom, context: Context) -> list[Fix]:
    """Move the import of the shim above a statement of the module."""
    if node.col_offset or not context.facts.shim.can_move:
        return []
    start = context.span(node).start
    edits = (Edit(Span(start, start), STATEMENT + "\n"),)
    need = ImportNeed.SHIM_MOVED
    title = message("fix.import-shim-first")
    return [Fix(title, Applicability.UNSAFE, edits, Style.RUNTIME_SHIM, "shim", need)]
