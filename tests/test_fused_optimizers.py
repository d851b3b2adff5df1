"""Fused optimizers in place of PyTorch's: the rewritten call is executed and trains the same."""

import inspect
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from helpers import AGNOSTIC, check, each_fix, findings, fixed
from npulens.analysis import analyze
from npulens.catalog.loader import load_catalogue
from npulens.catalog.model import Target
from npulens.catalog.project_model import ProjectFacts
from npulens.text.document import Document

torch = pytest.importorskip("torch")
formula_optim = pytest.importorskip("npulens_emulator.formula_optim")

HEAD = "import torch\nfrom torch.optim import SGD\n\n\ndef make(model, options):\n    model.npu()\n"
PLUGIN = HEAD.replace("torch\n", "torch\nimport torch_npu\n", 1)


def source(call: str) -> str:
    return f"{HEAD}    return {call}\n"


def rewritten(call: str) -> str:
    """The call after its fix."""
    after = fixed(source(call))
    head = PLUGIN if "SGD(" not in call else PLUGIN.replace("from torch.optim import SGD\n", "")
    assert after.startswith(head), after
    return after.removeprefix(f"{head}    return ").removesuffix("\n")


# Stand-ins that have the parameters of the documentation, and no others.


class NpuFusedAdamW(torch.optim.AdamW):  # type: ignore[misc]
    def __init__(
        self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, amsgrad=False
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad)


class NpuFusedAdam(torch.optim.Adam):  # type: ignore[misc]
    def __init__(
        self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, amsgrad=False
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad)


REQUIRED: Any = object()


class NpuFusedSGD(torch.optim.SGD):  # type: ignore[misc]
    def __init__(
        self, params, lr=REQUIRED, momentum=0, dampening=0, weight_decay=0, nesterov=False
    ) -> None:
        assert lr is not REQUIRED
        super().__init__(params, lr, momentum, dampening, weight_decay, nesterov)


class NpuFusedRMSprop(torch.optim.RMSprop):  # type: ignore[misc]
    def __init__(
        self, params, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False
    ) -> None:
        super().__init__(params, lr, alpha, eps, weight_decay, momentum, centered)


class NpuFusedAdadelta(torch.optim.Adadelta):  # type: ignore[misc]
    def __init__(self, params, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0) -> None:
        super().__init__(params, lr, rho, eps, weight_decay)


class NpuFusedRMSpropTF:
    def __init__(
        self, params, lr=1e-2, alpha=0.9, eps=1e-10, weight_decay=0, momentum=0.0, centered=False,
        decoupled_decay=False, lr_in_momentum=True,
    ) -> None: ...  # fmt: skip


class NpuFusedAdamP:
    def __init__(
        self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, delta=0.1,
        wd_ratio=0.1, nesterov=False,
    ) -> None: ...  # fmt: skip


FUSED = (NpuFusedAdamW, NpuFusedAdam, NpuFusedSGD, NpuFusedRMSprop, NpuFusedAdadelta)


class FusedAdam(torch.optim.Optimizer):  # type: ignore[misc]
    """apex's, as far as it is on PyTorch's own two."""

    def __new__(
        cls, params, lr=1e-3, bias_correction=True, betas=(0.9, 0.999), eps=1e-8,
        adam_w_mode=True, weight_decay=0.0, amsgrad=False, set_grad_none=True,
    ):  # fmt: skip
        assert bias_correction and not amsgrad
        kind = torch.optim.AdamW if adam_w_mode else torch.optim.Adam
        return kind(params, lr, betas, eps, weight_decay)


class Model(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.body = torch.nn.Linear(5, 7)
        self.head = torch.nn.Linear(7, 2)

    def forward(self, x: Any) -> Any:
        return self.head(torch.tanh(self.body(x)))


def trained(call: str) -> list[Any]:
    """The parameters after some steps with the optimizer that a call makes."""
    model = Model()
    plugin = SimpleNamespace(optim=SimpleNamespace(**{each.__name__: each for each in FUSED}))
    apex = SimpleNamespace(optimizers=SimpleNamespace(FusedAdam=FusedAdam))
    names = {"torch": torch, "torch_npu": plugin, "apex": apex, "SGD": torch.optim.SGD}
    optimizer = eval(call, {**names, "model": model})
    generator = torch.Generator().manual_seed(1)
    for _ in range(6):
        batch = torch.randn(3, 5, generator=generator)
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
    return [parameter.detach() for parameter in model.parameters()]


MAPPED = [
    "torch.optim.AdamW(model.parameters())",
    "torch.optim.AdamW(model.parameters(), 0.01, (0.8, 0.99), 1e-6, 0.3, True)",
    "torch.optim.AdamW(params=model.parameters(), lr=0.01, fused=True, weight_decay=0.5)",
    "torch.optim.AdamW(model.parameters(), foreach=True, maximize=False, lr=0.1)",
    "torch.optim.AdamW(foreach=None, fused=False, params=model.parameters())",
    "torch.optim.AdamW(\n        model.parameters(),\n        lr=0.01,\n        fused=True,\n    )",
    "torch.optim.AdamW([{'params': model.head.parameters(), 'lr': 1}, "
    "{'params': model.body.parameters(), 'weight_decay': 0.0}], lr=0.1)",
    "torch.optim.Adam(model.parameters(), 0.1, weight_decay=0.1, capturable=False)",
    "torch.optim.Adam(model.parameters(), amsgrad=True, decoupled_weight_decay=False)",
    "torch.optim.Adam((p for p in model.parameters()), 0.1)",
    "torch.optim.AdamW(model.parameters(), lr=(0.1), fused=(True))",
    "SGD(model.parameters())",
    "SGD(model.parameters(), momentum=(0.9))",
    "SGD(model.parameters(), 0.1, 0.9)",
    "SGD(model.parameters(), momentum=0.9, nesterov=True, foreach=False)",
    "SGD(model.parameters(), 0.1, 0.9, 0.5, 0.01)",
    "torch.optim.RMSprop(model.parameters(), 0.01, 0.9, 1e-6, 0.1, 0.9, True, foreach=True)",
    "torch.optim.RMSprop(model.parameters(), centered=True, differentiable=False)",
    "torch.optim.Adadelta(model.parameters(), 0.5, 0.8, weight_decay=0.1, foreach=False)",
]


@pytest.mark.parametrize("call", MAPPED)
def test_the_fused_optimizer_trains_as_the_first_one(call: str) -> None:
    after = rewritten(call)
    assert after.startswith("torch_npu.optim.NpuFused")
    for first, second in zip(trained(call), trained(after), strict=True):
        torch.testing.assert_close(first, second, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    "call",
    [
        "apex.optimizers.FusedAdam(model.parameters(), lr=0.1)",
        "apex.optimizers.FusedAdam(model.parameters(), 0.1, weight_decay=0.2, adam_w_mode=True)",
        "apex.optimizers.FusedAdam(model.parameters(), adam_w_mode=False, weight_decay=0.2)",
        "apex.optimizers.FusedAdam(model.parameters(), set_grad_none=True, bias_correction=True)",
    ],
)
def test_so_does_the_one_for_apex(call: str) -> None:
    after = fixed(f"import apex\nimport torch\noptimizer = {call}\n").partition("optimizer = ")[2]
    for first, second in zip(trained(call), trained(after.strip()), strict=True):
        torch.testing.assert_close(first, second, rtol=1e-5, atol=1e-7)


def rms_prop_tf(
    params, lr=1e-2, alpha=0.9, eps=1e-10, weight_decay=0, momentum=0.0, centered=False,
    decoupled_decay=False, corrected_weight_decay=False, lr_in_momentum=True, caution=False,
    foreach=None,
) -> None: ...  # fmt: skip


def adam_p(
    params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, delta=0.1, wd_ratio=0.1,
    nesterov=False, caution=False,
) -> None: ...  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "name", "first", "second"),
    [
        ("p, 0.1, 0.8, 1e-3, 0.2, 0.9, True", "RMSpropTF", rms_prop_tf, NpuFusedRMSpropTF),
        ("p, lr_in_momentum=False, foreach=True", "RMSpropTF", rms_prop_tf, NpuFusedRMSpropTF),
        ("p, caution=False, decoupled_decay=False", "RMSpropTF", rms_prop_tf, NpuFusedRMSpropTF),
        ("p, 0.1, (0.8, 0.9), 1e-3, 0.2, 0.5, 0.6, True", "AdamP", adam_p, NpuFusedAdamP),
        ("p, wd_ratio=0.3, caution=False", "AdamP", adam_p, NpuFusedAdamP),
    ],
)
def test_arguments_keep_their_meaning(
    arguments: str, name: str, first: Callable[..., Any], second: Callable[..., Any]
) -> None:
    before = f"import torch\nfrom timm.optim import {name}\n\no = {name}({arguments})\nm.npu()\n"
    after = fixed(before).partition(f"torch_npu.optim.NpuFused{name}(")[2].partition(")\nm.npu")[0]
    assert after
    given = bound(first, arguments)
    assert bound(second, after) == {key: given[key] for key in bound(second, after)}


def bound(function: Callable[..., Any], arguments: str) -> dict[str, Any]:
    """What each parameter becomes in a call."""
    signature = inspect.signature(function)
    found = eval(f"bind({arguments})", {"bind": signature.bind, "p": "parameters"})
    found.apply_defaults()
    return dict(found.arguments)


NOT_MAPPED = [
    "torch.optim.AdamW(*options)",
    "torch.optim.AdamW(model.parameters(), **options)",
    "torch.optim.AdamW(model.parameters(), maximize=options)",
    "torch.optim.AdamW(model.parameters(), lr=0.1,  # small\n        fused=True)",
    "torch.optim.AdamW((options), fused=True)",
    "SGD((options))",
    "SGD(model.parameters(), momentum=0.9  # as in the paper\n    )",
    "SGD(p for p in model.parameters())",
]


@pytest.mark.parametrize("call", NOT_MAPPED)
def test_no_edit_where_it_is_not_plain(call: str) -> None:
    assert [f.rule.code for f in findings(source(call))] == ["NPU716"]
    assert fixed(source(call)) == source(call)


NOT_FOUND = [
    "torch.optim.AdamW(model.parameters(), maximize=True)",
    "torch.optim.Adam(model.parameters(), unheard_of=1)",
    "torch.optim.Adam(model.parameters(), 1e-3, (0.9, 0.99), 1e-8, 0, False, None)",
    "torch.optim.RMSprop(model.parameters(), capturable=True)",
    "torch.optim.AdamW([options])",
    "torch.optim.LBFGS(model.parameters())",
    "options(torch.optim.AdamW)",
    "isinstance(options, torch.optim.AdamW)",
    "options(torch.optim.LBFGS)(model.parameters())",
]


@pytest.mark.parametrize("call", NOT_FOUND)
def test_nothing_is_said_where_it_would_be_wrong(call: str) -> None:
    check(source(call))


def around() -> Iterator[tuple[str, str]]:
    """Lines of a module that speak against a fused optimizer, or only against an edit."""
    for line in (
        "from torch_npu.optim import NpuFusedAdam",
        "from torch.distributed.optim import ZeroRedundancyOptimizer",
        "from torch.distributed.fsdp import fully_shard",
        "embed = torch.nn.Embedding(3, 4, sparse = True)",
        "def swap(p, q):\n    p.data = q",
        "def later(o, p):\n    o.add_param_group({'params': p})",
        "def step(o, closure):\n    o.step(closure)",
        "def narrow(model):\n    return model.to(device, torch.bfloat16)",
        "class Cases:\n    def test_an_update(self):\n        pass",
        "from torch.distributed.tensor.parallel import parallelize_module",
        "import torch.distributed.rpc as rpc",
        "from megatron.core import parallel_state",
        "def groups(sparse_params):\n    pass",
    ):
        yield line, "nothing"
    for line in (
        "def clear(o):\n    o.zero_grad(set_to_none=True)",
        "def clear(model):\n    model.zero_grad()",
        "def clear(p):\n    p.grad = None",
        "def clear(o, to_none):\n    o.zero_grad(set_to_none=to_none)",
        "class Net(Module):\n    def configure_optimizers(self):\n        return make(self)",
        "trainer = Trainer(model, optimizers=(make(model), None))",
        "def start(trainer, o):\n    trainer.optimizer = o",
    ):
        yield line, "no edit"
    for line in (
        "def clear(optimizer):\n    optimizer.zero_grad()",
        "def step(o):\n    o.step()",
        "def clear(o):\n    o.zero_grad(set_to_none=False)",
        "class Net(Module):\n    def configure_optimizers(self):\n        return make(self)\n\n"
        "    automatic_optimization = False",
        "with torch.autocast('npu', dtype=torch.bfloat16):\n    pass",
        "test_loader = None",
        "from megatron.energon import get_loader",
        "class TestSet:\n    pass",
        "print(p.data == q)",
        "class Rows:\n    def __init__(self, data):\n        self.data = data",
        "def read(eval_config):\n    eval_config.data = eval_config.rows",
    ):
        yield line, "edit"


@pytest.mark.parametrize(("line", "expected"), list(around()))
def test_the_rest_of_the_module_counts(line: str, expected: str) -> None:
    text = source("torch.optim.AdamW(model.parameters())") + f"\n\n{line}\n"
    found = [finding for finding in findings(text) if finding.rule.code == "NPU716"]
    edits = sum(bool(finding.fixes) for finding in found)
    assert (len(found), edits) == {"nothing": (0, 0), "no edit": (1, 0), "edit": (1, 1)}[expected]


CLASSES = [
    "{'adam': torch.optim.Adam, 'sgd': SGD}[options](model.parameters())",
    "dict(options)(torch.optim.AdamW)(model.parameters(), lr=0.1)",
    "Sharpness(model.parameters(), SGD, lr=0.1, momentum=0.9)",
]


@pytest.mark.parametrize("call", CLASSES)
def test_a_class_of_which_objects_are_made_is_told_without_an_edit(call: str) -> None:
    assert [f.rule.code for f in findings(source(call))] == ["NPU716"]
    assert fixed(source(call)) == source(call)


KEPT = """import torch


class Schedule:
    def __init__(self, model, rate):
        self._optimizer = torch.optim.Adam(model.parameters(), lr=rate)

    def step_and_update(self):
        self._optimizer.step()
"""
CLEARS = """
    def zero_grad(self):
        self._optimizer.zero_grad()
"""


@pytest.mark.parametrize(
    ("text", "names_cuda", "expected"),
    [
        (KEPT, False, []),
        (KEPT, True, [False]),
        (KEPT + CLEARS, True, [True]),
        (KEPT + "\n\ndef train(model):\n    model().backward()\n", True, [False]),
        (KEPT + "\n\nfor data in range(3):\n    model(data).backward()\n", True, []),
        (KEPT.replace("rate)", "rate).to('cpu')"), True, []),
    ],
)
def test_a_module_that_only_makes_optimizers_takes_the_device_from_the_project(
    text: str, names_cuda: bool, expected: list[bool]
) -> None:
    target = Target(project=ProjectFacts(names_cuda=names_cuda))
    told = analyze(Document("schedule.py", text), load_catalogue(), target)
    found = [finding for finding in told if finding.rule.code == "NPU716"]
    assert [bool(finding.fixes) for finding in found] == expected


SCRIPT = """import argparse
import torch
from settings import Config
from steps import train_epoch

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cpu")


def main(model, args):
    model.to(args.device)
    optimizer = torch.optim.AdamW([{"params": model.head.parameters()}], lr=0.1)
    train_epoch(model, optimizer)
    model().backward()


def test_celebrities(model):
    return model.to(Config.DEVICE)


if __name__ == "__main__":
    main(make(), parser.parse_args())
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("", "", [True]),
        ('default="cpu"', 'default = "cpu"', [True]),
        ("args.device)", '"cpu")', []),
        ('if __name__ == "__main__":\n    ', "cases = [test_celebrities]\n", []),
    ],
)
def test_a_script_takes_its_device_from_an_option_and_may_test_its_model(
    old: str, new: str, expected: list[bool]
) -> None:
    text = SCRIPT.replace(old, new) if old else SCRIPT
    found = [finding for finding in findings(text) if finding.rule.code == "NPU716"]
    assert [bool(finding.fixes) for finding in found] == expected


ON_IMPORT = """import torch
from ignite.engine import Engine

model = make().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)


def train_step(engine, batch):
    optimizer.zero_grad()
    model(batch).backward()
    optimizer.step()


def test_step(engine, batch):
    return model(batch)


Engine(train_step).run(batches)
"""
IN_A_TEST = ON_IMPORT.replace("model = make", "def test_it():\n    model = make").replace(
    "\noptimizer =", "\n    optimizer ="
)


@pytest.mark.parametrize(("text", "expected"), [(ON_IMPORT, [True]), (IN_A_TEST, [])])
def test_what_makes_its_optimizer_on_import_is_a_script(text: str, expected: list[bool]) -> None:
    found = [finding for finding in findings(text) if finding.rule.code == "NPU716"]
    assert [bool(finding.fixes) for finding in found] == expected


MOVED = "import torch\n\n\ndef train(model):\n    model = model.cuda()\n"
MADE = "    return torch.optim.Adam(model.parameters(), lr=0.1)\n"


@pytest.mark.parametrize(
    ("line", "is_told"),
    [
        ("    hits = total.double() / 4\n", True),
        ("    images = images.to(device, dtype=torch.bfloat16)\n", True),
        ("    model = model.cuda().double()\n", False),
        ("    encoder.to(dtype=torch.bfloat16)\n", False),
        ("    torch.set_default_dtype(torch.float32)\n", True),
        ("    torch.set_default_dtype(torch.float64)\n", False),
        ("    is_deepspeed = accelerator.state.deepspeed_plugin is not None\n", True),
        ("    import deepspeed\n", False),
        ("    engine = deepspeed.initialize(model=model)\n", False),
        ("    saved = torch.load('x', map_location='cpu')\n", True),
    ],
)
def test_what_is_cast_or_shared_out_is_a_model(line: str, is_told: bool) -> None:
    told = analyze(Document("train.py", MOVED + line + MADE), load_catalogue(), Target())
    assert any(finding.rule.code == "NPU716" for finding in told) is is_told


@pytest.mark.parametrize(
    "body",
    [
        "optimizer_class = torch.optim.SGD if plain else torch.optim.Adam\n"
        "    return optimizer_class(model.parameters(), lr=0.1)",
        "if plain:\n        kind = bnb.optim.Adam8bit\n"
        "    else:\n        kind = torch.optim.AdamW\n"
        "    return kind(model.parameters(), lr=0.1)",
        "make = partial(torch.optim.AdamW, lr=0.1)\n    return make(model.parameters())",
    ],
)
def test_a_class_that_is_chosen_is_told_without_an_edit(body: str) -> None:
    imports = "import torch\nimport bitsandbytes as bnb\nfrom functools import partial\n"
    text = f"{imports}{MOVED[12:]}    {body}\n"
    told = analyze(Document("train.py", text), load_catalogue(), Target())
    found = [finding for finding in told if finding.rule.code == "NPU716"]
    assert len(found) == 1
    assert not found[0].fixes


def test_it_is_unsafe_and_for_the_npu_only() -> None:
    text = source("torch.optim.AdamW(model.parameters())")
    assert [applicability for _, applicability, _ in each_fix(text)] == ["unsafe"]
    target = Target(style=AGNOSTIC)
    found = analyze(Document("train.py", text), load_catalogue(), target)
    assert "NPU716" not in [finding.rule.code for finding in found]


def test_a_package_of_the_project_with_the_name_is_not_the_library() -> None:
    text = "import torch\nfrom timm.optim import AdamP\n\no = AdamP(p.npu(), 1e-3)\n"
    target = Target(project=ProjectFacts(own_modules=frozenset({"timm"})))
    assert findings(text)
    assert not analyze(Document("train.py", text), load_catalogue(), target)


def test_the_library_says_so_only_once() -> None:
    check("import apex\no = ⟦NPU603:apex.optimizers.FusedAdam⟧(p, lr=1e-3)\n")
    check("import apex\no = ⟦NPU603:apex.optimizers.FusedAdam⟧(p, amsgrad=True)\n")
    check("from apex.optimizers import ⟦NPU603:FusedAdam⟧\no = FusedAdam(p, amsgrad=True)\n")


APEX = "import torch\n{}\n\n\ndef make(model):\n    return {}\n"


@pytest.mark.parametrize(
    ("statement", "call", "left"),
    [
        ("from apex.optimizers import FusedAdam", "FusedAdam(model.parameters(), lr=1, {})", ""),
        (
            "from apex.optimizers import FusedAdam, FusedLAMB",
            "FusedAdam(model.parameters(), lr=1, {}), FusedLAMB",
            "from apex.optimizers import FusedLAMB",
        ),
        (
            "from apex.optimizers import FusedLAMB",
            "FusedLAMB(model.parameters())",
            "from apex.optimizers import FusedLAMB",
        ),
    ],
)
def test_the_import_of_apex_goes_when_its_last_use_went(
    statement: str, call: str, left: str
) -> None:
    after = fixed(APEX.format(statement, call.format("weight_decay=0.1")))
    assert [line for line in after.splitlines() if "apex" in line] == [left] * bool(left)


def steps_of(optimizer: type, count: int = 1, **options: Any) -> Any:
    """A weight that starts at 1 and has the gradient 2, after some steps."""
    weight = torch.nn.Parameter(torch.ones(1))
    made = optimizer([weight], **options)
    for _ in range(count):
        weight.grad = torch.full((1,), 2.0)
        made.step()
    return weight.item()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 1 - 0.01 * 2 / 1.3**0.5),  # the square: 1 + 0.1 * (4 - 1)
        ({"momentum": 0.9}, 1 - 0.01 * 2 / 1.3**0.5),
        ({"momentum": 0.9, "lr_in_momentum": False}, 1 - 0.01 * 2 / 1.3**0.5),
        ({"weight_decay": 0.5, "decoupled_decay": True}, 0.5 - 0.01 * 2 / 1.3**0.5),
        ({"weight_decay": 0.5}, 1 - 0.01 * 2.5 / (1 + 0.1 * (2.5**2 - 1)) ** 0.5),
        ({"centered": True}, 1 - 0.01 * 2 / (1.3 - 0.2**2) ** 0.5),
    ],
)
def test_the_emulated_rms_prop_of_tensorflow(options: dict[str, Any], expected: float) -> None:
    assert steps_of(formula_optim.NpuFusedRMSpropTF, **options) == pytest.approx(expected)


def test_the_emulated_adam_with_projections() -> None:
    fused = formula_optim.NpuFusedAdamP
    assert steps_of(fused, 3) == pytest.approx(steps_of(torch.optim.Adam, 3))
    # A step along a weight only makes it longer: it is taken away, and decay with it.
    weight = torch.nn.Parameter(torch.tensor([[3.0, 4.0]]))
    weight.grad = torch.tensor([[4.0, -3.0]])
    before = weight.detach().clone()
    fused([weight], lr=0.1, eps=0.0, weight_decay=0.1, wd_ratio=0.5).step()
    change = weight.detach() - before * (1 - 0.1 * 0.1 * 0.5)
    assert (change * before).sum().abs() < 1e-5
    assert change.norm() > 0
