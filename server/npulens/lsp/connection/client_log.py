"""Log records as messages in the editor's output panel, and the trace of what is done."""

import asyncio
import logging

from lsprotocol import types
from pygls.lsp.server import LanguageServer

_LOGGERS = ("npulens", "pygls", "asyncio")


class ClientLog(logging.Handler):
    """Sends log records of any thread to the client; it is made in the server's event loop."""

    def __init__(self, server: LanguageServer) -> None:
        super().__init__(logging.WARNING)
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._sending = False
        for name in _LOGGERS:
            logging.getLogger(name).addHandler(self)
        # What it has to say of wrong messages is a traceback of itself; ours is one line.
        logging.getLogger("pygls").setLevel(logging.CRITICAL)

    def set_level(self, level: int) -> None:
        """From now on send what is at least so important."""
        self.setLevel(level)
        logging.getLogger("npulens").setLevel(level)

    def emit(self, record: logging.LogRecord) -> None:
        """Send a record; one that says that sending failed is dropped."""
        if self._sending:
            return
        try:
            self._loop.call_soon_threadsafe(self._send, record.levelno, self.format(record))
        except RuntimeError:  # the loop is closed: nobody is there to read it
            return

    def _send(self, level: int, text: str) -> None:
        self._sending = True
        try:
            self._server.window_log_message(types.LogMessageParams(_kind(level), text))
        except OSError:  # the client is gone; the end of its input will end the server
            return
        finally:
            self._sending = False


def _kind(level: int) -> types.MessageType:
    if level >= logging.ERROR:
        return types.MessageType.Error
    if level >= logging.WARNING:
        return types.MessageType.Warning
    return types.MessageType.Info if level >= logging.INFO else types.MessageType.Log
