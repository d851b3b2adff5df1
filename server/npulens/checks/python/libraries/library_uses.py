"""Packages besides PyTorch that need CUDA: their imports, and names in them with a replacement."""

import ast
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import takewhile

from npulens.catalog.messages import message
from npulens.catalog.model import Applicability, Finding, Fix, LocalizedText
from npulens.catalog.rule_properties import WITH_OTHER_WAYS, WITHOUT_BUILD, LibraryState
from npulens.catalog.settlements import Settlement
from npulens.catalog.tables import SymbolEntry
from npulens.checks.context import Context
from npulens.checks.device_words import last_identifier
from npulens.checks.entries import exists, report_entry, report_symbol
from npulens.checks.optional_code import parts_with_other_way, runs_on_request
from npulens.checks.python.devices.import_statements import from_fix, module_span, written_name
from npulens.checks.replacements import npu_fix
from npulens.syntax.meanings import Qualified, resolve_name
from npulens.syntax.scopes import ModuleScope, Scope, is_bound, lookup, module_of
from npulens.syntax.values import (
    IMPORTERS,
    Imported,
    Name,
    dotted_name,
    expression,
    last_name,
    names_around,
)
from npulens.syntax.walking import nodes_below
from npulens.text.spans import Span
from npulens.verdicts.evidence import leaves
from npulens.verdicts.failing_imports import suppresses, tried_parts

_APEX = "apex"
_ADAPTED = (
    "amp_C.multi_tensor_l2norm",
    "amp_C.multi_tensor_scale",
    "apex.multi_tensor_apply.multi_tensor_applier",
    "apex.normalization.fused_layer_norm",
    "apex.optimizers.FusedAdam",
    "apex.optimizers.FusedSGD",
    "megatron",
)
"""What MindSpeed patches, or makes where it is not there; Megatron is what it is for.

Source: Ascend/MindSpeed, mindspeed/features_manager/megatron_basic/requirements_basic.py.
"""


def imported(node: ast.Import | ast.ImportFrom, scope: Scope, context: Context) -> None:
    """`import cupy`, `from apex.normalization import FusedLayerNorm`."""
    if isinstance(node, ast.ImportFrom) and (node.level or not node.module):
        for alias in node.names:
            _settle_re_exported(alias, scope, context)
        return
    settled = context.fallback(node) or _adapted(node, context)
    of_module = None
    if isinstance(node, ast.ImportFrom):
        of_module = library_entry(node.module or "", context)
        if of_module is not None:
            _report_module(node, of_module, context, settled)
    for alias in node.names:
        name = written_name(node, alias)
        entry = library_entry(name, context)
        if entry is not None and entry is not of_module:
            fixes: list[Fix] = []
            if name == entry.symbol and isinstance(node, ast.ImportFrom) and _is_in_module(entry):
                fixes = from_fix(node, alias, entry, context)
            report_entry(alias, entry, fixes, context, settled)
        elif entry is None and name.partition(".")[0] == _APEX:
            _apex(alias, name, context)
        elif entry is None:
            _settle_own_copy(alias, name, context)
            _settle_re_exported(alias, scope, context)


def _adapted(node: ast.Import | ast.ImportFrom, context: Context) -> Settlement | None:
    """What settles an import of nothing but what an adaptor in force patches."""
    names = (written_name(node, alias) for alias in node.names)
    is_patched = all(any(_is_in(name, each) for each in _ADAPTED) for name in names)
    return context.by_adaptor() if is_patched else None


def _is_in(name: str, module: str) -> bool:
    return name == module or name.startswith(module + ".")


def _settle_re_exported(alias: ast.alias, scope: Scope, context: Context) -> None:
    """`from .common import spconv`: a library that another module of the project imports."""
    if not context.target.project.members.libraries:
        return
    for value in resolve_name(Name(alias.asname or alias.name), scope, None):
        entry = library_entry(value.name, context) if isinstance(value, Qualified) else None
        if entry is not None and entry.rule.library in WITHOUT_BUILD:
            report_entry(alias, entry, [], context, Settlement("reported-at-import"))


def _apex(alias: ast.alias, name: str, context: Context) -> None:
    """`import apex`: what is used of it is reported there, and some of it runs on the NPU.

    An import that nothing uses fails without a build for the NPU all the same.
    """
    if _APEX not in context.target.project.own_modules:
        is_used = alias.asname is not None or _uses_apex(name, context)
        settled = Settlement("reported-at-use") if is_used else context.fallback(alias)
        rule = context.catalogue.required("library-needs-npu-build")
        context.report(rule, context.span(alias), alias.name, [], settled=settled)


def _uses_apex(name: str, context: Context) -> bool:
    """Whether a module names what it imports from apex, besides in comments."""
    words = context.facts.signs.decisive_words
    if name == f"{_APEX}.amp":
        return "apex amp" in words
    return name != _APEX or _APEX in words


def _settle_own_copy(alias: ast.alias, name: str, context: Context) -> None:
    """A library for CUDA that the project brings along, and builds.

    Its extension itself, `from simple_knn import _C`, is found as one of the project.
    """
    project, root = context.target.project, name.partition(".")[0]
    if context.facts.own.extensions.find(name) is not None:
        return
    entry = context.catalogue.libraries.get(root) if root in project.own_modules else None
    if entry is not None and any(
        extension.module.startswith(f"{root}.") for _, _, extension in project.extensions.names
    ):
        report_entry(alias, entry, [], context, Settlement("reported-at-build"))


def loaded(node: ast.Call, scope: Scope, context: Context) -> None:
    """`importlib.import_module("cupy")`, `__import__("cupy")`."""
    module = expression(node) if last_name(node.func) in IMPORTERS else None
    if isinstance(module, Imported):
        entry = library_entry(module.qualified, context)
        name = node.args[0]
        if entry is not None:
            report_entry(name, entry, [], context, context.fallback(name))


def _report_module(
    node: ast.ImportFrom, entry: SymbolEntry, context: Context, settled: Settlement | None
) -> None:
    """The module behind `from`, once for all names of it that have nothing of their own."""
    names = [written_name(node, alias) for alias in node.names]
    if all(library_entry(name, context) is not entry for name in names):
        return
    report_symbol(module_span(node, context), entry, [], context, settled)


def _is_in_module(entry: SymbolEntry) -> bool:
    """Whether the replacement can be imported, which a method of a class cannot."""
    owner = (entry.becomes or "").rpartition(".")[0].rpartition(".")[2]
    return not owner[:1].isupper()


def referenced(node: ast.Attribute, scope: Scope, context: Context) -> None:
    """`xformers.ops.memory_efficient_attention`, which has a replacement of its own."""
    if not uses_libraries(context):
        return
    written = dotted_name(node)
    if written is None or not isinstance(node.ctx, ast.Load):
        return
    place = (node.lineno, node.col_offset)
    values = resolve_name(written, scope, place)
    if len(values) != 1 or not isinstance(values[0], Qualified):
        return
    qualified = values[0].name
    entry = library_entry(qualified, context)
    if entry is None or "." not in entry.symbol:
        root: ast.expr = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if entry is not None and entry.rule.library in WITHOUT_BUILD:
            _settle_use(root, entry, context)
        return
    used = node
    for _ in range(qualified.count(".") - entry.symbol.count(".")):
        if not isinstance(used.value, ast.Attribute):
            return
        used = used.value
    span = context.span(used)
    if span in context.reported.spans:
        return
    if node in context.notes.mentions:
        context.settle(span, context.notes.mentions[node])
    if not _is_reported_here(written.root, qualified, entry, scope, place, context):
        context.settle(span, "reported-at-import")
    name = dotted_name(used)
    fixes = npu_fix(used, name, entry, scope, context) if name and exists(entry, context) else []
    report_entry(used, entry, fixes, context, context.fallback(used))
    if not fixes:
        found = context.reported.findings[-1]
        arguments = {**found.arguments, _USED: entry.symbol}
        context.reported.findings[-1] = replace(found, arguments=arguments)


def imported_name(node: ast.Name, scope: Scope, context: Context) -> None:
    """A use of what `from diff_gaussian_rasterization import GaussianRasterizer` brings."""
    if not context.may_be_brought(node, scope) and not _is_of_star(node, scope, context):
        return
    for value in resolve_name(Name(node.id), scope, (node.lineno, node.col_offset)):
        if not isinstance(value, Qualified) or value.name.startswith("torch."):
            continue
        entry = library_entry(value.name, context)
        is_named = entry is not None and entry.symbol == value.name and "." in value.name
        if entry is not None and (
            entry.rule.library in WITHOUT_BUILD
            or (is_named and entry.rule.library is LibraryState.NEEDS_BUILD)
        ):
            _settle_use(node, entry, context)
            return


def _is_of_star(node: ast.Name, scope: Scope, context: Context) -> bool:
    """`nvmlInit()` behind `from pynvml import *`: a word of the tables that nothing else binds."""
    is_known = bool(context.module.stars()) and node.id in context.catalogue.triggers
    return is_known and not is_bound(node.id, scope)


def _settle_use(node: ast.expr, entry: SymbolEntry, context: Context) -> None:
    """A use of what an import brings, of which the finding at the import says all there is."""
    span = context.span(node)
    if span in context.reported.spans or span in context.reported.settlements:
        return
    if context.settled is None and context.fallback(node) is None:  # else nothing is needed
        context.settle(span, "reported-at-import")
        report_entry(node, entry, [], context)


def _is_reported_here(
    root: str,
    qualified: str,
    entry: SymbolEntry,
    scope: Scope,
    place: tuple[int, int],
    context: Context,
) -> bool:
    """Whether a use says more than the import of the name it starts with."""
    bound = lookup(root, scope, place) or []
    for binding, owner in bound:
        first, last = binding.block
        elsewhere = isinstance(owner, ModuleScope) and owner is not module_of(scope)
        is_within = first == (0, 0) or (not elsewhere and first <= place <= last)
        if len(bound) > 1 and not is_within:
            return False  # imported on a condition: elsewhere something else takes its place
        if not isinstance(binding.value, Imported):
            return False
        reported = library_entry(binding.value.qualified, context)
        if reported is entry or (
            reported is not None and entry.note is None and entry.becomes is None
        ):
            return False
    is_class = entry.symbol.rpartition(".")[2][:1].isupper()
    return qualified == entry.symbol or is_class


def uses_libraries(context: Context) -> bool:
    """Whether a library may be used in a segment, so that its guards and names are worth a look.

    It is imported in the segment itself or, by name, for the whole module.
    """
    if context.optional.is_wanted is None:
        extensions = context.target.project.extensions
        known = context.catalogue.library_words | context.catalogue.words_with_other_way
        roots = known | extensions.foreign | extensions.likely
        # Everybody writes this word, only an import shows that it is the library.
        words = (roots - {"cuda"}) & context.lookups.identifiers
        text, of_module = context.code.text, context.lookups.import_roots
        context.optional.is_wanted = bool(words) or "import cuda" in text or "from cuda" in text
        context.optional.is_wanted |= not roots.isdisjoint(of_module)
    return context.optional.is_wanted


def library_entry(qualified: str, context: Context) -> SymbolEntry | None:
    """What is known of a name, or else of the nearest package around it."""
    libraries, plain = context.catalogue.libraries, context.catalogue.plain
    root = qualified.partition(".")[0]
    own = context.facts.own.extensions
    if root in context.target.project.own_modules or (
        not own.names.is_empty and own.find(root) is not None
    ):
        return None
    for name in takewhile(lambda name: name not in plain, names_around(qualified)):
        if name in libraries:
            return libraries[name]
    extensions = context.target.project.extensions
    if root in extensions.foreign:
        return _by_name(root, "cuda-library", message("check.cuda-by-name"), context)
    if root in extensions.likely:
        return _by_name(root, "unverified-library", message("check.kernels-by-name"), context)
    return None


def _by_name(root: str, rule: str, note: LocalizedText, context: Context) -> SymbolEntry:
    """What is known of a module from elsewhere by its name alone."""
    known, manual = context.catalogue.required(rule), Applicability.MANUAL
    return SymbolEntry(root, known, None, manual, None, False, None, note, note.en)


def tried(node: ast.Try, scope: Scope, context: Context) -> None:
    """`try: import apex`, `except ImportError: apex = None`."""
    if uses_libraries(context):
        switches = any(_switches_on(part, context) for s in node.body for part in nodes_below(s))
        _set_aside(tried_parts(node) if switches else parts_with_other_way(node, scope), context)


def _switches_on(statement: ast.AST, context: Context) -> bool:
    """`unet.enable_xformers_memory_efficient_attention()`: without it PyTorch's way is taken."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    name = last_identifier(call.func) if isinstance(call, ast.Call) else None
    entry = context.catalogue.methods.get(name or "")
    return entry is not None and entry.is_of_library


def suppressed(node: ast.With, scope: Scope, context: Context) -> None:
    """`with suppress(ImportError): import apex`."""
    if uses_libraries(context) and suppresses(node):
        _set_aside(node.body, context)


def tested(node: ast.If | ast.IfExp | ast.BoolOp, scope: Scope, context: Context) -> None:
    """`if is_flash_attn_available(): import flash_attn`, `has_triton and use_triton(x)`."""
    if not uses_libraries(context):
        return
    if isinstance(node, ast.BoolOp):
        if context.optional.without_libraries(node.values[0], scope) is isinstance(node.op, ast.Or):
            _set_aside(node.values[1:], context)
        return
    holds = context.optional.without_libraries(node.test, scope)
    body, others = (
        (node.body, node.orelse) if isinstance(node, ast.If) else ([node.body], [node.orelse])
    )
    if holds is not None:
        _set_aside(others if holds else body, context)
    if isinstance(node, ast.If):
        for block in (node.body, node.orelse):
            _behind_exit(block, scope, context)


def entered(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, scope: Scope, context: Context
) -> None:
    """A test that is skipped without a library, a class that refuses to be made without it."""
    if not uses_libraries(context):
        return
    refuses = isinstance(node, ast.ClassDef) and any(
        _leaves(statement, scope, context)
        for method in node.body
        if isinstance(method, ast.FunctionDef) and method.name == "__init__"
        for statement in method.body
    )
    if refuses or runs_on_request(node, context.source):
        _set_aside(node.body, context)
    else:
        _behind_exit(node.body, scope, context)


def _behind_exit(block: list[ast.stmt], scope: Scope, context: Context) -> None:
    """What no program reaches without a library: it has left the block before."""
    for index, statement in enumerate(block[:-1]):
        if _leaves(statement, scope, context):
            _set_aside(block[index + 1 :], context)
            return


def _leaves(statement: ast.stmt, scope: Scope, context: Context) -> bool:
    """`if not is_triton_available(): return x`."""
    return (
        isinstance(statement, ast.If)
        and leaves(statement.body)
        and context.optional.without_libraries(statement.test, scope) is True
    )


def _set_aside(nodes: Sequence[ast.stmt | ast.expr], context: Context) -> None:
    if nodes:
        span = Span(context.span(nodes[0]).start, context.span(nodes[-1]).end)
        context.optional.add(span)


_USED = "used"
"""The argument that distinguishes a finding on a use of a name from one on its import."""


def deduplicated(findings: Iterable[Finding]) -> list[Finding]:
    """For one file one advice to install another package, and one on each name that is used."""
    reported: set[str] = set()
    kept = []
    for finding in findings:
        about = finding.arguments.get(_USED, "")
        if finding.rule.library in WITH_OTHER_WAYS:
            about = finding.arguments["symbol"].partition(".")[0]
        if about and about in reported:
            continue
        reported.add(about)
        kept.append(finding)
    return kept
