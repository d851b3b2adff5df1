"""The protocol as pygls speaks it, minus its documents, plus an answer to every request."""

import json
import logging
from collections.abc import Generator
from concurrent.futures import Future
from typing import Any

from lsprotocol import types
from pygls.exceptions import (
    JsonRpcException,
    JsonRpcInvalidParams,
    JsonRpcInvalidRequest,
    JsonRpcParseError,
    JsonRpcServerNotInitialized,
)
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, lsp_method

logger = logging.getLogger(__name__)

_DOCUMENT_METHODS = (
    types.TEXT_DOCUMENT_DID_OPEN,
    types.TEXT_DOCUMENT_DID_CHANGE,
    types.TEXT_DOCUMENT_DID_CLOSE,
    types.NOTEBOOK_DOCUMENT_DID_OPEN,
    types.NOTEBOOK_DOCUMENT_DID_CHANGE,
    types.NOTEBOOK_DOCUMENT_DID_CLOSE,
    types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS,
)


class Protocol(LanguageServerProtocol):
    """pygls' protocol, which leaves documents to the server's own handlers.

    pygls' built-in handlers keep a copy of each document that ends lines where the protocol does
    not and is rebuilt at every change; they would run before ours, so they are taken out.
    """

    def __init__(self, server: LanguageServer, converter: Any) -> None:
        super().__init__(server, converter)
        self._is_initialized = False
        self.ended = False
        for method in _DOCUMENT_METHODS:
            del self.fm.builtin_features[method]

    def receive(self, body: bytes) -> None:
        """Act on one message as it came in; whatever is wrong with it is answered or logged."""
        try:
            data = json.loads(body)
        except (ValueError, RecursionError):
            self._refuse(None, JsonRpcParseError("The message is not JSON."))
            return
        request = _request_id(data)
        try:
            if not isinstance(data, dict) or data.get("jsonrpc") != self.VERSION:
                raise JsonRpcInvalidRequest('A message is an object with "jsonrpc": "2.0".')
            if "method" in data and not isinstance(data["method"], str):
                raise JsonRpcInvalidRequest("A method has a name.")
            if "id" in data and "method" in data and request is None:
                raise JsonRpcInvalidRequest("An id is a text or a whole number.")
            if "method" not in data and request is None:
                raise JsonRpcInvalidRequest("A message has a method, or the id of a request.")
            self._check_state(data.get("method"), is_request="id" in data)
            self.handle_message(self.structure_message(data))
        except _NotNowError:
            return
        except JsonRpcException as error:
            if _is_answer(data):
                self._give_up(request, error)
            elif not isinstance(data, dict) or "method" not in data or "id" in data:
                self._refuse(request, error)
            else:
                logger.warning("A notification was dropped: %s", str(data["method"])[:100])
        except BrokenPipeError:
            raise
        except Exception:  # of pygls, over what nobody has thought of
            logger.exception("A message could not be handled.")

    def _check_state(self, method: str | None, *, is_request: bool) -> None:
        """Refuse requests that come too early or too late; such notifications are dropped."""
        if method is None or method == types.EXIT:
            return
        if method == types.INITIALIZE and not self._is_initialized and is_request:
            self._is_initialized = True
        elif not self._is_initialized:
            if not is_request:
                raise _NotNowError
            raise JsonRpcServerNotInitialized("The first request is `initialize`.")
        elif self._shutdown or method == types.INITIALIZE:
            if not is_request:
                raise _NotNowError
            state = "shutting down" if self._shutdown else "initialized already"
            raise JsonRpcInvalidRequest(f"The server is {state}.")

    def _refuse(self, request: str | int | None, error: JsonRpcException) -> None:
        """Answer with an error; the id is null where the message has none."""
        response = error.to_response_error()
        self._send_data(
            {
                "jsonrpc": self.VERSION,
                "id": request,
                "error": {"code": response.code, "message": response.message},
            }
        )

    def _give_up(self, request: str | int | None, error: JsonRpcException) -> None:
        """Whoever waits for an answer that came in segments has to know that there is none."""
        logger.warning("An answer of the client means nothing.")
        # Under the ids of the client's own requests, pygls keeps the tasks that answer them.
        waiting = None if request is None else self._request_futures.get(request)
        if request is not None and isinstance(waiting, Future):
            del self._request_futures[request]
            if not waiting.done():
                waiting.set_exception(error)

    @lsp_method(types.EXIT)
    def lsp_exit(self, *_params: object) -> Generator[Any, Any, None]:
        """The transport ends the session; pygls would end the process from within a callback."""
        self.ended = True
        yield from ()

    @lsp_method(types.WORKSPACE_EXECUTE_COMMAND)
    async def lsp_workspace__execute_command(  # type: ignore[override]
        self, params: types.ExecuteCommandParams
    ) -> Any:
        """Pass on all parameters: progress is reported under a token that is among them.

        A coroutine, unlike pygls' generator, ends the command when the client cancels it.

        Raises:
            JsonRpcInvalidParams: There is no such command.
        """
        handler = self.fm.commands.get(params.command)
        if handler is None:
            raise JsonRpcInvalidParams(f"There is no command {params.command!r}.")
        return await handler(params)

    def structure_message(self, data: dict[str, Any]) -> Any:
        """Make an object of a message; one without parameters may come with `{}`."""
        if data.get("method", "") in _WITHOUT_PARAMETERS:
            data = {**data, "params": None}
        return super().structure_message(data)


_WITHOUT_PARAMETERS = frozenset({types.SHUTDOWN, types.EXIT})


class _NotNowError(Exception):
    """A notification that means nothing in this state of the session."""


def _is_answer(data: object) -> bool:
    """Whether a message is for a request of ours."""
    return isinstance(data, dict) and "method" not in data and _request_id(data) is not None


def _request_id(data: object) -> str | int | None:
    """The id of a message, if it is one that can be answered to."""
    found = data.get("id") if isinstance(data, dict) else None
    return found if isinstance(found, (str, int)) and not isinstance(found, bool) else None
