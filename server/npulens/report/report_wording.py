"""What the interface says around findings."""

from collections import Counter
from collections.abc import Mapping, Sequence

from npulens.catalog.message_ids import MessageId
from npulens.catalog.messages import joined, message, message_of, plural
from npulens.catalog.model import Applicability, Finding, Language, LocalizedText, MigrationStyle
from npulens.workspace.settings.problems import counts_of

Counts = Sequence[tuple[MessageId, int]]
"""Texts about numbers, each with the number."""


def with_lines(numbers: Sequence[int], language: Language) -> str:
    """Which other lines belong to a finding."""
    listed = sorted(set(numbers))
    lines = message("punctuation.list").in_language(language).join(map(str, listed))
    return plural("report.with-lines", len(listed), lines=lines).in_language(language)


def style_name(style: MigrationStyle, language: Language) -> str:
    """What code of a migration style is called."""
    return message_of("style-name", style.value).in_language(language)


def style_meaning(style: MigrationStyle, language: Language) -> str | None:
    """What a style means for what is left to do; `None` if it is that of a port to the NPU."""
    if style is not MigrationStyle.DEVICE_AGNOSTIC:
        return None
    return message("report.any-device").in_language(language)


def environment_language(environment: Mapping[str, str]) -> Language:
    """The language of the environment of a process."""
    for variable in ("NPULENS_LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG"):
        if value := environment.get(variable):
            return "zh" if value.lower().startswith("zh") else "en"
    return "en"


class Totals:
    """How much is found in the files of a run, for its last line."""

    def __init__(self) -> None:
        self._files = self._problems = self._advice = 0
        self._fixes: Counter[Applicability] = Counter()

    def add(self, findings: Sequence[Finding]) -> None:
        """Count the findings of one file."""
        counts = counts_of(findings)
        self._files += bool(findings)
        self._problems += counts.problems
        self._advice += counts.advice
        self._fixes.update(finding.fixes[0].applicability for finding in findings if finding.fixes)

    def line(self, checked: int, language: Language) -> str:
        """The last line of a run that looked at so many files."""
        if not (self._problems or self._advice):
            return plural("report.nothing-found", checked).in_language(language)
        return message(
            "report.found",
            findings=counted_findings(self._problems, self._advice),
            files=plural("report.files", self._files),
            fixes=fixable(self._fixes[Applicability.SAFE], self._fixes[Applicability.UNSAFE]),
        ).in_language(language)


def counted_findings(problems: int, advice: int) -> LocalizedText:
    """So many problems and pieces of advice; what there is none of is left out."""
    counts: Counts = (("report.problems", problems), ("report.advice", advice))
    return joined((plural(name, number) for name, number in counts if number), "punctuation.and")


def fixable(safe: int, unsafe: int) -> LocalizedText:
    """How many findings have fixes of which kind, in brackets; empty if none has."""
    counts: Counts = (("report.fixable", safe), ("report.unsafe", unsafe))
    parts = [message(name, number=number) for name, number in counts if number]
    fixes = joined(parts, "punctuation.comma")
    return message("punctuation.brackets", text=fixes) if parts else fixes


def changed_summary(
    done: MessageId,
    findings: int,
    files: int,
    language: Language,
) -> str:
    """The last line of a run that fixed, or silenced, so many findings in so many files."""
    problems, where = plural("report.problems", findings), plural("report.files", files)
    return message(done, problems=problems, files=where).in_language(language)


def library_summary(name: str, stopped: int, modules: int, language: Language) -> str:
    """What there is in the rule file of a library."""
    return plural("report.library", stopped, name=name, modules=modules).in_language(language)
