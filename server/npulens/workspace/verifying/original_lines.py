"""Which line of the user's file a line of its migrated copy comes from."""

from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import NamedTuple

from npulens.text.decoding import UndecodableSource
from npulens.text.document import Document
from npulens.text.notebooks import SIGN, UnreadableNotebook
from npulens.text.places import cell_at, place_at
from npulens.text.sources import read_source


class UserPlace(NamedTuple):
    """A line as a person finds it.

    Attributes:
        line: From 1; in a notebook, from the start of the cell.
        cell: The number of the cell among all cells, from 1; `None` in a file that is no notebook.
    """

    line: int
    cell: int | None = None


class OriginalLines:
    """Looks up lines; files are compared when first needed."""

    def __init__(self, original: Path, copy: Path) -> None:
        """Set up with the two folders."""
        self._original = original
        self._copy = copy
        self._documents: dict[str, Document | None] = {}
        self._lines: dict[str, list[int]] = {}

    def place(self, path: str, line: int) -> UserPlace:
        """The place in the original; of lines that were replaced, the one in the same place."""
        document = self.document(path)
        if document is None:
            return UserPlace(line)
        if path not in self._lines:
            after = document_in(self._copy, path)
            lines = [] if after is None else original_lines(_lines(document), _lines(after))
            self._lines[path] = lines
        lines = self._lines[path]
        found = lines[line - 1] if 0 < line <= len(lines) else min(line, document.line_count)
        offset = document.line_starts[found - 1]
        return UserPlace(place_at(document, offset).line, cell_at(document, offset))

    @property
    def documents(self) -> Mapping[str, Document]:
        """The originals of all files in which a line was looked up."""
        return {path: document for path, document in self._documents.items() if document}

    def document(self, path: str) -> Document | None:
        """The original of a file; of a notebook, that of its cells. `None` if it is no text."""
        if path not in self._documents:
            self._documents[path] = document_in(self._original, path)
        return self._documents[path]


def document_in(folder: Path, path: str) -> Document | None:
    """The text of a file below a folder; of a notebook, that of its cells. `None` if it is none."""
    try:
        return Document(path, read_source(path, (folder / path).read_bytes()).text)
    except (OSError, UndecodableSource, UnreadableNotebook):
        return None


def _lines(document: Document) -> list[str]:
    """The lines, of those that mark cells only which cell it is: edits before it move a cell."""
    lines = [document.line_text(line) for line in range(document.line_count)]
    mark = f"#{SIGN} "
    return [" ".join(line.split(" ")[:2]) if line.startswith(mark) else line for line in lines]


def original_lines(before: Sequence[str], after: Sequence[str]) -> list[int]:
    """For each line of `after` the number, from 1, of the line of `before` that it comes from."""
    found: list[int] = []
    for _, start, end, new_start, new_end in SequenceMatcher(
        None, before, after, autojunk=False
    ).get_opcodes():
        last = max(start, end - 1)
        last = min(last, max(len(before) - 1, 0))
        found += [min(start + number, last) + 1 for number in range(new_end - new_start)]
    return found
