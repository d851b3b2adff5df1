"""Changing a file in a way that no finding requests."""

from collections.abc import Callable
from pathlib import Path

from npulens.catalog.messages import LocalizedError, os_error, unreadable
from npulens.catalog.model import Fix
from npulens.fixes.apply import apply_edits
from npulens.text import sources
from npulens.text.decoding import (
    DecodedSource,
    UndecodableSource,
    UnencodableText,
    decode_source,
)
from npulens.text.document import Document
from npulens.text.notebooks import NotWrittenBack
from npulens.text.unreadable import Unreadable
from npulens.workspace.fixing.change_log import ChangeLog, relative_path
from npulens.workspace.fixing.file_fixes import FixedFile
from npulens.workspace.runs.file_report import FileReport


class UnreadableError(LocalizedError):
    """A file is not there, or no text; the message says which."""


def read_source(path: Path) -> DecodedSource:
    """The text of a file.

    Raises:
        UnreadableError: It has none.
    """
    try:
        return decode_source(path.read_bytes())
    except OSError as error:
        raise UnreadableError(os_error(error)) from error
    except UndecodableSource as error:
        raise UnreadableError(unreadable(error)) from error


def rewrite_file(
    path: Path,
    make: Callable[[str], Fix | None],
    root: Path,
    log: ChangeLog,
    write: Callable[[FixedFile], FileReport],
) -> bool:
    """Change a file and keep that in the log.

    Args:
        path: The file.
        make: Says what to do with its text, or `None` for nothing.
        root: The root of the tree.
        log: Keeps what is done, or why it cannot be.
        write: Writes the file.

    Returns:
        Whether it was changed.
    """
    name = relative_path(path, root)
    try:
        before = path.read_bytes()
        source = sources.read_source(str(path), before)
        fix = make(source.text)
        if fix is None:
            return False
        after = source.encode(apply_edits(source.text, fix.edits))
    except (OSError, Unreadable, UnencodableText, NotWrittenBack):
        return False  # the check of the file says so
    report = write(FixedFile(FileReport(str(path)), before, after))
    if report.problem is not None:
        log.problems[name] = report.problem
        return False
    log.add_rewriting(name, Document(str(path), source.text), fix)
    return True
