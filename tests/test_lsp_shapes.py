"""What an editor shows of dynamic shapes, through the real server process."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lsp_client import LspClient, Message, range_of, replacing

TEXT = """\
import torch
from torch import Tensor, nn


class Net(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        batch, boxes, width = x.shape
        mask = x[..., 0] > 0.5
        kept = x[mask]
        more = kept * 2
        return torch.cat([kept, more])

    def evaluate(self, x: Tensor) -> float:
        return x.sum().item()


def untouched(x: Tensor) -> Tensor:
    doubled = x * 2
    return doubled
"""
MASK_LINE, KEPT_LINE, MORE_LINE, CAT_LINE = 7, 8, 9, 10
WHOLE = ((0, 0), (100, 0))
REFRESHES = {
    "workspace": {
        "inlayHint": {"refreshSupport": True},
        "codeLens": {"refreshSupport": True},
    },
    "window": {"workDoneProgress": True},
}


@pytest.fixture(scope="module")
def client() -> Iterator[LspClient]:
    with LspClient() as shared:
        shared.initialize(capabilities={"notebookDocument": {"synchronization": {}}})
        yield shared


_names = iter(f"file:///nowhere/shapes_{number}.py" for number in range(1000))


@pytest.fixture
def uri() -> str:
    return next(_names)


def hints(
    client: LspClient, uri: str, start: tuple[int, int] = WHOLE[0], end: tuple[int, int] = WHOLE[1]
) -> list[Message]:
    params = {"textDocument": {"uri": uri}, "range": range_of(start, end)}
    found: list[Message] = client.request("textDocument/inlayHint", params)
    return found


def shown(found: list[Message]) -> list[tuple[int, int, str]]:
    places = [each["position"] for each in found]
    return [
        (place["line"], place["character"], each["label"])
        for place, each in zip(places, found, strict=True)
    ]


MASK = (MASK_LINE, 12, ": [batch, boxes]")
KEPT = (KEPT_LINE, 12, ": [?, width] dynamic")
MORE = (MORE_LINE, 12, ": [?, width] dynamic")


# Hints


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (*WHOLE, [MASK, KEPT, MORE]),
        ((KEPT_LINE, 0), (KEPT_LINE, 30), [KEPT]),
        ((MASK_LINE, 0), (KEPT_LINE, 11), [MASK]),
        ((KEPT_LINE, 12), (MORE_LINE, 12), [KEPT, MORE]),
        ((0, 0), (6, 0), []),
        ((CAT_LINE, 0), (100, 0), []),
    ],
)
def test_hints_of_the_range_that_is_asked_for(
    client: LspClient,
    uri: str,
    start: tuple[int, int],
    end: tuple[int, int],
    expected: list[tuple[int, int, str]],
) -> None:
    client.open(uri, TEXT)
    assert shown(hints(client, uri, start, end)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "x = 1\n",
        "import torch\n\ndef forward(x):\n    y = x * 2\n    return y\n",
        "def forward(x):\n    y = x[x > 0]\n    return y\n",
        "",
    ],
)
def test_no_hints_where_no_shape_depends_on_data(client: LspClient, uri: str, text: str) -> None:
    client.open(uri, text)
    assert hints(client, uri) == []


def test_hints_are_explained(client: LspClient, uri: str) -> None:
    client.open(uri, TEXT)
    mask, kept, _ = hints(client, uri)
    assert mask["tooltip"]["kind"] == "markdown"
    assert "depends on data" not in mask["tooltip"]["value"]
    assert "line 9: `x[mask]`" in kept["tooltip"]["value"]
    assert kept["kind"] == 1


def test_hints_are_explained_when_that_is_asked_for(uri: str) -> None:
    lazy = {"textDocument": {"inlayHint": {"resolveSupport": {"properties": ["tooltip"]}}}}
    with LspClient() as client:
        client.initialize(capabilities=lazy)
        client.open(uri, TEXT)
        _, kept, _ = hints(client, uri)
        assert "tooltip" not in kept
        assert "x[mask]" in client.request("inlayHint/resolve", kept)["tooltip"]["value"]
        # Of another text, or from somebody else, it stays what it is.
        client.change(uri, 2, replacing((0, 0), (0, 0), "\n"))
        client.diagnostics(uri, 2)
        for data in (kept["data"], None, 7, {}, {"uri": 1}, {**kept["data"], "hint": "x"}):
            assert "tooltip" not in client.request("inlayHint/resolve", {**kept, "data": data})
        assert client.shut_down() == 0


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_hints_stand_behind_names_in_each_encoding(encoding: str, uri: str) -> None:
    text = TEXT.replace("kept = x[mask]", '"𝒳é"; kept = x[mask]')
    with LspClient() as client:
        client.initialize(encodings=[encoding])
        client.open(uri, text)
        line = text.splitlines()[KEPT_LINE]
        before = line[: line.index("kept") + 4]
        units = {"utf-8": len(before.encode()), "utf-16": len(before) + 1, "utf-32": len(before)}
        assert (KEPT_LINE, units[encoding], KEPT[2]) in shown(hints(client, uri))


def test_hints_can_be_turned_off(uri: str) -> None:
    with LspClient() as client:
        client.initialize(initializationOptions={"inlayHints": "off"})
        client.open(uri, TEXT)
        assert hints(client, uri) is None
        settings = {"settings": {"npulens": {"inlayHints": "dynamic"}}}
        client.notify("workspace/didChangeConfiguration", settings)
        assert shown(hints(client, uri)) == [MASK, KEPT, MORE]


def test_hints_are_those_of_the_newest_text(client: LspClient, uri: str) -> None:
    client.open(uri, TEXT)
    for version in range(2, 22):
        client.change(uri, version, replacing((0, 0), (0, 0), "\n"))
        moved = [(line + version - 1, column, label) for line, column, label in (MASK, KEPT, MORE)]
        assert shown(hints(client, uri)) == moved
    # An answer that a later text has overtaken is none.
    params = {"textDocument": {"uri": uri}, "range": range_of(*WHOLE)}
    requests = []
    for version in range(22, 42):
        client.change(uri, version, replacing((0, 0), (0, 0), "\n"))
        requests.append((version, client.start_request("textDocument/inlayHint", params)))
    for version, request in requests:
        found = client.response(request)["result"]
        if found is not None:
            assert shown(found)[0] == (MASK_LINE + version - 1, *MASK[1:])
    assert found is not None


def test_a_client_is_told_when_hints_are_others(uri: str) -> None:
    with LspClient() as client:
        client.initialize(capabilities=REFRESHES)
        client.open(uri, TEXT)
        assert len(hints(client, uri)) == 3

        def refreshes() -> set[str]:
            return {asked["method"] for asked in client.asked if "refresh" in asked["method"]}

        # What only moves is asked for by the client itself.
        client.change(uri, 2, replacing((0, 0), (0, 0), "\n"))
        client.diagnostics(uri, 2)
        assert shown(hints(client, uri))[0] == (MASK_LINE + 1, *MASK[1:])
        assert not refreshes()
        client.change(uri, 3, replacing((MASK_LINE + 1, 15), (MASK_LINE + 1, 30), "torch.abs(x)"))
        client.diagnostics(uri, 3)
        both = {"workspace/inlayHint/refresh", "workspace/codeLens/refresh"}
        client.wait(lambda: refreshes() == both)
        assert KEPT[2] not in {label for _, _, label in shown(hints(client, uri))}


def test_hints_in_a_notebook(client: LspClient) -> None:
    notebook = "file:///nowhere/shapes.ipynb"
    cells = ["import torch\n", f"x = 1\n{TEXT}"]
    names = [f"{notebook}#{number}" for number in range(len(cells))]
    described = [{"kind": 2, "document": name} for name in names]
    client.notify(
        "notebookDocument/didOpen",
        {
            "notebookDocument": {
                "uri": notebook,
                "notebookType": "jupyter-notebook",
                "version": 1,
                "cells": described,
            },
            "cellTextDocuments": [
                {"uri": name, "languageId": "python", "version": 1, "text": text}
                for name, text in zip(names, cells, strict=True)
            ],
        },
    )
    assert hints(client, names[0]) == []
    found = hints(client, names[1])
    assert shown(found) == [(line + 1, column, label) for line, column, label in (MASK, KEPT, MORE)]
    assert "cell 2, line 10: `x[mask]`" in found[1]["tooltip"]["value"]
    assert [line for line, _ in lenses(client, names[1])] == [6]


# Code lens


def lenses(client: LspClient, uri: str) -> list[tuple[int, str]]:
    found = client.request("textDocument/codeLens", {"textDocument": {"uri": uri}}) or []
    return [
        (each["range"]["start"]["line"], each["command"]["title"])
        for each in found
        if each["command"]["command"] == "npulens.rankShapes"
    ]


def test_functions_tell_what_they_hold(client: LspClient, uri: str) -> None:
    client.open(uri, TEXT)
    assert lenses(client, uri) == [
        (5, "npulens: 1 dynamic shape, 1 sync in the training step"),
    ]


LENSES = [
    ("def forward({}):\n    y = x[x > 0], x[x > 1]", "2 dynamic shapes, 2 syncs in the training"),
    ("def forward({}):\n    return x.item()", "npulens: 1 sync in the training step"),
    ("def pick({}):\n    return x[x > 0]", "npulens: 1 dynamic shape, 1 sync"),
    ("@decorated\ndef forward({}):\n    return x.item()", "npulens: 1 sync in the training step"),
    ("def evaluate({}):\n    return x.item()", None),
    (
        "def forward({}):\n    def inner(x: torch.Tensor):\n        return x.item()\n"
        "    return inner(x)",
        None,
    ),
]


@pytest.mark.parametrize(("text", "title"), LENSES)
def test_counts_of_a_function(client: LspClient, uri: str, text: str, title: str | None) -> None:
    client.open(uri, "import torch\n\n" + text.format("x: torch.Tensor"))
    found = [told for _, told in lenses(client, uri)]
    assert len(found) == (title is not None)
    assert title is None or found[0].startswith(
        title if "npulens" in title else f"npulens: {title}"
    )


def test_what_the_user_does_not_want_is_not_counted(uri: str) -> None:
    with LspClient() as client:
        client.initialize(initializationOptions={"ignore": ["NPU8"]})
        client.open(uri, TEXT)
        assert lenses(client, uri) == []


# Hover


def hover(client: LspClient, uri: str, line: int, character: int) -> str:
    place = {"line": line, "character": character}
    found = client.request("textDocument/hover", {"textDocument": {"uri": uri}, "position": place})
    return "" if found is None else str(found["contents"]["value"])


PATH = """\
1. line 9: `x[mask]` makes a shape depend on data, and the host wait
2. line 9: `kept` has the shape `[?, width]`
3. line 10: `more` has the shape `[?, width]`
4. line 10: `kept * 2` works on it
5. line 11: `torch.cat([kept, more])` works on it"""


@pytest.mark.parametrize(
    ("line", "character"),
    [(KEPT_LINE, 16), (KEPT_LINE, 9), (MORE_LINE, 20), (CAT_LINE, 20)],
    ids=["source", "name", "consumer", "consumer-in-a-call"],
)
def test_the_path_from_the_source_to_what_works_on_it(
    client: LspClient, uri: str, line: int, character: int
) -> None:
    client.open(uri, TEXT)
    found = hover(client, uri, line, character)
    assert PATH in found
    assert "**Dynamic shape**, score" in found and "in the training step" in found
    assert ("NPU802" in found) == (line == KEPT_LINE and character == 16)


def test_places_that_are_not_told_have_a_path_too(client: LspClient, uri: str) -> None:
    client.open(uri, TEXT)
    found = hover(client, uri, 13, 20)
    assert "outside of training" in found
    assert "line 14: `x.sum().item()` makes the host wait" in found
    assert hover(client, uri, 17, 5) == hover(client, uri, 6, 9) == ""


# The ranked list

COMMAND = "npulens.rankShapes"


def ranked(client: LspClient, *arguments: object, **more: str) -> list[Message]:
    params = {"command": COMMAND, "arguments": [*arguments], **more}
    found: list[Message] = client.request("workspace/executeCommand", params)
    return found


def test_the_places_of_a_document_are_ranked(client: LspClient, uri: str) -> None:
    client.open(uri, TEXT)
    first, second = ranked(client, uri)
    assert (first["uri"], first["code"], first["function"]) == (uri, "NPU802", "Net.forward")
    assert first["range"] == range_of((KEPT_LINE, 15), (KEPT_LINE, 22))
    assert (first["isShape"], first["waits"], first["reached"]) == (True, True, "training")
    assert [use["range"]["start"]["line"] for use in first["uses"]] == [MORE_LINE, CAT_LINE]
    assert (second["reached"], second["isShape"], second["waits"]) == ("evaluation", False, True)
    assert first["score"] > second["score"]
    message = client.shown[-1]["message"]
    assert "2 places" in message
    assert f"1. [{first['score']}] {uri.rpartition('/')[2]}:9 " in message


def test_who_asks_for_the_answer_alone_sees_no_message(client: LspClient, uri: str) -> None:
    client.open(uri, TEXT)
    before = len(client.shown)
    quietly = ranked(client, uri, {"quiet": True})
    workspace = ranked(client, {"quiet": True})
    assert len(client.shown) == before
    assert quietly == ranked(client, uri, {"quiet": False}) != []
    assert workspace == ranked(client)
    assert len(client.shown) == before + 2


def test_the_places_of_a_workspace_are_ranked(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(TEXT)
    (tmp_path / "opened.py").write_text(TEXT)
    (tmp_path / "broken.py").write_bytes(b"# torch \xff\xfe\n")
    (tmp_path / "left_out.py").write_text(TEXT)
    (tmp_path / "npulens.toml").write_text('exclude = ["left_out.py"]\n')
    opened = (tmp_path / "opened.py").as_uri()
    with LspClient() as client:
        client.initialize(capabilities=REFRESHES, rootUri=tmp_path.as_uri())
        # What the editor has counts, and not what is on the disk.
        client.open(opened, "\n" + TEXT.replace("def evaluate", "def validate"))
        found = ranked(client, workDoneToken="mine")
        lines = [(each["uri"][-8:], each["range"]["start"]["line"]) for each in found]
        assert sorted(lines) == [
            ("model.py", KEPT_LINE),
            ("model.py", 13),
            ("pened.py", KEPT_LINE + 1),
            ("pened.py", 14),
        ]
        scores = [each["score"] for each in found]
        assert scores == sorted(scores, reverse=True)
        kinds = [p["value"]["kind"] for p in client.progress if p["token"] == "mine"]
        assert (kinds[0], kinds[1], kinds[-1]) == ("begin", "report", "end")
        assert "4 places" in client.shown[-1]["message"]


@pytest.mark.parametrize("by_progress", [True, False])
def test_ranking_is_cancelled(tmp_path: Path, by_progress: bool) -> None:
    body = "".join(f"def forward{n}(x: torch.Tensor):\n    return x[x > 0]\n" for n in range(60))
    for number in range(80):
        (tmp_path / f"module_{number}.py").write_text(f"import torch\n{body}")
    with LspClient() as client:
        client.initialize(capabilities=REFRESHES, rootUri=tmp_path.as_uri())
        params = {"command": COMMAND, "arguments": [], "workDoneToken": "t"}
        request = client.start_request("workspace/executeCommand", params)
        client.wait(lambda: any(p["value"]["kind"] == "report" for p in client.progress))
        if by_progress:
            client.notify("window/workDoneProgress/cancel", {"token": "t"})
        else:
            client.notify("$/cancelRequest", {"id": request})
        assert client.response(request)["error"]["code"] == -32800
        client.wait(lambda: any(p["value"]["kind"] == "end" for p in client.progress))
        assert not client.shown
        assert client.shut_down() == 0


ORDINARY = """\
import torch
from torch import nn


class Heads(nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.n_head = n_head
        self.project = nn.Linear(n_embd, 3 * n_embd)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.project(x).split(C, dim=2)
        q = q.view(B, T, self.n_head, C // self.n_head)
        return q.transpose(1, 2)


def untold(x):
    return x.item()
"""
"""No shape in it depends on data."""


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [": [B, T, n_head, C // n_head]"]),
        ({"inlayHints": "all"}, [": [B, T, n_head, C // n_head]"]),
        ({"inlayHints": "dynamic"}, []),
    ],
)
def test_whose_shapes_are_shown_can_be_chosen(settings: Message, expected: list[str]) -> None:
    with LspClient() as client:
        client.initialize(initializationOptions=settings)
        client.open("untitled:1", ORDINARY)
        labels = [hint["label"] for hint in hints(client, "untitled:1", (13, 0), (14, 0))]
        assert labels == expected


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ((13, 9), "`q`: `[B, T, n_head, C // n_head]`"),
        ((14, 15), "`q`: `[B, T, n_head, C // n_head]`"),
        ((12, 31), "`x`: `[B, T, C]`"),
        ((8, 9), ""),
    ],
)
def test_each_tensor_tells_its_shape(
    client: LspClient, uri: str, place: tuple[int, int], expected: str
) -> None:
    client.open(uri, ORDINARY)
    position = {"line": place[0], "character": place[1]}
    params = {"textDocument": {"uri": uri}, "position": position}
    found = client.request("textDocument/hover", params)
    assert expected in ("" if found is None else found["contents"]["value"])
    assert bool(expected) == (found is not None)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [(10, "x: [B, T, C] → [B, n_head, T, C // n_head]")]),
        ({"codeLens": False}, [(10, "x: [B, T, C] → [B, n_head, T, C // n_head]")]),
        ({"shapeLens": False}, []),
    ],
)
def test_functions_tell_what_they_take_and_give(
    settings: Message, expected: list[tuple[int, str]]
) -> None:
    with LspClient() as client:
        client.initialize(initializationOptions=settings)
        client.open("untitled:1", ORDINARY)
        params = {"textDocument": {"uri": "untitled:1"}}
        found = client.request("textDocument/codeLens", params) or []
        shown = [
            (each["range"]["start"]["line"], each["command"]["title"])
            for each in found
            if not each["command"]["command"]
        ]
        assert shown == expected


LAYERED = """\
import torch
from torch import nn


def paired(x):
    return x.view(-1, 4)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(6, 8)

    def forward(self, x):
        y = self.project(x)
        z = paired(y)
        return z
"""


@pytest.mark.parametrize(
    ("place", "text", "expected"),
    [
        ((5, 22), "4", [": [..., 8]", ": [?, 4]"]),
        ((11, 36), "9", [": [..., 9]", ": [?, 4]"]),
        ((5, 22), "5", [": [..., 8]", ": [?, 5]"]),
        ((14, 12), "-", [": [..., 8]", ": [?, 4]"]),
    ],
)
def test_shapes_follow_what_is_typed_elsewhere(
    client: LspClient, uri: str, place: tuple[int, int], text: str, expected: list[str]
) -> None:
    client.open(uri, LAYERED)
    assert [hint["label"] for hint in hints(client, uri)] == [": [..., 8]", ": [?, 4]"]
    end = place[0], place[1] + (text != "-")
    client.change(uri, 2, replacing(place, end, text))
    assert [hint["label"] for hint in hints(client, uri)] == expected


def test_nothing_to_rank(client: LspClient, uri: str) -> None:
    client.open(uri, "x = 1\n")
    assert ranked(client, uri) == []
    assert client.shown[-1]["message"] == "npulens: no shape depends on data"
    for arguments in ([7], ["file:///nowhere/closed.py"], [None]):
        params = {"command": COMMAND, "arguments": arguments}
        request = client.start_request("workspace/executeCommand", params)
        assert client.response(request)["error"]["code"] == -32602


def test_all_of_it_in_chinese() -> None:
    with LspClient() as client:
        client.initialize(locale="zh-cn")
        client.open("untitled:1", TEXT)
        _, kept, _ = hints(client, "untitled:1")
        assert kept["label"] == ": [?, width] 动态"
        assert "第 9 行：`x[mask]`" in kept["tooltip"]["value"]
        assert lenses(client, "untitled:1") == [(5, "npulens：训练步骤中有 1 个动态形状、1 次同步")]
        found = hover(client, "untitled:1", KEPT_LINE, 16)
        assert "**动态形状**，得分" in found and "使形状依赖数据" in found
        ranked(client, "untitled:1")
        assert "2 处形状依赖数据或主机等待设备" in client.shown[-1]["message"]
