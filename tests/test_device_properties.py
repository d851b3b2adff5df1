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
@pytest.mark.parametrize("name", [*MISSING, *THERE])
def test_what_is_missing_is_told(name: str, use: str) -> None:
    marked = use if name in MISSING else plain(use)
    check(marked.format(asked=ASKED, name=name))


@pytest.mark.parametrize("name", MISSING)
def test_what_is_missing_is_told_once_where_it_is_asked_at_once(name: str) -> None:
    """With another function alone, None would be compared."""
    text = AT_ONCE.format(name=name)
    (finding,) = findings(text)
    asked = f"torch.cuda.get_device_properties(0).{name}"
    assert (finding.rule.code, text[slice(*finding.span)]) == ("NPU103", asked)
    assert finding.fixes == ()


@pytest.mark.parametrize("name", THERE)
def test_what_is_there_is_moved(name: str) -> None:
    text = AT_ONCE.format(name=name)
    (finding,) = findings(text)
    assert finding.rule.code == "NPU101"
    assert finding.fixes[0].applicability is Applicability.SAFE
    assert f"torch.npu.get_device_properties(0).{name}\n" in fixed(text)


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
