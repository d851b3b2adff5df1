"""The device-agnostic style: one code that runs on CUDA, on the NPU and on the CPU alike."""

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from commands import command
from helpers import CATALOGUE
from npulens.analysis import analyze
from npulens.catalog.model import (
    Applicability,
    Finding,
    MigrationStyle,
    Rule,
    Target,
    TorchVersion,
)
from npulens.fixes.apply import fix_text
from npulens.fixes.one_code import vocabulary
from npulens.text.document import Document
from one_code_scripts import CHOICE, NEEDS_CUDA, SCRIPTS

AGNOSTIC = Target(TorchVersion(2, 13), MigrationStyle.DEVICE_AGNOSTIC)
SERVER = Path(__file__).resolve().parents[1] / "server"
_OF_NPU = re.compile(r"npu|hccl|ascend|cann", re.IGNORECASE)
RECORDER = SERVER.parent / "scripts" / "public_scripts"
_VENDOR = re.compile(r"cuda|npu|hccl|nccl", re.IGNORECASE)


def written(source: str, target: Target = AGNOSTIC) -> str:
    """A script as all fixes of the style leave it."""

    def found(text: str) -> Sequence[Finding]:
        return analyze(Document("script.py", text), CATALOGUE, target)

    text = fix_text(f"import torch\n{source}", found, Applicability.UNSAFE).text
    assert text.startswith("import torch\n")
    return text.removeprefix("import torch\n")


@lru_cache(maxsize=1)
def all_written() -> dict[str, str]:
    return {name: written(source) for name, source in SCRIPTS.items()}


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_vendor_is_named(name: str) -> None:
    tree = ast.parse(all_written()[name])
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and 'device.type == "cuda"' in ast.unparse(node.test).replace(
            "'", '"'
        ):
            node.test, node.body, node.orelse = ast.Constant(True), [ast.Pass()], []  # arms
    names = {part.attr for part in ast.walk(tree) if isinstance(part, ast.Attribute)}
    names |= {part.module or "" for part in ast.walk(tree) if isinstance(part, ast.ImportFrom)}
    names |= {a.name for part in ast.walk(tree) if isinstance(part, ast.Import) for a in part.names}
    names |= {part.value for part in ast.walk(tree) if isinstance(part, ast.Constant)
              and isinstance(part.value, str) and part.value != "--no-cuda"}  # fmt: skip
    assert not [each for each in names if _VENDOR.search(str(each)) and each != "no_cuda"]


@lru_cache(maxsize=8)
def outcomes(mode: str, of: str) -> dict[str, Any]:
    """What all scripts do: as they are, or as they are written."""
    return run(mode, SCRIPTS if of == "original" else all_written())


def run(mode: str, scripts: dict[str, str]) -> dict[str, Any]:
    """What scripts do on the CPU, on an emulated NPU, or with recorded calls of CUDA."""
    paths = {"npu": [SERVER, SERVER / "npulens_emulator" / "stand_in"], "cuda": [RECORDER]}
    path = os.pathsep.join(map(str, paths.get(mode, [])))
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "ignore"}
    runner = Path(__file__).with_name("one_code_runs.py")
    result = subprocess.run(
        [sys.executable, str(runner), mode],
        input=json.dumps(scripts),
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.mark.emulated
@pytest.mark.parametrize("name", [name for name in SCRIPTS if name not in NEEDS_CUDA])
def test_on_the_cpu_it_does_what_it_did(name: str) -> None:
    before, after = outcomes("cpu", "original")[name], outcomes("cpu", "written")[name]
    assert before["error"] == ""
    assert after == before


@pytest.mark.emulated
@pytest.mark.parametrize("name", SCRIPTS)
def test_on_the_npu_it_runs_as_on_the_cpu(name: str) -> None:
    """Numbers agree but for those in half precision, which the CPU does not use."""
    found = outcomes("npu", "written")[name]
    assert found["error"] == ""
    if name not in NEEDS_CUDA:
        expected = _numbers(outcomes("cpu", "original")[name]["printed"])
        assert _numbers(found["printed"]) == pytest.approx(expected, rel=2e-2, abs=2e-2)


def _numbers(printed: str) -> list[float]:
    return [float(each) for each in re.findall(r"-?\d+\.\d+", printed)]


@pytest.mark.emulated
@pytest.mark.parametrize("name", SCRIPTS)
def test_on_cuda_the_same_is_asked_of_the_device(name: str) -> None:
    before, after = outcomes("cuda", "original")[name], outcomes("cuda", "written")[name]
    assert after["error"] == before["error"]
    assert after["events"] == before["events"]


@pytest.mark.emulated
def test_a_call_that_is_lost_is_noticed() -> None:
    """The comparison is able to fail."""
    whole = SCRIPTS["moved by a flag"]
    scripts = {"whole": whole, "less": whole.replace("    model.cuda()\n", "")}
    found = run("cuda", scripts)
    assert found["whole"]["events"] != found["less"]["events"]


def test_a_device_that_is_there_is_used() -> None:
    text = written(CHOICE + "x = torch.ones(2).cuda()\nwith torch.autocast('cuda'):\n    x + 1\n")
    assert text.count("current_accelerator") == 1
    assert "x = torch.ones(2).to(device)" in text
    assert 'torch.autocast(device.type, enabled=device.type != "cpu")' in text


def test_one_device_is_introduced_for_a_module() -> None:
    text = written("def f(x):\n    return x.cuda()\ndef g(x):\n    return x.cuda() + f(x).cuda()\n")
    assert text.count("current_accelerator") == 1
    assert text.count(".to(device)") == 3


def test_a_name_that_is_taken_is_not_taken_again() -> None:
    text = written("device = 3\ndef f(x):\n    return x.cuda()\n")
    assert "return x.to(any_device)" in text


def test_an_attribute_is_the_device_of_its_class() -> None:
    text = written(
        "class Trainer:\n    def __init__(self):\n        self.device = torch.device('cuda')\n"
        "    def step(self, x):\n        return x.cuda()\n"
    )
    assert "return x.to(self.device)" in text


@pytest.mark.parametrize(
    ("base", "device"),
    [
        ("from lightning import LightningModule as Base\n", "self.device"),
        ("from transformers import Trainer as Base\n", "self.accelerator.device"),
    ],
)
def test_a_framework_has_the_device_of_a_class(base: str, device: str) -> None:
    text = written(f"{base}class Own(Base):\n    def step(self, x):\n        return x.cuda()\n")
    assert f"return x.to({device})" in text


def test_an_accelerator_has_the_device_of_a_script() -> None:
    text = written(
        "from accelerate import Accelerator\ndef main(x):\n    accelerator = Accelerator()\n"
        "    with torch.autocast('cuda'):\n        return x.to('cuda')\n"
    )
    assert "x.to(accelerator.device)" in text


COMPARED = {
    "device.type == 'cuda'": 'device.type != "cpu"',
    "'cuda' == device.type": 'device.type != "cpu"',
    "device.type != 'cuda'": 'device.type == "cpu"',
    "'cuda' in str(device)": '"cpu" not in str(device)',
    "'cuda' not in str(device)": '"cpu" in str(device)',
    "str(device).startswith('cuda')": 'not str(device).startswith("cpu")',
    "not device.type.startswith('cuda')": 'device.type.startswith("cpu")',
    "device.type in ('cuda', 'mps')": 'device.type != "cpu"',
    "device.type not in ['cuda']": 'device.type == "cpu"',
    "device == torch.device('cuda')": 'device.type != "cpu"',
}


@pytest.mark.parametrize("asked", COMPARED)
def test_a_comparison_asks_for_the_cpu(asked: str) -> None:
    assert f"\nfast = {COMPARED[asked]}\n" in written(f"{CHOICE}fast = {asked}\n")


GIVEN = {
    "a number": ("def f(x, rank):\n    return x.cuda(rank)\n", "x.to(rank)"),
    "a number or nothing": (
        "def f(x, args):\n    return x.cuda(args.gpu)\n",
        "x.to(device if args.gpu is None else args.gpu)",
    ),
    "a choice or nothing": (
        "def f(x, i):\n    at = 1 if i else None\n    return x.cuda(at)\n",
        "x.to(device if at is None else at)",
    ),
    "the first of some": (
        "def f(x, config):\n    return x.cuda(config.gpus[0])\n",
        "x.to(config.gpus[0])",
    ),
    "the number that a device is made of": (
        "def f(device):\n    return torch.device(f'cuda:{device}')\n",
        "torch.device(f'{any_device.type}:{device}')",
    ),
    "a number in a text": (
        "def f(rank):\n    return 'cuda:{}'.format(rank), 'cuda:%d' % rank\n",
        'f"{device.type}:{rank}", f"{device.type}:{rank}"',
    ),
    "a place of a file": (
        "state = torch.load('x', map_location=lambda storage, at: storage.cuda())\n",
        "map_location=device",
    ),
    "a type": (
        "def f(x):\n    return x.type(torch.cuda.LongTensor)\n",
        "x.to(device, torch.int64)",
    ),
    "an option": (
        "import argparse\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('--device', default='cuda', choices=['cuda', 'cpu'])\n",
        "default=device.type, choices=[device.type, 'cpu']",
    ),
    "a back end": (
        "import argparse\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('--backend', default='nccl')\n",
        "default=torch.distributed.get_default_backend_for_device(device)",
    ),
    "Lightning": (
        "from lightning import Trainer\nt = Trainer(accelerator='gpu', devices=2)\n",
        'accelerator="auto", devices=2',
    ),
    "back ends of all devices": (
        "import torch.distributed as dist\ndist.init_process_group(backend='cpu:gloo,cuda:nccl')\n",
        "dist.init_process_group(backend=None)",
    ),
    "a group": (
        "import torch.distributed as dist\ng = dist.new_group(backend='nccl')\n",
        "backend=dist.get_default_backend_for_device(device)",
    ),
    "activities": (
        "from torch.profiler import ProfilerActivity, profile\n"
        "p = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])\n",
        "activities=torch.profiler.supported_activities()",
    ),
    "a device that was written before": (
        "device = torch.accelerator.current_accelerator() or torch.device('cpu')\n"
        "y = torch.ones(2).cuda()\n",
        "y = torch.ones(2).to(device)",
    ),
    "a variable that is chosen again": (
        "device = 'cuda' if torch.cuda.is_available() else 'cpu'\n"
        "use_cuda = torch.cuda.is_available()\n"
        "if use_cuda:\n    device = torch.device('cuda')\n",
        "    device = torch.accelerator.current_accelerator()\n",
    ),
}


@pytest.mark.parametrize("name", GIVEN)
def test_what_is_given_stays(name: str) -> None:
    source, expected = GIVEN[name]
    assert expected in written(source)


@pytest.mark.parametrize("head", ["try:", "if torch_is_there():"])
def test_torch_may_be_imported_under_a_condition(head: str) -> None:
    """Nothing is made of it for the whole module then."""
    end = "except ImportError:\n    torch = None\n" if head == "try:" else ""
    use = "def f(x):\n    torch.cuda.synchronize()\n    return x.cuda()\n"
    source = f"{head}\n    import torch\n{end}{use}"

    def found(text: str) -> Sequence[Finding]:
        return analyze(Document("script.py", text), CATALOGUE, AGNOSTIC)

    text = fix_text(source, found, Applicability.UNSAFE).text
    assert text == source.replace("cuda.synchronize", "accelerator.synchronize")


def test_a_parameter_may_be_the_cpu() -> None:
    found = analyze(Document("a.py", "import torch\ndef f(x, device):\n    return x.cuda()\n"),
                    CATALOGUE, AGNOSTIC)  # fmt: skip
    assert {fix.applicability for each in found for fix in each.fixes} == {Applicability.UNSAFE}


def test_a_parameter_that_may_be_empty_is_no_device() -> None:
    """`torch.device("")` is refused: the text chooses no device, and the default stays."""
    source = 'def chosen(device=""):\n    return str(device).replace("cuda:", "")\n'
    assert "torch.device(device)" not in written(source)


def test_a_parameter_is_the_device_of_its_function() -> None:
    text = written("def f(x, device):\n    return x.cuda()\n")
    assert "return x.to(device)" in text
    assert "current_accelerator" not in text


ARMS = {
    "statements": (
        "torch.cuda.nvtx.range_push('x')  # begin\ntorch.cuda.cudart().cudaProfilerStart()\n"
        "torch.cuda.set_per_process_memory_fraction(\n    0.5\n)\n",
        """\
if device.type == "cuda":
    torch.cuda.nvtx.range_push('x')  # begin
    torch.cuda.cudart().cudaProfilerStart()
    torch.cuda.set_per_process_memory_fraction(
    0.5
)
elif device.type == "npu":
    torch.npu.mstx.range_push('x')
    torch.npu.set_per_process_memory_fraction(
    0.5
)
""",
    ),
    "apart": (
        "torch.cuda.nvtx.range_push('x')\n\ntorch.cuda.cudart().cudaProfilerStart()\n",
        """\
if device.type == "cuda":
    torch.cuda.nvtx.range_push('x')
elif device.type == "npu":
    torch.npu.mstx.range_push('x')

if device.type == "cuda":
    torch.cuda.cudart().cudaProfilerStart()
""",
    ),
    "told from others": (
        "if args.kind == 'mps':\n    n = 1\nelif args.kind == 'cuda':\n    n = 2\n",
        'if args.kind == \'mps\':\n    n = 1\nelif args.kind not in ("cpu", "mps"):\n    n = 2\n',
    ),
    "wrapped, and used without": (
        "m = torch.nn.DataParallel(m).cuda()\nm(1).backward()\n",
        'm = (torch.nn.DataParallel(m) if device.type == "cuda" else m).to(device)\n'
        "m(1).backward()\n",
    ),
    "several cards": (
        "if torch.cuda.device_count() > 1:\n    m = torch.nn.DataParallel(m)\n",
        'if device.type == "cuda" and torch.accelerator.device_count() > 1:\n'
        "    m = torch.nn.DataParallel(m)\n",
    ),
    "several cards or a wish": (
        "if args.n_gpu > 1 or wish:\n    m = torch.nn.DataParallel(m).cuda()\n",
        'if device.type == "cuda" and (args.n_gpu > 1 or wish):\n'
        "    m = torch.nn.DataParallel(m).to(device)\n",
    ),
    "several cards in an expression": (
        "m = torch.nn.DataParallel(m) if len(gpus) > 1 else m\n",
        'm = torch.nn.DataParallel(m) if device.type == "cuda" and len(gpus) > 1 else m\n',
    ),
    "an arm that is there": (
        "if device.type == 'cuda':\n    g = torch.cuda.CUDAGraph()\n",
        "if device.type == 'cuda':\n    g = torch.cuda.CUDAGraph()\n",
    ),
    "a condition of its own": (
        "if torch.cuda.is_available():\n    print(torch.cuda.get_device_capability())\n",
        "if torch.cuda.is_available():\n    print(torch.cuda.get_device_capability())\n",
    ),
}


@pytest.mark.parametrize("name", ARMS)
def test_what_one_vendor_has_is_in_an_arm(name: str) -> None:
    source, expected = ARMS[name]
    text = written(f"{CHOICE}{source}")
    assert text.endswith(f'torch.device("cpu")\n{expected}')
    assert written(text) == text


APEX = """from apex import amp
from apex.normalization import FusedRMSNorm
from apex.optimizers import FusedAdam
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = torch.nn.Sequential(torch.nn.Linear(4, 4), FusedRMSNorm(4)).to(device)
optimizer = FusedAdam(model.parameters(), lr=0.1)
model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
for _ in range(2):
    loss = model(torch.ones(2, 4).to(device)).sum()
    optimizer.zero_grad()
    with amp.scale_loss(loss, optimizer) as scaled:
        scaled.backward()
    optimizer.step()
print(optimizer.defaults["weight_decay"], model[1].eps)
"""


def test_apex_becomes_what_pytorch_has_for_any_device() -> None:
    text = written(APEX)
    assert "apex" not in text and not _VENDOR.search(text)
    assert 'scaler = torch.amp.GradScaler(device.type, enabled=device.type != "cpu")' in text
    assert 'with torch.amp.autocast(device_type=device.type, enabled=device.type != "cpu"):' in text


@pytest.mark.emulated
@pytest.mark.parametrize("mode", ["cpu", "npu"])
def test_what_apex_becomes_runs(mode: str) -> None:
    assert run(mode, {"apex": written(APEX)})["apex"] == {"error": "", "printed": "0.0 1e-05\n"}


def test_what_findings_share_is_one_fix() -> None:
    """It is looked at once, so that a long module takes no longer than its length."""
    source = CHOICE + "torch.cuda.nvtx.range_pop()\ny = x.cuda()\n" * 20
    found = analyze(Document("a.py", f"import torch\n{source}"), CATALOGUE, AGNOSTIC)
    assert len(found) > 40
    assert len({id(fix) for each in found for fix in each.fixes}) == 1


def test_a_check_for_another_backend_is_no_arm() -> None:
    source = (
        "import torch.distributed as dist\nif dist.get_backend() == 'nccl':\n"
        "    torch.cuda.nvtx.range_pop()\nelse:\n    torch.cuda.nvtx.range_push('x')\n"
    )
    text = written(source)
    assert "== 'nccl':\n    torch.cuda.nvtx.range_pop()\nelse:" in text
    assert "if device.type == \"cuda\":\n        torch.cuda.nvtx.range_push('x')" in text


def test_arrays_of_numpy_may_be_of_float64() -> None:
    moved = "if torch.cuda.is_available():\n    x = x.cuda()\n"
    assert safety(moved) == {Applicability.SAFE}
    assert safety(f"x = torch.from_numpy(array)\n{moved}") == {Applicability.UNSAFE}


@pytest.mark.parametrize("rule", CATALOGUE.rules.values(), ids=lambda rule: rule.name)
def test_no_fix_of_the_style_is_for_one_vendor(rule: Rule) -> None:
    """But those that put code into an arm for the NPU, or mend what is for it already."""
    if rule.of_npu:
        return
    for example in rule.examples:
        for finding in analyze(Document(rule.file, example.before), CATALOGUE, AGNOSTIC):
            for fix in finding.fixes:
                if fix.style is not MigrationStyle.DEVICE_AGNOSTIC:
                    assert not finding.rule.per_device
                    assert not any(_OF_NPU.search(edit.replacement) for edit in fix.edits)


def test_a_layout_that_cuda_gains_by_stays() -> None:
    source = "import torch\nx = torch.ones(1, 2, 3, 4).to(memory_format=torch.channels_last)\n"
    (finding,) = analyze(Document("a.py", source), CATALOGUE, AGNOSTIC)
    assert finding.fixes == ()
    assert finding.note is not None and "arm for CUDA" in finding.note.en


LEFT = {
    "capability": "major = torch.cuda.get_device_capability()[0]\n",
    "graph": "graph = torch.cuda.CUDAGraph()\n",
    "default type": "torch.set_default_tensor_type(torch.cuda.HalfTensor)\n",
    "profiler": "activities = [torch.profiler.ProfilerActivity.CUDA]\n",
    "told from others in one condition": (
        "def f(device):\n    if device == 'mps' or device == 'cuda':\n        return 2\n"
    ),
    "file": "state = torch.load('x', map_location={'cuda:1': 'cuda:0'})\n",
}


@pytest.mark.parametrize("name", LEFT)
def test_what_has_no_neutral_way_keeps_its_line(name: str) -> None:
    assert written(LEFT[name]) == LEFT[name]


def test_what_has_no_neutral_way_says_so() -> None:
    document = Document("a.py", "import torch\n" + LEFT["graph"])
    (finding,) = analyze(document, CATALOGUE, AGNOSTIC)
    assert finding.fixes == ()
    assert finding.note is not None and "arm for CUDA" in finding.note.en


def test_nothing_is_safe_beside_what_is_left() -> None:
    """A condition that holds on the NPU leads to what is left."""
    source = (
        "import torch\ndef f(x):\n    if torch.cuda.is_available():\n"
        "        graph = torch.cuda.CUDAGraph()\n        x = x.cuda()\n    return x\n"
    )
    found = analyze(Document("a.py", source), CATALOGUE, AGNOSTIC)
    safeties = {fix.applicability for finding in found for fix in finding.fixes}
    assert safeties == {Applicability.UNSAFE}


CUDA_CODE = {
    "built": "if torch.cuda.is_available():\n    sources = ['a.cpp', 'a.cu']\n",
    "built by a macro": "if torch.cuda.is_available():\n    macros = [('WITH_CUDA', None)]\n",
    "imported": "if torch.cuda.is_available():\n    from ops.nms_gpu import nms\n",
}


@pytest.mark.parametrize("name", CUDA_CODE)
@pytest.mark.parametrize("style", [MigrationStyle.NPU, MigrationStyle.DEVICE_AGNOSTIC])
def test_a_condition_of_own_cuda_code_has_to_be_read(name: str, style: MigrationStyle) -> None:
    document = Document("a.py", f"import torch\n{CUDA_CODE[name]}")
    found = analyze(document, CATALOGUE, Target(AGNOSTIC.torch_version, style))
    (asked,) = [each for each in found if each.rule.name == "cuda-api"]
    assert {fix.applicability for fix in asked.fixes} == {Applicability.UNSAFE}
    assert asked.note is not None and "port that first" in asked.note.en


def test_all_of_a_module_is_one_safe_fix() -> None:
    document = Document("a.py", "import torch\n" + SCRIPTS["moved if there"])
    fixes = {fix for finding in analyze(document, CATALOGUE, AGNOSTIC) for fix in finding.fixes}
    assert len(fixes) == 1
    assert {fix.applicability for fix in fixes} == {Applicability.SAFE}


def safety(source: str, target: Target = AGNOSTIC) -> set[Applicability]:
    """How safe the fixes of a script are."""
    found = analyze(Document("a.py", f"import torch\n{source}"), CATALOGUE, target)
    return {fix.applicability for each in found for fix in each.fixes}


ON_APPLE = {
    "seeds": ("torch.cuda.manual_seed_all(1)\n", Applicability.UNSAFE),
    "a seed": ("torch.cuda.manual_seed(1)\n", Applicability.SAFE),
    "memory": ("torch.cuda.empty_cache()\n", Applicability.SAFE),
    "a name": ("print(torch.cuda.get_device_name())\n", Applicability.UNSAFE),
    "a stream": ("stream = torch.cuda.Stream()\n", Applicability.UNSAFE),
    "an event": ("event = torch.cuda.Event()\n", Applicability.SAFE),
}


@pytest.mark.parametrize("name", ON_APPLE)
def test_what_fails_on_a_mac_that_ran_before_is_not_safe(name: str) -> None:
    source, expected = ON_APPLE[name]
    assert safety(f"if torch.cuda.is_available():\n    {source}") == {expected}


def test_scaling_is_safe_since_macs_can_do_it() -> None:
    source = "scaler = torch.cuda.amp.GradScaler()\n"
    assert safety(source) == {Applicability.SAFE}
    older = Target(TorchVersion(2, 7), MigrationStyle.DEVICE_AGNOSTIC)
    assert safety(source, older) == {Applicability.UNSAFE}


@pytest.mark.emulated
def test_the_table_of_apple_is_that_of_pytorch() -> None:
    import torch

    assert {name for name in vocabulary.SHARED if hasattr(torch.mps, name)} == vocabulary.ON_APPLE


@pytest.mark.parametrize("release", [TorchVersion(2, 6), TorchVersion(2, 12)])
def test_older_releases_get_what_they_have(release: TorchVersion) -> None:
    target = Target(release, MigrationStyle.DEVICE_AGNOSTIC)
    text = written(CHOICE + "torch.cuda.empty_cache()\n", target)
    assert "torch.get_device_module().empty_cache()" in text
    assert ("check_available" in text) == (release >= TorchVersion(2, 7))


DOCS = Path(__file__).resolve().parents[1] / "docs"


@pytest.mark.parametrize("page", ["styles.md", "styles.zh-CN.md"])
def test_the_page_shows_what_is_written(page: str, here: Path) -> None:
    source = (Path(__file__).parent / "data" / "styles" / "train.py").read_text(encoding="utf-8")
    shown = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.S)
    assert shown[0] == source
    for style, expected in zip(("npu", "device-agnostic", "runtime-shim"), shown[1:], strict=True):
        script = here / f"{style}.py"
        script.write_text(source, encoding="utf-8")
        options = ["--unsafe-fixes", "--allow-dirty", "--migration-style", style]
        command("fix", *options, script.name)
        assert script.read_text(encoding="utf-8") == expected


def test_a_module_without_torch_imports_it_for_its_device() -> None:
    source = "import argparse\np = argparse.ArgumentParser()\np.add_argument('--device', {})\n"
    document = Document("a.py", source.format("default='cuda'"))
    fixed = fix_text(document.text, found_in, Applicability.UNSAFE).text
    assert fixed.startswith("import torch\nimport argparse\n")
    assert "'--device', default=device.type" in fixed
    late = "import argparse\ndef f(device='cuda'):\n    import torch\n    return device\n"
    assert fix_text(late, found_in, Applicability.UNSAFE).text == late


def found_in(text: str) -> list[Finding]:
    return analyze(Document("a.py", text), CATALOGUE, AGNOSTIC)
