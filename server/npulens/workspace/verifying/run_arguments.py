"""The arguments of a script, migrated as those in a script of the shell are."""

import shlex
from dataclasses import dataclass, replace

from npulens.analysis import analyze
from npulens.catalog.model import Applicability, Finding, MigrationStyle
from npulens.catalog.tables import Catalogue
from npulens.fixes.apply import fix_text
from npulens.text.document import Document
from npulens.workspace.settings.configuration import Configuration

_COMMAND = "python script.py "


@dataclass(frozen=True, slots=True)
class RunArguments:
    """What a script is started with.

    Attributes:
        run: What the migrated script is given.
        changed: Pairs of what the user gave and what became of it.
        left: Arguments that choose CUDA and for which nothing holds, each with its finding.
    """

    run: tuple[str, ...]
    changed: tuple[tuple[str, str], ...] = ()
    left: tuple[tuple[str, Finding], ...] = ()


def migrated_arguments(
    arguments: tuple[str, ...], configuration: Configuration, catalogue: Catalogue
) -> RunArguments:
    """Have arguments such as `--device=cuda` name the NPU.

    They are of one run, on an NPU; so this is done without unsafe fixes and in the style
    `device-agnostic`, too. The shim takes the names of CUDA.
    """
    if configuration.style is MigrationStyle.RUNTIME_SHIM:
        return RunArguments(arguments)
    target = replace(configuration.target, style=MigrationStyle.NPU)

    def found(text: str) -> tuple[Finding, ...]:
        return tuple(analyze(Document("run.sh", text), catalogue, target))

    text = f"{_COMMAND}{shlex.join(arguments)}\n"
    fixed = fix_text(text, found, Applicability.UNSAFE).text
    run = tuple(shlex.split(fixed.removeprefix(_COMMAND)))
    if not fixed.startswith(_COMMAND) or len(run) != len(arguments):
        run, fixed = arguments, text
    changed = (pair for pair in zip(arguments, run, strict=True) if pair[0] != pair[1])
    left = ((fixed[each.span.start : each.span.end], each) for each in found(fixed))
    return RunArguments(run, tuple(changed), tuple(left))
