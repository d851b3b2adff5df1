"""The lists of a rule file on native APIs: what is refused, and what a user's file may add."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from npulens.analysis import analyze
from npulens.catalog.loader import CatalogueError, load_catalogue
from npulens.catalog.model import Target, TorchVersion
from npulens.cli.main import cli
from npulens.text.document import Document
from npulens.workspace.settings.catalogues import Catalogues, configured_catalogue
from npulens.workspace.settings.configuration import Configuration

KIND = {"kind": "ours", "rule": "native-api-unsupported", "text": {"en": "A.", "zh": "甲。"}}
SAYS = {"kind": "says", "rule": "torch-api-limited", "text": {"en": "{argument}", "zh": "{values}"}}
USE = {"kind": "use", "rule": "torch-api-limited", "text": {"en": "{instead}", "zh": "{instead}"}}


def load(tmp_path: Path, **lists: object) -> Any:
    file = tmp_path / "ours.json"
    content = {"family": "api", "kinds": [KIND, SAYS, USE], **lists}
    file.write_text(json.dumps(content), encoding="utf-8")
    return load_catalogue([file])


def entry(**limit: object) -> dict[str, object]:
    limits = [{"kind": "ours", "in": "2.6-2.13", **limit}]
    return {"api": "torch.stack", "limits": limits, "source": "us"}


@pytest.mark.parametrize(
    ("lists", "sentence"),
    [
        ({"kinds": [{**KIND, "rule": "x"}]}, 'kinds[0] ours: unknown rule "x"'),
        ({"kinds": [KIND, KIND]}, "kinds[1] ours: is there twice"),
        ({"native": [entry(kind="x")]}, 'native[0] torch.stack: unknown kind "x"'),
        ({"native": [entry(), entry()]}, "native[1] torch.stack: is there twice"),
        (
            {"native": [{"api": "a", "limits": [], "source": "b"}]},
            '"limits" must be a list of limi',
        ),
        ({"native": [entry(colour=1)]}, 'torch.stack: "limits" unknown field "colour"'),
        (
            {"native": [entry(**{"in": "2"})]},
            '"in" must be releases such as "2.6, 2.8-2.10", not "2"',
        ),
        (
            {"native": [entry(**{"in": 2.6})]},
            '"in" must be releases such as "2.6, 2.8-2.10", not 2.6',
        ),
        ({"native": [entry(**{"in": "2.8-2.6"})]}, '"in" must count upwards, not "2.8-2.6"'),
        ({"native": [entry(argument="dim")]}, 'an "argument" and a condition on it, or neither'),
        ({"native": [entry(only=[1])]}, 'an "argument" and a condition on it, or neither'),
        ({"native": [entry(argument="dim", only=1)]}, '"only" must be a list of texts, numbers'),
        ({"native": [entry(argument="dim", above="1")]}, '"above" must be a number, not "1"'),
        ({"native": [entry(argument="dim", above=True)]}, '"above" must be a number, not true'),
        ({"native": [entry(kind="use")]}, 'the text of "use" needs an "instead"'),
        ({"native": [entry(kind="says")]}, 'the text of "says" needs an "argument"'),
        ({"spellings": [{"name": "a", "api": "b"}]}, 'spellings[0] a: unknown api "b"'),
        ({"tensors": [{"owner": "a", "names": ["b.c"]}]}, 'tensors[0] a: "names" must be a name'),
        ({"native": {}}, '"native" must be a list, not {}'),
    ],
)
def test_a_wrong_entry_is_refused(tmp_path: Path, lists: dict[str, Any], sentence: str) -> None:
    with pytest.raises(CatalogueError) as caught:
        load(tmp_path, **lists)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'ours.json'}: ")
    assert sentence in message
    assert "\n" not in message


def found(catalogue: Any, code: str, version: tuple[int, int] = (2, 8)) -> list[tuple[str, str]]:
    target = Target(TorchVersion(*version))
    findings = analyze(Document("x.py", f"import torch\n{code}\n"), catalogue, target)
    return [(f.rule.code, f.message("en")) for f in findings]


def test_a_file_of_a_user_adds_limits_and_replaces_those_shipped(tmp_path: Path) -> None:
    theirs = {**entry(**{"in": "2.9"}), "api": "torch.std_mean"}
    catalogue = load(tmp_path, native=[entry(**{"in": "2.6, 2.8-2.9"}), theirs])
    text = "`torch.stack` is not supported on the NPU with PyTorch 2.8. A."
    assert found(catalogue, "torch.stack([])") == [("NPU503", text)]
    assert found(catalogue, "torch.stack([])", (2, 7)) == []
    assert found(catalogue, "torch.std_mean(1)") == []
    assert len(found(catalogue, "torch.std_mean(1)", (2, 9))) == 1


@pytest.mark.parametrize(
    ("limit", "argument", "breaks"),
    [
        ({"only": [1, "a"]}, "dim=2", True),
        ({"only": [1, "a"]}, "dim='a'", False),
        ({"only": [1]}, "dim=True", True),
        ({"only": [1]}, "dim=(1, 1)", False),
        ({"only": [1]}, "dim=d", False),
        ({"unlike": [True]}, "dim=1", False),
        ({"unlike": [True]}, "dim=True", True),
        ({"below": 0}, "dim=-1", True),
        ({"below": 0}, "dim=0", False),
        ({"above": 0}, "dim=0.5", True),
        ({"above": 0}, "dim='x'", False),
        ({"given": True}, "dim=d", True),
        ({"given": True}, "dim=None", False),
        ({"given": True}, "other=1", False),
        ({"absent": True}, "other=1", True),
        ({"absent": True}, "**others", False),
        ({"absent": True}, "dim=d", False),
        ({"only": [1], "position": 1}, "2", True),
        ({"only": [1], "position": 1}, "*all", False),
    ],
)
def test_conditions(tmp_path: Path, limit: dict[str, object], argument: str, breaks: bool) -> None:
    catalogue = load(tmp_path, native=[entry(argument="dim", **limit)])
    assert bool(found(catalogue, f"torch.stack([], {argument})")) is breaks
    assert bool(found(catalogue, f"from torch import stack as s\ns([], {argument})")) is breaks


QUANTILE = "import torch\ntorch.quantile(1, 2)\n"


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ([], 0),
        (["--select", "NPU"], 0),
        (["--select", "NPU5"], 0),
        (["--select", "NPU505"], 1),
        (["--select", "native-api-unverified"], 1),
        (["--extend-select", "NPU505"], 1),
        (["--extend-select", "NPU505", "--ignore", "NPU505"], 0),
        (["--extend-select", "NPU505", "--ignore", "NPU5"], 1),
    ],
)
def test_a_rule_that_is_off_has_to_be_named(options: list[str], count: int) -> None:
    arguments = ["check", "-", "--output-format", "jsonl", *options]
    result = CliRunner().invoke(cli, arguments, input=QUANTILE)
    assert len(result.output.splitlines()) == count
    assert result.exit_code == (1 if count else 0)


def test_an_unknown_rule_to_select_besides_is_refused() -> None:
    arguments = ["check", "-", "--extend-select", "NPU999"]
    result = CliRunner().invoke(cli, arguments, input=QUANTILE)
    assert result.exit_code == 2
    assert "--extend-select: there is no rule" in result.output


def test_names_are_read_only_where_they_are_wanted() -> None:
    assert configured_catalogue(Configuration()).native.verified is None
    wanted = configured_catalogue(Configuration(extend_select=("NPU505",)))
    assert wanted.native.verified
    catalogues = Catalogues()
    assert catalogues.of(Configuration()).native.verified is None
    assert catalogues.of(Configuration(extend_select=("NPU505",))).native.verified
    assert catalogues.of(Configuration()) is catalogues.of(Configuration(language="zh"))
