"""One project, one answer: whatever its place, however it is named, whichever face is asked."""

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from commands import invoke
from corpora import FOLDER, files
from lsp_client import LspClient

FILES = {
    "train.py": (
        "import os\n\nimport apex\nimport cupy\nimport torch\n\nfrom pack.tools import clean\n\n"
        'os.environ["NCCL_DEBUG"] = "INFO"\n'
        "model = torch.nn.Linear(2, 2).cuda()\n"
        "for batch in torch.utils.data.DataLoader([], batch_size=4):\n"
        "    loss = model(clean(batch.cuda())).sum()\n"
        "    loss.backward()\n"
        "    torch.cuda.empty_cache()\n"
        "    print(loss.item())\n"
    ),
    "conf.yaml": "env:\n  NCCL_DEBUG: INFO\n  CUDA_VISIBLE_DEVICES: 0,1\ndevice: cuda\n",
    "pack/__init__.py": "",
    "pack/tools.py": "import torch\n\n\ndef clean(x: torch.Tensor):\n    return x[x > 0].cuda()\n",
    "my_tpu/train.py": "import apex\nimport torch\n\nx = torch.ones(2).cuda()\n",
}
ABOVE = ["plain", "test/proj", "tests", "jax/x", "my_tpu/y", "hopper", "datasets", "data", "cuda"]
Found = Counter[tuple[str, str, int]]


def make(folder: Path, *, marked: bool = True) -> Path:
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    if marked:
        (folder / "pyproject.toml").write_text('[project]\nname = "x"\n')
    return folder


def checked(project: Path, *arguments: str) -> Found:
    """What `check` finds, by the path in the project, rule and line."""
    _, output, _ = invoke("check", "--no-cache", "--output-format", "json", *arguments)
    found: list[dict[str, Any]] = json.loads(output)
    return Counter((_inside(project, each["path"]), each["code"], each["line"]) for each in found)


def _inside(project: Path, path: str) -> str:
    return Path(path).absolute().relative_to(project).as_posix()


def in_editor(project: Path, names: list[str]) -> Found:
    found: Found = Counter()
    with LspClient() as client:
        client.initialize(workspaceFolders=[{"uri": project.as_uri(), "name": "project"}])
        for name in names:
            uri = (project / name).as_uri()
            language = "yaml" if name.endswith(".yaml") else "python"
            client.open(uri, (project / name).read_text(), language=language)
            for each in client.diagnostics(uri, 1):
                found[name, each["code"], each["range"]["start"]["line"] + 1] += 1
    return found


@pytest.mark.family(5)
@pytest.mark.parametrize("above", ABOVE)
@pytest.mark.parametrize("marked", [True, False])
def test_spellings_of_a_path_and_folders_above_change_nothing(
    here: Path, monkeypatch: pytest.MonkeyPatch, above: str, marked: bool
) -> None:
    reference = make(here / "reference" / "x", marked=marked)
    monkeypatch.chdir(reference)
    expected = checked(reference, ".")
    assert {"NPU901", "NPU602", "NPU105", "NPU912"} <= {rule for _, rule, _ in expected}
    assert any(path == "my_tpu/train.py" for path, _, _ in expected)
    project = make(here / above, marked=marked)
    monkeypatch.chdir(project)
    names = [name for name in FILES if name != "pack/__init__.py"]
    assert checked(project, ".") == expected
    assert checked(project, str(project)) == expected
    assert checked(project, *names) == expected
    by_name: Found = Counter()
    if marked:
        for name in names:
            by_name += checked(project, name)
        assert by_name == expected
    monkeypatch.chdir(here)
    assert checked(project, str(project)) == expected
    if marked:
        assert checked(project, above) == expected


@pytest.mark.parametrize("above", ["plain", "test/proj", "my_tpu/y"])
@pytest.mark.parametrize("marked", [True, False])
def test_the_editor_and_the_command_line_agree(
    here: Path, monkeypatch: pytest.MonkeyPatch, above: str, marked: bool
) -> None:
    project = make(here / above, marked=marked)
    monkeypatch.chdir(project)
    names = [name for name in FILES if name != "pack/__init__.py"]
    assert in_editor(project, names) == checked(project, ".")


@pytest.mark.parametrize("above", ["plain", "test/proj", "my_tpu/y"])
def test_migrating_leaves_the_same_wherever_the_project_is(
    here: Path, monkeypatch: pytest.MonkeyPatch, above: str
) -> None:
    project = make(here / above)
    monkeypatch.chdir(project)
    _, output, _ = invoke("migrate", ".", "-o", str(here / "migrated"))
    assert "error" not in output
    migrated = here / "migrated"
    log = json.loads(next(migrated.rglob("change_log.json")).read_text())
    left = Counter((each["path"], each["code"], each["line"]) for each in log["left"])
    monkeypatch.chdir(migrated)
    assert left == checked(migrated, ".")


@pytest.mark.endurance
def test_real_files_are_judged_alike_below_any_folder(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = files(200, 5)

    def copied(folder: Path) -> Path:
        for path in chosen:
            place = folder / path.relative_to(FOLDER)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)
        (folder / "setup.cfg").write_text("")
        return folder

    reference = copied(here / "x" / "y")
    monkeypatch.chdir(reference)
    expected = checked(reference, ".")
    assert len(expected) > 100
    for above in ("test/proj", "jax/x", "my_tpu/y", "hopper/datasets"):
        project = copied(here / above)
        assert checked(project, str(project)) == expected
        monkeypatch.chdir(project)
        assert checked(project, *(str(p.relative_to(FOLDER)) for p in chosen)) == expected
