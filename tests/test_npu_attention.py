"""The reference of `npu_fusion_attention` against PyTorch's own attention, and its refusals."""

import re
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from fused_execution import difference, draw, gradients_of, require_gradients

TRIANGLE = torch.triu(torch.ones(2048, 2048, dtype=torch.bool), diagonal=1)


def heads(rows: int, columns: int, key_heads: int = 4) -> dict[str, Tensor]:
    """Query, key and value in BNSD, with leaves that require gradients."""
    return {
        "query": draw(2, 4, rows, 8),
        "key": draw(2, key_heads, columns, 8, seed=1),
        "value": draw(2, key_heads, columns, 8, seed=2),
    }


def check(
    torch_npu: ModuleType, tensors: dict[str, Tensor], left_out: Tensor, **options: Any
) -> None:
    """Assert that the operator equals attention that takes part where `left_out` is False."""
    results = []
    for fused in (True, False):
        copies, leaves = require_gradients(tensors)
        query, key, value = copies.values()
        if fused:
            out = torch_npu.npu_fusion_attention(query, key, value, 4, "BNSD", **options)[0]
        else:
            out = functional.scaled_dot_product_attention(
                *(query, key, value, ~left_out.expand(2, 4, *left_out.shape[-2:])),
                scale=options.get("scale", 1.0),
                enable_gqa=True,
            )
        results.append({"output": out.detach(), **gradients_of([out], leaves, 0)})
    for name, expected in results[1].items():
        assert not difference(expected, results[0][name]), name


def outside(rows: int, columns: int, first: int, last: int) -> Tensor:
    """Left out: all columns but those from `row + first` to `row + last`."""
    distance = torch.arange(columns) - torch.arange(rows).unsqueeze(1)
    return (distance < first) | (distance > last)


@pytest.mark.parametrize("key_heads", [4, 2, 1])
def test_without_mask(torch_npu: ModuleType, key_heads: int) -> None:
    nothing = torch.zeros(5, 7, dtype=torch.bool)
    check(torch_npu, heads(5, 7, key_heads), nothing, scale=8**-0.5)
    check(torch_npu, heads(5, 7, key_heads), nothing)


def test_a_mode_without_mask_computes_everything(torch_npu: ModuleType) -> None:
    nothing = torch.zeros(5, 5, dtype=torch.bool)
    check(torch_npu, heads(5, 5), nothing, sparse_mode=3)
    check(torch_npu, heads(5, 5), nothing, pre_tockens=1, next_tockens=0)


@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize("shape", [(5, 7), (1, 1, 5, 7), (2, 1, 5, 7), (2, 4, 5, 7)])
@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8])
def test_a_mask_is_true_where_masked_out(
    torch_npu: ModuleType, mode: int, shape: tuple[int, ...], dtype: torch.dtype
) -> None:
    left_out = draw(*shape, seed=3) > 0.5
    left_out[..., 0] = False
    check(torch_npu, heads(5, 7), left_out, atten_mask=left_out.to(dtype), sparse_mode=mode)


@pytest.mark.parametrize(
    ("rows", "columns", "options", "first", "last"),
    [
        (5, 5, {"sparse_mode": 2}, -9, 0),
        (5, 7, {"sparse_mode": 2}, -9, 0),
        (5, 7, {"sparse_mode": 3}, -9, 2),
        (5, 5, {"sparse_mode": 3}, -9, 0),
        (5, 7, {"sparse_mode": 4, "pre_tockens": 1, "next_tockens": 0}, 1, 2),
        (6, 6, {"sparse_mode": 4, "pre_tockens": 2, "next_tockens": 1}, -2, 1),
    ],
)
def test_compressed_masks(
    torch_npu: ModuleType, rows: int, columns: int, options: dict[str, Any], first: int, last: int
) -> None:
    left_out = outside(rows, columns, first, last)
    check(torch_npu, heads(rows, columns), left_out, atten_mask=TRIANGLE, **options)


def test_causal_is_top_left_in_pytorch_and_in_mode_2(torch_npu: ModuleType) -> None:
    query, key, value = heads(5, 7).values()
    expected = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    options = {"scale": 8**-0.5, "atten_mask": TRIANGLE}
    call = torch_npu.npu_fusion_attention
    same = call(query, key, value, 4, "BNSD", sparse_mode=2, **options)[0]
    other = call(query, key, value, 4, "BNSD", sparse_mode=3, **options)[0]
    torch.testing.assert_close(same, expected)
    assert not torch.allclose(other, expected, atol=0.1)


@pytest.mark.parametrize("layout", ["BSH", "SBH", "BSND"])
@pytest.mark.parametrize("key_heads", [4, 2])
def test_layouts(torch_npu: ModuleType, layout: str, key_heads: int) -> None:
    def there(tensor: Tensor) -> Tensor:
        swapped = tensor.transpose(1, 2)
        if layout == "BSND":
            return swapped
        return swapped.flatten(2) if layout == "BSH" else swapped.flatten(2).transpose(0, 1)

    tensors = heads(5, 7, key_heads).values()
    expected = torch_npu.npu_fusion_attention(*tensors, 4, "BNSD")[0]
    found = torch_npu.npu_fusion_attention(*map(there, tensors), 4, layout)[0]
    torch.testing.assert_close(found, there(expected))


@pytest.mark.parametrize("causal", [False, True])
def test_sequences_behind_each_other(torch_npu: ModuleType, causal: bool) -> None:
    query, key, value = draw(9, 4, 8), draw(12, 2, 8, seed=1), draw(12, 2, 8, seed=2)
    options = {"atten_mask": TRIANGLE, "sparse_mode": 3} if causal else {}
    found = torch_npu.npu_fusion_attention(
        *(query, key, value, 4, "TND"), actual_seq_qlen=[2, 9], actual_seq_kvlen=[4, 12], **options
    )[0]
    parts = [
        torch_npu.npu_fusion_attention(
            *(query[None, q], key[None, k], value[None, k], 4, "BSND"), **options
        )[0][0]
        for q, k in ((slice(2), slice(4)), (slice(2, 9), slice(4, 12)))
    ]
    torch.testing.assert_close(found, torch.cat(parts))


def test_half_precision_keeps_its_dtype(torch_npu: ModuleType) -> None:
    tensors = [tensor.bfloat16() for tensor in heads(5, 7).values()]
    found = torch_npu.npu_fusion_attention(*tensors, 4, "BNSD")[0]
    exact = torch_npu.npu_fusion_attention(*[each.float() for each in tensors], 4, "BNSD")[0]
    assert torch.equal(found, exact.bfloat16())


def test_dropout(torch_npu: ModuleType) -> None:
    query, key, value = (
        torch.zeros(1, 1, 50, 8),
        torch.zeros(1, 1, 100, 8),
        torch.ones(1, 1, 100, 8),
    )
    torch.manual_seed(0)
    out = torch_npu.npu_fusion_attention(query, key, value, 1, "BNSD", keep_prob=0.7)[0]
    assert abs(float(out.mean()) - 1) < 0.05
    assert float(out.std()) > 0.01


REFUSALS: dict[str, tuple[dict[str, Any], str]] = {
    "layout": ({"input_layout": "NBSD"}, "unknown input_layout"),
    "wrong layout": ({"input_layout": "BSND"}, "query has 5 heads, not 4"),
    "head number": ({"head_num": 2}, "query has 4 heads, not 2"),
    "head tensor": ({"head_num": 4.0}, "must be an int"),
    "keep_prob": ({"keep_prob": 0.0}, "keep_prob"),
    "padding mask": ({"padding_mask": TRIANGLE}, "not supported"),
    "pse": ({"pse": draw(2, 4, 5, 7)}, "pse is not described"),
    "sink": ({"sink": draw(4)}, "sink is not described"),
    "prefix": ({"prefix": [1, 2]}, "prefix is not described"),
    "float mask": ({"atten_mask": draw(5, 7)}, "must be bool or uint8"),
    "mask shape": ({"atten_mask": TRIANGLE[:7, :5]}, "fits none of"),
    "mask of heads": ({"atten_mask": torch.zeros(1, 4, 5, 7).bool()}, "fits none of"),
    "small triangle": ({"atten_mask": TRIANGLE[:5, :7], "sparse_mode": 3}, "triangle 2048x2048"),
    "kept triangle": ({"atten_mask": ~TRIANGLE, "sparse_mode": 3}, "triangle 2048x2048"),
    "mode 6": ({"atten_mask": TRIANGLE, "sparse_mode": 6}, "sparse_mode 6 is not described"),
    "mode 9": ({"atten_mask": TRIANGLE, "sparse_mode": 9}, "unknown sparse_mode"),
    "band": ({"atten_mask": torch.zeros(5, 7).bool(), "next_tockens": 0}, "do not agree"),
    "empty row": ({"atten_mask": torch.ones(5, 7).bool()}, "every position is masked"),
    "float64": ({"query": draw(2, 4, 5, 8).double()}, "does not take torch.float64"),
    "dtypes": ({"query": draw(2, 4, 5, 8).half()}, "one dtype"),
    "key heads": ({"key": draw(2, 3, 7, 8), "value": draw(2, 3, 7, 8)}, "do not fit key heads"),
    "head size": ({"query": draw(2, 4, 5, 6)}, "head sizes differ"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals(torch_npu: ModuleType, case: str) -> None:
    options, message = REFUSALS[case]
    call = {**heads(5, 7), "head_num": 4, "input_layout": "BNSD", **options}
    with pytest.raises((RuntimeError, NotImplementedError), match=re.escape(message)):
        torch_npu.npu_fusion_attention(**call)


@pytest.mark.parametrize(
    ("ends", "error", "message"),
    [
        (torch.tensor([2, 5]), TypeError, "list of int"),
        (None, TypeError, "list of int"),
        ([0, 2, 5], RuntimeError, "without the leading 0"),
        ([2, 3], RuntimeError, "does not end at T"),
        ([5, 2], RuntimeError, "cumulative"),
    ],
)
def test_refused_ends(
    torch_npu: ModuleType, ends: Any, error: type[Exception], message: str
) -> None:
    tensors = [draw(5, 4, 8)] * 3
    with pytest.raises(error, match=message):
        torch_npu.npu_fusion_attention(
            *tensors, 4, "TND", actual_seq_qlen=ends, actual_seq_kvlen=[2, 5]
        )


def test_sequences_take_no_full_mask(torch_npu: ModuleType) -> None:
    ends = {"actual_seq_qlen": [2, 5], "actual_seq_kvlen": [2, 5]}
    with pytest.raises(NotImplementedError, match="full mask"):
        torch_npu.npu_fusion_attention(
            *[draw(5, 4, 8)] * 3, 4, "TND", atten_mask=TRIANGLE[:5, :5], **ends
        )
