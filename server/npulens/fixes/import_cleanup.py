"""What fixes leave behind together: imports that nothing uses any more, or that occur twice."""

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from npulens.catalog.model import Edit
from npulens.fixes.imports import NOT_UNUSED, PLUGIN
from npulens.syntax.parsing import tree_or_none
from npulens.syntax.walking import nodes_below
from npulens.text.lines import LineMap
from npulens.text.spans import Span

_Import = ast.Import | ast.ImportFrom
_WORD = re.compile(r"[A-Za-z_]\w*")
_BLANK_LINES = re.compile(r"(?:[ \t]*(?:\r\n|\r|\n))+")
_LONGEST_NAMING = 200
"""In characters; a longer text speaks to people."""


class Leftover(NamedTuple):
    """An edit that takes one away.

    Attributes:
        edit: The edit, in the text after the fixes.
    """

    name: str
    edit: Edit


def leftovers(before: str, after: str) -> list[Leftover]:
    """What is to be done to imports after the fixes of a module.

    Only imports go whose name was used before: what nobody used was there for its effect, or for
    others. Those in a `try` or an `if` stay, where they check whether a library is there.
    """
    old, new = tree_or_none(before), tree_or_none(after)
    if old is None or new is None:
        return []
    used = set(_used_words(new))
    orphans = set(_used_words(old)) - used - {"torch"}  # `import torch_npu` goes behind it
    lines = LineMap(after)
    found = []
    for statement in _imports(new):
        aliases = [each for each in statement.names if _bound(each) in orphans]
        edit = without_names(statement, aliases, lines) if aliases else None
        if edit is not None:
            found.append(Leftover(_bound(aliases[0]), edit))
    if PLUGIN not in before:  # so all that imports it was added
        found += _of_plugin(new, lines, is_used=PLUGIN in used)
    return found


def without_names(statement: _Import, aliases: list[ast.alias], lines: LineMap) -> Edit | None:
    """Take some names out of an import, or all of it with its line; `None` beside a comment."""
    text, span = lines.text, lines.span(statement)
    if "#" in text[slice(*span)]:
        return None
    if len(aliases) < len(statement.names):
        rest = text[span.end : text.find("\n", span.end) + 1 or len(text)]
        return None if "#" in rest else _with_others(statement, aliases, lines)
    start = lines.starts[statement.lineno - 1]
    end = text.find("\n", span.end) + 1 or len(text)
    if text[start : span.start].strip() or text[span.end : end].strip():
        return None
    before = lines.starts[max(statement.lineno - 2, 0)]
    blank = _BLANK_LINES.match(text, end)
    if blank and not text[before:start].strip():
        end = blank.end()  # of two gaps one stays
    return Edit(Span(start, end), "")


def _with_others(statement: _Import, aliases: list[ast.alias], lines: LineMap) -> Edit:
    """One edit from the first name to the last that keeps the names that are used."""
    first, last = lines.span(statement.names[0]), lines.span(statement.names[-1])
    kept = [lines.text[slice(*lines.span(a))] for a in statement.names if a not in aliases]
    inner = lines.text[first.start : last.end]
    separator = ", "
    if "\n" in inner:
        margin = inner[inner.index("\n") + 1 :]
        separator = ",\n" + margin[: len(margin) - len(margin.lstrip())]
    return Edit(Span(first.start, last.end), separator.join(kept))


def _of_plugin(tree: ast.Module, lines: LineMap, *, is_used: bool) -> Iterator[Leftover]:
    """Imports of torch_npu in functions where the module has one; needless words to linters."""
    first = next(filter(_is_plugin, tree.body), None)
    if first is None:
        return
    for block in _blocks_of_statements(tree):
        if block is tree.body or len(block) < 2:
            continue
        for statement in filter(_is_plugin, block):
            start = lines.starts[statement.lineno - 1]
            following = block[block.index(statement) + 1 :]
            if following and following[0].lineno > statement.lineno:
                end = lines.starts[following[0].lineno - 1]
                if not lines.text[start:end].replace("import torch_npu", "").strip():
                    yield Leftover(PLUGIN, Edit(Span(start, end), ""))
    start, end = lines.span(first)
    if is_used and lines.text.startswith(NOT_UNUSED, end):
        yield Leftover(PLUGIN, Edit(Span(end, end + len(NOT_UNUSED)), ""))


def _is_plugin(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Import) and [
        (each.name, each.asname) for each in statement.names
    ] == [(PLUGIN, None)]


def _imports(tree: ast.Module) -> Iterator[_Import]:
    """Those that run without a condition, in the module or in a function."""
    for node in nodes_below(tree):
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef)):
            imports = (each for each in node.body if isinstance(each, _Import))
            if len(node.body) > 1:
                yield from filter(_is_of_others, imports)


def _is_of_others(statement: _Import) -> bool:
    """Whether it imports from another package: what is of the own one may be there for others."""
    return not getattr(statement, "level", 0) and getattr(statement, "module", "") != "__future__"


def _blocks_of_statements(tree: ast.Module) -> Iterator[list[ast.stmt]]:
    for node in nodes_below(tree):
        for name in ("body", "orelse"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                yield block


def _bound(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]


def _used_words(tree: ast.Module) -> Iterator[str]:
    """Names, and words of texts, which `__all__` or an annotation may name something with."""
    for node in nodes_below(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            short = node.value if len(node.value) < _LONGEST_NAMING else ""
            yield from _WORD.findall(short)
