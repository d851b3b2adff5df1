"""Releases that do not go together, and variables that nothing reads.

Each case is the name of a file and its text, with findings marked as in `helpers`.
"""

from itertools import pairwise

import pytest

from helpers import check_file, findings_in
from npulens.catalog.model import Finding
from npulens.catalog.npu_releases import cann_order

_IMAGE = "FROM hub.example.org/ascend/cann:"


def findings(file: str, text: str) -> list[Finding]:
    return findings_in(file, text, ("NPU910", "NPU921"))


def check(file: str, snippet: str) -> list[Finding]:
    return check_file(file, snippet, ("NPU910", "NPU921"))


PAIRS = [
    ("requirements.txt", "torch == 2.1\n⟦NPU921:torch_npu==2.6.0⟧\n"),
    ("requirements.txt", "torch_npu==2.1.0.post3\n⟦NPU921:torch==2.2.0+cpu⟧\n"),
    ("requirements.txt", "torch==2.1.0\ntorch_npu==2.1.0.post3\n"),
    ("requirements.txt", "torch==2.6.0\ntorch_npu==2.6.0.dev20250101\n"),
    ("requirements.txt", "torch~=2.1.0\ntorch_npu==2.6.0\ntorchvision==0.16.0\n"),
    ("requirements.txt", "torch==2.1.0; python_version < '3.9'\ntorch_npu==2.6.0\n"),
    ("requirements.txt", "torch==2.1.0\ntorch==2.2.0\ntorch_npu==2.6.0\n"),
    ("pyproject.toml", '[project]\ndependencies = ["torch==2.1.0", "⟦NPU921:torch-npu==2.2.0⟧"]\n'),
    (
        "pyproject.toml",
        '[project.optional-dependencies]\ngpu = ["torch==2.1.0"]\nnpu = ["torch-npu==2.2.0"]\n',
    ),
    (
        "environment.yml",
        "dependencies:\n  - python=3.12\n  - pip:\n    - ⟦NPU921:torch_npu==2.1.0.post13⟧\n",
    ),
    ("environment.yml", "dependencies:\n  - pytorch=2.1\n  - pip:\n    - torch_npu==2.1.0\n"),
    ("Dockerfile", "FROM python:3.12-slim\nRUN pip install ⟦NPU921:torch-npu==2.5.1⟧\n"),
    ("Dockerfile", "FROM python:3.12 AS a\nFROM python:3.11\nRUN pip install torch-npu==2.5.1\n"),
    ("Dockerfile", f"{_IMAGE}8.0.rc1-910b-py3.10\nRUN pip install ⟦NPU921:torch_npu==2.6.0⟧\n"),
    ("Dockerfile", f"{_IMAGE}8.2.rc1-910b-py3.8\nRUN pip install ⟦NPU921:torch_npu==2.6.0⟧\n"),
    ("Dockerfile", f"{_IMAGE}8.5.0-910b-py3.11\nRUN pip install torch_npu==2.6.0\n"),
    ("Dockerfile", f"{_IMAGE}8.0.rc1-beta1-910b-py3.10\nRUN pip install torch_npu==2.6.0\n"),
    ("Dockerfile", "ARG V=2.1.0\nFROM a\nRUN pip install torch==$V torch_npu==2.6.0\n"),
    (
        "install.sh",
        "bash ./Ascend-cann-toolkit_8.0.RC1_linux-aarch64.run --install\n"
        "pip install ⟦NPU921:torch_npu==2.6.0⟧\n",
    ),
    (
        "install.sh",
        "conda create -n a python=3.7 -y\n"
        "pip install ⟦NPU921:torch_npu-2.1.0.post8-cp310-cp310-a.whl⟧\n",
    ),
    (
        "install.sh",
        "if [ $1 = npu ]; then\n  pip install torch_npu==2.6.0\n"
        "else\n  pip install torch==2.1.0\nfi\n",
    ),
    (
        "install.sh",
        "if [ $1 = new ]; then\n  pip install torch==2.1.0 ⟦NPU921:torch_npu==2.6.0⟧\nfi\n",
    ),
]

VARIABLES = [
    ("run.sh", "export ⟦NPU910:HCCL_DETERMINISITIC⟧=true"),
    ("run.sh", "⟦NPU910:COMBINED_ENBLE⟧=1 python train.py"),
    ("run.sh", "export ⟦NPU910:HCCL_WHITE_LIST_DISABLE⟧=1\nexport HCCL_WHITELIST_DISABLE=1"),
    ("run.sh", "export HCCL_CONNECT_TIME_OUT=1\necho ${HCCL_CONNECT_TIME_OUT}"),
    ("run.sh", "export HCCL_OP_BASE_FFTS_MODE=1 ASCEND_VISIBLE_DEVICES=0 NPU_DEVICES=1"),
    ("run.sh", "export HCCL_RDMA_XY=1 MY_TASK_QUEUE_ENABLED=1"),
    ("Dockerfile", "FROM a\nENV ⟦NPU910:HCCL_OPEXPANSION_MODE⟧=AIV"),
    ("run.yml", "env:\n  ⟦NPU910:MULTI_STREAMS_MEMORY_REUSE⟧: '1'"),
    ("a.py", 'import os\nimport torch\nos.environ[⟦NPU910:"TASK_QUEUE_ENABLED"⟧] = "2"'),
    (
        "a.py",
        'import os\nimport torch\nos.environ["TASK_QUEUE_ENABLED"] = "2"\n'
        'print(os.getenv("TASK_QUEUE_ENABLED"))',
    ),
    (
        "a.py",
        "import torch\nimport torch_npu\noption = {'ACL_OP_SELECT_IMPL_MODE': 'high_precision'}\n"
        "torch.npu.set_option(option)",
    ),
]


@pytest.mark.parametrize(("file", "snippet"), PAIRS)
def test_releases_that_do_not_go_together(file: str, snippet: str) -> None:
    check(file, snippet)


@pytest.mark.parametrize(("file", "snippet"), VARIABLES)
def test_variables_that_nothing_reads(file: str, snippet: str) -> None:
    check(file, snippet + "\n")


def test_the_release_that_fits_is_named_and_written_where_there_is_one() -> None:
    [several] = findings("requirements.txt", "torch==2.1.0\ntorch_npu==2.6.0\n")
    assert "`2.1.0.post17`" in several.message("en")
    assert not several.fixes
    [single] = findings("requirements.txt", "torch==2.9.1\ntorch_npu==2.6.0\n")
    assert [edit.replacement for edit in single.fixes[0].edits] == ["2.9.1"]


def test_releases_of_cann_are_in_order() -> None:
    releases = ["7.0.RC1", "7.0.0", "8.0.RC1", "8.0.RC3", "8.0.0", "8.1.RC1", "8.5.0", "9.0.0"]
    assert all(cann_order(a) < cann_order(b) for a, b in pairwise(releases))
