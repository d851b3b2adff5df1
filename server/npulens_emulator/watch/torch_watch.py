"""Watches what a process does with PyTorch."""

import random
import sys
from typing import Any

import torch

from npulens_emulator import events
from npulens_emulator.watch.apis import watch_apis
from npulens_emulator.watch.cuda_calls import watch_cuda
from npulens_emulator.watch.device_events import on_event
from npulens_emulator.watch.lines import watch_lines
from npulens_emulator.watch.network import refuse_network
from npulens_emulator.watch.record import record
from npulens_emulator.watch.training import watch_training


def start() -> None:
    """Watch a process with the emulated NPU."""
    ours = record()
    _seed(ours.settings["seed"])
    refuse_network(ours)  # also in processes that the script starts, which do not begin in `run`
    watch_training(ours)
    watch_cuda(ours)
    watch_apis(ours)
    watch_lines(ours)  # the same
    events.listen(lambda kind, operator: on_event(ours, kind, operator))


def start_original() -> None:
    """Watch the training of an original that runs on the CPU."""
    ours = record()
    _seed(ours.settings["seed"])
    refuse_network(ours)
    watch_training(ours)


def _seed(seed: int) -> None:
    """Let both runs draw the same numbers, unless they seed by themselves."""
    random.seed(seed)
    torch.manual_seed(seed)
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed % 2**32)
