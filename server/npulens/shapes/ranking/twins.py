"""Functions for kernels of CUDA beside one for the NPU, which runs in their place."""

import re
from collections.abc import Iterable

_KERNELS = re.compile(r"flash|sage|xformers|cudnn|triton|aiter|cuda|cutlass|(?:^|_)sm\d\d")
_NPU = re.compile(r"(?:^|_)(?:npu|ascend)(?:_|$)")
_SHORTEST = 4
"""The fewest letters of a word that says what a function does."""
_PLAIN = frozenset({"native", "from", "with", "forward", "backward"})


def is_for_npu(name: str) -> bool:
    """Whether the name of a function says that it is for the NPU."""
    return _NPU.search(name.lower()) is not None


def has_npu_twin(name: str, for_npu: Iterable[str]) -> bool:
    """Whether a function is for a kernel of CUDA, and one of some others does the same.

    `_flash_attention_3_hub` and `_native_npu_attention` are two ways to compute attention.
    """
    if _KERNELS.search(name.lower()) is None or is_for_npu(name):
        return False
    words = _words(name)
    return any(words & _words(other) for other in for_npu)


def _words(name: str) -> set[str]:
    """The words of a name that say what it computes; `attn` is `attention`."""
    parts = name.lower().replace("attn", "attention").split("_")
    return {p for p in parts if len(p) >= _SHORTEST and p not in _PLAIN and not _KERNELS.search(p)}
