"""The documentation against the program: commands, options, output, pages, links."""

import ast
import importlib.util
import re
import shlex
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import click
import pytest
from click.testing import CliRunner

from npulens.catalog.loader import load_catalogue
from npulens.catalog.model import LANGUAGES
from npulens.cli.main import cli
from npulens.workspace.settings import configuration
from test_floors import FLOORS

ROOT = Path(__file__).resolve().parents[1]
ENGLISH, CHINESE = ROOT / "README.md", ROOT / "README.zh-CN.md"
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
FILES_OF_OURS = [
    *DOCUMENTS,
    *(
        ROOT / name
        for name in (
            ".ci/run",
            ".editorconfig",
            ".pre-commit-config.yaml",
            "examples/train_gpu.py",
            "pyproject.toml",
            "scripts/make_rule_pages.py",
            "scripts/test.sh",
        )
    ),
]
MACHINE_PATH = re.compile(
    r"(?<![\w.~])/(?:home|mnt|private|root|tmp|Users|work)/|[A-Z]:\\\\?Users|\.pyenv\b"
)


class Block(NamedTuple):
    """A fenced block of a Markdown file."""

    language: str
    text: str


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def blocks(path: Path) -> list[Block]:
    return [
        Block(*m.groups()) for m in re.finditer(r"^```(\w*)\n(.*?)^```$", read(path), re.M | re.S)
    ]


def prose(path: Path) -> str:
    """The text outside fenced blocks."""
    return re.sub(r"^```\w*\n.*?^```$", "", read(path), flags=re.M | re.S)


def headings(path: Path) -> list[str]:
    return re.findall(r"^(#+) (.+)$", prose(path), re.M)


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


# The README and the program


def commands(path: Path) -> Iterator[list[str]]:
    """The words of each `npulens ...` that a document shows, in a block or in a line."""
    shell = [line for b in blocks(path) if b.language == "sh" for line in b.text.splitlines()]
    spans = re.findall(r"`(npulens [^`]+)`", prose(path))
    for text in (*shell, *spans):
        for found in re.finditer(r"(?:^|[/\s])npulens ([^()|&;<>]+)", text):
            words = shlex.split(found[1])
            yield words[: words.index("--")] if "--" in words else words  # the rest is a script's


@pytest.mark.parametrize("path", [ENGLISH, CHINESE, ROOT / "CONTRIBUTING.md"], ids=relative)
def test_commands_and_their_options_exist(path: Path) -> None:
    for name, *arguments in commands(path):
        if name.startswith("-"):
            assert name == "--version"
            continue
        assert name in cli.commands, name
        known = {"--help"}
        for parameter in cli.commands[name].params:
            known.update(parameter.opts)
        for argument in arguments:
            if argument.startswith("-") and argument != "-":
                assert argument in known, f"{name} {argument}"


def test_every_command_is_in_the_readme() -> None:
    shown = {words[0] for words in commands(ENGLISH)}
    assert set(cli.commands) <= shown


def test_every_configuration_key_is_in_the_readme() -> None:
    for path in (ENGLISH, CHINESE):
        rows = re.findall(r"^\| `([\w-]+)` \|", read(path), re.M)
        assert set(configuration._KEYS) <= set(rows)


def test_the_configuration_in_the_readme_is_accepted(tmp_path: Path) -> None:
    [text] = [block.text for block in blocks(ENGLISH) if block.language == "toml"]
    file = tmp_path / "pyproject.toml"
    file.write_text(text, encoding="utf-8")
    read_back = configuration.read_configuration(file)
    for words in (read_back.select, read_back.ignore):
        configuration.require_known_rules(words, "README", load_catalogue())


def test_the_pictures_of_the_readme_show_what_check_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    path = ROOT / "scripts" / "make_pictures.py"
    spec = importlib.util.spec_from_file_location("make_pictures", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, text in module.pictures().items():
        assert read(module.FOLDER / name) == text, "run scripts/make_pictures.py"


@pytest.mark.parametrize("path", [ENGLISH, CHINESE], ids=relative)
def test_the_first_screen_has_both_pictures_and_the_two_commands(path: Path) -> None:
    first = "\n".join(read(path).split("\n")[:20])
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", first)
    assert [Path(each).suffix for each in pictures] == [".png", ".svg"]
    assert all((ROOT / each).is_file() for each in pictures)
    assert "pip install" in first
    assert "npulens check" in first


def test_fields_of_the_json_are_in_the_readme() -> None:
    output = checked_example("--output-format", "jsonl")
    fields = set(re.findall(r'"(\w+)": ', output))
    for path in (ENGLISH, CHINESE):
        text = read(path)
        missing = {field for field in fields if f"`{field}`" not in text}
        assert not missing


def checked_example(*options: str) -> str:
    """What `npulens check` says of the example, in the words of the README."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        result = CliRunner().invoke(cli, ["check", *options, "examples/train_gpu.py"])
    assert result.exit_code == 1, result.output
    return result.output


@pytest.mark.parametrize(("path", "language"), [(ENGLISH, "en"), (CHINESE, "zh")])
def test_the_output_in_the_readme_is_real(path: Path, language: str) -> None:
    output = checked_example("--language", language)
    [shown] = [block.text for block in blocks(path) if block.language == "text"]
    position = 0
    for part in shown.strip("\n").split("\n\n"):
        place = output.find(part, position)
        assert place >= 0, f"{path.name} shows what check does not say:\n{part}\n\n{output}"
        position = place + len(part)


def test_commands_to_install_and_to_test() -> None:
    install, test = (block.text.strip() for block in blocks(ENGLISH) if block.language == "sh")
    assert "npulens check examples/train_gpu.py" in install
    assert (ROOT / "examples" / "train_gpu.py").is_file()
    program, script = test.split()
    assert program == "bash"
    assert (ROOT / script).is_file()
    assert test in read(ROOT / ".ci" / "run").splitlines(), "CI runs something else"


def test_chinese_readme_is_the_same_document() -> None:
    assert [level for level, _ in headings(ENGLISH)] == [level for level, _ in headings(CHINESE)]
    pairs = zip_longest(blocks(ENGLISH), blocks(CHINESE), fillvalue=Block("", ""))
    for english, chinese in pairs:
        assert english.language == chinese.language
        if english.language != "text":  # output comes in the language of the reader
            assert english.text == chinese.text
    row = re.compile(r"^\|.*\|$", re.M)
    assert len(row.findall(read(ENGLISH))) == len(row.findall(read(CHINESE)))


# Pages of the rules


def generator() -> ModuleType:
    path = ROOT / "scripts" / "make_rule_pages.py"
    spec = importlib.util.spec_from_file_location("make_rule_pages", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pages_of_the_rules_are_up_to_date() -> None:
    module = generator()
    wanted = module.pages()
    there = {p.relative_to(module.FOLDER).as_posix(): read(p) for p in module.FOLDER.rglob("*.md")}
    stale = sorted(name for name in wanted.keys() | there if wanted.get(name) != there.get(name))
    assert not stale, "run scripts/make_rule_pages.py"


def test_every_rule_has_a_page_in_each_language() -> None:
    for language in LANGUAGES:
        folder = ROOT / "docs" / "rules" / ("" if language == "en" else language)
        index = read(folder / "README.md")
        for rule in load_catalogue().rules.values():
            page = read(folder / f"{rule.code}.md")
            assert page.startswith(f"# {rule.code} {rule.name}\n")
            assert rule.explanation.in_language(language) in page
            assert f"[{rule.code}]({rule.code}.md)" in index


# All documents


def slug(heading: str) -> str:
    """The anchor that code hosts give a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("path", DOCUMENTS, ids=relative)
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\[[^\]]*\]\(([^)\s]+)\)", prose(path)):
        if re.match(r"https?:", target):
            continue
        name, _, anchor = target.partition("#")
        linked = path.parent / name if name else path
        assert linked.exists(), target
        assert not anchor or anchor in {slug(text) for _, text in headings(linked)}, target


@pytest.mark.parametrize("path", FILES_OF_OURS, ids=relative)
def test_no_path_of_the_machine_it_was_written_on(path: Path) -> None:
    assert not MACHINE_PATH.findall(read(path))


def test_paths_in_code_exist() -> None:
    """Paths of the repository that documents name in code."""
    for path in (ENGLISH, CHINESE, ROOT / "CONTRIBUTING.md", ROOT / "docs" / "architecture.md"):
        for name in re.findall(
            r"`((?:docs|examples|rules|scripts|tests|server)/[\w./-]+)`", read(path)
        ):
            assert (ROOT / name).exists(), f"{path.name}: {name}"


def test_the_architecture_is_one_page_with_a_section_for_each_floor() -> None:
    text = read(ROOT / "docs" / "architecture.md")
    assert len(text.split()) <= 1_500
    assert "```mermaid" in text
    sections = " ".join(line for line in text.splitlines() if line.startswith("## "))
    floors = {part for parts in FLOORS for part in parts} - {"__main__", "npulens"}
    assert [floor for floor in sorted(floors) if floor not in sections] == []


def test_packages_name_files_that_are_there() -> None:
    """Their docstrings say how they work, and which file does what."""
    packages = [path.parent for path in sorted((ROOT / "server" / "npulens").rglob("__init__.py"))]
    top = ROOT / "server" / "npulens"
    for package in packages:
        text = ast.get_docstring(ast.parse(read(package / "__init__.py"))) or ""
        for name in set(re.findall(r"`([\w/]+\.py)`", text)) - {"setup.py"}:
            is_there = any((folder / name).exists() for folder in (package, top))
            assert is_there or any(package.rglob(name)), (package.name, name)


def test_help_of_every_command_is_there() -> None:
    for name, command in cli.commands.items():
        assert isinstance(command, click.Command)
        assert command.help, name
