"""Which parts of a statement an NPU reaches, and what settles the others.

A branch is read as a person reads it: what its condition comes to on an NPU decides, see
`conditions.py`; so does the way of the NPU beside it, see `evidence.py`. Nothing is left out: a
part that an NPU does not reach comes with the reason.
"""

import ast
import re
from collections.abc import Iterable, Sequence

from npulens.catalog.settlements import Settlement
from npulens.syntax.scopes import Scope
from npulens.syntax.walking import nodes_below
from npulens.text.spans import Span
from npulens.text.stretches import Stretches
from npulens.verdicts.answers import UNKNOWN, Answer
from npulens.verdicts.conditions import Known, answer
from npulens.verdicts.device_answers import holds_on_cuda
from npulens.verdicts.evidence import device_renames, done_beside, done_elsewhere, effects, leaves
from npulens.verdicts.kernels import (
    BUILT,
    CALLED,
    checks_only_for_card,
    guards_kernel,
    leads_to,
    moves_what_the_host_has,
)
from npulens.verdicts.loading import LONGEST_BEFORE, chooses_host, read_to_host
from npulens.verdicts.npu_words import SegmentText
from npulens.verdicts.older_torch import catches_old_torch, way_of_old

Part = tuple[ast.AST, Settlement | None]
"""A part of a statement, and what settles it: `None` if the NPU reaches it."""

_CUDA = re.compile(r"cuda|gpu", re.IGNORECASE)
_ASKS_FOR_CUDA = re.compile(
    r"(?:cuda|gpu)(?:s?(?:_?(?:ids?|index|num|count|device))?(?![a-z_])|\w*\()", re.IGNORECASE
)
"""A word for the device, or a call; the option `cuda_deterministic` is about something else."""
_BFLOAT16 = re.compile(r"bfloat16|bf16", re.IGNORECASE)
_CUDA_HOME = "CUDA_HOME"
DEVICE_TYPES = frozenset(
    {"cpu", "cuda", "npu", "mps", "xpu", "mlu", "musa", "hpu", "xla", "sdaa", "tpu", "hip", "meta"}
)
ACCELERATORS = DEVICE_TYPES - {"cpu", "meta"}


class Regions:
    """Which parts of one segment an NPU reaches."""

    def __init__(self, code: SegmentText, known: Known) -> None:
        self._code = code
        self.known = known
        self._answers: dict[ast.expr, Answer] = {}
        self._handled: dict[ast.AST, Settlement] = {}
        self._cuda_tests = Stretches()
        self._before_kernels = {CALLED: Stretches(), BUILT: Stretches()}
        self._blocks: dict[ast.stmt, tuple[list[ast.stmt], int]] = {}
        self.to_port: set[ast.AST] = set()
        """Tests for CUDA behind which devices are set or models moved, in whatever form."""
        self._for_number_types: set[ast.AST] = set()
        """Tests that decide whether bfloat16 is used, which the NPU has as well."""
        self._mentions_extensions = "CUDAExtension" in code.text
        self._mentions_old_torch = "AttributeError" in code.text or "TypeError" in code.text
        old_amp = ("cuda.amp", "autocast_gpu", "is_autocast_enabled()")
        self._mentions_old_amp = any(word in code.text for word in old_amp)

    def answer(self, test: ast.expr, scope: Scope) -> Answer:
        """What a condition comes to on an NPU; kept for several callers."""
        found = self._answers.get(test)
        if found is None:
            found = answer(test, scope, self.known)
            if self._mentions_extensions and _CUDA_HOME in self._code.source(found.node or test):
                found = UNKNOWN  # where the toolkit is decides what is built, which is to be ported
            self._answers[test] = found
        return found

    def settlement(self, reason: str, node: ast.AST | None = None) -> Settlement:
        """What settles a place for a reason, with what decides."""
        return Settlement(reason, None if node is None else self._code.span(node))

    def statements(self, body: list[ast.stmt], scope: Scope) -> list[Part]:
        """The statements of a block that the NPU comes to.

        `if is_npu_available(): return ...` takes the NPU away from everything behind it, and from
        a CUDA arm of the same kind before it.
        """
        twins = self._twins(body, scope)
        parts: list[Part] = []
        rest: Settlement | None = None
        for index, statement in enumerate(body):
            if isinstance(statement, ast.If):
                self._blocks[statement] = body, index
            settled = rest or twins.get(statement) or self._handled.get(statement)
            parts.append((statement, settled))
            if rest is None:
                rest = self._behind(statement, scope)
        return parts

    def _behind(self, statement: ast.stmt, scope: Scope) -> Settlement | None:
        """What settles the rest of a block behind a statement that always leaves."""
        if isinstance(statement, ast.If) and leaves(statement.body):
            found = self.answer(statement.test, scope)
            if (
                found.holds
                and found.reason == "fallback"
                and isinstance(statement.body[-1], ast.Raise)
            ):
                return self.settlement("reported-with-library", found.node)  # no other way
            if found.holds:
                return self._settled(found)
        is_try = self._mentions_old_torch and isinstance(statement, ast.Try)
        if is_try and catches_old_torch(statement, self._code.source):  # type: ignore[arg-type]
            return self.settlement("older-torch", statement.body[0])  # type: ignore[attr-defined]
        return None

    def _twins(self, body: list[ast.stmt], scope: Scope) -> dict[ast.stmt, Settlement]:
        """Statements that others of the block do for the NPU."""
        if not self._code.mentions_npu(*body):
            return {}
        npu_tests = self._npu_tests(body, scope)
        found = dict(done_beside(body, npu_tests, self._code))
        exits = [node for node in npu_tests if leaves(node.body) and not node.orelse]
        if exits:
            for statement in body[: body.index(exits[0])]:
                if (
                    isinstance(statement, ast.If)
                    and leaves(statement.body)
                    and _CUDA.search(self._code.source(statement.test))
                ):
                    found.setdefault(statement, self.settlement("npu-way-beside", exits[0]))
        return found

    def _npu_tests(self, body: Iterable[ast.stmt], scope: Scope) -> list[ast.If]:
        """The `if`s of a block that the NPU takes, as they say by naming it."""
        return [
            statement
            for statement in body
            if isinstance(statement, ast.If)
            and self._code.mentions_npu(statement.test)
            and self.answer(statement.test, scope).holds
        ]

    def enter_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
        """Note the statements of a function, in whatever block, that it has for the NPU as well."""
        if not self._code.mentions_npu(node):
            return
        by_list = ((s, self.settlement("npu-way-beside", s)) for s in device_renames(node))
        self._handled.update(by_list)
        tests = [
            test
            for test in self._npu_tests(node.body, scope)
            if self._code.author_mentions_npu(test.test)
        ]
        self._handled.update(done_elsewhere(node, tests, self._code))

    def operands(self, node: ast.BoolOp, scope: Scope) -> list[Part]:
        """The operands of `and` and `or`: one that decides for the NPU settles the others."""
        if node not in self.to_port and holds_on_cuda(node, scope, self.known) is not None:
            return self._all(node.values, self.settlement("ported", node))
        answers = [self.answer(value, scope) for value in node.values]
        decides = isinstance(node.op, ast.Or)
        deciding = [index for index, found in enumerate(answers) if found.holds is decides]
        if deciding:
            # One whose answer needs no port comes before one that does.
            index = min(deciding, key=lambda i: answers[i].reason == "never-runs-on-npu")
            return self._decided(node.values, index, answers[index])
        if decides and self._code.mentions_npu(node):
            return self._beside_npu(node.values)
        return [(value, None) for value in node.values]

    def _decided(self, values: list[ast.expr], index: int, found: Answer) -> list[Part]:
        """Operands of which one decides.

        What follows it is not evaluated. What precedes it need not be ported; and a card's property
        behind a check for CUDA is never read.
        """
        settled = self._settled(found)
        behind: list[Part] = [(value, settled) for value in values[index + 1 :]]
        if found.reason == "never-runs-on-npu":
            return [*((value, None) for value in values[: index + 1]), *behind]
        before: list[Part] = [(value, settled) for value in values[:index]]
        is_guarded = found.reason == "cuda-alone" and any(
            _CUDA.search(self._code.source(value)) for value in values[:index]
        )
        is_guarded = is_guarded and values[index] not in self._for_number_types
        return [*before, (values[index], settled if is_guarded else None), *behind]

    def _note_number_types(self, test: ast.expr, arms: Iterable[ast.AST]) -> None:
        """Note a test for a card that decides about bfloat16: the NPU would train in float16."""
        checks_capability = isinstance(test, ast.BoolOp) and "capability" in self._code.source(test)
        if checks_capability and any(_BFLOAT16.search(self._code.source(arm)) for arm in arms):
            self._for_number_types.update(ast.iter_child_nodes(test))

    def _beside_npu(self, values: Sequence[ast.expr]) -> list[Part]:
        """`x.is_cuda or x.is_npu`: each device is checked for."""
        npus = next((value for value in values if self._code.mentions_npu(value)), values[0])
        settled = self.settlement("npu-way-beside", npus)
        return [
            (value, settled if _CUDA.search(self._code.source(value)) else None) for value in values
        ]

    def parts(self, node: ast.If | ast.Try | ast.BoolOp | ast.IfExp, scope: Scope) -> list[Part]:
        """The parts of what an NPU may reach in part only."""
        if isinstance(node, ast.If):
            return self.arms(node, scope)
        if isinstance(node, ast.Try):
            return self.handlers(node, scope)
        if isinstance(node, ast.BoolOp):
            return self.operands(node, scope)
        return self.choices(node, scope)

    def arms(self, node: ast.If, scope: Scope) -> list[Part]:
        """The parts of an `if`."""
        later = self._npu_arm_behind(node)
        if later is not None:
            return self._settled_body(node, "npu-way-beside", later, scope)
        test = self._code.source(node.test)
        if _CUDA.search(test):
            self._note_number_types(node.test, (*node.body, *node.orelse))
            if read_to_host(node.body, node.orelse):
                settled = self.settlement("no-effect", node.test)
                return self._all((node.test, *node.body, *node.orelse), settled)
            if "available" not in test and _ASKS_FOR_CUDA.search(test):
                first, last = map(self._code.span, (node.body[0], node.body[-1]))
                self._cuda_tests.add(Span(first.start, last.end))
            block, index = self._blocks.get(node, ([], 0))
            if guards_kernel(node, scope, self.known, block[index + 1 :]):
                return self._settled_body(node, "fallback", node.test, scope)
            led_to = leads_to(node)
            if led_to:
                self._before_kernels[led_to].add(self._code.span(node.test))
            if self._builds_for_cuda(node.test, node.body):
                settled = self.settlement("reported-at-build", node.test)
                return [
                    (node.test, settled),
                    *self.statements(node.body, scope),
                    *self._orelse(node, None, scope),
                ]
            if moves_what_the_host_has(node, scope, self.known):
                return self._settled_body(node, "fallback", node.test, scope)
            if checks_only_for_card(node.body):
                return self._settled_body(node, "cuda-alone", node.test, scope)
        ported = self._checks_ported_device(node, scope)
        if ported is not None:
            return ported
        old = self._for_old_torch(node)
        if old is not None:
            return old
        found = self.answer(node.test, scope)
        if found.reason == "other-device" and self._leaves_host(node, found):
            found = UNKNOWN
        body = (
            self.statements(node.body, scope)
            if found.holds is not False
            else self._all(node.body, self._settled(found))
        )
        of_test = self._test(node.test)
        return [(node.test, of_test), *body, *self._orelse(node, found, scope)]

    def _settled_body(self, node: ast.If, reason: str, by: ast.expr, scope: Scope) -> list[Part]:
        """The parts of an `if` whose test and body are settled for a reason."""
        body = self._all((node.test, *node.body), self.settlement(reason, by))
        return [*body, *self._orelse(node, None, scope)]

    def _leaves_host(self, node: ast.If, found: Answer) -> bool:
        """Whether an arm for the host moves things to `torch.cuda.current_device()` or the like."""
        named = (getattr(part, "value", None) for part in nodes_below(node.test))
        if "cpu" not in named:
            return False
        arm = node.orelse if found.holds else node.body
        sets = bool(arm) and effects(arm, self._code).sets_devices
        return sets and any(_CUDA.search(self._code.source(statement)) for statement in arm)

    def _builds_for_cuda(self, test: ast.expr, built: Iterable[ast.AST]) -> bool:
        """Whether a test decides if a `CUDAExtension` is built, which no NPU could run."""
        if not self._mentions_extensions or any(
            isinstance(part, ast.Not) for part in ast.walk(test)
        ):
            return False
        return any("CUDAExtension" in self._code.source(part) for part in built)

    def _checks_ported_device(self, node: ast.If, scope: Scope) -> list[Part] | None:
        """The parts of `if get_device() == "cuda"`, where that function knows the NPU.

        Such a test is about CUDA alone, but for one behind which devices are set or models moved:
        nothing of that would happen on an NPU.
        """
        on_cuda = holds_on_cuda(node.test, scope, self.known)
        if on_cuda is None:
            return None
        for_cuda, others = (node.body, node.orelse) if on_cuda else (node.orelse, node.body)
        if effects(for_cuda, self._code).sets_devices:
            self.to_port.update(nodes_below(node.test))
            return None
        settled = self.settlement("ported", node.test)
        parts = self._all((node.test, *for_cuda), settled)
        return [*parts, *self.statements(others, scope)]

    def _for_old_torch(self, node: ast.If) -> list[Part] | None:
        """The parts of an `if` of which one arm is for releases of PyTorch of old."""
        if not self._mentions_old_amp:
            return None
        ways = node.body, node.orelse
        old = way_of_old(ways, node.test, self._code.source)
        if old is None:
            return None
        settled = self.settlement("older-torch", node.test)
        parts: list[Part] = [(node.test, None)]
        for index, way in enumerate(ways):
            parts += [(statement, settled if index == old else None) for statement in way]
        return parts

    def _orelse(self, node: ast.If, found: Answer | None, scope: Scope) -> list[Part]:
        if found is not None and found.holds:
            return self._all(node.orelse, self._settled(found))
        return self.statements(node.orelse, scope) if node.orelse else []

    def _test(self, test: ast.expr) -> Settlement | None:
        """What settles a test itself: it considers the NPU."""
        if isinstance(test, ast.Compare) and self._code.mentions_npu(test):
            return self.settlement("npu-way-beside", test)
        return None

    def _npu_arm_behind(self, node: ast.If) -> ast.expr | None:
        """The test of an arm for the NPU behind one for CUDA: its twin, or one of the author."""
        if not self._code.has_npu_words or self._code.mentions_npu(node.test):
            return None
        test = self._code.source(node.test)
        if not _CUDA.search(test):
            return None
        twin = test.replace("cuda", "npu")
        done = effects(node.body, self._code)
        for other in _chain(node)[1:]:
            if self._code.author_mentions_npu(other.test) or self._code.source(other.test) == twin:
                return other.test
            # A fix renames all tests of a chain, so that this arm is its author's.
            if self._code.mentions_npu(other.test) and effects(other.body, self._code).covers(done):
                return other.test
        return None

    def cases(self, node: ast.Match) -> list[tuple[ast.match_case, Settlement | None]]:
        """The cases: those for CUDA are settled by one for the NPU."""
        npus = [case for case in node.cases if self._code.mentions_npu(case.pattern)]
        settled = self.settlement("npu-way-beside", npus[0].pattern) if npus else None
        return [
            (case, settled if _CUDA.search(self._code.source(case.pattern)) else None)
            for case in node.cases
        ]

    def choices(self, node: ast.IfExp, scope: Scope) -> list[Part]:
        """The parts of a conditional expression, the test first."""
        is_about_cuda = _CUDA.search(self._code.source(node.test)) is not None
        if is_about_cuda:
            self._note_number_types(node.test, (node.body, node.orelse))
        start = self._code.span(node).start if is_about_cuda else 0
        before = self._code.text[max(start - LONGEST_BEFORE, 0) : start]
        if is_about_cuda and (
            chooses_host(node, before) or read_to_host([node.body], [node.orelse])
        ):
            harmless = self.settlement("no-effect", node.test)
            return self._all((node.test, node.body, node.orelse), harmless)
        found = self.answer(node.test, scope)
        if (
            self._code.mentions_npu(node.orelse)
            and not self._code.mentions_npu(node.test)
            and not isinstance(node.test, ast.UnaryOp)  # then it is CUDA that takes the second
            and is_about_cuda
        ):
            beside = self.settlement("npu-way-beside", node.orelse)
            return [(node.test, beside), (node.body, beside), (node.orelse, None)]
        settled = None if found.holds is None else self._settled(found)
        on_cuda = holds_on_cuda(node.test, scope, self.known)
        if on_cuda is not None:
            if effects((node.body if on_cuda else node.orelse,), self._code).sets_devices:
                self.to_port.update(nodes_below(node.test))
            else:
                settled, found = self.settlement("ported", node.test), Answer(not on_cuda)
        elif self._mentions_old_amp:
            old = way_of_old(((node.body,), (node.orelse,)), node.test, self._code.source)
            if old is not None:
                settled, found = self.settlement("older-torch", node.test), Answer(old == 1)
        of_test = self._test(node.test)
        if self._builds_for_cuda(node.test, (node.body,)):
            of_test = self.settlement("reported-at-build", node.test)
            settled, found = None, Answer()
        return [
            (node.test, of_test),
            (node.body, settled if found.holds is False else None),
            (node.orelse, settled if found.holds else None),
        ]

    def handlers(self, node: ast.Try, scope: Scope) -> list[Part]:
        """The parts of a `try` statement; what only an older PyTorch or no NPU needs is settled."""
        parts = self.statements(node.body, scope)
        settled = self._handled_failure(node)
        parts += [(handler, settled) for handler in node.handlers]
        for body in (node.orelse, node.finalbody):
            parts += self.statements(body, scope) if body else []
        return parts

    def _handled_failure(self, node: ast.Try) -> Settlement | None:
        imports = [s for s in node.body if isinstance(s, (ast.Import, ast.ImportFrom))]
        if imports and self._code.mentions_npu(*imports):
            return self.settlement("npu-way-beside", imports[0])
        source = self._code.source
        if self._mentions_old_torch and catches_old_torch(node, source):
            return self.settlement("older-torch", node.body[0])
        if self._mentions_old_amp:
            for handler in node.handlers:
                if way_of_old((node.body, handler.body), None, source) == 1:
                    return self.settlement("older-torch", node.body[0])
        return None

    def collection(self, node: ast.AST) -> Settlement | None:
        """What settles a comparison, a list, a union: it has the NPU beside CUDA already."""
        if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.BitOr):
            return None
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            has_npu = any(isinstance(e, ast.Constant) and e.value == "npu" for e in node.elts)
        else:
            has_npu = self._code.mentions_npu(node)
        if has_npu:
            return self.settlement("npu-way-beside", node)
        return None

    def device_table(self, node: ast.Dict) -> Settlement | None:
        """What settles a table from device types to what to do there: it has a row for CUDA."""
        keys = {key.value: key for key in node.keys if isinstance(key, ast.Constant)}
        if "cuda" not in keys or len(keys.keys() & DEVICE_TYPES) < 2:
            return None
        if "npu" in keys:
            return self.settlement("npu-way-beside", keys["npu"])
        if keys.keys() & ACCELERATORS == {"cuda"}:
            return None  # the card beside the host, whichever it is
        row = node.values[node.keys.index(keys["cuda"])]
        if isinstance(row, ast.Call):
            return None  # it is called whatever device there is
        return self.settlement("other-device", keys["cuda"])

    def leads_to(self, span: Span) -> str:
        """What CUDA code the condition leads to that holds a place, as `kernels.leads_to` says."""
        found = (kind for kind, places in self._before_kernels.items() if places.contains(span))
        return next(found, "")

    def is_under_cuda_test(self, span: Span) -> bool:
        """Whether a place is in the body of an `if` about CUDA itself: `device.type == "cuda"`.

        Not of one that checks whether CUDA is available, which means any accelerator.
        """
        return self._cuda_tests.contains(span)

    def _settled(self, found: Answer) -> Settlement:
        return self.settlement(found.reason, found.node)

    @staticmethod
    def _all(nodes: Iterable[ast.AST], settled: Settlement) -> list[Part]:
        return [(node, settled) for node in nodes]


def _chain(node: ast.If) -> list[ast.If]:
    """An `if` with the `elif`s behind it."""
    chain = [node]
    while len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
        node = node.orelse[0]
        chain.append(node)
    return chain
