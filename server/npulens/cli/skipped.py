"""What a command did not read, for its last words."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from npulens.catalog.model import Language
    from npulens.workspace.files.not_read import NotRead
    from npulens.workspace.runs.file_report import FileReport


@dataclass
class Skipped:
    """What was not read, as far as a run has come.

    Attributes:
        language: That of the last words.
        is_listed: Whether the user wants to see each file and folder.
        found: These, those that were never opened first.
    """

    language: "Language"
    is_listed: bool
    found: "list[NotRead]" = field(default_factory=list)

    def add(self, file: "FileReport") -> None:
        """Take note of a file, if it could not be read."""
        from npulens.workspace.files.not_read import NotRead

        if file.unread is not None:
            self.found.append(NotRead(file.path, file.unread))

    def text(self) -> str:
        """The lines for the end of the output; empty if all was read."""
        from npulens.report.not_read_text import not_read_lines

        return not_read_lines(self.found, self.is_listed, self.language)

    def complain(self) -> None:
        """Tell it on standard error, where the output is for programs."""
        click.echo(self.text(), nl=False, err=True)
