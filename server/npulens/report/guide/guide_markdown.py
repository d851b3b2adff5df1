"""The guide in Markdown: a list of tasks for each phase, for a pull request or an issue."""

from collections.abc import Callable, Iterator

from npulens.catalog.messages import message
from npulens.catalog.model import Language
from npulens.report.guide.point_wording import heading, shows, state_name
from npulens.workspace.guiding.project_guide import Guide, GuidePoint


def guide_markdown(
    guide: Guide, title: str, language: Language, prose: Callable[[str], str]
) -> Iterator[str]:
    """The lines below a heading of the caller's.

    Args:
        guide: The guide.
        title: What the project is called.
        language: The language.
        prose: Marks up code in backticks, and nothing else.
    """
    yield prose(heading(guide, title, language))
    following = guide.next
    if following is not None:
        yield ""
        text = message("guide.next", title=following.point.title.in_language(language))
        yield f"**{prose(text.in_language(language))}**"
    for phase in guide.phases:
        yield ""
        yield f"**{prose(phase.phase.title.in_language(language))}**"
        yield ""
        yield from (_task(found, language, prose) for found in phase.points)


def _task(found: GuidePoint, language: Language, prose: Callable[[str], str]) -> str:
    """A task; what needs nothing is ticked, too."""
    box = " " if found.is_open else "x"
    colon = message("punctuation.colon").in_language(language)
    said = shows(found, language) or ("" if found.is_open else state_name(found, language))
    command = prose(f"`{found.command}`") if found.is_open and found.command else ""
    comma = message("punctuation.comma").in_language(language)
    details = comma.join(part for part in (prose(said), command) if part)
    title = prose(found.point.title.in_language(language))
    return f"- [{box}] {title}" + (f"{colon}{details}" if details else "")
