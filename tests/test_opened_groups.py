"""`distributed_backend` of a Megatron in the project, which gives the name to PyTorch itself."""

from pathlib import Path

import pytest

from test_extension_stories import places

OPTION = (
    "def add(group):\n"
    "    group.add_argument('--distributed-backend', default='nccl', choices=['nccl', 'gloo'])\n"
)
OPENS = {
    "torch": "import torch\n\n\ndef start(args):\n    torch.distributed.init_process_group(\n"
    "        backend=args.distributed_backend, world_size=args.world_size\n    )\n",
    "behind another": "import torch\n\n\ndef start(args):\n"
    "    torch.distributed.init_process_group(\n"
    "        rank=args.rank,\n        backend=args.distributed_backend,\n    )\n",
    "deepspeed": "import deepspeed\n\n\ndef start(args):\n"
    "    deepspeed.init_distributed(args.distributed_backend)\n",
}
SCRIPT = "torchrun pretrain_gpt.py --tensor-model-parallel-size 2 --distributed-backend nccl\n"
SETTINGS = "tensor_model_parallel_size: 2\ndistributed_backend: nccl\n"
FILES = {
    "megatron/arguments.py": OPTION,
    "run.sh": SCRIPT,
    "train.yaml": SETTINGS,
    "more.sh": SCRIPT.replace("nccl", "hccl"),
}


@pytest.mark.parametrize("opening", OPENS.values(), ids=OPENS)
def test_the_name_is_one_of_pytorch(opening: str, here: Path) -> None:
    found = places(here, {**FILES, "megatron/initialize.py": opening})
    assert found["megatron/arguments.py"] == [(2, "NPU201", ""), (2, "NPU201", "")]
    assert found["run.sh"] == [(1, "NPU902", "")]
    assert found["train.yaml"] == [(2, "NPU902", "")]
    assert "more.sh" not in found


MAPPED = {
    "nothing opens": "import deepspeed\n\ndeepspeed.init_distributed()\n",
    "an adaptor": OPENS["torch"].replace("import torch", "import mindspeed.megatron_adaptor"),
}


@pytest.mark.parametrize("initialize", MAPPED.values(), ids=MAPPED)
def test_a_library_maps_the_name(initialize: str, here: Path) -> None:
    found = places(here, {**FILES, "megatron/initialize.py": initialize})
    settled = (2, "NPU201", "library-devices")
    assert found["megatron/arguments.py"] == [settled, settled]
    assert found["run.sh"] == [(1, "NPU902", "library-devices")]
    assert found["train.yaml"] == [(2, "NPU902", "library-devices")]
    assert found["more.sh"] == [(1, "NPU924", "")]
