"""Half precision: scripts of the host, criteria and what only stores halves."""

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


def refusal(text: str, kind: str) -> str:
    """Why a script is refused; empty if it is not."""
    try:
        instrumented(text, BY_NAME[kind])
    except UnclearError as unclear:
        return f"{unclear.line}: {unclear.text.en}"
    return ""


MAIN = """\
import torch
import layers
SETUP
model = layers.Net(4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for inputs, y in loader:
    loss = model(inputs).sum()
    loss.backward()
    optimizer.step()
"""
LAYERS = """\
import torch
class Net(torch.nn.Module):
    '''Takes an Input of a GPU or of the host.'''
    def __init__(self, size):
        super().__init__()
        self.input_layer = torch.nn.Linear(size, size)
    def forward(self, x):
        return self.input_layer(x) + torch.ones(4, device=x.device)
"""


@pytest.mark.parametrize(
    ("setup", "is_host"),
    [
        ("torch.cuda.manual_seed_all(1)", True),
        ("device = 'cpu'\nlayers.Net(4).to(device)", True),
        ("print('no Input')", True),
        ("torch.cuda.set_device(1)", False),
        ("device = 'cuda' if torch.cuda.is_available() else 'cpu'", False),
        ("other.to(args.device)", False),
    ],
)
def test_scripts_that_move_nothing(setup: str, is_host: bool, here: Path) -> None:
    (here / "train.py").write_text(MAIN.replace("SETUP", setup))
    (here / "layers.py").write_text(LAYERS)
    code, _, errors = invoke("instrument", "float16", "train.py")
    assert (code, "nothing of this script is moved" in errors) == (2 if is_host else 0, is_host)


TRAINER = """\
class Trainer:
    def __init__(self, model, optimizer, loader):
        self.model, self.optimizer, self.loader = model, optimizer, loader
    def train(self):
        for x, y in self.loader:
            loss = self.model(x, y)
            loss.backward()
            self.optimizer.step()
"""


@pytest.mark.parametrize(("move", "is_host"), [("net", True), ("net.cuda()", False), ("", False)])
def test_what_is_given_may_be_moved_by_callers(move: str, is_host: bool, here: Path) -> None:
    (here / "setup.py").touch()
    (here / "trainer.py").write_text(TRAINER)
    if move:
        text = "from trainer import Trainer\nimport torch\nnet = torch.nn.Linear(4, 4)\n"
        (here / "main.py").write_text(f"{text}Trainer({move}, made, loader).train()\n")
    code, _, errors = invoke("instrument", "bfloat16", "trainer.py")
    assert (code, "nothing of this script is moved" in errors) == (2 if is_host else 0, is_host)


def test_a_file_of_another_folder_with_the_same_name_imports_nothing(here: Path) -> None:
    (here / "setup.py").touch()
    for name, text in {
        "one/main.py": MAIN.replace("SETUP", ""),
        "one/layers.py": LAYERS,
        "two/main.py": "SIZE = 4\n",
        "two/run.py": "from main import SIZE\nnet.cuda()\n",
    }.items():
        (here / name).parent.mkdir(exist_ok=True)
        (here / name).write_text(text)
    code, _, errors = invoke("instrument", "bfloat16", "one/main.py")
    assert (code, "nothing of this script is moved" in errors) == (2, True)


@pytest.mark.parametrize(
    ("lines", "is_array"),
    [
        ("loss = criterion(out, y)\n    seen.append(loss.data.cpu().numpy())\n", False),
        ("loss, score = edge_loss(out, y)\n    seen.append(loss.detach().numpy())\n", False),
        ("loss, score = edge_loss(out, y)\n    seen.append(score.detach().numpy())\n", True),
        ("for a, b in zip(out.argmax(1), y):\n        np.array_equal(a, b)\n", False),
        ("for a, b in zip(out, y):\n        np.array_equal(a, b)\n", True),
        ("for n, (a, b) in enumerate(zip(out, y)):\n        np.asarray(b)\n", False),
    ],
)
def test_what_a_criterion_gives(lines: str, is_array: bool) -> None:
    text = LOOP.replace("seen = []\n", "seen = []\ncriterion = nn.NLLLoss()\n" + CUDA)
    text += f"    {lines}    loss = F.mse_loss(out, y)\n{UPDATE}"
    assert ("NumPy" in refusal(text, "bfloat16")) == is_array


CUDA = "if torch.cuda.is_available():\n    criterion = criterion.cuda()\n"


STEPS = """\
import torch
from helpers import check
from library import inspect
for x, y in loader:
    loss = model(x, y)
    loss.backward()
    CALL
    optimizer.step()
model.train()
"""
HELPERS = """\
import torch
def check(model, most=1):
    return inner(model, most)
def inner(model, most):
    return torch.nn.utils.clip_grad_norm_(model.parameters(), most)
def look(model):
    print(model)
"""


@pytest.mark.parametrize(
    ("call", "outcome"),
    [
        ("norm = check(model, 2)", "unscaled"),
        ("if x > 2:\n        check(model, most=2)", "unscaled"),
        ("inspect(model)", "refused"),
        ("inspect(*model.parameters())", "refused"),
        ("inspect(optimizer)", "refused"),
        ("inspect(x)", "plain"),
        ("print(model)", "plain"),
        ("torch.save(model, 'path')", "plain"),
    ],
)
def test_what_runs_between_a_backward_pass_and_its_update(
    call: str, outcome: str, here: Path
) -> None:
    (here / "train.py").write_text(STEPS.replace("CALL", call) + "device = 'cuda'\n")
    (here / "helpers.py").write_text(HELPERS)
    code, _, errors = invoke("instrument", "float16", "train.py")
    assert (code, "train.py:7" in errors) == ((2, True) if outcome == "refused" else (0, False))
    text = (here / "train.py").read_text()
    assert ("scale(loss).backward()  # npulens: instrument float16\n    npu" in text) == (
        outcome == "unscaled" and "if" not in call
    )
    assert ("npu_scaler.unscale_(optimizer)" in text) == (outcome == "unscaled")


TWO_PASSES = """\
import torch
from sharp import Sharp
model = torch.nn.Linear(4, 4).cuda()
optimizer = Sharp(model.parameters(), torch.optim.SGD)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.first_step(zero_grad=True)
    again = torch.nn.functional.mse_loss(model(x), y)
    again.backward()
    optimizer.second_step(zero_grad=True)
"""
OWN = """\
class Sharp(torch.optim.Optimizer):
    def __init__(self, params, base):
        self.base = base(params)
    def second_step(self, zero_grad=False):
        self.base_optimizer.step()
"""


@pytest.mark.parametrize("is_own", [False, True])
def test_an_optimizer_of_two_backward_passes(is_own: bool) -> None:
    text = TWO_PASSES.replace("from sharp import Sharp\n", OWN) if is_own else TWO_PASSES
    for kind, line in (("profiler", "npu_profiler.step()"), ("dump", "npu_debugger.stop()")):
        result = instrumented(text, BY_NAME[kind])
        assert f"second_step(zero_grad=True)\n    {line}" in result
    assert instrumented(text, BY_NAME["bfloat16"]).count("with torch.autocast") == 2
    for kind, reason in (("monitor", "never called"), ("float16", "would have scaled")):
        assert "two backward passes" in refusal(text, kind)
        assert reason in refusal(text, kind)


ARMS = """\
import torch
from torch.nn import functional as F
net.train()
critic.train()
for step, (x, y) in enumerate(loader):
    x, y = x.cuda(), y.cuda()
    fake = net(x)
    low = LOW(fake)
    if step > start:
        loss_d = critic(fake.detach()).mean()
        loss_d.backward()
        opt_d.step()
    opt_g.zero_grad()
    near = F.l1_loss(low, y)
    if step > start:
        loss = critic(fake).mean() + near
    else:
        loss = near
    loss.backward()
    opt_g.step()
"""


def test_a_forward_pass_above_another_backward_pass() -> None:
    result = instrumented(ARMS.replace("LOW", "F.avg_pool1d"), BY_NAME["bfloat16"])
    lines = [line.partition("  # npulens")[0] for line in result.splitlines()]
    head = '    with torch.autocast("npu", dtype=torch.bfloat16):'
    at = lines.index("        fake = net(x)")
    assert lines[at - 1 : at + 3] == [
        head,
        "        fake = net(x)",
        "        low = F.avg_pool1d(fake)",
        "    if step > start:",
    ]
    at = lines.index("        near = F.l1_loss(low, y)")
    assert lines[at - 1 : at + 2] == [head, lines[at], "        if step > start:"]


def test_what_an_earlier_forward_pass_cannot_do_in_half() -> None:
    assert "torch.fft" in refusal(ARMS.replace("LOW", "torch.fft.rfft"), "bfloat16")


def test_a_forward_pass_above_a_condition() -> None:
    text = HEAD + "model.train()\nfor x, y in loader:\n    out = model(x)\n    if len(y):\n"
    text += "        loss = F.mse_loss(out, y)\n        loss.backward()\n        optimizer.step()\n"
    result = instrumented(text, BY_NAME["bfloat16"])
    assert result.count("with torch.autocast") == 2


@pytest.mark.parametrize(
    ("line", "use", "is_refused"),
    [
        ("kept = [image.unsqueeze(0).half() for image in images]", "kept[0].float()", False),
        ("kept = [image.half() for image in images]", "kept[0]", True),
        ("model.half()", "x.float()", True),
        ("model = build(4).half()", "x.float()", True),
    ],
)
def test_images_that_are_kept_in_half_are_no_cast(line: str, use: str, is_refused: bool) -> None:
    text = LOOP.replace("seen = []\n", f"{line}\nmodel.train()\n").replace("(x)", f"({use})")
    for kind in ("bfloat16", "float16"):
        assert ("about precision" in refusal(text + UPDATE, kind)) == is_refused


HELPER = "def keep(value, name='x'):\n    return show(name, value.detach())\n"


@pytest.mark.parametrize(
    ("line", "is_array"),
    [
        ("keep(out)", True),
        ("keep(loss)", False),
        ("keep(out.float())", False),
        ("writer.add_image('out', out)", True),
        ("writer.add_scalar('out', out)", False),
    ],
)
def test_arrays_that_another_file_makes(line: str, is_array: bool, here: Path) -> None:
    (here / "helper.py").write_text(
        "import numpy as np\ndef show(name, value):\n    return np.asarray(value.cpu())\n" + HELPER
    )
    text = LOOP.replace("seen = []", "from helper import keep\nmodel.cuda()")
    (here / "train.py").write_text(f"{text}{UPDATE}    {line}\n")
    code, _, errors = invoke("instrument", "bfloat16", "train.py")
    assert (code, "train.py:12" in errors) == (2 if is_array else 0, is_array)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("model = torch.ao.quantization.prepare_qat(model)", "about precision already"),
        ("from pytorch3d.loss import chamfer_distance as near", "`near`"),
        ("from pytorch3d.ops.knn import knn_points as near", "`near`"),
        ("from helper import near", ""),
    ],
)
def test_what_is_of_one_precision(line: str, reason: str) -> None:
    text = LOOP.replace("seen = []", line).replace("F.mse_loss(", "near(") + UPDATE
    found = refusal(text, "bfloat16")
    assert (reason in found, bool(found)) == (True, bool(reason))


def test_modules_in_half_are_a_cast_and_stored_tensors_are_none() -> None:
    cast = LOOP.replace("seen = []", "for each in nets:\n    each.half()") + UPDATE
    cast = cast.replace("F.mse_loss(out", "F.mse_loss(out.float()")
    assert "half" in refusal(cast, "bfloat16") or "cast" in refusal(cast, "bfloat16")
    stored = cast.replace("    each.half()", "    images = each.half()")
    assert refusal(stored, "bfloat16") == ""


def test_a_number_or_what_a_function_may_move_is_nothing_of_the_host() -> None:
    number = LOOP.replace("out = model(x)", "a = torch.tensor(0.5)\n    out = a * model(x)")
    assert refusal(number + UPDATE, "bfloat16") == ""


MADE_BY_A_METHOD = """\
import torch
from parts import build, criterion
class Learner:
    def __init__(self, config):
        self.config = config
        self.make()
    def make(self):
        self.net, self.target = build(self.config), build(self.config)
        self.scores = build(self.config)
        self.optimizer = torch.optim.Adam(self.net.parameters())
    def predict(self, x):
        self.scores = self.net(x)
    def update(self, x):
        loss = criterion(ARGUMENT, x)
        loss.backward()
        self.optimizer.step()
"""


@pytest.mark.parametrize(
    ("argument", "is_clear"), [("(self.net, self.target)", True), ("self.scores", False)]
)
def test_models_that_a_method_makes_are_no_results(argument: str, is_clear: bool) -> None:
    text = MADE_BY_A_METHOD.replace("ARGUMENT", argument)
    assert (not refusal(text, "bfloat16")) == is_clear


ENGINE = """\
from numpy import multiply as scaled
class Engine:
    def parse(self, batch):
        return scaled(batch["x"]).cuda(), batch["y"].cuda()
    def predict(self, batch):
        return self.model(batch["x"]), batch["y"]
"""
OF_ENGINE = """\
import torch
from torch.nn import functional as F
from engine import Engine
class Own(Engine):
    def train(self, loader):
        self.model.train()
        for batch in loader:
            out, y = self.METHOD(batch)
            loss = F.mse_loss(self.model(out), y)
            loss.backward()
            self.optimizer.step()
"""


@pytest.mark.parametrize("folder", [".", "runs"])
@pytest.mark.parametrize(("method", "line"), [("parse", 10), ("predict", 9)])
def test_a_base_class_elsewhere_prepares_data(
    method: str, line: int, folder: str, here: Path
) -> None:
    """Without a mark of a project, modules are looked for where the command is run, too."""
    (here / folder).mkdir(exist_ok=True)
    (here / "engine.py").write_text(ENGINE)
    (here / folder / "own.py").write_text(OF_ENGINE.replace("METHOD", method))
    code, _, errors = invoke("instrument", "bfloat16", f"{folder}/own.py")
    assert code == 0, errors
    lines = (here / folder / "own.py").read_text().splitlines()
    assert "torch.autocast" in lines[line - 1]


LOGGED = """\
import torch
def fit(model, optimizer, loader):
    for x in loader:
        loss = model(x).sum()
        loss.backward()
        ABOVE
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1)
        BELOW
        optimizer.step()
"""
SHOW = "show({n: p.grad.norm() for n, p in model.named_parameters()})"


@pytest.mark.parametrize(
    ("above", "below", "is_refused"),
    [
        ("pass", SHOW, False),
        (SHOW, "pass", True),
        ("pass", f"{SHOW}\n        optimizer_2.step()", True),
        ("pass", f"model(x).sum().backward()\n        {SHOW}", True),
        ("if x.sum() > 0:\n            pass", f"if x.sum() > 0:\n            {SHOW}", False),
    ],
)
def test_gradients_behind_what_clips_them(above: str, below: str, is_refused: bool) -> None:
    text = LOGGED.replace("ABOVE", above).replace("BELOW", below)
    assert ("works with gradients" in refusal(text, "float16")) == is_refused


def test_without_an_update_that_is_the_reason() -> None:
    text = "import torch\nfor x in data:\n    op(x).sum().backward()\n    print(x.grad)\n"
    for kind in ("bfloat16", "float16"):
        assert "no optimizer is found" in refusal(text, kind)
