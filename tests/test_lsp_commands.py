"""Commands through the real server process, with progress and cancellation."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from lsp_client import Answer, LspClient, Message, applied_edit, range_of

CALL = "torch.cuda.synchronize"
TEXT = f"import torch\n{CALL}()\n"
FIXED = "import torch\nimport torch_npu  # noqa: F401\ntorch.npu.synchronize()\n"
CAPABILITIES = {
    "window": {"workDoneProgress": True},
    "workspace": {
        "workspaceEdit": {
            "documentChanges": True,
            "changeAnnotationSupport": {"groupsOnLabel": True},
            "metadataSupport": True,
        }
    },
}


class Editor:
    """An editor that applies what it is asked to, and keeps that."""

    def __init__(self, client: LspClient, folder: Path) -> None:
        self.client = client
        self.edits: list[Message] = []
        self.metadata: object = None
        self.agrees = True
        client.answers["workspace/applyEdit"] = self._apply
        client.initialize(capabilities=CAPABILITIES, rootUri=folder.as_uri())

    def _apply(self, params: Message) -> Message:
        self.edits.append(params["edit"])
        self.metadata = params.get("metadata")
        return {"applied": self.agrees}

    def run(self, command: str, *arguments: object, **more: object) -> object:
        return self.client.request(
            "workspace/executeCommand",
            {"command": f"npulens.{command}", "arguments": [*arguments], **more},
        )


@pytest.fixture
def editor(tmp_path: Path) -> Iterator[Editor]:
    with LspClient() as client:
        yield Editor(client, tmp_path)


def test_a_file_is_migrated(editor: Editor) -> None:
    editor.client.open("untitled:1", TEXT, version=3)
    assert editor.run("migrateFile", "untitled:1") == {"fixes": 1, "applied": True}
    (edit,) = editor.edits
    assert applied_edit(TEXT, edit) == FIXED
    assert edit["documentChanges"][0]["textDocument"]["version"] == 3
    assert "changeAnnotations" not in edit


def test_a_file_is_migrated_with_what_has_to_be_read(editor: Editor) -> None:
    text = 'import os\nos.environ["PYTORCH_CUDA_ALLOC_CONF"] = x\n'
    editor.client.open("untitled:1", text)
    assert editor.run("migrateFile", "untitled:1") == {"fixes": 0, "applied": False}
    assert not editor.edits
    assert editor.run("migrateFile", "untitled:1", {"unsafe": True}) == {
        "fixes": 1,
        "applied": True,
    }
    assert "changeAnnotations" not in editor.edits[0] and editor.metadata is None


def test_the_user_may_not_want_it(editor: Editor) -> None:
    editor.agrees = False
    editor.client.open("untitled:1", TEXT)
    assert editor.run("migrateFile", "untitled:1") == {"fixes": 1, "applied": False}


def test_a_workspace_is_migrated_after_a_preview(editor: Editor, tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.py").write_text(TEXT)
    (tmp_path / "d.py").write_text("x = 1\n")
    # What the editor has counts, and not what is on the disk.
    editor.client.open((tmp_path / "b.py").as_uri(), "\n" + TEXT, version=7)
    assert editor.run("migrateWorkspace") == {"files": 3, "fixes": 3, "applied": True}
    (edit,) = editor.edits
    assert editor.metadata == {"isRefactoring": True}
    assert not any(each.get("needsConfirmation") for each in edit["changeAnnotations"].values())
    versions = {}
    for change in edit["documentChanges"]:
        name = change["textDocument"]["uri"][-4:]
        versions[name] = change["textDocument"]["version"]
        before = "\n" + TEXT if name == "b.py" else TEXT
        assert applied_edit(before, {"documentChanges": [change]}).lstrip() == FIXED
    assert versions == {"a.py": None, "b.py": 7, "c.py": None}


TO_BE_READ = 'import os\nos.environ["PYTORCH_CUDA_ALLOC_CONF"] = x\n'
SEVERAL = f"import torch\n\n\ndef f(x):\n    {CALL}()\n    return x.cuda()\n"


def test_each_change_of_a_preview_says_what_it_is_for(editor: Editor, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(SEVERAL.replace("    return", "    y = 1\n    return"))
    (tmp_path / "b.py").write_text(TO_BE_READ + SEVERAL)
    editor.run("migrateWorkspace", {"unsafe": True})
    (edit,) = editor.edits
    shown = {}
    for change in edit["documentChanges"]:
        labels = (edit["changeAnnotations"][each["annotationId"]] for each in change["edits"])
        shown[change["textDocument"]["uri"][-4:]] = [each["label"] for each in labels]
    imported = "import that the other changes of this file need"
    assert shown["a.py"] == [imported, "NPU101 cuda-api", "NPU105 cuda-method"]
    unsafe, *others = shown["b.py"]
    assert unsafe.endswith(" (unsafe: review the result)")
    assert others == [imported, *["NPU101 cuda-api, NPU105 cuda-method"] * 2]


def test_a_preview_has_a_row_for_each_line(editor: Editor, tmp_path: Path) -> None:
    """With what differs in it; whole lines and several ones end out of sight."""
    body = '    a = x.to(device="cuda:0", non_blocking=True)\n    y = 1\n    return a, x.cuda()\n'
    text = f"import torch\n\n\ndef f(x):\n    x = x.cuda()\n{body}"
    (tmp_path / "a.py").write_text(text)
    editor.run("migrateWorkspace")
    (edit,) = editor.edits
    (change,) = edit["documentChanges"]
    _, *edits = change["edits"]
    assert [(each["range"]["start"], each["newText"]) for each in edits] == [
        ({"line": 4, "character": 10}, "npu"),
        ({"line": 5, "character": 21}, "npu"),
        ({"line": 7, "character": 16}, "npu"),
    ]
    assert all(each["range"]["end"]["line"] == each["range"]["start"]["line"] for each in edits)
    after = applied_edit(text, edit).replace("import torch_npu  # noqa: F401\n", "")
    assert after == text.replace("cuda", "npu")


KEPT = {
    "utf8.py": f"# \u6a21\n{TEXT}".encode(),
    "mark.py": f"\ufeff{TEXT}".encode(),
    "windows.py": TEXT.replace("\n", "\r\n").encode(),
}
NOT_KEPT = {
    "gbk.py": f"# -*- coding: gbk -*-\n# \u6a21\n{TEXT}".encode("gbk"),
    "latin.py": f"# -*- coding: latin-1 -*-\n# \u00e9\n{TEXT}".encode("latin-1"),
    "other.py": f"# -*- coding: latin-1 -*-\n# \u00e9\n{TEXT}".encode(),
    "returns.py": TEXT.replace("\n", "\r").encode(),
}


def test_what_an_editor_would_not_keep_is_left_out(editor: Editor, tmp_path: Path) -> None:
    """Each byte that is no UTF-8 would be lost, in lines that no preview shows."""
    for name, data in (KEPT | NOT_KEPT).items():
        (tmp_path / name).write_bytes(data)
    assert editor.run("migrateWorkspace") == {"files": 3, "fixes": 3, "applied": True}
    (edit,) = editor.edits
    names = {Path(each["textDocument"]["uri"]).name for each in edit["documentChanges"]}
    assert names == set(KEPT)
    (message,) = editor.client.shown
    assert ", ".join(sorted(NOT_KEPT)) in message["message"]


def test_the_user_takes_a_part_of_the_preview(editor: Editor, tmp_path: Path) -> None:
    """What the server knows is what the editor tells, and not what it had offered."""
    client = editor.client
    uris = {name: (tmp_path / f"{name}.py").as_uri() for name in "abcd"}
    for name in uris:
        (tmp_path / f"{name}.py").write_text(SEVERAL)
    client.open(uris["a"], SEVERAL)
    client.open(uris["b"], SEVERAL)
    assert len(client.diagnostics(uris["a"], 1)) == len(client.diagnostics(uris["b"], 1)) == 2

    def take_some(params: Message) -> Message:
        """As an editor does: changes to open documents are told, other files are opened first."""
        taken = [
            change
            for change in params["edit"]["documentChanges"]
            if change["textDocument"]["uri"] in (uris["a"], uris["c"])
        ]
        for change in taken:
            uri = change["textDocument"]["uri"]
            if uri == uris["c"]:
                client.open(uri, SEVERAL)
            edits = [{"range": e["range"], "text": e["newText"]} for e in change["edits"]]
            client.change(uri, 2, *reversed(edits))
        return {"applied": True}

    client.answers["workspace/applyEdit"] = take_some
    assert editor.run("migrateWorkspace") == {"files": 4, "fixes": 8, "applied": True}
    assert client.diagnostics(uris["a"], 2) == client.diagnostics(uris["c"], 2) == []
    client.change(uris["b"], 2, {"range": range_of((0, 0), (0, 0)), "text": "\n"})
    assert [d["range"]["start"]["line"] for d in client.diagnostics(uris["b"], 2)] == [5, 6]
    # The rest is on offer again, in the text that the editor has now.
    client.answers["workspace/applyEdit"] = lambda params: editor._apply(params)
    assert editor.run("migrateWorkspace") == {"files": 2, "fixes": 4, "applied": True}
    (edit,) = editor.edits
    changed = {c["textDocument"]["uri"]: c for c in edit["documentChanges"]}
    assert set(changed) == {uris["b"], uris["d"]}
    assert changed[uris["b"]]["textDocument"]["version"] == 2
    after = applied_edit("\n" + SEVERAL, {"documentChanges": [changed[uris["b"]]]})
    assert (
        "import torch_npu  # noqa: F401" in after and "torch.npu" in after and "cuda" not in after
    )


def test_progress_is_shown(editor: Editor, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(TEXT)
    editor.run("migrateWorkspace", workDoneToken="mine")
    kinds = [p["value"]["kind"] for p in editor.client.progress if p["token"] == "mine"]
    assert kinds[0] == "begin" and kinds[-1] == "end" and "report" in kinds
    editor.client.progress.clear()
    editor.run("migrateWorkspace")
    assert any(a["method"] == "window/workDoneProgress/create" for a in editor.client.asked)
    assert {p["token"] for p in editor.client.progress} - {"mine"}


@pytest.mark.family(3)
@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("migrateFile", ["untitled:1"]),
        ("migrateWorkspace", []),
        ("writeReport", ["REPORT"]),
        ("rankShapes", []),
        ("restartIndex", []),
        ("addRunTimeMigration", ["untitled:1"]),
        ("removeRunTimeMigration", ["untitled:1"]),
    ],
)
def test_each_command_shows_progress(
    editor: Editor, tmp_path: Path, command: str, arguments: list[str]
) -> None:
    (tmp_path / "a.py").write_text(TEXT)
    editor.client.open("untitled:1", TEXT)
    report = (tmp_path / "report.json").as_uri()
    given = [report if each == "REPORT" else each for each in arguments]
    editor.run(command, *given, workDoneToken="mine")
    kinds = [p["value"]["kind"] for p in editor.client.progress if p["token"] == "mine"]
    assert [kinds[0], kinds[-1]] == ["begin", "end"] and set(kinds[1:-1]) <= {"report"}


@pytest.mark.parametrize("by_progress", [True, False])
def test_long_work_is_cancelled(editor: Editor, tmp_path: Path, by_progress: bool) -> None:
    body = "".join(f"def f{number}(x):\n    return x.cuda()\n\n\n" for number in range(40))
    for number in range(60):
        (tmp_path / f"module_{number}.py").write_text(f"import torch\n\n\n{body}")
    client = editor.client
    params = {"command": "npulens.migrateWorkspace", "arguments": [], "workDoneToken": "t"}
    request = client.start_request("workspace/executeCommand", params)
    client.wait(lambda: any(p["value"]["kind"] == "begin" for p in client.progress))
    if by_progress:
        client.notify("window/workDoneProgress/cancel", {"token": "t"})
    else:
        client.notify("$/cancelRequest", {"id": request})
    assert client.response(request)["error"]["code"] == -32800
    client.wait(lambda: any(p["value"]["kind"] == "end" for p in client.progress))
    assert not editor.edits
    assert client.shut_down() == 0


def test_a_report_is_written(editor: Editor, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(TEXT)
    target = tmp_path / "report.json"
    answer = editor.run("writeReport", target.as_uri())
    assert answer == {"findings": 1, "path": str(target)}
    (record,) = json.loads(target.read_text(encoding="utf-8"))
    assert (record["code"], record["line"]) == ("NPU101", 2)


def test_the_index_is_read_again(editor: Editor, tmp_path: Path) -> None:
    uri = (tmp_path / "a.py").as_uri()
    editor.client.open(uri, TEXT)
    assert editor.client.diagnostics(uri, 1)
    (tmp_path / "npulens.toml").write_text('ignore = ["NPU101"]\n')
    editor.client.published.clear()
    assert editor.run("restartIndex") is None
    assert editor.client.diagnostics(uri, 1) == []


def test_run_time_migration_is_added_and_removed(editor: Editor) -> None:
    shim = "from torch_npu.contrib import transfer_to_npu  # noqa: F401\n"
    editor.client.open("untitled:1", TEXT)
    assert editor.run("addRunTimeMigration", "untitled:1") is True
    added = applied_edit(TEXT, editor.edits[0])
    assert added == TEXT.replace("import torch\n", f"import torch\n{shim}")
    editor.client.change("untitled:1", 2, {"text": added})
    assert editor.run("addRunTimeMigration", "untitled:1") is False
    assert editor.run("removeRunTimeMigration", "untitled:1") is True
    assert applied_edit(added, editor.edits[1]) == TEXT


BAD_ANSWERS: list[Message] = [
    *({"result": None}, {"result": 7}, {"result": []}, {"result": {"applied": "perhaps"}}),
    *({"error": {"code": 1, "message": "no"}}, {"error": None}, {"error": []}, {}),
]


@pytest.mark.family(3)
@pytest.mark.parametrize("said", BAD_ANSWERS, ids=str)
def test_a_client_that_answers_nonsense(editor: Editor, said: Message) -> None:
    client = editor.client
    for method in ("workspace/applyEdit", "window/workDoneProgress/create"):
        client.answers[method] = lambda _: Answer(said)
    client.open("untitled:1", TEXT)
    answer = editor.run("migrateFile", "untitled:1")
    assert isinstance(answer, dict) and answer["fixes"] == 1
    assert answer["applied"] in (False, "perhaps" in str(said))
    assert not client.refused
    assert client.shut_down() == 0


WRONG = [
    ("migrateFile", []),
    ("migrateFile", [7]),
    ("migrateFile", ["file:///nowhere/closed.py"]),
    ("writeReport", ["http://example.org/report"]),
    ("writeReport", ["file:///nowhere/at/all/report.json"]),
    ("explainRule", ["NPU999"]),
    ("applyAction", [{}]),
    ("applyAction", ["x"]),
    ("nothing", []),
]


def test_wrong_use(editor: Editor) -> None:
    for command, arguments in WRONG:
        params = {"command": f"npulens.{command}", "arguments": arguments}
        request = editor.client.start_request("workspace/executeCommand", params)
        assert editor.client.response(request)["error"]["code"] == -32602, command
    assert editor.client.shut_down() == 0
