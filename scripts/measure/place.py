"""A place that belongs to NVIDIA's world."""

import re
from typing import NamedTuple

LIBRARIES = frozenset(
    {
        *("apex", "bitsandbytes", "causal_conv1d", "cupy", "cupyx", "flash_attn", "mamba_ssm"),
        *("nvidia", "nvidia_smi", "nvtx", "py3nvml", "pycuda", "pynvml", "tensorrt"),
        *("transformer_engine", "triton", "xformers"),
    }
)
"""Packages that are made for NVIDIA's cards, as they are imported."""
VARIABLE = re.compile(
    r"(?<![A-Za-z0-9_])(?:CUDA|NCCL|NVIDIA|CUDNN|CUBLAS|TORCH_CUDA|TORCH_NCCL|PYTORCH_CUDA)"
    r"_(?!API_KEY)[A-Z][A-Z0-9_]*\b"
)
REQUIREMENT = re.compile(
    r"(?:apex|bitsandbytes|causal[-_]conv1d|cupy(?:[-_]\w+)*|flash[-_]attn|mamba[-_]ssm"
    r"|nvidia(?:[-_]\w+)+|pynvml|tensorrt|xformers|triton|[\w.-]+[-_+]cu1\d+)"
    r"\s*(?:\[[\w,-]*\])?\s*(?:[<>=!~;@,].*|==.*)?\Z",
    re.IGNORECASE | re.DOTALL,
)
"""A requirement that is for CUDA, from its first letter to its end."""


class Place(NamedTuple):
    """One place.

    Attributes:
        path: The file, relative to its checkout.
        line: The line, from 1; in a notebook that of the cell.
        kind: What is there, in one word.
        text: What stands there, on one line.
        last: The last line, if there is more than one.
    """

    path: str
    line: int
    kind: str
    text: str
    last: int = 0

    @property
    def lines(self) -> range:
        """All of its lines."""
        return range(self.line, max(self.last, self.line) + 1)
