"""The patterns in `rules/fused` compute what the operators do that replace them."""

import inspect
import sys
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any, NamedTuple

import pytest
import torch

from fused_execution import (
    Run,
    assert_same_behaviour,
    differences,
    flat_tensors,
    gradients_of,
    load_module,
    make_value,
    reference_torch_npu,
    require_gradients,
    run_module,
)
from npulens.catalog.model import PatternSource
from npulens.fused.patterns import read_patterns
from npulens.fused.replacement_layout import without_unbound
from npulens.graphs.nodes import INPUT, reachable

pytestmark = pytest.mark.emulated

FUSED = Path(__file__).resolve().parents[1] / "rules" / "fused"
FILES = sorted(FUSED.glob("*.py"))


class Draw(NamedTuple):
    """How the inputs of an example are drawn."""

    dtype: torch.dtype
    seed: int
    scale: float


DRAWS = (
    Draw(torch.float32, 0, 1.0),
    # Small inputs tell where an epsilon stands, large ones where a product saturates.
    Draw(torch.float32, 1, 0.02),
    Draw(torch.float32, 2, 4.0),
    Draw(torch.float64, 3, 1.0),
    Draw(torch.bfloat16, 4, 1.0),
)


class Pair(NamedTuple):
    """A pattern as a function, and what replaces it.

    Attributes:
        name: Of the pattern and the forms chosen for it.
        pattern: The pattern.
        replacement: Takes some of its parameters.
        used: The parameters it takes.
        examples: The name of the list of its examples.
    """

    name: str
    pattern: Callable[..., object]
    replacement: Callable[..., object]
    used: frozenset[str]
    examples: str = "EXAMPLES"


def pairs(path: Path, module: ModuleType) -> Iterator[Pair]:
    """Each pattern of a file in each of its forms, as far as something replaces it."""
    functions = dict(vars(module))
    if "FORMS" in functions:
        yield from _pairs_in_forms(path, module)
        return
    for name, function in functions.items():
        if name == "pattern" or name.startswith("pattern_"):
            own = "replacement" + name.removeprefix("pattern")
            replacement = functions.get(own, functions.get("replacement"))
            if replacement is not None:
                used = inspect.signature(replacement).parameters.keys()
                yield Pair(name, function, replacement, frozenset(used))


def _pairs_in_forms(path: Path, module: ModuleType) -> Iterator[Pair]:
    """What is written for a form that lacks some names is made a function here."""
    source = PatternSource(path.name, path.read_text(encoding="utf-8"), frozenset())
    functions = dict(vars(module))
    for pattern in read_patterns((source,)):
        name = pattern.name.rpartition(" ")[2]
        used = {str(node.label) for node in reachable(pattern.root) if node.operator == INPUT}
        if pattern.replacement is None:
            continue
        for form, chosen in pattern.choice.items():
            setattr(module, form, functions[chosen])
        kinds = ["replacement", *list(functions.get("PROVIDED", {}))[1:]]
        replacements = (pattern.replacement, *pattern.alternatives)
        for kind, replacement in zip(kinds, replacements, strict=True):
            defaults = replacement.defaults
            text = without_unbound(replacement.text, defaults, defaults.keys() - used)
            written = eval(f"lambda {', '.join(sorted(used))}: {text}", vars(module))
            shown = " ".join([name, kind, *pattern.choice.values()])
            examples = "EXAMPLES" if kind == "replacement" else f"EXAMPLES_{kind.upper()}"
            yield Pair(shown, functions[name], written, frozenset(used), examples)


def problems(path: Path) -> list[str]:
    """What is wrong with a file of patterns, one line each; none if its numbers agree."""
    with reference_torch_npu() as torch_npu:
        module = load_module(path.read_text(encoding="utf-8"), path.stem)
        found = []
        known = pairs(path, module)
        first = next(known, None)
        if first is None and not hasattr(module, "ALMOST") and not hasattr(module, "OPERATOR"):
            found.append("no pattern with a replacement, and no ALMOST or OPERATOR")
        for name, pattern, replacement, used, listed in chain([first] if first else [], known):
            parameters = inspect.signature(pattern).parameters.keys()
            foreign = inspect.signature(replacement).parameters.keys() - parameters
            examples = [each for each in getattr(module, listed, []) if each.keys() == parameters]
            if foreign:
                found.append(f"{name}: the replacement wants {sorted(foreign)}")
            elif not examples:
                found.append(f"{name}: no example has just {sorted(parameters)}")
            else:
                found += compare(torch_npu, name, pattern, replacement, examples, used)
        return [f"{path.name}: {line}" for line in found]


def compare(
    torch_npu: ModuleType,
    name: str,
    pattern: Callable[..., object],
    replacement: Callable[..., object],
    examples: list[dict[str, object]],
    used: frozenset[str],
) -> list[str]:
    """Run both on all examples and draws; a dtype that the operator refuses is left out."""
    found = []
    wanted = used
    for number, example in enumerate(examples):
        for draw in DRAWS:
            if "complex" in str(example) and draw.dtype == torch.bfloat16:
                continue  # there are no complex numbers of bfloat16
            generator = torch.Generator().manual_seed(draw.seed)
            values = {
                key: make_value(described, generator, draw.dtype, draw.scale)
                for key, described in example.items()
            }
            place = f"{name}, example {number} {example}, seed {draw.seed}, {draw.dtype}"
            try:
                actual = execute(torch_npu, replacement, values, list(wanted), draw.seed)
                expected = execute(torch_npu, pattern, values, list(values), draw.seed)
            except torch_npu.DtypeError as refusal:
                if draw.dtype == torch.float32:
                    found.append(f"{place}: {refusal}")
                continue
            except Exception as error:
                found.append(f"{place}: {type(error).__name__}: {error}")
                continue
            if not actual.gradients:
                expected = expected._replace(gradients={})
            found += [f"{place}: {line}" for line in differences(expected, actual)]
    return found


def execute(
    torch_npu: ModuleType,
    function: Callable[..., object],
    values: dict[str, Any],
    wanted: list[str],
    seed: int,
) -> Run:
    """Outputs and gradients; no gradients where an operator has no backward pass."""
    copies, leaves = require_gradients(values)
    torch.manual_seed(seed)
    try:
        outputs = flat_tensors(function(**{name: copies[name] for name in wanted}))
        gradients = gradients_of(outputs, leaves, seed)
    except torch_npu.BackwardError:
        torch.manual_seed(seed)
        with torch.no_grad():
            outputs = flat_tensors(function(**{name: copies[name] for name in wanted}))
        gradients = {}
    return Run([output.detach() for output in outputs], gradients, [])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_replacement_computes_what_the_pattern_does(path: Path) -> None:
    found = problems(path)
    assert not found, "\n".join(found[:20])


NORM = """
    import torch
    import torch_npu
    EXAMPLES = [{"x": (2, 8), "weight": (8,), "eps": 1e-6}]
    def pattern(x, weight, eps):
        return weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps))
    def replacement(x, weight, eps):
        return torch_npu.npu_rms_norm(x, weight, epsilon=eps)[0]
"""


@pytest.mark.parametrize(
    ("right", "wrong", "expected"),
    [
        ("+ eps)", "+ 2 * eps)", "seed 1, torch.float32: output 0: largest difference"),
        ("rsqrt(x.pow(2)", "rsqrt(x.detach().pow(2)", "float32: gradient of x: largest difference"),
        ("return weight *", "return weight.detach() *", "gradient of weight"),
        (".mean(-1, ", ".var(-1, correction=0, ", "output 0"),
        ("epsilon=eps)[0]", "epsilon=eps)[1]", "shape (2, 1) instead of (2, 8)"),
        ("epsilon=eps)[0]", "epsilon=eps)", "2 outputs instead of 1"),
        ("rsqrt(x.pow(2)", "rsqrt(x.double().pow(2)", "dtype torch.float32 instead of"),
        ("def replacement(x,", "def replacement(y,", "the replacement wants ['y']"),
        (
            "x, weight, eps):\n        return w",
            "x, weight, e, eps=0):\n        return w",
            "no exam",
        ),
        ("def pattern", "def other", "no pattern with a replacement"),
        ("npu_rms_norm(x,", "npu_rms_norm(x.double(),", "does not take torch.float64"),
        ("npu_rms_norm(x,", "npu_rms_norm(x[:, :2],", "RuntimeError: npu_rms_norm: gamma (8,)"),
        ("npu_rms_norm(x,", "npu_rms_norms(x,", "AttributeError: module 'torch_npu'"),
        ("EXAMPLES", "SAMPLES", "no example has just"),
    ],
)
def test_a_pair_that_disagrees_is_rejected(
    tmp_path: Path, right: str, wrong: str, expected: str
) -> None:
    path = tmp_path / "wrong_pair.py"
    assert NORM.count(right) == 1
    path.write_text(dedent(NORM.replace(right, wrong)), encoding="utf-8")
    found = problems(path)
    assert any(expected in line for line in found), found
    assert all(line.startswith("wrong_pair.py: ") for line in found)


def test_the_right_pair_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "right_pair.py"
    path.write_text(dedent(NORM), encoding="utf-8")
    assert problems(path) == []


def test_an_operator_without_backward_is_compared_forward(tmp_path: Path) -> None:
    path = tmp_path / "added.py"
    source = """
        import torch.nn.functional as F
        import torch_npu
        EXAMPLES = [{"x": (2, 8), "y": (2, 8), "weight": (8,)}]
        def pattern(x, y, weight):
            return F.rms_norm(x + y, (8,), weight, 1e-6)
        def replacement(x, y, weight):
            return torch_npu.npu_add_rms_norm(x, y, weight)[0]
    """
    path.write_text(dedent(source), encoding="utf-8")
    assert problems(path) == []
    path.write_text(dedent(source).replace("x + y", "x - y"), encoding="utf-8")
    assert problems(path)


ORIGINAL = dedent("""
    import torch
    from torch import nn

    class Norm(nn.Module):
        def __init__(self, size, eps=1e-6):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(size))
            self.eps = eps

        def forward(self, x):
            variance = x.pow(2).mean(-1, keepdim=True)
            return self.weight * (x * torch.rsqrt(variance + self.eps))
""")
FUSED_CALL = "torch_npu.npu_rms_norm(x, self.weight, epsilon=self.eps)[0]"
REWRITTEN = ORIGINAL.replace("import torch\n", "import torch\nimport torch_npu\n", 1).replace(
    "self.weight * (x * torch.rsqrt(variance + self.eps))", FUSED_CALL
)
GUARDED = REWRITTEN.replace(
    f"        return {FUSED_CALL}",
    f"        if x.is_npu:\n            return {FUSED_CALL}\n"
    "        return self.weight * (x * torch.rsqrt(variance + self.eps))",
)


@pytest.mark.parametrize("rewritten", [REWRITTEN, GUARDED])
def test_a_right_rewrite_of_a_module_is_accepted(rewritten: str) -> None:
    assert rewritten != ORIGINAL
    assert_same_behaviour(ORIGINAL, rewritten, "Norm", inputs=[(2, 3, 16)], arguments={"size": 16})


@pytest.mark.parametrize(
    ("rewritten", "expected"),
    [
        (REWRITTEN.replace("self.weight, eps", "self.weight.detach(), eps"), "gradient of weight"),
        (REWRITTEN.replace("(x, self.weight", "(x, torch.ones_like(self.weight)"), "output 0"),
        (REWRITTEN.replace("self.weight", "self.gamma"), "state dict"),
        (REWRITTEN.replace("=self.eps", "=self.eps + 0.1"), "output 0"),
        (GUARDED.replace("epsilon=self.eps", "epsilon=1"), "is_npu True"),
        (GUARDED.replace("variance + self.eps", "variance + 1"), "is_npu False"),
    ],
)
def test_a_wrong_rewrite_of_a_module_is_rejected(rewritten: str, expected: str) -> None:
    with pytest.raises(AssertionError, match=expected):
        assert_same_behaviour(
            ORIGINAL, rewritten, "Norm", inputs=[(2, 3, 16)], arguments={"size": 16}
        )


def test_functions_run_too() -> None:
    source = "import torch_npu\ndef gate(x, factor):\n    return torch_npu.npu_swiglu(x) * factor"
    run = run_module(source, "gate", {"factor": 2.0}, 0, [(3, 8)])
    assert [tuple(output.shape) for output in run.outputs] == [(3, 4)]
    assert run.gradients["input 0"].shape == (3, 8)
    assert run.state_keys == []


def test_the_reference_is_found_only_where_it_is_wanted() -> None:
    before = sys.modules.get("torch_npu"), hasattr(torch.Tensor, "is_npu"), list(sys.path)
    with reference_torch_npu(is_npu=True) as reference:
        assert torch.ones(1).is_npu
        with reference_torch_npu() as again:
            assert not torch.ones(1).is_npu
            assert again is reference
        assert torch.ones(1).is_npu
        assert sys.modules["torch_npu"] is reference
    assert before == (
        sys.modules.get("torch_npu"),
        hasattr(torch.Tensor, "is_npu"),
        list(sys.path),
    )


def test_random_masks_leave_something_in_each_row() -> None:
    generator = torch.Generator().manual_seed(0)
    mask = make_value(("bool", 500, 3), generator, torch.float32)
    assert mask.dtype == torch.bool
    assert not mask.all(-1).any()
    assert mask.any()
