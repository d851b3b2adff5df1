"""The attention that transformers is told to use: `attn_implementation="flash_attention_2"`."""

import ast
import re
from collections.abc import Iterator

from npulens.catalog.verdicts import Settlement
from npulens.checks.context import Context
from npulens.checks.entries import report_entry
from npulens.checks.words import Word, last_identifier, literals
from npulens.syntax.scopes import Scope

_NEVER = re.compile(r"(?!)")
_ATTENTION = Word(
    old="flash_attention_2",
    new="sdpa",
    identifier=re.compile(r"(?:\A|[._-])attn[_-]implementation\Z"),
    literal=re.compile(r"\Aflash_attention_\d\Z"),
    open_end=_NEVER,
    composed=_NEVER,
    rule="",
    comparison_rule="",
)
_OLD_OPTION = "use_flash_attention_2"
_SETTER = "set_attn_implementation"


def in_call(node: ast.AST, scope: Scope, context: Context) -> None:
    """`from_pretrained(path, attn_implementation=...)`, `add_argument("--attn_implementation")`."""
    assert isinstance(node, ast.Call)
    for keyword in node.keywords:
        if _is_option(keyword.arg):
            _report(keyword.value, scope, context)
        elif keyword.arg == _OLD_OPTION and getattr(keyword.value, "value", None) is True:
            _report_named(_OLD_OPTION, keyword, context)
    if last_identifier(node.func) == _SETTER and node.args:
        _report(node.args[0], scope, context)
    elif node.args and _is_option(getattr(node.args[0], "value", None)):
        for keyword in node.keywords:
            if keyword.arg == "default":
                _report(keyword.value, scope, context)


def assigned(node: ast.AST, scope: Scope, context: Context) -> None:
    """`config._attn_implementation = "flash_attention_2"`, and the field of a dataclass."""
    assert isinstance(node, (ast.Assign, ast.AnnAssign))
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    if node.value is not None and any(_is_option(last_identifier(t)) for t in targets):
        _report(node.value, scope, context)


def dictionary(node: ast.AST, scope: Scope, context: Context) -> None:
    """`{"attn_implementation": "flash_attention_2"}`."""
    assert isinstance(node, ast.Dict)
    for key, value in zip(node.keys, node.values, strict=True):
        if _is_option(getattr(key, "value", None)):
            _report(value, scope, context)


def defaults(node: ast.AST, scope: Scope, context: Context) -> None:
    """`def load(path, attn_implementation="flash_attention_2")`."""
    assert isinstance(node, ast.arguments)
    for parameter, default in _with_defaults(node):
        if _is_option(parameter.arg):
            _report(default, scope, context)


def _with_defaults(node: ast.arguments) -> Iterator[tuple[ast.arg, ast.expr]]:
    positional = [*node.posonlyargs, *node.args]
    yield from zip(positional[len(positional) - len(node.defaults) :], node.defaults, strict=True)
    for parameter, default in zip(node.kwonlyargs, node.kw_defaults, strict=True):
        if default is not None:
            yield parameter, default


def _is_option(name: object) -> bool:
    return isinstance(name, str) and _ATTENTION.identifier.search(name) is not None


def _report(node: ast.expr, scope: Scope, context: Context) -> None:
    for literal, settled in literals(node, _ATTENTION, scope, context):
        assert isinstance(literal, ast.Constant)
        _report_named(str(literal.value), literal, context, settled)


def _report_named(
    name: str, node: ast.expr | ast.keyword, context: Context, settled: Settlement | None = None
) -> None:
    entry = context.catalogue.libraries.get(name)
    if entry is not None and context.span(node) not in context.reported:
        report_entry(node, entry, [], context, settled or context.fallback(node))
