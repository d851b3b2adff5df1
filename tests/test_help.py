"""What `--help` says, in Chinese as in English."""

import re
import unicodedata
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path

import click
import pytest

from commands import command, invoke
from npulens.catalog.messages import messages
from npulens.cli.main import cli

COMMANDS = ["", *cli.commands]
_, (_, CHINESE_TEXTS) = messages().contents()
HELP = re.compile(r"help(-after|-option)?\.")
CHINESE = re.compile(r"[\u4e00-\u9fff]")


@pytest.fixture(autouse=True)
def chinese(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NPULENS_LANGUAGE", "zh")


def shown(name: str, *options: str) -> str:
    code, text, errors = invoke(*([name] if name else []), *options, "--help")
    assert (code, errors) == (0, "")
    return text


def texts(name: str) -> Iterator[str]:
    """All that a command says in English but the examples, without line breaks."""
    asked = cli.commands[name] if name else cli
    paragraphs = [*cleandoc(asked.help or "").split("\n\n"), *(asked.epilog or "").split("\n\n")]
    options = asked.get_params(click.Context(asked))
    for text in (*paragraphs, *(getattr(option, "help", None) or "" for option in options)):
        if text and not text.startswith("\b"):
            yield " ".join(text.partition("  [")[0].split())


def test_every_text_has_its_chinese_and_no_other_is_there() -> None:
    wanted = set()
    for name in COMMANDS:
        asked, key = (cli.commands[name], name) if name else (cli, "npulens")
        wanted.add(f"help.{key}")
        if any(text and not text.startswith("\b") for text in (asked.epilog or "").split("\n\n")):
            wanted.add(f"help-after.{key}")
        for option in asked.get_params(click.Context(asked)):
            if isinstance(option, click.Option) and option.help:
                text = f"help-option.{max(option.opts, key=len).lstrip('-')}"
                own = text.replace(".", f".{key}-")
                wanted.add(own if own in CHINESE_TEXTS else text)
    assert wanted == {text for text in CHINESE_TEXTS if HELP.match(text)}


def columns(line: str) -> int:
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in line)


@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_is_left_in_english(name: str) -> None:
    joined = " ".join(shown(name).split())
    for text in texts(name):
        assert text not in joined
        assert CHINESE.search(text) is None
    for heading in (
        "Usage",
        "Options",
        "Commands",
        "Examples",
        "Exit codes",
        "default",
        "required",
    ):
        assert not re.search(rf"\b{heading}:|\[{heading}\b", joined)


@pytest.mark.parametrize("name", COMMANDS)
def test_as_much_is_said(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    in_chinese = shown(name)
    monkeypatch.setenv("NPULENS_LANGUAGE", "en")
    english = shown(name)
    assert CHINESE.search(english) is None
    for pattern in (r"^  -.*?(?=  |$)", r"^    npulens .*$", r"^  [a-z]+(?=  )"):
        expected = re.findall(pattern, english, re.MULTILINE)
        assert re.findall(pattern, in_chinese, re.MULTILINE) == expected
    paragraphs = in_chinese.split("\n\n")
    assert len(paragraphs) == len(english.split("\n\n"))
    for option in re.findall(r"^  -[^\n]*(?:\n {20}[^\n]*)*", in_chinese, re.MULTILINE):
        assert CHINESE.search(option)


@pytest.mark.parametrize("name", COMMANDS)
def test_lines_fit(name: str) -> None:
    for line in shown(name).splitlines():
        is_example = line.startswith("    npulens ")
        assert is_example or columns(line) <= 80, line
        assert not re.match(r"\s*[，。；：、）”]", line)
        assert not re.search(r"[\[（“]$", line)


def test_the_language_that_is_asked_for_first() -> None:
    assert CHINESE.search(shown("check", "--language", "en")) is None


def test_the_real_command() -> None:
    result = command("fix", "--help", environment={"NPULENS_LANGUAGE": "", "LANG": "zh_CN.UTF-8"})
    assert result.returncode == 0
    assert result.stdout.decode().startswith("用法：npulens fix [OPTIONS] [PATHS]...\n\n  修复 ")
