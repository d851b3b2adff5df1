"""Devices that go to libraries that know CPUs and NVIDIA's GPUs alone."""

import pytest

from helpers import findings, fixed
from npulens.catalog.model import Applicability

HEAD = "import torch\nfrom faster_whisper import WhisperModel\n\n\n"
LEFT_ALONE = {
    "a choice with the host": (
        "def load(path):\n"
        "    device = 'cuda' if torch.cuda.is_available() else 'cpu'\n"
        "    return WhisperModel(path, device=device)"
    ),
    "what is compared on the way": (
        "def load(path):\n"
        "    device = 'cuda' if torch.cuda.is_available() else 'cpu'\n"
        "    kind = 'float16' if device == 'cuda' else 'int8'\n"
        "    return WhisperModel(path, device, compute_type=kind)"
    ),
    "in the call itself": "model = WhisperModel('small', device='cuda')",
    "a default": "def load(path, device='cuda'):\n    return WhisperModel(path, device=device)",
    "an attribute": (
        "class Speech:\n"
        "    def __init__(self, path):\n"
        "        self.device = 'cuda' if torch.cuda.is_available() else 'cpu'\n"
        "        self.model = WhisperModel(path, device=self.device)"
    ),
    "a name of the module": (
        "device = 'cuda' if torch.cuda.is_available() else 'cpu'\n\n\n"
        "def load(path):\n    return WhisperModel(path, device=device)"
    ),
}
TO_BE_READ = {
    "one for a model, too": (
        "def load(path, model):\n"
        "    device = 'cuda' if torch.cuda.is_available() else 'cpu'\n"
        "    model.to(device)\n"
        "    return WhisperModel(path, device=device)"
    ),
    "a test around": (
        "def load(path):\n"
        "    if torch.cuda.is_available():\n"
        "        device = 'cuda'\n"
        "    else:\n"
        "        device = 'cpu'\n"
        "    return WhisperModel(path, device=device)"
    ),
}


@pytest.mark.parametrize("source", LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_goes_to_the_library_alone(source: str) -> None:
    assert [found.rule.code for found in findings(HEAD + source + "\n")] == ["NPU606"]


@pytest.mark.parametrize("source", TO_BE_READ.values(), ids=TO_BE_READ)
def test_goes_elsewhere_too(source: str) -> None:
    devices = [f for f in findings(HEAD + source + "\n") if f.rule.family == "device"]
    assert devices
    assert all(fix.applicability is not Applicability.SAFE for f in devices for fix in f.fixes)


def test_other_devices_of_the_module() -> None:
    source = (
        "import ctranslate2\nimport torch\n\n"
        "model = ctranslate2.Translator('model', device='cuda')\n"
        "values = torch.zeros(3, device='cuda')\n"
    )
    assert fixed(source).splitlines()[-2:] == [
        "model = ctranslate2.Translator('model', device='cuda')",
        "values = torch.zeros(3, device='npu')",
    ]
