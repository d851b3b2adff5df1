"""`fix --merge-projections` and the editor's action: one layer for two that an operator joins."""

import re
from collections.abc import Iterator
from pathlib import Path

import libcst as cst
import pytest
import torch

from commands import invoke
from fused_execution import load_module, reference_torch_npu
from lsp_client import LspClient, applied_edit
from npulens.fixes.merging.other_uses import may_be_name

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


def _join_FeedForward_gate_up_proj(module, state_dict, prefix, *_):
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
        self.register_load_state_dict_pre_hook(_join_FeedForward_gate_up_proj)
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
GATED = "return self.w2(F.silu(self.w1(x)) * self.w3(x))"
NPU = "import torch_npu"
JOINED = "return self.w2(torch_npu.npu_swiglu(torch.cat({}){}))"
OPERATOR = JOINED.format("(self.w1(x), self.w3(x)), dim=-1", "")
STYLES = {
    "bias": gated(THREE, GATED),
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
    "one kept": gated(THREE, "up = self.w3(x)\nreturn self.w2(F.silu(self.w1(x)) * up)"),
    "kept under the names of the layers": gated(
        "self.gate = nn.Linear(width, inner)\nself.up = nn.Linear(width, inner)\n"
        "self.down = nn.Linear(inner, width)\n",
        "gate = self.gate(x)\nup: torch.Tensor = self.up(x)\nreturn self.down(F.silu(gate) * up)",
    ),
    "a list": gated(THREE, JOINED.format("[self.w1(x), self.w3(x)], dim=-1", ""), NPU),
    "by place": gated(THREE, JOINED.format("(self.w1(x), self.w3(x)), -1", ", -1"), NPU),
    "concat": gated(
        THREE, JOINED.format("(self.w1(x), self.w3(x)), -1", "").replace("cat(", "concat("), NPU
    ),
    "two branches": gated(
        THREE,
        "if self.training:\n    return self.w2(F.silu(self.w1(x)) * self.w3(x))\n"
        "gate = self.w1(x)\nup = self.w3(x)\nreturn self.w2(F.silu(gate) * up)",
    ),
    "bias by place": gated(
        "self.w1 = nn.Linear(width, inner, False)\nself.w2 = nn.Linear(inner, width)\n"
        "self.w3 = nn.Linear(width, out_features=inner, bias=False)\n",
        GATED,
    ),
    "bias by default": gated(
        "self.w1 = nn.Linear(width, 2*inner)\nself.w2 = nn.Linear(2*inner, width)\n"
        "self.w3 = nn.Linear(\n    width,\n    2 * inner, bias=True,\n)\n",
        GATED,
    ),
    "keywords of a dictionary": gated(
        "kw = {'dtype': torch.float32}\nself.w1 = nn.Linear(width, inner, **kw)\n"
        "self.w2 = nn.Linear(inner, width)\nself.w3 = nn.Linear(width, inner, **kw)\n",
        GATED,
    ),
    "private": gated(THREE, GATED).replace("w1", "_gate").replace("w3", "_up"),
    "settings of the same name": gated(
        THREE,
        GATED,
        more="\n\ndef table(args, self_):\n    return args.w1, self_.config.w3, 'a w1'\n",
    ),
    "words in comments": gated(
        THREE, GATED, more='\n\ndef f():\n    """Like w1, xavier_uniform_."""\n\n\n# as Adafactor\n'
    ),
    "a docstring": gated(THREE, GATED).replace(
        "Module):\n",
        'Module):\n    """w2(silu(w1(x)) * w3(x)).\n\n    `self.w1.weight`\n    """\n\n',
    ),
    "lookups of others": gated(
        THREE,
        GATED,
        more="\n    def f(self, i, m):\n        return getattr(self, f'norm{i}'), "
        "m.weight.shape[1], m.weight.size(-1), getattr(m, f'n{i}'), "
        "m.get_submodule(f'layers.layer{i}')\n",
    ),
    "two pairs": gated(
        THREE + "self.v1 = nn.Linear(width, inner)\nself.v3 = nn.Linear(width, inner)\n",
        "a = F.silu(self.w1(x)) * self.w3(x)\nb = F.silu(self.v1(x)) * self.v3(x)\n"
        "return self.w2(a + b)",
    ),
    "a base in the file": gated(THREE, GATED, "\n\nclass Base(nn.Module):\n    pass\n").replace(
        "FeedForward(nn.Module)", "FeedForward(Base)"
    ),
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
    pairs = 1 + before.count("self.v1 = ")
    assert after.count("nn.Linear(") == before.count("nn.Linear(") - pairs
    assert "cat((" not in after
    x = torch.randn(3, 8)
    with reference_torch_npu(False):
        old = load_module(before).FeedForward()
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


KEPT = "gate = self.w1(x)\nup = self.w3(x)\n"
KEPT_GATED = "return self.w2(F.silu(gate) * up)"
NOT_PLAIN = "what is joined is not seen to be two `nn.Linear` of one tensor"
NAMED_HERE = "`{}` is named here, too"
NOT_ALIKE = "`w1` and `w3` are not made alike"
BY_NAMES = "weights are loaded or adapted by their names without the hook (line {})"
BY_SHAPE = "weights are initialized by their shape (line {})"
AS_A_WHOLE = "each weight is changed as a whole (line {})"
NORMS = "the optimizer takes norms of whole tensors (line {})"
FRAME = gated(THREE, GATED)


def named_below(classes: str) -> tuple[str, str, str]:
    """A case whose classes, or one of them, have a method that names `w1`; it stands at `{}`."""
    method = "    def size(self):\n        return self.w1.weight.shape\n"
    text = f"{FRAME}\n\n{classes.format(method)}"
    return text, NAMED_HERE.format("w1"), "return self.w1.weight"


REFUSED = {
    "a layer is named by others": (
        SWIGLU + "\n\ndef tie(block):\n    block.up_proj.weight = None\n",
        NAMED_HERE.format("up_proj"), "block.up_proj",
    ),
    "a name in a text": (
        SWIGLU + '\n\nTARGETS = ["gate_proj", "up_proj"]\n',
        NAMED_HERE.format("gate_proj"), "TARGETS",
    ),
    "a name in a list in a text": (
        SWIGLU + "\n\nTARGETS = 'q,up_proj,down_proj'\n", NAMED_HERE.format("up_proj"), "TARGETS",
    ),
    "a name in a pattern": (
        SWIGLU + "\n\nFROZEN = r'\\bup_proj\\.weight'\n", NAMED_HERE.format("up_proj"), "FROZEN",
    ),
    "a name of which a part is computed": (
        gated(THREE, GATED, more="\n    def f(self, i):\n        return getattr(self, f'w{i}')\n"),
        "an attribute of `self` is looked up here by a text that may be `w1`", "getattr",
    ),
    **{
        f"a name of which a part is computed: {code}": (
            gated(THREE, GATED, more=f"\n\ndef f(m, i):\n    return {code}\n"),
            "a part of an object is looked up here by a text that may be `w1`", code,
        )
        for code in (
            "getattr(m.mlp, f'w{i}')", "m.get_submodule(f'w{i}')", "m.get_parameter(f'{i}.weight')",
        )
    },
    "a subclass": (
        SWIGLU + "\n\nclass Wide(FeedForward):\n    def gate(self, x):\n"
        "        return self.gate_proj(x)\n",
        NAMED_HERE.format("gate_proj"), "return self.gate_proj(x)",
    ),
    "a subclass of a subclass": named_below(
        "class Mid(FeedForward):\n    pass\n\n\nclass Low(Mid):\n{}"
    ),
    "a subclass by another name": named_below("Base = FeedForward\n\n\nclass Low(Base):\n{}"),
    "a class that is mixed in": named_below(
        "class Mixin:\n{}\n\nclass Both(FeedForward, Mixin):\n    pass\n"
    ),
    "a base of another file": (
        FRAME.replace("import torch\n", "import torch\nfrom base import Base\n", 1).replace(
            "FeedForward(nn.Module)", "FeedForward(Base)"),
        "`FeedForward` derives from `Base`, which is not known from this file", "npu_swiglu",
    ),
    "no base": (
        FRAME.replace("FeedForward(nn.Module)", "FeedForward"),
        "`FeedForward` is not seen to derive from `nn.Module`", "npu_swiglu",
    ),
    "an annotation of the class": (
        FRAME.replace("Module):\n", "Module):\n    w1: nn.Linear\n\n"),
        NAMED_HERE.format("w1"), "    w1: nn.Linear",
    ),
    "what it is given is bound again": (
        gated(THREE + "self.norm = nn.LayerNorm(8)",
              "gate = self.w1(x)\nx = self.norm(x)\nup = self.w3(x)\n" + KEPT_GATED),
        NOT_PLAIN, "npu_swiglu",
    ),
    "what it is given is changed in place": (
        gated(THREE + "self.act = nn.ReLU(inplace=True)",
              "gate = self.w1(x)\ny = self.act(x)\nup = self.w3(x)\n" + KEPT_GATED + " + y"),
        NOT_PLAIN, "npu_swiglu",
    ),
    "something runs before it is joined": (
        gated(THREE, KEPT + "b = x.add_(1)\n" + KEPT_GATED + " + b"), NOT_PLAIN, "npu_swiglu",
    ),
    "something runs in the same line": (
        gated(THREE, KEPT + "x = x + 1; h = F.silu(gate) * up\nreturn self.w2(h) + x"),
        NOT_PLAIN, "npu_swiglu",
    ),
    "something runs in the same statement": (
        gated(THREE, KEPT + "return x.add_(1) + self.w2(F.silu(gate) * up)"),
        NOT_PLAIN, "npu_swiglu",
    ),
    "it is computed later": (
        gated(THREE, KEPT + "f = lambda x: torch_npu.npu_swiglu(torch.cat((gate, up), -1))\n"
              "return f(2)", NPU),
        NOT_PLAIN, "npu_swiglu",
    ),
    "another name is assigned, too": (
        gated(THREE + "self.k = nn.Linear(8, 8)",
              "gate, k = self.w1(x), self.k(x)\nh = F.silu(gate) * self.w3(x)\n"
              "return self.w2(h) + k"),
        NOT_PLAIN, "npu_swiglu",
    ),
    "two layers in one statement": (
        gated("self.w1, self.w3 = nn.Linear(width, inner), nn.Linear(width, inner)\n"
              "self.w2 = nn.Linear(inner, width)", GATED),
        NOT_PLAIN, "npu_swiglu",
    ),
    "layers under a condition": (
        gated("if width > 2:\n    self.w1 = nn.Linear(width, inner)\n"
              "    self.w3 = nn.Linear(width, inner)\nself.w2 = nn.Linear(inner, width)", GATED),
        NOT_PLAIN, "npu_swiglu",
    ),
    "another dimension": (
        gated(THREE, JOINED.format("(self.w1(x), self.w3(x)), dim=1", ""), NPU),
        NOT_PLAIN, "npu_swiglu",
    ),
    "joined before": (
        gated(THREE, "h = torch.cat((self.w1(x), self.w3(x)), dim=-1)\n"
              "return self.w2(torch_npu.npu_swiglu(h, dim=-1))", NPU),
        NOT_PLAIN, "npu_swiglu",
    ),
    "two tensors": (
        gated(THREE, "y = x + 1\nreturn self.w2(F.silu(self.w1(x)) * self.w3(y))"),
        NOT_PLAIN, "npu_swiglu",
    ),
    "a class under a condition": (
        "import torch\nimport torch_npu\nfrom torch import nn\n\nif True:\n"
        + "".join(f"    {line}\n" if line else "\n" for line in gated(
            THREE, OPERATOR
        ).partition("from torch import nn\n")[2].strip().split("\n")),
        "`FeedForward` is not defined at the top level of the file", "npu_swiglu",
    ),
    "imported inside": (
        gated(THREE, "from torch import cat\nreturn self.w2(torch_npu.npu_swiglu("
              "cat((self.w1(x), self.w3(x)), dim=-1), dim=-1))", NPU),
        "the hook would need `cat`, which is not imported at the top level", "npu_swiglu",
    ),
    "mangled": (
        FRAME.replace("w1", "__gate").replace("w3", "__up"),
        "`__gate` begins with two underscores", "npu_swiglu",
    ),
    "other sizes": (
        SWIGLU.replace("up_proj = nn.Linear(width, inner, bias=False)",
                       "up_proj = nn.Linear(width, inner)"),
        "`gate_proj` and `up_proj` are not made alike", "npu_swiglu",
    ),
    "a size is changed between": (
        gated("b = True\nself.w1 = nn.Linear(width, inner, bias=b)\nb ^= True\n"
              "self.w3 = nn.Linear(width, inner, bias=b)\nself.w2 = nn.Linear(inner, width)",
              GATED),
        NOT_ALIKE, "npu_swiglu",
    ),
    "a loop binds a size": (
        gated("self.w1 = nn.Linear(width, inner)\nfor inner in (3, 4):\n    pass\n"
              "self.w3 = nn.Linear(width, inner)\nself.w2 = nn.Linear(inner, width)",
              OPERATOR, NPU),
        NOT_ALIKE, "npu_swiglu",
    ),
    "an attribute is changed between": (
        gated("self.h = inner\nself.w1 = nn.Linear(width, self.h)\nself.h = 3\n"
              "self.w3 = nn.Linear(width, self.h)\nself.w2 = nn.Linear(inner, width)",
              OPERATOR, NPU),
        NOT_ALIKE, "npu_swiglu",
    ),
    **{
        f"an attribute is changed between by {code}": (
            gated(f"self.h = inner\nself.w1 = nn.Linear(width, self.h)\n{code}\n"
                  "self.w3 = nn.Linear(width, self.h)\nself.w2 = nn.Linear(inner, width)",
                  OPERATOR, NPU, "\n    def grow(self):\n        self.h += 1\n"),
            NOT_ALIKE, "npu_swiglu",
        )
        for code in ("self.grow()", "FeedForward.grow(self)")
    },
    "a size is taken from an iterator": (
        gated("it = iter((12, 13))\nself.w1 = nn.Linear(width, next(it))\n"
              "self.w3 = nn.Linear(width, next(it))\nself.w2 = nn.Linear(inner, width)",
              OPERATOR, NPU),
        NOT_ALIKE, "npu_swiglu",
    ),
    "a comment in what is joined": (
        gated(THREE, JOINED.format("(self.w1(x),  # gate\n    self.w3(x)), dim=-1", ""), NPU),
        "this comment would be lost", "# gate",
    ),
    "a comment in the second layer": (
        FRAME.replace("self.w3 = nn.Linear(width, inner)",
                      "self.w3 = nn.Linear(width,  # value\n            inner)"),
        "this comment would be lost", "# value",
    ),
    "the name of the layer is taken": (
        gated(THREE + "self.w1_w3 = nn.Identity()", GATED),
        "`w1_w3`, a name that the merge would give, is used already (line 12)", "npu_swiglu",
    ),
    "the name of the hook is taken": (
        gated(THREE, GATED, more="\n\n_join_FeedForward_w1_w3 = 3\n"),
        "`_join_FeedForward_w1_w3`, a name that the merge would give, is used already (line 17)",
        "npu_swiglu",
    ),
    "LoRA": (
        "from peft import LoraConfig\n" + SWIGLU, BY_NAMES.format(1), "npu_swiglu",
    ),
}  # fmt: skip
OBSTACLES = {
    BY_SHAPE: (
        "nn.init.xavier_uniform_(m.weight)",
        "n = m.out_features",
        "n = nn.init._calculate_fan_in(w)",
        "nn.init.eye_(m.weight)",
        "n = m.weight.shape[0]",
        "n, _ = m.weight.shape",
        "n = math.prod(m.weight.data.size())",
        "n = m.weight.size(-2)",
        "nn.utils.skip_init(Other, 3)",
    ),
    AS_A_WHOLE: ("prune.random_unstructured(m)", "nn.utils.parametrize.register(m)"),
    NORMS: (
        "opt = FusedLAMB(p)",
        "opt = NpuFusedLamb(p)",
        "opt = make(p, opt='lamb')",
        "opt = SOAP(p)",
        "opt = apex.LARC(p)",
        "opt = Muon(p)",
    ),
    BY_NAMES: (
        "old = {k: v for k, v in torch.load(p).items() if k in own}",
        "import torch.distributed.checkpoint as dcp",
        "p.data.copy_(sd[n])",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_with_a_line(here: Path, name: str) -> None:
    text, reason, marker = REFUSED[name]
    after, complaints = merged(here, text)
    assert reason in complaints
    found = re.findall(r"npulens: model\.py:(\d+): not merged", complaints)
    lines = after.splitlines()
    assert [marker in lines[int(line) - 1] for line in found] == [True]
    assert "_join_FeedForward_w1_w3(" not in after and "_join_FeedForward_gate" not in after


@pytest.mark.parametrize(
    ("reason", "line"), [(reason, line) for reason, lines in OBSTACLES.items() for line in lines]
)
def test_an_obstacle_is_named_with_its_line(here: Path, reason: str, line: str) -> None:
    after, complaints = merged(here, f"{FRAME}\n\ndef f(m, p, w, own, sd, n):\n    {line}\n")
    assert reason.format(after.count("\n")) in complaints and "_join_" not in after


def test_a_project_for_an_older_pytorch_has_no_hook(here: Path) -> None:
    (here / "pyproject.toml").write_text("[project]\nname='x'\ndependencies=['torch==2.1.0']\n")
    after, complaints = merged(here, SWIGLU)
    assert "requires a PyTorch before 2.5" in complaints and "_join_" not in after


@pytest.mark.parametrize("version", ["==2.5.1", ">=2.1", "==3.0"])
def test_a_project_for_a_newer_one_has(here: Path, version: str) -> None:
    (here / "pyproject.toml").write_text(f"[project]\nname='x'\ndependencies=['torch{version}']\n")
    assert merged(here, SWIGLU) == (MERGED, "")


COMMENTED = """\
# ---------
# Layers
# ---------

# The gated layer.
class FeedForward(nn.Module):
    def __init__(self, width=8, inner=12):
        super().__init__()

        # the gate
        self.w1: nn.Module = nn.Linear(width, inner)  # gate
        self.w2 = nn.Linear(inner, width)

        # the value, see the paper
        self.w3: nn.Module = nn.Linear(width, inner)  # value

    def forward(self, x):
        y = x

        # gate first
        gate = self.w1(x)  # (b, inner)

        # then value
        up = self.w3(x)  # (b, inner) too
        # both
        h = F.silu(gate) * up  # joined
        return self.w2(h) + y
"""
COMMENTS_KEPT = """\
# ---------
# Layers
# ---------

# The gated layer.
class FeedForward(nn.Module):
    def __init__(self, width=8, inner=12):
        super().__init__()

        # the gate
        # the value, see the paper
        # value
        self.w1_w3: nn.Module = nn.Linear(width, 2 * inner)  # gate
        self.register_load_state_dict_pre_hook(_join_FeedForward_w1_w3)
        self.w2 = nn.Linear(inner, width)

    def forward(self, x):
        y = x

        # gate first
        # (b, inner)
        # then value
        # (b, inner) too
        # both
        h = torch_npu.npu_swiglu(self.w1_w3(x), dim=-1)  # joined
        return self.w2(h) + y
"""


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_comments_stay_before_what_takes_their_place(here: Path, ending: str) -> None:
    head = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n\n"
    file = here / "model.py"
    file.write_bytes((head + COMMENTED).replace("\n", ending).encode())
    invoke("fix", "--unsafe-fixes", "--merge-projections", "--allow-dirty", "model.py")
    after = file.read_bytes().decode()
    assert after.count(ending) == after.count("\n")
    hook, _, rest = after.replace(ending, "\n").partition("# ---------\n")
    assert "# ---------\n" + rest == COMMENTS_KEPT
    assert hook.endswith("= joined\n\n\n")


MIXED = gated(
    THREE + "self.p = nn.Linear(width, inner)\nself.q = nn.Linear(width, inner)\n",
    "a = F.silu(self.w1(x)) * self.w3(x)\nb = F.silu(self.p(x)) * self.q(x)\nreturn self.w2(a + b)",
    more="\n\nTARGETS = ['q']\n",
)


@pytest.mark.parametrize("options", [(), ("--diff",)])
def test_lines_are_those_of_the_text_that_is_seen(here: Path, options: tuple[str, ...]) -> None:
    after, complaints = merged(here, MIXED, *options)
    (line,) = re.findall(r"model\.py:(\d+): not merged: `q` is named here", complaints)
    assert after.splitlines()[int(line) - 1] == "TARGETS = ['q']"
    assert ("w1_w3" in after) is not bool(options)


@pytest.mark.parametrize(
    ("file", "content", "reason"),
    [
        ("convert__py", "def f(m):\n    return m.mlp.up_proj\n", "in convert.py, line 2"),
        ("train__yaml", "targets:\n  - q_proj\n  - up_proj\n", "in train.yaml, line 3"),
        ("big__py", "from model import FeedForward\nclass Big(FeedForward):\n    pass\n",
         "in big.py, line 2"),
        ("big__py", "from model import FeedForward as F\nclass Big(F):\n    pass\n",
         "in big.py, line 1"),
        ("big__py", "import model\nBase = model.FeedForward\nclass Big(Base):\n    pass\n",
         "`FeedForward` has a subclass in big.py, line 2"),
        ("big__py", "import model\nif True:\n    class Big(\n        model.FeedForward,\n    ):\n"
         "        pass\n", "in big.py, line 4"),
        ("train__py", "NAMES = 'q_proj,up_proj'\n", "in train.py, line 1"),
        ("train__py", "NAMES = r'/up_proj\\.weight'\n", "in train.py, line 1"),
        ("train__py", "NAMES = r'\\bup_proj$'\n", "in train.py, line 1"),
        ("train__sh", "python t.py \\\n  --lora_target gate_proj,up_proj\n", "in train.sh, line 2"),
        ("train__sh", "python t.py --freeze q_proj up_proj\n", "in train.sh, line 1"),
        ("train__json", '{\n"names": ["q_proj", "up_proj"]}\n', "in train.json, line 2"),
        ("left_out__py", "def f(m):\n    return m.mlp.up_proj\n", "in left_out.py, line 2"),
        ("train__sh", "python t.py --opt lamb\n", "norms of whole tensors (train.sh, line 1)"),
        ("opt__py", "from optim import Lamb\n", "norms of whole tensors (opt.py, line 1)"),
    ],
)  # fmt: skip
def test_other_files_of_the_project_forbid_it(
    here: Path, file: str, content: str, reason: str
) -> None:
    settings = "[project]\nname = 'x'\n[tool.npulens]\nexclude = ['left_out.py']\n"
    (here / "pyproject.toml").write_text(settings)
    after, complaints = merged(here, SWIGLU, **{file: content})
    assert reason in complaints and "gate_up_proj" not in after


@pytest.mark.parametrize(
    "other",
    [
        SWIGLU.replace("FeedForward", "Unrelated"),
        "class Other:\n    def f(self):\n        return self.up_proj.weight\n",
        "def f(args):\n    return args.up_proj\n",
        "from model import FeedForward as F\n\nf = F(3)\nMLP = FeedForward\n",
        '"""Has a `.up_proj`, as Adafactor has."""\n# m.up_proj = LAMB(x)\n',
    ],
)
def test_other_classes_in_other_files_do_not_matter(here: Path, other: str) -> None:
    assert merged(here, SWIGLU, other__py=other) == (MERGED, "")


def test_many_files_at_once_say_why_as_well(here: Path) -> None:
    for number in range(40):
        (here / f"model{number}.py").write_text(MIXED)
    options = ("--unsafe-fixes", "--merge-projections", "--allow-dirty", "--jobs", "2")
    _, _, errors = invoke("fix", *options, ".")
    assert errors.count("not merged: `q` is named here, too") == 40


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


def test_there_is_no_action_in_a_text_without_a_file(client: LspClient) -> None:
    client.open("untitled:Untitled-1", SWIGLU)
    found = client.code_actions("untitled:Untitled-1", (13, 40), (13, 40))
    assert found and not [each for each in found if "One projection" in each["title"]]


def test_the_action_says_why_it_cannot(client: LspClient, tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    text = SWIGLU + '\n\nTARGETS = ["gate_proj", "up_proj"]\n'
    file.write_text(text)
    client.open(file.as_uri(), text)
    assert chosen(client, file.as_uri(), 13).get("edit") is None
    shown = client.shown[-1]
    assert "`gate_proj` is named here, too" in shown["message"]


def test_the_action_names_the_line_that_is_seen(client: LspClient, tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    text = gated(THREE, GATED, more="\n\ndef act(x):\n    return F.relu(x)\n\n\nW = ['w1']\n")
    file.write_text(text)
    client.open(file.as_uri(), text)
    at = text.splitlines().index(f"        {GATED}")
    assert chosen(client, file.as_uri(), at).get("edit") is None
    assert f"model.py:{text.count(chr(10))}: not merged" in client.shown[-1]["message"]


def test_the_action_is_about_its_place(client: LspClient, tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text(MIXED)
    client.open(file.as_uri(), MIXED)
    lines = MIXED.splitlines()
    first = next(i for i, line in enumerate(lines) if "self.w1(x)" in line)
    edit = chosen(client, file.as_uri(), first)["edit"]
    assert "w1_w3" in applied_edit(MIXED, edit) and "F.silu(self.p(x))" in applied_edit(MIXED, edit)
    assert chosen(client, file.as_uri(), first + 1).get("edit") is None
    assert "`q` is named here, too" in client.shown[-1]["message"]


def test_a_text_of_many_filled_parts_is_compared_in_no_time() -> None:
    text = cst.parse_expression("f'" + "{a}" * 40 + "x'")
    assert not may_be_name(text, "w_gate_projection_inner_layer")
    for filled, is_name in (("w{a}", True), ("{a}gate{b}", True), ("gate{a}", False)):
        assert may_be_name(cst.parse_expression(f"f'{filled}'"), "w_gate_1") is is_name
