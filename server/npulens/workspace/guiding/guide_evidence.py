"""What the answers of a guide are read from: the findings of a project, its code, its files."""

import ast
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from npulens.catalog.model import Finding
from npulens.fixes.instruments.marks import marked_lines
from npulens.fixes.scripts import read_script
from npulens.syntax.meanings import qualified_names
from npulens.syntax.parsing import tree_or_none
from npulens.syntax.scoped_nodes import scoped_nodes
from npulens.text.decoding import UndecodableSource
from npulens.text.document import Document
from npulens.text.kinds import Kind, kind_by_name, kind_of
from npulens.text.notebooks import UnreadableNotebook
from npulens.text.places import place_at
from npulens.text.sources import read_source
from npulens.workspace.files.folders import CACHES, ENVIRONMENTS, HISTORY
from npulens.workspace.guiding.guide_points import GuidePlan
from npulens.workspace.guiding.training_places import TrainingPlaces, training_places
from npulens.workspace.project.reached_files import ReachedFiles

_MAX_SIZE = 2_000_000
"""In bytes; nobody writes a larger file."""
_DEPTH, _MOST_ENTRIES = 4, 20_000
"""How deep results of tools are looked for, and among how many files."""
_CODE = (Kind.PYTHON, Kind.NOTEBOOK)


class Checked(NamedTuple):
    """A file of a project and what was found in it."""

    path: Path
    document: Document | None = None
    findings: tuple[Finding, ...] = ()


class CodePlace(NamedTuple):
    """A line of a file, from 1."""

    path: Path
    line: int


class Counted(NamedTuple):
    """Some findings: how many, and the first place."""

    number: int
    first: CodePlace | None


class GuideEvidence:
    """A project as the guide looks at it; everything is read when first asked for."""

    def __init__(
        self,
        root: Path,
        files: Sequence[Checked],
        reached: ReachedFiles,
        plan: GuidePlan,
        writing: Path | None = None,
    ) -> None:
        self.root = root
        self._writing = writing
        self._files = files
        self._reached = reached
        self._wanted_names = frozenset(name for need in plan.needs for name in need.names)
        self._wanted_strings = frozenset(text for need in plan.needs for text in need.strings)
        self._patterns = frozenset(pattern for need in plan.needs for pattern in need.results)
        self._kinds = frozenset(kind for need in plan.needs for kind in need.kinds)

    # Findings

    def counted(self, wanted: Iterable[tuple[Checked, Finding]]) -> Counted:
        """How many findings there are, and where the first one is."""
        found = list(wanted)
        return Counted(len(found), _first_place(found))

    def findings(self) -> Iterator[tuple[Checked, Finding]]:
        """All findings, each with its file."""
        for checked in self._files:
            for finding in checked.findings:
                yield checked, finding

    # Code

    @cached_property
    def uses_torch(self) -> bool:
        """Whether any file uses PyTorch, or has a finding."""
        if any(checked.findings for checked in self._files):
            return True
        without = self._reached.without_torch()
        python = (path for path, _ in self._texts if kind_by_name(path.name) is Kind.PYTHON)
        if any(path not in without for path in python):
            return True
        notebooks = (text for path, text in self._texts if path.suffix == ".ipynb")
        return any(re.search(r"^\s*(?:import|from) torch\b", text, re.M) for text in notebooks)

    @cached_property
    def training(self) -> TrainingPlaces:
        """Which scripts train."""
        texts = [each for each in self._texts if kind_by_name(each[0].name) is Kind.PYTHON]
        return training_places(texts, self._reached.scripts(), self.root)

    @cached_property
    def instruments(self) -> dict[str, CodePlace]:
        """The instruments whose lines are in the code, each with its first line."""
        found: dict[str, CodePlace] = {}
        for path, text in self._texts:
            for line, name in marked_lines(text).items():
                found.setdefault(name, CodePlace(path, line))
        return found

    def names_in(self, *, only_reached: bool) -> dict[str, CodePlace]:
        """Where the code uses a name, or has a string, that a point asks for.

        Args:
            only_reached: Only the script that trains and what it imports, if that is known.
        """
        entry = self.training.entry if only_reached else None
        inside = None if entry is None else self._reached.reached_from(entry)
        found: dict[str, CodePlace] = {}
        for name, place in self._names:
            if inside is None or place.path in inside:
                found.setdefault(name, place)
        return found

    @cached_property
    def _names(self) -> tuple[tuple[str, CodePlace], ...]:
        """All uses of such names, in order."""
        names, strings = self._wanted_names, self._wanted_strings
        parts = {name.rpartition(".")[2] for name in names} | strings
        words = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(parts)))})\b")
        return tuple(
            (name, CodePlace(path, line))
            for path, text in self._texts
            if words.search(text)
            for name, line in _uses(text, names, strings)
        )

    def written(self, pattern: str, kinds: Collection[str]) -> CodePlace | None:
        """The first line that matches in a file of these kinds; comments do not count."""
        expression = re.compile(pattern)
        for path, text in self._settings:
            if kind_of(str(path), text).value in kinds:
                for number, line in enumerate(text.split("\n"), 1):
                    if expression.search(line) and not line.lstrip().startswith(("#", ";", "//")):
                        return CodePlace(path, number)
        return None

    @cached_property
    def _texts(self) -> tuple[tuple[Path, str], ...]:
        """The Python files and notebooks that can be read."""
        paths = (each.path for each in self._files if kind_by_name(each.path.name) in _CODE)
        return tuple((path, text) for path in paths if (text := _text(path)) is not None)

    @cached_property
    def _settings(self) -> tuple[tuple[Path, str], ...]:
        """The scripts and settings of the kinds that a point asks for, in order."""
        kinds = ((each.path, kind_by_name(str(each.path))) for each in self._files)
        paths = (path for path, kind in kinds if kind is None or kind.value in self._kinds)
        return tuple((path, text) for path in paths if (text := _text(path)) is not None)

    # What tools leave

    @cached_property
    def results(self) -> dict[str, Path]:
        """The first file or folder for each pattern of names, paths from the root."""
        found: dict[str, Path] = {}
        writing = () if self._writing is None else (self._writing,)
        for path in (*writing, *_entries(self.root)):
            if not path.is_relative_to(self.root):
                continue
            for pattern in self._patterns:
                if fnmatch(path.name, pattern):
                    found.setdefault(pattern, path.relative_to(self.root))
        return found


def _first_place(found: Sequence[tuple[Checked, Finding]]) -> CodePlace | None:
    if not found:
        return None
    checked, finding = found[0]
    if checked.document is None:
        return CodePlace(checked.path, 1)
    return CodePlace(checked.path, place_at(checked.document, finding.span.start).line)


def _text(path: Path) -> str | None:
    try:
        if path.stat().st_size > _MAX_SIZE:
            return None
        return read_source(str(path), path.read_bytes()).text
    except (OSError, UndecodableSource, UnreadableNotebook):
        return None


def _uses(text: str, names: Collection[str], strings: Collection[str]) -> Iterator[tuple[str, int]]:
    """Which of some names and strings a module uses, with the lines."""
    tree = tree_or_none(text)
    if tree is None or not tree.body:
        return
    last = {name.rpartition(".")[2] for name in names}
    for node, scope in scoped_nodes(tree.body, read_script(tree, text).module):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for imported in _imported(node):
                yield from ((n, node.lineno) for n in names if _is_at_or_below(imported, n))
        elif isinstance(node, ast.Attribute):
            if node.attr in last:
                found = qualified_names(node, scope)
                yield from ((name, node.lineno) for name in found if name in names)
        elif isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load) and node.id in last:
                found = qualified_names(node, scope)
                yield from ((name, node.lineno) for name in found if name in names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            value = node.value.partition(":")[0]
            if value in strings:
                yield value, node.lineno


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """The full names that a statement imports."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif node.module is not None and node.level == 0:
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _is_at_or_below(name: str, wanted: str) -> bool:
    return name == wanted or name.startswith(f"{wanted}.")


def _entries(root: Path) -> Iterator[Path]:
    """The files and folders of a project that are not deep, in order, up to so many."""
    left = _MOST_ENTRIES
    beside = CACHES | ENVIRONMENTS | HISTORY
    for folder, folders, files in os.walk(root):
        depth = len(Path(folder).relative_to(root).parts)
        folders[:] = sorted(each for each in folders if each not in beside)
        for name in (*folders, *sorted(files)):
            yield Path(folder, name)
        left -= len(folders) + len(files)
        if left < 0:
            return
        if depth >= _DEPTH:
            folders.clear()
