"""One file for each rule: what stands in it is known nowhere else, and loads as one file."""

import ast
import json
import shutil
from collections import defaultdict
from pathlib import Path

import pytest

from npulens.catalog.compiled_tables import COMPILED
from npulens.catalog.loader import CatalogueError, load_catalogue
from npulens.catalog.shipped_rules import rule_tables, rules_folder, shipped_rules

SERVER = Path(__file__).resolve().parents[1] / "server" / "npulens"
CHECKS = ("checks", "fused", "shapes")
ALSO_WORDS = {"nvidia-smi", "attention", "geglu"}
"""A command, and words of other code."""
RULES = load_catalogue().rules


def modules_that_name_rules() -> dict[str, set[str]]:
    """For each code and name of a rule, the modules in which it stands as a string."""
    names = {*RULES, *(rule.name for rule in RULES.values())} - ALSO_WORDS
    found: dict[str, set[str]] = defaultdict(set)
    for path in SERVER.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and node.value in names:
                found[node.value].add(path.relative_to(SERVER).as_posix())
    return found


def test_a_rule_is_named_in_its_check_alone() -> None:
    named = modules_that_name_rules()
    assert named
    assert {name: sorted(modules) for name, modules in named.items() if len(modules) > 1} == {}
    elsewhere = {
        name: modules
        for name, modules in named.items()
        if not all(module.startswith(CHECKS) for module in modules)
    }
    assert elsewhere == {}


def test_no_code_stands_in_the_engine() -> None:
    assert RULES.keys() & modules_that_name_rules().keys() == set()


def test_every_rule_has_a_file_of_its_name_in_the_folder_of_its_family() -> None:
    files = {path.stem: path.parent.name for path in rules_folder().glob("*/*.toml")}
    assert {rule.name: rule.family for rule in RULES.values()}.items() <= files.items()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "rules"
    shutil.copytree(rules_folder(), folder, ignore=shutil.ignore_patterns(f"{COMPILED}*"))
    return folder


def severity(folder: Path) -> object:
    [file] = [f for f in shipped_rules(folder) if f.label == "rules/device/is-cuda.toml"]
    [rule] = file.lists["rules"]
    assert isinstance(rule, dict)
    return rule["severity"]


def test_a_changed_rule_is_compiled_again(checkout: Path) -> None:
    assert severity(checkout) == "error"
    before = (checkout / COMPILED).read_bytes()
    assert severity(checkout) == "error"
    assert (checkout / COMPILED).read_bytes() == before
    file = checkout / "device" / "is-cuda.toml"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace('severity = "error"', 'severity = "info"'), encoding="utf-8")
    assert severity(checkout) == "info"
    assert sorted(path.name for path in checkout.iterdir() if path.is_file()) == [
        COMPILED,
        "guide.toml",
    ]


def test_a_rule_that_was_removed_is_gone(checkout: Path) -> None:
    severity(checkout)
    (checkout / "device" / "is-cuda.toml").unlink()
    labels = {file.label for file in shipped_rules(checkout)}
    assert "rules/device/is-cuda.toml" not in labels


def test_an_installed_npulens_has_the_compiled_file_alone(checkout: Path) -> None:
    (checkout / COMPILED).write_text(rule_tables(checkout).compiled(), encoding="utf-8")
    for path in checkout.glob("*/*.toml"):
        path.unlink()
    assert severity(checkout) == "error"


def test_a_checkout_that_cannot_be_written_works(checkout: Path) -> None:
    (checkout / COMPILED).mkdir()  # no file can take its place, whoever runs the test
    for _ in range(2):
        assert severity(checkout) == "error"
    assert [path.name for path in checkout.iterdir() if path.is_file()] == ["guide.toml"]


@pytest.mark.parametrize("broken", ["", "{", "[]", "{}", '{"stamp": [], "files": 1}'])
def test_a_broken_compiled_file_is_made_again(checkout: Path, broken: str) -> None:
    (checkout / COMPILED).write_text(broken)
    assert severity(checkout) == "error"
    assert json.loads((checkout / COMPILED).read_text(encoding="utf-8"))["files"]


def test_rules_are_compiled_again_by_changed_code(checkout: Path) -> None:
    severity(checkout)
    made = json.loads((checkout / COMPILED).read_text(encoding="utf-8"))
    assert {"rule_toml.py", "sections.py"} <= {name for name, *_ in made["stamp"]}
    made["stamp"] = [[*row[:2], 0] if row[0] == "rule_toml.py" else row for row in made["stamp"]]
    made["files"] = []
    (checkout / COMPILED).write_text(json.dumps(made), encoding="utf-8")
    assert severity(checkout) == "error"


OWN = """
code = "MY001"
severity = "error"
message.en = "`{symbol}` is ours."
message.zh = "`{symbol}` 是我们的。"
explanation.en = '''
One.

Two.
'''
explanation.zh = "一。"
valid = ['''
import other
''']

[[examples]]
before = '''
import ours.name
'''

[[symbols]]
symbol = "ours.name"
source = "us"
"""


def own(folder: Path, text: str, name: str = "our-rule.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_rule_in_toml_is_named_like_its_file(tmp_path: Path) -> None:
    catalogue = load_catalogue([own(tmp_path, OWN)])
    rule = catalogue.rules["MY001"]
    assert (rule.name, rule.family) == ("our-rule", "own")
    assert rule.explanation.en == "One.\n\nTwo."
    assert rule.valid == ("import other\n",)
    assert [(e.before, e.after) for e in rule.examples] == [("import ours.name\n", None)]
    assert catalogue.symbols["ours.name"].rule is rule


def test_entries_in_toml_may_be_of_another_rule(tmp_path: Path) -> None:
    entry = '[[libraries]]\nsymbol = "ours"\nrule = "cuda-library"\nsource = "us"\n'
    catalogue = load_catalogue([own(tmp_path, entry)])
    assert catalogue.libraries["ours"].rule.name == "cuda-library"


@pytest.mark.parametrize(
    ("text", "name", "problem"),
    [
        ("code = ", "our-rule.toml", "not valid TOML: Invalid value (at end of document)"),
        ('code = "MY001"\n', "our-rule.toml", 'rules[0] MY001: field "severity" is missing'),
        (OWN, "OurRule.toml", '"name" must be a name in kebab-case, not "OurRule"'),
        (OWN.replace('"error"', '"bad"', 1), "our-rule.toml", '"severity" must be one of'),
        (f"once = 'day'\n{OWN}", "our-rule.toml", '"once" must be one of file, project'),
        (f"minutes = -1\n{OWN}", "our-rule.toml", '"minutes" must be a whole number from 0'),
        (f"rules = []\n{OWN}", "our-rule.toml", 'unknown field "rules"'),
        (f"name = 'x'\n{OWN}", "our-rule.toml", 'unknown field "name"'),
        (f"unheard = 1\n{OWN}", "our-rule.toml", 'unknown field "unheard"'),
        (f"{OWN}unheard = 1\n", "our-rule.toml", 'symbols[0] ours.name: unknown field "unheard"'),
        (OWN.replace("[[symbols]]", "[symbols]"), "our-rule.toml", '"symbols" must be a list'),
        (f"code = {'[' * 5000}", "our-rule.toml", "not valid TOML: it is nested too deeply"),
        ("[[symbols]]\nsymbol = 'a.b'\nsource = 'x'\n", "t.toml", 'field "rule" is missing'),
    ],
)
def test_what_is_wrong_in_toml_is_said(tmp_path: Path, text: str, name: str, problem: str) -> None:
    path = own(tmp_path, text, name)
    with pytest.raises(CatalogueError) as caught:
        load_catalogue([path])
    assert str(caught.value).startswith(f"{path}: ")
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_compiled_file_is_json_that_programs_can_read() -> None:
    load_catalogue()
    content = json.loads((rules_folder() / COMPILED).read_text(encoding="utf-8"))
    assert {label for label, _ in content["files"]} >= {"rules/device/is-cuda.toml"}
