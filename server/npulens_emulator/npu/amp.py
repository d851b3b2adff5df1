"""Mixed precision, as `torch.npu.amp` spells it."""

from collections.abc import Callable
from typing import Any

import torch

_amp: Any = torch.amp


class autocast(_amp.autocast_mode.autocast):  # type: ignore[misc]  # noqa: N801
    """`torch.autocast("npu")`."""

    def __init__(
        self,
        enabled: bool = True,
        dtype: torch.dtype = torch.float16,
        cache_enabled: bool = True,
    ) -> None:
        super().__init__("npu", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


class GradScaler(_amp.GradScaler):  # type: ignore[misc]
    """`torch.amp.GradScaler("npu")`, which can also keep its scale."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        dynamic: bool = True,
        enabled: bool = True,
    ) -> None:
        super().__init__(
            "npu",
            init_scale=init_scale,
            growth_factor=growth_factor,
            backoff_factor=backoff_factor,
            growth_interval=growth_interval if dynamic else 2**31 - 1,
            enabled=enabled,
        )


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, cast_inputs: torch.dtype | None = None
) -> Any:
    """For the forward pass of an autograd function."""
    return _amp.custom_fwd(fwd, device_type="npu", cast_inputs=cast_inputs)


def custom_bwd(bwd: Callable[..., Any]) -> Any:
    """For its backward pass."""
    return _amp.custom_bwd(bwd, device_type="npu")
