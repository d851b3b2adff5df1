"""The protocol as pygls speaks it, minus its documents, plus an answer to every request."""

from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidRequest
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol

_DOCUMENT_METHODS = (
    types.TEXT_DOCUMENT_DID_OPEN,
    types.TEXT_DOCUMENT_DID_CHANGE,
    types.TEXT_DOCUMENT_DID_CLOSE,
)


class Protocol(LanguageServerProtocol):
    """pygls' protocol, which leaves documents to the server's own handlers.

    pygls' built-in handlers keep a copy of each document that ends lines where the protocol does
    not and is rebuilt at every change; they would run before ours, so they are taken out.
    """

    def __init__(self, server: LanguageServer, converter: Any) -> None:
        super().__init__(server, converter)
        for method in _DOCUMENT_METHODS:
            del self.fm.builtin_features[method]

    def structure_message(self, data: dict[str, Any]) -> Any:
        """Make an object of a message; a request that does not fit its type is answered at once."""
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            if "id" in data and "method" in data:
                self._send_response(data["id"], error=error.to_response_error())
            raise

    def handle_message(self, message: Any) -> None:
        """Act on a message; a request after `shutdown` is answered too."""
        if self._shutdown and hasattr(message, "id") and hasattr(message, "method"):
            error = JsonRpcInvalidRequest("The server is shutting down.")
            self._send_response(message.id, error=error.to_response_error())
            return
        super().handle_message(message)
