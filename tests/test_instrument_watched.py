"""Which model and optimizer are watched, and when a step is over: tables of script shapes."""

import pytest

from npulens.fixes.instruments.inserting import instrumented
from npulens.fixes.instruments.known_instruments import BY_NAME
from npulens.fixes.scripts import UnclearError

MARK = "  # npulens: instrument "


def put_in(text: str, kind: str) -> str:
    """A script with an instrument, without the marks."""
    result = instrumented(text, BY_NAME[kind])
    return "\n".join(line.partition(MARK)[0] for line in result.splitlines())


COUNTED = """\
import torch
model = torch.nn.Linear(4, 4)
COUNT
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batches in loader:
    for x in batches:
        loss = model(x).mean()
        DIVIDE
        loss.backward()
    optimizer.step()
"""
ARMS = "if args.tokens:\n    times = args.tokens // 4\nelse:\n    times = args.batch // 8"


@pytest.mark.parametrize(
    ("count", "divide", "written"),
    [
        (ARMS, "loss = loss / times", "times"),
        (ARMS, "loss /= times", "times"),
        ("times = 4", "(loss / times).item()", "times"),
        (ARMS, "pass", None),
        (ARMS, "loss = loss / len(batches)", None),
    ],
)
def test_how_often_a_loop_of_batches_adds_up(count: str, divide: str, written: str | None) -> None:
    text = COUNTED.replace("COUNT", count).replace("DIVIDE", divide)
    if written is None:
        with pytest.raises(UnclearError) as found:
            put_in(text, "monitor")
        assert "added up" in found.value.text.en
    else:
        assert f"grad_acc_steps={written})" in put_in(text, "monitor")


def test_what_drives_an_optimizer_is_no_second_one() -> None:
    text = (
        "import library as lib\nmodel = lib.Model()\n"
        "optimizer = lib.optim.Adam(model.parameters())\n"
        "manager = lib.optim.Manager(loss_scale=2)\nmanager.add_optimizer(optimizer)\n"
        "for x in loader:\n    loss = model(x)\n    manager.zero_grad()\n"
        "    manager.backward(loss)\n    manager.step()\n"
    )
    assert "set_monitor(model, optimizer=optimizer," in put_in(text, "monitor")


@pytest.mark.parametrize(
    ("line", "is_refused"),
    [
        ("model, rest = torch.load('path')", True),
        ("model = torch.load('path')", True),
        ("model = wrap(model)", False),
        ("model = load(model, 'path')", False),
        ("model.load_state_dict(torch.load('path'))", False),
    ],
)
def test_a_model_that_is_replaced_behind_its_optimizer(line: str, is_refused: bool) -> None:
    text = (
        "import torch\nfrom nets import Net\nmodel = Net()\n"
        f"optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n{line}\n"
        "def train():\n    for x in loader:\n        loss = model(x)\n        loss.backward()\n"
        "        optimizer.step()\nfor epoch in range(3):\n    train()\n"
        "model = torch.load('best')\n"
    )
    if is_refused:
        with pytest.raises(UnclearError) as found:
            put_in(text, "monitor")
        assert (found.value.line, "another model" in found.value.text.en) == (5, True)
    else:
        assert "set_monitor(model," in put_in(text, "monitor")


def test_a_model_that_is_wrapped_behind_the_function_that_makes_its_optimizer() -> None:
    text = (
        "import torch\ndef make(model):\n    groups = model.groups()\n"
        "    for p in model.parameters():\n        groups.append(p)\n"
        "    optim = torch.optim.SGD(groups, lr=0.1)\n    return optim\n"
        "def train():\n    net = torch.nn.Linear(4, 4)\n    optim = make(net)\n"
        "    net, optim = amp.initialize(net, optim)\n    net = wrap(net)\n"
        "    for x in loader:\n        loss = net(x)\n        loss.backward()\n"
        "        optim.step()\ntrain()\n"
    )
    result = put_in(text, "monitor")
    assert "set_monitor(net, optimizer=optim, grad_acc_steps=1)\n    for x in loader" in result


@pytest.mark.parametrize("around", ["with accelerator.accumulate(model):", "if True:"])
def test_turns_that_only_add_up_are_no_steps(around: str) -> None:
    text = (
        f"for x in loader:\n    {around}\n        loss = model(x)\n"
        "        accelerator.backward(loss)\n        optimizer.step()\n"
    )
    result = put_in(text, "profiler")
    guarded = "        if accelerator.sync_gradients:\n            npu_profiler.step()"
    assert (guarded in result) == ("accumulate" in around)


@pytest.mark.parametrize(
    ("line", "is_put_in"),
    [
        ("if broken: return", True),
        ("if x.bad and broken: return", True),
        ("if broken(): return", False),
        ("if broken: return\n        else: pass", False),
    ],
)
def test_a_loop_that_is_left_in_one_line(line: str, is_put_in: bool) -> None:
    text = (
        "def train():\n    for x in loader:\n        loss = model(x)\n        loss.backward()\n"
        f"        optimizer.step()\n        {line}\n"
    )
    if is_put_in:
        condition = line.partition(":")[0]
        guarded = f"        {condition}:\n            npu_profiler.stop()\n        {line}"
        assert guarded in put_in(text, "profiler")
    else:
        with pytest.raises(UnclearError):
            put_in(text, "profiler")


def test_a_model_whose_train_computes_the_loss() -> None:
    text = (
        "import torch\nfor batch in loader:\n    loss = model.train(batch.cuda())\n"
        "    loss.backward()\n    optimizer.step()\n"
    )
    wanted = '    with torch.autocast("npu", dtype=torch.bfloat16):\n        loss = model.train('
    assert wanted in put_in(text, "bfloat16").replace(MARK, "")


def test_nothing_is_put_between_an_if_and_its_elif() -> None:
    text = (
        "import torch\nmodel = torch.nn.Linear(4, 4)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n\n\n"
        "def train(limit):\n    for n, x in enumerate(loader):\n"
        "        model(x).mean().backward()\n        optimizer.step()\n"
        "        if n == 1: print('first')\n        elif n > limit: return\n\n\ntrain(5)\n"
    )
    with pytest.raises(UnclearError):
        put_in(text, "profiler")
    whole = text.replace("if n == 1: print('first')\n        elif", "if")
    assert "        if n > limit:\n            npu_profiler.stop()" in put_in(whole, "profiler")
