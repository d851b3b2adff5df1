"""Autocast and a scaler, put into training scripts and taken out."""

import ast
import contextlib
from pathlib import Path

import pytest

from commands import invoke
from npulens.fixes.instruments.inserting import instrumented
from npulens.fixes.instruments.known_instruments import BY_NAME
from npulens.fixes.instruments.marks import without
from npulens.fixes.scripts import UnclearError
from test_instrument import own_scripts
from test_training_scripts import DOUBLES, HALF, SCRIPTS, copied, verified
from test_training_steps import CLOSURE, PLAIN, SETUP

MARKS = {kind: f"  # npulens: instrument {kind}" for kind in ("bfloat16", "float16")}


def put_in(text: str, kind: str) -> str:
    return instrumented(text, BY_NAME[kind])


def shown(text: str, kind: str) -> str:
    """The text without marks, kept lines, and what is before the first loop or function."""
    lines = [line.removesuffix(MARKS[kind]) for line in text.splitlines()]
    kept = [line for line in lines if "instead of:" not in line]
    first = next(n for n, line in enumerate(kept) if line.startswith(("for ", "def ", "class ")))
    return "\n".join(kept[first:])


def test_forward_pass_and_loss() -> None:
    assert (
        shown(put_in(PLAIN, "bfloat16"), "bfloat16")
        == """\
for epoch in range(2):  # epochs
    for x, y in loader:  # step
        optimizer.zero_grad()
        with torch.autocast("npu", dtype=torch.bfloat16):
            loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()"""
    )


def test_a_scaler_with_clipping_and_accumulation() -> None:
    text = (
        SETUP
        + """
for i, (x, y) in enumerate(loader):
    x = x.cuda()
    out = model(x)

    # the criterion
    loss = criterion(out, y) / 4
    loss.backward()  # adds up
    if (i + 1) % 4 == 0:
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
"""
    )
    result = put_in(text, "float16")
    assert (
        shown(result, "float16")
        == """\
for i, (x, y) in enumerate(loader):
    x = x.cuda()
    with torch.autocast("npu", dtype=torch.float16):
        out = model(x)

        # the criterion
        loss = criterion(out, y) / 4
    npu_scaler.scale(loss).backward()  # adds up
    if (i + 1) % 4 == 0:
        npu_scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        npu_scaler.step(optimizer)
        npu_scaler.update()
        optimizer.zero_grad()"""
    )
    assert without(result).text == text


def test_a_scaler_of_two_optimizers_is_updated_behind_the_last() -> None:
    text = """\
import torch
for x in loader:
    loss = decoder(encoder(x))
    loss.backward()
    first_optimizer.step()
    second_optimizer.step()
"""
    result = shown(put_in(text, "float16"), "float16")
    assert result.endswith(
        "    npu_scaler.step(first_optimizer)\n"
        "    npu_scaler.step(second_optimizer)\n"
        "    npu_scaler.update()"
    )


def test_a_loss_that_a_function_is_given() -> None:
    text = """\
import torch
def update(loss, optimizer):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

def train(model, loader, optimizer):
    for x, y in loader:
        out = model(x)
        loss = out.sub(y).square().mean()
        update(loss, optimizer)
"""
    result = shown(put_in(text, "bfloat16"), "bfloat16")
    assert result.endswith(
        '        with torch.autocast("npu", dtype=torch.bfloat16):\n'
        "            out = model(x)\n"
        "            loss = out.sub(y).square().mean()\n"
        "        update(loss, optimizer)"
    )


def test_branches_that_compute_the_loss() -> None:
    text = (
        SETUP
        + """
for x, y in loader:
    if mixed:
        loss = model(x).sum()
    else:
        loss = criterion(model(x), y)
    print(x)
    loss.backward()
    optimizer.step()
"""
    )
    result = shown(put_in(text, "bfloat16"), "bfloat16")
    assert result.splitlines()[1:6] == [
        '    with torch.autocast("npu", dtype=torch.bfloat16):',
        "        if mixed:",
        "            loss = model(x).sum()",
        "        else:",
        "            loss = criterion(model(x), y)",
    ]


def test_attributes_become_arrays_as_well() -> None:
    text = """\
import torch
class Runner:
    def compute(self, x):
        self.loss = self.criterion(self.net(x))
        self.loss.backward()
        self.optimizer.step()

    def train(self, loader):
        for x in loader:
            self.compute(x)
            losses.append(self.loss.cpu().data.numpy())
"""
    with pytest.raises(UnclearError) as found:
        put_in(text, "bfloat16")
    assert (found.value.line, "NumPy" in found.value.text.en) == (11, True)
    assert put_in(text.replace(".data.numpy()", ".float().numpy()"), "bfloat16")


def test_indices_may_become_arrays() -> None:
    text = SETUP + LOOP + "    out = model(x)\n    loss = out.sum()\n    loss.backward()\n"
    text += (
        "    optimizer.step()\n    seen += out.data.max(1)[1].cpu().numpy(), out.float().numpy()\n"
    )
    assert without(put_in(text, "bfloat16")).text == text


LOOP = "for x in loader:\n"


@pytest.mark.parametrize(
    ("text", "kind", "line", "reason"),
    [
        (SETUP + LOOP + "    model(x).backward()\n    optimizer.step()\n", "bfloat16", 7, "clear"),
        (CLOSURE, "float16", 12, "closure"),
        (PLAIN + "autocast()\n", "float16", 13, "already"),
        (PLAIN + "nn.BCELoss()\n", "bfloat16", 13, "BCEWithLogitsLoss"),
        (
            SETUP + LOOP + '    loss = model(x, """\n  a\n""")\n    loss.backward()\n'
            "    optimizer.step()\n",
            "bfloat16",
            7,
            "several lines",
        ),
        (
            SETUP + LOOP + "    out = model(x)\n    loss = out.sum()\n    loss.backward()\n"
            "    optimizer.step()\n    seen.append(out.detach().cpu().numpy())\n",
            "bfloat16",
            11,
            "NumPy",
        ),
        (
            SETUP + LOOP + "    loss = model(x)\n    engine.backward(loss)\n    optimizer.step()\n",
            "float16",
            8,
            "something else",
        ),
        ("from transformers import Trainer\nt = Trainer(m)\nt.train()\n", "bfloat16", 3, "library"),
        (
            SETUP + LOOP + "    loss = model(x)\n    loss.backward(\n        retain_graph=True)\n"
            "    optimizer.step()\n",
            "float16",
            8,
            "one",
        ),
    ],
)
def test_what_is_refused(text: str, kind: str, line: int, reason: str) -> None:
    with pytest.raises(UnclearError) as found:
        put_in(text, kind)
    assert (found.value.line, reason in found.value.text.en) == (line, True)


@pytest.mark.parametrize("name", own_scripts())
@pytest.mark.parametrize("kind", MARKS)
def test_taking_out_restores_each_byte(name: str, kind: str) -> None:
    text = own_scripts()[name]
    for original in (text, text.rstrip(), text.replace("\n", "\r\n"), text.replace("\n", "\r")):
        with contextlib.suppress(UnclearError):
            result = put_in(original, kind)
            ast.parse(result)
            assert without(result).text == original
            for other in ("profiler", "step-time"):
                together = instrumented(result, BY_NAME[other])
                ast.parse(together)
                assert without(together, [other]).text == result
                assert without(together).text == original
                assert without(together, [kind]).text == instrumented(original, BY_NAME[other])


def test_statements_that_were_moved_since(here: Path) -> None:
    result = put_in(PLAIN, "bfloat16")
    broken = result.replace("            loss =", "  loss =")
    (here / "train.py").write_text(broken)
    code, _, errors = invoke("instrument", "all", "train.py", "--remove")
    assert code == 2
    assert errors.startswith("npulens: train.py:")
    assert (here / "train.py").read_text() == broken


@pytest.mark.emulated
@pytest.mark.parametrize("kind", MARKS)
@pytest.mark.parametrize("name", ["mnist", "char_lstm", "llama", "imagenet_ddp"])
def test_losses_stay_near(
    name: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In half precision a step computes nearly the same; a scaler may leave out the first."""
    script = SCRIPTS[name]
    copied(name, tmp_path)
    arguments = ("--unsafe-fixes", *script.options, "train.py", "--", *script.arguments)
    before = verified(tmp_path, monkeypatch, *arguments, path=str(DOUBLES))[1]
    monkeypatch.chdir(tmp_path)
    code, _, errors = invoke("instrument", kind, "train.py")
    assert code == 0, errors
    after = verified(tmp_path, monkeypatch, *arguments, path=str(DOUBLES))[1]
    assert after["status"] == before["status"]
    assert after["losses"][0] == pytest.approx(before["losses"][0], rel=HALF, abs=HALF)
