"""What Huawei's msTransplant advises on precision and speed: the rules, or why there is none.

Its advice goes by names and by one text that a value has to equal. Here an entry is a rule where a
source says that it matters with torch_npu 2.6 or later, and where code shows that it applies.
Read: `msfmktransplt` in Ascend's mstt; Ascend/pytorch, docs/zh/api/native_api and torch_npu/csrc;
Ascend/op-plugin, op_plugin/ops; the pages on HCCL's variables of CANN 8.5 and 9.0.
"""

from collections.abc import Iterator

FILE = "msTransplant"

_DATA_TYPES = (
    "no source names another difference than the data types that the NPU takes, which NPU503 to"
    " NPU505 and NPU306 report"
)
_OF_THE_NETWORK = (
    "its value has to be that of the switches, and the default suits most: only a value that HCCL"
    " refuses, or two that exclude each other, are found"
)
ENTRIES: dict[str, tuple[str, ...] | str] = {
    "precision torch.baddbmm": _DATA_TYPES,
    "precision torch.Tensor.reshape": _DATA_TYPES,
    "precision torch.matmul, torch.Tensor.matmul": (
        "float32 products are exact by default on the NPU; what changes that is found, see"
        " tf32-products"
    ),
    "precision torch.nn.Embedding, torch.nn.functional.embedding with max_norm": (
        "torch_npu has a kernel of its own for it, and refuses negative norms only, which no code"
        " gives"
    ),
    "performance optimizers of apex and torch_npu": ("fused-optimizer",),
    "performance torch.nn.Linear": (
        "advice for each layer without a cause in the code; no source says when it pays today"
    ),
    "performance anomaly detection": ("anomaly-detection",),
    "parameter DataLoader pin_memory, Tensor.to non_blocking": ("blocking-copy",),
    "parameter DataLoader num_workers": ("loader-without-workers", "loader-restarts-workers"),
    "parameter DistributedDataParallel bucket_cap_mb": (
        "no source on today's torch_npu names a value: the best one depends on model and network,"
        " and the `500` of the tool is compared as text"
    ),
    "suggestion no_sync of DistributedDataParallel": (
        "the same on the GPU and the NPU, and right only where gradients are accumulated"
    ),
    "project set_compile_mode": ("jit-compile-mode",),
    "project TASK_QUEUE_ENABLE": ("slow-environment", "untuned-launch"),
    "project CPU_AFFINITY_CONF": ("untuned-launch", "npu-variable-value"),
    "project HCCL_OP_BASE_FFTS_MODE_ENABLE": (
        "the pages of torch_npu and CANN that were read do not say what it does today"
    ),
    "guide HCCL_RDMA_TC, HCCL_RDMA_SL not set": _OF_THE_NETWORK,
    "guide HCCL_RDMA_TC, HCCL_RDMA_SL, HCCL_INTRA_ROCE_ENABLE set": (
        "npu-variable-value",
        "npu-variables-together",
    ),
    "guide PrecisionDebugger after the model is made": (
        "hooks are put into the modules of PyTorch, whenever that is; the documents ask for it"
        " before in some suites and after in vLLM, of which NPU508 finds the case that fails"
    ),
}
"""In the order of the tool, in words of our own; guides that go with it at the end."""


def rules_of(entry: str) -> tuple[str, ...]:
    """The names of the rules that say what an entry says."""
    decided = ENTRIES[entry]
    return decided if isinstance(decided, tuple) else ()


def entries() -> Iterator[tuple[str, str]]:
    """Each entry, and the reason should no rule cover it."""
    for entry, decided in ENTRIES.items():
        yield entry, decided if isinstance(decided, str) else "not yet"
