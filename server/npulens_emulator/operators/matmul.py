"""Matrix products of groups, and feed-forward layers; for inference."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from npulens_emulator.operators.activations import npu_fast_gelu
from npulens_emulator.operators.arguments import inference_only, not_described, require


@inference_only
def npu_grouped_matmul(
    x: list[Tensor],
    weight: list[Tensor],
    *,
    bias: list[Tensor] | None = None,
    scale: list[Tensor] | None = None,
    offset: list[Tensor] | None = None,
    antiquant_scale: list[Tensor] | None = None,
    antiquant_offset: list[Tensor] | None = None,
    per_token_scale: list[Tensor] | None = None,
    group_list: Tensor | None = None,
    activation_input: list[Tensor] | None = None,
    activation_quant_scale: list[Tensor] | None = None,
    activation_quant_offset: list[Tensor] | None = None,
    split_item: int | None = 0,
    group_type: int | None = None,
    group_list_type: int | None = 0,
    act_type: int | None = 0,
    tuning_config: list[int] | None = None,
    output_dtype: int | None = None,
    x_dtype: int | None = None,
    weight_dtype: int | None = None,
    scale_dtype: int | None = None,
    per_token_scale_dtype: int | None = None,
) -> list[Tensor]:
    """`x[i] @ weight[i] + bias[i]`; without backward.

    Either lists of equal length without `group_list`, or one `x` (M, K) whose rows belong to groups
    and one `weight` (groups, K, N), with `group_type=0`, `split_item` 2 or 3, and in `group_list`
    the ends (`group_list_type=0`) or the sizes (1) of the groups.

    Raises:
        NotImplementedError: the call has another form, quantisation or an activation.
    """
    operator = "npu_grouped_matmul"
    require(isinstance(x, list | tuple), operator, "x must be a list of tensors")
    require(isinstance(weight, list | tuple), operator, "weight must be a list of tensors")
    quantisation = (
        *(scale, offset, antiquant_scale, antiquant_offset, per_token_scale),
        *(activation_input, activation_quant_scale, activation_quant_offset),
        *(output_dtype, x_dtype, weight_dtype, scale_dtype, per_token_scale_dtype),
    )
    if any(given is not None for given in quantisation) or act_type:
        not_described(operator, "quantisation or activation")
    if group_list is None:
        require(len(x) == len(weight), operator, "x and weight differ in length")
        offsets: list[Tensor | None] = [*bias] if bias else [None] * len(x)
        if split_item or group_type not in (None, -1):
            not_described(operator, "one output without group_list")
        return [_product(*each) for each in zip(x, weight, offsets, strict=True)]
    if len(x) != 1 or len(weight) != 1 or split_item not in (2, 3) or group_type != 0:
        not_described(operator, "this form of groups")
    given = group_list.tolist()
    ends = torch.tensor(given).cumsum(0).tolist() if group_list_type == 1 else given
    require(ends[-1] == x[0].shape[0], operator, "the groups do not cover the rows of x")
    require(len(ends) == weight[0].shape[0], operator, "as many groups as weights are needed")
    offsets = [*bias[0]] if bias else [None] * len(ends)
    rows = [x[0][start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]
    return [torch.cat([_product(*each) for each in zip(rows, weight[0], offsets, strict=True)])]


def _product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    product = x.float() @ weight.float()
    return (product if bias is None else product + bias.float()).to(x.dtype)


@inference_only
def npu_ffn(
    x: Tensor,
    weight1: Tensor,
    weight2: Tensor,
    activation: str,
    *,
    expert_tokens: list[int] | None = None,
    expert_tokens_index: list[int] | None = None,
    bias1: Tensor | None = None,
    bias2: Tensor | None = None,
    scale: Tensor | None = None,
    offset: Tensor | None = None,
    deq_scale1: Tensor | None = None,
    deq_scale2: Tensor | None = None,
    antiquant_scale1: Tensor | None = None,
    antiquant_scale2: Tensor | None = None,
    antiquant_offset1: Tensor | None = None,
    antiquant_offset2: Tensor | None = None,
    inner_precise: int | None = None,
    output_dtype: torch.dtype | None = None,
) -> Tensor:
    """`activation(x @ weight1 + bias1) @ weight2 + bias2`; without backward.

    `weight1` is (K1, N1) and `weight2` is (N1, N2): transposed beside `torch.nn.Linear`.

    Raises:
        NotImplementedError: another activation than "fastgelu", "relu", "silu", or more options.
    """
    operator = "npu_ffn"
    activations: dict[str, Callable[[Tensor], Tensor]] = {
        "fastgelu": npu_fast_gelu,
        "relu": functional.relu,
        "silu": functional.silu,
    }
    undescribed = (
        *(expert_tokens, expert_tokens_index, scale, offset, deq_scale1, deq_scale2),
        *(antiquant_scale1, antiquant_scale2, antiquant_offset1, antiquant_offset2, output_dtype),
    )
    if any(given is not None for given in undescribed):
        not_described(operator, "experts or quantisation")
    if activation not in activations:
        not_described(operator, f"the activation {activation!r}")
    require(weight1.shape[1] == weight2.shape[0], operator, "N1 of weight1 is not K2 of weight2")
    hidden = activations[activation](_product(x.float(), weight1, bias1))
    return _product(hidden, weight2, bias2).to(x.dtype)
