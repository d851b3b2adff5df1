"""Which positions attention leaves out: masks and sparse modes of `npu_fusion_attention`."""

import functools

import torch
from torch import Tensor

from npulens_emulator.operators.arguments import not_described, require

UNLIMITED = 2147483647
COMPRESSED = 2048
"""The side of the mask that stands for a causal or banded mask of any size."""

OPERATOR = "npu_fusion_attention"


@functools.cache
def compressed_mask() -> Tensor:
    """The mask that sparse modes 2, 3 and 4 want: True above the diagonal."""
    return torch.triu(torch.ones(COMPRESSED, COMPRESSED, dtype=torch.bool), diagonal=1)


def masked_positions(
    scores: torch.Size, mask: Tensor | None, mode: int, before: int, after: int
) -> Tensor | None:
    """What is left out of scores of shape (B, N, Sq, Skv).

    Args:
        scores: the shape of the scores.
        mask: True (or 1) where a position is masked out. Without one everything is computed,
            whatever the mode says.
        mode: `sparse_mode`, 0 to 4.
        before: `pre_tockens`, for mode 4 counted from the diagonal that ends bottom right.
        after: `next_tockens`, likewise.

    Returns:
        A boolean tensor, True where masked out, that can be expanded to the scores; or None.

    Raises:
        RuntimeError: the mask does not fit the mode, or is no mask.
        NotImplementedError: the mode, or a row without any position, is not described.
    """
    require(mode in range(9), OPERATOR, f"unknown sparse_mode {mode}")
    if mask is None:
        return None
    is_mask = mask.dtype in (torch.bool, torch.uint8)
    require(is_mask, OPERATOR, f"atten_mask must be bool or uint8, not {mask.dtype}")
    if mode >= 5:
        not_described(OPERATOR, f"sparse_mode {mode}")
    masked = (
        _given(scores, mask.bool(), mode, before, after)
        if mode in (0, 1)
        else _banded(scores, mask.bool(), mode, before, after)
    )
    if bool(masked.all(-1).any()):
        not_described(OPERATOR, "a row where every position is masked")
    return masked


def _given(scores: torch.Size, mask: Tensor, mode: int, before: int, after: int) -> Tensor:
    """A complete mask; with mode 0 the band, if any, must not leave out more than the mask does."""
    batch, heads, rows, columns = scores
    allowed = [(rows, columns), *((b, n, rows, columns) for b, n in _leading(batch, heads))]
    shape = tuple(mask.shape)
    require(shape in allowed, OPERATOR, f"atten_mask {shape} fits none of {allowed}")
    if mode == 0:
        band = _outside_band(rows, columns, 0, before, after).to(mask.device)
        limited = bool(band.any())
        agree = not limited or (rows == columns and not bool((band & ~mask).any()))
        require(agree, OPERATOR, "pre_tockens and next_tockens do not agree with atten_mask")
    return mask


def _leading(batch: int, heads: int) -> list[tuple[int, int]]:
    return [(batch, heads), (batch, 1), (1, 1)]


def _banded(scores: torch.Size, mask: Tensor, mode: int, before: int, after: int) -> Tensor:
    """The mask that a compressed one stands for."""
    shape = tuple(mask.shape)
    fits = shape == (COMPRESSED, COMPRESSED) and torch.equal(mask.cpu(), compressed_mask())
    require(fits, OPERATOR, f"sparse_mode {mode} needs the triangle 2048x2048, not {shape}")
    rows, columns = scores[-2:]
    if mode == 2:
        band = _outside_band(rows, columns, 0, UNLIMITED, 0)
    elif mode == 3:
        band = _outside_band(rows, columns, columns - rows, UNLIMITED, 0)
    else:
        band = _outside_band(rows, columns, columns - rows, before, after)
    return band.to(mask.device)


def _outside_band(rows: int, columns: int, shift: int, before: int, after: int) -> Tensor:
    row = torch.arange(rows).unsqueeze(1)
    column = torch.arange(columns)
    return (column > row + shift + after) | (column < row + shift - before)
