"""Statements for CUDA with a twin for the NPU: what their author has decided needs no finding.

`if is_npu_available(): torch.npu.synchronize()` stands beside the same for CUDA, or takes the NPU
away from all that follows.
"""

import ast
import re
from collections.abc import Callable, Iterator

from npulens.checks.cuda_only import NEGATION, Source, listed_names

_CUDA = re.compile(r"cuda|gpu", re.IGNORECASE)
_HELPER = re.compile(r"(?<![\w.\"'])\w*(?:npu|NPU)\w*(?![\w\"'])")
_CUDA_CALL = re.compile(r"torch\.cuda\.([\w.]+)\(")
_NPU_CALL = re.compile(r"torch\.npu\.([\w.]+)\(")
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


class Twins:
    """Which statements of a piece of source the NPU reaches without having been asked about.

    Args:
        source: Gives the text of a node.
        mentions_npu: Whether the text of one of some nodes names the NPU.
    """

    def __init__(self, source: Source, mentions_npu: Callable[..., bool]) -> None:
        self._source = source
        self._mentions_npu = mentions_npu

    def in_function(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.stmt]:
        """Statements of a function, in whatever block, that it has for the NPU as well."""
        for name in listed_names(function):
            yield from _translations(function, name)
        tests = [statement for statement in function.body if self._is_helper_test(statement)]
        twins = {name for test in tests for name in _NPU_CALL.findall(self._source(test))}
        for statement in ast.walk(function) if twins else ():
            if isinstance(statement, ast.Expr):
                called = _CUDA_CALL.match(self._source(statement))
                if called is not None and called.group(1) in twins:
                    yield statement

    def reached(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """The statements of a block that names the NPU, without those that it never comes to."""
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
        before = [
            statement
            for statement in body[: exits[0]]
            if not (isinstance(statement, ast.If) and isinstance(statement.body[-1], _LEAVES))
        ]
        return [*before, body[exits[0]]]

    def _is_npu_test(self, node: ast.If) -> bool:
        return self._mentions_npu(node.test) and not NEGATION.search(self._source(node.test))

    def _is_helper_test(self, statement: ast.stmt) -> bool:
        """An `if` that asks for the NPU in words no fix of ours writes, so not half-fixed code."""
        return (
            isinstance(statement, ast.If)
            and self._is_npu_test(statement)
            and _HELPER.search(self._source(statement.test)) is not None
        )

    def _has_twin(self, statement: ast.stmt, body: list[ast.stmt]) -> bool:
        """Whether another statement of the block does the same for the NPU."""
        if isinstance(statement, ast.If):
            if not _CUDA.search(self._source(statement.test)) or self._mentions_npu(statement.test):
                return False
            if any(self._is_helper_test(other) for other in body):
                return True
            twin = self._beginning(statement).replace("cuda", "npu")
            return any(isinstance(o, ast.If) and self._beginning(o) == twin for o in body)
        if isinstance(statement, ast.Assign):
            target = self._source(statement.targets[0])
            twin = target.replace("cuda", "npu")
            if any(self._decides_again(other, target) for other in body):
                return True
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
        return any(self._is_helper_test(o) and twin in self._source(o) for o in body)

    def _beginning(self, statement: ast.If) -> str:
        """The test, and the first statement up to its first bracket."""
        first = self._source(statement.body[0]).partition("(")[0]
        return f"{self._source(statement.test)}: {first}"

    def _decides_again(self, statement: ast.stmt, target: str) -> bool:
        """Whether an `if` puts another device into a name where there is an NPU."""
        return (
            isinstance(statement, ast.If)
            and self._mentions_npu(statement.test, *statement.body)
            and any(
                isinstance(s, ast.Assign) and self._source(s.targets[0]) == target
                for s in statement.body
            )
        )


def _translations(function: ast.AST, name: str) -> Iterator[ast.stmt]:
    """`if kind == "gpu": kind = "cuda"`, of a name that may be another device's too."""
    for node in ast.walk(function):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Compare):
            left = node.test.left
            if isinstance(left, ast.Name) and left.id == name:
                yield from (s for s in node.body if isinstance(s, ast.Assign))
