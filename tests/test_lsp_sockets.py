"""Servers that listen at a port, and who they serve."""

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from forked_processes import ForkedProcess, can_fork
from lsp_client import Message, server_environment
from npulens.lsp.connection.message_frames import Frames

TEXT = "import torch\ntorch.cuda.synchronize()\n"
HELLO = {"processId": None, "rootUri": None, "capabilities": {}}
TOKEN = "a-token-of-24-characters"


def codes(diagnostics: list[Message]) -> list[str]:
    return [diagnostic["code"] for diagnostic in diagnostics]


class Listening:
    """A server that listens, with what it prints: its port and its token."""

    def __init__(self, *options: str, **environment: str) -> None:
        given = server_environment() | environment
        self.process: ForkedProcess | subprocess.Popen[bytes]
        if can_fork():
            self.process = ForkedProcess(["server", *options], given, with_errors=True)
            assert self.process.stdin is not None
            self.process.stdin.close()
        else:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "npulens", "server", *options],
                stdin=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=given,
            )

    def __enter__(self) -> "Listening":  # noqa: PYI034 (Self is not in Python 3.10)
        assert self.process.stderr is not None
        port = re.search(rb"port (\d+)", self.process.stderr.readline())
        token = re.search(rb"token (\S+)", self.process.stderr.readline())
        assert port is not None and token is not None
        self.port, self.token = int(port[1]), token[1].decode()
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stderr is not None
        self.process.stderr.close()


class SocketClient:
    def __init__(self, port: int) -> None:
        self.connection = socket.create_connection(("127.0.0.1", port), 20)
        self._frames = Frames()
        self._messages: list[bytes] = []

    def __enter__(self) -> "SocketClient":  # noqa: PYI034
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def send(self, method: str, params: Any = None, number: int | None = None) -> None:
        identity = {} if number is None else {"id": number}
        message = {"jsonrpc": "2.0", **identity, "method": method, "params": params}
        body = json.dumps(message).encode()
        self.connection.sendall(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    def receive(self) -> Message:
        while not self._messages:
            data = self.connection.recv(4096)
            assert data, "the server closed the connection"
            self._messages += self._frames.feed(data)
        message: Message = json.loads(self._messages.pop(0))
        return message

    def answer(self, method: str, params: Any, number: int) -> Message:
        self.send(method, params, number)
        while (message := self.receive()).get("id") != number:
            continue
        return message

    def is_closed(self) -> bool:
        try:
            return self.connection.recv(4096) == b""
        except ConnectionError:
            return True


def hello(token: object, **params: Any) -> Message:
    return {**HELLO, "initializationOptions": {"token": token}, **params}


@pytest.fixture
def over_tcp() -> Iterator[Listening]:
    with Listening("--tcp", "0") as listening:
        yield listening


@pytest.fixture
def over_websocket() -> Iterator[Listening]:
    pytest.importorskip("websockets")
    with Listening("--websocket", "0") as listening:
        yield listening


def connect(listening: Listening, token: str | None = None, **options: Any) -> Any:
    from websockets.sync.client import connect

    given = listening.token if token is None else token
    return connect(f"ws://127.0.0.1:{listening.port}/?token={given}", **options)


def test_a_socket(over_tcp: Listening) -> None:
    with SocketClient(over_tcp.port) as over:
        answer = over.answer("initialize", hello(over_tcp.token), 1)
        assert answer["result"]["capabilities"]["hoverProvider"]
        over.send("initialized", {})
        item = {"uri": "untitled:1", "languageId": "python", "version": 3, "text": TEXT}
        over.send("textDocument/didOpen", {"textDocument": item})
        # Also: that there is a token in the settings is no mistake in them.
        assert codes(over.receive()["params"]["diagnostics"]) == ["NPU101"]
        assert over.answer("shutdown", None, 2)["result"] is None
        over.send("exit")
        assert over_tcp.process.wait(10) == 0


def test_a_socket_that_is_closed_ends_the_server(over_tcp: Listening) -> None:
    with SocketClient(over_tcp.port) as over:
        assert over.answer("initialize", hello(over_tcp.token), 1)["result"]
    assert over_tcp.process.wait(10) == 1


@pytest.mark.family(3)
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("initialize", HELLO),
        ("initialize", hello("")),
        ("initialize", hello("wrong")),
        ("initialize", hello(7)),
        ("initialize", [1]),
        ("workspace/executeCommand", {"command": "npulens.restartIndex"}),
    ],
)
def test_who_does_not_know_the_token_is_sent_away(
    over_tcp: Listening, method: str, params: Any
) -> None:
    with SocketClient(over_tcp.port) as over:
        answer = over.answer(method, params, 1)
        assert "token" in answer["error"]["message"] and "result" not in answer
        assert over_tcp.token not in json.dumps(answer)
        assert over.is_closed()
    # The seat is free for the one who does, and the process is there.
    with SocketClient(over_tcp.port) as over:
        assert over.answer("initialize", hello(over_tcp.token), 1)["result"]


def test_who_says_nothing_takes_no_seat(over_tcp: Listening) -> None:
    with SocketClient(over_tcp.port), SocketClient(over_tcp.port) as second:
        assert second.answer("initialize", hello(over_tcp.token), 1)["result"]
        with SocketClient(over_tcp.port) as third:
            assert third.is_closed()


def test_a_socket_does_not_speak_http(over_tcp: Listening) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello(over_tcp.token)}
    body = json.dumps(message).encode()
    with SocketClient(over_tcp.port) as over:
        head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
        over.connection.sendall(head % len(body) + body)
        assert over.connection.recv(4096).startswith(b"HTTP/1.1 400 ")


def test_little_is_read_of_a_stranger(over_tcp: Listening) -> None:
    with SocketClient(over_tcp.port) as over:
        over.connection.sendall(b"Content-Length: 100000000\r\n\r\n")
        with pytest.raises(ConnectionError):
            for _ in range(1000):
                over.connection.sendall(b" " * 10_000)


def test_a_token_of_the_environment() -> None:
    with Listening("--tcp", "0", NPULENS_TOKEN=TOKEN) as listening:
        assert listening.token == TOKEN
        with SocketClient(listening.port) as over:
            assert over.answer("initialize", hello(TOKEN), 1)["result"]


def test_tokens_differ(over_tcp: Listening) -> None:
    with Listening("--tcp", "0") as other:
        assert other.token != over_tcp.token and len(other.token) >= 32


def test_a_token_that_is_too_short() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "npulens", "server", "--tcp", "0"],
        env=server_environment() | {"NPULENS_TOKEN": "short", "LC_ALL": "C"},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert result.returncode == 2
    assert result.stderr == "npulens: NPULENS_TOKEN must have 16 characters or more\n"


# WebSockets


def test_a_websocket(over_websocket: Listening) -> None:
    with connect(over_websocket) as connection:
        message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
        connection.send(json.dumps(message))
        assert json.loads(connection.recv(timeout=20))["result"]["capabilities"]
        connection.send(json.dumps({"jsonrpc": "2.0", "method": "initialized", "params": {}}))
        item = {"uri": "untitled:1", "languageId": "python", "version": 3, "text": TEXT}
        opening = {"method": "textDocument/didOpen", "params": {"textDocument": item}}
        connection.send(json.dumps({"jsonrpc": "2.0", **opening}))
        published = json.loads(connection.recv(timeout=20))
        assert codes(published["params"]["diagnostics"]) == ["NPU101"]
        connection.send(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "shutdown"}))
        assert json.loads(connection.recv(timeout=20))["result"] is None
        connection.send(json.dumps({"jsonrpc": "2.0", "method": "exit"}))
        assert over_websocket.process.wait(10) == 0


@pytest.mark.family(3)
@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "http://localhost.evil.example",
        "http://evil.example:8080",
        "null",
        "http://127.0.0.1.evil.example",
        "https://localhost@evil.example",
        "file://",
    ],
)
def test_pages_from_elsewhere_are_refused(over_websocket: Listening, origin: str) -> None:
    assert refusal(over_websocket, origin=origin) == 403
    with connect(over_websocket):
        pass  # who may connect still can


@pytest.mark.parametrize(
    "origin",
    [
        "http://localhost:3000",
        "https://localhost",
        "http://127.0.0.1:1",
        "http://[::1]:65535",
        "vscode-webview://1a2b3c",
    ],
)
def test_pages_of_this_machine_may_connect(over_websocket: Listening, origin: str) -> None:
    with connect(over_websocket, origin=origin):
        pass


@pytest.mark.parametrize("token", ["", "wrong", "%00", "é"])
def test_a_websocket_needs_the_token(over_websocket: Listening, token: str) -> None:
    assert refusal(over_websocket, token, origin="http://localhost") == 401
    assert refusal(over_websocket, token) == 401


def test_further_origins() -> None:
    pytest.importorskip("websockets")
    mine = "https://ide.example"
    with Listening("--websocket", "0", "--allow-origin", mine) as listening:
        assert refusal(listening, origin="https://other.example") == 403
        assert refusal(listening, "wrong", origin=mine) == 401
        with connect(listening, origin=mine):
            pass


def refusal(listening: Listening, token: str | None = None, **options: Any) -> int:
    from websockets.exceptions import InvalidStatus

    with pytest.raises(InvalidStatus) as refused:
        connect(listening, token, **options)
    status: int = refused.value.response.status_code
    return status


# What a client over a socket may have done


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    """A folder of the workspace, with a link that leads out of it, and one beside it."""
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (inside / "a.py").write_text(TEXT)
    (outside / "b.py").write_text("open('was run', 'w')\n")
    (inside / "out").symlink_to(outside)
    (inside / "link.json").symlink_to(outside / "report.json")
    return inside, outside


def test_commands_write_in_the_workspace_only(
    over_tcp: Listening, places: tuple[Path, Path]
) -> None:
    inside, outside = places
    with SocketClient(over_tcp.port) as over:
        over.answer("initialize", hello(over_tcp.token, rootUri=inside.as_uri()), 1)
        over.send("initialized", {})
        for target in (
            outside / "report.json",
            inside / "out/report.json",
            inside / "link.json",
            Path(f"{inside}/../outside/report.json"),
        ):
            command = {"command": "npulens.writeReport", "arguments": [f"file://{target}"]}
            answer = over.answer("workspace/executeCommand", command, 2)
            assert answer["error"]["message"].endswith(" is in no folder of the workspace.")
        assert [each.name for each in outside.iterdir()] == ["b.py"]
        command = {"command": "npulens.writeReport", "arguments": [(inside / "r.json").as_uri()]}
        assert over.answer("workspace/executeCommand", command, 3)["result"]["findings"] == 1


@pytest.mark.parametrize("name", ["outside/b.py", "inside/out/b.py"])
def test_scripts_of_the_workspace_run_only(
    over_tcp: Listening, places: tuple[Path, Path], name: str
) -> None:
    inside, outside = places
    script = inside.parent / name
    with SocketClient(over_tcp.port) as over:
        over.answer("initialize", hello(over_tcp.token, rootUri=inside.as_uri()), 1)
        command = {"command": "npulens.verify", "arguments": [script.as_uri(), {"asIs": True}]}
        answer = over.answer("workspace/executeCommand", command, 2)
        assert answer["error"]["message"] == f"{script} is in no folder of the workspace."
    assert os.listdir(outside) == ["b.py"]  # noqa: PTH208
