from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

import pytest

from npulens.catalog.model import (
    Finding,
    LocalizedText,
    MigrationStyle,
    Rule,
    Severity,
    Target,
    TorchVersion,
)
from npulens.catalog.tables import Catalogue
from npulens.text.spans import Span
from npulens.workspace.settings.configuration import (
    Configuration,
    ConfigurationError,
    find_configuration,
    parse_torch_version,
    read_configuration,
    require_known_rules,
)
from npulens.workspace.settings.project_version import NEWEST
from npulens.workspace.settings.selection import selected


def test_default_is_the_newest_release(tmp_path: Path) -> None:
    assert Configuration().target == Target(NEWEST)
    assert Configuration().root == Path()


def test_every_key(tmp_path: Path) -> None:
    file = tmp_path / "npulens.toml"
    file.write_text(
        """
        torch-version = "2.6.0"
        migration-style = "device-agnostic"
        autoload = true
        select = ["NPU1", "nccl-backend"]
        extend-select = ["NPU505"]
        ignore = ["NPU104"]
        exclude = ["third_party/", "*_pb2.py"]
        respect-gitignore = false
        extend-rules = ["rules/ours.json", "/etc/rules.json"]
        language = "zh"
        [per-file-ignores]
        "tests/" = ["NPU2", "cuda-api"]
        [severities]
        NPU1 = "info"
        [reasons]
        fallback = "warning"
        text = "settled"
        """
    )
    configuration = find_configuration(tmp_path)
    assert configuration == Configuration(
        torch_version=TorchVersion(2, 6),
        style=MigrationStyle.DEVICE_AGNOSTIC,
        autoload=True,
        select=("NPU1", "nccl-backend"),
        extend_select=("NPU505",),
        ignore=("NPU104",),
        exclude=("third_party/", "*_pb2.py"),
        respect_gitignore=False,
        per_file_ignores=(("tests/", ("NPU2", "cuda-api")),),
        severities=(("NPU1", Severity.INFO),),
        reasons=(("fallback", Severity.WARNING),),
        extend_rules=(tmp_path / "rules/ours.json", Path("/etc/rules.json")),
        language="zh",
        source=file,
    )
    changed = [f.name for f in fields(Configuration) if getattr(configuration, f.name) == f.default]
    assert changed == ["project_version", "folder"], "a key is not tested"
    assert configuration.root == tmp_path
    (reason,) = configuration.target.reasons
    assert (reason.name, reason.severity) == ("fallback", Severity.WARNING)
    assert configuration.target == Target(
        TorchVersion(2, 6), MigrationStyle.DEVICE_AGNOSTIC, autoload=True, reasons=(reason,)
    )


NPULENS = 'language = "zh"\n'
PYPROJECT = '[project]\nname = "x"\n[tool.npulens]\nlanguage = "zh"\n'
OTHER = '[project]\nname = "x"\n'
DEPENDENT = '[project]\nname = "x"\ndependencies = ["npulens"]\n'
BROKEN = "[project\n"


@pytest.mark.parametrize(
    ("files", "source"),
    [
        ({"npulens.toml": NPULENS}, "npulens.toml"),
        ({"pyproject.toml": PYPROJECT}, "pyproject.toml"),
        ({"pyproject.toml": PYPROJECT, "npulens.toml": NPULENS}, "npulens.toml"),
        ({"npulens.toml": NPULENS, "a/pyproject.toml": PYPROJECT}, "a/pyproject.toml"),
        ({"npulens.toml": NPULENS, "a/pyproject.toml": OTHER}, "npulens.toml"),
        ({"npulens.toml": NPULENS, "a/pyproject.toml": DEPENDENT}, "npulens.toml"),
        ({"npulens.toml": NPULENS, "a/pyproject.toml": BROKEN}, "npulens.toml"),
        ({"a/b/c/npulens.toml": NPULENS, "a/x/npulens.toml": NPULENS}, None),
        ({"pyproject.toml": "[tool.npulens]\n"}, "pyproject.toml"),
        ({"npulens.toml": ""}, "npulens.toml"),
        ({"npulens.toml": "\ufeff" + NPULENS}, "npulens.toml"),
    ],
)
def test_the_nearest_file_counts(
    tmp_path: Path, files: Mapping[str, str], source: str | None
) -> None:
    folder = tmp_path / "a/b"
    folder.mkdir(parents=True)
    (folder / "x.py").write_text("")
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    for start in (folder, folder / "x.py", folder / "missing.py", tmp_path / "a/c/../b"):
        assert find_configuration(start).source == (tmp_path / source if source else None)


def test_start_may_be_impossible(tmp_path: Path) -> None:
    (tmp_path / "npulens.toml").write_text(NPULENS)
    (tmp_path / "loop").symlink_to("loop")
    for name in ("loop", "x" * 300, "missing/folder"):
        assert find_configuration(tmp_path / name).language == "zh"


def test_start_may_be_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "npulens.toml").write_text(NPULENS)
    monkeypatch.chdir(tmp_path)
    assert find_configuration(Path()).source == tmp_path / "npulens.toml"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a = \n", "not valid TOML: Invalid value (at line 1, column 5)"),
        ('torch-verson = "2.8"', 'unknown key "torch-verson"; did you mean "torch-version"?'),
        ('torch_version = "2.8"', 'unknown key "torch_version"; did you mean "torch-version"?'),
        ("colour = 1", 'unknown key "colour"'),
        ("torch-version = 2.8", '"torch-version" must be a PyTorch version in quotes, such as'),
        ('torch-version = "2.5"', '"torch-version" must be a PyTorch version from 2.6 to 2.13'),
        ('torch-version = "2.14"', '"torch-version" must be a PyTorch version from 2.6 to 2.13'),
        ('torch-version = "new"', '"torch-version" must be a PyTorch version in quotes, such as'),
        ("migration-style = 1", '"migration-style" must be "npu" or "device-agnostic" or "runtime'),
        ('migration-style = "cuda"', '"migration-style" must be "npu" or "device-agnostic" or "'),
        ('select = "NPU1"', '"select" must be a list of texts that are not empty'),
        ("ignore = [1]", '"ignore" must be a list of texts that are not empty'),
        ('ignore = [""]', '"ignore" must be a list of texts that are not empty'),
        ("exclude = {}", '"exclude" must be a list of texts that are not empty'),
        ('exclude = ["!"]', '"exclude" must be a list of patterns as in .gitignore'),
        ('exclude = ["[z-a]"]', '"exclude" must be a list of patterns as in .gitignore'),
        ("respect-gitignore = 1", '"respect-gitignore" must be true or false'),
        ('extend-rules = "x.json"', '"extend-rules" must be a list of texts that are not empty'),
        ('language = "de"', '"language" must be "en" or "zh"'),
        ("a = " + "[" * 5000, "not valid TOML: "),
    ],
)
@pytest.mark.parametrize("name", ["npulens.toml", "pyproject.toml"])
def test_a_wrong_file_is_refused(tmp_path: Path, name: str, text: str, sentence: str) -> None:
    file = tmp_path / name
    file.write_text(text if name == "npulens.toml" else "[tool.npulens]\n" + text)
    with pytest.raises(ConfigurationError) as caught:
        find_configuration(tmp_path)
    message = str(caught.value)
    expected = sentence if name == "npulens.toml" else sentence.replace("line 1", "line 2")
    assert message.startswith(f"{file}: {expected}")
    assert "\n" not in message


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    file = tmp_path / "npulens.toml"
    file.write_bytes(b'language = "en"\n# \xff\n')
    with pytest.raises(ConfigurationError, match="line 2: must be UTF-8 text"):
        find_configuration(tmp_path)


def test_unreadable_file(tmp_path: Path) -> None:
    (tmp_path / "npulens.toml").mkdir()
    with pytest.raises(ConfigurationError, match=r"npulens.toml: cannot be read: Is a directory"):
        find_configuration(tmp_path)


def test_tool_npulens_must_be_a_table(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool]\nnpulens = 1\n")
    with pytest.raises(ConfigurationError, match=r"tool\.npulens must be a table"):
        find_configuration(tmp_path)


def test_a_file_named(tmp_path: Path) -> None:
    file = tmp_path / "other.toml"
    with pytest.raises(ConfigurationError, match=r"other\.toml: no such file"):
        read_configuration(file)
    file.write_text(NPULENS)
    assert read_configuration(file).language == "zh"
    project = tmp_path / "pyproject.toml"
    project.write_text(OTHER)
    with pytest.raises(ConfigurationError, match=r"no \[tool\.npulens\] in it"):
        read_configuration(project)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("2.8", (2, 8)),
        ("2.10", (2, 10)),
        ("2.7.1", (2, 7)),
        ("2.8.0+cpu", (2, 8)),
        ("2.9.0.post2", (2, 9)),
        ("2", None),
        ("", None),
        ("v2.8", None),
        ("2.8 ", None),
        ("2.x", None),
        ("٢.٨", None),
    ],
)
def test_versions(text: str, version: tuple[int, int] | None) -> None:
    assert parse_torch_version(text) == version


def rule(code: str, name: str, *, unread: bool = False) -> Rule:
    text = LocalizedText("x", "x")
    return Rule(code, name, "device", Severity.ERROR, text, text, unread=unread)


RULES = {
    r.code: r
    for r in [
        rule("NPU001", "syntax-error", unread=True),
        rule("NPU003", "unreadable-source", unread=True),
        rule("NPU101", "cuda-api"),
        rule("NPU110", "cuda-device-string"),
        rule("NPU201", "nccl-backend"),
    ]
}
CATALOGUE = Catalogue(RULES, {}, {}, {}, {})
ENGINE = ["NPU001", "NPU003"]


@pytest.mark.parametrize(
    ("select", "ignore", "codes"),
    [
        ([], [], [*ENGINE, "NPU101", "NPU110", "NPU201"]),
        (["NPU1"], [], [*ENGINE, "NPU101", "NPU110"]),
        (["nccl-backend"], [], [*ENGINE, "NPU201"]),
        (["NPU101", "NPU2"], [], [*ENGINE, "NPU101", "NPU201"]),
        ([], ["NPU1"], [*ENGINE, "NPU201"]),
        ([], ["NPU0"], ["NPU101", "NPU110", "NPU201"]),
        ([], ["syntax-error"], ["NPU003", "NPU101", "NPU110", "NPU201"]),
        (["NPU1"], ["NPU110"], [*ENGINE, "NPU101"]),
        (["NPU110"], ["NPU1"], [*ENGINE, "NPU110"]),
        (["NPU1"], ["NPU1"], ENGINE),
        (["NPU1"], ["NPU"], ["NPU101", "NPU110"]),
        (["cuda-api"], ["NPU101"], ENGINE),
    ],
)
def test_selection(select: list[str], ignore: list[str], codes: list[str]) -> None:
    configuration = Configuration(select=tuple(select), ignore=tuple(ignore))
    require_known_rules([*select, *ignore], "here", CATALOGUE)
    findings = [Finding(each, Span(0, 0)) for each in RULES.values()]
    assert [f.rule.code for f in selected(findings, configuration, "a.py")] == codes


@pytest.mark.parametrize(
    ("word", "ending"),
    [
        ("NPU111", '"NPU111"; did you mean "NPU110"?'),
        ("cuda-apy", '"cuda-apy"; did you mean "cuda-api"?'),
        ("cuda", '"cuda"; did you mean "cuda-api"?'),
        ("E501", '"E501"'),
        ("NPU1011", '"NPU1011"; did you mean "NPU101"?'),
        ("", '""'),
    ],
)
def test_an_unknown_rule_is_refused(word: str, ending: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        require_known_rules(["NPU1", word], "here", CATALOGUE)
    assert str(caught.value) == f"here: there is no rule {ending}"
