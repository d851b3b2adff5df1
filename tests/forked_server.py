"""Server processes that start in milliseconds: forked from one that has imported the server.

    python tests/forked_server.py SOCKET

Each is a process of its own, with its own folder, environment and standard streams, as
`npulens server` is. The first one of a test run starts the process that they are forked from, which
ends with the run. Where a system cannot fork, ordinary processes take their place.
"""

import atexit
import importlib
import json
import os
import pkgutil
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import IO, Any, NoReturn

_LARGEST = 1 << 20
_LOOK_AGAIN = 0.005
"""Seconds between two looks at whether a process has ended."""


class ForkedServer:
    """A server process; what it can be asked is called as in `subprocess.Popen`."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        read_in, write_in = os.pipe()
        read_out, write_out = os.pipe()
        self.stdin: IO[bytes] | None = os.fdopen(write_in, "wb")
        self.stdout: IO[bytes] | None = os.fdopen(read_out, "rb")
        self.returncode: int | None = None
        request = {"folder": str(Path.cwd()), "environment": dict(environment)}
        self.pid: int = _ask(request, [read_in, write_out, sys.__stderr__.fileno()])
        os.close(read_in)
        os.close(write_out)

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = _ask({"ended": self.pid})
        return self.returncode

    def wait(self, timeout: float = 60) -> int:
        end = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired("npulens server", timeout)
            time.sleep(_LOOK_AGAIN)
        return code

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, 9)


def can_fork() -> bool:
    return hasattr(os, "fork") and hasattr(socket, "send_fds")


def _ask(request: dict[str, Any], streams: list[int] | None = None) -> Any:
    connection = _origin(os.getpid())
    socket.send_fds(connection, [json.dumps(request).encode()], streams or [])
    return json.loads(connection.recv(_LARGEST))


@cache
def _origin(process: int) -> socket.socket:
    """The connection to the process that servers are forked from, one for each test process."""
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with there:
        subprocess.Popen(
            [sys.executable, __file__, str(there.fileno())],
            pass_fds=[there.fileno()],
            stdin=subprocess.DEVNULL,
        )
    atexit.register(here.close)
    return here


def _serve(connection: socket.socket) -> None:
    """Fork a server for each request, until the connection is closed."""
    codes: dict[int, int] = {}
    while True:
        data, streams, _, _ = socket.recv_fds(connection, _LARGEST, 3)
        if not data:
            return
        request = json.loads(data)
        if "ended" in request:
            answer = _code(request["ended"], codes)
        else:
            answer = os.fork()
            if answer == 0:
                connection.close()
                _become_server(request, streams)
            for stream in streams:
                os.close(stream)
        connection.send(json.dumps(answer).encode())


def _code(process: int, codes: dict[int, int]) -> int | None:
    """The exit code of a process, if it has ended."""
    if process not in codes:
        found, status = os.waitpid(process, os.WNOHANG)
        if found == 0:
            return None
        codes[process] = os.waitstatus_to_exitcode(status)
    return codes[process]


def _become_server(request: dict[str, Any], streams: list[int]) -> NoReturn:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
    sys.argv = ["npulens", "server"]
    from npulens.cli.main import main

    main()
    os._exit(0)


def _import_server() -> None:
    """What a server imports in the course of its life."""
    lsp = importlib.import_module("npulens.lsp")
    for module in pkgutil.walk_packages(lsp.__path__, "npulens.lsp."):
        importlib.import_module(module.name)
    importlib.import_module("npulens.cli.server")


if __name__ == "__main__":
    sys.path.pop(0)  # the tests are no part of what is tested
    _import_server()
    _serve(socket.socket(fileno=int(sys.argv[1])))
