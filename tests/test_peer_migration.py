"""What today's tool gets wrong when it converts whole trees, under the names of the peer study.

`test_peer.py` has the rows about findings and single files.
"""

import json
import os
import re
from pathlib import Path

import pytest

from commands import invoke
from migration_projects import write_project
from test_migrate import contents

pytestmark = pytest.mark.usefixtures("here")
CALL = "import torch\ntorch.cuda.synchronize()\n"
FIXED = "import torch\nimport torch_npu  # noqa: F401\ntorch.npu.synchronize()\n"
on_posix = pytest.mark.skipif(os.name == "nt", reason="means something on POSIX only")


def converted(here: Path, files: dict[str, str], *options: str) -> tuple[int, str]:
    """The exit code and what was complained of; the result is in `dst`."""
    write_project(files, here / "src")
    code, _, errors = invoke("migrate", "src", "-o", "dst", *options)
    return code, errors


def script(loader: str, model: str = "model = Net().cuda()", head: str = "") -> str:
    """A training script of one process, at the top of a module."""
    imports = head or "import torch\nimport torch.nn as nn\nfrom torch.utils.data import DataLoader"
    return f"""\
{imports}
from project import ImageFolder, Net, ds, optimizer

{model}
{loader}
val_loader = torch.utils.data.DataLoader(ds, batch_size=8)
for epoch in range(3):
    for x, y in loader:
        model(x.cuda()).backward()
        optimizer.step()
model.load_state_dict(torch.load("x"))
"""


def distributed(here: Path, text: str) -> tuple[str, str]:
    """What became of a script, and what was complained of."""
    named = ("--model", "model")  # its optimizer is made in another file
    _, errors = converted(here, {"main.py": text}, "--distributed", "--entry", "main.py", *named)
    path = here / "dst" / "main.py"
    return (path.read_text() if path.exists() else ""), errors


LOADERS = [
    pytest.param(
        "loader = DataLoader(ds, 32, True)",
        "loader = DataLoader(ds, 32, "
        "sampler=torch.utils.data.distributed.DistributedSampler(ds))\n",
        id="BR-27",
    ),
    pytest.param(
        "loader = DataLoader(ImageFolder(d), shuffle=True)",
        "loader = loader_of_process(DataLoader(ImageFolder(d), shuffle=True))\n",
        id="BR-29",
    ),
]


@pytest.mark.parametrize(("loader", "expected"), LOADERS)
def test_the_sampler_gets_the_dataset(here: Path, loader: str, expected: str) -> None:
    text, errors = distributed(here, script(loader))
    assert errors == ""
    assert expected in text
    assert "loader.sampler.set_epoch(epoch)\n" in text
    # BR-33: the loader for validation keeps all its samples.
    assert "val_loader = torch.utils.data.DataLoader(ds, batch_size=8)\n" in text


def test_only_names_that_are_there_are_used(here: Path) -> None:
    """BR-30."""
    head = "from torch.utils import data"
    text, errors = distributed(
        here, script("loader = data.DataLoader(ds, shuffle=True)", head=head)
    )
    assert errors == ""
    assert re.search(r"^import torch$", text, re.MULTILINE)
    assert re.search(r"^import torch_npu\b", text, re.MULTILINE)


MODELS = [
    pytest.param("model = Net()\nmodel = nn.DataParallel(model).cuda()", id="BR-31"),
    pytest.param(
        "model = Net()\nif torch.cuda.device_count() > 1:\n    model = nn.DataParallel(model)",
        id="BR-32",
    ),
]


@pytest.mark.parametrize("model", MODELS)
def test_a_model_is_wrapped_once(here: Path, model: str) -> None:
    text, errors = distributed(here, script("loader = DataLoader(ds, shuffle=True)", model))
    assert errors == ""
    assert text.count("DistributedDataParallel(") == 1
    assert "nn.DataParallel(" not in text
    assert "pass\n" not in text


OF_ANY_FORM = [
    pytest.param(
        "loader = DataLoader(ds, batch_sampler=bs)",
        "loader = loader_of_process(DataLoader(ds, batch_sampler=bs))\n",
        id="BR-28",
    ),
    pytest.param(
        "def make():\n    return DataLoader(ds, shuffle=True)\n\n\nloader = make()",
        "    return DataLoader(ds, sampler=torch.utils.data.distributed.DistributedSampler(ds))\n",
        id="BR-33",
    ),
]


@pytest.mark.parametrize(("loader", "expected"), OF_ANY_FORM)
def test_loaders_are_divided_in_any_form(here: Path, loader: str, expected: str) -> None:
    text, errors = distributed(here, script(loader))
    assert (errors, expected in text) == ("", True)


def test_the_model_inside_is_loaded(here: Path) -> None:
    text, _ = distributed(here, script("loader = DataLoader(ds, shuffle=True)"))
    assert 'model.module.load_state_dict(torch.load("x"))' in text


def test_a_converted_tree_is_converted_no_further(here: Path) -> None:
    """BR-35, BR-37."""
    converted(here, {"a.py": CALL, "model.py": "import torch\n\n\nclass Net: ...\n"})
    assert (here / "dst" / "model.py").read_text() == "import torch\n\n\nclass Net: ...\n"
    invoke("migrate", "dst", "-o", "again")
    assert contents(here / "again") == contents(here / "dst")


SPOILED = [
    pytest.param("# -*- coding: gbk -*-\n# 训练\n", "gbk", id="BR-23-gbk"),
    pytest.param("# -*- coding: latin-1 -*-\n# Ärger\n", "latin-1", id="BR-23-latin-1"),
    pytest.param("# 训练\n", "utf-8-sig", id="RO-bom"),
]


@pytest.mark.parametrize(("comment", "encoding"), SPOILED)
def test_encodings_stay(here: Path, comment: str, encoding: str) -> None:
    (here / "src").mkdir()
    (here / "src" / "a.py").write_bytes(f"{comment}{CALL}".encode(encoding))
    invoke("migrate", "src", "-o", "dst")
    data = (here / "dst" / "a.py").read_bytes()
    assert data == f"{comment}{FIXED}".encode(encoding)
    compile(data, "a.py", "exec")


def test_one_file_ends_no_run(here: Path) -> None:
    """BR-13, BR-14, BR-16: a few expressions stopped its whole run."""
    odd = (
        "import torch\nx.to({0: a}[k])\nx.to(d := g())\nhasattr(get().module, 'x')\n"
        "torch.zeros(3, device={0: a}[k])\n"
    )
    files = {"a.py": odd, "b.py": CALL, "c.py": "def f(:\n    pass\n" + CALL, "d.cpp": "// \xff\n"}
    code, errors = converted(here, files)
    assert (code, errors) == (1, "")  # the broken file is left to do
    assert (here / "dst" / "a.py").read_text() == odd
    assert (here / "dst" / "b.py").read_text() == FIXED


@on_posix
@pytest.mark.parametrize("name", ["test (1).py", "a+b.py", "训练.py", "-x.py"])
def test_names_do_not_matter(here: Path, name: str) -> None:
    code, errors = converted(here, {name: CALL, "项目 (1)+/b.py": CALL})
    assert (code, errors) == (0, "")
    assert (here / "dst" / name).read_text() == FIXED
    assert (here / "dst" / "项目 (1)+" / "b.py").read_text() == FIXED


def test_the_rest_of_a_project_comes_along(here: Path) -> None:
    """FN-17: launch scripts, settings and requirements are converted, too."""
    converted(
        here,
        {"run.sh": "export CUDA_VISIBLE_DEVICES=0\n", "conf.yaml": "device: cuda\n", "a.py": CALL},
        "--unsafe-fixes",
    )
    assert "ASCEND_RT_VISIBLE_DEVICES=0" in (here / "dst" / "run.sh").read_text()
    assert (here / "dst" / "conf.yaml").read_text() == "device: npu\n"


def test_what_it_leaves_is_told(here: Path) -> None:
    """FN-18: what is not rewritten is in the log."""
    converted(here, {"a.py": "import torch\nx.to(f'cuda')\ntorch.cuda.jiterator\n"})
    log = json.loads((here / "dst" / "npulens-migration" / "change_log.json").read_bytes())
    assert [(each["line"], each["code"]) for each in log["left"]] == [(4, "NPU103")]
    assert "x.to(f'npu')" in (here / "dst" / "a.py").read_text()


def test_reports_are_where_the_documentation_says(here: Path) -> None:
    """UX-02."""
    converted(here, {"a.py": CALL})
    page = Path(__file__).resolve().parents[1] / "docs" / "migrating.md"
    for path in (here / "dst" / "npulens-migration").iterdir():
        assert f"`{path.name}`" in page.read_text(encoding="utf-8")
