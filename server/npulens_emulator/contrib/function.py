"""Functions of `torch_npu.contrib`."""

from torch import Tensor


def matmul_transpose(tensor1: Tensor, tensor2: Tensor) -> Tensor:
    """`tensor1 @ tensor2.transpose(-2, -1)`: the second argument is transposed inside."""
    return tensor1 @ tensor2.transpose(-2, -1)
