"""The same in a few lines of Markdown, for a pull request."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import npulens
from npulens.catalog.messages import message, message_of
from npulens.catalog.model import Language
from npulens.report.guide.guide_markdown import guide_markdown
from npulens.report.page_model import (
    Group,
    HotspotRow,
    LibraryRow,
    Page,
    ScriptRow,
    SettledPlace,
    Shown,
)
from npulens.report.page_wording import duration, family_name, percent, script_state, text
from npulens.report.report_wording import style_meaning, style_name
from npulens.workspace.migrating.readiness import Readiness

_Row = TypeVar("_Row")

_MOST_ROWS = 5
_MEANT = re.compile(r"[\\`*_\[\]<>&|#~]")
"""Characters that Markdown would take for its own."""


def as_markdown(page: Page) -> str:
    """The text."""
    return "\n".join(_lines(page)) + "\n"


def _lines(page: Page) -> Iterator[str]:
    language = page.language
    colon = message("punctuation.colon").in_language(language)
    comma = message("punctuation.comma").in_language(language)
    yield f"## {text('heading', language)}: {_plain(page.title)}"
    yield ""
    files, changing = f"{page.using:,}", f"{page.changing:,}"
    headline = text("ready-headline", language, files=files, changing=changing)
    yield f"**{percent(page.ready, page.using)}** {headline}"
    yield ""
    meaning = style_meaning(page.target.style, language)
    if meaning is not None:
        yield meaning
        yield ""
    if page.not_read:
        stop = message("punctuation.full-stop").in_language(language)
        yield f"**{page.not_read}**{colon}{_unread(page)}{stop}"
        yield ""
    yield _row([text("state", language), text("files", language), "%"])
    yield "| --- | ---: | ---: |"
    for state, count in page.shares.items():
        if count:
            name = message_of("page-state", state.value).in_language(language)
            share = "" if state is Readiness.OTHER else percent(count, page.using)
            yield _row([name, f"{count:,}", share])
    yield ""
    effort = [
        f"**{duration(page.work, language)}** {text('effort-to-run', language)}",
        f"{duration(page.advice, language)} {text('effort-advice', language)}",
    ]
    yield f"{text('effort', language)}{colon}{comma.join(effort)}"
    yield from _guide(page)
    yield from _listed("scripts", page.scripts, _script, page)
    if not page.blockers:
        yield from ("", text("no-blockers", language))
    yield from _listed("blockers", page.blockers, _blocker, page)
    yield from _families(page)
    yield from _listed("libraries", page.libraries, _library, page)
    yield from _listed("hotspots", page.hotspots, _hotspot, page)
    yield from _settled(page)
    yield ""
    target = comma.join(
        [f"PyTorch {page.target.torch_version}", style_name(page.target.style, language)]
    )
    checked = f"{text('checked-for', language)}{colon}{target}"
    parts = [checked, f"npulens {npulens.__version__}", page.date]
    yield f"<sub>{' · '.join(part for part in parts if part)}</sub>"


def _guide(page: Page) -> Iterator[str]:
    """The points of the migration, folded away but for the next one."""
    if page.guide is None:
        return
    yield from _heading("guide", page)
    first, *rest = guide_markdown(page.guide, page.title, page.language, prose)
    yield from (f"<details><summary>{first}</summary>", *rest, "", "</details>")


def _unread(page: Page) -> str:
    """The first files and folders that were not read, each with the reason."""
    language = page.language
    shown = [f"{_code(name)} ({_plain(reason)})" for name, reason in page.unread[:_MOST_ROWS]]
    if len(page.unread) > _MOST_ROWS:
        shown.append(text("further", language, number=len(page.unread) - _MOST_ROWS))
    return _sentence_list(shown, language)


def _listed(
    key: str, rows: Sequence[_Row], line: Callable[[_Row, Language], str], page: Page
) -> Iterator[str]:
    """A section with a line for each of the first rows; nothing where there is none."""
    if rows:
        yield from _heading(key, page)
        yield from (f"- {line(row, page.language)}" for row in rows[:_MOST_ROWS])
        yield from _further(len(rows), page.language)


def _script(script: ScriptRow, language: Language) -> str:
    link = f"[{_plain(script.file.name)}]({script.file.link})"
    return f"{link}: {_plain(script_state(script, language))}"


def _blocker(group: Group, language: Language) -> str:
    places = _sentence_list((_place(shown) for shown in group.places), language)
    counts = f"{group.findings}×, {duration(group.minutes, language)}"
    return f"**{group.rule.code}** ({counts}) {prose(group.message)} {places}"


def _families(page: Page) -> Iterator[str]:
    language = page.language
    if not page.families:
        return
    yield from _heading("families", page)
    heads = ("family", "findings", "files", "to-run", "advice")
    yield _row([text(key, language) for key in heads])
    yield "| --- | ---: | ---: | ---: | ---: |"
    for row in page.families:
        work = duration(row.work, language) if row.work else "–"
        advice = duration(row.advice, language) if row.advice else "–"
        name = _plain(family_name(row.family, language))
        yield _row([name, f"{row.findings:,}", f"{row.files:,}", work, advice])


def _library(row: LibraryRow, language: Language) -> str:
    name = _code(row.name) if row.name else text("own-cuda", language)
    return f"{name} ({row.findings}×): {prose(row.groups[0].message)}"


def _hotspot(row: HotspotRow, language: Language) -> str:
    advice = text("better", language, advice=row.advice)
    return f"{row.score}: {_place(row.place)} {prose(row.message)} {prose(advice)}"


def _settled(page: Page) -> Iterator[str]:
    """How many places need nothing for which reasons; the places are folded away."""
    language, settled = page.language, page.settled
    if not settled.number:
        return
    yield from _heading("settled-title", page)
    yield _row([text(key, language) for key in ("reason", "message", "places", "files")])
    yield "| --- | --- | ---: | ---: |"
    for row in settled.reasons:
        yield _row([_code(row.reason), _plain(row.why), f"{row.places:,}", f"{row.files:,}"])
    yield from ("", "<details>", f"<summary>{text('files', language)}</summary>", "")
    for each in settled.files[:_MOST_ROWS]:
        yield f"- [{_plain(each.file.name)}]({each.file.link}): {each.number:,}"
        yield from (f"  - {_settled_place(place, language)}" for place in each.places[:_MOST_ROWS])
        yield from (f"  {line}" for line in _further(each.number, language))
    left = settled.number - sum(each.number for each in settled.files[:_MOST_ROWS])
    if left:
        yield f"- … {text('further', language, number=f'{left:,}')}"
    yield from ("", "</details>")


def _settled_place(place: SettledPlace, language: Language) -> str:
    why = _plain(place.why)
    if place.decides is not None:
        where = text("decided-in", language, line=place.decides.place)
        why += f" ({_plain(where)} {_code(place.decides.code)})"
    where = _plain(text("decided-in", language, line=place.at.place))
    return f"{where} {_code(place.at.code)}: {why}"


def _heading(key: str, page: Page) -> Iterator[str]:
    yield from ("", f"### {text(key, page.language)}", "")


def _further(number: int, language: Language) -> Iterator[str]:
    if number > _MOST_ROWS:
        yield f"- … {text('further', language, number=number - _MOST_ROWS)}"


def _place(shown: Shown) -> str:
    return _code(f"{shown.file.name}:{shown.place}")


def _sentence_list(parts: Iterable[str], language: Language) -> str:
    return message("punctuation.list").in_language(language).join(parts)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def prose(message: str) -> str:
    """A message, of which only the code in backticks is marked up."""
    parts = message.split("`")
    if len(parts) % 2 == 0:
        return _plain(message)
    return "".join(_code(part) if i % 2 else _plain(part) for i, part in enumerate(parts))


def _code(text: str) -> str:
    """A code span, also of what holds backticks; a bar would end the cell of a table."""
    inside = _printable(text).strip().replace("|", "¦")
    fence = "`" * (max(map(len, re.findall("`+", inside)), default=0) + 1)
    space = " " if inside[:1] == "`" or inside[-1:] == "`" else ""
    return f"{fence}{space}{inside}{space}{fence}"


def _plain(text: str) -> str:
    return _MEANT.sub(r"\\\g<0>", _printable(text))


def _printable(text: str) -> str:
    """The text in one line."""
    return "".join(character if character.isprintable() else " " for character in text)
