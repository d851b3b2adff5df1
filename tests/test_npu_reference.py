"""The reference operators against other ways to compute the same."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from fused_execution import difference, draw, gradients_of, require_gradients
from npulens_emulator.operators import OPERATORS


def same(
    one: Callable[..., Tensor],
    other: Callable[..., Tensor],
    *inputs: Tensor,
    gradients: bool = True,
) -> None:
    """Assert that two functions agree in values and gradients."""
    results = []
    for function in (one, other):
        copies, leaves = require_gradients({str(i): each for i, each in enumerate(inputs)})
        output = function(*copies.values())
        found = gradients_of([output], leaves, 0) if gradients else {}
        results.append({"output": output.detach(), **found})
    for name, expected in results[1].items():
        assert not difference(expected, results[0][name]), name


def test_every_operator_is_compared() -> None:
    """Here or, attention, in a file of its own."""
    here = Path(__file__)
    texts = (here, here.with_name("test_npu_attention.py"))
    text = "".join(path.read_text(encoding="utf-8") for path in texts)
    assert [name for name in OPERATORS if not re.search(rf"\b{name}\b", text)] == []


@pytest.mark.parametrize("shape", [(8,), (3, 8)])
def test_rms_norm(torch_npu: ModuleType, shape: tuple[int, ...]) -> None:
    same(
        lambda x, gamma: torch_npu.npu_rms_norm(x, gamma, 0.1)[0],
        lambda x, gamma: functional.rms_norm(x, shape, gamma, 0.1),
        draw(2, 3, 8),
        draw(*shape, seed=1),
    )
    half = torch_npu.npu_rms_norm(draw(2, 3, 8).bfloat16(), draw(*shape, seed=1))
    assert [each.dtype for each in half] == [torch.bfloat16, torch.float32]


def test_add_rms_norm(torch_npu: ModuleType) -> None:
    x, y, gamma = draw(2, 8), draw(2, 8, seed=1), draw(8, seed=2)
    normal, _, total = torch_npu.npu_add_rms_norm(x, y, gamma, 1e-3)
    assert torch.equal(total, x + y)
    torch.testing.assert_close(normal, functional.rms_norm(x + y, (8,), gamma, 1e-3))


def test_group_norms(torch_npu: ModuleType) -> None:
    inputs = draw(2, 6, 5), draw(6, seed=1), draw(6, seed=2)
    same(
        lambda x, weight, bias: torch_npu.npu_group_norm_swish(x, 3, weight, bias)[0],
        lambda x, weight, bias: functional.silu(functional.group_norm(x, 3, weight, bias)),
        *inputs,
    )
    same(
        lambda x, weight, bias: torch_npu.npu_group_norm_silu(x, weight, bias, 3)[0],
        lambda x, weight, bias: functional.silu(functional.group_norm(x, 3, weight, bias)),
        *inputs,
        gradients=False,
    )
    scaled = torch_npu.npu_group_norm_swish(*inputs[:1], 3, *inputs[1:], swish_scale=2.0)[0]
    normal = functional.group_norm(inputs[0], 3, *inputs[1:])
    torch.testing.assert_close(scaled, normal / (1 + torch.exp(-2 * normal)))


@pytest.mark.parametrize("dim", [0, -1])
def test_gated_activations(torch_npu: ModuleType, dim: int) -> None:
    def halves(x: Tensor) -> Sequence[Tensor]:
        return x.split(x.shape[dim] // 2, dim)

    x = draw(4, 6)
    same(
        lambda x: torch_npu.npu_swiglu(x, dim),
        lambda x: halves(x)[0] / (1 + torch.exp(-halves(x)[0])) * halves(x)[1],
        x,
    )
    same(
        lambda x: torch_npu.npu_geglu(x, dim, 0)[0],
        lambda x: halves(x)[0] * halves(x)[1] * torch.special.ndtr(halves(x)[1]),
        x,
    )
    same(
        lambda x: torch_npu.npu_geglu(x, dim, activate_left=True)[0],
        lambda x: functional.gelu(halves(x)[0], approximate="tanh") * halves(x)[1],
        x,
    )


def test_plain_activations(torch_npu: ModuleType) -> None:
    x = draw(5, 7)
    same(torch_npu.npu_gelu, lambda x: x * torch.special.ndtr(x), x)
    same(
        lambda x: torch_npu.npu_gelu(x, approximate="tanh"),
        lambda x: x / 2 * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (x + 0.044715 * x**3))),
        x,
    )
    for name in ("npu_fast_gelu", "fast_gelu"):
        same(getattr(torch_npu, name), lambda x: x / (1 + torch.exp(-1.702 * x)), x)


@pytest.mark.parametrize("interleave", [False, True])
def test_rotary_is_a_complex_product(torch_npu: ModuleType, interleave: bool) -> None:
    angles = draw(1, 1, 5, 4, seed=1)

    def span(half: Tensor) -> Tensor:
        return half.repeat_interleave(2, -1) if interleave else torch.cat((half, half), -1)

    def turned(x: Tensor) -> Tensor:
        pairs = x.unflatten(-1, (4, 2)) if interleave else x.unflatten(-1, (2, 4)).mT
        product = torch.view_as_complex(pairs.contiguous()) * torch.exp(1j * angles)
        back = torch.view_as_real(product)
        return (back if interleave else back.mT).flatten(-2)

    mode = "interleave" if interleave else "half"
    cosines, sines = span(angles.cos()), span(angles.sin())
    x = draw(2, 3, 5, 8)
    same(lambda x: torch_npu.npu_rotary_mul(x, cosines, sines, mode), turned, x)


@pytest.mark.parametrize(
    ("x", "r", "mode", "taken"),
    [
        ((2, 3, 5, 8), (1, 1, 5, 8), "half", True),
        ((2, 3, 5, 8), (2, 1, 5, 8), "half", True),
        ((2, 3, 5, 8), (2, 1, 5, 8), "interleave", False),
        ((2, 5, 3, 8), (1, 5, 1, 8), "interleave", True),
        ((2, 5, 3, 8), (2, 5, 1, 8), "half", True),
        ((7, 3, 8), (7, 1, 8), "half", True),
        ((7, 3, 8), (1, 3, 8), "half", False),
        ((2, 3, 5, 8), (5, 8), "half", False),
        ((2, 3, 5, 8), (1, 1, 5, 4), "half", False),
        ((2, 3, 5, 7), (1, 1, 5, 7), "half", False),
        ((2, 3, 5, 8), (1, 1, 1, 8), "half", False),
    ],
)
def test_rotary_takes_the_documented_shapes(
    torch_npu: ModuleType, x: tuple[int, ...], r: tuple[int, ...], mode: str, taken: bool
) -> None:
    if taken:
        assert torch_npu.npu_rotary_mul(draw(*x), draw(*r), draw(*r), mode).shape == x
    else:
        with pytest.raises(RuntimeError, match="npu_rotary_mul"):
            torch_npu.npu_rotary_mul(draw(*x), draw(*r), draw(*r), mode)


def test_scaled_masked_softmax(torch_npu: ModuleType) -> None:
    mask = torch.triu(torch.ones(32, 64, dtype=torch.bool), 1)
    same(
        lambda x: torch_npu.npu_scaled_masked_softmax(x, mask, 0.5),
        lambda x: torch.softmax(torch.where(mask, -1e9, x * 0.5), -1),
        draw(2, 3, 32, 64),
    )


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_cross_entropy(torch_npu: ModuleType, reduction: str) -> None:
    target = torch.tensor([3, 0, -100, 1])

    def expected(x: Tensor) -> Tensor:
        loss = functional.cross_entropy(x, target, reduction=reduction)
        return loss if reduction == "none" else loss.unsqueeze(0)

    same(
        lambda x: torch_npu.npu_cross_entropy_loss(x, target, reduction=reduction)[0],
        expected,
        draw(4, 5),
    )


@pytest.mark.parametrize(
    ("options", "trains"),
    [
        ({}, True),
        ({"ignore_index": 0}, False),
        ({"label_smoothing": 0.1}, False),
        ({"weight": torch.ones(5)}, False),
        ({"reduction": "sum", "ignore_index": 0}, True),
        ({"reduction": "none", "weight": torch.ones(5)}, True),
        ({"reduction": "sum", "label_smoothing": 0.1}, False),
    ],
)
def test_cross_entropy_options_that_have_no_backward(
    torch_npu: ModuleType, options: dict[str, Any], trains: bool
) -> None:
    x, target = draw(4, 5), torch.tensor([3, 0, 2, 1])
    expected = functional.cross_entropy(x, target, **options)
    found = torch_npu.npu_cross_entropy_loss(x, target, **options)[0]
    torch.testing.assert_close(found.reshape(expected.shape), expected)
    if trains:
        torch_npu.npu_cross_entropy_loss(x.requires_grad_(), target, **options)[0].sum().backward()
    else:
        with pytest.raises(torch_npu.BackwardError):
            torch_npu.npu_cross_entropy_loss(x.requires_grad_(), target, **options)


def test_grouped_matmul(torch_npu: ModuleType) -> None:
    x, weight = draw(7, 3), draw(3, 3, 4, seed=1)
    expected = torch.cat([x[:2] @ weight[0], x[2:2] @ weight[1], x[2:] @ weight[2]])
    for kind, groups in ((0, [2, 2, 7]), (1, [2, 0, 5])):
        [found] = torch_npu.npu_grouped_matmul(
            [x],
            [weight],
            group_list=torch.tensor(groups),
            group_list_type=kind,
            group_type=0,
            split_item=2,
        )
        torch.testing.assert_close(found, expected)
    several = torch_npu.npu_grouped_matmul([x, x[:2]], list(weight[:2]), bias=[draw(4), draw(4)])
    torch.testing.assert_close(several[1], torch.addmm(draw(4), x[:2], weight[1]))


def test_ffn(torch_npu: ModuleType) -> None:
    first, second, x = nn.Linear(6, 8), nn.Linear(8, 6), draw(2, 3, 6)
    with torch.no_grad():
        expected = second(functional.silu(first(x)))
        found = torch_npu.npu_ffn(
            *(x, first.weight.t(), second.weight.t(), "silu"),
            bias1=first.bias,
            bias2=second.bias,
        )
    torch.testing.assert_close(found, expected)


def test_token_permutation(torch_npu: ModuleType) -> None:
    experts = torch.tensor([[2, 0], [1, 2], [0, 1]])
    x, probabilities = draw(3, 4), draw(3, 2, seed=1)
    rows, _ = torch_npu.npu_moe_token_permute(x, experts)
    assert torch.equal(rows, x[[0, 2, 1, 2, 0, 1]])

    def there_and_back(x: Tensor, probabilities: Tensor) -> Tensor:
        rows, order = torch_npu.npu_moe_token_permute(x, experts)
        scales = torch.tensor([1.0, 1.0, 2.0, 2.0, 3.0, 3.0]).unsqueeze(-1)
        return torch_npu.npu_moe_token_unpermute(rows * scales, order, probabilities)

    same(
        there_and_back,
        lambda x, probabilities: x * (probabilities * (experts + 1)).sum(-1, keepdim=True),
        x,
        probabilities,
    )


def test_drop_path(torch_npu: ModuleType) -> None:
    drop_path = torch_npu.contrib.module.NpuDropPath
    x = draw(4000, 2)
    with pytest.raises(TypeError):
        drop_path()
    model = nn.Sequential(drop_path(0.25))
    assert torch.equal(model(x), x)
    drop_path.enable_droppath_ensemble(model)
    torch.manual_seed(0)
    dropped = model(x)
    stays = dropped[:, 0] != 0
    assert 0.7 < stays.float().mean() < 0.8
    torch.testing.assert_close(dropped[stays], x[stays] / 0.75)
    assert torch.equal(model.eval()(x), x)
    assert not model.state_dict()


def test_matmul_transpose(torch_npu: ModuleType) -> None:
    same(
        torch_npu.contrib.function.matmul_transpose,
        lambda a, b: torch.einsum("bik,bjk->bij", a, b),
        draw(2, 3, 4),
        draw(2, 5, 4, seed=1),
    )


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1, "nesterov": True}),
        ("Adam", {"amsgrad": True}),
        ("AdamW", {}),
        ("Adadelta", {"weight_decay": 0.1}),
        ("RMSprop", {"momentum": 0.5, "centered": True}),
    ],
)
def test_optimizers(torch_npu: ModuleType, name: str, options: dict[str, Any]) -> None:
    ends = []
    for make in (getattr(torch.optim, name), getattr(torch_npu.optim, f"NpuFused{name}")):
        parameter = nn.Parameter(draw(5))
        optimizer = make([parameter], **options)
        for _ in range(3):
            optimizer.zero_grad()
            parameter.pow(3).sum().backward()
            optimizer.step()
        ends.append(parameter.detach())
        assert not torch.equal(ends[-1], draw(5))
    assert torch.equal(*ends)
    fused = getattr(torch_npu.optim, f"NpuFused{name}")
    for option in ("foreach", "maximize", "fused"):
        with pytest.raises(TypeError):
            fused([nn.Parameter(draw(1))], lr=0.1, **{option: False})


def test_fused_sgd_wants_a_learning_rate(torch_npu: ModuleType) -> None:
    with pytest.raises(TypeError):
        torch_npu.optim.NpuFusedSGD([nn.Parameter(draw(1))])
