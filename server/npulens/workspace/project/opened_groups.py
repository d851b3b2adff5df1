"""Whether a project hands `distributed_backend` to PyTorch itself, and so takes no other's name."""

import re

from npulens.workspace.index.contents import Modules

_CHOSEN = b"distributed_backend"
_OPENS = re.compile(
    rb"\b(?:init_process_group|init_distributed)\(\s*(?:\w+\s*=\s*[^,()]{1,80},\s*){0,6}"
    rb"(?:(?:dist_)?backend\s*=\s*)?(?:\w+\.)*distributed_backend\b"
)
_MAPS = (b"mindspeed", b"megatron_adaptor", b"transfer_to_npu")
"""With these `nccl` is HCCL on the NPU."""


def opens_groups(modules: Modules) -> bool:
    """Whether a module makes process groups of the backend that is chosen, and none maps it."""
    texts = [content.data for content in modules.values()]
    is_open = any(_CHOSEN in text and _OPENS.search(text) is not None for text in texts)
    return is_open and not any(word in text for text in texts for word in _MAPS)
