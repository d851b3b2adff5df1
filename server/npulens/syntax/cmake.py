"""Commands of CMake: `set(SOURCES a.cpp b.cu)`, with the places of their arguments."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from npulens.text.spans import Span

_COMMAND = re.compile(r"([A-Za-z_]\w*)[ \t]*\(")
_TOKEN = re.compile(r"#\[\[.*?\]\]|#[^\n]*|\"(?:[^\"\\]|\\.)*\"|[()]|[^\s()#\"]+", re.DOTALL)
_REFERENCE = re.compile(r"\$\{(\w+)\}")


class Word(NamedTuple):
    """An argument: where it is, and its text without quotes."""

    span: Span
    text: str


class Command(NamedTuple):
    """A command: its name in lower case, where that is, and its arguments."""

    name: str
    span: Span
    words: Sequence[Word]


def cmake_commands(text: str) -> Iterator[Command]:
    """The commands of a file; comments are left out, and so is what is never closed."""
    position = 0
    while position < len(text):
        token = _TOKEN.search(text, position)
        if token is None:
            return
        start = _COMMAND.match(text, token.start())
        if start is None or token.group().startswith(("#", '"')):
            position = token.end()
            continue
        words, position = _arguments(text, start.end())
        yield Command(start[1].lower(), Span(*start.span(1)), words)


def _arguments(text: str, start: int) -> tuple[list[Word], int]:
    words: list[Word] = []
    depth, end = 1, len(text)
    for token in _TOKEN.finditer(text, start):
        value = token.group()
        depth += (value == "(") - (value == ")")
        if depth == 0:
            return words, token.end()
        if value not in "()" and not value.startswith("#"):
            words.append(Word(Span(*token.span()), value.strip('"')))
    return words, end


def cmake_variables(commands: Sequence[Command]) -> dict[str, list[Word]]:
    """What variables are made of, as far as the file says."""
    found: dict[str, list[Word]] = {}
    for command in commands:
        words = command.words
        if command.name == "set" and words:
            found.setdefault(words[0].text, []).extend(words[1:])
        elif command.name in ("file", "list") and len(words) > 1:
            found.setdefault(words[1].text, []).extend(words[2:])
    return found


def expanded(words: Sequence[Word], variables: dict[str, list[Word]]) -> Iterator[Word]:
    """Arguments with what the variables among them are made of, one step deep."""
    for word in words:
        yield word
        for name in _REFERENCE.findall(word.text):
            yield from variables.get(name, ())
