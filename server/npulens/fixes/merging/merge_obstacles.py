"""What changes or loads weights by their shape or their names, so that two may not become one."""

import re
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from npulens.catalog.localized import LocalizedText
from npulens.catalog.message_ids import MessageId
from npulens.catalog.messages import message
from npulens.syntax.strings import comments_and_strings

OPTIMIZERS = "Lamb|LAMB|LARS|LARC|Adafactor|NovoGrad|Muon|Shampoo"
_OPTIMIZER_NAMES = "(?:fused)?(?:lamb|lars|adafactor|muon)"
_STATE = (
    r"state\w{0,40}|\bsd|\bload\w{0,40}|ckpt\w{0,40}|checkpoint\w{0,40}|weight\w{0,40}"
    r"|pretrained\w{0,40}|\b(?:old|model|loaded|saved)_dict"
)

OBSTACLES: Sequence[tuple[re.Pattern[str], MessageId]] = (
    (
        re.compile(
            r"\b(?:xavier|glorot|orthogonal_|fan_(?:out|avg)\b|_calculate_fan|eye_\(|skip_init\b)"
            r"|\.out_features\b"
            r"|\.weight(?:\.data)?\.(?:shape\b(?!\[-?1\])|size\((?!-?1\)))"
        ),
        "merging.initialized",
    ),
    (
        re.compile(
            r"\b(?:spectral_norm|weight_norm|quantize_dynamic|utils\.prune|parametrize|prune\.\w)"
            r"|\bimport prune\b"
        ),
        "merging.weights-used",
    ),
    (
        re.compile(
            rf"(?:{OPTIMIZERS})\b|\bSOAP\b|[\"']{_OPTIMIZER_NAMES}[\"']"
            rf"|\bopt\w*[ \t]*[ =:][ \t]*{_OPTIMIZER_NAMES}\b"
        ),
        "merging.whole-tensors",
    ),
    (
        re.compile(
            r"\b(?:PreTrainedModel|init_empty_weights|\w{1,40}_and_dispatch|LoraConfig)\b"
            r"|\btorch\.distributed(?:\.| import )checkpoint\b|\.copy_\(\s*\w+\["
            rf"|(?:{_STATE})(?:\[[^\]\n]{{0,99}}\]|\([^()\n]{{0,99}}\))?\.items\(\)\s*:?\s+"
            r"if\s+\w+\s+(?:not\s+)?in\b"
        ),
        "merging.loaded-otherwise",
    ),
)


class Place(NamedTuple):
    """A line of another file of the project."""

    path: str
    line: int

    @property
    def text(self) -> LocalizedText:
        """How a reason names it."""
        return message("merging.file-line", path=self.path, line=self.line)


class Find(Protocol):
    """Looks for a pattern in other files of a project."""

    def __call__(
        self, python: re.Pattern[str], others: re.Pattern[str] | None = None, word: str = ""
    ) -> Place | None:
        """Where one of them has it; `None` if nowhere.

        Args:
            python: What is looked for in files of Python.
            others: What is looked for in other files, `None` for the same.
            word: What a file has if it has the pattern.
        """


def plain_code(text: str) -> str:
    """The text of a module with spaces for comments and for long strings that begin a line."""
    parts: list[str] = []
    end = 0
    for span in comments_and_strings(text):
        if text[span.start] == "#" or _is_docstring(text, span.start):
            parts += [text[end : span.start], re.sub(r"[^\n]", " ", text[span.start : span.end])]
            end = span.end
    return "".join((*parts, text[end:]))


def _is_docstring(text: str, start: int) -> bool:
    line = text[text.rfind("\n", 0, start) + 1 : start]
    return text.startswith(('"""', "'''"), start) and line.strip() in ("", "r", "R")


def line_of(text: str, found: re.Match[str]) -> int:
    """The line of what a pattern found: of its last group, if it has any."""
    return text.count("\n", 0, found.start(found.lastindex or 0)) + 1
