"""All places of a checkout, and what npulens answers for each."""

import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from measure.answers import FOUND, answers
from measure.place import Place
from measure.python_places import python_places
from measure.text_places import text_places

_LARGEST = 1_000_000


class Closure(NamedTuple):
    """The places of one checkout.

    Attributes:
        name: The name of its folder.
        found: How many places a finding covers.
        settled: How many are settled, by reason.
        unexplained: Those for which there is neither.
    """

    name: str
    found: int
    settled: Counter[str]
    unexplained: list[Place]

    @property
    def places(self) -> int:
        """How many places there are."""
        return self.found + self.settled.total() + len(self.unexplained)


def closure(checkout: Path) -> Closure:
    """List the places of a checkout, and ask npulens about each.

    A folder that is no checkout is copied first: it may lie within a project of somebody else.
    """
    name = checkout.resolve().name
    if (checkout / ".git").exists():
        return _closure(checkout, name)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, name)
        shutil.copytree(checkout, copy, symlinks=True)
        return _closure(copy, name)


def _closure(checkout: Path, name: str) -> Closure:
    given = answers(checkout)
    result = Closure(name, 0, Counter(), [])
    found = 0
    for place in places(checkout):
        answer = given.of(place)
        if not answer:
            result.unexplained.append(place)
        elif answer == FOUND:
            found += 1
        else:
            result.settled[answer] += 1
    return result._replace(found=found)


def places(checkout: Path) -> Iterator[Place]:
    """All places of a checkout, in order of path and line."""
    for path in _files(checkout):
        file = checkout / path
        if file.is_symlink() or not file.is_file() or file.stat().st_size > _LARGEST:
            continue
        text = file.read_bytes().decode("utf-8-sig", "replace").replace("\r\n", "\n")
        yield from (python_places if path.endswith(".py") else text_places)(path, text)


def _files(checkout: Path) -> list[str]:
    """What git tracks; of a folder that is no checkout, whatever lies in it."""
    if not (checkout / ".git").exists():
        below = (path for path in checkout.rglob("*") if ".npulens_cache" not in path.parts)
        return sorted(path.relative_to(checkout).as_posix() for path in below)
    done = subprocess.run(["git", "ls-files", "-z"], cwd=checkout, capture_output=True, check=True)
    return sorted(filter(None, done.stdout.decode("utf-8", "replace").split("\0")))
