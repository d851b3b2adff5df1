"""Environment variables of the CUDA world, and command lines inside Python."""

import ast
import re
from collections.abc import Iterable
from dataclasses import replace

from npulens.catalog.model import Applicability, Edit, Finding, Fix, MigrationStyle, Severity
from npulens.catalog.tables import EnvironmentEntry
from npulens.checks.context import Context
from npulens.checks.other_files.any_device import variable_by_hand
from npulens.checks.other_files.launch_report import (
    LaunchReport,
    hides_all,
    may_be_wish,
    value_applicability,
)
from npulens.checks.other_files.shell_commands import command_words, shell_findings
from npulens.checks.other_files.shell_programs import Atom
from npulens.checks.titles import use
from npulens.syntax.meanings import qualified_names
from npulens.syntax.scopes import Scope
from npulens.syntax.values import Name, dotted_name
from npulens.text.spans import Span

_MAPPINGS = frozenset({"os.environ", "os.environb"})
_SETTERS = frozenset({"os.environ.setdefault", "os.putenv", "os.environ.__setitem__"})
_RUNNERS = frozenset(
    {"os.system", "os.popen", "subprocess.run", "subprocess.call", "subprocess.Popen"}
    | {"subprocess.check_call", "subprocess.check_output", "subprocess.getoutput"}
    | {"subprocess.getstatusoutput", "asyncio.create_subprocess_shell"}
)
_ANSWER = re.compile(r"`((?:ASCEND|HCCL|NPU)_[A-Z_]+)[=`]")
_OPENING = re.compile(r"(?P<prefix>[A-Za-z]{0,2})(?P<quote>[\"'])(?!(?P=quote))")
_ESCAPE = re.compile(r"\\(\r?\n|.)")
_QUOTED = re.compile(r"\\.", re.DOTALL)
_SPLIT = Name("shlex", ("split",))
_INTERPRETER = Name("sys", ("executable",))
_FOR_REPEATING = frozenset({"CUDA_LAUNCH_BLOCKING", "CUBLAS_WORKSPACE_CONFIG"})
"""What CUDA needs beside `torch.use_deterministic_algorithms(True)`."""
_REPEATS = "use_deterministic_algorithms("
"""What requests the determinism that counts on the NPU, or ends it."""
_SET_BY_LAUNCHER = "TORCH_NCCL_ASYNC_ERROR_HANDLING"
_EXECUTORS = frozenset({"asyncio.create_subprocess_exec", "os.execvp", "os.execv"})
_CALLED = frozenset(n.rpartition(".")[2] for n in _SETTERS | _RUNNERS | _EXECUTORS) | {"update"}
"""An attribute keeps its name, whatever is before it; other names may be aliases."""


def variable(node: ast.Constant, scope: Scope, context: Context) -> None:
    """A string that is exactly the name of such a variable, if it can be renamed.

    Others matter only where they are set: to request one that the NPU has no use for does no harm.
    """
    entry = context.catalogue.variable(node.value) if isinstance(node.value, str) else None
    if entry is None:
        return
    if not entry.read and (entry.becomes is None or entry.fix is Applicability.MANUAL):
        context.settle(context.span(node), "no-effect")
        _report(entry, context.span(node), entry.fix, scope, context)
        return
    if (
        entry.variable == _SET_BY_LAUNCHER
        and "elastic launcher" in context.facts.signs.decisive_words
    ):
        return  # one of those that torchrun sets, and that are taken from a program of its own
    span = context.span(node)
    if "nvml" in context.function_text(scope).lower():  # NVIDIA's library needs these numbers
        context.settle(span, "no-effect")
    _report(entry, span, entry.fix, scope, context)


def assigned(node: ast.Assign, scope: Scope, context: Context) -> None:
    """`os.environ["CUDA_VISIBLE_DEVICES"] = "0,1"`: how safe the fix is depends on the value."""
    _read_to_refuse(node, scope, context)
    for target in node.targets:
        if isinstance(target, ast.Subscript) and not _MAPPINGS.isdisjoint(
            qualified_names(target.value, scope)
        ):
            _set(target.slice, node.value, scope, context)


def _read_to_refuse(node: ast.Assign, scope: Scope, context: Context) -> None:
    """`conf = os.environ.get(...)` in a function that only refuses for what it says."""
    if not isinstance(node.value, ast.Call) or not node.value.args:
        return
    key = node.value.args[0]
    if not isinstance(key, ast.Constant) or not _is_known(key.value, context):
        return
    name = getattr(node.targets[0], "id", "")
    if name in context.lookups.names_of(scope).refused:
        context.settle(context.span(key), "no-effect", node)


def call(node: ast.Call, scope: Scope, context: Context) -> None:
    """Variables set by a call, named as keywords, or set in a command line."""
    callee = node.func
    if isinstance(callee, ast.Attribute) and callee.attr not in _CALLED:
        return
    names = frozenset(qualified_names(callee, scope))
    if not names.isdisjoint(_SETTERS) and len(node.args) == 2:
        _set(node.args[0], node.args[1], scope, context)
    if _makes_environment(callee):
        for keyword in node.keywords:
            _keyword(keyword, scope, context)
    if not names.isdisjoint(_RUNNERS):
        arguments = [*node.args[:1], *(k.value for k in node.keywords if k.arg in ("args", "cmd"))]
        for argument in arguments:
            command_line(argument, context)
    elif not names.isdisjoint(_EXECUTORS):
        _words(node.args, context)


def dictionary(node: ast.Dict, scope: Scope, context: Context) -> None:
    """`{**os.environ, "CUDA_VISIBLE_DEVICES": "0"}`."""
    for key, value in zip(node.keys, node.values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(key.value, str) and key.value.isupper():
            _set(key, value, scope, context)


def _is_known(value: object, context: Context) -> bool:
    return isinstance(value, str) and context.catalogue.variable(value) is not None


def _makes_environment(callee: ast.expr) -> bool:
    """Whether keywords of a call become variables; `Cluster(CUDA_VISIBLE_DEVICES=...)` has none."""
    is_dict = isinstance(callee, ast.Name) and callee.id == "dict"
    return is_dict or (isinstance(callee, ast.Attribute) and callee.attr == "update")


def _keyword(keyword: ast.keyword, scope: Scope, context: Context) -> None:
    """`dict(os.environ, CUDA_VISIBLE_DEVICES="0")`; the name of a keyword has no node."""
    name = keyword.arg or ""
    entry = context.catalogue.variable(name)
    start = context.span(keyword).start
    span = Span(start, start + len(name))
    if entry is None:
        if isinstance(keyword.value, ast.Constant) and name.isupper():
            _npu_variable(name, str(keyword.value.value), span, scope, context)
        return
    if entry.becomes is None and not _is_wish(keyword, keyword.value, context):
        context.settle(span, "no-effect")
    _report(entry, span, _applicability(entry, keyword.value), scope, context)


def _is_wish(place: ast.AST, value: ast.expr, context: Context) -> bool:
    """Whether a variable that only CUDA has is set to what somebody wants.

    It is not where it is emptied, put back, or set because a question about CUDA was answered.
    """
    if not isinstance(value, (ast.Constant, ast.JoinedStr)) or getattr(value, "value", "") == "":
        return isinstance(value, ast.JoinedStr)
    return not context.regions.is_under_cuda_test(context.span(place))


def _set(name: ast.expr, value: ast.expr, scope: Scope, context: Context) -> None:
    if not isinstance(name, ast.Constant) or not isinstance(name.value, str):
        return
    entry = context.catalogue.variable(name.value)
    if entry is not None:
        repeats = name.value in _FOR_REPEATING and _REPEATS in context.function_text(scope)
        if repeats or (entry.becomes is None and not _is_wish(name, value, context)):
            context.settle(context.span(name), "no-effect")
        if isinstance(value, ast.Constant) and (
            not may_be_wish(name.value, str(value.value))
            or (
                hides_all(name.value, str(value.value))
                and scope is context.module
                and _is_unconditional(name, context)
            )
        ):
            context.settle(context.span(name), "no-effect")
        _report(entry, context.span(name), _applicability(entry, value), scope, context)
    elif isinstance(value, ast.Constant):
        _npu_variable(name.value, str(value.value), context.span(name), scope, context)


def _is_unconditional(node: ast.AST, context: Context) -> bool:
    """Whether what a module sets holds for the whole program; under a condition it is an option."""
    line = context.code.text.rfind("\n", 0, context.span(node).start) + 1
    return not context.code.text[line : line + 1].isspace()


def _applicability(entry: EnvironmentEntry, value: ast.expr) -> Applicability:
    if not isinstance(value, ast.Constant) or not isinstance(value.value, str):
        return entry.fix
    return value_applicability(entry, [value.value])


def _npu_variable(name: str, value: str, span: Span, scope: Scope, context: Context) -> None:
    """A value that a variable of the NPU does not take; of a script that trains, a slow one."""
    is_of_npu = name in context.catalogue.npu.variables.names
    if not is_of_npu and name in context.facts.signs.variables_read:
        return  # the module's own
    report = LaunchReport(context.code.text, context.catalogue, context.target)
    report.npu_variable(name, value, span, is_read=False)
    # A function may be the one that is called for debugging.
    is_advice_wanted = scope is context.module and context.facts.signs.trains
    for finding in report.findings:
        if is_advice_wanted or finding.rule.severity is not Severity.HINT:
            named = {**finding.arguments, "symbol": name}
            _take_over([replace(finding, arguments=named)], context)


def _report(
    entry: EnvironmentEntry,
    span: Span,
    applicability: Applicability,
    scope: Scope,
    context: Context,
) -> None:
    if span in context.reported.spans:
        return
    if span not in context.reported.settlements and _is_answered(entry, scope, context):
        context.settle(span, "npu-way-beside")
    fixes: list[Fix] = []
    at = context.code.text.find(entry.variable, *span)
    if entry.becomes is not None and applicability is not Applicability.MANUAL and at >= 0:
        edit = Edit(Span(at, at + len(entry.variable)), entry.becomes)
        fixes.append(Fix(use(entry.becomes), applicability, (edit,)))
    note = entry.note
    if context.target.style is MigrationStyle.DEVICE_AGNOSTIC:
        note = variable_by_hand(entry).behind(note)
    context.report(
        entry.rule,
        span,
        entry.variable,
        fixes,
        replacement=entry.becomes or "",
        note=note,
        severity=entry.severity,
    )


def _is_answered(entry: EnvironmentEntry, scope: Scope, context: Context) -> bool:
    """Whether the function names what the NPU has for this variable, and so was ported."""
    answers = {entry.becomes or "", *_ANSWER.findall(entry.note.en if entry.note else "")} - {""}
    text = context.function_text(scope) if answers else ""
    return any(re.search(rf"\b{answer}\b", text) for answer in answers)


def command_line(node: ast.expr, context: Context) -> None:
    """Report the words of a command for a shell: a string, or a list of words."""
    if isinstance(node, ast.Call) and node.args and dotted_name(node.func) == _SPLIT:
        node = node.args[0]
    if isinstance(node, (ast.List, ast.Tuple)):
        _words(node.elts, context)
        return
    written = _written_in(node, context)
    if written is not None:
        _read_shell(*written, context)
        return
    for part in node.values if isinstance(node, ast.JoinedStr) else [node]:
        place = _verbatim(part, context)
        if place is not None:
            _read_shell(place, context.code.text[slice(*place)], context)


def _read_shell(place: Span, script: str, context: Context) -> None:
    before = context.code.text[: place.start - 1] + "\n"  # a script starts a line
    text = before + script + context.code.text[place.end :]
    report = LaunchReport(text, context.catalogue, context.target)
    shell_findings(report, *place)
    _take_over(report.finish(), context)


def _written_in(node: ast.expr, context: Context) -> tuple[Span, str] | None:
    """Where a single literal has its text, and the text with spaces for what escapes."""
    span = context.span(node)
    opening = _OPENING.match(context.code.text, *span)
    if opening is None:
        return None
    inner = Span(opening.end(), span.end - 1)
    written = context.code.text[slice(*inner)]
    if "r" not in opening["prefix"].lower():
        written = _ESCAPE.sub(_unescaped, written)
    several = opening["quote"] in _QUOTED.sub("", context.code.text[slice(*inner)])
    return (span, _joined(context.code.text[slice(*span)])) if several else (inner, written)


def _joined(literals: str) -> str:
    """The text of adjacent literals at its places, as one line."""
    text = [" "] * len(literals)
    for segment in _PIECE.finditer(literals):
        if segment["inner"] is None:
            continue
        shown = segment["inner"]
        if "r" not in segment["prefix"].lower():
            shown = _ESCAPE.sub(_unescaped, shown)
        text[slice(*segment.span("inner"))] = shown.replace("\n", " ")
    return "".join(text)


_PIECE = re.compile(
    r"(?P<prefix>\b[A-Za-z]{1,2}|)(?P<quote>\"{3}|'{3}|[\"'])(?P<inner>(?:\\.|(?!(?P=quote)).)*)(?P=quote)"
    r"|#[^\n]*",
    re.DOTALL,
)


def _unescaped(escape: re.Match[str]) -> str:
    """As many characters as an escape has: a line break behind a space, nothing but spaces."""
    character = escape[1]
    if character in ("\n", "\r\n"):
        return " " * len(escape[0])
    return " \n" if character == "n" else f" {character}"


def _words(nodes: list[ast.expr], context: Context) -> None:
    """A command as a list; anything but a plain string counts as one word."""
    words = []
    for node in nodes:
        place = _verbatim(node, context)
        if place is not None:
            words.append(Atom(place, context.code.text[slice(*place)]))
            continue
        start = context.span(node).start
        is_python = dotted_name(node) == _INTERPRETER
        words.append(Atom(Span(start, start), "python" if is_python else ""))
    report = LaunchReport(context.code.text, context.catalogue, context.target)
    command_words(report, words)
    _take_over(report.finish(), context)


def _verbatim(node: ast.expr, context: Context) -> Span | None:
    """The place of a string, if it has no escapes."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or not node.value:
        return None
    span = context.span(node)
    at = context.code.text.find(node.value, *span)
    return Span(at, at + len(node.value)) if at >= 0 else None


def _take_over(findings: Iterable[Finding], context: Context) -> None:
    """Of a command that a call starts `nvidia-smi` is found as a call, see `library_calls`."""
    take_over((f for f in findings if f.arguments["symbol"] != "nvidia-smi"), context)


def take_over(findings: Iterable[Finding], context: Context) -> None:
    """Report of Python what was found in a text for the shell inside of it."""
    for finding in findings:
        if finding.span not in context.reported.spans:
            context.add(finding)
