"""The beginning, the settings and the end of sessions with the real server process."""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lsp_client import LspClient, Message, replacing, server_environment
from npulens.lsp.connection.message_frames import Frames

CALL = "torch.cuda.synchronize"
TEXT = f"import torch\n{CALL}()\n"
WATCHES = {
    "workspace": {
        "didChangeWatchedFiles": {"dynamicRegistration": True},
        "didChangeConfiguration": {"dynamicRegistration": True},
    }
}
ASKED_FOR = {"workspace": {"configuration": True}}


@pytest.fixture
def client() -> Iterator[LspClient]:
    with LspClient() as fresh:
        yield fresh


def codes(diagnostics: list[Message]) -> list[str]:
    return [diagnostic["code"] for diagnostic in diagnostics]


def is_chinese(text: str) -> bool:
    return re.search("[一-龥]", text) is not None


# Transports


INITIALIZE = {"processId": None, "rootUri": None, "capabilities": {}}


@pytest.mark.parametrize("portion", [1, 3, 17, 1000])
def test_messages_come_in_any_portions(portion: int) -> None:
    stream = (
        b"Content-Length: 2\r\n\r\n{}"
        b"content-length:3\r\nContent-Type: x\r\n\r\n[1]"
        b"X: y\r\n\r\n"
        b"Content-Length: 999999999\r\n\r\n"
    )
    frames = Frames()
    found = []
    for start in range(0, len(stream), portion):
        found += frames.feed(stream[start : start + portion])
    assert found == [b"{}", b"[1]"]


def test_what_comes_behind_a_message_that_is_too_long_is_read() -> None:
    frames = Frames()
    assert list(frames.feed(b"Content-Length: 999999999\r\n\r\n")) == []
    assert list(frames.feed(b"x" * 999_999_990)) == []
    assert list(frames.feed(b"123456789Content-Length: 1\r\n\r\n7")) == [b"7"]


def test_a_client_that_does_not_read_holds_nothing_up(tmp_path: Path) -> None:
    """It may first write all that it has to say."""
    process = subprocess.Popen(
        [sys.executable, "-m", "npulens", "server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=server_environment(),
    )
    assert process.stdin is not None and process.stdout is not None

    def send(message: Message) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert process.stdin is not None
        process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        process.stdin.flush()

    (tmp_path / "a.py").write_text(TEXT)
    report = tmp_path / "report.json"
    begin = {**INITIALIZE, "rootUri": tmp_path.as_uri()}
    send({"id": 1, "method": "initialize", "params": begin})
    send({"method": "initialized", "params": {}})
    watchdog = threading.Timer(30, process.kill)  # a server that waits would never end
    watchdog.start()
    # The answers are more than a pipe holds.
    requests = {f"r{number}": f"nothing/{number:0200}" for number in range(1000)}
    for identity, method in requests.items():
        send({"id": identity, "method": method, "params": {}})
    command = {"command": "npulens.writeReport", "arguments": [report.as_uri()]}
    send({"id": 2, "method": "workspace/executeCommand", "params": command})
    try:
        for _ in range(200):
            if report.exists():
                break
            threading.Event().wait(0.05)
        assert report.exists()
        # Then it reads, and nothing is missing or torn.
        send({"id": 3, "method": "shutdown"})
        send({"method": "exit"})
        assert process.stdout is not None
        heard = [json.loads(body) for body in Frames().feed(process.stdout.read())]
        *first, last, other = (each["id"] for each in heard)
        # The report is there before its answer is.
        assert first == [1, *requests] and {last, other} == {2, 3}
        assert process.wait(10) == 0
    finally:
        watchdog.cancel()
        process.kill()
        process.wait()
        process.stdout.close()


# The parent


def test_the_server_ends_with_the_process_that_started_it(client: LspClient) -> None:
    parent = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    client.initialize(processId=parent.pid)
    assert client.process.poll() is None
    parent.kill()
    parent.wait()
    assert client.process.wait(15) == 1


def test_the_server_stays_with_its_parent() -> None:
    clients = [LspClient() for _ in range(3)]
    for client, parent in zip(clients, (os.getpid(), None, -1), strict=True):
        client.initialize(processId=parent)
    threading.Event().wait(2.5)
    for client in clients:
        with client:
            assert client.shut_down() == 0


# Settings


def test_settings_come_with_the_initialization(client: LspClient) -> None:
    client.initialize(initializationOptions={"ignore": ["NPU101"], "language": "zh"})
    client.open("untitled:1", TEXT + "x.cuda()\n")
    (found,) = client.diagnostics("untitled:1", 1)
    assert found["code"] == "NPU105" and is_chinese(found["message"])


def test_settings_are_asked_for(client: LspClient, tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    wanted: dict[str | None, Message | None] = {
        None: None,
        folders[0].as_uri(): {"ignore": ["NPU101"]},
        folders[1].as_uri(): {"language": "zh"},
    }
    client.answers["workspace/configuration"] = lambda params: [
        wanted[item.get("scopeUri")] for item in params["items"]
    ]
    client.initialize(
        capabilities=ASKED_FOR,
        workspaceFolders=[{"uri": folder.as_uri(), "name": folder.name} for folder in folders],
    )
    client.wait(lambda: bool(client.asked))
    assert {item["section"] for item in client.asked[0]["params"]["items"]} == {"npulens"}
    one, two = ((folder / "a.py").as_uri() for folder in folders)
    client.open(one, TEXT)
    client.open(two, TEXT)
    # A document that is opened before the answer was taken in is analysed twice.
    client.wait(lambda: client.diagnostics(one, 1) == [])
    client.wait(lambda: is_chinese(client.diagnostics(two, 1)[0]["message"]))

    wanted[folders[0].as_uri()] = {}
    client.published.clear()
    client.notify("workspace/didChangeConfiguration", {"settings": None})
    assert codes(client.diagnostics(one, 1)) == ["NPU101"]


def test_each_folder_has_its_configuration(client: LspClient, tmp_path: Path) -> None:
    ignored = {"one": "NPU101", "two": "NPU105"}
    for name, code in ignored.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "npulens.toml").write_text(f'ignore = ["{code}"]\n')
    folders = [{"uri": (tmp_path / name).as_uri(), "name": name} for name in ignored]
    client.initialize(workspaceFolders=folders)
    found = {}
    for name in ignored:
        uri = (tmp_path / name / "a.py").as_uri()
        client.open(uri, TEXT + "x.cuda()\n")
        found[name] = codes(client.diagnostics(uri, 1))
    assert found == {"one": ["NPU105"], "two": ["NPU101"]}


@pytest.mark.family(3)
@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        (None, "utf-16"),
        ([], "utf-16"),
        (["utf-7"], "utf-16"),
        (["utf-7", "utf-8"], "utf-8"),
        (["utf-32", "utf-8", "utf-16"], "utf-32"),
        (["utf-16", "utf-8"], "utf-16"),
    ],
)
def test_the_encoding_that_the_client_prefers(
    client: LspClient, offered: list[str] | None, chosen: str
) -> None:
    assert client.initialize(offered)["positionEncoding"] == chosen


def test_settings_are_sent_by_clients_that_are_not_asked(client: LspClient) -> None:
    client.initialize()
    client.open("untitled:1", TEXT)
    assert codes(client.diagnostics("untitled:1", 1)) == ["NPU101"]
    client.published.clear()
    settings = {"npulens": {"select": ["NPU2"]}}
    client.notify("workspace/didChangeConfiguration", {"settings": settings})
    assert client.diagnostics("untitled:1", 1) == []


def test_the_configuration_of_the_project_comes_first(client: LspClient, tmp_path: Path) -> None:
    (tmp_path / "npulens.toml").write_text('select = ["NPU101"]\n')
    client.initialize(initializationOptions={"select": ["NPU105"], "ignore": ["NPU105"]})
    uri = (tmp_path / "a.py").as_uri()
    client.open(uri, TEXT + "x.cuda()\n")
    assert codes(client.diagnostics(uri, 1)) == ["NPU101"]


def test_reasons_in_the_settings_of_an_editor(client: LspClient) -> None:
    client.initialize(initializationOptions={"reasons": {"other-device": "info"}})
    client.open("untitled:a", "import torch\nif device.type == 'mps':\n    x.cuda()\n")
    (found,) = client.diagnostics("untitled:a", 1)
    assert (found["code"], found["severity"]) == ("NPU105", 3)


WRONG = [
    ({"ignore": "NPU1"}, ["ignore", "list"]),
    ({"ingore": []}, ["ingore", "ignore"]),
    ({"logLevel": "loud"}, ["logLevel", "warning"]),
    ({"codeLens": 1}, ["codeLens", "true"]),
    ([], ["object"]),
    ({"reasons": {"fallbak": "info"}}, ["no reason", "fallback"]),
    ({"reasons": {"fallback": None}}, ["reasons", "settled"]),
    ({"torchVersion": 2.8}, ["torch-version", "quotes"]),
    ({"torchVersion": "2.1"}, ["torch-version", "from 2.6 to 2.13"]),
]


def test_wrong_settings_are_told_once(client: LspClient) -> None:
    client.initialize(initializationOptions={"ignore": ["NPU101"]})
    for number, (wrong, words) in enumerate(WRONG):
        client.shown.clear()
        client.notify("workspace/didChangeConfiguration", {"settings": {"npulens": wrong}})
        for place in "abc":
            uri = f"untitled:{number}{place}"
            client.open(uri, TEXT + "x.cuda()\n")
            # The last good settings stay.
            assert codes(client.diagnostics(uri, 1)) == ["NPU105"]
        (shown,) = client.shown
        assert all(word in shown["message"] for word in words), shown


def test_settings_with_a_rule_that_there_is_not(client: LspClient) -> None:
    client.initialize(initializationOptions={"select": ["NPU999"]})
    for number in range(3):
        client.open(f"untitled:{number}", TEXT)
        assert codes(client.diagnostics(f"untitled:{number}", 1)) == ["NPU101"]
    (shown,) = client.shown
    assert "NPU999" in shown["message"] and "settings" in shown["message"]


def test_the_level_of_log_messages(client: LspClient) -> None:
    client.initialize(initializationOptions={"ignore": 1, "logLevel": "error"})
    client.notify("textDocument/didSomething", {})
    client.open("untitled:1", TEXT)
    client.diagnostics("untitled:1", 1)
    assert {entry["type"] for entry in client.logged} == {1}


def test_a_trace(client: LspClient) -> None:
    client.initialize()
    client.open("untitled:1", TEXT)
    client.diagnostics("untitled:1", 1)
    assert not client.traced
    client.notify("$/setTrace", {"value": "verbose"})
    client.change("untitled:1", 2, replacing((0, 0), (0, 0), "\n"))
    client.diagnostics("untitled:1", 2)
    client.wait(lambda: bool(client.traced))
    assert "untitled:1" in client.traced[0]["message"]
    client.notify("$/setTrace", {"value": "off"})
    client.change("untitled:1", 3, replacing((0, 0), (0, 0), "\n"))
    client.diagnostics("untitled:1", 3)
    assert len(client.traced) == 1


# Configuration files


def test_watched_files(client: LspClient, tmp_path: Path) -> None:
    client.initialize(capabilities=WATCHES, rootUri=tmp_path.as_uri())
    client.wait(lambda: bool(client.asked))
    (asked,) = client.asked
    patterns = str(asked["params"]["registrations"])
    for name in ("npulens.toml", "pyproject.toml", "requirements*.txt", "*.{py"):
        assert name in patterns
    uri = (tmp_path / "a.py").as_uri()
    client.open(uri, TEXT)
    assert codes(client.diagnostics(uri, 1)) == ["NPU101"]

    configuration = tmp_path / "npulens.toml"
    configuration.write_text('ignore = ["NPU101"]\nextend-rules = ["ours.json"]\n')
    rules = tmp_path / "ours.json"
    rules.write_text(OWN_RULES.replace("MEANING", "first"))
    client.published.clear()
    client.notify("workspace/didChangeWatchedFiles", changed(configuration))
    assert client.diagnostics(uri, 1) == []
    client.change(uri, 2, {"text": "import acme\nacme.run()\n"})
    (found,) = client.diagnostics(uri, 2)
    assert found["code"] == "ACME101" and "first" in found["message"]

    rules.write_text(OWN_RULES.replace("MEANING", "second"))
    client.published.clear()
    client.notify("workspace/didChangeWatchedFiles", changed(rules))
    (found,) = client.diagnostics(uri, 2)
    assert "second" in found["message"]


def test_rule_files_are_watched_once_they_are_named(client: LspClient, tmp_path: Path) -> None:
    (tmp_path / "npulens.toml").write_text('extend-rules = ["ours.json"]\n')
    (tmp_path / "ours.json").write_text(OWN_RULES)
    client.initialize(capabilities=WATCHES, rootUri=tmp_path.as_uri())
    for name in ("a.py", "b.py"):
        client.open((tmp_path / name).as_uri(), TEXT)
        client.diagnostics((tmp_path / name).as_uri(), 1)
    client.wait(lambda: any("ours.json" in str(asked) for asked in client.asked))
    assert client.shut_down() == 0
    assert sum("ours.json" in str(asked) for asked in client.asked) == 1


def changed(path: Path, kind: int = 2) -> Message:
    return {"changes": [{"uri": path.as_uri(), "type": kind}]}


OWN_RULES = json.dumps(
    {
        "family": "acme",
        "rules": [
            {
                "code": "ACME101",
                "name": "acme-run",
                "severity": "warning",
                "message": {"en": "MEANING {symbol}", "zh": "MEANING {symbol}"},
                "explanation": {"en": "So.", "zh": "如此。"},
                "examples": [],
            }
        ],
        "symbols": [
            {
                "symbol": "acme.run",
                "rule": "acme-run",
                "source": "us",
            }
        ],
    }
)


def test_requirements_tell_the_release(client: LspClient, tmp_path: Path) -> None:
    client.initialize(rootUri=tmp_path.as_uri())
    uri = (tmp_path / "a.py").as_uri()
    client.open(uri, "import torch\ntorch.std_mean(torch.ones(3))\n")
    (found,) = client.diagnostics(uri, 1)
    assert "PyTorch 2.13" in found["message"]
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("torch==2.6.0\n")
    client.published.clear()
    client.notify("workspace/didChangeWatchedFiles", changed(requirements, 1))
    found = client.diagnostics(uri, 1)
    assert not found or "PyTorch 2.6" in found[0]["message"]


def test_a_broken_configuration_is_told_once_and_the_last_good_one_counts(
    client: LspClient, tmp_path: Path
) -> None:
    configuration = tmp_path / "npulens.toml"
    configuration.write_text('ignore = ["NPU101"]\n')
    client.initialize(rootUri=tmp_path.as_uri())
    uris = [(tmp_path / f"{name}.py").as_uri() for name in "abc"]
    for uri in uris:
        client.open(uri, TEXT + "x.cuda()\n")
        assert codes(client.diagnostics(uri, 1)) == ["NPU105"]
    for broken in ('ignore = ["NPU101"', "ignore = 1\n", 'select = ["NPU999"]\n'):
        replaced(configuration, broken)
        client.shown.clear()
        client.published.clear()
        for _ in range(2):
            client.notify("workspace/didChangeWatchedFiles", changed(configuration))
        for uri in uris:
            client.save(uri)
            assert codes(client.diagnostics(uri, 1)) == ["NPU105"]
        (shown,) = client.shown
        assert shown["type"] == 1 and "npulens.toml" in shown["message"]
    configuration.write_text("")
    client.published.clear()
    client.save(uris[0])
    assert codes(client.diagnostics(uris[0], 1)) == ["NPU101", "NPU105"]


def replaced(path: Path, text: str) -> None:
    """Write a file at once, so that nobody reads half of it."""
    path.with_suffix(".new").write_text(text)
    path.with_suffix(".new").replace(path)


def test_folders_come_and_go(client: LspClient, tmp_path: Path) -> None:
    client.answers["workspace/configuration"] = lambda params: [
        {"language": "zh"} if item.get("scopeUri") else None for item in params["items"]
    ]
    client.initialize(capabilities=ASKED_FOR, rootUri=None)
    uri = (tmp_path / "a.py").as_uri()
    client.open(uri, TEXT)
    (found,) = client.diagnostics(uri, 1)
    assert not is_chinese(found["message"])
    folder = {"uri": tmp_path.as_uri(), "name": "a"}
    for event, chinese in (
        ({"added": [folder], "removed": []}, True),
        ({"added": [], "removed": [folder]}, False),
    ):
        client.published.clear()
        client.notify("workspace/didChangeWorkspaceFolders", {"event": event})
        client.wait(
            lambda wanted=chinese: any(  # type: ignore[misc]
                is_chinese(sent["diagnostics"][0]["message"]) is wanted for sent in client.published
            )
        )
