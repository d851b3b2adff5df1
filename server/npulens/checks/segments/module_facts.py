"""What a segment must know of the rest of its module, gathered from all segments."""

import re
from collections.abc import Iterator, Sequence
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
_DEVICE_USE = re.compile(
    r"(?:\.to\(|\bdevice\s*=\s*|(?<=torch\.)device\(|map_location\s*=\s*)(?:\w+\.)*(\w+)\s*[,)]"
)
_DEVICE_TAKERS = (".to(", "device", "map_location")
"""What such a use begins with, which is searched for first."""
_OTHER_DEVICES = frozenset({"cpu", "mps", "xpu", "hpu", "mlu", "tpu"})
_COMPARED = re.compile(rf"= [\"'](?:{'|'.join(sorted(_OTHER_DEVICES))})[\"']")
_NAME_BEFORE = re.compile(r"([A-Za-z_]\w*)(?:\.lower\(\))? [=!]\Z")
_LONGEST_NAME = 80
_BACKEND_USE = re.compile(
    r"(?:\binit_process_group\(\s*|\binit_distributed\(\s*|\b\w*backend\s*=\s*)"
    r"(?:\w+\.)*([A-Za-z_]\w*)\s*[,)]"
)
_BACKEND_TYPE = re.compile(
    r"^(\w+)(?:[^\w=\n][^=\n]*)?=\s*(?:\w+\.)?Literal\[[^\]]*[\"']nccl[\"']", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class ModuleFacts:
    """What a segment must know of the rest of its module.

    Attributes:
        shimmed: The module imports `transfer_to_npu`, or its scripts or the whole project do.
        unpatched_names: Names that the module took from torch before the shim was imported.
        shim_can_move: It imports the shim in a statement of its own.
        device_names: Names that are handed to something that takes a device.
        compared_names: Other names, compared with another device: very likely they hold one.
        backend_names: Names that are handed to something that makes a process group.
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
    in_file = any(p.shim.shimmed for p in segments)
    is_there = target.shim in (Shim.ACTIVE, Shim.LATE)
    by_others = target.style is MigrationStyle.RUNTIME_SHIM or is_there
    backend_names, backend_types = _backend_names(segments)
    return ModuleFacts(
        shimmed=in_file or by_others,
        unpatched_names=(
            _unpatched_names(segments)
            if target.shim is Shim.LATE or (in_file and not is_there)
            else frozenset()
        ),
        shim_can_move=any(p.shim.statement is not None for p in segments),
        device_names=(device_names := _device_names(segments)),
        compared_names=_compared_names(segments) - device_names,
        backend_names=backend_names,
        backend_types=backend_types,
        tensor_method_overrides=frozenset().union(*(p.methods for p in segments)),
        asks_for_npu=any(p.asks_for_npu for p in segments),
        names_gpus=any(w in p.words.joined for p in segments for w in _GPU_WORDS),
        imports_torch=any(p.torch_import is not None for p in segments),
        imports_torch_npu=any(p.imports_torch_npu for p in segments),
        aliases=_aliases(segments, triggers),
        trains=_trains(segments),
        pins_memory=any(p.pins_memory for p in segments),
        classes_elsewhere=OtherModules(target.project.tensor_method_overrides, path),
        device_functions=frozenset().union(*(p.device_functions for p in segments)),
        devices_elsewhere=OtherModules(target.project.device_functions, path),
        extensions=OwnExtensions(OtherModules(target.project.extension_names, path)),
        missing_names=_missing_names(segments, absent(catalogue.missing_libraries)),
        optional_names=_missing_names(segments, absent(catalogue.optional_libraries)),
        said=frozenset().union(*(p.said for p in segments)),
        checked_for_none=_checked_for_none(segments),
        evidence=evidence_of(
            [segment.words for segment in segments],
            frozenset().union(*(segment.triggers & CHECKED_WORDS for segment in segments)),
        ),
    )


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
        (after if seen else before).update(segment.shim.before)
        after |= segment.shim.after
        seen = seen or segment.shim.shimmed
    return frozenset(before - after)


def _trains(segments: Sequence[Segment]) -> bool:
    """Whether this is a script to run, by `__main__` or a loop of the module, that trains."""
    if not any(p.has_backward for p in segments) or not any(p.runs for p in segments):
        return False
    return not any(name.startswith("test_") for p in segments for name in p.bindings.names)


def _device_names(segments: Sequence[Segment]) -> frozenset[str]:
    """Names handed to something that takes a device; of use only where "cuda" is written."""
    if not any("cuda" in segment.triggers for segment in segments):
        return frozenset()
    for segment in segments:
        if segment.device_names is None:
            places = (at for taker in _DEVICE_TAKERS for at in segment.words.places(taker))
            found = (_DEVICE_USE.match(segment.parsed.text, at) for at in places)
            segment.device_names = frozenset(use[1] for use in found if use is not None)
    return frozenset().union(*(segment.device_names or () for segment in segments))


def _compared_names(segments: Sequence[Segment]) -> frozenset[str]:
    """Names compared with another device; of use only where "cuda" is written."""
    if not any("cuda" in segment.triggers for segment in segments):
        return frozenset()
    for segment in segments:
        if segment.compared_names is None:
            segment.compared_names = frozenset(_compared_with_devices(segment))
    return frozenset().union(*(segment.compared_names or () for segment in segments))


def _compared_with_devices(segment: Segment) -> Iterator[str]:
    """Names that are compared with another device: `if kind == "mps"`."""
    if segment.words.identifiers.isdisjoint(_OTHER_DEVICES):
        return
    text = segment.parsed.text
    for found in _COMPARED.finditer(text):
        before = text[max(found.start() - _LONGEST_NAME, 0) : found.start()]
        if (name := _NAME_BEFORE.search(before)) is not None:
            yield name[1]


def _backend_names(segments: Sequence[Segment]) -> tuple[frozenset[str], frozenset[str]]:
    """Names handed to what makes process groups, and types of backends; of use beside "nccl"."""
    if not any("nccl" in segment.triggers for segment in segments):
        return frozenset(), frozenset()
    for segment in segments:
        if segment.backend_names is None:
            segment.backend_names = frozenset(_BACKEND_USE.findall(segment.parsed.text))
            segment.backend_types = frozenset(_BACKEND_TYPE.findall(segment.parsed.text))
    return (
        frozenset().union(*(segment.backend_names or () for segment in segments)),
        frozenset().union(*(segment.backend_types or () for segment in segments)),
    )


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
