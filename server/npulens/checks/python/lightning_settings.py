"""What Lightning is asked for by settings that reach it otherwise than as arguments of its call.

They are entries of dictionaries for `Trainer(**settings)`, names, attributes, and defaults of
options, fields and parameters. A module without Lightning may mean anything by them.
"""

import ast
from collections.abc import Iterator

from npulens.catalog.tables import Meaning, ParameterEntry
from npulens.checks.context import Context
from npulens.checks.words import WORDS, last_identifier
from npulens.syntax.bindings import with_defaults
from npulens.syntax.scopes import Scope, imports_any
from npulens.syntax.walking import choices

_NAMES = frozenset({"accelerator", "--accelerator"})
_PACKAGES = frozenset({"lightning", "lightning_fabric", "pytorch_lightning"})


def given(node: ast.AST, scope: Scope, context: Context) -> None:
    """`{"accelerator": "gpu"}`, `config["accelerator"] = "gpu"`, `def f(accelerator="gpu")`."""
    word = WORDS[Meaning.ACCELERATOR].literal
    for value in _values(node):
        for each in choices(value):
            if not isinstance(each, ast.Constant) or not isinstance(each.value, str):
                continue
            if word.match(each.value) and imports_any(_PACKAGES, scope):
                _report(each, context)


def _values(node: ast.AST) -> Iterator[ast.expr]:
    """What is given for the accelerator by a node."""
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        yield from (value for key, value in pairs if _is_name(key))
    elif isinstance(node, ast.Assign):
        if any(_is_setting(target) for target in node.targets):
            yield node.value
    elif isinstance(node, ast.AnnAssign):
        if node.value is not None and _is_setting(node.target):
            yield node.value
    elif isinstance(node, ast.Call):
        is_option = any(_is_name(argument) for argument in node.args)
        names = _NAMES | {"default"} if is_option else _NAMES
        yield from (keyword.value for keyword in node.keywords if keyword.arg in names)
    elif isinstance(node, ast.arguments):
        yield from (value for name, value in with_defaults(node) if name.arg in _NAMES)


def _is_setting(target: ast.expr) -> bool:
    if isinstance(target, ast.Subscript):
        return _is_name(target.slice)
    return last_identifier(target) in _NAMES


def _is_name(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value in _NAMES


def _report(value: ast.Constant, context: Context) -> None:
    entry = next(_entries(context), None)
    span = context.span(value)
    if entry is not None and span not in context.reported:
        context.report(entry.rule, span, context.source(value), [], note=entry.note)


def _entries(context: Context) -> Iterator[ParameterEntry]:
    known = context.catalogue.parameters.get("lightning.Trainer", ())
    return (entry for entry in known if entry.meaning is Meaning.ACCELERATOR)
