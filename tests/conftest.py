"""Fixtures that several test files share."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a family of cases leave some for the default run; CI runs the others with `endurance`."""
    families: dict[object, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("family") is not None:
            families[item.nodeid.partition("[")[0]].append(item)
    for members in families.values():
        marker = members[0].get_closest_marker("family")
        assert marker is not None
        [number] = marker.args
        kept = {index * (len(members) - 1) // max(number - 1, 1) for index in range(number)}
        for index, item in enumerate(members):
            if index not in kept:
                item.add_marker(pytest.mark.endurance)


@pytest.fixture
def torch_npu() -> Iterator[ModuleType]:
    """The reference operators; `import torch_npu` finds them as long as the test runs."""
    # PyTorch takes seconds to import, which tests of other things need not pay.
    from fused_execution import reference_torch_npu

    with reference_torch_npu() as operators:
        yield operators


@pytest.fixture
def inner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with another around it, which is the current one."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is the current one, and an environment that asks for nothing."""
    from commands import PACKAGE_FOLDER

    monkeypatch.chdir(tmp_path)
    for variable in ("NPULENS_LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG", "NO_COLOR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PYTHONPATH", PACKAGE_FOLDER)
    return tmp_path
