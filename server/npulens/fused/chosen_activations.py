"""What the configurations that a module knows name by default."""

from collections.abc import Iterator, Mapping
from pathlib import PurePath

from npulens.checks.segments.analysed_module import AnalysedModule
from npulens.syntax.other_modules import OtherModules, member_of
from npulens.syntax.values import Imported


def activations_by_default(module: AnalysedModule) -> Mapping[str, str]:
    """Activations by the attribute of the configuration: `{"hidden_act": "silu"}`.

    Only what all configurations agree on that the module defines or imports.
    """
    known = OtherModules(module.target.project.members.activations, module.path)
    if known.is_empty:
        return {}
    named: dict[str, set[str]] = {}
    for qualified in _classes(module, known):
        for attribute, value in known.find(qualified) or ():
            named.setdefault(attribute, set()).add(value)
    return {attribute: values.pop() for attribute, values in named.items() if len(values) == 1}


def _classes(
    module: AnalysedModule, known: "OtherModules[tuple[tuple[str, str], ...]]"
) -> Iterator[str]:
    """Names of classes as imports have them, those of the module itself among them."""
    own = f".{PurePath(module.path).stem}"
    yield from (member_of(own, name) for name in known.names_in(own))
    for segment in module.segments:
        for bindings in segment.bindings.names.values():
            yield from (b.value.qualified for b in bindings if isinstance(b.value, Imported))
