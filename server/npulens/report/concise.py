"""One line for each finding, as compilers write them and editors read them."""

from collections.abc import Sequence

from npulens.catalog.model import Finding, Language
from npulens.report.human import printable
from npulens.text.document import Document
from npulens.text.places import shown_place


class ConciseReport:
    """`path:line:column: code message`."""

    def __init__(self, language: Language) -> None:
        self._language: Language = language

    def file(self, document: Document, findings: Sequence[Finding]) -> str:
        """The part of one file."""
        return "".join(self._line(document, finding) for finding in findings)

    def end(self, checked: int) -> str:
        """What follows the last file."""
        return ""

    def _line(self, document: Document, finding: Finding) -> str:
        place = shown_place(document, finding.span.start)
        message = printable(finding.message(self._language))
        return f"{printable(document.path)}:{place}: {finding.rule.code} {message}\n"
