"""The server: which message goes where."""

import contextlib
import gc
import logging
import sys
from typing import NoReturn

from lsprotocol import types
from pygls.exceptions import FeatureNotificationError
from pygls.lsp.server import LanguageServer

from npulens import __version__
from npulens.lsp.client_log import ClientLog
from npulens.lsp.protocol import Protocol
from npulens.lsp.session import QUICK_FIX, REWRITE, Session, agreed_terms, workspace_folders

logger = logging.getLogger(__name__)


class NpulensServer(LanguageServer):
    """A connection to one client and the session on it."""

    def __init__(self) -> None:
        super().__init__("npulens", __version__, protocol_cls=Protocol)
        self.session = Session(self._publish)
        self._log: ClientLog | None = None

    def start_log(self) -> None:
        """From now on, send log records to the client."""
        if self._log is None:
            self._log = ClientLog(self)
            for name in ("npulens", "pygls", "asyncio"):
                logging.getLogger(name).addHandler(self._log)
            logging.getLogger("pygls").setLevel(logging.ERROR)  # its warnings are routine

    def report_server_error(self, error: Exception, source: type[Exception]) -> None:
        """Log what pygls itself does not; never a pop-up, which the user can do nothing about."""
        if source is FeatureNotificationError:
            details = getattr(error, "data", None) or {}
            logger.error("%s\n%s", error, "".join(details.get("traceback", ())))

    def _publish(self, params: types.PublishDiagnosticsParams) -> None:
        with contextlib.suppress(BrokenPipeError):  # the end of the client's input is near
            self.text_document_publish_diagnostics(params)


def create_server() -> NpulensServer:
    """A server that is not connected yet.

    The handlers of documents are coroutines, which pygls starts in the order of the messages.
    """
    server = NpulensServer()
    session = server.session

    @server.feature(types.INITIALIZE)
    def initialize(params: types.InitializeParams) -> None:
        session.terms = agreed_terms(params)
        session.folders = workspace_folders(params)
        server.start_log()

    @server.feature(types.SHUTDOWN)
    def shutdown(_params: None) -> None:
        session.shut_down()

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def did_open(params: types.DidOpenTextDocumentParams) -> None:
        session.open(params.text_document)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def did_change(params: types.DidChangeTextDocumentParams) -> None:
        session.change(params)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def did_save(params: types.DidSaveTextDocumentParams) -> None:
        session.save(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    async def did_close(params: types.DidCloseTextDocumentParams) -> None:
        session.close(params.text_document.uri)

    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION,
        types.CodeActionOptions(code_action_kinds=[QUICK_FIX, REWRITE]),
    )
    async def code_action(params: types.CodeActionParams) -> list[types.CodeAction] | None:
        return await session.code_actions(params)

    return server


def serve_stdio() -> NoReturn:
    """Serve the client at standard input and output, and end the process when it leaves.

    The exit code is 0 if the client asked for a shutdown first, else 1.
    """
    _tune_interpreter()
    server = create_server()
    protocol_output = sys.stdout.buffer
    with contextlib.redirect_stdout(sys.stderr):  # a stray print must not break the protocol
        server.start_io(sys.stdin.buffer, protocol_output)
    sys.exit(0 if server.session.was_shut_down else 1)


def _tune_interpreter() -> None:
    """Make the time of an answer steadier; `tests/benchmarks/typing_latency.py` measures it.

    At the usual thresholds, a key now and then has to wait for a walk over the syntax trees of all
    open documents, which takes longer than its analysis; there is little to collect in them.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    # Reading a message takes several turns; while an analysis runs, each would wait 5 ms for one.
    sys.setswitchinterval(0.001)
