"""Programs whose training loop is in a library: Lightning, the Trainer of transformers."""

import ast
from typing import NamedTuple

from npulens.syntax.meanings import Instance, LocalInstance, Value, resolve
from npulens.training.call_sites import CallSites, Site

_TRAINERS = {
    "pytorch_lightning.Trainer": "lightning",
    "lightning.Trainer": "lightning",
    "lightning.pytorch.Trainer": "lightning",
    "transformers.Trainer": "transformers",
    "transformers.Seq2SeqTrainer": "transformers",
    "trl.SFTTrainer": "transformers",
    "trl.DPOTrainer": "transformers",
}
_STARTS = {"lightning": "fit", "transformers": "train"}


class FrameworkRun(NamedTuple):
    """A call that starts the training loop of a library.

    Attributes:
        name: `lightning` or `transformers`.
        trainer: The expression whose method is called.
    """

    name: str
    site: Site
    trainer: ast.expr


def framework_runs(sites: CallSites) -> tuple[FrameworkRun, ...]:
    """The calls of a file that start a library's training loop, in the order of the source."""
    found: list[FrameworkRun] = []
    for site, call in sites.calls():
        function = call.func
        if not isinstance(function, ast.Attribute) or function.attr not in _STARTS.values():
            continue
        names = {_framework(value) for value in resolve(function.value, site.scope)}
        started = (name for name in names if name and _STARTS[name] == function.attr)
        found += [FrameworkRun(name, site, function.value) for name in started]
    return tuple(found)


def _framework(value: Value) -> str | None:
    """The library of a trainer; a class of the file that is derived from one is one, too."""
    if isinstance(value, Instance):
        return _TRAINERS.get(value.name)
    if isinstance(value, LocalInstance):
        bases = [".".join((base.root, *base.path)) for base in value.definition.bases]
        if (
            any(
                base.endswith(("Seq2SeqTrainer", "SFTTrainer", "transformers.Trainer"))
                for base in bases
            )
            or "Trainer" in bases
        ):
            return "transformers"
    return None
