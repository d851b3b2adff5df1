"""Memory formats that suit cuDNN, and switches of CUDA libraries whose value matters."""

import ast

from npulens.catalog.model import (
    Applicability,
    Edit,
    Fix,
    ImportNeed,
    LocalizedText,
    MigrationStyle,
    Severity,
)
from npulens.catalog.tables import SymbolEntry
from npulens.checks.arguments import keyword_of, without
from npulens.checks.context import Context
from npulens.checks.titles import use
from npulens.syntax.meanings import qualified_names
from npulens.syntax.scopes import Scope
from npulens.syntax.values import dotted_name

_FORMATS = frozenset({"torch.channels_last", "torch.channels_last_3d"})


def memory_format(node: ast.AST, scope: Scope, context: Context) -> None:
    """`x.to(memory_format=torch.channels_last)`, `torch.empty(2, 3, memory_format=...)`."""
    assert isinstance(node, ast.Call)
    keyword = keyword_of(node, "memory_format")
    if keyword is None:
        return
    value = keyword.value
    branches = [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
    for branch in branches:
        entry = _format_entry(branch, scope, context)
        if entry is not None:
            _report_format(node, keyword, branch, entry, scope, context)


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
    if span in context.reported:
        return
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if method == "is_contiguous":
        rule = context.catalogue.rule_named("channels-last-question")
        if rule is not None:
            context.report(rule, span, entry.symbol, [])
        return
    if isinstance(keyword.value, ast.IfExp) and _is_contiguous_else(keyword.value, written, scope):
        written = keyword.value
    fix = _contiguous(call, keyword, written, method, context)
    fixes = [] if fix is None else [fix]
    context.report(entry.rule, span, entry.symbol, fixes, note=entry.note)


def _is_contiguous_else(choice: ast.IfExp, written: ast.expr, scope: Scope) -> bool:
    """Whether the other choice is the usual format, and asking for the choice does nothing."""
    other = choice.orelse if written is choice.body else choice.body
    does_nothing = not any(isinstance(node, ast.Call) for node in ast.walk(choice.test))
    return does_nothing and "torch.contiguous_format" in qualified_names(other, scope)


def _contiguous(
    call: ast.Call, keyword: ast.keyword, written: ast.expr, method: str, context: Context
) -> Fix | None:
    """Without the format; `.to()` of it alone keeps its argument, for a module has no other way.

    A GPU still gains by the format, so in code for both the fix has to be read.
    """
    agnostic = context.target.style is MigrationStyle.DEVICE_AGNOSTIC
    safety = Applicability.UNSAFE if agnostic else Applicability.SAFE
    needless = method == "contiguous" or (method != "to" or len(call.args + call.keywords) > 1)
    if keyword.value is written and needless:
        edit = without(call, keyword, context)
        if edit is not None:
            text = f"{method or context.source(call.func)}()"
            title = LocalizedText("Remove `memory_format`", "去掉 `memory_format`")
            if method == "contiguous":
                title = use(f".{text}")
            return Fix(title, safety, (edit,))
    root = dotted_name(written.body if isinstance(written, ast.IfExp) else written)
    if root is None:
        return None
    names = (root.root, *root.path[:-1], "contiguous_format")
    text = ".".join(names)
    return Fix(use(text), safety, (Edit(context.span(written), text),))


def known_formats(node: ast.AST, scope: Scope, context: Context) -> None:
    """`fmt == torch.channels_last`, `{"nhwc": torch.channels_last}`: asked or listed, not used."""
    assert isinstance(node, ast.Compare | ast.Dict | ast.List | ast.Tuple | ast.Set)
    if isinstance(node, ast.Compare):
        parts: list[ast.expr] = [node.left, *node.comparators]
    elif isinstance(node, ast.Dict):
        parts = [*(key for key in node.keys if key is not None), *node.values]
    else:
        parts = node.elts
    for part in parts:
        if _format_entry(part, scope, context) is not None:
            context.reported.add(context.span(part))


def switch_set(node: ast.AST, scope: Scope, context: Context) -> None:
    """`torch.backends.cudnn.deterministic = True`, `torch.backends.cuda.matmul.fp32_precision`."""
    assert isinstance(node, ast.Assign)
    target = node.targets[0]
    if len(node.targets) != 1 or not isinstance(target, ast.Attribute):
        return
    if target.attr not in _SWITCHES:
        return
    for name in qualified_names(target, scope):
        entry = context.catalogue.symbols.get(name)
        if entry is None or context.span(target) in context.reported:
            continue
        value = node.value.value if isinstance(node.value, ast.Constant) else None
        fixes: list[Fix] = []
        is_deterministic = name == "torch.backends.cudnn.deterministic"
        if is_deterministic and context.facts.evidence.asks_for_determinism:
            continue  # the way that counts on the NPU is there too
        if name in _ON_IS_ASKED_FOR and value is not False:
            if value is True and is_deterministic:
                fixes = _deterministic(node, scope, context)
            _report_switch(target, entry, fixes, _ON_IS_ASKED_FOR[name], context)
        elif name in _PRECISION_SWITCHES and isinstance(value, str):
            if value in _PRECISIONS and _PRECISION_SWITCHES[name]:
                on = _PRECISIONS[value]
                fixes = _statement(node, f"{_PRECISION_SWITCHES[name]} = {on}", scope, context)
            _report_switch(target, entry, fixes, Severity.INFO, context)


_ON_IS_ASKED_FOR = {
    "torch.backends.cudnn.benchmark": Severity.INFO,
    "torch.backends.cudnn.deterministic": Severity.WARNING,
}
"""Switches that mean something when turned on, while turning them off asks for nothing."""

_PRECISION_SWITCHES = {
    "torch.backends.fp32_precision": "",
    "torch.backends.cuda.matmul.fp32_precision": "torch.npu.matmul.allow_hf32",
    "torch.backends.cudnn.fp32_precision": "",
    "torch.backends.cudnn.conv.fp32_precision": "torch.npu.conv.allow_hf32",
    "torch.backends.cudnn.rnn.fp32_precision": "",
}
_SWITCHES = frozenset(name.rpartition(".")[2] for name in (*_ON_IS_ASKED_FOR, *_PRECISION_SWITCHES))
_PRECISIONS = {"tf32": True, "ieee": False}
_REDUCED_PRODUCTS = frozenset({"high", "medium"})


def _report_switch(
    target: ast.Attribute,
    entry: SymbolEntry,
    fixes: list[Fix],
    severity: Severity,
    context: Context,
) -> None:
    context.report(
        entry.rule,
        context.span(target),
        entry.symbol,
        fixes,
        replacement=entry.becomes or "",
        note=entry.note,
        severity=severity,
    )


def _deterministic(node: ast.Assign, scope: Scope, context: Context) -> list[Fix]:
    return _statement(node, "torch.use_deterministic_algorithms(True)", scope, context)


def _statement(node: ast.Assign | ast.Call, text: str, scope: Scope, context: Context) -> list[Fix]:
    """Another statement in place of one; it may cost speed or change numbers, so it is read."""
    if context.torch_name(scope, node) is None:
        return []
    need = ImportNeed.PLUGIN if "npu" in text else ImportNeed.NOTHING
    edit = Edit(context.span(node), text)
    return [Fix(use(text), Applicability.UNSAFE, (edit,), imports=need)]


def product_precision(node: ast.AST, scope: Scope, context: Context) -> None:
    """`torch.set_float32_matmul_precision("high")`, which on a GPU turns TF32 on."""
    assert isinstance(node, ast.Expr)
    call = node.value
    if not isinstance(call, ast.Call) or len(call.args) != 1 or call.keywords:
        return
    value = call.args[0]
    if not isinstance(value, ast.Constant) or value.value not in _REDUCED_PRODUCTS:
        return
    if "torch.set_float32_matmul_precision" not in qualified_names(call.func, scope):
        return
    rule = context.catalogue.rule_named("tf32-products")
    if rule is not None:
        becomes = "torch.npu.matmul.allow_hf32"
        fixes = _statement(call, f"{becomes} = True", scope, context)
        name = "torch.set_float32_matmul_precision"
        context.report(rule, context.span(call), name, fixes, replacement=becomes)
