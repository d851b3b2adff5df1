"""What the path of a file says of its purpose, as far as launching is concerned."""

import re
from collections.abc import Sequence

from npulens.catalog.model import Finding
from npulens.checks.performance import ADVICE

_FOR_OTHER_HARDWARE = re.compile(
    r"(?:^|[/._-])(?:cuda\d*|cu\d+|nvidia|rocm|hip|xpu|hpu|tpu|amd|cpu|cpu_tests)(?:[._-][^/]*)?(?:/[^/]*)?\Z",
    re.IGNORECASE,
)
"""Names of files, or of their folders, that say for which hardware they are."""
_OF_OTHER_FRAMEWORK = re.compile(
    r"(?:^|(?<!/home)(?<!/Users)/)"
    r"(?:tensorflow\d?|tf\d|flax|jax|mxnet|paddle(?:paddle)?|kaldi)/",
    re.IGNORECASE,
)
"""Folders named after a framework that torch_npu is not for; home folders may have any name."""
_OF_TESTS = re.compile(r"(?:^|/)(?:tests?|testing|testdata|test_utils)/")
_OF_BENCHMARKS = re.compile(r"(?:^|/)bench(?:mark(?:s|ing)?)?(?:/|_\w+\.py\Z)")
_OF_LESSONS = re.compile(r"(?:^|/)[^/]*tutorials?\b[^/]*/", re.IGNORECASE)
_OF_CUDA_KERNELS = re.compile(r"(?:^|/)(?:cute|cutlass)/|(?:^|[/_])fa[34]_\w+\.py\Z")
_CUDA_MODULE = re.compile(r"(?:^|/)(?:cuda|nccl|nccl_\w+)\.py\Z")


def is_for_other_hardware(path: str) -> bool:
    """Whether a file is for one kind of hardware, with its like for the NPU beside it."""
    return _FOR_OTHER_HARDWARE.search(path.replace("\\", "/")) is not None


def is_of_other_framework(path: str) -> bool:
    """Whether a file belongs to code for TensorFlow, JAX and the like."""
    return _OF_OTHER_FRAMEWORK.search(path.replace("\\", "/")) is not None


def is_of_tests(path: str) -> bool:
    """Whether a file is in a folder of tests."""
    return _OF_TESTS.search(path.replace("\\", "/")) is not None


def is_of_benchmarks(path: str) -> bool:
    """Whether a file is in a folder of benchmarks, or is one by its name."""
    return _OF_BENCHMARKS.search(path.replace("\\", "/")) is not None


def wraps_cuda(path: str) -> bool:
    """Whether a module is about CUDA or NCCL by its name: `cuda.py`, `nccl_allocator.py`."""
    return _CUDA_MODULE.search(path.replace("\\", "/")) is not None


def worth_telling(findings: Sequence[Finding], path: str) -> list[Finding]:
    """Leave out what is said of launching, where a module of this path does not launch.

    Tests and lessons are not tuned, and tests set variables that the NPU has no use for without
    harm; a module that wraps CUDA is replaced as a whole.
    """
    if not any(finding.rule.family == "launch" for finding in findings):
        return list(findings)
    if is_of_other_framework(path):
        return [finding for finding in findings if finding.rule.family != "launch"]
    place = path.replace("\\", "/")
    is_of_cuda = wraps_cuda(path) or _OF_CUDA_KERNELS.search(place) is not None
    tests = is_of_tests(path)
    is_untuned = tests or _OF_LESSONS.search(place) is not None
    return [
        finding
        for finding in findings
        if not (is_untuned and finding.rule.name in ADVICE)
        and not (tests and _is_idle_variable(finding))
        and not (is_of_cuda and finding.rule.name == "cuda-environment")
    ]


def _is_idle_variable(finding: Finding) -> bool:
    return finding.rule.name == "cuda-environment" and not finding.arguments.get("replacement")
