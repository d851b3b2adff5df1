"""A page about a project as one HTML file that fetches nothing.

The template makes the page with all charts; its one script sorts and filters, and makes the rows of
the two long tables from data in the page. A policy in the page allows this script and this style
sheet, by their digests, and nothing else.
"""

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

import npulens
from npulens.catalog.message_ids import MessageTable
from npulens.catalog.messages import message, message_of
from npulens.catalog.model import Applicability, Language, MigrationStyle, Severity
from npulens.report import page_wording as wording
from npulens.report.guide import point_wording
from npulens.report.page_model import Entry, Fixes, Page
from npulens.report.report_wording import style_meaning, style_name
from npulens.workspace.fixing.effort import Formula
from npulens.workspace.migrating.readiness import Readiness

MOST_FINDINGS = 20_000
MOST_FILES = 20_000
"""More are not listed one by one, so that browsers can open the page."""
MOST_ROWS = 300
"""Of a table that has its rows in the page; all of them are among the findings, too."""
MOST_FOLDERS = 20
"""Of folders within each other; of what is deeper the sums are there."""
_TEXTS_OF_SCRIPT = ("shown", "more", "all", "none", "in-folder")


def as_html(page: Page) -> str:
    """The page."""
    environment = Environment(
        loader=PackageLoader("npulens.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    language = page.language
    environment.filters.update(
        number="{:,}".format,
        duration=partial(wording.duration, language=language),
        family=partial(wording.family_name, language=language),
        code=_with_code,
        breakable=_breakable,
        segments=_segments,
    )
    script, style = _source(environment, "page.js"), _source(environment, "page.css")
    entries = _listed(page)
    listed_files = _listed_files(page, entries)
    return environment.get_template("page.html").render(
        page=page,
        version=npulens.__version__,
        t=partial(wording.text, language=language),
        lang="zh-CN" if language == "zh" else "en",
        states={state: _named("page-state", state, language) for state in Readiness},
        meanings={state: _named("page-meaning", state, language) for state in Readiness},
        severities={each: _named("severity", each, language) for each in Severity},
        fixes={each: _named("page-fix", each, language) for each in Applicability},
        style_name=style_name(page.target.style, language),
        style_meaning=style_meaning(page.target.style, language),
        reached=partial(_reached, language=language),
        percent=wording.percent,
        script_state=partial(wording.script_state, language=language),
        fix_counts=_fix_counts,
        point_sign=point_wording.sign,
        point_state=partial(point_wording.state_name, language=language),
        point_shows=partial(point_wording.shows, language=language),
        formula=_formula(page.formula, language),
        script=Markup(script),
        style=Markup(style),
        policy=_policy(script, style),
        data=_data(page, entries, listed_files),
        listed=len(entries),
        listed_files=len(listed_files),
        most_rows=MOST_ROWS,
        most_folders=MOST_FOLDERS,
    )


def _source(environment: Environment, name: str) -> str:
    """A file of the templates; browsers take line feeds alone into account for digests."""
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0].replace("\r\n", "\n")


def _policy(script: str, style: str) -> str:
    """Nothing is loaded from anywhere, and nothing runs but this script."""
    return (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _with_code(text: str) -> Markup:
    """Text between backticks, as code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return escape(text)
    shown = [
        Markup("<code>{}</code>").format(part) if index % 2 else escape(part)
        for index, part in enumerate(parts)
    ]
    return Markup("").join(shown)


def _breakable(path: str) -> Markup:
    """A path that breaks behind a slash first."""
    return Markup("/<wbr>").join(path.split("/"))


def _segments(counts: Mapping[Any, int], scale: float) -> list[tuple[str, float, float]]:
    """The parts of a bar of up to 100: their names, where they start, how wide they are."""
    total = sum(counts.values())
    found = []
    start = 0.0
    for name, count in counts.items():
        if count:
            width = 100 * scale * count / total
            found.append((str(getattr(name, "value", name)), round(start, 3), round(width, 3)))
            start += width
    return found


def _named(
    table: MessageTable,
    member: Readiness | Severity | Applicability | MigrationStyle,
    language: Language,
) -> str:
    return message_of(table, member.value).in_language(language)


def _reached(where: str, language: Language) -> str:
    return message_of("page-reached", where).in_language(language)


def _to_fill_in(key: str, language: Language) -> str:
    """A text with its placeholders, which the script of the page fills in."""
    return wording.text(key, language, shown="{shown}", total="{total}", number="{number}")


def _fix_counts(fixes: Fixes) -> Mapping[Applicability, int]:
    return dict(zip(Applicability, fixes, strict=True))


def _formula(formula: Formula, language: Language) -> Mapping[str, str]:
    """The figures of the formula, as they are in the rules."""
    comma = message("punctuation.list").in_language(language)

    def listed(items: Iterable[tuple[str, int]]) -> str:
        return comma.join(f"{name}: {minutes}" for name, minutes in items)

    return {
        "reading": str(formula.reading),
        "structure": str(formula.structure),
        "structure_rules": comma.join(formula.structure_rules),
        "rules": listed(formula.rules.items()),
        "families": listed((f"{code}xx", m) for code, m in formula.families.items()),
    }


def _listed(page: Page) -> list[Entry]:
    """The findings of the list; if they are too many, the most laborious."""
    entries = list(page.entries)
    if len(entries) > MOST_FINDINGS:
        order = sorted(
            range(len(entries)), key=lambda i: (not entries[i].work, -entries[i].minutes)
        )
        entries = [entries[index] for index in sorted(order[:MOST_FINDINGS])]
    return entries


def _listed_files(page: Page, entries: Iterable[Entry]) -> Mapping[int, int]:
    """The files of the list: those of its findings first, and their places in it."""
    indexes = dict.fromkeys(entry.file for entry in entries)
    for index in range(len(page.files)):
        if len(indexes) >= MOST_FILES:
            break
        indexes[index] = None
    return {index: place for place, index in enumerate(sorted(indexes))}


def _data(page: Page, entries: Sequence[Entry], listed_files: Mapping[int, int]) -> Markup:
    """What the script makes rows of; `page.js` names the columns."""
    language = page.language
    states, fixes, severities = list(Readiness), list(Applicability), list(Severity)
    rules: dict[str, int] = {}
    rule_rows: list[list[Any]] = []
    messages: dict[str, int] = {}
    rows = []
    for entry in entries:
        rule = entry.finding.rule
        if rule.code not in rules:
            rules[rule.code] = len(rule_rows)
            rule_rows.append([rule.code, rule.name, rule.family])
        message = messages.setdefault(entry.finding.message(language), len(messages))
        severity = severities.index(entry.finding.effective_severity)
        line = entry.line
        rows.append(
            [
                *(
                    listed_files[entry.file],
                    rules[rule.code],
                    severity,
                    fixes.index(entry.fix),
                    int(entry.work),
                ),
                *(entry.file_line, entry.place, entry.minutes, message),
                *(line.before, line.marked, line.after),
            ]
        )
    files = [page.files[index] for index in listed_files]
    minutes = {entry.minutes for entry in entries}
    minutes.update(each for file in files for each in (file.work, file.advice))
    data = {
        "durations": {each: wording.duration(each, language) for each in sorted(minutes)},
        "lineMark": page.line_mark,
        "states": [[s.value, _named("page-state", s, language)] for s in states],
        "severities": [[s.value, _named("severity", s, language)] for s in severities],
        "fixes": [[f.value, _named("page-fix", f, language)] for f in fixes],
        "texts": {key.replace("-", "_"): _to_fill_in(key, language) for key in _TEXTS_OF_SCRIPT},
        "rules": rule_rows,
        "messages": list(messages),
        "files": [
            [f.name, f.link, states.index(f.readiness), f.findings, f.work, f.advice] for f in files
        ],
        "findings": rows,
    }
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)
