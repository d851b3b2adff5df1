"""Functions of libraries that choose CUDA, or the CPU, if they are given no device."""

import pytest

from helpers import check, findings
from npulens.catalog.model import Severity

CHOOSING = {
    "CUDA itself": (
        "from torchsummary import summary\ndef show(model):\n"
        "    ⟦NPU120:summary⟧(model, (3, 32, 32))"
    ),
    "CUDA if there is any": "import whisper\nmodel = ⟦NPU120:whisper.load_model⟧('base')",
    "under another name": "from clip import load as make\nmodel, pre = ⟦NPU120:make⟧('ViT-B/32')",
    "a class": "from face_alignment import FaceAlignment as F\nf = ⟦NPU120:F⟧(1, flip_input=False)",
    "given a device": "import whisper\nmodel = whisper.load_model('base', device='cpu')",
    "given one by its position": "import clip\nmodel, pre = clip.load('ViT-B/32', device)",
    "given what is not known": (
        "import clip\ndef f(**known):\n    return clip.load('RN50', **known)"
    ),
    "a function of the project": "from mine import summary\nsummary(1, (3, 3))",
    "given CUDA": (
        "from torchsummary import summary\nsummary(m, (3, 3, 3), device=⟦NPU110:'cuda'⟧)"
    ),
}


@pytest.mark.parametrize("name", CHOOSING)
def test_a_device_that_a_library_chooses(name: str) -> None:
    check(CHOOSING[name])


def test_who_takes_the_cpu_is_information() -> None:
    chosen, taken = findings(
        "import whisper, torchsummary\n"
        "model = whisper.load_model('base')\ntorchsummary.summary(model, (3, 3))\n"
    )
    assert chosen.effective_severity is Severity.INFO
    assert taken.effective_severity is Severity.WARNING


def test_no_fix_makes_torchsummary_refuse_the_device() -> None:
    (finding,) = findings("import torchsummary as t\nt.summary(m, (3, 3), device='cuda')\n")
    assert finding.rule.code == "NPU110"
    assert not finding.fixes


def test_with_the_shim_cuda_is_the_npu() -> None:
    shim = "from torch_npu.contrib import transfer_to_npu\n"
    check(f"import torch, torch_npu, whisper\n{shim}model = whisper.load_model('base')")
