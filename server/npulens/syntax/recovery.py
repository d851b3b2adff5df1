"""Statements out of text that does not parse.

A block is parsed whole; if that fails, each of its statements is parsed alone; a compound statement
that fails keeps its header and each of its bodies is treated as a block again. Only statements
that hold an error themselves are lost. Every level reads the text once, so the cost grows with the
size of the text times its depth of nesting.
"""

import ast
import re
from collections.abc import Mapping
from typing import NamedTuple

from npulens.syntax.parsing import SyntaxProblem, parse
from npulens.syntax.strings import LexicalState
from npulens.syntax.walking import nodes_below

_CLAUSE = re.compile(r"\s*(?:else|elif|except|finally)\b")
_WITHOUT_CLAUSES = re.compile(r"\s*(?:@|(?:async\s+)?(?:class|def|with)\b)")
"""Beginnings of statements that no such clause belongs to."""
_CONFLICT = re.compile(r"(?:<{7}|={7}|>{7}|\|{7})(?:\s|\Z)")
_STATEMENT = re.compile(
    r"\s*(?:(?:return|import|raise|assert|del|pass|break|continue|try|def|class|while|with|global)\b"
    r"|@|[\w.]+ = )"
)
"""Starts that lines inside brackets rarely have; looked for only where something is broken."""
_MATCH = re.compile(r"\s*match\b.*:\s*(?:#.*)?$")
_CODE = re.compile(r"[ \t\f]*(?=[^\s#])")
_MAX_PROBLEMS = 50
"""A file with more broken statements (Python 2, say) is left where it is."""
_MAX_DEPTH = 40


class Known(NamedTuple):
    """What is known of a text before it is read.

    Attributes:
        broken: The lines of a statement that does not parse, from 0; no block around them parses
            either.
        whole: Statements that do, by their first line from 0; with each the first line of the one
            behind it.
    """

    broken: range
    whole: Mapping[int, tuple[ast.stmt, int]]


class Recovered(NamedTuple):
    """What could be read of a text, and what could not; lines count from 1."""

    body: list[ast.stmt]
    problems: list[SyntaxProblem]


def recover(text: str, known: Known | None = None) -> Recovered:
    """All statements of `text` that parse, in order, with positions in `text`."""
    reader = _Reader(_lines(text), known)
    for number, line in enumerate(reader.lines, 1):
        if _CONFLICT.match(line):
            reader.lines[number - 1] = "\n"
            problem = SyntaxProblem(number, 1, number, len(line.rstrip()) + 1, "merge conflict")
            reader.problems.append(problem)
    return Recovered(reader.block(0, len(reader.lines), 0), reader.problems)


def _lines(text: str) -> list[str]:
    return re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text)


def _indentation(line: str) -> int | None:
    """Width of the leading white space, `None` for a line without code."""
    match = _CODE.match(line)
    return None if match is None else len(match.group().expandtabs(8))


class _Reader:
    def __init__(self, lines: list[str], known: Known | None = None) -> None:
        self.lines = lines
        self.problems: list[SyntaxProblem] = []
        self._known = known

    def block(self, start: int, end: int, depth: int) -> list[ast.stmt]:
        """Statements of lines `start` to `end`, which share one indentation."""
        parsed = self._problem_in(start, end) or self._parse(start, end)
        if not isinstance(parsed, SyntaxProblem):
            return parsed
        if len(self.problems) >= _MAX_PROBLEMS:
            return []
        statements = self._statements(start, end)
        if depth > _MAX_DEPTH:
            self.problems.append(parsed)
            return []
        body: list[ast.stmt] = []
        for first, last in statements:
            known = self._statement_at(first, last)
            if known is not None:
                body.append(known)
                continue
            whole = parsed if len(statements) == 1 else self._parse(first, last)
            if isinstance(whole, SyntaxProblem):
                body += self._broken(first, last, whole, depth)
            else:
                body += whole
        return body

    def _problem_in(self, start: int, end: int) -> SyntaxProblem | None:
        """Why lines do not parse, if that is known: some of them do not."""
        broken = None if self._known is None else self._known.broken
        if broken is None or not (start <= broken.start and broken.stop <= end):
            return None
        found = None if end - start == len(broken) else self._parse(broken.start, broken.stop)
        return found if isinstance(found, SyntaxProblem) else None

    def _statement_at(self, start: int, end: int) -> ast.stmt | None:
        """The statement of these lines, if it is known."""
        known = None if self._known is None else self._known.whole.get(start)
        if known is None or known[1] < end or (known[0].end_lineno or 0) > end:
            return None
        return known[0]

    def _broken(self, start: int, end: int, problem: SyntaxProblem, depth: int) -> list[ast.stmt]:
        """A statement that does not parse: it has bodies, or a bracket swallowed what follows."""
        bodies = self._bodies(start, end)
        if bodies:
            return self._compound(start, end, bodies, problem, depth)
        parts = self._statements(start, end, in_brackets=True)
        if len(parts) == 1:
            self.problems.append(problem)
            return []
        return [
            statement for first, last in parts for statement in self.block(first, last, depth + 1)
        ]

    def _parse(self, start: int, end: int) -> list[ast.stmt] | SyntaxProblem:
        text = "".join(self.lines[start:end])
        indented = next(
            (w for line in self.lines[start:end] if (w := _indentation(line)) is not None), 0
        )
        parsed = parse("if 1:\n" + text if indented else text)
        shift = start - 1 if indented else start
        if isinstance(parsed, SyntaxProblem):
            line = parsed.line + shift
            if not start < line <= end:  # the parser means what comes next: mark the last line
                return self._at_last_line(start, end, parsed.detail)
            end_line = min(max(parsed.end_line + shift, line), end)
            return parsed._replace(line=line, end_line=end_line)
        body = parsed.body
        if indented and isinstance(parsed.body[0], ast.If):
            body = parsed.body[0].body
        if shift:
            for statement in body:
                ast.increment_lineno(statement, shift)
        return body

    def _at_last_line(self, start: int, end: int, detail: str) -> SyntaxProblem:
        last = start
        for index in range(start, end):
            if _indentation(self.lines[index]) is not None:
                last = index
        return SyntaxProblem(last + 1, 1, last + 1, len(self.lines[last]), detail)

    def _statements(
        self, start: int, end: int, *, in_brackets: bool = False, doubt_quotes: bool = True
    ) -> list[tuple[int, int]]:
        """Line ranges of the statements of a block, guessed by indentation.

        Inside brackets a line that is not indented deeper than its statement starts a new one:
        that is where an unclosed bracket shows. `in_brackets` also cuts where a line looks like a
        statement.
        """
        starts: list[int] = []
        width = 0
        state = LexicalState()
        decorated = compound = False
        for index in range(start, end):
            line = self.lines[index]
            line_width = _indentation(line)
            if line_width is not None and not state.quote and not state.continued:
                begins = line_width <= width and line.lstrip()[0] not in ")]}"
                if state.depth:
                    begins = begins or (in_brackets and _STATEMENT.match(line) is not None)
                elif not compound:
                    begins = True  # indented deeper for no reason: a statement of its own
                continues = (
                    compound
                    and line_width == width
                    and _CLAUSE.match(line)
                    and not _WITHOUT_CLAUSES.match(self.lines[starts[-1]])
                )
                if not starts or (begins and not continues):
                    if not decorated:
                        starts.append(index)
                    decorated = line.lstrip().startswith("@")
                    width, compound, state = line_width, False, LexicalState()
            state.read(line)
            if starts and not state.depth and not state.quote and not decorated:
                compound = compound or line.split("#", 1)[0].rstrip().endswith(":")
            if index == end - 1 and state.quote and starts and doubt_quotes:
                # An unfinished triple quote: only the line that opened it is broken.
                opened = self._opening_line(starts[-1], end)
                if opened + 1 < end:
                    ends = [*starts[1:], opened + 1]
                    return [
                        *zip(starts, ends, strict=True),
                        *self._statements(opened + 1, end, doubt_quotes=False),
                    ]
        if not starts:
            return [(start, end)]
        return list(zip(starts, [*starts[1:], end], strict=True))

    def _opening_line(self, start: int, end: int) -> int:
        """The line on which the string that is still open at `end` starts."""
        state = LexicalState()
        opened = start
        for index in range(start, end):
            was_open = bool(state.quote)
            state.read(self.lines[index])
            if state.quote and not was_open:
                opened = index
        return opened

    def _compound(
        self,
        start: int,
        end: int,
        bodies: list[tuple[int, int]],
        problem: SyntaxProblem,
        depth: int,
    ) -> list[ast.stmt]:
        """A statement with bodies: its headers alone, its bodies as blocks."""
        skeleton = list(self.lines[start:end])
        for first, last in bodies:
            indent = skeleton[first - start][
                : len(skeleton[first - start]) - len(skeleton[first - start].lstrip())
            ]
            skeleton[first - start : last - start] = [f"{indent}pass\n"] + ["\n"] * (
                last - first - 1
            )
        shell = _Reader(skeleton)._parse(0, len(skeleton))
        before = len(self.problems)
        recovered = {first + 1: self.block(first, last, depth + 1) for first, last in bodies}
        if isinstance(shell, SyntaxProblem):
            header = shell._replace(line=shell.line + start, end_line=shell.end_line + start)
            self.problems.insert(before, header)
            return [statement for body in recovered.values() for statement in body]
        for statement in shell:
            if start:
                ast.increment_lineno(statement, start)
            _graft(statement, recovered)
        if shell:
            # Its last body is longer than the `pass` in its place.
            shell[-1].end_lineno, shell[-1].end_col_offset = end, 0
        if len(self.problems) == before:
            self.problems.append(problem)
        return shell

    def _bodies(self, start: int, end: int) -> list[tuple[int, int]]:
        """Line ranges of the indented bodies of one compound statement."""
        bodies: list[tuple[int, int]] = []
        width = _indentation(self.lines[start]) or 0
        if _MATCH.match(self.lines[start]):  # its bodies are those of its cases
            widths = (_indentation(line) for line in self.lines[start + 1 : end])
            width = next((w for w in widths if w is not None), width)
        state = LexicalState()
        body_start: int | None = None
        header_done = False
        for index in range(start, end):
            line = self.lines[index]
            line_width = _indentation(line)
            if line_width is not None and not state.quote and not state.continued:
                if body_start is None and header_done and line_width > width:
                    body_start = index
                elif line_width <= width and line.lstrip()[0] not in ")]}":
                    if body_start is not None:
                        bodies.append((body_start, index))
                    body_start, state = None, LexicalState()
            if body_start is None:
                state.read(line)
                header_done = not state.depth and not state.quote
            else:
                state.depth = 0
                state.read(line)
        if body_start is not None:
            bodies.append((body_start, end))
        return bodies


def _graft(statement: ast.stmt, bodies: dict[int, list[ast.stmt]]) -> None:
    """Put recovered bodies where the `pass` of the skeleton is."""
    for node in nodes_below(statement):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and len(block) == 1 and isinstance(block[0], ast.Pass):
                recovered = bodies.get(block[0].lineno)
                if recovered:
                    setattr(node, name, recovered)
