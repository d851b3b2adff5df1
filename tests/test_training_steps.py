"""What is understood of training scripts: which loop makes a step, which count epochs."""

import ast

import pytest

from npulens.fixes.scripts import read_script
from npulens.training.training_script import TrainingScript, read_training

SETUP = """\
import torch
from torch import nn

model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""

PLAIN = (
    SETUP
    + """
for epoch in range(2):  # epochs
    for x, y in loader:  # step
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
"""
)
FULL_BATCH = (
    SETUP
    + """
for epoch in range(200):  # step
    optimizer.zero_grad()
    out = model(features)
    nn.functional.cross_entropy(out, labels).backward()
    optimizer.step()
    with torch.no_grad():
        for x in tests:
            model(x)
"""
)
FUNCTION_PER_EPOCH = """
import torch

def train(model, loader, optimizer):
    for x, y in loader:  # step
        loss = model(x, y)
        loss.backward()
        optimizer.step()

def main():
    model = make()
    opt = torch.optim.Adam(model.parameters())
    for epoch in range(3):  # epochs
        train(model, loader, opt)
        for x in held_out:
            model(x)

if __name__ == "__main__":
    main()
"""
CLASS = """
import torch

class Runner:
    def __init__(self, net):
        self.net = net
        self.opt_net = torch.optim.AdamW(net.parameters())

    def step(self, batch):
        self.opt_net.zero_grad()
        loss = self.net(batch)
        loss.backward()
        self.opt_net.step()

    def run_epoch(self):
        for batch in self.data:  # step
            self.step(batch)

    def train(self):
        while self.epoch < 4:  # epochs
            self.run_epoch()

runner = Runner(net)
runner.train()
"""
GAN = """
import torch
opt_d = torch.optim.RMSprop(critic.parameters())
opt_g = torch.optim.RMSprop(generator.parameters())
for epoch in range(5):  # epochs
    for real in loader:  # step
        for _ in range(5):
            d_loss = critic(generator(z)).mean() - critic(real).mean()
            d_loss.backward()
            opt_d.step()
        g_loss = -critic(generator(z)).mean()
        g_loss.backward()
        opt_g.step()
"""
ACCUMULATED = (
    SETUP
    + """
for step in range(100):  # step
    for micro in range(4):
        loss = model(batch()) / 4
        loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
"""
)
FLUSHED = (
    SETUP
    + """
for epoch in range(2):  # epochs
    for i, x in enumerate(loader):  # step
        model(x).backward()
        if i % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()
    optimizer.step()
"""
)
SCALED = (
    SETUP
    + """
scaler = torch.cuda.amp.GradScaler()
for epoch in range(2):  # epochs
    for x in loader:  # step
        with torch.cuda.amp.autocast():
            loss = model(x)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    scheduler.step()
"""
)
SEVERAL_OPTIMIZERS = """
for epoch in range(2):  # epochs
    for x in loader:  # step
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss = model(x)
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
"""
TWO_PHASES = (
    SETUP
    + """
for x in unlabelled:  # step
    model(x).backward()
    optimizer.step()
for x in labelled:  # step
    model(x).backward()
    optimizer.step()
"""
)
CLOSURE = (
    SETUP
    + """
for x in loader:  # step
    def closure():
        loss = model(x)
        loss.backward()
        return loss
    optimizer.step(closure)
"""
)
AGENT = """
import torch

class Agent:
    def __init__(self):
        self.optim = torch.optim.Adam(self.policy.parameters())

    def learn(self, batch):
        loss = self.policy(batch)
        self.optim.zero_grad()
        loss.backward()
        self.optim.step()

agent = Agent()
for episode in range(100):  # epochs
    done = False
    while not done:  # step
        state, reward, done, _ = env.step(agent.act(state))
        agent.learn(memory.sample())
"""
POLICY = (
    SETUP
    + """
for update in range(10):  # epochs
    for step in range(128):
        state = env.step(action)
    for epoch in range(4):  # epochs
        for start in range(0, 512, 64):  # step
            loss = model(batch[start:start + 64])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""
)
SPAWNED = """
import torch
import torch.multiprocessing as mp

def worker(rank, args):
    optimizer = torch.optim.SGD(model.parameters(), lr=1)
    for epoch in range(args.epochs):  # epochs
        for x in loader:  # step
            model(x).backward()
            optimizer.step()

mp.spawn(worker, nprocs=2, args=(args,))
"""
ACCELERATED = """
from accelerate import Accelerator
accelerator = Accelerator()
for epoch in range(2):  # epochs
    for x in loader:  # step
        with accelerator.accumulate(model):
            accelerator.backward(model(x))
            optimizer.step()
            optimizer.zero_grad()
"""
PHASES = (
    SETUP
    + """
for epoch in range(3):  # epochs
    for phase in ["train", "val"]:  # epochs
        for x in loaders[phase]:  # step
            with torch.set_grad_enabled(phase == "train"):
                loss = model(x)
                if phase == "train":
                    loss.backward()
                    optimizer.step()
"""
)
TIMM = """
def train_one_epoch(model, loader, optimizer, loss_scaler):
    for x in loader:  # step
        loss = model(x)
        loss_scaler(loss, optimizer, parameters=model.parameters())

def main():
    for epoch in range(3):  # epochs
        train_one_epoch(model, loader, optimizer, scaler)

main()
"""
TURNS = """
import torch
opt_d = torch.optim.Adam(netD.parameters())
opt_g = torch.optim.Adam(netG.parameters())
for scale in range(8):  # epochs
    for epoch in range(2000):  # step
        for j in range(3):
            netD(x).mean().backward()
            opt_d.step()
        for j in range(3):
            netG(z).mean().backward()
            opt_g.step()
"""
SCRIPTS = {
    "plain": PLAIN, "full batch": FULL_BATCH, "function per epoch": FUNCTION_PER_EPOCH,
    "class": CLASS, "gan": GAN, "accumulated": ACCUMULATED, "flushed": FLUSHED,
    "scaled": SCALED, "several optimizers": SEVERAL_OPTIMIZERS, "two phases": TWO_PHASES,
    "closure": CLOSURE, "agent": AGENT, "policy": POLICY, "spawned": SPAWNED,
    "accelerated": ACCELERATED, "turns": TURNS, "phases": PHASES, "timm": TIMM,
}  # fmt: skip


def read(text: str) -> TrainingScript:
    tree = ast.parse(text)
    return read_training(tree, read_script(tree, text).module)


def marked(text: str, word: str) -> list[int]:
    lines = text.splitlines()
    return [number for number, line in enumerate(lines, 1) if line.endswith(f"# {word}")]


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_loops_of_a_script(name: str) -> None:
    steps = read(SCRIPTS[name]).steps
    assert [step.loop.lineno for step in steps] == marked(SCRIPTS[name], "step")
    outer = [loop.lineno for step in steps for loop in step.outer_loops]
    assert outer == marked(SCRIPTS[name], "epochs")


@pytest.mark.parametrize(
    "text",
    [
        "scheduler.step()\nloss.backward()\n",
        "class F(torch.autograd.Function):\n    def backward(ctx, g):\n        return g\n",
        SETUP + "for x in data:\n    env.step(x)\n    prof.step()\n",
        SETUP + "for x in data:\n    model(x).backward()\n",
        SETUP + "model(x).backward()\noptimizer.step()\n",
        GAN.replace(
            "for epoch in range(5):  # epochs\n    for real in loader:", "def f():\n    if 1:"
        ),
    ],
)
def test_what_trains_in_no_loop(text: str) -> None:
    assert read(text).steps == ()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("import lightning as L\nt = L.Trainer()\nt.fit(m)\n", "lightning"),
        ("from pytorch_lightning import Trainer\nTrainer(gpus=1).fit(m)\n", "lightning"),
        ("from transformers import Trainer\nt = Trainer(m)\nt.train()\n", "transformers"),
        (
            "from transformers import Trainer\nclass Mine(Trainer):\n    pass\nMine(m).train()\n",
            "transformers",
        ),
        ("from trl import SFTTrainer\ntrainer = SFTTrainer(m)\ntrainer.train()\n", "transformers"),
    ],
)
def test_loops_of_libraries(text: str, name: str) -> None:
    assert [run.name for run in read(text).runs] == [name]


def test_models_of_the_file_are_no_trainers() -> None:
    assert read("class Trainer:\n    pass\nTrainer().train()\nmodel.train()\n").runs == ()
