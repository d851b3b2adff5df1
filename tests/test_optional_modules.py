"""Modules of kernels that a project imports with care have nothing to tell of their libraries."""

# ruff: noqa: E501

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from npulens.cli.main import cli

KERNEL = "import triton\nimport triton.language as tl\n\ndef scale(x):\n    return x\n"

CAREFUL = {
    "tried": {
        "model.py": "try:\n    from .kernel import scale\nexcept ImportError:\n    scale = None\n"
    },
    "asked": {"model.py": "if is_triton_available():\n    from .kernel import scale\n"},
    "asked in a function": {
        "model.py": "def f(x):\n    if accelerator().is_triton_supported():\n"
        "        from pack.kernel import scale\n        return scale(x)\n    return x * 2\n"
    },
    "its own test imports it plainly": {
        "model.py": "try:\n    from pack import kernel\nexcept ImportError:\n    kernel = None\n",
        "tests/test_kernel.py": "from pack.kernel import scale\n",
    },
    "in several lines": {
        "model.py": "try:\n    from pack import (\n        other,\n        kernel,\n    )\nexcept ImportError:\n    pass\n"
    },
}
PLAIN = {
    "nobody imports it": {"model.py": "import torch\n"},
    "plainly": {"model.py": "from .kernel import scale\n"},
    "plainly by one of two": {
        "model.py": "try:\n    from .kernel import scale\nexcept ImportError:\n    scale = None\n",
        "other.py": "from pack.kernel import scale\n",
    },
    "failing is the end": {
        "model.py": "try:\n    from .kernel import scale\nexcept ImportError:\n    raise\n"
    },
    "where the library is not there": {
        "model.py": "if not is_triton_available():\n    from .kernel import scale\n"
    },
    "another module of that name": {
        "model.py": "try:\n    from elsewhere.kernel import scale\nexcept ImportError:\n    scale = None\n"
    },
}


@pytest.mark.parametrize(
    ("files", "found"),
    [*((files, False) for files in CAREFUL.values()), *((files, True) for files in PLAIN.values())],
    ids=[*CAREFUL, *PLAIN],
)
def test_a_module_is_as_needed_as_its_importers(
    files: dict[str, str], found: bool, tmp_path: Path
) -> None:
    package = tmp_path / "pack"
    (package / "tests").mkdir(parents=True)
    for name, text in {"__init__.py": "", "kernel.py": KERNEL, **files}.items():
        (package / name).write_text(text, encoding="utf-8")
    assert ("NPU604" in _codes(package / "..")) == found


def test_a_package_is_as_careful_as_those_who_import_it(tmp_path: Path) -> None:
    inner = tmp_path / "pack" / "kernels"
    inner.mkdir(parents=True)
    (tmp_path / "pack" / "__init__.py").touch()
    (inner / "__init__.py").write_text("from .scaling import scale\n", encoding="utf-8")
    (inner / "scaling.py").write_text(KERNEL, encoding="utf-8")
    user = tmp_path / "pack" / "model.py"
    user.write_text("if is_triton_available():\n    from .kernels import scale\n", encoding="utf-8")
    assert "NPU604" not in _codes(tmp_path)
    user.write_text("from .kernels import scale\n", encoding="utf-8")
    assert "NPU604" in _codes(tmp_path)


def _codes(folder: Path) -> set[str]:
    arguments = ["check", str(folder.resolve()), "--output-format", "json", "--select", "NPU6"]
    result = CliRunner().invoke(cli, arguments)
    return {finding["code"] for finding in json.loads(result.stdout)}
