"""What settles a place, in words."""

from npulens.catalog.model import Language, LocalizedText
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
    language: Language,
    link: str = "",
) -> str:
    """Why nothing is to be done about a place, with the line that decides and the reason's name.

    Args:
        document: The text.
        span: The place.
        settlement: What settles it.
        why: The wording of the reason.
        language: The language to say it in.
        link: Where the line that decides can be seen, for Markdown.
    """
    reason = why.in_language(language)
    decides = settlement.span
    if decides is None or decides == span:
        return f"{reason} [{settlement.reason}]"
    line, code = place_at(document, decides.start).line, shortened(document, decides)
    where = f"第 {line} 行" if language == "zh" else f"line {line}"
    if link:
        where = f"[{where}]({link})"
    if language == "zh":
        return f"{reason}（{where} `{code}`）[{settlement.reason}]"
    return f"{reason} ({where}, `{code}`) [{settlement.reason}]"


def shortened(document: Document, span: Span) -> str:
    """The code of a place in one line that is not long, to stand between backticks."""
    code = " ".join(document.text[slice(*span)].split()).replace("`", "'")
    return code if len(code) <= _MOST_SHOWN else f"{code[:_MOST_SHOWN]}…"
