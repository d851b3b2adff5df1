"""Running the engine over one file."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from npulens.analysis import judge
from npulens.catalog.messages import cannot_be_read, message, unreadable
from npulens.catalog.model import Finding, LocalizedText, Shim
from npulens.catalog.project_model import ProjectFacts
from npulens.catalog.tables import Catalogue
from npulens.checks.syntax_findings import unread_finding
from npulens.text.decoding import UndecodableSource
from npulens.text.document import Document
from npulens.text.kinds import Kind, kind_by_name
from npulens.text.notebooks import UnreadableNotebook
from npulens.text.sources import read_source
from npulens.verdicts.ledger import Judgement
from npulens.workspace.files.not_read import Reason
from npulens.workspace.files.relevance import Relevance
from npulens.workspace.project.own_modules import marked_folder
from npulens.workspace.runs.cache import FindingCache
from npulens.workspace.runs.file_report import FileReport
from npulens.workspace.settings.configuration import Configuration, absolute
from npulens.workspace.settings.selection import chosen, selected

_NO_SHIMS: Mapping[str, Shim] = {}

MAX_FILE_SIZE = 20_000_000
"""In bytes; a larger file is data and no program that a person wrote."""
_NO_PROJECT = ProjectFacts()


class Checker:
    """Checks files one by one, with one catalogue, one configuration and one project."""

    def __init__(
        self,
        catalogue: Catalogue,
        configuration: Configuration,
        project: ProjectFacts = _NO_PROJECT,
        shims: Mapping[str, Shim] = _NO_SHIMS,
        cache: FindingCache | None = None,
        folder: Path | None = None,
    ) -> None:
        """Set up.

        Args:
            catalogue: The rules.
            configuration: The settings.
            project: What a file cannot know of its project.
            shims: The files that run under `transfer_to_npu`, as `ShimFinder` finds them.
            cache: What earlier runs with the same of all these found.
            folder: The folder of the project where no file marks one.
        """
        self._catalogue = catalogue
        self._configuration = configuration
        self._project_target = replace(configuration.target, project=project)
        self._shims = shims
        self._cache = cache
        self._folder = None if folder is None else absolute(folder)
        self._roots: dict[Path, str] = {}
        self._marked: dict[Path, Path | None] = {}
        self._relevance = Relevance(catalogue, project)

    @property
    def catalogue(self) -> Catalogue:
        """The rules."""
        return self._catalogue

    @property
    def project(self) -> ProjectFacts:
        """What a file cannot know of its project."""
        return self._project_target.project

    def with_cache(self) -> "tuple[Checker, FindingCache]":
        """The same with what earlier runs found, and where that is kept."""
        catalogue, configuration, project = self._catalogue, self._configuration, self.project
        cache = FindingCache(configuration.root, catalogue, configuration, project)
        return Checker(catalogue, configuration, project, self._shims, cache, self._folder), cache

    def check_file(self, path: Path) -> FileReport:
        """Check a file; whatever is wrong with it is in the report."""
        data = self.read(path)
        return data if isinstance(data, FileReport) else self.check_bytes(str(path), data)

    def read(self, path: Path) -> bytes | FileReport:
        """The bytes of a file, or the report that it cannot be checked."""
        try:
            with path.open("rb") as file:
                if os.fstat(file.fileno()).st_size > MAX_FILE_SIZE:
                    return self._refused(str(path), _too_large(), Reason.TOO_LARGE)
                return file.read()
        except OSError as error:
            problem = cannot_be_read(error)
            return FileReport(str(path), problem=problem, unread=Reason.CANNOT_BE_READ)

    def check_bytes(self, path: str, data: bytes) -> FileReport:
        """Check what a file of this path holds, or would hold."""
        if len(data) > MAX_FILE_SIZE:
            return self._refused(path, _too_large(), Reason.TOO_LARGE)
        if self._cache is None:
            return self._analysed(path, data)
        digest = self._cache.digest(path, self._shim(path), data, self._root(path))
        known = self._cache.judgement(path, digest)
        if known is None:
            report = self._analysed(path, data)
            # What cannot be read is found out each time, so that it is reported each time.
            return report if report.unread is not None else replace(report, digest=digest)
        findings, settled = tuple(known.findings), tuple(known.settled)
        document = Document(path, decoded(path, data)) if findings else None
        return FileReport(path, findings, document, settled=settled)

    def findings(self, document: Document) -> tuple[Finding, ...]:
        """The wanted findings of a text."""
        return tuple(self.judged(document).findings)

    def judged(self, document: Document) -> Judgement:
        """The wanted findings of a text, and what is settled; rules that are off among it."""
        path = document.path
        project = replace(self.project, root=self._root(path))
        target = replace(self._project_target, shim=self._shim(path), project=project)
        found = judge(replace(document, path=_full(path)), self._catalogue, target)
        return chosen(found, self._configuration, path)

    def _analysed(self, path: str, data: bytes) -> FileReport:
        # What a script leads to may need the shim, whatever its own words are.
        needs_shim = self._shim(path) is Shim.MISSING
        if not needs_shim and not self._relevance.may_have_findings(path, data):
            return FileReport(path)
        try:
            document = Document(path, decoded(path, data))
        except (UndecodableSource, UnreadableNotebook) as error:
            return self._refused(path, unreadable(error), Reason.NOT_TEXT)
        try:
            judged = self.judged(document)
        except Exception as error:  # one file must not end the check of the others
            problem, traceback = internal_error(error)
            return FileReport(path, problem=problem, traceback=traceback, unread=Reason.FAILED)
        findings, settled = tuple(judged.findings), tuple(judged.settled)
        return FileReport(path, findings, document if findings else None, settled=settled)

    def _root(self, path: str) -> str:
        folder = Path(_full(path)).parent
        if folder not in self._roots:
            marked = marked_folder(folder, self._marked)
            self._roots[folder] = str(marked or self._folder or folder)
        return self._roots[folder]

    def _shim(self, path: str) -> Shim:
        known = self._shims.get(str(absolute(Path(path)))) if self._shims else None
        return self._project_target.shim if known is None else known

    def _refused(self, path: str, reason: LocalizedText, unread: Reason) -> FileReport:
        """The report on a file that cannot be read."""
        begun = reason._replace(en=f"{reason.en[0].upper()}{reason.en[1:]}")
        finding = unread_finding(message("error.sentence", text=begun), self._catalogue)
        findings = selected([finding], self._configuration, path)
        return FileReport(path, findings, Document(path, ""), unread=unread)


def _full(path: str) -> str:
    """The path from the root, by which projects know their files."""
    return str(absolute(Path(path)))


def decoded(path: str, data: bytes) -> str:
    """The text of a file; of C++, which declares no encoding, whatever can be read."""
    if kind_by_name(path) is Kind.NATIVE:
        return data.decode("utf-8", "replace").removeprefix("\ufeff")
    return read_source(path, data).text


def document_of(path: str) -> Document | None:
    """The text of a file that was checked before; `None` if it cannot be read any more."""
    try:
        return Document(path, decoded(path, Path(path).read_bytes()))
    except (OSError, UndecodableSource, UnreadableNotebook):
        return None


def internal_error(error: Exception) -> tuple[LocalizedText, str]:
    """What to say of a mistake of npulens, and its traceback."""
    from traceback import format_exception

    sentence = message("error.internal", kind=type(error).__name__)
    return sentence, "".join(format_exception(error))


def _too_large() -> LocalizedText:
    return message("unreadable.too-large", megabytes=MAX_FILE_SIZE // 1_000_000)
