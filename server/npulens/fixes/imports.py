"""Where `import torch_npu` goes."""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from npulens.catalog.model import Edit
from npulens.text.lines import LineMap, line_ending
from npulens.text.spans import Span

_LINE_END = re.compile(r"\r\n|\r|\n|\Z")
_ONE_IMPORT = re.compile(
    r"import[ \t]+torch(?:_npu)?(?:\.[\w.]+)?(?:[ \t]+as[ \t]+\w+)?[ \t]*(?:#.*)?\Z"
)
_NOTHING_MORE = re.compile(r"[ \t]*;?[ \t]*(?:#|\r|\n|\Z)")


class TorchImport(NamedTuple):
    """A statement that imports torch, at a place where code runs.

    Attributes:
        end: Offset behind the statement.
        indentation: White space before it; `None` if it shares its line with other code.
        plain: It is `import torch...` and not `from torch... import`.
    """

    end: int
    indentation: str | None
    plain: bool

    def shifted(self, distance: int) -> "TorchImport":
        return self._replace(end=self.end + distance)


def torch_import(body: Iterable[ast.stmt], lines: LineMap) -> TorchImport | None:
    """The import of torch to which another import can be added: the first plain one, or the first.

    Looks into `if`, `try` and `with` blocks too, but not under `if TYPE_CHECKING:`, where nothing
    runs.
    """
    first: ast.Import | ast.ImportFrom | None = None
    for node in running_imports(body):
        if _names_root(node, "torch"):
            if isinstance(node, ast.Import):
                return _torch_import(node, lines)
            first = first or node
    return None if first is None else _torch_import(first, lines)


def imports_module(body: Iterable[ast.stmt], module: str) -> bool:
    """Whether a block imports a module, or something from it, in code that runs."""
    return any(_names_root(node, module) for node in running_imports(body))


def imports_as_itself(body: Iterable[ast.stmt], module: str) -> bool:
    """Whether a block has `import module`, so that the full names of what is in it can be used."""
    return any(
        isinstance(node, ast.Import)
        and any(a.asname is None and f"{a.name}.".startswith(f"{module}.") for a in node.names)
        for node in running_imports(body)
    )


def binds_module(body: Iterable[ast.stmt], module: str) -> bool:
    """Whether a block binds the name of a module: `import torch_npu.npu`, but not `... as npu`."""
    return any(
        isinstance(node, ast.Import)
        and any(a.asname is None and a.name.partition(".")[0] == module for a in node.names)
        for node in running_imports(body)
    )


def import_edit(place: TorchImport, module: str, text: str) -> Edit:
    """Insert `import module` behind an import of torch."""
    return statement_edit(place, f"import {module}", text)


def statement_edit(place: TorchImport, statement: str, text: str) -> Edit:
    """Insert a statement that imports something behind an import of torch.

    It goes behind the `import torch` lines that stand together, where isort would put it, in the
    same block and with the same indentation.
    """
    if place.indentation is None:
        return Edit(Span(place.end, place.end), f"; {statement}")
    after = _line_end(text, place.end)
    while place.plain and after < len(text):
        next_end = _line_end(text, after)
        line = text[after:next_end].rstrip("\r\n")
        indented = line.startswith(place.indentation)
        if not (indented and _ONE_IMPORT.match(line[len(place.indentation) :])):
            break
        after = next_end
    line = f"{place.indentation}{statement}"
    ends_line = text[after - 1] in "\r\n"
    ending = line_ending(text)
    return Edit(Span(after, after), line + ending if ends_line else ending + line)


def leading_imports_end(body: Sequence[ast.stmt], lines: LineMap) -> tuple[int, bool]:
    """Where the docstring and the imports at the start of a text end, and whether that is all."""
    end = 0
    for node in body:
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not (is_docstring or isinstance(node, (ast.Import, ast.ImportFrom))):
            return end, False
        stop = lines.offset(node.end_lineno or node.lineno, node.end_col_offset or 0)
        if not _NOTHING_MORE.match(lines.text, stop):
            return end, False
        end = _line_end(lines.text, stop)
    return end, True


def running_imports(body: Iterable[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports that run when a block does, those in `if`, `try` and `with` among them."""
    pending = list(reversed(list(body)))
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
        elif isinstance(node, ast.If):
            blocks = [*([] if _is_type_checking(node.test) else node.body), *node.orelse]
            pending += reversed(blocks)
        elif isinstance(node, (ast.Try, ast.With)):
            pending += reversed(node.body)


def _is_type_checking(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", None)
    return name == "TYPE_CHECKING"


def _names_root(node: ast.Import | ast.ImportFrom, module: str) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.level == 0 and (node.module or "").partition(".")[0] == module
    return any(alias.name.partition(".")[0] == module for alias in node.names)


def _torch_import(node: ast.Import | ast.ImportFrom, lines: LineMap) -> TorchImport:
    start = lines.offset(node.lineno, node.col_offset)
    end = lines.offset(node.end_lineno or node.lineno, node.end_col_offset or 0)
    before = lines.text[lines.starts[node.lineno - 1] : start]
    alone = not before.strip() and _NOTHING_MORE.match(lines.text, end) is not None
    return TorchImport(end, before if alone else None, isinstance(node, ast.Import))


def _line_end(text: str, offset: int) -> int:
    match = _LINE_END.search(text, offset)
    return match.end() if match is not None else len(text)
