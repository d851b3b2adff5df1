"""One line for each finding, as compilers write them and editors read them."""

from collections.abc import Sequence

from npulens.catalog.model import Finding
from npulens.report.formats import Report
from npulens.report.human import printable
from npulens.text.document import Document
from npulens.text.places import shown_place


class ConciseReport(Report):
    """`path:line:column: code message`."""

    def file(self, document: Document, findings: Sequence[Finding]) -> str:
        return "".join(self._line(document, finding) for finding in findings)

    def _line(self, document: Document, finding: Finding) -> str:
        place = shown_place(document, finding.span.start)
        message = printable(finding.message(self._language))
        return f"{printable(document.path)}:{place}: {finding.rule.code} {message}\n"
