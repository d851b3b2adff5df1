"""Whether a project hands `distributed_backend` to PyTorch itself, and so takes no other's name."""

import re

from npulens.workspace.index.contents import Content, Modules
from npulens.workspace.index.fact_memo import FactMemo

_OPENS = re.compile(
    rb"\b(?:init_process_group|init_distributed)\(\s*(?:\w+\s*=\s*[^,()]{1,80},\s*){0,6}"
    rb"(?:(?:dist_)?backend\s*=\s*)?(?:\w+\.)*distributed_backend\b"
)
_MAPS = (b"mindspeed", b"megatron_adaptor", b"transfer_to_npu")
"""With these `nccl` is HCCL on the NPU."""


def opens_groups(modules: Modules, memo: FactMemo) -> bool:
    """Whether a module makes process groups of the backend that is chosen, and none maps it."""
    contents = modules.values()
    return any(_opens(each, memo) for each in contents) and not any(
        _maps(each, memo) for each in contents
    )


def _opens(content: Content, memo: FactMemo) -> bool:
    return memo.is_so(
        "opens groups",
        content.digest,
        lambda: b"distributed_backend" in content.data and _OPENS.search(content.data) is not None,
    )


def _maps(content: Content, memo: FactMemo) -> bool:
    return memo.is_so(
        "maps backends", content.digest, lambda: any(word in content.data for word in _MAPS)
    )
