"""The emulated NPU: what it computes, what it refuses, and that it is found only when wanted."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import npulens_emulator
from commands import PACKAGE_FOLDER

pytestmark = pytest.mark.emulated

CHECKS = Path(__file__).with_name("emulator_checks.py")
NAMES = re.findall(r"^def (check_\w+)", CHECKS.read_text(encoding="utf-8"), re.MULTILINE)
STAND_IN = str(npulens_emulator.STAND_IN)


def python(*arguments: str, path: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([PACKAGE_FOLDER, path])}
    return subprocess.run(
        [sys.executable, "-W", "ignore", *arguments],
        env={**environment, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture(scope="module")
def results() -> dict[str, str]:
    done = python(str(CHECKS), path=STAND_IN)
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("name", NAMES)
def test_check(name: str, results: dict[str, str]) -> None:
    assert not results[name], results[name]


COMPARISON = Path(__file__).with_name("operator_comparison.py")


def test_operators_of_pytorch_agree_with_the_cpu() -> None:
    """Two samples of each entry in PyTorch's own list; the comparison tells which and why not."""
    done = python(str(COMPARISON), "--samples", "2", path=STAND_IN)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert not found["differ"]
    assert len(found["agree"]) > 650 and len(found["left_out"]) < 30
    assert found["gradients"] > 1000


UNMODELLED = """\
import importlib, json, torch, torch_npu
from npulens_emulator.names import Unmodelled, names_of
packages = {"npu": "npu", "npu.amp": "npu.amp", "optim": "optim", "profiler": "profiler"}
packages |= {"contrib": "contrib", "operators": ""}
found = {}
for package, module in packages.items():
    owner = importlib.import_module(f"torch_npu.{module}".rstrip("."))
    held = {name: getattr(owner, name) for name in names_of(package) if name[0] != "_"}
    for name, value in held.items():
        found.setdefault(package, {})[name] = not isinstance(value, Unmodelled)
print(json.dumps(found))
"""
"""Which public names of each package are imitated."""


@pytest.mark.parametrize("page", ["verify.md", "verify.zh-CN.md"])
def test_the_list_of_what_is_not_emulated_is_complete(page: str) -> None:
    found = json.loads(python("-c", UNMODELLED, path=STAND_IN).stdout)
    text = (Path(__file__).parents[1] / "docs" / page).read_text(encoding="utf-8")
    section = text.partition("## 未模拟" if "zh" in page else "## What is not")[2]
    lines = section.splitlines()
    [operators] = [line for line in lines if "`npu_swiglu`" in line]
    assert {name for name, there in found["operators"].items() if there} == {
        name for name in re.findall(r"`(\w+)`", operators) if name in found["operators"]
    }
    [contrib] = [line for line in lines if "`torch_npu.contrib`" in line]
    there = {name for name, there in found["contrib"].items() if there}
    assert there - {"function", "module"} <= set(re.findall(r"`(\w+)`", contrib))
    told = {name.rpartition(".")[2] for name in re.findall(r"`([\w.]+)`", section)}
    for package in ("npu", "npu.amp", "optim", "profiler"):
        absent = {name for name, there in found[package].items() if not there}
        files = {name for name in absent if name.startswith("npu_fused_")}  # of the classes
        storages = {name for name in absent if name.endswith("Storage")}
        assert sorted(absent - told - files - storages) == [], package


def test_it_is_found_only_when_wanted() -> None:
    done = python("-c", "import npulens_emulator, sys; print('torch' in sys.modules)")
    assert done.stdout == "False\n", done.stderr
    assert "ModuleNotFoundError" in python("-c", "import torch_npu").stderr


SHIM = """\
import torch_npu, torch  # the unusual order
from torch_npu.contrib import transfer_to_npu
x = torch.ones(2).cuda()
assert x.is_cuda and x.device.type == "npu" and torch.cuda.is_available()
assert torch.zeros(1, device="cuda:0").device == torch.device("npu:0")
assert torch.nn.Linear(2, 2).to("cuda").weight.is_npu and torch.ones(1).to(0).is_npu
with torch.cuda.amp.autocast():
    assert (x[None] @ x[:, None]).dtype == torch.float16
torch.cuda.synchronize(); torch.cuda.manual_seed_all(1)
assert isinstance(x, torch.cuda.FloatTensor)
import torch.distributed as dist
dist.init_process_group("nccl", rank=0, world_size=1, store=dist.HashStore())
assert dist.get_backend() == "hccl"
try:
    torch.cuda.cudart()
except AttributeError:
    print("ok")
"""


def test_transfer_to_npu() -> None:
    done = python("-c", SHIM, path=STAND_IN)
    assert done.stdout == "ok\n", done.stderr


def test_an_older_pytorch_gets_one_sentence(tmp_path: Path) -> None:
    code = "import torch\ntorch.__version__ = '2.9.1'\nimport torch_npu\n"
    last = python("-c", code, path=STAND_IN).stderr.splitlines()[-1]
    assert last.endswith("the emulated NPU needs PyTorch 2.10 or newer, and this is 2.9.1")


def test_it_imports_nothing_of_npulens() -> None:
    folder = Path(npulens_emulator.__file__).parent
    files = list(folder.rglob("*.py"))
    assert len(files) > 40
    for path in files:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"^\s*(?:from|import) npulens(?:\.|\s)", text, re.MULTILINE), path
