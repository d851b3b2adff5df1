"""Switches of CUDA libraries whose value matters."""

import ast
import re
from dataclasses import replace

from npulens.catalog.model import Applicability, Edit, Fix, ImportNeed, Severity
from npulens.checks.arguments import argument_of
from npulens.checks.context import Context
from npulens.checks.device_words import last_identifier
from npulens.checks.entries import report_symbol
from npulens.checks.titles import use
from npulens.syntax.meanings import qualified_names
from npulens.syntax.scopes import Scope
from npulens.syntax.walking import choices


def value_read(
    node: ast.Call | ast.List | ast.Tuple | ast.FormattedValue | ast.BoolOp | ast.UnaryOp | ast.If,
    scope: Scope,
    context: Context,
) -> None:
    """`State(benchmark=cudnn.benchmark)`, `if cudnn.enabled:`: a switch that is read, not set.

    What it says is of no use on the NPU, and nothing has to be done about that.
    """
    if isinstance(node, ast.Call):
        parts = [keyword.value for keyword in node.keywords]
    elif isinstance(node, (ast.List, ast.Tuple)):
        parts = node.elts
    elif isinstance(node, ast.FormattedValue):
        parts = [node.value]
    elif isinstance(node, ast.BoolOp):
        parts = node.values
    elif isinstance(node, ast.UnaryOp):
        parts = [node.operand]
    else:
        parts = [node.test]
    for part in parts:
        if (
            isinstance(part, ast.Attribute)
            and part.attr in _READ_SWITCHES
            and isinstance(part.ctx, ast.Load)
            and any(name.startswith("torch.backends.") for name in qualified_names(part, scope))
        ):
            context.settle(context.span(part), "no-effect")


def switches_for_a_block(node: ast.Call, scope: Scope, context: Context) -> None:
    """`with torch.backends.cudnn.flags(enabled=False):`, as there is no cuDNN to turn off."""
    if not context.lookups.contains("cudnn") or last_identifier(node.func) != "flags":
        return
    if "torch.backends.cudnn.flags" in qualified_names(node.func, scope):
        context.settle(context.span(node.func), "no-effect")


def switch_set(node: ast.Assign, scope: Scope, context: Context) -> None:
    """`torch.backends.cudnn.deterministic = True`, `torch.backends.cuda.matmul.fp32_precision`."""
    target = node.targets[0]
    if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
        _several_set(target.elts, node.value.elts, scope, context)
    if len(node.targets) != 1 or not isinstance(target, ast.Attribute):
        return
    if target.attr not in _SWITCHES:
        return
    for name in qualified_names(target, scope):
        entry = context.catalogue.symbols.get(name)
        if entry is None or context.span(target) in context.reported.spans:
            continue
        if context.regions.is_under_cuda_test(context.span(target)):
            context.settle(context.span(target), "no-effect")
            continue
        value = node.value.value if isinstance(node.value, ast.Constant) else None
        is_restored = re.match(r"self\.\w+\Z", context.source(node.value)) is not None
        if _is_usual(name, value, context) or (
            name in _ON_IS_REQUESTED and (is_restored or _is_cared_for(name, scope, context))
        ):
            context.settle(context.span(target), "no-effect")
            continue
        is_deterministic = name == "torch.backends.cudnn.deterministic"
        if is_deterministic and context.facts.signs.evidence.requests_determinism:
            continue  # the way that counts on the NPU is there too
        if name in _ON_IS_REQUESTED and value is not False:
            entry = replace(entry, severity=_ON_IS_REQUESTED[name])
            report_symbol(context.span(target), entry, [], context)
        elif name in _PRECISION_SWITCHES and isinstance(value, str):
            fixes: list[Fix] = []
            if value in _PRECISIONS and _PRECISION_SWITCHES[name]:
                on = _PRECISIONS[value]
                fixes = _statement(node, f"{_PRECISION_SWITCHES[name]} = {on}", scope, context)
            entry = replace(entry, severity=Severity.INFO)
            report_symbol(context.span(target), entry, fixes, context)


def set_for_cuda(node: ast.If, scope: Scope, context: Context) -> None:
    """`if torch.cuda.is_available(): torch.backends.cudnn.benchmark = True`.

    A block of nothing but switches is for CUDA's sake: on the NPU it is left out, and kernels that
    are tried out there are none. Which precision products have is still to be decided.
    """
    if not context.lookups.contains("cudnn") or "cuda.is_available()" not in context.source(
        node.test
    ):
        return
    if not node.orelse and all(_is_switch(statement, scope) for statement in node.body):
        for statement in node.body:
            target = statement.targets[0]  # type: ignore[attr-defined]
            if target.attr == "benchmark":
                context.settle(context.span(target), "no-effect")


def _is_switch(statement: ast.stmt, scope: Scope) -> bool:
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if not isinstance(target, ast.Attribute) or target.attr not in _SWITCHES:
        return False
    return any(name.startswith("torch.backends.") for name in qualified_names(target, scope))


def _several_set(
    targets: list[ast.expr], values: list[ast.expr], scope: Scope, context: Context
) -> None:
    """`cudnn.benchmark, cudnn.deterministic = False, True`: what says nothing is left out."""
    for target, given in zip(targets, values, strict=False):
        if isinstance(target, ast.Attribute) and target.attr in _SWITCHES:
            value = given.value if isinstance(given, ast.Constant) else None
            if any(_is_usual(name, value, context) for name in qualified_names(target, scope)):
                context.settle(context.span(target), "no-effect")


def _is_usual(name: str, value: object, context: Context) -> bool:
    """Whether a switch is set to what the NPU does anyway, so that there is nothing to decide.

    HF32 is on for convolutions from the start, so turning it on says nothing unless it is turned
    off elsewhere; turning it off does. There is no cuDNN, and nothing else to turn on or off.
    """
    if name == "torch.backends.cudnn.allow_tf32":
        return value is True and "cudnn tf32 off" not in context.facts.signs.decisive_words
    if name == "torch.backends.cudnn.enabled":
        return True
    return name in _USUAL and value is _USUAL[name]


_USUAL = {
    "torch.backends.cudnn.benchmark": False,
    "torch.backends.cudnn.deterministic": False,
    "torch.backends.cuda.matmul.allow_tf32": False,
}
"""Values of switches that request nothing on the NPU."""
_ON_IS_REQUESTED = {
    "torch.backends.cudnn.benchmark": Severity.INFO,
    "torch.backends.cudnn.deterministic": Severity.WARNING,
}
"""Switches that mean something when turned on, while turning them off requests nothing."""

_PRECISION_SWITCHES = {
    "torch.backends.fp32_precision": "",
    "torch.backends.cuda.matmul.fp32_precision": "torch.npu.matmul.allow_hf32",
    "torch.backends.cudnn.fp32_precision": "",
    "torch.backends.cudnn.conv.fp32_precision": "torch.npu.conv.allow_hf32",
    "torch.backends.cudnn.rnn.fp32_precision": "",
}
_SWITCHES = frozenset(
    {"enabled", *(name.rpartition(".")[2] for name in (*_USUAL, *_PRECISION_SWITCHES))}
)
_READ_SWITCHES = _SWITCHES | {"benchmark_limit"}
_PRECISIONS = {"tf32": True, "ieee": False}
_REDUCED_PRODUCTS = frozenset({"high", "medium"})


def _is_cared_for(name: str, scope: Scope, context: Context) -> bool:
    """Whether the function does what makes the NPU repeatable, or undoes it."""
    text = context.function_text(scope)
    if name == "torch.backends.cudnn.deterministic" and "use_deterministic_algorithms(" in text:
        return True
    return "HCCL_DETERMINISTIC" in text or "use_deterministic_algorithms(False" in text


def _statement(node: ast.Assign | ast.Call, text: str, scope: Scope, context: Context) -> list[Fix]:
    """Another statement in place of one; it may cost speed or change numbers, so it is read."""
    if context.torch_name(scope, node) is None:
        return []
    need = ImportNeed.PLUGIN if "npu" in text else ImportNeed.NOTHING
    edit = Edit(context.span(node), text)
    return [Fix(use(text), Applicability.UNSAFE, (edit,), imports=need)]


def product_precision(node: ast.Expr, scope: Scope, context: Context) -> None:
    """`torch.set_float32_matmul_precision("high")`, which on a GPU turns TF32 on."""
    call = node.value
    if not isinstance(call, ast.Call) or len(call.args) + len(call.keywords) != 1:
        return
    value = argument_of(call, "precision", 0)
    name = "torch.set_float32_matmul_precision"
    if value is None or name not in qualified_names(call.func, scope):
        return
    chosen = {getattr(each, "value", None) for each in choices(value)}
    if chosen.isdisjoint(_REDUCED_PRODUCTS):
        if chosen == {"highest"}:
            context.settle(context.span(call), "no-effect")
        return
    becomes = "torch.npu.matmul.allow_hf32"
    is_sure = isinstance(value, ast.Constant)
    fixes = _statement(call, f"{becomes} = True", scope, context) if is_sure else []
    rule = context.catalogue.required("tf32-products")
    context.report(rule, context.span(call), name, fixes, replacement=becomes)
