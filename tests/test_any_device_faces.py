"""What commands and editors show to a project of the device-agnostic style.

Each names the style that its figures are of, and says what its fixes write.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from commands import invoke
from lsp_client import LspClient

CODE = """\
import torch

torch.manual_seed(0)
torch.cuda.manual_seed_all(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = torch.nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss = model(torch.ones(2, 4, device=device)).square().mean()
loss.backward()
optimizer.step()
torch.cuda.empty_cache()
"""
DEVICE = "torch.accelerator.current_accelerator(check_available=True)"
MEANING = "One code for CUDA, the NPU and the CPU"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose configuration chooses the style."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text(CODE)
    (folder / "npulens.toml").write_text('migration-style = "device-agnostic"\n')
    monkeypatch.chdir(folder)
    return folder


def test_help_says_what_the_fix_writes_in_the_line(project: Path) -> None:
    output = invoke("check", "train.py")[1]
    assert f' | device = {DEVICE} or torch.device("cpu")\n' in output
    assert " | (this line goes)\n" in output
    assert (
        " | if torch.accelerator.is_available():\n"
        "    |     torch.accelerator.empty_cache()\n" in output
    )
    assert "（该行删除）" in invoke("check", "train.py", "--language", "zh")[1]


def test_explain_says_what_the_fix_writes_in_the_line(project: Path) -> None:
    output = invoke("explain", "train.py:5")[1]
    assert f'  | device = {DEVICE} or torch.device("cpu")\n' in output
    assert "  | (this line goes)\n" in invoke("explain", "train.py:4")[1]


def test_other_styles_show_no_such_lines(project: Path) -> None:
    output = invoke("check", "train.py", "--migration-style", "npu")[1]
    assert "torch.accelerator" not in output
    assert "this line goes" not in output


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_log_of_a_migration_names_the_style(project: Path, language: str) -> None:
    invoke("migrate", ".", "-o", "../migrated", "--language", language)
    log = project.parent / "migrated" / "npulens-migration"
    text = (log / "change_log.md").read_text(encoding="utf-8")
    assert {"en": "device-agnostic code", "zh": "设备无关代码"}[language] in text
    assert {"en": MEANING, "zh": "同一份代码用于 CUDA、NPU 和 CPU"}[language] in text
    assert json.loads((log / "change_log.json").read_text())["style"] == "device-agnostic"


def test_a_log_names_the_rule_of_each_line(project: Path) -> None:
    invoke("migrate", ".", "-o", "../migrated")
    log = project.parent / "migrated" / "npulens-migration" / "change_log.json"
    changes = json.loads(log.read_text())["changes"]
    codes = {(change["line"], change["code"]) for change in changes}
    assert codes == {(4, "NPU101"), (5, "NPU110"), (11, "NPU101")}


@pytest.mark.parametrize("name", ["a.md", "a.html"])
def test_a_report_names_the_style_and_what_it_means(project: Path, name: str) -> None:
    invoke("report", ".", "-o", name)
    text = (project / name).read_text(encoding="utf-8")
    assert "device-agnostic code" in text
    assert MEANING in text
    invoke("report", ".", "-o", name, "--migration-style", "npu")
    text = (project / name).read_text(encoding="utf-8")
    assert "NPU-only code" in text
    assert MEANING not in text


@pytest.mark.emulated
def test_a_verified_run_names_the_style_of_the_copy(project: Path) -> None:
    code, output, _ = invoke("verify", "train.py")
    assert code == 0, output
    assert "3 findings were fixed in the copy: device-agnostic code\n" in output
    found = json.loads(invoke("verify", "train.py", "--output-format", "json")[1])
    assert (found["status"], found["style"]) == ("passed", "device-agnostic")
    as_is = json.loads(invoke("verify", "train.py", "--output-format", "json", "--as-is")[1])
    assert as_is["style"] is None


@pytest.fixture
def client() -> Iterator[LspClient]:
    with LspClient() as client:
        yield client
        client.shut_down()


def hovered(client: LspClient, uri: str, line: int, character: int) -> str:
    position = {"line": line, "character": character}
    params = {"textDocument": {"uri": uri}, "position": position}
    value: str = client.request("textDocument/hover", params)["contents"]["value"]
    return value


def test_a_hover_tells_the_style_first(client: LspClient, project: Path) -> None:
    client.initialize(rootUri=project.as_uri())
    uri = (project / "train.py").as_uri()
    client.open(uri, CODE)
    client.diagnostics(uri, 1)
    text = hovered(client, uri, 10, 14)
    assert text.index("For any device: `torch.accelerator.empty_cache`") < text.index("On the NPU")
    assert "```python\nif torch.accelerator.is_available():\n" in text
    assert "(this line goes)" in hovered(client, uri, 3, 14)


def rewrites(client: LspClient, uri: str, line: int) -> list[Any]:
    only = {"only": ["refactor.rewrite"]}
    found = client.code_actions(uri, (line, 0), (line, 60), **only)
    return [action["title"] for action in found or ()]


def test_a_file_of_settings_is_not_offered_to_be_rewritten(client: LspClient) -> None:
    client.initialize()
    client.open("file:///p/a.yaml", "trainer:\n  accelerator: auto\n", language="yaml")
    assert client.diagnostics("file:///p/a.yaml", 1)
    assert rewrites(client, "file:///p/a.yaml", 1) == []
