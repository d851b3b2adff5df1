"""Fixtures that several test files share."""

from collections.abc import Iterator
from types import ModuleType

import pytest


@pytest.fixture
def torch_npu() -> Iterator[ModuleType]:
    """The reference operators; `import torch_npu` finds them as long as the test runs."""
    # PyTorch takes seconds to import, which tests of other things need not pay.
    from fused_execution import reference_torch_npu

    with reference_torch_npu() as operators:
        yield operators
