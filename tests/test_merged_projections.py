"""`fix --merge-projections` and the editor's action: one layer for two that an operator joins."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from commands import invoke
from fused_execution import load_module, reference_torch_npu
from lsp_client import LspClient, applied_edit

SWIGLU = """\
import torch
import torch.nn.functional as F
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, width: int = 8, inner: int = 12) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(width, inner, bias=False)
        self.up_proj = nn.Linear(width, inner, bias=False)
        self.down_proj = nn.Linear(inner, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))
"""
MERGED = '''\
import torch
import torch_npu
from torch import nn


def _join_feedforward_gate_up_proj(module, state_dict, prefix, *_):
    """Read checkpoints that have "gate_proj" and "up_proj" apart."""
    for kind in ("weight", "bias"):
        old = [f"{prefix}{part}.{kind}" for part in ("gate_proj", "up_proj")]
        if all(key in state_dict for key in old):
            joined = torch.cat([state_dict.pop(key) for key in old])
            state_dict[f"{prefix}gate_up_proj.{kind}"] = joined


class FeedForward(nn.Module):
    def __init__(self, width: int = 8, inner: int = 12) -> None:
        super().__init__()
        self.gate_up_proj = nn.Linear(width, 2 * inner, bias=False)
        self.register_load_state_dict_pre_hook(_join_feedforward_gate_up_proj)
        self.down_proj = nn.Linear(inner, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down_proj(torch_npu.npu_swiglu(self.gate_up_proj(x), dim=-1))
'''


def gated(made: str, computed: str, head: str = "", more: str = "") -> str:
    """A model whose `forward` returns what is computed from `x`."""
    lines = [f"        {line}\n" for line in computed.splitlines()]
    layers = [f"        {line}\n" for line in made.splitlines()]
    return (
        f"import torch\nimport torch.nn.functional as F\nfrom torch import nn\n{head}\n\n"
        "class FeedForward(nn.Module):\n"
        "    def __init__(self, width=8, inner=12):\n"
        f"        super().__init__()\n{''.join(layers)}\n"
        f"    def forward(self, x):\n{''.join(lines)}{more}"
    )


PLAIN = "self.w1 = nn.Linear(width, inner)\nself.w2 = nn.Linear(inner, width)\n"
THREE = PLAIN + "self.w3 = nn.Linear(width, inner)\n"
STYLES = {
    "bias": gated(THREE, "return self.w2(F.silu(self.w1(x)) * self.w3(x))"),
    "locals": gated(THREE, "gate = self.w1(x)\nup = self.w3(x)\nreturn self.w2(F.gelu(gate) * up)"),
    "two at once": gated(
        THREE,
        'gate, up = self.w1(x), self.w3(x)\nh = F.gelu(gate, approximate="tanh") * up\n'
        "return self.w2(h)",
    ),
    "numbers": gated(
        "self.act = nn.SiLU()\nself.w1 = nn.Linear(8, 12)\nself.w3 = nn.Linear(8, 12)\n"
        "self.w2 = nn.Linear(12, 8)\n",
        "y = self.act(self.w1(x))\nreturn self.w2(y * self.w3(x))",
    ),
    "keywords": gated(
        "self.a = nn.Linear(in_features=width, out_features=inner + 4, bias=True)\n"
        "self.b = nn.Linear(in_features=width, out_features=inner + 4, bias=True)\n"
        "self.c = nn.Linear(inner + 4, width)\n",
        "return self.c(F.silu(self.a(x)) * self.b(x))",
    ),
    "annotated": gated(
        "self.a: nn.Module = nn.Linear(width, inner)\nself.b: nn.Module = nn.Linear(width, inner)\n"
        "self.c = nn.Linear(inner, width)\n",
        "return self.c(F.silu(self.a(x)) * self.b(x))",
    ),
    "swapped": gated(THREE, "return self.w2(self.w3(x) * F.silu(self.w1(x)))"),
    "other class": gated(
        THREE,
        "return self.w2(F.silu(self.w1(x)) * self.w3(x))",
        more="\n\nclass Other(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.w1 = nn.Linear(3, 3)\n\n"
        "    def forward(self, x):\n        return self.w1(x)\n",
    ),
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def merged(here: Path, text: str, *options: str, **files: str) -> tuple[str, str]:
    """The model after the command, and what it says of what it did not do."""
    for name, content in files.items():
        (here / name.replace("__", ".")).write_text(content)
    (here / "model.py").write_text(text)
    options = ("--unsafe-fixes", "--merge-projections", "--allow-dirty", *options)
    _, _, errors = invoke("fix", *options, "model.py")
    return (here / "model.py").read_text(), errors


def test_two_become_one(here: Path) -> None:
    assert merged(here, SWIGLU) == (MERGED, "")


def test_what_is_merged_stays_so(here: Path) -> None:
    assert merged(here, MERGED) == (MERGED, "")


def test_what_a_fix_joined_before_is_merged(here: Path) -> None:
    (here / "model.py").write_text(SWIGLU)
    invoke("fix", "--unsafe-fixes", "--allow-dirty", "model.py")
    joined = (here / "model.py").read_text()
    assert "torch.cat((self.gate_proj(x), self.up_proj(x))" in joined.replace("\n", "")
    assert merged(here, joined)[0] == MERGED


def test_without_unsafe_fixes_it_is_refused(here: Path) -> None:
    (here / "model.py").write_text(SWIGLU)
    code, _, errors = invoke("fix", "--merge-projections", "model.py")
    assert code == 2 and "--merge-projections needs --unsafe-fixes" in errors


@pytest.mark.parametrize("style", STYLES)
def test_with_the_weights_of_a_checkpoint_it_computes_the_same(here: Path, style: str) -> None:
    before = STYLES[style]
    after, complaints = merged(here, before)
    assert complaints == ""
    assert after.count("nn.Linear(") == before.count("nn.Linear(") - 1
    assert "cat((" not in after
    old = load_module(before).FeedForward()
    x = torch.randn(3, 8)
    with reference_torch_npu(False):
        new = load_module(after).FeedForward()
        assert set(new.state_dict()) != set(old.state_dict())
        new.load_state_dict(old.state_dict())  # strict: nothing is missing, nothing left over
        result = new(x)
        torch.testing.assert_close(result, old(x))
        result.sum().backward()
        again = load_module(after).FeedForward()
        again.load_state_dict(new.state_dict())
        torch.testing.assert_close(again(x), result)


def test_without_a_bias_it_starts_with_the_same_weights(here: Path) -> None:
    after, _ = merged(here, SWIGLU)
    with reference_torch_npu(False):
        torch.manual_seed(1)
        old = load_module(SWIGLU).FeedForward()
        torch.manual_seed(1)
        new = load_module(after).FeedForward()
    both = torch.cat([old.gate_proj.weight, old.up_proj.weight])
    assert torch.equal(new.gate_up_proj.weight, both)
    assert torch.equal(new.down_proj.weight, old.down_proj.weight)


REFUSED = {
    "a layer is named by others": (
        SWIGLU + "\n\ndef tie(block):\n    block.up_proj.weight = None\n",
        "`up_proj` is named here, too",
    ),
    "a name in a text": (
        SWIGLU + '\n\nTARGETS = ["gate_proj", "up_proj"]\n',
        "`gate_proj` is named here, too",
    ),
    "a subclass": (
        SWIGLU + "\n\nclass Wide(FeedForward):\n    def gate(self, x):\n"
        "        return self.gate_proj(x)\n",
        "`gate_proj` is named here, too",
    ),
    "other sizes": (
        SWIGLU.replace("up_proj = nn.Linear(width, inner, bias=False)",
                       "up_proj = nn.Linear(width, inner)"),
        "`gate_proj` and `up_proj` are not made alike",
    ),
    "by shape": (
        SWIGLU + "\n\ndef start(m):\n    nn.init.xavier_uniform_(m.weight)\n",
        "weights are initialized by their shape (21)",
    ),
    "LoRA": (
        "from peft import LoraConfig\n" + SWIGLU,
        "weights are loaded or adapted by their names without the hook (1)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_with_a_line(here: Path, name: str) -> None:
    text, reason = REFUSED[name]
    after, complaints = merged(here, text)
    assert "npulens: model.py:" in complaints and reason in complaints
    assert "gate_up_proj" not in after and "_join_" not in after


@pytest.mark.parametrize(
    ("file", "content", "reason"),
    [
        ("convert__py", "def f(m):\n    return m.mlp.up_proj\n", "in convert.py, line 2"),
        ("train__yaml", "targets:\n  - q_proj\n  - up_proj\n", "in train.yaml, line 3"),
        ("big__py", "from model import FeedForward\nclass Big(FeedForward):\n    pass\n",
         "in big.py, line 2"),
        ("opt__py", "from optim import Lamb\n", "norms of whole tensors (opt.py:1)"),
    ],
)  # fmt: skip
def test_other_files_of_the_project_forbid_it(
    here: Path, file: str, content: str, reason: str
) -> None:
    (here / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    after, complaints = merged(here, SWIGLU, **{file: content})
    assert reason in complaints and "gate_up_proj" not in after


def test_other_classes_in_other_files_do_not_matter(here: Path) -> None:
    other = SWIGLU.replace("FeedForward", "Unrelated")
    assert merged(here, SWIGLU, other__py=other)[0] == MERGED


# In an editor


@pytest.fixture(scope="module")
def client() -> Iterator[LspClient]:
    resolves = {"dataSupport": True, "resolveSupport": {"properties": ["edit"]}}
    with LspClient() as shared:
        shared.initialize(capabilities={"textDocument": {"codeAction": resolves}})
        yield shared


def chosen(client: LspClient, uri: str, line: int) -> dict[str, object]:
    found = client.code_actions(uri, (line, 40), (line, 40))
    (action,) = [each for each in found if "One projection" in each["title"]]
    answer: dict[str, object] = client.request("codeAction/resolve", dict(action))
    return answer


def test_an_action_fixes_and_merges(client: LspClient, tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text(SWIGLU)
    client.open(file.as_uri(), SWIGLU)
    edit = chosen(client, file.as_uri(), 13)["edit"]
    assert applied_edit(SWIGLU, edit) == MERGED


def test_the_action_says_why_it_cannot(client: LspClient, tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    text = SWIGLU + '\n\nTARGETS = ["gate_proj", "up_proj"]\n'
    file.write_text(text)
    client.open(file.as_uri(), text)
    assert chosen(client, file.as_uri(), 13).get("edit") is None
    shown = client.shown[-1]
    assert "`gate_proj` is named here, too" in shown["message"]
