"""Log records as messages in the editor's output panel."""

import asyncio
import logging

from lsprotocol import types
from pygls.lsp.server import LanguageServer


class ClientLog(logging.Handler):
    """Sends log records from any thread to the client as `window/logMessage`.

    Must be made in the event loop of the server.
    """

    def __init__(self, server: LanguageServer) -> None:
        super().__init__(logging.WARNING)
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._sending = False

    def emit(self, record: logging.LogRecord) -> None:
        """Send a record; one that says that sending failed is dropped."""
        if self._sending:
            return
        try:
            self._loop.call_soon_threadsafe(self._send, record.levelno, self.format(record))
        except RuntimeError:  # the loop is closed: nobody is there to read it
            return

    def _send(self, level: int, text: str) -> None:
        kind = types.MessageType.Error if level >= logging.ERROR else types.MessageType.Warning
        self._sending = True
        try:
            self._server.window_log_message(types.LogMessageParams(kind, text))
        except OSError:  # the client is gone; the end of its input will end the server
            return
        finally:
            self._sending = False
