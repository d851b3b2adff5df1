"""The log of a migration: as JSON for programs, as Markdown for people, and as one line."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from npulens import __version__
from npulens.catalog.error_messages import error_message
from npulens.catalog.model import Applicability, Language, LocalizedText
from npulens.catalog.shipped_rules import rules_folder
from npulens.catalog.verdict_tables import read_reasons
from npulens.report.human import printable
from npulens.report.json_text import json_text
from npulens.report.not_read_text import counted, reason_of
from npulens.report.report_wording import APPLICABILITIES, counted_findings
from npulens.workspace.files.copying import LeftOut, Reason
from npulens.workspace.fixing.change_log import Change, ChangeLog, Left
from npulens.workspace.fixing.effort import EffortClass, total_minutes
from npulens.workspace.settings.configuration import Configuration

JSON_NAME = "change_log.json"
MARKDOWN_NAME = "change_log.md"
_VERSION = 1
"""Of the form of the JSON file; it grows when something in it gets another meaning."""

_TITLE = LocalizedText("Migration to the NPU", "迁移到 NPU")
_LEFT = LocalizedText("Left to do", "待处理")
_NOTHING_LEFT = LocalizedText("Nothing that npulens knows of.", "npulens 未发现其他问题。")
_ADVICE = LocalizedText("Advice", "优化建议")
_NOTES = LocalizedText("To know", "须知")
_PROBLEMS = LocalizedText("Not migrated", "未迁移")
_NOT_READ = LocalizedText("Not read", "未读取")
_NOT_COPIED = LocalizedText("Not copied", "未复制")
_SETTLED = LocalizedText("What needs nothing, and why", "无需处理的位置及原因")
_WHERE_SETTLED = LocalizedText(
    "`npulens check --explain-silence` lists each place with what decides, in the migrated folder.",
    "在迁移后的目录中运行 `npulens check --explain-silence`，可列出每处及起决定作用的代码。",
)
_FALLBACKS = LocalizedText(
    "Left as it is, because there is another way", "有替代实现，因此保持原样"
)
_CHANGES = LocalizedText("Changes", "改动")
_ESTIMATE = LocalizedText(
    "The times are estimates by a fixed formula, without tests, training and tuning.",
    "时间按固定公式估算，不含测试、训练和调优。",
)
_REASONS: Mapping[Reason, LocalizedText] = {
    Reason.LEADS_OUTSIDE: LocalizedText(
        "a link that leads out of the folder", "指向目录之外的链接"
    ),
    Reason.LEADS_TO_LEFT_OUT: LocalizedText(
        "a link to something that is not copied", "指向未复制内容的链接"
    ),
    Reason.SPECIAL: LocalizedText("neither a file nor a folder nor a link", "不是文件、目录或链接"),
    Reason.NOT_WANTED: LocalizedText(
        "history, cache, environment or an earlier log", "版本历史、缓存、虚拟环境或之前的日志"
    ),
}
_CLASSES: Mapping[EffortClass, LocalizedText] = {
    EffortClass.NONE: LocalizedText("No work", "无需处理"),
    EffortClass.MINUTES: LocalizedText("Minutes each", "每处数分钟"),
    EffortClass.HOUR: LocalizedText("Up to an hour each", "每处不超过一小时"),
    EffortClass.HALF_DAY: LocalizedText("Up to half a day each", "每处不超过半天"),
    EffortClass.DAYS: LocalizedText("Days each", "每处数天"),
}
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
        "problems": [{"path": path, "problem": problem} for path, problem in log.problems.items()],
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


def change_log_markdown(log: ChangeLog, language: Language) -> str:
    """A log to be read: what is left to do first, then every edit by file."""
    parts = [f"# {_TITLE.in_language(language)}\n", migration_summary(log, None, language)]
    parts += _section(_LEFT, _left_lines(log, language), language)
    if log.notes:
        notes = (
            f"- {_code(path)}:{line}: {text.in_language(language)}"
            for path, line, text in log.notes
        )
        parts += _section(_NOTES, notes, language)
    if log.problems:
        lines = (
            f"- {_code(path)}: {error_message(p, language)}" for path, p in log.problems.items()
        )
        parts += _section(_PROBLEMS, lines, language)
    if log.not_read:
        unread = (f"- {_code(e.path)}: {reason_of(e, language)}" for e in log.not_read)
        parts += _section(_NOT_READ, unread, language)
    if log.left_out:
        not_copied = (f"- {_not_copied(each, language)}" for each in log.left_out)
        parts += _section(_NOT_COPIED, not_copied, language)
    if log.settled:
        parts += _section(_SETTLED, _settled_lines(log, language), language)
    if log.changes:
        parts += _section(_CHANGES, _change_lines(log.changes, language), language)
    return "\n".join(parts)


def _section(title: LocalizedText, lines: Iterable[str], language: Language) -> list[str]:
    return [f"## {title.in_language(language)}\n", "\n".join(lines) + "\n"]


def _left_lines(log: ChangeLog, language: Language) -> Iterator[str]:
    if not log.left:
        yield _NOTHING_LEFT.in_language(language)
        return
    yield _ESTIMATE.in_language(language)
    groups = groupby(log.left, key=lambda each: (each.effort.is_advice, each.effort.effort_class))
    for (is_advice, effort_class), lefts in groups:
        title = _CLASSES[effort_class].in_language(language)
        advice = f"{_ADVICE.in_language(language)}: " if is_advice else ""
        yield f"\n### {advice}{title}\n"
        for left in lefts:
            rule = left.finding.rule
            message = printable(left.finding.message(language))
            time = f" ({duration(left.effort.minutes, language)})" if left.effort.minutes else ""
            yield f"- {_code(left.path)}:{left.line} {rule.code} {message}{time}"


def _settled_lines(log: ChangeLog, language: Language) -> Iterator[str]:
    for reason, why, number in _reasons(log, language):
        yield f"- {number}× {_code(reason)}: {why}"
    yield f"\n{_WHERE_SETTLED.in_language(language)}"
    if not log.fallbacks:
        return
    yield f"\n### {_FALLBACKS.in_language(language)}\n"
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
            kind = APPLICABILITIES[change.fix.applicability].in_language(language)
            lines.append(f"@@ {change.line}{rule}: {title} ({kind})")
            lines += (f"-{printable(line)}" for line in _lines(change.before))
            lines += (f"+{printable(line)}" for line in _lines(change.after))
        text = "\n".join(lines)
        fence = "`" * max(3, _longest_run(text) + 1)
        yield f"### {_code(path)}\n\n{fence}diff\n{text}\n{fence}\n"


def _not_copied(each: LeftOut, language: Language) -> str:
    target = f" ({_code(each.target)})" if each.target else ""
    return f"{_code(each.path)}{target}: {_REASONS[each.reason].in_language(language)}"


def wording_of(each: LeftOut, language: Language) -> str:
    """What a terminal says of something that is not copied."""
    target = f" -> {printable(each.target)}" if each.target else ""
    separator = "：" if language == "zh" else ": "
    word = _NOT_COPIED.in_language(language).lower()
    reason = _REASONS[each.reason].in_language(language)
    return f"{printable(each.path)}{target}{separator}{word}{separator}{reason}"


def migration_summary(log: ChangeLog, place: str | None, language: Language) -> str:
    """What a migration came to, in a line or two.

    Args:
        log: The migration.
        place: The migrated tree, if that is to be said.
        language: The language to say it in.
    """
    edits, changed = len(log.changes), len(log.changed)
    needed, advice = log.of_kind(advice=False), log.of_kind(advice=True)
    not_read = counted(log.not_read, language)
    if language == "zh":
        where = "" if place is None else f"{printable(place)}："
        first = f"{where}共 {log.files} 个文件，改动其中 {changed} 个，共 {edits} 处编辑。"
        problems = f"{len(needed)} 个问题{_cost(needed, '，', language)}"
        extra = f"{len(advice)} 条建议{_cost(advice, '，', language)}"
        parts = [problems] * bool(needed) + [extra] * bool(advice) or ["未发现问题"]
        return f"{first}\n待处理：{'；'.join([*parts, not_read] if not_read else parts)}。\n"
    where = "" if place is None else f"{printable(place)}: "
    first = f"{where}changed {changed} of {log.files} files in {edits} edits."
    problems = f"{counted_findings(len(needed), 0, language)}{_cost(needed, ', ', language)}"
    extra = f"{counted_findings(0, len(advice), language)}{_cost(advice, ', ', language)}"
    parts = [problems] * bool(needed) + [extra] * bool(advice) or ["no problems known"]
    return f"{first}\nLeft to do: {'; '.join([*parts, not_read] if not_read else parts)}.\n"


def _cost(lefts: Sequence[Left], separator: str, language: Language) -> str:
    minutes = _minutes(lefts)
    return separator + duration(minutes, language) if minutes else ""


def _minutes(lefts: Iterable[Left]) -> int:
    return total_minutes(left.effort for left in lefts)


def duration(minutes: int, language: Language) -> str:
    """An estimate in the units that people plan in; a day has eight hours."""
    hours, rest = divmod(minutes, 60)
    if minutes >= 2 * _MINUTES_OF_DAY:
        days = round(minutes / _MINUTES_OF_DAY)
        return f"约 {days} 人天" if language == "zh" else f"about {days} days"
    if language == "zh":
        parts = [f"{hours} 小时" if hours else "", f"{rest} 分钟" if rest else ""]
        return f"约 {' '.join(filter(None, parts))}"
    parts = [f"{hours} h" if hours else "", f"{rest} min" if rest else ""]
    return f"about {' '.join(filter(None, parts))}"


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
