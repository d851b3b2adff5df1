"""What a page about a project says, apart from how it looks."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from npulens.catalog.model import Applicability, Finding, Language, Rule, Severity, Target
from npulens.catalog.tables import Catalogue
from npulens.report.locations import FileNames
from npulens.report.snippets import Line
from npulens.text.document import Document
from npulens.workspace.files.not_read import NotRead
from npulens.workspace.fixing.effort import Formula
from npulens.workspace.guiding.project_guide import Guide
from npulens.workspace.migrating.readiness import Readiness
from npulens.workspace.runs.file_report import FileReport


@dataclass(frozen=True, slots=True)
class Results:
    """What a run over a project found.

    Attributes:
        catalogue: The rules it was checked with.
        target: What it was checked for.
        names: How files are named and linked.
        date: The day of the run, or empty.
        not_read: The files and folders that were not read.
        without_torch: The paths of files that do not use PyTorch.
        scripts: The scripts that are started, each with the paths of what it imports.
        guide: The guide of the project, if it is wanted.
    """

    title: str
    files: Sequence[FileReport]
    catalogue: Catalogue
    target: Target
    names: FileNames
    date: str = ""
    not_read: Sequence[NotRead] = ()
    without_torch: Collection[str] = ()
    scripts: Sequence[tuple[str, Collection[str]]] = ()
    guide: Guide | None = None


class Fixes(NamedTuple):
    """How many findings have a fix of which kind."""

    safe: int = 0
    unsafe: int = 0
    manual: int = 0


@dataclass(frozen=True, slots=True)
class Entry:
    """A finding of the page.

    Attributes:
        file: The index of its file in `Page.files`.
        fix: The applicability of its preferred fix, `manual` where there is none.
        minutes: What it adds to the effort.
        work: Whether it has to be dealt with before the code runs; the others are advice.
        file_line: The line of the file, for links.
        place: Line and column as they are shown, in a notebook with the cell.
    """

    file: int
    finding: Finding
    document: Document
    fix: Applicability
    minutes: int
    work: bool
    file_line: int
    place: str
    line: Line

    @property
    def symbol(self) -> str:
        return self.finding.arguments.get("symbol", "")


@dataclass(frozen=True, slots=True)
class FileRow:
    """A file of the page.

    Attributes:
        work: The minutes until it runs.
        advice: The minutes that its advice would take.
        problem: Why it could not be checked, or empty.
    """

    name: str
    link: str
    readiness: Readiness
    findings: int
    work: int
    advice: int
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ScriptRow:
    """A script that somebody starts, judged by all that it imports.

    Attributes:
        readiness: The worst state of a file that it imports, or its own.
        files: How many files that use PyTorch it imports, itself among them.
        in_state: How many of them are in that state.
        work: The minutes until all of them run.
    """

    file: FileRow
    readiness: Readiness
    files: int
    in_state: int
    work: int


@dataclass(frozen=True, slots=True)
class FamilyRow:
    """What one family of rules adds up to."""

    family: str
    findings: int
    files: int
    fixes: Fixes
    work: int
    advice: int


@dataclass(frozen=True, slots=True)
class Shown:
    """A place with its lines.

    Attributes:
        file_line: The line of the file, for links.
        place: The line as it is shown, in a notebook with the cell.
    """

    file: FileRow
    file_line: int
    place: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """Findings that are dealt with alike.

    Attributes:
        places: The first ones.
    """

    rule: Rule
    message: str
    findings: int
    files: int
    fixes: Fixes
    minutes: int
    places: tuple[Shown, ...]


@dataclass(frozen=True, slots=True)
class LibraryRow:
    """A library for GPUs that the project uses.

    Attributes:
        name: Its package, empty for CUDA code of the project itself.
        groups: What is used of it, most first, each with what replaces it.
    """

    name: str
    findings: int
    files: int
    severity: Severity
    minutes: int
    groups: tuple[Group, ...]


@dataclass(frozen=True, slots=True)
class HotspotRow:
    """A place where a shape depends on data or the host waits."""

    score: int
    rule: Rule
    is_shape: bool
    synchronizes: bool
    function: str
    reached: str
    message: str
    advice: str
    place: Shown


class ReasonRow(NamedTuple):
    """A reason why nothing is to be done, with how many places it settles, in how many files."""

    reason: str
    why: str
    places: int
    files: int


class CodePlace(NamedTuple):
    """A piece of code.

    Attributes:
        file_line: The line of the file, for links.
        place: The line as it is shown, in a notebook with the cell.
    """

    file_line: int
    place: str
    code: str


class SettledPlace(NamedTuple):
    """A place where nothing is to be done, why, and what decides unless the place itself does."""

    at: CodePlace
    why: str
    decides: CodePlace | None


class SettledFile(NamedTuple):
    """A file with such places: how many, and those that are listed."""

    file: FileRow
    number: int
    places: tuple[SettledPlace, ...]


class Settled(NamedTuple):
    """All such places.

    Attributes:
        reasons: Why, the most frequent reason first.
        files: Where; of many places the first ones.
    """

    number: int
    listed: int
    reasons: tuple[ReasonRow, ...]
    files: tuple[SettledFile, ...]


@dataclass(slots=True)
class Folder:
    """A folder with all that is below it.

    Attributes:
        name: Its path from the folder above it in the tree.
        path: Its path from the root, empty for the root.
        shares: How many files below it are in which state.
        work: The minutes until all below it runs.
        folders: Those folders in it in which there are findings, the most laborious first.
        silent: How many folders in it are without findings.
    """

    name: str
    path: str
    shares: dict[Readiness, int] = field(default_factory=lambda: dict.fromkeys(Readiness, 0))
    findings: int = 0
    work: int = 0
    folders: tuple["Folder", ...] = ()
    silent: int = 0

    @property
    def files(self) -> int:
        return sum(self.shares.values())


@dataclass(frozen=True, slots=True)
class Page:
    """All that a page says.

    Attributes:
        shares: How many files are in which state.
        work: The minutes until all runs.
        advice: The minutes that all advice would take.
        by_hand: How many findings keep code from running and have no fix.
        scripts: The scripts that reach PyTorch, those that reach most first.
        blockers: What has no fix and has to be written, the most laborious first.
        fused: Where an operator of the NPU could be, the most frequent first.
        settled: Where nothing is to be done, and why.
        formula: The figures from which the minutes come.
        folders: The tree of folders with what is to be done in them.
        not_read: How many folders and files were not read, in words; empty if none.
        unread: Their names, each with the reason.
        guide: Which points of the migration are done, if that is wanted.
    """

    title: str
    date: str
    target: Target
    language: Language
    line_mark: str
    shares: Mapping[Readiness, int]
    severities: Mapping[Severity, int]
    fixes: Fixes
    work: int
    advice: int
    by_hand: int
    files: tuple[FileRow, ...]
    scripts: tuple[ScriptRow, ...]
    entries: tuple[Entry, ...]
    families: tuple[FamilyRow, ...]
    blockers: tuple[Group, ...]
    libraries: tuple[LibraryRow, ...]
    hotspots: tuple[HotspotRow, ...]
    fused: tuple[Group, ...]
    settled: Settled
    formula: Formula
    folders: Folder
    not_read: str
    unread: tuple[tuple[str, str], ...]
    guide: Guide | None

    @property
    def judged(self) -> Mapping[Readiness, int]:
        """The shares without the files that have nothing to do with PyTorch."""
        return {state: n for state, n in self.shares.items() if state is not Readiness.OTHER}

    @property
    def using(self) -> int:
        """How many files use PyTorch, or are settings and scripts that are about it."""
        return sum(self.judged.values())

    @property
    def ready(self) -> int:
        """How many of those run as they are or after safe fixes."""
        return self.shares[Readiness.AS_IS] + self.shares[Readiness.SAFE]

    @property
    def changing(self) -> int:
        """How many have to change before they run."""
        return self.using - self.shares[Readiness.AS_IS] - self.shares[Readiness.UNKNOWN]
