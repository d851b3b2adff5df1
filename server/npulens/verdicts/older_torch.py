"""Fallbacks for releases of torch that had mixed precision for CUDA only.

Since torch 2.4 one interface serves all devices, and libraries choose between it and the old one:
`torch.get_autocast_dtype(device) if hasattr(...) else torch.get_autocast_gpu_dtype()`. What is
beside the device-neutral way never runs with a torch that torch_npu supports today.
"""

import ast
from collections.abc import Callable, Sequence

from npulens.text.late_patterns import late

_NEUTRAL = late(
    r"torch\.(?:amp\.(?:autocast|GradScaler|custom_[fb]wd)|autocast\b|get_autocast_dtype"
    r"|is_autocast_enabled\((?!\)))|from torch\.amp import"
)
_CUDA_ONLY = late(
    r"torch\.(?:cuda\.amp\b|get_autocast_gpu_dtype|is_autocast_enabled\(\))"
    r"|from torch\.cuda\.amp import"
)
_VERSION = late(r"version|VERSION|TORCH_|torch_\d|hasattr\(|torch_min|ge_\d|GREATER|AVAILABLE")


def way_of_old(
    ways: Sequence[Sequence[ast.AST]], test: ast.AST | None, source: Callable[[ast.AST], str]
) -> int | None:
    """Which of two ways is what the other replaced, 0 or 1; `None` if neither is.

    The test that chooses between them has to check for a release of torch, or for what only newer
    ones have; there is none if the first way is tried.
    """
    if test is not None and _VERSION.search(source(test)) is None:
        return None
    texts = ["\n".join(map(source, way)) for way in ways]
    neutral = [_NEUTRAL.search(text) is not None for text in texts]
    if neutral[0] is neutral[1]:
        return None
    old = 1 if neutral[0] else 0
    return old if _CUDA_ONLY.search(texts[old]) is not None else None


_CAUGHT = late(r"\(?(?:AttributeError|TypeError|, )+\)?\Z")


def catches_old_torch(node: ast.Try, source: Callable[[ast.AST], str]) -> bool:
    """Whether `try: return torch.new_name(...)` catches only that it is not there yet.

    Or that a device has no namespace: `try: return getattr(torch, name)`.
    """
    return (
        isinstance(node.body[0], ast.Return)
        and source(node.body[0]).startswith(("return torch.", "return getattr(torch, "))
        and all(h.type and _CAUGHT.match(source(h.type)) for h in node.handlers)
    )
