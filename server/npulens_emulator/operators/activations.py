"""Activations, gated and plain."""

import torch
from torch import Tensor
from torch.nn import functional

from npulens_emulator.operators.arguments import require, require_dtype, require_even


def npu_swiglu(self: Tensor, dim: int = -1) -> Tensor:
    """SiLU of the first half along `dim`, times the second half."""
    operator = "npu_swiglu"
    require_dtype(operator, self)
    require_even(operator, self, dim)
    require(self.is_contiguous(), operator, "takes contiguous tensors only")
    require(self.numel() > 0, operator, "does not take empty tensors")
    gate, up = self.float().chunk(2, dim)
    return (functional.silu(gate) * up).to(self.dtype)


def npu_geglu(
    self: Tensor, dim: int = -1, approximate: int = 1, activate_left: bool = False
) -> tuple[Tensor, Tensor]:
    """GELU of one half along `dim`, times the other half; by default the right one is activated.

    `approximate` is 0 for the exact GELU and 1 for that with tanh.

    Returns:
        The product, and the activated half.
    """
    operator = "npu_geglu"
    require_dtype(operator, self)
    require_even(operator, self, dim)
    require(approximate in (0, 1), operator, f"approximate must be 0 or 1, not {approximate}")
    left, right = self.float().chunk(2, dim)
    gate, plain = (left, right) if activate_left else (right, left)
    activated = functional.gelu(gate, approximate="tanh" if approximate else "none")
    return (plain * activated).to(self.dtype), activated.to(self.dtype)


def npu_gelu(self: Tensor, *, approximate: str = "none") -> Tensor:
    """GELU, exact or with tanh."""
    require_dtype("npu_gelu", self)
    return functional.gelu(self.float(), approximate=approximate).to(self.dtype)


def npu_fast_gelu(self: Tensor) -> Tensor:
    """`x / (1 + exp(-1.702 x))`, as on products from A2 on."""
    require_dtype("npu_fast_gelu", self)
    full = self.float()
    return (full * torch.sigmoid(1.702 * full)).to(self.dtype)


def fast_gelu(self: Tensor) -> Tensor:
    """`npu_fast_gelu` under its older name, for float16 and float32."""
    require_dtype("fast_gelu", self, (torch.float16, torch.float32))
    return npu_fast_gelu(self)
