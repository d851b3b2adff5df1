"""Why parameters come out different in several processes, as `migrate --distributed` tells it."""

import pytest

from npulens.fixes.multi_device.script_rewriting import ProjectFile, distributed_program
from npulens.fixes.scripts import NPU_CARDS, UnclearError

SCRIPT = """\
import torch
import torch.nn as nn
import torch.nn.functional as F
import torchvision
from torch.utils.data import DataLoader

{top}

def main(data):
    loader = DataLoader(data, batch_size=4, shuffle=True)
    model = {model}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    {criterion}
    for epoch in range(2):
        for x, y, mask in loader:
            out = model(x.cuda())
            optimizer.zero_grad()
            loss = {loss}
            loss.backward()
            optimizer.step()


main(make())
"""
LAYER = """\
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))
        self.is_set = False
        {init}

    def forward(self, x, y=None):
        if not self.is_set:
            {set}
        {more}
        return x * self.scale
"""


def layer(set_to: str = "pass", more: str = "pass", init: str = "pass") -> str:
    return LAYER.format(set=set_to, more=more, init=init)


def program(
    loss: str, *, top: str = "", model: str = "nn.Linear(3, 3).cuda()", criterion: str = "pass"
) -> str:
    return SCRIPT.format(top=top, model=model, criterion=criterion, loss=loss)


def told(text: str) -> list[str]:
    """The first words of what is told, with the source of the line."""
    made = distributed_program(ProjectFile("main.py", "main", text), None, NPU_CARDS)
    lines = text.splitlines()
    return [lines[each.line - 1].strip() for each in made.differences]


MEAN = "F.mse_loss(out, y)"
TOLD = {
    "batch norm": (program(MEAN, model="nn.Sequential(nn.BatchNorm1d(3)).cuda()"), "model = nn."),
    "batch norm of a model of torchvision": (
        program(MEAN, model="torchvision.models.resnet18().cuda()"),
        "model = torchvision",
    ),
    "a layer of the script": (
        program(MEAN, top=layer(more="norm = nn.BatchNorm2d"), model="Layer().cuda()"),
        "norm = nn",
    ),
    "padding is left out": (
        program("criterion(out, y)", criterion="criterion = nn.CrossEntropyLoss(ignore_index=0)"),
        "criterion = nn",
    ),
    "classes have weights": (program("F.cross_entropy(out, y, weight=torch.ones(3))"), "loss = "),
    "a mean over a mask": (program("(out - y)[mask].mean()"), "loss = "),
    "divided by a sum": (program("((out - y) * mask).sum() / mask.sum()"), "loss = "),
    "divided by a sum that has a name": (
        program(
            "dice(out, y)",
            top="def dice(a, b):\n    both = (a * b).sum()\n    all = a.sum() + b.sum()\n"
            "    return 1 - both / all\n",
        ),
        "return 1 - both / all",
    ),
    "a sum": (program("(out - y).abs().sum()"), "loss = "),
    "a sum of the function": (program("F.mse_loss(out, y, reduction='sum') + 1"), "loss = "),
    "a sum of the criterion": (
        program("2 * criterion(out, y)", criterion="criterion = nn.MSELoss(reduction='sum')"),
        "criterion = nn",
    ),
    "samples are compared": (
        program("alike(out)", top="def alike(z):\n    return (z @ z.t()).mean()\n"),
        "return (z @",
    ),
    "samples are compared with others": (
        program(
            "alike(out, y)",
            top="def alike(a, b):\n    each = torch.arange(len(a))\n"
            "    return F.cross_entropy(torch.mm(a, b.T), each)\n",
        ),
        "return F.cross",
    ),
    "the first batch": (
        program(MEAN, top=layer("self.scale.data.copy_(x.mean(0))"), model="Layer().cuda()"),
        "self.scale.data",
    ),
    "every batch": (
        program(
            MEAN,
            top=layer(more="self.scale = nn.Parameter(self.scale + x.mean(0))"),
            model="Layer().cuda()",
        ),
        "self.scale = ",
    ),
}
SILENT = {
    "a mean": program(MEAN),
    "a sum that is divided by the size of the batch": program("(out - y).sum() / len(out)"),
    "a class that is asked for": program(
        MEAN, top="def is_norm(module):\n    return isinstance(module, nn.BatchNorm1d)\n"
    ),
    "proxies": program(
        "near(out, y)",
        top="class Near(nn.Module):\n    def forward(self, x, y):\n"
        "        return F.cross_entropy(x @ self.proxies.t(), y)\n",
        criterion="near = Near()",
    ),
    "a sum that an option asks for": program(
        "some(out, y)",
        top="def some(a, b, reduction='mean'):\n    if reduction == 'sum':\n"
        "        return (a - b).sum()\n    return (a - b).mean()\n",
    ),
    "what is no data": program(
        MEAN, top=layer(more="self.scale.data.clamp_(0, 1)"), model="Layer().cuda()"
    ),
    "the shape of data": program(
        MEAN, top=layer("self.scale.data.fill_(x.shape[0])"), model="Layer().cuda()"
    ),
    "what is set when the module is made": program(
        MEAN, top=layer(init="self.scale.data.fill_(0.5)"), model="Layer().cuda()"
    ),
}


@pytest.mark.parametrize("name", TOLD)
def test_reasons_are_told_with_their_lines(name: str) -> None:
    text, line = TOLD[name]
    [found] = told(text)
    assert found.startswith(line)


@pytest.mark.parametrize("name", SILENT)
def test_nothing_is_told_without_a_reason(name: str) -> None:
    assert told(SILENT[name]) == []


@pytest.mark.parametrize("value", ["x.mean(0)", "(x > 1).type(torch.float32).mean(0)"])
def test_what_a_module_sets_holds_in_all_processes(value: str) -> None:
    text = program(MEAN, top=layer(f"self.scale.data.copy_({value})"), model="Layer().cuda()")
    made = distributed_program(ProjectFile("main.py", "main", text), None, NPU_CARDS)
    assert "            same_in_processes(self.scale)\n" in made.texts["main.py"]


@pytest.mark.parametrize(
    "more",
    [
        "if x.max() > 3: self.scale.data.copy_(x.mean(0))",
        "for row in x[x > 0]: self.scale.data.add_(row)",
    ],
)
def test_what_data_decides_on_is_refused(more: str) -> None:
    text = program(MEAN, top=layer(more=more), model="Layer().cuda()")
    with pytest.raises(UnclearError) as raised:
        distributed_program(ProjectFile("main.py", "main", text), None, NPU_CARDS)
    assert "self.scale.data" in raised.value.text.en
