"""Checkpoints that are loaded to where they were saved."""

import ast

from npulens.catalog.model import Applicability, Edit, Fix
from npulens.checks.arguments import is_spread, keyword_of
from npulens.checks.context import Context
from npulens.checks.titles import use
from npulens.syntax.meanings import qualified_names
from npulens.syntax.scopes import Scope
from npulens.text.spans import Span

_LOADERS = frozenset({"torch.load", "torch.jit.load", "torch.serialization.load"})
_PLACE = "map_location"
_BEFORE_PLACE = 1
"""How many positional arguments there are before it."""


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
    rule, symbol = context.catalogue.required("checkpoint-device"), min(names, key=len)
    context.report(rule, context.span(node.func), symbol, fixes, replacement=f'{_PLACE}="cpu"')
