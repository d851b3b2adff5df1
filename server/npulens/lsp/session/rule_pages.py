"""Where the pages of rules are: files that come with npulens, which open without a network."""

from functools import cache
from pathlib import Path

import npulens
from npulens.catalog.model import Language, Rule

_PACKAGE = Path(npulens.__file__).resolve().parent
_PLACES = (_PACKAGE / "rule_pages", _PACKAGE.parents[1] / "docs" / "rules")
"""In a wheel, and where npulens runs from its sources."""


def page_uri(rule: Rule, language: Language) -> str | None:
    """The page of a rule as a URI; a user's own rule has none."""
    return _pages(language).get(rule.code)


@cache
def _pages(language: Language) -> dict[str, str]:
    """The pages by the code of the rule, looked for once."""
    folder = next((place for place in _PLACES if place.is_dir()), _PLACES[0])
    files = (folder / "zh" if language == "zh" else folder).glob("NPU*.md")
    return {file.stem: file.as_uri() for file in files}
