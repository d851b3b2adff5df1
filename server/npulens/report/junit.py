"""Findings as failed tests, for services that show those."""

import re
from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

from npulens.catalog.model import Finding, Language
from npulens.report.formats import Report
from npulens.report.human import printable
from npulens.report.locations import relative_path
from npulens.text.document import Document
from npulens.text.places import shown_place

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class JUnitReport(Report):
    """A suite for each file with findings, in which each finding is a case that failed."""

    def __init__(self, language: Language) -> None:
        super().__init__(language)
        self._suites: list[str] = []
        self._failures = 0

    def file(self, document: Document, findings: Sequence[Finding]) -> str:
        path = relative_path(document.path)
        cases = "".join(self._case(document, path, finding) for finding in findings)
        self._suites.append(_suite(path, len(findings), len(findings), cases))
        self._failures += len(findings)
        return ""

    def end(self, checked: int) -> str:
        """The report; where nothing was found, with one case that passed."""
        suites = "".join(self._suites)
        tests = self._failures
        if not tests:  # some services take a report without any case for a failure
            suites, tests = _suite("npulens", 1, 0, '<testcase name="check"/>\n'), 1
        head = f'<testsuites name="npulens" tests="{tests}" failures="{self._failures}" errors="0">'
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{head}\n{suites}</testsuites>\n'

    def _case(self, document: Document, path: str, finding: Finding) -> str:
        rule = finding.rule
        place = shown_place(document, finding.span.start)
        message = finding.message(self._language)
        name = _attribute(f"{rule.code} {rule.name} ({place})")
        failure = (
            f"<failure type={_attribute(finding.effective_severity.value)} "
            f"message={_attribute(message)}>{_text(f'{path}:{place}: {message}')}</failure>"
        )
        return f"<testcase name={name} classname={_attribute(path)}>\n{failure}\n</testcase>\n"


def _suite(name: str, tests: int, failures: int, cases: str) -> str:
    numbers = f'tests="{tests}" failures="{failures}" errors="0" skipped="0"'
    return f"<testsuite name={_attribute(name)} {numbers}>\n{cases}</testsuite>\n"


def _attribute(text: str) -> str:
    return quoteattr(_shown(text))


def _text(text: str) -> str:
    return escape(_shown(text))


def _shown(text: str) -> str:
    """A text that XML can hold, without what would command a terminal."""
    return printable(_NOT_IN_XML.sub("�", text))
