"""The device-agnostic style in scripts and settings: a value for all devices, or a word.

Each case is the name of a file and its text. What the style writes names no vendor alone: a
variable of the NPU stands beside that of CUDA.
"""

import json
from pathlib import Path

import pytest

from commands import invoke, records
from helpers import AGNOSTIC, CATALOGUE, NPU
from npulens.analysis import analyze, judge
from npulens.catalog.model import Applicability, Finding, MigrationStyle, Target
from npulens.fixes.apply import apply_edits, fix_text
from npulens.text.document import Document
from npulens.text.kinds import kind_of


def findings(file: str, text: str, style: MigrationStyle = AGNOSTIC) -> tuple[Finding, ...]:
    return analyze(Document(file, text), CATALOGUE, Target(style=style))


def fixed(file: str, text: str, applicability: Applicability = Applicability.UNSAFE) -> str:
    """The text with its fixes, which are all there is to do."""
    kind = kind_of(file, text)
    result = fix_text(text, lambda each: findings(file, each), applicability, kind=kind)
    assert not result.refused
    return result.text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("torchrun --nproc_per_node=gpu a.py", "torchrun --nproc_per_node=auto a.py"),
        ("torchrun --nproc-per-node gpu a.py\n", "torchrun --nproc-per-node auto a.py\n"),
        (
            "export CUDA_VISIBLE_DEVICES=0,1\n",
            "export CUDA_VISIBLE_DEVICES=0,1\nexport ASCEND_RT_VISIBLE_DEVICES=0,1\n",
        ),
        (
            "if true; then\n  export CUDA_VISIBLE_DEVICES='0'  # one\nfi\n",
            "if true; then\n  export CUDA_VISIBLE_DEVICES='0'  # one\n"
            "  export ASCEND_RT_VISIBLE_DEVICES='0'\nfi\n",
        ),
        (
            'export NCCL_SOCKET_IFNAME="$NIC"\r\ntrue\r\n',
            'export NCCL_SOCKET_IFNAME="$NIC"\r\nexport HCCL_SOCKET_IFNAME="$NIC"\r\ntrue\r\n',
        ),
        (
            "export CUDA_LAUNCH_BLOCKING=1",
            "export CUDA_LAUNCH_BLOCKING=1\nexport ASCEND_LAUNCH_BLOCKING=1",
        ),
    ],
)
def test_a_script_is_written_for_all_devices(before: str, after: str) -> None:
    assert fixed("run.sh", before) == after
    left = {found.rule.code for found in findings("run.sh", after)}
    assert left.isdisjoint({"NPU901", "NPU902"})


def test_a_file_of_variables_has_both() -> None:
    assert fixed(".env", "CUDA_VISIBLE_DEVICES=0\n") == (
        "CUDA_VISIBLE_DEVICES=0\nASCEND_RT_VISIBLE_DEVICES=0\n"
    )


def test_both_variables_are_set_by_a_safe_fix() -> None:
    text = "export CUDA_VISIBLE_DEVICES=0\n"
    assert "ASCEND_RT_VISIBLE_DEVICES" in fixed("run.sh", text, Applicability.SAFE)


@pytest.mark.parametrize(
    "text",
    [
        "CUDA_VISIBLE_DEVICES=0 python a.py",
        "CUDA_VISIBLE_DEVICES=0\npython a.py",  # nothing is exported
        "export CUDA_VISIBLE_DEVICES=1,0\n",
        "export CUDA_VISIBLE_DEVICES=0 LR=1\n",
        "export CUDA_VISIBLE_DEVICES=$(free_cards)\n",
        "export A=1 \\\n  CUDA_VISIBLE_DEVICES=0\n",
        "export CUDA_VISIBLE_DEVICES=0\npython a.py\nunset CUDA_VISIBLE_DEVICES\n",
        "export CUDA_VISIBLE_DEVICES=0\nCUDA_VISIBLE_DEVICES=1 python a.py\n",
        "export NCCL_DEBUG=INFO\n",
        "export CUDA_HOME=/usr/local/cuda\n",
    ],
)
def test_a_variable_that_cannot_be_set_beside_stays(text: str) -> None:
    assert fixed("run.sh", text) == text
    assert findings("run.sh", text)


def test_a_long_value_is_read_once() -> None:
    value = "$card" * 20_000
    text = f"export CUDA_VISIBLE_DEVICES={value}!\n"
    assert fixed("run.sh", text) == text


def test_a_command_in_a_notebook_gets_no_line(tmp_path: Path) -> None:
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    command = {**cell, "source": ["!export CUDA_VISIBLE_DEVICES=0"]}
    notebook = {"cells": [command], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path = tmp_path / "a.ipynb"
    path.write_text(json.dumps(notebook))
    [found] = records("--migration-style", "device-agnostic", str(path))
    assert (found["code"], found["fix"]) == ("NPU901", None)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("a.yaml", "trainer:\n  accelerator: gpu\n"),
        ("a.json", '{"trainer": {"accelerator": "cuda"}}'),
        ("a.sh", "python fit.py trainer.accelerator=gpu"),
        ("a.sh", "python fit.py --trainer.accelerator=gpu"),
        ("a.sh", "python fit.py --accelerator gpu --devices 2"),
    ],
)
def test_lightning_chooses_and_the_finding_behind_it_names_the_cpu(file: str, text: str) -> None:
    [found] = findings(file, text)
    [fix] = found.fixes
    assert fix.applicability is Applicability.UNSAFE
    written = apply_edits(text, fix.edits)
    assert "auto" in written
    assert [each.rule.code for each in findings(file, written)] == ["NPU118"]


BY_HAND = [
    ("a.sh", "python fit.py --accelerator gpu", "`auto` neither"),
    (
        "a.yaml",
        "trainer:\n  gpus: 2\n  accumulate_grad_batches: 1\n",
        "`auto` neither",
    ),
    ("a.yaml", "device: cuda:0\n", "`torch.accelerator.current_accelerator()`"),
    ("a.sh", "python train.py --device cuda\n", "`torch.accelerator.current_accelerator()`"),
    ("a.toml", "dist_backend = 'nccl'\n", "`torch.distributed.get_default_backend_for_device("),
    ("a.yaml", "use_xformers: true\n", "have the program choose by its device"),
    ("a.yaml", "optim: adamw_apex_fused\n", "have the program choose by its device"),
    ("a.yaml", "env:\n  CUDA_VISIBLE_DEVICES: '0'\n", "set both"),
    ("a.sh", "CUDA_VISIBLE_DEVICES=0 python a.py", "set both"),
    ("a.sh", "export NCCL_DEBUG=INFO", "For CUDA it stays"),
    ("a.sh", "nvidia-smi\n", "one file for each kind of device"),
    ("a.sh", "sbatch --gres=gpu:8 a.sh", "one file for each kind of device"),
    ("a.yaml", "jobs:\n  a:\n    runs-on: linux.8xlarge.nvidia.gpu\n", "one file for each kind"),
    ("Dockerfile", "FROM nvidia/cuda:12.1.0-base-ubuntu22.04\n", "one file for each kind"),
    ("requirements.txt", "torch==2.8.0+cu126\n", "one list of packages for each kind"),
    ("requirements.txt", "xformers\n", "one list of packages for each kind"),
    (
        "setup.py",
        "from setuptools import setup\nsetup(install_requires=['xformers'])\n",
        "one list",
    ),
    ("a.py", "import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '0'\n", "set both"),
    ("a.py", "import os\nos.system('python a.py --device cuda')\n", "current_accelerator()`"),
]


@pytest.mark.parametrize(("file", "text", "note"), BY_HAND)
def test_what_has_no_value_for_all_devices_says_what_to_do(file: str, text: str, note: str) -> None:
    [found] = findings(file, text)
    assert found.fixes == ()
    assert note in found.message("en")
    assert len(found.message("zh")) > len(found.rule.message.zh)
    [of_npu] = findings(file, text, NPU)
    assert note not in of_npu.message("en")


def test_accelerate_starts_npus_as_gpus() -> None:
    text = "compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\n"
    judged = judge(Document("a.yaml", text), CATALOGUE, Target(style=AGNOSTIC))
    assert judged.findings == ()
    assert [found.settlement and found.settlement.reason for found in judged.settled] == [
        "no-effect"
    ]
    [of_npu] = findings("a.yaml", text, NPU)
    assert of_npu.fixes


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("a.yaml", "trainer:\n  accelerator: auto\n"),  # Lightning's, which takes the CPU
        ("run.sh", "export TASK_QUEUE_ENABLE=0\n"),
        ("requirements.txt", "torch==1.10.0\n"),
    ],
)
def test_what_is_no_matter_of_devices_has_no_such_note(file: str, text: str) -> None:
    [found] = findings(file, text)
    [of_npu] = findings(file, text, NPU)
    assert found.message("en") == of_npu.message("en")


def test_the_command_line_writes_it(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text("torchrun --nproc_per_node=gpu a.py --device cuda\n")
    invoke("fix", "--unsafe-fixes", "--migration-style", "device-agnostic", str(script))
    assert script.read_text() == "torchrun --nproc_per_node=auto a.py --device cuda\n"
