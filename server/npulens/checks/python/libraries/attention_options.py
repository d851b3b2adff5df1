"""The attention that transformers has to use: `attn_implementation="flash_attention_2"`."""

import ast
import re
from functools import lru_cache

from npulens.catalog.settlements import Settlement
from npulens.checks.context import Context
from npulens.checks.device_words import Word, last_identifier, literals
from npulens.checks.entries import report_entry
from npulens.checks.given import Given
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


def given(setting: Given, scope: Scope, context: Context) -> None:
    """`from_pretrained(path, attn_implementation=...)`, `config._attn_implementation = ...`."""
    if _is_option(setting.name):
        _report(setting.value, scope, context)


def in_call(node: ast.Call, scope: Scope, context: Context) -> None:
    """`from_pretrained(path, use_flash_attention_2=True)`, `set_attn_implementation(...)`."""
    for keyword in node.keywords:
        if keyword.arg == _OLD_OPTION and getattr(keyword.value, "value", None) is True:
            _report_named(_OLD_OPTION, keyword, context)
    if last_identifier(node.func) == _SETTER and node.args:
        _report(node.args[0], scope, context)


@lru_cache(maxsize=8_192)
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
    if entry is not None and context.span(node) not in context.reported.spans:
        report_entry(node, entry, [], context, settled or context.fallback(node))
