"""What public scripts find when they are tried: few images, fixed seeds, and clocks that agree."""

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


def prepare() -> None:
    """Make the data sets of torchvision small, and seed everything."""
    import torch

    register = torch.library.register_fake

    def without_vision(name: Any, *given: Any, **named: Any) -> Any:
        """Operators of torchvision that are built for another PyTorch are not there."""
        if isinstance(name, str) and name.startswith("torchvision::"):
            return lambda function: function
        return register(name, *given, **named)

    torch.library.register_fake = without_vision
    torch.manual_seed(0)
    random.seed(0)
    import numpy
    from torchvision import datasets  # type: ignore[import-not-found]

    numpy.random.seed(0)
    numpy.Inf = numpy.inf  # type: ignore[attr-defined]  # as it was up to NumPy 1
    sys.modules["torch.utils.tensorboard"] = SimpleNamespace(SummaryWriter=Mock)  # type: ignore[assignment]
    for name, channels in CHANNELS.items():
        setattr(datasets, name, images(channels))
    length: Any = datasets.FakeData.__len__
    datasets.FakeData.__len__ = lambda self: min(length(self), 24)
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


if os.environ.get("NPULENS_PUBLIC_SCRIPT"):
    prepare()
