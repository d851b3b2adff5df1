"""Switches of the NPU. They are taken and have no effect, as there is no hardware to tune."""

from typing import Any

import torch


def nothing(*args: Any, **kwargs: Any) -> None:
    """Take anything, do nothing."""


WITHOUT_EFFECT = """empty_virt_addr_cache host_empty_cache ipc_collect
reset_accumulated_host_memory_stats reset_peak_host_memory_stats set_per_process_memory_fraction
set_compile_mode set_option set_aoe set_mm_bmm_format_nd set_sync_debug_mode set_task_queue_enable
init_dump set_dump finalize_dump clear_npu_overflow_flag set_op_timeout_ms
enable_deterministic_with_backward disable_deterministic_with_backward set_device_limit
set_stream_limit reset_stream_limit use_compatible_impl super_kernel_scope_begin
super_kernel_scope_end _sleep""".split()


def get_mm_bmm_format_nd() -> bool:
    """Matrices are plain."""
    return True


def get_sync_debug_mode() -> int:
    """Off."""
    return 0


def is_jit_compile_false() -> bool:
    """Kernels are compiled ahead."""
    return True


def get_npu_overflow_flag() -> bool:
    """No overflow was seen."""
    return False


def is_current_stream_capturing() -> bool:
    """No graph is being captured."""
    return False


def is_bf16_supported(including_emulation: bool = False) -> bool:
    """An A2 has bfloat16."""
    return True


def get_amp_supported_dtype() -> list[torch.dtype]:
    """The dtypes of autocast."""
    return [torch.float16, torch.bfloat16, torch.float32]


def is_autocast_enabled() -> bool:
    """Whether autocast is on for the NPU."""
    return torch.is_autocast_enabled("npu")


def set_autocast_enabled(enable: bool) -> None:
    """Switch it."""
    torch.set_autocast_enabled("npu", enable)


def get_autocast_dtype() -> torch.dtype:
    """Its dtype."""
    return torch.get_autocast_dtype("npu")


def set_autocast_dtype(dtype: torch.dtype) -> None:
    """Set it."""
    torch.set_autocast_dtype("npu", dtype)


def get_task_queue_enable() -> int:
    """On."""
    return 1


def are_compatible_impl_enabled() -> bool:
    """Off."""
    return False


class Precision:
    """A switch for HF32, which is kept and has no effect."""

    __slots__ = ("allow_hf32",)

    def __init__(self, allow_hf32: bool) -> None:
        self.allow_hf32 = allow_hf32


conv, matmul, aclnn = Precision(True), Precision(False), Precision(False)
