"""The beginning and end of a session, its folders, its settings, and files that change."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.capabilities import get_capability
from pygls.exceptions import JsonRpcException

from npulens.lsp.session.client_settings import (
    SECTION,
    ClientSettings,
    read_client_settings,
)
from npulens.lsp.session.convert import agreed_terms
from npulens.lsp.session.language_server import NpulensServer
from npulens.lsp.session.session import file_path, workspace_folders
from npulens.text.kinds import Kind, kind_by_name
from npulens.workspace.settings.configuration import CONFIGURATION_FILES, ConfigurationError
from npulens.workspace.settings.project_version import REQUIREMENT_FILES

logger = logging.getLogger(__name__)

_REFUSED = object()
_ANSWER_WITHIN = 10.0
"""Seconds; a client that has not sent its settings by then has none."""
_REFRESHES = {
    types.WORKSPACE_DIAGNOSTIC_REFRESH: "workspace.diagnostics.refresh_support",
    types.WORKSPACE_CODE_LENS_REFRESH: "workspace.code_lens.refresh_support",
    types.WORKSPACE_INLAY_HINT_REFRESH: "workspace.inlay_hint.refresh_support",
}
_WATCHED = (
    *(f"**/{name}" for name in (*CONFIGURATION_FILES, *REQUIREMENT_FILES)),
    "**/*.{py,pyi,cu,cuh,cpp,cc,cxx,sh,bash,slurm,sbatch,yaml,yml,json,toml,txt}",
    "**/*{D,d}ockerfile*",
    "**/*.env",
    "**/*.env.*",
    "**/.gitignore",
)
"""What findings depend on; a file that is missing here is looked at again every 30 seconds."""


class _Lifecycle:
    """What is needed from the first message to the last."""

    def __init__(self, server: NpulensServer) -> None:
        self._server = server
        self._session = server.session
        self._offered = types.ClientCapabilities()
        self._options: object = None
        self._watched_rules: frozenset[Path] = frozenset()

    def initialize(self, params: types.InitializeParams) -> None:
        session = self._session
        self._offered, self._options = params.capabilities, params.initialization_options
        session.terms = agreed_terms(params)
        uris = [folder.uri for folder in params.workspace_folders or ()]
        session.folders = list(workspace_folders(uris or [params.root_uri or ""]))
        self._server.protocol.trace = params.trace or types.TraceValue.Off
        self._server.start(logging.WARNING)
        self._take_for_all(self._options)
        # Only from now on, since there must be no requests before the answer to this one.
        self._server.refreshable = tuple(
            n for n, support in _REFRESHES.items() if self._has(support)
        )

    async def initialized(self) -> None:
        registrations = []
        if self._has("workspace.did_change_configuration.dynamic_registration"):
            method = types.WORKSPACE_DID_CHANGE_CONFIGURATION
            options = types.DidChangeConfigurationRegistrationOptions(SECTION)
            registrations.append(types.Registration("npulens-settings", method, options))
        if self._watches:
            registrations.append(_watchers("npulens-files", _WATCHED))
        if registrations and await self._is_done(registrations):
            self._server.overview.is_notified = self._watches
        await self.pull_settings()

    async def pull_settings(self) -> None:
        """Ask the client for its settings, those of each folder."""
        if not self._has("workspace.configuration"):
            return
        folders: list[Path | None] = [None, *self._session.folders]
        items = [
            types.ConfigurationItem(None if folder is None else folder.as_uri(), SECTION)
            for folder in folders
        ]
        answer = await self._request(
            types.WORKSPACE_CONFIGURATION, types.ConfigurationParams(items=items)
        )
        if isinstance(answer, Sequence) and len(answer) == len(folders):
            self._take(dict(zip(folders, answer, strict=True)))

    async def settings_changed(self, given: object) -> None:
        """Some clients send the settings along, others wait for a request."""
        if self._has("workspace.configuration"):
            await self.pull_settings()
            return
        if isinstance(given, Mapping) and SECTION in given:
            given = given[SECTION]
        self._take_for_all(given)

    async def folders_changed(self, event: types.WorkspaceFoldersChangeEvent) -> None:
        session = self._session
        removed = set(workspace_folders(folder.uri for folder in event.removed))
        added = list(workspace_folders(folder.uri for folder in event.added))
        kept = [folder for folder in session.folders if folder not in {*removed, *added}]
        session.folders = [*kept, *added]
        await self.pull_settings()
        session.look_again(session.opened.values(), projects=True)
        self._server.refresh()

    async def files_changed(self, changes: Sequence[types.FileEvent]) -> None:
        """Look again at what may depend on a file, unless that is open: it reports itself."""
        session = self._session
        paths = {path for change in changes if (path := file_path(change.uri)) is not None}
        open_paths = {opened.path for opened in session.opened.values()}
        settings = any(p.name in CONFIGURATION_FILES or _is_requirement(p) for p in paths)
        rules = not paths.isdisjoint(session.rule_files)
        if rules:
            self._server.overview.forget()
        self._server.overview.files_changed()
        created = {c.uri for c in changes if c.type is not types.FileChangeType.Changed}
        projects = any(
            kind_by_name(path.name) in (Kind.PYTHON, Kind.NATIVE)
            and (path not in open_paths or path.as_uri() in created)
            for path in paths
        )
        if settings or rules or projects:
            session.look_again(session.opened.values(), rules=rules, projects=projects)
            self._server.refresh()

    async def watch_rules(self) -> None:
        """Have rule files watched that a configuration has named since."""
        new = self._session.rule_files - self._watched_rules
        if not new or not self._watches:
            return
        self._watched_rules |= new
        names = sorted({f"**/{path.name}" for path in new})
        identity = f"npulens-rules-{len(self._watched_rules)}"
        await self._is_done([_watchers(identity, names)])

    @property
    def _watches(self) -> bool:
        return self._has("workspace.did_change_watched_files.dynamic_registration")

    def _has(self, capability: str) -> bool:
        return bool(get_capability(self._offered, capability))

    def _take_for_all(self, given: object) -> None:
        folders: list[Path | None] = [None, *self._session.folders]
        self._take(dict.fromkeys(folders, given))

    def _take(self, given: Mapping[Path | None, object]) -> None:
        """Let settings count; of a folder whose settings are wrong the last good ones do."""
        found: dict[Path | None, ClientSettings] = {}
        problems: dict[str, None] = {}
        for folder, settings in given.items():
            settings = self._options if settings is None else settings
            found[folder], problem = self._read(settings, folder)
            if problem is not None:
                problems[problem] = None
        for problem in problems:
            logger.error("%s", problem)
            self._server.say(problem)
        self._session.set_settings(found)
        self._server.set_log_level(self._session.settings_of(None).log_level)

    def _read(self, given: object, folder: Path | None) -> tuple[ClientSettings, str | None]:
        try:
            return read_client_settings(given, folder), None
        except ConfigurationError as error:
            return self._session.settings_of(folder), str(error)

    async def _is_done(self, registrations: list[types.Registration]) -> bool:
        """Register what the client shall report; whether it will."""
        params = types.RegistrationParams(registrations)
        return await self._request(types.CLIENT_REGISTER_CAPABILITY, params) is not _REFUSED

    async def _request(self, method: str, params: Any) -> object:
        """What the client answers, `_REFUSED` if it does not or cannot."""
        try:
            answer = self._server.protocol.send_request_async(method, params)
            return await asyncio.wait_for(answer, _ANSWER_WITHIN)
        except (JsonRpcException, asyncio.TimeoutError) as error:
            logger.warning("The client does not answer %s: %r", method, error)
            return _REFUSED


def _is_requirement(path: Path) -> bool:
    return any(path.match(pattern) for pattern in REQUIREMENT_FILES)


def _watchers(identity: str, patterns: Sequence[str]) -> types.Registration:
    watchers = [types.FileSystemWatcher(pattern) for pattern in patterns]
    options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
    return types.Registration(identity, types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)


def register(server: NpulensServer) -> None:
    """Begin and end sessions, and keep up with what changes around the documents."""
    lifecycle = _Lifecycle(server)
    server.watch_rules = lifecycle.watch_rules

    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        lifecycle.initialize(params)

    @server.feature(types.INITIALIZED)
    async def initialized(_params: types.InitializedParams) -> None:
        await lifecycle.initialized()

    @server.feature(types.SHUTDOWN)
    def shutdown(_params: None) -> None:
        server.session.shut_down()

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    async def did_change_configuration(params: types.DidChangeConfigurationParams) -> None:
        await lifecycle.settings_changed(params.settings)

    @server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    async def did_change_folders(params: types.DidChangeWorkspaceFoldersParams) -> None:
        await lifecycle.folders_changed(params.event)

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    async def did_change_files(params: types.DidChangeWatchedFilesParams) -> None:
        await lifecycle.files_changed(params.changes)
