"""Files for CUDA with one for the NPU beside them are not moved."""

from pathlib import Path

import pytest

from commands import found_in
from helpers import CATALOGUE
from npulens.analysis import analyze
from npulens.catalog.model import Target
from npulens.text.document import Document

CODE = "import torch\ntorch.cuda.synchronize()\n"
PAIRS = [
    ("nccl_engine.py", "hccl_engine.py"),
    ("engine/fused_cuda.py", "engine/fused_ascend.py"),
    ("ops/cuda/gemm.py", "ops/npu/gemm.py"),
    ("test_on_GPU.py", "test_on_npu.py"),
    ("profile/nvtx_marks.py", "profile/mstx_marks.py"),
    ("devices/nvidia_gpu.py", "devices/ascend_npu.py"),
    ("devices/nvidia_gpu.py", "devices/npu.py"),
    ("platform/nvidia.py", "platform/ascend.py"),
]
NO_PAIRS = [
    ("nccl_engine.py", "npu_engine.py"),
    ("train.py", "train_npu.py"),
    ("ops/cuda/gemm.py", "ops/npu/conv.py"),
    ("cuda/ops/fast/gemm.py", "npu/ops/fast/gemm.py"),
    ("train_gpus.py", "train_npus.py"),
    ("devices/nvidia_gpu.py", "devices/ascend_tools.py"),
]


@pytest.mark.parametrize(("for_cuda", "for_npu"), PAIRS)
def test_pairs(here: Path, for_cuda: str, for_npu: str) -> None:
    assert found_in(here, {for_cuda: CODE}) == [(for_cuda, "NPU101")]
    assert found_in(here, {for_npu: "import torch\nimport torch_npu\n"}) == []


def test_a_dockerfile_beside_one_for_the_npu(here: Path) -> None:
    image = "FROM nvidia/cuda:12.1.1-devel\n"
    files = {"docker/Dockerfile": image, "Dockerfile": image}
    assert len(found_in(here, files)) == 2
    beside = {"docker/npu.Dockerfile": "FROM ascendai/cann:8.1\n"}
    assert found_in(here, files | beside) == [("Dockerfile", "NPU904")]


@pytest.mark.parametrize(("for_cuda", "for_npu"), NO_PAIRS)
def test_what_is_no_pair(here: Path, for_cuda: str, for_npu: str) -> None:
    assert found_in(here, {for_cuda: CODE, for_npu: ""}) == [(for_cuda, "NPU101")]


def test_the_one_for_the_npu_is_checked(here: Path) -> None:
    files = {"train_gpu.py": CODE, "train_npu.py": CODE}
    assert found_in(here, files) == [("train_npu.py", "NPU101")]


def test_images_in_a_folder_for_the_npu(here: Path) -> None:
    """Each has its counterpart under its own name: the NPU may have no image of another kind."""
    image = "FROM nvidia/cuda:12.1.1-devel\n"
    names = ["docker/cu118/Dockerfile", "docker/docker-cuda/Dockerfile.megatron"]
    files = {**dict.fromkeys(names, image), "docker/docker-cuda/Dockerfile": image}
    assert found_in(here, files) == [(name, "NPU904") for name in sorted(files)]
    files["docker/docker-npu/Dockerfile"] = "FROM ubuntu:22.04\n"
    assert found_in(here, files) == [(name, "NPU904") for name in names]


def test_scripts(here: Path) -> None:
    script = "export CUDA_VISIBLE_DEVICES=0\npython train.py\n"
    assert found_in(here, {"run_gpu.sh": script}) == [("run_gpu.sh", "NPU901")]
    assert found_in(here, {"run_npu.sh": "python train.py\n"}) == []


def test_syntax_errors_are_told(here: Path) -> None:
    files = {"train_gpu.py": "import torch\ntorch.cuda.(\n", "train_npu.py": ""}
    assert [code for _, code in found_in(here, files)] == ["NPU001"]


@pytest.mark.parametrize(
    "file",
    ["library/ipex/hijacks.py", "ops/xpu/norm.py", "op_rocm/gemm.py", "train_tpu.py", "mlu.py"],
)
def test_what_is_for_hardware_of_others(here: Path, file: str) -> None:
    of_others = f"{CODE}\nif hasattr(torch, 'xpu'):\n    torch.xpu.synchronize()\n"
    assert found_in(here, {file: of_others}) == []


def test_a_folder_that_is_only_called_after_other_hardware(here: Path) -> None:
    assert found_in(here, {"my_tpu/train.py": CODE}) == [("my_tpu/train.py", "NPU101")]


@pytest.mark.parametrize(
    "file", ["xpu_or_gpu.py", "joints/hip.py", "quantum/mps.py", "xpu/models/net.py", "gpu/norm.py"]
)
def test_what_is_not(here: Path, file: str) -> None:
    assert found_in(here, {file: CODE}) == [(file, "NPU101")]


def test_a_home_folder_may_have_any_name() -> None:
    assert analyze(Document("/home/xpu/train.py", CODE), CATALOGUE, Target())
