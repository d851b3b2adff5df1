"""Findings on code that cannot be read."""

from npulens.catalog.model import Finding, LocalizedText
from npulens.catalog.tables import Catalogue
from npulens.syntax.parsing import SyntaxProblem
from npulens.syntax.versions import newer_syntax
from npulens.text.lines import LineMap
from npulens.text.spans import Span


def syntax_finding(problem: SyntaxProblem, lines: LineMap, catalogue: Catalogue) -> Finding:
    span = _problem_span(problem, lines)
    start = lines.starts[min(problem.line, len(lines.starts)) - 1]
    version = newer_syntax(lines.text[start:].split("\n", 1)[0])
    if version is not None:
        newer = f"Python {version[0]}.{version[1]}"
        return Finding(catalogue.required("newer-syntax"), span, {"detail": newer})
    detail = problem.detail.rstrip("?.")  # the message has a full stop of its own
    return Finding(catalogue.required("syntax-error"), span, {"detail": detail})


def unread_finding(reason: LocalizedText, catalogue: Catalogue) -> Finding:
    """A file that could not be looked at, and why."""
    return Finding(catalogue.required("unreadable-source"), Span(0, 0), note=reason)


def _problem_span(problem: SyntaxProblem, lines: LineMap) -> Span:
    """Something to see: at least one character, and never just the end of a line."""
    start = _offset(problem.line, problem.column, lines)
    end = max(_offset(problem.end_line, problem.end_column, lines), start)
    if end == start:
        line_end = _offset(problem.line, 1 << 30, lines)
        end = min(start + 1, line_end)
        start = min(start, max(end - 1, 0)) if end > _offset(problem.line, 1, lines) else start
    return Span(start, end)


def _offset(line: int, column: int, lines: LineMap) -> int:
    """The offset of a 1-based place, at most at the end of its line."""
    line = min(line, len(lines.starts))
    end = lines.starts[line] if line < len(lines.starts) else len(lines.text)
    start = lines.starts[line - 1]
    return min(start + column - 1, start + len(lines.text[start:end].rstrip("\r\n")))
