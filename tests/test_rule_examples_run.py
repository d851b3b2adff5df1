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
    for number, example in enumerate(rule.examples)
    if example.after is not None
}

NOT_RUN = {
    **dict.fromkeys(("NPU902/0", "NPU905/0", "NPU906/0"), "no Python"),
    **dict.fromkeys(("NPU609/0",), "starts a program of the NPU"),
    **dict.fromkeys(("NPU202/1", "NPU610/0", "NPU703/1"), "imports what is not installed"),
    **dict.fromkeys(("NPU102/1", "NPU113/0", "NPU502/1"), "graphs and mstx are not emulated"),
    **dict.fromkeys(("NPU716/10", "NPU716/11", "NPU808/0"), "imports what is not installed"),
    "NPU101/1": "pluggable allocators are not emulated",
}
"""Examples that cannot run here, and why."""


@pytest.fixture(scope="module")
def results() -> dict[str, str]:
    # The shim changes all of PyTorch, so it comes last.
    order = sorted(EXAMPLES, key=lambda name: (name.startswith("NPU114"), name))
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
    assert not results[name], results[name]


def test_what_is_left_out_is_there() -> None:
    assert NOT_RUN.keys() <= EXAMPLES.keys()
