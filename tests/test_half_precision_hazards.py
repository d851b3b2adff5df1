"""What half precision is refused for, and where the lines of a scaler and of autocast go."""

from pathlib import Path

import pytest

from commands import invoke
from npulens.fixes.instruments.inserting import instrumented
from npulens.fixes.instruments.known_instruments import BY_NAME
from npulens.fixes.scripts import UnclearError

HEAD = (
    "import numpy as np\nimport torch\nfrom torch import nn\nfrom torch.nn import functional as F\n"
)
UPDATE = "    loss.backward()\n    optimizer.step()\n"
LOOP = HEAD + "seen = []\nfor x, y in loader:\n    out = model(x)\n    loss = F.mse_loss(out, y)\n"
BOTH = ("bfloat16", "float16")


def put_in(text: str, kind: str) -> str:
    lines = instrumented(text, BY_NAME[kind]).splitlines()
    kept = (line for line in lines if "instead of:" not in line)
    return "\n".join(line.partition("  # npulens")[0] for line in kept)


@pytest.mark.parametrize(
    ("after", "line"),
    [
        ("    seen.append(out.detach().cpu())\nnp.concatenate(seen)\n", 12),
        ("    seen.append(torch.sigmoid(out).detach().cpu().numpy())\n", 11),
        ("    keep(out)\ndef keep(values):\n    return np.asarray(values.cpu())\n", 13),
        ("    a, b = out.max(1)\n    seen.append(b.numpy())\n    seen.append(a.numpy())\n", 13),
        ("    seen.append(loss.detach().cpu().numpy())\n", None),
        ("    seen.append(out.argmax(1).numpy())\n    np.mean(loss.item())\n", None),
        ("    out = out.float()\n    seen.append(out.cpu().numpy())\n", None),
        ("    seen.append(out.to('cpu').numpy())\n", 11),
        ("    seen.append(out.to(torch.float32).numpy())\n", None),
        ("    seen.append(model.loss_head(out).detach().cpu().numpy())\n", 11),
        ("    seen.append(model.aux_loss(out).detach().cpu().numpy())\n", None),
        ("    seen.append(model.loss_fn(out, y).detach().cpu().numpy())\n", None),
    ],
)
def test_arrays_of_bfloat16(after: str, line: int | None) -> None:
    text = LOOP + UPDATE + after
    assert put_in(text, "float16")
    if line is None:
        assert put_in(text, "bfloat16")
    else:
        with pytest.raises(UnclearError) as found:
            put_in(text, "bfloat16")
        assert (found.value.line, "NumPy" in found.value.text.en) == (line, True)


NET = """\
class Net(nn.Module):
    def forward(self, x, mask):
        scores = x @ x.T
        {}
        return scores.softmax(-1)
model = Net()
for x, y in loader:
    loss = F.mse_loss(model(x, x > 0), y)
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("code", "kinds"),
    [
        ("scores = scores.masked_fill(mask, -1e9)", ("float16",)),
        ("scores = scores.masked_fill(mask, float('-1e20'))", ("float16",)),
        ("scores[~mask] = -1e9", ("float16",)),
        ("scores = scores.masked_fill(mask, float('-inf'))", ()),
        ("scores = scores.masked_fill(mask, -1e4)", ()),
        ("scores = torch.linalg.inv(scores)", BOTH),
        ("scores = torch.linalg.inv(scores.float())", ()),
        ("scores = torch.fft.rfft(x).abs()", BOTH),
        ("out = torch.zeros(4, 4)\n        out[mask] = x @ x.T\n        scores = out", BOTH),
        ("out = torch.zeros(4, 4)\n        out[mask] = 1.0\n        scores = out", ()),
        ("out = torch.zeros(4, 4)\n        out[mask] = scores.float()\n        scores = out", ()),
        ("out = torch.zeros(4, 4)\n        out[0] = x @ x.T\n        scores = out", ()),
        ("scores = torch.log(torch.sigmoid(scores) + 1e-8)", ("float16",)),
        ("scores = (1 - scores.sigmoid()).clamp(min=1e-12).log()", ("float16",)),
        ("scores = torch.log(torch.sigmoid(scores) + 1e-6)", ()),
        ("scores = torch.log(F.softmax(x @ x.T, -1) + 1e-8)", ()),
        ("p = torch.sigmoid(scores).float()\n        scores = torch.log(p + 1e-8)", ()),
        ("scores[mask] = F.log_softmax(x, -1)", BOTH),
        ("scores[mask] = F.layer_norm(x, (4,))", BOTH),
        ("at = torch.BoolTensor([True])\n        scores[at] = -1e9", ("float16",)),
        ("out = torch.zeros(4, 4)\n        out[mask] = critic(x)\n        scores = out", BOTH),
        (
            "out = torch.zeros(4, 4)\n        out[mask] = mask.gather(0, y)\n        scores = out",
            (),
        ),
    ],
)
def test_what_a_model_cannot_do(code: str, kinds: tuple[str, ...]) -> None:
    text = HEAD + NET.format(code)
    for kind in BOTH:
        if kind in kinds:
            with pytest.raises(UnclearError) as found:
                put_in(text, kind)
            assert found.value.line in (8, 9)
        else:
            assert put_in(text, kind)


MAIN = """\
import torch
from model import Net, clip
model = Net().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = model(x.cuda(), y)
    loss.backward()
    clip(model)
    optimizer.step()
"""
MODEL = """\
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.criterion = torch.nn.{criterion}()
    def forward(self, x, y):
        return self.criterion(x, y)
def clip(model):
    for p in model.parameters():
        if p.grad is not None:
            {change}
"""


@pytest.mark.parametrize(
    ("criterion", "change", "refused"),
    [
        ("BCELoss", "p.grad = None", {"bfloat16": "model.py:5", "float16": "model.py:5"}),
        ("MSELoss", "p.grad.clamp_(-1, 1)", {"float16": "model.py:11"}),
        ("MSELoss", "p.grad = None", {}),
    ],
)
def test_other_files(criterion: str, change: str, refused: dict[str, str], here: Path) -> None:
    (here / "train.py").write_text(MAIN)
    (here / "model.py").write_text(MODEL.format(criterion=criterion, change=change))
    for kind in BOTH:
        code, _, errors = invoke("instrument", kind, "train.py")
        assert code == (2 if kind in refused else 0), errors
        assert refused.get(kind, "") in errors
        invoke("instrument", kind, "train.py", "--remove")


def test_scripts_of_the_host(here: Path) -> None:
    """The scaler of the NPU refuses tensors of the host."""
    for text in (MAIN.replace(".cuda()", ""), MAIN.replace(".cuda()", ".to(torch.device('cpu'))")):
        (here / "train.py").write_text(text)
        (here / "model.py").write_text(MODEL.format(criterion="MSELoss", change="pass"))
        code, _, errors = invoke("instrument", "float16", "train.py")
        assert (code, "nothing of this script is moved" in errors) == (2, True)


def test_what_is_not_code_does_not_cast() -> None:
    for line in (
        "# with autocast():",
        "text = 'GradScaler'",
        "from torch.cuda.amp import GradScaler",
    ):
        assert put_in(f"{line}\n{LOOP}{UPDATE}", "bfloat16")
    with pytest.raises(UnclearError):
        put_in(LOOP + UPDATE + "model.to(torch.bfloat16)\n", "bfloat16")


GAN = """\
import torch
for x in loader:
    loss_d = critic(x)
    loss_d.backward()
    opt_d.step()
    {}
    loss_g = critic(net(x))
    loss_g.backward()
    opt_g.step()
"""


@pytest.mark.parametrize(("between", "times"), [("log(x)", 1), ("if rest:\n        continue", 2)])
def test_the_scale_changes_once_a_turn(between: str, times: int) -> None:
    assert put_in(GAN.format(between), "float16").count("npu_scaler.update()") == times


def test_a_function_that_two_loops_run() -> None:
    text = HEAD + "def step():\n    loss = F.mse_loss(model(x), y)\n" + UPDATE
    text += "for _ in range(3):\n    step()\nfor _ in range(5):\n    step()\n"
    assert put_in(text, "float16").count("npu_scaler.update()") == 1


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        (
            "    loss_d.backward()\n    nn.utils.clip_grad_norm_(critic.parameters(), 1)\n"
            "    opt_d.step()\n    loss_g = F.mse_loss(net(x), y)\n    loss_g.backward()\n"
            "    nn.utils.clip_grad_norm_(net.parameters(), 1)\n    opt_g.step()\n",
            ["unscale_(opt_d)", "unscale_(opt_g)"],
        ),
        (
            "    loss_d.backward()\n    nn.utils.clip_grad_norm_(critic.parameters(), 1)\n"
            "    if x > 3:\n        opt_d.step()\n",
            None,
        ),
    ],
)
def test_clipping(lines: str, wanted: list[str] | None) -> None:
    text = HEAD + "for x, y in loader:\n    loss_d = F.mse_loss(critic(x), y)\n" + lines
    if wanted is None:
        with pytest.raises(UnclearError) as found:
            put_in(text, "float16")
        assert "without an update" in found.value.text.en
    else:
        result = put_in(text, "float16")
        assert [result.find(each) > 0 for each in wanted] == [True] * len(wanted)


def test_a_step_whose_loop_is_elsewhere() -> None:
    text = (
        HEAD + "def update(model, optimizer, x, y):\n    loss = F.mse_loss(model(x), y)\n" + UPDATE
    )
    for kind in BOTH:
        assert "    with torch.autocast" in put_in(text, kind)
    with pytest.raises(UnclearError):
        put_in(text, "profiler")


def test_data_is_prepared_before_autocast() -> None:
    text = HEAD + (
        "def fetch(batch):\n    return batch[0].cuda(), batch[1].cuda()\n"
        "for batch in loader:\n    x, y = fetch(batch)\n    loss = F.mse_loss(model(x), y)\n"
    )
    result = put_in(text + UPDATE, "bfloat16")
    assert "    x, y = fetch(batch)\n    with torch.autocast" in result


def test_a_wrapper_of_an_optimizer() -> None:
    text = LOOP + UPDATE.replace("step()", "step_and_update_lr()")
    assert "npu_profiler.step()" in put_in(text, "profiler")
    with pytest.raises(UnclearError) as found:
        put_in(text, "float16")
    assert "wrapper" in found.value.text.en


def test_an_optimizer_is_stepped_once() -> None:
    for between in ("opt_d.step()", "if x > 3:\n        opt_d.step()"):
        with pytest.raises(UnclearError) as found:
            put_in(GAN.format(between), "float16")
        assert "twice" in found.value.text.en


def test_gradients_that_a_script_sets() -> None:
    text = LOOP + UPDATE.replace("optimizer", "p.grad = g\n    optimizer")
    with pytest.raises(UnclearError):
        put_in(text, "bfloat16")
