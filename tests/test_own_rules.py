"""A team's own rules: the example in the documentation is real, and such fixes run."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lsp_client import LspClient
from npulens.analysis import analyze
from npulens.catalog.loader import load_catalogue
from npulens.catalog.model import Applicability, Finding, Target
from npulens.catalog.tables import Catalogue
from npulens.cli.main import cli
from npulens.fixes.apply import fix_text
from npulens.text.document import Document

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "own_rules"
PAGES = {"en": ROOT / "docs" / "own-rules.md", "zh": ROOT / "docs" / "own-rules.zh-CN.md"}
RULES = [EXAMPLE / "acme-gpu-helper.toml", EXAMPLE / "acme-cuda-operator.toml"]
SHOWN = [*(path.name for path in RULES), "pyproject.toml", "train.py"]
CATALOGUE = load_catalogue(RULES)


def blocks(page: Path) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return re.findall(r"^```\w+\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def run(*arguments: str) -> Result:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(EXAMPLE)
        return CliRunner().invoke(cli, list(arguments))


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_the_page_shows_the_files(page: Path) -> None:
    assert blocks(page)[:-1] == [(EXAMPLE / name).read_text(encoding="utf-8") for name in SHOWN]


@pytest.mark.parametrize("language", PAGES)
def test_the_page_shows_what_check_says(language: str) -> None:
    result = run("check", "--language", language)
    assert result.exit_code == 1
    assert result.output == blocks(PAGES[language])[-1]


def test_the_rule_has_a_page_of_its_own() -> None:
    result = run("rule", "ACME001")
    assert result.exit_code == 0
    assert result.output.startswith("# ACME001 acme-gpu-helper\n")
    assert "batch = acme.npu.to_npu(batch)" in result.output
    assert "http" not in result.output, "a page that does not exist"
    assert run("rule", "acme-cuda-operator", "--language", "zh").output.startswith("# ACME002")


def test_own_codes_are_selected_ignored_and_suppressed() -> None:
    def codes(*options: str) -> list[str]:
        lines = run("check", "--output-format", "jsonl", *options).stdout.splitlines()
        return [json.loads(line)["code"] for line in lines]

    assert codes() == ["ACME001", "ACME002"]
    assert codes("--ignore", "ACME") == []
    assert codes("--select", "ACME002") == ["ACME002"]
    text = "from acme.ops import fused_scatter  # npulens: ignore[ACME002]\n"
    assert list(findings(text)) == []


def test_the_editor_knows_them_too(tmp_path: Path) -> None:
    for name in SHOWN:
        (tmp_path / name).write_bytes((EXAMPLE / name).read_bytes())
    uri = (tmp_path / "train.py").as_uri()
    with LspClient() as client:
        client.initialize()
        client.open(uri, (EXAMPLE / "train.py").read_text(encoding="utf-8"))
        found = client.diagnostics(uri, 1)
        assert [each["code"] for each in found] == ["ACME001", "ACME002"]
        assert not any("codeDescription" in each for each in found)


def findings(text: str) -> tuple[Finding, ...]:
    return analyze(Document("train.py", text), CATALOGUE, Target())


FIXES = [
    (
        "from acme.gpu import to_gpu\nto_gpu(x)\n",
        "from acme.npu import to_npu as to_gpu\nto_gpu(x)\n",
    ),
    (
        "from acme.gpu import to_gpu, other\n",
        "from acme.gpu import other\nfrom acme.npu import to_npu as to_gpu\n",
    ),
    (
        "import acme.gpu\nacme.gpu.to_gpu(x)\nacme.gpu.to_gpu(y)\n",
        "import acme.gpu\nimport acme.npu\nacme.npu.to_npu(x)\nacme.npu.to_npu(y)\n",
    ),
    (
        "import acme.gpu as g\nimport acme.npu\ng.to_gpu(x)\n",
        "import acme.npu\nacme.npu.to_npu(x)\n",
    ),
    (
        "import acme\nfrom acme import gpu, npu\ngpu.to_gpu(x)\n",
        "import acme\nfrom acme import npu\nimport acme.npu\nacme.npu.to_npu(x)\n",
    ),
    (
        "import acme.gpu as g\nacme = 3\ng.to_gpu(x)\n",  # the name is taken
        "import acme.gpu as g\nacme = 3\ng.to_gpu(x)\n",
    ),
    (
        "import torch\nimport acme.gpu\n\nacme.gpu.to_gpu(x)\n",  # and no torch_npu for it
        "import torch\nimport acme.gpu\nimport acme.npu\n\nacme.npu.to_npu(x)\n",
    ),
    ("acme.ops.fused_scatter(x)\n", "acme.ops.fused_scatter(x)\n"),
    (
        "import acme.ops\nacme.ops.fused_scatter(x)\n",
        "import acme.ops\nacme.ops.fused_scatter(x)\n",
    ),
]


@pytest.mark.parametrize(("before", "after"), FIXES)
def test_fixes_import_what_they_use(before: str, after: str) -> None:
    assert fix_text(before, findings, Applicability.SAFE).text == after
    assert fix_text(after, findings, Applicability.SAFE).text == after


def test_where_a_function_imports_the_package_the_fix_is_to_be_read() -> None:
    [finding] = findings("def f():\n    import acme.gpu\n    acme.gpu.to_gpu(x)\n")
    assert [fix.applicability for fix in finding.fixes] == [Applicability.UNSAFE]


def test_examples_of_own_rules_hold() -> None:
    for rule in CATALOGUE.rules.values():
        if rule.family == "acme":
            for example in rule.examples:
                assert [f.rule.code for f in findings(example.before)] == [rule.code]
                if example.after is not None:
                    assert (
                        fix_text(example.before, findings, Applicability.SAFE).text == example.after
                    )


NOT_OURS = [
    "from other.gpu import to_gpu\nto_gpu(x)\n",
    "def to_gpu(x): ...\nto_gpu(x)\n",
    "from .acme.gpu import to_gpu\nto_gpu(x)\n",
    "from acme.npu import to_npu\nto_npu(x)\n",
    "x = 'acme.gpu.to_gpu'\n",
    "# acme.gpu.to_gpu\n",
    "class acme:\n    class gpu:\n        to_gpu = 3\nacme.gpu.to_gpu\n",
]


@pytest.mark.parametrize("text", NOT_OURS)
def test_what_looks_alike_is_left_alone(text: str) -> None:
    assert findings(text) == ()


def renaming(tmp_path: Path, old: str, new: str) -> Catalogue:
    """A catalogue with a rule of one's own that renames something."""
    rule = {
        "code": "PEER001",
        "name": "peer-rename",
        "severity": "error",
        "message": {
            "en": "`{symbol}` becomes `{replacement}`.",
            "zh": "`{symbol}` 改为 `{replacement}`。",
        },
        "explanation": {"en": "Rename.", "zh": "改名。"},
        "examples": [{"before": ["x"], "after": ["x"]}],
    }
    entry = {"symbol": old, "rule": "peer-rename", "becomes": new, "fix": "safe", "source": "x"}
    file = tmp_path / "rules.json"
    file.write_text(json.dumps({"family": "peer", "rules": [rule], "symbols": [entry]}))
    return load_catalogue([file])


@pytest.mark.parametrize(
    ("old", "new", "before", "after"),
    [
        (
            *("AA.BB.old_name", "AA.BB.new_name"),
            "import AA.BB.old_name\nAA.BB.old_name.func()\n",
            "import AA.BB\nAA.BB.new_name.func()\n",
        ),
        ("AA.old", "CC.new", "import AA.old\nAA.x()\n", "import AA\nAA.x()\n"),
        ("old", "new", "import old\n", "import old\n"),
    ],
)
def test_an_import_of_what_is_renamed_never_becomes_one_of_torch(
    tmp_path: Path, old: str, new: str, before: str, after: str
) -> None:
    catalogue = renaming(tmp_path, old, new)
    result = fix_text(
        before,
        lambda text: analyze(Document("a.py", text), catalogue, Target()),
        Applicability.SAFE,
    )
    assert result.text == after


MISH = '''\
"""Mish."""

import torch

RULE = "NPU708"
WORDS = ("softplus",)


def pattern(x):
    return x * torch.tanh(torch.nn.functional.softplus(x))


def replacement(x):
    return {becomes}
'''
BY_HAND = """\
import torch


def mish(x):
    return x * torch.tanh(torch.nn.functional.softplus(x))
"""


def with_pattern(folder: Path, becomes: str) -> Result:
    """What `check` says where a pattern of one's own becomes this."""
    (folder / "mish.py").write_text(MISH.format(becomes=becomes))
    (folder / "npulens.toml").write_text('extend-rules = ["mish.py"]\n')
    (folder / "model.py").write_text(BY_HAND)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return CliRunner().invoke(cli, ["check", "model.py"])


def test_a_pattern_may_become_a_function_of_pytorch(tmp_path: Path) -> None:
    result = with_pattern(tmp_path, "torch.nn.functional.mish(x)")
    assert result.exit_code == 1
    assert "help: Use torch.nn.functional.mish " in result.output


def test_a_pattern_that_calls_nothing_is_refused(tmp_path: Path) -> None:
    """A finding would have no name to propose."""
    result = with_pattern(tmp_path, "x * 2")
    assert result.exit_code == 2
    assert "mish.py: replacement must call something of torch_npu, torch" in result.output
