"""Compares the operators of PyTorch on the emulated NPU with the CPU, on PyTorch's own samples.

    export PYTHONPATH=server:server/npulens_emulator/stand_in
    python tests/operator_comparison.py --samples 1000

Of each entry in PyTorch's list of operators the first `--samples` inputs, in float32 where it takes
that, are computed on both, values and gradients. Prints one JSON object: the operators that
`agree`, those that `differ` with the reason, those that were `left_out` with the reason, and how
many results and `gradients` were compared. Random numbers are drawn from one generator, so that
random operators can be compared.
"""

# ruff: noqa: E402 (PyTorch is imported when the process is prepared for it)

import json
import os
import sys
import traceback
import warnings
from argparse import ArgumentParser
from collections.abc import Iterator
from types import ModuleType
from typing import Any
from unittest import TestCase

os.environ["NPULENS_SHARED_RANDOM"] = "1"
warnings.simplefilter("ignore")
# PyTorch's list of operators stands beside its test cases, whose base class is in a package that
# nothing else needs.
sys.modules["expecttest"] = ModuleType("expecttest")
sys.modules["expecttest"].TestCase = TestCase  # type: ignore[attr-defined]

import torch
import torch_npu
from torch import Tensor
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_leaves, tree_map

UNINITIALISED = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty"} | {
    *("new_empty_strided", "resize_", "resize_as_")
}
"""What these hold is by chance; devices and shapes are compared."""

_SPARSE = "sparse tensors are not emulated"
LEFT_OUT = {
    "to": "moves between devices",
    **dict.fromkeys(("item", "equal", "allclose"), "answers on the host"),
    **dict.fromkeys(("sparse.sampled_addmm", "sparse.mm reduce", "to_sparse"), _SPARSE),
    "as_strided partial_views": "reads beyond its input, of which a copy has nothing",
    "tensor_split": "takes a tensor of indices on the host alone, on any device",
}
TOLERANCES = {
    # Of one element it is 0 / sqrt(eps), which makes 300 times as much of a rounding.
    **dict.fromkeys(("nn.functional.layer_norm", "native_layer_norm"), 1e-3),
    # The CPU has a kernel of its own for the whole, which another device has not.
    "nn.functional.scaled_dot_product_attention": 1e-4,
}


class _LeftOut(Exception):  # noqa: N818
    """An operator cannot be compared; the text says why."""


def tensors(value: Any) -> list[Tensor]:
    return [each for each in tree_leaves(value) if isinstance(each, Tensor)]


def moved(value: Any) -> Any:
    """The same arguments for the NPU."""

    def move(each: Any) -> Any:
        if isinstance(each, Tensor):
            return each.detach().clone().npu().requires_grad_(each.requires_grad)
        if isinstance(each, torch.device) or each == "cpu":
            return torch.device("npu")
        return each

    return tree_map(move, value)


def is_on_npu(value: Any) -> bool:
    """Whether arguments have a tensor of the NPU among them, or its name."""
    return any(
        each.device.type == "npu" if isinstance(each, Tensor) else str(each).startswith("npu")
        for each in tree_leaves(value)
    )


def close(found: Tensor, expected: Tensor, operator: str) -> None:
    assert found.shape == expected.shape and found.dtype == expected.dtype
    if operator in UNINITIALISED:
        return
    tolerance = TOLERANCES.get(operator)  # without one, PyTorch's own for the dtype
    torch.testing.assert_close(
        found.detach().cpu(),
        expected.detach(),
        atol=tolerance,
        rtol=tolerance,
        equal_nan=True,
        check_stride=False,
    )


def weighted(results: list[Tensor]) -> Tensor:
    """A number that depends on each element in its own way, to take gradients of."""
    total = torch.zeros(())
    for result in results:
        plain = torch.view_as_real(result) if result.is_complex() else result
        weights = torch.linspace(0.1, 1, plain.numel(), device="cpu").to(plain.device)
        total = total.to(plain.device) + (plain * weights.view(plain.shape)).float().sum()
    return total


def gradients(results: Any, arguments: Any) -> list[Tensor | None] | None:
    """The gradients of all arguments that want one; `None` if there are none."""
    trained = [each for each in tensors(results) if each.requires_grad]
    leaves = [each for each in tensors(arguments) if each.requires_grad]
    if not trained or not leaves:
        return None
    return list(torch.autograd.grad(weighted(trained), leaves, allow_unused=True))


def called(operator: Any, arguments: tuple[Any, Any, Any], wants: bool) -> Any:
    """The result and the gradients of one call, from a fixed state of the generator."""
    first, rest, named = arguments
    torch.manual_seed(0)
    result = operator(first, *rest, **named)
    return result, gradients(result, arguments) if wants else None


def name_of(operator: Any) -> str:
    return f"{operator.name} {operator.variant_test_name}".strip()


def compared(operator: Any, samples: int) -> tuple[int, int]:
    """How many results and gradients agree.

    Raises:
        _LeftOut: The CPU cannot compute the samples.
        Exception: Something differs, or the NPU cannot.
    """
    if name_of(operator) in LEFT_OUT:
        raise _LeftOut(LEFT_OUT[name_of(operator)])
    dtypes = operator.supported_dtypes("cpu")
    dtype = torch.float32 if torch.float32 in dtypes else next(iter(sorted(dtypes, key=str)), None)
    wants = operator.supports_autograd and dtype is torch.float32
    done = results = count = 0
    for sample in _samples(operator, dtype, wants, samples):
        arguments = (sample.input, sample.args, sample.kwargs)
        given = moved(arguments)
        try:
            expected, slopes = called(operator, arguments, wants)
        except Exception:  # a sample that is for other devices
            continue
        done += 1
        found, found_slopes = called(operator, given, wants)
        for one, other in zip(tensors(found), tensors(expected), strict=True):
            assert one.is_npu or not is_on_npu(given), f"the result is on {one.device}"
            close(one, other, operator.name)
            results += 1
        for slope, right in zip(found_slopes or [], slopes or [], strict=True):
            assert (slope is None) == (right is None)
            if slope is not None and right is not None:
                close(slope, right, operator.name)
                count += 1
    if not done:
        raise _LeftOut("the CPU computes no sample")
    return results, count


def _samples(operator: Any, dtype: Any, wants: bool, samples: int) -> Iterator[Any]:
    try:
        made = operator.sample_inputs("cpu", dtype, requires_grad=wants)
        for _, sample in zip(range(samples), made, strict=False):
            yield sample
    except Exception as error:
        raise _LeftOut(f"no samples: {type(error).__name__}") from error


def main() -> None:
    parser = ArgumentParser()
    parser.add_argument("--samples", type=int, default=2)
    options = parser.parse_args()
    assert torch_npu.npu.is_available()
    torch.set_num_threads(1)
    agree: list[str] = []
    differ: dict[str, str] = {}
    left_out: dict[str, str] = {}
    results = slopes = 0
    for operator in op_db:
        name = name_of(operator)
        try:
            found = compared(operator, options.samples)
            results, slopes = results + found[0], slopes + found[1]
            agree.append(name)
        except _LeftOut as reason:
            left_out[name] = str(reason)
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1].name
            differ[name] = f"{type(error).__name__} in {place}: {str(error)[:300]}"
    counts = {"results": results, "gradients": slopes}
    json.dump({**counts, "agree": agree, "differ": differ, "left_out": left_out}, sys.stdout)


if __name__ == "__main__":
    main()
