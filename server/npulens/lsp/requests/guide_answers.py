"""The migration guide of a folder of the workspace, for clients that show it."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from npulens.catalog.messages import message
from npulens.lsp.session.language_server import NpulensServer
from npulens.lsp.session.progress import Progress
from npulens.lsp.session.session import file_path
from npulens.workspace.guiding.guide_evidence import Checked
from npulens.workspace.guiding.guide_points import guide_plan
from npulens.workspace.guiding.guide_records import guide_record
from npulens.workspace.guiding.guide_state import GuideStateError, change_state, marks_by_hand
from npulens.workspace.guiding.project_guide import Guide, guide_of
from npulens.workspace.index.fact_memo import FactMemo
from npulens.workspace.project.file_context import FileContext, ProjectContextProvider
from npulens.workspace.project.reached_files import ReachedFiles
from npulens.workspace.runs.overview import FileState

_TICKS = ("done", "skip", "open")


class GuideAnswers:
    """The guides that one server gives."""

    def __init__(self, server: NpulensServer) -> None:
        """Set up."""
        self._server = server
        self._session = server.session

    async def guide(self, params: types.ExecuteCommandParams) -> dict[str, Any]:
        """The guide of a folder; the second argument ticks and opens points before.

        Raises:
            JsonRpcInvalidParams: There is no such folder or point, or the state file is damaged.
        """
        given = params.arguments or []
        folder = self._folder(given[0] if given else None)
        ticks = _ticks(given[1] if len(given) > 1 else {})
        self._server.require_reach(folder)
        settings = self._session.settings_of(folder)
        title = message("editor.guide").in_language(self._session.terms.language)
        async with Progress(self._server, title, params.work_done_token):
            around = await asyncio.to_thread(
                ProjectContextProvider().look, folder / "__init__.py", folder, settings.project
            )
            language = self._session.terms.in_project(around.configuration.language).language
            try:
                if any(ticks):
                    await asyncio.to_thread(change_state, folder, marks_by_hand(*ticks))
                states = await asyncio.to_thread(self._states, folder)
                found = await asyncio.to_thread(_guide, folder, states, around)
            except GuideStateError as error:
                raise JsonRpcInvalidParams(error.text.in_language(language)) from error
        return guide_record(found, language)

    def _folder(self, given: object) -> Path:
        """The folder that is meant; without one the first of the workspace."""
        folders = list(self._session.folders)
        if given is None and folders:
            return folders[0]
        path = file_path(given) if isinstance(given, str) else None
        if path is None or not path.is_dir():
            raise JsonRpcInvalidParams("Argument 1 must be the file: URI of a folder.")
        return path

    def _states(self, folder: Path) -> list[FileState]:
        settings = self._session.settings_of(folder)
        states = self._server.overview.states(
            folder, settings.project, lambda: False, keeps=settings.cache
        )
        return sorted(states, key=lambda state: state.path)


def _guide(folder: Path, states: list[FileState], around: FileContext) -> Guide:
    files = [Checked(state.path, *state.read()) for state in states]
    libraries = {name.partition(".")[0] for name in around.catalogue.libraries}
    reached = ReachedFiles((each.path for each in files), folder, libraries, FactMemo())
    return guide_of(folder, files, reached)


def _ticks(given: object) -> tuple[list[str], list[str], list[str]]:
    """The points of `{"done": [...], "skip": [...], "open": [...]}`."""
    if not isinstance(given, Mapping) or not given.keys() <= set(_TICKS):
        raise JsonRpcInvalidParams('Argument 2 must be an object with "done", "skip" and "open".')
    done, skip, opened = (given.get(key, []) for key in _TICKS)
    known = {point.id for point in guide_plan().points}
    for ids in (done, skip, opened):
        if not isinstance(ids, list) or not known.issuperset(map(str, ids)):
            raise JsonRpcInvalidParams("Argument 2 names a point that the guide does not have.")
    return done, skip, opened
