"""Half precision: kernels that a project compiles, and types that differ."""

from pathlib import Path

import pytest

from commands import invoke
from npulens.fixes.instruments.inserting import instrumented
from npulens.fixes.instruments.known_instruments import BY_NAME
from npulens.fixes.scripts import UnclearError

MAIN = """\
import torch
from net import Net
model = Net().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in loader:
    loss = model(x.cuda()).sum()
    loss.backward()
    optimizer.step()
"""
NET = """\
import torch
from ops.group import group, Group
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)
    def forward(self, x):
        return GROUP(self.layer(x))
"""
GROUP = """\
import torch
IMPORT
class Group(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return kernels.group(x)
group = Group.apply
"""
SETUP = """\
from setuptools import setup
from torch.utils.cpp_extension import CUDAExtension
setup(name="ops", ext_modules=[CUDAExtension("group_kernels", ["group.cu"])])
"""
LOAD = (
    "from torch.utils.cpp_extension import load\nkernels = load(name='kernels', sources=['a.cu'])"
)


@pytest.mark.parametrize(
    ("line", "called", "is_refused"),
    [
        ("from ops import kernels", "group", True),
        ("from . import kernels", "Group.apply", True),
        ("import group_kernels as kernels", "group", True),
        ("import other_kernels as kernels", "group", False),
        ("from ops import plain as kernels", "group", False),
        (LOAD, "group", True),
        ("from ops import kernels", "torch.relu", False),
    ],
)
def test_kernels_of_the_project(line: str, called: str, is_refused: bool, here: Path) -> None:
    (here / "ops").mkdir()
    (here / "ops" / "__init__.py").write_text("")
    (here / "ops" / "plain.py").write_text("def group(x):\n    return x\n")
    (here / "ops" / "setup.py").write_text(SETUP)
    (here / "ops" / "group.py").write_text(GROUP.replace("IMPORT", line))
    (here / "net.py").write_text(NET.replace("GROUP", called))
    (here / "train.py").write_text(MAIN)
    for kind in ("bfloat16", "float16"):
        code, _, errors = invoke("instrument", kind, "train.py")
        assert (code, "ops/group.py" in errors) == (2 if is_refused else 0, is_refused)
        invoke("instrument", kind, "train.py", "--remove")


HEAD = "import torch\nfrom torch import nn\nfrom torch.nn import functional as F\n"
BANK = """\
class Bank(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("rows", torch.zeros(9, 4))
        self.layer = nn.Linear(4, 4)
    def forward(self, x, indices):
        new = self.layer(x)
        WRITE
        return self.rows.sum() + new.sum()
model = Bank()
for x, y in loader:
    loss = model(x, y)
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("write", "is_refused"),
    [
        ("self.rows[indices] = new.detach()", True),
        ("self.rows.data[indices] = new.detach().float()", False),
        ("self.rows[indices] = F.softmax(new, -1)", False),
        ("self.rows[:4] = new.detach()", False),
        ("self.rows.index_add_(0, indices, new)", True),
        ("self.rows.scatter_reduce_(0, indices, new, 'sum')", True),
        ("self.rows.lerp_(new, 0.1)", True),
        ("self.rows.copy_(new)", False),
        ("self.rows.mul_(0.9).add_(new)", False),
        ("new = torch.cat([new, self.rows])", False),
    ],
)
def test_writes_into_buffers(write: str, is_refused: bool) -> None:
    text = HEAD + BANK.replace("WRITE", write)
    for kind in ("bfloat16", "float16"):
        if is_refused:
            with pytest.raises(UnclearError) as found:
                instrumented(text, BY_NAME[kind])
            assert "raises an error" in found.value.text.en
        else:
            assert instrumented(text, BY_NAME[kind])


@pytest.mark.parametrize(
    ("kept", "is_array"),
    [
        ("torch.cat([out, torch.zeros(4, 4)])", False),
        ("torch.cat([out, out])", True),
        ("torch.stack((out, F.softmax(out, -1)))", True),
        ("out * torch.ones(4, 4)", False),
        ("out * 2", True),
        ("torch.where(y > 0, out, torch.rand(4, 4))", False),
        ("torch.cat([out, torch.zeros(4, 4, dtype=torch.bool)])", True),
        ("torch.cat([out, y.float()])", False),
    ],
)
def test_what_is_put_together_with_float32(kept: str, is_array: bool) -> None:
    text = (
        HEAD + "for x, y in loader:\n    out = model(x)\n    loss = F.mse_loss(out, y)\n"
        f"    loss.backward()\n    optimizer.step()\n    ({kept}).detach().cpu().numpy()\n"
    )
    if is_array:
        with pytest.raises(UnclearError):
            instrumented(text, BY_NAME["bfloat16"])
    else:
        assert instrumented(text, BY_NAME["bfloat16"])


SSIM = """\
def similarity(a, b, window):
    CAST
    mean = F.conv2d(a, window)
    square = F.conv2d(a * FACTOR, window) - mean.pow(2)
    return square.mean()
from pytorch_msssim import ssim
for x, y in loader:
    loss = 1 - MEASURE
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("measure", "cast", "factor", "is_refused"),
    [
        ("ssim(model(x), y)", "pass", "b", True),
        ("similarity(model(x), y, w)", "pass", "a", True),
        ("similarity(model(x), y, w)", "pass", "b", False),
        ("similarity(model(x), y, w)", "a = a.float()", "a", False),
        ("F.mse_loss(model(x), y)", "pass", "a", False),
    ],
)
def test_variances_of_windows(measure: str, cast: str, factor: str, is_refused: bool) -> None:
    text = HEAD + SSIM.replace("MEASURE", measure).replace("CAST", cast).replace("FACTOR", factor)
    for kind in ("bfloat16", "float16"):
        if is_refused:
            with pytest.raises(UnclearError) as found:
                instrumented(text, BY_NAME[kind])
            assert "cannot be computed in half precision" in found.value.text.en
        else:
            assert instrumented(text, BY_NAME[kind])
