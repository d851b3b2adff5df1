"""Work that takes a while: the client sees how far it is, and can stop it."""

import asyncio
from types import TracebackType
from uuid import uuid4

from lsprotocol import types
from pygls.capabilities import get_capability
from pygls.exceptions import JsonRpcException, JsonRpcRequestCancelled

from npulens.lsp.session.language_server import NpulensServer

_ANSWER_WITHIN = 10.0
"""Seconds; for a client that has not made a place for it by then there is none."""


class Progress:
    """Shown from `begin` to `end`; as an asynchronous context manager, around the work.

    The token is the one that came with the request or, if the client wants that, one of ours.
    """

    def __init__(
        self, server: NpulensServer, title: str, token: types.ProgressToken | None
    ) -> None:
        self._server = server
        self._title = title
        self._token = token
        self._is_shown = False

    async def begin(self) -> None:
        """Show it, if it is not shown already."""
        if self._is_shown:
            return
        self._is_shown = True
        progress = self._server.work_done_progress
        offered = self._server.client_capabilities
        if self._token is None and get_capability(offered, "window.work_done_progress"):
            token = str(uuid4())
            try:
                await asyncio.wait_for(progress.create_async(token), _ANSWER_WITHIN)
                self._token = token
            except (JsonRpcException, asyncio.TimeoutError):  # the client shows none after all
                self._token = None
        if self._token is not None:
            begin = types.WorkDoneProgressBegin(self._title, cancellable=True, percentage=0)
            progress.begin(self._token, begin)

    def end(self) -> None:
        """Show it no more."""
        if self._is_shown and self._token is not None:
            self._server.work_done_progress.end(self._token, types.WorkDoneProgressEnd())
            self._server.work_done_progress.tokens.pop(self._token, None)
        self._is_shown = False

    async def __aenter__(self) -> "Progress":  # noqa: PYI034 (Self is not in Python 3.10)
        await self.begin()
        return self

    @property
    def is_cancelled(self) -> bool:
        """Whether the user has stopped it."""
        tokens = self._server.work_done_progress.tokens
        future = None if self._token is None else tokens.get(self._token)
        return future is not None and future.cancelled()

    def go_on(self, message: str, percentage: int | None = None) -> None:
        """Tell how far it is.

        Raises:
            JsonRpcRequestCancelled: The user has stopped it.
        """
        if self.is_cancelled:
            raise JsonRpcRequestCancelled("Cancelled by the user.")
        if self._token is not None:
            report = types.WorkDoneProgressReport(message=message, percentage=percentage)
            self._server.work_done_progress.report(self._token, report)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()
