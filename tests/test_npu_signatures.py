"""The reference operators take what the schemas say, and refuse what the operators refuse."""

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

from fused_execution import draw

SCHEMAS = Path(__file__).with_name("data") / "operator_schemas.tsv"
ROWS = [
    line.split("\t")
    for line in SCHEMAS.read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
]


def parameters_of_schema(schema: str) -> list[tuple[str, bool, str | None]]:
    """Name, whether by keyword only, and the default as text (None: required)."""
    inside = schema[schema.index("(") + 1 : schema.index(") ->")]
    found: list[tuple[str, bool, str | None]] = []
    by_keyword = False
    for entry in inside.split(", "):
        if entry == "*":
            by_keyword = True
            continue
        name, _, default = entry.rpartition(" ")[2].partition("=")
        found.append((name, by_keyword, default or None))
    return found


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_parameters_are_those_of_the_schema(torch_npu: ModuleType, row: list[str]) -> None:
    name, _, schema = row
    ours = inspect.signature(getattr(torch_npu, name)).parameters.values()
    theirs = parameters_of_schema(schema)
    keywords = [(each.name, each.kind is each.KEYWORD_ONLY) for each in ours]
    assert keywords == [(parameter, by_keyword) for parameter, by_keyword, _ in theirs]
    for each, (_, _, default) in zip(ours, theirs, strict=True):
        assert (each.default is each.empty) == (default is None), each.name
        if default is None:
            continue
        if isinstance(each.default, bool) or each.default is None:
            assert str(each.default) == default
        elif isinstance(each.default, int | float):
            assert each.default == float(default)
        else:
            assert each.default == default.strip("'\"")


def test_every_operator_has_a_schema(torch_npu: ModuleType) -> None:
    operators = {name for name in torch_npu.__all__ if inspect.isfunction(vars(torch_npu)[name])}
    assert operators == {row[0] for row in ROWS}


WITHOUT_BACKWARD: dict[str, Callable[[ModuleType, Tensor], Any]] = {
    "npu_add_rms_norm": lambda npu, x: npu.npu_add_rms_norm(x, x, torch.ones(8)),
    "npu_group_norm_silu": lambda npu, x: npu.npu_group_norm_silu(x, None, None, 2),
    "npu_grouped_matmul": lambda npu, x: npu.npu_grouped_matmul([x], [torch.ones(8, 2)]),
    "npu_ffn": lambda npu, x: npu.npu_ffn(x, torch.ones(8, 4), torch.ones(4, 2), "relu"),
}


def test_operators_without_backward_are_those_of_the_table() -> None:
    assert WITHOUT_BACKWARD.keys() == {name for name, backward, _ in ROWS if backward == "no"}


@pytest.mark.parametrize("name", WITHOUT_BACKWARD)
def test_operators_without_backward_say_so(torch_npu: ModuleType, name: str) -> None:
    call = WITHOUT_BACKWARD[name]
    call(torch_npu, draw(4, 8))
    result = call(torch_npu, draw(4, 8).requires_grad_())
    first = result if isinstance(result, Tensor) else result[0]
    assert first.requires_grad
    with pytest.raises(torch_npu.BackwardError, match=f"{name}: backward is not implemented"):
        first.sum().backward()


REFUSALS: dict[str, tuple[Callable[[ModuleType], object], str]] = {
    "float64": (lambda npu: npu.npu_swiglu(draw(2, 4).double()), "does not take torch.float64"),
    "odd size": (lambda npu: npu.npu_swiglu(draw(2, 5)), "must be even"),
    "strided": (lambda npu: npu.npu_swiglu(draw(4, 2).t()), "contiguous"),
    "empty": (lambda npu: npu.npu_swiglu(draw(0, 4)), "empty"),
    "odd geglu": (lambda npu: npu.npu_geglu(draw(2, 5)), "must be even"),
    "approximate": (lambda npu: npu.npu_geglu(draw(2, 4), approximate="tanh"), "0 or 1"),
    "bfloat16": (lambda npu: npu.fast_gelu(draw(2).bfloat16()), "bfloat16"),
    "gamma shape": (lambda npu: npu.npu_rms_norm(draw(2, 4), torch.ones(2)), "trailing shape"),
    "gamma dtype": (
        lambda npu: npu.npu_rms_norm(draw(2, 4), torch.ones(4).bfloat16()),
        "float32 with torch.bfloat16",
    ),
    "mixed sum": (
        lambda npu: npu.npu_add_rms_norm(draw(2, 4), draw(2, 4).half(), torch.ones(4)),
        "one dtype",
    ),
    "rotate": (
        lambda npu: npu.npu_rotary_mul(*[draw(1, 1, 2, 4)] * 3, rotate=draw(4, 4)),
        "rotate is not described",
    ),
    "rotary mode": (lambda npu: npu.npu_rotary_mul(*[draw(1, 1, 2, 4)] * 3, "quarter"), "unknown"),
    "float mask": (
        lambda npu: npu.npu_scaled_masked_softmax(draw(32, 32), torch.zeros(32, 32)),
        "must be bool",
    ),
    "small softmax": (
        lambda npu: npu.npu_scaled_masked_softmax(draw(32, 16), torch.zeros(32, 16).bool()),
        "multiple of 32",
    ),
    "all masked": (
        lambda npu: npu.npu_scaled_masked_softmax(draw(32, 32), torch.ones(32, 32).bool()),
        "every position is masked",
    ),
    "z-loss": (
        lambda npu: npu.npu_cross_entropy_loss(draw(2, 3), torch.tensor([0, 1]), return_zloss=True),
        "z-loss",
    ),
    "int32 target": (
        lambda npu: npu.npu_cross_entropy_loss(draw(2, 3), torch.tensor([0, 1]).int()),
        "int64",
    ),
    "three-dimensional logits": (
        lambda npu: npu.npu_cross_entropy_loss(draw(2, 3, 4), torch.zeros(2, 3).long()),
        "must be (N, C)",
    ),
    "no list": (lambda npu: npu.npu_grouped_matmul(draw(2, 3), [draw(3, 3)]), "list of tensors"),
    "groups": (
        lambda npu: npu.npu_grouped_matmul(
            [draw(4, 3)],
            [draw(2, 3, 3)],
            group_list=torch.tensor([1, 2]),
            group_type=0,
            split_item=2,
        ),
        "do not cover",
    ),
    "ffn gelu": (lambda npu: npu.npu_ffn(*[draw(2, 2)] * 3, "gelu"), "not described"),
    "dropped tokens": (
        lambda npu: npu.npu_moe_token_permute(draw(2, 3), torch.zeros(2, 2).int(), 3),
        "drops tokens",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals(torch_npu: ModuleType, case: str) -> None:
    call, message = REFUSALS[case]
    with pytest.raises((RuntimeError, NotImplementedError), match=re.escape(message)):
        call(torch_npu)
