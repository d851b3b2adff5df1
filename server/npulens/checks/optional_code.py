"""Where a library is used only if it works: what fails there on the NPU has another way already."""

import ast
import re
from bisect import bisect_right, insort
from collections.abc import Callable

from npulens.syntax.scopes import Scope
from npulens.syntax.values import Defined
from npulens.syntax.walking import nodes_below
from npulens.text.spans import Span
from npulens.verdicts.conditions import Known, answer
from npulens.verdicts.failing_imports import tried_parts
from npulens.verdicts.library_questions import may_query_library

_DECORATOR = re.compile(r"require|skip_?if|skip_?unless|\bskip\b", re.IGNORECASE)
_BINDING = (
    *(ast.Assign, ast.AnnAssign, ast.Import, ast.ImportFrom, ast.Return, ast.Continue),
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef),
)


class OptionalCode:
    """Disjoint parts of a text; outer parts have to be added before what is inside of them.

    What is known for conditions is that of where no library is there that an NPU may lack.

    Attributes:
        is_wanted: Libraries are used here at all; `None` until that is looked up.
    """

    def __init__(self, known: Known) -> None:
        self._known = known
        self._spans: list[Span] = []
        self.is_wanted: bool | None = None

    def add(self, span: Span) -> None:
        if span.start < span.end and self.part_of(span.start) is None:
            insort(self._spans, span)

    def part_of(self, offset: int) -> Span | None:
        """The part that holds a place."""
        index = bisect_right(self._spans, Span(offset, 1 << 62)) - 1
        found = self._spans[index] if index >= 0 else None
        return found if found is not None and offset < found.end else None

    def without_libraries(self, test: ast.expr, scope: Scope) -> bool | None:
        """What a condition comes to where no library is there, if it checks for one."""
        if not may_query_library(test, self._known.missing_libraries, self._known.missing_names):
            return None
        found = answer(test, scope, self._known)
        return found.holds if found.reason == "fallback" else None


def parts_with_other_way(node: ast.Try, scope: Scope) -> list[ast.stmt]:
    """What a `try` runs only if its imports succeed, where there is another way than these.

    There is one if a handler binds something or returns, a flag says that the imports succeeded, or
    what they bring takes the place of something. A handler that only says that something is
    missing leaves no other way.
    """
    statements = [s for handler in node.handlers for s in handler.body]
    flags = map(_sets_flag, (*node.body, *node.orelse))
    has_other_way = (
        any(flags)
        or any(map(_gives_other_way, statements))
        or any(_takes_a_place(statement, node, scope) for statement in node.body)
    )
    return tried_parts(node) if has_other_way else []


def _sets_flag(statement: ast.stmt) -> bool:
    """`HAS_APEX = True` beside an import."""
    value = statement.value if isinstance(statement, ast.Assign) else None
    return isinstance(value, ast.Constant) and value.value is True


def _takes_a_place(statement: ast.stmt, node: ast.Try, scope: Scope) -> bool:
    """`Norm = FusedNorm` where `class Norm` stands before the `try`."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Name):
        return False
    start = node.lineno, node.col_offset
    bound = [
        each
        for target in statement.targets
        if isinstance(target, ast.Name)
        for each in scope.bound(target.id, start) or ()
    ]
    return any(
        isinstance(each.binding.value, Defined)
        and (each.scope is not scope or each.binding.place <= start)
        for each in bound
    )


def _gives_other_way(statement: ast.stmt) -> bool:
    """Whether a statement of a handler binds something, or returns, in whatever block."""
    return any(isinstance(part, _BINDING) for part in nodes_below(statement))


def runs_on_request(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, source: Callable[[ast.AST], str]
) -> bool:
    """Whether a decorator leaves a test out where a library is missing."""
    return any(_DECORATOR.search(source(decorator)) for decorator in node.decorator_list)
