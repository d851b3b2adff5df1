"""What public scripts find when they are tried: few images, fixed seeds, clocks that agree."""

import os
import random
import sys
import time
from collections.abc import Callable
from itertools import count
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

CHANNELS = {"MNIST": 1, "FashionMNIST": 1, "CIFAR10": 3, "CIFAR100": 3}


def prepare(has_vision: bool = True) -> None:
    """Seed everything; where torchvision is used, make its data sets small."""
    import numpy
    import torch

    torch.manual_seed(0)
    random.seed(0)
    numpy.random.seed(0)
    numpy.Inf = numpy.inf  # type: ignore[attr-defined]  # as it was up to NumPy 1
    numpy.sctypes = _numbers_of_numpy()  # type: ignore[attr-defined]
    _without_operators_of_vision()
    if has_vision:
        _make_data_sets_small()


def _numbers_of_numpy() -> dict[str, list[Any]]:
    """What NumPy 1 had as `sctypes`."""
    import numpy

    kinds = {"int": "bhilq", "uint": "BHILQ", "float": "efdg", "complex": "FDG"}
    found = {name: [numpy.dtype(c).type for c in codes] for name, codes in kinds.items()}
    return {**found, "others": [bool, object, bytes, str]}


def _without_operators_of_vision() -> None:
    """Operators of torchvision that are built for another PyTorch are not there."""
    import torch

    register = torch.library.register_fake

    def without_vision(name: Any, *given: Any, **named: Any) -> Any:
        if isinstance(name, str) and name.startswith("torchvision::"):
            return lambda function: function
        return register(name, *given, **named)

    torch.library.register_fake = without_vision


def _make_data_sets_small() -> None:
    from torchvision import datasets  # type: ignore[import-not-found]

    for name, channels in CHANNELS.items():
        setattr(datasets, name, images(channels))
    length: Any = datasets.FakeData.__len__
    datasets.FakeData.__len__ = lambda self: min(length(self), 24)


def _leave_weights_random() -> None:
    """Weights that timm would download are not there."""
    import timm  # type: ignore[import-not-found]

    create: Any = timm.create_model
    timm.create_model = lambda *given, **named: create(*given, **{**named, "pretrained": False})


def alike() -> None:
    """Have clocks run alike, and nothing be recorded, as what is printed is compared."""
    sys.modules["torch.utils.tensorboard"] = SimpleNamespace(SummaryWriter=Mock)  # type: ignore[assignment]
    ticks = count()
    for name in ("time", "perf_counter", "process_time"):
        setattr(time, name, lambda: next(ticks) / 1000)  # runs print how long something took


def images(channels: int) -> Callable[..., Any]:
    """A class of data sets with 96 images."""
    import torch
    from PIL import Image  # type: ignore[import-not-found]

    side = 28 if channels == 1 else 32

    class Images(torch.utils.data.Dataset[Any]):
        def __init__(self, root: Any = None, train: bool = True, **given: Any) -> None:
            generator = torch.Generator().manual_seed(1 if train else 2)
            shape = (96, side, side) if channels == 1 else (96, side, side, channels)
            kind = torch.uint8
            self.data = torch.randint(0, 256, shape, generator=generator, dtype=kind)
            self.targets = torch.randint(0, 10, (96,), generator=generator)
            self.transform = given.get("transform")
            self.train = train

        def __len__(self) -> int:
            return len(self.data)

        def __getitem__(self, index: int) -> Any:
            image = Image.fromarray(self.data[index].numpy())
            given = image if self.transform is None else self.transform(image)
            return given, int(self.targets[index])

    return Images


def main() -> None:
    """Prepare what `NPULENS_PUBLIC_SCRIPT` asks for.

    It is `compared`, `made`, or in a verified run `verified`, with `torchvision` and `timm` behind
    it for scripts that use these.
    """
    what, _, packages = os.environ.get("NPULENS_PUBLIC_SCRIPT", "").partition(" ")
    if what == "compared":
        prepare()
        alike()
    elif what == "made":
        prepare(has_vision=False)
    elif what == "verified" and "NPULENS_VERIFY" in os.environ:
        prepare("torchvision" in packages.split())
        if "timm" in packages.split():
            _leave_weights_random()


main()
