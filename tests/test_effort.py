"""What a finding costs a person, by the one formula that every report uses."""

from pathlib import Path

import pytest

from helpers import findings
from npulens.catalog.loader import load_catalogue
from npulens.workspace.fixing.effort import (
    EffortClass,
    effort_of,
    formula_of,
    minutes_in_turn,
)

HEAD = "import torch\n"
COSTS = [
    ("torch.cuda.synchronize()", 0, EffortClass.NONE),  # a safe fix
    ("torch.cuda.CUDAGraph()", 5, EffortClass.MINUTES),  # an unsafe one
    ("torch.cuda.jiterator", 60, EffortClass.HOUR),  # nothing to put in its place
    ("import pynvml", 120, EffortClass.HALF_DAY),
    (
        "from torch.utils.cpp_extension import CUDAExtension\nCUDAExtension('a', ['a.cu'])",
        1920,
        EffortClass.DAYS,
    ),
]


@pytest.mark.parametrize(("code", "minutes", "effort_class"), COSTS)
def test_a_finding_costs_what_is_to_do_about_it(
    code: str, minutes: int, effort_class: EffortClass
) -> None:
    effort = max(effort_of(finding) for finding in findings(HEAD + code + "\n"))
    assert (effort.minutes, effort.effort_class) == (minutes, effort_class)


def test_a_second_finding_of_a_symbol_costs_a_quarter() -> None:
    found = findings(f"{HEAD}torch.cuda.jiterator\ntorch.cuda.jiterator\ntorch.cuda.jiterator\n")
    assert len(found) == 3
    assert sum(minutes_in_turn(effort_of(finding) for finding in found)) == 60 + 15 + 15


def test_nothing_is_free_that_has_no_safe_fix() -> None:
    found = findings(f"{HEAD}torch.cuda.CUDAGraph()\n" * 2)
    efforts = [effort_of(f) for f in found if f.fixes[0].applicability.value != "safe"]
    assert efforts
    assert all(0 < effort.again <= effort.minutes for effort in efforts)


@pytest.mark.parametrize("name", ["migrating.md", "migrating.zh-CN.md"])
def test_the_formula_is_told(name: str) -> None:
    page = (Path(__file__).resolve().parents[1] / "docs" / name).read_text(encoding="utf-8")
    formula = formula_of(load_catalogue().rules.values())
    for code, minutes in formula.rules.items():
        assert f"| {code} | {minutes} |" in page
    for family, minutes in formula.families.items():
        assert f"| {family}xx | {minutes} |" in page
    assert all(code in page for code in formula.structure_rules)
    assert f"{formula.reading} " in page and f"{formula.structure} " in page
