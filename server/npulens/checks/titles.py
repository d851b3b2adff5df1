"""Titles of fixes, as they appear in a menu."""

from npulens.catalog.messages import message
from npulens.catalog.model import LocalizedText


def remove(name: str) -> LocalizedText:
    """Take something out."""
    return message("fix.remove", name=name)


def add(code: str) -> LocalizedText:
    """Write something beside what was found."""
    return message("fix.add", code=code)


def use(replacement: str) -> LocalizedText:
    """Replace what was found by something else."""
    return message("fix.use", code=replacement)
