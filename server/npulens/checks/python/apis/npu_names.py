"""Names and arguments that code for the NPU writes and its software does not have."""

import ast
from collections.abc import Callable, Iterable

from npulens.catalog.messages import message
from npulens.catalog.model import Applicability, Edit, Fix, LocalizedText, Severity
from npulens.catalog.npu_tables import MembersEntry, SignatureEntry
from npulens.checks.arguments import Argument, is_spread, without
from npulens.checks.context import Context
from npulens.checks.titles import use
from npulens.syntax.meanings import Member, Qualified, canonical, qualified_names, resolve
from npulens.syntax.scopes import Scope
from npulens.syntax.walking import nodes_below
from npulens.text.spans import Span

_TYPES: dict[str, Callable[[object], bool]] = {
    "bool": lambda value: isinstance(value, bool),
    "int": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "float": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "str": lambda value: isinstance(value, str),
}
_CLOSE = 0.75
"""How alike two names are of which the one may be meant by the other, from 0 to 1."""
_SAME = 0.9
"""How alike they are if the one must be meant by the other."""


def member(node: ast.Attribute, scope: Scope, context: Context) -> None:
    """`torch_npu.profiler.AiCMetrics.Pipe`: a name that no release has."""
    if not isinstance(node.ctx, ast.Load) or not context.facts.signs.names_npu_software:
        return
    values = resolve(node, scope)
    if len(values) != 1 or not isinstance(values[0], (Qualified, Member)):
        return
    owner, _, name = values[0].name.rpartition(".")
    entry = context.catalogue.npu.members.get(owner)
    if entry is not None and _is_missing(name, entry):
        end = context.span(node).end
        _report_name(entry, name, context.span(node), Span(end - len(name), end), context)


def entered(node: ast.With, scope: Scope, context: Context) -> None:
    """`with torch_npu.profiler.profile() as p:` and, inside, `p.key_averages()`."""
    if not context.facts.signs.names_npu_software:
        return
    for item in node.items:
        call, name = item.context_expr, getattr(item.optional_vars, "id", None)
        names = qualified_names(call.func, scope) if isinstance(call, ast.Call) and name else ()
        entry = context.catalogue.npu.members.get(names[0]) if len(names) == 1 else None
        for part in nodes_below(node) if entry is not None else ():
            if entry is None or not isinstance(part, ast.Attribute) or part.attr in entry.names:
                continue
            if isinstance(part.value, ast.Name) and part.value.id == name:
                end = context.span(part).end
                written = Span(end - len(part.attr), end)
                _report_name(entry, part.attr, context.span(part), written, context)


def imported(node: ast.ImportFrom, scope: Scope, context: Context) -> None:
    """`from torch_npu.profiler import Profile`."""
    if node.level or not node.module:
        return
    entry = context.catalogue.npu.members.get(canonical(node.module))
    for alias in node.names if entry is not None else ():
        if entry is not None and alias.name != "*" and _is_missing(alias.name, entry):
            start = context.span(alias).start
            written = Span(start, start + len(alias.name))
            _report_name(entry, alias.name, context.span(alias), written, context)


def called(node: ast.Call, scope: Scope, context: Context) -> None:
    """`torch_npu.profiler.profile(config=...)`: an argument that the function does not take."""
    entry = _signature(node, scope, context) if context.facts.signs.names_npu_software else None
    if entry is None:
        return
    if entry.dictionary:
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        for argument in given[:1]:
            _dictionary(argument, entry, context)
        return
    if entry.positional is not None and not is_spread(node):
        for argument in node.args[entry.positional :]:
            _report(entry, argument, context.source(argument), context, _by_name(entry))
    for position, argument in enumerate(node.args):
        if isinstance(argument, ast.Starred) or entry.positional is None:
            break
        if position < min(entry.positional, len(entry.parameters)):
            _value(entry, entry.parameters[position], argument, argument, context)
    for keyword in node.keywords:
        if keyword.arg is not None:
            start = context.span(keyword).start
            if keyword.arg in entry.drops:
                _report(
                    entry,
                    keyword,
                    f"{keyword.arg}=",
                    context,
                    None,
                    _removed(node, keyword, context),
                )
                continue
            place = Span(start, start + len(keyword.arg))
            _named(entry, keyword.arg, keyword.value, keyword, place, context)


def assigned(node: ast.Assign, scope: Scope, context: Context) -> None:
    """`options.hccl_config = {"hccl_buffer_size": "200"}`."""
    target = node.targets[0]
    if isinstance(target, ast.Attribute) and context.facts.signs.names_npu_software:
        entry = context.catalogue.npu.signatures.get(f".{target.attr}")
        if entry is not None:
            _dictionary(node.value, entry, context)


def _signature(node: ast.Call, scope: Scope, context: Context) -> SignatureEntry | None:
    names = qualified_names(node.func, scope)
    return context.catalogue.npu.signatures.get(names[0]) if len(names) == 1 else None


def _is_missing(name: str, entry: MembersEntry) -> bool:
    is_private = name.startswith("__")
    return name.startswith(entry.prefix) and name not in entry.names and not is_private


def _report_name(
    entry: MembersEntry, name: str, span: Span, written: Span, context: Context
) -> None:
    if span in context.reported.spans:
        return
    meant = entry.renamed.get(name) or _closest(name, entry.names, entry.grows)
    if entry.grows and not meant:
        return
    fixes = []
    if meant:
        fixes = [Fix(use(meant), Applicability.UNSAFE, (Edit(written, meant),))]
    note = message("npu-names.meant", name=f"{entry.owner}.{meant}") if meant else None
    context.report(entry.rule, span, f"{entry.owner}.{name}", fixes, note=note)


def _named(
    entry: SignatureEntry,
    name: str,
    value: ast.expr,
    argument: Argument,
    place: Span,
    context: Context,
) -> None:
    """An argument, or a key of a dictionary, with its name at `place`."""
    if name in entry.older:
        _report(entry, argument, f"{name}=", context, entry.note, severity=Severity.INFO)
    elif name not in entry.parameters:
        meant = entry.renamed.get(name) or _closest(name, entry.parameters, entry.grows)
        if entry.grows and not meant:
            return
        note = message("npu-names.meant", name=meant) if meant else _taken(entry)
        fixes = [Fix(use(meant), Applicability.UNSAFE, (Edit(place, meant),))] if meant else []
        _report(entry, argument, f"{name}=", context, note, fixes)
    else:
        _value(entry, name, value, argument, context)


def _value(
    entry: SignatureEntry, name: str, value: ast.expr, argument: Argument, context: Context
) -> None:
    """What is written for an argument, if it is a constant."""
    if not isinstance(value, ast.Constant) or value.value is None:
        return
    constant = value.value
    allowed = entry.choices.get(name, ())
    kind = entry.types.get(name)
    if allowed and not any(type(constant) is type(each) and constant == each for each in allowed):
        written = ", ".join(f"`{each!r}`" for each in allowed)
        note = message("npu-names.choices", values=written)
    elif kind is not None and not _TYPES[kind](constant):
        note = message("npu-names.type", type=kind)
    else:
        return
    fixes = []
    if kind == "bool" and isinstance(constant, str) and constant.lower() in ("true", "false"):
        meant = constant.capitalize()
        fixes = [Fix(use(meant), Applicability.UNSAFE, (Edit(context.span(value), meant),))]
    _report(entry, argument, f"{name}={context.source(value)}", context, note, fixes)


def _dictionary(node: ast.expr, entry: SignatureEntry, context: Context) -> None:
    for key, value in (
        zip(node.keys, node.values, strict=True) if isinstance(node, ast.Dict) else ()
    ):
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            span = context.span(key)
            at = context.code.text.find(key.value, *span)
            place = Span(at, at + len(key.value)) if at >= 0 else span
            _named(entry, key.value, value, key, place, context)


def _report(
    entry: SignatureEntry,
    argument: Argument,
    symbol: str,
    context: Context,
    note: LocalizedText | None,
    fixes: list[Fix] | None = None,
    severity: Severity | None = None,
) -> None:
    context.report(
        entry.rule,
        context.span(argument),
        symbol,
        fixes or [],
        replacement=entry.callable.lstrip("."),
        note=note,
        severity=severity,
    )


def _by_name(entry: SignatureEntry) -> LocalizedText:
    return message("npu-names.by-name") if not entry.positional else _taken(entry)


def _taken(entry: SignatureEntry) -> LocalizedText:
    return message("npu-names.taken", names=", ".join(f"`{name}`" for name in entry.parameters))


def _removed(call: ast.Call, argument: ast.keyword, context: Context) -> list[Fix]:
    edit = without(call, argument, context)
    return (
        [] if edit is None else [Fix(message("npu-names.left-out"), Applicability.UNSAFE, (edit,))]
    )


def _closest(name: str, names: Iterable[str], has_to_be_meant: bool) -> str | None:
    from difflib import get_close_matches  # seldom needed

    alike = _SAME if has_to_be_meant else _CLOSE
    return next(iter(get_close_matches(name, sorted(names), 1, alike)), None)
