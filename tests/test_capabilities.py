"""What becomes of a compute capability: on the NPU it is `None`, which nothing can be asked of."""

import pytest

from helpers import check, findings

ASKED = "torch.cuda.get_device_capability"
TAKEN_APART = {
    "unpacked": f"major, minor = ⟦NPU103:{ASKED}⟧()",
    "unpacked for the NPU": "major, minor = ⟦NPU103:torch.npu.get_device_capability⟧(0)",
    "indexed": f"big = ⟦NPU103:{ASKED}⟧(0)[0] >= 8",
    "compared": f"big = ⟦NPU103:{ASKED}⟧(0) >= (8, 0)",
    "compared on the right": f"big = (8, 0) <= ⟦NPU103:{ASKED}⟧(0)",
    "handed over in parts": f"print('%d.%d'.format(*⟦NPU103:{ASKED}⟧()))",
    "to choose bfloat16": (
        f"if torch.cuda.is_available() and ⟦NPU103:{ASKED}⟧()[0] >= 8:\n"
        "    kind = torch.bfloat16\nelse:\n    kind = torch.float16"
    ),
    "to choose bfloat16 in an expression": (
        f"kind = 'bf16' if torch.cuda.is_available() and ⟦NPU103:{ASKED}⟧()[0] >= 8 else 'fp16'"
    ),
    "by a name": f"cap = ⟦NPU102:{ASKED}⟧()\nbig = ⟦NPU103:cap⟧ > (7, 5)",
    "by a name, unpacked": (
        f"def f():\n    cap = ⟦NPU102:{ASKED}⟧()\n    major, minor = ⟦NPU103:cap⟧\n    return major"
    ),
    "in an attribute": (
        "class Card:\n    def __init__(self):\n"
        "        self.cap = ⟦NPU102:torch.cuda.get_device_capability⟧()\n\n"
        "    def is_big(self):\n        return ⟦NPU103:self.cap⟧[0] > 7"
    ),
    "imported by name": (
        "from torch.cuda import ⟦NPU102:get_device_capability⟧\n"
        "major, minor = ⟦NPU103:get_device_capability⟧()"
    ),
}
WHOLE = {
    "to choose a kernel of CUDA": (
        f"if torch.cuda.is_available() and {ASKED}()[0] >= 8:\n    kernel = 'fast'\n"
        "else:\n    kernel = 'plain'"
    ),
    "shown": f"print(⟦NPU102:{ASKED}⟧())",
    "kept": f"cap = ⟦NPU102:{ASKED}⟧()",
    "shown for the NPU": "print(torch.npu.get_device_capability())",
    "asked for None first": (
        "def f():\n    cap = torch.npu.get_device_capability()\n"
        "    return cap is not None and cap >= (8, 0)"
    ),
    "of a function that is set later": (
        "start = None\n\ndef f():\n    a, b = start(⟦NPU101:torch.cuda.current_device⟧())"
    ),
    "asked whether it holds anything": (
        "def f():\n    cap = torch.npu.get_device_capability()\n"
        "    if cap and cap[0] >= 8:\n        return 1"
    ),
    "compared with another": "same = torch.npu.get_device_capability() == (8, 0)",
    "of another function": (
        "from cards import get_device_capability\na, b = get_device_capability()"
    ),
}


@pytest.mark.parametrize("snippet", [*TAKEN_APART.values(), *WHOLE.values()])
def test_it_is_told_where_none_raises_an_error(snippet: str) -> None:
    check(f"import torch\n\n{snippet}\n")


@pytest.mark.parametrize("snippet", TAKEN_APART.values(), ids=TAKEN_APART)
def test_nothing_is_rewritten_into_asking_none(snippet: str) -> None:
    plain = snippet.replace("⟦NPU103:", "").replace("⟦NPU102:", "").replace("⟧", "")
    found = findings(f"import torch\n\n{plain}\n")
    assert found
    assert [fix for finding in found for fix in finding.fixes] == []
    assert all("`None`" in finding.note.en for finding in found if finding.note)
