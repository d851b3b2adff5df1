"""Lines that are put into a text, and the places for them."""

import ast
from collections.abc import Iterable
from typing import NamedTuple

from npulens.catalog.model import Edit
from npulens.fixes.instruments.marks import marked
from npulens.fixes.scripts import UnclearError
from npulens.syntax.parsing import module_tree
from npulens.text.lines import LineMap, line_ending
from npulens.text.spans import Span


class Insertion(NamedTuple):
    """Lines that come before a line of a text.

    Attributes:
        line: The number of that line, from 1; one more than there are puts them at the end.
        order: Of what comes before the same line, the lower comes first.
        indentation: White space before each of the lines.
    """

    line: int
    order: int
    indentation: str
    lines: tuple[str, ...]


def before(lines: LineMap, node: ast.stmt, inserted: Iterable[str], order: int = 0) -> Insertion:
    """Lines before a statement.

    Raises:
        UnclearError: The statement shares its line with others.
    """
    return Insertion(_first_line(node), order, _indentation(lines, node), tuple(inserted))


def behind(lines: LineMap, node: ast.stmt, inserted: Iterable[str], order: int = 0) -> Insertion:
    """Lines behind a statement, and behind those that follow on its line.

    Raises:
        UnclearError: Its first line begins with a condition or the like, or its last line has a
            statement behind it that leaves the block.
    """
    end = node.end_lineno or node.lineno
    stop = lines.starts[end] if end < len(lines.starts) else len(lines.text)
    rest = lines.text[lines.span(node).end : stop].strip()
    if rest and not rest.startswith("#") and not _goes_on(rest.removeprefix(";")):
        raise UnclearError(end, "instrument.shared-line")
    start = lines.starts[node.lineno - 1]
    above = lines.text[start : lines.span(node).start]
    if above.strip() and not _goes_on(above):
        raise UnclearError(node.lineno, "instrument.shared-line")
    indentation = above[: len(above) - len(above.lstrip())]
    return Insertion(end + 1, order, indentation, tuple(inserted))


def _goes_on(line: str) -> bool:
    """Whether a part of a line is whole statements that do not leave their block: `a = b; c()`."""
    try:
        found = module_tree(line.strip().removesuffix(";")).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return all(isinstance(each, (ast.Expr, ast.Assign, ast.AugAssign)) for each in found)


def edits_of(lines: LineMap, insertions: Iterable[Insertion], name: str) -> tuple[Edit, ...]:
    """The edits that put in the lines, each marked with the name of the instrument."""
    text, ending = lines.text, line_ending(lines.text)
    is_unended = not text.endswith(("\n", "\r"))
    parts: dict[int, str] = {}
    for each in sorted(insertions, key=lambda i: (i.line, i.order)):
        start = lines.starts[each.line - 1] if each.line <= len(lines.starts) else len(text)
        for line in (line for part in each.lines for line in part.splitlines()):
            new = marked(each.indentation + line, name)
            new = ending + new if is_unended and start == len(text) else new + ending
            parts[start] = parts.get(start, "") + new
    return tuple(Edit(Span(start, start), new) for start, new in parts.items())


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)])


def _indentation(lines: LineMap, node: ast.stmt) -> str:
    start = lines.starts[node.lineno - 1]
    found = lines.text[start : lines.span(node).start]
    if found.strip():
        raise UnclearError(node.lineno, "instrument.shared-line")
    return found
