"""The releases of torch_npu: which PyTorch, which Python and which CANN go with each."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

CANN_RELEASE = r"\d+\.\d+\.(?:RC\d+(?:\.\d+)?|\d+)"
_LAST_PART = re.compile(r"(?:RC)?(\d+)", re.IGNORECASE)
_BASE = re.compile(r"\d+(?:\.\d+)+")


@dataclass(frozen=True, slots=True)
class NpuRelease:
    """One release of torch_npu.

    Attributes:
        name: Its number: `2.1.0.post13`.
        torch: The release of PyTorch that it is made for.
        python: The minor releases of Python 3 that there are wheels for; empty if not known.
        cann: The release of CANN that it is made for, or `None` if not known.
        oldest_cann: The oldest one that it runs with, or `None` if not known.
    """

    name: str
    torch: str
    python: range
    cann: str | None
    oldest_cann: str | None


@dataclass(frozen=True, slots=True)
class ReleaseTable:
    """All releases, the oldest first."""

    releases: Sequence[NpuRelease] = ()

    def named(self, name: str) -> NpuRelease | None:
        """The release of this number, which may be written `2.1.0-post3` or `2.1.0.rc1`."""
        plain = _plain(name)
        return next((each for each in self.releases if _plain(each.name) == plain), None)

    def for_torch(self, torch: str) -> Sequence[NpuRelease]:
        """Those for a release of PyTorch, but for candidates of a release."""
        return [each for each in self.releases if each.torch == torch and "rc" not in each.name]


def npu_releases(groups: Iterable[Mapping[str, Any]]) -> ReleaseTable:
    """The table of these groups, the fields of `npu-releases`."""
    releases = [_release(line, fields) for fields in groups for line in fields["releases"]]
    return ReleaseTable(sorted(releases, key=lambda release: _order(release.name)))


def base_of(release: str) -> str:
    """The numbers that a release begins with: `2.1.0` of `2.1.0.post13`."""
    match = _BASE.match(release)
    return release if match is None else match.group()


def cann_order(release: str) -> tuple[int, int, int, int]:
    """A key for releases of CANN; `8.0.RC1` comes before `8.0.0`."""
    major, minor, last = release.split(".")[:3]
    number = _LAST_PART.match(last)
    return (
        int(major),
        int(minor),
        0 if last.upper().startswith("RC") else 1,
        int(number[1]) if number is not None else 0,
    )


def _release(line: str, fields: Mapping[str, Any]) -> NpuRelease:
    name, _, python = line.partition(": ")
    first, _, last = python.replace("3.", "").partition("-")
    minors = range(int(first), int(last) + 1) if python else range(0)
    return NpuRelease(name, base_of(name), minors, fields["cann"], fields["oldest-cann"])


def _plain(name: str) -> str:
    return re.sub(r"[.-]?(rc|post)", r"\1", name.lower())


def _order(name: str) -> tuple[list[int], int, int]:
    numbers = [int(number) for number in base_of(name).split(".")]
    kind = 0 if "rc" in name else 2 if "post" in name else 1
    behind = re.search(r"(?:rc|post)(\d+)", name)
    return numbers, kind, int(behind[1]) if behind is not None else 0
