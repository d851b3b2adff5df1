"""What the path of a file says of its purpose."""

import re
from collections.abc import Sequence
from urllib.parse import unquote

from npulens.catalog.model import Finding
from npulens.catalog.project_model import ProjectFacts
from npulens.catalog.rule_properties import SettledBy
from npulens.checks.intent.unused_code import DEFINITION, end_of_definition
from npulens.checks.whole_module import place_of
from npulens.text.late_patterns import late
from npulens.text.spans import Span
from npulens.verdicts.file_role import FileRole, file_role

_FOR_OTHER_ACCELERATOR = late(
    r"(?:^|/)(?:\w+_)?(?:ipex|xpu|hpu|gaudi|mlu|musa|rocm|tpu)(?:/[^/]+)?\.py\Z",
    re.IGNORECASE,
)
"""Modules, or their folders, named after hardware of another maker; `hip` and `mps` mean more."""
_OF_OTHER_MAKERS = late(
    r"intel_extension_for_pytorch|\bipex\b|\btorch_(?:xla|mlu|musa|hpu)\b|\bhabana_frameworks\b"
    r"|\btorch\.(?:xpu|hpu|mlu|musa|version\.hip)\b|[\"'](?:xpu|hpu|mlu|musa|xla)\b|\bis_hip\b"
)
"""What such modules name: the folder alone may just be called so."""


_FOLLOWS_DEVICE = late(r"\w\.device\b|\bdevice[ \t]*=[ \t]*\w|\.to\([ \t]*device[ \t]*[,)]")
"""A function that asks where its tensors are, or puts them there, is not for the host alone."""
_MOVES = late(r"\.to\([ \t]*(?:device[ \t]*=[ \t]*)?(?:\w+\.)*device\b(?![ \t]*=)|\.cuda\(")
"""A module that moves tensors itself prepares them on the device."""
_INDENT = late(r"[ \t]*")
_NEAR = 50
"""How many definitions are looked at for the one around a finding."""


def without_counterpart(
    findings: Sequence[Finding], path: str, project: ProjectFacts
) -> list[Finding]:
    """Leave out what has a counterpart for the NPU beside it, but that it does not parse."""
    paired = project.with_counterparts
    if not paired or str(place_of(path)) not in paired:
        return list(findings)
    return [finding for finding in findings if finding.rule.family == "engine"]


def filtered_by_file_role(
    findings: Sequence[Finding], path: str, project: ProjectFacts, text: str
) -> list[Finding]:
    """Leave out what means nothing for a file of this path.

    What is for another accelerator is not moved. Where else its rule says that such a file settles
    a finding: tests are not tuned, and where data is prepared on the host, PyTorch has all APIs.
    """
    place = project.place_of(unquote(path.removeprefix("file://")))
    if _FOR_OTHER_ACCELERATOR.search(place) and _OF_OTHER_MAKERS.search(text):
        return [finding for finding in findings if finding.rule.family == "engine"]
    role = file_role(place)
    is_moving = any(f.rule.family == "device" for f in findings) or _MOVES.search(text) is not None
    on_host = FileRole.HOST in role and not is_moving
    in_tests = FileRole.IN_TESTS in role
    return [
        finding
        for finding in findings
        if not (
            on_host
            and SettledBy.HOST_CODE in finding.rule.settled_by
            and _FOLLOWS_DEVICE.search(text, *_function_around(finding, text)) is None
        )
        and not (
            in_tests
            and SettledBy.TESTS in finding.rule.settled_by
            and not finding.arguments.get("replacement")
        )
    ]


def _function_around(finding: Finding, text: str) -> Span:
    """The function, or class, that a finding is in; nothing at the top of a module."""
    line = text.rfind("\n", 0, finding.span.start) + 1
    depth = _INDENT.match(text, line).end() - line  # type: ignore[union-attr]
    for _ in range(_NEAR):
        start = max(text.rfind(word, 0, line) for word in ("def ", "class "))
        line = text.rfind("\n", 0, max(start, 0)) + 1
        found = DEFINITION.match(text, line)
        if start < 0 or found is None:
            continue
        if len(found["indent"]) < depth:
            return Span(found.start(), end_of_definition(text, found))
    return Span(0, 0)
