"""Permutation of tokens for experts."""

import torch
from torch import Tensor

from npulens_emulator.operators.arguments import not_described, require, require_dtype


def npu_moe_token_permute(
    tokens: Tensor, indices: Tensor, num_out_tokens: int | None = None, padded_mode: bool = False
) -> tuple[Tensor, Tensor]:
    """Repeat each token once for each of its experts and sort these rows by expert.

    Args:
        tokens: (tokens, hidden).
        indices: the experts of each token, (tokens, k), int32 or int64.
        num_out_tokens: None, or the number of all rows; dropping is not described.
        padded_mode: must be False.

    Returns:
        The rows (tokens * k, hidden), and what `npu_moe_token_unpermute` needs to undo it.
    """
    operator = "npu_moe_token_permute"
    require_dtype(operator, tokens)
    require(not padded_mode, operator, "padded_mode must be False")
    require(tokens.dim() == 2 and indices.dim() == 2, operator, "takes (T, H) and (T, k)")
    require(indices.dtype in (torch.int32, torch.int64), operator, "indices must be integers")
    require(indices.shape[1] <= 512, operator, "more than 512 experts for a token")
    if num_out_tokens not in (None, indices.numel()):
        not_described(operator, "num_out_tokens that drops tokens")
    order = torch.argsort(indices.flatten(), stable=True)
    permuted = tokens.index_select(0, order // indices.shape[1])
    return permuted, torch.argsort(order).to(torch.int32)


def npu_moe_token_unpermute(
    permuted_tokens: Tensor,
    sorted_indices: Tensor,
    probs: Tensor | None = None,
    padded_mode: bool = False,
    restore_shape: list[int] | None = None,
) -> Tensor:
    """Put rows back, weigh them with `probs` (tokens, k) and add up the k rows of each token.

    Without `probs` each token has one row.
    """
    operator = "npu_moe_token_unpermute"
    require_dtype(operator, permuted_tokens)
    require(not padded_mode, operator, "padded_mode must be False")
    require(restore_shape is None, operator, "restore_shape must be None")
    rows = permuted_tokens.index_select(0, sorted_indices.long())
    if probs is None:
        return rows
    require(probs.numel() == len(rows), operator, "probs has another number of rows")
    weighted = rows.float().reshape(*probs.shape, -1) * probs.float().unsqueeze(-1)
    return weighted.sum(dim=1).to(permuted_tokens.dtype)
