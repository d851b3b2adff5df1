"""Training scripts with instruments compute what they compute without, on the emulated NPU."""

from pathlib import Path

import pytest

from commands import invoke
from npulens.fixes.instruments.inserting import instrumented
from npulens.fixes.instruments.known_instruments import BY_NAME
from npulens.fixes.scripts import UnclearError
from test_training_scripts import DOUBLES, SCRIPTS, copied, verified

pytestmark = pytest.mark.emulated

TOGETHER = {
    "measured": ("profiler", "step-time", "silent-errors"),
    "compared": ("dump", "config-check"),
}
WATCHED = ("monitor", "determinism")
REFUSED = {
    *(("gan", "config-check"), ("gan", "monitor")),
}
"""Scripts with several optimizers."""


@pytest.mark.parametrize("name", [name for name in SCRIPTS if name != "word_notebook"])
def test_losses_are_the_same(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = SCRIPTS[name]
    target = copied(name, tmp_path)
    original = target.read_bytes()
    arguments = ("--unsafe-fixes", *script.options, "train.py", "--", *script.arguments)
    before = verified(tmp_path, monkeypatch, *arguments, path=str(DOUBLES))[1]
    assert before["losses"]
    monkeypatch.chdir(tmp_path)
    for kinds in (
        *TOGETHER.values(),
        *([WATCHED] if name in ("mnist", "llama", "gpt_flash") else []),
    ):
        for kind in kinds:
            code, _, errors = invoke("instrument", kind, "train.py")
            assert (code == 0) is ((name, kind) not in REFUSED), errors
        after = verified(tmp_path, monkeypatch, *arguments, path=str(DOUBLES))[1]
        assert (len(after["losses"]), after["status"]) == (len(before["losses"]), before["status"])
        if "determinism" not in kinds:  # which seeds anew
            assert after["losses"] == before["losses"]
        assert invoke("instrument", "all", "train.py", "--remove")[0] == 0
        assert target.read_bytes() == original


TRAINING = """\
import torch
import torch_npu
from torch import nn

model = nn.Linear(4, 2).npu()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    loss = model(torch.ones(3, 4, device="npu")).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_a_profile_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The emulated profiler writes what it recorded where the instrument says."""
    (tmp_path / "train.py").write_text(TRAINING)
    monkeypatch.chdir(tmp_path)
    invoke("instrument", "profiler", "train.py")
    code, _ = verified(tmp_path, monkeypatch, "--steps", "0", "--here", "--as-is", "train.py")
    assert code == 0
    assert [*(tmp_path / "npu_profile").iterdir()]


def test_what_refuses_says_so() -> None:
    for name, kind in sorted(REFUSED):
        path = Path(__file__).parent / "training_scripts" / f"{name}.py"
        with pytest.raises(UnclearError):
            instrumented(path.read_text(), BY_NAME[kind])
