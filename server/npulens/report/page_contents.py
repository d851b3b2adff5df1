"""What a page about a project says: from findings to the rows of its tables."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from npulens.catalog.model import Applicability, Language, Severity
from npulens.catalog.rule_properties import ReportTable
from npulens.catalog.tables import Catalogue
from npulens.report.not_read_text import counted, reason_of
from npulens.report.page_folders import folder_tree
from npulens.report.page_model import (
    Entry,
    FamilyRow,
    FileRow,
    Fixes,
    Group,
    HotspotRow,
    LibraryRow,
    Page,
    Results,
    ScriptRow,
    Shown,
)
from npulens.report.page_settled import settled_of
from npulens.report.snippets import line_of, lines_around
from npulens.text.places import file_line, shown_place
from npulens.workspace.fixing.effort import effort_of, formula_of, minutes_in_turn
from npulens.workspace.migrating.readiness import Readiness, is_blocker, readiness_of, worst_of
from npulens.workspace.runs.file_report import FileReport
from npulens.workspace.settings.problems import is_problem

_Key = TypeVar("_Key", bound=Hashable)

_MOST_PLACES = 3
"""Of a group, so many places are shown with their lines."""


def page_of(results: Results, language: Language) -> Page:
    """The page about a project, in a language."""
    entries = _entries(results.files)
    files = _file_rows(results, entries, language)
    grouping = _Grouping(files, language)
    return Page(
        title=results.title,
        date=results.date,
        target=results.target,
        language=language,
        line_mark=results.names.line_mark,
        shares={state: sum(row.readiness is state for row in files) for state in Readiness},
        severities=_severities(entries),
        fixes=_fixes(entries),
        work=sum(entry.minutes for entry in entries if entry.work),
        advice=sum(entry.minutes for entry in entries if not entry.work),
        by_hand=sum(entry.work and entry.fix is Applicability.MANUAL for entry in entries),
        files=files,
        scripts=_scripts(results, files),
        entries=entries,
        families=_families(entries),
        blockers=grouping.groups(entry for entry in entries if is_blocker(entry.finding)),
        libraries=_libraries(entries, results.catalogue, grouping),
        hotspots=_hotspots(results, files, language),
        fused=_by_frequency(
            grouping.groups(e for e in entries if e.finding.rule.family == "fused" and not e.work)
        ),
        settled=settled_of(results.files, files, language),
        formula=formula_of(results.catalogue.rules.values()),
        folders=folder_tree(files),
        not_read=counted(results.not_read, language),
        unread=tuple(
            (results.names.name(each.path) + "/" * each.is_folder, reason_of(each, language))
            for each in results.not_read
            if each.counts
        ),
        guide=results.guide,
    )


def _entries(reports: Iterable[FileReport]) -> tuple[Entry, ...]:
    """All findings, in the order of the files."""
    found = [
        (index, document, finding)
        for index, report in enumerate(reports)
        if (document := report.document) is not None
        for finding in report.findings
    ]
    costs = minutes_in_turn(effort_of(finding) for _, _, finding in found)
    entries: list[Entry] = []
    for (index, document, finding), minutes in zip(found, costs, strict=True):
        fix = finding.fixes[0].applicability if finding.fixes else Applicability.MANUAL
        start = finding.span.start
        places = file_line(document, start), shown_place(document, start)
        line = line_of(document, finding.span)
        work = is_problem(finding)
        entries.append(Entry(index, finding, document, fix, minutes, work, *places, line))
    return tuple(entries)


def _file_rows(
    results: Results, entries: Sequence[Entry], language: Language
) -> tuple[FileRow, ...]:
    work: Counter[int] = Counter()
    advice: Counter[int] = Counter()
    for entry in entries:
        (work if entry.work else advice)[entry.file] += entry.minutes
    return tuple(
        FileRow(
            results.names.name(report.path),
            results.names.link(report.path),
            _readiness(report, results),
            len(report.findings),
            work[index],
            advice[index],
            report.problem.in_language(language) if report.problem else "",
        )
        for index, report in enumerate(results.files)
    )


def _readiness(report: FileReport, results: Results) -> Readiness:
    if report.problem is not None:
        return Readiness.UNKNOWN
    if not report.findings and report.path in results.without_torch:
        return Readiness.OTHER
    return readiness_of(report.findings)


def _scripts(results: Results, files: Sequence[FileRow]) -> tuple[ScriptRow, ...]:
    rows = {report.path: row for report, row in zip(results.files, files, strict=True)}
    found = []
    for script, paths in results.scripts:
        reached = [rows[path] for path in paths if path in rows]
        using = [row for row in reached if row.readiness is not Readiness.OTHER]
        worst = worst_of(row.readiness for row in using)
        in_state = sum(row.readiness is worst for row in using)
        work = sum(row.work for row in using)
        found.append(ScriptRow(rows[script], worst, len(using), in_state, work))
    return tuple(found)


def _severities(entries: Sequence[Entry]) -> Mapping[Severity, int]:
    counts = Counter(entry.finding.effective_severity for entry in entries)
    return {severity: counts[severity] for severity in Severity}


def _fixes(entries: Iterable[Entry]) -> Fixes:
    counts = Counter(entry.fix for entry in entries)
    return Fixes(
        counts[Applicability.SAFE], counts[Applicability.UNSAFE], counts[Applicability.MANUAL]
    )


def _families(entries: Sequence[Entry]) -> tuple[FamilyRow, ...]:
    members = _grouped((entry.finding.rule.family, entry) for entry in entries)
    rows = (
        FamilyRow(
            family,
            len(inside),
            len({entry.file for entry in inside}),
            _fixes(inside),
            sum(entry.minutes for entry in inside if entry.work),
            sum(entry.minutes for entry in inside if not entry.work),
        )
        for family, inside in members.items()
    )
    return tuple(sorted(rows, key=lambda row: (-row.findings, row.family)))


def _grouped(pairs: Iterable[tuple[_Key, Entry]]) -> dict[_Key, list[Entry]]:
    """The findings by their keys."""
    members: dict[_Key, list[Entry]] = {}
    for key, entry in pairs:
        members.setdefault(key, []).append(entry)
    return members


class _Grouping:
    """Puts findings together that are dealt with alike."""

    def __init__(self, files: Sequence[FileRow], language: Language) -> None:
        self._files = files
        self._language: Language = language

    def groups(self, entries: Iterable[Entry]) -> tuple[Group, ...]:
        """The groups, the most laborious first."""
        members = _grouped(
            ((each.finding.rule.code, each.finding.message(self._language)), each)
            for each in entries
        )
        found = [self._group(message, inside) for (_, message), inside in members.items()]
        return tuple(sorted(found, key=lambda g: (-g.minutes, -g.findings, g.rule.code, g.message)))

    def _group(self, message: str, entries: Sequence[Entry]) -> Group:
        return Group(
            entries[0].finding.rule,
            message,
            len(entries),
            len({entry.file for entry in entries}),
            _fixes(entries),
            sum(entry.minutes for entry in entries),
            tuple(
                Shown(
                    self._files[entry.file],
                    entry.file_line,
                    entry.place.rpartition(":")[0],
                    lines_around(entry.document, entry.finding.span) if entry.document.text else (),
                )
                for entry in entries[:_MOST_PLACES]
            ),
        )


def _by_frequency(groups: Iterable[Group]) -> tuple[Group, ...]:
    return tuple(sorted(groups, key=lambda g: (-g.findings, g.rule.code, g.message)))


def _libraries(
    entries: Sequence[Entry], catalogue: Catalogue, grouping: _Grouping
) -> tuple[LibraryRow, ...]:
    known = {
        name.partition(".")[0]
        for name, entry in catalogue.libraries.items()
        if entry.rule.family == "library"
    }
    members: dict[str, list[Entry]] = {}
    for entry in entries:
        rule, package = entry.finding.rule, entry.symbol.partition(".")[0]
        if rule.table is ReportTable.CUDA_OPERATORS:
            members.setdefault("", []).append(entry)
        elif rule.family == "library" or (rule.family != "dynamic" and package in known):
            members.setdefault(package, []).append(entry)
    order = list(Severity)
    rows = [
        LibraryRow(
            name,
            len(inside),
            len({entry.file for entry in inside}),
            min((entry.finding.effective_severity for entry in inside), key=order.index),
            sum(entry.minutes for entry in inside),
            _by_frequency(grouping.groups(inside)),
        )
        for name, inside in members.items()
    ]
    return tuple(sorted(rows, key=lambda r: (order.index(r.severity), -r.findings, r.name)))


def _hotspots(
    results: Results, files: Sequence[FileRow], language: Language
) -> tuple[HotspotRow, ...]:
    """The dynamic shapes among the findings, the worst first."""
    found = []
    for report, row in sorted(zip(results.files, files, strict=True), key=lambda f: f[0].path):
        for finding in report.findings:
            shape, document = finding.dynamic_shape, report.document
            if shape is None or document is None:
                continue
            start = finding.span.start
            found.append(
                HotspotRow(
                    shape.score,
                    finding.rule,
                    shape.is_shape,
                    shape.synchronizes,
                    shape.function,
                    shape.reached,
                    finding.rule.message.in_language(language).format_map(finding.arguments),
                    shape.advice.in_language(language),
                    Shown(
                        row,
                        file_line(document, start),
                        shown_place(document, start).rpartition(":")[0],
                        (line_of(document, finding.span),),
                    ),
                )
            )
    return tuple(sorted(found, key=lambda row: -row.score))
