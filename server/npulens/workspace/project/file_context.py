"""What has to be known around a file before it can be analysed like the command line does."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from npulens.catalog.model import LocalizedText, Shim, Target
from npulens.catalog.project_model import ProjectFacts
from npulens.catalog.rule_file import CatalogueError
from npulens.catalog.tables import Catalogue
from npulens.workspace.files.discovery import discover_for
from npulens.workspace.index.fact_memo import FactMemo
from npulens.workspace.project.own_modules import project_root
from npulens.workspace.project.project_facts import project_facts
from npulens.workspace.project.shim import ShimFinder
from npulens.workspace.settings.catalogues import Catalogues
from npulens.workspace.settings.configuration import (
    Configuration,
    ConfigurationError,
    Settings,
    absolute,
    find_configuration,
    require_known_words,
)

_NO_SETTINGS: Settings = MappingProxyType({})


@dataclass(frozen=True)
class FileContext:
    """What counts for one file.

    Attributes:
        catalogue: The rules that they request.
        project: What the file cannot know of its project.
        shim: Whether `transfer_to_npu` is in force where it runs.
        problem: What is wrong with the configuration, so that an earlier one counts, or `None`.
    """

    configuration: Configuration
    catalogue: Catalogue
    project: ProjectFacts
    shim: Shim
    problem: LocalizedText | None = None

    @property
    def target(self) -> Target:
        """What the analysis needs to know."""
        return replace(self.configuration.target, shim=self.shim, project=self.project)


class ProjectContextProvider:
    """Looks around files, and remembers what is the same for many; for one thread at a time."""

    def __init__(self, catalogues: Catalogues | None = None) -> None:
        """Know nothing yet but these catalogues, which others may use as well."""
        self._catalogues = catalogues or Catalogues()
        self._finders: dict[Path | None, ShimFinder] = {}
        self._projects: dict[Path, ProjectFacts] = {}
        self._memos: dict[Path, tuple[Catalogue, FactMemo]] = {}
        self._good: dict[Path | None, Configuration] = {}

    def look(
        self, path: Path | None, folder: Path | None, settings: Settings = _NO_SETTINGS
    ) -> FileContext:
        """What counts for a file now.

        A configuration that cannot be used is left for the last one that could.

        Args:
            path: The file, or `None` for a text that is not saved.
            folder: The folder of the workspace that it is in, or `None`.
            settings: What counts where the configuration of the project says nothing.
        """
        settings = {"folder": folder, **settings}
        problem = None
        place = None if path is None else absolute(path).parent
        try:
            if path is None:
                configuration = Configuration(**settings)
            else:
                configuration = find_configuration(path, settings)
            catalogue = self._catalogues.of(configuration)
            require_known_words(configuration, catalogue)
        except (ConfigurationError, CatalogueError) as error:
            problem = error.text
            configuration = self._last_good(place, settings)
            catalogue = self._without_broken_files(configuration)
        else:
            self._good[place] = configuration
        return FileContext(
            configuration,
            catalogue,
            self._project(path, folder, configuration, catalogue),
            self._shim(path, folder, configuration),
            problem,
        )

    def forget_rules(self) -> None:
        """Read rule files again; one of them has changed."""
        self._catalogues.forget()

    def forget_projects(self) -> None:
        """Read projects again; a file has come, gone or changed."""
        self._projects.clear()

    def _last_good(self, place: Path | None, settings: Settings) -> Configuration:
        """What counted in a folder, or in the nearest one above it; else the settings alone."""
        around = [place] if place is None else [place, *place.parents]
        for each in around:
            if each in self._good:
                return self._good[each]
        configuration = Configuration(**settings)
        try:
            require_known_words(configuration, self._catalogues.of(configuration))
        except (ConfigurationError, CatalogueError):
            return Configuration(folder=configuration.folder)
        return configuration

    def _without_broken_files(self, configuration: Configuration) -> Catalogue:
        """The catalogue of a configuration, without rule files that cannot be used any more."""
        try:
            return self._catalogues.of(configuration)
        except CatalogueError:
            return self._catalogues.of(replace(configuration, extend_rules=()))

    def _shim(self, path: Path | None, folder: Path | None, configuration: Configuration) -> Shim:
        if path is None:
            return Shim.ABSENT
        root = configuration.root if configuration.source is not None else folder
        finder = self._finders.setdefault(root, ShimFinder())
        states: Mapping[str, Shim] = finder.states_of_project(configuration, folder=folder)
        return states.get(str(absolute(path)), Shim.ABSENT)

    def _project(
        self,
        path: Path | None,
        folder: Path | None,
        configuration: Configuration,
        catalogue: Catalogue,
    ) -> ProjectFacts:
        """What is known of a project, gathered when its first document is opened."""
        root = None if path is None else project_root(path) or folder
        if path is None or root is None:
            return ProjectFacts(root="" if path is None else str(path.parent))
        if root not in self._projects:
            files = discover_for(configuration, [str(root)]).files
            memo = self._memo(root, catalogue)
            facts = project_facts(files, [root], catalogue, memo=memo)
            self._projects[root] = replace(facts, root=str(root))
            memo.forget_unrequested()
        return self._projects[root]

    def _memo(self, root: Path, catalogue: Catalogue) -> FactMemo:
        """What was known of the files of a project when it was last read, with the same rules."""
        known = self._memos.get(root)
        if known is None or known[0] is not catalogue:
            known = self._memos[root] = catalogue, FactMemo()
        return known[1]
