"""How often each rule is broken, most often first."""

from collections import Counter
from collections.abc import Sequence

from npulens.catalog.model import Applicability, Finding, Language, Rule
from npulens.report.formats import Report
from npulens.report.json_text import json_text
from npulens.report.report_wording import Totals, fixable
from npulens.text.document import Document


class Statistics(Report):
    """A line for each rule: how often, its code and name, how many findings have fixes."""

    def __init__(self, language: Language) -> None:
        super().__init__(language)
        self._totals = Totals()
        self._rules: dict[str, Rule] = {}
        self._counts: Counter[str] = Counter()
        self._fixes: Counter[tuple[str, Applicability]] = Counter()

    def file(self, document: Document, findings: Sequence[Finding]) -> str:
        self._totals.add(findings)
        for finding in findings:
            code = finding.rule.code
            self._rules[code] = finding.rule
            self._counts[code] += 1
            if finding.fixes:
                self._fixes[code, finding.fixes[0].applicability] += 1
        return ""

    def end(self, checked: int) -> str:
        """The lines, and the same last line as with the findings."""
        lines = []
        width = len(str(max(self._counts.values(), default=0)))
        for code, safe, unsafe in self._ordered():
            name, number = self._rules[code].name, str(self._counts[code]).rjust(width)
            shown = fixable(safe, unsafe).in_language(self._language)
            lines.append(f"{number}  {code} {name}{shown}\n")
        return "".join(lines) + self._totals.line(checked, self._language) + "\n"

    def _ordered(self) -> list[tuple[str, int, int]]:
        """Code, number of safe and of unsafe fixes."""
        codes = sorted(self._counts, key=lambda code: (-self._counts[code], code))
        return [
            (code, self._fixes[code, Applicability.SAFE], self._fixes[code, Applicability.UNSAFE])
            for code in codes
        ]


class JsonStatistics(Statistics):
    """The same as a JSON array."""

    def end(self, checked: int) -> str:
        """The array."""
        rows = [
            {
                "code": code,
                "name": self._rules[code].name,
                "severity": self._rules[code].severity.value,
                "count": self._counts[code],
                "safe_fixes": safe,
                "unsafe_fixes": unsafe,
            }
            for code, safe, unsafe in self._ordered()
        ]
        return json_text(rows, indent=1) + "\n"
