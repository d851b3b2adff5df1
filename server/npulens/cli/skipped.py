"""What a command did not read, for its last words."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from npulens.catalog.model import Language
    from npulens.workspace.files.not_read import NotRead
    from npulens.workspace.runs.file_report import FileReport


class Skipped:
    """What was not read, as far as a run has come.

    Attributes:
        all: The files and folders, those that were never opened first.
    """

    def __init__(
        self, language: "Language", is_listed: bool, found: "Iterable[NotRead]" = ()
    ) -> None:
        """Set up.

        Args:
            language: Its language.
            is_listed: Whether the user wants to see each.
            found: What was passed over when looking for files.
        """
        self.all = list(found)
        self._language: Language = language
        self._is_listed = is_listed

    def add(self, file: "FileReport") -> None:
        """Take note of a file, if it could not be read."""
        from npulens.workspace.files.not_read import NotRead

        if file.unread is not None:
            self.all.append(NotRead(file.path, file.unread))

    def text(self) -> str:
        """The lines for the end of the output; empty if all was read."""
        from npulens.report.not_read_text import not_read_lines

        return not_read_lines(self.all, self._is_listed, self._language)

    def complain(self) -> None:
        """Tell it on standard error, where the output is for programs."""
        click.echo(self.text(), nl=False, err=True)
