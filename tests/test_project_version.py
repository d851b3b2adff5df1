"""Which PyTorch release a project is meant for, read off its files."""

from pathlib import Path

import pytest

from npulens.catalog.model import TorchVersion
from npulens.workspace.settings.configuration import find_configuration
from npulens.workspace.settings.project_version import (
    NEWEST,
    OLDEST,
    newest_allowed,
    project_version,
)


@pytest.mark.parametrize(
    ("specifiers", "minor"),
    [
        (">=2.1", 13),
        (">=2.1,<2.9", 8),
        (">=2.1, <=2.9", 9),
        ("<2.7.1", 7),
        ("<2.7", 6),
        ("==2.1.0", 6),
        ("==2.7.1", 7),
        ("==2.7.*", 7),
        ("==2.8.0+cpu", 8),
        ("=2.9", 9),
        ("~=2.6", 13),
        ("~=2.6.0", 6),
        ("!=2.13.*", 12),
        ("!=2.13.0", 13),
        ("^2.1", 13),
        ("~2.7", 7),
        ("<2", 6),
        (">=2.20", 13),
        ("==3.0", 13),
        (">2.7,<2.8", 7),
    ],
)
def test_specifiers(specifiers: str, minor: int) -> None:
    assert newest_allowed([specifiers]) == TorchVersion(2, minor)


def test_of_several_requirements_all_count_or_else_any() -> None:
    assert newest_allowed([">=2.6", "<2.10"]) == TorchVersion(2, 9)
    assert newest_allowed(["==2.6.0", "==2.8.0"]) == TorchVersion(2, 8)


@pytest.mark.parametrize(
    ("files", "minor"),
    [
        ({"requirements.txt": "numpy\ntorch==2.7.1  # as on the cluster\n"}, 7),
        ({"requirements.txt": "torch>=2.1\n"}, 13),
        ({"requirements.txt": "torch==2.1.0\n"}, 6),
        ({"requirements.txt": "torch<2.9; python_version < '3.12'\n"}, 8),
        ({"requirements.txt": "torch[opt] == 2.8.0\n"}, 8),
        ({"requirements.txt": "torch-npu==2.7.1\n"}, 7),
        ({"requirements.txt": "torch_npu==2.7.1.post2\n"}, 7),
        ({"requirements-dev.txt": "torch==2.9.1\n"}, 9),
        ({"requirements/base.txt": "torch==2.9.1\n"}, 9),
        ({"pyproject.toml": '[project]\nname = "x"\ndependencies = ["torch>=2.6,<2.8"]\n'}, 7),
        (
            {
                "pyproject.toml": '[project]\nname = "x"\n[project.optional-dependencies]\n'
                'train = ["torch==2.10.0"]\n'
            },
            10,
        ),
        ({"pyproject.toml": '[dependency-groups]\ndev = ["torch==2.11.0", {a = "b"}]\n'}, 11),
        ({"pyproject.toml": '[tool.poetry.dependencies]\ntorch = "~2.7"\n'}, 7),
        ({"pyproject.toml": '[tool.poetry.dependencies]\ntorch = {version = "2.8.0"}\n'}, 8),
        ({"pyproject.toml": '[tool.poetry.group.a.dependencies]\ntorch = "^2.1"\n'}, 13),
        ({"setup.cfg": "[options]\ninstall_requires =\n    numpy\n    torch>=2.6,<2.9\n"}, 8),
        ({"setup.cfg": "[options.extras_require]\ngpu =\n    torch==2.12.0\n"}, 12),
        ({"setup.py": "raise SystemExit\nsetup(install_requires=['torch>=2.1,<=2.7'])\n"}, 7),
        ({"environment.yml": "dependencies:\n  - pytorch=2.8\n"}, 8),
        ({"environment.yml": "dependencies:\n  - pytorch::pytorch>=2.6,<2.8\n"}, 7),
        ({"environment.yml": "dependencies:\n  - pip:\n    - torch==2.9.0\n"}, 9),
        (
            {
                "pyproject.toml": '[project]\ndependencies=["torch<2.8"]',
                "requirements.txt": "torch",
            },
            7,
        ),
        ({"pyproject.toml": "[project]\n", "requirements.txt": "torch==2.9"}, 9),
    ],
)
def test_files(tmp_path: Path, files: dict[str, str], minor: int) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    inner = tmp_path / "package" / "models"
    inner.mkdir(parents=True)
    for start in (tmp_path, inner):
        assert project_version(start) == TorchVersion(2, minor)
        assert find_configuration(start).target.torch_version == TorchVersion(2, minor)


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"requirements.txt": ""},
        {"requirements.txt": "numpy\ntorchvision==0.20\npytorch-lightning>=2.7\n"},
        {"requirements.txt": "# torch==2.7\n"},
        {"requirements.txt": "torch\n"},
        {"requirements.txt": "torch @ https://example.org/torch-2.7.whl\n"},
        {"pyproject.toml": "[project\n"},
        {"pyproject.toml": "[project]\ndependencies = 3\n"},
        {"pyproject.toml": "project = 3\n[tool]\npoetry = 1\n"},
        {"setup.cfg": "not a section\n"},
        {"setup.py": "setup(\n"},
        {"setup.py": "'''Needs torch>=2.7 and more.'''\n"},
        {"environment.yml": "name: torch==2.7\n"},
    ],
)
def test_files_that_say_nothing(tmp_path: Path, files: dict[str, str]) -> None:
    (tmp_path / ".git").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert project_version(tmp_path) is None
    assert find_configuration(tmp_path).target.torch_version == NEWEST


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_bytes(b"torch==2.7\xff\n")
    (tmp_path / "setup.py").mkdir()
    assert project_version(tmp_path) is None
    assert project_version(tmp_path / "missing" / ("x" * 300)) is None


def test_the_nearest_project_counts(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==2.7.0\n")
    inner = tmp_path / "examples"
    inner.mkdir()
    assert project_version(inner) == TorchVersion(2, 7)
    (inner / "requirements.txt").write_text("torch==2.9.0\n")
    assert project_version(inner) == TorchVersion(2, 9)
    (inner / "requirements.txt").write_text("numpy\n")
    assert project_version(inner) is None


def test_configuration_comes_first(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==2.7.0\n")
    (tmp_path / "npulens.toml").write_text('language = "zh"\n')
    assert find_configuration(tmp_path).target.torch_version == TorchVersion(2, 7)
    (tmp_path / "npulens.toml").write_text('torch-version = "2.10"\n')
    configuration = find_configuration(tmp_path)
    assert configuration.target.torch_version == TorchVersion(2, 10)
    assert configuration.project_version is None


def test_the_ends_are_those_of_the_tables() -> None:
    from tests.helpers import CATALOGUE

    assert (CATALOGUE.native.oldest, CATALOGUE.native.newest) == (OLDEST, NEWEST)
