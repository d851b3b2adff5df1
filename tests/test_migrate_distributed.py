"""`npulens migrate --distributed`: from one device to one process for each card."""

import json
import os
import shutil
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import npulens_emulator
from commands import PACKAGE_FOLDER, invoke, records
from migration_projects import PROJECTS, write_project
from test_migrate import contents, leftovers, log_of

pytestmark = pytest.mark.usefixtures("here")
LAUNCHER = "run_distributed_npu.sh"
HEAD = """\
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

"""
LOADER = "    loader = DataLoader(data, batch_size=4, shuffle=True)\n"
STEP = """\
    for epoch in range(2):
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x.to(device)), y.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""
BODY = f"""\
def main():
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    data = TensorDataset(torch.randn(32, 4), torch.randn(32, 2))
{LOADER}\
    model = nn.Linear(4, 2)
    model.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{STEP}\
        torch.save(model.state_dict(), "last.pt")


main()
"""
SCRIPT = HEAD + BODY
CALL = "main()\n"
WRAPPED = """\
    model.to(f"npu:{local_rank}")
    model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[local_rank])
"""


def distributed(here: Path, text: str, *options: str) -> tuple[int, str, str]:
    (here / "src").mkdir(exist_ok=True)
    (here / "src" / "main.py").write_text(text)
    arguments = ["--distributed", "--entry", "main.py", *options]
    code, _, errors = invoke("migrate", "src", "-o", "dst", *arguments)
    path = here / "dst" / "main.py"
    return code, errors, path.read_text() if path.exists() else ""


def test_a_script_for_one_device(here: Path) -> None:
    code, errors, text = distributed(here, SCRIPT)
    assert (code, errors) == (1, "")
    assert (
        text
        == f"""\
import os
import sys
import torch
import torch.nn as nn
import torch_npu  # noqa: F401
from torch.utils.data import DataLoader, TensorDataset

def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.npu.set_device(local_rank)
    torch.distributed.init_process_group(backend="hccl")
    if torch.distributed.get_rank() != 0:
        sys.stdout = open(os.devnull, "w")
    device = torch.device("npu" if torch.npu.is_available() else "cpu")
    data = TensorDataset(torch.randn(32, 4), torch.randn(32, 2))
    loader = DataLoader(data, batch_size=4, sampler=torch.utils.data.distributed.DistributedSampler(data))
    model = nn.Linear(4, 2)
    model.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{WRAPPED}\
    for epoch in range(2):
        loader.sampler.set_epoch(epoch)
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x.to(device)), y.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if torch.distributed.get_rank() == 0:
            torch.save(model.module.state_dict(), "last.pt")
    torch.distributed.destroy_process_group()


main()
"""  # noqa: E501
    )


def test_a_script_for_any_device(here: Path) -> None:
    style = ["--unsafe-fixes", "--migration-style", "device-agnostic", "--torch-version", "2.13"]
    _, errors, text = distributed(here, SCRIPT, *style)
    assert errors == ""
    assert "npu" not in text and "cuda" not in text
    assert "    torch.accelerator.set_device_index(local_rank)\n" in text
    assert "    torch.distributed.init_process_group()\n" in text
    assert "    model.to(local_rank)\n" in text
    launcher = (here / "dst" / "run_distributed.sh").read_text()
    assert "torch.accelerator.device_count()" in launcher
    assert "npu" not in launcher.lower()


def test_the_card_that_a_script_names_is_any(here: Path) -> None:
    style = ["--unsafe-fixes", "--migration-style", "device-agnostic", "--torch-version", "2.13"]
    source = SCRIPT.replace('"cuda:0" if torch.cuda.is_available() else "cpu"', '"cuda:0"')
    assert "npu" not in distributed(here, source, *style)[2]


def test_the_log_of_it(here: Path) -> None:
    distributed(here, SCRIPT.replace("data = T", "root = dict(download=True)\n    data = T"))
    log = log_of(here / "dst")
    assert log["changed"] == ["main.py", LAUNCHER]
    assert log["files"] == 2
    asked = [change for change in log["changes"] if change["code"] is None]
    assert {change["path"] for change in asked} == {"main.py", LAUNCHER}
    [fixed] = [c for c in log["changes"] if c["path"] == "main.py" and c["code"] is not None]
    assert (fixed["code"], fixed["line"]) == ("NPU101", 6)  # a line of the source
    notes = [(note["line"], note["text"]) for note in log["notes"]]
    assert [line for line, _ in notes] == [1, 7]
    assert "batch" in notes[0][1]
    assert "download" in notes[1][1]


def test_the_launcher(here: Path) -> None:
    distributed(here, SCRIPT)
    launcher = here / "dst" / LAUNCHER
    assert launcher.stat().st_mode & stat.S_IXUSR
    tools = here / "tools"
    tools.mkdir()
    (tools / "torchrun").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tools / "torchrun").chmod(0o755)
    if os.name == "nt":
        pytest.skip("no shell")
    result = subprocess.run(
        ["bash", str(launcher), "--epochs", "3 4"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "NPROC_PER_NODE": "8"},
    )
    lines = result.stdout.splitlines()
    assert "--nproc_per_node=8" in lines
    assert lines[-3:] == [str(here / "dst" / "main.py"), "--epochs", "3 4"]


def test_the_next_step_names_the_script(here: Path) -> None:
    (here / "src").mkdir()
    (here / "src" / "main.py").write_text(SCRIPT)
    arguments = ("migrate", "src", "-o", "my dst", "--distributed", "--entry", "main.py")
    last = invoke(*arguments)[1].splitlines()[-1]
    assert last.endswith(": cd 'my dst' && npulens verify --as-is --processes 2 main.py")


def test_data_parallel_becomes_one_process_per_card(here: Path) -> None:
    text = SCRIPT.replace("    model.to(device)\n", "    model = nn.DataParallel(model)\n")
    _, errors, made = distributed(here, text)
    assert errors == ""
    assert WRAPPED in made
    assert made.count("DataParallel(") == 1
    assert "if torch.distributed.get_rank() == 0:\n            torch.save(model.module." in made


def test_another_name_and_a_function_that_trains(here: Path) -> None:
    text = f"""{HEAD}
def report(net, path):
    print(sum(p.numel() for p in net.parameters()), net.training)
    torch.save(
        net.state_dict(),
        path,
    )


def train(net, loader, optimizer):
    for x, y in loader:
        nn.functional.mse_loss(net(x.cuda()), y.cuda()).backward()
        optimizer.step()


if __name__ == "__main__":
    data = TensorDataset(torch.randn(32, 4), torch.randn(32, 2))
    loader = DataLoader(data, 4, True)
    if len(data) > 3:
        net = nn.Linear(4, 2).cuda()
    else:
        net = nn.Linear(4, 2, bias=False).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net.load_state_dict(torch.load("first.pt"))
    for epoch in range(3):
        train(net, loader, optimizer)
    report(net, "x.pt")
"""
    _, errors, made = distributed(here, text, "--model", "net")
    assert errors == ""
    compile(made, "main.py", "exec")
    assert (
        "    if torch.distributed.get_rank() == 0:\n        torch.save(\n"
        "            net.module.state_dict(),\n            path,\n        )\n"
    ) in made
    assert "    net.load_state_dict" in made
    assert "net.parameters(), lr" in made
    assert made.index("load_state_dict") < made.index("DistributedDataParallel(")
    assert "DataLoader(data, 4, sampler=torch.utils.data.distributed.DistributedSampler(" in made
    assert "loader.sampler.set_epoch(loader.sampler.epoch + 1)" in made


def test_a_loader_whose_options_are_not_seen(here: Path) -> None:
    """What it is is looked at when it is there."""
    _, errors, made = distributed(
        here, SCRIPT.replace("batch_size=4, shuffle=True", "shuffle=True, **{'batch_size': 4}")
    )
    assert errors == ""
    assert "loader_of_process(DataLoader(data, shuffle=True, **{'batch_size': 4}))" in made


INSIDE = [
    ("torch.save(model, 'x.pt')", "torch.save(model.module, 'x.pt')"),
    ("torch.save({'a': model, 'b': 1}, 'x')", "torch.save({'a': model.module, 'b': 1}, 'x')"),
    (
        "with torch.no_grad():\n            model.decode(data)",
        "with torch.no_grad():\n            model.module.decode(data)",
    ),
    ("print(model.weight.shape)", "print(model.module.weight.shape)"),
    ("model.eval()", "model.eval()"),
]


@pytest.mark.parametrize(("before", "after"), INSIDE, ids=[before for before, _ in INSIDE])
def test_the_model_inside_is_asked(here: Path, before: str, after: str) -> None:
    _, errors, made = distributed(
        here, SCRIPT.replace(' "last.pt")', f' "last.pt")\n        {before}')
    )
    assert errors == ""
    assert after in made
    assert made.count(".module") == 1 + after.count(".module")


MINE = """\
class Mine(DataLoader):
    def __init__(self, data):
        super().__init__(data, batch_size=4, shuffle=True)
        self.classes = 2
"""
OWN_LOADER = SCRIPT.replace("def main", f"{MINE}\n\ndef main").replace(
    "DataLoader(data, batch_size=4, shuffle=True)", "Mine(data)"
)
DOUBLED = "\n    def __iter__(self):\n        return (x * 2 for x in super().__iter__())\n"
REFUSED = {
    "batches of its own": (
        OWN_LOADER.replace("classes = 2\n", f"classes = 2\n{DOUBLED}"),
        "py:10: the loader is made anew for the share of each process, as a `DataLoader` without "
        "the `__iter__` of",
    ),
    "a loader that knows more": (
        OWN_LOADER.replace("nn.Linear(4, 2)", "nn.Linear(4, loader.classes)"),
        "py:15: the loader is made anew for the share of each process, as a `DataLoader` without "
        "the `classes` of",
    ),
    "broken": (SCRIPT + "def f(:\n", "does not parse"),
    "several processes": (SCRIPT.replace("4, 2)", "4, 2)\n    local_rank = 0"), "`local_rank`"),
    "no training": (HEAD + "model = nn.Linear(4, 2)\n", "nothing in this file calls `.backward()`"),
    "two cards": (
        SCRIPT.replace("model.to(device)", "model.cuda(0)").replace("y.to(device)", "y.cuda(1)"),
        "py:14: a card is named by its number",
    ),
    "cards in a loop": (
        SCRIPT.replace("    model.to(device)", "    for i in range(2):\n        model[i].cuda(i)"),
        "py:11: a card is named by its number",
    ),
    "a card with two names": (
        SCRIPT.replace("    device =", "    gpu = 0\n    device =")
        .replace("model.to(device)", "model.cuda(0)")
        .replace("y.to(device)", "y.cuda(gpu)"),
        "the script names its card as `0` and, here, as `gpu`",
    ),
    "card of a block": (
        SCRIPT.replace(
            "    model.to(device)", "    with torch.cuda.device(0):\n        model.cuda()"
        ),
        "py:10: a card is named by its number",
    ),
    "default device": (
        SCRIPT.replace("    device =", '    torch.set_default_device("cuda")\n    device ='),
        "py:6: with `set_default_device` the sampler",
    ),
    "default tensors": (
        SCRIPT.replace(
            "    device =",
            '    torch.set_default_tensor_type("torch.cuda.FloatTensor")\n    device =',
        ),
        "py:6: with `set_default_tensor_type` the sampler",
    ),
    "another launcher": (
        SCRIPT.replace("    model.to(device)", "    model, _, _, _ = deepspeed.initialize(model)"),
        "py:10: `deepspeed` stands here",
    ),
    "method by name": (
        SCRIPT.replace("y.to(device)", "getattr(y, 'cuda')()"),
        "py:14: `getattr(y, 'cuda')` would stay as it is",
    ),
    "method without a call": (
        SCRIPT.replace("y.to(device)", "(y.cuda if True else y.cpu)()"),
        "",
    ),
    "model elsewhere": (
        SCRIPT.replace("\nmain()\n", "\nif len(__name__) > 3:\n    pass\n"),
        "this file does not run what trains",
    ),
    "no loader": (SCRIPT.replace(LOADER, "    loader = data\n"), "takes its data from `loader`"),
    "no loader in a bar": (
        SCRIPT.replace("in loader", "in alive_it(data)").replace(
            "import torch\n", "import torch\nfrom alive_progress import alive_it\n", 1
        ),
        "takes its data from `alive_it(data)`",
    ),
    "card by number": (SCRIPT.replace('"cuda:0"', '"cuda:1"'), "a card is named by its number"),
    "saving in an expression": (
        SCRIPT.replace("        torch.save(", "        done = torch.save("),
        "every process would save here",
    ),
    "one line": (SCRIPT.replace("    optimizer = ", "    a = 1; optimizer = "), ""),
}

AVERAGED = "optimizer = averaged_over_processes(torch.optim.SGD(model.parameters(), lr=0.1))"
STREAM = """\
class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        yield 1
"""
ALLOWED = {
    "several models for a function": (
        SCRIPT.replace('torch.save(model.state_dict(), "last.pt")', "save(model)")
        .replace("def main", 'def save(m):\n    torch.save(m.state_dict(), "x")\n\n\ndef main')
        .replace("\n\nmain()\n", "\n\nsave(nn.Linear(3, 3))\nmain()\n"),
        'torch.save(getattr(m, "module", m).state_dict(), "x")',
    ),
    "model only used": (
        SCRIPT.replace("    model = nn.Linear(4, 2)\n", "").replace("main()", "main(model)"),
        AVERAGED,
    ),
    "model from a table": (
        SCRIPT.replace("model = nn.Linear(4, 2)", "model = MODELS[0]"),
        AVERAGED,
    ),
    "own method": (
        SCRIPT.replace("model(x.to(device))", "model.predict(x.to(device))"),
        AVERAGED,
    ),
    "own method in a function": (
        SCRIPT.replace("model(x.to(device))", "run(model, x)").replace(
            "def main", "def run(m, x):\n    return m.inner(x)\n\n\ndef main"
        ),
        AVERAGED,
    ),
    "moved too late": (
        SCRIPT.replace("    model.to(device)\n", "").replace(
            "\n\nmain()", "    model.to(device)\n    print(1)\n\n\nmain()"
        ),
        AVERAGED,
    ),
    "samples by themselves": (
        SCRIPT.replace("def main", f"{STREAM}\n\ndef main"),
        "loader_of_process(DataLoader(data, batch_size=4, shuffle=True))",
    ),
    "another name": (SCRIPT.replace("model", "net"), "DistributedDataParallel(net, "),
    "two loaders": (SCRIPT.replace(LOADER, LOADER + LOADER), "DistributedSampler(data)"),
    "a loader of its own class": (OWN_LOADER, "loader = loader_of_process(Mine(data))"),
    "silent loader": (SCRIPT.replace(", shuffle=True", ""), "Sampler(data, shuffle=False)"),
    "sampler": (
        SCRIPT.replace("shuffle=True", "sampler=torch.utils.data.RandomSampler(data)"),
        "loader_of_process(DataLoader(",
    ),
    "loader in a function": (
        SCRIPT.replace(LOADER, "    loader = make(data)\n").replace(
            "def main", f"def make(data):\n{LOADER}    return loader\n\n\ndef main"
        ),
        "sampler=torch.utils.data.distributed.DistributedSampler(data)",
    ),
    "options": (
        SCRIPT.replace("batch_size=4, shuffle=True", "**{'shuffle': True}"),
        "loader_of_process(DataLoader(",
    ),
    "visible card": (
        f'import os\n\nos.environ["CUDA_VISIBLE_DEVICES"] = "0"\n{SCRIPT}',
        "import sys\nimport os\nimport torch\n",
    ),
    "visible card by default": (
        f'import os\n\nos.environ.setdefault("CUDA_VISIBLE_DEVICES", "0")\n{SCRIPT}',
        "import sys\nimport os\nimport torch\n",
    ),
    "another model that is not trained": (
        SCRIPT.replace("    optimizer =", "    other = nn.Linear(2, 2)\n    optimizer ="),
        "DistributedDataParallel(model, ",
    ),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_what_was_refused_once(here: Path, name: str) -> None:
    text, part = ALLOWED[name]
    code, errors, made = distributed(here, text)
    assert (code, errors) == (1, "")
    assert part in made
    assert "VISIBLE_DEVICES" not in made


TRAINER = f"""{HEAD}
class Trainer:
    def fit(self):
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        for x, y in self.loader:
            nn.functional.mse_loss(self.model(x.cuda()), y.cuda()).backward()
            optimizer.step()


def make():
    return Trainer()


"""
LOADERS = "def loaders(d):\n    return DataLoader(d, 4), DataLoader(d, 4)\n\n\n"
MAIN = f"""{LOADERS}def main():
    data = TensorDataset(torch.randn(32, 4), torch.randn(32, 2))
    trainer = Trainer()
    trainer.loader, _ = loaders(data)
    trainer.model = nn.Linear(4, 2).cuda()
    trainer.fit()
    whole, _ = loaders(data)
    for x, y in whole:
        print(x)


main()
"""
ASSIGNED_FROM_OUTSIDE = {
    "in one file": ({}, TRAINER + MAIN),
    "of another file": ({"trainer.py": TRAINER}, f"{HEAD}from trainer import Trainer\n\n{MAIN}"),
    "of a function of another file": (
        {"trainer.py": TRAINER},
        f"{HEAD}from trainer import make\n\n{MAIN}".replace("Trainer()", "make()"),
    ),
}


@pytest.mark.parametrize("name", ASSIGNED_FROM_OUTSIDE)
def test_attributes_are_written_as_where_they_are_assigned(here: Path, name: str) -> None:
    modules, text = ASSIGNED_FROM_OUTSIDE[name]
    write_project(modules, here / "src")
    code, errors, made = distributed(here, text)
    assert (code, errors) == (1, "")
    assert (
        '    trainer.model.to(f"npu:{local_rank}")\n'
        "    trainer.model = torch.nn.parallel.DistributedDataParallel(trainer.model, "
    ) in made
    assert "    trainer.loader = loader_of_process(trainer.loader)\n" in made
    assert "self.model = " not in made
    assert "self.loader = " not in made


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "tqdm(loader, **bar)",
            "tqdm(loader, **(bar if torch.distributed.get_rank() == 0 "
            'else {**bar, "disable": True}))',
        ),
        (
            "tqdm(loader, **bar or {})",
            "tqdm(loader, **((bar or {}) if torch.distributed.get_rank() == 0 "
            'else {**(bar or {}), "disable": True}))',
        ),
        (
            "wandb.init(**bar, name=name)",
            "wandb.init(**(bar if torch.distributed.get_rank() == 0 "
            'else {**bar, "mode": "disabled"}), name=name)',
        ),
        (
            "wandb.init(name=name)",
            'wandb.init(name=name, mode=None if torch.distributed.get_rank() == 0 else "disabled")',
        ),
    ],
)
def test_options_may_have_what_other_processes_are_given(
    here: Path, before: str, after: str
) -> None:
    text = f"import wandb\nfrom tqdm import tqdm\n{SCRIPT}"
    if before.startswith("tqdm"):
        text = text.replace("in loader", f"in {before}")
    else:
        text = text.replace("    model = ", f"    {before}\n    model = ")
    code, errors, made = distributed(here, text)
    assert (code, errors) == (1, "")
    assert after in made


@pytest.mark.parametrize(
    "ending",
    [
        "try:\n        main()\n    except Exception:\n        import logging\n        raise\n",
        "main()\n    import logging\n",
    ],
    ids=["in a handler", "behind it"],
)
def test_a_module_that_is_imported_too_late_is_imported_at_the_top(here: Path, ending: str) -> None:
    text = f'{SCRIPT.removesuffix(CALL)}if __name__ == "__main__":\n    {ending}'
    code, errors, made = distributed(here, text)
    assert (code, errors) == (1, "")
    assert made.startswith("import logging\n")
    assert "logging.disable(logging.WARNING)\n" in made


def test_what_a_module_does_unless_it_is_started_belongs_to_the_program(here: Path) -> None:
    loader = LOADER.replace("data,", "list(range(9)),")
    module = (
        f'{HEAD}if __name__ != "__main__":\n{loader}if "__main__" == __name__:\n    loader = 1\n'
    )
    write_project({"loading.py": module}, here / "src")
    text = SCRIPT.replace(LOADER, "").replace("def main", "from loading import loader\n\ndef main")
    code, errors, _ = distributed(here, text)
    assert code == 2
    assert errors.startswith("npulens: nothing is migrated: loading.py:6:")


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_clear_is_refused(here: Path, name: str) -> None:
    text, reason = REFUSED[name]
    code, errors, made = distributed(here, text)
    if not reason:  # what looks odd and is fine
        assert code != 2, errors
        assert ".cuda" not in made
        compile(made, "main.py", "exec")
        return
    assert code == 2
    assert errors.startswith("npulens: nothing is migrated: main.py:")
    assert reason in errors
    assert errors.count("\n") == 1
    assert not (here / "dst").exists()
    assert leftovers(here) == []
    assert contents(here / "src") == {"main.py": text.encode()}


def test_reasons_are_told_in_chinese(here: Path) -> None:
    text = SCRIPT.replace(LOADER, "    loader = [data]\n")
    code, errors, _ = distributed(here, text, "--language", "zh")
    assert code == 2
    assert "main.py:13：此训练循环的数据来自 `loader`" in errors


def test_in_place_nothing_is_done_by_half(here: Path) -> None:
    (here / "src").mkdir()
    (here / "src" / "main.py").write_text(SCRIPT.replace(LOADER, "    loader = [data]\n"))
    (here / "src" / "other.py").write_text("import torch\ntorch.cuda.synchronize()\n")
    before = contents(here / "src")
    arguments = ["--in-place", "--distributed", "--entry", "main.py"]
    assert invoke("migrate", "src", *arguments)[0] == 2
    assert contents(here / "src") == before
    (here / "src" / "main.py").write_text(SCRIPT)
    assert invoke("migrate", "src", *arguments)[0] == 1
    assert (here / "src" / LAUNCHER).exists()
    # The second time the script starts several processes already.
    code, _, errors = invoke("migrate", "src", *arguments)
    assert code == 2
    assert f"{LAUNCHER}: is there already" in errors


PROJECT_MODELS = {"adversaries": "netG", "processes": "model"}


@pytest.mark.parametrize("name", PROJECT_MODELS)
def test_projects_that_are_not_clear(here: Path, name: str) -> None:
    write_project(PROJECTS[name], here / "src")
    entry = next(path for path in PROJECTS[name] if path.endswith(("main.py", "train.py")))
    model = PROJECT_MODELS[name]
    code, _, errors = invoke(
        *("migrate", "src", "-o", "dst", "--distributed", "--entry", entry, "--model", model)
    )
    assert code == 2
    assert errors.startswith(f"npulens: nothing is migrated: {entry}:")
    assert not (here / "dst").exists()


STAND_IN = """\
import types

import torch

torch.npu = types.SimpleNamespace(set_device=lambda rank: None, is_available=lambda: False)
"""


def with_model(*lines: str) -> str:
    return SCRIPT.replace(
        "    model = nn.Linear(4, 2)\n    model.to(device)\n",
        "".join(f"    {line}\n" for line in lines),
    )


def with_batch(*lines: str, loss: str = "model(x), y") -> str:
    """The model is moved by an assignment, the batch by these lines."""
    return with_model("model = nn.Linear(4, 2)", "model = model.cuda()").replace(
        "            loss = nn.functional.mse_loss(model(x.to(device)), y.to(device))\n",
        "".join(f"            {line}\n" for line in lines)
        + f"            loss = nn.functional.mse_loss({loss})\n",
    )


def with_options(text: str) -> str:
    parser = (
        "    parser = argparse.ArgumentParser()\n"
        '    parser.add_argument("--gpu", type=int, default=0)\n'
        '    parser.add_argument("--device", default="cuda")\n'
        "    args = parser.parse_args([])\n"
    )
    return "import argparse\n" + text.replace("def main():\n", f"def main():\n{parser}")


NET = "model = nn.Linear(4, 2)"
HELPER = (
    "def to_device(m):\n    if torch.cuda.is_available():\n        m = m.cuda()\n    return m\n\n\n"
)
MAKER = "def make():\n    return nn.Linear(4, 2).cuda(), 3\n\n\n"
TENSORS = (
    'scale = torch.ones(2, device="cuda")',
    'shift = torch.zeros(2, device="cuda:0")',
    "factor = torch.cuda.FloatTensor(2).fill_(1)",
)
APEX = """\
from torch.nn.parallel import DistributedDataParallel


def initialize(model, optimizer, opt_level="O1"):
    assert not isinstance(model, DistributedDataParallel)
    assert next(model.parameters()).device.type == "npu"
    return model, optimizer
"""

MOVING = {
    "loader of its own class": OWN_LOADER,
    "model.cuda()": with_model(NET, "model.cuda()"),
    "model = model.cuda()": with_model(NET, "model = model.cuda()"),
    'model.to("cuda")': with_model(NET, 'model.to("cuda")'),
    'model = model.to("cuda")': with_model(NET, 'model = model.to("cuda")'),
    "model = model.to(device)": with_model(NET, "model = model.to(device)"),
    "made and moved": with_model("model = nn.Linear(4, 2).cuda()"),
    "sequential": with_model(
        'model = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2)).to(torch.device("cuda:0"))'
    ),
    "model.to(args.device)": with_options(with_model(NET, "model.to(args.device)")),
    "model = model.to(args.device)": with_options(with_model(NET, "model = model.to(args.device)")),
    "torch.device(args.device)": with_options(
        SCRIPT.replace('"cuda:0" if torch.cuda.is_available() else "cpu"', "args.device")
    ),
    "model.cuda(0)": with_model(NET, "model.cuda(0)"),
    "model = model.cuda(device=0)": with_model(NET, "model = model.cuda(device=0)"),
    "model = model.cuda(args.gpu)": with_options(with_model(NET, "model = model.cuda(args.gpu)")),
    "model = model.to(args.gpu)": with_options(with_model(NET, "model = model.to(args.gpu)")),
    "model = model.to(0)": with_model(NET, "model = model.to(0)"),
    "composed": with_options(SCRIPT.replace('"cuda:0"', 'f"cuda:{args.gpu}"')),
    "device and number": with_options(
        SCRIPT.replace('"cuda:0" if torch.cuda.is_available() else "cpu"', '"cuda", args.gpu')
    ),
    "helper": with_model(NET, "model = to_device(model)").replace("def main", f"{HELPER}def main"),
    "if use_cuda": with_model(
        "use_cuda = torch.cuda.is_available()", NET, "if use_cuda:", "    model = model.cuda()"
    ),
    "wrapped in another": with_model(NET, "model = model.cuda()", "model = nn.Sequential(model)"),
    "made with something else": with_model("model, extra = make()").replace(
        "def main", f"{MAKER}def main"
    ),
    "made beside something else": with_model("model, extra = nn.Linear(4, 2).cuda(), 3"),
    "x.cuda()": with_batch("x = x.cuda()", "y = y.cuda()"),
    "x, y = x.cuda(), y.cuda()": with_batch("x, y = x.cuda(), y.cuda()"),
    "non-blocking": with_batch(
        "x = x.to(device, non_blocking=True)", "y = y.cuda(0, non_blocking=True)"
    ),
    "dictionary": with_batch(
        'batch = {"x": x, "y": y}',
        "batch = {k: v.cuda() for k, v in batch.items()}",
        loss='model(batch["x"]), batch["y"]',
    ),
    "list": with_batch("batch = [t.to(device) for t in (x, y)]", loss="model(batch[0]), batch[1]"),
    "tuple": with_batch(
        "batch = tuple(t.cuda() for t in (x, y))", loss="model(batch[0]), batch[1]"
    ),
    "whole batch": with_batch(loss="model(batch[0].cuda()), batch[1].cuda()").replace(
        "for x, y in", "for batch in"
    ),
    "criterion": with_model(NET, "model = model.cuda()", "criterion = nn.MSELoss().cuda()").replace(
        "nn.functional.mse_loss(", "criterion("
    ),
    "criterion by assignment": with_model(
        NET, "model = model.cuda()", "criterion = nn.MSELoss()", "criterion = criterion.cuda()"
    ).replace("nn.functional.mse_loss(", "criterion("),
    "tensors": with_model(NET, "model = model.cuda()", *TENSORS).replace(
        "model(x.to(device))", "model(x.cuda()) * scale * factor + shift"
    ),
    "several": with_model(
        NET, "model = model.cuda()", "criterion = nn.MSELoss().cuda()", *TENSORS
    ).replace(
        "            loss = nn.functional.mse_loss(model(x.to(device)), y.to(device))\n",
        "            x, y = x.cuda(non_blocking=True), y.to(device)\n"
        '            noise = torch.zeros(2, device="cuda")\n'
        "            loss = criterion(model(x) * scale * factor + shift + noise, y)\n",
    ),
}


@pytest.mark.family(8)
@pytest.mark.parametrize("name", MOVING)
def test_nothing_of_cuda_is_left(here: Path, name: str) -> None:
    """And the log has what a check of the result finds."""
    text = MOVING[name]
    compile(text, "main.py", "exec")
    code, errors, made = distributed(here, text)
    assert (code, errors) == (1, "")
    for word in (".cuda(", '"cuda', "'cuda", "torch.cuda"):
        assert word not in made
    left = [(each["line"], each["code"]) for each in log_of(here / "dst")["left"]]
    found = records(str(here / "dst"))
    assert sorted(left) == sorted((each["line"], each["code"]) for each in found)
    assert made.index("optim.SGD(") < made.index("DistributedDataParallel(")


DRIVER = """\
import os
import runpy
import socket
import sys
import time
from pathlib import Path

import torch.distributed as dist


def agreed_port(note):
    # On the port of the last script its store may still answer the faster process.
    if os.environ["RANK"] == "0":
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            Path(f"{note}.new").write_text(str(free.getsockname()[1]))
        os.rename(f"{note}.new", note)
    while not os.path.exists(note):
        time.sleep(0.01)
    return Path(note).read_text()


for name in sys.argv[1:]:
    os.environ["MASTER_PORT"] = agreed_port(f"{name}.port")
    runpy.run_path(name, run_name="__main__")
    if dist.is_initialized():
        dist.destroy_process_group()
"""
"""Runs scripts one after the other, since two processes take seconds to start."""
GROUPS = 3


@pytest.mark.emulated
@pytest.mark.parametrize("group", range(GROUPS))
def test_it_trains_on_two_cards(here: Path, group: int) -> None:
    folder = here / "together"
    folder.mkdir()
    (folder / "main.py").write_text(DRIVER)
    texts = list(MOVING.values())[group::GROUPS]
    for number, text in enumerate(texts):
        distributed(here, text)
        (here / "dst" / "main.py").rename(folder / f"{number}.py")
        shutil.rmtree(here / "dst")
    assert_trains_on_two_cards(folder, *(f"{number}.py" for number in range(len(texts))))


def assert_trains_on_two_cards(folder: Path, *scripts: str) -> None:
    options = ("--as-is", "--processes", "2", "--steps", "0", "--output-format", "json")
    done = subprocess.run(
        [sys.executable, "-m", "npulens", "verify", *options, "main.py", *scripts],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    found = json.loads(done.stdout)
    assert done.returncode == 0, found
    assert found["steps"] == 8 * (len(scripts) or 1), found  # 2 epochs of half of 8 batches
    assert found["cuda_calls"] == []


def with_apex(here: Path, *lines: str) -> str:
    """A script whose model apex prepares; what stands in for apex looks at the model."""
    (here / "src" / "apex").mkdir(parents=True)
    (here / "src" / "apex" / "__init__.py").write_text("")
    (here / "src" / "apex" / "amp.py").write_text(APEX)
    return "from apex import amp\n" + with_model(NET, "model = model.cuda()").replace(
        "    for epoch", "".join(f"    {line}\n" for line in lines) + "    for epoch"
    )


APEX_CALLS = (
    ("model, optimizer = amp.initialize(model, optimizer)",),
    ("if torch.cuda.is_available():", "    [model, optimizer] = amp.initialize(model, optimizer)"),
)


@pytest.mark.parametrize("lines", APEX_CALLS)
def test_apex_prepares_the_model_before_it_is_wrapped(here: Path, lines: tuple[str, ...]) -> None:
    _, errors, made = distributed(here, with_apex(here, *lines))
    assert errors == ""
    assert ".cuda(" not in made
    assert made.index("amp.initialize(") < made.index("DistributedDataParallel(")
    assert made.index("DistributedDataParallel(") < made.index("for epoch")


@pytest.mark.emulated
def test_what_apex_prepared_trains_on_two_cards(here: Path) -> None:
    distributed(here, with_apex(here, *APEX_CALLS[0]))
    assert_trains_on_two_cards(here / "dst")


DATA_PARALLEL = {
    "made and moved": with_model(
        "model = nn.Linear(4, 2).cuda()", "model = nn.DataParallel(model)"
    ),
    "moved by assignment": with_model(
        NET, "model = model.cuda()", "model = nn.DataParallel(model)"
    ),
    "only with several cards": with_model(
        NET,
        "model = model.cuda()",
        "if torch.cuda.device_count() > 1:",
        "    model = nn.DataParallel(model)",
    ),
}


@pytest.mark.parametrize("name", DATA_PARALLEL)
def test_a_call_of_cuda_is_never_left_in_silence(here: Path, name: str) -> None:
    """What the check hides behind the code that is written here is refused with its line."""
    code, errors, made = distributed(here, DATA_PARALLEL[name])
    assert ".cuda(" not in made
    if code == 2:
        assert ".cuda` would stay as it is and fail in every process" in errors
        line = int(errors.split("main.py:")[1].split(":")[0])
        assert ".cuda()" in DATA_PARALLEL[name].splitlines()[line - 1]


def test_what_its_author_has_decided_may_name_cuda(here: Path) -> None:
    """Code for both devices stays; a name of a flag and a key are no devices."""
    text = SCRIPT.replace(
        'torch.device("cuda:0" if torch.cuda.is_available() else "cpu")',
        'torch.device("npu" if hasattr(torch, "npu") else "cuda")\n    kinds = {"cuda": 1}',
    )
    code, errors, _ = distributed(here, text)
    assert (code, errors) == (1, "")


def test_under_the_shim_calls_of_cuda_are_right(here: Path) -> None:
    code, errors, made = distributed(
        here, MOVING["model = model.cuda()"], "--migration-style", "runtime-shim"
    )
    assert code in (0, 1), errors
    assert "transfer_to_npu" in made


@pytest.mark.skipif(os.name == "nt", reason="needs gloo")
@pytest.mark.emulated
def test_it_trains_as_one(here: Path) -> None:
    """On two processes of the CPU: both end with the same weights, and one of them saves.

    Only what names the device is replaced, since no card is here.
    """
    pytest.importorskip("torch")
    text = SCRIPT.replace("\nmain()\n", "").replace(
        "def main():\n", 'def main():\n    torch.manual_seed(int(os.environ["RANK"]))\n'
    )
    text = text.replace("import torch\n", "import os\nimport torch\n", 1)
    end = "    weights = model.module.weight.detach().reshape(-1).tolist()\n"
    # Each writes a file of its own: what two processes print may run into each other.
    end += '    with open("rank" + os.environ["RANK"], "w") as file:\n'
    end += "        print(len(loader), weights, file=file)\n"
    # PyTorch 2.13 with gloo aborts now and then while the interpreter ends, also after its group is
    # destroyed. What is asked here is done by then, so the interpreter is not ended step by step.
    end += "    torch.distributed.destroy_process_group()\n\n\nmain()\nos._exit(0)\n"
    last = "    model.module.weight\n    torch.distributed.destroy_process_group()\n\n\nmain()\n"
    _, errors, made = distributed(here, f"{text.rstrip()}\n    model.weight\n\n\nmain()\n")
    assert errors == ""
    for npu, cpu in (
        ('backend="hccl"', 'backend="gloo"'),
        ('    model.to(f"npu:{local_rank}")\n', ""),
        ("model, device_ids=[local_rank]", "model"),
        (last, end),
    ):
        assert npu in made
        made = made.replace(npu, cpu)
    folder = here / "run"
    folder.mkdir()
    (folder / "main.py").write_text(made)
    (folder / "torch_npu.py").write_text(STAND_IN)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    result = subprocess.run(
        [*command, "main.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"},
    )
    assert result.returncode == 0, result.stderr
    first, second = ((folder / name).read_text() for name in ("rank0", "rank1"))
    assert first.startswith("4 ")  # half of the 8 batches each
    assert first == second
    assert (folder / "last.pt").exists()


def test_without_libcst_it_is_refused(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a package for all platforms, which has nothing compiled."""
    monkeypatch.setitem(sys.modules, "libcst", None)
    for name in [n for n in sys.modules if n.startswith("npulens.fixes.multi_device.")]:
        monkeypatch.delitem(sys.modules, name)
    code, errors, _ = distributed(here, SCRIPT)
    assert code == 2
    assert errors.endswith("install it with `pip install libcst`\n")
    assert "请用 `pip install libcst` 安装" in distributed(here, SCRIPT, "--language", "zh")[1]


def test_models_are_named(here: Path) -> None:
    """Where optimizers are made elsewhere, or several models are trained."""
    text = SCRIPT.replace("torch.optim.SGD(model.parameters(), lr=0.1)", "make_optimizer()")
    text = text.replace("import torch\n", "import torch\nfrom tools import make_optimizer\n", 1)
    code, errors, _ = distributed(here, text)
    assert code == 2
    assert "--model names the variables" in errors
    _, errors, made = distributed(here, text, "--model", "model")
    assert errors == ""
    assert WRAPPED in made
    shutil.rmtree(here / "dst")
    text = SCRIPT.replace(
        "    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n",
        "    head = nn.Linear(2, 2)\n"
        "    optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.1)\n",
    ).replace("model(x.to(device))", "head(model(x.to(device)))")
    code, errors, _ = distributed(here, text, "--model", "model")
    assert (code, "`head` is trained as well" in errors) == (2, True)
    code, errors, made = distributed(here, text, "--model", "model,head")
    assert errors == ""
    assert made.count("= torch.nn.parallel.DistributedDataParallel(") == 2


@pytest.mark.skipif(os.name == "nt", reason="no shell")
@pytest.mark.emulated
def test_the_launcher_trains_on_two_cards(here: Path) -> None:
    """The script is started as its users start it, on two emulated cards."""
    text = SCRIPT.replace("    for epoch in", "    print('begins')\n    for epoch in")
    distributed(here, text)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    tools = here / "tools"
    tools.mkdir()
    for name, module in (("python", ""), ("torchrun", "-m torch.distributed.run")):
        (tools / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {module} "$@"\n')
        (tools / name).chmod(0o755)
    packages = os.pathsep.join([str(npulens_emulator.STAND_IN), PACKAGE_FOLDER])
    result = subprocess.run(
        ["bash", LAUNCHER],
        cwd=here / "dst",
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env={
            **os.environ,
            "PATH": f"{tools}:{os.environ['PATH']}",
            "PYTHONPATH": packages,
            "NPULENS_EMULATED_NPUS": "2",
            "MASTER_PORT": port,
            "OMP_NUM_THREADS": "1",
        },
    )
    assert result.returncode == 0, result.stderr[-3000:]
    assert result.stdout.count("begins") == 1  # the first process alone prints
    assert (here / "dst" / "last.pt").exists()
