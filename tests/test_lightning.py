"""What Lightning is asked for: it has no accelerator for the NPU."""

import pytest

from helpers import SHIM, check, findings, fixed

ASKED = {
    "settings of a function": (
        "from lightning import Trainer\ndef f(n):\n    options = {⟦NPU116:'gpus': n⟧}\n"
        "    options['strategy'] = ⟦NPU202:'dp'⟧\n    return Trainer(**options)"
    ),
    "settings by a call": (
        "from lightning import Trainer\ndef f(n):\n    options = dict(⟦NPU116:gpus=n⟧)\n"
        "    return Trainer(**options)"
    ),
    "a trainer": 'from lightning import Trainer\nTrainer(accelerator=⟦NPU116:"gpu"⟧, devices=8)',
    "CUDA": "from lightning.pytorch import Trainer\nTrainer(accelerator=⟦NPU116:'cuda'⟧)",
    "the older package": "import pytorch_lightning as pl\npl.Trainer(accelerator=⟦NPU116:'gpu'⟧)",
    "Fabric": "import lightning as L\nL.Fabric(accelerator=⟦NPU116:'cuda'⟧, devices=2)",
    "Fabric alone": "from lightning_fabric import Fabric\nFabric(accelerator=⟦NPU116:'gpu'⟧)",
    "on a condition": (
        "import torch\nfrom lightning import Trainer\n"
        "Trainer(accelerator=⟦NPU116:'gpu'⟧ if ⟦NPU101:torch.cuda.is_available⟧() else 'cpu')"
    ),
    "by a name": (
        "from lightning import Trainer\nkind = 'gpu'\n\n\n"
        "def f():\n    return Trainer(accelerator=⟦NPU116:kind⟧)"
    ),
    "in a function": (
        "def f():\n    from lightning import Trainer\n\n"
        "    return Trainer(max_epochs=3, accelerator=⟦NPU116:'gpu'⟧)"
    ),
    "arguments of a command line": (
        "from pytorch_lightning import Trainer\n"
        "Trainer.from_argparse_args(args, accelerator=⟦NPU116:'gpu'⟧)"
    ),
    "by an entry of a dictionary": (
        "import lightning as L\nsettings = {'accelerator': ⟦NPU116:'gpu'⟧, 'devices': 2}\n"
        "L.Trainer(**settings, **dict(accelerator=⟦NPU116:'cuda'⟧))"
    ),
    "by a setting": (
        "import pytorch_lightning as pl\n\n\ndef f(config):\n"
        "    config['accelerator'] = ⟦NPU116:'gpu'⟧\n    config.accelerator = ⟦NPU116:'cuda'⟧\n"
        "    return pl.Trainer(**config)"
    ),
    "by a default": (
        "from lightning import Fabric\n\n\ndef f(*, accelerator=⟦NPU116:'gpu'⟧):\n"
        "    return Fabric(accelerator=accelerator)"
    ),
    "by an option": (
        "from lightning import Fabric\nfrom argparse import ArgumentParser\n"
        "parser = ArgumentParser()\nparser.add_argument('--accelerator', default=⟦NPU116:'gpu'⟧)"
    ),
    "by a name that says what it is": (
        "from lightning import Trainer\naccelerator = ⟦NPU116:'gpu'⟧\n"
        "Trainer(accelerator=accelerator)"
    ),
    "by a field": (
        "from lightning import Fabric\n\n\nclass Options:\n    accelerator: str = ⟦NPU116:'gpu'⟧"
    ),
    "settings of a trainer in a module without Lightning": (
        "def test_fit(cfg):\n"
        "    cfg.trainer.accelerator = ⟦NPU116:'gpu'⟧\n"
        "    cfg['trainer']['accelerator'] = ⟦NPU116:'cuda'⟧\n"
        "    trainer_config['accelerator'] = ⟦NPU116:'gpu'⟧"
    ),
    "cards": "from pytorch_lightning import Trainer\nTrainer(⟦NPU116:gpus=[0, 1]⟧)",
    "all cards": "import pytorch_lightning as pl\npl.Trainer(⟦NPU116:gpus=-1⟧, accelerator='ddp')",
    "cards of an option": (
        "import pytorch_lightning as pl\npl.Trainer(max_epochs=3, ⟦NPU116:gpus=args.gpus⟧)"
    ),
    "one process": (
        "from pytorch_lightning import Trainer\n"
        "Trainer(accelerator=⟦NPU116:'gpu'⟧, devices=2, strategy=⟦NPU202:'dp'⟧)"
    ),
    "one process in older releases": (
        "from pytorch_lightning import Trainer\n"
        "Trainer(⟦NPU116:gpus=2⟧, distributed_backend=⟦NPU202:'dp'⟧)"
    ),
    "mixed precision": (
        "from lightning import Fabric\n"
        "Fabric(accelerator=⟦NPU116:'cuda'⟧, ⟦NPU309:precision='16-mixed'⟧)"
    ),
    "mixed precision of one of its own": (
        "from lightning import Trainer\nfrom mine import Npu\n"
        "Trainer(accelerator=Npu(), ⟦NPU309:precision='bf16-mixed'⟧, strategy='ddp')"
    ),
    "mixed precision in older releases": (
        "from pytorch_lightning import Trainer\nTrainer(⟦NPU116:gpus=1⟧, ⟦NPU309:precision=16⟧)"
    ),
    "whatever there is": (
        "import lightning as L\nL.Trainer(accelerator=⟦NPU118:'auto'⟧, devices=8)"
    ),
    "whatever there is, by default": (
        "from lightning import Fabric, Trainer\n⟦NPU118:Trainer⟧(max_epochs=3)\n"
        "⟦NPU118:Fabric⟧(precision='bf16-mixed')"
    ),
    "whatever there is, by default in older releases": (
        "import pytorch_lightning as pl\n⟦NPU118:pl.Trainer⟧(devices=2, strategy='ddp')"
    ),
    "whatever there is, by default from release 2 on": (
        "from pytorch_lightning import Trainer\n⟦NPU118:Trainer⟧(max_epochs=3)"
    ),
    "whatever there is, by default in release 2": (
        "from pytorch_lightning import Trainer\n⟦NPU118:Trainer⟧(precision='16-mixed')"
    ),
    "whatever there is, by settings": (
        "from lightning import Trainer\n"
        "parser.add_argument('--accelerator', default=⟦NPU118:'auto'⟧)\n"
        "settings = {'accelerator': ⟦NPU118:'auto'⟧}"
    ),
    "whatever the options of a command line name": (
        "import pytorch_lightning as pl\nargs = pl.Trainer.add_argparse_args(parser).parse_args()\n"
        "⟦NPU118:pl.Trainer.from_argparse_args⟧(args, max_epochs=3)"
    ),
    "its classes": (
        "from lightning.pytorch.accelerators import ⟦NPU605:CUDAAccelerator⟧\n"
        "from pytorch_lightning.callbacks import ⟦NPU605:GPUStatsMonitor⟧, ModelCheckpoint"
    ),
    "a plugin for CUDA": (
        "from lightning.pytorch.plugins import MixedPrecision\n"
        "MixedPrecision('16-mixed', ⟦NPU302:'cuda'⟧)"
    ),
}
NOT_ASKED = {
    "no cards": "from pytorch_lightning import Trainer\nTrainer(gpus=0)\nTrainer(gpus=None)",
    "processes": (
        "from lightning import Trainer\nfrom mine import Npu\n"
        "Trainer(accelerator=Npu(), strategy='ddp', sync_batchnorm=True)"
    ),
    "precision of the host": (
        "from lightning import Trainer\nTrainer(accelerator='cpu', precision='bf16-mixed')"
    ),
    "precision of FSDP": (
        "from lightning import Trainer\nfrom mine import Npu\n"
        "Trainer(accelerator=Npu(), strategy='fsdp', precision='bf16-mixed')"
    ),
    "full precision": (
        "from lightning import Trainer\nfrom mine import Npu\n"
        "Trainer(accelerator=Npu(), precision='32-true')"
    ),
    "cards of another trainer": "from mine import Trainer\nTrainer(gpus=2, strategy='dp')",
    "the host": "from lightning import Trainer\nTrainer(accelerator='cpu')",
    "one of its own": (
        "from lightning import Trainer\nfrom mine import Npu\nTrainer(accelerator=Npu())"
    ),
    "the host, with options of a command line": (
        "from pytorch_lightning import Trainer\n"
        "Trainer.from_argparse_args(args, accelerator='cpu')\n"
        "from mine import Trainer as Own\nOwn.from_argparse_args(args)"
    ),
    "not known": "from lightning import Trainer\n\n\ndef f(kind):\n    Trainer(accelerator=kind)",
    "another trainer": "from mine import Trainer\nTrainer(accelerator='gpu')",
    "settings of another trainer": (
        "from mine import Trainer\nTrainer(**{'accelerator': 'gpu'})\n"
        "parser.add_argument('--accelerator', default='gpu')"
    ),
    "a setting for the host": "import lightning\nsettings = {'accelerator': 'cpu'}",
    "the host by default in older releases": (
        "from pytorch_lightning import Trainer\nTrainer(max_epochs=3, progress_bar_refresh_rate=20)"
    ),
    "what is handed over": "from lightning import Trainer\nTrainer(**settings)",
    "no trainer of Lightning": "from transformers import Trainer\nTrainer(max_steps=3)",
    "another parameter": "from lightning import Trainer\nTrainer(accelerator=kind, logger='gpu')",
}


@pytest.mark.parametrize("name", [*ASKED, *NOT_ASKED])
def test_what_it_is_asked_for(name: str) -> None:
    check({**ASKED, **NOT_ASKED}[name] + "\n")


def test_the_run_time_shim_does_not_help() -> None:
    """Lightning looks at the type of the device that it makes, which is `npu` then."""
    check(ASKED["a trainer"] + "\n", SHIM)


def test_under_the_shim_autocast_for_cuda_is_one_for_the_npu() -> None:
    source = "from lightning import Trainer\nTrainer(accelerator=⟦NPU116:'gpu'⟧, precision=16)\n"
    check(source, SHIM)


def test_one_process_for_each_card() -> None:
    source = "from pytorch_lightning import Trainer\nTrainer(accelerator=kind, strategy='dp')\n"
    assert fixed(source) == source.replace("'dp'", "'ddp'")


def test_nothing_is_put_in_its_place() -> None:
    source = "from lightning import Trainer\nTrainer(accelerator='gpu')\n"
    assert fixed(source) == source


def test_the_scaler_that_torch_has_at_its_top() -> None:
    source = check("import torch\nscaler = ⟦NPU303:torch.GradScaler⟧('cuda')\n")
    assert fixed(source).endswith("scaler = torch.npu.amp.GradScaler()\n")


DEFAULTS = [
    ("max_epochs=3", "hint", "the CPU was the default"),
    ("max_epochs=3, precision='16-mixed'", "warning", ""),
    ("max_epochs=3, devices=2", "warning", ""),
]


@pytest.mark.parametrize(("given", "severity", "note"), DEFAULTS)
def test_a_release_that_is_not_known_is_said(given: str, severity: str, note: str) -> None:
    source = f"from pytorch_lightning import Trainer\nTrainer({given})\n"
    [found] = [each for each in findings(source) if each.rule.code == "NPU118"]
    assert (found.severity or found.rule.severity).value == severity
    assert note in (found.note.en if found.note is not None else "")
