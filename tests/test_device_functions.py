"""Functions of a project that say which device is used, and know the NPU: who asks is ported."""

from pathlib import Path

import pytest

from commands import found_in
from helpers import check, code

KNOWING = {
    "current-accelerator": (
        "    if torch.accelerator.is_available():\n"
        "        return torch.accelerator.current_accelerator().type\n"
        "    return 'cpu'\n"
    ),
    "a-name": "    return 'npu' if is_npu_available else 'cpu'\n",
    "the-plugin": "    import torch_npu\n\n    return chosen(torch_npu)\n",
}
NOT_KNOWING = {
    "none": "    return 'cuda' if torch.cuda.is_available() else 'cpu'\n",
    "others": "    return 'xpu' if torch.xpu.is_available() else 'cpu'\n",
}
USES = {
    "called": "if {}() == 'cuda':\n    torch.cuda.empty_cache()\n",
    "called-in-a-function": (
        "def run(model):\n    if {}() == 'cuda' and model.large:\n"
        "        return torch.cuda.memory_allocated()\n"
    ),
    "others-first": "if {}() != 'cuda':\n    pass\nelse:\n    torch.cuda.synchronize()\n",
    "name": "DEVICE = {}()\n\n\ndef run(x):\n    return x.half() if DEVICE == 'cuda' else x\n",
    "attribute": (
        "class Trainer:\n    def __init__(self):\n        self.device = {}()\n\n"
        "    def run(self):\n        assert self.device == 'cuda'\n"
    ),
    "type": "device = {}()\nis_gpu = device.type == 'cuda'\n",
    "not": "if not {}().startswith('cuda'):\n    pass\nelse:\n    torch.cuda.synchronize()\n",
    "or": "if {}() != 'cuda' or later:\n    pass\nelse:\n    torch.cuda.synchronize()\n",
    "not-both": (
        "if not ({}() == 'cuda' and later):\n    pass\nelse:\n    torch.cuda.synchronize()\n"
    ),
    "one-of-some": "if {}() in ('cuda', 'xpu'):\n    torch.cuda.empty_cache()\n",
    "beginning": "use_amp = {}().startswith('cuda')\n",
    "default": "device = {}() or 'cuda'\n",
}


def module(body: str, name: str = "get_device_name") -> str:
    return f"import torch\n\n\ndef {name}() -> str:\n{body}\n\n"


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize("body", KNOWING.values(), ids=KNOWING)
def test_who_asks_is_ported(here: Path, body: str, use: str) -> None:
    own = module(body) + use.format("get_device_name")
    elsewhere = "import torch\n\nfrom {} import get_device_name\n\n" + use.format("get_device_name")
    files = {
        "pack/__init__.py": "from .devices import get_device_name\n",
        "pack/devices.py": module(body),
        "pack/own.py": own,
        "by_module.py": elsewhere.format("pack.devices"),
        "by_package.py": elsewhere.format("pack"),
        "pack/by_dots.py": elsewhere.format("."),
    }
    assert found_in(here, files) == []


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize("body", NOT_KNOWING.values(), ids=NOT_KNOWING)
def test_who_asks_what_does_not_know_the_npu_is_not(here: Path, body: str, use: str) -> None:
    elsewhere = "import torch\nfrom devices import get_device_name\n\n"
    files = {
        "devices.py": module(body),
        "use.py": elsewhere + use.format("get_device_name"),
    }
    assert "use.py" in {path for path, _ in found_in(here, files)}


MOVES = [
    "def run(model):\n    if {}() == 'cuda' and model.large:\n        model.cuda()\n",
    "def run(x):\n    return x.cuda() if {}() == 'cuda' else x\n",
    "def run(rank):\n    if {}() == 'cuda':\n        torch.cuda.set_device(rank)\n",
    "def run(model):\n    if {}() == 'cuda':\n        return torch.nn.DataParallel(model)\n",
]


@pytest.mark.parametrize("use", MOVES)
@pytest.mark.parametrize("body", KNOWING.values(), ids=KNOWING)
def test_what_would_not_be_moved_or_wrapped_is_found(here: Path, body: str, use: str) -> None:
    files = {"own.py": module(body) + use.format("get_device_name")}
    codes = {code for _, code in found_in(here, files)}
    assert "NPU111" in codes
    assert codes & {"NPU101", "NPU105", "NPU202"}


def test_only_what_the_function_answers(here: Path) -> None:
    use = (
        "import torch\n\nfrom devices import get_device_name\n\n\n"
        "def run(x, device):\n    if get_device_name() == 'cuda':\n        x = x.half()\n"
        "    else:\n        torch.cuda.synchronize()\n"
        "    if device == 'cuda':\n        x = x.cuda()\n    return x.cuda()\n"
    )
    found = found_in(here, {"devices.py": module(KNOWING["a-name"]), "use.py": use})
    assert [code for path, code in found if path == "use.py"] == [
        *("NPU101", "NPU111", "NPU105", "NPU105")
    ]


@pytest.mark.parametrize("name", ["get_device", "current_device_type", "device"])
def test_its_name_says_so(here: Path, name: str) -> None:
    use = f"import torch\n\nfrom devices import {name}\n\nis_gpu = {name}() == 'cuda'\n"
    assert found_in(here, {"devices.py": module(KNOWING["a-name"], name), "use.py": use}) == []


def test_of_the_same_name_in_another_module(here: Path) -> None:
    use = (
        "import torch\n\nfrom other import get_device_name\n\n"
        "is_gpu = get_device_name() == 'cuda'\n"
    )
    files = {
        "devices.py": module(KNOWING["a-name"]),
        "other.py": module("    return read()\n"),
        "use.py": use,
    }
    assert found_in(here, files) == [("use.py", "NPU111")]


def test_pytorch_asked_for_any_accelerator() -> None:
    check(
        code(
            """
            import torch
            from torch._utils import _get_available_device_type

            device_type = _get_available_device_type() or "cuda"
            other_device = read_device() or ⟦NPU110:"cuda"⟧
            """
        )
    )


def test_a_backend_that_pytorch_looks_up() -> None:
    check(
        code(
            """
            import torch.distributed as dist


            def backend_of(device_type):
                backend = "nccl"
                if device_type in dist.Backend.default_device_backend_map:
                    backend = dist.Backend.default_device_backend_map[device_type]
                return backend


            def other_backend_of(device_type):
                backend = ⟦NPU201:"nccl"⟧
                if device_type in BACKENDS:
                    backend = BACKENDS[device_type]
                return backend
            """
        )
    )
