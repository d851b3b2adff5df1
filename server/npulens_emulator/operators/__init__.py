"""What the fused operators of torch_npu compute, in plain PyTorch on any device.

Names, order of arguments, defaults and refusals are those of the documented operator schemas. What
is refused on the NPU is refused here, so that a wrong call fails instead of giving plausible
numbers. Results are made of ordinary operations, so autograd supplies the gradients; operators
without a backward pass raise `BackwardError` in it. Half precision is computed in float32
and rounded once, as fused kernels do.

Not here, because the documentation that npulens was made from does not describe it fully:

- of `npu_fusion_attention`: `pse` (its place before or after the scaling is stated in two ways),
  prefixes (`sparse_mode` 5 and 6), the outer splits (7 and 8), `sink`, `dropout_mask`,
  `softmax_layout`, all results but the first, rows where every position is masked, and full masks
  (`sparse_mode` 0 and 1) with the layout TND; of its relatives, all;
- of `npu_scaled_masked_softmax`: rows where every position is masked;
- of `npu_rotary_mul`: `rotate`, operands of different dtypes, the limits on batch and heads;
- of `npu_grouped_matmul`: groups along k, quantisation, activations;
- of `npu_ffn`: experts, quantisation, `"gelu"` (exact or not is not said) and the gated kinds;
- of the MoE permutation: `num_out_tokens` that drops tokens, and the meaning of `sorted_indices`
  outside `npu_moe_token_unpermute`;
- the detection operators of `torch_npu.contrib`, and the optimizers without a PyTorch counterpart
  (Lamb, AdamP, BertAdam, RMSpropTF).

Two things are documented less clearly than the rest and taken as their parameters' names say:
`npu_geglu` activates the right half by default, and a mask of `npu_scaled_masked_softmax` is True
where a position is masked out.
"""

from collections.abc import Callable, Mapping
from typing import Any

from npulens_emulator.operators.activations import (
    fast_gelu,
    npu_fast_gelu,
    npu_geglu,
    npu_gelu,
    npu_swiglu,
)
from npulens_emulator.operators.arguments import BackwardError, DtypeError
from npulens_emulator.operators.attention import npu_fusion_attention
from npulens_emulator.operators.loss import npu_cross_entropy_loss
from npulens_emulator.operators.matmul import npu_ffn, npu_grouped_matmul
from npulens_emulator.operators.norms import (
    npu_add_rms_norm,
    npu_group_norm_silu,
    npu_group_norm_swish,
    npu_rms_norm,
)
from npulens_emulator.operators.permutation import npu_moe_token_permute, npu_moe_token_unpermute
from npulens_emulator.operators.rotary import npu_rotary_mul
from npulens_emulator.operators.softmax import npu_scaled_masked_softmax

__all__ = ["OPERATORS", "BackwardError", "DtypeError"]

OPERATORS: Mapping[str, Callable[..., Any]] = {
    operator.__name__: operator
    for operator in (
        fast_gelu,
        npu_add_rms_norm,
        npu_cross_entropy_loss,
        npu_fast_gelu,
        npu_ffn,
        npu_fusion_attention,
        npu_geglu,
        npu_gelu,
        npu_group_norm_silu,
        npu_group_norm_swish,
        npu_grouped_matmul,
        npu_moe_token_permute,
        npu_moe_token_unpermute,
        npu_rms_norm,
        npu_rotary_mul,
        npu_scaled_masked_softmax,
        npu_swiglu,
    )
}
"""By name."""
