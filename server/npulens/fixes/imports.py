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
PLUGIN = "torch_npu"
NOT_UNUSED = "  # noqa: F401"
FOR_EFFECT = f"import torch_npu{NOT_UNUSED}"
"""The import of what nothing names: without a word to linters they would take it out again."""
_MISSING = frozenset({"ImportError", "ModuleNotFoundError"})
_ANYTHING = frozenset({"Exception", "BaseException"})
_STEP = "    "
_NOTHING_MORE = re.compile(r"[ \t]*;?[ \t]*(?:#|\r|\n|\Z)")


class TorchImport(NamedTuple):
    """A statement that imports torch, and where another import can follow it.

    Attributes:
        end: Offset behind the statement, or behind what the other import has to follow.
        indentation: White space before the other; `None` if it shares a line with other code.
        plain: It is `import torch...` and not `from torch... import`.
        is_tried: It may fail and is seen to, so the other goes to the `else` of its `try`.
        lead: A line that has to be before the other: `else:`.
    """

    end: int
    indentation: str | None
    plain: bool
    is_tried: bool = False
    lead: str = ""

    def shifted(self, distance: int) -> "TorchImport":
        return self._replace(end=self.end + distance)


def torch_import(body: Iterable[ast.stmt], lines: LineMap) -> TorchImport | None:
    """The import of torch to which another import can be added: the first plain one, or the first.

    Looks into `if`, `try` and `with` blocks too, but not under `if TYPE_CHECKING:`, where nothing
    runs. One in a `try` that has an answer to a missing torch comes last.
    """
    found = [
        (guard is not None, not isinstance(node, ast.Import), node, guard)
        for node, guard in _tried_imports(body)
        if _names_root(node, "torch")
    ]
    if not found:
        return None
    *_, node, guard = min(found, key=lambda each: each[:2])
    return _torch_import(node, lines) if guard is None else _behind_try(guard, node, lines)


def best_import(places: Sequence[TorchImport]) -> TorchImport | None:
    """Of the imports of torch in the parts of a module the one that another import goes to."""
    return min(places, key=lambda each: (each.is_tried, not each.plain), default=None)


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


def plugin_edit(place: TorchImport, text: str, *, is_named: bool) -> Edit:
    """Insert `import torch_npu` behind an import of torch; a comment says if nothing names it."""
    has_line = place.indentation is not None
    statement = "import torch_npu" if is_named or not has_line else FOR_EFFECT
    return statement_edit(place, statement, text)


def statement_edit(place: TorchImport, statement: str, text: str) -> Edit:
    """Insert a statement that imports something behind an import of torch.

    It goes behind the `import torch` lines in a row, where isort would put it, in the same block
    and with the same indentation.
    """
    if place.indentation is None:
        return Edit(Span(place.end, place.end), f"; {statement}")
    ending = line_ending(text)
    after = _line_end(text, place.end)
    while place.plain and after < len(text):
        next_end = _line_end(text, after)
        line = text[after:next_end].rstrip("\r\n")
        indented = line.startswith(place.indentation)
        if not (indented and _ONE_IMPORT.match(line[len(place.indentation) :])):
            break
        after = next_end
    lead = place.lead and place.lead + ending
    line = f"{lead}{place.indentation}{statement}"
    ends_line = text[after - 1] in "\r\n"
    return Edit(Span(after, after), line + ending if ends_line else ending + line)


def leading_imports_end(body: Sequence[ast.stmt], lines: LineMap) -> tuple[int, bool]:
    """Where the docstring and the imports at the start of a text end, and whether that is all."""
    end = 0
    for node in body:
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not (is_docstring or isinstance(node, (ast.Import, ast.ImportFrom))):
            return end, False
        stop = lines.span(node).end
        if not _NOTHING_MORE.match(lines.text, stop):
            return end, False
        end = _line_end(lines.text, stop)
    return end, True


def running_imports(body: Iterable[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports that run when a block does, those in `if`, `try` and `with` among them."""
    return (node for node, _ in _tried_imports(body))


def _tried_imports(
    body: Iterable[ast.stmt],
) -> Iterator[tuple[ast.Import | ast.ImportFrom, ast.Try | None]]:
    """The imports that run, each with the outermost `try` around it that is about its failure."""
    pending: list[tuple[ast.stmt, ast.Try | None]] = []
    pending += reversed([(node, None) for node in body])
    while pending:
        node, guard = pending.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node, guard
            continue
        blocks: list[ast.stmt] = []
        if isinstance(node, ast.If):
            blocks = [*([] if _is_type_checking(node.test) else node.body), *node.orelse]
        elif isinstance(node, (ast.Try, ast.With)):
            blocks = node.body
        if guard is None and isinstance(node, ast.Try) and _answers_missing(node):
            guard = node
        pending += [(each, guard) for each in reversed(blocks)]


def _answers_missing(node: ast.Try) -> bool:
    """Whether a `try` is for a missing library; under `except Exception` may be a whole program."""
    caught = set().union(*(_caught(handler) for handler in node.handlers))
    if not caught.isdisjoint(_MISSING):
        return True
    only_imports = all(
        isinstance(each, (ast.Import, ast.ImportFrom, ast.Assign)) for each in node.body
    )
    return only_imports and not caught.isdisjoint(_ANYTHING)


def _caught(handler: ast.ExceptHandler) -> set[str]:
    if handler.type is None:
        return {"BaseException"}
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return {each.id for each in types if isinstance(each, ast.Name)}


def _is_type_checking(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", None)
    return name == "TYPE_CHECKING"


def _names_root(node: ast.Import | ast.ImportFrom, module: str) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.level == 0 and (node.module or "").partition(".")[0] == module
    return any(alias.name.partition(".")[0] == module for alias in node.names)


def _torch_import(node: ast.Import | ast.ImportFrom, lines: LineMap) -> TorchImport:
    start, end = lines.span(node)
    before = lines.text[lines.starts[node.lineno - 1] : start]
    alone = not before.strip() and _NOTHING_MORE.match(lines.text, end) is not None
    return TorchImport(end, before if alone else None, isinstance(node, ast.Import))


def _behind_try(guard: ast.Try, node: ast.Import | ast.ImportFrom, lines: LineMap) -> TorchImport:
    """The `else` of a `try`: what fails there is not taken for a missing torch."""
    plain = isinstance(node, ast.Import)
    margin = _before(guard, lines)
    if guard.orelse:
        first = guard.orelse[0]
        line = min(each.lineno for each in (first, *getattr(first, "decorator_list", ())))
        start = lines.starts[line - 1]
        before = lines.text[start : start + first.col_offset]
        if not before.strip():
            return TorchImport(start - 1, before, plain, True)
        return TorchImport(lines.span(guard.orelse[-1]).end, None, plain, True)
    body = guard.body[0]
    step = _STEP
    if body.lineno > guard.lineno:
        step = _before(body, lines).removeprefix(margin)
    last_handler = guard.handlers[-1]
    end = lines.offset(last_handler.end_lineno or 0, last_handler.end_col_offset or 0)
    return TorchImport(end, margin + step, plain, True, f"{margin}else:")


def _before(node: ast.stmt, lines: LineMap) -> str:
    """What is before a statement in its line."""
    start = lines.starts[node.lineno - 1]
    return lines.text[start : start + node.col_offset]


def _line_end(text: str, offset: int) -> int:
    match = _LINE_END.search(text, offset)
    return match.end() if match is not None else len(text)
