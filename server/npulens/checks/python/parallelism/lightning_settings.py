"""Settings that reach Lightning otherwise than as arguments of its call.

They are entries of dictionaries for `Trainer(**settings)`, names, attributes, and defaults of
options, fields and parameters. A module without Lightning may mean anything by them.
"""

import ast

from npulens.catalog.tables import Meaning
from npulens.checks.context import Context
from npulens.checks.device_words import WORDS
from npulens.checks.given import Given
from npulens.checks.shared_rules import AUTO_ACCELERATOR
from npulens.syntax.scopes import Scope, imports_any
from npulens.syntax.walking import choices

_NAMES = frozenset({"accelerator", "--accelerator"})
_PACKAGES = frozenset({"lightning", "lightning_fabric", "pytorch_lightning"})


def given(setting: Given, scope: Scope, context: Context) -> None:
    """`{"accelerator": "gpu"}`, `config["accelerator"] = "auto"`, `def f(accelerator="gpu")`."""
    if setting.name not in _NAMES:
        return
    word = WORDS[Meaning.ACCELERATOR].literal
    for each in choices(setting.value):
        if not isinstance(each, ast.Constant) or not isinstance(each.value, str):
            continue
        if (word.match(each.value) or each.value == "auto") and imports_any(_PACKAGES, scope):
            _report(each, context)


def _report(value: ast.Constant, context: Context) -> None:
    known = context.catalogue.parameters.get("lightning.Trainer", ())
    entry = next((entry for entry in known if entry.meaning is Meaning.ACCELERATOR), None)
    span = context.span(value)
    if entry is not None and span not in context.reported.spans:
        is_auto = value.value == "auto"
        rule = context.catalogue.required(AUTO_ACCELERATOR) if is_auto else entry.rule
        note = None if is_auto else entry.note
        context.report(rule, span, context.source(value), [], note=note)
