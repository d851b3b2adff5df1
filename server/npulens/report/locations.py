"""Places as services name them that know a repository and not this machine."""

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from npulens.catalog.messages import message
from npulens.catalog.model import Finding, Language
from npulens.text.document import Document
from npulens.text.places import cell_at, place_at


def relative_path(path: str) -> str:
    """The path from the current folder with slashes, absolute where it leads out of there."""
    relative = os.path.relpath(path)
    if relative.startswith(os.pardir):
        return Path(os.path.abspath(path)).as_posix()  # noqa: PTH100
    return relative.replace(os.sep, "/")


def uri_reference(path: str) -> str:
    """The same as a reference in the sense of RFC 3986."""
    name = relative_path(path)
    reference = quote(os.fsencode(name), safe="/")
    return f"file://{reference}" if name.startswith("/") else reference


def message_in_cell(document: Document, finding: Finding, language: Language) -> str:
    """The message of a finding; in a notebook it names the cell, which services do not know of."""
    return cell_named(document, finding, language) + finding.message(language)


def cell_named(document: Document, finding: Finding, language: Language) -> str:
    """The prefix of a message about a place in a notebook; elsewhere nothing."""
    cell = cell_at(document, finding.span.start)
    if cell is None:
        return ""
    line = place_at(document, finding.span.start).line
    return message("report.in-cell", cell=cell, line=line).in_language(language)


@dataclass(frozen=True, slots=True)
class FileNames:
    """How a page names files, and where its links to them lead.

    Attributes:
        root: The folder that names are relative to.
        folder: The folder that the page is in, to which links are relative.
        is_editor: Links open VS Code at the line; they work on this machine alone.
    """

    root: str
    folder: str
    is_editor: bool = False

    def name(self, path: str) -> str:
        """The path from the root, with slashes."""
        try:
            return os.path.relpath(path, self.root).replace(os.sep, "/")
        except ValueError:  # another drive of Windows
            return Path(path).as_posix()

    def link(self, path: str) -> str:
        """The reference to a file, to which a line can be appended: `#L` or, for VS Code, `:`."""
        absolute = Path(os.path.abspath(path)).as_posix()  # noqa: PTH100
        if self.is_editor:
            return "vscode://file" + quote(os.fsencode("/" + absolute.lstrip("/")), safe="/:")
        try:
            relative = os.path.relpath(path, self.folder).replace(os.sep, "/")
        except ValueError:  # another drive of Windows
            return f"file:///{quote(absolute, safe='/:')}"
        return quote(os.fsencode(relative), safe="/")

    @property
    def line_mark(self) -> str:
        """The separator between a link and a line."""
        return ":" if self.is_editor else "#L"
