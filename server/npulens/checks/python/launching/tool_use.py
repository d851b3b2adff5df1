"""Profilers, dumps and switches of the NPU that are set up so that they do nothing."""

import ast
import re

from npulens.catalog.messages import message
from npulens.catalog.model import Applicability, Edit, Fix, LocalizedText, Severity
from npulens.checks.arguments import argument_of, is_spread, keyword_of
from npulens.checks.context import Context
from npulens.checks.shared_rules import TOOL_USE
from npulens.checks.titles import add, use
from npulens.syntax.meanings import Instance, Member, Qualified, qualified_names, resolve
from npulens.syntax.scopes import Scope, function_of
from npulens.syntax.walking import nodes_below
from npulens.text.spans import Span

_PROFILE = "torch_npu.profiler.profile"
_SCHEDULE = "torch_npu.profiler.schedule"
_CONFIG = "torch_npu.profiler._ExperimentalConfig"
_DEBUGGER = "msprobe.pytorch.PrecisionDebugger"
_EXPORT = "torch.onnx.export"
_GROUP = "torch.distributed.init_process_group"
_LEVELS_WITHOUT_METRICS = ("Level0", "Level_none")
_IN_ORDER = ("wait", "active", "warmup", "repeat", "skip_first", "skip_first_wait")
_CALLED = frozenset({"_ExperimentalConfig", "schedule", "start", "export", "init_process_group"})
_NAMED = (Instance, Member, Qualified)
_LONGEST = 60
"""Of a text that a message quotes."""
_ADDRESS = re.compile(r"\w+://")


def profiled(node: ast.With, scope: Scope, context: Context) -> None:
    """`with torch_npu.profiler.profile(schedule=...) as p:` without `p.step()`."""
    for item in node.items:
        call, name = item.context_expr, item.optional_vars
        if not (isinstance(call, ast.Call) and isinstance(name, ast.Name)):
            continue
        schedule = keyword_of(call, "schedule")
        if schedule is None or _PROFILE not in qualified_names(call.func, scope):
            continue
        if not _may_step(node, name):
            fixes = _with_step(node, name.id, context)
            _report(schedule, message("tool-use.no-step", name=name.id), context, fixes)


def _may_step(node: ast.With, name: ast.Name) -> bool:
    """Whether the profiler gets `step()` in a block, or is given to something that may do so."""
    parts = [*nodes_below(node)]
    owned = {part.value: part.attr for part in parts if isinstance(part, ast.Attribute)}
    uses = (part for part in parts if isinstance(part, ast.Name) and part.id == name.id)
    return any(owned.get(use, "step") == "step" for use in uses if use is not name)


def _with_step(node: ast.With, name: str, context: Context) -> list[Fix]:
    """`p.step()` as the last statement of the only loop."""
    loops = [each for each in node.body if isinstance(each, (ast.For, ast.While))]
    if len(loops) != 1 or loops[0].lineno == loops[0].body[0].lineno:
        return []
    last = loops[0].body[-1]
    indentation = context.before_on_line(loops[0].body[0])
    if indentation.strip() or isinstance(last, (ast.Return, ast.Break, ast.Continue, ast.Raise)):
        return []
    end = context.span(last).end
    call = f"{name}.step()"
    edit = Edit(Span(end, end), f"\n{indentation}{call}")
    return [Fix(add(call), Applicability.UNSAFE, (edit,))]


def called(node: ast.Call, scope: Scope, context: Context) -> None:
    """`schedule(active=0)`, `debugger.start()` without `stop()`, an export of NPU operators."""
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    if name not in _CALLED and name not in context.facts.aliases:
        return
    signs = context.facts.signs
    if not signs.names_npu_software and not context.lookups.contains("init_method"):
        return
    for each in qualified_names(node.func, scope):
        if each == _GROUP:
            _address(node, context)
        elif each == _SCHEDULE:
            _schedule(node, context)
        elif each == _CONFIG:
            _metrics(node, context)
        elif each == _EXPORT and "npu operators" in signs.decisive_words:
            _report(node.func, message("tool-use.npu-nodes"), context, severity=Severity.HINT)
    if name == "start":
        _started(node, scope, context)


def _address(node: ast.Call, context: Context) -> None:
    """`init_process_group("hccl", init_method="tcp//:127.0.0.1:29500")`."""
    given = argument_of(node, "init_method", 1)
    text = given.value if isinstance(given, ast.Constant) else None
    if given is not None and isinstance(text, str) and text and _ADDRESS.match(text) is None:
        _report(given, message("tool-use.address"), context, severity=Severity.ERROR)


def _schedule(node: ast.Call, context: Context) -> None:
    active = argument_of(node, "active", 1)
    if isinstance(active, ast.Constant) and active.value == 0 and not is_spread(node):
        _report(active, message("tool-use.never-active"), context)
    if len(node.args) > 1 and not is_spread(node) and len(node.args) <= len(_IN_ORDER):
        starts = [context.span(each).start for each in node.args]
        named = zip(starts, _IN_ORDER, strict=False)
        edits = tuple(Edit(Span(start, start), f"{name}=") for start, name in named)
        fix = Fix(message("tool-use.names"), Applicability.SAFE, edits)
        note = message("tool-use.order")
        _report(node.func, note, context, [fix], severity=Severity.HINT)


def _metrics(node: ast.Call, context: Context) -> None:
    """Metrics of the AI Core are not read at the level that is the default."""
    metrics, level = keyword_of(node, "aic_metrics"), argument_of(node, "profiler_level", 0)
    if metrics is None or is_spread(node) or getattr(metrics.value, "attr", "") == "AiCoreNone":
        return
    if level is None:
        _report(metrics, message("tool-use.level"), context)
    elif getattr(level, "attr", "") in _LEVELS_WITHOUT_METRICS:
        end = context.span(level).end
        written = Span(end - len(getattr(level, "attr", "")), end)
        fix = Fix(use("Level1"), Applicability.UNSAFE, (Edit(written, "Level1"),))
        _report(metrics, message("tool-use.level"), context, [fix])


def _started(node: ast.Call, scope: Scope, context: Context) -> None:
    """`PrecisionDebugger.start()` in a module that never ends what it collects."""
    words = context.facts.signs.decisive_words
    if "msprobe" not in words or not isinstance(node.func, ast.Attribute):
        return
    names = (name for part in (node.func, node.func.value) for name in _meant(part, scope))
    if not any(name.startswith(_DEBUGGER) for name in names):
        return
    if "stops" not in words:
        _report(node.func, message("tool-use.no-stop"), context)
    if "profiles" in words:
        note = message("tool-use.profiler-beside")
        _report(node.func, note, context, severity=Severity.HINT)


def _meant(node: ast.expr, scope: Scope) -> list[str]:
    return [value.name for value in resolve(node, scope) if isinstance(value, _NAMED)]


def made_in_loop(node: ast.For | ast.While, scope: Scope, context: Context) -> None:
    """`PrecisionDebugger(...)` in a loop: only the first one counts."""
    if "msprobe" not in context.facts.signs.decisive_words:
        return
    calls = (p for each in node.body for p in nodes_below(each) if isinstance(p, ast.Call))
    for call in calls:
        is_reported = context.span(call.func) in context.reported.spans  # in a loop around this one
        if not is_reported and _DEBUGGER in qualified_names(call.func, scope):
            _report(call.func, message("tool-use.in-loop"), context)


def set_late(node: ast.Assign, scope: Scope, context: Context) -> None:
    """`os.environ["HCCL_DETERMINISTIC"] = "true"` behind `init_process_group` of the function."""
    target = node.targets[0]
    if not isinstance(target, ast.Subscript) or "HCCL_" not in context.source(target.slice):
        return
    if "os.environ" not in qualified_names(target.value, scope):
        return
    function = function_of(scope)
    if function is None:
        return  # an editor reads each statement of a module by itself
    before = context.code.text[context.span(function).start : context.span(node).start]
    if re.search(r"^[ \t]*(?:\w+\.)*init_process_group\(", before, re.MULTILINE):
        _report(target.slice, message("tool-use.set-late"), context)


def _report(
    node: ast.AST,
    note: LocalizedText,
    context: Context,
    fixes: list[Fix] | None = None,
    severity: Severity | None = None,
) -> None:
    rule = context.catalogue.required(TOOL_USE)
    symbol = context.source(node)
    if len(symbol) > _LONGEST or "\n" in symbol:
        symbol = symbol.partition("(")[0].partition("\n")[0]
    context.report(rule, context.span(node), symbol, fixes or [], note=note, severity=severity)
