"""CUDA extensions: what builds them, who imports those of the project, and calls of what they hold.

Each place is reported for itself; `checks/intent/extension_builds.py` and `extension_uses.py` make
one finding of those that belong together.
"""

import ast
import re

from npulens.catalog.model import Finding
from npulens.catalog.project_model import ExtensionName
from npulens.catalog.settlements import Settlement
from npulens.checks.arguments import argument_of, keyword_of
from npulens.checks.context import Context
from npulens.checks.device_words import last_identifier
from npulens.checks.entries import report_entry
from npulens.checks.purpose import out_of_reach
from npulens.checks.python.devices.import_statements import module_span
from npulens.checks.segments.own_extensions import BOUND, EXTENSION, who_builds
from npulens.checks.shared_rules import CUDA_EXTENSION, EXTENSION_CALL, EXTENSION_IMPORT
from npulens.syntax.meanings import Member, Qualified, qualified_names, resolve
from npulens.syntax.other_modules import member_of
from npulens.syntax.scopes import FunctionScope, Scope
from npulens.syntax.values import IMPORTERS, Imported, expression, last_name, root_name
from npulens.syntax.walking import nodes_below
from npulens.text.spans import Span
from npulens.verdicts.kernels import calls_extension

_INLINE = "torch.utils.cpp_extension.load_inline"
_LOADERS = frozenset({"torch.utils.cpp_extension.load", _INLINE})
_PLAIN_EXTENSIONS = frozenset(
    {"setuptools.Extension", "setuptools.extension.Extension"}
    | {"torch.utils.cpp_extension.CppExtension"}
    | {"distutils.core.Extension", "distutils.extension.Extension"}
)
_PLAIN_NAMES = frozenset(name.rpartition(".")[2] for name in _PLAIN_EXTENSIONS)
_LIBRARY_LOADER = "torch.ops.load_library"
_ON_HOST = re.compile(r"version|compiler|\Ahas_|coco_?eval", re.IGNORECASE)
"""Operators that return how they were built, or count results on the CPU."""


def built(node: ast.Call, scope: Scope, context: Context) -> None:
    """`CUDAExtension("boxes", [...])` under whatever name, `load_inline(name, cpp, cuda)`."""
    _inline_sources(node, scope, context)
    _listed_sources(node, scope, context)
    if not isinstance(node.func, ast.Name):
        return  # a dotted name is found where it is looked up
    for name in qualified_names(node.func, scope):
        entry = context.catalogue.symbols.get(name)
        if entry is not None and entry.rule.name == CUDA_EXTENSION:
            if not (context.facts.shim.is_active and entry.shimmed):
                settled = out_of_reach(entry.rule, node.func, scope, context)
                report_entry(node.func, entry, [], context, settled)
            return


def _inline_sources(node: ast.Call, scope: Scope, context: Context) -> None:
    """`load_inline(name, cpp_sources, cuda_sources)`."""
    by_name = keyword_of(node, "cuda_sources") is not None
    if not by_name and last_identifier(node.func) != "load_inline":
        return
    if _INLINE not in qualified_names(node.func, scope):
        return
    given = argument_of(node, "cuda_sources", 2)
    if given is None or (isinstance(given, ast.Constant) and not given.value):
        return
    rule = context.catalogue.required(CUDA_EXTENSION)
    context.report(rule, context.span(node.func), _INLINE, [])


def _listed_sources(node: ast.Call, scope: Scope, context: Context) -> None:
    """`Extension("gpu_nms", ["nms_kernel.cu", "gpu_nms.pyx"])`, with a compiler of one's own."""
    if last_identifier(node.func) not in _PLAIN_NAMES or not context.lookups.contains(".cu"):
        return
    names = qualified_names(node.func, scope)
    symbol = next((name for name in names if name in _PLAIN_EXTENSIONS), None)
    given = argument_of(node, "sources", 1)
    if symbol is None or given is None:
        return
    values = (getattr(part, "value", None) for part in nodes_below(given))
    if any(isinstance(value, str) and value.endswith(".cu") for value in values):
        rule = context.catalogue.required(CUDA_EXTENSION)
        context.report(rule, context.span(node.func), symbol, [])


def imported(node: ast.Import | ast.ImportFrom, scope: Scope, context: Context) -> None:
    """`import boxes_cuda`, `from . import _C`, `from .backend import kernels` of the project."""
    extensions = context.facts.own.extensions
    if extensions.names.is_empty:
        return
    if isinstance(node, ast.Import):
        for alias in node.names:
            found = extensions.find(alias.name)
            bound = alias.asname or ("" if "." in alias.name else alias.name)
            _report_import(context.span(alias), alias.name, bound, found, context)
        return
    module = "." * node.level + (node.module or "")
    whole = extensions.find(module) if node.module else None
    if whole is not None:
        bound = node.names[0].asname or node.names[0].name
        _report_import(module_span(node, context), module, bound, whole, context)
        return
    for alias in node.names:
        name = member_of(module, alias.name)
        bound = alias.asname or alias.name
        _report_import(context.span(alias), name, bound, extensions.find(name), context)


def loaded(node: ast.Call, scope: Scope, context: Context) -> None:
    """`importlib.import_module("boxes_cuda")`, `torch.ops.load_library("build/boxes.so")`."""
    module = expression(node) if last_name(node.func) in IMPORTERS else None
    if isinstance(module, Imported):
        found = context.facts.own.extensions.find(module.qualified)
        _report_import(context.span(node.args[0]), module.qualified, "", found, context)
    elif last_identifier(node.func) == "load_library":
        is_loader = _LIBRARY_LOADER in qualified_names(node.func, scope)
        if is_loader and context.target.project.extensions.registered:
            arguments = {"symbol": _LIBRARY_LOADER, "replacement": "", EXTENSION: "torch.ops"}
            rule = context.catalogue.required(EXTENSION_IMPORT)
            context.add(Finding(rule, context.span(node.func), arguments))


def _report_import(
    span: Span, name: str, bound: str, found: ExtensionName | None, context: Context
) -> None:
    if found is None or span in context.reported.spans:
        return
    rule = context.catalogue.required(EXTENSION_IMPORT)
    arguments = {"symbol": name, "replacement": "", EXTENSION: found.module, BOUND: bound}
    note = who_builds(found, context.target.project)
    context.add(Finding(rule, span, arguments, note))


def called(node: ast.Call, scope: Scope, context: Context) -> None:
    """`_ext.nms(boxes)`, `torch.ops.detection.nms(boxes)`: operators of the project's CUDA code."""
    project = context.target.project
    if not (
        project.extensions.operators or project.extensions.registered or project.extensions.names
    ):
        return
    if not isinstance(node.func, (ast.Name, ast.Attribute)):
        return
    span = context.span(node.func)
    if span in context.reported.spans:
        return
    for value in resolve(node.func, scope):
        extension = (
            _extension_of(value, context) if isinstance(value, (Qualified, Member)) else None
        )
        if extension is not None:
            arguments = {
                "symbol": context.source(node.func),
                "replacement": "",
                EXTENSION: extension,
                BOUND: root_name(node.func),
            }
            other = Settlement("fallback") if _has_other_way(node, scope, context) else None
            rule = context.catalogue.required(EXTENSION_CALL)
            context.add(Finding(rule, span, arguments), other)
            return


def _extension_of(value: Qualified | Member, context: Context) -> str | None:
    """The extension that an operator is of; empty of one that `load` gave, `None` if of none."""
    project, parts = context.target.project, value.name.split(".")
    if _ON_HOST.search(parts[-1]) is not None:
        return None
    if value.name.startswith("torch.ops."):
        found = ".".join(parts[2:4]) in project.extensions.registered
        return "torch.ops" if found and not any(p.startswith("_") for p in parts[4:]) else None
    if isinstance(value, Member):
        loader, _, _ = value.name.rpartition(".")
        return "" if loader in _LOADERS else None
    known = context.facts.own.extensions.around(value.name)
    if known is not None:
        return known.module
    is_bound = len(parts) > 1 and (parts[-2], parts[-1]) in project.extensions.operators
    return parts[-2] if is_bound else None


def _has_other_way(node: ast.Call, scope: Scope, context: Context) -> bool:
    """Whether a call is for CUDA tensors, and there is code for all others beside it."""
    if not isinstance(scope, FunctionScope) or not context.lookups.contains("is_cuda"):
        return False
    for part in nodes_below(scope.node):
        if (
            not isinstance(part, ast.If)
            or not part.orelse
            or "is_cuda" not in context.source(part.test)
            or calls_extension(part.orelse, scope, context.regions.known)
        ):
            continue
        first, last = part.body[0], part.body[-1]
        if not first.lineno <= node.lineno <= (last.end_lineno or last.lineno):
            continue
        return "not " not in context.source(part.test) and not isinstance(
            part.orelse[0], (ast.Raise, ast.Assert)
        )
    return False
