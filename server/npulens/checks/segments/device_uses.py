"""Names that are given to what takes a device or the backend of a process group."""

import re
from functools import cached_property

from npulens.syntax.words import Words
from npulens.text.late_patterns import late

_DEVICE_USE = late(
    r"(?:\.to\(|\bdevice\s*=\s*|(?<=torch\.)device\(|map_location\s*=\s*)(?:\w+\.)*(\w+)\s*[,)]"
)
_DEVICE_TAKERS = (".to(", "device", "map_location")
"""What such a use begins with, which is searched for first."""
_OTHER_DEVICES = frozenset({"cpu", "mps", "xpu", "hpu", "mlu", "tpu"})
_COMPARED = late(rf"= [\"'](?:{'|'.join(sorted(_OTHER_DEVICES))})[\"']")
_NAME_BEFORE = late(r"([A-Za-z_]\w*)(?:\.lower\(\))? [=!]\Z")
_LONGEST_NAME = 80
_LOOKED_UP = late(r"\b(\w+)(?:\[|\.get\()(?:\w+\.)*\w*device\w*(?:\.type)?[\],)]", re.IGNORECASE)
_ACCELERATOR = late(r"(?m)^[ \t]*(?:\w+\.)*(\w+)[ \t]*=[^\n]*\bcurrent_accelerator\(")
_NONE: frozenset[str] = frozenset()
_WORD = r"[\"'](?:[\w.-]*)[\"']"
_COMPARED_WITH = late(rf"\b(\w+)(?:\(\))? [=!]= ({_WORD})")
_CHOSEN_FROM = late(
    r"\b(\w+)(?:\([^()\n]*\))?(?: (?:not )?in |: | -> )(?:\w+\.)?(?:Literal)?[\[({]"
    rf"\s*({_WORD}(?:,\s*{_WORD})*),?\s*[\])}}]"
)
_GENERIC = frozenset({"default", "name", "value", "type", "key", "kind", "mode", "args", "title"})
"""Names that say nothing of what they hold: one `name` is not the other."""
_GIVEN = late(rf"\b(\w+)=({_WORD})")
_OF_DEVICES = frozenset(
    {"", "accelerator", "all", "any", "auto", "ccl", "cpu", "cuda", "dcu", "default", "directml"}
    | {"dml", "gloo", "gpu", "hccl", "hip", "hpu", "ipu", "maca", "meta", "metal", "mlu", "mpi"}
    | {"mps", "mtia", "musa", "nccl", "none", "npu", "opencl", "privateuseone", "rccl", "rocm"}
    | {"sycl", "tpu", "ucc", "vpu", "vulkan", "xccl", "xla", "xpu"}
)
"""Words that name devices or backends, or leave the choice open."""
_BACKEND_USE = late(
    r"(?:\binit_process_group\(\s*|\binit_distributed\(\s*|\b\w*backend\s*=\s*)"
    r"(?:\w+\.)*([A-Za-z_]\w*)\s*[,)]"
)
_BACKEND_TYPE = late(
    r"^(\w+)(?:[^\w=\n][^=\n]*)?=\s*(?:\w+\.)?Literal\[[^\]]*[\"']nccl[\"']", re.MULTILINE
)


def is_no_device(text: str) -> bool:
    """Whether a word is none that names a device, or a backend of `torch.distributed`."""
    return text.lower().partition(":")[0] not in _OF_DEVICES


class DeviceUses:
    """Such names of one segment, each kind searched for when it is first queried."""

    def __init__(self, words: Words) -> None:
        self._words = words

    @cached_property
    def device_names(self) -> frozenset[str]:
        """Names that are given to something that takes a device."""
        places = (at for taker in _DEVICE_TAKERS for at in self._words.places(taker))
        found = (_DEVICE_USE.match(self._words.text, at) for at in places)
        return frozenset(use[1] for use in found if use is not None)

    @cached_property
    def compared_names(self) -> frozenset[str]:
        """Names that are compared with another device: `kind` in `if kind == "mps"`."""
        if self._words.identifiers.isdisjoint(_OTHER_DEVICES):
            return frozenset()
        text = self._words.text
        places = (found.start() for found in _COMPARED.finditer(text))
        found = (_NAME_BEFORE.search(text, max(at - _LONGEST_NAME, 0), at) for at in places)
        return frozenset(name[1] for name in found if name is not None)

    @cached_property
    def backend_names(self) -> frozenset[str]:
        """Names that are given to something that makes a process group."""
        return frozenset(_BACKEND_USE.findall(self._words.text))

    @cached_property
    def backend_types(self) -> frozenset[str]:
        """Names of `Literal[...]` types with backends, which callers rely on."""
        return frozenset(_BACKEND_TYPE.findall(self._words.text))

    @cached_property
    def device_tables(self) -> frozenset[str]:
        """Names of what a device is looked up in: `KERNELS[device.type]`."""
        return frozenset(_LOOKED_UP.findall(self._words.text))

    @cached_property
    def accelerator_names(self) -> frozenset[str]:
        """Names that are given the type of the accelerator that is there."""
        text = self._words.text
        return frozenset(_ACCELERATOR.findall(text)) if "current_accelerator(" in text else _NONE

    @cached_property
    def own_names(self) -> frozenset[str]:
        """Names that are given, or compared with, words that are no devices: `impl == "ref"`."""
        text = self._words.text
        kinds = (_COMPARED_WITH, _CHOSEN_FROM, _GIVEN)
        found = (use for kind in kinds for use in kind.findall(text) if use[0] not in _GENERIC)
        return frozenset(name for name, words in found if any(map(is_no_device, _words(words))))


def _words(text: str) -> list[str]:
    return re.findall(r"[\w.-]+", text)
