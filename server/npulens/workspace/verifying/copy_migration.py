"""Migrates the temporary copy of a project in which a script is run."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from npulens.catalog.model import Applicability
from npulens.catalog.tables import Catalogue
from npulens.workspace.migrating.migration import Request, migrate_in_place
from npulens.workspace.settings.configuration import Configuration
from npulens.workspace.verifying.verified_run import CancelledRunError


class Applied(NamedTuple):
    """What was fixed.

    Attributes:
        findings: How many findings that settled.
        codes: Their rules, those first whose fixes have to be read.
    """

    findings: int
    codes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CopyMigration:
    """How a copy is made ready for the NPU: as `npulens migrate` does it.

    Attributes:
        applicability: `unsafe` applies fixes too that would have to be read.
        jobs: How many processes to use; without it, as many as pay.
    """

    configuration: Configuration
    catalogue: Catalogue
    applicability: Applicability
    jobs: int | None = None

    def apply(
        self,
        original: Path,
        copy: Path,
        script: str | None,
        log_folder: Path,
        is_cancelled: Callable[[], bool],
    ) -> Applied:
        """Migrate the files of a copy in place.

        Args:
            original: The folder of the user.
            copy: What was copied from it.
            script: The path of the script that will be run, or None.
            log_folder: An empty folder beside the copy.
            is_cancelled: Asked with each file.

        Raises:
            CancelledRunError: Nobody waits for it any more.
        """
        request = Request(
            source=copy,
            configuration=self._in_copy(original, copy),
            catalogue=self.catalogue,
            applicability=self.applicability,
            jobs=self.jobs,
            log_folder=log_folder,
            original=original,
            started=None if script is None else copy / script,
        )
        log = migrate_in_place(request, None, _Observer(is_cancelled), lambda log, folder: None)
        changes = [change for change in log.changes if change.finding is not None]
        safe = {c.finding.rule.code: c.fix.applicability for c in changes if c.finding is not None}
        codes = sorted(safe, key=lambda code: (safe[code] is Applicability.SAFE, code))
        return Applied(len({(each.path, id(each.finding)) for each in changes}), tuple(codes))

    def without(self, code: str) -> "CopyMigration":
        """The same without the fixes of a rule."""
        ignore = (*self.configuration.ignore, code)
        return replace(self, configuration=replace(self.configuration, ignore=ignore))

    def _in_copy(self, original: Path, copy: Path) -> Configuration:
        """The settings with the paths in them counted from the copy."""
        source = self.configuration.source
        if source is None or not source.is_relative_to(original):
            return self.configuration
        return replace(self.configuration, source=copy / source.relative_to(original))


class _Observer:
    """Ends a migration that nobody waits for."""

    def __init__(self, is_cancelled: Callable[[], bool]) -> None:
        self._is_cancelled = is_cancelled

    def begin(self, total: int) -> None:
        pass

    def advance(self) -> None:
        if self._is_cancelled():
            raise CancelledRunError
