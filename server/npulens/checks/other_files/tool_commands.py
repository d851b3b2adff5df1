"""Command lines of the NPU's tools: msprobe, msprof-analyze and atc."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from npulens.catalog.tables import Place
from npulens.checks.other_files.launch_report import Beside, LaunchReport
from npulens.checks.other_files.shell_programs import Atom, base_name
from npulens.text.spans import Span

_OPTION = re.compile(r"(?P<name>--?[A-Za-z][\w.-]*)(?:=(?P<value>[\s\S]*))?\Z")
_COMMAND_WORDS = 2
"""So many words behind a program may say what it does: `msprof-analyze advisor all`."""


class _Option(NamedTuple):
    """An option with its value, which is empty for a flag."""

    name: str
    span: Span
    value: str
    value_span: Span


def tool_findings(report: LaunchReport, chain: Sequence[Atom], atoms: Sequence[Atom]) -> None:
    """Report what a tool does not take of what a command gives it.

    Args:
        report: Where findings go.
        chain: The programs of the command, the tool being the last.
        atoms: All words of the command.
    """
    tool = base_name(chain[-1]) if chain else ""
    if tool not in report.tools:
        return
    given = [atom for atom in atoms if atom.span.start >= chain[-1].span.end]
    if len({atom.span for atom in (chain[-1], *given)}) <= len(given):
        return  # several come from one variable, so that they stand elsewhere
    options = list(_options(given))
    words = _words(given, options)
    pairs = [f"{option.name}={option.value}" for option in options]
    pairs += [word.text for word in words[1:]]
    beside = Beside(pairs, is_all=not any("$" in word.text for word in words))
    commands = [word for word in words if "$" not in word.text][:_COMMAND_WORDS]
    place = chain[-1].span
    report.look_up(Place.TOOL, tool, None, place, place, beside)
    name = tool
    for word in commands:
        name = f"{name} {word.text}"
        report.look_up(Place.TOOL, name, None, word.span, word.span, beside)
    subcommand = " ".join([tool, *(word.text for word in commands[:1])])
    for option in options:
        name = f"{subcommand} {option.name}"
        report.look_up(Place.TOOL, name, option.value, option.span, option.value_span, beside)


def _options(atoms: Sequence[Atom]) -> Iterator[_Option]:
    for index, atom in enumerate(atoms):
        match = _OPTION.match(atom.text)
        if match is None:
            continue
        start = atom.span.start
        span = Span(start, start + match.end("name"))
        following = atoms[index + 1] if index + 1 < len(atoms) else None
        if match["value"] is not None:
            value = match["value"].strip("\"'")
            at = start + atom.text.find(value, match.start("value"))
            yield _Option(match["name"], span, value, Span(at, at + len(value)))
        elif following is not None and not following.text.startswith("-"):
            yield _Option(match["name"], span, following.text, following.span)
        else:
            yield _Option(match["name"], span, "", Span(span.end, span.end))


def _words(atoms: Sequence[Atom], options: Sequence[_Option]) -> list[Atom]:
    """What is neither an option nor the value of one."""
    values = {option.value_span for option in options}
    return [a for a in atoms if not a.text.startswith("-") and a.span not in values]
