"""Runs a script of the workspace on the emulated NPU, and shows what was seen at its lines."""

import asyncio
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from npulens.catalog.messages import message
from npulens.catalog.model import Applicability, Language
from npulens.catalog.tables import Catalogue
from npulens.lsp.requests.run_notes import run_notes
from npulens.lsp.session.language_server import NpulensServer
from npulens.lsp.session.progress import Progress
from npulens.lsp.session.run_diagnostics import is_text_of
from npulens.lsp.session.session import file_path
from npulens.text.decoding import UndecodableSource
from npulens.text.document import Document
from npulens.text.kinds import Kind, kind_by_name
from npulens.text.notebooks import UnreadableNotebook
from npulens.text.sources import read_source
from npulens.workspace.guiding.guide_state import GuideStateError
from npulens.workspace.guiding.noted_runs import note_run
from npulens.workspace.project.file_context import FileContext, ProjectContextProvider
from npulens.workspace.verifying.copy_migration import CopyMigration
from npulens.workspace.verifying.outcomes import GOOD, LIMITED, Outcome, status
from npulens.workspace.verifying.project_copy import CopyError
from npulens.workspace.verifying.run_wording import (
    unreached_sentence,
    verdict_sentence,
    way_on,
)
from npulens.workspace.verifying.verification import Request, Verification, verify
from npulens.workspace.verifying.verified_run import CannotVerifyError, Limits, Task

logger = logging.getLogger(__name__)

_LOOK_AFTER = 0.25
"""Seconds between two looks at whether the run is over or the user has stopped it."""


class ScriptRuns:
    """The runs of one server."""

    def __init__(self, server: NpulensServer) -> None:
        """Set up."""
        self._server = server
        self._session = server.session

    async def verify(
        self, params: types.ExecuteCommandParams, *, with_shapes: bool = False
    ) -> dict[str, Any]:
        """Run a script, say what came of it, and show what was seen at its lines.

        Args:
            params: The URI of the script, and options.
            with_shapes: The shapes of what is assigned to names are kept, too.
        """
        script = _script(params)
        self._server.require_reach(script)
        options = _Options(params, with_shapes=with_shapes)
        folder = self._session.folder_of(script) or script.parent
        real, root = (Path(os.path.realpath(path)) for path in (script, folder))
        if not real.is_relative_to(root):  # a link leads out of the folder
            folder = root = real.parent
        await asyncio.to_thread(self._require_saved, folder)
        settings = self._session.settings_of(folder)
        terms = self._session.terms.speaking(settings.language)
        title = message("editor.verify", name=script.name).in_language(terms.language)
        async with Progress(self._server, title, params.work_done_token) as progress:
            around = await asyncio.to_thread(
                ProjectContextProvider().look, script, folder, settings.project
            )
            request = options.request(root, real.relative_to(root).as_posix(), around)
            found = await self._found(request, around.catalogue, progress)
        await asyncio.to_thread(_note, root, found)
        language = terms.in_project(around.configuration.language).language
        shown = _message(found, language)
        is_good = found.verdict.outcome in GOOD | {Outcome.LIMIT_REACHED}
        kind = types.MessageType.Info if is_good else types.MessageType.Warning
        self._server.show_text(kind, f"npulens: {shown}")
        notes = [*run_notes(root, found)]
        documents = {str(root / path): document for path, document in found.documents.items()}
        shapes = {
            (str(root / each.path), each.line, each.name): each.shapes for each in found.shapes
        }
        self._session.runs.take(documents, notes, shapes)
        self._session.show_again()
        self._server.refresh()
        return {
            "status": status(found.verdict.outcome).value,
            "outcome": found.verdict.outcome.value,
            "message": shown,
            "style": None if found.style is None else found.style.value,
            "steps": found.steps,
            "diagnostics": len(notes),
            "shapes": len(found.shapes),
        }

    async def _found(
        self, request: Request, catalogue: Catalogue, progress: Progress
    ) -> Verification:
        """What came of a run, which ends when the user stops it."""
        cancelled = Event()
        started = monotonic()
        work = asyncio.ensure_future(
            asyncio.to_thread(verify, request, catalogue, cancelled.is_set)
        )
        work.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            while not work.done():
                progress.go_on(f"{monotonic() - started:.0f} s")
                await asyncio.wait({work}, timeout=_LOOK_AFTER)
            return work.result()
        except (CannotVerifyError, CopyError) as error:
            raise JsonRpcInvalidParams(str(error)) from error
        finally:
            cancelled.set()

    def _require_saved(self, folder: Path) -> None:
        """Refuse to run other texts than those that the user sees."""
        for opened in list(self._session.opened.values()):
            path = opened.path
            if path is None or not path.is_relative_to(folder):
                continue
            try:
                document = Document(str(path), read_source(str(path), path.read_bytes()).text)
            except FileNotFoundError:
                document = None
            except (OSError, UndecodableSource, UnreadableNotebook):
                continue
            if document is None or not is_text_of(document, opened.view):
                raise JsonRpcInvalidParams(f"{path} has changes that are not saved; save it first.")


def _note(root: Path, found: Verification) -> None:
    """Note a run for the guide of its project, if that has a state file."""
    try:
        note_run(root, found)
    except GuideStateError as error:
        logger.warning("%s", error)


def _message(found: Verification, language: Language) -> str:
    """The verdict, what was not reached, and what to do so that a run says more."""
    parts = [verdict_sentence(found.verdict, found.steps, placed=True).in_language(language)]
    if found.unreached is not None and found.script is not None:
        parts.append(unreached_sentence(found.script, found.unreached, language))
    outcome = found.verdict.outcome
    if outcome in (Outcome.NEEDS_LAUNCHER, Outcome.ERROR) or outcome in LIMITED:
        return "\n".join(parts)  # the way on is an option of the command line
    way = way_on(found.verdict, language)
    return "\n".join([*parts, *([] if way is None else [way])])


class _Options:
    """The second argument of the command."""

    def __init__(self, params: types.ExecuteCommandParams, *, with_shapes: bool) -> None:
        given = (params.arguments or [])[1:2] or [{}]
        if not isinstance(given[0], Mapping):
            raise JsonRpcInvalidParams("Argument 2 must be an object.")
        self._given = dict(given[0])
        self.arguments = self._taken("arguments", list, [])
        steps = self._taken("steps", int, None)
        seconds = self._taken("seconds", (int, float), None)
        self.limits = Limits.given(steps, seconds)
        self.processes = self._taken("processes", int, None)
        self.as_is = self._taken("asIs", bool, False)
        self.with_shapes = with_shapes
        is_unsafe = self._taken("unsafe", bool, False)
        self.applicability = Applicability.UNSAFE if is_unsafe else Applicability.SAFE
        if self._given:
            raise JsonRpcInvalidParams(f"There is no option {next(iter(self._given))!r}.")
        if not all(isinstance(each, str) for each in self.arguments):
            raise JsonRpcInvalidParams('"arguments" must be a list of texts.')
        limits = self.limits
        if (limits.steps or 0) < 0 or limits.seconds <= 0 or (self.processes or 1) < 1:
            raise JsonRpcInvalidParams("Limits and processes must be positive numbers.")

    def _taken(self, key: str, kind: Any, default: Any) -> Any:
        value = self._given.pop(key, None)
        if value is None:
            return default
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise JsonRpcInvalidParams(f"{key!r} is of the wrong type.")
        return value

    def request(self, folder: Path, script: str, around: FileContext) -> Request:
        """The request to run a script below a folder."""
        migration = CopyMigration(
            around.configuration, around.catalogue, self.applicability, jobs=1
        )
        return Request(
            folder=folder,
            task=Task(script, None, tuple(self.arguments), self.processes),
            limits=self.limits,
            migration=None if self.as_is else migration,
            with_shapes=self.with_shapes,
        )


def _script(params: types.ExecuteCommandParams) -> Path:
    given = params.arguments or []
    path = file_path(given[0]) if given and isinstance(given[0], str) else None
    if path is None:
        raise JsonRpcInvalidParams("Argument 1 must be the file: URI of a script.")
    if kind_by_name(path.name) not in (Kind.PYTHON, Kind.NOTEBOOK) or not path.is_file():
        raise JsonRpcInvalidParams(f"{path} is no Python script or notebook.")
    return path
