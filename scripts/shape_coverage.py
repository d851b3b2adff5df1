"""Which rule covers each fact of `dynamic_shape_ops.json`, for `make_coverage_page.py`."""

from collections.abc import Iterator, Mapping
from typing import Any

FILE = "dynamic_shape_ops.json"
STATIC = "its shape does not depend on data; no finding is made of it"
DIAGNOSTIC = "checks of arguments, which no step of a training waits for when they are switched off"
INTERNAL = "only an internal buffer depends on data; the result does not"
NO_RECEIVER = "documented for two layers of torch_npu, which no code of CUDA names"
IN_JIT_RULE = "jit-compile-mode"

WRITTEN: Mapping[str, tuple[str, ...]] = {
    "torch.where(condition)": ("dynamic-shape-operator",),
    "x[bool_mask] (read)": ("boolean-mask-index",),
    "x[bool_mask] = scalar": ("masked-assignment",),
    "x[bool_mask] = tensor": ("masked-assignment",),
    "torch.repeat_interleave(x, repeats_tensor)": ("dynamic-shape-operator",),
    "torch.nn.functional.one_hot(x)": ("dynamic-shape-operator",),
    'float(tensor), int(tensor), bool(tensor), tensor.__index__, "if tensor:", "while tensor:",'
    " assert tensor": ("host-read", "branch-on-tensor"),
    "value in tensor (torch.Tensor.__contains__)": ("host-read",),
    "torch.arange(device_tensor)": ("size-from-data",),
    "torch.nn.utils.clip_grad_norm_(error_if_nonfinite=True)": ("host-read",),
    "torch.cuda.synchronize / torch.npu.synchronize": ("host-read",),
    "loss.item() for logging each step": ("host-read",),
    "aten::_local_scalar_dense": ("host-read", "branch-on-tensor"),
    "aten::item": ("host-read",),
    "aten::index": ("boolean-mask-index",),
    "aten::_unique": ("dynamic-shape-operator",),
    "aten::_unique2": ("dynamic-shape-operator",),
    "aten::one_hot": ("dynamic-shape-operator",),
    "aten::unique_dim": ("dynamic-shape-operator",),
    "aten::unique_dim_consecutive": ("dynamic-shape-operator",),
    "aten::linalg_lstsq": ("dynamic-shape-operator",),
    "last batch smaller than the rest: DataLoader(drop_last=True)": ("loader-keeps-last-batch",),
    "padding to the longest sequence of each batch (pad_sequence, DataCollatorWithPadding): pad to"
    " fixed or bucketed lengths": ("padding-to-longest",),
    "multi-scale training / random crop sizes changing per step": ("random-size",),
    "torch_npu.npu.set_compile_mode(jit_compile=bool)": (IN_JIT_RULE,),
}
"""Facts that are no name of an operator, or one below Python: the rules for them."""

LEFT_OUT: Mapping[str, str] = {
    "aten::_ctc_loss": INTERNAL,
    "torch.nn.functional.ctc_loss": INTERNAL,
    "torch.distributions.* with validate_args=True (default)": DIAGNOSTIC,
    "torch_npu.contrib NpuDropPath / NpuCachedDropout document that dynamic shapes are not"
    " supported": NO_RECEIVER,
}


def names_of(entry: str) -> Iterator[str]:
    """The qualified names under which an operator may stand in the table."""
    yield entry
    yield entry.replace("aten::", "torch.")
    yield entry.replace("torch.Tensor.", "torch.")
    yield f"torch.Tensor.{entry.rpartition('::')[2]}"


def entries(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Each fact, with the reason why no rule covers it."""
    names = [fact["api"] for fact in facts["python_apis"]]
    names += [fact["op"] for fact in facts["aten_ops"]]
    names += [*facts["also_dynamic_without_op"], facts["jit_compile_default"]["api"]]
    for name in names:
        yield name, LEFT_OUT.get(name, "not yet")
    for name in facts["checked_static"]:
        yield f"static: {name}", STATIC
