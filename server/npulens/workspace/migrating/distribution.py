"""Making a script of a tree train in one process for each card, with what starts these."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from npulens.catalog.messages import LocalizedError, message
from npulens.catalog.model import (
    Applicability,
    Finding,
    Fix,
    LocalizedText,
    MigrationStyle,
)
from npulens.fixes.apply import apply_edits
from npulens.fixes.fix_differences import differences
from npulens.fixes.multi_device.cautions import cautions
from npulens.fixes.remaining_cuda import remaining_cuda
from npulens.fixes.scripts import ANY_CARDS, NPU_CARDS, Cards, UnclearError, read_script
from npulens.syntax.parsing import module_tree
from npulens.verdicts.conditions import Known
from npulens.workspace.files.writing import write_whole
from npulens.workspace.fixing.change_log import ChangeLog, Note, relative_path
from npulens.workspace.fixing.effort import effort_of
from npulens.workspace.fixing.file_fixes import FixedFile
from npulens.workspace.fixing.rewriting_files import UnreadableError, read_source, rewrite_file
from npulens.workspace.migrating.project_modules import project_modules, started_file
from npulens.workspace.runs.file_report import FileReport

if TYPE_CHECKING:
    from npulens.fixes.multi_device.script_rewriting import Rewriting

_LAUNCHER = """\
#!/bin/bash
# Starts {entry} in one process for each {card} of this machine; arguments go to the script.
# Several machines: set NNODES, NODE_RANK and MASTER_ADDR on each.
set -e
folder="$(cd "$(dirname "$0")" && pwd)"
count="${{NPROC_PER_NODE:-$(python -c '{count}')}}"
exec torchrun \\
    --nnodes="${{NNODES:-1}}" \\
    --node_rank="${{NODE_RANK:-0}}" \\
    --master_addr="${{MASTER_ADDR:-127.0.0.1}}" \\
    --master_port="${{MASTER_PORT:-29500}}" \\
    --nproc_per_node="$count" \\
    "$folder"/{entry} "$@"
"""


class _Launcher(NamedTuple):
    """What starts the processes: its name, what it calls a card, what counts them."""

    name: str
    card: str
    counter: str


_FOR_NPU = _Launcher(
    "run_distributed_npu.sh", "NPU", "import torch, torch_npu; print(torch.npu.device_count())"
)
_FOR_ANY = _Launcher(
    "run_distributed.sh", "accelerator", "import torch; print(torch.accelerator.device_count())"
)


@dataclass(frozen=True)
class Distribution:
    """Which script shall train in one process for each card.

    Attributes:
        entry: The script, from the root of the tree.
        model: The variable that holds the model; `None` for all that the script trains.
    """

    entry: str
    model: str | None
    style: MigrationStyle


FixLater = Callable[[Path, str], tuple[str, Sequence[Finding]]]
"""From a file and a text that it will have to the fixed text and the findings that stay."""


class DistributionError(LocalizedError):
    """A script cannot be made to train in several processes.

    Attributes:
        place: The script, with a line.
    """

    def __init__(self, place: str, text: LocalizedText) -> None:
        super().__init__(text)
        self.place = place


def distribute_entry(
    wanted: Distribution,
    root: Path,
    log: ChangeLog,
    write: Callable[[FixedFile], FileReport],
    fix_later: FixLater | None,
    known: Known,
) -> None:
    """Change the script and its modules, and put its launcher beside it; all of it or nothing.

    Args:
        wanted: The script.
        root: The root of the tree.
        log: Keeps what is done.
        write: Writes a file.
        fix_later: Tells what fixing will make of the script, and what it will leave; `None` if
            calls of CUDA are to stay.
        known: What is known for conditions.

    Raises:
        DistributionError: It is not clear how; nothing is changed.
        OSError: The launcher cannot be written.
    """
    entry = root / wanted.entry
    is_for_any = wanted.style is MigrationStyle.DEVICE_AGNOSTIC
    starting, cards = (_FOR_ANY, ANY_CARDS) if is_for_any else (_FOR_NPU, NPU_CARDS)
    launcher = entry.with_name(starting.name)
    if launcher.exists():
        raise DistributionError(relative_path(launcher, root), message("distributed.name-is-taken"))
    texts: dict[str, str] = {}
    fixes: dict[str, Fix] = {}
    try:
        program = _distributed(root, entry, wanted.model, cards)
        for path, text in program.texts.items():
            texts[path] = read_source(root / path).text
            edits = differences(texts[path], text)
            fixes[path] = Fix(message("fix.distribute"), Applicability.UNSAFE, edits)
            if fix_later is not None:
                later = fix_later(root / path, apply_edits(texts[path], edits))
                _require_nothing_left(path, texts[path], *later)
    except UnclearError as error:
        place = f"{error.path or wanted.entry}:{error.line}"
        raise DistributionError(place, error.text) from error
    except UnreadableError as error:
        reason = message("error.cannot-be-read", reason=error.text)
        raise DistributionError(wanted.entry, reason) from error
    if not _write_all(fixes, root, log, write):
        return
    for path, text in texts.items():
        found = cautions(text, read_source(root / path).text, is_started=path == wanted.entry)
        log.notes += (Note(path, *each) for each in found)
    log.notes += (Note(*each) for each in program.differences)
    values = {"card": starting.card, "count": starting.counter}
    start = _LAUNCHER.format(entry=shlex.quote(entry.name), **values)
    write_whole(launcher, start.encode("utf-8", "surrogateescape"), 0o755)
    name = relative_path(launcher, root)
    made = Fix(message("fix.start-processes"), Applicability.UNSAFE, ())
    log.add_new(name, start.rstrip("\n"), made)


def _write_all(
    fixes: Mapping[str, Fix],
    root: Path,
    log: ChangeLog,
    write: Callable[[FixedFile], FileReport],
) -> bool:
    """Change all files or none: what is written already is taken back where one cannot be."""
    before = {path: (root / path).read_bytes() for path in fixes}
    changes = list(log.changes)
    for path, fix in fixes.items():
        if rewrite_file(root / path, lambda _, fix=fix: fix, root, log, write):  # type: ignore[misc]
            continue
        for done in fixes:
            if done == path:
                break
            now = (root / done).read_bytes()
            write(FixedFile(FileReport(str(root / done)), now, before[done]))
        log.changes[:] = changes
        return False
    return True


def _distributed(root: Path, entry: Path, model: str | None, cards: Cards) -> "Rewriting":
    """What is made of a program. What makes them is loaded here, since no other command needs it.

    Raises:
        UnclearError: It is not clear how, or a package is missing.
        UnreadableError: The script cannot be read.
    """
    try:
        from npulens.fixes.multi_device.script_rewriting import distributed_program
    except ImportError as error:
        raise UnclearError(1, "distributed.needs-libcst") from error
    start = started_file(root, entry)
    return distributed_program(start, model, cards, project_modules(root, entry))


def _require_nothing_left(path: str, original: str, migrated: str, left: Sequence[Finding]) -> None:
    """See that each use of CUDA that stays in a file is a finding, which counts as left to do.

    Raises:
        UnclearError: One is not.
    """
    script = read_script(module_tree(migrated), migrated)
    spans = [finding.span for finding in left if not effort_of(finding).is_advice]
    for node in remaining_cuda(script, original):
        span = script.span(node)
        if not any(each.start < span.end and span.start < each.end for each in spans):
            source = script.source(node)
            line = _line_of(source, node.lineno, original)
            error = UnclearError(line, "distributed.fails-in-every-process", code=source)
            error.path = path
            raise error


def _line_of(source: str, line: int, original: str) -> int:
    """The line of the author's text that holds a source; lines were only put in before it."""
    lines = original.splitlines()
    containing = [at for at, each in enumerate(lines[:line], 1) if source.splitlines()[0] in each]
    return containing[-1] if containing else min(line, len(lines))
