"""What becomes of the arguments of a script that is verified."""

import pytest

from npulens.catalog.loader import load_catalogue
from npulens.catalog.model import MigrationStyle
from npulens.workspace.settings.configuration import Configuration
from npulens.workspace.verifying.run_arguments import RunArguments, migrated_arguments

CATALOGUE = load_catalogue()
CHANGED = {
    ("--device=cuda",): ("--device=npu",),
    ("--device", "cuda:1", "-x", "a b"): ("--device", "npu:1", "-x", "a b"),
    ("--backend", "nccl"): ("--backend", "hccl"),
    ("--name=it's", "$HOME", "--device=cuda"): ("--name=it's", "$HOME", "--device=npu"),
    ("cuda", "--epochs", "1"): ("cuda", "--epochs", "1"),
    ("--config", "cuda.yaml"): ("--config", "cuda.yaml"),
    (): (),
}


def migrated(arguments: tuple[str, ...], style: MigrationStyle) -> RunArguments:
    return migrated_arguments(arguments, Configuration(style=style), CATALOGUE)


@pytest.mark.parametrize("style", [MigrationStyle.NPU, MigrationStyle.DEVICE_AGNOSTIC])
@pytest.mark.parametrize("arguments", CHANGED)
def test_they_name_the_npu(arguments: tuple[str, ...], style: MigrationStyle) -> None:
    """A run on an NPU is started for one in every style but that of the shim."""
    found = migrated(arguments, style)
    assert found.run == CHANGED[arguments]
    pairs = zip(arguments, found.run, strict=True)
    assert found.changed == tuple(pair for pair in pairs if pair[0] != pair[1])
    assert not found.left


def test_the_shim_takes_the_names_of_cuda() -> None:
    given = ("--device=cuda", "--backend", "nccl")
    assert migrated(given, MigrationStyle.RUNTIME_SHIM) == RunArguments(given)


def test_what_has_no_other_value_is_named() -> None:
    found = migrated(("--accelerator", "gpu"), MigrationStyle.NPU)
    assert found.run == ("--accelerator", "gpu")
    [(argument, finding)] = found.left
    assert (argument, finding.rule.code) == ("gpu", "NPU902")
