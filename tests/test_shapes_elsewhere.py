"""Functions of other modules whose results have shapes that depend on data."""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from lsp_client import LspClient, range_of, replacing
from npulens.cli.main import cli

UTILS = """import torch
from torch import Tensor


def select_masked(x: Tensor, scores: Tensor) -> Tensor:
    return x[scores > 0.5]


def count_valid(scores: Tensor) -> int:
    return int((scores > 0.5).sum())


def split(x: Tensor) -> tuple:
    return x * 2, torch.nonzero(x), x.shape[0]


def doubled(x: Tensor) -> Tensor:
    return x * 2


def padded(x: Tensor, scores: Tensor) -> Tensor:
    kept = x[scores > 0.5]
    return torch.nn.functional.pad(kept, (0, 0, 0, 100 - kept.shape[0]))


def handed_on(x: Tensor, scores: Tensor) -> Tensor:
    return select_masked(x, scores) + 1


def padding(lengths: Tensor, max_len: int = 0) -> Tensor:
    max_len = max_len if max_len > 0 else lengths.max().item()
    return torch.arange(max_len, device=lengths.device) >= lengths.unsqueeze(-1)


def padding_like(lengths: Tensor, xs: Tensor = None, size=None) -> Tensor:
    if size is None:
        size = int(lengths.max()) if xs is None else xs.size(1)
    return torch.arange(size, device=lengths.device) >= lengths.unsqueeze(-1)


def no_padding(lengths: Tensor, max_len: int = 0) -> Tensor:
    return ~padding(lengths, max_len)
"""
HEAD = "import torch\nfrom torch import Tensor\n\n{}\n\n\n"
NET = HEAD + "def forward(x: Tensor, scores: Tensor):\n"
MODULE = "pack/net.py"
FROM = "from .utils import {}"
# What stands in the import of a module of the package `pack`, the body of `forward` in it, and
# what is told of.
CASES = {
    "selected": (
        FROM.format("select_masked"),
        "kept = select_masked(x, scores)\n    return kept * 2",
        ["select_masked(x, scores)"],
    ),
    "by another name": (
        FROM.format("select_masked as chosen"),
        "return chosen(x, scores).exp()",
        ["chosen(x, scores)"],
    ),
    "with the name of the package": (
        "from pack.utils import select_masked",
        "return select_masked(x, scores) * 2",
        ["select_masked(x, scores)"],
    ),
    "through its module": (
        "from . import utils",
        "return utils.select_masked(x, scores) * 2",
        ["utils.select_masked(x, scores)"],
    ),
    "through its module, by its full name": (
        "import pack.utils as helpers",
        "return helpers.select_masked(x, scores) * 2",
        ["helpers.select_masked(x, scores)"],
    ),
    "of a tuple": (
        FROM.format("split"),
        "twice, places, count = split(x)\n    places = places + 1\n"
        "    return x.new_zeros(count) + twice",
        ["split(x)"],
    ),
    "only the rest of a tuple": (
        FROM.format("split"),
        "twice, _, count = split(x)\n    return x.new_zeros(count) + twice * 2",
        [],
    ),
    "number": (
        FROM.format("count_valid"),
        "count = count_valid(scores)\n    return x[:count]",
        ["x[:count]"],
    ),
    "handed on": (
        FROM.format("handed_on"),
        "return handed_on(x, scores) * 2",
        ["handed_on(x, scores)"],
    ),
    "length left out": (FROM.format("padding"), "return x * padding(scores)", ["padding(scores)"]),
    "length given": (FROM.format("padding"), "return x * padding(scores, x.size(1))", []),
    "length given by name": (
        FROM.format("padding"),
        "longest = x.shape[1]\n    return x * padding(scores, max_len=longest)",
        [],
    ),
    "length written": (FROM.format("padding"), "return x * padding(scores, 512)", []),
    "length that stands for none": (
        FROM.format("padding"),
        "return x * padding(scores, max_len=0)",
        ["padding(scores, max_len=0)"],
    ),
    "length from data": (
        FROM.format("padding"),
        "return x * padding(scores, scores.max())",
        ["padding(scores, scores.max())"],
    ),
    "length of the tensor given": (
        FROM.format("padding_like"),
        "return x * padding_like(scores, x)",
        [],
    ),
    "one of two lengths given": (
        FROM.format("padding_like"),
        "return x * padding_like(scores, size=x.size(1))",
        [],
    ),
    "nothing given": (
        FROM.format("padding_like"),
        "return x * padding_like(scores, None)",
        ["padding_like(scores, None)"],
    ),
    "length handed on": (FROM.format("no_padding"), "return x * no_padding(scores, 8)", []),
    "length not handed on": (
        FROM.format("no_padding"),
        "return x * no_padding(scores)",
        ["no_padding(scores)"],
    ),
    "not worked on": (FROM.format("select_masked"), "return select_masked(x, scores)", []),
    "of the host": (
        FROM.format("select_masked"),
        "x, scores = x.cpu(), scores.cpu()\n    return select_masked(x, scores) * 2",
        ["x.cpu()", "scores.cpu()"],
    ),
    "without data": (FROM.format("doubled"), "return doubled(x) * 2", []),
    "made as long as ever": (FROM.format("padded"), "return padded(x, scores) * 2", []),
    "of another module": (
        "from .others import select_masked",
        "return select_masked(x, scores) * 2",
        [],
    ),
    "from further out": (
        "from ..utils import select_masked",
        "return select_masked(x, scores) * 2",
        [],
    ),
    "of a library": (
        "from library.utils import select_masked",
        "return select_masked(x, scores) * 2",
        [],
    ),
}


def project(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


def told(root: Path, module: str, *paths: str) -> list[str]:
    """What `check` tells of in a module, in order."""
    arguments = ["check", *(paths or ["."]), "--output-format", "json", "--no-cache"]
    before = Path.cwd()
    os.chdir(root)
    try:
        result = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    finally:
        os.chdir(before)
    lines = (root / module).read_text().splitlines()
    rows = [row for row in json.loads(result.stdout) if row["code"].startswith("NPU8")]
    return [
        lines[row["line"] - 1][row["column"] - 1 : row["end_column"] - 1]
        for row in rows
        if row["path"].endswith(module)
    ]


@pytest.mark.parametrize("name", CASES)
def test_results_of_other_modules(tmp_path: Path, name: str) -> None:
    imports, body, expected = CASES[name]
    text = NET.format(imports) + f"    {body}\n"
    others = {"pack/__init__.py": "", "pack/utils.py": UTILS, "pack/others.py": "import torch\n"}
    root = project(tmp_path / "project", {**others, MODULE: text})
    assert told(root, MODULE) == expected


CALL = "    return select_masked(x, scores) * 2\n"
LAYOUTS = {
    "scripts in one folder": ({"utils.py": UTILS}, "net.py", "from utils import select_masked"),
    "a folder without a package": (
        {"tools/boxes.py": UTILS},
        "net.py",
        "from tools.boxes import select_masked",
    ),
    "a package beside": (
        {"src/pack/__init__.py": "", "src/pack/utils.py": UTILS},
        "tools/train.py",
        "from pack.utils import select_masked",
    ),
    "a package that offers it": (
        {
            "pack/__init__.py": "",
            "pack/ops/__init__.py": FROM.format("*"),
            "pack/ops/utils.py": UTILS,
        },
        MODULE,
        "from .ops import select_masked",
    ),
    "a package that offers what a package offers": (
        {
            "pack/__init__.py": "",
            "pack/ops/__init__.py": "from .inner import select_masked\n",
            "pack/ops/inner/__init__.py": FROM.format("(\n    split,\n    select_masked,\n)"),
            "pack/ops/inner/utils.py": UTILS,
        },
        "pack/models/net.py",
        "from ..ops import select_masked",
    ),
    "what another module hands on": (
        {
            "pack/__init__.py": "",
            "pack/utils.py": UTILS.replace("select_masked", "chosen"),
            "pack/more.py": HEAD.format(FROM.format("chosen"))
            + "def select_masked(x: Tensor, scores: Tensor) -> Tensor:\n"
            "    return chosen(x, scores) + 1\n",
        },
        MODULE,
        "from .more import select_masked",
    ),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_where_modules_may_be(tmp_path: Path, name: str) -> None:
    files, module, imports = LAYOUTS[name]
    root = project(tmp_path / "project", {**files, module: NET.format(imports) + CALL})
    assert told(root, module) == ["select_masked(x, scores)"]


@pytest.mark.parametrize("paths", [["."], ["pack"], ["pack/net.py", "pack/utils.py"]])
def test_any_paths_of_a_project_may_be_given(tmp_path: Path, paths: list[str]) -> None:
    files = {"pack/__init__.py": "", "pack/utils.py": UTILS}
    text = NET.format(FROM.format("select_masked")) + CALL
    root = project(tmp_path / "project", {**files, MODULE: text})
    assert told(root, MODULE, *paths) == ["select_masked(x, scores)"]


def test_of_a_module_that_does_not_parse_nothing_is_known(tmp_path: Path) -> None:
    text = NET.format(FROM.format("select_masked")) + CALL
    broken = UTILS.replace("def select_masked(", "def select_masked((")
    files = {"pack/__init__.py": "", "pack/utils.py": broken, MODULE: text}
    assert told(project(tmp_path / "project", files), MODULE) == []


RELATED = {"textDocument": {"publishDiagnostics": {"relatedInformation": True}}}


def test_an_editor_shows_what_other_modules_return(tmp_path: Path) -> None:
    imports = FROM.format("select_masked")
    text = NET.format(imports) + "    kept = select_masked(x, scores)\n    return kept * 2\n"
    utils = UTILS.replace("x[scores > 0.5]", "x[scores > 0.5, :4]")
    files = {"pyproject.toml": "", "pack/__init__.py": "", "pack/utils.py": utils, MODULE: text}
    root = project(tmp_path / "project", files)
    uri, line = (root / MODULE).as_uri(), text.splitlines().index("    return kept * 2")
    with LspClient() as client:
        client.initialize(capabilities=RELATED, rootUri=root.as_uri())
        client.open(uri, text)
        (found,) = client.diagnostics(uri, 1)
        assert found["code"] == "NPU801"
        related = found["relatedInformation"]
        assert [each["location"]["range"]["start"]["line"] for each in related] == [line]
        client.change(uri, 2, replacing((line, 0), (line, 0), "    more = kept[:, 0] + 1\n"))
        (found,) = client.diagnostics(uri, 2)
        params = {"textDocument": {"uri": uri}, "range": range_of((0, 0), (99, 0))}
        labels = [hint["label"] for hint in client.request("textDocument/inlayHint", params)]
        assert labels == [": [?, ...] dynamic", ": [?, ...] dynamic"]

        (root / "pack" / "utils.py").write_text(utils.replace("[scores > 0.5, :4]", " * scores"))
        client.published.clear()
        event = {"uri": (root / "pack" / "utils.py").as_uri(), "type": 2}
        client.notify("workspace/didChangeWatchedFiles", {"changes": [event]})
        assert client.diagnostics(uri, 2) == []
        assert client.request("textDocument/inlayHint", params) == []
