"""What a segment must know of the rest of its module, gathered from all segments."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from npulens.catalog.model import MigrationStyle, Shim, Target
from npulens.catalog.tables import CHECKED_WORDS, Catalogue
from npulens.checks.segments.author_evidence import Evidence, evidence_of
from npulens.checks.segments.module_words import NPU_SOFTWARE, checked_for_none
from npulens.checks.segments.own_extensions import OwnExtensions
from npulens.checks.segments.segment import Segment
from npulens.syntax.other_modules import OtherModules
from npulens.verdicts.optional_names import missing_names, with_what_needs_them

_GPU_WORDS = ("cuda", "nccl", "lightning")
"""One of them is in every module whose strings matter; Lightning also calls devices `gpu`."""


_ALONE = re.compile(r"[\"'](?:cuda|nccl)[\"']")
_ALONE_WORDS = frozenset({"cuda", "nccl"})


class ShimFacts(NamedTuple):
    """Whether `transfer_to_npu` makes names of CUDA work.

    Attributes:
        is_active: The module imports it, or its scripts or the whole project do.
        is_adapted: They do so through an adaptor of MindSpeed, which patches more.
        unpatched_names: Names that the module took from torch before it was imported.
        can_move: The module imports it in a statement of its own.
    """

    is_active: bool
    is_adapted: bool
    unpatched_names: frozenset[str]
    can_move: bool


class OwnDefinitions(NamedTuple):
    """What the project defines itself and this module may use.

    Attributes:
        tensor_method_overrides: Method names that classes of this module define.
        classes_elsewhere: Classes of other modules of the project, with those of their methods
            that tensors have, too.
        device_functions: Functions of the module that say which device is used, and know the NPU.
        devices_elsewhere: Those of other modules of the project.
        extensions: Extension modules that the project builds of CUDA code.
    """

    tensor_method_overrides: frozenset[str]
    classes_elsewhere: OtherModules[frozenset[str]]
    device_functions: frozenset[str]
    devices_elsewhere: OtherModules[bool]
    extensions: OwnExtensions


class ModuleSigns(NamedTuple):
    """What the text of a module says of it and of its author's intentions.

    Attributes:
        checks_for_npu: It has a function that says whether an NPU is available.
        names_gpus: It holds "cuda", "nccl" or "lightning" somewhere.
        trains: It is a script that is run and holds a training loop.
        pins_memory: A loader of it requests pinned memory.
        decisive_words: Words anywhere in it that decide elsewhere, see `module_words.py`.
        variables_read: Environment variables that it reads, and so may have made up.
        checked_for_none: Names that it compares with `None`, if it reads compute capabilities.
        evidence: What else it says of its author's intentions.
    """

    checks_for_npu: bool
    names_gpus: bool
    trains: bool
    pins_memory: bool
    decisive_words: frozenset[str]
    variables_read: frozenset[str]
    checked_for_none: frozenset[str]
    evidence: Evidence

    @property
    def names_npu_software(self) -> bool:
        """Whether torch_npu or msprobe is named in it."""
        return not NPU_SOFTWARE.isdisjoint(self.decisive_words)


@dataclass(frozen=True, slots=True)
class ModuleFacts:
    """What a segment must know of the rest of its module.

    Attributes:
        shim: Whether `transfer_to_npu` makes names of CUDA work.
        own: What the project defines itself.
        signs: What the text of the module says of it.
        device_names: Names that are given to something that takes a device.
        compared_names: Other names, compared with another device: very likely they hold one.
        backend_names: Names that are given to something that makes a process group.
        backend_types: Names of `Literal[...]` types with backends, which callers rely on.
        own_names: Names that are given words which are no devices, too.
        device_tables: Names of tables in which a device is looked up.
        accelerator_names: Names that are given the type of the accelerator that is there.
        imports_torch: The module imports torch at module level.
        imports_torch_npu: It imports torch_npu, or something from it, at module level.
        aliases: Names that represent something a table may know.
        missing_names: Names that are `None` or false on an NPU, where their library is not there.
        optional_names: These, and those of libraries that an NPU has in builds of their own.
        is_on_host: It is run by scripts alone that name no device.
    """

    shim: ShimFacts
    own: OwnDefinitions
    signs: ModuleSigns
    device_names: frozenset[str]
    compared_names: frozenset[str]
    backend_names: frozenset[str]
    backend_types: frozenset[str]
    own_names: frozenset[str]
    device_tables: frozenset[str]
    accelerator_names: frozenset[str]
    imports_torch: bool
    imports_torch_npu: bool
    aliases: frozenset[str]
    missing_names: frozenset[str]
    optional_names: frozenset[str]
    is_on_host: bool


def module_facts(
    segments: Sequence[Segment],
    target: Target,
    triggers: frozenset[str],
    path: str,
    catalogue: Catalogue,
) -> ModuleFacts:
    """What the segments of a module have to know of each other, but for the values of names."""
    project = target.project
    # Where no device is written, or no backend, nobody needs the names that could hold one.
    with_devices = segments if any("cuda" in s.triggers for s in segments) else ()
    with_backends = segments if any("nccl" in s.triggers for s in segments) else ()
    device_names = _union(s.device_uses.device_names for s in with_devices)
    return ModuleFacts(
        shim=_shim_facts(segments, target),
        own=OwnDefinitions(
            _union(s.signs.methods for s in segments),
            OtherModules(project.members.method_overrides, path),
            _union(s.signs.device_functions for s in segments),
            OtherModules(project.members.device_functions, path),
            OwnExtensions(OtherModules(project.extensions.names, path)),
        ),
        signs=_signs(segments),
        device_names=device_names,
        compared_names=_union(s.device_uses.compared_names for s in with_devices) - device_names,
        backend_names=_union(s.device_uses.backend_names for s in with_backends),
        backend_types=_union(s.device_uses.backend_types for s in with_backends),
        own_names=_union(s.device_uses.own_names for s in _with_words(segments)),
        device_tables=_union(s.device_uses.device_tables for s in with_devices),
        accelerator_names=_union(s.device_uses.accelerator_names for s in with_devices),
        imports_torch=any(s.imports.torch is not None for s in segments),
        imports_torch_npu=any(s.imports.has_plugin for s in segments),
        aliases=_aliases(segments, triggers),
        missing_names=_missing_names(segments, project.absent(catalogue.missing_libraries)),
        optional_names=_missing_names(segments, project.absent(catalogue.optional_libraries)),
        is_on_host=path in project.on_host,
    )


def _with_words(segments: Sequence[Segment]) -> Sequence[Segment]:
    """The segments, if one of them has a word for a device or a backend by itself."""
    named = (s for s in segments if not _ALONE_WORDS.isdisjoint(s.words.identifiers))
    return segments if any(_ALONE.search(s.parsed.text) for s in named) else ()


def _shim_facts(segments: Sequence[Segment], target: Target) -> ShimFacts:
    in_file = any(s.imports.shim.shimmed for s in segments)
    is_there = target.shim in (Shim.ACTIVE, Shim.ADAPTED, Shim.LATE)
    comes_late = target.shim is Shim.LATE or (in_file and not is_there)
    return ShimFacts(
        in_file or is_there or target.style is MigrationStyle.RUNTIME_SHIM,
        target.shim is Shim.ADAPTED or any(s.imports.shim.adapted for s in segments),
        _unpatched_names(segments) if comes_late else frozenset(),
        any(s.imports.shim.statement is not None for s in segments),
    )


def _signs(segments: Sequence[Segment]) -> ModuleSigns:
    words = [segment.words for segment in segments]
    return ModuleSigns(
        any(s.signs.checks_for_npu for s in segments),
        any(gpu in each.joined for each in words for gpu in _GPU_WORDS),
        _trains(segments),
        any(s.signs.pins_memory for s in segments),
        _union(s.signs.decisive_words for s in segments),
        _union(s.signs.variables_read for s in segments),
        _checked_for_none(segments),
        evidence_of(words, _union(s.triggers & CHECKED_WORDS for s in segments)),
    )


def _union(found: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*found)


def _missing_names(segments: Sequence[Segment], missing: frozenset[str]) -> frozenset[str]:
    """Names that are nothing on an NPU, where their library is not there."""
    names: set[str] = set()
    for segment in segments:
        words = segment.words.identifiers
        if "except" in words and not missing.isdisjoint(words):
            names.update(missing_names(segment.parsed.body, missing))
    for segment in segments:
        if names or "find_spec" in segment.words.identifiers:
            names = with_what_needs_them(segment.parsed.body, names, missing)
    return frozenset(names)


def _checked_for_none(segments: Sequence[Segment]) -> frozenset[str]:
    """Names that are compared with `None`; of use only beside compute capabilities."""
    if not any("get_device_capability" in segment.words.identifiers for segment in segments):
        return frozenset()
    return checked_for_none(segment.parsed.text for segment in segments)


def _unpatched_names(segments: Sequence[Segment]) -> frozenset[str]:
    """Names taken from torch before the shim is imported, and not again after."""
    before: set[str] = set()
    after: set[str] = set()
    seen = False
    for segment in segments:
        (after if seen else before).update(segment.imports.shim.before)
        after |= segment.imports.shim.after
        seen = seen or segment.imports.shim.shimmed
    return frozenset(before - after)


def _trains(segments: Sequence[Segment]) -> bool:
    """Whether this is a script to run, by `__main__` or a loop of the module, that trains."""
    if not any(p.signs.has_backward for p in segments) or not any(p.signs.runs for p in segments):
        return False
    return not any(name.startswith("test_") for p in segments for name in p.bindings.names)


def _aliases(segments: Sequence[Segment], triggers: frozenset[str]) -> frozenset[str]:
    """Names of the module that represent something a table may know: `c` for `torch.cuda`."""
    mentions = [pair for segment in segments for pair in segment.mentions.items() if pair[1]]
    known: set[str] = set(triggers)
    aliases: set[str] = set()
    before = -1
    while before != len(aliases):
        before = len(aliases)
        aliases.update(name for name, words in mentions if not words.isdisjoint(known))
        known |= aliases
    return frozenset(aliases)
