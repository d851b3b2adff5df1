"""Diagnostics that are pushed and asked for, through the real server process."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from lsp_client import LspClient, Message, replacing
from npulens.cli.main import cli

CALL = "torch.cuda.synchronize"
TEXT = f"import torch\n{CALL}()\n"
PULLS = {"textDocument": {"diagnostic": {"relatedDocumentSupport": False}}}


@pytest.fixture
def client() -> Iterator[LspClient]:
    with LspClient() as fresh:
        yield fresh


@pytest.fixture(scope="module")
def pulling() -> Iterator[LspClient]:
    with LspClient() as shared:
        shared.initialize(capabilities=PULLS)
        yield shared


def codes(diagnostics: list[Message]) -> list[str]:
    return [diagnostic["code"] for diagnostic in diagnostics]


def pull(client: LspClient, uri: str, previous: str | None = None) -> Message:
    params: Message = {"textDocument": {"uri": uri}}
    if previous is not None:
        params["previousResultId"] = previous
    report: Message = client.request("textDocument/diagnostic", params)
    return report


# One document


def test_a_report_is_asked_for(pulling: LspClient) -> None:
    uri = "file:///nowhere/pulled.py"
    pulling.open(uri, TEXT)
    report = pull(pulling, uri)
    assert report["kind"] == "full" and codes(report["items"]) == ["NPU101"]
    assert pull(pulling, uri, report["resultId"]) == {
        "kind": "unchanged",
        "resultId": report["resultId"],
    }
    # A change that moves nothing leaves the report as it was; one that does not, does not.
    pulling.change(uri, 2, replacing((1, 24), (1, 24), "  # so"))
    assert pull(pulling, uri, report["resultId"])["kind"] == "unchanged"
    pulling.change(uri, 3, replacing((0, 0), (0, 0), "\n"))
    moved = pull(pulling, uri, report["resultId"])
    assert moved["items"][0]["range"]["start"]["line"] == 2
    pulling.close(uri)
    assert pull(pulling, uri, moved["resultId"]) == {"kind": "full", "items": []}


def test_nothing_is_pushed_to_who_asks(pulling: LspClient) -> None:
    uri = "file:///nowhere/silent.py"
    pulling.open(uri, TEXT)
    assert codes(pull(pulling, uri)["items"]) == ["NPU101"]
    pulling.close(uri)
    assert pull(pulling, uri)["items"] == []
    assert not pulling.published


def test_a_report_is_never_of_an_older_text(pulling: LspClient) -> None:
    uri = "file:///nowhere/burst.py"
    pulling.open(uri, "import torch\n")
    requests = []
    for version in range(2, 22):
        pulling.change(uri, version, replacing((1, 0), (1, 0), f"{CALL}()\n"))
        request = pulling.start_request("textDocument/diagnostic", {"textDocument": {"uri": uri}})
        requests.append((version, request))
    for version, request in requests:
        answer = pulling.response(request)
        if "error" in answer:
            assert answer["error"]["code"] == -32802
            assert answer["error"]["data"] == {"retriggerRequest": True}
        else:
            assert len(answer["result"]["items"]) == version - 1
    assert len(pull(pulling, uri)["items"]) == 20


def test_tags_and_data(client: LspClient) -> None:
    publish = {"publishDiagnostics": {"tagSupport": {"valueSet": [1, 2]}}}
    client.initialize(capabilities={"textDocument": publish})
    text = "import torch\nx = 1  # npulens: ignore\ns = torch.cuda.amp.autocast()\n" + TEXT
    client.open("untitled:1", text)
    unused, autocast, *_ = client.diagnostics("untitled:1", 1)
    assert (unused["code"], unused["tags"]) == ("NPU002", [1])
    assert (autocast["code"], autocast["tags"]) == ("NPU301", [2])
    assert unused["data"] == {"rule": "unused-suppression", "fix": "safe", "isProblem": True}


def test_tags_are_kept_from_who_does_not_know_them(client: LspClient) -> None:
    client.initialize()
    client.open("untitled:1", "x = 1  # npulens: ignore\n")
    (found,) = client.diagnostics("untitled:1", 1)
    assert "tags" not in found


def test_what_was_answered_is_asked_for_again(client: LspClient, tmp_path: Path) -> None:
    refreshes = {"workspace": {"diagnostics": {"refreshSupport": True}}, **PULLS}
    client.initialize(capabilities=refreshes, rootUri=tmp_path.as_uri())
    uri = (tmp_path / "a.py").as_uri()
    client.open(uri, TEXT)
    assert codes(pull(client, uri)["items"]) == ["NPU101"]
    (tmp_path / "npulens.toml").write_text('ignore = ["NPU101"]\n')
    event = {"uri": (tmp_path / "npulens.toml").as_uri(), "type": 1}
    client.notify("workspace/didChangeWatchedFiles", {"changes": [event]})
    client.wait(lambda: any(a["method"] == "workspace/diagnostic/refresh" for a in client.asked))
    assert pull(client, uri)["items"] == []


# The workspace


def workspace(client: LspClient, known: dict[str, str], **params: object) -> list[Message]:
    previous = [{"uri": uri, "value": value} for uri, value in known.items()]
    report = client.request("workspace/diagnostic", {"previousResultIds": previous, **params})
    items: list[Message] = report["items"]
    return items


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "package").mkdir()
    for number in range(5):
        (tmp_path / "package" / f"module_{number}.py").write_text(TEXT * (number + 1))
    (tmp_path / "clean.py").write_text("x = 1\n")
    (tmp_path / "run.sh").write_text("#!/bin/bash\nexport NCCL_DEBUG=INFO\n")
    return tmp_path


def test_the_workspace_is_as_on_the_command_line(client: LspClient, project: Path) -> None:
    client.initialize(capabilities=PULLS, rootUri=project.as_uri())
    reports = workspace(client, {})
    found = {Path(r["uri"]).name: codes(r["items"]) for r in reports}
    assert found == {
        "run.sh": ["NPU901"],
        **{f"module_{number}.py": ["NPU101"] * (number + 1) for number in range(5)},
    }
    assert all(report["version"] is None for report in reports)
    result = CliRunner().invoke(cli, ["check", "--output-format", "json", str(project)])
    printed: dict[str, list[str]] = {}
    for finding in json.loads(result.stdout):
        printed.setdefault(Path(finding["path"]).name, []).append(finding["code"])
    assert printed == found

    known = {report["uri"]: report["resultId"] for report in reports}
    again = workspace(client, known)
    assert {report["kind"] for report in again} == {"unchanged"} and len(again) == 6

    (project / "package" / "module_0.py").write_text("x = 1\n")
    (project / "package" / "module_1.py").write_text("\n" + TEXT)
    changed = {
        Path(r["uri"]).name: codes(r["items"])
        for r in workspace(client, known)
        if r["kind"] == "full"
    }
    assert changed == {"module_0.py": [], "module_1.py": ["NPU101"]}


def test_open_documents_are_no_part_of_the_workspace_report(
    client: LspClient, project: Path
) -> None:
    client.initialize(capabilities=PULLS, rootUri=project.as_uri())
    client.open((project / "package" / "module_0.py").as_uri(), "x = 1\n")
    names = [Path(report["uri"]).name for report in workspace(client, {})]
    assert "module_0.py" not in names and "module_1.py" in names


def test_the_workspace_comes_in_parts(client: LspClient, project: Path) -> None:
    client.initialize(capabilities=PULLS, rootUri=project.as_uri())
    assert workspace(client, {}, partialResultToken="parts") == []
    parts = [p["value"]["items"] for p in client.progress if p["token"] == "parts"]
    assert sum(map(len, parts)) == 6


def test_the_workspace_can_be_cancelled(client: LspClient, tmp_path: Path) -> None:
    body = "".join(f"def f{number}(x):\n    return x.cuda()\n\n\n" for number in range(40))
    for number in range(60):
        (tmp_path / f"module_{number}.py").write_text(f"import torch\n\n\n{body}")
    client.initialize(capabilities=PULLS, rootUri=tmp_path.as_uri())
    request = client.start_request("workspace/diagnostic", {"previousResultIds": []})
    time.sleep(0.3)
    client.notify("$/cancelRequest", {"id": request})
    assert client.response(request)["error"]["code"] == -32800
    uri = "untitled:1"
    client.open(uri, TEXT)
    assert codes(pull(client, uri)["items"]) == ["NPU101"]
    assert len(workspace(client, {})) == 60


def test_a_large_workspace_is_checked_by_other_processes(client: LspClient, tmp_path: Path) -> None:
    for number in range(80):
        (tmp_path / f"module_{number}.py").write_text(TEXT)
    client.initialize(capabilities=PULLS, rootUri=tmp_path.as_uri())
    assert len(workspace(client, {})) == 80
    assert client.shut_down() == 0


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks processes up in /proc")
def test_no_process_is_left_by_a_server_that_was_killed(client: LspClient, tmp_path: Path) -> None:
    for number in range(400):
        (tmp_path / f"module_{number}.py").write_text(TEXT * 40)
    client.initialize(capabilities=PULLS, rootUri=tmp_path.as_uri())
    client.start_request("workspace/diagnostic", {"previousResultIds": []})
    # The tracker of shared memory comes first, then the processes that check.
    until(lambda: len(children(client.process.pid)) > 1)
    left = children(client.process.pid)
    client.process.kill()
    client.process.wait()
    until(lambda: not any(is_running(process) for process in left))


def until(condition: Callable[[], bool]) -> None:
    ends = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.05)


def children(process: int) -> list[int]:
    tasks = Path(f"/proc/{process}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
