"""The index of a project: what modules say to others, and what a change in one of them changes."""

import ast
from dataclasses import replace
from pathlib import Path

import pytest

from lsp_client import LspClient, Message, replacing
from npulens.catalog.loader import load_catalogue
from npulens.catalog.project_model import ProjectFacts
from npulens.workspace.index.contents import Contents
from npulens.workspace.index.fact_memo import FactMemo
from npulens.workspace.index.import_lines import import_statements, imported_modules
from npulens.workspace.index.module_files import ModuleFiles
from npulens.workspace.index.module_summary import summary_of
from npulens.workspace.project.project_facts import project_facts

PROJECT = {
    "common.py": "import torch\nfrom torch import nn\n__all__ = ['torch']\n",
    "boxes.py": (
        "import torch\n\n\n"
        "class Batch:\n"
        "    def __init__(self, rows):\n"
        "        self.rows = rows\n\n"
        "    def cuda(self):\n"
        "        return Batch([row.cuda() for row in self.rows])\n\n\n"
        "def keep(scores, limit):\n"
        "    chosen = torch.sigmoid(scores) > limit\n"
        "    return torch.nonzero(chosen)\n\n\n"
        "def pick_device():\n"
        "    if torch.npu.is_available():\n"
        "        return torch.device('npu')\n"
        "    return torch.device('cuda')\n"
    ),
    "settings.py": "class NetConfig:\n    act: str = 'silu'\n    width: int = 8\n",
    "layers/__init__.py": "from .kernels import fused\n",
    "layers/kernels.py": (
        "try:\n    import fused_cuda\nexcept ImportError:\n    fused_cuda = None\n\n\n"
        "def fused(x):\n    return x\n"
    ),
    "train.py": (
        "from common import *\nfrom boxes import Batch, keep, pick_device\n"
        "from layers import fused\n\n\n"
        "def main():\n"
        "    batch = Batch([]).cuda()\n"
        "    print(keep(batch.rows[0], 0.5), pick_device())\n\n\n"
        "if __name__ == '__main__':\n    main()\n"
    ),
}
BODIES = [
    "    count = 1\n",
    "    pass\n",
    "    for index in range(3):\n        print('cuda', index)\n",
    "    def inner():\n        return 'cuda:0'\n",
    "    with open('notes.txt') as notes:\n        lines = notes.read()\n",
    "    # torch.cuda.synchronize()\n",
    "    text = '''\n    import os\n    '''\n",
]


def write(folder: Path, files: dict[str, str]) -> list[Path]:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return [folder / name for name in files]


def facts(folder: Path, memo: FactMemo | None = None) -> ProjectFacts:
    files = sorted(folder.rglob("*.py"))
    return project_facts(files, [folder], load_catalogue(), Contents(), memo)


def with_body(source: str, body: str) -> list[str]:
    """The source with statements put in front of the body of each of its functions in turn."""
    lines = source.splitlines(keepends=True)
    changed = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            indent = " " * (node.body[0].col_offset - 4)
            text = "".join(indent + line for line in body.splitlines(keepends=True))
            at = node.body[0].lineno - 1
            changed.append("".join([*lines[:at], text, *lines[at:]]))
    return changed


def test_the_project_has_something_to_know_of_each_kind(tmp_path: Path) -> None:
    write(tmp_path, PROJECT)
    found = facts(tmp_path)
    members = found.members
    assert {name for _, name, _ in members.libraries} >= {"torch"}
    assert {name for _, name, _ in members.method_overrides} == {"Batch"}
    assert {name for _, name, _ in members.returned_shapes} == {"keep"}
    assert {name for _, name, _ in members.activations} == {"NetConfig"}
    assert {name for _, name, _ in members.device_functions} == {"pick_device"}
    assert found.extensions.foreign == {"fused_cuda"}


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("name", ["boxes.py", "layers/kernels.py", "train.py"])
def test_a_change_inside_a_function_changes_nothing_for_others(
    tmp_path: Path, name: str, body: str
) -> None:
    write(tmp_path, PROJECT)
    memo = FactMemo()
    before = facts(tmp_path, memo)
    changed = [each for each in with_body(PROJECT[name], body) if is_python(each)]
    assert changed
    for text in changed:
        (tmp_path / name).write_text(text, encoding="utf-8")
        assert without_computations(facts(tmp_path, memo)) == without_computations(before), text


def without_computations(known: ProjectFacts) -> ProjectFacts:
    """All but what functions compute with tensors."""
    return replace(known, members=replace(known.members, computations=frozenset()))


def test_what_a_function_computes_is_known_to_others_without_comments(tmp_path: Path) -> None:
    write(tmp_path, PROJECT)
    before = facts(tmp_path).members.computations
    assert {name for _, name, _ in before} == {"keep"}
    inside = "    chosen = torch.sigmoid(scores) > limit\n"
    for text, is_same in (("    # chosen well\n", True), ("    scores = 2 * scores\n", False)):
        changed = PROJECT["boxes.py"].replace(inside, f"{text}{inside}")
        (tmp_path / "boxes.py").write_text(changed, encoding="utf-8")
        assert (facts(tmp_path).members.computations == before) is is_same


def is_python(source: str) -> bool:
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("common.py", "import torch\n", "torch = None\n"),
        ("boxes.py", "class Batch", "class Rows"),
        ("boxes.py", "return torch.nonzero(chosen)", "return chosen"),
        ("settings.py", "'silu'", "'gelu'"),
    ],
)
def test_a_change_of_what_others_see_changes_it(
    tmp_path: Path, name: str, old: str, new: str
) -> None:
    write(tmp_path, PROJECT)
    before = facts(tmp_path)
    (tmp_path / name).write_text(PROJECT[name].replace(old, new), encoding="utf-8")
    assert facts(tmp_path) != before


def test_an_editor_analyses_no_other_document_for_it(tmp_path: Path) -> None:
    write(tmp_path, {**PROJECT, "pyproject.toml": ""})
    script, boxes, common = (tmp_path / name for name in ("train.py", "boxes.py", "common.py"))
    with LspClient() as client:
        client.initialize(rootUri=tmp_path.as_uri())
        client.open(script.as_uri(), PROJECT["train.py"] + "torch.cuda.synchronize()\n")
        client.open(boxes.as_uri(), PROJECT["boxes.py"])
        client.open(common.as_uri(), PROJECT["common.py"])
        assert codes(client.diagnostics(script.as_uri(), 1)) == ["NPU101"]

        asked = "    if torch.npu"
        inside = PROJECT["boxes.py"].replace(asked, f"    count = 1\n{asked}")
        assert sent_for(script, client, saved=(boxes, inside)) == []
        assert sent_for(script, client, saved=(common, "torch = None\n")) == [[]]


def sent_for(document: Path, client: LspClient, saved: tuple[Path, str]) -> list[list[str]]:
    """What is published of a document, by codes, when another one is changed and saved."""
    path, text = saved
    client.forget()
    client.change(path.as_uri(), 2, replacing((0, 0), (1000, 0), text))
    path.write_text(text, encoding="utf-8")
    client.save(path.as_uri())
    uri = document.as_uri()
    for each in (path.as_uri(), uri):
        client.code_actions(each, (0, 0), (0, 0))  # waits until all is looked up
    return [codes(sent["diagnostics"]) for sent in client.published if sent["uri"] == uri]


def codes(diagnostics: list[Message]) -> list[str]:
    return [each["code"] for each in diagnostics]


# Which files imports run, read from bytes and from the tree


def test_imports_are_read_as_the_tree_has_them() -> None:
    """Over all of npulens: the bytes say all that the statements say, in their order."""
    import npulens

    for path in sorted(Path(npulens.__file__).parent.rglob("*.py")):
        content = Contents().of(path)
        named = [name for names, _, _ in import_statements(content.data) for name in names]
        expected = []
        for each in summary_of(content, FactMemo()).imports:
            dots = "." * max(each.level, 0)
            if each.level >= 0:
                expected.append(dots + each.module)
            joint = "." if each.module else ""
            expected += [f"{dots}{each.module}{joint}{name}" for name, _ in each.names]
        rest = iter(named)  # texts may speak of imports, too
        assert all(name in rest for name in expected), path
        assert set(named) <= set(imported_modules(content.data))


def test_each_import_has_its_own_place() -> None:
    source = b"import os\nimport a\nfrom b import c\n# import d\nimport e\n"
    places = [(names, at) for names, _, at in import_statements(source)]
    assert [(names[-1], source[at : at + 6]) for names, at in places] == [
        (name, b"import") for name in ("os", "a", "b.c", "e")
    ]
    assert [at for _, at in places] == [0, 10, 26, 46]


@pytest.mark.parametrize(
    ("name", "importer", "run"),
    [
        ("tools", "/p/train.py", ["/p/tools/__init__.py"]),
        ("tools.boxes", "/p/train.py", ["/p/tools/__init__.py", "/p/tools/boxes.py"]),
        (".boxes", "/p/tools/lines.py", ["/p/tools/boxes.py"]),
        ("..train", "/p/tools/lines.py", ["/p/train.py"]),
        ("plain.net", "/p/train.py", ["/p/plain/net.py"]),
        ("deep", "/p/train.py", ["/p/src/deep.py"]),
        ("numpy", "/p/train.py", []),
        (".", "/p/tools/lines.py", []),
    ],
)
def test_which_files_an_import_runs(name: str, importer: str, run: list[str]) -> None:
    names = ["train", "tools/__init__", "tools/boxes", "tools/lines", "plain/net", "src/deep"]
    files = ModuleFiles(f"/p/{each}.py" for each in names)
    assert list(files.run_by(name, importer, ["/p", "/p/src"])) == run
