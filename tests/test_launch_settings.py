"""What settings of training say to run on GPUs, in YAML, JSON, TOML and INI."""

import pytest

from helpers import CATALOGUE
from npulens.analysis import analyze
from npulens.catalog.model import Target
from npulens.catalog.project_model import ProjectFacts
from npulens.text.document import Document
from test_launch_files import check, findings, fixed

FOUND = [
    "device: ⟦NPU902:gpu⟧",
    "device: ⟦NPU902:cuda:${local_rank}⟧",
    "train:\n  device: ⟦NPU902:cuda⟧\neval:\n  device: npu",
    "- infer_device: ⟦NPU902:gpu:0⟧",
    "accelerator: ⟦NPU902:gpu⟧",
    "accelerator: ⟦NPU902:gpu⟧\ndevices: 1",
    "defaults:\n  - default\naccelerator: ⟦NPU902:gpu⟧",
    "trainer:\n  accelerator: ⟦NPU902:cuda⟧\n  strategy: ddp",
    "trainer:\n  accelerator: ⟦NPU118:auto⟧\n  max_epochs: 10",
    "trainer:\n  accelerator: ⟦NPU902:gpu⟧\n  strategy: ⟦NPU202:dp⟧",
    "trainer:\n  ⟦NPU902:gpus: 4⟧\n  max_epochs: 10",
    "trainer:\n  ⟦NPU902:gpus: -1⟧\n  accelerator: ⟦NPU202:dp⟧",
    "dist_backend: ⟦NPU902:nccl⟧",
    "ddp_backend: ⟦NPU902:nccl⟧",
    "distrib_backend: ⟦NPU902:NCCL⟧",
    "ddconfig:\n  attn_type: ⟦NPU902:vanilla-xformers⟧",
    "spatial_transformer_attn_type: ⟦NPU902:softmax-xformers⟧",
    'optimizer: {comm_backend_name: "⟦NPU902:nccl⟧"}',
    "attn_implementation: ⟦NPU604:flash_attention_2⟧",
    "model:\n  _attn_implementation: ⟦NPU604:flash_attention_2⟧",
    "⟦NPU902:use_flash_attn: true⟧",
    "⟦NPU902:flash_attention: True⟧  # axolotl",
    "⟦NPU902:use_xformers: true⟧",
    "⟦NPU902:enable_xformers_memory_efficient_attention: True⟧",
    "⟦NPU902:xformers_attention: true⟧",
    "optim: ⟦NPU605:adamw_bnb_8bit⟧",
    "optim: ⟦NPU605:paged_adamw_8bit⟧",
    "optimizer: ⟦NPU605:paged_adamw_32bit⟧",
    "optim: ⟦NPU902:adamw_apex_fused⟧",
    'optim: "⟦NPU902:fusedadam⟧"\nquant_type: "⟦NPU604:bnb_NF4⟧"',
    "quantize: ⟦NPU604:bnb.nf4-dq⟧",
    "⟦NPU605:use_8bit_adam: true⟧",
    "⟦NPU605:load_in_8bit: true⟧",
    "per_device_train_batch_size: 8\n⟦NPU902:tf32: true⟧",
    "memory_format: ⟦NPU401:channels_last⟧",
    "⟦NPU401:channels_last: true⟧",
    "distributed_type: ⟦NPU902:MULTI_GPU⟧\nuse_cpu: false\ngpu_ids: all",
    "trainer:\n  accelerator: ⟦NPU902:gpu⟧  # for instance, or what the provider of a zone has",
    "zero_optimization:\n  ⟦NPU605:zero_quantized_weights: true⟧",
]
NOT_FOUND = [
    "device: npu:0\ndevices: gpu\ndevice_count: 4",
    "device: gpu\nboosting_type: gbdt",
    "accelerator: gpu\nmachine_type: n1-standard",
    "accelerator: gpu\nzone: us-central1-a",
    "accelerator: cpu\nstrategy: ddp",
    "strategy: dp",
    "mesh:\n  strategy: dp\n  tp: 4",
    "gpus: 4\nname: x",
    "trainer:\n  gpus: 0",
    "tensor_model_parallel_size: 2\nuse_flash_attn: true",
    "attn_implementation: sdpa",
    "attn_implementation: eager\nuse_flash_attn: false",
    "use_xformers: false",
    "flash_attn: fa2",
    "gpus: 4\ntests: [nemotron_lightning]",
    "optim: adamw_torch\noptimizer: adamw",
    "optim: adamw_torch_npu_fused",
    "tf32: true",
    "tf32: false\nper_device_train_batch_size: 8",
    "load_in_8bit: false\nload_in_4bit: true",
    "channels_last: false\nmemory_format: contiguous_format",
    "text: use_xformers is on",
    "target: torch.nn.Linear\n_target_: xformers\nclass_path: my.xformers.Block",
    "torch_compile_backend: inductor",
    "mixed_precision: bf16\nzero_optimization:\n  stage: 3",
    "distributed_type: DEEPSPEED\ngpu_ids: '0,1'",
]
IN_OTHER_FILES = [
    ("a.json", '{⟦NPU902:"use_xformers": true⟧, "accelerator": "⟦NPU902:gpu⟧"}'),
    ("ds.json", '{"optimizer": {"params": {"comm_backend_name": "⟦NPU902:nccl⟧"}}}'),
    ("a.toml", '[trainer]\naccelerator = "⟦NPU902:gpu⟧"\n⟦NPU902:gpus = 2⟧'),
    ("a.toml", "⟦NPU902:use_flash_attn = true⟧"),
    ("a.ini", "[train]\ndevice = ⟦NPU902:gpu⟧\n⟦NPU902:use_xformers = True⟧"),
    ("a.yaml", "optimizer:\n  _target_: ⟦NPU603:apex.optimizers.FusedAdam⟧\n  lr: 0.1"),
    ("a.yaml", "class_path: ⟦NPU602:xformers.ops.SwiGLU⟧"),
    ("a.yaml", "_component_: ⟦NPU605:bitsandbytes.optim.PagedAdamW8bit⟧"),
    ("a.yaml", "target: ⟦NPU202:torch.nn.DataParallel⟧"),
    ("setup.cfg", "[tool:pytest]\naddopts = -q\n[train]\ndevice: ⟦NPU902:cuda⟧"),
]


@pytest.mark.parametrize("text", FOUND)
def test_settings_for_gpus_are_found(text: str) -> None:
    check("conf/train.yaml", text + "\n")


@pytest.mark.parametrize("text", NOT_FOUND)
def test_settings_that_run_anywhere_are_not(text: str) -> None:
    check("conf/train.yaml", text + "\n")


@pytest.mark.parametrize(("file", "text"), IN_OTHER_FILES)
def test_other_kinds_of_settings(file: str, text: str) -> None:
    check(file, text + "\n")


FIXED = {
    "device: gpu\n": "device: gpu\n",
    "dist_backend: nccl\n": "dist_backend: hccl\n",
    "params: {comm_backend_name: nccl}\n": "params: {comm_backend_name: hccl}\n",
    "optim: adamw_apex_fused\n": "optim: adamw_torch_npu_fused\n",
    "optim: adamw_bnb_8bit\n": "optim: adamw_bnb_8bit\n",
    "use_xformers: true  # x\n": "use_xformers: false  # x\n",
    "xformers_attention: True\n": "xformers_attention: False\n",
    "attn_implementation: flash_attention_2\n": "attn_implementation: flash_attention_2\n",
    "model_name_or_path: x\ntf32: true\n": "model_name_or_path: x\ntf32: false\n",
    "trainer:\n  strategy: dp\n": "trainer:\n  strategy: dp\n",
    "use_flash_attn: true\n": "use_flash_attn: true\n",
}


@pytest.mark.parametrize(("before", "after"), FIXED.items())
def test_fixes(before: str, after: str) -> None:
    assert fixed("conf/train.yaml", before) == after


def test_a_switch_is_told_with_its_name() -> None:
    (finding,) = findings("a.yaml", "use_xformers: true\n")
    assert "`use_xformers: true`" in finding.message("en")
    assert "use_xformers: false" in finding.fixes[0].title.en


@pytest.mark.parametrize("is_paired", [True, False])
def test_an_image_for_cuda_beside_one_for_the_npu_is_left_alone(is_paired: bool) -> None:
    path = "docker/docker-cuda/Dockerfile"
    project = ProjectFacts(with_counterparts=frozenset({path} if is_paired else ()))
    document = Document(path, "FROM nvidia/cuda:12.1.1-devel\n")
    assert bool(analyze(document, CATALOGUE, Target(project=project))) is not is_paired
