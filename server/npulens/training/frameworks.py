"""Programs whose training loop is in a library: Lightning, the Trainer of transformers."""

import ast
from typing import NamedTuple

from npulens.syntax.meanings import (
    Instance,
    LocalInstance,
    Qualified,
    Value,
    resolve,
    resolve_name,
)
from npulens.syntax.scopes import Scope, module_of
from npulens.syntax.values import Name
from npulens.training.call_sites import CallSites, Site

_TRAINERS = {
    "pytorch_lightning.Trainer": ("lightning", "pytorch_lightning"),
    "pytorch_lightning.trainer.trainer.Trainer": ("lightning", "pytorch_lightning"),
    "lightning.Trainer": ("lightning", "lightning"),
    "lightning.pytorch.Trainer": ("lightning", "lightning.pytorch"),
    "transformers.Trainer": ("transformers", "transformers"),
    "transformers.Seq2SeqTrainer": ("transformers", "transformers"),
    "trl.SFTTrainer": ("transformers", "transformers"),
    "trl.DPOTrainer": ("transformers", "transformers"),
}
"""The libraries of trainers, and the packages that have their callbacks."""
_OF_TRANSFORMERS = ("transformers.", "trl.")
_DERIVED = frozenset({"Trainer", "Seq2SeqTrainer", "SFTTrainer", "DPOTrainer"})
_OF_FIT = frozenset({"train_dataloaders", "train_dataloader", "val_dataloaders", "datamodule"})
"""What only `fit` of Lightning is given."""
_STARTS = {"lightning": "fit", "transformers": "train"}


class FrameworkRun(NamedTuple):
    """A call that starts the training loop of a library.

    Attributes:
        name: `lightning` or `transformers`.
        package: The package that its trainer is imported from.
        trainer: The expression whose method is called.
    """

    name: str
    package: str
    site: Site
    trainer: ast.expr


def framework_runs(sites: CallSites) -> tuple[FrameworkRun, ...]:
    """The calls of a file that start a library's training loop, in the order of the source."""
    found: list[FrameworkRun] = []
    for site, call in sites.calls():
        function = call.func
        if not isinstance(function, ast.Attribute) or function.attr not in _STARTS.values():
            continue
        values = resolve(function.value, site.scope)
        meant = {_framework(value, site.scope) for value in values}
        is_known = any(_is_object_of_class(value) for value in values)
        if not any(meant) and not is_known and function.attr == _STARTS["lightning"]:
            meant = {_of_lightning(call, function.value, site)}
        found += [
            FrameworkRun(*each, site, function.value)
            for each in meant
            if each is not None and _STARTS[each[0]] == function.attr
        ]
    return tuple(found)


def _of_lightning(call: ast.Call, trainer: ast.expr, site: Site) -> tuple[str, str] | None:
    """Lightning, for a trainer that another file makes: by what `fit` is given."""
    given = {keyword.arg for keyword in call.keywords}
    name: str = getattr(trainer, "attr", getattr(trainer, "id", ""))
    if given.isdisjoint(_OF_FIT) and "trainer" not in name.lower().split("_"):
        return None
    imported = module_of(site.scope).module.names
    for bound in imported:
        for value in resolve_name(Name(bound), site.scope, None):
            full = value.name if isinstance(value, Qualified) else ""
            for package in ("lightning.pytorch", "pytorch_lightning", "lightning"):
                if full == package or full.startswith(f"{package}."):
                    return ("lightning", package)
    return None


def _is_object_of_class(value: Value) -> bool:
    """Whether a value is an object of a class that has a name: the result of a function is not."""
    if isinstance(value, LocalInstance):
        return value.definition.is_class
    return isinstance(value, Instance) and value.name.rpartition(".")[2][:1].isupper()


def _framework(value: Value, scope: Scope) -> tuple[str, str] | None:
    """The library of a trainer; a class of the file that is derived from one is one, too."""
    if isinstance(value, Instance):
        return _TRAINERS.get(value.name)
    if isinstance(value, LocalInstance):
        for base in value.definition.bases:
            for above in resolve_name(base, scope, None):
                if isinstance(above, Qualified) and above.name.startswith(_OF_TRANSFORMERS):
                    found = above.name.rpartition(".")[2]
                    return ("transformers", "transformers") if found in _DERIVED else None
    return None
