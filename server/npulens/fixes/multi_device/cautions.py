"""What a person should know of a script that was made to train in several processes."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from npulens.catalog.message_ids import MessageId
from npulens.catalog.messages import message
from npulens.catalog.model import LocalizedText


class Caution(NamedTuple):
    """Something that a person should know of the new script; the line is that of the old one."""

    line: int
    text: LocalizedText


_CAUTIONS: Sequence[tuple[re.Pattern[str], MessageId]] = (
    (re.compile(r"\b(?:SummaryWriter|mlflow\.start_run)\("), "distributed.every-process-writes"),
    (re.compile(r"\bdownload\s*=\s*True\b"), "distributed.all-download"),
    (
        re.compile(r"\.cuda\((?:device=)?(?!non_blocking)[\w.]*[A-Za-z][\w.]*[,)]"),
        "distributed.brackets",
    ),
    (
        re.compile(r"environ(?:\[|\.setdefault\()\s*[\"'](?:CUDA|ASCEND_RT)_VISIBLE_DEVICES"),
        "distributed.launcher-chooses",
    ),
    (re.compile(r"\brandom_split\(|\btrain_test_split\("), "distributed.same-division"),
)
_SEEDED = re.compile(r"\bmanual_seed\(|\bseed_everything\(|\bset_seed\(")


def cautions(text: str, distributed: str, *, is_started: bool = True) -> list[Caution]:
    """What to know of a file that became distributed; lines are those of the first text.

    Args:
        text: The file as it was.
        distributed: What it became.
        is_started: It is the script that is started, with which is said what holds for all files.
    """
    found = [Caution(1, message("distributed.of-all"))] if is_started else []
    if "averaged_over_processes(" in distributed:
        found.append(Caution(1, message("distributed.averaged")))
    if "DistributedSampler(" in distributed and ".set_epoch(" not in distributed:
        found.append(Caution(1, message("distributed.no-epoch")))
    for pattern, caution in _CAUTIONS:
        if caution == "distributed.same-division" and _SEEDED.search(text):
            continue
        found += (
            Caution(text.count("\n", 0, match.start()) + 1, message(caution))
            for match in pattern.finditer(text)
        )
    return found
