"""What a command settled, for its last words and for those who ask why a place is silent."""

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from npulens.catalog.model import Language
    from npulens.report.formats import Report
    from npulens.workspace.runs.file_report import FileReport


@dataclass
class Silence:
    """What is settled, as far as a run has come; `is_listed` where the user wants to see it."""

    language: "Language"
    is_listed: bool
    _reasons: Counter[str] = field(default_factory=Counter)

    def part(self, file: "FileReport", report: "Report") -> str:
        """The part of the output on what is settled in a file, which is counted."""
        self._reasons.update(f.settlement.reason for f in file.settled if f.settlement is not None)
        if not self.is_listed or not file.settled:
            return ""
        from npulens.report.formats import ListsSettled
        from npulens.report.silence_text import settled_lines
        from npulens.workspace.runs.run import document_of

        document = file.document or document_of(file.path)
        if document is None:
            return ""
        if isinstance(report, ListsSettled):
            return report.settled(document, file.settled)
        return settled_lines(document, file.settled, self.language)

    def text(self) -> str:
        """The line for the end of the output; empty if nothing is settled."""
        from npulens.report.silence_text import settled_line

        return settled_line(self._reasons, self.language)
