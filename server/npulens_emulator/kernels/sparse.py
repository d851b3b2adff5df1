"""Sparse tensors of the NPU in coordinates: making, reading and joining them.

What torch_npu has for them are these and functions of each value; products of matrices are not
among them, and PyTorch's own are for CPU, CUDA and MPS. Sources: op-plugin, `sparse:` in
op_plugin_functions.yaml; Ascend/pytorch, test/test_sparse_coo.py; PyTorch, native_functions.yaml.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch

from npulens_emulator.fallback import operators
from npulens_emulator.memory import is_npu, to_cpu, to_npu

SPARSE_KEY = "SparsePrivateUse1"
_OF_CPU: Any = torch._C.DispatchKey.SparseCPU
_aten: Any = torch.ops.aten

_PARTS = (
    *("_sparse_coo_tensor_with_dims", "_sparse_coo_tensor_with_dims_and_tensors"),
    *("_indices", "_values", "indices", "values", "_nnz", "is_coalesced", "_coalesced_"),
    *("sparse_dim", "dense_dim", "_dimI", "_dimV"),
)
"""Operators that only put indices and values together, or take them apart."""
_COMPUTED = (*("_coalesce", "_to_dense", "clone", "neg", "sum", "add.Tensor", "mul.Tensor"),)
"""Operators that are computed on the host."""


def sparse_kernels() -> Iterator[tuple[str, Callable[..., Any]]]:
    """The operators by their names in aten."""
    for name in _PARTS:
        yield name, _of_parts(_overload(name))
    for name in _COMPUTED:
        yield name, _computed(_overload(name))


def _overload(name: str) -> Any:
    base, _, overload = name.partition(".")
    return getattr(getattr(_aten, base), overload or "default")


def _of_parts(overload: Any) -> Callable[..., Any]:
    def kernel(*args: Any, **kwargs: Any) -> Any:
        return overload._op_dk(_OF_CPU, *args, **kwargs)

    return kernel


def _computed(overload: Any) -> Callable[..., Any]:
    def kernel(*args: Any, **kwargs: Any) -> Any:
        operators[str(overload)] += 1
        index = next(each.device.index for each in args if is_npu(each))
        lowered = (to_cpu(each) if is_npu(each) else each for each in args)
        return to_npu(overload(*lowered, **kwargs), index or 0)

    return kernel
