"""How a client reaches the server: standard input and output, a socket, a WebSocket."""

import asyncio
import contextlib
import gc
import json
import os
import sys
import threading
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from npulens.lsp.connection.admission import LARGEST_FIRST_MESSAGE, Admission, Refused, is_http
from npulens.lsp.connection.message_frames import Frames
from npulens.lsp.connection.pipe import Pipe
from npulens.lsp.features import create_server
from npulens.lsp.session.language_server import NpulensServer

if TYPE_CHECKING:
    from websockets.asyncio.server import ServerConnection
    from websockets.http11 import Request, Response

_PORTION = 1 << 16
_MOST_UNREAD = 64
"""Portions of input that may wait for the loop; then the client has to."""
_REFUSED = -32002
"""What the protocol calls a server that is not initialized."""
_LOOK_AT_PARENT = 2.0
"""Seconds between two looks at whether the process that started the server is there."""


def serve_stdio() -> NoReturn:
    """Serve the client at standard input and output, and end the process when it leaves.

    The exit code is 0 if the client requested a shutdown first, else 1.
    """
    _tune_interpreter()
    server = create_server()
    output = sys.stdout.buffer
    with contextlib.redirect_stdout(sys.stderr):  # a stray print must not break the protocol
        pipe = Pipe(output.fileno())
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(_serve_stdio(server, pipe))
        pipe.finish()
        _leave(server)


def serve_tcp(host: str, port: int, admission: Admission) -> NoReturn:
    """Serve the first client that is admitted, in the same way; port 0 takes any free one.

    Raises:
        OSError: The address cannot be used.
    """
    _serve_socket(_serve_tcp, host, port, admission)


def serve_websocket(host: str, port: int, admission: Admission) -> NoReturn:
    """Serve the first client that is admitted; each message is one text without a header.

    Raises:
        ImportError: The package `websockets` is not installed.
        OSError: The address cannot be used.
    """
    import websockets.asyncio.server  # noqa: F401 (say at once that it is missing)

    _serve_socket(_serve_websocket, host, port, admission)


def _serve_socket(
    serve: Callable[[NpulensServer, str, int, Admission], Coroutine[Any, Any, None]],
    host: str,
    port: int,
    admission: Admission,
) -> NoReturn:
    _tune_interpreter()
    server = create_server()
    server.is_confined = True
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(server, host, port, admission))
    _leave(server)


def _leave(server: NpulensServer) -> NoReturn:
    """End the process; threads that still read or analyse would hold an ordinary end up."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.flush()
    os._exit(0 if server.session.was_shut_down else 1)


def _tune_interpreter() -> None:
    """Make the time of an answer steadier; `tests/benchmarks/typing_latency.py` measures it.

    At the usual thresholds, a key now and then has to wait for a walk over the syntax trees of all
    open documents, which takes longer than its analysis; there is little to collect in them.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    # Reading a message takes several turns; while an analysis runs, each would wait 5 ms for one.
    sys.setswitchinterval(0.001)


class _Writer(Protocol):
    def write(self, data: bytes) -> object: ...

    def close(self) -> object: ...


class _Session:
    """One connection: what comes in is acted upon until the client leaves."""

    def __init__(self, server: NpulensServer, writer: _Writer, headers: bool = True) -> None:
        self._server = server
        self._over = asyncio.Event()
        server.protocol.set_writer(writer, include_headers=headers)  # type: ignore[arg-type]
        self._watch = asyncio.ensure_future(self._watch_parent())

    def receive(self, body: bytes) -> None:
        """Act on a message."""
        if self._over.is_set():
            return
        try:
            self._server.protocol.receive(body)
        except BrokenPipeError:
            self.end()
        if self._server.protocol.ended:
            self.end()

    def end(self) -> None:
        """Nothing more will come."""
        self._over.set()

    async def wait(self) -> None:
        """Until the session is over."""
        await self._over.wait()
        self._watch.cancel()

    async def _watch_parent(self) -> None:
        """An editor that was killed may leave its pipes open in other processes."""
        while True:
            await asyncio.sleep(_LOOK_AT_PARENT)
            parent = self._server.process_id
            if parent is not None and parent > 0 and not _is_running(parent):
                self.end()


def _is_running(process: int) -> bool:
    if sys.platform == "win32":
        import ctypes

        synchronize, still_running = 0x00100000, 0x00000102
        kernel = ctypes.windll.kernel32
        handle = kernel.OpenProcess(synchronize, False, process)
        if not handle:
            return False
        state = kernel.WaitForSingleObject(handle, 0)
        kernel.CloseHandle(handle)
        return bool(state == still_running)
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


async def _serve_stdio(server: NpulensServer, output: Pipe) -> None:
    session = _Session(server, output)
    loop = asyncio.get_running_loop()
    frames = Frames()
    room = threading.Semaphore(_MOST_UNREAD)

    def take(data: bytes) -> None:
        room.release()
        if not data:
            session.end()
        for body in frames.feed(data):
            session.receive(body)

    def read() -> None:
        # A thread of its own costs one turn of the loop for each portion, and waits for no lock
        # of `sys.stdin` when the process ends.
        data = b"-"
        while data:
            try:
                data = os.read(0, _PORTION)
            except OSError:
                data = b""
            room.acquire()
            try:
                loop.call_soon_threadsafe(take, data)
            except RuntimeError:  # the loop is closed
                return

    threading.Thread(target=read, name="npulens-input", daemon=True).start()
    await session.wait()


async def _serve_tcp(server: NpulensServer, host: str, port: int, admission: Admission) -> None:
    over = asyncio.Event()
    taken = False

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal taken
        frames = Frames()
        with contextlib.suppress(ConnectionError):
            bodies = [] if taken else await _admitted(reader, writer, frames, admission)
        if taken or not bodies:  # somebody else may have been quicker
            writer.close()
            return
        taken = True
        session = _Session(server, writer)
        for body in bodies:
            session.receive(body)

        async def read() -> None:
            with contextlib.suppress(ConnectionError):
                while data := await reader.read(_PORTION):
                    for body in frames.feed(data):
                        session.receive(body)
            session.end()

        reading = asyncio.ensure_future(read())
        await session.wait()
        reading.cancel()
        with contextlib.suppress(ConnectionError):
            await writer.drain()
        writer.close()
        over.set()

    listening = await asyncio.start_server(serve, host, port)
    _announce(listening.sockets[0].getsockname()[1], admission)
    async with listening:
        await over.wait()


async def _admitted(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    frames: Frames,
    admission: Admission,
) -> list[bytes]:
    """The first messages of a client that gives the token; none if it is sent away."""
    received = b""
    bodies: list[bytes] = []
    while not bodies:
        data = await reader.read(_PORTION)
        received += data
        if not data or len(received) > LARGEST_FIRST_MESSAGE:
            return []
        if is_http(received):
            writer.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
            return []
        bodies += frames.feed(data)
    first = admission.first_message(bodies[0])
    if isinstance(first, Refused):
        error = {"code": _REFUSED, "message": first.reason}
        answer = json.dumps({"jsonrpc": "2.0", "id": first.request, "error": error}).encode()
        writer.write(b"Content-Length: %d\r\n\r\n%s" % (len(answer), answer))
        return []
    return [first, *bodies[1:]]


async def _serve_websocket(
    server: NpulensServer, host: str, port: int, admission: Admission
) -> None:
    from websockets.asyncio.server import ServerConnection, serve
    from websockets.exceptions import ConnectionClosed

    over = asyncio.Event()
    taken = False

    async def connected(connection: ServerConnection) -> None:
        nonlocal taken
        if taken:
            return
        taken = True
        unsent: asyncio.Queue[bytes] = asyncio.Queue()
        session = _Session(server, _Mailbox(unsent), headers=False)

        async def send() -> None:
            while True:
                await connection.send((await unsent.get()).decode())

        async def read() -> None:
            with contextlib.suppress(ConnectionClosed):
                while True:
                    session.receive(await connection.recv(decode=False))
            session.end()

        tasks = [asyncio.ensure_future(send()), asyncio.ensure_future(read())]
        await session.wait()
        for task in tasks:
            task.cancel()
        await connection.close()
        over.set()

    def admit(connection: "ServerConnection", request: "Request") -> "Response | None":
        if not admission.takes_page(request.headers.get_all("Origin")):
            return connection.respond(403, "Pages of this origin may not connect to npulens.\n")
        if not admission.takes_target(request.path):
            reason = "The address must end in /?token= and the token that the server has printed.\n"
            return connection.respond(401, reason)
        return None

    serving = serve(connected, host, port, process_request=admit, max_size=None)
    async with serving as listening:
        _announce(next(iter(listening.sockets)).getsockname()[1], admission)
        await over.wait()


class _Mailbox:
    """Messages to be sent in their order by somebody who may wait."""

    def __init__(self, unsent: "asyncio.Queue[bytes]") -> None:
        self._unsent = unsent

    def write(self, data: bytes) -> None:
        self._unsent.put_nowait(data)

    def close(self) -> None:
        """The connection is closed by whoever opened it."""


def _announce(port: int, admission: Admission) -> None:
    """Say where to connect, in case any free port was requested, and with what token."""
    sys.stderr.write(f"npulens: listening on port {port}\nnpulens: token {admission.token}\n")
    sys.stderr.flush()
