"""Processes of the command that start in milliseconds: forked from one that has imported it.

    python tests/forked_processes.py SOCKET

Each is a process of its own, with its own folder, environment and standard streams, as that of
`npulens` is. The first one of a test run starts the process that they are forked from, which ends
with the run. Where a system cannot fork, ordinary processes take their place.
"""

import atexit
import contextlib
import importlib
import json
import os
import pkgutil
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import IO, Any, NoReturn

_LARGEST = 1 << 20
_LOOK_AGAIN = 0.005
"""Seconds between two looks at whether a process has ended."""


class ForkedProcess:
    """A process of the command; what it can be asked is called as in `subprocess.Popen`.

    Its errors go where those of the tests go, unless they are wanted.
    """

    def __init__(
        self, arguments: Sequence[str], environment: Mapping[str, str], *, with_errors: bool = False
    ) -> None:
        read_in, write_in = os.pipe()
        read_out, write_out = os.pipe()
        read_error, write_error = os.pipe() if with_errors else (-1, sys.__stderr__.fileno())
        self.stdin: IO[bytes] | None = os.fdopen(write_in, "wb")
        self.stdout: IO[bytes] | None = os.fdopen(read_out, "rb")
        self.stderr: IO[bytes] | None = os.fdopen(read_error, "rb") if with_errors else None
        self.returncode: int | None = None
        request = {
            "arguments": list(arguments),
            "folder": str(Path.cwd()),
            "environment": dict(environment),
        }
        self.pid: int = _ask(request, [read_in, write_out, write_error])
        for stream in (read_in, write_out, *([write_error] if with_errors else [])):
            os.close(stream)

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = _ask({"ended": self.pid})
        return self.returncode

    def wait(self, timeout: float = 60) -> int:
        end = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired("npulens", timeout)
            time.sleep(_LOOK_AGAIN)
        return code

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, 9)


def run_forked(
    arguments: Sequence[str], stdin: bytes, environment: Mapping[str, str], timeout: float
) -> subprocess.CompletedProcess[bytes]:
    """Run the command to its end, as `subprocess.run` does."""
    process = ForkedProcess(arguments, environment, with_errors=True)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    with ThreadPoolExecutor(2) as readers:
        streams = [readers.submit(stream.read) for stream in (process.stdout, process.stderr)]
        try:
            with contextlib.suppress(BrokenPipeError), process.stdin:
                process.stdin.write(stdin)
            code = process.wait(timeout)
        finally:
            process.kill()
        output, errors = (stream.result() for stream in streams)
    process.stdout.close()
    process.stderr.close()
    return subprocess.CompletedProcess(list(arguments), code, output, errors)


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
    """Fork a process for each request, until the connection is closed."""
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
                _become_command(request, streams)
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


def _become_command(request: dict[str, Any], streams: list[int]) -> NoReturn:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
    sys.argv = ["npulens", *request["arguments"]]
    from npulens.cli.main import main

    main()
    raise SystemExit(0)


def _import_all() -> None:
    """What commands and servers import in the course of their lives, and the rules."""
    for package in ("npulens.cli", "npulens.lsp", "npulens.report", "npulens.workspace"):
        path = importlib.import_module(package).__path__
        for module in pkgutil.walk_packages(path, f"{package}."):
            importlib.import_module(module.name)
    importlib.import_module("npulens.catalog.loader").load_catalogue()


if __name__ == "__main__":
    sys.path.pop(0)  # the tests are no part of what is tested
    _import_all()
    _serve(socket.socket(fileno=int(sys.argv[1])))
