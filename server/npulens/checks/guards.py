"""Code that already knows about the NPU, or that never runs on it, is left alone.

A branch is read as a person reads it: if one arm of an `if` chain, a conditional expression or a
table names the NPU, its author has decided what happens there, and the CUDA arm beside it is right.
"""

import ast
import re
from collections.abc import Callable, Iterable

_NPU = re.compile(
    r"(?<![a-zA-Z])(?:npu|NPU|hccl|ascend|Ascend|ASCEND)|Npu|torch\.accelerator\b|[\"']accelerator[\"']"
)
_OTHER_DEVICE = re.compile(
    r"(?<![a-zA-Z])(?:cpu|mps|xpu|mlu|musa|hpu|xla|sdaa|tpu|hip|neuron)(?![a-z])"
)
_NPU_HINTS = ("npu", "NPU", "Npu", "hccl", "scend", "ASCEND", "accelerator")
_OTHER_HINTS = ("cpu", "mps", "xpu", "mlu", "musa", "hpu", "xla", "sdaa", "tpu", "hip", "neuron")
_CUDA = re.compile(r"cuda|gpu", re.IGNORECASE)
_NEGATION = re.compile(r"!=|\bnot\b")
_NO_CUDA = re.compile(r"not\s+[\w.]*cuda[\w.]*available\(\)\s*\Z")
_CUDA_CALL = re.compile(r"torch\.cuda\.([\w.]+)\(")
_LIBRARY_TEST = re.compile(r"(?!\w*(?:cuda|gpu|device))\w+_available(?:\(\))?\Z")
DEVICE_TYPES = frozenset(
    {"cpu", "cuda", "npu", "mps", "xpu", "mlu", "musa", "hpu", "xla", "sdaa", "tpu", "hip", "meta"}
)
ACCELERATORS = DEVICE_TYPES - {"cpu", "meta"}

_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)

Source = Callable[[ast.AST], str]


class Guards:
    """What of one piece of source is worth looking at.

    Args:
        text: The piece.
        source: Gives the text of a node of it.
    """

    def __init__(self, text: str, source: Source) -> None:
        self._source = source
        # Plain searches first: these expressions are slow on long texts.
        self._mentions_npu = any(word in text for word in _NPU_HINTS)
        self._mentions_others = any(word in text for word in _OTHER_HINTS)

    def mentions_npu(self, *nodes: ast.AST) -> bool:
        """Whether the text of a node names the NPU or PyTorch's device-neutral accelerator."""
        return self._mentions_npu and any(_NPU.search(self._source(node)) for node in nodes)

    def only_elsewhere(self, node: ast.AST) -> bool:
        """Whether an expression weighs the NPU too, or asks for a ROCm build, which is no NPU."""
        if isinstance(node, ast.BoolOp) and self._mentions_others:
            return "version.hip" in self._source(node) or self.mentions_npu(node)
        return self.mentions_npu(node)

    def statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """The statements of a block that the NPU reaches without having been asked about.

        `if is_npu_available(): return ...` takes the NPU away from everything behind it, and from
        a CUDA arm of the same kind before it.
        """
        if not self._mentions_npu or not self.mentions_npu(*body):
            return body
        body = [statement for statement in body if not self._has_twin(statement, body)]
        exits = [
            index
            for index, statement in enumerate(body)
            if isinstance(statement, ast.If)
            and not statement.orelse
            and isinstance(statement.body[-1], _LEAVES)
            and self._is_npu_test(statement)
        ]
        if not exits:
            return body
        return [
            statement
            for statement in body[: exits[0]]
            if not (isinstance(statement, ast.If) and isinstance(statement.body[-1], _LEAVES))
        ]

    def _is_npu_test(self, node: ast.If) -> bool:
        return self.mentions_npu(node.test) and not _NEGATION.search(self._source(node.test))

    def _has_twin(self, statement: ast.stmt, body: list[ast.stmt]) -> bool:
        """Whether another statement of the block does the same for the NPU."""
        if isinstance(statement, ast.If):
            if not _CUDA.search(self._source(statement.test)) or self.mentions_npu(statement.test):
                return False
            return any(isinstance(other, ast.If) and self._is_npu_test(other) for other in body)
        if isinstance(statement, ast.Assign):
            twin = self._source(statement.targets[0]).replace("cuda", "npu")
            return any(
                isinstance(other, ast.Assign) and self._source(other.targets[0]) == twin
                for other in body
                if other is not statement
            )
        called = (
            _CUDA_CALL.match(self._source(statement)) if isinstance(statement, ast.Expr) else None
        )
        if called is None:
            return False
        twin = f"torch.npu.{called.group(1)}("
        return any(twin in self._source(other) for other in body)

    def operands(self, node: ast.BoolOp) -> list[ast.expr]:
        """The operands worth looking at.

        `is_fast_path_available and "cuda" in x.device.type`: without the library, which is for
        CUDA, the second question is never asked.
        """
        if isinstance(node.op, ast.And):
            for index, operand in enumerate(node.values):
                if _LIBRARY_TEST.match(self._source(operand)):
                    return node.values[: index + 1]
        return node.values

    def arms(self, node: ast.If) -> Iterable[ast.AST]:
        """The parts of an `if` chain that are worth looking at."""
        if self.mentions_npu(*_tests(node)):
            return ()
        if self._never_on_npu(node.test):
            return (node.test, *self.statements(node.orelse))
        return (node.test, *self.statements(node.body), *self.statements(node.orelse))

    def handlers(self, node: ast.Try) -> Iterable[ast.AST]:
        """The parts of a `try` statement that are worth looking at."""
        body = self.statements(node.body)
        rest = (*self.statements(node.orelse), *self.statements(node.finalbody))
        imports = [s for s in node.body if isinstance(s, ast.Import | ast.ImportFrom)]
        if imports and self.mentions_npu(*imports):
            return (*body, *rest)
        return (*body, *node.handlers, *rest)

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
            and not _NEGATION.search(text)
            and _asks_for_device(test)
        )


def _tests(node: ast.If) -> list[ast.expr]:
    tests = [node.test]
    while len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
        node = node.orelse[0]
        tests.append(node.test)
    return tests


def _asks_for_device(test: ast.expr) -> bool:
    """Whether a test compares with a device type or asks whether a device is available."""
    if isinstance(test, ast.Compare):
        return any(isinstance(operator, ast.Eq | ast.In) for operator in test.ops)
    if isinstance(test, ast.BoolOp):
        return all(_asks_for_device(value) for value in test.values)
    if not isinstance(test, ast.Call):
        return False
    callee = test.func
    name = callee.attr if isinstance(callee, ast.Attribute) else getattr(callee, "id", "")
    return "available" in name
