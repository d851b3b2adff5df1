"""Who takes part in training: what loaders, models and optimizers come from."""

import ast

import pytest

from npulens.fixes.scripts import read_script
from npulens.training.flow import Flow
from npulens.training.participants import holders, is_loader, sources, trained_models
from npulens.training.training_script import TrainingScript, read_training

HEAD = """\
import torch
from torch import nn
from torch.utils.data import DataLoader
"""
LOOP = """\
for x, y in {loader}:
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
"""
PLAIN = """\
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""


def read(text: str) -> tuple[TrainingScript, Flow]:
    tree = ast.parse(text)
    script = read_script(tree, text)
    training = read_training(tree, script.module)
    return training, Flow(training.sites.program, training.sites)


def made(text: str) -> set[int]:
    """The lines of the loaders that steps take their data from."""
    training, flow = read(text)
    values = [v for step in training.steps for s in sources(step, flow) for v in s.made]
    return {value.node.lineno for value in values if is_loader(value.node, flow)}


LOADERS = {
    "plain": "a = DataLoader(d)\n" + PLAIN + LOOP.format(loader="a"),
    "counted": "a = DataLoader(d)\n" + PLAIN + LOOP.format(loader="tqdm(a, desc='x')"),
    "tuple": "a, b = DataLoader(d), DataLoader(e)\n" + PLAIN + LOOP.format(loader="a"),
    "dictionary": "a = {'t': DataLoader(d)}\n" + PLAIN + LOOP.format(loader="a['t']"),
    "items": "a = {n: DataLoader(d[n]) for n in d}\n" + PLAIN + LOOP.format(loader="a[phase]"),
    "function": "def f(): return DataLoader(d)\na = f()\n" + PLAIN + LOOP.format(loader="a"),
    "method": "x = DataLoader(d) if one else None\n" + PLAIN + LOOP.format(loader="iter(x)"),
}


@pytest.mark.parametrize("name", LOADERS)
def test_where_the_loader_of_steps_is_made(name: str) -> None:
    assert made(HEAD + LOADERS[name]) == {4}


def test_a_loader_is_followed_through_parameters_and_objects() -> None:
    text = f"""{HEAD}
class Runner:
    def __init__(self, net, loader):
        self.net = net
        self.loader = loader
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def run(self):
        for x in self.loader:
            self.net(x).backward()
            self.optimizer.step()

def main():
    model = nn.Linear(2, 2)
    train, test = DataLoader(d), DataLoader(e)
    Runner(model, train).run()
"""
    assert made(text) == {18}
    training, flow = read(text)
    [model] = trained_models(training, flow)
    assert [variable.name for variable in holders(model, flow)] == ["model"]


TRAINED = {
    "torch.optim.SGD(model.parameters())": ["model"],
    "torch.optim.Adam([{'params': model.a.parameters()}, {'params': head.parameters()}])": [
        "head",
        "model",
    ],
    "torch.optim.Adam(filter(lambda p: p.requires_grad, model.parameters()))": ["model"],
    "torch.optim.Adam(list(model.parameters()) + list(head.parameters()))": ["head", "model"],
    "make(model)": [],
}


@pytest.mark.parametrize("optimizer", TRAINED)
def test_which_models_an_optimizer_is_given(optimizer: str) -> None:
    text = f"{HEAD}model, head = A(), B()\na = DataLoader(d)\noptimizer = {optimizer}\n"
    training, flow = read(text + LOOP.format(loader="a"))
    found = {v.name for node in trained_models(training, flow) for v in holders(node, flow)}
    assert sorted(found) == TRAINED[optimizer]
