"""Which names `torch_npu` has, and what becomes of those that are not imitated."""

import importlib.util
import json
import sys
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import torch

from npulens_emulator.errors import NotEmulatedError

unknown: list[str] = []
"""The names that were asked for though torch_npu has none such, in order."""


@cache
def names_of(package: str) -> frozenset[str]:
    """The names in a package such as `npu.amp`, or `operators`, for the PyTorch that runs."""
    content = json.loads(Path(__file__).with_name("names.json").read_text(encoding="utf-8"))
    release = ".".join(torch.__version__.split(".")[:2])
    if release not in content["releases"]:
        release = content["releases"][-1]
    by_releases: dict[str, list[str]] = content["names"][package]
    return frozenset(
        name
        for releases, names in by_releases.items()
        if release in releases.split()
        for name in names
    )


class Unmodelled:
    """A name of torch_npu that the emulator does not imitate: it can be held, but not used."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def _refuse(self, *args: object, **kwargs: object) -> NoReturn:
        raise NotEmulatedError(f"{self.__name__} exists in torch_npu but is not emulated")

    __call__ = __enter__ = __exit__ = __getitem__ = _refuse

    def __or__(self, other: object) -> type:
        """In annotations, `torch.npu.NPUGraph | None`."""
        return object

    __ror__ = __or__

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._refuse()


def missing(module: str, package: str, name: str) -> Any:
    """What a module answers for a name it does not hold itself, its own modules among them.

    Args:
        module: The module, such as `torch_npu.npu`.
        package: Whose names count, as `names_of` takes it.
        name: The name.

    Raises:
        AttributeError: The real module has no such name either.
    """
    is_package = "__path__" in vars(sys.modules[module])
    if is_package and importlib.util.find_spec(f"{module}.{name}") is not None:
        return importlib.import_module(f"{module}.{name}")
    if name in names_of(package):
        return Unmodelled(f"{module}.{name}")
    if not name.startswith("__"):
        unknown.append(f"{module}.{name}")
    raise AttributeError(f"module '{module}' has no attribute '{name}'")
