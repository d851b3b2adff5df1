"""Checkpoints that are loaded to where they were saved."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace

from npulens.catalog.messages import message
from npulens.catalog.model import Applicability, Edit, Finding, Fix, Severity
from npulens.catalog.tables import Meaning
from npulens.checks.arguments import is_spread, keyword_of
from npulens.checks.context import Context
from npulens.checks.device_words import WORDS, is_word
from npulens.checks.titles import use
from npulens.checks.whole_module import WholeModule
from npulens.syntax.meanings import qualified_names
from npulens.syntax.scopes import Scope
from npulens.syntax.values import Name, dotted_name
from npulens.syntax.walking import nodes_below
from npulens.text.spans import Span

_LOADERS = frozenset({"torch.load", "torch.jit.load", "torch.serialization.load"})
_PLACE = "map_location"
_BEFORE_PLACE = 1
"""How many positional arguments there are before it."""
_RULE = "checkpoint-device"
_MOVING = frozenset({"to", "cuda", "npu"})
_OF_MODULES = frozenset({"eval", "train", "parameters", "forward", "generate", "children"})


def loaded(node: ast.Call, scope: Scope, context: Context) -> None:
    """`torch.load("model.pt")`, which restores each tensor to the device it was saved on."""
    if (isinstance(node.func, ast.Attribute) and node.func.attr != "load") or not node.args:
        return
    if len(node.args) > _BEFORE_PLACE or is_spread(node) or keyword_of(node, _PLACE) is not None:
        return
    names = _LOADERS.intersection(qualified_names(node.func, scope))
    if not names:
        return
    start, end = context.span(node.args[0])
    opening = context.code.text[context.span(node.func).end : start].strip()
    fixes = []
    closing = context.code.text[end : end + 1]
    if opening == "(" and closing in (",", ")"):  # in no brackets of its own
        edit = Edit(Span(end, end), f', {_PLACE}="cpu"')
        fixes.append(Fix(use(f'{_PLACE}="cpu"'), Applicability.UNSAFE, (edit,)))
    rule, symbol = context.catalogue.required(_RULE), min(names, key=len)
    context.report(rule, context.span(node.func), symbol, fixes, replacement=f'{_PLACE}="cpu"')


def taken_to_host(node: ast.Call, scope: Scope, context: Context) -> None:
    """`map_location={"cuda:0": "cpu"}`, which leaves files of an NPU where they were saved."""
    keyword = keyword_of(node, _PLACE)
    places = keyword.value if keyword is not None else None
    if places is None and len(node.args) > _BEFORE_PLACE:
        places = node.args[_BEFORE_PLACE]
    if not isinstance(places, ast.Dict) or not all(map(_is_host, places.values)):
        return
    if keyword is None and _LOADERS.isdisjoint(qualified_names(node.func, scope)):
        return
    word = WORDS[Meaning.DEVICE]
    keys = [key for key in places.keys if key is not None and is_word(key, word, scope, context)]
    if not keys or len(keys) < len(places.keys):
        return  # it knows of other devices, too
    context.settle_all(keys[1:], "reported-once")
    edit = Edit(context.span(places), '"cpu"')
    context.report(
        context.catalogue.required(word.rule),
        context.span(keys[0]),
        context.source(keys[0]),
        [Fix(use('"cpu"'), Applicability.UNSAFE, (edit,))],
        replacement='"cpu"',
        note=message("check.to-the-host"),
        severity=Severity.INFO,
        settled=context.by_shim(),
    )


def _is_host(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value == "cpu"


def with_loaded_models(findings: Sequence[Finding], module: WholeModule) -> list[Finding]:
    """The findings without a fix where a whole model is loaded that nothing moves afterwards.

    It would stay on the host, and fail with data of the device.
    """
    if not any(each.rule.name == _RULE and each.fixes for each in findings):
        return list(findings)
    used, called = _uses(module.tree)
    unmoved = {
        module.lines.offset(call.func.end_lineno or 0, call.func.end_col_offset or 0)
        for call, name in _assigned_calls(module.tree)
        if (name in called or used.get(name, set()) & _OF_MODULES)
        and not used.get(name, set()) & _MOVING
    }
    return [
        replace(each, fixes=()) if each.rule.name == _RULE and each.span.end in unmoved else each
        for each in findings
    ]


def _uses(tree: ast.Module) -> tuple[dict[Name, set[str]], set[Name]]:
    """The attributes that names are asked for, and the names that are called."""
    used: dict[Name, set[str]] = {}
    called: set[Name] = set()
    for node in nodes_below(tree):
        if isinstance(node, ast.Attribute) and (owner := dotted_name(node.value)) is not None:
            used.setdefault(owner, set()).add(node.attr)
        elif isinstance(node, ast.Call) and (callee := dotted_name(node.func)) is not None:
            called.add(callee)
    return used, called


def _assigned_calls(tree: ast.Module) -> Iterator[tuple[ast.Call, Name]]:
    """Calls whose result a variable or an attribute gets, with its name."""
    for node in nodes_below(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            name = dotted_name(node.targets[0])
            if name is not None:
                yield node.value, name
