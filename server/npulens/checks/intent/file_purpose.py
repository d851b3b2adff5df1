"""What the path of a file says of its purpose."""

import re
from collections.abc import Sequence
from urllib.parse import unquote

from npulens.catalog.model import Finding, ProjectFacts
from npulens.checks.python.performance import ADVICE
from npulens.checks.whole_module import place_of

_FOR_OTHER_ACCELERATOR = re.compile(
    r"(?:^|/)(?:\w+_)?(?:ipex|xpu|hpu|gaudi|mlu|musa|rocm|tpu)(?:/[^/]+)?\.py\Z",
    re.IGNORECASE,
)
"""Modules, or their folders, named after hardware of another maker; `hip` and `mps` mean more."""
_OF_OTHER_MAKERS = re.compile(
    r"intel_extension_for_pytorch|\bipex\b|\btorch_(?:xla|mlu|musa|hpu)\b|\bhabana_frameworks\b"
    r"|\btorch\.(?:xpu|hpu|mlu|musa|version\.hip)\b|[\"'](?:xpu|hpu|mlu|musa|xla)\b|\bis_hip\b"
)
"""What such modules name: the folder alone may just be called so."""
_OF_TESTS = re.compile(r"(?:^|/)(?:tests?|testing|testdata|test_utils)/")
_TEST_FILE = re.compile(r"(?:^|/)(?:test_\w+|\w+_test)\.py\Z")
_COLD_FILE = re.compile(
    r"(?:^|[/\\])(?:[\w-]*(?:(?<![a-z])(?:metric|plot|eval|bench|test|export|convert|logger|calibrat"
    r"|loaders?|debug|results)|visuali[sz])[\w-]*|val)(?:\.py$|[/\\])"
)
_HOST_FILE = re.compile(
    r"(?:^|[/\\])(?:data|datasets?|transforms|pipelines_data|samplers)[/\\]|(?:^|[/\\])"
    r"(?:image_processing|processing|feature_extraction|tokenization|augment|dataset)\w*\.py$"
)
_COLD_FOLDERS, _HOST_FOLDERS = frozenset({"evaluation", "metrics"}), frozenset({"datasets"})
"""These say what they hold from one folder further out, too."""
_OF_OPERATORS = frozenset({"native-api-unsupported", "torch-api-limited"})


def is_of_tests(path: str) -> bool:
    """Whether a file is in a folder of tests."""
    return _OF_TESTS.search(path.replace("\\", "/")) is not None


def is_test_file(path: str) -> bool:
    """Whether a file is a test by its folder or its name."""
    return is_of_tests(path) or _TEST_FILE.search(path.replace("\\", "/")) is not None


def is_cold_file(path: str) -> bool:
    """Whether a file is for evaluation, pictures or conversion."""
    return _says(path, _COLD_FILE, _COLD_FOLDERS)


def is_host_file(path: str) -> bool:
    """Whether a file prepares data on the host."""
    return _says(path, _HOST_FILE, _HOST_FOLDERS)


def _says(path: str, pattern: re.Pattern[str], folders: frozenset[str]) -> bool:
    """Whether the name of a file or of its folder says something.

    Folders further out do not: whole projects stand in `/data` and `tests`.
    """
    *outside, folder, name = ("", "", *re.split(r"[/\\\\]", path))
    return pattern.search(f"{folder}/{name}") is not None or outside[-1] in folders


def without_counterpart(
    findings: Sequence[Finding], path: str, project: ProjectFacts
) -> list[Finding]:
    """Leave out what has a counterpart for the NPU beside it, but that it does not parse."""
    paired = project.with_counterparts
    if not paired or str(place_of(path)) not in paired:
        return list(findings)
    return [finding for finding in findings if finding.rule.family == "engine"]


def worth_telling(
    findings: Sequence[Finding], path: str, project: ProjectFacts, text: str
) -> list[Finding]:
    """Leave out what means nothing for a file of this path.

    What is for another accelerator is not moved. Tests are not tuned, and set variables that the
    NPU has no use for without harm. Where data is prepared on the host, PyTorch has all APIs.
    """
    place = project.place_of(unquote(path.removeprefix("file://")))
    if _FOR_OTHER_ACCELERATOR.search(place) and _OF_OTHER_MAKERS.search(text):
        return [finding for finding in findings if finding.rule.family == "engine"]
    tests = is_of_tests(place)
    on_host = is_host_file(place) and not any(f.rule.family == "device" for f in findings)
    return [
        finding
        for finding in findings
        if not (tests and (finding.rule.name in ADVICE or _is_idle_variable(finding)))
        and not (on_host and finding.rule.name in _OF_OPERATORS)
    ]


def _is_idle_variable(finding: Finding) -> bool:
    return finding.rule.name == "cuda-environment" and not finding.arguments.get("replacement")
