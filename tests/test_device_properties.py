"""What `torch.cuda.get_device_properties` tells and `torch.npu.get_device_properties` does not."""

import pytest

from helpers import check, findings, fixed
from npulens.catalog.model import Applicability

ASKED = "⟦NPU102:torch.cuda.get_device_properties⟧"
MISSING = [
    *("major", "minor", "multi_processor_count", "warp_size", "max_threads_per_multi_processor"),
    *("regs_per_multiprocessor", "gcnArchName", "shared_memory_per_block"),
    *("shared_memory_per_block_optin", "shared_memory_per_multiprocessor"),
]
THERE = ["name", "total_memory", "L2_cache_size"]
USES = {
    "by a name": "import torch\n\nproperties = {asked}(0)\nfound = ⟦NPU103:properties.{name}⟧\n",
    "in a method": (
        "import torch\n\n\nclass Card:\n    def __init__(self, device):\n"
        "        self.properties = {asked}(device.index)\n\n"
        "    def ask(self):\n        return ⟦NPU103:self.properties.{name}⟧\n"
    ),
}
AT_ONCE = "import torch\n\nfound = torch.cuda.get_device_properties(0).{name}\n"


def plain(use: str) -> str:
    """Without the mark of what is missing."""
    return use.replace("⟦NPU103:", "").replace("⟧", "")


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize("name", MISSING)
def test_what_is_missing_is_told(name: str, use: str) -> None:
    check(use.format(asked=ASKED, name=name))


@pytest.mark.parametrize("name", MISSING)
def test_what_is_missing_is_told_once_where_it_is_asked_at_once(name: str) -> None:
    """With another function alone, None would be compared."""
    text = AT_ONCE.format(name=name)
    (finding,) = findings(text)
    asked = f"torch.cuda.get_device_properties(0).{name}"
    assert (finding.rule.code, text[slice(*finding.span)]) == ("NPU103", asked)
    assert finding.fixes == ()


@pytest.mark.parametrize("use", [AT_ONCE, plain(USES["by a name"])], ids=["at once", "by a name"])
@pytest.mark.parametrize("name", THERE)
def test_what_is_there_is_moved(name: str, use: str) -> None:
    text = use.format(asked="torch.cuda.get_device_properties", name=name)
    (finding,) = findings(text)
    assert finding.rule.code == "NPU101"
    assert finding.note is None
    assert finding.fixes[0].applicability is Applicability.SAFE
    assert text.replace("torch.cuda", "torch.npu").split("\n")[2] in fixed(text)


@pytest.mark.parametrize("name", THERE)
def test_what_a_method_keeps_may_be_asked_elsewhere(name: str) -> None:
    check(plain(USES["in a method"]).format(asked=ASKED, name=name))


@pytest.mark.parametrize("name", MISSING)
def test_it_is_told_of_code_for_the_npu(name: str) -> None:
    check(f"import torch\n\nfound = ⟦NPU103:torch.npu.get_device_properties(0).{name}⟧\n")


OPEN = {
    "handed on": "p = ⟦{asked}⟧(0)\nprint(p.name)\nshow(p)",
    "returned": "def f():\n    p = ⟦{asked}⟧(0)\n    return p",
    "one is missing": "p = ⟦{asked}⟧(0)\nprint(p.name, ⟦NPU103:p.major⟧)",
    "one is unknown": "p = ⟦{asked}⟧(0)\nprint(p.name, p.pci_bus_id)",
    "of a class": "class A:\n    p = ⟦{asked}⟧(0)\n    print(p.name)",
    "an attribute": "x.p = ⟦{asked}⟧(0)\nprint(x.p.name)",
    "two names": "p = q = ⟦{asked}⟧(0)\nprint(p.name)",
    "never asked": "p = ⟦{asked}⟧(0)",
    "elsewhere": "def f():\n    p = ⟦{asked}⟧(0)\n    return lambda: vars(p)",
}


@pytest.mark.parametrize("snippet", OPEN.values(), ids=OPEN)
def test_what_else_may_be_asked(snippet: str) -> None:
    told = snippet.replace("⟦{asked}⟧", ASKED)
    check(f"import torch\n\n{told}\n")


def test_what_is_asked_in_several_places_of_a_function() -> None:
    text = (
        "import torch\n\n\ndef show(cards):\n    for i in cards:\n"
        "        p = ⟦NPU101:torch.cuda.get_device_properties⟧(i)\n"
        '        print(f"{p.name}, {p.total_memory / 2**20:.0f} MiB", p.L2_cache_size)\n'
    )
    check(text)


def test_a_graph_stays_for_inference() -> None:
    check("import torch\n\ng = ⟦NPU102:torch.cuda.CUDAGraph⟧()\ng.replay()\n")


def test_an_alias_is_told_where_it_is_made() -> None:
    text = "from torch.cuda import get_device_properties as ask\n\nn = ask(0).name\n"
    assert [(f.rule.code, f.span.start) for f in findings(text)] == [("NPU102", 23)]


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_it_stays_told_when_the_function_is_fixed(use: str) -> None:
    text = fixed(plain(use).format(asked="torch.cuda.get_device_properties", name="major"))
    assert "torch.npu.get_device_properties" in text
    assert [finding.rule.code for finding in findings(text)] == ["NPU103"]


def test_of_another_function_of_that_name() -> None:
    check("import torch\nfrom drivers import get_device_properties as ask\n\nn = ask(0).major\n")
