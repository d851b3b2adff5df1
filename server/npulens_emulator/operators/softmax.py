"""Softmax of scaled and masked scores."""

import torch
from torch import Tensor

from npulens_emulator.operators.arguments import not_described, require, require_dtype


def npu_scaled_masked_softmax(
    x: Tensor, mask: Tensor, scale: float = 1, fixed_triu_mask: bool = False
) -> Tensor:
    """Softmax over the last dimension of `scale * x`, without the positions where `mask` is True.

    The last two sizes are multiples of 32, from 32 to 4096.
    """
    operator = "npu_scaled_masked_softmax"
    require_dtype(operator, x)
    require(mask.dtype == torch.bool, operator, f"mask must be bool, not {mask.dtype}")
    require(not fixed_triu_mask, operator, "fixed_triu_mask must be False")
    for size in x.shape[-2:]:
        fits = 32 <= size <= 4096 and size % 32 == 0
        require(fits, operator, f"size {size} is not a multiple of 32 from 32 to 4096")
    masked = mask.expand_as(x)
    if bool(masked.all(-1).any()):
        not_described(operator, "a row where every position is masked")
    scores = (x.float() * scale).masked_fill(masked, float("-inf"))
    return torch.softmax(scores, -1).to(x.dtype)
