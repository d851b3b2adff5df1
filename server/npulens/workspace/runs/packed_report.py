"""What a check of a file came to, so small that it can be kept for thousands of files."""

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from npulens.catalog.model import LANGUAGES, Finding, Language, LocalizedText, Rule
from npulens.text.decoding import UndecodableSource
from npulens.text.document import Document
from npulens.text.notebooks import UnreadableNotebook
from npulens.text.spans import Span
from npulens.workspace.runs.file_report import FileReport
from npulens.workspace.runs.finding_records import finding_of, record_of
from npulens.workspace.runs.run import decoded


@dataclass(frozen=True, slots=True)
class PackedReport:
    """What a check of one file came to, without the text of the file.

    Attributes:
        findings: The wanted findings; empty where there are none.
    """

    findings: bytes
    problem: LocalizedText | None = None

    def unpacked(
        self, path: Path, rules: Mapping[str, Rule]
    ) -> tuple[Document | None, tuple[Finding, ...]]:
        """The text as the file has it now, and the findings; no text where there are none."""
        if not self.findings:
            return None, ()
        records = json.loads(zlib.decompress(self.findings))
        try:
            text = decoded(str(path), path.read_bytes())
        except (OSError, UndecodableSource, UnreadableNotebook):
            text = ""
        return Document(str(path), text), tuple(finding_of(each, rules) for each in records)


def packed(report: FileReport) -> PackedReport:
    """The same as few bytes."""
    if not report.findings:
        return PackedReport(b"", report.problem)
    records = [record_of(finding) for finding in report.findings]
    data = json.dumps(records, separators=(",", ":")).encode()
    return PackedReport(zlib.compress(data, 1), report.problem)


def is_sound(report: FileReport) -> bool:
    """Whether findings are of the text that they are shown in, and can be reported."""
    size = 0 if report.document is None else len(report.document.text)
    try:
        return all(_is_sound(finding, size) for finding in report.findings)
    except Exception:  # whatever there may be in a file of anybody
        return False


def _is_sound(finding: Finding, size: int) -> bool:
    fixes = [edit.span for fix in finding.fixes for edit in fix.edits]
    spans = [finding.span, *(part.span for part in finding.related), *fixes]
    translations = [_texts(finding, language) for language in LANGUAGES]
    return all(_is_within(span, size) for span in spans) and all(
        isinstance(text, str) for texts in translations for text in texts
    )


def _texts(finding: Finding, language: Language) -> list[object]:
    bare = replace(finding, note=None)
    return [
        bare.message(language),
        finding.message(language),
        *(part.text.in_language(language) for part in finding.related),
        *(fix.title.in_language(language) for fix in finding.fixes),
        *(edit.replacement for fix in finding.fixes for edit in fix.edits),
    ]


def _is_within(span: Span, size: int) -> bool:
    return all(type(end) is int for end in span) and 0 <= span.start <= span.end <= size
