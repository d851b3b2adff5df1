"""What the analysis thread runs: from a text in an editor to the diagnostics it shows."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from lsprotocol import types

from npulens.analysis import StatementCache, analyze
from npulens.catalog.loader import CatalogueError
from npulens.catalog.model import Finding, ProjectFacts, Shim
from npulens.catalog.tables import Catalogue
from npulens.lsp.convert import ClientTerms, to_diagnostic
from npulens.lsp.slots import IsSuperseded
from npulens.text.document import Document
from npulens.workspace.catalogues import configured_catalogue
from npulens.workspace.configuration import (
    Configuration,
    ConfigurationError,
    absolute,
    find_configuration,
)
from npulens.workspace.discovery import discover
from npulens.workspace.operators import project_facts, project_root
from npulens.workspace.selection import selected
from npulens.workspace.shim import ShimFinder

logger = logging.getLogger(__name__)


@dataclass(eq=False)
class OpenDocument:
    """A document that the client has open.

    Attributes:
        uri: Its name in the protocol.
        path: The file behind it, or `None` for an unsaved one.
        document: Its newest text. Belongs to the event loop.
        configuration: What applied to it when last looked up. Belongs to the analysis thread.
        project: What was known of its project then. Belongs to the analysis thread.
        configuration_is_due: Whether the next analysis shall look it up.
        folder: The folder of the client's workspace that the file is in, or `None`.
        mentions_shim: Whether the text named `transfer_to_npu` when it was last opened or saved.
        shim: Whether that is in force where the file runs. Belongs to the analysis thread.
        statements: What its last analysis found. Belongs to the analysis thread.
    """

    uri: str
    path: Path | None
    document: Document
    configuration: Configuration | None = None
    project: ProjectFacts = field(default_factory=ProjectFacts)
    configuration_is_due: bool = True
    folder: Path | None = None
    mentions_shim: bool = False
    shim: Shim = Shim.ABSENT
    statements: StatementCache = field(default_factory=StatementCache)


@dataclass(frozen=True, slots=True)
class Task:
    """One text of an open document, to be analysed."""

    opened: OpenDocument
    document: Document
    terms: ClientTerms


@dataclass(frozen=True, slots=True)
class Analysis:
    """What one text of an open document is found to hold; each finding with its diagnostic."""

    document: Document
    terms: ClientTerms
    findings: Sequence[Finding]
    diagnostics: Sequence[types.Diagnostic]


class Engine:
    """Analyses one task after the other; keeps the catalogues it has loaded."""

    def __init__(self) -> None:
        self._finders: dict[Path | None, ShimFinder] = {}
        self._catalogues: dict[Configuration, Catalogue] = {}
        self._projects: dict[Path, ProjectFacts] = {}

    def run(self, task: Task, is_superseded: IsSuperseded) -> Analysis | None:
        """The analysis of a task, or `None` if it was superseded on the way."""
        configuration = self._configuration(task.opened)
        if is_superseded():
            return None
        findings = analyze(
            task.document,
            self._catalogue(configuration),
            replace(configuration.target, shim=task.opened.shim, project=task.opened.project),
            task.opened.statements,
        )
        if is_superseded():
            return None
        kept = selected(findings, configuration, str(task.opened.path or task.opened.uri))
        terms = task.terms.in_project(configuration.language)
        diagnostics = [
            to_diagnostic(finding, task.opened.uri, task.document, terms) for finding in kept
        ]
        return Analysis(task.document, terms, kept, diagnostics)

    def _configuration(self, opened: OpenDocument) -> Configuration:
        """What applies to a document: files are read when it was opened or saved, not for edits."""
        if opened.configuration is None or opened.configuration_is_due:
            opened.configuration_is_due = False  # first, so that a save from here on counts
            opened.configuration = _look_up(opened.path)
            opened.shim = self._shim(opened, opened.configuration)
            opened.project = self._project(opened.path, opened.configuration)
        return opened.configuration

    def _shim(self, opened: OpenDocument, configuration: Configuration) -> Shim:
        if opened.path is None:
            return Shim.ABSENT
        root = configuration.root if configuration.source is not None else opened.folder
        finder = self._finders.setdefault(root, ShimFinder())
        states = finder.states_of_project(configuration, folder=opened.folder)
        return states.get(str(absolute(opened.path)), Shim.ABSENT)

    def _project(self, path: Path | None, configuration: Configuration) -> ProjectFacts:
        """What is known of a project, gathered when its first document is opened."""
        root = None if path is None else project_root(path)
        if root is None:
            return ProjectFacts()
        if root not in self._projects:
            files = discover([str(root)], configuration.exclude, configuration.root).files
            catalogue = self._catalogue(configuration)
            self._projects[root] = project_facts(files, [root], catalogue)
        return self._projects[root]

    def _catalogue(self, configuration: Configuration) -> Catalogue:
        # What the catalogue depends on, so that projects that ask for the same share one.
        asked = Configuration(
            select=configuration.select,
            extend_select=configuration.extend_select,
            ignore=configuration.ignore,
            extend_rules=configuration.extend_rules,
        )
        if asked not in self._catalogues:
            try:
                self._catalogues[asked] = configured_catalogue(asked)
            except CatalogueError as error:
                logger.error("%s", error)
                self._catalogues[asked] = configured_catalogue(replace(asked, extend_rules=()))
        return self._catalogues[asked]


def _look_up(path: Path | None) -> Configuration:
    if path is not None:
        try:
            return find_configuration(path)
        except ConfigurationError as error:
            logger.error("%s", error)
    return Configuration()
