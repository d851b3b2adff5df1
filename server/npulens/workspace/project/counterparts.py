"""Files for CUDA that have one for the NPU beside them: `train_gpu.sh` and `train_npu.sh`."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from npulens.text.kinds import Kind, kind_by_name
from npulens.text.late_patterns import late

_FOR_NPU = {
    "nvidia_gpu": ("ascend_npu", "npu", "ascend"),
    "nvidia": ("ascend", "npu"),
    "cuda": ("npu", "ascend"),
    "gpu": ("npu", "ascend"),
    "nccl": ("hccl",),
    "nvtx": ("mstx",),
}
_FOR_CUDA = late(rf"(?<![a-z])(?:{'|'.join(_FOR_NPU)})(?![a-z])", re.IGNORECASE)
_OF_NPU = late(r"(?<![a-z])(?:npu|ascend)(?![a-z])", re.IGNORECASE)


def with_counterparts(files: Iterable[Path]) -> frozenset[str]:
    """The paths of those that are for CUDA by their name, or by that of their folder.

    So are all Dockerfiles beside one for the NPU: `Dockerfile` and `npu.Dockerfile`.
    """
    places = {file.as_posix(): file for file in files}
    images = [file for file in places.values() if kind_by_name(file.name) is Kind.DOCKERFILE]
    ported = {file.parent for file in images if _OF_NPU.search(file.name)}
    paired = (file for file in images if file.parent in ported and not _OF_NPU.search(file.name))
    return frozenset(
        str(file)
        for place, file in places.items()
        if any(each in places for each in _counterparts(place))
    ).union(map(str, paired))


def _counterparts(place: str) -> Iterator[str]:
    """The paths that a counterpart for the NPU may have."""
    around = place.rfind("/", 0, max(place.rfind("/"), 0)) + 1
    for word in _FOR_CUDA.finditer(place, around):
        rest = place[word.end() :]
        for other in _FOR_NPU[word[0].lower()]:
            yield place[: word.start()] + other + rest
