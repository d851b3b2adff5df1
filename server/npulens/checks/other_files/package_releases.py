"""Which releases the required version of a package admits."""

import re
from collections.abc import Iterable, Sequence

_LOCAL = re.compile(r"\+[\w.]+")
_PART = re.compile(r"(?P<operator>\^|~=?|={1,3}|[<>!]=?)?[ \t]*(?P<version>\d[\w.*]*)(?:=[\w.*]*)?")
"""A comparison; that of conda may name a build behind the version."""
_ANY = ".*"
_MOST_PATCHES = 30


def admits_none(requirement: str, releases: Sequence[str]) -> bool:
    """Whether no release meets a requirement.

    Args:
        requirement: Comparisons as pip, conda or Poetry write them: `==1.12.1`, `>=1.8,<2`,
            `=1.10`, `^1.13`. Of anything else nothing is known.
        releases: The releases; `3.8.*` means all that begin so.

    Returns:
        False also where nothing is known.
    """
    wanted = list(_as_specifiers(requirement))
    if not wanted or None in wanted:
        return False
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        specifiers = SpecifierSet(",".join(filter(None, wanted)))
    except InvalidSpecifier:
        return False
    return not any(specifiers.contains(each, prereleases=True) for each in _all_of(releases))


def _all_of(releases: Iterable[str]) -> Iterable[str]:
    for release in releases:
        if release.endswith(_ANY):
            yield from (f"{release.removesuffix(_ANY)}.{number}" for number in range(_MOST_PATCHES))
        else:
            yield release


def _as_specifiers(requirement: str) -> Iterable[str | None]:
    for part in _LOCAL.sub("", requirement).strip("() \t").split(","):
        match = _PART.fullmatch(part.strip())
        yield None if match is None else _as_specifier(match["operator"], match["version"])


def _as_specifier(operator: str | None, version: str) -> str:
    """The comparison as pip writes it. Poetry's `^` and `~` and conda's `=` mean a range."""
    numbers = version.split(".")
    if operator == "^":
        return f">={version},<{_next(numbers[:1])}"
    if operator == "~":
        return f">={version},<{_next(numbers[:2])}"
    if operator in (None, "="):
        return f"=={version}" if version.endswith("*") else f"=={version}.*"
    return f"{operator}{version}"


def _next(numbers: Sequence[str]) -> str:
    *before, last = numbers
    return ".".join([*before, str(int(last) + 1)]) if last.isdigit() else "*"
