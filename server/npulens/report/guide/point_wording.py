"""What is said of a point of the guide, for people."""

from npulens.catalog.messages import message, message_of
from npulens.catalog.model import Language
from npulens.workspace.guiding.guide_state import DONE, HAND, RUN, SKIPPED
from npulens.workspace.guiding.project_guide import NOT_NEEDED, Guide, GuidePoint

SIGNS = {DONE: "✓", SKIPPED: "–", NOT_NEEDED: "–"}
"""By the state; what is open has none of these."""
OPEN_SIGN = "○"


def sign(found: GuidePoint) -> str:
    """The sign of a point."""
    return SIGNS.get(found.state, OPEN_SIGN)


def state_name(found: GuidePoint, language: Language) -> str:
    """The state of a point in a word."""
    return message_of("guide-state", found.state).in_language(language)


def shows(found: GuidePoint, language: Language) -> str:
    """Why a point is in its state; may be empty."""
    comma = message("punctuation.comma").in_language(language)
    parts = []
    if found.by == HAND:
        parts.append(message("guide.by-hand", when=found.when).in_language(language))
    elif found.by == RUN:
        parts.append(message("guide.by-run", when=found.when).in_language(language))
    if found.note:
        parts.append(found.note)
    if found.evidence is not None:
        parts.append(found.evidence.in_language(language))
    if found.state in (SKIPPED, NOT_NEEDED):
        parts.insert(0, state_name(found, language))
    return comma.join(parts)


def heading(guide: Guide, title: str, language: Language) -> str:
    """How far a project is, in a line."""
    counts = {"done": guide.count(DONE), "needed": guide.needed}
    texts = [message("guide.heading", title=title, **counts)]
    if guide.count(SKIPPED):
        texts.append(message("guide.skipped", number=guide.count(SKIPPED)))
    if guide.count(NOT_NEEDED):
        texts.append(message("guide.not-needed", number=guide.count(NOT_NEEDED)))
    comma = message("punctuation.comma").in_language(language)
    return comma.join(text.in_language(language) for text in texts)
