"""Calls that become calls of another callable: optimizers above all."""

import ast
from collections.abc import Mapping, Sequence
from itertools import groupby

from npulens.catalog.localized import LocalizedText
from npulens.catalog.messages import message
from npulens.catalog.model import Applicability, Edit, Fix, ImportNeed, MigrationStyle
from npulens.catalog.tables import OPTIMIZERS, CallEntry, Constant
from npulens.checks.context import Context
from npulens.checks.python.apis.optimizers import against_edit, may_be_fused
from npulens.checks.replacements import with_plugin
from npulens.checks.titles import use
from npulens.syntax.meanings import Member, Qualified, Value, resolve
from npulens.syntax.scopes import Scope
from npulens.syntax.values import Imported, dotted_name, last_name
from npulens.text.spans import Span

_FUSED_OPTIMIZER = "fused-optimizer"
_Argument = ast.expr | ast.keyword


def called(node: ast.Call, scope: Scope, context: Context) -> None:
    """`torch.optim.AdamW(parameters, lr=1e-3)`: the fused optimizer takes the same."""
    entries = _entries(node, scope, context)
    if not entries:
        return
    is_optimizer = entries[0].rule.name == _FUSED_OPTIMIZER
    if is_optimizer and not may_be_fused(node, scope, context):
        return
    entry = next((e for e in entries if _fits(e, node)), None)
    if entry is not None:
        against = against_edit(context) if is_optimizer else None
        if len(resolve(node.func, scope)) > 1:
            against = message("check.optimizer-chosen")
        fixes = [] if against is not None else _fix(node, entry, scope, context)
        _report(entry, node.func, fixes, context, against)
    elif entries[0].callable not in context.catalogue.libraries and _may_fit(entries[0], node):
        _report(entries[0], node.func, [], context)


def chosen(node: ast.Call | ast.Dict, scope: Scope, context: Context) -> None:
    """`{"adam": torch.optim.Adam}`, `wrapped(torch.optim.SGD)(parameters)`: made elsewhere."""
    for value in _classes(node):
        if last_name(value) not in OPTIMIZERS or not may_be_fused(node, scope, context):
            continue
        entries = _entries_of(value, scope, context)
        if entries and entries[0].rule.name == _FUSED_OPTIMIZER:
            _report(entries[0], value, [], context, message("check.optimizer-chosen"))
            return


def _classes(node: ast.Call | ast.Dict) -> list[ast.expr]:
    """What may be a class of which objects are made: of choices, or given to what makes them."""
    if isinstance(node, ast.Dict):
        return node.values
    if isinstance(node.func, ast.Call):
        inner = node.func
        return [*inner.args, *(keyword.value for keyword in inner.keywords)]
    if not any(keyword.arg == "lr" for keyword in node.keywords):
        return []
    of_partial = last_name(node.func) == "partial"
    return [*node.args[not of_partial :], *(keyword.value for keyword in node.keywords)]


def _entries(node: ast.Call, scope: Scope, context: Context) -> tuple[CallEntry, ...]:
    """What is known of the callee, if it is certain what that is."""
    callee, name = node.func, last_name(node.func)
    is_known = name in context.catalogue.called_names or name in context.facts.aliases
    if not is_known and not (isinstance(callee, ast.Name) and may_be_fused(node, scope, context)):
        return ()
    return _entries_of(callee, scope, context)


def _entries_of(callee: ast.expr, scope: Scope, context: Context) -> tuple[CallEntry, ...]:
    values = resolve(callee, scope)
    names = [value.name for value in values if isinstance(value, Qualified)]
    if len(values) > 1:  # a class that is chosen somewhere
        names = [name for name in names if _is_optimizer(name, context)]
    if isinstance(callee, ast.Attribute) and not names:
        names = _methods(callee, values, context)
    if not names:
        return ()
    qualified = names[0]
    if qualified.partition(".")[0] in context.target.project.own_modules:
        return ()
    span = context.span(callee)
    if span in context.reported.spans:
        return ()
    entries = context.catalogue.calls.get(qualified, ())
    is_agnostic = context.target.style is MigrationStyle.DEVICE_AGNOSTIC
    return tuple(e for e in entries if e.neutral is is_agnostic) or (entries if is_agnostic else ())


def _methods(callee: ast.Attribute, values: Sequence[Value], context: Context) -> list[str]:
    """The method of a library's class that is called: of an object of it, or of one not known.

    What is not known counts where the module imports the class, and no class of it has the method.
    """
    members = [value.name for value in values if isinstance(value, Member)]
    if members:
        return members
    named = [name for name in context.catalogue.calls if name.endswith(f".{callee.attr}")]
    return [name for name in named if _is_imported(name.rpartition(".")[0], context)]


def _is_imported(owner: str, context: Context) -> bool:
    names = context.module.module.names.get(owner.rpartition(".")[2], ())
    return owner.rpartition(".")[2][:1].isupper() and any(
        isinstance(binding.value, Imported) and binding.value.qualified == owner
        for _, bindings in names
        for binding in bindings
    )


def _is_optimizer(name: str, context: Context) -> bool:
    entries = context.catalogue.calls.get(name, ())
    return bool(entries) and entries[0].rule.name == _FUSED_OPTIMIZER


def _report(
    entry: CallEntry,
    callee: ast.expr,
    fixes: list[Fix],
    context: Context,
    against: LocalizedText | None = None,
) -> None:
    context.report(
        entry.rule,
        context.span(callee),
        entry.callable,
        fixes,
        replacement=entry.becomes,
        note=against or entry.note,
        settled=context.fallback(callee),
    )


def _fits(entry: CallEntry, node: ast.Call) -> bool:
    """Whether all that is passed has a counterpart or says nothing."""
    if any(isinstance(argument, ast.Starred) for argument in node.args):
        return False
    if len(node.args) > len(entry.positions):
        return False
    given = {keyword.arg: keyword.value for keyword in node.keywords}
    taken = {*entry.positions, *entry.keywords, *entry.drops}
    constants = {**entry.same, **entry.when}
    return entry.when.keys() <= given.keys() and all(
        name in taken or (name in constants and _is(value, constants[name]))
        for name, value in given.items()
    )


def _may_fit(entry: CallEntry, node: ast.Call) -> bool:
    """Whether nothing written in the call is against it, though not all of it is known."""
    taken = {*entry.positions, *entry.keywords, *entry.drops}
    for keyword in node.keywords:
        name, value = keyword.arg, keyword.value
        if name is None or name in taken:
            continue
        if name not in entry.same:
            return False
        if isinstance(value, ast.Constant) and not _is(value, entry.same[name]):
            return False
    return len(node.args) <= len(entry.positions)


def _is(node: ast.expr, constant: Constant) -> bool:
    return (
        isinstance(node, ast.Constant)
        and type(node.value) is type(constant)
        and node.value == constant
    )


def _fix(node: ast.Call, entry: CallEntry, scope: Scope, context: Context) -> list[Fix]:
    """The call of the counterpart; nothing where a comment or a bracket would be lost."""
    written = dotted_name(node.func)
    if entry.fix is Applicability.MANUAL or written is None:
        return []
    if entry.neutral and context.torch_name(scope, node) is None:
        return []
    arguments: list[_Argument] = sorted([*node.args, *node.keywords], key=context.span)
    unwanted = {*entry.drops, *entry.same, *entry.when}
    dropped = [isinstance(a, ast.keyword) and a.arg in unwanted for a in arguments]
    edits = [Edit(context.span(node.func), entry.becomes)]
    for span in _removed(arguments, dropped, context):
        left = context.code.text[slice(*span)]
        for argument, is_dropped in zip(arguments, dropped, strict=True):
            if is_dropped:
                left = left.replace(context.source(argument), "", 1)
        if left.strip(" \t\r\n,"):
            return []
        edits.append(Edit(span, ""))
    added = _added(node, entry.adds, entry.positions)
    if added:
        place = _behind_last(node, arguments, context)
        if place is None:
            return []
        edits.append(Edit(Span(place, place), ", ".join(([""] if arguments else []) + added)))
    if entry.neutral:
        return [Fix(use(entry.becomes), entry.fix, tuple(edits))]
    every, need = with_plugin(tuple(edits), ImportNeed.PLUGIN_NAME, scope, context)
    return [Fix(use(entry.becomes), entry.fix, every, imports=need)]


def _removed(
    arguments: Sequence[_Argument], dropped: Sequence[bool], context: Context
) -> list[Span]:
    """What to take out: each run of unwanted arguments with the comma before or behind it."""
    spans = [context.span(argument) for argument in arguments]
    found: list[Span] = []
    for is_dropped, run in groupby(range(len(spans)), key=dropped.__getitem__):
        indexes = list(run)
        first, last = indexes[0], indexes[-1]
        if not is_dropped:
            continue
        if first > 0:
            found.append(Span(spans[first - 1].end, spans[last].end))
        elif last + 1 < len(spans):
            found.append(Span(spans[first].start, spans[last + 1].start))
        else:
            found.append(Span(spans[first].start, spans[last].end))
    return found


def _added(node: ast.Call, adds: Mapping[str, Constant], positions: Sequence[str]) -> list[str]:
    """Arguments that only one side has a default for, or another one."""
    given = {*positions[: len(node.args)], *(keyword.arg for keyword in node.keywords)}
    return [f"{name}={value!r}" for name, value in adds.items() if name not in given]


def _behind_last(node: ast.Call, arguments: Sequence[_Argument], context: Context) -> int | None:
    """Where another argument can be written; `None` if that is not plain."""
    closing = context.span(node).end - 1
    if not arguments:
        return closing
    last = context.span(arguments[-1]).end
    is_plain = last <= closing and not context.code.text[last:closing].strip(" \t\r\n,")
    return last if is_plain else None
