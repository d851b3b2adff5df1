"""Storms of edits, random documents and random messages: the server keeps its view and its life."""

import asyncio
import importlib
import json
import os
import pkgutil
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.internal import conjecture
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from lsp_client import LspClient, Message, Position, range_of, replacing
from npulens.catalog.loader import load_catalogue
from npulens.lsp.features import create_server
from npulens.text.document import Document, PositionEncoding
from npulens.text.kinds import Kind
from npulens.workspace.runs.run import Checker
from npulens.workspace.settings.configuration import Configuration

pytestmark = pytest.mark.endurance

ROOT = Path(__file__).resolve().parents[1]
CALL = "torch.cuda.synchronize"
UNITS: dict[str, Callable[[str], int]] = {
    "utf-8": lambda text: len(text.encode("utf-8", "surrogatepass")),
    "utf-16": lambda text: len(text.encode("utf-16-le", "surrogatepass")) // 2,
    "utf-32": len,
}
CATALOGUE = load_catalogue()

# pytest rewrites what hypothesis imports late, in this thread, while the server parses in another:
# CPython before 3.11.8 cannot do both at once.
for module in pkgutil.iter_modules(conjecture.__path__):
    importlib.import_module(f"{conjecture.__name__}.{module.name}")


def place(text: str, offset: int, encoding: str) -> Position:
    """An offset as line and column, worked out in another way than the server does."""
    lines = re.split(r"\r\n|\r|\n", text[:offset])
    if text[:offset].endswith("\r") and text[offset:].startswith("\n"):
        lines.pop()
    return len(lines) - 1, UNITS[encoding](lines[-1])


# Storms of edits


def python_of_rules(families: set[str]) -> str:
    """A long module of many different findings: the examples of the rules, one after the other."""
    rules = [rule for rule in CATALOGUE.rules.values() if rule.family in families]
    examples = [e.before for rule in rules for e in rule.examples if rule.file.endswith(".py")]
    return "\n\n".join(examples[:40])


SCRIPT = (
    """\
#!/bin/bash
#SBATCH --gres=gpu:8
export CUDA_VISIBLE_DEVICES=0,1,2,3
export NCCL_DEBUG=INFO  # 调试 😀
for device in 0 1 2 3; do
    torchrun --nproc_per_node 8 train.py --device cuda:$device --backend nccl &
done
python - <<EOF
import torch
torch.cuda.synchronize()
EOF
"""
    * 6
)
SETTINGS = (
    """\
model:
  name: 模型
  device: cuda
  precision: "16-mixed"
trainer: {accelerator: gpu, devices: [0, 1], strategy: ddp}
distributed:
  backend: nccl   # 😀
"""
    * 8
)
MODEL = """\
# 模型 😀
import math
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel


class RMSNorm(nn.Module):
    def __init__(self, size, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x):
        variance = x.pow(2).mean(-1, keepdim=True)
        return self.weight * (x * torch.rsqrt(variance + self.eps))


class MLP(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.gate = nn.Linear(size, 4 * size)
        self.up = nn.Linear(size, 4 * size)
        self.down = nn.Linear(4 * size, size)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


def rotate_half(x):
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


def rotary(q, k, cos, sin):
    return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin


def attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return F.softmax(scores + mask, dim=-1) @ v


def main():
    dist.init_process_group("nccl")
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    model = DistributedDataParallel(MLP(64).cuda(), device_ids=[rank])
    scaler = torch.cuda.amp.GradScaler()
    with torch.autocast("cuda", dtype=torch.float16):
        loss = model(torch.ones(2, 64, device="cuda")).sum()
    scaler.scale(loss).backward()


if __name__ == "__main__":
    main()
""".replace("\n", "\r\n")
FILES = {
    "train.py": (ROOT / "examples" / "train_gpu.py").read_text(encoding="utf-8"),
    "device.py": python_of_rules({"device", "precision"}),
    "model.py": MODEL,
    "run.sh": SCRIPT,
    "settings.yaml": SETTINGS,
}
PIECES = [
    *("\n", "\r\n", "    ", "\t", " ", "#", "(", ")", "[", "]", "{", "}", ":", ",", "=", ".", "'"),
    *(
        '"""',
        "'''",
        "\\",
        "\\\n",
        "x",
        "é",
        "中文",
        "😀",
        "👩‍🚀",
        "e\u0301",
        "\u2028",
        "\x0c",
        "\x85",
    ),
    *("cuda", "npu", "nccl", ".cuda()", "\nimport torch\n", f"\n{CALL}()\n", f"\n    {CALL}()\n"),
    *('device = "cuda"\n', "if torch_npu is None:\n", "def f(x):\n    return x.cuda()\n"),
    *("# npulens: ignore", "# npulens: ignore-file[NPU101]\n", "import torch_npu\n", "class A:\n"),
    *("from torch.cuda import amp as torch\n", "else:\n", "\n\n", "torch", "torch = 1\n"),
]


class Storm:
    """One document in an editor in which somebody types, deletes, undoes and uses many cursors."""

    def __init__(self, client: LspClient, name: str, encoding: str, seed: str) -> None:
        self.client = client
        self.uri = f"file:///nowhere/{name}"
        self.encoding = encoding
        self.random = random.Random(seed)
        self.text = FILES[name]
        self.version = 1
        self.history: list[str] = []
        client.open(self.uri, self.text)

    def edit(self) -> int:
        """Send one change; how many edits it has."""
        self.version += 1
        kind = self.random.random()
        if kind < 0.15 and self.history:
            return self._undo()
        self.history = [*self.history[-20:], self.text]
        cursors = self.random.randrange(2, 5) if kind < 0.3 else 1
        changes = [self._change() for _ in range(cursors)]
        self.client.change(self.uri, self.version, *changes)
        return cursors

    def _change(self) -> Message:
        start = self.random.randrange(len(self.text) + 1)
        end = min(len(self.text), start + self.random.choice([0, 0, 0, 0, 1, 2, 10, 200]))
        new = "".join(self.random.choices(PIECES, k=self.random.choice([0, 1, 1, 2, 3])))
        return self._replace(start, end, new)

    def _replace(self, start: int, end: int, new: str) -> Message:
        # Between the halves of a CRLF there is no place in the protocol.
        start -= self.text[start - 1 : start + 1] == "\r\n"
        end += self.text[end - 1 : end + 1] == "\r\n"
        change = replacing(
            place(self.text, start, self.encoding), place(self.text, end, self.encoding), new
        )
        self.text = self.text[:start] + new + self.text[end:]
        return change

    def _undo(self) -> int:
        before = self.history.pop()
        if self.random.random() < 0.2:
            self.text = before
            self.client.change(self.uri, self.version, {"text": before})
            return 1
        start = same_start(before, self.text)
        same = same_start(before[start:][::-1], self.text[start:][::-1])
        changed = self._replace(start, len(self.text) - same, before[start : len(before) - same])
        if self.text == before:
            self.client.change(self.uri, self.version, changed)
        else:  # a CRLF was cut; then all of it is sent
            self.text = before
            self.client.change(self.uri, self.version, {"text": before})
        return 1

    def check(self) -> None:
        """Whether the server says what a check of the same text says."""
        found = self.client.diagnostics(self.uri, self.version)
        assert [shown(each) for each in found] == checked(self.uri, self.text, self.encoding)
        self.client.published.clear()


def same_start(one: str, other: str) -> int:
    """How many characters two texts have in common at their start."""
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def shown(found: Message) -> tuple[str, str, Position, Position]:
    ends = (found["range"][end] for end in ("start", "end"))
    start, end = ((each["line"], each["character"]) for each in ends)
    return found["code"], found["message"], start, end


def checked(uri: str, text: str, encoding: str) -> list[tuple[str, str, Position, Position]]:
    path = uri.removeprefix("file://")
    report = Checker(CATALOGUE, Configuration()).check_bytes(path, text.encode())
    if report.document is None:
        return []
    places = report.document
    unit = PositionEncoding(encoding)
    return [
        (
            finding.rule.code,
            finding.message("en"),
            tuple(places.position_at(finding.span.start, unit)),
            tuple(places.position_at(finding.span.end, unit)),
        )
        for finding in report.findings
    ]


@pytest.mark.parametrize("encoding", list(UNITS))
def test_after_each_burst_diagnostics_are_those_of_a_check(encoding: str) -> None:
    """2,000 edits in all, in three encodings and five files."""
    with LspClient() as client:
        client.initialize([encoding])
        for name in FILES:
            storm = Storm(client, name, encoding, f"{name} {encoding}")
            storm.check()
            edits = 0
            while edits < 134:
                edits += sum(storm.edit() for _ in range(20))
                storm.check()
            client.close(storm.uri)
        assert client.shut_down() == 0


# Documents, by a model


class InProcess:
    """A server without a process, for thousands of messages."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.sent: list[Message] = []
        self.server = create_server()
        self.server.protocol.set_writer(self)  # type: ignore[arg-type]

    def write(self, data: bytes) -> None:
        self.sent.append(json.loads(data.partition(b"\r\n\r\n")[2]))

    def close(self) -> None:
        """Nothing to close."""

    def receive(self, message: Message) -> None:
        async def act() -> None:
            self.server.protocol.receive(json.dumps({"jsonrpc": "2.0", **message}).encode())
            await asyncio.sleep(0)

        self.loop.run_until_complete(act())

    def text(self, uri: str) -> str | None:
        opened = self.server.session.opened.get(uri)
        return None if opened is None else opened.view.document.text


_TEXTS = st.text(
    st.sampled_from([*"ab \t()#'\"", "\n", "\r", "\x0c", "\x85", "\u2028", "é", "中", "😀"]),
    max_size=12,
)
_PLACES = st.tuples(st.integers(0, 6), st.integers(0, 9))
_URIS = ("file:///nowhere/a.py", "untitled:b", "file:///nowhere/with%20space.py", "git:/x.py?ref")


class Synchronisation(RuleBasedStateMachine):
    """Documents are opened, changed and closed; the model keeps them as units of the encoding."""

    @initialize(encoding=st.sampled_from(list(UNITS)))
    def connect(self, encoding: str) -> None:
        self.encoding = encoding
        self.client = InProcess()
        capabilities = {"general": {"positionEncodings": [encoding]}}
        params = {"processId": None, "rootUri": None, "capabilities": capabilities}
        self.client.receive({"id": 1, "method": "initialize", "params": params})
        self.client.receive({"method": "initialized", "params": {}})
        self.model: dict[str, str] = {}
        self.version = 0

    @rule(uri=st.sampled_from(_URIS), text=_TEXTS)
    def open(self, uri: str, text: str) -> None:
        self.version += 1
        item = {"uri": uri, "languageId": "python", "version": self.version, "text": text}
        self.client.receive({"method": "textDocument/didOpen", "params": {"textDocument": item}})
        self.model[uri] = text

    @precondition(lambda self: bool(self.model))
    @rule(
        data=st.data(),
        edits=st.lists(st.tuples(st.none() | st.tuples(_PLACES, _PLACES), _TEXTS), max_size=3),
        step=st.sampled_from([1, 1, 1, 0, -5]),
    )
    def change(
        self,
        data: st.DataObject,
        edits: list[tuple[tuple[Position, Position] | None, str]],
        step: int,
    ) -> None:
        uri = data.draw(st.sampled_from(sorted(self.model)))
        self.version += step
        text = self.model[uri]
        changes: list[Message] = []
        for span, new in edits:
            if span is None:
                changes.append({"text": new})
                text = new
                continue
            changes.append({"range": range_of(*span), "text": new})
            start, end = (self.offset(text, each) for each in span)
            text = text[:start] + new + text[max(start, end) :]
        document = {"uri": uri, "version": self.version}
        params = {"textDocument": document, "contentChanges": changes}
        self.client.receive({"method": "textDocument/didChange", "params": params})
        self.model[uri] = text

    @rule(uri=st.sampled_from(_URIS))
    def close(self, uri: str) -> None:
        params = {"textDocument": {"uri": uri}}
        self.client.receive({"method": "textDocument/didClose", "params": params})
        self.model.pop(uri, None)

    def offset(self, text: str, position: Position) -> int:
        """What the protocol says of any position: a column beyond a line is its end."""
        line, column = position
        starts = [0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", text))]
        if line >= len(starts):
            return len(text)
        end = starts[line + 1] if line + 1 < len(starts) else len(text)
        content = text[starts[line] : end].rstrip("\r\n")
        taken = 0
        for character in content:
            column -= UNITS[self.encoding](character)
            if column < 0:
                break
            taken += 1
        return starts[line] + taken

    def teardown(self) -> None:
        if not hasattr(self, "client"):
            return
        for uri in _URIS:
            assert self.client.text(uri) == self.model.get(uri)
        self.client.server.session.shut_down()
        self.client.loop.close()


Synchronisation.TestCase.settings = settings(
    max_examples=40,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestSynchronisation = Synchronisation.TestCase


# Random messages

METHODS = [
    *("initialize", "initialized", "shutdown", "$/cancelRequest", "$/setTrace", "$/progress"),
    *(f"textDocument/{name}" for name in ("didOpen", "didChange", "didSave", "didClose")),
    *(f"textDocument/{name}" for name in ("codeAction", "hover", "completion", "codeLens")),
    *(f"textDocument/{name}" for name in ("diagnostic", "documentLink", "inlayHint", "rename")),
    *(f"notebookDocument/{name}" for name in ("didOpen", "didChange", "didSave", "didClose")),
    *("workspace/executeCommand", "workspace/didChangeConfiguration", "workspace/symbol"),
    *("workspace/didChangeWatchedFiles", "workspace/didChangeWorkspaceFolders"),
    *("window/workDoneProgress/cancel", "codeAction/resolve", "exit2", "", "nonsense/é"),
]
HOSTILE_URIS = [
    *("file:///nowhere/fuzz.py", "untitled:Untitled-1", "file:///with space/a b.py", "", ":", "%"),
    *("file:///C:/Users/x/a.py", "file:///c%3A/a.py", "C:\\a\\b.py", "file://host/share/a.py"),
    *(
        "http://[::1",
        "vscode-notebook-cell:/x.ipynb#1",
        "file:///%00.py",
        "file:///a%ff.py",
        "git:",
    ),
    *(
        "file:///" + "a" * 300 + ".py",
        "file:relative.py",
        "FILE:///nowhere/fuzz.py",
        "\ud800",
        "git:",
    ),
]
KEYS = [
    *("textDocument", "uri", "version", "text", "languageId", "contentChanges", "range", "start"),
    *("end", "line", "character", "context", "diagnostics", "only", "position", "id", "settings"),
    *("changes", "type", "command", "arguments", "notebookDocument", "cells", "document", "data"),
    *("event", "added", "removed", "name", "jsonrpc", "method", "params", "previousResultId"),
]


class Fuzzer:
    """Makes messages that are wrong in every way, the same ones each time."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def value(self, depth: int = 0) -> Any:
        kind = self.random.randrange(11 if depth < 4 else 8)
        if kind < 3:
            return self.random.choice([None, True, False, 0, -1, 1, 2**31, 2**64, 1.5, -0.0, 1e308])
        if kind < 5:
            return self.random.choice(HOSTILE_URIS)
        if kind < 8:
            texts = ["", "x", "python", "cuda", "NPU101", "\x00", "😀" * 9, "npulens.migrateFile"]
            return self.random.choice([*texts, f"import torch\n{CALL}()\n"])
        if kind == 8:
            return [self.value(depth + 1) for _ in range(self.random.randrange(4))]
        keys = self.random.sample(KEYS, self.random.randrange(6))
        return {key: self.value(depth + 1) for key in keys}

    def nearly_right(self) -> Message:
        """Parameters as they should be, with one of them wrong."""
        place = {"line": self.number(), "character": self.number()}
        spot = {"start": place, "end": {"line": self.number(), "character": self.number()}}
        uri = self.random.choice(HOSTILE_URIS)
        params: Message = {
            "textDocument": {
                "uri": uri,
                "version": self.number(),
                "languageId": "python",
                "text": f"import torch\n{CALL}()\n",
            },
            "position": place,
            "range": spot,
            "contentChanges": [{"range": spot, "text": "x.cuda()\n"}],
            "context": {"diagnostics": []},
            "previousResultIds": [],
        }
        if self.random.random() < 0.5:
            params[self.random.choice([*params])] = self.value()
        return params

    def number(self) -> int:
        return self.random.choice([0, 1, 2, 3, 7, 100, 2**31 - 1, 2**31, -1])

    def message(self) -> bytes:
        kind = self.random.random()
        if kind < 0.05:
            return self.framed(self.random.randbytes(self.random.randrange(1, 60)))
        if kind < 0.08:
            return b"X-%d: y\r\n\r\n" % self.random.randrange(99)
        if kind < 0.2:
            return self.framed(json.dumps(self.value()).encode())
        message: Message = {"jsonrpc": self.random.choice(["2.0"] * 20 + ["1.0", None])}
        if kind < 0.9:
            message["method"] = self.random.choice(METHODS[2:])
            if message["method"] == "shutdown":
                message["method"] = "initialize"
            message["params"] = self.nearly_right() if kind < 0.6 else self.value()
        if self.random.random() < 0.5:
            ids = [*(f"f{self.random.randrange(50)}" for _ in range(8)), -7, None, [], {}, True]
            message["id"] = self.random.choice(ids)
        if self.random.random() < 0.1:
            message[self.random.choice(["result", "error"])] = self.value()
        return self.framed(json.dumps(message).encode())

    def framed(self, body: bytes) -> bytes:
        return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def memory(process: int) -> int:
    """Bytes that a process holds in memory."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture
def fuzzed() -> Iterator[LspClient]:
    with LspClient() as client:
        client.initialize(initializationOptions={"logLevel": "error"})
        yield client


def test_twenty_thousand_wrong_messages(fuzzed: LspClient) -> None:
    fuzzer = Fuzzer(1)
    held = []
    uri = "file:///nowhere/sound.py"
    fuzzed.open(uri, f"import torch\n{CALL}()\n")
    for portion in range(40):
        fuzzed.send_bytes(b"".join(fuzzer.message() for _ in range(500)))
        # Whatever came before, the server answers, and its view of the text is right.
        params = {"textDocument": {"uri": uri}, "position": {"line": 1, "character": 14}}
        answer = fuzzed.request("textDocument/hover", params)
        assert "torch.npu.synchronize" in answer["contents"]["value"]
        fuzzed.forget()
        if portion % 10 == 9 and Path("/proc/self/statm").exists():
            held.append(memory(fuzzed.process.pid))
    assert fuzzed.process.poll() is None
    if held:
        assert held[-1] - held[1] < 24_000_000, held
    assert fuzzed.shut_down() == 0


# One wrong thing at a time


def test_requests_before_initialize(client: LspClient) -> None:
    early = client.start_request("textDocument/hover", {})
    assert client.response(early)["error"]["code"] == -32002
    assert client.response(client.start_request("shutdown", None))["error"]["code"] == -32002
    client.open("untitled:1", "x.cuda()\n")
    client.initialize()
    assert not client.published
    again = client.start_request("initialize", {"processId": None, "capabilities": {}})
    assert client.response(again)["error"]["code"] == -32600
    client.open("untitled:1", "x.cuda()\n")
    assert client.diagnostics("untitled:1", 1)


def test_an_answer_to_what_nobody_asked(client: LspClient) -> None:
    """Also under the id of a request of the client's own that is not answered yet."""
    client.initialize()
    client.open("untitled:1", "x.cuda()\n" * 200)
    place = {"textDocument": {"uri": "untitled:1"}, "position": {"line": 1, "character": 3}}
    request = client.start_request("textDocument/hover", place)
    for said in ({"result": 1}, {"error": []}, {"error": {"code": 1, "message": "x"}}, {}):
        for identity in (request, "nobody's", 10**9):
            client.send({"jsonrpc": "2.0", "id": identity, **said})
    assert "NPU105" in str(client.response(request))
    assert client.shut_down() == 0


def test_exit_before_initialize(client: LspClient) -> None:
    client.notify("exit", None)
    assert client.process.wait(10) == 1


@pytest.mark.parametrize("body", [b"{", b"[]", b"7", b"\xff\xfe", b"null", b"[" * 100_000])
def test_what_is_no_message_is_refused(steady: LspClient, body: bytes) -> None:
    steady.refused.clear()
    steady.send_bytes(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    steady.wait(lambda: bool(steady.refused))
    assert steady.refused[0]["code"] in (-32700, -32600)


@pytest.mark.parametrize(
    "uri",
    [
        "file:///a b/c d.py",
        "file:///a%20b/c%20d.py",
        "untitled:x y",
        "file:///C:/Users/me/a.py",
        "file:///c%3A/me/a.py",
        "ssh://h/a.py",
    ],
)
def test_unusual_names(steady: LspClient, uri: str) -> None:
    steady.open(uri, "x.cuda()\n")
    assert [d["code"] for d in steady.diagnostics(uri, 1)] == ["NPU105"]
    steady.change(uri, 2, replacing((0, 0), (0, 0), "y.cuda()\n"))
    assert len(steady.diagnostics(uri, 2)) == 2


def test_versions_that_go_backwards(client: LspClient) -> None:
    client.initialize()
    client.open("untitled:1", "x.cuda()\n", version=9)
    client.change("untitled:1", 3, replacing((0, 0), (0, 0), "y.cuda()\n"))
    client.change("untitled:1", 3, replacing((0, 0), (0, 0), "z.cuda()\n"))
    client.wait(lambda: bool(client.published) and len(client.published[-1]["diagnostics"]) == 3)


def test_a_client_that_dies_in_the_middle_of_a_message(client: LspClient) -> None:
    client.initialize()
    client.send_bytes(b'Content-Length: 1000\r\n\r\n{"jsonrpc": "2.0"')
    assert client.process.stdin is not None
    client.process.stdin.close()
    assert client.process.wait(10) == 1


@pytest.fixture(scope="module")
def steady() -> Iterator[LspClient]:
    with LspClient() as shared:
        shared.initialize()
        yield shared


@pytest.fixture
def client() -> Iterator[LspClient]:
    with LspClient() as fresh:
        yield fresh


def test_the_model_of_documents_is_the_engines() -> None:
    """The storm and the model stand on this: both work places out in their own way."""
    text = "a😀\r\nb\u2028c\n中"
    document = Document("a.py", text, 1, Kind.PYTHON)
    for encoding in UNITS:
        for offset in range(len(text) + 1):
            found = document.position_at(offset, PositionEncoding(encoding))
            assert tuple(found) == place(text, offset, encoding)
