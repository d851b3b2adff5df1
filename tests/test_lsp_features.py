"""Hover, completion, code lens, links, hints and notebooks, through the real server process."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from lsp_client import LspClient, Message, applied_edit, range_of, replacing
from npulens.syntax.cells import python_of_cell

CALL = "torch.cuda.synchronize"


@pytest.fixture(scope="module")
def client() -> Iterator[LspClient]:
    with LspClient() as shared:
        shared.initialize(capabilities={"notebookDocument": {"synchronization": {}}})
        yield shared


_names = iter(f"file:///nowhere/feature_{number}.py" for number in range(1000))


@pytest.fixture
def uri() -> str:
    return next(_names)


def asked(client: LspClient, method: str, uri: str, line: int, character: int) -> object:
    place = {"line": line, "character": character}
    params = {"textDocument": {"uri": uri}, "position": place}
    return client.request(f"textDocument/{method}", params)


def marked(text: str) -> tuple[str, int, int]:
    """A text without its mark, and where that was."""
    before, after = text.split("¦")
    return before + after, before.count("\n"), len(before) - before.rfind("\n") - 1


# Hover

HOVERS = [
    (
        "import torch\ntorch.cuda.¦synchronize()\n",
        [
            "`torch.cuda.synchronize`",
            "`torch.npu.synchronize`",
            "`torch.accelerator.synchronize`",
            "NPU101",
            "/rules/NPU101",
            "transfer_to_npu",
            r"torch\_npu/npu/\_\_init\_\_.py",  # as text, not as emphasis
        ],
    ),
    ("import torch.cuda as c\n\ndef f():\n    c.sync¦hronize()\n", ["`torch.npu.synchronize`"]),
    ("from torch.cuda import synch¦ronize\n", ["`torch.npu.synchronize`"]),
    (
        "from torch import nn\n\nclass A:\n    def f(self):\n        return nn.Lin¦ear(2, 2)\n",
        ["`torch.nn.Linear`", "2.6 – 2.13 | supported"],
    ),
    ("import torch\nx = torch.std_m¦ean(y)\n", ["`torch.std_mean`", "not supported", "NPU503"]),
    ("import torch\nx = torch.ones(2)\ny = x.mo¦de()\n", ["`torch.Tensor.mode`", "not supported"]),
    ("import torch\ntorch.npu.synchro¦nize()\n", ["in place of `torch.cuda.synchronize`"]),
    (
        "import torch_npu\ny = torch_npu.npu_rms_n¦orm(x, w, 1e-6)\n",
        ["`torch_npu.npu_rms_norm`", "NPU701"],
    ),
    (
        'import os\nos.environ["CUDA_VISIBLE_¦DEVICES"] = "0"\n',
        ["`CUDA_VISIBLE_DEVICES`", "`ASCEND_RT_VISIBLE_DEVICES`", "NPU901"],
    ),
    ('import os\nx = os.environ["ASCEND_LAUNCH_¦BLOCKING"]\n', ["`CUDA_LAUNCH_BLOCKING`"]),
    ("from apex import amp\nm, o = amp.init¦ialize(m, o)\n", ["apex.amp.initialize", "NPU304"]),
    ("x.cu¦da()\n", ["NPU105"]),
]


@pytest.mark.parametrize(("text", "words"), HOVERS, ids=[str(n) for n in range(len(HOVERS))])
def test_hover(client: LspClient, uri: str, text: str, words: list[str]) -> None:
    text, line, character = marked(text)
    client.open(uri, text)
    found = asked(client, "hover", uri, line, character)
    assert isinstance(found, dict)
    assert found["contents"]["kind"] == "markdown"
    for word in words:
        assert word in found["contents"]["value"], found["contents"]["value"]
    assert found["range"]["start"]["line"] == line
    assert found["range"]["start"]["character"] <= character


@pytest.mark.parametrize(
    "text", ["x¦ = 1\n", "¦", "import os\nos.pa¦th\n", '"""torch.cu¦da"""\n', "x = (\nto¦rch.cud"]
)
def test_nothing_to_say(client: LspClient, uri: str, text: str) -> None:
    text, line, character = marked(text)
    client.open(uri, text)
    found = asked(client, "hover", uri, line, character)
    assert found is None or "NPU001" in str(found)


PORTED = "import torch\nif device.type == 'mps':\n    {place}\n"


def test_hover_where_nothing_is_to_be_done(client: LspClient, uri: str) -> None:
    client.open(uri, PORTED.format(place="x.cuda()"))
    assert client.diagnostics(uri, 1) == []
    found = asked(client, "hover", uri, 2, 7)
    assert isinstance(found, dict)
    assert found["contents"]["value"].startswith("**Nothing to be done:** [NPU105 cuda-method](")
    assert found["contents"]["value"].endswith(
        "`cuda`: this is for another device "
        f"([line 2]({uri}#L2), `device.type == 'mps'`) [other-device]"
    )
    assert found["range"] == range_of((2, 6), (2, 10))
    # What is known of a name is still there, and places that decide themselves have no line.
    client.change(uri, 2, replacing((1, 0), (2, 12), f"print('cuda:0')\n{CALL}()"))
    assert codes_of(client.diagnostics(uri, 2)) == ["NPU101"]
    assert "this is text for people [text]" in str(asked(client, "hover", uri, 1, 9))
    assert "Nothing to be done" not in str(asked(client, "hover", uri, 2, 14))


def test_hover_on_what_a_configuration_or_a_comment_settles(
    client: LspClient, tmp_path: Path
) -> None:
    (tmp_path / "npulens.toml").write_text('ignore = ["NPU101"]\n')
    uri = (tmp_path / "a.py").as_uri()
    client.open(uri, f"import torch\nx.cuda()  # npulens: ignore\n{CALL}()\n")
    assert client.diagnostics(uri, 1) == []
    assert "a comment suppresses the rule here" in str(asked(client, "hover", uri, 1, 3))
    shown = str(asked(client, "hover", uri, 2, 14))
    assert "`torch.npu.synchronize`" in shown
    assert "the configuration turns the rule off here [rule-off]" in shown


def test_hover_in_a_notebook_counts_lines_in_the_cell(client: LspClient) -> None:
    notebook = Notebook(client, ["x = 1\ny = 2", PORTED.format(place="x.cuda()")])
    assert client.diagnostics(notebook.cells[1], 1) == []
    shown = str(asked(client, "hover", notebook.cells[1], 2, 7))
    assert "this is for another device (line 2, `device.type ==" in shown


def test_hover_in_a_script(client: LspClient) -> None:
    uri = "file:///nowhere/run.sh"
    client.open(uri, "#!/bin/bash\nexport NCCL_DEBUG=INFO\n", language="shellscript")
    assert "NCCL_DEBUG" in str(asked(client, "hover", uri, 1, 10))


def test_hover_in_chinese() -> None:
    with LspClient() as chinese:
        chinese.initialize(locale="zh-cn")
        chinese.open("untitled:1", f"import torch\n{CALL}()\n")
        found = asked(chinese, "hover", "untitled:1", 1, 14)
        assert "在 NPU 上使用：`torch.npu.synchronize`" in str(found)
        chinese.open("untitled:2", PORTED.format(place="x.cuda()"))
        found = asked(chinese, "hover", "untitled:2", 2, 7)
        assert "**无需处理：** [NPU105" in str(found)
        assert "`cuda`：此处面向其他设备（[第 2 行](untitled:2#L2) `device.type ==" in str(found)


# Completion

COMPLETIONS = [
    ("import torch\ntorch.npu.synch¦\n", "synchronize", "torch.cuda.synchronize"),
    ("import torch\ntorch.npu.¦\n", "amp", "torch.cuda.amp"),
    ("import torch_npu\ntorch_npu.profiler.¦\n", "schedule", "torch.profiler.schedule"),
    ("x.cuda()  # npulens: ignore[¦]\n", "NPU105", "cuda-method"),
    ("x.cuda()  # npulens: ignore[NPU101, NPU¦]\n", "NPU105", "cuda-method"),
    ("x.cuda()  # npu¦\n", "npulens: ignore[]", None),
]


@pytest.mark.parametrize(("text", "label", "detail"), COMPLETIONS)
def test_completion(client: LspClient, uri: str, text: str, label: str, detail: str | None) -> None:
    text, line, character = marked(text)
    client.open(uri, text)
    found = asked(client, "completion", uri, line, character)
    assert isinstance(found, list)
    (item,) = [each for each in found if each["label"] == label]
    assert item.get("detail") == detail


def test_a_comment_is_completed_in_its_place(client: LspClient, uri: str) -> None:
    client.open(uri, "x.cuda()  # npulens: ig\n")
    found = asked(client, "completion", uri, 0, 23)
    assert isinstance(found, list)
    edit = next(each["textEdit"] for each in found if each["label"] == "npulens: ignore")
    changed = applied_edit("x.cuda()  # npulens: ig\n", {"changes": {uri: [edit]}})
    assert changed == "x.cuda()  # npulens: ignore\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("npulens.toml", 'ignore = ["NPU1¦"]\n'),
        ("pyproject.toml", '[tool.npulens]\nextend-select = [\n  "NPU101",\n  "¦"\n]\n'),
    ],
)
def test_rules_are_completed_in_a_configuration(client: LspClient, name: str, text: str) -> None:
    text, line, character = marked(text)
    uri = f"file:///nowhere/{name}"
    client.open(uri, text, language="toml")
    found = asked(client, "completion", uri, line, character)
    assert isinstance(found, list)
    assert {"NPU101", "NPU505"} <= {each["label"] for each in found}


@pytest.mark.parametrize("text", ["import torch\ntorch.cuda.¦\n", "x = 1 ¦\n", "# a comment ¦\n"])
def test_other_completions_are_left_to_others(client: LspClient, uri: str, text: str) -> None:
    text, line, character = marked(text)
    client.open(uri, text)
    assert asked(client, "completion", uri, line, character) == []


# Code lens, links


@pytest.mark.parametrize(
    ("text", "title"),
    [
        (f"import torch\n{CALL}()\nx.cuda()\n", "2 problems · 2 safe to fix"),
        ("import torch\nimport torch_npu  # noqa: F401\n", "no problems"),
        ("x = 1\n", None),
    ],
)
def test_code_lens(client: LspClient, uri: str, text: str, title: str | None) -> None:
    client.open(uri, text)
    found = client.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
    if title is None:
        assert found is None
        return
    (lens,) = found
    assert title in lens["command"]["title"]
    assert lens["command"]["command"] == "npulens.migrateFile"
    assert lens["command"]["arguments"] == [uri]


def test_code_lens_can_be_turned_off() -> None:
    with LspClient() as quiet:
        quiet.initialize(initializationOptions={"codeLens": False})
        quiet.open("untitled:1", f"import torch\n{CALL}()\n")
        params = {"textDocument": {"uri": "untitled:1"}}
        assert quiet.request("textDocument/codeLens", params) is None


def test_links(client: LspClient, uri: str) -> None:
    client.open(uri, "x.cuda()  # npulens: ignore[NPU105, cuda-api, NPU999]\n")
    found = client.request("textDocument/documentLink", {"textDocument": {"uri": uri}})
    assert [(link["range"]["start"]["character"], link["target"][-9:-3]) for link in found] == [
        (28, "NPU105"),
        (36, "NPU101"),
    ]
    configuration = "file:///nowhere/links/npulens.toml"
    client.open(configuration, 'ignore = ["NPU101"]\n', language="toml")
    params = {"textDocument": {"uri": configuration}}
    (link,) = client.request("textDocument/documentLink", params)
    assert link["range"] == range_of((0, 11), (0, 17))


@pytest.mark.parametrize(
    ("method", "more"),
    [
        ("hover", {"position": {"line": 0, "character": 0}}),
        ("completion", {"position": {"line": 0, "character": 0}}),
        ("codeLens", {}),
        ("documentLink", {}),
        ("inlayHint", {"range": range_of((0, 0), (0, 0))}),
        ("codeAction", {"range": range_of((0, 0), (0, 0)), "context": {"diagnostics": []}}),
    ],
)
@pytest.mark.parametrize("uri", ["file:///nowhere/closed.py", "http://x/y", "", "C:\\a.py", ":"])
def test_a_document_that_is_not_open(
    client: LspClient, method: str, more: Message, uri: str
) -> None:
    params = {"textDocument": {"uri": uri}, **more}
    assert client.request(f"textDocument/{method}", params) is None


# Files beside Python


@pytest.mark.parametrize(
    ("name", "language", "text", "expected"),
    [
        ("run.sh", "shellscript", "#!/bin/bash\nexport NCCL_DEBUG=INFO\n", ("NPU901", 1)),
        ("run", "shellscript", "#!/bin/bash\nexport NCCL_DEBUG=INFO\n", ("NPU901", 1)),
        ("settings.yaml", "yaml", "name: x\ndevice: cuda\n", ("NPU902", 1)),
        ("settings.json", "json", '{\n  "device": "cuda"\n}\n', ("NPU902", 1)),
        ("Dockerfile", "dockerfile", "\nFROM nvcr.io/nvidia/pytorch:23.01-py3\n", ("NPU904", 1)),
        ("requirements.txt", "pip-requirements", "torch\nflash-attn\n", ("NPU905", 1)),
        (
            "pyproject.toml",
            "toml",
            '[project]\nname = "x"\ndependencies = ["torch", "flash-attn"]\n',
            ("NPU905", 2),
        ),
        (
            "setup.py",
            "python",
            "from setuptools import setup\nfrom torch.utils.cpp_extension import CUDAExtension\n"
            "setup(name='x', ext_modules=[CUDAExtension('x', ['x.cu'])])\n",
            ("NPU601", 2),
        ),
        ("bind.cu", "cuda-cpp", '\nPYBIND11_MODULE(x, m) { m.def("nms", &nms); }\n', ("NPU6", 1)),
    ],
)
def test_files_beside_python(
    client: LspClient, name: str, language: str, text: str, expected: tuple[str, int]
) -> None:
    uri = f"file:///nowhere/beside/{name}"
    client.open(uri, text, language=language)
    found = client.diagnostics(uri, 1)
    line = [each for each in found if each["range"]["start"]["line"] == expected[1]]
    assert any(each["code"].startswith(expected[0]) for each in line), found
    # They are kept up with like others.
    client.change(uri, 2, {"text": "\n"})
    assert client.diagnostics(uri, 2) == []


# Notebooks


@pytest.mark.parametrize(
    ("cell", "python"),
    [
        ("%matplotlib inline\nx = 1\n", "0#atplotlib inline\nx = 1\n"),
        ("!pip install 'x\ny = 2", "0#ip install  x\ny = 2"),
        ("if a:\n    !ls\n", "if a:\n    0#s\n"),
        ("files = !ls\n", "files = 0#s\n"),
        ("t = %timeit -o f()\n", "t = 0#imeit -o f()\n"),
        ("model?\n", "0#del?\n"),
        ("?model\n", "0#odel\n"),
        ("%%time\nx = 1\n", "0#time\nx = 1\n"),
        ("%%bash\nls 'a\n", "      \n     \n"),
        ("!a \\\n  b\nx = 1\n", "0#  \n   \nx = 1\n"),
        ("x = (3\n     % 2)\n", "x = (3\n     % 2)\n"),
        ('x = """\n!no\n"""\n', 'x = """\n!no\n"""\n'),
        ("x = a % b\ny = c != d\n", "x = a % b\ny = c != d\n"),
        ("!\n", "0\n"),
        ("cd ..\nx = 1\n", "0# ..\nx = 1\n"),
        ("if a:\n    pip install b\n", "if a:\n    0#p install b\n"),
        ("ls -l\nrm -rf x\n", "ls -l\n0# -rf x\n"),
        ("cat = 1\ncp (2)\nmv\n", "cat = 1\ncp (2)\nmv\n"),
        ("x = (\ncd ..\n)\n", "x = (\ncd ..\n)\n"),
        ("", ""),
    ],
)
def test_cells_read_as_python(cell: str, python: str) -> None:
    assert python_of_cell(cell) == python
    assert [len(line) for line in python.split("\n")] == [len(line) for line in cell.split("\n")]


class Notebook:
    """A notebook in the editor."""

    def __init__(self, client: LspClient, cells: list[str]) -> None:
        self.client = client
        self.uri = next(_names).replace(".py", ".ipynb")
        self.version = 1
        self.cells = [f"{self.uri}#{number}" for number in range(len(cells))]
        client.notify(
            "notebookDocument/didOpen",
            {
                "notebookDocument": {
                    "uri": self.uri,
                    "notebookType": "jupyter-notebook",
                    "version": 1,
                    "cells": [{"kind": 2, "document": uri} for uri in self.cells],
                },
                "cellTextDocuments": [
                    {"uri": uri, "languageId": "python", "version": 1, "text": text}
                    for uri, text in zip(self.cells, cells, strict=True)
                ],
            },
        )

    def change(self, **cells: object) -> None:
        self.version += 1
        self.client.notify(
            "notebookDocument/didChange",
            {
                "notebookDocument": {"uri": self.uri, "version": self.version},
                "change": {"cells": cells},
            },
        )


def codes_of(found: list[Message]) -> list[str]:
    return [each["code"] for each in found]


def lines(found: list[Message]) -> list[tuple[str, int]]:
    return [(each["code"], each["range"]["start"]["line"]) for each in found]


def test_cells_share_their_names(client: LspClient) -> None:
    notebook = Notebook(
        client,
        [
            "import torch.cuda as c\n%load_ext x",
            "!pip list\nc.synchronize()",
            "x = c.device_count()\n",
        ],
    )
    first, second, third = notebook.cells
    assert lines(client.diagnostics(second, 1)) == [("NPU101", 1)]
    assert lines(client.diagnostics(third, 1)) == [("NPU101", 0)]
    assert all(found["code"] != "NPU001" for found in client.diagnostics(first, 1))

    # Text of one cell.
    notebook.change(
        textContent=[
            {"document": {"uri": third, "version": 2}, "changes": [replacing((0, 0), (0, 0), "\n")]}
        ]
    )
    assert lines(client.diagnostics(third, 2)) == [("NPU101", 1)]

    # Hover and fixes know the cell.
    assert "torch.npu.synchronize" in str(asked(client, "hover", second, 1, 4))
    fix = client.code_actions(second, (1, 4), (1, 4), only=["quickfix"])[0]
    assert second in fix["edit"]["changes"]
    edits = fix["edit"]["changes"][second]
    assert "npu" in edits[0]["newText"]

    # A cell that comes, and one that goes.
    fourth = f"{notebook.uri}#new"
    client.published.clear()
    notebook.change(
        structure={
            "array": {"start": 1, "deleteCount": 1, "cells": [{"kind": 2, "document": fourth}]},
            "didOpen": [
                {"uri": fourth, "languageId": "python", "version": 1, "text": "c.set_device(0)\n"}
            ],
            "didClose": [{"uri": second}],
        }
    )
    assert client.diagnostics(second, None) == []
    assert lines(client.diagnostics(fourth, 1)) == [("NPU101", 0)]
    assert lines(client.diagnostics(third, 2)) == [("NPU101", 1)]

    client.published.clear()
    client.notify(
        "notebookDocument/didClose",
        {
            "notebookDocument": {"uri": notebook.uri},
            "cellTextDocuments": [{"uri": uri} for uri in (first, fourth, third)],
        },
    )
    for uri in (first, fourth, third):
        assert client.diagnostics(uri, None) == []
    assert asked(client, "hover", third, 1, 8) is None


def test_an_import_goes_to_the_cell_of_the_imports(client: LspClient) -> None:
    notebook = Notebook(client, ["import torch", f"{CALL}()"])
    client.diagnostics(notebook.cells[1], 1)
    fix = client.code_actions(notebook.cells[1], (0, 14), (0, 14), only=["quickfix"])[0]
    changes = fix["edit"]["changes"]
    changed = applied_edit("import torch", {"changes": {"": changes[notebook.cells[0]]}})
    assert changed == "import torch\nimport torch_npu  # noqa: F401"


def test_a_notebook_with_errors_and_other_languages(client: LspClient) -> None:
    notebook = Notebook(client, ["%%bash\nexport X=(", "x = (", f"import torch\n{CALL}()", ""])
    assert client.diagnostics(notebook.cells[0], 1) == []
    assert lines(client.diagnostics(notebook.cells[1], 1)) == [("NPU001", 0)]
    assert ("NPU101", 1) in lines(client.diagnostics(notebook.cells[2], 1))
    assert re.match("file:", notebook.uri)


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("didChange", {"notebookDocument": {"uri": "x:1", "version": 3}, "change": {}}),
        ("didClose", {"notebookDocument": {"uri": "x:1"}, "cellTextDocuments": []}),
        ("didSave", {"notebookDocument": {"uri": "x:1"}}),
    ],
)
def test_a_notebook_that_is_not_open(
    client: LspClient, uri: str, method: str, params: Message
) -> None:
    client.notify(f"notebookDocument/{method}", params)
    client.open(uri, f"import torch\n{CALL}()\n")
    assert lines(client.diagnostics(uri, 1)) == [("NPU101", 1)]
