"""`npulens instrument`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from npulens.cli.help import Command
from npulens.cli.options import language_option, settings
from npulens.cli.refusals import refusals

if TYPE_CHECKING:
    from npulens.catalog.model import Language
    from npulens.fixes.instruments.instrument_model import Instrument
    from npulens.workspace.instrumenting import Plan

KINDS = (
    "profiler", "step-time", "dump", "config-check", "monitor", "determinism", "silent-errors",
    "bfloat16", "float16",
)  # fmt: skip
"""The instruments; a test compares them with `npulens.fixes.instruments.known_instruments`."""
_EPILOG = """\b
Examples:
  npulens instrument profiler train.py
  npulens instrument profiler train.py --remove
  npulens instrument dump train.py --diff

\b
Kinds:
  profiler       profile some steps with the Ascend PyTorch Profiler
  step-time      print how long each step takes
  dump           dump what each API computes, for comparison (msprobe)
  config-check   record the configuration of a run, for comparison (msprobe)
  monitor        watch the gradients of the weights for anomalies (msprobe)
  determinism    make runs repeatable: seeds and deterministic operators
  silent-errors  have torch_npu look for silent errors of the hardware
  bfloat16       mixed precision: autocast around forward pass and loss
  float16        the same in float16, with a scaler of the gradients
  all            with --remove: all of them

Exit codes: 0 done, 2 the script is not understood, wrong usage or an error; nothing is changed."""


@click.command(cls=Command, epilog=_EPILOG)
@click.argument("kind", type=click.Choice([*KINDS, "all"]), metavar="KIND")
@click.argument("file")
@click.option("--remove", is_flag=True, help="Take the lines out again; each byte is as before.")
@click.option("--diff", is_flag=True, help="Change nothing; print a patch for `git apply`.")
@language_option
def instrument(kind: str, file: str, remove: bool, diff: bool, language: "Language | None") -> None:
    """Put lines that measure or check a training script into FILE, or take them out.

    Each line ends with a mark, by which it is found again. A script whose steps are not
    understood is not changed, and the line that is in the way is named.
    """
    from npulens.cli.refusals import wrong_usage
    from npulens.fixes.instruments.known_instruments import BY_NAME
    from npulens.workspace.instrumenting import (
        carry_out,
        plan_insertion,
        plan_removal,
    )

    if kind == "all" and not remove:
        raise wrong_usage("usage.all-is-for-removal")
    spoken = settings((file,), None, {"language": language}).language
    path = Path(file)
    with refusals():
        if remove:
            plan = plan_removal(path, None if kind == "all" else [kind])
        else:
            plan = plan_insertion(path, BY_NAME[kind])
        if diff:
            _show_patch(plan)
            return
        carry_out(plan)
        lines = _removal(plan, spoken) if remove else _insertion(plan, BY_NAME[kind], spoken)
    for line in lines:
        click.echo(line)


def _show_patch(plan: "Plan") -> None:
    from npulens.report.patch import patch
    from npulens.workspace.instrumenting import contents

    before, after = contents(plan)
    if before != after:
        click.echo(patch(str(plan.path), before, after), nl=False)


def _insertion(plan: "Plan", chosen: "Instrument", language: "Language") -> list[str]:
    """What was put in, and what to do next."""
    from npulens.catalog.messages import message
    from npulens.fixes.instruments.marks import marked_lines
    from npulens.workspace.instrumenting import write_settings

    written = write_settings(plan.path, chosen)
    numbers = [line for line, name in marked_lines(plan.after).items() if name == chosen.name]
    title = message(chosen.title)
    settings_file = "" if written is None else written[0].name
    texts = [
        message("instrument.put-in", name=chosen.name, file=plan.path, title=title),
        message("instrument.lines-at", lines=_ranges(sorted(numbers))),
    ]
    if written is not None:
        if written[1]:
            texts.append(message("instrument.settings-written", file=written[0]))
        else:
            texts.append(message("instrument.settings-kept", file=written[0]))
    texts.append(message(chosen.next_step, file=settings_file))
    return [text.in_language(language) for text in texts]


def _removal(plan: "Plan", language: "Language") -> list[str]:
    """What was taken out."""
    from npulens.catalog.messages import message
    from npulens.workspace.instrumenting import remove_settings

    removed = plan.removed
    if removed is None or not removed.names:
        return [message("instrument.nothing-there", file=plan.path).in_language(language)]
    names = sorted(removed.names)
    listed = ", ".join(f"`{name}`" for name in names)
    texts = [message("instrument.taken-out", names=listed, file=plan.path, number=removed.lines)]
    for file, is_gone in remove_settings(plan.path, names):
        if is_gone:
            texts.append(message("instrument.settings-removed", file=file))
        else:
            texts.append(message("instrument.settings-changed", file=file))
    return [text.in_language(language) for text in texts]


def _ranges(numbers: list[int]) -> str:
    """`3-5, 9` of 3, 4, 5 and 9."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][-1] == number - 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(str(p[0]) if len(p) == 1 else f"{p[0]}-{p[-1]}" for p in parts)
