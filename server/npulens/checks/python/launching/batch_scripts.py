"""Scripts for a shell or a scheduler in strings of Python, which writes and starts them."""

import ast
import re
from itertools import pairwise, takewhile

from npulens.catalog.tables import Place
from npulens.checks.context import Context
from npulens.checks.other_files.launch_report import LaunchReport
from npulens.checks.other_files.shell_commands import shell_findings
from npulens.checks.python.launching.environment import command_line, take_over
from npulens.syntax.scopes import Scope
from npulens.text.late_patterns import late
from npulens.text.spans import Span

_OPENING = late(r"(?P<prefix>[A-Za-z]*)(?P<quote>\"\"\"|''')(?:\\\r?\n)?")
_SCRIPT = late(
    r"\s*#![ \t]*/\S*?(?:/env[ \t]+)?(?:/|(?<=[ \t]))(?:ba|da|k|z)?sh\b"
    r"|\s*(?:#SBATCH|#BSUB|srun|sbatch|salloc|bsub|torchrun)[ \t]"
)
_SET = late(r"[A-Z][A-Z0-9_]+(?==)")
_PROGRAM = late(r"(?:\S*/)?(?:python[\d.]*|torchrun|accelerate|deepspeed|bash|sh)\Z|[;&]")
_RESOURCE = late(r"--(?P<name>gres)=(?P<value>\S+)|-(?P<lsf>gpu) +(?P<wanted>[\w\"']+=\S+) *")
"""A word of a command for Slurm, or for LSF."""
_OPTION = late(r"--(?P<name>[a-z][\w-]*)[= ](?P<value>cuda(?::\d+)?|nccl)")
"""A word of a command that is put together of a list: `"--device cuda"`."""
_COMMENT = late(r"^[ \t]+(?=#SBATCH\b)", re.MULTILINE)


def formatted(node: ast.JoinedStr, scope: Scope, context: Context) -> None:
    """`f\"\"\"#!/bin/bash ... {command}\"\"\"`."""
    texts = (part.value if isinstance(part, ast.Constant) else "?" for part in node.values)
    text = "".join(map(str, texts))
    _resource(text, node, context)
    if not _read(node, context) and _is_for_shell(text, context):
        command_line(node, context)


def constant(node: ast.Constant, scope: Scope, context: Context) -> None:
    """`\"\"\"#!/bin/bash ...\"\"\"`; a part of a formatted string was read with the whole of it."""
    if isinstance(node.value, str):
        _resource(node.value, node, context)
        _option(node.value, node, context)
        if _is_for_shell(node.value, context) and not _read(node, context):
            command_line(node, context)


def _resource(text: str, node: ast.expr, context: Context) -> None:
    """`"--gres=gpu:8"`, a word of a command for Slurm; `"-gpu num=1:gmem=23G"` of one for LSF."""
    match = _RESOURCE.fullmatch(text)
    if match is None:
        return
    span = context.span(node)
    if not any(span.start <= each.start < span.end for each in context.reported.spans):
        name, value = match["name"] or match["lsf"], match["value"] or match["wanted"]
        _look_up(Place.SCHEDULER, name, value, span, context)


def _option(text: str, node: ast.Constant, context: Context) -> None:
    """`"--device cuda"`, if it is written so."""
    match = _OPTION.fullmatch(text)
    at = -1 if match is None else context.code.text.find(text, *context.span(node))
    if match is not None and at >= 0:
        span = Span(at + match.start("value"), at + match.end("value"))
        _look_up(Place.OPTION, match["name"].replace("-", "_"), match["value"], span, context)


def listed(node: ast.List | ast.Tuple, scope: Scope, context: Context) -> None:
    """`["--device", "cuda"]`: words of a command, wherever it is run."""
    for option, given in pairwise(node.elts):
        name, value = (getattr(each, "value", None) for each in (option, given))
        if value not in ("cuda", "nccl") or not str(name).startswith("--"):
            continue
        at = context.code.text.find(value, *context.span(given))
        if at >= 0:
            span = Span(at, at + len(value))
            _look_up(Place.OPTION, str(name).lstrip("-").replace("-", "_"), value, span, context)


def _look_up(place: Place, name: str, value: str, span: Span, context: Context) -> None:
    if span not in context.reported.spans:
        report = LaunchReport(context.code.text, context.catalogue, context.target)
        report.look_up(place, name, value, span, span)
        take_over(report.finish(), context)


def _is_for_shell(text: str, context: Context) -> bool:
    """Whether a string is a script, or one of its lines sets a variable of CUDA for a program."""
    if _SCRIPT.match(text) is not None:
        return True
    return "=" in text and any(_is_command(line, context) for line in text.split("\n"))


def _is_command(line: str, context: Context) -> bool:
    """`CUDA_VISIBLE_DEVICES=0 python train.py`, wherever it is run."""
    words = line.strip().removeprefix("export ").split()
    names = [match.group() for match in takewhile(bool, map(_SET.match, words)) if match]
    if not any(context.catalogue.variable(name) for name in names):
        return False
    return words[len(names) - 1].endswith(";") or any(map(_PROGRAM.match, words[len(names) :][:1]))


def _read(node: ast.expr, context: Context) -> bool:
    """Read a script in three quotation marks; whether there is one."""
    span = context.span(node)
    opening = _OPENING.match(context.code.text, *span)
    if opening is None or ("f" in opening["prefix"].lower()) != isinstance(node, ast.JoinedStr):
        return False
    start, end = opening.end(), span.end - len(opening["quote"])
    if _SCRIPT.match(context.code.text, start, end) is None:
        return True  # a text that speaks of commands
    text = _as_written_out(context.code.text, Span(start, end))
    report = LaunchReport(text, context.catalogue, context.target)
    shell_findings(report, start, end)
    take_over(report.finish(), context)
    return True


def _as_written_out(text: str, script: Span) -> str:
    """The text with the comments for Slurm at the start of lines, where `dedent` puts them.

    Everything keeps its place: there are empty lines for the indentation.
    """
    inner = _COMMENT.sub(lambda match: "\n" * len(match.group()), text[slice(*script)])
    return text[: script.start] + inner + text[script.end :]
