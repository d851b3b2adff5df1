"""What `--help` shows to users of Chinese.

Chinese has no spaces at which click could break lines, and its characters take two columns, so
the lines are broken here.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from inspect import cleandoc

import click

from npulens.cli.chinese_texts import translated

_FIRST_COLUMN = 30
_SPACING = 2
"""In columns, as click has them: the widest first column of a list, and what follows it."""
_PIECE = re.compile(r"\s+|[\[（“]*(?:[\x21-\x7e]+|.)[，。；：、）”]*")
"""What stays in one line: a word, or a character with the punctuation around it."""


def write_help(
    command: click.Command, context: click.Context, formatter: click.HelpFormatter
) -> None:
    """The help of a command, or of one that consists of others."""
    usage = " ".join(command.collect_usage_pieces(context))
    formatter.write_usage(context.command_path, usage, prefix="用法：")
    with formatter.indentation():
        for text in _paragraphs(command.help):
            _write_paragraph(text, formatter)
    records = (parameter.get_help_record(context) for parameter in command.get_params(context))
    _write_list("选项", [record for record in records if record is not None], formatter)
    with formatter.indentation():
        for text in _paragraphs(command.epilog):
            if text.startswith("\b"):
                heading, *examples = text.splitlines()[1:]
                formatter.write_paragraph()
                lines = [heading.replace("Examples:", "示例："), *examples]
                formatter.write_text("\n".join(["\b", *lines]))
            else:
                _write_paragraph(text, formatter)
    if isinstance(command, click.Group):
        commands = [command.get_command(context, name) for name in command.list_commands(context)]
        rows = [
            (each.name or "", _paragraphs(each.help)[0]) for each in commands if each and each.help
        ]
        _write_list("命令", rows, formatter)


def _paragraphs(text: str | None) -> list[str]:
    return cleandoc(text).split("\n\n") if text else []


def _write_paragraph(text: str, formatter: click.HelpFormatter) -> None:
    formatter.write_paragraph()
    lines = _lines(_chinese(text), formatter.width - formatter.current_indent)
    formatter.write_text("\n".join(["\b", *lines]))


def _write_list(
    heading: str, rows: Sequence[tuple[str, str]], formatter: click.HelpFormatter
) -> None:
    """A list in two columns, of which the second is translated."""
    formatter.write_paragraph()
    formatter.write(f"{heading}：\n")
    with formatter.indentation():
        first = min(max(len(name) for name, _ in rows), _FIRST_COLUMN) + _SPACING
        width = formatter.width - first - formatter.current_indent
        texts = ["\n".join(["\b", *_lines(_chinese(text), width)]) for _, text in rows]
        names = [name for name, _ in rows]
        formatter.write_dl(list(zip(names, texts, strict=True)), _FIRST_COLUMN, _SPACING)


def _chinese(text: str) -> str:
    """A text of the help, and what click adds to it in brackets, in Chinese."""
    said, bracket, added = " ".join(text.split()).partition("[")
    if not bracket:
        return translated(said)
    added = added.replace("default: ", "默认：").replace("; ", "；").replace("required", "必填")
    return f"{translated(said.strip())} [{added}".replace("of tests all", "测试不限").strip()


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
