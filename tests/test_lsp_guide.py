"""The migration guide through the real server process."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lsp_client import LspClient
from test_schemas import validator

CODE = "import torch\ntorch.cuda.synchronize()\n"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[LspClient]:
    (tmp_path / "train.py").write_text(CODE)
    with LspClient() as client:
        client.initialize(rootUri=tmp_path.as_uri())
        yield client


def answer(client: LspClient, *arguments: object) -> dict[str, Any]:
    params = {"command": "npulens.guide", "arguments": [*arguments]}
    found = client.request("workspace/executeCommand", params)
    assert isinstance(found, dict)
    return found


def states(found: dict[str, Any]) -> dict[str, str]:
    return {each["id"]: each["state"] for phase in found["phases"] for each in phase["points"]}


def test_the_guide_of_a_folder(client: LspClient, tmp_path: Path) -> None:
    found = answer(client, tmp_path.as_uri())
    assert [each.message for each in validator("guide.schema.json").iter_errors(found)] == []
    assert found["root"] == str(tmp_path)
    assert states(found)["safe-fixes"] == "open"
    assert answer(client) == found
    (tmp_path / "train.py").write_text("import torch, torch_npu\ntorch.npu.synchronize()\n")
    assert states(answer(client))["safe-fixes"] == "done"


def test_points_are_ticked_and_opened(client: LspClient, tmp_path: Path) -> None:
    found = answer(client, tmp_path.as_uri(), {"done": ["baseline"], "skip": ["loss"]})
    assert (states(found)["baseline"], states(found)["loss"]) == ("done", "skipped")
    found = answer(client, tmp_path.as_uri(), {"open": ["baseline"]})
    assert (states(found)["baseline"], states(found)["loss"]) == ("open", "skipped")
    content = json.loads((tmp_path / "npulens-guide.json").read_text())
    assert validator("guide-state.schema.json").is_valid(content)


@pytest.mark.parametrize(
    "arguments",
    [
        (3,),
        ("file:///nowhere/at/all",),
        (None, {"done": ["nothing"]}),
        (None, {"done": "loss"}),
        (None, {"finish": ["loss"]}),
        (None, ["loss"]),
    ],
)
def test_wrong_arguments(client: LspClient, tmp_path: Path, arguments: tuple[object, ...]) -> None:
    with pytest.raises(Exception, match="Argument"):
        answer(client, *arguments)
    assert not (tmp_path / "npulens-guide.json").exists()


def test_a_damaged_file_is_a_sentence(client: LspClient, tmp_path: Path) -> None:
    (tmp_path / "npulens-guide.json").write_text("{")
    with pytest.raises(Exception, match="is no state of the guide"):
        answer(client)
