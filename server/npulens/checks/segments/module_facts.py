"""What a segment must know of the rest of its module, gathered from all segments."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from npulens.catalog.model import MigrationStyle, Shim, Target
from npulens.catalog.tables import CHECKED_WORDS, Catalogue
from npulens.checks.segments.author_evidence import NO_EVIDENCE, Evidence, evidence_of
from npulens.checks.segments.module_words import checked_for_none
from npulens.checks.segments.own_extensions import OwnExtensions
from npulens.checks.segments.segment import Segment
from npulens.syntax.other_modules import OtherModules
from npulens.verdicts.conditions import Known
from npulens.verdicts.optional_names import missing_names, with_what_needs_them

_GPU_WORDS = ("cuda", "nccl", "lightning")
"""One of them stands in every module whose strings matter; Lightning also calls devices `gpu`."""


@dataclass(frozen=True, slots=True)
class ModuleFacts:
    """What a segment must know of the rest of its module.

    Attributes:
        shimmed: The module imports `transfer_to_npu`, or its scripts or the whole project do.
        unpatched_names: Names that the module took from torch before the shim was imported.
        shim_can_move: It imports the shim in a statement of its own.
        device_names: Names that are given to something that takes a device.
        compared_names: Other names, compared with another device: very likely they hold one.
        backend_names: Names that are given to something that makes a process group.
        backend_types: Names of `Literal[...]` types with backends, which callers rely on.
        tensor_method_overrides: Method names that classes of this module define.
        imports_torch: The module imports torch at module level.
        imports_torch_npu: It imports torch_npu, or something from it, at module level.
        aliases: Names that stand for something a table may know.
        said: Words anywhere in the module that decide elsewhere, see `module_words.said_in`.
        checked_for_none: Names that it compares with `None`, if it asks for compute capabilities.
        evidence: What its text tells of its author's intentions.
        trains: The module is a script that is run and holds a training loop.
        pins_memory: A loader of the module asks for pinned memory.
        asks_for_npu: The module has a function that says whether an NPU is available.
        device_functions: Functions of the module that say which device is used, and know the NPU.
        devices_elsewhere: Those of other modules of the project.
        extensions: Extension modules that the project builds of CUDA code.
        missing_names: Names that are `None` or false on an NPU, where their library is not there.
        optional_names: These, and those of libraries that an NPU has in builds of their own.
        names_gpus: It holds "cuda", "nccl" or "lightning" somewhere.
        classes_elsewhere: Classes of other modules of the project, with those of their methods
            that tensors have, too.
    """

    shimmed: bool
    unpatched_names: frozenset[str]
    shim_can_move: bool
    device_names: frozenset[str]
    compared_names: frozenset[str]
    backend_names: frozenset[str]
    backend_types: frozenset[str]
    tensor_method_overrides: frozenset[str]
    asks_for_npu: bool
    names_gpus: bool
    imports_torch: bool
    imports_torch_npu: bool
    aliases: frozenset[str]
    classes_elsewhere: OtherModules[frozenset[str]]
    device_functions: frozenset[str]
    devices_elsewhere: OtherModules[bool]
    extensions: OwnExtensions
    missing_names: frozenset[str] = frozenset()
    optional_names: frozenset[str] = frozenset()
    said: frozenset[str] = frozenset()
    checked_for_none: frozenset[str] = frozenset()
    evidence: Evidence = NO_EVIDENCE
    trains: bool = False
    pins_memory: bool = False


def known_of(catalogue: Catalogue, target: Target, facts: ModuleFacts) -> Known:
    """What is known for the conditions of a module."""
    return Known(
        catalogue.conditions,
        target.torch_version,
        target.project.absent(catalogue.missing_libraries),
        facts.missing_names,
        facts.device_functions,
        facts.devices_elsewhere,
    )


def module_facts(
    segments: Sequence[Segment],
    target: Target,
    triggers: frozenset[str],
    path: str,
    catalogue: Catalogue,
) -> ModuleFacts:
    """What the segments of a module tell each other, apart from the values of names."""
    absent = target.project.absent
    in_file = any(p.imports.shim.shimmed for p in segments)
    is_there = target.shim in (Shim.ACTIVE, Shim.LATE)
    by_others = target.style is MigrationStyle.RUNTIME_SHIM or is_there
    # Where no device is written, or no backend, nobody needs the names that could hold one.
    with_devices = segments if any("cuda" in s.triggers for s in segments) else ()
    with_backends = segments if any("nccl" in s.triggers for s in segments) else ()
    device_names = _union(s.device_uses.device_names for s in with_devices)
    return ModuleFacts(
        shimmed=in_file or by_others,
        unpatched_names=(
            _unpatched_names(segments)
            if target.shim is Shim.LATE or (in_file and not is_there)
            else frozenset()
        ),
        shim_can_move=any(p.imports.shim.statement is not None for p in segments),
        device_names=device_names,
        compared_names=_union(s.device_uses.compared_names for s in with_devices) - device_names,
        backend_names=_union(s.device_uses.backend_names for s in with_backends),
        backend_types=_union(s.device_uses.backend_types for s in with_backends),
        tensor_method_overrides=_union(p.signs.methods for p in segments),
        asks_for_npu=any(p.signs.asks_for_npu for p in segments),
        names_gpus=any(w in p.words.joined for p in segments for w in _GPU_WORDS),
        imports_torch=any(p.imports.torch is not None for p in segments),
        imports_torch_npu=any(p.imports.has_plugin for p in segments),
        aliases=_aliases(segments, triggers),
        trains=_trains(segments),
        pins_memory=any(p.signs.pins_memory for p in segments),
        classes_elsewhere=OtherModules(target.project.tensor_method_overrides, path),
        device_functions=_union(p.signs.device_functions for p in segments),
        devices_elsewhere=OtherModules(target.project.device_functions, path),
        extensions=OwnExtensions(OtherModules(target.project.extension_names, path)),
        missing_names=_missing_names(segments, absent(catalogue.missing_libraries)),
        optional_names=_missing_names(segments, absent(catalogue.optional_libraries)),
        said=_union(p.signs.said for p in segments),
        checked_for_none=_checked_for_none(segments),
        evidence=evidence_of(
            [segment.words for segment in segments],
            _union(p.triggers & CHECKED_WORDS for p in segments),
        ),
    )


def _union(found: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*found)


def _missing_names(segments: Sequence[Segment], missing: frozenset[str]) -> frozenset[str]:
    """Names that are nothing on an NPU, where their library is not there."""
    names: set[str] = set()
    for segment in segments:
        if "except" in segment.parsed.text and not missing.isdisjoint(segment.words.identifiers):
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
    """Names of the module that stand for something a table may know: `c` for `torch.cuda`."""
    mentions = [pair for segment in segments for pair in segment.mentions.items() if pair[1]]
    known: set[str] = set(triggers)
    aliases: set[str] = set()
    before = -1
    while before != len(aliases):
        before = len(aliases)
        aliases.update(name for name, words in mentions if not words.isdisjoint(known))
        known |= aliases
    return frozenset(aliases)
