"""The names of msprobe (`mindstudio-probe` 26) that scripts call; nothing is dumped here.

Settings are read as msprobe reads them, so that a file that is missing or no JSON is seen.

Sources: Ascend/msprobe `msprobe/pytorch/dump/debugger/precision_debugger.py`,
`msprobe/core/config_check/config_checker.py`, `msprobe/pytorch/monitor/module_hook.py`,
`msprobe/pytorch/common/utils.py`.
"""

import json
import random
from pathlib import Path
from typing import Any

import torch


class PrecisionDebugger:
    """Dumps what is computed between `start` and `stop`; there is one in a process."""

    def __init__(
        self,
        config_path: str | None = None,
        task: str | None = None,
        dump_path: str | None = None,
        level: str | None = None,
        step: Any = None,
    ) -> None:
        if config_path is not None:
            json.loads(Path(config_path).read_text(encoding="utf-8"))

    @classmethod
    def start(cls, model: Any = None, token_range: Any = None, rank_id: Any = None) -> None:
        """Begin to dump."""

    @classmethod
    def stop(cls) -> None:
        """Stop dumping."""

    @classmethod
    def step(cls) -> None:
        """Write what was dumped, and count the step."""


class TrainerMon:
    """Watches the training from hooks of the model and the optimizer."""

    def __init__(
        self,
        config_file_path: str,
        process_group: Any = None,
        params_have_main_grad: bool = True,
        opt_ty: Any = None,
    ) -> None:
        json.loads(Path(config_file_path).read_text(encoding="utf-8"))

    def set_monitor(
        self,
        model: Any,
        optimizer: Any = None,
        grad_acc_steps: int = 1,
        tp_group: Any = None,
        dp_group: Any = None,
        start_iteration: int = 0,
    ) -> None:
        """Put the hooks in place."""
        if not isinstance(grad_acc_steps, int) or grad_acc_steps < 1:
            raise ValueError("grad_acc_steps is a positive number")


class ConfigChecker:
    """Records the configuration of a run."""

    def __init__(
        self,
        model: Any = None,
        shell_path: Any = None,
        output_zip_path: str = "./config_check_pack.zip",
        fmk: str = "pytorch",
    ) -> None:
        if not output_zip_path.endswith(".zip"):
            raise ValueError("output_zip_path ends with .zip")

    @staticmethod
    def apply_patches(fmk: str = "pytorch") -> None:
        """Record calls that draw random numbers, and hyperparameters."""


def seed_all(seed: int = 1234, mode: bool = False, rm_dropout: bool = False, **_: Any) -> None:
    """Seed all generators; with `mode` operators are deterministic."""
    random.seed(seed)
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(mode)
