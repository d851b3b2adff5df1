"""Training scripts as they are written for GPUs, migrated by npulens alone and run.

Each script in `tests/training_scripts` runs twice: as it is, with CUDA redirected to the CPU, and
migrated, on the emulated NPU. Losses and the norms of all parameters after each step have to agree.
"""

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from commands import PACKAGE_FOLDER, command

pytestmark = pytest.mark.emulated

FOLDER = Path(__file__).with_name("training_scripts")
DOUBLES = FOLDER / "doubles"

FLOAT32 = 1e-5
"""Operations are the same, but for the order in which a sum is taken."""
HALF = 2e-2
"""The CPU casts other operators than the NPU, and each cast rounds to 8 or 11 bits."""


class Script(NamedTuple):
    """How a script is run, and how far it may differ."""

    options: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    tolerance: float = FLOAT32
    lacks: tuple[str, ...] = ()
    """What must not be left in the migrated text."""


SCRIPTS = {
    "imagenet_ddp": Script(("--processes", "1")),
    "mnist": Script(),
    "char_lstm": Script(),
    "gpt_flash": Script(tolerance=HALF, lacks=("flash_attn",)),
    "llama": Script(),
    "diffusion_unet": Script(tolerance=HALF),
    "detection": Script(),
    "gan": Script(arguments=("--cuda",)),
    "rl_actor_critic": Script(),
    "apex_amp": Script(tolerance=HALF, lacks=("apex",)),
    "data_parallel": Script(("--processes", "1"), lacks=("DataParallel(model, device_ids=list",)),
    "trainer_like": Script(tolerance=HALF),
    "word_notebook": Script(("--steps", "0"), tolerance=HALF),
}


def verified(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str, path: str = ""
) -> tuple[int, dict[str, Any]]:
    monkeypatch.chdir(folder)
    environment = {"PYTHONPATH": os.pathsep.join([PACKAGE_FOLDER, path])}
    options = ("verify", "--output-format", "json", *arguments)
    done = command(*options, environment=environment, timeout=300)
    assert done.stdout, done.stderr.decode()
    return done.returncode, json.loads(done.stdout)


def copied(name: str, folder: Path) -> Path:
    """A script or notebook in a folder of its own, under a common name."""
    (source,) = FOLDER.glob(f"{name}.*")
    target = folder / f"train{source.suffix}"
    target.write_bytes(source.read_bytes())
    return target


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_migrated_script_trains_as_the_original_does(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = SCRIPTS[name]
    target = copied(name, tmp_path)
    content = target.read_bytes()
    tolerance = ("--tolerance", str(script.tolerance))
    options = ("--steps", "3", *script.options, "--unsafe-fixes", "--compare", *tolerance)
    arguments = (*options, target.name, "--", *script.arguments)
    code, found = verified(tmp_path, monkeypatch, *arguments, path=str(DOUBLES))
    status = "passed" if "0" in script.options else "limit-reached"
    assert (code, found["status"]) == (0, status), found
    probes = {call["name"] for call in found["cuda_calls"]}
    assert not probes, found["cuda_calls"]
    assert not found["comparison"]["problem"], found["comparison"]
    assert found["comparison"]["divergence"] is None
    assert found["comparison"]["steps"] >= 3
    assert found["comparison"]["losses"] >= 3
    assert len(set(found["losses"])) > 1
    assert [*tmp_path.iterdir()] == [target]
    assert target.read_bytes() == content


@pytest.mark.parametrize("name", [name for name in SCRIPTS if SCRIPTS[name].lacks])
def test_libraries_for_gpus_are_gone_from_the_migrated_script(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    for absent in SCRIPTS[name].lacks:
        assert absent in text
    (tmp_path / "train.py").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    environment = {"PYTHONPATH": PACKAGE_FOLDER}
    command("fix", "--unsafe-fixes", "--allow-dirty", "train.py", environment=environment)
    code = (tmp_path / "train.py").read_text(encoding="utf-8").partition('"""\n')[2]
    for absent in SCRIPTS[name].lacks:
        assert absent not in code


def test_two_processes_train_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same script with two ranks, whose batch norm is synchronised."""
    text = (FOLDER / "imagenet_ddp.py").read_text(encoding="utf-8")
    (tmp_path / "train.py").write_text(text, encoding="utf-8")
    options = ("--processes", "2", "--unsafe-fixes", "--steps", "0", "train.py")
    code, found = verified(tmp_path, monkeypatch, *options)
    assert (code, found["status"], found["steps"]) == (0, "passed", 3), found
