"""The old types of tensors, such as `torch.npu.FloatTensor`."""

from typing import Any

import torch
from torch import Tensor

DTYPES = {
    "FloatTensor": torch.float32,
    "DoubleTensor": torch.float64,
    "HalfTensor": torch.float16,
    "BFloat16Tensor": torch.bfloat16,
    "ByteTensor": torch.uint8,
    "CharTensor": torch.int8,
    "ShortTensor": torch.int16,
    "IntTensor": torch.int32,
    "LongTensor": torch.int64,
    "BoolTensor": torch.bool,
}


class TensorType:
    """A type that makes tensors and that tensors can be instances of."""

    def __init__(self, name: str) -> None:
        self.__name__ = name
        self.dtype = DTYPES[name]

    def __call__(self, *args: Any) -> Tensor:
        """A tensor of the values of a list, an array or a tensor, or of a size."""
        if len(args) == 1 and isinstance(args[0], Tensor):
            return args[0].to(device="npu", dtype=self.dtype)
        if len(args) == 1 and isinstance(args[0], torch.Size):
            args = args[0]
        elif len(args) == 1 and hasattr(args[0], "__len__"):
            return torch.tensor(args[0], dtype=self.dtype, device="npu")
        return torch.empty(args or (0,), dtype=self.dtype, device="npu")

    def __instancecheck__(self, value: object) -> bool:
        return (
            isinstance(value, Tensor) and value.device.type == "npu" and value.dtype == self.dtype
        )

    def __repr__(self) -> str:
        return f"<class 'torch.npu.{self.__name__}'>"


TENSOR_TYPES = {name: TensorType(name) for name in DTYPES}


def patch() -> None:
    """Let `tensor.type` take and name these types, and `record_stream` the emulated streams."""
    tensor: Any = Tensor
    original_type, original_record = tensor.type, tensor.record_stream

    def changed_type(
        self: Tensor, dtype: Any = None, non_blocking: bool = False, **kwargs: Any
    ) -> Any:
        if isinstance(dtype, TensorType):
            return self.to(device="npu", dtype=dtype.dtype)
        if isinstance(dtype, str) and dtype.startswith("torch.npu."):
            return self.to(device="npu", dtype=DTYPES[dtype.rsplit(".", 1)[1]])
        if isinstance(dtype, torch.dtype):
            return self.to(dtype)
        if dtype is None:
            return original_type(self)
        return original_type(self, dtype, non_blocking=non_blocking, **kwargs)

    def record_stream(self: Tensor, stream: Any) -> None:
        if self.device.type != "npu":
            original_record(self, stream)

    tensor.type, tensor.record_stream = changed_type, record_stream
