"""`npulens verify`: what it says of scripts, and what it leaves alone."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from jsonschema import Draft202012Validator

from commands import command, invoke
from npulens.catalog.loader import load_catalogue
from npulens.catalog.model import TorchVersion
from npulens.cli.verify import _EXIT_CODES
from npulens.workspace.verifying import project_copy, verified_run
from npulens.workspace.verifying.deciding_fixes import deciding_rules
from npulens.workspace.verifying.npu_apis import apis_to_watch, types_to_watch
from npulens.workspace.verifying.original_lines import original_lines
from npulens.workspace.verifying.outcomes import Outcome, Status, status
from npulens.workspace.verifying.project_copy import CopyError, copy_project
from npulens.workspace.verifying.run_comparison import compare
from npulens.workspace.verifying.run_verdicts import judge
from npulens.workspace.verifying.verified_run import CannotVerifyError, RunResult, torch_release

pytestmark = pytest.mark.emulated

_SCHEMA = Path(__file__).resolve().parents[1] / "docs" / "schemas" / "verify.schema.json"
SCHEMA: Any = Draft202012Validator(json.loads(_SCHEMA.read_text(encoding="utf-8")))

TRAIN = """\
import argparse
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=3)
parser.add_argument("--device", default="cuda")
args = parser.parse_args()
torch.manual_seed(0)
model = nn.Linear(4, 2).to(args.device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(args.steps):
    x = torch.randn(8, 4).to(args.device)
    x = x[x[:, 0] > 0]
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("step", step)
"""
MIGRATED = TRAIN.replace("cuda", "npu").replace("import torch\n", "import torch, torch_npu\n", 1)


def verify(*arguments: str) -> tuple[int, dict[str, Any]]:
    mark = {"NPULENS_TEST_MARK": str(Path.cwd())}
    options = ("verify", "--output-format", "json", *arguments)
    done = command(*options, environment=mark, timeout=300)
    assert done.stdout, done.stderr.decode()
    found: dict[str, Any] = json.loads(done.stdout)
    assert not [error.message for error in SCHEMA.iter_errors(found)], found
    return done.returncode, found


def write(name: str, text: str) -> str:
    Path(name).write_text(text, encoding="utf-8")
    return name


@pytest.mark.usefixtures("here")
def test_a_script_is_migrated_run_and_compared_in_a_copy() -> None:
    """Positions are those of the user's file, though the copy has a line more."""
    write("train.py", TRAIN + "open('left.txt', 'w').close()\nx.acosh()\n")
    options = ("--steps", "0", "--compare", "--agreement", "train.py", "--", "--steps", "2")
    code, found = verify(*options)
    assert (code, found["outcome"], found["steps"]) == (0, "passed", 2), found
    assert [path.name for path in Path.cwd().iterdir()] == ["train.py"]
    assert found["comparison"]["divergence"] is None
    assert found["comparison"]["losses"] == 2
    [index] = [each for each in found["events"] if each["name"] == "index"]
    assert (index["path"], index["line"], index["kind"], index["count"]) == (
        *("train.py", 14),
        *("shape", 2),
    )
    [use] = found["apis"]
    assert (use["line"], use["name"], use["count"]) == (21, "torch.Tensor.acosh", 1)
    assert use["kind"] == "may-fall-back"
    [agreed] = [each for each in found["agreement"] if each["line"] == 14]
    assert (agreed["agreement"], agreed["codes"]) == ("confirmed", ["NPU802"])


@pytest.mark.usefixtures("here")
def test_arguments_name_the_npu_in_the_migrated_run_alone() -> None:
    write("train.py", TRAIN.replace('default="cuda"', "required=True"))
    arguments = ("train.py", "--", "--device=cuda")
    code, found = verify("--steps", "2", "--compare", *arguments)
    assert (code, found["outcome"]) == (0, "limit-reached"), found
    assert found["arguments"] == ["--device=npu"]
    assert found["comparison"]["divergence"] is None
    assert not found["comparison"]["problem"]
    done = command("verify", "--steps", "2", *arguments, timeout=300)
    assert b"`--device=cuda` became `--device=npu`" in done.stdout


@pytest.mark.usefixtures("here")
def test_a_run_has_the_folder_that_is_given() -> None:
    """What lies beside it is copied, too."""
    Path("data").mkdir()
    write("data/steps", "2")
    Path("tools").mkdir()
    source = TRAIN.replace("default=3", "default=int(open('../data/steps').read())")
    write("tools/train.py", source)
    code, found = verify("--steps", "0", "tools/train.py")
    assert (code, found["outcome"]) == (5, "needs-file"), found
    code, found = verify("--steps", "0", "--cwd", "tools", "tools/train.py")
    assert (code, found["outcome"], found["steps"]) == (0, "passed", 2), found
    refused = command("verify", "--cwd", "..", "tools/train.py")
    assert refused.returncode == 2
    assert b"does not lie in the project" in refused.stderr
    refused = command("verify", "--cwd", "nowhere", "tools/train.py")
    assert refused.returncode == 2


@pytest.mark.usefixtures("here")
def test_the_script_that_is_run_starts_under_the_shim() -> None:
    """In a package, and without a main guard, nothing else tells that it is started."""
    Path("net").mkdir()
    write("net/__init__.py", "")
    write("net/train.py", TRAIN)
    code, found = verify("--migration-style", "runtime-shim", "--steps", "0", "net/train.py")
    assert (code, found["outcome"]) == (0, "passed"), found


OFFLINE = """\
import socket, urllib.request

def weights():
    try:
        urllib.request.urlopen("https://weights.example/model.bin")
    except OSError as error:
        raise ValueError("no weights") from error

with socket.create_server(("127.0.0.1", 0)) as server:
    socket.create_connection(server.getsockname()).close()
import torch
weights()
"""


@pytest.mark.usefixtures("here")
def test_a_run_without_the_network_tells_who_wanted_it() -> None:
    """Whatever is made of the error on its way; connections to the machine itself are allowed."""
    code, found = verify("--offline", write("train.py", OFFLINE))
    assert (code, found["outcome"], found["line"]) == (5, "needs-network", 7), found
    assert "no weights" in found["detail"]


def write_notebook(name: str, *cells: str) -> str:
    """A notebook: text that starts with `# ` is prose, all other is code."""
    content = [
        {
            "cell_type": "markdown" if cell.startswith("# ") else "code",
            "metadata": {},
            "source": cell.splitlines(keepends=True),
        }
        for cell in cells
    ]
    notebook = {"cells": content, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    return write(name, json.dumps(notebook, indent=1))


@pytest.mark.usefixtures("here")
def test_a_notebook_is_run_cell_by_cell() -> None:
    """Places are told by cell; it runs where it lies, and future imports reach later cells."""
    write("scale.py", "FACTOR = 2\n")
    name = write_notebook(
        "notebooks/train.ipynb",
        "%matplotlib inline\n!pip install torch\nimport sys\nsys.path.append('..')",
        "# prose",
        "  # indented\n  import torch\n  net = torch.nn.Linear(4, 2).cuda()",
        "from __future__ import annotations\nimport scale\nfiles = !ls",
        "%%time\n\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\nfor step in range(2):\n"
        "    x = torch.randn(8, 4).cuda()\n    loss = net(x[x[:, 0] > 0]).square().mean()\n"
        "    loss.backward()\n    opt.step()",
        "%%bash\nexit 1",
        "def later(x: Unknown) -> Unknown: ...\n"
        "import inspect, os\nassert 'Unknown' in inspect.getsource(later)\n"
        "assert '__file__' not in globals() and os.getcwd().endswith('notebooks')\n"
        "display(scale.FACTOR)\ntorch.cuda.cudart()",
    )
    before = Path(name).read_bytes()
    code, found = verify("--steps", "0", "--compare", "--agreement", name)
    assert (code, found["outcome"], found["steps"]) == (1, "cuda-needed", 2), found
    assert (found["path"], found["cell"], found["line"]) == (name, 7, 6)
    assert "notebooks/train.ipynb:cell 7:6" in found["message"]
    [index] = [each for each in found["events"] if each["name"] == "index"]
    assert (index["cell"], index["line"], index["count"]) == (5, 6, 2)
    [agreed] = [each for each in found["agreement"] if each["agreement"] == "confirmed"]
    assert (agreed["cell"], agreed["line"], agreed["codes"]) == (5, 6, ["NPU802"])
    assert 'File "notebooks/train.ipynb", cell 7, line 6' in "".join(found["output"])
    assert Path(name).read_bytes() == before


@pytest.mark.usefixtures("here")
def test_a_cell_that_is_no_python() -> None:
    name = write_notebook("train.ipynb", "print('first')", "x = 1\ndef f(:\n  pass\n")
    code, found = verify(name)
    assert (code, found["outcome"], found["cell"], found["line"]) == (2, "error", 2, 2), found
    assert "first" in found["output"]


@pytest.mark.usefixtures("here")
def test_a_file_that_is_no_notebook() -> None:
    done = command("verify", write("train.ipynb", "import torch\n"))
    assert done.returncode == 2
    assert done.stderr.decode().startswith("npulens: train.ipynb: line 1 is not valid JSON")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("style", ["npu", "runtime-shim"])
def test_the_copy_is_migrated_in_the_style_that_is_set(style: str) -> None:
    """And by the settings of the project, whose paths count in the copy."""
    Path("old").mkdir()
    write("old/part.py", "import torch\ntorch.cuda.nothing_there()\n")
    write("npulens.toml", f'migration-style = "{style}"\nexclude = ["old"]\n')
    code, found = verify("--compare", "--steps", "0", write("train.py", TRAIN))
    assert (code, found["outcome"], found["cuda_calls"]) == (0, "passed", []), found
    assert found["comparison"]["divergence"] is None
    assert bool(found["fixed"]) == (style == "npu")


class Stop(NamedTuple):
    """A script, and what is said of it."""

    text: str
    outcome: str
    code: int
    line: int | None
    detail: str = ""
    options: tuple[str, ...] = ()


BACKWARD = "    loss.backward()\n"
STOPS = {
    # One defect each in a script that is migrated otherwise; line 17 is in the loop.
    "cuda-call": Stop(
        MIGRATED.replace(BACKWARD, f"{BACKWARD}    torch.cuda.empty_cache()\n"),
        *("cuda-left", 1, 18, "torch.cuda.empty_cache"),
    ),
    "cuda-method": Stop(
        MIGRATED.replace(BACKWARD, BACKWARD + "    loss.cuda()\n"), "cuda-needed", 1, 18
    ),
    "batch-left-on-the-host": Stop(
        MIGRATED.replace("randn(8, 4).to(args.device)", "randn(8, 4)"),
        *("npu-error", 1, 15, "Expected all tensors to be on the same device"),
    ),
    "invented-name": Stop(
        MIGRATED.replace(BACKWARD, BACKWARD + "    torch.npu.cudart()\n"),
        *("unknown-name", 1, 18, "torch_npu.npu.cudart"),
    ),
    "silently-on-the-host": Stop(
        MIGRATED.replace(
            "args = parser.parse_args()\n",
            "args = parser.parse_args(['--device', "
            "'cuda' if torch.cuda.is_available() else 'cpu'])\n",
        ),
        *("on-cpu", 1, None),
    ),
    "not-emulated": Stop(
        MIGRATED.replace(BACKWARD, "    torch_npu.npu_ciou(x, x)\n" + BACKWARD),
        *("not-emulated", 4, 17, "npu_ciou"),
    ),
    # What no run can tell of.
    "compiled-extension": Stop(
        "import os\nimport flash_attn_cuda\n", "needs-module", 5, 2, "flash_attn_cuda"
    ),
    "missing-data": Stop("open('data/train.bin')\n", "needs-file", 5, 1, "data/train.bin"),
    "missing-arguments": Stop(
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('data')\np.parse_args()\n",
        *("needs-arguments", 5, 4, "required: data"),
    ),
    "standard-input": Stop("input('name: ')\n", "needs-input", 5, 1),
    "file-of-a-loader": Stop(
        "import torch\nclass D(torch.utils.data.Dataset):\n    def __len__(self): return 2\n"
        "    def __getitem__(self, i): return open('0.bin')\n"
        "next(iter(torch.utils.data.DataLoader(D(), num_workers=1)))\n",
        *("needs-file", 5, 4, "0.bin"),
    ),
    "file-of-a-process": Stop(
        "import torch.multiprocessing as mp\ndef work(rank):\n    open('gone.bin')\n"
        "if __name__ == '__main__':\n    mp.spawn(work, nprocs=2)\n",
        *("needs-file", 5, 3, "gone.bin"),
    ),
    "network": Stop(
        "import urllib.request\nurllib.request.urlopen('http://gone.invalid')\n",
        *("needs-network", 5, 2),
    ),
    "variable": Stop("import os\nos.environ['DATA']\n", "needs-variable", 5, 2, "DATA"),
    "argument": Stop("import sys\nprint(sys.argv[1])\n", "needs-arguments", 5, 2),
    "compiled-operator": Stop(
        "import torch\ntorch.ops.mine.fused(1)\n",
        *("needs-operator", 5, 2, "torch.ops.mine.fused"),
    ),
    "compiled-module": Stop("from json import _C\n", "needs-module", 5, 1, "json._C"),
    "library-to-load": Stop(
        "import torch\ntorch.ops.load_library('build/mine.so')\n",
        *("needs-file", 5, 2, "build/mine.so"),
    ),
    "invented-module": Stop(
        "from torch_npu.contrib import magic\n",
        *("unknown-name", 1, 1, "torch_npu.contrib.magic"),
    ),
    "name-that-may-exist": Stop(
        "import torch_npu\n\ntorch_npu.utils.some_tool()\n",
        *("not-emulated", 4, 3, "torch_npu.utils.some_tool"),
    ),
    "layout": Stop(
        "import torch, torch_npu\ni = torch.zeros(1, 1, dtype=torch.long).npu()\n"
        "torch.sparse_coo_tensor(i, torch.ones(1).npu(), (2,)).relu()\n",
        *("not-emulated", 4, 3, "Sparse"),
    ),
    "real-function": Stop(
        "from torch_npu.contrib.function import npu_ciou\nnpu_ciou(1)\n",
        *("not-emulated", 4, 2, "npu_ciou"),
    ),
    "standard-input-by-line": Stop(
        "import sys\n\nint(sys.stdin.readline())\n", "needs-input", 5, 3
    ),
    "empty-checkpoint": Stop(
        "import pickle\npickle.load(open('/dev/null', 'rb'))\n", "error", 2, 2, "EOFError"
    ),
    "error-of-its-own": Stop(
        "import torch, torch_npu\nx = torch.ones(2).npu()\n\nx @ torch.ones(3).npu()\n",
        *("error", 2, 4, "RuntimeError"),
    ),
    "release-of-cuda-taken-apart": Stop(
        "import torch\n\nint(torch.version.cuda.split('.')[0])\n", "npu-error", 1, 3, "NoneType"
    ),
    "threads-of-cuda-counted": Stop(
        "import torch, torch_npu\n\ntorch.npu.get_device_properties(0).warp_size * 2\n",
        *("npu-error", 1, 3, "NoneType"),
    ),
    "exit": Stop("import sys\nsys.exit(3)\n", "exited", 2, 2, "3"),
    "exit-with-words": Stop("import sys\nsys.exit('no data')\n", "exited", 2, 2, "1 (no data)"),
    "exit-at-once": Stop("import os\nos._exit(7)\n", "exited", 2, 2, "7"),
    "signal": Stop("import os\nos.kill(os.getpid(), 11)\n", "crashed", 2, None, "SIGSEGV"),
    "launcher": Stop("import os\nint(os.environ['LOCAL_RANK'])\n", "needs-launcher", 5, 2),
    "never-ends": Stop(
        "import os\nos.fork()\nwhile True:\n    pass\n",
        *("time-limit", 3, None, "2 s", ("--seconds", "2")),
    ),
    "memory": Stop(
        "x = []\nwhile True:\n    x.append(bytearray(1 << 24))\n",
        *("memory-limit", 2, 3, "", ("--memory", "512")),
    ),
    "without-npu": Stop("import torch\nprint(torch.ones(2))\n", "without-npu", 1, None),
    "emulator-failed": Stop(
        "import numpy, torch, torch_npu\n\ntorch.npu.FloatTensor(numpy.float32(3))\n",
        *("emulator-failed", 4, 3, "TypeError"),
    ),
    "storage-that-grows": Stop(
        "import torch, torch_npu\n\ntorch.ones(2).npu().untyped_storage().resize_(64)\n",
        *("not-emulated", 4, 3, "do not grow"),
    ),
    "data-parallel": Stop(
        "import torch, torch_npu\nmodel = torch.nn.Linear(2, 2).npu()\n"
        "model = torch.nn.DataParallel(model, [0, 0])\nmodel(torch.ones(4, 2).npu())\n",
        *("unsupported", 1, 4, "torch.nn.DataParallel"),
    ),
    "module-that-is-asked-for-otherwise": Stop(
        "try:\n    import fused_things\nexcept ImportError:\n"
        "    raise ImportError('install it from https://github.com/nvidia/fused')\n",
        *("needs-module", 5, 4, "fused_things"),
    ),
    "library-that-asks-for-another": Stop(
        "raise ImportError('tracking needs wandb: pip install wandb')\n",
        *("needs-module", 5, 1, "wandb"),
    ),
    "data-set-that-is-not-there": Stop(
        "raise RuntimeError('Dataset not found. You can use download=True to download it')\n",
        *("needs-file", 5, 1, "download=True"),
    ),
}


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", STOPS)
def test_what_is_said_of_a_script_that_does_not_pass(name: str) -> None:
    text, outcome, code, line, detail, options = STOPS[name]
    if name == "memory" and not sys.platform.startswith("linux"):
        pytest.skip("only Linux limits the data of a process")
    started = time.monotonic()
    found_code, found = verify(*options, "--as-is", write("train.py", text))
    assert (found["outcome"], found_code) == (outcome, code), found
    assert detail in found["detail"]
    if line is not None:
        assert (found["path"], found["line"]) == ("train.py", line)
        assert f"train.py:{line}" in found["message"]
    if name == "never-ends":
        assert time.monotonic() - started < 30
        assert not _still_running()


LONG = """\
import torch
from torch import nn


class Net(nn.Module):
    \"\"\"A net.\"\"\"

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        return self.fc(x)

    @torch.no_grad()
    def sample(self):
        return self.fc(torch.randn(1, 4).cuda())


def evaluate(model):
    \"\"\"How good it is.\"\"\"
    return model.sample()


def main():
    model = Net().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(1_000_000):
        x = torch.randn(8, 4).cuda()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        if step == 999:
            print("done")
            break
    evaluate(model)
    torch.save(model.state_dict(), "last.pt")


if __name__ == "__main__":
    main()
"""
NOT_REACHED = [("Net.sample", 16, 17), ("evaluate", 20, 22), (None, 34, 34), (None, 36, 37)]
LIMITS = {
    "steps-by-default": ((), "step-limit", "cut", 3),
    "steps-that-are-given": (("--steps", "2"), "limit-reached", "limit-reached", 0),
    "seconds-that-are-given": (
        ("--steps", "0", "--seconds", "8"),
        *("limit-reached", "limit-reached", 0),
    ),
}


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_that_ends_a_run_is_no_end(name: str) -> None:
    """What was not reached is told by function, by its line in the user's file."""
    options, outcome, status, code = LIMITS[name]
    text = LONG.replace("== 999", "== -1")
    found_code, found = verify(*options, write("train.py", text))
    assert (found["outcome"], found["status"], found_code) == (outcome, status, code), found
    assert found["path"] == "train.py"
    assert found["line"] in (13, *range(28, 34))
    told = [(each["function"], each["line"], each["end_line"]) for each in found["unreached"]]
    assert told == NOT_REACHED
    if outcome == "step-limit":
        assert (found["steps"], found["line"]) == (3, 32)
        assert "--steps 0" in found["way_on"]


@pytest.mark.usefixtures("here")
def test_the_limit_of_time_that_holds_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("npulens.workspace.verifying.verified_run._SECONDS", 8.0)
    write("train.py", LONG.replace("== 999", "== -1"))
    code, output, _ = invoke("verify", "--steps", "0", "train.py")
    assert code == 3
    first, second, *_ = output.splitlines()
    assert first.startswith("cut: the time limit of 8 s was reached after ")
    assert " at train.py:" in first
    assert second == (
        "Not reached in train.py: Net.sample (lines 16 to 17), evaluate (lines 20 to 22), "
        "line 34, lines 36 to 37"
    )


@pytest.mark.usefixtures("here")
def test_a_script_that_comes_to_its_end_has_nothing_unreached() -> None:
    code, found = verify("--steps", "0", write("train.py", LONG.replace("999", "2")))
    assert (code, found["status"], found["outcome"]) == (0, "passed", "passed")
    assert (found["steps"], found["unreached"], found["way_on"]) == (3, None, None)


@pytest.mark.usefixtures("here")
def test_what_a_started_process_has_reached_is_reached() -> None:
    text = LONG.replace("def main():", "def main(rank):").replace("== 999", "== -1")
    start = "    torch.multiprocessing.spawn(main, nprocs=1)\n"
    write("train.py", text.replace("\n    main()\n", f"\n{start}"))
    code, found = verify("train.py")
    assert (code, found["outcome"]) == (3, "step-limit"), found
    told = [(each["function"], each["line"], each["end_line"]) for each in found["unreached"]]
    assert told == NOT_REACHED


@pytest.mark.usefixtures("here")
def test_a_defect_before_the_limit_is_what_counts() -> None:
    text = MIGRATED.replace(BACKWARD, f"{BACKWARD}    torch.cuda.empty_cache()\n")
    code, found = verify("--as-is", "--steps", "2", write("train.py", text))
    assert (code, found["status"], found["outcome"]) == (1, "not-ready", "cuda-left")


@pytest.mark.usefixtures("here")
def test_an_error_that_the_original_has_too_says_nothing_of_the_npu() -> None:
    script = write("train.py", "import torch\nx = torch.ones(2).cuda()\nx @ torch.ones(3).cuda()\n")
    code, alone = verify("--unsafe-fixes", script)
    assert (code, alone["status"], alone["outcome"]) == (2, "stopped", "error")
    assert "--compare" in alone["way_on"]
    code, found = verify("--unsafe-fixes", "--compare", script)
    assert (code, found["status"], found["outcome"]) == (2, "stopped", "fails-alike")
    assert (found["path"], found["line"]) == ("train.py", 3)


@pytest.mark.usefixtures("here")
def test_an_error_that_the_original_does_not_have_is_of_the_npu() -> None:
    text = "import torch\nif torch.ones(1).device.type != x.device.type:\n    {}['batch']\n"
    script = write("train.py", text.replace("\nif", "\nx = torch.ones(2).cuda()\nif"))
    assert verify("--unsafe-fixes", script)[1]["outcome"] == "error"
    code, found = verify("--unsafe-fixes", "--compare", script)
    assert (code, found["status"], found["outcome"]) == (1, "not-ready", "npu-error")
    assert (found["path"], found["line"], found["way_on"]) == ("train.py", 4, None)


def test_every_outcome_has_a_status_and_an_exit_code() -> None:
    for outcome in Outcome:
        assert status(outcome).value in _EXIT_CODES
    for each in Status:
        assert f"`{each.value}`" in (_SCHEMA.parents[1] / "verify.md").read_text("utf-8")


WAYS_ON = {
    "import gone\n": "-m pip install",
    "open('gone.bin')\n": "start in a folder above",
    "import sys\nsys.argv[1]\n": "npulens verify train.py -- ",
    "import os\nos.environ['DATA']\n": "DATA=... npulens verify",
    "import urllib.request\nurllib.request.urlopen('http://gone.invalid')\n": "Download the data",
}


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("text", WAYS_ON)
def test_it_says_how_to_give_a_script_what_it_needs(text: str) -> None:
    write("train.py", text)
    lines = command("verify", "train.py").stdout.decode().splitlines()
    assert lines[0].startswith("needs ")
    assert WAYS_ON[text] in lines[1]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks Linux for it")
@pytest.mark.usefixtures("here")
def test_a_run_ends_with_the_command_that_was_killed() -> None:
    write("train.py", "import time\nopen('started', 'w').close()\ntime.sleep(600)\n")
    started = subprocess.Popen(
        [sys.executable, "-m", "npulens", "verify", "--here", "train.py"],
        env={**os.environ, "NPULENS_TEST_MARK": str(Path.cwd())},
    )
    _wait_for(lambda: Path("started").exists())
    started.kill()
    started.wait()
    _wait_for(lambda: not _still_running())


def _wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def _still_running() -> list[Path]:
    return [each for each in Path("/proc").glob("[0-9]*/environ") if _is_ours(each)]


def _is_ours(path: Path) -> bool:
    """Whether a process comes from the command that this test ran."""
    try:
        return f"NPULENS_TEST_MARK={Path.cwd()}".encode() in path.read_bytes().split(b"\0")
    except OSError:
        return False


@pytest.mark.usefixtures("here")
def test_the_sentences_are_there_in_both_languages() -> None:
    write("model.py", "import flash_attn_cuda\n")
    write("train.py", "import model\n")
    english = command("verify", "train.py").stdout.decode()
    assert english.startswith("needs flash_attn_cuda at model.py:1\n")
    chinese = command("verify", "--language", "zh", "train.py").stdout.decode()
    assert chinese.startswith("需要模块 flash_attn_cuda（model.py:1）\n")


@pytest.mark.usefixtures("here")
def test_both_runs_draw_the_same_after_the_device_was_seeded() -> None:
    seeded = "    x = torch.randn(8, 4).to(args.device)\n"
    assert seeded in TRAIN
    write("train.py", TRAIN.replace(seeded, f"    torch.cuda.manual_seed(step)\n{seeded}"))
    code, found = verify("--compare", "--steps", "0", "train.py")
    assert (code, found["outcome"], found["comparison"]["divergence"]) == (0, "passed", None)
    assert len(set(found["losses"])) == 3


@pytest.mark.usefixtures("here")
def test_a_script_that_leaves_without_cleaning_up_has_trained() -> None:
    write("train.py", TRAIN + "import os\nos._exit(0)\n")
    code, found = verify("--steps", "0", "train.py")
    assert (code, found["outcome"], found["steps"]) == (0, "passed", 3), found


@pytest.mark.usefixtures("here")
def test_in_place_runs_what_is_there() -> None:
    write("train.py", MIGRATED + "open('left.txt', 'w').close()\n")
    code, found = verify("--here", "--steps", "0", "train.py")
    assert (code, found["outcome"], found["fixed"]) == (0, "passed", 0), found
    assert {"left.txt", "train.py"} <= {path.name for path in Path.cwd().iterdir()}


@pytest.mark.usefixtures("here")
def test_modules_and_processes_that_it_starts_are_watched() -> None:
    Path("package").mkdir()
    write("package/__init__.py", "")
    worker = "def work(rank):\n    import torch, torch_npu\n    torch.cuda.synchronize()\n"
    write("package/worker.py", worker.replace("cuda.synchronize", "cuda.empty_cache"))
    main = (
        "import torch.multiprocessing as mp\nfrom package.worker import work\n"
        "if __name__ == '__main__':\n    mp.spawn(work, nprocs=1)\n"
    )
    write("package/__main__.py", main)
    code, found = verify("--as-is", "-m", "package")
    assert (code, found["outcome"]) == (1, "cuda-left"), found
    [call] = found["cuda_calls"]
    assert (call["path"], call["line"], call["count"]) == ("package/worker.py", 3, 1)
    code, found = verify("-m", "package.gone")
    assert (code, found["outcome"], found["detail"]) == (5, "needs-module", "package.gone")


COLLECTIVES = """\
import torch, torch_npu
import torch.distributed as dist

dist.init_process_group("hccl")
rank = dist.get_rank()
torch.npu.set_device(rank)
mine = torch.tensor([1.0, 5.0]) if rank == 0 else torch.tensor([3.0, 2.0])
OPERATIONS = {"SUM": [4.0, 7.0], "MAX": [3.0, 5.0], "MIN": [1.0, 2.0], "AVG": [2.0, 3.5]}
for name, expected in OPERATIONS.items():
    operation = getattr(dist.ReduceOp, name)
    x = mine.npu()
    dist.all_reduce(x, operation)
    assert x.tolist() == expected, (name, x)
    part = torch.empty(1).npu()
    dist.reduce_scatter_tensor(part, mine.npu(), operation)
    assert part.tolist() == expected[rank : rank + 1], (name, part)
    dist.reduce_scatter(part, list(mine.npu().chunk(2)), operation)
    assert part.tolist() == expected[rank : rank + 1], (name, part)
    x = mine.npu()
    dist.reduce(x, 0, operation)
    assert rank or x.tolist() == expected, (name, x)
"""


@pytest.mark.usefixtures("here")
def test_collectives_reduce_as_they_are_told() -> None:
    code, found = verify("--as-is", "--processes", "2", write("train.py", COLLECTIVES))
    assert (code, found["outcome"]) == (0, "ran"), found


SHARDED = """\
import torch, torch_npu
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

rank = int(__import__("os").environ["RANK"])
torch.npu.set_device(rank)
dist.init_process_group("hccl", device_id=torch.device("npu", rank))
mesh = init_device_mesh("npu", (1, 2), mesh_dim_names=("data", "model"))

whole = torch.arange(8.0).view(4, 2)
parts = distribute_tensor(whole.npu(), mesh["model"], [Shard(0)])
assert parts.to_local().tolist() == whole[2 * rank : 2 * rank + 2].tolist()
assert parts.redistribute(placements=[Replicate()]).to_local().tolist() == whole.tolist()
assert (parts * 2).sum().full_tensor().item() == 56

torch.manual_seed(7)
drawn = torch.distributed.tensor.rand(4, 2, device_mesh=mesh["model"], placements=[Shard(0)])
drawn = drawn.full_tensor()
assert not torch.equal(drawn[:2], drawn[2:])
given = [torch.empty_like(drawn) for _ in range(2)]
dist.all_gather(given, drawn)
assert torch.equal(*given)

def mlp(device="cpu"):
    torch.manual_seed(1)
    layers = torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)
    return torch.nn.Sequential(*layers).to(device)

def trained(model, x):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    return [getattr(p, "full_tensor", p.detach)().cpu() for p in model.parameters()]

x = torch.linspace(-1, 1, 24).view(6, 4)
expected = trained(mlp("npu"), x.npu())
sharded = mlp("npu")
for layer in (sharded[0], sharded[2], sharded):
    fully_shard(layer, mesh=mesh["model"])
plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
for model in (sharded, parallelize_module(mlp("npu"), mesh["model"], plan)):
    for one, other in zip(expected, trained(model, x.npu())):
        torch.testing.assert_close(one, other)

received = torch.empty(2).npu()
sent = torch.full((2,), float(rank)).npu()
other = 1 - rank
operations = [dist.P2POp(dist.isend, sent, other), dist.P2POp(dist.irecv, received, other)]
for work in dist.batch_isend_irecv(operations):
    work.wait()
assert received.tolist() == [other, other]
swapped = [torch.empty(1).npu(), torch.empty(1).npu()]
dist.all_to_all(swapped, list(torch.tensor([10.0 * rank, 10.0 * rank + 1]).npu().chunk(2)))
assert [each.item() for each in swapped] == [rank, 10 + rank]
dist.destroy_process_group()
"""


@pytest.mark.usefixtures("here")
def test_meshes_sharded_parameters_and_tensor_parallelism_work() -> None:
    options = ("--as-is", "--steps", "0", "--seconds", "120", "--processes", "2")
    code, found = verify(*options, write("train.py", SHARDED))
    assert (code, found["outcome"]) == (0, "passed"), found


TESTED = """\
import torch

def train(model, steps):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        model(torch.randn(8, 4).cuda()).square().mean().backward()
        optimizer.step()
    return model.weight
"""
CONFTEST = """\
import pytest
import torch

@pytest.fixture
def model():
    torch.cuda.manual_seed(0)
    return torch.nn.Linear(4, 2).cuda()
"""
TESTS = """\
import pytest
import torch
from tested import train

def test_train_long(model):
    assert train(model, 5).is_cuda

def test_train_short(model):
    assert train(model, 1).is_cuda

def test_other():
    assert train.__module__ == "tested"

@pytest.mark.skip
def test_skipped(): ...

def test_wrong(model):
    assert train(model, 1).shape == (1, 1), "shape"

def test_cuda(model):
    torch.ones(2, device="cu" + "da")

def test_module():
    import flash_attn_cuda
"""
FAILING = [
    ("tests/test_model.py::test_wrong", "tests/test_model.py", 18, "error"),
    ("tests/test_model.py::test_cuda", "tests/test_model.py", 21, "cuda-needed"),
    ("tests/test_model.py::test_module", "tests/test_model.py", 24, "needs-module"),
]


@pytest.fixture
def tested(here: Path) -> None:
    Path("tests").mkdir()
    write("tested.py", TESTED)
    write("conftest.py", CONFTEST)
    write("tests/test_model.py", TESTS)


@pytest.mark.usefixtures("tested")
@pytest.mark.parametrize(
    ("selected", "outcome", "code", "line", "passed", "failed"),
    [
        (("tests/test_model.py", "-k", "train"), "tests-passed", 0, None, 2, []),
        ((), "tests-failed", 1, 18, 3, FAILING),
        (("-k", "short or module"), "needs-module", 5, 24, 1, FAILING[2:]),
        (("-k", "nothing"), "no-tests", 5, None, 0, []),
        (("-k", "other"), "without-npu", 1, None, 1, []),
        (("--no-such-option",), "needs-arguments", 5, None, 0, []),
    ],
)
def test_tests_are_run(
    selected: tuple[str, ...],
    outcome: str,
    code: int,
    line: int | None,
    passed: int,
    failed: list[tuple[str, str, int, str]],
) -> None:
    found_code, found = verify("-m", "pytest", "--", *selected)
    assert (found["outcome"], found_code, found["line"]) == (outcome, code, line), found
    names = ("name", "path", "line", "outcome")
    assert [tuple(each[name] for name in names) for each in found["tests"]["failed"]] == failed
    assert found["tests"]["passed"] == passed
    if outcome == "tests-passed":
        assert found["steps"] == 6  # and not 3, as of a script
    if outcome == "needs-arguments":
        assert "--no-such-option" in found["message"]
    assert {path.name for path in Path.cwd().iterdir()} == {"conftest.py", "tested.py", "tests"}


@pytest.mark.usefixtures("tested")
def test_failed_tests_are_told() -> None:
    done = command("verify", "-m", "pytest", "--", "-k", "wrong or short", timeout=120)
    lines = done.stdout.decode().splitlines()
    assert done.returncode == 1
    assert lines[0] == "not ready: 1/2 tests failed, the first at tests/test_model.py:18"
    told = "  tests/test_model.py::test_wrong  stopped at tests/test_model.py:18: "
    assert any(line.startswith(f"{told}AssertionError: shape") for line in lines), lines


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [((), "nothing to run"), (("gone.py",), "gone.py: no such file")],
)
def test_wrong_usage(arguments: tuple[str, ...], sentence: str) -> None:
    done = command("verify", *arguments)
    assert done.returncode == 2
    assert sentence in done.stderr.decode()
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("release", ["2.9.1", "2.14.0+cpu", "1.13"])
def test_a_pytorch_that_cannot_be_used(release: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verified_run, "version", lambda name: release)
    with pytest.raises(CannotVerifyError, match=f"needs PyTorch 2.10 to 2.13.* {release[:4]}"):
        torch_release()


def test_without_pytorch_it_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(verified_run, "version", missing)
    with pytest.raises(CannotVerifyError, match=r"pip install npulens\[verify\].* there is none"):
        torch_release()


def test_a_copy_has_the_project_and_nothing_that_belongs_to_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, outside = tmp_path / "project", tmp_path / "data"
    for path in (project / ".git", project / ".venv", project / "a" / "__pycache__", outside):
        path.mkdir(parents=True)
    (project / ".venv" / "pyvenv.cfg").touch()
    (project / "a" / "train.py").write_text("1")
    (project / "data").symlink_to(Path("..") / "data")
    copy_project(project, tmp_path / "deep" / "copy")
    copied = {
        p.relative_to(tmp_path / "deep" / "copy").as_posix(): p
        for p in (tmp_path / "deep" / "copy").rglob("*")
    }
    assert copied.keys() == {"a", "a/train.py", "data"}
    assert copied["data"].resolve() == outside.resolve()
    monkeypatch.setattr(project_copy, "MAX_BYTES", 0)
    with pytest.raises(CopyError, match="--here"):
        copy_project(project, tmp_path / "other")


def test_lines_of_the_original() -> None:
    before = ["import torch", "x.cuda()", "y", "z"]
    after = ["import torch", "import torch_npu", "x.npu(", ")", "y", "z"]
    assert original_lines(before, after) == [1, 2, 2, 2, 3, 4]
    assert original_lines([], ["a"]) == [1]


def result(losses: list[float], parameters: list[list[float]], **end: Any) -> RunResult:
    report = {"losses": losses, "parameters": parameters, "steps": len(parameters)}
    rest = {
        "tests": None,
        "operators": 1,
        "cuda_calls": [],
        "apis": [],
        "events": [],
        "unknown_names": [],
    }
    ended = {"kind": "finished", **end}
    return RunResult(({**report, **rest, "trained": {}, "end": ended},), False, 0, ())


@pytest.mark.parametrize(
    ("original", "migrated", "expected"),
    [
        (([1.0, 2.0], [[1.0]]), ([1.0, 2.0001], [[1.0]]), None),
        (([1.0, 2.0], [[1.0]]), ([1.0, 2.1], [[1.0]]), ("loss", 2)),
        (([1.0], [[1.0]]), ([float("nan")], [[1.0]]), ("loss", 1)),
        (([1.0], [[1.0], [1.0, 2.0]]), ([1.0], [[1.0], [1.0, 2.5]]), ("parameter", 2)),
        (([1.0], [[1.0]]), ([1.0], [[1.0, 1.0]]), ("count", 1)),
        (([1.0, 1.0], [[1.0]]), ([1.0], [[1.0]]), ("count", 2)),
    ],
)
def test_the_first_divergence(
    original: tuple[list[float], list[list[float]]],
    migrated: tuple[list[float], list[list[float]]],
    expected: tuple[str, int] | None,
) -> None:
    found = compare(result(*original), result(*migrated), 1e-3).divergence
    assert (None if found is None else (found.what, found.step)) == expected


def test_steps_that_a_scaler_skips_are_no_difference_where_a_limit_cuts() -> None:
    end: dict[str, Any] = {"kind": "steps", "path": None, "line": None}
    one, other = (
        result([1.0, 1.0, 1.0], [[1.0], [1.0]], **end),
        result([1.0, 1.0], [[1.0], [1.0]], **end),
    )
    assert compare(one, other, 1e-3).divergence is None


def test_the_fix_that_makes_a_difference_is_named() -> None:
    original, other = result([1.0, 2.0], [[1.0]]), result([1.0, 3.0], [[1.0]])
    stopped = result([], [], kind="error", type="ValueError", message="no such device")
    runs = {"NPU101": stopped, "NPU701": other, "NPU702": original}
    tried: list[str] = []

    def run_without(code: str) -> RunResult:
        tried.append(code)
        return runs[code]

    assert deciding_rules(runs, run_without, original, 1e-3) == ("NPU702",)
    assert tried == ["NPU101", "NPU701", "NPU702"]
    assert deciding_rules(["NPU701"], run_without, original, 1e-3) == ()


WRONG = """\
code = "ACME009"
family = "acme"
severity = "warning"
message.en = "Use `{replacement}` for `{symbol}`."
message.zh = "请用 `{replacement}` 代替 `{symbol}`。"
explanation.en = "A rule of a team that is wrong."
explanation.zh = "团队的一条错误规则。"

[[examples]]
before = '''
import torch

y = torch.square(x)
'''
after = '''
import torch

y = torch.abs(x)
'''

[[symbols]]
symbol = "torch.square"
becomes = "torch.abs"
fix = "unsafe"
source = "nobody"
"""


@pytest.mark.emulated
@pytest.mark.usefixtures("here")
def test_a_fix_that_changes_results_is_found_by_running_without_it() -> None:
    write("wrong.toml", WRONG)
    write("npulens.toml", 'extend-rules = ["wrong.toml"]\n')
    write("train.py", TRAIN.replace("model(x).square()", "torch.square(model(x))"))
    code, found = verify("--steps", "2", "--unsafe-fixes", "--compare", "train.py")
    assert (code, found["outcome"]) == (1, "diverged"), found
    assert found["comparison"]["deciding"] == ["ACME009"]


def test_an_original_that_stops_is_no_measure() -> None:
    stopped = result([1.0], [[1.0]], kind="error", type="ValueError", message="only GPUs")
    found = compare(stopped, result([2.0], [[1.0]]), 1e-3)
    assert (found.problem, found.divergence) == ("ValueError: only GPUs", None)


def test_apis_that_the_npu_lacks_are_a_finding() -> None:
    apis = apis_to_watch(load_catalogue(), TorchVersion(2, 13))
    assert apis["torch.Tensor.acosh"] == "may-fall-back"
    name = next(name for name, what in apis.items() if what == "fails")
    ran = result([1.0], [[1.0]])
    assert judge(ran, apis).outcome is Outcome.PASSED
    ran.reports[0]["apis"].append(["train.py", 3, name, 1])
    verdict = judge(ran, apis)
    assert (verdict.outcome, verdict.line, verdict.detail) == (Outcome.UNSUPPORTED, 3, name)


def test_types_that_the_tables_do_not_list_are_told() -> None:
    types = types_to_watch(load_catalogue(), TorchVersion(2, 13))
    assert "float64" in types["torch.Tensor.add"]
    assert "torch.Tensor.relu" not in apis_to_watch(load_catalogue(), TorchVersion(2, 13))


WIDE = """import torch
model = torch.nn.Linear(4, 4).npu()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
scaler = torch.npu.amp.GradScaler()
x = torch.ones(2, 4).npu()
loss = model(x).sum()
print(loss.double() + 1)
print(x.view(1, 1, 1, 1, 1, 1, 1, 2, 4) * 2)
print(torch.nn.FractionalMaxPool2d(2, output_size=2)(torch.ones(1, 1, 8, 8).npu()))
scaler.scale(loss).backward()
scaler.step(optimizer)
"""


@pytest.mark.usefixtures("here")
def test_types_and_dimensions_that_reach_the_device_are_told() -> None:
    found = verify("--as-is", "--steps", "0", write("train.py", WIDE))[1]
    assert found["status"] == "passed"
    seen = [(site["line"], site["name"], site["kind"]) for site in found["apis"]]
    assert (7, "torch.Tensor.add (float64)", "type") in seen
    assert (8, "torch.Tensor.mul (9 dimensions)", "type") in seen
    assert any(line == 9 and kind == "may-fall-back" for line, _, kind in seen)
    assert all(line < 11 for line, _, _ in seen)  # what the scaler computes is not told


@pytest.mark.usefixtures("here")
def test_products_of_sparse_tensors_are_not_on_the_npu() -> None:
    source = (
        "import torch\n"
        "a = torch.eye(3).to_sparse().npu()\n"
        "assert (a + a).coalesce().to_dense().sum() == 6\n"
        "torch.spmm(a, torch.ones(3, 2).npu())\n"
    )
    found = verify("--as-is", "--steps", "0", write("train.py", source))[1]
    assert (found["outcome"], found["line"]) == ("unsupported", 4)
    assert found["detail"] == "aten::mm of sparse tensors"


@pytest.mark.usefixtures("here")
def test_a_library_that_asks_for_a_capability_needs_the_variable() -> None:
    source = (
        "import torch\n"
        "from torch_npu.contrib import transfer_to_npu\n"
        "torch.distributed.init_process_group('nccl', 'tcp://127.0.0.1:0', 1, 1, 0)\n"
        "torch.distributed.broadcast(torch.ones(1).cuda(), 0)\n"
    ).replace(
        "'tcp://127.0.0.1:0', 1, 1, 0", "store=torch.distributed.HashStore(), rank=0, world_size=1"
    )
    found = verify("--as-is", "--steps", "0", write("train.py", source))[1]
    assert (found["outcome"], found["line"]) == ("needs-variable", 4)
    assert found["detail"] == "TORCH_NPU_DEVICE_CAPABILITY"


@pytest.mark.usefixtures("here")
def test_wrapped_models_fail_under_the_shim_for_what_they_are() -> None:
    source = (
        "import torch\n"
        "from torch_npu.contrib import transfer_to_npu\n"
        "torch.cuda.Stream(device=torch.device('cuda'))\n"
        "model = torch.nn.DataParallel(torch.nn.Linear(2, 2).cuda())\n"
        "model(torch.ones(4, 2).cuda())\n"
    )
    found = verify("--as-is", "--steps", "0", write("train.py", source))[1]
    assert (found["outcome"], found["line"]) == ("unsupported", 5)
    assert found["detail"] == "torch.nn.DataParallel"
