"""The whole workspace in the background: processes, progress, what is kept and where."""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lsp_client import LspClient, Message, applied_edit
from npulens.workspace.runs import cache as cache_module
from npulens.workspace.runs.background import check_in_background

CALL = "torch.cuda.synchronize"
TEXT = f"import torch\n{CALL}()\n"
PULLS = {"textDocument": {"diagnostic": {}}}
WATCHES = {**PULLS, "workspace": {"didChangeWatchedFiles": {"dynamicRegistration": True}}}
MANY = 70
"""So many files are checked by processes."""


@pytest.fixture
def client() -> Iterator[LspClient]:
    with LspClient() as fresh:
        yield fresh


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    for number in range(MANY):
        (folder / f"module_{number:03}.py").write_text(TEXT)
    return folder


def pulled(client: LspClient, known: dict[str, str] | None = None, **more: Any) -> list[Message]:
    previous = [{"uri": uri, "value": value} for uri, value in (known or {}).items()]
    params = {"previousResultIds": previous, **more}
    answer = client.response(client.start_request("workspace/diagnostic", params), 300)
    reports: list[Message] = answer["result"]["items"]
    return reports


def found(folder: Path, **options: Any) -> dict[str, list[str]]:
    """What a new server finds in each file."""
    with LspClient() as client:
        client.initialize(capabilities=PULLS, rootUri=folder.as_uri(), **options)
        reports = pulled(client)
        assert client.shut_down() == 0
    return {Path(r["uri"]).name: [d["code"] for d in r["items"]] for r in reports}


EXPECTED = {f"module_{number:03}.py": ["NPU101"] for number in range(MANY)}


# What is kept on disk


def state_of(folder: Path) -> Path:
    (state,) = (folder / ".npulens_cache").glob("*.json")
    return state


def entries(state: Path) -> dict[str, Any]:
    known: dict[str, Any] = json.loads(state.read_bytes().partition(b"\n")[2])
    return known


def write(state: Path, known: Any) -> None:
    body = json.dumps(known).encode()
    state.write_bytes(cache_module._checksum(body) + b"\n" + body)


def test_the_next_server_knows_what_the_last_one_found(project: Path) -> None:
    assert found(project) == EXPECTED
    known = entries(state_of(project))
    assert len(known) == MANY
    # Told apart from a new check by what only the cache says.
    known[str(project / "module_007.py")][1][0][0] = "NPU105"
    known[str(project / "module_007.py")][1][0][2]["call"] = "x"
    write(state_of(project), known)
    (project / "module_008.py").write_text("x = 1\n")
    expected = {**EXPECTED, "module_007.py": ["NPU105"]}
    del expected["module_008.py"]
    assert found(project) == expected


def span(start: Any, end: Any) -> Callable[[list[Any]], None]:
    def change(record: list[Any]) -> None:
        record[1] = [start, end]

    return change


def item(index: int, value: Any) -> Callable[[list[Any]], None]:
    def change(record: list[Any]) -> None:
        record[index] = value

    return change


HOSTILE: list[Callable[[list[Any]], None]] = [
    *(span(0, 10**9), span(-5, 3), span(9, 2), span("0", "3"), span(0.5, 1.5), span(True, 3)),
    *(span(2**70, 2**71), span(None, None), span([], {})),
    *(item(0, "NPU999"), item(0, ["NPU101"]), item(2, []), item(2, {}), item(2, None)),
    *(item(3, [1, 2]), item(3, "x"), item(4, [[]]), item(4, 7), item(5, "deadly"), item(5, [1])),
    *(item(6, [[[0, 99999], ["a", "b"]]]), item(6, [[[0, 1], [1, 2]]]), item(6, "ab")),
    lambda record: record.pop(),
    lambda record: record.append(1),
    lambda record: record[4][0].__setitem__(0, [3, 4]),
    lambda record: record[4][0].__setitem__(2, [[[0, 99999], "x"]]),
    lambda record: record[4][0].__setitem__(2, [[[0, 1], 7]]),
]


def test_a_cache_that_somebody_has_made_up_does_no_harm(project: Path) -> None:
    found(project)
    state = state_of(project)
    known = entries(state)
    paths = sorted(known)
    for path, change in zip(paths, HOSTILE, strict=False):
        change(known[path][1][0])
    write(state, known)
    assert len(HOSTILE) < MANY
    assert found(project) == EXPECTED


@pytest.mark.family(2)
@pytest.mark.parametrize("data", [b"", b"{}", b"\n", b"x" * 100, b"\0" * 5000])
def test_a_broken_cache_is_none(project: Path, data: bytes) -> None:
    found(project)
    state_of(project).write_bytes(data)
    assert found(project) == EXPECTED
    assert len(entries(state_of(project))) == MANY


def test_nothing_is_written_where_the_user_does_not_want_it(project: Path) -> None:
    assert found(project, initializationOptions={"cache": False}) == EXPECTED
    assert not (project / ".npulens_cache").exists()


def test_nothing_is_written_through_a_link(project: Path, tmp_path: Path) -> None:
    """A project from anywhere may bring one along that leads to the user's own files."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for number in range(12):
        (elsewhere / f"{number}.json").write_text("mine")
    (project / ".npulens_cache").symlink_to(elsewhere, target_is_directory=True)
    assert found(project) == EXPECTED
    assert sorted(each.name for each in elsewhere.iterdir()) == sorted(
        f"{number}.json" for number in range(12)
    )


def test_a_folder_that_cannot_be_made(project: Path) -> None:
    (project / ".npulens_cache").write_text("a file")
    assert found(project) == EXPECTED
    assert (project / ".npulens_cache").read_text() == "a file"


def test_what_was_found_before_it_was_cancelled_is_kept(project: Path) -> None:
    for number in range(MANY, 400):
        (project / f"module_{number:03}.py").write_text(TEXT * 30)
    with LspClient() as client:
        client.initialize(capabilities=PULLS, rootUri=project.as_uri())
        params = {"previousResultIds": [], "workDoneToken": "t"}
        request = client.start_request("workspace/diagnostic", params)
        client.wait(lambda: any(p["value"].get("percentage", 0) > 10 for p in client.progress))
        client.notify("$/cancelRequest", {"id": request})
        assert client.response(request)["error"]["code"] == -32800
        until(lambda: any((project / ".npulens_cache").glob("*.json")))
        assert client.shut_down() == 0
    assert len(entries(state_of(project))) >= 40


def until(condition: Callable[[], bool]) -> None:
    ends = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.05)


# Progress, priority


def test_progress_is_shown(client: LspClient, project: Path) -> None:
    offered = {**PULLS, "window": {"workDoneProgress": True}}
    client.initialize(capabilities=offered, rootUri=project.as_uri())
    known = {report["uri"]: report["resultId"] for report in pulled(client)}
    assert len(known) == MANY
    values = [each["value"] for each in client.progress]
    assert [values[0]["kind"], values[-1]["kind"]] == ["begin", "end"]
    assert values[0]["title"] == "Checking the workspace" and values[0]["cancellable"]
    percentages = [value["percentage"] for value in values[1:-1]]
    assert percentages == sorted(percentages) and percentages[-1] > 50
    # For what is quickly done, none that nobody asked for.
    client.progress.clear()
    (project / "module_000.py").write_text(TEXT * 2)
    assert sum(r["kind"] == "full" for r in pulled(client, known)) == 1
    assert not client.progress
    pulled(client, known, workDoneToken="mine")
    kinds = [p["value"]["kind"] for p in client.progress if p["token"] == "mine"]
    assert kinds[0] == "begin" and kinds[-1] == "end"


def test_the_user_stops_it(client: LspClient, project: Path) -> None:
    for number in range(MANY, 300):
        (project / f"module_{number:03}.py").write_text(TEXT * 30)
    client.initialize(capabilities=PULLS, rootUri=project.as_uri())
    params = {"previousResultIds": [], "workDoneToken": "t"}
    request = client.start_request("workspace/diagnostic", params)
    client.wait(lambda: any(p["value"]["kind"] == "begin" for p in client.progress))
    client.notify("window/workDoneProgress/cancel", {"token": "t"})
    assert client.response(request)["error"]["code"] == -32800
    assert client.progress[-1]["value"]["kind"] == "end"


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks processes up in /proc")
def test_the_processes_yield_to_others(client: LspClient, project: Path) -> None:
    for number in range(MANY, 300):
        (project / f"module_{number:03}.py").write_text(TEXT * 30)
    client.initialize(capabilities=PULLS, rootUri=project.as_uri())
    client.start_request("workspace/diagnostic", {"previousResultIds": []})
    own = os.getpriority(os.PRIO_PROCESS, client.process.pid)
    until(lambda: any(n == min(own + 10, 19) for n in priorities(client.process.pid)))


def priorities(process: int) -> list[int]:
    tasks = Path(f"/proc/{process}/task").glob("*/children")
    children = [int(child) for task in tasks for child in task.read_text().split()]
    return [os.getpriority(os.PRIO_PROCESS, child) for child in children]


# What is looked at again


def full(reports: list[Message]) -> list[str]:
    return [Path(r["uri"]).name for r in reports if r["kind"] == "full"]


@pytest.mark.parametrize("watches", [True, False])
def test_who_watches_files_spares_the_server_to_look(
    client: LspClient, project: Path, watches: bool
) -> None:
    client.initialize(capabilities=WATCHES if watches else PULLS, rootUri=project.as_uri())
    if watches:
        client.wait(lambda: bool(client.asked))
    known = {report["uri"]: report["resultId"] for report in pulled(client)}
    file = project / "module_003.py"
    file.write_text("x = 1\n")
    assert full(pulled(client, known)) == ([] if watches else [file.name])
    changes = [{"uri": file.as_uri(), "type": 2}]
    client.notify("workspace/didChangeWatchedFiles", {"changes": changes})
    assert full(pulled(client, known)) == [file.name]


def test_saving_tells_of_a_change(client: LspClient, project: Path) -> None:
    client.initialize(capabilities=WATCHES, rootUri=project.as_uri())
    client.wait(lambda: bool(client.asked))
    known = {report["uri"]: report["resultId"] for report in pulled(client)}
    uri = (project / "module_003.py").as_uri()
    client.open(uri, TEXT)
    (project / "module_003.py").write_text("x = 1\n")
    client.save(uri)
    client.close(uri)
    assert full(pulled(client, known)) == ["module_003.py"]


def test_rules_of_the_project_change(client: LspClient, tmp_path: Path) -> None:
    def write(meaning: str) -> None:
        text = {"en": f"{meaning} {{symbol}}", "zh": meaning}
        rule = {"code": "ACME101", "name": "acme-run", "severity": "warning", "message": text}
        symbol = {"symbol": "acme.run", "rule": "acme-run", "source": "us"}
        rules = {"family": "acme", "rules": [{**rule, "explanation": text}], "symbols": [symbol]}
        (tmp_path / "ours.json").write_text(json.dumps(rules))

    (tmp_path / "npulens.toml").write_text('extend-rules = ["ours.json"]\n')
    (tmp_path / "a.py").write_text("import acme\nacme.run()\n")
    write("first")
    client.initialize(capabilities=WATCHES, rootUri=tmp_path.as_uri())
    client.open((tmp_path / "b.py").as_uri(), TEXT)  # names the rules
    client.wait(lambda: any("ours.json" in str(asked) for asked in client.asked))
    (report,) = pulled(client)
    assert "first" in report["items"][0]["message"]
    write("second")
    changes = [{"uri": (tmp_path / "ours.json").as_uri(), "type": 2}]
    client.notify("workspace/didChangeWatchedFiles", {"changes": changes})
    (report,) = pulled(client, {report["uri"]: report["resultId"]})
    assert "second" in report["items"][0]["message"]


def test_messages_of_a_report_stay_small(client: LspClient, project: Path) -> None:
    """To write one down holds up whatever else the client waits for."""
    for number in range(20):
        (project / f"module_{number:03}.py").write_text(TEXT * 30)
    client.initialize(capabilities=PULLS, rootUri=project.as_uri())
    assert pulled(client, partialResultToken="parts") == []
    parts = [p["value"]["items"] for p in client.progress if p["token"] == "parts"]
    assert sum(map(len, parts)) == MANY and max(map(len, parts)) <= 50
    assert max(sum(len(report["items"]) for report in part) for part in parts) < 230


# Thousands of files


@pytest.mark.endurance
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads memory in /proc")
def test_memory_for_ten_thousand_files(tmp_path: Path) -> None:
    """46 MB were measured."""
    folder = tmp_path / "project"
    text = (
        TEXT
        + f"def f(x):\n    {CALL}()\n    return x.cuda().half()\n"
        + "# why, or what for\n" * 40
    )
    for number in range(10_000):
        package = folder / f"package_{number % 100}"
        package.mkdir(parents=True, exist_ok=True)
        (package / f"module_{number}.py").write_text(f"{text}# {number}\n")
    try:
        with LspClient() as client:
            client.initialize(capabilities=PULLS, rootUri=folder.as_uri())
            before = memory(client.process.pid)
            known: dict[str, str] = {}
            request = client.start_request(
                "workspace/diagnostic", {"previousResultIds": [], "partialResultToken": "p"}
            )
            assert client.response(request, 900)["result"]["items"] == []
            for each in client.progress:
                known |= {r["uri"]: r["resultId"] for r in each["value"]["items"]}
            client.forget()
            assert len(known) == 10_000
            after = memory(client.process.pid)
            assert after - before < 60_000_000, (before, after)
            started = time.monotonic()
            assert {r["kind"] for r in pulled(client, known)} == {"unchanged"}
            assert time.monotonic() - started < 10
            assert client.shut_down() == 0
    finally:
        shutil.rmtree(folder)


def memory(process: int) -> int:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))


def test_few_files_are_checked_at_once(project: Path) -> None:
    """A process takes longer to start than they take; their names come from a generator, too."""
    from npulens.catalog.loader import load_catalogue
    from npulens.workspace.runs.run import Checker
    from npulens.workspace.settings.configuration import Configuration

    files = sorted(project.iterdir())[:5]
    checker = Checker(load_catalogue(), Configuration())
    reports = [*check_in_background(files, checker, lambda: False, keeps=True)]
    document, findings = reports[0].unpacked(files[0], checker.catalogue.rules)
    assert document is not None and document.text == TEXT
    assert [finding.rule.code for finding in findings] == ["NPU101"]
    assert not (project / ".npulens_cache").exists()


NOTEBOOK = {
    "cells": [
        {"cell_type": "markdown", "metadata": {}, "source": ["# Title"]},
        {
            "cell_type": "code",
            "execution_count": None,
            "metadata": {},
            "outputs": [],
            "source": ["import torch\n", f"{CALL}()"],
        },
    ],
    "metadata": {"language_info": {"name": "python"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}


def test_notebooks_that_are_not_open_count(client: LspClient, tmp_path: Path) -> None:
    """Their places are lines of the file, until the editor has the cells."""
    file = tmp_path / "look.ipynb"
    text = json.dumps(NOTEBOOK, indent=1)
    file.write_text(text)
    client.initialize(capabilities=PULLS, rootUri=tmp_path.as_uri())
    (report,) = pulled(client)
    assert report["uri"] == file.as_uri()
    (told,) = report["items"]
    assert told["message"].startswith("cell 2:2:1: ") and told["code"] == "NPU101"
    line = told["range"]["start"]["line"]
    assert CALL in text.splitlines()[line]
    cell = {"kind": 2, "document": "cell:1"}
    notebook = {"uri": file.as_uri(), "notebookType": "jupyter-notebook", "version": 1}
    item = {"uri": "cell:1", "languageId": "python", "version": 1, "text": TEXT}
    client.notify(
        "notebookDocument/didOpen",
        {"notebookDocument": {**notebook, "cells": [cell]}, "cellTextDocuments": [item]},
    )
    (report,) = pulled(client)
    assert report["items"] == []


def test_notebooks_that_are_not_open_are_migrated(client: LspClient, tmp_path: Path) -> None:
    file = tmp_path / "look.ipynb"
    text = json.dumps(NOTEBOOK, indent=1) + "\n"
    file.write_text(text)
    edits: list[Message] = []
    client.answers["workspace/applyEdit"] = lambda params: edits.append(params["edit"])
    client.initialize(capabilities=PULLS, rootUri=tmp_path.as_uri())
    client.request("workspace/executeCommand", {"command": "npulens.migrateWorkspace"})
    after = json.loads(applied_edit(text, edits[0]))
    code = "".join(after["cells"][1]["source"])
    assert code == "import torch\nimport torch_npu  # noqa: F401\ntorch.npu.synchronize()"
