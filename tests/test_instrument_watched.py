"""Which model and optimizer are watched, and when a step is over: tables of script shapes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from npulens.fixes.instruments.inserting import instrumented
from npulens.fixes.instruments.known_instruments import BY_NAME
from npulens.fixes.scripts import UnclearError
from npulens.workspace.instrumenting import carry_out, plan_insertion, write_settings

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


LAST = """\
import torch
model = torch.nn.Linear(4, 4)
loader = torch.utils.data.DataLoader(data)
batches = len(loader)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
done = 0
for epoch in range(9):
    for LOOP:
        model(x).mean().backward()
        done += 1
        if LAST:
            optimizer.step()
            done = 0
"""


@pytest.mark.parametrize(
    ("loop", "last", "written"),
    [
        ("i, x in enumerate(loader)", "i + 1 == batches", "batches"),
        ("i, x in enumerate(loader)", "i == len(loader) - 1", "len(loader)"),
        ("i, x in enumerate(loader, 1)", "i == batches", "batches"),
        ("i in range(batches)", "i == batches - 1", "batches"),
        ("x in loader", "done >= batches", "batches"),
        ("x in loader", "x.size(0) == batches", "1"),
        ("i, x in enumerate(loader)", "(i + 1) % 4 == 0 or i + 1 == batches", "4"),
    ],
)
def test_an_update_behind_the_last_batch(loop: str, last: str, written: str) -> None:
    text = LAST.replace("LOOP", loop).replace("LAST", last)
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


@pytest.mark.parametrize("end", ["continue", "break"])
def test_a_turn_that_ends_in_one_line(end: str) -> None:
    text = (
        f"for x in loader:\n    y = x[0]\n    loss = model(y)\n    if y is None: {end}\n"
        "    loss.backward()\n    optimizer.step()\n"
    )
    guarded = (
        "    if y is None:\n        npu_debugger.stop()\n        npu_debugger.step()\n"
        f"    if y is None: {end}\n"
    )
    assert guarded in put_in(text, "dump")
    with pytest.raises(UnclearError):
        put_in(text.replace("y is None", "is_bad(y)"), "dump")


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


OF_A_PART = """\
import torch
import library
class Owner:
    def __init__(self):
        self.model = library.Model()
def main(loader, accelerator):
    owner = Owner()
    optimizer = torch.optim.Adam(owner.model.net.parameters())
    owner.model.net, optimizer = accelerator.prepare(owner.model.net, optimizer)
    for x in loader:
        loss = owner.model.net(x).mean()
        loss.backward()
        optimizer.step()
"""


def test_a_model_that_is_a_part_of_another_object() -> None:
    assert "npu_monitor.set_monitor(owner.model" in put_in(OF_A_PART, "monitor")


ASKED = """\
import torch
def fit(model, loader, accelerator):
    optimizer = torch.optim.AdamW(MADE, lr=0.1)
    for x in loader:
        loss = model(x)
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("made", "is_known"),
    [
        ("model.trainable_modules()", True),
        ("model.groups(0.1)", True),
        ("table.values()", False),
    ],
)
def test_an_optimizer_of_what_a_called_model_is_asked_for(made: str, is_known: bool) -> None:
    text = ASKED.replace("MADE", made)
    if is_known:
        assert "set_monitor(model, optimizer=optimizer, " in put_in(text, "monitor")
    else:
        with pytest.raises(UnclearError):
            put_in(text, "monitor")


EPISODES = """\
import torch
def fit(model, optimizer, env):
    for episode in range(9):
        loss, state = 0, env.reset()
        while True:
            state, reward, done = env.step(model(state))
            LOSS
            if done:
                BACK
                optimizer.step()
                END
        print(episode)
"""


@pytest.mark.parametrize(
    ("loss", "back", "end", "loop"),
    [
        ("loss -= reward", "loss.backward()", "break", "for episode in range(9):"),
        ("(-reward).backward()", "pass", "break", "for episode in range(9):"),
        ("loss -= reward", "loss.backward()", "state = env.reset()", "while True:"),
    ],
)
def test_an_update_that_ends_an_inner_loop(loss: str, back: str, end: str, loop: str) -> None:
    dumped = put_in(
        EPISODES.replace("LOSS", loss).replace("BACK", back).replace("END", end), "dump"
    )
    before, _, behind = dumped.partition("npu_debugger.start(")
    assert before.rstrip().splitlines()[-1].strip() == loop
    assert dumped.count("npu_debugger.start(") == 1
    assert behind.index("optimizer.step()") < behind.index("npu_debugger.stop()")


BOUND_UNDER = """\
class Trainer:
    def __init__(self, model, optimizer, accelerator):
        self.model, self.optimizer, self.accelerator = model, optimizer, accelerator
    def epoch(self, loader):
        self.model.train()
        for x in loader:
            self.model(x).mean().backward()
            self.optimizer.step()
    def fit(self, loader):
        GIVEN
        for epoch in range(3):
            self.epoch(loader)
"""


GIVEN = (
    "if self.accelerator is not None:\n            actual = self.optimizer\n"
    "            self.model, actual = self.accelerator.prepare(self.model, actual)\n"
    "            self.optimizer = actual"
)


def test_a_name_that_is_bound_under_a_condition_alone() -> None:
    watched = put_in(BOUND_UNDER.replace("GIVEN", GIVEN), "monitor")
    assert "\n        npu_monitor.set_monitor(self.model, optimizer=actual" not in watched


def test_an_optimizer_that_is_made_under_a_condition_is_watched_there() -> None:
    made = (
        "if self.accelerator:\n            actual = torch.optim.SGD(self.model.parameters(), 0.1)\n"
        "            self.optimizer = actual"
    )
    text = "import torch\n" + BOUND_UNDER.replace("GIVEN", made)
    watched = put_in(text, "monitor")
    assert "\n            npu_monitor.set_monitor(self.model, optimizer=actual" in watched


@pytest.mark.parametrize("kind", ["monitor", "float16"])
def test_what_is_stepped_and_computes_the_loss_is_no_optimizer(kind: str) -> None:
    text = BOUND_UNDER.replace("GIVEN", "pass").replace(
        "self.model(x).mean().backward()",
        "out = self.model(x)\n            loss, parts = self.optimizer.compare(out)\n"
        "            loss.backward()",
    )
    with pytest.raises(UnclearError) as found:
        put_in(text, kind)
    assert "optimizer" in found.value.text.en


IN_BOTH_ARMS = """\
import torch
def fit(model, optimizer_a, optimizer_b, loader):
    for i, x in enumerate(loader):
        if i < 10:
            loss = model(x).mean()
            loss.backward()
            optimizer_a.step()
        else:
            loss = model(x).sum()
            loss.backward()
            optimizer_b.step()
"""


def test_the_scale_is_updated_behind_both_arms() -> None:
    scaled = put_in(IN_BOTH_ARMS, "float16")
    assert scaled.rstrip().endswith("\n        npu_scaler.update()")
    assert scaled.count("npu_scaler.update()") == 1


WITH_FLOW = """\
import torch
from torch.nn.utils import clip_grad_norm_
def fit(model, optimizer, optimizer_2, size, loader):
    for x in loader:
        loss, more = model(x)
        loss.backward()
        if size > 0:
            more.backward()
        clip_grad_norm_(model.parameters(), 1)
        optimizer.step()
        if CONDITION:
            optimizer_2.step()
"""


@pytest.mark.parametrize(("condition", "is_clear"), [("size > 0", True), ("size > 1", False)])
def test_an_update_that_is_left_out_with_its_backward_pass(condition: str, is_clear: bool) -> None:
    text = WITH_FLOW.replace("CONDITION", condition)
    if not is_clear:
        with pytest.raises(UnclearError):
            put_in(text, "float16")
        return
    scaled = put_in(text, "float16")
    assert "unscale_(optimizer)\n        npu_scaler.unscale_(optimizer_2)\n        clip" in scaled
    assert scaled.rstrip().endswith("\n        npu_scaler.update()")


OF_SEVERAL = """\
import torch
net, other = torch.nn.Linear(4, 4).cuda(), torch.nn.Linear(4, 4).cuda()
optimizer_other = torch.optim.Adam(other.parameters())
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in loader:
    net(x).mean().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(("more", "is_clear"), [("pass", True), ("optimizer_other.step()", False)])
def test_an_optimizer_that_is_never_stepped(more: str, is_clear: bool) -> None:
    text = OF_SEVERAL + f"    {more}\n"
    if is_clear:
        assert "set_monitor(net, optimizer=optimizer," in put_in(text, "monitor")
    else:
        with pytest.raises(UnclearError):
            put_in(text, "monitor")


PART = """\
import torch
model = Net().cuda()
optimizer = torch.optim.SGD(PARAMETERS, lr=0.1)
LATER
for x in loader:
    model(x).mean().backward()
    optimizer.step()
"""
HEAD = "model.head.parameters()"


@pytest.mark.parametrize(
    ("parameters", "later", "watched"),
    [
        (HEAD, "pass", "model.head"),
        (HEAD, "model = DDP(model)", "model"),
        (HEAD, "model = torch.load(model)", "model"),
        ("model.module.parameters()", "pass", "model"),
        ("[*model.a.parameters(), *model.b.parameters()]", "pass", "model"),
    ],
)
def test_the_part_of_a_model_that_is_trained(parameters: str, later: str, watched: str) -> None:
    text = PART.replace("PARAMETERS", parameters)
    assert f"set_monitor({watched}, " in put_in(text.replace("LATER", later), "monitor")


@pytest.mark.parametrize("keep", ["every.append(optimizer)", "every[number] = optimizer"])
def test_optimizers_that_a_loop_makes_are_several(keep: str) -> None:
    text = (
        "import torch\nfor number, model in enumerate(models):\n"
        "    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        f"    {keep}\nfor x in loader:\n    for model, optimizer in zip(models, every):\n"
        "        model(x).mean().backward()\n        optimizer.step()\n"
    )
    with pytest.raises(UnclearError) as found:
        put_in(text, "monitor")
    assert "several optimizers" in found.value.text.en


SCHEDULED = """\
import torch
from rates import plan
from torch.optim.lr_scheduler import StepLR

def step(model, optimizer, x):
    model(x).mean().backward()
    optimizer.step()

def main(args, loader):
    model = torch.nn.Linear(4, 4)
    MADE
    rates = None
    SCHEDULE
    run(model, optimizer, rates, loader)

def run(model, optimizer, rates, loader):
    WITHIN
    for x in loader:
        step(model, optimizer, x)

main(arguments, data)
"""
IN_ONE_ARM = (
    "if args.sgd:\n        optimizer = torch.optim.SGD(model.parameters(), 0.1)\n"
    "    elif args.adam:\n        optimizer = torch.optim.SGD(model.parameters(), 0.2)"
)


@pytest.mark.parametrize(
    "made", ["optimizer = torch.optim.SGD(model.parameters(), 0.1)", IN_ONE_ARM]
)
@pytest.mark.parametrize(
    "schedule",
    [
        "rates = StepLR(optimizer, 10)",
        "scheduler = plan(args, optimizer)",
        "rates = plan.scheduled(optimizer=optimizer)",
    ],
)
def test_a_schedule_is_made_before_step_is_replaced(made: str, schedule: str) -> None:
    text = SCHEDULED.replace("MADE", made).replace("SCHEDULE", schedule)
    result = put_in(text.replace("WITHIN", "pass"), "monitor")
    assert result.count("set_monitor(") == 1
    assert result.index(schedule) < result.index("set_monitor(")


def test_a_schedule_of_the_function_that_trains_is_made_before_step_is_replaced() -> None:
    made = "optimizer = torch.optim.SGD(model.parameters(), 0.1)"
    text = SCHEDULED.replace("MADE", made).replace("SCHEDULE", "pass")
    result = put_in(text.replace("WITHIN", "rates = StepLR(optimizer, 10)"), "monitor")
    assert result.index("    rates = StepLR") < result.index("set_monitor(model, optimizer")


def test_a_schedule_that_each_epoch_makes_cannot_be_made_before() -> None:
    text = (
        "import torch\ndef main(args, loader):\n    model = torch.nn.Linear(4, 4)\n"
        "    optimizer = torch.optim.SGD(model.parameters(), 0.1)\n    for epoch in range(3):\n"
        "        rates = torch.optim.lr_scheduler.StepLR(optimizer, 9)\n"
        "        for x in loader:\n            model(x).mean().backward()\n"
        "            optimizer.step()\n"
    )
    with pytest.raises(UnclearError) as found:
        put_in(text, "monitor")
    assert (found.value.line, "schedule" in found.value.text.en) == (6, True)


def test_the_trainer_of_transformers_tells_its_model_and_optimizer() -> None:
    text = "from transformers import Trainer\ntrainer = Trainer(model)\ntrainer.train()\n"
    result = put_in(text, "monitor")
    assert "def on_train_begin(self, args, state, control, model=None, optimizer=None" in result
    assert "(model, optimizer=optimizer, grad_acc_steps=args.gradient_accumulation_steps)" in result
    assert result.endswith("trainer.add_callback(NpuInstrument())\ntrainer.train()")


HANDED_ON = """\
import torch
from torch.optim.lr_scheduler import StepLR

def build(model):
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    MORE
    return RESULT
"""


@pytest.mark.parametrize(
    ("more", "result", "is_clear"),
    [
        ("pass", "optimizer", False),
        ("pass", "model, optimizer", False),
        ("rates = StepLR(optimizer, 10)", "optimizer, rates", True),
        ("fit(model, optimizer)", "model", True),
    ],
)
def test_an_optimizer_that_another_file_is_given(more: str, result: str, is_clear: bool) -> None:
    text = HANDED_ON.replace("MORE", more).replace("RESULT", result)
    if is_clear:
        assert "set_monitor(model, optimizer=optimizer" in put_in(text, "monitor")
    else:
        with pytest.raises(UnclearError) as found:
            put_in(text, "monitor")
        assert (found.value.line, "`build` hands" in found.value.text.en) == (5, True)


def test_a_closure_computes_gradients_behind_the_place_where_they_are_read() -> None:
    text = (
        "import torch\nmodel = torch.nn.Linear(4, 4)\n"
        "optimizer = torch.optim.LBFGS(model.parameters())\nfor x in loader:\n"
        "    def closure():\n        loss = model(x).mean()\n        loss.backward()\n"
        "        return loss\n    optimizer.step(closure)\n"
    )
    with pytest.raises(UnclearError) as found:
        put_in(text, "monitor")
    assert (found.value.line, "closure" in found.value.text.en) == (9, True)


def test_a_list_of_parameters_that_is_empty_in_one_case() -> None:
    text = (
        "import torch\nhead = torch.nn.Linear(4, 4)\nbody = torch.nn.Linear(4, 4)\n"
        "learnt = [{'params': body.parameters()}] if tunes else []\n"
        "learnt.append({'params': head.parameters()})\n"
        "optimizer = torch.optim.SGD(learnt, lr=0.1)\nfor x in loader:\n"
        "    loss = head(body(x)).mean()\n    loss.backward()\n    optimizer.step()\n"
    )
    assert "set_monitor([head, body], optimizer=optimizer" in put_in(text, "monitor")


OUTSIDE = """\
import torch
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def fit(loader):
    for x in loader:
        loss = model(x).mean()
        loss.backward()
        optimizer.step()

for epoch in range(3):
    fit(data)
    MORE
"""


@pytest.mark.parametrize("more", ["pass", "optimizer.step()"])
def test_an_update_outside_of_the_scaled_steps(more: str) -> None:
    text = OUTSIDE.replace("MORE", more)
    if more == "pass":
        assert "npu_scaler.step(optimizer)" in put_in(text, "float16")
    else:
        with pytest.raises(UnclearError) as found:
            put_in(text, "float16")
        assert (found.value.line, "updated here as well" in found.value.text.en) == (13, True)


@pytest.mark.parametrize(
    ("check", "listed"),
    [
        (
            "if part is not None:",
            "[npu_model for npu_model in (part, head) if npu_model is not None]",
        ),
        ("if args.part:", "[part, head]"),
    ],
)
def test_a_model_that_may_not_be_there_is_left_out_of_the_list(check: str, listed: str) -> None:
    text = (
        "import torch\ndef main(args, head, part, loader):\n"
        "    params = list(head.parameters())\n"
        f"    {check}\n        params += list(part.parameters())\n"
        "    optimizer = torch.optim.SGD(params, lr=0.1)\n    for x in loader:\n"
        "        loss = head(x).mean()\n        loss.backward()\n        optimizer.step()\n"
    )
    assert f"set_monitor({listed}, optimizer=optimizer" in put_in(text, "monitor")


MSPROBE = """\
import json

class PrecisionDebugger:
    def __init__(self, config_path):
        print("dump", json.load(open(config_path))["level"])
    def start(self): ...
    def stop(self): ...
    def step(self): ...

class TrainerMon:
    def __init__(self, config_file_path, params_have_main_grad):
        print("monitor", json.load(open(config_file_path))["format"])
    def set_monitor(self, model, optimizer, grad_acc_steps):
        print(type(model).__name__, type(optimizer).__name__, grad_acc_steps)
"""
ELSEWHERE = """\
class Loss:
    def backward(self): ...

class Net:
    def parameters(self): ...
    def __call__(self, x):
        return Loss()

class Optimizer: ...

class SGD(Optimizer):
    def __init__(self, parameters): ...
    def step(self): ...

model = Net()
optimizer = SGD(model.parameters())
for x in range(2):
    loss = model(x)
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("kind", "said"), [("dump", "dump L1\n"), ("monitor", "monitor csv\nNet SGD 1\n")]
)
def test_a_script_that_is_started_in_another_folder(tmp_path: Path, kind: str, said: str) -> None:
    (tmp_path / "library" / "msprobe" / "pytorch").mkdir(parents=True)
    (tmp_path / "library" / "msprobe" / "pytorch" / "__init__.py").write_text(MSPROBE)
    (tmp_path / "tools").mkdir()
    script = tmp_path / "tools" / "train.py"
    script.write_text(ELSEWHERE)
    carry_out(plan_insertion(script, BY_NAME[kind]))
    write_settings(script, BY_NAME[kind])
    for folder, started in (
        (tmp_path, ["tools/train.py"]),
        (tmp_path, ["-m", "tools.train"]),
        (tmp_path / "tools", ["train.py"]),
        (tmp_path / "library", [str(script)]),
    ):
        environment = {**os.environ, "PYTHONPATH": str(tmp_path / "library")}
        done = subprocess.run(
            [sys.executable, *started],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.stdout, done.stderr) == (said, "")


@pytest.mark.parametrize(
    "loop", ["for name, part in model.named_modules()", "for part in model.children()"]
)
def test_a_model_whose_parts_are_asked_for_their_parameters(loop: str) -> None:
    text = (
        "import torch\nmodel = torch.nn.Linear(4, 4)\ndecay = set()\n"
        f"{loop}:\n    for key, value in part.named_parameters():\n        decay.add(key)\n"
        "named = dict(model.named_parameters())\n"
        "groups = [{'params': [named[key] for key in decay]}]\n"
        "optimizer = torch.optim.SGD(groups, lr=0.1)\nfor x in loader:\n"
        "    loss = model(x).mean()\n    loss.backward()\n    optimizer.step()\n"
    )
    assert "set_monitor(model, optimizer=optimizer" in put_in(text, "monitor")


def test_groups_of_the_parameters_of_parts() -> None:
    text = (
        "import torch\nmodel = torch.nn.Linear(4, 4)\nparams = []\n"
        "for name, part in model.named_modules():\n    params += list(part.parameters())\n"
        "optimizer = torch.optim.SGD(params, lr=0.1)\nfor x in loader:\n"
        "    loss = model(x).mean()\n    loss.backward()\n    optimizer.step()\n"
    )
    assert "set_monitor(model, optimizer=optimizer" in put_in(text, "monitor")


def test_a_method_of_the_model_is_none_of_the_trainer() -> None:
    text = (
        "import torch\nclass Trainer:\n    def __init__(self, model, optimizer):\n"
        "        self.model = model\n        self.optimizer = optimizer\n"
        "    def train(self, loader):\n"
        "        rates = torch.optim.lr_scheduler.StepLR(self.optimizer, 9)\n"
        "        for epoch in range(3):\n            self.model.train()\n"
        "            for x in loader:\n                self.model(x).mean().backward()\n"
        "                self.optimizer.step()\n"
    )
    result = put_in(text, "monitor")
    assert "grad_acc_steps=1)\n        for epoch in" in result
