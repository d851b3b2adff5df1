"""Cross entropy."""

import torch
from torch import Tensor
from torch.nn import functional

from npulens_emulator.operators.arguments import BackwardError, require, require_dtype


def npu_cross_entropy_loss(
    input: Tensor,  # noqa: A002 - the name in the schema
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    lse_square_scale_for_zloss: float = 0.0,
    return_zloss: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Cross entropy of logits (N, C) and class numbers (N,).

    Where gradients are needed, "mean" takes no other option, and "sum" and "none" take no label
    smoothing.

    Returns:
        The loss, of shape (1,) for "mean" and "sum" and (N,) for "none"; the log probabilities;
        and two empty tensors in place of what belongs to the z-loss.

    Raises:
        BackwardError: gradients are needed and the options do not allow it.
        RuntimeError: shapes, dtypes or the z-loss are refused.
    """
    operator = "npu_cross_entropy_loss"
    require_dtype(operator, input)
    require(input.dim() == 2, operator, f"input must be (N, C), not {tuple(input.shape)}")
    require(input.shape[0] <= 200000, operator, "N is above 200000")
    require(target.dtype == torch.int64, operator, f"target must be int64, not {target.dtype}")
    require(target.shape == input.shape[:1], operator, "target must be (N,)")
    no_z_loss = lse_square_scale_for_zloss == 0.0 and not return_zloss
    require(no_z_loss, operator, "the z-loss is not supported")
    if weight is not None:
        require_dtype(operator, weight, (torch.float32,))
        require(weight.shape == input.shape[1:], operator, "weight must be (C,)")
    if input.requires_grad and torch.is_grad_enabled():
        plain = weight is None and ignore_index == -100 if reduction == "mean" else True
        if not plain or label_smoothing != 0.0:
            raise BackwardError(f"{operator}: no backward with these options")
    log_probabilities = functional.log_softmax(input.float(), -1)
    loss = functional.cross_entropy(
        input.float(), target, weight, None, ignore_index, None, reduction, label_smoothing
    )
    shaped = loss if reduction == "none" else loss.reshape(1)
    empty = input.new_empty(0)
    return shaped.to(input.dtype), log_probabilities.to(input.dtype), empty, empty
