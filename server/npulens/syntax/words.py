"""The word at a place of a text in any language."""

from npulens.text.spans import Span


def word_at(text: str, offset: int) -> Span | None:
    """The letters, digits and underscores around a place, `None` if there are none."""
    start = end = offset
    while start and _is_part(text[start - 1]):
        start -= 1
    while end < len(text) and _is_part(text[end]):
        end += 1
    return Span(start, end) if start < end else None


def _is_part(character: str) -> bool:
    return character.isalnum() or character == "_"
