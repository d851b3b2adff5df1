"""What a setting is given in Python, by whatever way."""

import ast
from collections.abc import Iterator
from typing import NamedTuple

from npulens.checks.device_words import last_identifier
from npulens.syntax.bindings import with_defaults

_OF_PYDANTIC = "Field"
_FIELDS = frozenset({_OF_PYDANTIC, "field"})


class Given(NamedTuple):
    """A setting: its name, the value, and the node that begins with the name."""

    name: str
    value: ast.expr
    place: ast.AST


def given_settings(node: ast.AST) -> Iterator[Given]:
    """The settings that a node gives.

    They are keywords of calls, defaults of options (`add_argument("--optim", default=...)`), of
    parameters and of fields, entries of dictionaries, and what is assigned to a name, an attribute
    or an entry.
    """
    if isinstance(node, ast.Call):
        yield from _of_call(node)
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield Given(key.value, value, key)
    elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            name = last_identifier(target)
            if name:
                yield Given(name, _default(node.value), target)
    elif isinstance(node, ast.arguments):
        for parameter, value in with_defaults(node):
            yield Given(parameter.arg, value, parameter)


def _default(value: ast.expr) -> ast.expr:
    """The default of a declared field: `optim: str = Field("adamw_8bit", description="...")`."""
    if not isinstance(value, ast.Call) or last_identifier(value.func) not in _FIELDS:
        return value
    first = value.args[:1] if last_identifier(value.func) == _OF_PYDANTIC else []
    named = [keyword.value for keyword in value.keywords if keyword.arg == "default"]
    texts = (each for each in (*named, *first) if isinstance(each, ast.Constant))
    return next((each for each in texts if isinstance(each.value, (str, bool))), value)


def _of_call(node: ast.Call) -> Iterator[Given]:
    for keyword in node.keywords:
        if keyword.arg is not None:
            yield Given(keyword.arg, keyword.value, keyword)
    for keyword in node.keywords:
        if keyword.arg == "default":
            options = (a.value for a in node.args if isinstance(a, ast.Constant))
            names = [o for o in options if isinstance(o, str) and o.startswith("--")]
            yield from (Given(name, keyword.value, keyword) for name in names)
