"""What a page about a project says around its figures."""

from npulens.catalog.messages import message, message_if_any, message_of
from npulens.catalog.model import Language
from npulens.report.page_model import ScriptRow


def text(key: str, language: Language, **values: object) -> str:
    """A text of the table `page` with its values put in."""
    return message_of("page", key, **values).in_language(language)


def family_name(family: str, language: Language) -> str:
    """What a family is called; those of a user's own rules are shown as they are."""
    named = message_if_any("page-family", family)
    return family if named is None else named.in_language(language)


def duration(minutes: int, language: Language) -> str:
    """Working time as people say it; a day has 8 hours."""
    hours = minutes / 60
    if minutes < 60:
        return message("time.minutes", number=minutes).in_language(language)
    if hours < 16:
        return message("time.hours", number=_rounded(hours)).in_language(language)
    return message("time.days", number=_rounded(hours / 8)).in_language(language)


def _rounded(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0") if number < 10 else f"{number:,.0f}"


def script_state(script: ScriptRow, language: Language) -> str:
    """The state of a script, and how many of the files that it reaches are in it."""
    return text(
        "script-state",
        language,
        state=message_of("page-state", script.readiness.value),
        in_state=f"{script.in_state:,}",
        files=f"{script.files:,}",
    )


def percent(part: int, whole: int) -> str:
    """A share without decimals, 0 % and 100 % only if exact."""
    if not whole:
        return "–"
    share = 100 * part / whole
    if 0 < share < 1:
        return "<1%"
    if 99 < share < 100:
        return ">99%"
    return f"{share:.0f}%"
