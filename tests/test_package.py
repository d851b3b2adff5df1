"""What is shipped: the wheel, and the example."""

import ast
import importlib.util
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from npulens import __version__
from npulens.cli.main import cli

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "train_gpu.py"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    for tool in ("build", "hatchling"):
        if importlib.util.find_spec(tool) is None:
            pytest.skip(f"{tool} is not installed, so no wheel can be built without a network")
    folder = tmp_path_factory.mktemp("dist")
    built = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    [file] = folder.iterdir()
    assert file.name == f"npulens-{__version__}-py3-none-any.whl"
    return zipfile.ZipFile(file)


def test_wheel_has_every_rule_file(wheel: zipfile.ZipFile) -> None:
    files = [path for path in ROOT.glob("rules/*/*") if path.suffix in (".json", ".py")]
    files.append(ROOT / "rules" / "guide.toml")
    in_repository = {f"npulens/{p.relative_to(ROOT).as_posix()}": p.read_bytes() for p in files}
    in_wheel = {n: wheel.read(n) for n in wheel.namelist() if n.startswith("npulens/rules/")}
    rules = json.loads(in_wheel.pop("npulens/rules/compiled.json"))
    assert in_wheel == in_repository
    assert "npulens/rules/fused/rms_norm.py" in in_wheel
    sources = sorted(ROOT.glob("rules/*/*.toml"))
    assert [label for label, _ in rules["files"]] == [
        p.relative_to(ROOT).as_posix() for p in sources
    ]


def test_wheel_has_the_messages_of_both_languages(wheel: zipfile.ZipFile) -> None:
    compiled = json.loads(wheel.read("npulens/messages/compiled.json"))
    assert [label for label, _ in compiled["files"]] == ["messages/en.toml", "messages/zh.toml"]
    assert [name for name in wheel.namelist() if name.startswith("npulens/messages/")] == [
        "npulens/messages/compiled.json"
    ]


def test_wheel_has_the_pages_of_the_rules(wheel: zipfile.ZipFile) -> None:
    pages = (ROOT / "docs" / "rules").rglob("*.md")
    expected = {p.relative_to(ROOT / "docs" / "rules").as_posix(): p.read_bytes() for p in pages}
    place = "npulens/rule_pages/"
    found = {n[len(place) :]: wheel.read(n) for n in wheel.namelist() if n.startswith(place)}
    assert found == expected
    assert {"NPU101.md", "zh/NPU101.md"} <= found.keys()


def test_wheel_has_every_module_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    server = ROOT / "server"
    packages = ("npulens", "npulens_emulator")
    files = [path for package in packages for path in (server / package).rglob("*.py")]
    files += (server / "npulens" / "report" / "templates").iterdir()
    modules = {path.relative_to(server).as_posix() for path in files}
    metadata = f"npulens-{__version__}.dist-info/"
    folders = (metadata, "npulens/rules/", "npulens/messages/", "npulens/rule_pages/")
    rest = {n for n in wheel.namelist() if not n.startswith(folders)}
    data = {"npulens/py.typed", "npulens_emulator/py.typed", "npulens_emulator/names.json"}
    assert rest - data == modules
    assert data <= rest
    assert "npulens/report/templates/page.html" in modules
    assert "npulens_emulator/stand_in/torch_npu/__init__.py" in rest
    assert not [name for name in rest if name.startswith("torch_npu")]


def test_wheel_says_what_it_is(wheel: zipfile.ZipFile) -> None:
    folder = f"npulens-{__version__}.dist-info"
    names = wheel.namelist()
    assert f"{folder}/licenses/LICENSE" in names
    assert "npulens = npulens.cli.main:main" in wheel.read(f"{folder}/entry_points.txt").decode()
    metadata = wheel.read(f"{folder}/METADATA").decode()
    assert "License-Expression: Apache-2.0" in metadata
    assert "Requires-Python: >=3.10" in metadata


def test_example_has_many_different_problems() -> None:
    result = CliRunner().invoke(cli, ["check", "--output-format", "json", str(EXAMPLE)])
    found = json.loads(result.stdout)
    codes = {finding["code"] for finding in found}
    assert len(codes) >= 15, sorted(codes)
    assert len({finding["message"] for finding in found}) >= 30
    assert codes.isdisjoint({"NPU001", "NPU002", "NPU003", "NPU004"})
    families = {finding["family"] for finding in found}
    assert families >= {"device", "parallel", "precision", "layout", "api", "launch"}


def test_example_is_valid_python_of_the_oldest_version() -> None:
    ast.parse(EXAMPLE.read_text(encoding="utf-8"), feature_version=(3, 10))
