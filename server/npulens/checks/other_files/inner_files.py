"""Files inside of scripts: what `python -c` is given, what `cat > train.slurm <<EOF` writes."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from npulens.checks.other_files.shell_programs import inside_quotes
from npulens.syntax.shell_tree import Command, Word
from npulens.text.kinds import Kind, kind_by_first_line, kind_by_name
from npulens.text.spans import Span

PYTHON = re.compile(r"(?:.*/)?(?:python[\d.]*|torchrun)\Z")
_WRITERS = frozenset({"cat", "tee"})
_SCHEDULED = re.compile(r"(?m)^#(?:SBATCH|BSUB|PBS)[ \t]+-")
_PYTHON_LINE = re.compile(
    r"#!.*\bpython|(?:import[ \t]+[\w.]+(?:[ \t]+as[ \t]+\w+)?|from[ \t]+[\w.]+[ \t]+import\b.*)\Z"
)
"""A first line of Python."""
_ESCAPED = re.compile(r"\\([\"$`\\])")


class InnerFile(NamedTuple):
    """A text in another language inside of a script.

    Attributes:
        span: Where it is.
        name: A name that shows its kind.
        quote: The quote that it stands in, empty for lines of a here-document.
    """

    span: Span
    name: str
    quote: str = ""

    def text(self, script: str) -> str:
        r"""What it holds, as long as in the script: `\"` is a quote and a blank.

        The blank is on the outer side of a string, so that the strings of a program are what they
        are for Python, at their places.
        """
        inside = script[slice(*self.span)]
        return _unescaped(inside) if self.quote == '"' and "\\" in inside else inside


def python_code(command: Command, text: str) -> Iterator[InnerFile]:
    """What is inside of the quotes of `python -c "..."`, wherever Python is started."""
    has_python, previous = False, ""
    for word in command.words:
        raw = text[slice(*word.span)]
        inside = inside_quotes(word, text)
        if has_python and previous == "-c" and inside is not None:
            yield InnerFile(inside, "one_liner.py", raw[0])
        has_python = has_python or PYTHON.match(raw) is not None
        previous = raw


def written_name(program: str, command: Command, text: str, body: Span) -> str | None:
    """A name for the kind of file that a here-document becomes, `None` if nothing shows it.

    Args:
        program: The program that reads it.
        command: Its command.
        text: The script.
        body: The here-document.
    """
    if program not in _WRITERS:
        return None
    targets = [*command.redirects, *(command.words[1:] if program == "tee" else ())]
    for word in targets:
        name = _bare(word, text)
        if kind_by_name(name) is not None:
            return name
    start = text[body.start : body.start + 200].lstrip().partition("\n")[0].rstrip()
    if kind_by_first_line(start) is Kind.SHELL or _SCHEDULED.search(text, *body) is not None:
        return "written.sh"
    return "written.py" if _PYTHON_LINE.match(start) else None


def _bare(word: Word, text: str) -> str:
    return word.text(text).strip("'\"").rpartition("/")[2]


def _unescaped(text: str) -> str:
    is_open = False

    def plain(match: re.Match[str]) -> str:
        nonlocal is_open
        if match[1] != '"':
            return " " + match[1] if match[1] != "\\" else match[0]
        is_open = not is_open
        return ' "' if is_open else '" '

    return _ESCAPED.sub(plain, text)
