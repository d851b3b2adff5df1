"""Migrates the temporary copy of a project in which a script is run."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from npulens.catalog.model import Applicability
from npulens.catalog.tables import Catalogue
from npulens.workspace.configuration import Configuration
from npulens.workspace.files.discovery import discover
from npulens.workspace.fixing.file_fixes import fix_safely, fix_unsafely
from npulens.workspace.fixing.in_place import write_fixed
from npulens.workspace.processes import in_processes
from npulens.workspace.project.operators import project_facts
from npulens.workspace.project.shim import ShimFinder
from npulens.workspace.run import Checker


@dataclass(frozen=True, slots=True)
class CopyMigration:
    """How a copy is made ready for the NPU.

    Attributes:
        configuration: The settings of the project.
        catalogue: The rules.
        applicability: `unsafe` applies fixes too that would have to be read.
        jobs: How many processes to use; without it, as many as pay.
    """

    configuration: Configuration
    catalogue: Catalogue
    applicability: Applicability
    jobs: int | None = None

    def apply(self, original: Path, copy: Path, is_cancelled: Callable[[], bool]) -> int:
        """Fix the files of a copy in place, until it is cancelled.

        Args:
            original: The folder of the user.
            copy: What was copied from it.
            is_cancelled: Asked before each file.

        Returns:
            How many findings that settled.
        """
        configuration = self._in_copy(original, copy)
        found = discover(
            [str(copy)],
            configuration.exclude,
            configuration.root,
            configuration.respect_gitignore,
        )
        facts = project_facts(found.files, found.folders, self.catalogue)
        shims = ShimFinder().states_of_project(configuration, found.files, copy)
        checker = Checker(self.catalogue, configuration, facts, shims)
        work = fix_unsafely if self.applicability is Applicability.UNSAFE else fix_safely
        settled = 0
        for fixed in in_processes(work, checker, found.files, self.jobs):
            if is_cancelled():
                break
            if write_fixed(fixed, None).problem is None and fixed.after != fixed.before:
                settled += len(fixed.applied)
        return settled

    def _in_copy(self, original: Path, copy: Path) -> Configuration:
        """The settings with the paths in them counted from the copy."""
        source = self.configuration.source
        if source is None or not source.is_relative_to(original):
            return self.configuration
        return replace(self.configuration, source=copy / source.relative_to(original))
