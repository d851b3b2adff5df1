"""The guide for a terminal: what comes next, then all points."""

from collections.abc import Iterator

from npulens.catalog.messages import message
from npulens.catalog.model import Language
from npulens.report.guide.point_wording import heading, shows, sign
from npulens.workspace.guiding.project_guide import Guide, GuidePoint


def guide_lines(guide: Guide, language: Language, *, is_elsewhere: bool = False) -> Iterator[str]:
    """The lines; `is_elsewhere` says that the guide is not for the current folder."""
    yield heading(guide, guide.root.name, language)
    if is_elsewhere:
        yield message("guide.in-folder", folder=guide.root).in_language(language)
    yield ""
    following = guide.next
    if following is None:
        yield message("guide.all-done").in_language(language)
    else:
        yield from _next(following, language)
    width = max(len(each.point.id) for each in guide.points)
    for phase in guide.phases:
        yield ""
        yield phase.phase.title.in_language(language)
        for found in phase.points:
            yield f"  {sign(found)} {found.point.id:{width}}  {_titled(found, language)}"
            if found.is_open and found.command:
                yield f"    {'':{width}}  $ {found.command}"


def _titled(found: GuidePoint, language: Language) -> str:
    """The title, and why the point is in its state."""
    title, said = found.point.title.in_language(language), shows(found, language)
    if not said:
        return title
    return message("guide.point", title=title, shows=said).in_language(language)


def _next(found: GuidePoint, language: Language) -> Iterator[str]:
    """The next point in full."""
    point = found.point
    yield message("guide.next", title=point.title.in_language(language)).in_language(language)
    if found.command:
        yield f"  $ {found.command}"
    yield f"  {point.text.in_language(language)}"
    said = shows(found, language)
    if said:
        yield f"  {said}"
    comma = message("punctuation.list").in_language(language)
    yield "  " + message("guide.read-on", where=comma.join(point.read)).in_language(language)
    if not point.needs or any(need.run or need.results for need in point.needs):
        command = f"npulens guide . --done {point.id}"
        yield "  " + message("guide.tick", command=command).in_language(language)
