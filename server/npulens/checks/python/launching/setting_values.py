"""Settings that choose what only CUDA has: `flash_attn=True`, `optim="adamw_bnb_8bit"`.

They are those of files for launching, in Python.
"""

import ast
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from npulens.catalog.tables import Place
from npulens.checks.context import Context
from npulens.checks.device_words import last_identifier
from npulens.checks.given import Given, given_settings
from npulens.checks.other_files.launch_report import LaunchReport
from npulens.checks.other_files.shell_commands import normal_name
from npulens.checks.python.launching.environment import take_over
from npulens.checks.python.libraries import attention_options
from npulens.checks.python.parallelism import lightning_settings
from npulens.syntax.meanings import qualified_names
from npulens.syntax.scopes import Scope
from npulens.syntax.walking import choices
from npulens.text.spans import Span

_WRITTEN = (ast.Constant, ast.IfExp, ast.BoolOp, ast.Attribute)


def given(node: ast.AST, scope: Scope, context: Context) -> None:
    """Settings of transformers, of Lightning, and those of the tables."""
    for setting in given_settings(node):
        attention_options.given(setting, scope, context)
        lightning_settings.given(setting, scope, context)
        if isinstance(node, ast.Call) and setting.name == "load_in_8bit":
            continue  # this has a check of its own, see `library_calls.py`
        if isinstance(setting.value, _WRITTEN) and _is_of_tables(setting.name, context):
            _look_up(setting, node, scope, context)


def _look_up(setting: Given, node: ast.AST, scope: Scope, context: Context) -> None:
    """Report a setting of the tables, if its value is written.

    What must be near it is looked for in the same call or statement, and among the words of the
    whole module and the libraries that it imports.
    """
    name, place = _normal(setting.name), context.span(setting.place)
    statement = setting.place if isinstance(node, ast.arguments) else node
    words = (*context.facts.signs.decisive_words, *context.lookups.import_roots)
    around = " ".join((context.source(statement), *sorted(words)))
    operands = setting.value.values if isinstance(setting.value, ast.BoolOp) else [setting.value]
    for each in (choice for operand in operands for choice in choices(operand)):
        for value in _values(each, scope):
            report = LaunchReport(context.code.text, context.catalogue, context.target, around)
            inner, whole = _inner(each, value, context), context.span(each)
            report.look_up(Place.SETTING, name, value, place, inner)
            found = (replace(f, span=whole) if f.span == inner else f for f in report.findings)
            take_over(found, context)


def _inner(node: ast.expr, value: str, context: Context) -> Span:
    """Where a value is written: of a string without its quotes, between which a fix writes."""
    span = context.span(node)
    inner = Span(span.start + 1, span.end - 1)
    return inner if context.code.text[slice(*inner)] == value else span


def _values(node: ast.expr, scope: Scope) -> Iterable[str]:
    """A constant, or the qualified name of a member of an enumeration: `OptimizerNames.LION`."""
    if isinstance(node, ast.Constant):
        return [str(node.value)] if _is_short(node.value) else []
    if isinstance(node, ast.Attribute) and (last_identifier(node.value) or "")[:1].isupper():
        return qualified_names(node, scope)
    return []


def _is_short(value: object) -> bool:
    """Whether a value can be one of a table; a number of many digits cannot even be written out."""
    return isinstance(value, (str, bool)) or (isinstance(value, int) and value.bit_length() < 32)


def _is_of_tables(name: str, context: Context) -> bool:
    """Whether a name is that of a setting; in Python `channels_last` is an order of dimensions."""
    known = context.catalogue.launch_names.get(Place.SETTING)
    normal = _normal(name)
    return known is not None and bool(known.of(normal)) and not normal.endswith("channels_last")


@lru_cache(maxsize=8_192)
def _normal(name: str) -> str:
    """A name as the tables have it; most occur in a project many times."""
    return normal_name(name.lstrip("-"))
