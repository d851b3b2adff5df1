"""Titles of fixes, as they appear in a menu."""

from npulens.catalog.model import LocalizedText


def use(replacement: str) -> LocalizedText:
    """Replace what was found by something else."""
    return LocalizedText(f"Use `{replacement}`", f"改用 `{replacement}`")
