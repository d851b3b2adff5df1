"""`reasons` in the configuration: what would be settled is found all the same."""

import json
import re
from pathlib import Path

import pytest

from commands import command, invoke, records
from helpers import code
from lsp_client import LspClient
from npulens.analysis import analyze
from npulens.catalog.model import Language
from npulens.catalog.shipped_rules import rules_folder
from npulens.catalog.verdict_tables import read_reasons
from npulens.text.document import Document
from npulens.workspace.settings.catalogues import configured_catalogue
from npulens.workspace.settings.configuration import read_configuration

SCRIPT = code(
    """
    import torch

    try:
        import flash_attn
    except ImportError:
        flash_attn = None
    if device.type == "mps":
        model.cuda()
    """
)
HINT = [(4, "NPU613", "info", None)]
"""What is found of the script where no reason is overruled."""
CHINESE = re.compile(r"[\u4e00-\u9fff]")


def set_reasons(here: Path, text: str) -> None:
    (here / "npulens.toml").write_text(f"[reasons]\n{text}\n")


def found(*arguments: str) -> list[tuple[int, str, str, str | None]]:
    return [
        (each["line"], each["code"], each["severity"], each.get("overruled"))
        for each in records(*arguments)
    ]


def test_a_reason_settles_nothing_where_the_configuration_says_so(here: Path) -> None:
    (here / "a.py").write_text(SCRIPT)
    assert found() == HINT
    for severity in ("error", "warning", "info", "hint"):
        set_reasons(here, f'fallback = "{severity}"')
        for _ in range(2):  # the second time from the cache
            assert found() == [(4, "NPU602", severity, "fallback")]
    set_reasons(here, 'fallback = "hint"\nother-device = "error"')
    both = [(4, "NPU602", "hint", "fallback"), (8, "NPU105", "error", "other-device")]
    assert found() == both
    assert found("--select", "NPU6") == both[:1]
    set_reasons(here, 'fallback = "settled"')
    assert found() == HINT


def test_the_message_says_why_it_would_be_settled_and_by_what(here: Path) -> None:
    (here / "a.py").write_text(SCRIPT)
    set_reasons(here, 'other-device = "warning"')
    _, record = records()
    assert record["message"].endswith(
        "By default this is settled: this is for another device "
        '(line 7, `device.type == "mps"`) [other-device]; the configuration has that reported.'
    )
    assert record["fix"] is None
    assert [part["line"] for part in record["related"]] == [7]
    _, record = json.loads(invoke("check", "--output-format", "json", "--language", "zh")[1])
    assert "默认无需处理：此处面向其他设备（第 7 行" in record["message"]
    _, output, _ = invoke("check")
    assert "a.py:8:11: warning NPU105 cuda-method: " in output
    assert "1 settled" not in output
    assert "other-device" in invoke("explain", "a.py:8")[1]


def test_severities_of_rules_do_not_change_that_of_a_reason(here: Path) -> None:
    (here / "a.py").write_text(SCRIPT)
    (here / "npulens.toml").write_text(
        '[severities]\nNPU = "error"\n[reasons]\nfallback = "hint"\n'
    )
    assert found() == [(4, "NPU602", "hint", "fallback")]


def test_comments_suppress_what_is_found_so(here: Path) -> None:
    comment = "  # npulens: ignore[NPU602]"
    (here / "a.py").write_text(SCRIPT.replace("import flash_attn", f"import flash_attn{comment}"))
    assert [each["code"] for each in records()] == ["NPU613", "NPU002"]  # settled anyway
    set_reasons(here, 'fallback = "warning"')
    assert records() == []
    set_reasons(here, 'fallback = "warning"\nsuppressed = "info"')
    assert found() == [(4, "NPU602", "info", "suppressed")]


def test_places_in_a_script_and_a_notebook(here: Path) -> None:
    set_reasons(here, 'other-device = "warning"')
    body = "import torch\nif device.type == 'mps':\n    x.cuda()\n"
    (here / "run.sh").write_text(f"echo\npython - <<'EOF'\n{body}EOF\n")
    cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": s} for s in ("1", body)]
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (here / "b.ipynb").write_text(json.dumps(notebook))
    lines = [(each["path"], each["line"], each["message"].split(") [")[0]) for each in records()]
    assert [each[:2] for each in lines] == [("b.ipynb", 3), ("run.sh", 5)]
    assert "(line 2, " in lines[0][2]
    assert "(line 4, " in lines[1][2]


def test_no_command_changes_such_a_place(here: Path) -> None:
    project = here / "project"
    project.mkdir()
    (project / "a.py").write_text(SCRIPT)
    set_reasons(project, "\n".join(f'{name} = "error"' for name in ("fallback", "other-device")))
    assert invoke("fix", "project", "--unsafe-fixes", "--allow-dirty")[0] == 1
    assert (project / "a.py").read_text() == SCRIPT
    assert invoke("migrate", "project", "-o", "moved")[0] == 1
    log = json.loads((here / "moved/npulens-migration/change_log.json").read_text())
    assert [(each["line"], each["code"]) for each in log["left"]] == [(4, "NPU602"), (8, "NPU105")]
    assert (here / "moved/a.py").read_text() == SCRIPT
    assert "NPU602" in invoke("report", "project")[1]


WRONG = [
    ("reasons = 1", '"reasons" must be a table of reasons, each with a severity'),
    (
        '[reasons]\nfallbak = "info"',
        'reasons: there is no reason "fallbak"; did you mean "fallback"?',
    ),
    ('[reasons]\nzzz = "info"', 'reasons: there is no reason "zzz"'),
    ('[reasons]\nfallback = "bad"', '"reasons" must be "error" or "warning" or "info" or "hint" o'),
    ('[reasons]\nrule-off = "info"', '"rule-off" cannot be overruled; select the rule instead'),
]


@pytest.mark.parametrize(("text", "sentence"), WRONG)
def test_what_cannot_be_used_is_refused(here: Path, text: str, sentence: str) -> None:
    (here / "npulens.toml").write_text(text)
    result = command("check")
    assert (result.returncode, result.stdout) == (2, b"")
    error_message = result.stderr.decode()
    assert error_message.startswith(f"npulens: {here / 'npulens.toml'}: ")
    assert sentence in error_message
    assert error_message.count("\n") == 1
    result = command("check", "--language", "zh")
    assert CHINESE.search(result.stderr.decode())


def test_an_editor_shows_them_and_complains(tmp_path: Path) -> None:
    configuration = tmp_path / "npulens.toml"
    configuration.write_text('[reasons]\nfallback = "warning"\n')
    uri = (tmp_path / "a.py").as_uri()
    with LspClient() as client:
        client.initialize(rootUri=tmp_path.as_uri())
        client.open(uri, SCRIPT)
        (diagnostic,) = client.diagnostics(uri, 1)
        assert (diagnostic["code"], diagnostic["severity"]) == ("NPU602", 2)
        assert "By default this is settled" in diagnostic["message"]
        configuration.write_text('[reasons]\nfallbak = "warning"\n')
        client.published.clear()
        client.save(uri)
        client.diagnostics(uri, 1)
        (shown,) = client.shown
        assert 'no reason "fallbak"; did you mean "fallback"' in shown["message"]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_reason_is_documented(language: Language) -> None:
    name = "settled.md" if language == "en" else "settled.zh-CN.md"
    page = (Path(__file__).parents[1] / "docs" / name).read_text(encoding="utf-8")
    for reason, wording in read_reasons(rules_folder()).items():
        assert f"| `{reason}` | {wording.why.in_language(language)} |" in page


def test_every_reason_can_be_overruled_but_that_of_the_configuration(here: Path) -> None:
    names = read_reasons(rules_folder()).keys() - {"rule-off"}
    set_reasons(here, "\n".join(f'{name} = "info"' for name in sorted(names)))
    configuration = read_configuration(here / "npulens.toml")
    catalogue = configured_catalogue(configuration)
    kept = analyze(Document("a.py", SCRIPT), catalogue, configuration.target)
    assert [finding.rule.code for finding in kept] == ["NPU602", "NPU105"]
