"""The tree of a class in which one method was edited, without reading the others again."""

import ast

from npulens.syntax.bindings import Function
from npulens.syntax.parsing import SyntaxProblem, parse
from npulens.syntax.recovery import Known, Recovered, recover
from npulens.syntax.strings import LexicalState
from npulens.text.differences import changed_part
from npulens.text.lines import LineMap

_SHELL = "class _:\n"


def edited_class(before: LineMap, body: list[ast.stmt], text: str) -> Recovered | None:
    """The statements of `text`, if it differs from `before` inside of one method alone.

    The text before parses. All nodes outside of that method are those of the tree before: nothing
    that depends on them needs to be computed again. `None` if lines were added or removed, if more
    than one method differs, or if strings are left open; then the text has to be read as a whole.
    """
    owner = body[0] if len(body) == 1 else None
    if not isinstance(owner, ast.ClassDef):
        return None
    edited = changed_part(before.text, text)
    longer = len(text) - len(before.text)
    old, new = before.text[slice(*edited)], text[edited.start : edited.end + longer]
    if any(old.count(end) != new.count(end) for end in "\n\r"):
        return None
    for index, method in enumerate(owner.body):
        lines = _lines_of(owner.body, index)
        if lines is None or lines.stop > len(before.starts):
            continue
        start, end = before.starts[lines.start - 1], before.starts[lines.stop - 1]
        if start + method.col_offset <= edited.start and edited.end < end:
            if not text[start + method.col_offset :][:1].strip():
                return None
            return _read(owner, index, lines, text, text[start : end + longer])
    return None


def _lines_of(body: list[ast.stmt], index: int) -> range | None:
    """The lines of a method that shares none with its neighbours; 1-based."""
    method = body[index]
    if not isinstance(method, Function):
        return None
    first, last = first_line(method), method.end_lineno or method.lineno
    if index and (body[index - 1].end_lineno or 0) >= first:
        return None
    if index + 1 < len(body) and first_line(body[index + 1]) <= last:
        return None
    return range(first, last + 1)


def first_line(node: ast.stmt) -> int:
    """The first line of a statement with its decorators; 1-based."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)])


def _read(
    owner: ast.ClassDef, index: int, lines: range, text: str, method_text: str
) -> Recovered | None:
    """A class with a method that has another text, which is in these lines."""
    blank = lines.start - 1 - _SHELL.count("\n")
    parsed = parse(_SHELL + "\n" * blank + method_text) if blank >= 0 else None
    if isinstance(parsed, SyntaxProblem):
        return _recovered(owner.body, lines, text, method_text)
    shell = parsed.body[0] if parsed is not None and len(parsed.body) == 1 else None
    methods = shell.body if isinstance(shell, ast.ClassDef) else []
    if len(methods) != 1 or not isinstance(methods[0], Function):
        return None
    return Recovered([_with(owner, index, methods[0])], [])


def _recovered(body: list[ast.stmt], lines: range, text: str, method_text: str) -> Recovered | None:
    """A class of which one method does not parse."""
    state = LexicalState()
    state.read(method_text)
    if state.quote or state.continued:
        return None  # what is behind it may be part of a string
    firsts = [first_line(node) - 1 for node in body]
    behind = [*firsts[1:], text.count("\n") + 1]
    whole = {
        first: (node, following)
        for node, first, following in zip(body, firsts, behind, strict=True)
        if first != lines.start - 1
    }
    found = recover(text, Known(range(lines.start - 1, lines.stop - 1), whole))
    return found if found.problems else None


def _with(owner: ast.ClassDef, index: int, method: ast.stmt) -> ast.ClassDef:
    """A class with another method; the class before stays as it is, others may be reading it."""
    fields = {name: value for name, value in ast.iter_fields(owner) if name != "body"}
    body = [*owner.body[:index], method, *owner.body[index + 1 :]]
    changed = ast.copy_location(ast.ClassDef(body=body, **fields), owner)  # without its answers
    if index == len(owner.body) - 1:
        changed.end_lineno, changed.end_col_offset = method.end_lineno, method.end_col_offset
    return changed
