from typing import Any


def get_cann_version(module: str = "CANN") -> str:
    return "emulated"


def set_thread_affinity(*args: Any, **kwargs: Any) -> None:
    return None


reset_thread_affinity = set_thread_affinity
