"""The log of a migration: as JSON for programs, as Markdown for people, and as one line."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from npulens import __version__
from npulens.catalog.message_ids import MessageId
from npulens.catalog.messages import joined, message, message_of
from npulens.catalog.model import Applicability, Language, LocalizedText
from npulens.catalog.shipped_rules import rules_folder
from npulens.catalog.verdict_tables import read_reasons
from npulens.report.human import printable
from npulens.report.json_text import json_text
from npulens.report.not_read_text import counted, reason_of
from npulens.report.report_wording import counted_findings, style_meaning, style_name
from npulens.workspace.files.copying import LeftOut
from npulens.workspace.fixing.change_log import Change, ChangeLog, Left
from npulens.workspace.fixing.effort import minutes_in_turn
from npulens.workspace.settings.configuration import Configuration

JSON_NAME = "change_log.json"
MARKDOWN_NAME = "change_log.md"
_VERSION = 1
"""Of the form of the JSON file; it grows when something in it gets another meaning."""

_MOST_PLACES = 5
"""Of one library, so many places are named; the JSON file has all."""
_MINUTES_OF_DAY = 480


def change_log_json(
    log: ChangeLog, configuration: Configuration, applicability: Applicability, language: Language
) -> str:
    """All of a log as one JSON object; nothing in it depends on when or where it was made."""
    record = {
        "version": _VERSION,
        "npulens": __version__,
        "style": configuration.style.value,
        "torch_version": str(configuration.target.torch_version),
        "unsafe_fixes": applicability is Applicability.UNSAFE,
        "files": log.files,
        "changed": log.changed,
        "minutes_left": _minutes(log.of_kind(advice=False)),
        "minutes_of_advice": _minutes(log.of_kind(advice=True)),
        "changes": [_change(each, language) for each in log.changes],
        "left": [_left(each, language) for each in log.left],
        "notes": [
            {"path": path, "line": line, "text": text.in_language(language)}
            for path, line, text in log.notes
        ],
        "settled": [
            {"reason": reason, "text": why, "places": number}
            for reason, why, number in _reasons(log, language)
        ],
        "fallbacks": [each._asdict() for each in log.fallbacks],
        "not_copied": [
            {"path": path, "reason": reason.value, "target": target}
            for path, reason, target in log.left_out
        ],
        "not_read": [
            {"path": each.path, "folder": each.is_folder, "reason": each.reason.value}
            for each in log.not_read
        ],
        "problems": [
            {"path": path, "problem": problem.en} for path, problem in log.problems.items()
        ],
    }
    return json_text(record, indent=1) + "\n"


def _change(change: Change, language: Language) -> dict[str, Any]:
    rule = None if change.finding is None else change.finding.rule
    return {
        "path": change.path,
        "line": change.line,
        "code": None if rule is None else rule.code,
        "name": None if rule is None else rule.name,
        "applicability": change.fix.applicability.value,
        "title": change.fix.title.in_language(language),
        "before": change.before,
        "after": change.after,
    }


def _left(left: Left, language: Language) -> dict[str, Any]:
    finding, effort = left.finding, left.effort
    return {
        "path": left.path,
        "line": left.line,
        "column": left.column,
        "end_line": left.end_line,
        "code": finding.rule.code,
        "name": finding.rule.name,
        "severity": finding.effective_severity.value,
        "message": finding.message(language),
        "fix": finding.fixes[0].applicability.value if finding.fixes else None,
        "advice": effort.is_advice,
        "effort": effort.effort_class.value,
        "minutes": effort.minutes,
        "minutes_again": effort.again,
    }


def change_log_markdown(log: ChangeLog, configuration: Configuration, language: Language) -> str:
    """A log to be read: what is left to do first, then every edit by file."""
    parts = [
        f"# {message('log.title').in_language(language)}\n",
        migration_summary(log, None, language),
        *_style_lines(configuration, language),
    ]
    sections: tuple[tuple[MessageId, Iterable[str]], ...] = (
        ("log.left", _left_lines(log, language)),
        ("log.notes", (f"- {_code(p)}:{n}: {t.in_language(language)}" for p, n, t in log.notes)),
        (
            "log.problems",
            (f"- {_code(path)}: {p.in_language(language)}" for path, p in log.problems.items()),
        ),
        ("log.not-read", (f"- {_code(e.path)}: {reason_of(e, language)}" for e in log.not_read)),
        ("log.not-copied", (f"- {_not_copied(each, language)}" for each in log.left_out)),
        ("log.settled", _settled_lines(log, language) if log.settled else ()),
        ("log.changes", _change_lines(log.changes, language)),
    )
    for title, lines in sections:
        if text := "\n".join(lines):
            parts += [f"## {message(title).in_language(language)}\n", f"{text}\n"]
    return "\n".join(parts)


def _style_lines(configuration: Configuration, language: Language) -> Iterator[str]:
    target = configuration.target
    name = style_name(target.style, language)
    line = message("log.style", style=name, version=target.torch_version).in_language(language)
    meaning = style_meaning(target.style, language)
    yield line + "\n" if meaning is None else f"{line}\n{meaning}\n"


def _left_lines(log: ChangeLog, language: Language) -> Iterator[str]:
    if not log.left:
        yield message("log.nothing-left").in_language(language)
        return
    yield message("log.estimate").in_language(language)
    groups = groupby(log.left, key=lambda each: (each.effort.is_advice, each.effort.effort_class))
    for (is_advice, effort_class), lefts in groups:
        title = message_of("log-effort", effort_class.value).in_language(language)
        advice = f"{message('log.advice').in_language(language)}: " if is_advice else ""
        yield f"\n### {advice}{title}\n"
        for left in lefts:
            rule = left.finding.rule
            shown = printable(left.finding.message(language))
            time = f" ({duration(left.effort.minutes, language)})" if left.effort.minutes else ""
            yield f"- {_code(left.path)}:{left.line} {rule.code} {shown}{time}"


def _settled_lines(log: ChangeLog, language: Language) -> Iterator[str]:
    for reason, why, number in _reasons(log, language):
        yield f"- {number}× {_code(reason)}: {why}"
    yield f"\n{message('log.where-settled').in_language(language)}"
    if not log.fallbacks:
        return
    yield f"\n### {message('log.fallbacks').in_language(language)}\n"
    places: dict[str, list[str]] = {}
    for each in log.fallbacks:
        places.setdefault(each.name, []).append(f"{_code(each.path)}:{each.line}")
    for name, found in sorted(places.items()):
        more = f", … ({len(found)})" if len(found) > _MOST_PLACES else ""
        yield f"- {_code(name)}: {', '.join(found[:_MOST_PLACES])}{more}"


def _reasons(log: ChangeLog, language: Language) -> Iterator[tuple[str, str, int]]:
    """The reasons in words, each with the number of its places, the most frequent first."""
    for reason, number in sorted(log.settled.items(), key=lambda item: (-item[1], item[0])):
        yield reason, read_reasons(rules_folder())[reason].why.in_language(language), number


def _change_lines(changes: Iterable[Change], language: Language) -> Iterator[str]:
    for path, group in groupby(changes, key=lambda change: change.path):
        lines: list[str] = []
        for change in group:
            rule = "" if change.finding is None else f" {change.finding.rule.code}"
            title = printable(change.fix.title.in_language(language))
            kind = message_of("report-fix", change.fix.applicability.value).in_language(language)
            lines.append(f"@@ {change.line}{rule}: {title} ({kind})")
            lines += (f"-{printable(line)}" for line in _lines(change.before))
            lines += (f"+{printable(line)}" for line in _lines(change.after))
        text = "\n".join(lines)
        fence = "`" * max(3, _longest_run(text) + 1)
        yield f"### {_code(path)}\n\n{fence}diff\n{text}\n{fence}\n"


def _not_copied(each: LeftOut, language: Language) -> str:
    target = f" ({_code(each.target)})" if each.target else ""
    return f"{_code(each.path)}{target}: {_why_not_copied(each, language)}"


def _why_not_copied(each: LeftOut, language: Language) -> str:
    return message_of("log-not-copied", each.reason.value).in_language(language)


def wording_of(each: LeftOut, language: Language) -> str:
    """What a terminal says of something that is not copied."""
    target = f" -> {printable(each.target)}" if each.target else ""
    separator = message("punctuation.colon").in_language(language)
    word = message("log.not-copied").in_language(language).lower()
    reason = _why_not_copied(each, language)
    return f"{printable(each.path)}{target}{separator}{word}{separator}{reason}"


def migration_summary(log: ChangeLog, place: str | None, language: Language) -> str:
    """What a migration came to, in a line or two, which begins with the migrated tree if shown."""
    what = message(
        "log.summary",
        files=log.files,
        changed=len(log.changed),
        edits=len(log.changes),
        left=_left_to_do(log, language),
    ).in_language(language)
    colon = message("punctuation.colon").in_language(language)
    return f"{what}\n" if place is None else f"{printable(place)}{colon}{what}\n"


def _left_to_do(log: ChangeLog, language: Language) -> str:
    """Problems and advice, each with its cost, and what was not read."""
    needed, advice = log.of_kind(advice=False), log.of_kind(advice=True)
    parts = []
    if needed:
        parts.append(_with_cost(counted_findings(len(needed), 0), needed, language))
    if advice:
        parts.append(_with_cost(counted_findings(0, len(advice)), advice, language))
    if not parts:
        parts.append(message("log.no-problems").in_language(language))
    if not_read := counted(log.not_read, language):
        parts.append(not_read)
    return message("punctuation.semicolon").in_language(language).join(parts)


def _with_cost(text: LocalizedText, lefts: Sequence[Left], language: Language) -> str:
    minutes = _minutes(lefts)
    comma = message("punctuation.comma").in_language(language)
    cost = comma + duration(minutes, language) if minutes else ""
    return text.in_language(language) + cost


def _minutes(lefts: Iterable[Left]) -> int:
    return sum(minutes_in_turn(left.effort for left in lefts))


def duration(minutes: int, language: Language) -> str:
    """An estimate in the units that people plan in; a day has eight hours."""
    if minutes >= 2 * _MINUTES_OF_DAY:
        days = message("time.person-days", number=round(minutes / _MINUTES_OF_DAY))
        return message("log.about", time=days).in_language(language)
    hours, rest = divmod(minutes, 60)
    parts = [message("time.hours", number=hours)] if hours else []
    parts += [message("time.minutes", number=rest)] if rest else []
    return message("log.about", time=joined(parts, "punctuation.space")).in_language(language)


def _lines(text: str) -> list[str]:
    return re.split(r"\r\n|\r|\n", text) if text else []


def _code(text: str) -> str:
    """Text as code in a line of Markdown."""
    shown = printable(text)
    fence = "`" * (_longest_run(shown) + 1)
    space = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{space}{shown}{space}{fence}"


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)
