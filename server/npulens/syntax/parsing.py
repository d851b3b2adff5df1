"""`ast.parse` that answers for every text."""

import ast
import warnings
from typing import NamedTuple


class SyntaxProblem(NamedTuple):
    """A place that does not parse: 1-based line, 1-based code-point column, the parser's words."""

    line: int
    column: int
    end_line: int
    end_column: int
    detail: str


def parse(text: str) -> ast.Module | SyntaxProblem:
    """The tree of a text, or the first place that does not parse.

    Never raises: null bytes, nesting the parser refuses and memory limits are problems too.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        line, column = error.lineno or 1, max(error.offset or 1, 1)
        end_line, end_column = error.end_lineno or line, error.end_offset or column
        return SyntaxProblem(line, column, end_line, max(end_column, 1), error.msg)
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        return SyntaxProblem(1, 1, 1, 1, str(error) or type(error).__name__)
