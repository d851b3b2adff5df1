"""What a call is given for a parameter that takes a device, and calls that are given none."""

import ast
from collections.abc import Iterator

from npulens.catalog.messages import message
from npulens.catalog.model import Severity
from npulens.catalog.tables import ParameterEntry, WithoutDevice
from npulens.checks.arguments import is_spread
from npulens.checks.context import Context
from npulens.checks.device_words import last_identifier
from npulens.checks.shared_rules import DEFAULT_DEVICE
from npulens.syntax.meanings import qualified_names
from npulens.syntax.scopes import Scope


def called(node: ast.Call, scope: Scope, context: Context) -> None:
    """`whisper.load_model("base")`: on the NPU the model stays on the host, unless it is moved."""
    choosing = context.catalogue.choosing
    name = last_identifier(node.func) or ""
    if name not in choosing and name not in context.facts.aliases:
        return
    for qualified in qualified_names(node.func, scope):
        for parameter in choosing.get(qualified.rpartition(".")[2], ()):
            if parameter.callable == qualified and not is_spread(node):
                _report(node, parameter, context)


def _report(node: ast.Call, parameter: ParameterEntry, context: Context) -> None:
    if any(arguments_for(node, parameter)):
        return
    is_chosen = parameter.without is WithoutDevice.CHOSEN
    context.report(
        context.catalogue.required(DEFAULT_DEVICE),
        context.span(node.func),
        context.source(node.func),
        [],
        note=parameter.note or message("check.default-device", name=parameter.parameter),
        severity=Severity.INFO if is_chosen else None,
        settled=context.by_shim(),
    )


def arguments_for(node: ast.Call, parameter: ParameterEntry) -> Iterator[ast.expr]:
    """What a call is given for a parameter, by name or by position."""
    for keyword in node.keywords:
        if keyword.arg == parameter.parameter:
            yield keyword.value
    position = parameter.position
    before = [] if position is None else node.args[: position + 1]
    if len(before) == (position or 0) + 1 and not any(isinstance(a, ast.Starred) for a in before):
        yield before[-1]
