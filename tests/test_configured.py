"""Gated units whose activation a configuration in another module names by default."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from helpers import CATALOGUE
from npulens.analysis import StatementCache, analyze
from npulens.catalog.model import Target
from npulens.catalog.project_model import ModuleMembers, ProjectFacts
from npulens.cli.main import cli
from npulens.text.document import Document

CONSTRUCTOR = """class ModelConfig:
    r\"\"\"
    Args:
        hidden_act (`str`, defaults to `"{other}"`)
    \"\"\"

    def __init__(self, width=8, hidden_act{annotation}="{act}", other="tanh"):
        self.hidden_act = hidden_act
"""
FIELD = """from dataclasses import dataclass


@dataclass
class ModelConfig:
    width: int = 8
    hidden_act: str = "{act}"
"""
TWO = FIELD + '\n\n@dataclass\nclass VisionConfig:\n    hidden_act: str = "{other}"\n'
MODEL = """import torch
import torch_npu
from torch import nn
from transformers.activations import ACT2FN

{imports}


class Unit(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.gate = nn.Linear(8, 8)
        self.up = nn.Linear(8, 8)
        self.act_fn = ACT2FN[{key}]

    def forward(self, x):
        return self.act_fn(self.gate(x)) * self.up(x)
"""
FROM = "from .configuration import ModelConfig"
KEY = "config.hidden_act"
CHOSEN = ("NPU703", False)
APPLIED = ("NPU703", True)
# The configuration, its import, the key of the activation, and what is told: the rule, and whether
# `--unsafe-fixes` repairs it.
CASES = {
    "silu": (CONSTRUCTOR.format(act="silu", other="gelu", annotation=""), FROM, KEY, APPLIED),
    "with a type": (
        CONSTRUCTOR.format(act="silu", other="gelu", annotation=": str | None "),
        FROM,
        KEY,
        APPLIED,
    ),
    "field": (FIELD.format(act="silu"), FROM, KEY, APPLIED),
    "gelu": (FIELD.format(act="gelu_pytorch_tanh"), FROM, KEY, ("NPU704", False)),
    "relu": (FIELD.format(act="relu2"), FROM, KEY, None),
    "by a package": (FIELD.format(act="relu"), "from . import ModelConfig", KEY, None),
    "of the instance": (FIELD.format(act="relu"), FROM, "self.config.hidden_act", None),
    "another attribute": (FIELD.format(act="relu"), FROM, "config.activation", CHOSEN),
    "no configuration": (FIELD.format(act="relu"), FROM, "options.hidden_act", CHOSEN),
    "not imported": (FIELD.format(act="relu"), "", KEY, CHOSEN),
    "they disagree": (
        TWO.format(act="relu", other="silu"),
        "from .configuration import ModelConfig, VisionConfig",
        KEY,
        CHOSEN,
    ),
    "only one counts": (TWO.format(act="relu", other="silu"), FROM, KEY, None),
}


@pytest.mark.parametrize("name", CASES)
def test_a_default_of_a_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    configuration, imports, key, expected = CASES[name]
    package = tmp_path / "pack"
    package.mkdir()
    (package / "__init__.py").write_text("from .configuration import ModelConfig\n")
    (package / "configuration.py").write_text(configuration)
    model = package / "modeling.py"
    model.write_text(MODEL.format(imports=imports, key=key))
    monkeypatch.chdir(tmp_path)
    options = ["--select", "NPU703,NPU704", "--output-format", "json", "pack"]
    found = json.loads(CliRunner().invoke(cli, ["check", "--no-cache", *options]).stdout)
    assert [each["code"] for each in found] == ([] if expected is None else [expected[0]])
    before = model.read_text()
    CliRunner().invoke(cli, ["fix", "--unsafe-fixes", "--select", "NPU703,NPU704", "pack"])
    is_applied = expected is not None and expected[1]
    assert ("npu_swiglu" in model.read_text()) == is_applied
    assert (model.read_text() != before) == is_applied


def test_an_edited_import_counts_for_the_rest() -> None:
    configured = frozenset(
        ("pack/configuration", name, (("hidden_act", act),))
        for name, act in (("ModelConfig", "silu"), ("OtherConfig", "relu"), ("LastConfig", "gelu"))
    )
    target = Target(project=ProjectFacts(members=ModuleMembers(activations=configured)))
    cache = StatementCache()
    seen = set()
    for name in ("ModelConfig", "OtherConfig", "LastConfig", "ModelConfig"):
        text = MODEL.format(imports=f"from .configuration import {name}", key=KEY)
        document = Document("pack/modeling.py", text)
        found = analyze(document, CATALOGUE, target, cache)
        assert found == analyze(document, CATALOGUE, target)
        seen.add(tuple(each.rule.code for each in found if each.rule.code < "NPU710"))
    assert seen == {("NPU703",), (), ("NPU704",)}


def test_a_configuration_in_the_same_module(tmp_path: Path) -> None:
    model = tmp_path / "model.py"
    model.write_text(MODEL.format(imports=FIELD.format(act="relu"), key=KEY))
    found = CliRunner().invoke(cli, ["check", "--no-cache", "--select", "NPU7", str(model)])
    assert found.exit_code == 0, found.output
