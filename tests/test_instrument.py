"""`npulens instrument`: lines that measure or check, put into training scripts and taken out."""

import ast
import contextlib
from pathlib import Path

import pytest

from commands import invoke
from npulens.cli.instrument import KINDS
from npulens.fixes.instruments.inserting import instrumented
from npulens.fixes.instruments.known_instruments import BY_NAME, INSTRUMENTS
from npulens.fixes.instruments.marks import without
from npulens.fixes.scripts import UnclearError
from test_training_scripts import FOLDER
from test_training_steps import CLOSURE, GAN, PHASES, PLAIN, POLICY, SCRIPTS, SETUP, TWO_PHASES

pytestmark = pytest.mark.usefixtures("here")
MARK = "  # npulens: instrument "


def put_in(text: str, kind: str) -> str:
    return instrumented(text, BY_NAME[kind])


def bare(text: str) -> str:
    """A text without marks, and without what comes behind the imports."""
    return "\n".join(line.partition(MARK)[0] for line in text.splitlines())


def test_the_command_knows_all_kinds() -> None:
    assert tuple(each.name for each in INSTRUMENTS) == KINDS


def test_a_profiler(here: Path) -> None:
    (here / "train.py").write_text(PLAIN)
    code, out, errors = invoke("instrument", "profiler", "train.py")
    assert (code, errors) == (0, "")
    assert "Lines 3-16, 21, 28-29." in out
    text = (here / "train.py").read_text()
    assert bare(text).endswith(
        """\
npu_profiler.start()
for epoch in range(2):  # epochs
    for x, y in loader:  # step
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        npu_profiler.step()
npu_profiler.stop()"""
    )
    assert invoke("check", "train.py", "--select", "NPU5", "--no-cache")[0] == 0
    code, out, _ = invoke("instrument", "profiler", "train.py", "--remove")
    assert (code, out) == (0, "`profiler` taken out of train.py: 17 lines.\n")
    assert (here / "train.py").read_text() == PLAIN


EARLY = """\
import torch
def train(loader, optimizer, model):
    for epoch in range(3):
        for x in loader:
            if x is None:
                continue
            loss = model(x)
            loss.backward()
            if loss > 9:
                return None
            optimizer.step()
            scheduler.step()
            if epoch:
                break
            evaluate(model)
"""


def test_a_step_is_over_behind_the_update() -> None:
    profiled = bare(put_in(EARLY, "profiler")).partition("def train")[2]
    assert (
        profiled
        == """\
(loader, optimizer, model):
    npu_profiler.start()
    for epoch in range(3):
        for x in loader:
            if x is None:
                continue
            loss = model(x)
            loss.backward()
            if loss > 9:
                npu_profiler.stop()
                return None
            optimizer.step()
            scheduler.step()
            npu_profiler.step()
            if epoch:
                break
            evaluate(model)
    npu_profiler.stop()"""
    )


def test_a_dump_ends_however_a_turn_ends() -> None:
    dumped = bare(put_in(EARLY, "dump")).partition("for x in loader:")[2]
    assert (
        dumped
        == """
            if x is None:
                continue
            npu_debugger.start()
            loss = model(x)
            loss.backward()
            if loss > 9:
                npu_debugger.stop()
                npu_debugger.step()
                return None
            optimizer.step()
            scheduler.step()
            npu_debugger.stop()
            npu_debugger.step()
            if epoch:
                break
            evaluate(model)"""
    )


def test_only_turns_with_an_update_are_steps() -> None:
    text = (
        SETUP
        + """
for i, x in enumerate(loader):
    model(x).backward()
    if (i + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
        log(i)
    print(i)
"""
    )
    assert "        optimizer.zero_grad()\n        npu_profiler.step()\n" in bare(
        put_in(text, "profiler")
    )
    assert "        log(i)\n    npu_debugger.stop()\n" in bare(put_in(text, "dump"))


def test_a_critic_and_its_generator_are_one_step() -> None:
    assert bare(put_in(GAN, "profiler")).count("npu_profiler.step()") == 1


def test_each_phase_has_its_profile() -> None:
    text = bare(put_in(TWO_PHASES, "profiler"))
    assert text.count("npu_profiler.start()") == text.count("npu_profiler.stop()") == 2


def test_a_dump_has_settings_beside_it(here: Path) -> None:
    (here / "train.py").write_text(PHASES)
    code, out, _ = invoke("instrument", "dump", "train.py")
    assert code == 0
    assert "Settings are in msprobe_dump.json." in out
    assert (here / "msprobe_dump.json").exists()
    assert invoke("instrument", "all", "train.py", "--remove")[0] == 0
    assert [path.name for path in here.iterdir()] == ["train.py"]


def test_settings_that_somebody_changed_stay(here: Path) -> None:
    (here / "train.py").write_text(PLAIN)
    (here / "msprobe_dump.json").write_text("{}")
    _, out, _ = invoke("instrument", "dump", "train.py")
    assert "msprobe_dump.json is there already and stays as it is." in out
    _, out, _ = invoke("instrument", "dump", "train.py", "--remove")
    assert "msprobe_dump.json was changed and stays." in out
    assert (here / "msprobe_dump.json").read_text() == "{}"


def test_an_optimizer_in_each_branch() -> None:
    text = """\
import torch
def main(model, kind):
    if kind:
        optimizer = torch.optim.SGD(model.parameters(), lr=1)
    else:
        optimizer = torch.optim.Adam(model.parameters())
    for i, x in enumerate(loader):
        model(x).backward()
        if (i + 1) % 8 == 0:
            optimizer.step()
"""
    watched = bare(put_in(text, "monitor"))
    set_up = "npu_monitor.set_monitor(model, optimizer=optimizer, grad_acc_steps=8)"
    assert f"    {set_up}\n    for i, x in enumerate(loader):" in watched
    assert bare(put_in(text, "config-check")).count("NpuConfigChecker(model=model") == 1
    made_elsewhere = text.replace(
        "    for", "    return optimizer\ndef train(model, optimizer):\n    for"
    )
    assert bare(put_in(made_elsewhere, "monitor")).count("set_monitor(model, optimizer") == 2


@pytest.mark.parametrize(
    "made",
    [
        "parameters = list(model.parameters())\n    optimizer = Adam(parameters)",
        "groups = [{'params': model.parameters(), 'lr': 1}]\n    optimizer = Adam(groups, lr=2)",
        "decay = []\n    for n, p in model.named_parameters():\n        decay.append(p)\n"
        "    optimizer = Adam([{'params': decay}])\n    schedule = StepLR(optimizer)\n"
        "    optimizer_state = optimizer.state_dict()",
        "optimizer = make(args, model)",
        "optimizer = make(net=model, args=args)",
    ],
)
def test_models_whose_parameters_take_a_detour(made: str) -> None:
    text = f"""\
from torch.optim import Adam
def make(args, net):
    return Adam([p for p in net.parameters() if p.requires_grad])
def main(model, loader):
    {made}
    model.cuda()
    for x in loader:
        model(x).backward()
        optimizer.step()
"""
    watched = bare(put_in(text, "monitor"))
    set_up = "    npu_monitor.set_monitor(model, optimizer=optimizer, grad_acc_steps=1)\n"
    assert "    model.cuda()\n    npu_monitor = NpuTrainerMon" in watched
    assert f"{set_up}    for x in loader:" in watched


@pytest.mark.parametrize("kind", ["profiler", "step-time", "dump"])
@pytest.mark.parametrize(
    ("text", "added"),
    [
        (
            "from transformers import Trainer\ntrainer = Trainer(model)\ntrainer.train()",
            "trainer.add_callback(NpuInstrument())\ntrainer.train()",
        ),
        (
            "import lightning as L\ntrainer = L.Trainer(max_epochs=1)\ntrainer.fit(m)\n",
            "trainer.callbacks.append(NpuInstrument())\ntrainer.fit(m)",
        ),
    ],
)
def test_loops_of_libraries(text: str, added: str, kind: str) -> None:
    result = put_in(text, kind)
    assert bare(result).rstrip().endswith(added)
    assert without(result).text == text


@pytest.mark.parametrize(
    ("text", "kind", "line", "reason"),
    [
        ("x = (\n", "profiler", 1, "not valid Python"),
        ("", "profiler", 1, "no training"),
        ("print(1)\n", "dump", 1, "no training"),
        (
            SETUP + "def step(x):\n    model(x).backward()\n    optimizer.step()\n",
            "dump",
            8,
            "step",
        ),
        (SETUP + "model(x).backward()\noptimizer.step()\n", "profiler", 7, "in no loop"),
        (SETUP + "for x in y:\n    model(x).backward()\n", "profiler", 7, "no optimizer"),
        (
            SETUP + "for x in y: model(x).backward(); optimizer.step()\n",
            "profiler",
            6,
            "in one line",
        ),
        (
            SETUP + "for x in y:\n    if is_bad(x): continue\n    model(x).backward()\n"
            "    optimizer.step()\n",
            "dump",
            7,
            "shares its line",
        ),
        ("from lightning import Trainer\nTrainer().fit(m)\n", "profiler", 2, "one expression"),
        (GAN, "monitor", 3, "several optimizers"),
        ("optimizer = make(model)\n", "config-check", 1, "no statement"),
        (
            SETUP + "for i, x in enumerate(y):\n    model(x).backward()\n"
            "    if i % args.every == 0:\n        optimizer.step()\n",
            "monitor",
            6,
            "not a number",
        ),
    ],
)
def test_what_is_not_understood_is_refused_with_its_line(
    text: str, kind: str, line: int, reason: str
) -> None:
    with pytest.raises(UnclearError) as found:
        put_in(text, kind)
    assert (found.value.line, reason in found.value.text.en) == (line, True)


HELPER = """
import torch
accumulate = 8
model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def go_back(x):
    loss = model(x).sum()
    loss.backward()
    return loss
for i, x in enumerate(loader):
    optimizer.zero_grad()
    loss = go_back(x)
    optimizer.step()
"""
SPLIT = """    for part in x:
        loss = go_back(part)
"""
COUNTED = "    if (i + 1) % accumulate == 0:\n        optimizer.step()\n"


@pytest.mark.parametrize(
    ("text", "times"),
    [
        (HELPER, "1"),
        (HELPER.replace("    optimizer.step()\n", COUNTED), "accumulate"),
        (HELPER.replace("    loss = go_back(x)\n", SPLIT), None),
        (HELPER.replace("    optimizer.step()\n", COUNTED).replace("= 8", "= given"), "accumulate"),
    ],
)
def test_how_often_gradients_are_added_up(text: str, times: str | None) -> None:
    if times is None:
        with pytest.raises(UnclearError) as refused:
            put_in(text, "monitor")
        assert "added up" in refused.value.text.en
    else:
        assert f"grad_acc_steps={times})" in put_in(text, "monitor")


def test_a_refusal_changes_nothing(here: Path) -> None:
    (here / "train.py").write_text("print(1)\n")
    code, out, errors = invoke("instrument", "dump", "train.py")
    assert (code, out) == (2, "")
    assert errors.startswith("npulens: train.py:1: no training is found")
    assert [path.name for path in here.iterdir()] == ["train.py"]


def test_tools_that_disturb_each_other(here: Path) -> None:
    (here / "train.py").write_text(PLAIN)
    invoke("instrument", "profiler", "train.py")
    code, _, errors = invoke("instrument", "dump", "train.py")
    assert code == 2
    assert "`dump` and `profiler` disturb each other" in errors
    code, _, errors = invoke("instrument", "profiler", "train.py")
    assert code == 2
    assert "is in this script already" in errors


def test_taking_out_what_is_not_there(here: Path) -> None:
    (here / "train.py").write_text(PLAIN)
    code, out, _ = invoke("instrument", "all", "train.py", "--remove")
    assert (code, out) == (0, "train.py has no lines of an instrument; nothing is changed\n")


def test_all_is_only_taken_out(here: Path) -> None:
    (here / "train.py").write_text(PLAIN)
    assert invoke("instrument", "all", "train.py")[0] == 2


def test_a_patch_changes_nothing(here: Path) -> None:
    (here / "train.py").write_text(PLAIN)
    code, out, _ = invoke("instrument", "step-time", "train.py", "--diff")
    assert code == 0
    assert "+import time as npu_time" in out
    assert (here / "train.py").read_text() == PLAIN


@pytest.mark.parametrize("name", ["nothing.py", "."])
def test_files_that_cannot_be_read(here: Path, name: str) -> None:
    code, out, errors = invoke("instrument", "dump", name)
    assert (code, out) == (2, "")
    assert len(errors.splitlines()) == 1


def test_in_chinese(here: Path) -> None:
    (here / "train.py").write_text(PLAIN)
    _, out, _ = invoke("instrument", "profiler", "train.py", "--language", "zh")
    assert "已在 train.py 中插入 `profiler`" in out


def own_scripts() -> dict[str, str]:
    files = {path.stem: path.read_text() for path in FOLDER.glob("*.py")}
    return {**SCRIPTS, **files}


@pytest.mark.parametrize("name", own_scripts())
def test_taking_out_restores_each_byte(name: str) -> None:
    """Whatever ends the lines, whether or not the last one ends, alone and one upon the other."""
    text = own_scripts()[name]
    for instrument in INSTRUMENTS:
        with contextlib.suppress(UnclearError):
            assert without(instrumented(text, instrument)).text == text
    for original in (text.rstrip(), text.replace("\n", "\r\n"), text.replace("\n", "\r")):
        together, first = original, ""
        for kind in ("determinism", "step-time", "profiler", "silent-errors"):
            with contextlib.suppress(UnclearError):
                together = put_in(together, kind)
                first = first or together
        ast.parse(together)
        assert without(together).text == original
        others = {"step-time", "profiler", "silent-errors"}
        assert without(together, others).text == first


@pytest.mark.parametrize("text", [PLAIN, CLOSURE, POLICY])
def test_names_of_the_script_are_left_alone(text: str) -> None:
    taken = text + "npu_profiler = npu_step_ends = npu_debugger = None\n"
    for kind in ("profiler", "step-time", "dump"):
        result = put_in(taken, kind)
        assert "_2" in result
        assert without(result).text == taken


@pytest.mark.parametrize(
    ("made", "watched"),
    [
        ("optimizer = make(args, model)\nmodel.train()", "(model, "),
        ("optimizer, schedule = make(model)\nmodel.train()", "(model, "),
        ("optimizer = given or torch.optim.SGD(model.parameters())", "(model, "),
        ("params = [*a.parameters()] + list(b.parameters())\noptimizer = SGD(params)", "([a, b], "),
        ("optimizer = torch.optim.SGD(net.trainable_params())\nnet = net", "(net, "),
        ("optimizer = make(args)", None),
        ("optimizer = torch.optim.SGD(model.parameters()) if full else None", None),
    ],
)
def test_what_is_watched(made: str, watched: str | None) -> None:
    text = f"import torch\nfrom torch.optim import SGD\n{made}\n"
    text += "for x in loader:\n    model(x).backward()\n    optimizer.step()\n"
    if watched is None:
        with pytest.raises(UnclearError):
            put_in(text, "monitor")
    else:
        assert f"set_monitor{watched}optimizer=optimizer" in put_in(text, "monitor")


def test_a_model_is_watched_when_it_is_ready() -> None:
    text = """\
import torch
def main():
    model = Net()
    optimizer = torch.optim.Adam(model.parameters())
    model, optimizer = accelerator.prepare(model, optimizer)
    train(model, optimizer)
def train(model, optimizer):
    for x in loader:
        accelerator.backward(model(x))
        optimizer.step()
"""
    assert "prepare(model, optimizer)\n    npu_monitor = " in bare(put_in(text, "monitor"))


EVALUATES = """\
import torch
def run(loader, model, optimizer, training):
    for x in loader:
        loss = model(x)
        if training:
            loss.backward()
            optimizer.step()
def main():
    run(a, model, optimizer, True)
    run(b, model, None, False)
"""


def test_turns_that_evaluate_are_not_measured() -> None:
    dumped = bare(put_in(EVALUATES, "dump"))
    assert "        if training:\n            npu_debugger.start()\n        loss" in dumped
    assert "        if training:\n            npu_debugger.stop()\n" in dumped
    profiled = bare(put_in(EVALUATES, "profiler"))
    assert "    if training:\n        npu_profiler.start()\n    for x" in profiled
    inside = EVALUATES.replace("        loss = model(x)\n", "").replace(
        "loss.backward()", "loss = model(x)\n            loss.backward()"
    )
    dumped = bare(put_in(inside, "dump"))
    assert "        if training:\n            npu_debugger.start()\n            loss" in dumped
