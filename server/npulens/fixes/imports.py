"""Where `import torch_npu` goes."""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from npulens.catalog.model import Edit
from npulens.text.lines import LineMap
from npulens.text.spans import Span

_LINE_END = re.compile(r"\r\n|\r|\n|\Z")
_MORE_ON_LINE = re.compile(r"[ \t]*;[ \t]*(?=[^\s#])")
_ONE_IMPORT = re.compile(
    r"[ \t]*import[ \t]+torch(?:\.[\w.]+)?(?:[ \t]+as[ \t]+\w+)?[ \t]*(?:#.*)?\Z"
)


class TorchImport(NamedTuple):
    """A statement that imports torch, at a place where code runs.

    Attributes:
        after: Offset behind the line (or lines) it stands on, or behind its semicolon.
        indentation: White space before it; `None` if more statements follow on its line.
        plain: It is `import torch...` and not `from torch... import`.
    """

    after: int
    indentation: str | None
    plain: bool


def torch_imports(body: Iterable[ast.stmt], lines: LineMap) -> list[TorchImport]:
    """The imports of torch in a block and in the `if`, `try` and `with` blocks of it.

    Those under `if TYPE_CHECKING:` do not count: nothing there runs.
    """
    return [_torch_import(node, lines) for node in _imports(body) if _names_root(node, "torch")]


def imports_module(body: Iterable[ast.stmt], module: str) -> bool:
    """Whether a block imports a module, or something from it, in code that runs."""
    return any(_names_root(node, module) for node in _imports(body))


def import_edit(imports: Sequence[TorchImport], module: str, text: str) -> Edit | None:
    """Insert `import module` behind the first import of torch that runs, `None` if there is none.

    It goes behind the `import torch` lines that stand together, where isort would put it, in the
    same block and with the same indentation.
    """
    if not imports:
        return None
    place = next((found for found in imports if found.plain), imports[0])
    if place.indentation is None:
        return Edit(Span(place.after, place.after), f"import {module}; ")
    newline = "\r\n" if "\r\n" in text else "\n"
    line = f"{place.indentation}import {module}"
    ends_line = place.after == 0 or text[place.after - 1] in "\r\n"
    new_text = line + newline if ends_line else newline + line
    return Edit(Span(place.after, place.after), new_text)


def leading_imports_end(body: Sequence[ast.stmt], lines: LineMap) -> tuple[int, bool]:
    """Where the docstring and the imports at the start of a text end, and whether that is all."""
    end = 0
    for node in body:
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not (is_docstring or isinstance(node, ast.Import | ast.ImportFrom)):
            return end, False
        stop = lines.offset(node.end_lineno or node.lineno, node.end_col_offset or 0)
        if _MORE_ON_LINE.match(lines.text, stop):
            return end, False
        end = _line_end(lines.text, stop)
    return end, True


def _imports(body: Iterable[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If):
            if "TYPE_CHECKING" not in ast.dump(node.test):
                yield from _imports(node.body)
            yield from _imports(node.orelse)
        elif isinstance(node, ast.Try | ast.With):
            yield from _imports(node.body)


def _names_root(node: ast.Import | ast.ImportFrom, module: str) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.level == 0 and (node.module or "").partition(".")[0] == module
    return any(alias.name.partition(".")[0] == module for alias in node.names)


def _torch_import(node: ast.Import | ast.ImportFrom, lines: LineMap) -> TorchImport:
    text = lines.text
    end = lines.offset(node.end_lineno or node.lineno, node.end_col_offset or 0)
    more = _MORE_ON_LINE.match(text, end)
    if more is not None:
        return TorchImport(more.end(), None, isinstance(node, ast.Import))
    start = lines.offset(node.lineno, node.col_offset)
    line_start = lines.starts[node.lineno - 1]
    indentation = text[line_start:start]
    if indentation.strip():
        indentation = ""  # behind a semicolon
    after = _line_end(text, end)
    plain = isinstance(node, ast.Import)
    while plain and after < len(text):
        next_end = _line_end(text, after)
        line = text[after:next_end].rstrip("\r\n")
        if not (line.startswith(indentation) and _ONE_IMPORT.match(line[len(indentation) :])):
            break
        after = next_end
    return TorchImport(after, indentation, plain)


def _line_end(text: str, offset: int) -> int:
    match = _LINE_END.search(text, offset)
    return match.end() if match is not None else len(text)
