"""Titles of fixes, as they appear in a menu."""

from npulens.catalog.model import LocalizedText


def remove(name: str) -> LocalizedText:
    """Take something out."""
    return LocalizedText(f"Remove `{name}`", f"去掉 `{name}`")


def use(replacement: str) -> LocalizedText:
    """Replace what was found by something else."""
    return LocalizedText(f"Use `{replacement}`", f"改用 `{replacement}`")
