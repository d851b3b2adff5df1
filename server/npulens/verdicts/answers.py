"""Answers of conditions, and how `not`, `and` and `or` join them: nothing else decides that."""

import ast
from collections.abc import Callable, Sequence
from typing import NamedTuple

_DEEPEST = 20
"""Conditions nested deeper are not known."""
_DISPLAYS = (ast.Tuple, ast.List, ast.Set)


class Answer(NamedTuple):
    """What a condition comes to on an NPU.

    Attributes:
        holds: Whether it holds; `None` if that is not known.
        reason: Why what does not run then need not be moved: the name of a reason.
        node: The part of the condition that decides.
    """

    holds: bool | None = None
    reason: str = ""
    node: ast.expr | None = None

    def negated(self) -> "Answer":
        """The answer of `not`."""
        return self if self.holds is None else self._replace(holds=not self.holds)


UNKNOWN = Answer()

Part = Callable[[ast.expr], Answer]
"""Answers what is joined: a comparison, a call, a name."""


def joined(test: ast.expr, part: Part, depth: int = 0) -> Answer:
    """What a condition comes to, from what its parts come to."""
    if depth > _DEEPEST:
        return UNKNOWN
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return joined(test.operand, part, depth + 1).negated()
    if isinstance(test, ast.NamedExpr):
        return joined(test.value, part, depth + 1)
    if isinstance(test, ast.BoolOp):
        answers = [joined(value, part, depth + 1) for value in test.values]
        return _of_several(answers, decides=isinstance(test.op, ast.Or))
    if isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and len(test.args) == 1:
        return _of_builtin(test, test.func.id, part, depth)
    return part(test)


def _of_builtin(test: ast.Call, name: str, part: Part, depth: int) -> Answer:
    """`bool(x)`, `all((x, y))`, `any([x, y])`."""
    given = test.args[0]
    if name == "bool":
        return joined(given, part, depth + 1)
    if name in ("all", "any") and isinstance(given, _DISPLAYS):
        answers = [joined(each, part, depth + 1) for each in given.elts]
        return _of_several(answers, decides=name == "any")
    return part(test)


def _of_several(answers: Sequence[Answer], *, decides: bool) -> Answer:
    """`and` does not hold if one part does not; `or` holds if one does."""
    found = [each for each in answers if each.holds is decides]
    if found:
        return min(found, key=lambda each: each.reason == "never-runs-on-npu")
    if answers and all(each.holds is not None for each in answers):
        return answers[-1]
    return UNKNOWN
