"""A module in segments: what each top-level statement says to the others and needs of them."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from npulens.catalog.model import Finding, Fix, LocalizedText, MigrationStyle, Shim, Target
from npulens.catalog.tables import CHECKED_WORDS, Catalogue
from npulens.checks.author_evidence import evidence_of
from npulens.checks.context import ModuleFacts
from npulens.checks.module_words import checked_for_none, said_in
from npulens.checks.own_extensions import OwnExtensions
from npulens.fixes.imports import TorchImport, binds_module, imports_module, torch_import
from npulens.fixes.shim_edits import NO_SHIM, ShimUse, shim_use
from npulens.graphs.interfaces import Interface
from npulens.syntax.bindings import Bindings, bindings_of, global_bindings, walrus_lines
from npulens.syntax.other_modules import OtherModules
from npulens.syntax.statements import ParsedText
from npulens.syntax.values import Defined
from npulens.syntax.words import Words
from npulens.text.lines import LineMap
from npulens.text.spans import Span
from npulens.verdicts.device_answers import device_functions
from npulens.verdicts.npu_words import holds_word, npu_words
from npulens.verdicts.optional_names import missing_names, with_what_needs_them

_GPU_WORDS = ("cuda", "nccl", "lightning")
"""One of them stands in every module whose strings matter; Lightning also calls devices `gpu`."""
_WORD = re.compile(r"[A-Za-z_]\w*")
_NPU_PROBE = re.compile(r"def (?:\w*[A-Z_])?npu\w*(?:available|\()")
_MAIN = re.compile(r"""^if __name__ == ["']__main__["']""", re.MULTILINE)
_GLOBAL = re.compile(r"[ \t]+global \w+(?:,|[ \t]*(?:[#;\n]|\Z))")
_PINNED = re.compile(r"\bpin_memory\s*=\s*True\b")
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


class Idiom(NamedTuple):
    """A computation found in a function, and the rule that its pattern belongs to.

    Places of the finding count from the first line of the function.
    """

    function: ast.stmt
    rule: str
    finding: Finding


class Recognition(NamedTuple):
    """What was found in one function.

    Attributes:
        idioms: The computations.
        inlined: Functions that were looked into for one of these, each with its rule: what is
            found there alone is part of a larger computation here.
        rests_on: The functions that were asked for: it holds as long as these are what they were.
    """

    idioms: tuple[Idiom, ...]
    inlined: frozenset[tuple[ast.AST, str]]
    rests_on: frozenset[ast.AST]


class Hint(NamedTuple):
    """Something to show at a place.

    Attributes:
        span: A name that is assigned, or the name of a function.
        home: The function that it stands in, see `Hotspot`.
        shape: The symbolic shape of the name, such as `[?, 4]`; empty for a function.
        is_dynamic: The shape depends on data.
        shapes: How many places of the function make shapes depend on data.
        waits: In how many places the host waits for the device.
        sources: Where the shape of the name comes from, each with its `home`.
    """

    span: Span
    home: str = ""
    shape: str = ""
    is_dynamic: bool = False
    shapes: int = 0
    waits: int = 0
    sources: tuple[tuple[str, Span], ...] = ()


@dataclass(frozen=True, slots=True)
class Hotspot:
    """A place where a shape comes to depend on data, or where the host waits for the device.

    Attributes:
        rule: The name of the rule that it breaks.
        span: The place, in offsets from the first line of its home.
        symbol: Its text, in one line.
        home: `function` or `Class.method` at the top of the module; empty for the segment itself.
        function: `function` or `Class.method` that it stands in.
        cost: How much it hurts in a step, from 0 to 100.
        loops: How many loops of the function are around it.
        is_rare: It is reached every so many steps, or in evaluation only.
        waits: The host waits here.
        is_shape: A shape depends on data from here on.
        advice: What is better.
        used: Where what comes of it is worked on, each with its `home`.
        fixes: Ways to repair it.
    """

    rule: str
    span: Span
    symbol: str
    home: str
    function: str
    cost: int
    loops: int
    is_rare: bool
    waits: bool
    is_shape: bool
    advice: LocalizedText
    used: tuple[tuple[str, Span], ...]
    fixes: tuple[Fix, ...]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What evaluating one function on shapes has found.

    Attributes:
        hotspots: The hotspots, also in functions that it calls.
        hints: The hints.
        rests_on: The functions that were asked for: it holds as long as these are what they were.
        handed: What calls in it hand to methods of their class.
        has_events: Something happened in it.
        from_host: Parameters that were taken to be on the host, with what they hold.
    """

    hotspots: tuple[Hotspot, ...]
    hints: tuple[Hint, ...]
    rests_on: frozenset[ast.AST]
    handed: tuple[object, ...]
    has_events: bool
    from_host: Mapping[str, object]


DescribedFunction = tuple[str, frozenset[str], bool, bool, bool]
"""What the call graph knows of a function; the shapes have a name for each part."""


@dataclass(slots=True)
class Segment:
    """One top-level statement, or a whole file.

    Attributes:
        parsed: Its text and tree.
        bindings: The names it binds at module level.
        mentions: For each of these names the words of its value.
        triggers: The trigger words of the catalogue that stand in the text.
        torch_import: Its import of torch, if there is one that runs.
        imports_torch_npu: It imports torch_npu, or something from it.
        binds_torch_npu: It binds the name `torch_npu`.
        shim: Its import of `transfer_to_npu`, and the names it takes from torch before and after.
        asks_for_npu: It defines a function that says whether an NPU is available.
        weighs_npu: A top-level `if` or assignment of it is about the NPU, which other statements
            of the module have to be read with; or it uses apex, whose uses are repaired together.
        words: The words in its text.
        has_backward: It holds a backward pass.
        runs: It asks for `__main__`, or is a loop with a backward pass outside of functions.
        pins_memory: It asks for pinned memory.
        said: Words in it that decide elsewhere in the module, see `module_words.said_in`.
        npu_words: Where it names the NPU.
        device_names: Names handed to something that takes a device; `None` until asked for.
        compared_names: Names that are compared with another device; `None` until asked for.
        backend_names: The same as `device_names` for process groups.
        backend_types: Names of `Literal[...]` types with backends.
        methods: Names of the methods of its classes.
        device_functions: Its functions that say which device is used, and know the NPU.
        word_places: Where words of computations stand that NPU operators replace, each with the
            word; `None` until asked.
        parts: Its functions and classes that hold such words; `None` until asked.
        recognized: The computations found in it, by the nodes of its functions; `None` until
            they are looked for.
        recognized_before: What was found in them before an edit.
        asked: The interfaces that these rest on, by name.
        hotspots: The dynamic shapes found from its functions on; `None` until that is known.
        quiet_hotspots: Those found from functions of which nothing is told.
        looked_through: The functions they were looked for in, by name: whether nothing is told.
        hints: What an editor can show of shapes besides.
        evaluations: What was found from each of its functions on, by node.
        sources: Where words of sources of dynamic shapes stand; `None` until asked for.
        looked_up: The interfaces that its hotspots rest on, by name.
        described: Its functions with what they call; `None` until asked for.
        findings: What was found in it, in offsets from its start, in one state of the module;
            `None` until that is computed.
    """

    parsed: ParsedText
    bindings: Bindings
    mentions: dict[str, frozenset[str]]
    triggers: frozenset[str]
    torch_import: TorchImport | None
    imports_torch_npu: bool
    binds_torch_npu: bool
    shim: ShimUse
    asks_for_npu: bool
    methods: frozenset[str]
    device_functions: frozenset[str]
    weighs_npu: bool
    npu_words: Sequence[tuple[int, int]]
    words: Words
    has_backward: bool = False
    runs: bool = False
    pins_memory: bool = False
    said: frozenset[str] = frozenset()
    device_names: frozenset[str] | None = None
    compared_names: frozenset[str] | None = None
    backend_names: frozenset[str] | None = None
    backend_types: frozenset[str] | None = None
    word_places: Sequence[tuple[int, str]] | None = None
    parts: Mapping[str, object] | None = None
    recognized: dict[ast.AST, Recognition] | None = None
    recognized_before: dict[ast.AST, Recognition] = field(default_factory=dict)
    asked: dict[str, Interface | None] = field(default_factory=dict)
    hotspots: tuple[Hotspot, ...] | None = None
    quiet_hotspots: tuple[Hotspot, ...] = ()
    looked_through: dict[str, bool] = field(default_factory=dict)
    hints: tuple[Hint, ...] = ()
    sources: object = None
    evaluations: dict[ast.AST, Evaluation] = field(default_factory=dict)
    looked_up: dict[str, Interface | None] = field(default_factory=dict)
    described: tuple[DescribedFunction, ...] | None = None
    findings: list[Finding] | None = None

    def take_over(self, before: "Segment") -> None:
        """Keep what holds for functions that an edit of one statement has left as they were."""
        self.evaluations, self.looked_up = before.evaluations, before.looked_up
        known = before.recognized_before if before.recognized is None else before.recognized
        self.recognized_before, self.asked = known, before.asked


def never_cancel() -> None:
    """What lets an analysis go on to its end."""


def segment_of(parsed: ParsedText, triggers: frozenset[str]) -> Segment:
    """Read off one segment what its tree and text tell."""
    text = parsed.text
    has_torch = ("import" in text and "torch" in text) or "TORCH_TRANSFER_TO_NPU" in text
    has_plugin = has_torch and "torch_npu" in text
    lines = parsed.lines if has_torch else None
    words = Words(text)
    of_npu = npu_words(words)
    bindings = bindings_of(parsed.body, walrus_lines(text))
    if _has_global(words):
        for name, found in global_bindings(parsed.body).items():
            bindings.names[name] = [*bindings.names.get(name, ()), *found]
    return Segment(
        parsed,
        bindings,
        _mentions(bindings),
        _triggers_in(words, triggers),
        None if lines is None else torch_import(parsed.body, lines),
        has_plugin and imports_module(parsed.body, "torch_npu"),
        has_plugin and binds_module(parsed.body, "torch_npu"),
        NO_SHIM if lines is None else shim_use(parsed.body, text, lines),
        bool(of_npu) and _NPU_PROBE.search(text) is not None,
        frozenset(_own_methods(bindings)),
        frozenset(device_functions(text)) if "device" in text else frozenset(),
        "scale_loss" in text or _weighs_npu(parsed, of_npu),
        of_npu,
        words,
        has_backward=".backward(" in text,
        runs=_runs(parsed),
        pins_memory="pin_memory" in text and _PINNED.search(text) is not None,
        said=said_in(text),
    )


def _runs(parsed: ParsedText) -> bool:
    if "__main__" in parsed.text and _MAIN.search(parsed.text) is not None:
        return True
    return ".backward(" in parsed.text and any(
        isinstance(node, (ast.For, ast.While)) and ".backward(" in _lines_of(node, parsed.lines)
        for node in parsed.body
    )


def _lines_of(node: ast.stmt, lines: LineMap) -> str:
    """The text of a statement, its first line as a whole."""
    start = lines.offset(node.lineno, 0)
    return lines.text[start : lines.offset(node.end_lineno or 0, node.end_col_offset or 0)]


def _has_global(words: Words) -> bool:
    """Whether a function binds names of the module."""
    starts = (words.text.rfind("\n", 0, place) + 1 for place in words.places("global "))
    return any(_GLOBAL.match(words.text, start) is not None for start in starts)


def _triggers_in(words: Words, triggers: frozenset[str]) -> frozenset[str]:
    """Those that stand in a text; one with a dot before it counts only where the dot is.

    One in capitals with `_` behind it stands for all names that begin so.
    """
    as_attributes = (
        f".{word}"
        for word in _dotted(triggers) & words.identifiers
        if any(words.text[place - 1 : place] == "." for place in words.places_alone(word))
    )
    prefixes = (prefix for prefix in _prefixes(triggers) if prefix in words.joined)
    longer = (n for prefix in prefixes for n in words.identifiers if n.startswith(prefix))
    return (triggers & words.identifiers).union(as_attributes, longer)


@lru_cache(maxsize=8)
def _dotted(triggers: frozenset[str]) -> frozenset[str]:
    """Those of some words that have a dot before them, without it."""
    return frozenset(word[1:] for word in triggers if word.startswith("."))


@lru_cache(maxsize=8)
def _prefixes(triggers: frozenset[str]) -> tuple[str, ...]:
    return tuple(word for word in triggers if word.endswith("_") and word.isupper())


def _weighs_npu(parsed: ParsedText, words: Sequence[tuple[int, int]]) -> bool:
    if not words:
        return False
    lines = parsed.lines
    asked = [
        node.test if isinstance(node, ast.If) else node.targets[0]
        for node in parsed.body
        if isinstance(node, (ast.If, ast.Assign))
    ]
    return any(
        holds_word(
            words,
            lines.offset(node.lineno, node.col_offset),
            lines.offset(node.end_lineno or 0, node.end_col_offset or 0),
        )
        for node in asked
    )


def _mentions(bindings: Bindings) -> dict[str, frozenset[str]]:
    """The words in what each name is bound to; members of classes go by `.member`."""
    mentions: dict[str, frozenset[str]] = {}
    for name, found in bindings.names.items():
        words: set[str] = set()
        for binding in found:
            value = binding.value
            if not isinstance(value, Defined):
                words.update(_words((value,)))
                continue
            words.update(_words((value.bases,)))
            for member, given in value.members:
                if isinstance(given, Defined):  # a method, as almost all are
                    mentions.setdefault(f".{member}", frozenset())
                    continue
                in_member = frozenset(_words((given,))) - {member}
                words |= in_member
                mentions[f".{member}"] = mentions.get(f".{member}", frozenset()) | in_member
        mentions[name] = mentions.get(name, frozenset()) | words
    return mentions


def _words(values: Iterable[object]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield from (value,) if value.isidentifier() else _WORD.findall(value)
        elif isinstance(value, tuple):
            yield from _words(value)


def _own_methods(bindings: Bindings) -> Iterator[str]:
    for found in bindings.names.values():
        for binding in found:
            if isinstance(binding.value, Defined) and binding.value.is_class:
                yield from (
                    name for name, value in binding.value.members if isinstance(value, Defined)
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
        classes_elsewhere=OtherModules(target.project.members.method_overrides, path),
        device_functions=frozenset().union(*(p.device_functions for p in segments)),
        devices_elsewhere=OtherModules(target.project.members.device_functions, path),
        extensions=OwnExtensions(OtherModules(target.project.extensions.names, path)),
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
