"""Where lines of `npulens instrument` go, and why scripts are refused: tables of script shapes."""

from pathlib import Path

import pytest

from commands import invoke
from npulens.fixes.instruments import inserting
from npulens.fixes.instruments.inserting import instrumented
from npulens.fixes.instruments.known_instruments import BY_NAME
from npulens.fixes.instruments.marks import without
from npulens.fixes.scripts import UnclearError

pytestmark = pytest.mark.usefixtures("here")
MARK = "  # npulens: instrument "


def put_in(text: str, kind: str) -> str:
    """A script with an instrument, without the marks."""
    result = instrumented(text, BY_NAME[kind])
    return "\n".join(line.partition(MARK)[0] for line in result.splitlines())


TRAINER = """\
import torch
from torch import nn
class Trainer(BASE):
    def __init__(self, model, config):
        self.config = config
        self.model = model
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        MOVE
    def train_epoch(self, loader):
        accumulate = self.config.accumulation_steps
        for i, x in enumerate(loader):
            try:
                loss = self.model(x).mean()
                loss.backward()
                if (i + 1) % accumulate == 0:
                    self.optimizer.step()
                    self.optimizer.zero_grad()
            except RuntimeError:
                pass
    def fit(self, loader):
        WRAP
        for epoch in range(3):
            self.train_epoch(loader)
"""


def trainer(base: str = "object", move: str = "pass", wrap: str = "pass") -> str:
    return TRAINER.replace("BASE", base).replace("MOVE", move).replace("WRAP", wrap)


def test_a_step_in_a_try_is_counted_behind_the_update() -> None:
    profiled = put_in(trainer(), "profiler")
    assert (
        "self.optimizer.zero_grad()\n                    npu_profiler.step()\n            except"
        in profiled
    )


def test_a_count_keeps_its_last_name() -> None:
    watched = put_in(trainer(), "monitor")
    assert "grad_acc_steps=self.config.accumulation_steps)" in watched


@pytest.mark.parametrize(
    ("base", "move", "wrap", "behind"),
    [
        ("nn.Module", "self.cuda()", "pass", "self.cuda()"),
        ("nn.Module", "self.to('cuda')", "pass", "self.to('cuda')"),
        ("object", "self.model.cuda()", "pass", "self.model.cuda()"),
        ("nn.Module", "pass", "pass", "torch.optim.AdamW(self.model.parameters(), lr=1e-3)"),
        ("object", "pass", "self.model = wrap(self.model)", "self.model = wrap(self.model)"),
    ],
)
def test_the_model_is_watched_behind_its_moves(
    base: str, move: str, wrap: str, behind: str
) -> None:
    before, _, rest = put_in(trainer(base, move, wrap), "monitor").partition("npu_monitor =")
    assert before.rstrip().endswith(behind)
    assert "set_monitor(self.model, optimizer=self.optimizer, " in rest


IN_ARMS = """\
import torch
from torch import nn
class Run(nn.Module):
    def __init__(self, net, kind):
        self.net = net
        if kind == "sgd":
            self.optimizer = torch.optim.SGD(self.net.parameters(), lr=1)
        elif kind == "adam":
            self.optimizer = torch.optim.Adam(self.net.parameters())
        else:
            raise ValueError(kind)
        self.cuda()
    def fit(self, loader):
        for x in loader:
            self.net(x).backward()
            self.optimizer.step()
"""


def test_optimizers_of_all_arms_are_watched_once_behind_the_move() -> None:
    watched = put_in(IN_ARMS, "monitor")
    assert watched.count("set_monitor(self.net") == 1
    assert "self.cuda()\n        npu_monitor = " in watched


GIVEN = """\
class Trainer:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer
    def epoch(self, loader):
        self.model.train()
        for x in loader:
            self.model(x).mean().backward()
            self.optimizer.step()
    def fit(self, loader):
        for epoch in range(3):
            self.epoch(loader)
"""
FUNCTION = """\
def fit(net, optimizer, loader):
    for epoch in range(3):
        net.train()
        for x in loader:
            net(x).mean().backward()
            optimizer.step()
"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (GIVEN, "        npu_monitor.set_monitor(self.model, optimizer=self.optimizer, "),
        (FUNCTION, "    npu_monitor.set_monitor(net, optimizer=optimizer, "),
    ],
)
def test_what_is_given_is_watched_before_the_loops(text: str, line: str) -> None:
    watched = put_in(text, "monitor")
    assert watched.count("set_monitor") == 1
    assert f"{line}grad_acc_steps=1)\n" in watched
    assert watched.partition(line)[2].partition("\n")[2].lstrip().startswith("for epoch")


@pytest.mark.parametrize(
    "text",
    [
        FUNCTION.replace("    for epoch in range(3):\n", "    if True:\n"),
        FUNCTION.replace("optimizer, loader", "loader, optimizer=None"),
        FUNCTION.replace("net.train()", "net.train()\n        net.cuda()"),
        FUNCTION.replace("net.train()", "net.train()\n        other.train()"),
    ],
)
def test_what_is_given_is_not_watched_where_it_may_be_another(text: str) -> None:
    with pytest.raises(UnclearError):
        put_in(text, "monitor")


AGENT = """\
import torch
class Agent:
    def __init__(self):
        self.a, self.b, self.memory = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2), []
        self.opt_a = torch.optim.Adam(self.a.parameters())
        self.opt_b = torch.optim.Adam(self.b.parameters())
    def update(self, x):
        x = x.cuda()
        loss_a = self.a(x).mean()
        loss_b = self.b(x).mean()
        self.opt_a.zero_grad()
        loss_a.backward()
        self.opt_a.step()
        self.opt_b.zero_grad()
        loss_b.backward()
        self.opt_b.step()
def train_loop(env, agent):
    for i in range(9):
        agent.memory.append(env.step())
        agent.update(agent.memory[-1])
"""


def test_an_agent_that_is_given_is_followed_to_its_update() -> None:
    assert "agent.update(agent.memory[-1])\n        npu_profiler.step()" in put_in(
        AGENT, "profiler"
    )


def test_an_object_that_is_used_otherwise_is_not_followed() -> None:
    with pytest.raises(UnclearError):
        put_in(AGENT.replace("agent.memory", "agent.set_postfix"), "profiler")


SIDE_BY_SIDE = """\
        loss_a = self.a(x).mean()
        loss_b = self.b(x).mean()
"""
CROSSED = """\
        a = self.a(x)
        b = self.b(x)
        loss_a = a.mean()
        loss_b = b.mean()
"""


@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
@pytest.mark.parametrize(("losses", "regions"), [(SIDE_BY_SIDE, 2), (CROSSED, 1)])
def test_losses_that_are_computed_before_another_goes_back(
    losses: str, regions: int, kind: str
) -> None:
    text = put_in(AGENT.replace(SIDE_BY_SIDE, losses), kind)
    assert text.count("torch.autocast(") == regions
    for line in losses.splitlines():
        assert f"    {line}\n" in text
    if kind == "float16":
        assert text.count("npu_scaler.update()") == 1


def test_a_dump_starts_behind_an_evaluation() -> None:
    text = """\
import torch
def evaluate(model):
    model.eval()
def train(model, optimizer, loader):
    for i, x in enumerate(loader):
        if i % 9 == 0:
            evaluate(model)
        loss = model(x)
        loss.backward()
        optimizer.step()
"""
    dumped = put_in(text, "dump")
    assert "            evaluate(model)\n        npu_debugger.start()\n        loss =" in dumped


@pytest.mark.parametrize(
    ("call", "is_found"),
    [
        ("trainer.fit(model, loader)", True),
        ("runner.fit(model, datamodule=data)", True),
        ("estimator.fit(x, y)", False),
    ],
)
def test_a_trainer_of_lightning_that_another_file_makes(call: str, is_found: bool) -> None:
    name = call.partition(".")[0]
    text = f"import pytorch_lightning as pl\nfrom setup import make\n{name}, _ = make()\n{call}\n"
    if is_found:
        assert f"{name}.callbacks.append(NpuInstrument())\n{call}" in put_in(text, "profiler")
    else:
        with pytest.raises(UnclearError):
            put_in(text, "profiler")


@pytest.mark.parametrize(
    "made",
    ["from engine import Trainer\n", "class Trainer:\n    def fit(self, model):\n        pass\n"],
)
def test_a_trainer_of_the_project_gets_no_callbacks(made: str) -> None:
    text = f"import lightning as L\n{made}trainer = Trainer()\ntrainer.fit(model)\n"
    with pytest.raises(UnclearError):
        put_in(text, "profiler")


def test_gradients_that_are_filled_up_behind_backward_are_no_unclear_loss() -> None:
    text = """\
import torch
def train(model, optimizer, loader):
    for x in loader:
        loss = model(x.cuda()).mean()
        loss.backward()
        for p in model.parameters():
            if p.grad is None:
                p.grad = torch.zeros_like(p)
        optimizer.step()
"""
    assert "dtype=torch.bfloat16):\n            loss = model(x.cuda()).mean()\n" in put_in(
        text, "bfloat16"
    )


EVALUATES = """\
import torch
def train(model, optimizer, loader, args):
    for x in loader:
        out = model(x.cuda())
        loss = out.mean()
        loss.backward()
        optimizer.step()
    if args.evaluate:
        for x in loader:
            out = model(x.cuda())
            kept.append(out.cpu().numpy())
"""


def test_results_of_an_evaluation_outside_of_autocast_are_no_bfloat16() -> None:
    assert "autocast" in put_in(EVALUATES, "bfloat16")
    with pytest.raises(UnclearError):
        put_in(EVALUATES.replace("            out = model(x.cuda())\n", ""), "bfloat16")


def test_a_model_that_also_runs_without_gradients_is_cast_each_time() -> None:
    text = """\
import torch
def train(model, optimizer, loader):
    for x in loader:
        x = x.cuda()
        with torch.no_grad():
            target = model(x)
        loss = (model(x) - target).mean()
        loss.backward()
        optimizer.step()
"""
    assert "dtype=torch.bfloat16, cache_enabled=False):" in put_in(text, "bfloat16")
    assert "cache_enabled" not in put_in(
        text.replace("target = model", "target = other"), "bfloat16"
    )


@pytest.mark.parametrize(
    ("method", "is_cast_anew"),
    [
        ("    @torch.no_grad()\n    def target(self, x):\n        return self.net(x)\n", True),
        (
            "    def target(self, x):\n        with torch.inference_mode():\n"
            "            y = self.net(x)\n        return y + self.net(x)\n",
            True,
        ),
        (
            "    @torch.inference_mode()\n    def target(self, x):\n        return self.net(x)\n",
            True,
        ),
        ("    @torch.no_grad()\n    def target(self, x):\n        return self.other(x)\n", False),
        ("    def target(self, x):\n        return self.net(x)\n", False),
    ],
)
def test_a_model_that_a_function_runs_without_gradients(method: str, is_cast_anew: bool) -> None:
    text = f"""\
import torch
class Trainer:
    def __init__(self, net, other, loader):
        self.net, self.other, self.loader = net.cuda(), other.cuda(), loader
        self.optimizer = torch.optim.Adam(self.net.parameters())
{method}    def fit(self):
        for x in self.loader:
            wanted = self.target(x)
            loss = (self.net(x) - wanted).mean()
            loss.backward()
            self.optimizer.step()
"""
    assert ("cache_enabled=False" in put_in(text, "bfloat16")) is is_cast_anew


STEP = """\
def run_epoch(model, optimizer, loader):
    for x in loader:
        loss = model(x.cuda()).mean()
        loss.backward()
        optimizer.step()
"""
MAIN = """\
import torch
from net import Net
from steps import run_epoch
if __name__ == "__main__":
    model = Net().cuda()
    run_epoch(model, torch.optim.Adam(model.parameters()), [])
"""
NET = """\
import torch
from torch import nn
LOWEST = -1e12
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 4)
        self.criterion = nn.CrossEntropyLoss()
    def forward(self, x):
        y = self.head(x)
        BODY
        return y
"""


@pytest.mark.parametrize(
    ("body", "kinds"),
    [
        ("y = torch.complex(y[:, :2], y[:, 2:]).abs()", {"bfloat16", "float16"}),
        ("y = torch.view_as_complex(y).real", {"bfloat16", "float16"}),
        ("y = torch.complex(y[:, :2].float(), y[:, 2:].float()).abs()", set()),
        ("y.masked_fill_(y > 0, -1e9)", {"float16"}),
        ("y.masked_fill_(y > 0, -1e4)", set()),
        ("y = y.masked_fill(y > 0, torch.finfo(torch.float32).min)", {"float16"}),
        ("y = y.masked_fill(y > 0, torch.finfo(y.dtype).min)", set()),
        ("y = y.masked_fill(y > 0, LOWEST)", {"float16"}),
        ("y = nn.BCELoss()(y, x)", {"bfloat16", "float16"}),
    ],
)
def test_models_of_the_programs_that_import_a_script(
    here: Path, body: str, kinds: set[str]
) -> None:
    (here / "pyproject.toml").write_text("")
    (here / "steps.py").write_text(STEP)
    (here / "main.py").write_text(MAIN)
    (here / "net.py").write_text(NET.replace("BODY", body))
    for kind in ("bfloat16", "float16"):
        code, _, errors = invoke("instrument", kind, "steps.py", "--diff")
        assert (kind, code) == (kind, 2 if kind in kinds else 0)
        assert not errors or "net.py:" in errors


@pytest.mark.parametrize(
    ("given", "count"), [("accumulate_grad_batches=4", "4"), ("", "1"), ("devices=2", "1")]
)
def test_how_often_a_library_adds_up_is_told_by_its_trainer(
    here: Path, given: str, count: str
) -> None:
    (here / "pyproject.toml").write_text("")
    (here / "module.py").write_text(
        "import torch\nimport lightning as L\n"
        "class Module(L.LightningModule):\n"
        "    def configure_optimizers(self):\n"
        "        optimizer = torch.optim.Adam(self.parameters())\n"
        "        return optimizer\n"
    )
    (here / "train.py").write_text(
        "import lightning as L\nfrom module import Module\n"
        f"trainer = L.Trainer({given})\ntrainer.fit(Module())\n"
    )
    code, out, _ = invoke("instrument", "monitor", "module.py", "--diff")
    assert (code, f"grad_acc_steps={count})" in out) == (0, True)


@pytest.mark.parametrize(
    ("loop", "count"), [("with accelerator.accumulate(model):", "args.every"), ("if True:", "1")]
)
def test_how_often_accelerate_adds_up(loop: str, count: str) -> None:
    text = f"""\
import torch
from accelerate import Accelerator
def main(args, model, loader):
    accelerator = Accelerator(gradient_accumulation_steps=args.every)
    optimizer = torch.optim.Adam(model.parameters())
    model, optimizer = accelerator.prepare(model, optimizer)
    for x in loader:
        {loop}
            accelerator.backward(model(x).mean())
            optimizer.step()
"""
    result = put_in(text, "monitor")
    assert f"grad_acc_steps={count})" in result
    inner = "optimizer=optimizer if optimizer.scaler else optimizer.optimizer,"
    assert (inner in result) == (count != "1")


@pytest.mark.parametrize(
    ("made", "count"),
    [
        ("from setup import accelerator", ""),
        ("from setup import make\naccelerator = make()", ""),
        ("accelerator = Accelerator(gradient_accumulation_plugin=plugin)", ""),
        ("accelerator = Accelerator(**options)", ""),
        ("accelerator = Accelerator(cpu=True)", "1"),
    ],
)
def test_how_often_an_accelerator_of_another_file_adds_up_is_not_guessed(
    made: str, count: str
) -> None:
    text = f"""\
import torch
from accelerate import Accelerator
{made}
model = torch.nn.Linear(2, 2)
optimizer = torch.optim.Adam(model.parameters())
for x in loader:
    with accelerator.accumulate(model):
        accelerator.backward(model(x).mean())
        optimizer.step()
"""
    if count:
        assert f"grad_acc_steps={count})" in put_in(text, "monitor")
        return
    with pytest.raises(UnclearError) as refused:
        put_in(text, "monitor")
    assert refused.value.line == 6 + made.count("\n")


FILLED = """\
import torch
class Trainer(Base):
    def __init__(self, model, config):
        self.model = model
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
    def fit(self, loader):
        for batch in loader:
            batch = self.move(batch)
            out = self.model(**batch)
            batch.update(out)
            losses = self.criterion(**batch)
            batch["all"] = losses
            batch["loss"].backward()
            BETWEEN
            self.optimizer.step()
    def move(self, batch):
        return {name: value.to("cuda") for name, value in batch.items()}
"""


def test_a_dictionary_that_is_filled_holds_the_loss() -> None:
    cast = put_in(FILLED.replace("BETWEEN", "pass"), "bfloat16")
    inside = cast[cast.index("with torch.autocast") : cast.index('batch["loss"].backward()')]
    assert "    out = self.model(**batch)" in inside and "= self.criterion(**batch)" in inside
    assert "\n            batch[" not in inside  # all of it is indented


def test_what_an_unknown_method_does_to_scaled_gradients_is_not_guessed() -> None:
    with pytest.raises(UnclearError) as refused:
        put_in(FILLED.replace("BETWEEN", "self._clip_gradients()"), "float16")
    assert refused.value.line == 14 and "_clip_gradients" in refused.value.text.en
    assert "npu_scaler.step(self.optimizer)" in put_in(FILLED.replace("BETWEEN", "pass"), "float16")


def test_parameters_that_are_named_after_the_optimizer_are_none() -> None:
    text = """\
import torch
model = torch.nn.Linear(2, 2).cuda()
param_optimizer = list(model.named_parameters())
optimizer = torch.optim.Adam([p for _, p in param_optimizer], lr=1e-3)
for x in loader:
    model(x).mean().backward()
    optimizer.step()
"""
    watched = put_in(text, "monitor")
    assert watched.count("set_monitor") == 1
    assert "set_monitor(model, optimizer=optimizer," in watched


def test_an_optimizer_that_a_function_makes_is_watched_once() -> None:
    text = """\
import torch
def prepare(model):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    model = torch.nn.parallel.DistributedDataParallel(model)
    return optimizer, model
model = torch.nn.Linear(2, 2).cuda()
optimizer, model = prepare(model)
for x in loader:
    model(x).mean().backward()
    optimizer.step()
"""
    watched = put_in(text, "monitor")
    assert watched.count("set_monitor") == 1
    assert "set_monitor(model, optimizer=optimizer," in watched


def test_a_refusal_is_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """\
import torch
first = torch.optim.SGD(one.parameters(), lr=1)
second = torch.optim.SGD(two.parameters(), lr=1)
for x in loader:
    (one(x) + two(x)).backward()
    first.step()
    second.step()
"""
    worked: list[object] = []
    before = inserting.prepared_lines
    monkeypatch.setattr(
        inserting, "prepared_lines", lambda *given: worked.append(given) or before(*given)
    )
    told = []
    for _ in range(3):
        with pytest.raises(UnclearError) as refused:
            put_in(text, "monitor")
        told.append((refused.value.line, refused.value.text.en))
    assert len(worked) == 1 and len(set(told)) == 1


def test_what_prepares_an_optimizer_makes_no_second_one() -> None:
    text = """\
import torch
class Trainer:
    def __init__(self, model, accelerator):
        self.model = model
        self.optimizer, self.schedule = self.make()
        self.model, self.optimizer = accelerator.prepare(self.model, self.optimizer)
    def make(self):
        optimizer = torch.optim.Adam(self.model.parameters())
        return optimizer, None
    def fit(self, loader):
        for epoch in range(3):
            for x in loader:
                self.model(x).mean().backward()
                self.optimizer.step()
"""
    watched = put_in(text, "monitor")
    assert watched.count("set_monitor") == 1
    assert "prepare(self.model, self.optimizer)\n        npu_monitor" in watched


PARTS = """\
for epoch in range(3):
    for x in loader:
        if len(x) > 8:
            for part in x.split(8):
                model(part).mean().backward()
                optimizer.step()
        ELSE
            loss = model(x).mean()
            loss.backward()
            OTHER.step()
"""


def test_a_turn_that_takes_parts_or_all_makes_steps_of_both() -> None:
    text = PARTS.replace("ELSE", "else:").replace("OTHER", "optimizer")
    profiled = put_in(text, "profiler")
    assert profiled.count("optimizer.step()\n                npu_profiler.step()") == 1
    assert profiled.endswith("            npu_profiler.step()\nnpu_profiler.stop()")
    dumped = put_in(text, "dump")
    assert dumped.count("npu_debugger.start()") == dumped.count("npu_debugger.stop()") == 2
    assert "        else:\n            npu_debugger.start()\n" in dumped


def test_a_critic_under_a_condition_is_part_of_the_step() -> None:
    text = PARTS.replace("ELSE", "if True:").replace("OTHER", "generator_optimizer")
    assert put_in(text, "profiler").count("npu_profiler.step()") == 1


STARTED = """\
import torch
import torch.multiprocessing as mp
def work(rank, model, optimizer):
    for x in loader:
        model(x).mean().backward()
        optimizer.step()
def main():
    for rank in range(4):
        START
main()
"""


@pytest.mark.parametrize(
    "start",
    [
        "mp.Process(target=work, args=(rank, model, optimizer)).start()",
        "mp.spawn(work, args=(model, optimizer), nprocs=2)",
        "threading.Thread(target=work, args=(rank, model, optimizer)).start()",
    ],
)
def test_a_loop_that_starts_processes_is_not_profiled(start: str) -> None:
    profiled = put_in(STARTED.replace("START", start), "profiler")
    assert "    npu_profiler.start()\n    for x in loader:" in profiled
    assert profiled.count("npu_profiler.st") == 3


def test_a_loop_that_calls_what_trains_is_profiled() -> None:
    profiled = put_in(STARTED.replace("START", "work(rank, model, optimizer)"), "profiler")
    assert "    npu_profiler.start()\n    for rank in" in profiled


FOLDS = """\
import torch
def train(net, optimizer, loader):
    MOVE
    while True:
        for x in loader:
            net(x).mean().backward()
            optimizer.step()
for fold in range(5):
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=1)
    train(model, optimizer, loaders[fold])
"""


def test_a_model_that_a_called_function_moves_is_watched_behind_that() -> None:
    watched = put_in(FOLDS.replace("MOVE", 'net.to("cuda")\n    net.train()'), "monitor")
    assert watched.count("set_monitor") == 1
    assert (
        "    npu_monitor.set_monitor(net, optimizer=optimizer, grad_acc_steps=1)\n    wh" in watched
    )


WRAPPED = """\
import torch
from schedules import Wrapper
model = torch.nn.Linear(2, 2).cuda()
MAKE
model.train()
for x in loader:
    optimizer.zero_grad()
    loss = model(x).mean()
    loss.backward()
    optimizer.STEP()
"""
WRAPPER = """\
import torch
class Wrapper(BASE):
    def __init__(self, model, inner=None):
        self._inner = VALUE
        self.number = 0
    def step(self):
        self._inner.step()
    def step_and_update_lr(self):
        self._inner.step()
    def zero_grad(self):
        self._inner.zero_grad()
"""
MADE = "torch.optim.Adam(model.parameters())"
MAKE = "optimizer = Wrapper(model)"


@pytest.mark.parametrize(
    ("value", "base", "make", "step", "watched"),
    [
        (MADE, "object", MAKE, "step_and_update_lr", "optimizer._inner"),
        (MADE, "object", MAKE, "step", "optimizer._inner"),
        ("optim", "object", f"optimizer = Wrapper(model, {MADE})", "step", None),
        (MADE, "torch.optim.Optimizer", MAKE, "step", "optimizer"),
        ("make(model)", "object", MAKE, "step", None),
        (f"{MADE}\n        self.second = {MADE}", "object", MAKE, "step", None),
    ],
)
def test_an_optimizer_in_a_wrapper(
    here: Path, value: str, base: str, make: str, step: str, watched: str | None
) -> None:
    (here / "pyproject.toml").write_text("")
    (here / "train.py").write_text(WRAPPED.replace("MAKE", make).replace("STEP", step))
    (here / "schedules.py").write_text(WRAPPER.replace("BASE", base).replace("VALUE", value))
    code, output, errors = invoke("instrument", "monitor", "train.py", "--diff")
    assert code == (2 if watched is None else 0), errors
    if watched is None:
        assert "train.py:10" in errors and "wraps" in errors
    else:
        assert f"set_monitor(model, optimizer={watched}, " in output
    code, _, errors = invoke("instrument", "float16", "train.py", "--diff")
    assert code == (0 if watched == "optimizer" else 2), errors
    assert not code or "train.py:10: a wrapper steps the optimizer here" in errors


def test_a_wrapper_of_the_same_file() -> None:
    text = WRAPPER.replace("BASE", "object").replace("VALUE", "inner_optim")
    text = text.replace("inner=None", "inner_optim")
    make = f"optimizer = Wrapper(model, {MADE})"
    loop = WRAPPED.replace("from schedules import Wrapper\n", text).replace("STEP", "step")
    watched = put_in(loop.replace("MAKE", make), "monitor")
    assert "set_monitor(model, optimizer=optimizer._inner, " in watched


IN_TWO_ARMS = """\
import torch
for i, x in enumerate(loader):
    loss = model(x).mean()
    if engine:
        engine.backward(loss)
        FIRST
    else:
        loss.backward()
        if i % 4 == 0:
            optimizer.step()
    print(loss)
"""


def test_steps_of_two_arms_are_counted_in_the_arms() -> None:
    text = IN_TWO_ARMS.replace("FIRST", "engine.step()")
    profiled = put_in(text, "profiler")
    assert "        engine.step()\n        npu_profiler.step()\n" in profiled
    assert "            optimizer.step()\n            npu_profiler.step()\n" in profiled
    assert profiled.count("npu_profiler.step()") == 2
    each_turn = text.replace("if i % 4 == 0:", "if True:\n            pass").replace(
        "            optimizer", "        optimizer"
    )
    assert put_in(each_turn, "profiler").count("npu_profiler.step()") == 1


def test_how_often_an_engine_adds_up_in_one_arm_is_not_guessed() -> None:
    text = "optimizer = torch.optim.SGD(model.parameters(), lr=1)\n"
    text = IN_TWO_ARMS.replace("FIRST", "engine.step()").replace("torch\n", f"torch\n{text}")
    with pytest.raises(UnclearError) as refused:
        put_in(text, "monitor")
    assert "added up" in refused.value.text.en


CLIPPED = """\
import torch
optimizer = torch.optim.SGD(model.parameters(), lr=1)
for x in loader.cuda():
    optimizer.zero_grad()
    FIRST
    loss = model(x).mean()
    loss.backward()
    SECOND
    optimizer.step()
    THIRD
"""
CLIP = "norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)"


@pytest.mark.parametrize(
    ("places", "is_unscaled"),
    [
        ({"SECOND": CLIP}, True),
        ({"THIRD": CLIP}, False),
        ({"FIRST": CLIP}, False),
        ({"SECOND": f"{CLIP}\n    if not norm.isfinite():\n        continue"}, None),
    ],
)
def test_what_is_clipped_without_effect_is_not_unscaled(
    places: dict[str, str], is_unscaled: bool | None
) -> None:
    text = CLIPPED
    for place in ("FIRST", "SECOND", "THIRD"):
        text = text.replace(place, places.get(place, "pass"))
    if is_unscaled is None:
        with pytest.raises(UnclearError) as refused:
            put_in(text, "float16")
        assert "clipped here in turns without an update" in refused.value.text.en
    else:
        assert ("unscale_" in put_in(text, "float16")) == is_unscaled


def test_an_experiment_that_evaluates_is_no_model() -> None:
    text = """\
class Trainer:
    def fit(self, loader):
        self.optimizer = self.experiment.get_optimizer(16)
        for epoch in range(3):
            for x in loader:
                self.experiment.loss(x).backward()
                self.optimizer.step()
            self.experiment.eval(self.evaluator, True)
"""
    with pytest.raises(UnclearError) as refused:
        put_in(text, "monitor")
    assert "no statement of this file is known to make an optimizer" in refused.value.text.en


@pytest.mark.parametrize(
    ("made", "is_host"),
    [
        ("torch.tensor(batch)", True),
        ("torch.from_numpy(batch).view(-1, 2)", True),
        ("torch.tensor(batch).cuda()", False),
        ("to_gpu(torch.tensor(batch))", False),
    ],
)
def test_a_script_of_the_host_that_imports_one_of_cards(
    here: Path, made: str, is_host: bool
) -> None:
    (here / "pyproject.toml").write_text("")
    (here / "other.py").write_text('def to_gpu(x):\n    return x.to("cuda")\n')
    (here / "train.py").write_text(f"""\
import torch
from other import to_gpu
model = make()
optimizer = torch.optim.SGD(model.parameters(), lr=1)
for batch in loader:
    x = {made}
    loss = model(x).mean()
    loss.backward()
    optimizer.step()
""")
    for kind in ("bfloat16", "float16"):
        code, _, errors = invoke("instrument", kind, "train.py", "--diff")
        assert code == (2 if is_host else 0), errors
        assert not is_host or "moved to a device" in errors


def test_how_often_an_engine_of_deepspeed_adds_up_is_asked_for() -> None:
    text = """\
import deepspeed
model = Net()
engine, optimizer, _, _ = deepspeed.initialize(
    model=model, model_parameters=model.parameters()
)
for epoch in range(3):
    for x in loader:
        loss = engine(x).mean()
        engine.backward(loss)
        engine.step()
"""
    watched = put_in(text, "monitor")
    assert "grad_acc_steps=engine.gradient_accumulation_steps())" in watched


def test_a_trainer_of_another_file_is_not_one_of_transformers() -> None:
    text = """\
from engine import Trainer
class Mine(Trainer):
    pass
trainer = Mine()
trainer.train()
"""
    with pytest.raises(UnclearError) as refused:
        put_in(text, "profiler")
    assert "no training is found" in refused.value.text.en
    assert "add_callback" in put_in(text.replace("engine", "transformers"), "profiler")


def test_a_trainer_that_is_given_the_optimizer_updates() -> None:
    text = """\
import torch
class Loop:
    def __init__(self, model):
        self.opt = torch.optim.AdamW(master_parameters(model))
    def run(self):
        while self.step < 10:
            self.run_step(next(self.data))
    def run_step(self, x):
        loss = self.model(x).mean()
        self.trainer.backward(loss)
        took_step = self.trainer.optimize(self.opt)
"""
    profiled = put_in(text, "profiler")
    assert "            self.run_step(next(self.data))\n            npu_profiler.step()" in profiled


HOST = """\
import numpy as np
import torch
from PIL import Image
def load(path):
    image = Image.open(path).convert("RGB")
    image = image.resize((8, 8))
    return torch.from_numpy(np.asarray(VALUE)).cuda()
for path in paths:
    x = load(path)
    loss = model(x).mean()
    loss.backward()
    optimizer.step()
"""


def test_an_image_that_is_loaded_is_no_bfloat16() -> None:
    assert "autocast" in put_in(HOST.replace("VALUE", "image"), "bfloat16")
    with pytest.raises(UnclearError) as refused:
        put_in(
            HOST.replace("loss.backward()", "np.save('x', model(x))\n    loss.backward()")
            .replace("mean()", "mean() + float(np.mean(model(x)))")
            .replace("VALUE", "image"),
            "bfloat16",
        )
    assert "NumPy" in refused.value.text.en


@pytest.mark.parametrize(
    ("made", "is_refused"),
    [
        ("melspec_transform(x).log2()", True),
        ("torch.log(self.to_spec(x) + 1e-5)", True),
        ("special(x).log()", False),
        ("inspect(x).log()", False),
        ("melspec_transform(x)", False),
    ],
)
def test_the_logarithm_of_a_spectrum_is_not_taken_in_half(made: str, is_refused: bool) -> None:
    text = f"""\
import torch
for x in loader:
    x = x.cuda()
    loss = model({made}).mean()
    loss.backward()
    optimizer.step()
"""
    if not is_refused:
        assert "autocast" in put_in(text, "float16")
        return
    with pytest.raises(UnclearError) as refused:
        put_in(text, "float16")
    assert "half precision" in refused.value.text.en


@pytest.mark.parametrize(
    ("statement", "is_refused"),
    [
        ("'''\n    What follows\n\n  is odd.\n    '''", False),
        ("print('''\n    What follows\n    ''')", True),
    ],
)
def test_a_long_string_that_is_a_comment_may_be_indented(statement: str, is_refused: bool) -> None:
    text = f"""\
import torch
for x in loader:
    y = model(x.cuda())
    {statement}
    loss = y.mean() + net(y)
    loss.backward()
    optimizer.step()
"""
    if is_refused:
        with pytest.raises(UnclearError) as refused:
            put_in(text, "bfloat16")
        assert "string" in refused.value.text.en
    else:
        result = instrumented(text, BY_NAME["bfloat16"])
        assert without(result, ["bfloat16"]).text == text


def test_a_loss_that_begins_above_another_backward_pass_is_unclear() -> None:
    text = """\
import torch
def update(x):
    first = critic(actor(x.cuda())).mean()
    second = model(x).mean()
    second.backward()
    model_optimizer.step()
    if weight:
        first += weight * model(actor(x)).mean()
    first.backward()
    actor_optimizer.step()
"""
    with pytest.raises(UnclearError) as refused:
        put_in(text, "bfloat16")
    assert refused.value.line == 3 and "in one block" in refused.value.text.en
    assert "autocast" in put_in(text.replace("critic(actor(x.cuda())).mean()", "0"), "bfloat16")


ENDS_EARLY = """\
import torch
from data import loader
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i in range(9):
    x, y = loader.get_batch(4)
    CHECK
    y = y.float()
    loss = (model(x) - y).mean()
    if loss.isnan():
        break
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    "check",
    ["if len(x) == 0:\n        continue", "if i > 5:\n        done = True\n        break"],
)
def test_a_dump_starts_behind_what_may_end_the_turn(check: str) -> None:
    result = put_in(ENDS_EARLY.replace("CHECK", check), "dump")
    assert f"    {check}\n    npu_debugger.start()\n" in result
    assert result.count("npu_debugger.stop()") == 2
    assert "        npu_debugger.step()\n        break\n    loss.backward()" in result


SHARED = """\
import torch
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = 0
for x in loader:
    loss = model(x).mean()
    LINE
"""


@pytest.mark.parametrize(
    ("line", "is_clear"),
    [
        ("loss.backward(); optimizer.step()", True),
        ("loss.backward(); optimizer.step(); total += loss.item()", True),
        ("loss.backward(); optimizer.step();  # both", True),
        ("if total > 0: optimizer.zero_grad(); loss.backward(); optimizer.step()", False),
        ("loss.backward(); optimizer.step(); break", False),
    ],
)
def test_a_step_that_shares_its_line(line: str, is_clear: bool) -> None:
    text = SHARED.replace("LINE", line)
    if is_clear:
        assert f"    {line}\n    npu_profiler.step()" in put_in(text, "profiler")
    else:
        with pytest.raises(UnclearError) as found:
            put_in(text, "profiler")
        assert (found.value.line, "shares its line" in found.value.text.en) == (7, True)


STEP_ALONE = """\
import torch

class Learner:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def learn(self, batch):
        \"\"\"One step.\"\"\"
        if batch is None:
            return None
        loss = self.loss(batch)
        if loss.isnan():
            return None
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.item()

    def loss(self, batch):
        return self.model(batch).mean()
"""


def test_a_step_whose_loop_is_in_another_file_is_dumped() -> None:
    result = put_in(STEP_ALONE, "dump")
    assert "return None\n        npu_debugger.start()\n        loss = self.loss" in result
    assert "npu_debugger.step()\n            return None\n        loss.backward()" in result
    assert "zero_grad()\n        npu_debugger.stop()\n        npu_debugger.step()\n" in result
    assert result.count("npu_debugger.start()") == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("loss = self.loss(batch)", "loss = self.computed"),
        (
            "    def loss(self, batch):",
            "    def more(self, batch):\n        self.model(batch).sum().backward()\n"
            "        self.optimizer.step()\n\n    def loss(self, batch):",
        ),
    ],
    ids=["a loss of another method", "two functions that make steps"],
)
def test_a_step_of_another_loop_that_is_not_whole(old: str, new: str) -> None:
    with pytest.raises(UnclearError) as found:
        put_in(STEP_ALONE.replace(old, new), "dump")
    assert "no loop of this file" in found.value.text.en


ON_HOST = """\
import torch
from nets import choose, Net
DEVICE = torch.device("cpu")

class Trainer:
    def __init__(self, device):
        self.device = device

    def step(self, model, optimizer, x):
        x = x.to(self.device)
        loss = model(x).mean()
        loss.backward()
        optimizer.step()

model = Net().to(DEVICE)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
trainer = Trainer(device=DEVICE)
for x in loader:
    trainer.step(model, optimizer, x)
"""
WITHOUT_DEVICE = """\
import torch
def test_learns(GIVEN):
    model = Net(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(4, 8)
    for i in range(9):
        loss = model(x).mean()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("text", "is_host"),
    [
        (ON_HOST, True),
        (ON_HOST.replace('torch.device("cpu")', "choose()"), False),
        (ON_HOST.replace("x.to(self.device)", "x.cuda()"), False),
        (WITHOUT_DEVICE.replace("GIVEN", ""), True),
        (WITHOUT_DEVICE.replace("GIVEN", "loader"), False),
    ],
)
def test_a_script_that_moves_to_the_host_alone(here: Path, text: str, is_host: bool) -> None:
    (here / "pyproject.toml").write_text("")
    (here / "nets.py").write_text('def choose():\n    return "cuda"\nclass Net:\n    pass\n')
    (here / "train.py").write_text(text)
    code, _, errors = invoke("instrument", "float16", "train.py", "--diff")
    assert code == (2 if is_host else 0), errors
    assert not is_host or "moved to a device" in errors


@pytest.mark.parametrize(
    ("added", "is_found"),
    [
        ('sys.path.append("src")', True),
        ('sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "src"))', True),
        ('sys.path += [str(Path(__file__).parent.parent / "src")]', True),
        ('print("src")', False),
    ],
)
def test_modules_of_folders_that_a_script_adds(here: Path, added: str, is_found: bool) -> None:
    (here / "pyproject.toml").write_text("")
    for name in ("src", "tools"):
        (here / name).mkdir()
    (here / "src" / "nets.py").write_text(
        "import torch\ndef criterion(x):\n    return torch.nn.BCELoss()(x.sigmoid(), x)\n"
    )
    (here / "tools" / "train.py").write_text(
        f"import os\nimport sys\nfrom pathlib import Path\nimport torch\n{added}\n"
        "from nets import criterion\nmodel = make().cuda()\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=1)\nfor x in loader:\n"
        "    loss = criterion(model(x.cuda()))\n    loss.backward()\n    optimizer.step()\n"
    )
    code, _, errors = invoke("instrument", "float16", "tools/train.py", "--diff")
    assert code == (2 if is_found else 0), errors
    assert not is_found or "nets.py:3" in errors


def test_a_dump_starts_before_a_forward_pass_above_a_condition() -> None:
    text = """\
import torch
model = torch.nn.Linear(4, 4)
model.train()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    found = model(x)
    known = y != -1
    if known.sum() > 0:
        loss = torch.nn.functional.cross_entropy(found[known], y[known])
        loss.backward()
        optimizer.step()
    log(found)
"""
    result = put_in(text, "dump")
    assert "    npu_debugger.start()\n    found = model(x)" in result
    assert "    npu_debugger.stop()\n    npu_debugger.step()\n    log(found)" in result
