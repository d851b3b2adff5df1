"""What settles a place, in words."""

from npulens.catalog.messages import message
from npulens.catalog.model import LocalizedText
from npulens.catalog.settlements import Settlement
from npulens.text.document import Document
from npulens.text.places import place_at
from npulens.text.spans import Span

_MOST_SHOWN = 60
"""Of a longer piece of code so many characters are shown."""


def why_settled(
    document: Document,
    span: Span,
    settlement: Settlement,
    why: LocalizedText,
    link: str = "",
) -> LocalizedText:
    """Why nothing is to be done about a place, with the line that decides and the reason's name.

    `why` is the wording of the reason, and `link` where the line can be seen, for Markdown.
    """
    decides, name = settlement.span, settlement.reason
    if decides is None or decides == span:
        return message("settled.here", why=why, reason=name)
    where = message("settled.line", line=place_at(document, decides.start).line)
    if link:
        where = LocalizedText(*(f"[{text}]({link})" for text in where))
    code = shortened(document, decides)
    return message("settled.elsewhere", why=why, where=where, code=code, reason=name)


def shortened(document: Document, span: Span) -> str:
    """The code of a place in one line that is not long, for use between backticks."""
    code = " ".join(document.text[slice(*span)].split()).replace("`", "'")
    return code if len(code) <= _MOST_SHOWN else f"{code[:_MOST_SHOWN]}…"
