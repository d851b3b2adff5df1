"""The fixed examples of the rules run on the emulated NPU."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import npulens_emulator
from commands import PACKAGE_FOLDER
from npulens.catalog.loader import load_catalogue

pytestmark = pytest.mark.emulated

RUNS = Path(__file__).with_name("rule_example_runs.py")
CATALOGUE = load_catalogue()
EXAMPLES = {
    f"{rule.code}/{number}": example.after
    for rule in CATALOGUE.rules.values()
    if rule.file.endswith(".py")
    for number, example in enumerate(rule.examples)
    if example.after is not None
}

NOT_RUN = {
    "NPU605/4": "bitsandbytes, with transformers, is not installed",
    "NPU610/0": "onnxruntime runs models by itself, and with the NPU only there",
    "NPU808/0": "the collator of transformers works on the host, with its tokenizers",
}
"""Examples that cannot run here, and why."""

NOT_EMULATED = {
    "NPU102/1": "torch_npu.npu.NPUGraph",
    "NPU113/0": "torch_npu.npu.NPUGraph",
}
"""Examples that stop at a name which torch_npu has and the emulator does not imitate."""


@pytest.fixture(scope="module")
def results() -> dict[str, str]:
    # The shim changes all of PyTorch, so it comes last.
    order = sorted(EXAMPLES, key=lambda name: (name.startswith(("NPU114", "NPU115")), name))
    wanted = {name: EXAMPLES[name] for name in order if name not in NOT_RUN}
    path = os.pathsep.join([PACKAGE_FOLDER, str(npulens_emulator.STAND_IN)])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(RUNS)],
        input=json.dumps(wanted),
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name not in NOT_RUN])
def test_a_fixed_example_runs(name: str, results: dict[str, str]) -> None:
    if name in NOT_EMULATED:
        last = results[name].splitlines()[-1]
        assert last.endswith(f"{NOT_EMULATED[name]} exists in torch_npu but is not emulated"), last
    else:
        assert not results[name], results[name]


def test_what_is_left_out_is_there() -> None:
    assert NOT_RUN.keys() | NOT_EMULATED.keys() <= EXAMPLES.keys()
