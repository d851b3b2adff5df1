"""Where a text names the NPU, and which of these words are an author's.

A fix turns `torch.cuda.is_available()` into `torch.npu.is_available()`. Such words are no evidence
that somebody has thought of what is beside them; `is_npu_available()` and `args.use_npu` are.
"""

import ast
import re
from bisect import bisect_left
from collections.abc import Sequence

from npulens.syntax.words import Words
from npulens.text.lines import LineMap
from npulens.text.spans import Span

NPU_WORD = re.compile(
    r"(?<![a-zA-Z])(?:npu(?!lens)|NPU(?!\d{3})|hccl|ascend|Ascend|ASCEND|privateuse(?:one|1))|Npu"
    r"|torch\.(?:accelerator|Stream|Event)\b|[\"']accelerator[\"']"
)
_NPU_LETTERS = re.compile("npu")
_NPU_NAMES = ("NPU", "Npu", "hccl", "scend", "ASCEND", "privateuse")
_NEUTRAL = frozenset({"accelerator", "Stream", "Event"})
_NPU_BEGINNINGS = (
    *("npu", "NPU", "Npu", "hccl", "ascend", "Ascend", "ASCEND", "privateuse"),
    *("torch.accelerator", "torch.Stream", "torch.Event", '"accelerator"', "'accelerator'"),
)
_BY_FIXES = re.compile(
    r"\btorch_npu\b(?:\.\w+)*|\btorch\.(?:npu|accelerator|Stream|Event)\b(?:\.\w+)*"
    r"|\.(?:is_)?npu\b(?!\w)|[\"'](?:npu|hccl|accelerator)\b|\b(?:npu|hccl):"
    r"|\b(?:ASCEND|HCCL|TORCH_HCCL|PYTORCH_NPU|PYTORCH_NO_NPU)_\w+|\bNpuFused\w+|\bHCCL\b"
)
"""What fixes put into code: modules, attributes, device strings, variables, names of classes."""


def npu_words(words: Words) -> list[tuple[int, int]]:
    """Where a text names the NPU or PyTorch's device-neutral accelerator, in order."""
    if not _may_name_npu(words):
        return []
    places = (at for beginning in words.some_of(_NPU_BEGINNINGS) for at in words.places(beginning))
    return sorted(m.span() for at in places if (m := NPU_WORD.match(words.text, at)) is not None)


def contains_word(words: Sequence[tuple[int, int]], start: int, end: int) -> bool:
    """Whether one of the words, which are in order, is in a stretch of their text."""
    index = bisect_left(words, (start, start))
    return index < len(words) and words[index][1] <= end


def _may_name_npu(words: Words) -> bool:
    """Whether an identifier is one of these words, or has one in it that is not `input`."""
    names = words.joined
    if any(name in names for name in _NPU_NAMES) or not _NEUTRAL.isdisjoint(words.identifiers):
        return True
    return any(not names[m.start() - 1 : m.start()].isalpha() for m in _NPU_LETTERS.finditer(names))


def _author_words(text: str, words: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Those of some places in a text that name the NPU where no fix would write that."""
    if not words:
        return []
    written = [match.span() for match in _BY_FIXES.finditer(text)]
    found, index = [], 0
    for start, end in words:
        while index < len(written) and written[index][1] <= start:
            index += 1
        if index == len(written) or written[index][0] >= end:
            found.append((start, end))
    return found


class SegmentText:
    """The text of a segment by its nodes, with the `npu_words` in it."""

    def __init__(self, lines: LineMap, words: Sequence[tuple[int, int]]) -> None:
        self.text = lines.text
        self.lines = lines
        self._words = words
        self._author_words = _author_words(lines.text, words)
        self.has_npu_words = bool(words)
        self.author_names_npu = bool(self._author_words)

    def span(self, node: ast.AST) -> Span:
        """Where a node is."""
        return self.lines.span(node)

    def source(self, node: ast.AST) -> str:
        """The text of a node."""
        return self.text[slice(*self.span(node))]

    def mentions_npu(self, *nodes: ast.AST) -> bool:
        """Whether the text of a node names the NPU or PyTorch's device-neutral accelerator."""
        return self.has_npu_words and any(
            contains_word(self._words, *self.span(node)) for node in nodes
        )

    def author_mentions_npu(self, *nodes: ast.AST) -> bool:
        """Whether it does so in words that no fix of ours writes."""
        return self.author_names_npu and any(
            contains_word(self._author_words, *self.span(node)) for node in nodes
        )
