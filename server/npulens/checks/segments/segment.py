"""One segment of a module: what is read off its text, and what is known of it."""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from npulens.catalog.model import Finding
from npulens.checks.segments.device_uses import DeviceUses
from npulens.checks.segments.fused_answers import FusedAnswers
from npulens.checks.segments.module_words import decisive_words_in, variables_read_in
from npulens.checks.segments.shape_answers import ShapeAnswers
from npulens.fixes.imports import TorchImport, binds_module, imports_module, torch_import
from npulens.fixes.shim_edits import NO_SHIM, ShimUse, may_load_shim, shim_use
from npulens.syntax.bindings import Bindings, bindings_of, global_bindings, walrus_lines
from npulens.syntax.statements import ParsedText
from npulens.syntax.values import Defined
from npulens.syntax.words import Words
from npulens.text.lines import LineMap
from npulens.verdicts.device_answers import device_functions
from npulens.verdicts.npu_words import contains_word, npu_words

_WORD = re.compile(r"[A-Za-z_]\w*")
_GLOBAL = re.compile(r"[ \t]+global \w+(?:,|[ \t]*(?:[#;\n]|\Z))")
_NPU_PROBE = re.compile(r"def (?:\w*[A-Z_])?npu\w*(?:available|\()")
_MAIN = re.compile(r"""^if __name__ == ["']__main__["']""", re.MULTILINE)
_PINNED = re.compile(r"\bpin_memory\s*=\s*True\b")


class TorchImports(NamedTuple):
    """What a segment imports of torch and of its plugin.

    Attributes:
        torch: Its import of torch, if there is one that runs.
        has_plugin: It imports torch_npu, or something from it.
        binds_plugin: It binds the name `torch_npu`.
        shim: Its import of `transfer_to_npu`, and the names it takes from torch before and after.
    """

    torch: TorchImport | None = None
    has_plugin: bool = False
    binds_plugin: bool = False
    shim: ShimUse = NO_SHIM


_NO_IMPORTS = TorchImports()


class SegmentSigns(NamedTuple):
    """What one segment says to the others of its module.

    Attributes:
        checks_for_npu: It defines a function that says whether an NPU is available.
        considers_npu: A top-level `if` or assignment of it is about the NPU, which other statements
            of the module have to be read with; or it uses apex, whose uses are repaired together.
        methods: Names of the methods of its classes.
        device_functions: Its functions that say which device is used, and know the NPU.
        has_backward: It holds a backward pass.
        runs: It checks for `__main__`, or is a loop with a backward pass outside of functions.
        pins_memory: It requests pinned memory.
        decisive_words: Words in it that decide elsewhere in the module, see `module_words.py`.
        variables_read: Environment variables that it reads.
    """

    checks_for_npu: bool
    considers_npu: bool
    methods: frozenset[str]
    device_functions: frozenset[str]
    has_backward: bool
    runs: bool
    pins_memory: bool
    decisive_words: frozenset[str]
    variables_read: frozenset[str]


@dataclass(slots=True)
class Segment:
    """One top-level statement, or a whole file.

    Attributes:
        triggers: The trigger words of the catalogue among them.
        npu_words: Where it names the NPU.
        bindings: The names it binds at module level.
        mentions: For each of these names the words of its value.
        imports: Its imports of torch and of its plugin.
        signs: What else of it counts elsewhere in the module.
        device_uses: Names that it gives to what takes a device.
        fused: What is known of its computations that NPU operators replace.
        shapes: What is known of its shapes that depend on data.
        findings: What was found in it, in offsets from its start, in one state of the module;
            `None` until that is computed.
    """

    parsed: ParsedText
    words: Words
    triggers: frozenset[str]
    npu_words: Sequence[tuple[int, int]]
    bindings: Bindings
    mentions: dict[str, frozenset[str]]
    imports: TorchImports
    signs: SegmentSigns
    device_uses: DeviceUses
    fused: FusedAnswers = field(default_factory=FusedAnswers)
    shapes: ShapeAnswers = field(default_factory=ShapeAnswers)
    findings: list[Finding] | None = None


def with_starts(segments: Iterable[Segment]) -> Iterator[tuple[int, Segment]]:
    """Segments, each with where it starts in the module."""
    start = 0
    for segment in segments:
        yield start, segment
        start += len(segment.parsed.text)


def never_cancel() -> None:
    """What lets an analysis go on to its end."""


def segment_of(parsed: ParsedText, triggers: frozenset[str]) -> Segment:
    """Read off one segment what its tree and text say."""
    words = Words(parsed.text)
    of_npu = npu_words(words)
    bindings = bindings_of(parsed.body, walrus_lines(parsed.text))
    if _has_global(words):
        for name, found in global_bindings(parsed.body).items():
            bindings.names[name] = [*bindings.names.get(name, ()), *found]
    return Segment(
        parsed,
        words,
        _triggers_in(words, triggers),
        of_npu,
        bindings,
        _mentions(bindings),
        _torch_imports(parsed),
        _signs(parsed, bindings, of_npu),
        DeviceUses(words),
    )


def _torch_imports(parsed: ParsedText) -> TorchImports:
    text, body = parsed.text, parsed.body
    if not ("import" in text and "torch" in text) and not may_load_shim(text):
        return _NO_IMPORTS
    has_plugin = "torch_npu" in text
    return TorchImports(
        torch_import(body, parsed.lines),
        has_plugin and imports_module(body, "torch_npu"),
        has_plugin and binds_module(body, "torch_npu"),
        shim_use(body, text, parsed.lines),
    )


def _signs(
    parsed: ParsedText, bindings: Bindings, npu_words: Sequence[tuple[int, int]]
) -> SegmentSigns:
    text = parsed.text
    return SegmentSigns(
        bool(npu_words) and _NPU_PROBE.search(text) is not None,
        "scale_loss" in text or _considers_npu(parsed, npu_words),
        frozenset(_own_methods(bindings)),
        frozenset(device_functions(text)) if "device" in text else frozenset(),
        ".backward(" in text,
        _runs(parsed),
        "pin_memory" in text and _PINNED.search(text) is not None,
        decisive_words_in(text),
        variables_read_in(text),
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


def _considers_npu(parsed: ParsedText, words: Sequence[tuple[int, int]]) -> bool:
    if not words:
        return False
    considered = (
        node.test if isinstance(node, ast.If) else node.targets[0]
        for node in parsed.body
        if isinstance(node, (ast.If, ast.Assign))
    )
    return any(contains_word(words, *parsed.lines.span(node)) for node in considered)


def _own_methods(bindings: Bindings) -> Iterator[str]:
    for binding in chain.from_iterable(bindings.names.values()):
        if isinstance(binding.value, Defined) and binding.value.is_class:
            yield from (name for name, v in binding.value.members if isinstance(v, Defined))


def _has_global(words: Words) -> bool:
    """Whether a function binds names of the module."""
    starts = (words.text.rfind("\n", 0, place) + 1 for place in words.places("global "))
    return any(_GLOBAL.match(words.text, start) is not None for start in starts)


def _triggers_in(words: Words, triggers: frozenset[str]) -> frozenset[str]:
    """Those in a text: with a dot only as attributes, capitals with `_` also as a prefix."""
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
