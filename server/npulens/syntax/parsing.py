"""`ast.parse` that answers for every text."""

import ast
import sys
import threading
import warnings
from functools import lru_cache
from typing import NamedTuple


class SyntaxProblem(NamedTuple):
    """A place that does not parse: 1-based line, 1-based code-point column, the parser's words."""

    line: int
    column: int
    end_line: int
    end_column: int
    detail: str

    def moved(self, lines: int) -> "SyntaxProblem":
        """The same problem in a text with so many lines more before it."""
        return self._replace(line=self.line + lines, end_line=self.end_line + lines)


_ONE_AT_A_TIME = threading.Lock()
"""CPython 3.11 up to 3.11.7 counts the depth of all parsers together (python/cpython 106905): two
threads that build trees at once can end in a `SystemError`. The interpreter lock lets only one of
them advance anyway."""

_DEEP_RECURSION = 5_000
_DEEP_STACK = 256 * 1024 * 1024
"""Bytes; enough for what the recursion limit lets through, and only reserved, not used."""


def module_tree(text: str) -> ast.Module:
    """The tree of a module's text; raises what `ast.parse` raises."""
    with _ONE_AT_A_TIME:
        return ast.parse(text)


def tree_or_none(text: str) -> ast.Module | None:
    """The tree of a module's text, `None` if it does not parse."""
    try:
        return module_tree(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@lru_cache(maxsize=256)
def expression_tree(text: str) -> ast.expr:
    """The tree of one expression, which nobody changes; raises what `ast.parse` raises."""
    with _ONE_AT_A_TIME:
        return ast.parse(text, mode="eval").body


def parse(text: str) -> ast.Module | SyntaxProblem:
    """The tree of a text, or the first place that does not parse.

    Never raises: null bytes, nesting the parser refuses and memory limits are problems too.
    """
    try:
        return _parse(text)
    except RecursionError:
        return _parse_deep(text)


def _parse(text: str) -> ast.Module | SyntaxProblem:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return module_tree(text)
    except SyntaxError as error:
        line, column = error.lineno or 1, max(error.offset or 1, 1)
        end_line, end_column = error.end_lineno or line, error.end_offset or column
        return SyntaxProblem(line, column, end_line, max(end_column, 1), error.msg)
    except (ValueError, MemoryError, OverflowError) as error:
        return SyntaxProblem(1, 1, 1, 1, str(error) or type(error).__name__)


def _parse_deep(text: str) -> ast.Module | SyntaxProblem:
    """Parse a sum of thousands of terms, in a thread with the stack that takes."""
    results: list[ast.Module | SyntaxProblem] = []

    def work() -> None:
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(_DEEP_RECURSION)
        try:
            results.append(_parse(text))
        except RecursionError:
            results.append(SyntaxProblem(1, 1, 1, 1, "nested too deeply for the parser"))
        finally:
            sys.setrecursionlimit(limit)

    before = threading.stack_size(_DEEP_STACK)
    try:
        thread = threading.Thread(target=work)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    return results[0]
