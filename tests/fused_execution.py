"""Runs code that calls fused operators, and compares its numbers with those of other code.

`torch_npu` is the reference in `tests/npu_reference`. What is compared: the outputs, their shapes
and dtypes, the gradients of a random weighting of the outputs with respect to every floating input
and parameter, and the keys of the state dict.
"""

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

REFERENCE = Path(__file__).with_name("npu_reference")

TOLERANCES = {torch.float64: 1e-9, torch.float32: 2e-5, torch.bfloat16: 3e-2, torch.float16: 4e-3}
"""How far two tensors may be apart, in parts of the largest magnitude in the expected one.

Half precision is wide because an original rounds after each step and a fused operator once.
"""

SMALLEST_SCALE = 0.1
"""Magnitudes below are taken for this one: gradients that cancel to zero leave some rounding."""

_operators: dict[str, ModuleType] = {}
"""The modules of the reference, imported once, so that its exceptions stay the same classes."""


class Run(NamedTuple):
    """What code did."""

    outputs: list[Tensor]
    gradients: dict[str, Tensor]
    """By `input 0` or by the name of the parameter; empty if there is no backward pass."""
    state_keys: list[str]


@contextmanager
def reference_torch_npu(is_npu: bool = False) -> Iterator[ModuleType]:
    """Make `import torch_npu` find the reference, and `is_npu` of every tensor a readable bool."""
    before = {name: sys.modules.pop(name) for name in list(sys.modules) if _is_torch_npu(name)}
    attribute = torch.Tensor.__dict__.get("is_npu")
    sys.modules.update(_operators)
    sys.path.insert(0, str(REFERENCE))
    torch.Tensor.is_npu = property(lambda tensor: is_npu)  # type: ignore[attr-defined]
    try:
        yield importlib.import_module("torch_npu")
    finally:
        sys.path.remove(str(REFERENCE))
        for name in [name for name in sys.modules if _is_torch_npu(name)]:
            _operators[name] = sys.modules.pop(name)
        sys.modules.update(before)
        if attribute is None:
            del torch.Tensor.is_npu  # type: ignore[attr-defined]
        else:
            torch.Tensor.is_npu = attribute  # type: ignore[attr-defined]


def _is_torch_npu(name: str) -> bool:
    return name.partition(".")[0] == "torch_npu"


def load_module(source: str, name: str = "code_under_test") -> ModuleType:
    """Execute the text of a module; call it within `reference_torch_npu`."""
    module = ModuleType(name)
    # Dataclasses look for the module of their class while they are made.
    sys.modules[name] = module
    try:
        exec(compile(source, f"{name}.py", "exec"), module.__dict__)
    finally:
        del sys.modules[name]
    return module


def make_value(
    described: object, generator: torch.Generator, dtype: torch.dtype, scale: float = 1.0
) -> Any:
    """The value that an entry of EXAMPLES describes.

    A tuple of ints is a random tensor of that shape, normal with deviation `scale`;
    `("bool", *shape)` a random boolean tensor without a last-dimension row that is all True;
    `("complex", *shape)` complex numbers of parts in `dtype`;
    `("above", diagonal, rows, columns)` is True from that diagonal on;
    `("int", high, *shape)` integers from 0 to below `high`; a list is a list of values.
    Everything else is itself.
    """
    if isinstance(described, list):
        return [make_value(each, generator, dtype, scale) for each in described]
    if not isinstance(described, tuple):
        return described
    kind = described[0] if described and isinstance(described[0], str) else "float"
    if kind == "float":
        drawn = torch.randn(described, generator=generator, dtype=torch.float64)
        return (drawn * scale).to(dtype)
    if kind == "complex":
        parts = [torch.randn(described[1:], generator=generator, dtype=torch.float64) for _ in "ri"]
        return torch.complex(*parts).to(dtype.to_complex())
    if kind == "int":
        return torch.randint(described[1], described[2:], generator=generator)
    if kind == "above":
        return torch.ones(described[2:], dtype=torch.bool).triu(described[1])
    if kind == "bool":
        draws = torch.rand(described[1:], generator=generator)
        # The smallest draw of each row stays False.
        return (draws < 0.4) & (draws > draws.amin(-1, keepdim=True))
    raise ValueError(f"unknown kind of example: {described}")


def draw(*shape: int, seed: int = 0) -> Tensor:
    """A random float32 tensor."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def flat_tensors(value: object) -> list[Tensor]:
    """The tensors in an output, which may be nested."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, Mapping):
        return flat_tensors(list(value.values()))
    if isinstance(value, list | tuple):
        return [tensor for each in value for tensor in flat_tensors(each)]
    return []


def require_gradients(values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Copies of values of which floating tensors require gradients; and these tensors by name."""
    leaves: dict[str, Tensor] = {}

    def copied(name: str, value: Any) -> Any:
        if isinstance(value, list):
            return [copied(f"{name}[{i}]", each) for i, each in enumerate(value)]
        if not isinstance(value, Tensor):
            return value
        tensor = value.detach().clone()
        if tensor.is_floating_point():
            leaves[name] = tensor.requires_grad_()
        return tensor

    return {name: copied(name, value) for name, value in values.items()}, leaves


def gradients_of(
    outputs: Sequence[Tensor], leaves: Mapping[str, Tensor], seed: int
) -> dict[str, Tensor]:
    """Gradients of a random weighting of the outputs; zeros for a tensor that is not used."""
    generator = torch.Generator().manual_seed(seed)
    differentiable = [output for output in outputs if output.requires_grad]
    if not differentiable or not leaves:
        return {name: torch.zeros_like(leaf) for name, leaf in leaves.items()}
    weights = [
        torch.randn(output.shape, generator=generator).to(output.dtype) for output in differentiable
    ]
    found = torch.autograd.grad(differentiable, list(leaves.values()), weights, allow_unused=True)
    return {
        name: torch.zeros_like(leaf) if gradient is None else gradient
        for (name, leaf), gradient in zip(leaves.items(), found, strict=True)
    }


def difference(expected: Tensor, actual: Tensor, factor: float = 1.0) -> str:
    """How two tensors differ, in words; empty if they are equal within `factor` tolerances."""
    if expected.shape != actual.shape:
        return f"shape {tuple(actual.shape)} instead of {tuple(expected.shape)}"
    if expected.dtype != actual.dtype:
        return f"dtype {actual.dtype} instead of {expected.dtype}"
    if not expected.is_floating_point():
        return "" if torch.equal(expected, actual) else "values differ"
    if not bool(torch.isfinite(actual).all() & torch.isfinite(expected).all()):
        same = torch.equal(expected.nan_to_num(), actual.nan_to_num())
        return "" if same else "values that are not finite"
    if expected.numel() == 0:
        return ""
    scale = max(float(expected.abs().max()), SMALLEST_SCALE)
    bound = TOLERANCES[expected.dtype] * factor * scale
    largest = float((expected.double() - actual.double()).abs().max())
    return "" if largest <= bound else f"largest difference {largest:.3g}, allowed {bound:.3g}"


def differences(expected: Run, actual: Run, factor: float = 1.0) -> list[str]:
    """All in which two runs differ, one line each."""
    lines = []
    if expected.state_keys != actual.state_keys:
        lines.append(f"state dict {actual.state_keys} instead of {expected.state_keys}")
    if len(expected.outputs) != len(actual.outputs):
        lines.append(f"{len(actual.outputs)} outputs instead of {len(expected.outputs)}")
    outputs = zip(expected.outputs, actual.outputs, strict=False)
    named = [(f"output {i}", *pair) for i, pair in enumerate(outputs)]
    for name in sorted(expected.gradients.keys() | actual.gradients.keys()):
        one, other = expected.gradients.get(name), actual.gradients.get(name)
        if one is None or other is None:
            lines.append(f"gradient of {name} is there only once")
        else:
            named.append((f"gradient of {name}", one, other))
    for name, wanted, found in named:
        if problem := difference(wanted, found, factor):
            lines.append(f"{name}: {problem}")
    return lines


def run_module(
    source: str,
    name: str,
    arguments: Mapping[str, object],
    seed: int,
    inputs: Sequence[object],
    *,
    gradients: bool = True,
    training: bool = True,
    is_npu: bool = False,
    dtype: torch.dtype = torch.float32,
) -> Run:
    """Execute the text of a module and run a class or function of it.

    Args:
        source: the text; `import torch_npu` in it finds the reference.
        name: a subclass of `torch.nn.Module`, or a function.
        arguments: keyword arguments of the constructor, or of the function.
        seed: for parameters, inputs, dropout and the weighting of outputs.
        inputs: positional arguments of `forward` or of the function: tensors, which are used as
            they are, or what `make_value` takes.
        gradients: False runs under `torch.no_grad()`, for code that is only evaluated.
        training: the mode of the module.
        is_npu: what `tensor.is_npu` says.
        dtype: of parameters and random inputs.
    """
    generator = torch.Generator().manual_seed(seed)
    values = {
        f"input {i}": make_value(described, generator, dtype) for i, described in enumerate(inputs)
    }
    with reference_torch_npu(is_npu):
        torch.manual_seed(seed)
        target = getattr(load_module(source), name)
        call: Callable[..., object] = target
        parameters: dict[str, Tensor] = {}
        state_keys: list[str] = []
        if isinstance(target, type):
            module: nn.Module = target(**arguments)
            module.to(dtype).train(training)
            call, arguments, state_keys = module, {}, list(module.state_dict())
            parameters = dict(sorted(module.named_parameters()))
            _disturb(parameters, generator)
        values, leaves = require_gradients(values)
        torch.manual_seed(seed)
        with torch.set_grad_enabled(gradients):
            outputs = flat_tensors(call(*values.values(), **arguments))
        found = gradients_of(outputs, leaves | parameters, seed) if gradients else {}
        return Run([output.detach() for output in outputs], found, state_keys)


def _disturb(parameters: Mapping[str, Tensor], generator: torch.Generator) -> None:
    """Change parameters a little: gains of one and biases of zero would hide that they are lost."""
    with torch.no_grad():
        for parameter in parameters.values():
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            parameter.add_(noise.to(parameter.dtype), alpha=0.1)


def assert_same_behaviour(
    original: str,
    rewritten: str,
    class_or_function: str,
    *,
    inputs: Sequence[object],
    arguments: Mapping[str, object] | None = None,
    seeds: Sequence[int] = (0, 1, 2),
    gradients: bool = True,
    training: bool = True,
    dtype: torch.dtype = torch.float32,
    factor: float = 1.0,
) -> None:
    """Assert that a rewritten module text computes what the original does.

    State dict keys must be equal, outputs and gradients within `factor` times `TOLERANCES`. If the
    rewritten text asks `is_npu`, both answers are tried. The other arguments are those of
    `run_module`.
    """
    for seed in seeds:
        for is_npu in (False, True) if "is_npu" in rewritten else (False,):
            options: dict[str, Any] = {
                "gradients": gradients,
                "training": training,
                "is_npu": is_npu,
                "dtype": dtype,
            }
            runs = [
                run_module(text, class_or_function, arguments or {}, seed, inputs, **options)
                for text in (original, rewritten)
            ]
            found = differences(runs[0], runs[1], factor)
            place = f"{class_or_function}, seed {seed}, {dtype}, is_npu {is_npu}"
            assert not found, "\n".join([place, *found])
