"""Versions of packages that no release for the NPU fits."""

import pytest

from helpers import CATALOGUE, code
from helpers import check as check_python
from npulens.workspace.runs.run import Checker
from npulens.workspace.settings.configuration import Configuration
from test_launch_files import check

WITHOUT = [
    *("torch==1.12.1", "torch == 1.7", "torch===1.13.0", "torch==2.0.0", "torch==2.3.0"),
    *("torch==2.1.2", "torch<1.11", "torch<=1.10.2", "torch>=1.12,<2", "torch~=1.13.0"),
    *("torch (>=1.12, <2.0)", "torch==1.13.*", "torch>=1.8,<1.13,!=1.11.0"),
    *("torchvision==0.13.1", "torchvision<0.10", "torchaudio==0.13.1"),
    *("transformers==4.28.1", "transformers<=4.31", "transformers>=4.20,<4.30.0"),
    *("accelerate==0.20.3", "peft==0.3.0", "mmcv-full==1.6.2", "mmcv==1.4.0"),
]
WITH = [
    *("torch", "torch>=1.7", "torch==2.1.0", "torch==2.8.0", "torch==2.9.1", "torch<3"),
    *("torch==1.11.0", "torch>=2,<2.5", "torch!=2.0.0", "torch==2.3.*", "torch~=2.1"),
    *("torch==2.1.0+cpu", "torch==$TORCH", "torch<2.2,>=2", "torchvision>=0.13"),
    *("torchvision==0.16.0", "torchaudio==2.1.0", "torchmetrics==0.11.4", "torch-geometric==1.7"),
    *("transformers==4.36.2", "transformers>=4.28", "transformers<5", "transformers~=4.28"),
    *("accelerate==0.34.2", "peft==0.10.0", "mmcv==2.0.1", "mmcv-full==1.7.0"),
]
IN_FILES = [
    ("requirements.txt", "numpy\n⟦NPU920:torch==1.12.1⟧  # for the models\n"),
    ("environment.yml", "dependencies:\n  - ⟦NPU920:python=3.6⟧\n  - ⟦NPU920:pytorch=1.10⟧\n"),
    ("environment.yml", "dependencies:\n  - ⟦NPU920:pytorch=1.13.1=py3.9_0⟧\n  - python=3.10\n"),
    (
        "environment.yml",
        "dependencies:\n  - python=3.8.8\n  - pytorch=2.3\n  - pytorch=2\n  - python>=3.6\n",
    ),
    ("pyproject.toml", '[project]\ndependencies = ["⟦NPU920:torch ~= 1.13.0⟧", "torch>=1.8"]\n'),
    ("pyproject.toml", '[project]\nrequires-python = "==3.6"\n'),
    ("pyproject.toml", '[tool.poetry.dependencies]\n⟦NPU920:torch = "^1.13"⟧\npython = "^3.7"\n'),
    ("pyproject.toml", '[tool.poetry.dependencies]\n⟦NPU920:torch = "~1.13"⟧\n'),
    ("environment.yml", "dependencies:\n  - ⟦NPU920:python=3.6.13⟧\n  - pytorch\n"),
    ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = "^2.0"\ntorchvision = "*"\n'),
    ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = {version = "^1.7 || ^2.0"}\n'),
    ("setup.cfg", "[options]\ninstall_requires =\n    ⟦NPU920:torch==1.10⟧\n"),
    ("Dockerfile", "FROM python:3.10\nRUN pip install ⟦NPU920:torch==1.12.1⟧ numpy\n"),
    ("install.sh", 'pip install "⟦NPU920:torch==1.12.1⟧"\n'),
    ("install.sh", "conda install -y ⟦NPU920:pytorch==1.12.1⟧ ⟦NPU920:torchvision==0.13.1⟧\n"),
]
SETUP_FILES = [
    """
        from setuptools import setup

        setup(
            name="models",
            install_requires=["numpy", "⟦NPU920:torch==1.10.0⟧", '⟦NPU905:flash-attn⟧; x'],
            extras_require={"train": ["⟦NPU905:xformers⟧"], "gpu": ["apex"]},
            python_requires=">=3.6",
        )
    """,
    """
        import setuptools

        install_requires = ["torch"]
        EXTRAS_REQUIRE = {"cuda": ["cupy"], "train": ["⟦NPU905:cupy⟧"]}
        setuptools.setup(install_requires=install_requires + ["⟦NPU920:torch>=1.12,<2⟧"])
    """,
    """
        def setup(install_requires):
            print(install_requires)

        setup(install_requires=["torch==1.10.0"])
    """,
]


@pytest.mark.parametrize("package", WITHOUT)
def test_versions_that_admit_no_release_are_found(package: str) -> None:
    check("requirements.txt", f"numpy\n⟦NPU920:{package}⟧\n")


@pytest.mark.parametrize("package", WITHOUT)
def test_the_search_for_words_misses_none(package: str) -> None:
    report = Checker(CATALOGUE, Configuration()).check_bytes("requirements.txt", package.encode())
    assert [f.rule.code for f in report.findings] == ["NPU920"]


@pytest.mark.parametrize("package", WITH)
def test_versions_that_admit_one_are_not(package: str) -> None:
    check("requirements.txt", f"numpy\n{package}\n")


@pytest.mark.parametrize(("file", "text"), IN_FILES)
def test_every_list_and_command_is_read(file: str, text: str) -> None:
    check(file, text)


@pytest.mark.parametrize("text", SETUP_FILES)
def test_a_setup_file_is_read(text: str) -> None:
    check_python(code(text))
