"""Variables that are set beside each other, in one list of commands or one group of settings."""

import re
from collections.abc import Iterator, Sequence
from itertools import count
from typing import NamedTuple

from npulens.catalog.tables import Place
from npulens.checks.other_files.launch_report import Beside, LaunchReport
from npulens.checks.other_files.shell_programs import (
    ASSIGNMENT,
    Atom,
    assigned_values,
    atoms_of,
    base_name,
    programs,
)
from npulens.syntax.shell_tree import Block, Command, Word
from npulens.text.spans import Span

_SETS_FOR_ALL = frozenset({"export", "declare", "typeset", "readonly", "local"})
_CHANGES = frozenset({"unset", "read", "getopts", "mapfile"})
_NAME = re.compile(r"[A-Za-z_]\w*")
_LITERAL = re.compile(r"[^$`\"'\\*?]*\Z")
UNKNOWN = "$"
"""The value of a variable that is read, unset, or gets one value after the other in a loop."""
_MOST = 200
"""So many variables are compared with each other; scripts of people have fewer."""


class ScriptVariable(NamedTuple):
    """A place where a variable is set.

    Attributes:
        span: The name.
        value: What it is set to, without quotes.
        words: The words of the value, those in an array, too.
        block: Which list of commands or group of settings it is in; 0 is always run.
        command: The command that alone gets it.
    """

    name: str
    span: Span
    value: Atom
    words: Sequence[Atom] = ()
    block: int = 0
    command: Command | None = None


def is_literal(value: str) -> bool:
    """Whether nothing in a value depends on something else."""
    return _LITERAL.match(value) is not None


def script_variables(block: Block, text: str) -> list[ScriptVariable]:
    """Where a script sets variables, also those that it only may set, in the order of the text."""
    numbers = count(1)

    def walk(block: Block, number: int) -> Iterator[ScriptVariable]:
        for step in block.steps:
            here = next(numbers) if step.before in ("&&", "||") else number
            if isinstance(step.node, Command):
                yield from _of_command(step.node, text, here)
                continue
            if step.node.kind in ("for", "select"):
                yield from (_changed(word, text, here) for word in step.node.head.words[:1])
            for arm in step.node.arms:
                if arm.test is not None:
                    yield from walk(arm.test, next(numbers))
                is_group = step.node.kind == "{"
                yield from walk(arm.body, here if is_group else next(numbers))

    return list(walk(block, 0))


def variables_together(report: LaunchReport, variables: Sequence[ScriptVariable]) -> None:
    """Report values that do not go together; a variable with several values is not judged."""
    entries = report.catalogue.launch_names[Place.TOGETHER]
    values: dict[str, set[str]] = {}
    for each in variables:
        values.setdefault(each.name, set()).add(each.value.text)
    known = [v for v in variables if len(values[v.name]) == 1 and is_literal(v.value.text)]
    for each in known[:_MOST]:
        if entries.of(each.name):
            others = (other for other in known[:_MOST] if _goes_with(other, each))
            beside = Beside([f"{other.name}={other.value.text}" for other in others])
            value = each.value.text
            report.look_up(Place.TOGETHER, each.name, value, each.span, each.span, beside)


def _goes_with(other: ScriptVariable, variable: ScriptVariable) -> bool:
    if other.block != variable.block or other.name == variable.name:
        return False
    return other.command is None or other.command is variable.command


def _of_command(command: Command, text: str, block: int) -> Iterator[ScriptVariable]:
    raw = [text[slice(*word.span)] for word in command.words]
    if not any("=" in word for word in raw) and _CHANGES.isdisjoint(raw[:1]):
        return
    program = base_name(next(iter(programs(atoms_of(command.words, text))), None))
    if program in _CHANGES:
        yield from (_changed(word, text, block) for word in command.words[1:])
        return
    only_for = None if program in ("", *_SETS_FOR_ALL) else command
    for word in command.words:
        match = ASSIGNMENT.match(word.text(text))
        assigned = None if match is None else assigned_values(word, text)
        if match is not None and assigned is not None:
            name = Span(*match.span("name")).shifted(word.span.start)
            value = _unquoted(match["value"], word.span.start + match.start("value"))
            yield ScriptVariable(match["name"], name, value, assigned[1], block, only_for)


def _unquoted(raw: str, start: int) -> Atom:
    is_quoted = len(raw) > 1 and raw[0] in "\"'" and raw[-1] == raw[0]
    value = raw[1:-1] if is_quoted else raw
    return Atom(Span(start + is_quoted, start + is_quoted + len(value)), value)


def _changed(word: Word, text: str, block: int) -> ScriptVariable:
    """A variable that is given a value nobody knows."""
    match = _NAME.match(text, *word.span)
    name = "" if match is None else match.group()
    return ScriptVariable(name, word.span, Atom(word.span, UNKNOWN), block=block)
