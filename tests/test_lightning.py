"""What Lightning is asked for: it has no accelerator for the NPU."""

import pytest

from helpers import SHIM, check, fixed

ASKED = {
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
}
NOT_ASKED = {
    "the host": "from lightning import Trainer\nTrainer(accelerator='cpu')",
    "one of its own": (
        "from lightning import Trainer\nfrom mine import Npu\nTrainer(accelerator=Npu())"
    ),
    "not known": "from lightning import Trainer\n\n\ndef f(kind):\n    Trainer(accelerator=kind)",
    "another trainer": "from mine import Trainer\nTrainer(accelerator='gpu')",
    "another parameter": "from lightning import Trainer\nTrainer(logger='gpu')",
}


@pytest.mark.parametrize("name", [*ASKED, *NOT_ASKED])
def test_what_it_is_asked_for(name: str) -> None:
    check({**ASKED, **NOT_ASKED}[name] + "\n")


def test_the_run_time_shim_does_not_help() -> None:
    """Lightning looks at the type of the device that it makes, which is `npu` then."""
    check(ASKED["a trainer"] + "\n", SHIM)


def test_nothing_is_put_in_its_place() -> None:
    source = "from lightning import Trainer\nTrainer(accelerator='gpu')\n"
    assert fixed(source) == source


def test_the_scaler_that_torch_has_at_its_top() -> None:
    source = check("import torch\nscaler = ⟦NPU303:torch.GradScaler⟧('cuda')\n")
    assert fixed(source).endswith("scaler = torch.npu.amp.GradScaler()\n")
