"""What editors and other services read: schemas, hooks, examples for CI."""

import importlib.util
import json
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import tomli
import yaml
from jsonschema import Draft202012Validator

from npulens.catalog.loader import CatalogueError, load_catalogue
from npulens.catalog.rule_file import read_content
from npulens.cli.main import cli
from npulens.workspace.settings.configuration import _KEYS, ConfigurationError, read_configuration

ROOT = Path(__file__).resolve().parents[1]
RULE_FILES = sorted((ROOT / "rules").glob("*/*.toml"))


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("schemas", ROOT / "scripts" / "make_schemas.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def validator(name: str) -> Any:
    schema = json.loads((ROOT / "docs" / "schemas" / name).read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def test_schemas_are_up_to_date(generator: ModuleType) -> None:
    for name, text in generator.schemas().items():
        there = (ROOT / "docs" / "schemas" / name).read_text(encoding="utf-8")
        assert there == text, "run scripts/make_schemas.py"


def test_schema_of_the_configuration_knows_every_key() -> None:
    assert set(validator("npulens.schema.json").schema["properties"]) == set(_KEYS)


@pytest.mark.parametrize(
    ("text", "is_right"),
    [
        ('torch-version = "2.8"\nselect = ["NPU1"]\n[severities]\nNPU1 = "info"', True),
        ('migration-style = "runtime-shim"\nlanguage = "zh"\nexclude = ["a/"]', True),
        ('[per-file-ignores]\n"tests/" = ["NPU1"]', True),
        ("", True),
        ("torch-version = 2.8", False),
        ('torch-version = "new"', False),
        ('torch-version = "2.5"', False),
        ('torch-version = "2.13.1"', True),
        ('torch-version = "2.14"', False),
        ('migration-style = "cuda"', False),
        ('select = "NPU1"', False),
        ('ignore = [""]', False),
        ('language = "de"', False),
        ('[severities]\nNPU1 = "bad"', False),
        ('[reasons]\nfallback = "info"\ntext = "settled"', True),
        ('[reasons]\nfallback = "off"', False),
        ('[reasons]\nunheard = "info"', False),
        ('[reasons]\nrule-off = "info"', False),
        ('[per-file-ignores]\n"tests/" = "NPU1"', False),
        ("unheard = 1", False),
    ],
)
def test_schema_and_reader_agree(tmp_path: Path, text: str, is_right: bool) -> None:
    assert validator("npulens.schema.json").is_valid(tomli.loads(text)) == is_right
    (tmp_path / "npulens.toml").write_text(text)
    try:
        read_configuration(tmp_path / "npulens.toml")
    except ConfigurationError:
        assert not is_right
    else:
        assert is_right


@pytest.mark.parametrize("path", RULE_FILES, ids=lambda path: path.name)
def test_shipped_rules_follow_the_schemas(path: Path) -> None:
    written = tomli.loads(path.read_text(encoding="utf-8"))
    assert [e.message for e in validator("rule.schema.json").iter_errors(written)] == []
    lists = json.loads(json.dumps(read_content(path, path.name)))
    assert [e.message for e in validator("rules.schema.json").iter_errors(lists)] == []


def test_the_limits_of_apis_follow_the_schema() -> None:
    content = json.loads((ROOT / "rules/native/limits.json").read_text(encoding="utf-8"))
    assert [e.message for e in validator("rules.schema.json").iter_errors(content)] == []


@pytest.mark.parametrize(
    "change",
    [
        {"unheard": []},
        {"family": 1},
        {"symbols": [{"symbol": "a.b", "rule": "cuda-api"}]},
        {"symbols": [{"symbol": "a.b", "rule": "cuda-api", "source": "x", "unheard": 1}]},
        {"symbols": [{"symbol": "a.b", "rule": "cuda-api", "source": "x", "fix": "maybe"}]},
        {"symbols": [{"symbol": "a.b", "rule": "cuda-api", "source": "x", "note": {"en": "x"}}]},
        {"symbols": {}},
    ],
)
def test_wrong_rules_do_not(tmp_path: Path, change: dict[str, Any]) -> None:
    content = {"family": "ours", **change}
    assert not validator("rules.schema.json").is_valid(content)
    (tmp_path / "ours.json").write_text(json.dumps(content))
    with pytest.raises(CatalogueError):
        load_catalogue([tmp_path / "ours.json"])


def test_hooks_can_be_read_by_pre_commit() -> None:
    from pre_commit.clientlib import load_manifest

    hooks = load_manifest(str(ROOT / ".pre-commit-hooks.yaml"))
    assert [hook["id"] for hook in hooks] == ["npulens", "npulens-fix"]
    for hook in hooks:
        is_known(hook["entry"])


def test_examples_for_ci() -> None:
    folder = ROOT / "examples" / "ci"
    workflow = yaml.safe_load((folder / "github-workflow.yml").read_text(encoding="utf-8"))
    assert workflow["jobs"]["check"]["runs-on"]
    is_known(workflow["jobs"]["check"]["steps"][-1]["run"])
    jobs = yaml.safe_load((folder / "gitlab-ci.yml").read_text(encoding="utf-8"))
    report = jobs["npulens"]["artifacts"]["reports"]["codequality"]
    assert report in jobs["npulens"]["script"][-1]
    is_known(jobs["npulens"]["script"][-1])


def is_known(line: str) -> None:
    """Assert that npulens has the command and the options of a command line."""
    program, name, *words = line.split()
    assert program == "npulens"
    options = {option for parameter in cli.commands[name].params for option in parameter.opts}
    assert {word for word in words if word.startswith("-")} <= options
