"""Mixed precision in training steps: scaled gradients, float16 alone, needless scalers."""

import pytest

from helpers import check, findings, fixed
from npulens.catalog.model import Severity

HEAD = """\
import torch
import torch_npu
from torch import nn
from torch.nn.utils import clip_grad_norm_

"""
CLIP = "⟦NPU310:clip_grad_norm_(model.parameters(), 1.0)⟧"
PLAIN_CLIP = "clip_grad_norm_(model.parameters(), 1.0)"


def indented(lines: str, depth: int = 1) -> str:
    """Lines with an indentation."""
    return "\n".join("    " * depth + line if line else line for line in lines.split("\n"))


def step(lines: str) -> str:
    """A function that is given what a training step needs."""
    arguments = "model, optimizer, scaler, loss, use_amp, limit, index"
    return f"{HEAD}def train_step({arguments}):\n{indented(lines)}\n"


def scaled(*lines: str, end: str = "scaler.step(optimizer)\nscaler.update()") -> str:
    """A training step with these lines between the backward pass and the optimizer."""
    return step("\n".join(["scaler.scale(loss).backward()", *lines, end]))


EARLY = [
    scaled(CLIP),
    scaled("⟦NPU310:nn.utils.clip_grad_norm_(model.parameters(), 1.0)⟧"),
    scaled("⟦NPU310:torch.nn.utils.clip_grad_value_(model.parameters(), 0.5)⟧"),
    scaled(f"norm = {CLIP}"),
    scaled(f"if limit is not None:\n    {CLIP}"),
    scaled(f"# scaler.unscale_(optimizer)\n{CLIP}"),
    # too late, and for one of two only
    scaled(CLIP, "scaler.unscale_(optimizer)"),
    scaled(CLIP, CLIP),
    # both arms are conditions of the same thing
    step(
        "if use_amp:\n    scaler.scale(loss).backward()\nelse:\n    loss.backward()\n"
        f"{CLIP}\n"
        "if use_amp:\n    scaler.step(optimizer)\n    scaler.update()\nelse:\n    optimizer.step()"
    ),
    step(
        "if use_amp:\n    scaler.scale(loss).backward()\n"
        f"    {CLIP}\n    scaler.step(optimizer)\n    scaler.update()\n"
        f"else:\n    loss.backward()\n    {PLAIN_CLIP}\n    optimizer.step()"
    ),
    # the loss has a name, another loop is around the backward pass, gradients are accumulated
    step(
        f"loss = scaler.scale(loss)\nloss.backward()\n{CLIP}\n"
        "scaler.step(optimizer)\nscaler.update()"
    ),
    step(
        "for part in loss:\n    scaler.scale(part).backward()\n"
        f"if index % 4 == 0:\n    {CLIP}\n    scaler.step(optimizer)\n    scaler.update()"
    ),
    # made as a scaler, updated elsewhere; the module itself; an attribute
    f"{HEAD}def train(model, optimizer, loss):\n    scaler = torch.npu.amp.GradScaler()\n"
    f"    scaler.scale(loss).backward()\n    {CLIP}\n    scaler.step(optimizer)\n    end(scaler)\n",
    f"{HEAD}scaler = torch_npu.npu.amp.GradScaler()\nfor loss in losses:\n"
    f"    scaler.scale(loss).backward()\n    {CLIP}\n    scaler.step(optimizer)\n"
    "    scaler.update()\n",
    f"{HEAD}class Trainer:\n    def step(self, model, loss):\n"
    f"        self.scaler.scale(loss).backward()\n        {CLIP}\n"
    "        self.scaler.step(self.optimizer)\n        self.scaler.update()\n",
    # of two models one is unscaled
    scaled(
        "scaler.unscale_(optimizer)",
        PLAIN_CLIP,
        "scaler.step(optimizer)",
        "scaler.scale(model.loss()).backward()",
        CLIP,
    ),
]


@pytest.mark.parametrize("snippet", EARLY)
def test_scaled_gradients_are_clipped(snippet: str) -> None:
    check(snippet)


IN_ORDER = [
    scaled("scaler.unscale_(optimizer)", PLAIN_CLIP),
    scaled("if use_amp:\n    scaler.unscale_(optimizer)", PLAIN_CLIP),
    scaled(f"if limit:\n    scaler.unscale_(optimizer)\n    {PLAIN_CLIP}"),
    # nothing says that a scaler is in use where it is clipped
    scaled(f"if not use_amp:\n    {PLAIN_CLIP}"),
    scaled(f"if model.dtype != torch.float16:\n    {PLAIN_CLIP}"),
    step(
        "if scaler is not None:\n    scaler.scale(loss).backward()\n    scaler.step(optimizer)\n"
        f"    scaler.update()\nelse:\n    loss.backward()\n    {PLAIN_CLIP}\n    optimizer.step()"
    ),
    step(
        f"if scaler is None:\n    loss.backward()\n    {PLAIN_CLIP}\n    optimizer.step()\n"
        "    return\nscaler.scale(loss).backward()\nscaler.step(optimizer)\nscaler.update()"
    ),
    step(
        "if scaler is not None:\n    scaler.scale(loss).backward()\n"
        f"if scaler is None:\n    loss.backward()\n    {PLAIN_CLIP}\n    optimizer.step()\n"
        "if scaler is not None:\n    scaler.step(optimizer)\n    scaler.update()"
    ),
    step(
        "if use_amp:\n    scaler.scale(loss).backward()\n    scaler.unscale_(optimizer)\n"
        f"else:\n    loss.backward()\n{PLAIN_CLIP}\n"
        "if use_amp:\n    scaler.step(optimizer)\n    scaler.update()\nelse:\n    optimizer.step()"
    ),
    # unscaled in another way, measured only, limited by the scale, clipped after the step
    scaled("unscale_gradients(model)", PLAIN_CLIP),
    scaled("prepare(optimizer, scaler)", PLAIN_CLIP),
    scaled("for p in model.parameters():\n    p.grad /= 65536", PLAIN_CLIP),
    scaled("for p in model.parameters():\n    p.grad.data.mul_(1 / 65536)", PLAIN_CLIP),
    scaled('clip_grad_norm_(model.parameters(), float("inf"))'),
    scaled("clip_grad_norm_(model.parameters(), limit * scaler.get_scale())"),
    step(f"scaler.scale(loss).backward()\nscaler.step(optimizer)\n{PLAIN_CLIP}\nscaler.update()"),
    step(f"{PLAIN_CLIP}\nscaler.scale(loss).backward()\nscaler.step(optimizer)\nscaler.update()"),
    # another backward pass is between
    scaled("model.loss().backward()", PLAIN_CLIP),
    # no gradient scaler as far as one sees
    step(f"scaler.scale(loss).backward()\n{PLAIN_CLIP}\nscaler.step(optimizer)"),
    f"{HEAD}from tools import Scaler\nscaler = Scaler()\nfor loss in losses:\n"
    f"    scaler.scale(loss).backward()\n    {PLAIN_CLIP}\n    scaler.step(optimizer)\n"
    "    scaler.update()\n",
    f"{HEAD}class Scaler:\n    pass\nscaler = Scaler()\nfor loss in losses:\n"
    f"    scaler.scale(loss).backward()\n    {PLAIN_CLIP}\n    scaler.step(optimizer)\n"
    "    scaler.update()\n",
    # a clipping of one's own; a function that is not called here
    scaled("clip_grad_norm_of_mine(model.parameters(), 1.0)"),
    scaled(f"def clip():\n    {PLAIN_CLIP}"),
]


@pytest.mark.parametrize("snippet", IN_ORDER)
def test_nothing_is_clipped_too_early(snippet: str) -> None:
    check(snippet)


UNSCALED = "scaler.unscale_(optimizer)"
FIXED = [
    (scaled(PLAIN_CLIP), scaled(UNSCALED, PLAIN_CLIP)),
    (
        scaled(f"if limit:\n    norm = {PLAIN_CLIP}"),
        scaled(f"if limit:\n    {UNSCALED}\n    norm = {PLAIN_CLIP}"),
    ),
    (scaled(PLAIN_CLIP, PLAIN_CLIP), scaled(UNSCALED, PLAIN_CLIP, PLAIN_CLIP)),
]


@pytest.mark.parametrize(("before", "after"), FIXED)
def test_gradients_are_unscaled_before(before: str, after: str) -> None:
    assert fixed(before) == after


NOT_FIXED = [
    # it would run twice for a step, or without one, or for one of two optimizers only
    scaled(PLAIN_CLIP, UNSCALED),
    scaled(f"for part in model:\n    {PLAIN_CLIP}"),
    scaled(f"if limit:\n    {PLAIN_CLIP}", f"if index:\n    {PLAIN_CLIP}"),
    scaled(PLAIN_CLIP, end="if index % 4 == 0:\n    scaler.step(optimizer)\n    scaler.update()"),
    scaled(PLAIN_CLIP, end="scaler.step(optimizer)\nscaler.step(other)\nscaler.update()"),
    scaled(PLAIN_CLIP, end="for each in optimizer:\n    scaler.step(each)\nscaler.update()"),
    scaled(PLAIN_CLIP, end="scaler.step(model.optimizers()[0])\nscaler.update()"),
    # there is no line of its own for it
    scaled(f"if limit: {PLAIN_CLIP}"),
]


@pytest.mark.parametrize("source", NOT_FIXED)
def test_no_fix_where_it_may_not_run_once_for_each_step(source: str) -> None:
    found = findings(source)
    assert {each.rule.code for each in found} == {"NPU310"}
    assert not any(each.fixes for each in found)


def loop(entered: str, body: str = "loss = model(batch)", end: str = "loss.backward()") -> str:
    """A training loop whose loss is computed under a context manager."""
    lines = f"with {entered}:\n{indented(body)}\n{end}\noptimizer.step()"
    return f"{HEAD}for batch in loader:\n{indented(lines)}\n"


HALF = "⟦NPU310:torch.autocast('npu', dtype=torch.float16)⟧"
WITHOUT_SCALER = [
    loop(HALF),
    loop("⟦NPU310:torch.amp.autocast('npu', torch.half)⟧"),
    loop("⟦NPU310:torch.autocast(device_type='npu', dtype=torch.float16, enabled=on)⟧"),
    loop("⟦NPU310:torch.npu.amp.autocast()⟧"),
    loop("⟦NPU310:torch_npu.npu.amp.autocast(dtype=torch.float16)⟧"),
    loop(HALF, "output = model(batch)", "loss = criterion(output)\n(loss / 4).backward()"),
    loop(HALF, "loss = model(batch)\nloss.backward()", "pass"),
    loop(HALF, "loss, _ = model(batch)"),
    loop(HALF, "model(batch).sum().backward()", "pass"),
    step(f"with {HALF}:\n    loss = model(loss)\nloss.backward()\noptimizer.step()").replace(
        "scaler, ", ""
    ),
]


@pytest.mark.parametrize("snippet", WITHOUT_SCALER)
def test_float16_without_a_scaler(snippet: str) -> None:
    source = check(snippet)
    (found,) = findings(source)
    assert found.effective_severity is Severity.INFO


PLAIN_HALF = "torch.autocast('npu', dtype=torch.float16)"
NOTHING_LOST = [
    loop("torch.autocast('npu', dtype=torch.bfloat16)"),
    loop("torch.autocast('npu', dtype=kind)"),
    loop("torch.autocast('npu', dtype=torch.float16 if half else torch.bfloat16)"),
    loop("torch.autocast('npu', dtype=torch.float16, enabled=False)"),
    loop("torch.npu.amp.autocast(False)"),
    loop("torch.npu.amp.autocast(**options)"),
    loop(PLAIN_HALF, "loss.backward()", "pass"),
    loop(PLAIN_HALF, end="loss = other(batch)\nloss.backward()"),
    loop(f"torch.no_grad(), {PLAIN_HALF}", "target = model(batch)", "other(target).backward()"),
    loop(PLAIN_HALF).replace("optimizer.step()", "pass"),
    f"import accelerate\n{loop(PLAIN_HALF)}",
    f"from transformers import TrainingArguments\n{loop(PLAIN_HALF)}",
    f"{loop(PLAIN_HALF)}\nloss_scale = 1024\n",
    f"def train(scaler): ...\n{loop(PLAIN_HALF)}",
    f"{HEAD}class A:\n    def autocast(self): ...\n{loop('A().autocast()')}",
]


@pytest.mark.parametrize("snippet", NOTHING_LOST)
def test_nothing_is_lost_to_float16(snippet: str) -> None:
    check(snippet)


CAST = "with torch.autocast('npu', dtype=torch.bfloat16):\n    loss = model(batch)\n"
NEEDLESS = [
    f"{HEAD}scaler = ⟦NPU310:torch.npu.amp.GradScaler()⟧\n{CAST}",
    f"{HEAD}scaler = ⟦NPU310:torch.npu.amp.GradScaler(init_scale=1024.0)⟧\n{CAST}",
    f"{HEAD}scaler = ⟦NPU310:torch.npu.amp.GradScaler(enabled=True)⟧\n{CAST}",
    f"{HEAD}scaler = ⟦NPU310:torch.amp.GradScaler('npu')⟧\n{CAST}{CAST}",
]


@pytest.mark.parametrize("snippet", NEEDLESS)
def test_bfloat16_needs_no_scaler(snippet: str) -> None:
    source = check(snippet)
    (found,) = findings(source)
    assert found.effective_severity is Severity.HINT


NEEDED = [
    f"{HEAD}scaler = torch.npu.amp.GradScaler()\n",
    f"{HEAD}scaler = torch.npu.amp.GradScaler(enabled=half)\n{CAST}",
    f"{HEAD}scaler = torch.npu.amp.GradScaler(1.0, 2.0, 0.5, 9, True, on)\n{CAST}",
    f"{HEAD}scaler = torch.npu.amp.GradScaler(**options)\n{CAST}",
    f"{HEAD}scaler = torch.npu.amp.GradScaler()\n{CAST}{CAST.replace('bfloat16', 'float16')}",
    f"{HEAD}scaler = torch.npu.amp.GradScaler()\n{CAST}with torch.autocast('npu'): pass\n",
    f"{HEAD}scaler = torch.npu.amp.GradScaler()\n{CAST}cast = maybe_autocast()\n",
    f"{HEAD}scaler = torch.npu.amp.GradScaler()\n{CAST}model.half()\n",
]


@pytest.mark.parametrize("snippet", NEEDED)
def test_a_scaler_that_may_be_needed(snippet: str) -> None:
    check(snippet)
