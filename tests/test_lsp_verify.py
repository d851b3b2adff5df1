"""Running a script from the editor, through the real server process."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lsp_client import LspClient, Message, range_of, replacing

pytestmark = pytest.mark.emulated

TRAIN = """\
import torch
import tools
model = torch.nn.Linear(4, 2).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(2):
    x = torch.randn(8, 4).cuda()
    loss = model(x[x[:, 0] > 0]).square().mean()
    loss.backward()
    optimizer.step()
    tools.show(loss)
"""
TOOLS = "def show(loss):\n    print('损失', loss.item())\n"
CALL = TRAIN + "__import__('torch.' + 'cuda').cuda.empty_cache()\n"
"""One call is hidden from the analysis."""

PUSHED: Message = {"window": {"workDoneProgress": True}}
PULLED: Message = {
    **PUSHED,
    "textDocument": {"diagnostic": {"relatedDocumentSupport": False}},
    "workspace": {"diagnostics": {"refreshSupport": True}},
}
SOURCE = "npulens (run)"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[LspClient]:
    with LspClient() as fresh:
        (tmp_path / "train.py").write_text(CALL)
        (tmp_path / "tools.py").write_text(TOOLS, encoding="utf-8")
        yield fresh


def verify(client: LspClient, uri: str, **options: Any) -> Message:
    arguments = [uri, options] if options else [uri]
    params = {"command": "npulens.verify", "arguments": arguments}
    return client.response(client.start_request("workspace/executeCommand", params), timeout=60)


def seen(diagnostics: list[Message]) -> list[tuple[int, str, int]]:
    """Of each diagnostic of the run its line, from 1, its code and its severity."""
    return [
        (each["range"]["start"]["line"] + 1, each["code"], each["severity"])
        for each in diagnostics
        if each["source"] == SOURCE
    ]


def test_what_a_run_saw_is_shown_until_the_text_changes(client: LspClient, tmp_path: Path) -> None:
    client.initialize(capabilities=PUSHED, rootUri=tmp_path.as_uri())
    train, tools = ((tmp_path / name).as_uri() for name in ("train.py", "tools.py"))
    client.open(train, CALL)
    client.open(tools, TOOLS)
    static = client.diagnostics(train, 1)
    assert static and not seen(static)
    client.diagnostics(tools, 1)
    client.published.clear()
    answer = verify(client, train, steps=0)["result"]
    assert (answer["status"], answer["outcome"], answer["steps"]) == ("not-ready", "cuda-left", 2)
    assert "train.py:11" in answer["message"]
    expected = [(11, "cuda-call", 1), (7, "shape", 3), (7, "shape", 3)]
    found = client.diagnostics(train, 1)
    assert seen(found) == expected
    assert [each for each in found if each["source"] == "npulens"] == static
    [call] = [each for each in found if each["code"] == "cuda-call"]
    assert "torch.cuda.empty_cache" in call["message"] and "1x" in call["message"]
    assert call["range"]["end"]["character"] == len(CALL.splitlines()[10])
    [wait] = [each for each in client.diagnostics(tools, 1) if each["source"] == SOURCE]
    assert (wait["code"], wait["range"]["start"]) == ("wait", {"line": 1, "character": 4})
    assert "2x" in wait["message"]
    begun = [each["value"] for each in client.progress if each["value"]["kind"] == "begin"]
    assert "executes its code" in begun[0]["title"] and begun[0]["cancellable"]
    assert any("cuda" in each["message"] for each in client.shown)
    # Another text was not run; the one that was is known again.
    client.change(train, 2, replacing((0, 0), (0, 0), "\n"))
    assert seen(client.diagnostics(train, 2)) == []
    client.change(train, 3, replacing((0, 0), (1, 0), ""))
    assert seen(client.diagnostics(train, 3)) == expected
    client.published.clear()
    client.request("workspace/executeCommand", {"command": "npulens.clearRun", "arguments": []})
    assert client.diagnostics(train, 3) == static
    assert client.diagnostics(tools, 1) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tools.py", "train.py"]


def test_a_client_that_asks_gets_them_too(client: LspClient, tmp_path: Path) -> None:
    client.initialize(capabilities=PULLED, rootUri=tmp_path.as_uri(), locale="zh-cn")
    uri = (tmp_path / "train.py").as_uri()
    client.open(uri, CALL)
    params: Message = {"textDocument": {"uri": uri}}
    before = client.request("textDocument/diagnostic", params)
    assert not seen(before["items"])
    client.asked.clear()
    answer = verify(client, uri)["result"]
    assert answer["message"].startswith("未完成迁移：仍调用 torch.cuda.empty_cache")
    assert any(each["method"] == "workspace/diagnostic/refresh" for each in client.asked)
    params["previousResultId"] = before["resultId"]
    after = client.request("textDocument/diagnostic", params)
    assert (11, "cuda-call", 1) in seen(after["items"])
    assert any("运行中观察到" in each["message"] for each in after["items"])


def test_places_in_a_notebook(client: LspClient, tmp_path: Path) -> None:
    cells = ["import torch\nx = torch.ones(4).npu()", "%%time\nkept = x[x > 0]"]
    content = [
        {"cell_type": "code", "metadata": {}, "source": cells[0]},
        {"cell_type": "markdown", "metadata": {}, "source": "prose"},
        {"cell_type": "code", "metadata": {}, "source": cells[1]},
    ]
    path = tmp_path / "try.ipynb"
    notebook = {"cells": content, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(notebook))
    client.initialize(capabilities=PUSHED, rootUri=tmp_path.as_uri())
    uris = ["vscode-notebook-cell:/try.ipynb#a", "vscode-notebook-cell:/try.ipynb#b"]
    documents = [
        {"uri": uri, "languageId": "python", "version": 1, "text": text}
        for uri, text in zip(uris, cells, strict=True)
    ]
    client.notify(
        "notebookDocument/didOpen",
        {
            "notebookDocument": {
                "uri": path.as_uri(),
                "notebookType": "jupyter-notebook",
                "version": 1,
                "cells": [
                    {"kind": 2, "document": uris[0]},
                    {"kind": 1, "document": "vscode-notebook-cell:/try.ipynb#prose"},
                    {"kind": 2, "document": uris[1]},
                ],
            },
            "cellTextDocuments": documents,
        },
    )
    client.diagnostics(uris[1], 1)
    client.published.clear()
    assert verify(client, path.as_uri(), asIs=True)["result"]["outcome"] == "ran"
    assert [each[:2] for each in seen(client.diagnostics(uris[1], 1))] == [(2, "shape")] * 2
    assert seen(client.diagnostics(uris[0], 1)) == []


@pytest.mark.parametrize("by_progress", [True, False])
def test_a_run_is_cancelled(client: LspClient, tmp_path: Path, by_progress: bool) -> None:
    started = tmp_path.parent / f"{tmp_path.name}_started"
    (tmp_path / "train.py").write_text(
        f"import os, time\nopen({str(started)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)\n"
    )
    client.initialize(capabilities=PUSHED, rootUri=tmp_path.as_uri())
    uri = (tmp_path / "train.py").as_uri()
    params = {"command": "npulens.verify", "arguments": [uri], "workDoneToken": "t"}
    request = client.start_request("workspace/executeCommand", params)
    end = time.monotonic() + 30
    while not (started.exists() and started.read_text()):
        assert time.monotonic() < end
        time.sleep(0.05)
    if by_progress:
        client.wait(lambda: any(p["value"]["kind"] == "begin" for p in client.progress))
        client.notify("window/workDoneProgress/cancel", {"token": "t"})
    else:
        client.notify("$/cancelRequest", {"id": request})
    assert client.response(request)["error"]["code"] == -32800
    process = Path("/proc") / started.read_text()
    while process.exists() and os.name == "posix":
        assert time.monotonic() < end
        time.sleep(0.05)
    assert client.request("workspace/executeCommand", {"command": "npulens.clearRun"}) is None


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "file: URI"),
        (["untitled:1"], "file: URI"),
        (["{folder}/gone.py"], "no Python script"),
        (["{folder}/train.py", {"step": 3}], "no option 'step'"),
        (["{folder}/train.py", {"steps": True}], "'steps' is of the wrong type"),
        (["{folder}/train.py", {"seconds": 0}], "positive"),
        (["{folder}/train.py", {"arguments": [1]}], "list of texts"),
        (["{folder}/train.py", 3], "must be an object"),
        (["{folder}/train.py"], "tools.py has changes that are not saved"),
    ],
)
def test_what_is_refused(
    client: LspClient, tmp_path: Path, arguments: list[Any], sentence: str
) -> None:
    client.initialize(rootUri=tmp_path.as_uri())
    client.open((tmp_path / "tools.py").as_uri(), TOOLS + "\n")
    folder = tmp_path.as_uri()
    given = [a.format(folder=folder) if isinstance(a, str) else a for a in arguments]
    params = {"command": "npulens.verify", "arguments": given}
    error = client.response(client.start_request("workspace/executeCommand", params))["error"]
    assert error["code"] == -32602 and sentence in error["message"]


MODEL = """\
import torch

def halves(x):
    B, T = x.shape
    y = x.view(B, 2, T // 2).cuda()
    return y

for size in (4, 6):
    out = halves(torch.zeros(3, size))
"""


def hint_labels(client: LspClient, uri: str) -> list[tuple[int, str]]:
    params = {"textDocument": {"uri": uri}, "range": range_of((0, 0), (20, 0))}
    found = client.request("textDocument/inlayHint", params)
    return [(each["position"]["line"] + 1, each["label"]) for each in found]


def test_the_shapes_of_a_run_are_shown_until_the_text_changes(
    client: LspClient, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(MODEL)
    client.initialize(capabilities=PUSHED, rootUri=tmp_path.as_uri())
    uri = (tmp_path / "train.py").as_uri()
    client.open(uri, MODEL)
    symbolic = (5, ": [B, 2, T // 2]")
    assert hint_labels(client, uri) == [symbolic]
    assert "shapes" in verify(client, uri)["result"]
    assert hint_labels(client, uri) == [symbolic]
    params = {"command": "npulens.traceShapes", "arguments": [uri]}
    request = client.start_request("workspace/executeCommand", params)
    assert client.response(request, timeout=60)["result"]["shapes"] == 2
    seen_sizes = "[3, 2, 2], [3, 2, 3]"
    traced = [(5, f"{symbolic[1]} = {seen_sizes}"), (9, f": {seen_sizes}")]
    assert hint_labels(client, uri) == traced
    position = {"textDocument": {"uri": uri}, "position": {"line": 4, "character": 4}}
    told = client.request("textDocument/hover", position)["contents"]["value"]
    assert "In the last run: `[3, 2, 2]`, `[3, 2, 3]`" in told
    client.change(uri, 2, replacing((0, 0), (0, 0), "\n"))
    assert hint_labels(client, uri) == [(6, symbolic[1])]
    client.change(uri, 3, replacing((0, 0), (1, 0), ""))
    assert hint_labels(client, uri) == traced
    client.request("workspace/executeCommand", {"command": "npulens.clearRun", "arguments": []})
    assert hint_labels(client, uri) == [symbolic]
