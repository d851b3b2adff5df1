"""Sessions with the real server process; and its scheduler, alone."""

import asyncio
import random
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest

from lsp_client import LspClient, Message, Position, range_of, replacing
from npulens.lsp.requests.inlay_hints import hints, of_run
from npulens.lsp.session.convert import ClientTerms
from npulens.lsp.session.engine import Analyser, OpenDocument, Task
from npulens.lsp.session.run_diagnostics import ShapesByName
from npulens.lsp.session.slots import IsSuperseded, LatestWins
from npulens.lsp.session.views import View
from npulens.text.document import Document
from npulens.text.kinds import Kind
from npulens.text.spans import Span
from npulens.workspace.project.file_context import ProjectContextProvider

UNITS = {
    "utf-8": lambda text: len(text.encode()),
    "utf-16": lambda text: len(text.encode("utf-16-le")) // 2,
    "utf-32": len,
}
CALL = "torch.cuda.synchronize"


@pytest.fixture(scope="module", params=list(UNITS))
def any_session(request: pytest.FixtureRequest) -> Iterator[LspClient]:
    with LspClient() as client:
        assert client.initialize([request.param])["positionEncoding"] == request.param
        yield client


@pytest.fixture(scope="module")
def session() -> Iterator[LspClient]:
    with LspClient() as client:
        client.initialize()
        yield client


@pytest.fixture
def fresh() -> Iterator[LspClient]:
    with LspClient() as client:
        yield client


_numbers = count()


@pytest.fixture
def uri() -> str:
    return new_uri()


def new_uri() -> str:
    return f"file:///nowhere/document_{next(_numbers)}.py"


def place(text: str, offset: int, encoding: str = "utf-16") -> Position:
    """An offset as line and column, worked out in another way than the server does."""
    lines = re.split(r"\r\n|\r|\n", text[:offset])
    if text[:offset].endswith("\r") and text[offset:].startswith("\n"):
        lines.pop()  # between the halves of a line ending: still on that line
    return len(lines) - 1, UNITS[encoding](lines[-1])


def codes(diagnostics: list[Message]) -> list[str]:
    return [diagnostic["code"] for diagnostic in diagnostics]


def texts_at(text: str, diagnostics: list[Message], encoding: str = "utf-16") -> list[str]:
    """What the diagnostics are about."""
    offsets = {place(text, offset, encoding): offset for offset in reversed(range(len(text) + 1))}

    def offset(position: Message) -> int:
        return offsets[position["line"], position["character"]]

    ranges = [diagnostic["range"] for diagnostic in diagnostics]
    return [text[offset(found["start"]) : offset(found["end"])] for found in ranges]


def apply(text: str, edits: list[Message]) -> str:
    """The text after the edits of a code action, in UTF-16."""
    offsets = {place(text, offset): offset for offset in reversed(range(len(text) + 1))}

    def offset(position: Message) -> int:
        return offsets[position["line"], position["character"]]

    for edit in sorted(edits, key=lambda e: offset(e["range"]["start"]), reverse=True):
        start, end = offset(edit["range"]["start"]), offset(edit["range"]["end"])
        text = text[:start] + edit["newText"] + text[end:]
    return text


# Diagnostics


@pytest.mark.parametrize(
    "before",
    ["", 'x = "😀"; ', "名字 = 1; ", 'x = "e\u0301\u2028\x0c"; ', 'x = "👩‍🚀 中文 ß"; '],
)
def test_ranges_are_exact_in_each_encoding(any_session: LspClient, uri: str, before: str) -> None:
    encoding = any_session.capabilities["positionEncoding"]
    text = f"import torch\n{before}{CALL}()  # 好 😀\n"
    any_session.open(uri, text)
    (found,) = any_session.diagnostics(uri, 1)
    column = UNITS[encoding](before)
    assert found["range"] == {
        "start": {"line": 1, "character": column},
        "end": {"line": 1, "character": column + len(CALL)},
    }


def test_a_diagnostic_says_everything(session: LspClient, uri: str) -> None:
    session.open(uri, f"import torch\n{CALL}()\n", version=7)
    (found,) = session.diagnostics(uri, 7)
    assert found["code"] == "NPU101"
    assert found["source"] == "npulens"
    assert found["severity"] == 1
    page = found["codeDescription"]["href"]
    assert page.startswith("file://")
    assert Path(url2pathname(urlsplit(page).path)).read_text("utf-8").startswith("# NPU101")
    assert CALL in found["message"] and "torch.npu.synchronize" in found["message"]


def test_only_python_is_looked_at(session: LspClient) -> None:
    text = f"import torch\n{CALL}()\n"
    session.open("file:///nowhere/notes.md", text, language="markdown")
    session.open("untitled:Untitled-1", text)
    session.open("file:///nowhere/stub.pyi", text, language="plaintext")
    assert codes(session.diagnostics("untitled:Untitled-1", 1)) == ["NPU101"]
    assert codes(session.diagnostics("file:///nowhere/stub.pyi", 1)) == ["NPU101"]
    assert not any(sent["uri"].endswith(".md") for sent in session.published)


def test_close_clears(session: LspClient, uri: str) -> None:
    session.open(uri, f"import torch\n{CALL}()\n")
    assert session.diagnostics(uri, 1)
    session.change(uri, 2, replacing((1, 0), (1, 0), "x = 1\n"))
    session.close(uri)
    assert session.diagnostics(uri, None) == []
    other = new_uri()
    session.open(other, "import torch\n")
    session.diagnostics(other, 1)
    assert [sent["diagnostics"] for sent in session.published if sent["uri"] == uri][-1] == []
    session.open(uri, f"import torch\n{CALL}()\n", version=20)
    assert session.diagnostics(uri, 20)


# Changes

ALIASED = f"import torch as t\nt{CALL[5:]}()"
BASE = f"import torch\n\n\ndef f(model):\n    {CALL}()\n    return model\n"


@pytest.mark.parametrize(
    ("text", "changes", "expected"),
    [
        (BASE, [replacing((4, 4), (4, 4), "é = '😀'; ")], BASE.replace("    t", "    é = '😀'; t")),
        (BASE, [replacing((0, 12), (3, 0), "\n\n")], BASE.replace("\n\n\n", "\n\n")),
        (BASE, [replacing((4, 0), (5, 0), "")], BASE.replace(f"    {CALL}()\n", "")),
        (
            BASE,
            [
                replacing((4, 4), (4, 4), "s = '中😀'\n    "),
                replacing((5, 4), (5, 9), "torch"),
                replacing((4, 9), (4, 11), "文"),
                replacing((99, 0), (99, 0), f"{CALL}()"),
            ],
            BASE.replace("    t", "    s = '中文'\n    t") + f"{CALL}()",
        ),
        (
            BASE,
            [{"text": ALIASED}],
            ALIASED,
        ),
        (
            BASE.replace("\n", "\r\n"),
            [
                replacing((3, 13), (4, 4), "\r\n    pass\r\n    "),
                replacing((0, 99), (1, 0), "\r\n"),
            ],
            BASE.replace(":\n", ":\n    pass\n").replace("\n", "\r\n"),
        ),
        (
            "import torch\rx = 1\r" + CALL + "()\r",
            [replacing((1, 4), (1, 5), "2")],
            "import torch\rx = 2\r" + CALL + "()\r",
        ),
        (
            f"import torch\n\x0cs = 'a\u2028b\x85c\x0b'\n{CALL}()\n",
            [replacing((1, 6), (1, 7), "zz"), replacing((2, 0), (2, 0), f"{CALL}(); ")],
            f"import torch\n\x0cs = 'zz\u2028b\x85c\x0b'\n{CALL}(); {CALL}()\n",
        ),
        (BASE, [replacing((4, 14), (4, 15), "")], BASE.replace("cuda.sync", "cudasync")),
    ],
    ids=["emoji", "newline", "line", "several", "whole", "crlf", "cr", "separators", "symbol"],
)
def test_a_change_equals_a_fresh_open(
    session: LspClient, uri: str, text: str, changes: list[Message], expected: str
) -> None:
    session.open(uri, text)
    session.diagnostics(uri, 1)
    session.change(uri, 2, *changes)
    other = new_uri()
    session.open(other, expected)
    assert session.diagnostics(uri, 2) == session.diagnostics(other, 1)
    assert texts_at(expected, session.diagnostics(uri, 2)) == [
        match.group() for match in re.finditer(r"\bt(orch)?\.cuda\.synchronize", expected)
    ]


@pytest.mark.parametrize("seed", range(4))
def test_many_changes_equal_a_fresh_open(any_session: LspClient, uri: str, seed: int) -> None:
    encoding = any_session.capabilities["positionEncoding"]
    rng = random.Random(seed)
    segments = [
        "\n",
        "\r\n",
        "\r",
        "😀",
        "中",
        "\x0c",
        "\u2028",
        "x = 1",
        " ",
        "'",
        "(",
        f"\n{CALL}()\n",
    ]
    text = BASE.replace("\n", rng.choice(["\n", "\r\n"])) * 2
    any_session.open(uri, text)
    version = 1
    for _ in range(12):
        changes = []
        for _ in range(rng.randrange(1, 4)):
            start = rng.randrange(len(text) + 1)
            end = min(len(text), start + rng.choice([0, 0, 0, 1, 3]))
            if "\r\n" in (text[start - 1 : start + 1], text[end - 1 : end + 1]):
                continue  # not a place of the protocol
            new = "".join(rng.choices(segments, k=2))
            ends = place(text, start, encoding), place(text, end, encoding)
            changes.append(replacing(*ends, new))
            text = text[:start] + new + text[end:]
        version += 1
        any_session.change(uri, version, *changes)
    other = new_uri()
    any_session.open(other, text)
    assert any_session.diagnostics(uri, version) == any_session.diagnostics(other, 1)


def test_a_burst_ends_with_the_last_version(session: LspClient, uri: str) -> None:
    session.open(uri, BASE)
    text = BASE
    for version in range(2, 32):
        added = f"{CALL}()\n" if version % 2 else "x = (\n"
        text += added
        line = text.count("\n") - 1
        session.change(uri, version, replacing((line, 0), (line, 0), added))
    other = new_uri()
    session.open(other, text)
    assert session.diagnostics(uri, 31) == session.diagnostics(other, 1)
    versions = [sent["version"] for sent in session.published if sent["uri"] == uri]
    assert versions == sorted(versions) and versions[-1] == 31


def test_typing_a_call_keeps_the_other_findings(session: LspClient, uri: str) -> None:
    blocks = [f"def f{number}(model):\n    {CALL}()\n    return model\n" for number in range(9)]
    text = "import torch\n\n" + "\n".join(blocks)
    session.open(uri, text)
    before = session.diagnostics(uri, 1)
    assert len(before) == 9
    line = text[: text.index("def f4")].count("\n") + 2
    session.change(uri, 2, replacing((line, 0), (line, 0), "    \n"))
    for version, character in enumerate("model.cuda(", 3):
        column = 4 + version - 3
        session.change(uri, version, replacing((line, column), (line, column), character))
        found = session.diagnostics(uri, version)
        others = [d for d in found if d["range"]["start"]["line"] not in (line, line + 1)]
        assert codes(others).count("NPU101") == 9
        moved = [d["range"]["start"]["line"] - (d["range"]["start"]["line"] > line) for d in others]
        assert moved == [d["range"]["start"]["line"] for d in before]


def test_many_documents_are_open(session: LspClient) -> None:
    """More than the server remembers the statements of."""
    uris = [new_uri() for _ in range(30)]
    for uri in uris:
        session.open(uri, BASE)
    for uri in uris:
        assert codes(session.diagnostics(uri, 1)) == ["NPU101"]
        place = {"textDocument": {"uri": uri}, "position": {"line": 4, "character": 16}}
        assert "torch.npu.synchronize" in str(session.request("textDocument/hover", place))
        session.change(uri, 2, replacing((0, 0), (0, 0), f"import torch\n{CALL}()\n"))
        assert codes(session.diagnostics(uri, 2)) == ["NPU101", "NPU101"]
        session.close(uri)


def test_statements_are_remembered_of_few_documents() -> None:
    around = ProjectContextProvider().look(None, None)
    analyser = Analyser()
    opened = []
    for number in range(30):
        view = View.of_file(f"untitled:{number}", Document(f"{number}.py", BASE, 1, Kind.PYTHON))
        opened.append(OpenDocument(f"untitled:{number}", None, view))
    for each in [*opened, *opened[:3]]:
        found = analyser.run(Task(each, each.view, around, ClientTerms()), lambda: False)
        assert found is not None and len(found.findings) == 1
    remembered = [bool(each.statements.segments) for each in opened]
    assert sum(remembered) == 20 and all(remembered[:3]) and not any(remembered[3:13])


def test_shapes_are_named_of_documents_that_are_no_longer_remembered() -> None:
    around = ProjectContextProvider().look(None, None)
    analyser = Analyser()
    text = "import torch\n\n\ndef f(x: torch.Tensor):\n    y = torch.zeros(2, 3)\n    return y\n"
    analysed = []
    for number in range(24):
        view = View.of_file(f"untitled:{number}", Document(f"{number}.py", text, 1, Kind.PYTHON))
        opened = OpenDocument(f"untitled:{number}", None, view)
        task = Task(opened, view, around, ClientTerms())
        found = analyser.run(task, lambda: False)
        assert found is not None
        analysed.append((task, found))
    for task, found in (analysed[0], analysed[-1], analysed[1]):
        whole = analyser.complete(task, found, lambda: False)
        assert whole is not None and whole.serial == found.serial
        assert [hint.shape for hint in whole.shapes.hints if hint.shape] == ["[2, 3]"]
    assert sum(bool(task.opened.statements.segments) for task, _ in analysed) == 20
    assert analyser.complete(*analysed[3], lambda: True) is None


def test_shapes_of_a_run_stand_behind_each_name_of_a_line() -> None:
    around = ProjectContextProvider().look(None, None)
    text = (
        "import torch\n\ndef f():\n    y = torch.zeros(2, 3); y = y + 1\n"
        "    z = g(y)\n    return z\n"
    )
    view = View.of_file("untitled:1", Document("1.py", text, 1, Kind.PYTHON))
    opened = OpenDocument("untitled:1", None, view)
    analyser, task = Analyser(), Task(opened, view, around, ClientTerms())
    found = analyser.run(task, lambda: False)
    assert found is not None
    whole = analyser.complete(task, found, lambda: False)
    assert whole is not None
    seen: ShapesByName = {(4, "y"): ((2, 3),), (5, "z"): ((7,),)}
    line_4 = Span(text.index("y ="), text.index("\n    z"))
    assert [hint.label for hint in hints(whole, "untitled:1", line_4, seen)] == [
        ": [2, 3] = [2, 3]",
        ": [2, 3] = [2, 3]",
    ]
    assert not [*of_run(whole, line_4, seen)]
    behind = Span(line_4.end, len(text))
    assert [hint.label for hint in of_run(whole, behind, seen)] == [": [7]"]


# Quick fixes


def test_a_quick_fix_repairs(session: LspClient, uri: str) -> None:
    text = f"import torch\n\nname = '😀'; {CALL}()\n"
    session.open(uri, text)
    (found,) = session.diagnostics(uri, 1)
    column = found["range"]["start"]["character"] + 3
    actions = session.code_actions(uri, (2, column), (2, column), only=["quickfix"])
    assert {action["kind"] for action in actions} == {"quickfix"}
    actions = [action for action in actions if "Use" in action["title"]]
    assert [action["isPreferred"] for action in actions] == [True] + [False] * (len(actions) - 1)
    assert all(action["diagnostics"] == [found] for action in actions)
    assert apply(text, actions[0]["edit"]["changes"][uri]) == (
        "import torch\nimport torch_npu  # noqa: F401\n\nname = '😀'; torch.npu.synchronize()\n"
    )


def test_code_actions_are_for_the_range_and_the_kind(session: LspClient, uri: str) -> None:
    session.open(uri, f"import torch\n{CALL}()\nx = 1\n{CALL}()\n")
    everything = session.code_actions(uri, (0, 0), (9, 0), only=["quickfix"])
    one = session.code_actions(uri, (1, 0), (1, 0), only=["quickfix"])
    for_file = "Suppress NPU101 in this file"
    titles = [a["title"] for a in one if "edit" in a and a["title"] != for_file]
    found = sorted(a["title"] for a in everything if "edit" in a)
    assert found == sorted([*titles, *titles, for_file])
    assert session.code_actions(uri, (2, 0), (2, 5), only=["quickfix"]) == []
    kinds = {a["kind"] for a in session.code_actions(uri, (0, 0), (9, 0))}
    assert kinds == {"quickfix", "refactor.rewrite", "npulens.explain"}
    assert session.code_actions(uri, (0, 0), (9, 0), only=["source.organizeImports"]) is None
    assert session.code_actions("file:///nowhere/unknown.py", (0, 0), (9, 0)) is None


def test_code_actions_wait_for_the_text_they_are_for(session: LspClient, uri: str) -> None:
    session.open(uri, "import torch\n")
    session.change(uri, 2, replacing((1, 0), (1, 0), f"{CALL}()\n"))
    assert session.code_actions(uri, (1, 2), (1, 2))


def test_edits_name_their_version_where_the_client_can(fresh: LspClient, uri: str) -> None:
    fresh.initialize(capabilities={"workspace": {"workspaceEdit": {"documentChanges": True}}})
    fresh.open(uri, f"import torch\n{CALL}()\n", version=5)
    edit = fresh.code_actions(uri, (1, 2), (1, 2))[0]["edit"]
    assert "changes" not in edit
    (change,) = edit["documentChanges"]
    assert change["textDocument"] == {"uri": uri, "version": 5}
    assert change["edits"]


# Language and configuration


@pytest.mark.parametrize(
    ("options", "chinese"),
    [
        ({"locale": "zh-cn"}, True),
        ({"locale": "de"}, False),
        ({"locale": "zh-cn", "initializationOptions": {"language": "en"}}, False),
        ({"locale": "en", "initializationOptions": {"language": "zh"}}, True),
        ({"locale": "zh-tw", "initializationOptions": ["nonsense"]}, True),
        ({"initializationOptions": {"language": ["zh"]}}, False),
    ],
)
def test_language(fresh: LspClient, uri: str, options: Message, chinese: bool) -> None:
    fresh.initialize(**options)
    fresh.open(uri, f"import torch\n{CALL}()\n")
    (found,) = fresh.diagnostics(uri, 1)
    (title, *_) = [action["title"] for action in fresh.code_actions(uri, (1, 0), (1, 0))]
    assert (re.search("[一-龥]", found["message"]) is not None) == chinese
    assert (re.search("[一-龥]", title) is not None) == chinese


def test_configuration_is_read_on_open_and_save(session: LspClient, tmp_path: Path) -> None:
    configuration = tmp_path / "npulens.toml"
    configuration.write_text("ignore = 1\n", encoding="utf-8")
    uri = (tmp_path / "train.py").as_uri()
    session.open(uri, f"import torch\n{CALL}()\n")
    assert codes(session.diagnostics(uri, 1)) == ["NPU101"]
    assert any("npulens.toml" in entry["message"] for entry in session.logged)

    configuration.write_text('ignore = ["NPU101"]\nlanguage = "zh"\n', encoding="utf-8")
    session.change(uri, 2, replacing((1, 0), (1, 0), "x = 1\n"))
    assert codes(session.diagnostics(uri, 2)) == ["NPU101"]
    session.published.clear()
    session.save(uri)
    assert session.diagnostics(uri, 2) == []

    configuration.write_text('language = "zh"\n', encoding="utf-8")
    session.published.clear()
    session.save(uri)
    (found,) = session.diagnostics(uri, 2)
    assert re.search("[一-龥]", found["message"])


# Robustness


def test_nonsense_does_not_end_the_server(fresh: LspClient, uri: str) -> None:
    fresh.initialize()
    fresh.open(uri, BASE)
    for params in ({}, {"textDocument": {"uri": uri}}, [1], 7, None, {"textDocument": None}):
        for method in ("didOpen", "didChange", "didSave", "didClose", "nothing"):
            fresh.notify(f"textDocument/{method}", params if method != "didClose" else {"x": 1})
    nonsense: list[object] = [{}, [1], None, {"textDocument": {"uri": uri}, "range": 3}]
    for given in nonsense:
        answer = fresh.response(fresh.start_request("textDocument/codeAction", given))
        assert answer["error"]["code"] in (-32602, -32603)
    unknown = fresh.response(fresh.start_request("textDocument/unknown", {"a": 1}))
    assert unknown["error"]["code"] == -32601
    for message in ([1, 2], {"a": 1}, 7, None, "text", {"jsonrpc": "1.0", "method": "exit"}):
        fresh.send(message)
    fresh.send_bytes(b"Content-Length: 3\r\n\r\n{a}X-Header: 1\r\nContent-Length: 2\r\n\r\n{}")
    fresh.change("file:///nowhere/never_opened.py", 2, replacing((0, 0), (0, 0), "x"))
    fresh.change(uri, 2, replacing((900, 900), (901, 900), f"{CALL}()\n"))
    fresh.change(uri, 3, replacing((5, 9), (4, 0), ""))
    fresh.change(uri, 4, replacing((0, 0), (0, 0), "'\ud800'\n"))
    # Half a surrogate pair is no Python; the rest of the text is where it should be.
    assert codes(fresh.diagnostics(uri, 4)) == ["NPU001", "NPU101", "NPU101"]
    assert fresh.logged
    assert fresh.shut_down() == 0


def test_each_request_has_one_answer(uri: str) -> None:
    with LspClient(server_with("time.sleep(0.3)")) as client:
        client.initialize()
        client.open(uri, BASE)
        params = {
            "textDocument": {"uri": uri},
            "range": range_of((0, 0), (0, 0)),
            "context": {"diagnostics": []},
        }
        cancelled = client.start_request("textDocument/codeAction", params)
        client.notify("$/cancelRequest", {"id": cancelled})
        outdated = client.start_request("textDocument/codeAction", params)
        client.change(uri, 2, replacing((0, 0), (0, 0), "\n"))
        current = client.start_request("textDocument/codeAction", params)
        assert client.response(cancelled)["error"]["code"] == -32800
        assert client.response(outdated)["result"] is None
        assert not client.published
        assert client.response(current)["result"] == []
        assert [sent["version"] for sent in client.published] == [2]
        assert client.request("shutdown", None) is None
        late = client.response(client.start_request("textDocument/codeAction", params))
        assert late["error"]["code"] == -32600


def test_exit_codes() -> None:
    with LspClient(is_forked=False) as client:
        client.initialize()
        assert client.shut_down() == 0
    with LspClient(is_forked=False) as client:
        client.initialize()
        client.notify("exit", None)
        assert client.process.wait(10) == 1


def test_the_server_ends_with_its_client() -> None:
    for shut_down in (False, True):
        with LspClient(is_forked=False) as client:
            client.initialize()
            client.open(new_uri(), BASE * 2000)  # work is under way
            if shut_down:
                client.request("shutdown", None)
            assert client.process.stdin is not None
            client.process.stdin.close()
            assert client.process.wait(10) == (0 if shut_down else 1)


def server_with(statement: str) -> list[str]:
    """The command of a server that runs a statement before each analysis of `document`."""
    program = f"""
import time
import npulens.lsp.session.engine as engine
judge = engine.judge
def other(document, *given):
    {statement}
    return judge(document, *given)
engine.judge = other
from npulens.lsp.transports import serve_stdio
serve_stdio()
"""
    return [sys.executable, "-c", program]


def test_a_print_does_not_reach_the_client(uri: str) -> None:
    with LspClient(server_with("print('stray')"), stderr=subprocess.DEVNULL) as client:
        client.initialize()
        client.open(uri, BASE)
        assert codes(client.diagnostics(uri, 1)) == ["NPU101"]
        assert client.shut_down() == 0


def test_a_failing_analysis_is_logged_and_leaves_no_old_diagnostics(uri: str) -> None:
    statement = "if 'boom' in document.text: raise RecursionError('boom')"
    with LspClient(server_with(statement)) as client:
        client.initialize()
        client.open(uri, BASE)
        assert codes(client.diagnostics(uri, 1)) == ["NPU101"]
        client.change(uri, 2, replacing((0, 0), (0, 0), "boom\n"))
        (shown,) = client.diagnostics(uri, 2)
        assert shown["code"] == "NPU003" and "nothing of this text was checked" in shown["message"]
        client.wait(lambda: bool(client.logged))
        (entry,) = client.logged
        assert uri in entry["message"] and "RecursionError" in entry["message"]
        client.change(uri, 3, replacing((0, 0), (1, 0), ""))
        assert codes(client.diagnostics(uri, 3)) == ["NPU101"]


# The scheduler


class Bench:
    """Slots whose work is held up until the test lets it go."""

    def __init__(self) -> None:
        self.slots = LatestWins[str, int, int](self._work, self._deliver, self._failed)
        self.gate = threading.Semaphore(0)
        self.started: list[int] = []
        self.delivered: list[tuple[str, int]] = []
        self.errors: list[str] = []

    def _work(self, value: int, is_superseded: IsSuperseded) -> int | None:
        self.started.append(value)
        self.gate.acquire()
        if value < 0:
            raise ValueError(value)
        return None if value == 99 and is_superseded() else value * 10

    def _deliver(self, key: str, result: int) -> None:
        self.delivered.append((key, result))

    def _failed(self, key: str, error: Exception) -> None:
        self.errors.append(f"{key}: {error}")

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            await asyncio.sleep(0.001)

    def waiter(self, key: str) -> "asyncio.Future[int | None]":
        return asyncio.ensure_future(self.slots.latest(key))


def play(scene: Callable[[], Coroutine[None, None, None]]) -> None:
    async def within_time() -> None:
        await asyncio.wait_for(scene(), 10)

    asyncio.run(within_time())


def test_the_latest_input_wins() -> None:
    async def scene() -> None:
        bench = Bench()
        bench.slots.submit("a", 1)
        first = bench.waiter("a")
        await asyncio.sleep(0)
        await bench.until(lambda: bench.started == [1])
        for value in (2, 3, 4):
            bench.slots.submit("a", value)
        assert await first is None  # at once, while the work is still held up
        last = bench.waiter("a")
        bench.gate.release(2)
        assert await last == 40
        assert bench.started == [1, 4]
        assert bench.delivered == [("a", 40)]
        assert await bench.slots.latest("a") == 40
        bench.slots.stop()

    play(scene)


def test_what_was_touched_last_is_served_first() -> None:
    async def scene() -> None:
        bench = Bench()
        bench.slots.submit("a", 1)
        await bench.until(lambda: bench.started == [1])
        for key, value in (("b", 2), ("c", 3), ("b", 4)):
            bench.slots.submit(key, value)
        bench.gate.release(3)
        await bench.until(lambda: len(bench.delivered) == 3)
        assert bench.delivered == [("a", 10), ("b", 40), ("c", 30)]
        bench.slots.stop()

    play(scene)


def test_a_failure_is_told_and_passes() -> None:
    async def scene() -> None:
        bench = Bench()
        bench.gate.release(9)
        bench.slots.submit("a", -1)
        assert await bench.slots.latest("a") is None
        bench.slots.submit("a", 2)
        assert await bench.slots.latest("a") == 20
        assert bench.errors == ["a: -1"]
        bench.slots.stop()

    play(scene)


def test_nothing_is_delivered_for_a_forgotten_key() -> None:
    async def scene() -> None:
        bench = Bench()
        bench.slots.submit("a", 99)
        bench.slots.submit("b", 1)
        waiting = bench.waiter("a")
        await asyncio.sleep(0)
        await bench.until(lambda: len(bench.started) == 1)
        bench.slots.forget("a")
        bench.gate.release(9)
        assert await waiting is None
        assert await bench.slots.latest("a") is None
        assert await bench.slots.latest("b") == 10
        assert bench.delivered == [("b", 10)]
        bench.slots.stop()

    play(scene)
