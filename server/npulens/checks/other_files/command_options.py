"""The options of a command of a script, those in its variables included."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from npulens.checks.other_files.shell_programs import ASSIGNMENT, Atom, assigned_values
from npulens.syntax.shell_tree import Command, Word

_OPTION = re.compile(r"(?P<name>--[A-Za-z][\w.-]*)(?:=(?P<value>[\s\S]*))?\Z")
_WHOLE_VARIABLE = re.compile(r"\$(?:(?P<name>\w+)|\{(?P<braced>\w+)(?:\[[@*]\])?\})\Z")
_UNKNOWN = ("$", "`", "{", "*")
"""How a word begins that may become several."""
_SETTERS = frozenset({"export", "declare", "local", "readonly", "typeset"})
_NO_WORDS = frozenset({"", '"', "'"})
_MOST_WORDS = 2000


class Part(NamedTuple):
    """A word of a command.

    Attributes:
        is_sure: It is there whenever the command runs.
    """

    atom: Atom
    is_sure: bool


class Given(NamedTuple):
    """An option.

    Attributes:
        name: Its name with the dashes.
        atom: Where it is, without a value behind `=`.
        value: The first word behind it, if it takes one.
        is_sure: It is given whenever the command runs.
    """

    name: str
    atom: Atom
    value: Atom | None
    is_sure: bool

    @property
    def known_value(self) -> str | None:
        """Its value, if no variable is in it."""
        return None if self.value is None or "$" in self.value.text else self.value.text


class ScriptVariables:
    """What the variables of a script hold, as far as it was read; a command at a time."""

    def __init__(self) -> None:
        self._held: dict[str, list[Part]] = {}

    def note(self, command: Command, text: str, is_conditional: bool) -> None:
        """Take over what a command sets."""
        for word in _setting_words(command, text):
            assigned = assigned_values(word, text)
            if assigned is not None:
                is_added = "+=" in text[word.span.start : word.span.end].partition("=")[0] + "="
                self._set(*assigned, is_added, is_conditional)

    def expanded(self, atoms: Sequence[Atom]) -> list[Part]:
        """The words of a command, with those that its variables hold; unknown ones stay."""
        return [part for atom in atoms for part in self._words_of(atom)][:_MOST_WORDS]

    def _words_of(self, atom: Atom) -> list[Part]:
        held = self._held.get(_variable(atom))
        return [Part(atom, True)] if held is None else held

    def _set(self, name: str, atoms: list[Atom], is_added: bool, is_conditional: bool) -> None:
        before = self._held.get(name, [])
        keeps = is_added or any(_variable(atom) == name for atom in atoms)
        parts = self.expanded([atom for atom in atoms if _variable(atom) != name])
        if is_conditional:
            parts = [Part(part.atom, False) for part in parts]
        if keeps:
            parts = [*before, *parts]
        elif is_conditional:
            parts = [*(Part(part.atom, False) for part in before), *parts]
        self._held[name] = parts[:_MOST_WORDS]


def _setting_words(command: Command, text: str) -> Iterator[Word]:
    """The words of a command that may set variables of the script."""
    words = command.words
    if words and text[slice(*words[0].span)] in _SETTERS:
        yield from words[1:]
        return
    for word in words:
        if ASSIGNMENT.match(word.text(text)) is None:
            return
        yield word


def _variable(atom: Atom) -> str:
    """The name of the variable that a word consists of."""
    match = _WHOLE_VARIABLE.match(atom.text)
    return "" if match is None else match["name"] or match["braced"]


def options_in(parts: Sequence[Part], flags: frozenset[str]) -> tuple[list[Given], bool]:
    """The options among some words, and whether there cannot be more of them.

    Args:
        parts: The words.
        flags: The names of options that take no value.
    """
    found: list[Given] = []
    is_whole, is_due = True, False
    for part, is_sure in parts:
        atom = part._replace(text=part.text.removesuffix("\\"))  # `--bf16\` at the end of a line
        match = _OPTION.match(atom.text)
        if atom.text in _NO_WORDS:
            continue
        if match is not None:
            found.append(_given(atom, match, is_sure))
            is_due = match["value"] is None and match["name"] not in flags
        elif is_due:
            found[-1] = found[-1]._replace(value=atom)
            is_due = False
        else:
            is_whole = is_whole and not atom.text.startswith(_UNKNOWN)
    return found, is_whole


def _given(atom: Atom, match: re.Match[str], is_sure: bool) -> Given:
    name, written = match["name"], match["value"]
    start = atom.span.start
    value = None
    if written is not None:
        first, last = match.span("value")
        value = Atom(
            atom.span._replace(start=start + first, end=start + last), written.strip("'\"")
        )
    return Given(name, Atom(atom.span._replace(end=start + len(name)), name), value, is_sure)
