"""The PyTorch release a project is meant for, read off what it requires; nothing of it is run."""

import ast
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from npulens.catalog.model import TorchVersion
from npulens.syntax.parsing import module_tree
from npulens.syntax.walking import nodes_below
from npulens.text.late_patterns import late
from npulens.text.regular_files import read_regular
from npulens.text.toml import parse_toml

OLDEST, NEWEST = TorchVersion(2, 6), TorchVersion(2, 13)
"""The releases that support tables exist for."""

REQUIREMENT_FILES = (
    *("pyproject.toml", "setup.cfg", "setup.py", "requirements*.txt", "requirements/*.txt"),
    *("environment.yml", "environment.yaml"),
)
"""Patterns of the names of files that say what a project requires."""

_RELEASES = [TorchVersion(2, minor) for minor in range(OLDEST.minor, NEWEST.minor + 1)]
_PATCHES = range(10)
_MEGABYTES = 1
_REQUIREMENT = late(
    r"\s*(?:torch|pytorch|torch[-_.]npu)\s*(?:\[[^\]]*\])?\s*\(?(?P<clauses>(?:[=<>!~^][^;#@)]*)?)\)?"
    r"\s*(?:[;#].*)?",
    re.IGNORECASE,
)
_CONDA = late(
    r"\s*(?:[\w-]+::)?(?:torch|pytorch|torch[-_]npu)\s*(?P<clauses>[=<>!~][^#]*)?(?:#.*)?"
)
_CLAUSE = late(r"(===|==|~=|!=|<=|>=|<|>|\^|~|=)?\s*v?(\d+(?:\.\d+)*)([\w.+*-]*)")


class _Clause(NamedTuple):
    """One condition on a version, such as `>=2.7`."""

    operator: str
    numbers: tuple[int, ...]
    is_prefix: bool


def project_version(folder: Path) -> TorchVersion | None:
    """The newest release that the nearest project around a folder allows; None if it says nothing.

    The first file that speaks of torch decides: `pyproject.toml`, `setup.cfg`, `setup.py`,
    `requirements*.txt`, `environment.yml`. Where only releases outside of the tables are allowed,
    the nearest one inside counts.
    """
    requirements = _requirements(folder)
    return newest_allowed(requirements) if requirements else None


def requires_older(folder: Path, release: TorchVersion) -> bool:
    """Whether the nearest project around a folder allows only releases before one."""
    parsed = [_clauses(text) for text in _requirements(folder)]
    later = [release, *(each for each in _RELEASES if each > release)]
    allowed = (_allows(c, each, patch) for c in parsed for each in later for patch in _PATCHES)
    return bool(parsed) and not any(allowed) and newest_allowed(_requirements(folder)) < NEWEST


def _requirements(folder: Path) -> list[str]:
    """The conditions on the version of torch of the nearest project around a folder."""
    for parent in (folder, *folder.parents):
        files = list(_files(parent))
        if files:
            for path, read in files:
                clauses = _read(path, read)
                if clauses:
                    return clauses
            return []
        if os.path.exists(parent / ".git"):  # noqa: PTH110 (pathlib's raises for some names)
            return []
    return []


def newest_allowed(requirements: list[str]) -> TorchVersion:
    """The newest release that all requirements allow, or else that any of them does."""
    parsed = [_clauses(text) for text in requirements]
    common = [r for r in _RELEASES if any(all(_allows(c, r, p) for c in parsed) for p in _PATCHES)]
    if common:
        return common[-1]
    some = [r for r in _RELEASES if any(_allows(c, r, p) for c in parsed for p in _PATCHES)]
    if some:
        return some[-1]
    lower = [
        c for clauses in parsed for c in clauses if c.operator in ("==", "===", ">=", ">", "~=")
    ]
    above = any((*c.numbers, 0)[:2] > NEWEST for c in lower)
    return NEWEST if above else OLDEST


def _files(folder: Path) -> Iterator[tuple[Path, Callable[[str], Iterable[str]]]]:
    """The files of a project that may speak of torch, and what reads the requirements of each."""
    readers: list[tuple[str, Callable[[str], Iterable[str]]]] = [
        ("pyproject.toml", _of_pyproject),
        ("setup.cfg", _of_setup_cfg),
        ("setup.py", _of_setup_py),
        ("requirements*.txt", str.splitlines),
        ("requirements/*.txt", str.splitlines),
        ("environment.yml", _of_environment),
        ("environment.yaml", _of_environment),
    ]
    try:
        for pattern, read in readers:
            for path in sorted(folder.glob(pattern)):
                yield path, read
    except (OSError, ValueError):
        return


def _read(path: Path, read: Callable[[str], Iterable[str]]) -> list[str]:
    """The conditions on the version of torch in a file; none if it cannot be read."""
    try:
        lines = list(read(read_regular(path, _MEGABYTES).decode("utf-8-sig")))
    except (OSError, ValueError, SyntaxError, RecursionError):
        return []
    pattern = _CONDA if path.name.startswith("environment") else _REQUIREMENT
    found = (pattern.fullmatch(line) for line in lines)
    return [m["clauses"].strip() for m in found if m is not None and (m["clauses"] or "").strip()]


def _of_pyproject(text: str) -> Iterator[str]:
    table = parse_toml(text)
    yield from _texts(_at(table, "project", "dependencies"))
    yield from _texts(_at(table, "project", "optional-dependencies"))
    yield from _texts(_at(table, "dependency-groups"))
    poetry = _at(table, "tool", "poetry")
    groups = _at(poetry, "group")
    tables = [_at(poetry, "dependencies")]
    tables += [_at(group, "dependencies") for group in _values(groups)]
    for dependencies in tables:
        if isinstance(dependencies, Mapping):
            for name, value in dependencies.items():
                version = value.get("version") if isinstance(value, Mapping) else value
                if isinstance(version, str) and version[:1].isdigit():
                    version = f"=={version}"
                if isinstance(version, str) and version[:1] in "=<>!~^":
                    yield f"{name} {version}"


def _at(table: Any, *keys: str) -> Any:
    for key in keys:
        table = table.get(key) if isinstance(table, Mapping) else None
    return table


def _values(table: Any) -> Iterable[Any]:
    return table.values() if isinstance(table, Mapping) else ()


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)


def _of_setup_cfg(text: str) -> Iterator[str]:
    """What `setup.cfg` requires; raises `ValueError` for a text of another form."""
    import configparser  # few projects have such a file

    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(text)
    except configparser.Error as error:
        raise ValueError("no settings") from error
    if parser.has_section("options"):
        yield from parser.get("options", "install_requires", fallback="").splitlines()
    if parser.has_section("options.extras_require"):
        for _, value in parser.items("options.extras_require"):
            yield from value.splitlines()


def _of_setup_py(text: str) -> Iterator[str]:
    """All its strings: a requirement looks like nothing else."""
    for node in nodes_below(module_tree(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _of_environment(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if line.lstrip().startswith("- "):
            yield line.lstrip()[2:].strip().strip("\"'")


def _clauses(text: str) -> list[_Clause]:
    found = []
    for part in text.split(","):
        match = _CLAUSE.match(part.strip())
        if match is not None:
            operator, numbers, rest = match[1] or "==", match[2], match[3]
            is_prefix = rest.startswith(".*") or operator == "="
            parts = tuple(int(number) for number in numbers.split("."))
            found.append(_Clause("==" if operator == "=" else operator, parts, is_prefix))
    return found


def _allows(clauses: list[_Clause], release: TorchVersion, patch: int) -> bool:
    return all(_is_met(clause, (*release, patch)) for clause in clauses)


def _is_met(clause: _Clause, version: tuple[int, int, int]) -> bool:
    operator, numbers, is_prefix = clause
    wanted = (*numbers, 0, 0)[:3]
    starts = version[: len(numbers)] == numbers
    if operator in ("==", "==="):
        return starts if is_prefix else version == wanted
    if operator == "!=":
        return not (starts if is_prefix else version == wanted)
    if operator == "~=":
        return version >= wanted and version[: len(numbers) - 1] == numbers[:-1]
    if operator == "^":
        return version >= wanted and version[0] == wanted[0]
    if operator == "~":
        return version >= wanted and version[:2] == wanted[:2]
    return {
        "<": version < wanted,
        "<=": version <= wanted,
        ">": version > wanted,
        ">=": version >= wanted,
    }[operator]
