"""What the path of a file says of its purpose."""

import re
from collections.abc import Sequence
from urllib.parse import unquote

from npulens.catalog.model import Finding, ProjectFacts
from npulens.checks.context import FAMILIES_OF_KERNELS
from npulens.checks.python.performance import ADVICE
from npulens.checks.whole_module import place_of

_FOR_OTHER_HARDWARE = re.compile(
    r"(?:^|[/._-])(?:cuda\d*|cu\d+|nvidia|rocm|hip|xpu|hpu|tpu|amd|cpu|cpu_tests)(?:[._-][^/]*)?(?:/[^/]*)?\Z",
    re.IGNORECASE,
)
"""Names of files, or of their folders, that say for which hardware they are."""
_OF_OTHER_FRAMEWORK = re.compile(
    r"(?:^|/)"
    r"(?:tensorflow\d?|tf\d|flax|jax|mxnet|paddle(?:paddle)?|kaldi)/",
    re.IGNORECASE,
)
"""Folders named after a framework that torch_npu is not for; home folders may have any name."""
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
_TESTS_KERNELS = re.compile(
    r"(?:^|/)(?:test|bench(?:mark)?)_(?:\w+_)?"
    r"(?:kernels?|cuda|triton|cutlass|cute|te|transformer_engine|flash_attn|flash_attention|plugin)"
    r"(?:_\w+)?\.py\Z"
    r"|(?:^|/)bench(?:mark)?_(?:\w+_)?(?:attn|attention|mla|varlen)(?:_\w+)?\.py\Z"
)
_OF_BENCHMARKS = re.compile(r"(?:^|/)bench(?:mark(?:s|ing)?)?(?:/|_\w+\.py\Z)")
_OF_STYLE_CHECKS = re.compile(
    r"(?:^|[/._-])(?:lint(?:ing|er)?|format(?:ting)?|pre-?commit|docs?)(?:[._-][^/]*)?\Z",
    re.IGNORECASE,
)
_OF_LESSONS = re.compile(r"(?:^|/)[^/]*tutorials?\b[^/]*/", re.IGNORECASE)
_OF_CUDA_KERNELS = re.compile(
    r"(?:^|/)(?:cute|cutlass|hopper|blackwell)/|(?:^|[/_])fa[34]_\w+\.py\Z"
    r"|(?:^|[/_])(?:repro|racecheck)_\w+\.py\Z"
)
"""Folders named after what CUDA kernels are written with or for; what shows a fault of one."""
_FAMILIES_BY_PATH = FAMILIES_OF_KERNELS | {"launch", "library", "api"}
_LIBRARIES_OF_KERNELS = frozenset(
    {"cuda-library", "library-needs-npu-build", "cuda-operator-call", "nvidia-smi"}
    | {"cuda-extension-import"}
)
_USES_OF_KERNELS = frozenset({"cuda-operator-call", "cuda-extension-import"})
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
_COPIED_FILE = re.compile(r"(?:^|[/\\])(\w+)[/\\]modular_\1\.py$")
_OF_OPERATORS = frozenset({"native-api-unsupported", "torch-api-limited"})
_CUDA_MODULE = re.compile(r"(?:^|/)(?:cuda|nccl|nccl_\w+)\.py\Z")


def is_for_other_hardware(path: str) -> bool:
    """Whether a file is for one kind of hardware, with its like for the NPU beside it."""
    return _FOR_OTHER_HARDWARE.search(path.replace("\\", "/")) is not None


def is_of_other_framework(path: str) -> bool:
    """Whether a file belongs to code for TensorFlow, JAX and the like."""
    return _OF_OTHER_FRAMEWORK.search(path.replace("\\", "/")) is not None


def only_reads_code(path: str) -> bool:
    """Whether a file says by its name that it is for style checks or documentation."""
    return _OF_STYLE_CHECKS.search(path.replace("\\", "/")) is not None


def is_of_tests(path: str) -> bool:
    """Whether a file is in a folder of tests."""
    return _OF_TESTS.search(path.replace("\\", "/")) is not None


def is_test_file(path: str) -> bool:
    """Whether a file is a test by its folder or its name."""
    return is_of_tests(path) or _TEST_FILE.search(path.replace("\\", "/")) is not None


def is_of_benchmarks(path: str) -> bool:
    """Whether a file is in a folder of benchmarks, or is one by its name."""
    return _OF_BENCHMARKS.search(path.replace("\\", "/")) is not None


def wraps_cuda(path: str) -> bool:
    """Whether a module is about CUDA or NCCL by its name: `cuda.py`, `nccl_allocator.py`."""
    return _CUDA_MODULE.search(path.replace("\\", "/")) is not None


def is_cold_file(path: str) -> bool:
    """Whether a file is for evaluation, pictures or conversion."""
    return _says(path, _COLD_FILE, _COLD_FOLDERS)


def is_copied_file(path: str) -> bool:
    """Whether another file is generated from this one, which runs in its place.

    The model of a folder `x` that transformers keeps in `modular_x.py` runs as `modeling_x.py`,
    which the head of that one says.
    """
    return _COPIED_FILE.search(path) is not None


def is_host_file(path: str) -> bool:
    """Whether a file prepares data on the host."""
    return _says(path, _HOST_FILE, _HOST_FOLDERS)


def _says(path: str, pattern: re.Pattern[str], folders: frozenset[str]) -> bool:
    """Whether the name of a file or of its folder says something.

    Folders further out do not: whole projects stand in `/data` and `tests`.
    """
    *outside, folder, name = ("", "", *re.split(r"[/\\\\]", path))
    return pattern.search(f"{folder}/{name}") is not None or outside[-1] in folders


def worth_telling(
    findings: Sequence[Finding], path: str, project: ProjectFacts, text: str
) -> list[Finding]:
    """Leave out what means nothing for a file of this path.

    What has a counterpart for the NPU beside it, or is for other hardware, is not moved. Tests and
    lessons are not tuned, and tests set variables that the NPU has no use for without harm; a
    module that wraps CUDA is replaced as a whole, and so are CUDA kernels with the precision and
    the layouts around them. What calls an operator of the project itself, to test or to measure
    it, is about that kernel. Where data is prepared on the host, PyTorch has all APIs.
    """
    place = project.place_of(unquote(path.removeprefix("file://")))
    paired = project.with_counterparts
    is_paired = bool(paired) and str(place_of(path)) in paired
    is_foreign = _FOR_OTHER_ACCELERATOR.search(place) and _OF_OTHER_MAKERS.search(text)
    if is_paired or is_foreign:
        return [finding for finding in findings if finding.rule.family == "engine"]
    if not any(finding.rule.family in _FAMILIES_BY_PATH for finding in findings):
        return list(findings)
    of_kernels = any(p.search(place) is not None for p in (_OF_CUDA_KERNELS, _TESTS_KERNELS))
    if of_kernels:
        findings = [f for f in findings if not _is_for_kernels(f)]
    if is_of_other_framework(place):
        return [f for f in findings if f.rule.family not in ("launch", "library")]
    is_of_cuda = wraps_cuda(place) or of_kernels
    tests = is_of_tests(place)
    runs_kernels = is_test_file(place) or is_of_benchmarks(place)
    on_host = is_host_file(place) and not any(f.rule.family == "device" for f in findings)
    is_untuned = tests or _OF_LESSONS.search(place) is not None
    return [
        finding
        for finding in findings
        if not (is_untuned and finding.rule.name in ADVICE)
        and not (tests and _is_idle_variable(finding))
        and not (is_of_cuda and finding.rule.name == "cuda-environment")
        and not (runs_kernels and finding.rule.name in _USES_OF_KERNELS)
        and not (on_host and finding.rule.name in _OF_OPERATORS)
    ]


def _is_for_kernels(finding: Finding) -> bool:
    rule = finding.rule
    return rule.family in FAMILIES_OF_KERNELS or rule.name in _LIBRARIES_OF_KERNELS


def _is_idle_variable(finding: Finding) -> bool:
    return finding.rule.name == "cuda-environment" and not finding.arguments.get("replacement")
