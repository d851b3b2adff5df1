"""Statements for CUDA with a twin for the NPU: what their author has decided needs no finding.

`if is_npu_available(): torch.npu.synchronize()` stands beside the same for CUDA, or takes the NPU
away from all that follows.
"""

import ast
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from npulens.checks.intent.cuda_only import Source, listed_names
from npulens.checks.intent.npu_tests import holds_on_npu
from npulens.syntax.walking import nodes_below

_CUDA = re.compile(r"cuda|gpu", re.IGNORECASE)
_CUDA_CALL = re.compile(r"torch\.cuda\.([\w.]+)\(")
_NPU_CALL = re.compile(r"torch\.npu\.([\w.]+)\(")
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


class _Block(NamedTuple):
    """What a block does for the NPU, gathered once for all of its statements.

    Attributes:
        helper_tests: Its `if`s that ask for the NPU in words of their author.
        beginnings: How its `if`s begin.
        targets: What its assignments assign to.
        decided_again: What such an `if` assigns to where there is an NPU.
        called_for_npu: The functions of `torch.npu` that helper tests call.
    """

    helper_tests: list[ast.If]
    beginnings: frozenset[str]
    targets: frozenset[str]
    decided_again: frozenset[str]
    called_for_npu: frozenset[str]


class Twins:
    """Which statements of a piece of source the NPU reaches without having been asked about.

    Args:
        source: Gives the text of a node.
        mentions_npu: Whether the text of one of some nodes names the NPU.
        author_mentions_npu: Whether it does so in words that no fix of ours writes.
    """

    def __init__(
        self,
        source: Source,
        mentions_npu: Callable[..., bool],
        author_mentions_npu: Callable[..., bool],
    ) -> None:
        self._source = source
        self._mentions_npu = mentions_npu
        self._author_mentions_npu = author_mentions_npu

    def in_function(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.stmt]:
        """Statements of a function, in whatever block, that it has for the NPU as well."""
        for name in listed_names(function):
            yield from _translations(function, name)
        tests = [statement for statement in function.body if self._is_helper_test(statement)]
        twins = {name for test in tests for name in _NPU_CALL.findall(self._source(test))}
        for statement in nodes_below(function) if twins else ():
            if isinstance(statement, ast.Expr):
                called = _CUDA_CALL.match(self._source(statement))
                if called is not None and called.group(1) in twins:
                    yield statement

    def reached(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """The statements of a block that names the NPU, without those that it never comes to."""
        block = self._block(body)
        body = [statement for statement in body if not self._has_twin(statement, block)]
        at = next((i for i, each in enumerate(body) if self._is_npu_exit(each)), None)
        if at is None:
            return body
        before = [each for each in body[:at] if not self._is_cuda_exit(each)]
        behind = body[at + 1 :]
        if not self._author_mentions_npu(body[at].test):  # type: ignore[attr-defined]
            behind = [each for each in behind if not _CUDA.search(self._source(each))]
        else:
            behind = []
        return [*before, body[at], *behind]

    def _is_npu_exit(self, statement: ast.stmt) -> bool:
        """`if is_npu_available(): return ...`: the NPU does not come to what stands behind it."""
        return (
            isinstance(statement, ast.If)
            and not statement.orelse
            and isinstance(statement.body[-1], _LEAVES)
            and self._is_npu_test(statement)
        )

    def _is_cuda_exit(self, statement: ast.stmt) -> bool:
        return (
            isinstance(statement, ast.If)
            and isinstance(statement.body[-1], _LEAVES)
            and _CUDA.search(self._source(statement.test)) is not None
        )

    def _is_npu_test(self, node: ast.If) -> bool:
        return holds_on_npu(node.test, self._mentions_npu) is True

    def _is_helper_test(self, statement: ast.stmt) -> bool:
        """An `if` that asks for the NPU in words no fix of ours writes, so not half-fixed code."""
        return (
            isinstance(statement, ast.If)
            and self._is_npu_test(statement)
            and self._author_mentions_npu(statement.test)
        )

    def _has_twin(self, statement: ast.stmt, block: "_Block") -> bool:
        """Whether another statement of the block does the same for the NPU."""
        if isinstance(statement, ast.If):
            if not _CUDA.search(self._source(statement.test)) or self._mentions_npu(statement.test):
                return False
            beginning = self._beginning(statement)
            twin = beginning.replace("cuda", "npu")
            is_asked = twin != beginning and twin in block.beginnings
            return is_asked or bool(block.helper_tests)
        if isinstance(statement, ast.Assign):
            target = self._source(statement.targets[0])
            twin = target.replace("cuda", "npu")
            if twin != target and twin in block.targets:
                return True
            if self._mentions_npu(statement.value) or self._builds_on(target, statement.value):
                return False
            return target in block.decided_again
        called = (
            _CUDA_CALL.match(self._source(statement)) if isinstance(statement, ast.Expr) else None
        )
        return called is not None and called.group(1) in block.called_for_npu

    def _block(self, body: list[ast.stmt]) -> "_Block":
        ifs = [statement for statement in body if isinstance(statement, ast.If)]
        assignments = [statement for statement in body if isinstance(statement, ast.Assign)]
        helper_tests = [node for node in ifs if self._is_helper_test(node)]
        return _Block(
            helper_tests,
            frozenset(self._beginning(node) for node in ifs),
            frozenset(self._source(node.targets[0]) for node in assignments),
            frozenset(
                self._source(s.targets[0])
                for node in ifs
                for s in node.body
                if isinstance(s, ast.Assign)
                and (self._mentions_npu(node.test) or self._author_mentions_npu(s.value))
            ),
            frozenset(n for node in helper_tests for n in _NPU_CALL.findall(self._source(node))),
        )

    def _builds_on(self, target: str, value: ast.expr) -> bool:
        """Whether an assignment goes on with what it assigns to: `model = wrap(model)`."""
        words = re.findall(r"[\w.]+", self._source(value))
        return any(word == target or word.startswith(f"{target}.") for word in words)

    def _beginning(self, statement: ast.If) -> str:
        """The test, and the first statement up to its first bracket."""
        first = self._source(statement.body[0]).partition("(")[0]
        return f"{self._source(statement.test)}: {first}"


def _translations(function: ast.AST, name: str) -> Iterator[ast.stmt]:
    """`if kind == "gpu": kind = "cuda"`, of a name that may be another device's too."""
    for node in nodes_below(function):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Compare):
            left = node.test.left
            if isinstance(left, ast.Name) and left.id == name:
                yield from (s for s in node.body if isinstance(s, ast.Assign))
