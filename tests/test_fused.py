"""Fused operators through the faces: where findings point, what fixes leave, private patterns."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from helpers import AGNOSTIC, NPU, code, findings, fixed
from lsp_client import LspClient
from npulens.catalog.loader import load_catalogue
from npulens.catalog.model import Applicability, MigrationStyle
from npulens.cli.main import cli
from npulens.fused.known_patterns import known_patterns
from npulens.fused.patterns import read_patterns

NORM = code(
    """
    import torch
    from torch import nn


    class Norm(nn.Module):
        def __init__(self, width, eps=1e-6):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(width))
            self.eps = eps

        def forward(self, hidden):
            kind = hidden.dtype  # as it came in
            hidden = hidden.float()
            variance = hidden.pow(2).mean(-1, keepdim=True)
            hidden = hidden * torch.rsqrt(variance + self.eps)
            return self.weight * hidden.to(kind)
    """
)


def only(source: str, style: MigrationStyle = NPU) -> list[str]:
    """The codes of the fused family."""
    return [f.rule.code for f in findings(source, style) if f.rule.family == "fused"]


def test_the_finding_is_the_result_and_names_the_lines_before() -> None:
    [finding] = findings(NORM)
    assert NORM[slice(*finding.span)] == "self.weight * hidden.to(kind)"
    lines = [NORM[: part.span.start].count("\n") + 1 for part in finding.related]
    assert lines == [13, 14, 15]


def test_the_fix_takes_out_what_only_it_needed_and_keeps_comments() -> None:
    after = fixed(NORM)
    body = after.partition("def forward(self, hidden):\n")[2]
    assert body == (
        "        # as it came in\n"
        "        return torch_npu.npu_rms_norm("
        "hidden, self.weight.to(hidden.dtype), epsilon=self.eps)[0]\n"
    )
    assert "self.weight = nn.Parameter(torch.ones(width))" in after
    assert only(after) == []


def test_nothing_is_fixed_unasked() -> None:
    assert fixed(NORM, applicability=Applicability.SAFE) == NORM
    [finding] = findings(NORM)
    assert {fix.applicability for fix in finding.fixes} == {Applicability.UNSAFE}


def test_the_other_style_keeps_the_code_for_other_devices() -> None:
    after = fixed(NORM, AGNOSTIC)
    assert '        if hidden.device.type == "npu":\n            import torch_npu\n' in after
    assert after.replace("\n", "").endswith("return self.weight * hidden.to(kind)")
    assert only(after, AGNOSTIC) == []


KEPT = {
    "a value that is used again": (
        "def f(x, weight):\n"
        "    mean = x.pow(2).mean(-1, keepdim=True)\n"
        "    y = weight * (x * torch.rsqrt(mean + 1e-6))\n"
        "    return y, mean\n",
        "    mean = x.pow(2).mean(-1, keepdim=True)\n",
    ),
    "a call that may do more": (
        "def f(x, weight):\n"
        "    note(x)\n"
        "    return weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))\n",
        "    note(x)\n",
    ),
    "a name that a function reads later": (
        "def f(x, weight):\n"
        "    mean = x.pow(2).mean(-1, keepdim=True)\n"
        "    log(lambda: mean)\n"
        "    return weight * (x * torch.rsqrt(mean + 1e-6))\n",
        "    mean = x.pow(2).mean(-1, keepdim=True)\n",
    ),
}


@pytest.mark.parametrize(("body", "line"), KEPT.values(), ids=KEPT)
def test_what_something_else_needs_stays(body: str, line: str) -> None:
    after = fixed(f"import torch\n{body}")
    assert "npu_rms_norm(x, weight.to(x.dtype), epsilon=1e-06)" in after
    assert line in after


NO_EDIT = {
    "a comment inside the expression": (
        "def f(x, weight):\n"
        "    y = weight * (  # the gain\n"
        "        x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)\n"
        "    )\n"
        "    return y + 1\n"
    ),
    "the input is gone": (
        "def f(x, weight):\n"
        "    mean = x.pow(2).mean(-1, keepdim=True)\n"
        "    scaled = x * torch.rsqrt(mean + 1e-6)\n"
        "    x = other()\n"
        "    use(x)\n"
        "    return weight * scaled\n"
    ),
}


@pytest.mark.parametrize("body", NO_EDIT.values(), ids=NO_EDIT)
def test_where_no_edit_is_right_there_is_none(body: str) -> None:
    source = f"import torch\n{body}"
    assert only(source) == ["NPU701"]
    assert fixed(source) == source


NOT_LOOKED_AT = {
    "a way for the NPU beside it": (
        "def f(x, weight):\n"
        "    if is_torch_npu_available():\n"
        "        return torch_npu.npu_rms_norm(x, weight.to(x.dtype), epsilon=1e-6)[0]\n"
        "    return weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))\n"
    ),
    "no torch at all": (
        "def f(x, weight):\n"
        "    return weight * (x * np.rsqrt(np.square(x).mean(-1, keepdims=True) + 1e-6))\n"
    ),
    "suppressed": (
        "def f(x, weight):\n"
        "    return weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))"
        "  # npulens: ignore[NPU701]\n"
    ),
}


@pytest.mark.parametrize("body", NOT_LOOKED_AT.values(), ids=NOT_LOOKED_AT)
def test_not_a_finding(body: str) -> None:
    head = "import numpy as np\n" if "np." in body else "import torch\n"
    assert only(head + body) == []


# Faces


def test_reports_name_the_lines(tmp_path: Path) -> None:
    file = tmp_path / "norm.py"
    file.write_text(NORM, encoding="utf-8")
    shown = CliRunner().invoke(cli, ["check", "--language", "en", str(file)]).output
    assert "= with lines 1" in shown
    in_chinese = CliRunner().invoke(cli, ["check", "--language", "zh", str(file)]).output
    assert "涉及第 1" in in_chinese
    as_json = CliRunner().invoke(cli, ["check", "--output-format", "json", str(file)]).output
    [record] = json.loads(as_json)
    assert [part["line"] for part in record["related"]]


@pytest.mark.parametrize("takes_them", [True, False])
def test_the_editor_is_told_the_lines(tmp_path: Path, takes_them: bool) -> None:
    uri = (tmp_path / "norm.py").as_uri()
    publish = {"publishDiagnostics": {"relatedInformation": takes_them}}
    with LspClient() as client:
        client.initialize(capabilities={"textDocument": publish})
        client.open(uri, NORM)
        [diagnostic] = client.diagnostics(uri, 1)
        assert bool(diagnostic.get("relatedInformation")) is takes_them
        client.shut_down()


# Private patterns

PRIVATE_RULES = {
    "family": "acme",
    "rules": [
        {
            "code": "ACME701",
            "name": "acme-scaled-sum",
            "severity": "info",
            "message": {"en": "Use `{replacement}`.", "zh": "请使用 `{replacement}`。"},
            "explanation": {"en": "One kernel.", "zh": "一个算子。"},
            "examples": [],
        }
    ],
}
PRIVATE_PATTERN = '''"""A scaled sum."""

import torch_npu
import acme

RULE = "ACME701"
WORDS = ("softplus",)
CHECK = {"en": "Look twice.", "zh": "请确认。"}


def pattern(x, y):
    return x.softplus() + 2 * y


def replacement(x, y):
    return acme.scaled_sum(x, y)


raise SystemExit("patterns are read, never run")
'''


def project(folder: Path, pattern: str) -> Path:
    (folder / "npulens.toml").write_text(
        'extend-rules = ["acme.json", "scaled_sum.py"]\n', encoding="utf-8"
    )
    (folder / "acme.json").write_text(json.dumps(PRIVATE_RULES), encoding="utf-8")
    (folder / "scaled_sum.py").write_text(pattern, encoding="utf-8")
    source = folder / "train.py"
    source.write_text(
        "import torch\nimport torch.nn.functional as F\n\n\n"
        "def f(a, b):\n    return b * 2.0 + F.softplus(a)\n",
        encoding="utf-8",
    )
    return source


def test_a_private_pattern_is_read_and_never_run(tmp_path: Path) -> None:
    source = project(tmp_path, PRIVATE_PATTERN)
    result = CliRunner().invoke(cli, ["check", "--output-format", "json", str(source)])
    assert result.exit_code == 1, result.output
    [record] = json.loads(result.output)
    assert record["code"] == "ACME701"
    [edit, *_] = [e for e in record["fix"]["edits"] if "acme.scaled_sum" in e["new_text"]]
    assert edit["new_text"] == "acme.scaled_sum(a, b)"
    assert record["message"] == "Use `acme.scaled_sum`. Look twice."
    added = [e["new_text"] for e in record["fix"]["edits"] if e is not edit]
    assert any("import acme" in text for text in added) and "torch_npu" not in str(added)


def test_a_replacement_of_torch_is_named_and_needs_no_torch_npu(tmp_path: Path) -> None:
    pattern = PRIVATE_PATTERN.replace("acme.scaled_sum(x, y)", "torch.addcmul(x, x, y)")
    source = project(tmp_path, pattern)
    result = CliRunner().invoke(cli, ["check", "--output-format", "json", str(source)])
    [record] = json.loads(result.output)
    assert record["message"] == "Use `torch.addcmul`. Look twice."
    assert record["fix"]["title"] == "Use torch.addcmul"
    result = CliRunner().invoke(cli, ["fix", "--unsafe-fixes", "--allow-dirty", str(source)])
    text = source.read_text(encoding="utf-8")
    assert "return torch.addcmul(a, a, b)" in text and "torch_npu" not in text


BROKEN = {
    "no words": PRIVATE_PATTERN.replace("WORDS", "SOUNDS"),
    "beside, not a tuple": PRIVATE_PATTERN.replace("CHECK =", 'BESIDE = "product"\nCHECK ='),
    "unknown beside": PRIVATE_PATTERN.replace("CHECK =", 'BESIDE = ("a moon",)\nCHECK ='),
    "does not parse": PRIVATE_PATTERN.replace("def pattern(x, y):", "def pattern(x, y:"),
    "nothing to replace by": PRIVATE_PATTERN.replace("def replacement", "def other"),
    "nothing that is called": PRIVATE_PATTERN.replace("acme.scaled_sum(x, y)", "x + y"),
    "only a method": PRIVATE_PATTERN.replace("acme.scaled_sum(x, y)", "x.add(y)"),
    "an unknown rule": PRIVATE_PATTERN.replace("ACME701", "ACME999"),
    "an unknown condition": PRIVATE_PATTERN.replace(
        "CHECK =", 'CONDITIONS = {"x": ("blue",)}\nCHECK ='
    ),
    "a text in one language": PRIVATE_PATTERN.replace(', "zh": "请确认。"', ""),
    "an unknown applicability": PRIVATE_PATTERN.replace("CHECK =", 'APPLICABILITY = "x"\nCHECK ='),
}


@pytest.mark.parametrize("pattern", BROKEN.values(), ids=BROKEN)
def test_a_broken_pattern_file_is_refused_in_one_sentence(tmp_path: Path, pattern: str) -> None:
    source = project(tmp_path, pattern)
    result = CliRunner().invoke(cli, ["check", str(source)])
    assert result.exit_code == 2
    assert "scaled_sum.py" in result.output
    assert len(result.output.strip().splitlines()) == 1
    assert "Traceback" not in result.output


def test_patterns_are_known_as_they_are_read() -> None:
    sources = load_catalogue().patterns
    edited = tuple(replace(source, text=f"{source.text}\n") for source in sources[:4])
    for files in (sources, edited):  # what is compiled, and what is not
        read: dict[str, list[tuple[object, ...]]] = {}
        for each in read_patterns(files):
            read.setdefault(each.root.operator, []).append((each.name, each.choice, each.traits))
        known = {
            operator: [(each.pattern.name, each.pattern.choice, each.traits) for each in found]
            for operator, found in known_patterns(files).items()
        }
        assert known == read
