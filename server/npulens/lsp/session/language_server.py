"""The server: a connection to one client, the session on it, and which feature is where."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

from lsprotocol import types
from pygls.exceptions import (
    FeatureNotificationError,
    JsonRpcInternalError,
    JsonRpcInvalidParams,
)
from pygls.lsp.server import LanguageServer

from npulens import __version__
from npulens.lsp.connection.client_log import ClientLog
from npulens.lsp.connection.protocol import Protocol
from npulens.lsp.session.session import Session
from npulens.workspace.runs.overview import Overview

logger = logging.getLogger(__name__)

_SHOW_SHAPES = (types.WORKSPACE_INLAY_HINT_REFRESH, types.WORKSPACE_CODE_LENS_REFRESH)


class NpulensServer(LanguageServer):
    """A connection to one client and the session on it.

    `refreshable` are the refresh requests that the client understands. `is_confined` says that the
    client came over a socket: its commands run and write only what is in folders of the workspace.
    """

    protocol: Protocol

    def __init__(self, notebooks: types.NotebookDocumentSyncOptions) -> None:
        super().__init__(
            "npulens", __version__, protocol_cls=Protocol, notebook_document_sync=notebooks
        )
        self.session = Session(self)
        self.overview = Overview()
        self._log: ClientLog | None = None
        self.refreshable: tuple[str, ...] = ()
        self.is_confined = False
        self.watch_rules: Callable[[], Awaitable[None]] | None = None
        self._watching: asyncio.Future[None] | None = None

    def start(self, log_level: int) -> None:
        """The client is there: from now on, send it log records from this level on."""
        if self._log is None:
            self._log = ClientLog(self)
        self._log.set_level(log_level)

    def set_log_level(self, level: int) -> None:
        """From now on send records from this level on."""
        if self._log is not None:
            self._log.set_level(level)

    def report_server_error(self, error: Exception, source: type[Exception]) -> None:
        """Log mistakes of ours; never a pop-up, which the user can do nothing about."""
        if source is FeatureNotificationError or isinstance(error, JsonRpcInternalError):
            details = getattr(error, "data", None) or {}
            logger.error("%s\n%s", error, "".join(details.get("traceback", ())))

    def require_reach(self, path: Path) -> None:
        """Refuse to run or write a file that is out of reach for this client.

        Raises:
            JsonRpcInvalidParams: It is.
        """
        if self.is_confined and not self.session.is_in_workspace(path):
            raise JsonRpcInvalidParams(f"{path} is in no folder of the workspace.")

    # What the session sends to the client

    def publish(self, uri: str, found: list[types.Diagnostic], version: int | None) -> None:
        """Show diagnostics."""
        with contextlib.suppress(BrokenPipeError):  # the end of the client's input is near
            self.text_document_publish_diagnostics(
                types.PublishDiagnosticsParams(uri, found, version)
            )

    def say(self, message: str) -> None:
        """Tell the user of a mistake that only the user can mend."""
        with contextlib.suppress(BrokenPipeError):
            self.show_text(types.MessageType.Error, f"npulens: {message}")

    def show_text(self, kind: types.MessageType, text: str) -> None:
        """Show a message."""
        self.window_show_message(types.ShowMessageParams(kind, text))

    def refresh(self) -> None:
        """Let the client request again what has been answered before."""
        for method in self.refreshable:
            self.protocol.send_request(method, None)

    def refresh_shapes(self) -> None:
        """Let the client request again what is shown of shapes."""
        for method in _SHOW_SHAPES:
            if method in self.refreshable:
                self.protocol.send_request(method, None)

    def rule_files_named(self) -> None:
        """Have the client watch rule files that a configuration names."""
        if self.watch_rules is not None:
            self._watching = asyncio.ensure_future(self.watch_rules())

    def trace(self, message: str) -> None:
        """Tell what was done, if the client follows that."""
        if self.protocol.trace in (types.TraceValue.Messages, types.TraceValue.Verbose):
            self.log_trace(types.LogTraceParams(message))
