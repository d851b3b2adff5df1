"""Notebooks: their Python cells as one text, and what becomes of that text as a file again.

In the text each cell starts with a line that no cell can hold and that Python takes for a comment.
It names the cell and its line in the file, so edits may move lines as they like. Writing changes
the `source` of cells whose text differs, and no other character of the file.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from npulens.text.spans import Span
from npulens.text.unreadable import Unreadable

SIGN = "\x1e"
"""The second character of the line that marks a cell."""
_MARK = re.compile(rf"^#{SIGN} (\d+) (\d+) (\d+)\n", re.MULTILINE)
_FORMAT = 4
"""Of nbformat; older ones have sheets, newer ones there are not."""
_BOM = "\ufeff"


class UnreadableNotebook(Unreadable, ValueError):  # noqa: N818
    """A file is no notebook with Python in it."""


class NotWrittenBack(ValueError):  # noqa: N818
    """A text has lost a cell, so that nobody knows where its lines belong."""


class CellMark(NamedTuple):
    """Where a cell starts in the text of all cells.

    Attributes:
        start: The offset behind the line that marks it.
        number: Its place among all cells of the notebook, those with prose too, from 1.
        file_line: The line of the file of its first line, from 1.
        step: 1 if each of its lines is a line of the file, 0 if they all are in one.
    """

    start: int
    number: int
    file_line: int
    step: int


@dataclass(frozen=True, slots=True)
class _Cell:
    """A cell with code, in the text of the file.

    Attributes:
        number: Its place among all cells, from 1.
        span: Where its source is.
        lines: Its source: the texts that a list has, or the only one.
        spans: Where each of them is.
        is_list: Whether the source is a list.
    """

    number: int
    span: Span
    lines: tuple[str, ...]
    spans: tuple[Span, ...]
    is_list: bool

    @property
    def text(self) -> str:
        """The source."""
        return "".join(self.lines)


def notebook_text(data: bytes) -> str:
    """The Python cells of a notebook as one text.

    Raises:
        UnreadableNotebook: It is none, or none for Python.
    """
    file = _decoded(data)
    starts = [match.end() for match in re.finditer("\n", file)]
    parts = []
    for cell in _cells(file):
        numbers = [bisect_right(starts, span.start) + 1 for span in cell.spans or (cell.span,)]
        by_line = numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        step = int(by_line and all(line.find("\n", 0, -1) < 0 for line in cell.lines))
        parts.append(f"#{SIGN} {cell.number} {numbers[0]} {step}\n{_ended(cell.text)}")
    return "".join(parts)


def notebook_bytes(data: bytes, text: str) -> bytes:
    """The file with the cells of a text that `notebook_text` made of it and edits have changed.

    Raises:
        NotWrittenBack: The text has not the same cells.
    """
    file = _decoded(data)
    cells = {cell.number: cell for cell in _cells(file)}
    marks = cell_marks(text)
    if [mark.number for mark in marks] != list(cells):
        raise NotWrittenBack
    is_ascii = file.isascii() and re.search(r"\\u(?!00[0-7])", file) is not None
    segments = []
    position = 0
    for mark, source in zip(marks, cell_sources(text), strict=True):
        cell = cells[mark.number]
        if source == _ended(cell.text):
            continue
        new = source if cell.text.endswith("\n") else source.removesuffix("\n")
        segments += [file[position : cell.span.start], _source(cell, new, file, is_ascii)]
        position = cell.span.end
    return "".join((*segments, file[position:])).encode()


def cell_marks(text: str) -> list[CellMark]:
    """Where the cells start in the text of a notebook."""
    return [CellMark(m.end(), *map(int, m.groups())) for m in _MARK.finditer(text)]


def cell_sources(text: str) -> Iterator[str]:
    """The texts of the cells in it, each of which ends with a line feed."""
    found = list(_MARK.finditer(text))
    ends = [*(match.start() for match in found[1:]), len(text)]
    for match, end in zip(found, ends, strict=False):  # a notebook may have no cell of code
        yield text[match.end() : end]


def with_each_cell(text: str, change: Callable[[str], str]) -> str:
    """The text with each cell changed; the lines that mark cells stay."""
    marks = [match[0] for match in _MARK.finditer(text)]
    return "".join(m + change(source) for m, source in zip(marks, cell_sources(text), strict=True))


def _ended(source: str) -> str:
    return source if source.endswith("\n") else source + "\n"


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise UnreadableNotebook("not-utf-8", offset=error.start) from error


def _source(cell: _Cell, new: str, file: str, is_ascii: bool) -> str:
    """The source as JSON, with the line breaks, spaces and escapes that it had."""
    if not cell.is_list:
        return json.dumps(new, ensure_ascii=is_ascii)
    known = {line: file[slice(*span)] for line, span in zip(cell.lines, cell.spans, strict=True)}
    lines = [
        known.get(line) or json.dumps(line, ensure_ascii=is_ascii)
        for line in new.splitlines(keepends=True)  # those that nbformat makes
    ]
    if not cell.spans or not lines:
        return f"[{', '.join(lines)}]"
    start = file[cell.span.start : cell.spans[0].start]
    end = file[cell.spans[-1].end : cell.span.end]
    between = f",{start[1:]}"
    if len(cell.spans) > 1:
        between = file[cell.spans[0].end : cell.spans[1].start]
    return start + between.join(lines) + end


# Reading JSON with the places of what it holds.

_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()
_Reader = Callable[[str, int], tuple[Any, int]]
"""From a text and the place of a value in it to the value and its end."""


def _cells(file: str) -> list[_Cell]:
    """The cells with Python in a notebook.

    Raises:
        UnreadableNotebook: It is none, or none for Python.
    """
    try:
        start = _space(file, len(_BOM) if file.startswith(_BOM) else 0)
        notebook, end = _object(file, start, {"cells": _array_of(_cell)})
        if _space(file, end) != len(file):
            raise json.JSONDecodeError("more than one value", file, end)
    except json.JSONDecodeError as error:
        detail = error.msg[:1].lower() + error.msg[1:]
        raise UnreadableNotebook("not-json", line=error.lineno, reason=detail) from error
    except RecursionError as error:
        raise UnreadableNotebook("deep-json") from error
    version = notebook.get("nbformat")
    if version != _FORMAT or not isinstance(notebook.get("cells"), list):
        problem = "other-format" if isinstance(version, int) else "no-notebook"
        raise UnreadableNotebook(problem, version=version, format=_FORMAT)
    language = _language(notebook.get("metadata"))
    if not language.lower().startswith(("python", "ipython")):
        raise UnreadableNotebook("other-language", language=language)
    found = []
    for number, (entry, span) in enumerate(notebook["cells"], 1):
        if not isinstance(entry, dict) or not isinstance(entry.get("cell_type"), str):
            raise UnreadableNotebook("no-cell", number=number)
        if entry["cell_type"] == "code" and _is_python(entry.get("metadata")):
            found.append(_code_cell(number, entry.get("source"), span))
    return found


def _code_cell(number: int, source: Any, cell: Span) -> _Cell:
    if not isinstance(source, _Texts):
        raise UnreadableNotebook("no-source", number=number)
    if any(SIGN in line for line in source.texts):
        raise UnreadableNotebook("control-character", number=number)
    return _Cell(number, source.span, source.texts, source.spans, source.is_list)


def _language(metadata: Any) -> str:
    """The language of a notebook; Python, if it does not say."""
    for key, inner in (("language_info", "name"), ("kernelspec", "language")):
        info = metadata.get(key) if isinstance(metadata, dict) else None
        name = info.get(inner) if isinstance(info, dict) else None
        if isinstance(name, str) and name:
            return name
    return "Python"


def _is_python(metadata: Any) -> bool:
    """Whether a cell is in the language of the notebook, which VS Code lets it choose."""
    info = metadata.get("vscode") if isinstance(metadata, dict) else None
    return not isinstance(info, dict) or info.get("languageId", "python") == "python"


class _Texts(NamedTuple):
    """A source: one text, or a list of them."""

    span: Span
    texts: tuple[str, ...]
    spans: tuple[Span, ...]
    is_list: bool


def _space(file: str, at: int) -> int:
    match = _SPACE.match(file, at)
    return match.end() if match is not None else at


def _value(file: str, at: int) -> tuple[Any, int]:
    value, end = _DECODER.raw_decode(file, at)
    return value, end


def _object(file: str, at: int, readers: Mapping[str, _Reader]) -> tuple[dict[str, Any], int]:
    """An object, some of whose members have readers of their own."""
    if file[at : at + 1] != "{":
        return {}, _value(file, at)[1]
    found = {}
    at = _space(file, at + 1)
    while file[at : at + 1] != "}":
        if file[at : at + 1] != '"':
            raise json.JSONDecodeError("expecting the name of a member", file, at)
        key, at = _value(file, at)
        at = _space(file, at)
        if file[at : at + 1] != ":":
            raise json.JSONDecodeError("expecting a colon", file, at)
        found[key], at = readers.get(key, _value)(file, _space(file, at + 1))
        at = _behind_comma(file, at, "}")
    return found, at + 1


def _behind_comma(file: str, at: int, closing: str) -> int:
    """Where the next item starts, or the closing bracket is."""
    at = _space(file, at)
    if file[at : at + 1] == ",":
        at = _space(file, at + 1)
        if file[at : at + 1] == closing:
            raise json.JSONDecodeError('nothing follows the ","', file, at)
    elif file[at : at + 1] != closing:
        raise json.JSONDecodeError(f'expecting "," or "{closing}"', file, at)
    return at


def _array_of(read: _Reader) -> _Reader:
    def array(file: str, at: int) -> tuple[Any, int]:
        """The items of an array, each with its place."""
        if file[at : at + 1] != "[":
            return _value(file, at)
        found = []
        at = _space(file, at + 1)
        while file[at : at + 1] != "]":
            item, end = read(file, at)
            found.append((item, Span(at, end)))
            at = _behind_comma(file, end, "]")
        return found, at + 1

    return array


def _cell(file: str, at: int) -> tuple[dict[str, Any], int]:
    return _object(file, at, {"source": _texts})


def _texts(file: str, at: int) -> tuple[_Texts | None, int]:
    value, end = _array_of(_value)(file, at)
    items = value if isinstance(value, list) else [(value, Span(at, end))]
    if not all(isinstance(text, str) for text, _ in items):
        return None, end
    texts, spans = tuple(text for text, _ in items), tuple(span for _, span in items)
    return _Texts(Span(at, end), texts, spans, isinstance(value, list)), end
