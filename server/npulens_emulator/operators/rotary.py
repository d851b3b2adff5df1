"""Rotary position embedding."""

import torch
from torch import Tensor

from npulens_emulator.operators.arguments import (
    BackwardError,
    not_described,
    require,
    require_same_dtype,
)

SHAPES: dict[str, dict[str, tuple[str, ...]]] = {
    # A letter is a size of x, a 1 is 1; the last size is always that of x.
    "half": {
        "BNS": ("11S", "B1S", "BNS"),
        "BSN": ("1S1", "BS1", "BSN"),
        "SBN": ("S11", "SB1", "SBN"),
        "TN": ("T1", "TN"),
    },
    "interleave": {"BNS": ("11S",), "BSN": ("1S1",), "SBN": ("S11",), "TN": ("T1",)},
}
"""For each mode the layouts of x and what the shape of cosines and sines may be beside them."""


def npu_rotary_mul(
    self: Tensor,
    r1: Tensor,
    r2: Tensor,
    rotary_mode: str = "half",
    rotate: Tensor | None = None,
) -> Tensor:
    """`x * r1 + rotated(x) * r2`, where `r1` holds cosines and `r2` sines of the full head size.

    With "half" the rotated x is `(-second half, first half)`; with "interleave" each pair `(a, b)`
    becomes `(-b, a)`.
    """
    operator = "npu_rotary_mul"
    if rotate is not None:
        if self.requires_grad:
            raise BackwardError(f"{operator}: no backward with rotate")
        not_described(operator, "rotate")
    require(rotary_mode in SHAPES, operator, f"unknown rotary_mode {rotary_mode!r}")
    require_same_dtype(operator, self, r1, r2)
    size = self.shape[-1]
    require(size % 2 == 0 and size < 896, operator, f"head size {size} is odd or above 895")
    require(r1.shape == r2.shape, operator, "r1 and r2 differ in shape")
    require(
        _is_allowed(tuple(self.shape), tuple(r1.shape), rotary_mode),
        operator,
        f"cosines {tuple(r1.shape)} do not fit {tuple(self.shape)} in mode {rotary_mode!r}",
    )
    full = self.float() if self.dtype in (torch.float16, torch.bfloat16) else self
    return (full * r1 + _rotated(full, rotary_mode) * r2).to(self.dtype)


def _is_allowed(x: tuple[int, ...], r: tuple[int, ...], mode: str) -> bool:
    """Whether in any layout of x the shape of the cosines is a documented one."""
    forms = [form for forms in SHAPES[mode].values() for form in forms if len(form) == len(x) - 1]
    shapes = [
        (*(1 if letter == "1" else size for letter, size in zip(form, x, strict=False)), x[-1])
        for form in forms
    ]
    return r in shapes


def _rotated(x: Tensor, mode: str) -> Tensor:
    if mode == "half":
        first, second = x.chunk(2, -1)
        return torch.cat((-second, first), -1)
    return torch.stack((-x[..., 1::2], x[..., 0::2]), -1).flatten(-2)
