"""A small client of the language server protocol, for tests and benchmarks."""

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import npulens
from forked_processes import ForkedProcess, can_fork

Message = dict[str, Any]
Position = tuple[int, int]

_TIMEOUT = 20.0


def server_environment() -> dict[str, str]:
    """The environment of a server process: the package that is tested comes first."""
    paths = [str(Path(npulens.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


class Answer(NamedTuple):
    """All that is said of a request besides its id, or `None` for no answer at all."""

    whole: Message | None


class LspClient:
    """A session with a server process; a context manager that leaves no process behind.

    `published` holds the parameters of each `publishDiagnostics` in order; `logged`, `shown`,
    `traced` and `progress` those of other notifications. `asked` holds the requests of the server,
    to which `answers` holds what to say: a function of the parameters by method. `refused` holds
    the errors for messages that have no id. The process is forked from one that has imported the
    server, unless `is_forked` is false.
    """

    def __init__(
        self,
        command: list[str] | None = None,
        stderr: int | None = None,
        *,
        is_forked: bool = True,
    ) -> None:
        environment = server_environment()
        self.process: ForkedProcess | subprocess.Popen[bytes]
        if is_forked and command is None and stderr is None and can_fork():
            self.process = ForkedProcess(["server"], environment)
        else:
            self.process = subprocess.Popen(
                command or [sys.executable, "-m", "npulens", "server"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=environment,
            )
        self.published: list[Message] = []
        self.logged: list[Message] = []
        self.shown: list[Message] = []
        self.traced: list[Message] = []
        self.progress: list[Message] = []
        self.asked: list[Message] = []
        self.refused: list[Message] = []
        self.answers: dict[str, Callable[[Any], Any]] = {}
        self.capabilities: Message = {}
        self._responses: dict[int, Message] = {}
        self._arrived: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._requests = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> "LspClient":  # noqa: PYI034 (Self is not in Python 3.10)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None and not pipe.closed:
                try:
                    pipe.close()
                except BrokenPipeError:
                    continue

    # Messages

    def send_bytes(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message: Any) -> None:
        body = json.dumps(message).encode()
        self.send_bytes(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    def notify(self, method: str, params: Any) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def start_request(self, method: str, params: Any) -> int:
        self._requests += 1
        self.send({"jsonrpc": "2.0", "id": self._requests, "method": method, "params": params})
        return self._requests

    def response(self, request: int, timeout: float = _TIMEOUT) -> Message:
        """The whole answer to a request, with `result` or `error`."""
        self.wait(lambda: request in self._responses, timeout)
        return self._responses.pop(request)

    def request(self, method: str, params: Any) -> Any:
        answer = self.response(self.start_request(method, params))
        assert "error" not in answer, answer
        return answer["result"]

    def wait(self, condition: Callable[[], bool], timeout: float = _TIMEOUT) -> None:
        """Take in messages until `condition` holds."""
        while not condition():
            try:
                message = self._arrived.get(timeout=timeout)
            except queue.Empty:
                raise AssertionError(f"nothing heard for {timeout} s") from None
            assert message is not None, "the server closed its output"
            self._take(message)

    def _take(self, message: Message) -> None:
        if "method" not in message:
            if message["id"] is None:
                self.refused.append(message["error"])
                return
            is_ours = message["id"] in range(1, self._requests + 1)
            assert not is_ours or message["id"] not in self._responses, "answered twice"
            self._responses[message["id"]] = message
        elif message["method"] == "textDocument/publishDiagnostics":
            self.published.append(message["params"])
        elif message["method"] == "window/logMessage":
            self.logged.append(message["params"])
        elif message["method"] == "window/showMessage":
            self.shown.append(message["params"])
        elif message["method"] == "$/logTrace":
            self.traced.append(message["params"])
        elif message["method"] == "$/progress":
            self.progress.append(message["params"])
        elif "id" in message:
            self.asked.append(message)
            answer = self.answers.get(message["method"])
            said: Any = {"result": answer(message["params"]) if answer is not None else None}
            if isinstance(said["result"], Answer):
                said = said["result"].whole
            if said is not None:
                self.send({"jsonrpc": "2.0", "id": message["id"], **said})
        else:
            raise AssertionError(f"unexpected: {message}")

    def _read(self) -> None:
        assert self.process.stdout is not None
        while (header := self.process.stdout.readline()).startswith(b"Content-Length:"):
            while self.process.stdout.readline().strip():
                continue
            body = self.process.stdout.read(int(header.split(b":")[1]))
            self._arrived.put(json.loads(body))
        self._arrived.put(None if not header else {"method": f"not protocol: {header!r}"})

    def forget(self) -> None:
        """Drop what was heard and nobody asked for."""
        kept = (self.published, self.logged, self.shown, self.traced, self.progress, self.refused)
        for messages in kept:
            messages.clear()
        self._responses.clear()

    # The life of a session

    def initialize(
        self,
        encodings: list[str] | None = None,
        capabilities: Mapping[str, Any] | None = None,
        **params: Any,
    ) -> Message:
        general = {"positionEncodings": encodings} if encodings else {}
        offered = {"general": general, **(capabilities or {})}
        result: Message = self.request(
            "initialize", {"processId": None, "rootUri": None, "capabilities": offered, **params}
        )
        self.capabilities = result["capabilities"]
        self.notify("initialized", {})
        return self.capabilities

    def shut_down(self) -> int:
        """End the session as the protocol wants it; the exit code."""
        assert self.request("shutdown", None) is None
        self.notify("exit", None)
        return self.process.wait(_TIMEOUT)

    # Documents

    def open(self, uri: str, text: str, version: int = 1, language: str = "python") -> None:
        item = {"uri": uri, "languageId": language, "version": version, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": item})

    def change(self, uri: str, version: int, *changes: Message) -> None:
        self.notify(
            "textDocument/didChange",
            {"textDocument": {"uri": uri, "version": version}, "contentChanges": list(changes)},
        )

    def save(self, uri: str) -> None:
        self.notify("textDocument/didSave", {"textDocument": {"uri": uri}})

    def close(self, uri: str) -> None:
        self.notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    def diagnostics(self, uri: str, version: int | None) -> list[Message]:
        """Those that the server publishes for a version of a document."""

        def published() -> list[Message]:
            return [
                sent
                for sent in self.published
                if sent["uri"] == uri and sent.get("version") == version
            ]

        self.wait(lambda: bool(published()))
        found: list[Message] = published()[-1]["diagnostics"]
        return found

    def code_actions(self, uri: str, start: Position, end: Position, **context: Any) -> Any:
        return self.request(
            "textDocument/codeAction",
            {
                "textDocument": {"uri": uri},
                "range": range_of(start, end),
                "context": {"diagnostics": [], **context},
            },
        )


def range_of(start: Position, end: Position) -> Message:
    return {
        "start": {"line": start[0], "character": start[1]},
        "end": {"line": end[0], "character": end[1]},
    }


def replacing(start: Position, end: Position, text: str) -> Message:
    """An incremental change."""
    return {"range": range_of(start, end), "text": text}


def applied_edit(text: str, edit: Message) -> str:
    """A text after the only document change of a workspace edit, in UTF-16."""
    if "documentChanges" in edit:
        (change,) = edit["documentChanges"]
        edits = change["edits"]
    else:
        (edits,) = edit["changes"].values()
    data = text.encode("utf-16-le", "surrogatepass")
    lines = text.replace("\r\n", " \n").replace("\r", "\n").split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + 2 + len(line.encode("utf-16-le", "surrogatepass")))

    def offset(place: Message) -> int:
        return starts[place["line"]] + 2 * place["character"]

    for each in sorted(edits, key=lambda e: offset(e["range"]["start"]), reverse=True):
        start, end = offset(each["range"]["start"]), offset(each["range"]["end"])
        data = data[:start] + each["newText"].encode("utf-16-le") + data[end:]
    return data.decode("utf-16-le", "surrogatepass")
