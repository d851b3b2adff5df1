"""What `--help` shows to users of Chinese.

Chinese has no spaces at which click could break lines, and its characters take two columns, so
the lines are broken here.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence

import click

from npulens.catalog.message_ids import MessageId, MessageTable
from npulens.catalog.messages import message, message_if_any

_FIRST_COLUMN = 30
_SPACING = 2
"""In columns, as click has them: the widest first column of a list, and what follows it."""
_PIECE = re.compile(r"\s+|[\[（“]*(?:[\x21-\x7e]+|.)[，。；：、）”]*")
"""What stays in one line: a word, or a character with the punctuation around it."""

_IN_BRACKETS: tuple[MessageId, ...] = (
    "help-word.default",
    "help-word.required",
    "help-word.of-tests",
    "punctuation.semicolon",
)
"""The text in the brackets that click adds."""


def write_help(
    command: click.Command, context: click.Context, formatter: click.HelpFormatter
) -> None:
    """The help of a command, or of one that consists of others."""
    usage = " ".join(command.collect_usage_pieces(context))
    formatter.write_usage(context.command_path, usage, prefix=message("help-word.usage").zh)
    with formatter.indentation():
        for text in _paragraphs("help", command):
            _write_paragraph(text, formatter)
    options = (_row(each, command, context) for each in command.get_params(context))
    _write_list("help-word.options", [row for row in options if row is not None], formatter)
    with formatter.indentation():
        if command.epilog and command.epilog.startswith("\b"):
            formatter.write_paragraph()
            examples = command.epilog.partition("\n\n")[0]
            formatter.write_text(_replaced(examples, "help-word.examples"))
        for text in _paragraphs("help-after", command):
            _write_paragraph(text, formatter)
    if isinstance(command, click.Group):
        commands = [command.get_command(context, name) for name in command.list_commands(context)]
        known = [(each.name or "", _paragraphs("help", each)[0]) for each in commands if each]
        _write_list("help-word.commands", known, formatter)


def _paragraphs(table: MessageTable, command: click.Command) -> list[str]:
    """A text of a command, by its name."""
    name = "npulens" if isinstance(command, click.Group) else command.name
    text = message_if_any(table, name or "")
    return [] if text is None else text.zh.split("\n\n")


def _row(
    parameter: click.Parameter, command: click.Command, context: click.Context
) -> tuple[str, str] | None:
    """How a parameter is written, and what it does; what click adds in brackets is translated."""
    record = parameter.get_help_record(context)
    if record is None:
        return None
    names, english = record
    name = max(parameter.opts, key=len).lstrip("-")
    own = message_if_any("help-option", f"{command.name}-{name}")
    text = own or message_if_any("help-option", name)
    _, bracket, added = " ".join(english.split()).partition("[")
    return names, f"{text.zh if text else ''} {bracket}{_replaced(added, *_IN_BRACKETS)}".strip()


def _replaced(text: str, *names: MessageId) -> str:
    for name in names:
        text = text.replace(*message(name))
    return text


def _write_paragraph(text: str, formatter: click.HelpFormatter) -> None:
    formatter.write_paragraph()
    lines = _lines(text, formatter.width - formatter.current_indent)
    formatter.write_text("\n".join(["\b", *lines]))


def _write_list(
    heading: MessageId, rows: Sequence[tuple[str, str]], formatter: click.HelpFormatter
) -> None:
    """A list in two columns."""
    formatter.write_paragraph()
    formatter.write(f"{message(heading).zh}\n")
    with formatter.indentation():
        first = min(max(len(name) for name, _ in rows), _FIRST_COLUMN) + _SPACING
        width = formatter.width - first - formatter.current_indent
        texts = ["\n".join(["\b", *_lines(text, width)]) for _, text in rows]
        names = [name for name, _ in rows]
        formatter.write_dl(list(zip(names, texts, strict=True)), _FIRST_COLUMN, _SPACING)


def _lines(text: str, width: int) -> Iterator[str]:
    """A text in lines of at most so many columns, if no word is longer."""
    line = ""
    for segment in _PIECE.findall(text):
        if line and _columns(line + segment.rstrip()) > width:
            yield line.rstrip()
            line = ""
        line += segment if line else segment.lstrip()
    if line:
        yield line.rstrip()


def _columns(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text)
