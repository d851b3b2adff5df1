"""Settings that reach Lightning otherwise than as arguments of its call.

They are entries of dictionaries for `Trainer(**settings)`, names, attributes, and defaults of
options, fields and parameters. A module without Lightning may mean anything by them, unless it says
whose they are: `cfg.trainer.accelerator`.
"""

import ast
import re

from npulens.catalog.tables import Meaning
from npulens.checks.context import Context
from npulens.checks.device_words import WORDS, last_identifier
from npulens.checks.given import Given
from npulens.checks.shared_rules import AUTO_ACCELERATOR
from npulens.syntax.scopes import Scope, imports_any
from npulens.syntax.walking import choices

_NAMES = frozenset({"accelerator", "--accelerator"})
_PACKAGES = frozenset({"lightning", "lightning_fabric", "pytorch_lightning"})
_OF_TRAINER = re.compile(r"(?:\A|_)trainer(?:_|\Z)", re.IGNORECASE)


def given(setting: Given, scope: Scope, context: Context) -> None:
    """`{"accelerator": "gpu"}`, `config["accelerator"] = "auto"`, `def f(accelerator="gpu")`."""
    if setting.name not in _NAMES:
        return
    word = WORDS[Meaning.ACCELERATOR].literal
    for each in choices(setting.value):
        if not isinstance(each, ast.Constant) or not isinstance(each.value, str):
            continue
        is_one = word.match(each.value) or each.value == "auto"
        if is_one and (_is_of_trainer(setting.place) or imports_any(_PACKAGES, scope)):
            _report(each, context)


def _is_of_trainer(place: ast.AST) -> bool:
    """`cfg.trainer.accelerator`, `trainer_config["accelerator"]`."""
    if not isinstance(place, (ast.Attribute, ast.Subscript)):
        return False
    return _OF_TRAINER.search(last_identifier(place.value) or "") is not None


def _report(value: ast.Constant, context: Context) -> None:
    known = context.catalogue.parameters.get("lightning.Trainer", ())
    entry = next((entry for entry in known if entry.meaning is Meaning.ACCELERATOR), None)
    span = context.span(value)
    if entry is not None and span not in context.reported.spans:
        is_auto = value.value == "auto"
        rule = context.catalogue.required(AUTO_ACCELERATOR) if is_auto else entry.rule
        note = None if is_auto else entry.note
        context.report(rule, span, context.source(value), [], note=note)
