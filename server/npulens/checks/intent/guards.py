"""Code that already knows about the NPU, or that never runs on it, is left alone.

A branch is read as a person reads it: if one arm of an `if` chain, a conditional expression or a
table names the NPU, its author has decided what happens there, and the CUDA arm beside it is right.
"""

import ast
import re
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Sequence

from npulens.checks.intent.cuda_only import (
    NEGATION,
    asks_about_kernels,
    before_old_torch,
    builds_for_cuda,
    catches_old_torch,
    is_cuda_matter,
    is_nccl_matter,
    kernel_flags,
    leaves_out_body,
    library_test,
    lives_elsewhere,
    moves_others,
    tells_kernels,
    tells_nvidia,
    without_library_questions,
)
from npulens.checks.intent.npu_tests import author_words, holds_on_npu
from npulens.checks.intent.older_torch import chooses_release, is_fallback
from npulens.checks.intent.twins import Twins
from npulens.syntax.words import Words
from npulens.text.lines import LineMap
from npulens.text.spans import Span

NPU_WORD = re.compile(
    r"(?<![a-zA-Z])(?:npu(?!lens)|NPU(?!\d{3})|hccl|ascend|Ascend|ASCEND)|Npu"
    r"|torch\.(?:accelerator|Stream|Event)\b|[\"']accelerator[\"']"
)
_NPU_LETTERS = re.compile("npu")
_NPU_NAMES = ("NPU", "Npu", "hccl", "scend", "ASCEND")
_NEUTRAL = frozenset({"accelerator", "Stream", "Event"})
_OTHER_DEVICE = re.compile(
    r"(?<![a-zA-Z])(?:cpu|mps|xpu|mlu|musa|hpu|xla|sdaa|tpu|hip|neuron)(?![a-z])"
)
_NPU_BEGINNINGS = (
    *("npu", "NPU", "Npu", "hccl", "ascend", "Ascend", "ASCEND"),
    *("torch.accelerator", "torch.Stream", "torch.Event", '"accelerator"', "'accelerator'"),
)
_OTHER_HINTS = ("cpu", "mps", "xpu", "mlu", "musa", "hpu", "xla", "sdaa", "tpu", "hip", "neuron")
_CUDA = re.compile(r"cuda|gpu", re.IGNORECASE)
_NO_CUDA = re.compile(r"not\s+[\w.]*cuda[\w.]*available\(\)\s*\Z")
_ACCELERATOR = re.compile(r"\b(?:get|current)_accelerator\(\)")
DEVICE_TYPES = frozenset(
    {"cpu", "cuda", "npu", "mps", "xpu", "mlu", "musa", "hpu", "xla", "sdaa", "tpu", "hip", "meta"}
)
_ELSEWHERE = DEVICE_TYPES - {"cuda", "npu"}
ACCELERATORS = DEVICE_TYPES - {"cpu", "meta"}


def npu_words(words: Words) -> list[tuple[int, int]]:
    """Where a text names the NPU or PyTorch's device-neutral accelerator, in order."""
    if not _may_name_npu(words):
        return []
    places = (at for beginning in words.some_of(_NPU_BEGINNINGS) for at in words.places(beginning))
    return sorted(m.span() for at in places if (m := NPU_WORD.match(words.text, at)) is not None)


def holds_word(words: Sequence[tuple[int, int]], start: int, end: int) -> bool:
    """Whether one of the words, which are in order, stands in a stretch of their text."""
    index = bisect_left(words, (start, start))
    return index < len(words) and words[index][1] <= end


def _may_name_npu(words: Words) -> bool:
    """Whether an identifier is one of these words, or has one in it that is not `input`."""
    names = words.joined
    if any(name in names for name in _NPU_NAMES) or not _NEUTRAL.isdisjoint(words.identifiers):
        return True
    return any(not names[m.start() - 1 : m.start()].isalpha() for m in _NPU_LETTERS.finditer(names))


_POSITIONED = (ast.expr, ast.stmt, ast.alias, ast.keyword, ast.arg, ast.pattern)


class PieceText:
    """The text of a piece, by its nodes.

    Args:
        lines: The piece.
        npu_words: What `npu_words` says of it.
    """

    def __init__(self, lines: LineMap, npu_words: Sequence[tuple[int, int]]) -> None:
        self.text = lines.text
        self._lines = lines
        self._npu_words = npu_words
        self._author_words = author_words(lines.text, npu_words)
        self.has_npu_words = bool(npu_words)
        self.author_names_npu = bool(self._author_words)

    def span(self, node: ast.AST) -> Span:
        """Where a node stands."""
        assert isinstance(node, _POSITIONED)
        start = self._lines.offset(node.lineno, node.col_offset)
        return Span(start, self._lines.offset(node.end_lineno or 0, node.end_col_offset or 0))

    def source(self, node: ast.AST) -> str:
        """The text of a node."""
        return self.text[slice(*self.span(node))]

    def mentions_npu(self, *nodes: ast.AST) -> bool:
        """Whether the text of a node names the NPU or PyTorch's device-neutral accelerator."""
        return self.has_npu_words and any(
            holds_word(self._npu_words, *self.span(node)) for node in nodes
        )

    def author_mentions_npu(self, *nodes: ast.AST) -> bool:
        """Whether it does so in words that no fix of ours writes."""
        return self.author_names_npu and any(
            holds_word(self._author_words, *self.span(node)) for node in nodes
        )


class Guards:
    """What of one piece of source is worth looking at."""

    def __init__(self, code: PieceText) -> None:
        text = code.text
        self._code = code
        self._source = code.source
        self._mentions_builds = "version.hip" in text
        self._mentions_absence = "AttributeError" in text or "TypeError" in text
        self._mentions_kernels = "kernel is None" in text
        self._mentions_accelerator = "_accelerator()" in text
        self._cuda_tests: list[Span] = []
        self._refusals: list[Span] = []
        self._handled: set[ast.stmt] = set()
        self._twins = Twins(code.source, code.mentions_npu, code.author_mentions_npu)
        self._mentions_extensions = "CUDAExtension" in text
        self._mentions_nvidia = "nvidia" in text or "NVIDIA" in text
        self._mentions_libraries = "_available(" in text
        self._mentions_old_amp = "cuda.amp" in text or "autocast_gpu" in text
        self._mentions_others = any(word in text for word in _OTHER_HINTS)

    def mentions_npu(self, *nodes: ast.AST) -> bool:
        """Whether the text of a node names the NPU or PyTorch's device-neutral accelerator."""
        return self._code.mentions_npu(*nodes)

    def names_npu(self, node: ast.AST) -> bool:
        """Whether a comparison, a list, a union or a `match` has the NPU beside CUDA already."""
        if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.BitOr):
            return False
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            return any(isinstance(e, ast.Constant) and e.value == "npu" for e in node.elts)
        if isinstance(node, ast.Compare) and self._mentions_accelerator:
            # Asked of whatever accelerator there is, so CUDA is singled out on purpose.
            return _ACCELERATOR.search(self._source(node)) is not None or self.mentions_npu(node)
        return self.mentions_npu(node)

    def enter_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Note the statements of a function to leave out, in whatever block they stand.

        Calls that it makes for the NPU too, and questions that only choose a CUDA kernel.
        """
        if self._mentions_kernels and (flags := kernel_flags(node, self._source)):
            self._handled.update(
                statement
                for statement in node.body
                if isinstance(statement, ast.Assign) and self._source(statement.targets[0]) in flags
            )
        self._handled.update(s for s in node.body if tells_kernels(s, node))
        if self.mentions_npu(node):
            self._handled.update(self._twins.in_function(node))

    def statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """The statements of a block that the NPU reaches without having been asked about.

        `if is_npu_available(): return ...` takes the NPU away from everything behind it, and from
        a CUDA arm of the same kind before it.
        """
        if self._mentions_builds:
            values: dict[ast.stmt, str] = {
                s: self._source(s) for s in body if isinstance(s, ast.Assign)
            }
            if any("version.hip" in value for value in values.values()):
                body = [s for s in body if "version.cuda" not in values.get(s, "")]
        if self._handled:
            body = [s for s in body if s not in self._handled]
        if self._mentions_nvidia:
            body = [s for s in body if not tells_nvidia(s, self._source)]
        if self._mentions_absence:
            body = before_old_torch(body, self._source)
        if self._mentions_libraries:
            body = without_library_questions(body, self._source)
        return self._twins.reached(body) if self.mentions_npu(*body) else body

    def operands(self, node: ast.BoolOp) -> list[ast.expr]:
        """The operands worth looking at."""
        texts = [self._source(operand) for operand in node.values]
        if self.mentions_npu(node) and (
            isinstance(node.op, ast.Or) or holds_on_npu(node, self.mentions_npu) is False
        ):
            return [
                operand
                for operand, text in zip(node.values, texts, strict=True)
                if not (_CUDA.search(text) or self.mentions_npu(operand))
            ]
        if asks_about_kernels(node, texts) or any(lives_elsewhere(text) for text in texts):
            return []
        library = library_test(node, texts)
        if library is not None and not self.mentions_npu(node.values[library]):
            return node.values[: library + 1]
        return node.values

    def arms(self, node: ast.If) -> Iterable[ast.AST]:
        """The parts of an `if` chain that are worth looking at.

        If one arm asks for the NPU, that arm runs there and the others do not.
        """
        if self.mentions_npu(node.test):
            return self._arms_by_npu(node)
        if self._comes_before_npu(node):
            return node.orelse
        test = self._source(node.test)
        self.note_refusal(node.test if isinstance(node.body[-1], ast.Raise) else None)
        if _CUDA.search(test) and "available" not in test:
            self._note(self._cuda_tests, node.body[0], node.body[-1])
        self._handled.update(moves_others(node, self._source))
        if self._mentions_old_amp and chooses_release(test):
            body, other = self._text(node.body), self._text(node.orelse)
            if is_fallback(body, other):
                return (node.test, *self.statements(node.body))
            if is_fallback(other, body):
                return (node.test, *self.statements(node.orelse))
        if leaves_out_body(test):
            return self.statements(node.orelse)
        if _CUDA.search(test):
            body = self._text(node.body)
            if is_cuda_matter(node, test, body):
                return self.statements(node.orelse)
            if builds_for_cuda(test, body):
                return (*self.statements(node.body), *self.statements(node.orelse))
        if "nccl" in test and is_nccl_matter(test, [self._source(s) for s in node.body]):
            return self.statements(node.orelse)
        if self._never_on_npu(node.test):
            return (node.test, *self.statements(node.orelse))
        return (node.test, *self.statements(node.body), *self.statements(node.orelse))

    def _arms_by_npu(self, node: ast.If) -> Iterable[ast.AST]:
        """The parts of an `if` that asks for the NPU, of which one may never run there."""
        holds = holds_on_npu(node.test, self.mentions_npu)
        body = () if holds is False else self.statements(node.body)
        test = (node.test,) if self._is_half_fixed(node.test) else ()
        return (*test, *body, *(() if holds else self.statements(node.orelse)))

    def _is_half_fixed(self, test: ast.expr) -> bool:
        """`torch.cuda.is_available() and x.is_npu`, which never holds: a fix is missing."""
        return (
            isinstance(test, ast.BoolOp)
            and isinstance(test.op, ast.And)
            and not any(isinstance(each, ast.UnaryOp) for each in test.values)
            and not self._code.author_mentions_npu(test)
        )

    def _comes_before_npu(self, node: ast.If) -> bool:
        """Whether an arm for CUDA has one for the NPU behind it in the chain.

        It has if the other one asks the same of the NPU, or does so in words of its author.
        """
        test = self._source(node.test)
        if not (self._code.has_npu_words and _CUDA.search(test)):
            return False
        later = _tests(node)[1:]
        if self._code.author_mentions_npu(*later):
            return True
        twin = test.replace("cuda", "npu")
        return any(self._source(other) == twin for other in later)

    def cases(self, node: ast.Match) -> list[ast.match_case]:
        """The cases worth looking at: without those for CUDA, if there is one for the NPU."""
        if not self.mentions_npu(*(case.pattern for case in node.cases)):
            return node.cases
        return [c for c in node.cases if not _is_for_cuda_only(self._source(c.pattern))]

    def note_refusal(self, test: ast.expr | None) -> None:
        """Remember a test that only decides whether the program goes on."""
        if test is not None:
            self._note(self._refusals, test, test)

    def _note(self, spans: list[Span], first: ast.AST, last: ast.AST) -> None:
        """Keep a stretch; the outer ones come first, and inner ones add nothing."""
        span = Span(self._code.span(first).start, self._code.span(last).end)
        if not _covers(spans, span):
            insort(spans, span)

    def is_under_cuda_test(self, span: Span) -> bool:
        """Whether a place is in the body of an `if` about CUDA itself: `device.type == "cuda"`.

        Not of one that asks whether CUDA is available, which stands for any accelerator.
        """
        return _covers(self._cuda_tests, span)

    def is_refusal(self, span: Span) -> bool:
        """Whether a place is in a test that only decides whether the program goes on."""
        return _covers(self._refusals, span)

    def choices(self, node: ast.IfExp) -> list[ast.expr]:
        """The parts of a conditional expression that are worth looking at, as in an `if`."""
        if self.mentions_npu(node.test):
            holds = holds_on_npu(node.test, self.mentions_npu)
            if holds is None:
                return [node.body, node.orelse]
            return [node.body if holds else node.orelse]
        is_negated = isinstance(node.test, ast.UnaryOp)  # then it is CUDA that takes the second
        if (
            self.mentions_npu(node.orelse)
            and not is_negated
            and _CUDA.search(self._source(node.test))
        ):
            return [node.orelse]
        if self._is_one_of_two(node):
            return []  # the NPU or CUDA, chosen by something else
        if "xla" in self._source(node.test):
            return [node.orelse]
        if self._mentions_others and self._keeps_others(node):
            return []
        if self._mentions_extensions and builds_for_cuda(
            self._source(node.test), self._source(node.body)
        ):
            return [node.body, node.orelse]
        if self._mentions_old_amp and chooses_release(self._source(node.test)):
            if is_fallback(self._source(node.body), self._source(node.orelse)):
                return [node.test, node.body]
            if is_fallback(self._source(node.orelse), self._source(node.body)):
                return [node.test, node.orelse]
        return [node.test, node.body, node.orelse]

    def _is_one_of_two(self, node: ast.IfExp) -> bool:
        """Whether one result is for the NPU and the other for CUDA, and the test for neither."""
        if not self.mentions_npu(node.body) or _CUDA.search(self._source(node.test)):
            return False
        return _CUDA.search(self._source(node.orelse)) is not None

    def _keeps_others(self, node: ast.IfExp) -> bool:
        """`"cuda" if device == "cpu" else device`: the NPU stays what it is."""
        test = node.test
        if not isinstance(test, ast.Compare) or len(test.ops) != 1:
            return False
        kept = node.orelse if isinstance(test.ops[0], ast.Eq) else node.body
        if not isinstance(test.ops[0], (ast.Eq, ast.NotEq)):
            return False
        compared = getattr(test.comparators[0], "value", None)
        return compared in _ELSEWHERE and self._source(kept) == self._source(test.left)

    def handlers(self, node: ast.Try) -> Iterable[ast.AST]:
        """The parts of a `try` statement that are worth looking at."""
        body = self.statements(node.body)
        rest = (*self.statements(node.orelse), *self.statements(node.finalbody))
        imports = [s for s in node.body if isinstance(s, (ast.Import, ast.ImportFrom))]
        if imports and self.mentions_npu(*imports):
            return (*body, *rest)
        if self._mentions_absence and catches_old_torch(node, self._source):
            return (*body, *rest)
        if self._mentions_old_amp:
            tried = self._text(node.body)
            if any(is_fallback(tried, self._text(handler.body)) for handler in node.handlers):
                return (*body, *rest)
        return (*body, *node.handlers, *rest)

    def _text(self, body: list[ast.stmt]) -> str:
        return "\n".join(self._source(statement) for statement in body)

    def is_device_table(self, node: ast.Dict) -> bool:
        """A table from device types to what to do there, which holds a CUDA row by right."""
        keys = {key.value for key in node.keys if isinstance(key, ast.Constant)}
        return "cuda" in keys and len(keys & DEVICE_TYPES) > 1

    def _never_on_npu(self, test: ast.expr) -> bool:
        """Whether a test holds only on other devices: `device == "cpu"`, no CUDA."""
        text = self._source(test)
        if _NO_CUDA.match(text):
            return True
        return (
            self._mentions_others
            and _OTHER_DEVICE.search(text) is not None
            and not _CUDA.search(text)
            and not NEGATION.search(text)
            and _asks_for_device(test)
        )


def _is_for_cuda_only(pattern: str) -> bool:
    return _CUDA.search(pattern) is not None and NPU_WORD.search(pattern) is None


def _covers(spans: Sequence[Span], span: Span) -> bool:
    """Whether one of some stretches, in order and apart from each other, holds a place."""
    index = bisect_right(spans, Span(span.start, 1 << 60)) - 1
    return index >= 0 and span.end <= spans[index].end


def _tests(node: ast.If) -> list[ast.expr]:
    tests = [node.test]
    while len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
        node = node.orelse[0]
        tests.append(node.test)
    return tests


def _asks_for_device(test: ast.expr) -> bool:
    """Whether a test compares with a device type or asks whether a device is available."""
    if isinstance(test, ast.Compare):
        return any(isinstance(operator, (ast.Eq, ast.In)) for operator in test.ops)
    if isinstance(test, ast.BoolOp):
        return all(_asks_for_device(value) for value in test.values)
    if not isinstance(test, ast.Call):
        return False
    callee = test.func
    name = callee.attr if isinstance(callee, ast.Attribute) else getattr(callee, "id", "")
    return "available" in name
