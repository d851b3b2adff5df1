"""Scripts of many shapes for one card, made to train in one process for each card.

Each is rewritten; with the mark `emulated` each runs as it is with a whole batch, and rewritten in
two processes of the CPU with half of it: what both save has to be equal.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from npulens.fixes.multi_device.script_rewriting import ProjectFile, distributed_program
from npulens.fixes.scripts import ANY_CARDS, NPU_CARDS
from npulens.workspace.migrating.project_modules import project_modules, started_file

FOLDER = Path(__file__).with_name("training_scripts") / "one_card"
PROJECTS = (
    "project/train.py",
    "averaged_proxies/train.py",
    "config_object/main.py",
    "endless_batches/train.py",
    "evaluation_apart/train.py",
    "gan_project/train.py",
    "given_loader/train.py",
    "imported_loop/main.py",
    "loader_dictionary/run.py",
    "own_method/train.py",
    "scaled_by_first/train.py",
    "stream_project/train.py",
    "trainer_class/train.py",
    "trainer_factory/start.py",
)
SCRIPTS = [*sorted(path.name for path in FOLDER.glob("*.py")), *PROJECTS]
CONTAINS = {
    "train_and_evaluate.py": (
        "train_loader.sampler.set_epoch(train_loader.sampler.epoch + 1)",
        "    total = over_processes(total)\n    correct = over_processes(correct)\n",
        "test(model, device, test_loader)",
    ),
    "loaders_by_phase.py": (
        "dataloaders[phase].sampler.set_epoch(epoch)",
        "running_corrects = over_processes(running_corrects)",
        "copy.deepcopy(model.module.state_dict())",
    ),
    "made_by_functions.py": (
        "train_loader = loader_of_process(train_loader)",
        "train_loader.sampler.set_epoch(epoch)",
        "validate(net, val_loader, args)",
    ),
    "solver_class.py": (
        "self.model = torch.nn.parallel.DistributedDataParallel(self.model, ",
        "os.makedirs(folder, exist_ok=True)",
        'os.path.join(self.folder, "log.txt") if torch.distributed.get_rank() == 0 else os.devnull',
        "logging.disable(logging.WARNING)",
        "total = over_processes(total, mean=True)",
    ),
    "two_models.py": (
        "netG = torch.nn.parallel.DistributedDataParallel(netG, device_ids=[local_rank])",
        "netD = torch.nn.parallel.DistributedDataParallel(netD, device_ids=[local_rank], "
        "broadcast_buffers=False)",
    ),
    "accumulated.py": (
        "ema = EMA(model, 0.9)",
        'tqdm(loader, desc="train", disable=torch.distributed.get_rank() != 0)',
    ),
    "hidden_options.py": ("train_loader = loader_of_process(torch.utils.data.DataLoader(",),
    "optional_parallel.py": (
        "isinstance(model, torch.nn.parallel.DistributedDataParallel)",
        "model_without_ddp = model\n",
        "        state = model.module.state_dict()\n    else:\n"
        "        state = model.module.state_dict()\n",
    ),
    "own_sampler.py": ("loader_of_process(DataLoader(data, batch_size=batch, sampler=sampler))",),
    "by_iterations.py": ("loader = loader_of_process(DataLoader(",),
    "deciding.py": (
        "if in_any_process(math.isnan(loss.item())):",
        "running = over_processes(running, mean=True)",
    ),
    "early_end.py": (
        "scheduler.step(over_processes(train_loss, mean=True))",
        "if in_any_process(train_loss < best * 0.99):",
    ),
    "recurrent.py": ("tagger.module.init_hidden(", "broadcast_buffers=False"),
    "project/train.py": (
        "return loader_of_process(DataLoader(data, batch, shuffle=True)), DataLoader(data, batch)",
        "net = torch.nn.parallel.DistributedDataParallel(net, device_ids=[local_rank])",
        "    if not torch.distributed.is_initialized() or torch.distributed.get_rank() == 0:\n"
        "        torch.save(",
    ),
    "averaged_proxies/train.py": (
        "optimizer = averaged_over_processes(torch.optim.SGD(groups, lr=0.05))",
    ),
    "config_object/main.py": (
        "self.model = torch.nn.parallel.DistributedDataParallel(self.model, ",
        "return loader_of_process(DataLoader(",
        'device: str = "npu" if',
    ),
    "evaluation_apart/train.py": (
        "train_data, test_data = loader_of_process(train_loader()), test_loader()",
        "total = over_processes(total)",
        "    torch.distributed.barrier()\n    model.module.load_state_dict(torch.load(",
    ),
    "gan_project/train.py": (
        "        if torch.distributed.is_initialized():\n            self.G.to(",
        "            self.D = torch.nn.parallel.DistributedDataParallel(self.D, ",
        'getattr(self.G, "module", self.G).state_dict()',
        'if hasattr(self.loader.sampler, "set_epoch"):\n'
        "                self.loader.sampler.set_epoch(epoch)",
    ),
    "given_loader/train.py": (
        "    train_data = loader_of_process(train_data)\n    model = ",
        'if hasattr(loader.sampler, "set_epoch"):',
        "total = over_processes(total, mean=True)",
    ),
    "groups_by_sets.py": (
        "optimizer = averaged_over_processes(torch.optim.SGD(groups, lr=0.05), model)",
    ),
    "endless_batches/train.py": ('train_data = loader_of_process(batches("train"))',),
    "batch_by_cards.py": ("count = 1\n",),
    "moved_again.py": (
        "    model = model.to(device)\n    net = model.train()\n",
        "torch.save(model.module.cpu().state_dict(), ",
    ),
    "scaled_by_first/train.py": (
        "            same_in_processes(self.scale)\n",
        "        same_in_processes(self.largest)\n",
    ),
    "imported_loop/main.py": (
        "train = loader_of_process(data.DataLoader(Points(64), ",
        "running = over_processes(running, mean=True)",
        'F.mse_loss(getattr(net, "module", net).predict(',
    ),
    "loader_dictionary/run.py": (
        "phase: loader_of_process(DataLoader(",
        "net = torch.nn.parallel.DistributedDataParallel(net, device_ids=[local_rank])",
        'getattr(model, "module", model).load_state_dict(best)',
    ),
    "own_method/train.py": (
        "optimizer = averaged_over_processes(torch.optim.Adam(model.parameters(), lr=0.01))",
        "model.loss(x.cuda())",
    ),
    "stream_project/train.py": (
        "return loader_of_process(DataLoader(Stream(), ",
        "model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[local_rank])",
    ),
    "trainer_class/train.py": (
        "train = loader_of_process(DataLoader(",
        "model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[local_rank])",
        "total = over_processes(total)\n        count = over_processes(count)",
        "self.train_loader.sampler.set_epoch(self.train_loader.sampler.epoch + 1)",
    ),
    "trainer_factory/start.py": (
        "self.model = torch.nn.parallel.DistributedDataParallel(self.model, ",
        "return loader_of_process(DataLoader(",
        "import torch_npu  # noqa: F401",
    ),
}


def rewritten(name: str) -> dict[str, str]:
    """The files of a script that are rewritten, by their paths from the folder of the script."""
    path = FOLDER / name
    find = project_modules(path.parent, path)
    return distributed_program(started_file(path.parent, path), None, NPU_CARDS, find).texts


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_rewritten(name: str) -> None:
    texts = rewritten(name)
    for path, text in texts.items():
        compile(text, path, "exec")
    made = "\n".join(texts.values())
    for part in CONTAINS[name]:
        assert part in made
    assert made.count("init_process_group(") == made.count("destroy_process_group(") == 1
    assert "DataParallel(model)" not in made


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_comment_is_lost_and_the_rest_stays(name: str) -> None:
    for path, text in rewritten(name).items():
        before = (FOLDER / name).parent.joinpath(path).read_text(encoding="utf-8")
        lines, made = before.splitlines(), text.splitlines()
        assert sum(line in made for line in lines) > 0.7 * len(lines), path


def test_the_style_for_any_device_names_none() -> None:
    text = (FOLDER / "solver_class.py").read_text(encoding="utf-8")
    start = ProjectFile("solver_class.py", "solver_class", text)
    made = distributed_program(start, None, ANY_CARDS).texts["solver_class.py"]
    assert "npu" not in made
    assert ".to(torch.accelerator.current_device_index(), torch.float32)" in made


TQDM = """\
class tqdm(list):
    def __init__(self, each, **_):
        super().__init__(each)

    def set_postfix(self, **_):
        pass
"""
ELSEWHERE = """\
import torch
from torch.utils.data import DataLoader, TensorDataset


def make_loaders(batch):
    x = torch.linspace(-1, 1, 256).reshape(64, 4)
    data = TensorDataset(x, torch.arange(64) % 2)
    return DataLoader(data, batch_size=batch, shuffle=True), DataLoader(data, batch_size=batch)
"""
DRIVER = """\
import os
import runpy
import sys
import types

import torch
import torch.distributed as dist
from torch.utils import data

# Both ways see the samples in the same order: that of the data.
made_loader, made_sampler, join = (
    data.DataLoader.__init__,
    data.distributed.DistributedSampler.__init__,
    dist.init_process_group,
)


def loader(self, dataset, batch_size=1, shuffle=None, *more, **options):
    made_loader(self, dataset, batch_size, False if shuffle else shuffle, *more, **options)


def sampler(self, dataset, **options):
    made_sampler(self, dataset, **{**options, "shuffle": False})


data.DataLoader.__init__ = loader
data.distributed.DistributedSampler.__init__ = sampler
torch.nn.Module.cuda = torch.Tensor.cuda = lambda self, *_, **__: self
moved, moved_module, device = torch.Tensor.to, torch.nn.Module.to, torch.device


def plain(args):
    return ["cpu" if str(a).startswith(("cuda", "npu")) else a for a in args]


torch.Tensor.to = lambda self, *a, **k: moved(self, *plain(a), **k)
torch.nn.Module.to = lambda self, *a, **k: moved_module(self, *plain(a), **k)
torch.npu = types.SimpleNamespace(
    set_device=lambda _: None, current_device=lambda: 0, is_available=lambda: False
)
sys.modules["torch_npu"] = types.ModuleType("torch_npu")
ones = torch.ones
torch.ones = lambda *a, **k: ones(*a, **{n: v for n, v in k.items() if n != "device"})


def begin(**_):
    # One group for all scripts: gloo hangs now and then when a group is destroyed.
    if not dist.is_initialized():
        rank, world = int(os.environ["LOCAL_RANK"]), int(os.environ["WORLD_SIZE"])
        join("gloo", init_method=f"file://{os.environ['NOTE']}", rank=rank, world_size=world)


dist.init_process_group, dist.destroy_process_group = begin, lambda: None
out = sys.stdout
for name in sys.argv[1:]:
    here = os.getcwd()
    folder, script = os.path.split(name)
    sys.path.insert(0, os.path.join(here, folder))
    os.chdir(os.path.join(here, folder))
    work = os.path.join(os.getcwd(), script + ".out")
    os.makedirs(work, exist_ok=True)
    os.chdir(work)
    runpy.run_path(os.path.join("..", script), run_name="__main__")
    os.chdir(here)
    sys.path.pop(0)
    sys.stdout = out
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(os.path.join(here, folder, "")):
            if name not in ("__main__", "tqdm"):
                del sys.modules[name]
os._exit(0)  # PyTorch with gloo aborts now and then while the interpreter ends
"""


def run(folder: Path, world: int, batch: int, scripts: list[str]) -> None:
    (folder / "driver.py").write_text(DRIVER, encoding="utf-8")
    (folder / "tqdm.py").write_text(TQDM, encoding="utf-8")
    (folder / "elsewhere.py").write_text(ELSEWHERE, encoding="utf-8")
    started = [
        subprocess.Popen(
            [sys.executable, "driver.py", *scripts],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": str(world),
                "BATCH": str(batch),
                "NOTE": str(folder / "note"),
                "OMP_NUM_THREADS": "1",
            },
        )
        for rank in range(world)
    ]
    for process in started:
        _, errors = process.communicate(timeout=240)
        assert process.returncode == 0, errors[-3000:]


@pytest.mark.skipif(os.name == "nt", reason="needs gloo")
@pytest.mark.emulated
def test_two_processes_compute_what_one_does(tmp_path: Path) -> None:
    """All scripts as they are with a whole batch, and rewritten, in two processes with half."""
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        shutil.copytree(FOLDER, folder)
    for name in SCRIPTS:
        for path, text in rewritten(name).items():
            made = text.replace("device_ids=[", "device_ids=None and [")
            (two / name).parent.joinpath(path).write_text(made, encoding="utf-8")
    run(one, 1, 16, SCRIPTS)
    run(two, 2, 8, SCRIPTS)
    for name in SCRIPTS:
        files = [{p.name: p for p in (f / f"{name}.out").rglob("*.pt")} for f in (one, two)]
        assert files[0].keys() == files[1].keys(), name
        assert "end.pt" in files[0]
        for file in files[0]:
            assert_same(files[0][file], files[1][file])


def assert_same(one: Path, two: Path) -> None:
    import torch

    first, second = flat(torch.load(one)), flat(torch.load(two))
    assert len(first) == len(second) > 0
    for a, b in zip(first, second, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)


def flat(value: object) -> list[object]:
    if isinstance(value, dict):
        return [each for key in sorted(value) for each in flat(value[key])]
    if isinstance(value, (list, tuple)):
        return [each for part in value for each in flat(part)]
    return [value]
