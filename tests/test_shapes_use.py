"""Tensors that only what is done with them shows, and places that write or look at their values."""

import pytest

from helpers import CATALOGUE, code
from npulens.analysis import analyze, analyze_shapes
from npulens.catalog.model import Target
from npulens.text.document import Document

HEAD = (
    "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\nimport wandb\n"
    "from torchvision.utils import save_image\n\n\n"
)
ACC = "torch.accelerator.current_accelerator()"
# Each body of a step of training with the places in it, in order.
STEPS: dict[str, tuple[str, list[str]]] = {
    "what a loss is compared with": (
        "loss = nn.CrossEntropyLoss()(guess, labels)\n    if loss > 9:\n        return",
        ["loss > 9"],
    ),
    "what begins a backward pass, of a model that may return several": (
        "model.train()\n    out = model(guess)\n    loss = out['loss']\n    loss.backward()\n"
        "    if loss < 3:\n        return",
        ["loss < 3"],
    ),
    "text that a logger fills in": (
        "loss = F.mse_loss(guess, labels)\n    logger.info('%f at %d', loss, 3)\n"
        "    logger.info('at %d', 3)\n    logger.info('begins')",
        ["logger.info('%f at %d', loss, 3)"],
    ),
    "records of a run": (
        "loss = F.mse_loss(guess, labels)\n    run.log({'loss': loss})\n"
        "    run.log({'rate': rate})",
        ["{'loss': loss}"],
    ),
    "tokens as text": (
        "ids = F.softmax(guess, -1).argmax(-1)\n    tokenizer.decode(ids)\n"
        "    tokenizer.decode([1, 2])\n    model.decode(ids)",
        ["tokenizer.decode(ids)"],
    ),
    "pictures": (
        "image = F.relu(guess)\n    save_image(image, 'a.png')\n    wandb.Image(image)\n"
        "    save_image(image.detach().to('cpu'), 'b.png')",
        ["save_image(image, 'a.png')", "wandb.Image(image)", "image.detach().to('cpu')"],
    ),
    "how many are kept": (
        "scores = F.softmax(guess, -1)\n    count = int(scores.sum())\n"
        "    a = scores.topk(count)\n    b = torch.topk(scores, count)\n    c = scores.topk(5)",
        ["int(scores.sum())", "scores.topk(count)", "torch.topk(scores, count)"],
    ),
    "rows that are repeated as often as a tensor says": (
        "scores = F.softmax(guess, -1)\n    count = int(scores.sum())\n"
        "    a = scores.expand(count, -1)\n    b = scores.expand(scores.size(0), -1)",
        ["int(scores.sum())", "scores.expand(count, -1)"],
    ),
    "a length that a tensor had before": (
        "scores = F.softmax(guess, -1)\n    count = int(scores.sum())\n"
        "    ids = torch.arange(count)\n    a = scores.expand(-1, count)",
        ["int(scores.sum())", "torch.arange(count)"],
    ),
    "tensors put into a tensor of the host": (
        "loss = F.mse_loss(guess, labels)\n    a = torch.FloatTensor([loss, loss])\n"
        "    b = torch.FloatTensor([rate, 2.0])",
        ["torch.FloatTensor([loss, loss])"],
    ),
    "what is on the host until it is moved": (
        "count = y.max().item()\n    y = y.cuda()\n    top = y.max().item()",
        ["y.max().item()"],
    ),
    "what is moved to the accelerator and then replaced": (
        f"count = y.max().item()\n    y = y.to({ACC})\n    y = model(y)\n    top = y.max().item()",
        ["y.max().item()"],
    ),
    "what is moved and made another type": (
        f"count = y.max().item()\n    y = y.to({ACC}, torch.float16)\n    top = y.max().item()",
        ["y.max().item()"],
    ),
    "what is made another type before it is moved": (
        "count = y.to(torch.float16).max().item()\n"
        "    most = y.to(dtype=torch.float16).max().item()\n"
        f"    y = y.to({ACC}, torch.float16)\n    top = y.amax().item()",
        ["y.amax().item()"],
    ),
    "a comparison that PyTorch is given": (
        "chosen = boxes['score'] > 0.5\n    ids = torch.where(chosen)[1]",
        ["torch.where(chosen)"],
    ),
    "a comparison of something beside one of a tensor": (
        "scores = F.softmax(guess, -1)\n    both = (boxes['a'] > 0) & (scores > 0)\n"
        "    if both.any():\n        return",
        ["both.any()"],
    ),
    "a list that is copied": (
        "left = names.copy()\n    name = left.pop()\n    loss = model(name)\n    loss.backward()\n"
        "    total = loss.item()",
        ["loss.item()"],
    ),
}


@pytest.mark.parametrize("name", STEPS)
def test_what_shows_a_tensor_and_what_reads_it(name: str) -> None:
    body, expected = STEPS[name]
    parameters = "model, guess, labels, boxes, names, y, logger, run, rate, tokenizer"
    source = f"{HEAD}def train_step({parameters}):\n    {body}\n"
    ranked = analyze_shapes(Document("m.py", source), CATALOGUE).ranked
    found = sorted((each.hotspot for each in ranked), key=lambda hotspot: hotspot.span)
    assert [each.symbol for each in found] == expected


def _codes(snippet: str) -> list[str]:
    found = analyze(Document("m.py", HEAD + code(snippet)), CATALOGUE, Target())
    return sorted({each.rule.code for each in found if each.rule.code.startswith("NPU80")})


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        ("if not self.ready:\n            x = x + 1", ["NPU806"]),
        ("x = x * float(self.ready)", ["NPU805"]),
        ("if self.ready is None:\n            x = x + 1", []),
        ("if self.ready.shape[0] > 2:\n            x = x + 1", []),
        ("x = x * self.ready", []),
    ],
)
def test_decisions_on_buffers_are_looked_for(read: str, expected: list[str]) -> None:
    source = (
        "class Net(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.register_buffer('ready', torch.zeros(1))\n\n"
        "    def forward(self, x):\n"
        f"        {read}\n"
        "        return x\n"
    )
    assert _codes(source) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [("valid", ["NPU802"]), ("is_valid", ["NPU802"]), ("invalid", []), ("is_labeled", [])],
)
def test_names_of_masks_are_looked_for(name: str, expected: list[str]) -> None:
    source = (
        "class Head(nn.Module):\n"
        f"    def forward(self, points, {name}):\n"
        f"        return points[{name}]\n"
    )
    assert _codes(source) == expected


STEP = """
def fit(model, data, optimizer):
    optimizer.zero_grad()
    guess = model(data.x)
    loss = F.nll_loss(guess[data.train_mask], data.y[data.train_mask])
    loss.backward()
    for weight in model.parameters():
        weight.data.clamp_(-1, 1)
    optimizer.step()
    return float(loss)
"""


def test_a_step_without_a_loop_around_its_backward_pass_is_training() -> None:
    assert _codes(STEP) == ["NPU802", "NPU805"]


@pytest.mark.parametrize(
    "begins",
    [
        "loss.backward()",
        "(loss / 4).backward()",
        "scaler.scale(loss).backward()",
        "engine.backward(loss)",
    ],
)
@pytest.mark.parametrize(
    ("read", "expected"),
    [
        ("float(loss)", ["NPU805"]),
        ("1 if loss > 2 else 0", ["NPU806"]),
        ("f'{loss:.3f}'", ["NPU805"]),
        ("logger.info('%f', loss)", ["NPU805"]),
        ("loss.detach()", []),
        ("float(lossless)", []),
    ],
)
def test_readings_of_a_loss_are_looked_for(begins: str, read: str, expected: list[str]) -> None:
    source = (
        "def fit(model, data, optimizer, scaler, engine, logger, lossless):\n"
        f"    loss = model(data.x)\n    {begins}\n    optimizer.step()\n    return {read}\n"
    )
    assert _codes(source) == expected


@pytest.mark.parametrize(
    "body",
    [
        "\n        model(batch).sum().backward()",
        " model(batch).sum().backward()",
        '\n        loss = model(batch\n  ).sum(); note = """\nend"""\n        loss.backward()',
    ],
)
def test_code_around_a_loop_that_trains_is_not(body: str) -> None:
    around = (
        "def fit(model, loader, x: torch.Tensor):\n"
        "    first = x.sum().item()\n"
        f"    for batch in loader:{body}\n"
    )
    ranked = analyze_shapes(Document("m.py", HEAD + around), CATALOGUE).ranked
    inside = around.replace("for batch in loader:", "if x.dim():")
    once = analyze_shapes(Document("m.py", HEAD + inside), CATALOGUE).ranked
    assert ranked[0].score < once[0].score


@pytest.mark.parametrize(
    ("head", "read", "expected"),
    [
        ("i, row in enumerate(rows)", "sizes[i].item()", 0),
        ("row in rows", "row.item()", 1),
        ("i, row in enumerate(rows)", "row.item()", 1),
    ],
)
def test_a_counter_reads_no_element(head: str, read: str, expected: int) -> None:
    snippet = f"""
    def forward(rows: torch.Tensor, sizes: torch.Tensor):
        for {head}:
            size = {read}
    """
    ranked = analyze_shapes(Document("m.py", HEAD + code(snippet)), CATALOGUE).ranked
    assert [each.hotspot.symbol for each in ranked].count("rows") == expected


DISPATCHER = code(
    """
    import torch
    from torch import nn


    class Dispatcher:
        def __init__(self, gates):
            self.rows = torch.nonzero(gates)
            self.sizes = (gates > 0).sum(0).tolist()


    class Experts(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.gate = nn.Linear(width, 4)
            MADE

        def forward(self, x):
            gates = torch.softmax(self.gate(x), -1)
            return IN_FORWARD
    """
)


@pytest.mark.parametrize(("made", "in_forward"), [(False, True), (True, False)])
def test_what_a_forward_pass_makes_anew_is_no_start_up(made: bool, in_forward: bool) -> None:
    source = DISPATCHER.replace("MADE", "self.d = Dispatcher(torch.ones(3))" if made else "pass")
    source = source.replace("IN_FORWARD", "Dispatcher(gates).rows" if in_forward else "gates")
    found = analyze(Document("m.py", source), CATALOGUE, Target())
    assert {"NPU801", "NPU805"} <= {f.rule.code for f in found} or not in_forward
    assert in_forward or not found
