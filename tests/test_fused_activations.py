"""Gated units, GELU, cross entropy, experts and stochastic depth, in the spellings people use."""

from typing import NamedTuple

import pytest

from fused_execution import assert_same_behaviour
from helpers import CATALOGUE, code, findings, fixed
from npulens.catalog.model import Applicability

HEADER = """import math

import torch
import torch_npu
import torch.nn.functional as F
from torch import nn
"""

UNIT = """
class Unit(nn.Module):
    def __init__(self, width=8, inner=12{parameters}):
        super().__init__()
        self.inner = inner
{layers}
    def forward(self, x):
{body}
"""
TWO = """
        self.w1 = nn.Linear(width, inner)
        self.w2 = nn.Linear(inner, width)
        self.w3 = nn.Linear(width, inner)
"""
MERGED = """
        self.both = nn.Linear(width, 2 * inner)
        self.w2 = nn.Linear(inner, width)
"""
TABLE = 'ACT2FN = {"silu": F.silu, "gelu": F.gelu}\n'


def unit(body: str, layers: str = TWO, parameters: str = "", more: str = "") -> str:
    """The text of a module with a class `Unit`."""
    indented = "".join(f"        {line}\n" for line in code(body).splitlines())
    lines = layers.strip("\n") + "\n" + "".join(f"        {line}\n" for line in more.splitlines())
    return HEADER + TABLE + UNIT.format(parameters=parameters, layers=lines, body=indented)


def function(text: str) -> str:
    """The text of a module with some functions."""
    return HEADER + "\n\n" + code(text)


def codes(source: str) -> list[str]:
    """The rules NPU7xx that a source breaks."""
    return [f.rule.code for f in findings(source) if f.rule.code.startswith("NPU7")]


class Spelling(NamedTuple):
    """Code that computes what an operator does, and a part of what the fix makes of it."""

    name: str
    source: str
    rule: str
    becomes: str


JOINED = "torch_npu.npu_swiglu(torch.cat((self.w1(x), self.w3(x)), dim=-1), dim=-1)"
TURNED = "torch_npu.npu_swiglu(torch.cat(self.both(x).chunk(2, dim=-1)[::-1], dim=-1), dim=-1)"
WHOLE = "torch_npu.npu_swiglu(self.both(x), dim=-1)"
UNITS = (
    Spelling("functional", unit("return self.w2(F.silu(self.w1(x)) * self.w3(x))"), "703", JOINED),
    Spelling(
        "written out",
        unit("gate = self.w1(x)\nreturn self.w2(self.w3(x) * gate * torch.sigmoid(gate))"),
        "703",
        "torch_npu.npu_swiglu(torch.cat((gate, self.w3(x)), dim=-1), dim=-1)",
    ),
    Spelling(
        "exponential",
        unit("gate = self.w1(x)\nreturn self.w2(gate / (1 + torch.exp(-gate)) * self.w3(x))"),
        "703",
        "torch_npu.npu_swiglu(torch.cat((gate, self.w3(x)), dim=-1), dim=-1)",
    ),
    Spelling(
        "module",
        unit("return self.w2(self.act(self.w1(x)) * self.w3(x))", more="self.act = nn.SiLU()"),
        "703",
        JOINED,
    ),
    Spelling(
        "named in a table",
        unit("return self.w2(self.act(self.w1(x)) * self.w3(x))", more='self.act = ACT2FN["silu"]'),
        "703",
        JOINED,
    ),
    Spelling(
        "configured",
        unit(
            "return self.w2(self.act(self.w1(x)) * self.w3(x))",
            parameters=', hidden_act="silu"',
            more="self.act = ACT2FN[hidden_act]",
        ),
        "703",
        JOINED,
    ),
    Spelling(
        "class of a layer",
        unit(
            "gate = self.w1(x)\nx = self.w3(x)\nx = self.act(gate) * x\nreturn self.w2(x)",
            parameters=", act_layer=nn.SiLU",
            more="self.act = act_layer()",
        ),
        "703",
        "x = torch_npu.npu_swiglu(torch.cat((gate, x), dim=-1), dim=-1)",
    ),
    Spelling(
        "step by step",
        unit(
            """
            hidden = self.w1(x)
            hidden = self.act(hidden)
            hidden = hidden * self.w3(x)
            return self.w2(hidden)
            """,
            more="self.act = nn.SiLU()",
        ),
        "703",
        "torch_npu.npu_swiglu(torch.cat((hidden, self.w3(x)), dim=-1), dim=-1)",
    ),
    Spelling(
        "function of the constructor, one of two",
        unit(
            "return self.w2(self.act(self.both(x)))",
            MERGED,
            ", gated=True",
            """
if gated:
    def glu(y):
        y = torch.chunk(y, 2, dim=-1)
        return F.silu(y[0]) * y[1]
    self.act = glu
else:
    self.act = nn.Identity()""",
        ),
        "703",
        "return torch_npu.npu_swiglu(y, dim=-1)",
    ),
    Spelling(
        "only function of the constructor",
        unit(
            "return self.w2(self.act(self.both(x)))",
            MERGED,
            more="""
def glu(y):
    y = torch.chunk(y, 2, dim=-1)
    return F.silu(y[0]) * y[1]
self.act = glu""",
        ),
        "703",
        "return torch_npu.npu_swiglu(y, dim=-1)",
    ),
    Spelling(
        "in place",
        unit("hidden = F.silu(self.w1(x))\nhidden *= self.w3(x)\nreturn self.w2(hidden)"),
        "703",
        f"hidden = {JOINED}",
    ),
    Spelling(
        "merged",
        unit(
            """
            gate, up = self.both(x).chunk(2, dim=-1)
            return self.w2(F.silu(gate) * up)
            """,
            MERGED,
        ),
        "703",
        f"self.w2({WHOLE})",
    ),
    Spelling(
        "split by size",
        unit("a, b = self.both(x).split(self.inner, dim=-1)\nreturn F.silu(a) * b", MERGED),
        "703",
        WHOLE,
    ),
    Spelling(
        "split by two sizes",
        unit(
            "a, b = torch.split(self.both(x), [self.inner, self.inner], -1)\nreturn b * F.silu(a)",
            MERGED,
        ),
        "703",
        WHOLE,
    ),
    Spelling(
        "slices",
        unit("h = self.both(x)\nreturn F.silu(h[..., :self.inner]) * h[..., self.inner:]", MERGED),
        "703",
        "torch_npu.npu_swiglu(h, dim=-1)",
    ),
    Spelling(
        "columns",
        unit("h = self.both(x)\nd = h.shape[1] // 2\nreturn F.silu(h[:, :d]) * h[:, d:]", MERGED),
        "703",
        "torch_npu.npu_swiglu(h, dim=1)",
    ),
    Spelling(
        "gate second",
        unit("value, gate = self.both(x).chunk(2, dim=-1)\nreturn value * F.silu(gate)", MERGED),
        "703",
        TURNED,
    ),
    Spelling(
        "gate second, configured",
        unit(
            "value, gate = self.both(x).chunk(2, dim=-1)\nreturn value * self.act(gate)",
            MERGED,
            parameters=", act=F.silu",
            more="self.act = act",
        ),
        "703",
        TURNED,
    ),
    Spelling(
        "expert",
        unit(
            """
            gate, up = F.linear(x, self.both.weight).chunk(2, dim=-1)
            hidden = self.act(gate) * up
            return F.linear(hidden, self.w2.weight)
            """,
            MERGED,
            more="self.act = nn.SiLU()",
        ),
        "703",
        "torch_npu.npu_swiglu(F.linear(x, self.both.weight), dim=-1)",
    ),
    Spelling(
        "second half through GELU",
        unit("value, gate = self.both(x).chunk(2, dim=-1)\nreturn value * F.gelu(gate)", MERGED),
        "704",
        "torch_npu.npu_geglu(self.both(x), dim=-1, approximate=0)[0]",
    ),
    Spelling(
        "first half through GELU",
        unit(
            "gate, value = self.both(x).chunk(2, dim=-1)\nreturn self.act(gate) * value",
            MERGED,
            more='self.act = nn.GELU(approximate="tanh")',
        ),
        "704",
        "torch_npu.npu_geglu(self.both(x), dim=-1, approximate=1, activate_left=True)[0]",
    ),
)

UNITS_OF_TWO = (
    Spelling(
        "GELU of two projections",
        unit("return self.w2(F.gelu(self.w1(x)) * self.w3(x))"),
        "704",
        "approximate=0",
    ),
    Spelling(
        "GELU with tanh of two projections",
        unit(
            "return self.w2(self.w3(x) * self.act(self.w1(x)))",
            more='self.act = nn.GELU(approximate="tanh")',
        ),
        "704",
        "approximate=1",
    ),
    Spelling(
        "GELU with tanh, written out, of two projections",
        unit(
            """
            gate = self.w1(x)
            inner = math.sqrt(2 / math.pi) * (gate + 0.044715 * torch.pow(gate, 3))
            return self.w2(0.5 * gate * (1 + torch.tanh(inner)) * self.w3(x))
            """
        ),
        "704",
        "torch.cat((self.w3(x), gate), dim=-1)",
    ),
    Spelling(
        "exact GELU, written out, of two projections",
        unit(
            """
            gate, up = self.w1(x), self.w3(x)
            return self.w2(gate * 0.5 * (1.0 + torch.erf(gate / math.sqrt(2.0))) * up)
            """
        ),
        "704",
        "torch_npu.npu_geglu(torch.cat((up, gate), dim=-1), dim=-1, approximate=0)[0]",
    ),
    Spelling(
        "GELU named in a table",
        unit(
            "return self.w2(self.act(self.w1(x)) * self.w3(x))",
            more='self.act = ACT2FN["gelu"]',
        ),
        "704",
        "approximate=0",
    ),
    Spelling(
        "GELU by default",
        unit(
            "return self.w2(self.act(self.w1(x)) * self.w3(x))",
            parameters=", act_layer=nn.GELU",
            more="self.act = act_layer()",
        ),
        "704",
        "approximate=0",
    ),
    Spelling(
        "GELU by default, halves",
        unit(
            "gate, up = self.both(x).chunk(2, dim=-1)\nreturn self.w2(self.act(gate) * up)",
            MERGED,
            parameters=', hidden_act="gelu"',
            more="self.act = ACT2FN[hidden_act]",
        ),
        "704",
        "activate_left=True",
    ),
    Spelling(
        "GELU unless another is given",
        unit(
            "return self.w2(self.act(self.w1(x)) * self.w3(x))",
            parameters=", act_layer=None",
            more="self.act = act_layer() if act_layer is not None else nn.GELU()",
        ),
        "704",
        "approximate=0",
    ),
    Spelling(
        "GELU by the name of the result",
        unit(
            "hidden_gelu = self.act(self.w1(x))\nreturn self.w2(hidden_gelu * self.w3(x))",
            parameters=", name='gelu'",
            more="self.act = ACT2FN[str(name)]",
        ),
        "704",
        "approximate=0",
    ),
    Spelling(
        "different inputs", unit("return F.silu(self.w1(x)) * self.w3(x + 1)"), "703", "torch.cat("
    ),
    Spelling(
        "clamped",
        unit(
            "gate, up = self.both(x).chunk(2, dim=-1)\n"
            "return F.silu(gate.clamp(max=7.0)) * up.clamp(-7.0, 7.0)",
            MERGED,
        ),
        "703",
        "torch_npu.npu_swiglu(",
    ),
    Spelling(
        "gate of a state space model",
        unit(
            """
            hidden, gate = self.both(x).chunk(2, dim=-1)
            steps = []
            state = torch.zeros_like(hidden[0])
            for i in range(hidden.shape[0]):
                state = 0.5 * state + hidden[i]
                steps.append(state)
            return self.w2(torch.stack(steps) * F.silu(gate))
            """,
            MERGED,
        ),
        "703",
        "torch_npu.npu_swiglu(torch.cat((gate, torch.stack(steps)), dim=-1), dim=-1)",
    ),
    Spelling(
        "SiLU or nothing",
        unit(
            "return self.w2(self.act(self.w1(x)) * self.w3(x))",
            parameters=', hidden_act="silu"',
            more='self.act = nn.SiLU() if hidden_act == "silu" else None',
        ),
        "703",
        JOINED,
    ),
)

FUNCTIONS = (
    Spelling(
        "gate of a norm",
        function(
            """
            def run(x, gate):
                x = x.to(torch.float32)
                return x * F.silu(gate.to(torch.float32))
            """
        ),
        "703",
        "torch_npu.npu_swiglu(torch.cat((gate.to(torch.float32), x), dim=-1), dim=-1)",
    ),
    Spelling(
        "bias first",
        function(
            """
            def run(y, bias):
                y = y + bias
                y_1, y_2 = torch.chunk(y, 2, -1)
                return F.silu(y_1) * y_2
            """
        ),
        "703",
        "return torch_npu.npu_swiglu(y, dim=-1)",
    ),
    Spelling(
        "function in a function",
        function(
            """
            def run(x):
                def gated(y):
                    y = torch.chunk(y, 2, dim=-1)
                    return F.silu(y[0]) * y[1]

                return gated(x)
            """
        ),
        "703",
        "return torch_npu.npu_swiglu(y, dim=-1)",
    ),
    Spelling(
        "helper",
        function(
            """
            def run(gate, up):
                return F.silu(gate) * up
            """
        ),
        "703",
        "torch_npu.npu_swiglu(torch.cat((gate, up), dim=-1), dim=-1)",
    ),
    Spelling(
        "quick GELU",
        function("def run(x):\n    return x * torch.sigmoid(1.702 * x)\n"),
        "705",
        "torch_npu.npu_fast_gelu(x)",
    ),
    Spelling(
        "exact GELU",
        function(
            """
            def run(x):
                share = 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0)))
                return x * share
            """
        ),
        "705",
        'torch_npu.npu_gelu(x, approximate="none")',
    ),
    Spelling(
        "exact GELU with few digits",
        function("def run(x):\n    return x * 0.5 * (1.0 + torch.erf(x / 1.41421))\n"),
        "705",
        'torch_npu.npu_gelu(x, approximate="none")',
    ),
    Spelling(
        "GELU with tanh",
        function(
            """
            def run(x):
                cubic = x + 0.044715 * torch.pow(x, 3.0)
                return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * cubic))
            """
        ),
        "705",
        'torch_npu.npu_gelu(x, approximate="tanh")',
    ),
    Spelling(
        "GELU with tanh, factored",
        function(
            """
            def run(x, bias):
                x = bias + x
                return x * 0.5 * (1.0 + torch.tanh(0.79788456 * x * (1 + 0.044715 * x * x)))
            """
        ),
        "705",
        'torch_npu.npu_gelu(x, approximate="tanh")',
    ),
    Spelling(
        "GEGLU with a helper",
        function(
            """
            def activated(x):
                return x * 0.5 * (1.0 + torch.tanh(0.79788456 * x * (1 + 0.044715 * x * x)))


            def run(y):
                first, second = torch.chunk(y, 2, -1)
                return activated(first) * second
            """
        ),
        "704",
        "torch_npu.npu_geglu(y, dim=-1, approximate=1, activate_left=True)[0]",
    ),
)
LOSSES = (
    Spelling(
        "negative log likelihood",
        function("def run(x, y):\n    return F.nll_loss(F.log_softmax(x, dim=-1), y)\n"),
        "713",
        "torch_npu.npu_cross_entropy_loss(x, y)[0].squeeze(0)",
    ),
    Spelling(
        "gathered",
        function(
            """
            def run(x, y):
                table = torch.log_softmax(x, dim=-1)
                return table.gather(dim=-1, index=y.unsqueeze(-1)).squeeze(-1)
            """
        ),
        "713",
        "return -torch_npu.npu_cross_entropy_loss(x.flatten(0, -2), y.flatten(), "
        'reduction="none")[0].view_as(y)',
    ),
    Spelling(
        "column",
        function(
            """
            def run(x, y):
                table = F.log_softmax(x, dim=1)
                return torch.gather(table, dim=1, index=y.view(-1, 1))
            """
        ),
        "713",
        'return -torch_npu.npu_cross_entropy_loss(x, y.flatten(), reduction="none")[0]'
        ".unsqueeze(-1)",
    ),
    Spelling(
        "column of losses in the shape of the target",
        function(
            """
            def run(x, y):
                table = F.log_softmax(x.view(-1, x.size(-1)), dim=1)
                losses = -torch.gather(table, dim=1, index=y.view(-1, 1))
                return losses.view(*y.size())
            """
        ),
        "713",
        "losses = torch_npu.npu_cross_entropy_loss(",
    ),
    *(
        Spelling(
            f"rows of dimension {dim}{mean}",
            function(
                f"""
                def run(x, y):
                    table = torch.log_softmax(x, dim={dim})
                    return -table[torch.arange(y.shape[0]), y]{mean}
                """
            ),
            "713",
            becomes,
        )
        for dim in (-1, 1)
        for mean, becomes in (
            ("", 'torch_npu.npu_cross_entropy_loss(x, y, reduction="none")[0]'),
            (".mean()", "torch_npu.npu_cross_entropy_loss(x, y)[0].squeeze(0)"),
        )
    ),
)


def named(spelling: Spelling) -> str:
    return spelling.name


def assert_replaced(spelling: Spelling) -> str:
    """Assert the one finding and what its fix writes; returns the new text."""
    expected = f"NPU{spelling.rule}"
    assert expected in codes(spelling.source)
    rewritten = fixed(spelling.source, applicability=Applicability.MANUAL)
    assert spelling.becomes in rewritten
    assert expected not in codes(rewritten)
    return rewritten


@pytest.mark.parametrize("spelling", UNITS + UNITS_OF_TWO, ids=named)
def test_a_gated_unit_is_replaced(spelling: Spelling) -> None:
    rewritten = assert_replaced(spelling)
    assert_same_behaviour(spelling.source, rewritten, "Unit", inputs=[(5, 8)])


@pytest.mark.parametrize("spelling", FUNCTIONS, ids=named)
def test_a_function_is_replaced(spelling: Spelling) -> None:
    rewritten = assert_replaced(spelling)
    count = rewritten.split("def run(")[1].split(")")[0].count(",") + 1
    assert_same_behaviour(spelling.source, rewritten, "run", inputs=[(3, 8)] * count)


@pytest.mark.parametrize("spelling", LOSSES, ids=named)
def test_a_loss_is_replaced(spelling: Spelling) -> None:
    rewritten = assert_replaced(spelling)
    assert_same_behaviour(spelling.source, rewritten, "run", inputs=[(6, 11), ("int", 11, 6)])


OF_THREE = Spelling(
    "gathered in the third dimension, which is the last",
    function(
        """
        def run(x, y):
            table = torch.log_softmax(x, dim=2)
            return torch.gather(table, dim=2, index=y.unsqueeze(2)).squeeze(-1)
        """
    ),
    "713",
    "return -torch_npu.npu_cross_entropy_loss(x.flatten(0, -2), y.flatten(), "
    'reduction="none")[0].view_as(y)',
)


def test_a_loss_over_the_third_dimension_is_replaced() -> None:
    rewritten = assert_replaced(OF_THREE)
    inputs = [(2, 3, 11), ("int", 11, 2, 3)]
    assert_same_behaviour(OF_THREE.source, rewritten, "run", inputs=inputs)


CHOSEN = "gate, up = self.both(x).chunk(2, dim=-1)\nreturn {} * up"
TRAPS = {
    "all logarithms are wanted as well": function(
        """
        def run(x, y):
            table = F.log_softmax(x, dim=1)
            chosen = table.gather(1, y.unsqueeze(1)).squeeze(1)
            return chosen / table.sum(dim=1)
        """
    ),
    "rows of the third dimension": function(
        """
        def run(x, y):
            return -torch.log_softmax(x, dim=2)[torch.arange(y.shape[0]), y].mean()
        """
    ),
    "chosen in the third dimension, of perhaps four": function(
        "def run(x, y):\n    table = torch.log_softmax(x, dim=2)\n"
        "    return table.gather(2, y.unsqueeze(2)).squeeze(2)\n"
    ),
    "sigmoid gate": unit(CHOSEN.format("torch.sigmoid(gate)"), MERGED),
    "relu gate": unit(CHOSEN.format("F.relu(gate)"), MERGED),
    "sigmoid with a factor": unit(CHOSEN.format("gate * torch.sigmoid(1.5 * gate)"), MERGED),
    "glu": unit("return F.glu(self.both(x), dim=-1)", MERGED),
    "three parts": unit(
        "a, b, c = self.both(x).split(self.inner, dim=-1)\nreturn a * F.silu(c.mean()) + b", MERGED
    ),
    "another default": unit(
        "return self.w2(self.act(self.w1(x)) * self.w3(x))",
        parameters=", act_layer=nn.Sigmoid",
        more="self.act = act_layer()",
    ),
    "another name by default": unit(
        "return self.w2(self.act(self.w1(x)) * self.w3(x))",
        parameters=', hidden_act="relu"',
        more="self.act = ACT2FN[hidden_act]",
    ),
    "sizes differ": unit(
        "return F.silu(self.one(x)) * self.w3(x)", more="self.one = nn.Linear(width, 1)"
    ),
    "excitation": unit("return x * F.silu(self.w1(x)).mean()"),
    "scaled": function("def run(x, scale):\n    return x * F.silu(scale)\n"),
    "constant": function("def run(x):\n    return F.silu(x) * 2.0\n"),
    "same tensor": function("def run(x):\n    return F.silu(x) * x\n"),
    "native GELU": unit("return self.act(self.w1(x))", more="self.act = nn.GELU()"),
    "another factor": function("def run(x):\n    return x * torch.sigmoid(1.7 * x)\n"),
    "another root": function("def run(x):\n    return 0.5 * x * (1 + torch.erf(x / 2))\n"),
    "another cube": function(
        "def run(x):\n    inner = 0.79788456 * (x + 0.0447 * x**3)\n"
        "    return 0.5 * x * (1 + torch.tanh(inner))\n"
    ),
    "native cross entropy": function("def run(x, y):\n    return F.cross_entropy(x, y)\n"),
    "transposed product": function("def run(q, k):\n    return q @ k.transpose(-2, -1)\n"),
    "NPU already": unit(
        "if self.npu_available:\n    return x\nreturn self.w2(F.silu(self.w1(x)) * self.w3(x))"
    ),
    "gate is a number": function("def run(x, probability):\n    return x * F.silu(probability)\n"),
    "gate has one more dimension": function(
        "def run(x, gate):\n    return x * F.silu(gate.unsqueeze(-1))\n"
    ),
    "gate is indexed with None": function(
        "def run(x, gate):\n    return x * F.silu(gate[:, None])\n"
    ),
    "pooled gate": unit(
        "gate = self.w1(x.mean(1, keepdim=True))\nreturn F.silu(gate) * self.w3(x)"
    ),
    "pooled by a module": unit(
        "return self.w3(x) * F.gelu(self.w1(self.pool(x)))",
        more="self.pool = nn.AdaptiveAvgPool1d(1)",
    ),
    "gate is a parameter": unit(
        "return F.silu(self.gate) * self.w3(x)", more="self.gate = nn.Parameter(torch.ones(inner))"
    ),
    "gate of a parameter": unit(
        "return F.gelu(self.w1.weight) * self.w3.weight", more="self.gate = None"
    ),
    "types differ": function(
        "def run(x, y):\n    return F.silu(x.to(torch.float32)) * y.to(torch.float16)\n"
    ),
    "derivative": function(
        "def run(x):\n    return F.silu(x) * (1 - torch.tanh(F.softplus(x)).square())\n"
    ),
    "divided by its own root": function(
        "def run(x):\n    return F.silu(x) / x.square().mean(-1).sqrt()\n"
    ),
    "quick GELU by default": unit(
        "return self.w2(self.act(self.w1(x)) * self.w3(x))",
        parameters=', hidden_act="quick_gelu"',
        more="self.act = ACT2FN[hidden_act]",
    ),
    "hard swish by default": unit(
        "return self.w2(self.act(self.w1(x)) * self.w3(x))",
        parameters=", act_layer=nn.Hardswish",
        more="self.act = act_layer()",
    ),
    "named after ReLU": unit(
        "hidden_relu = self.act(self.w1(x))\nreturn self.w2(hidden_relu * self.w3(x))",
        more="self.act = ACT2FN[self.name]",
    ),
    "dropout": function(
        "def run(x, kept):\n    drawn = torch.floor(kept + torch.rand(x.shape))\n"
        "    return x.div(kept) * drawn\n"
    ),
    "no expert of many": function(
        "def run(out, expert, x, rows):\n    return out.index_add(0, rows, expert(x[rows]))\n"
    ),
}


@pytest.mark.parametrize("source", TRAPS.values(), ids=TRAPS)
def test_something_else_is_left_alone(source: str) -> None:
    assert codes(source) == []


ADVICE = {
    "loop over a list": (
        "NPU712",
        """
        def run(self, x, result, choice, share):
            for number in range(self.count):
                expert = self.experts[number]
                slots, rows = torch.where(choice[number])
                state = x[None, rows].reshape(-1, 8)
                state = expert(state) * share[rows, slots, None]
                result.index_add_(0, rows, state.to(x.dtype))
            return result
        """,
    ),
    "loop with stacked weights": (
        "NPU712",
        """
        def run(self, x, result, choice, share, hit):
            for expert in hit:
                slots, rows = torch.where(choice[expert])
                state = F.relu(F.linear(x[rows], self.up[expert]))
                state = F.linear(state, self.down[expert]) * share[rows, slots, None]
                result.index_add_(0, rows, state)
            return result
        """,
    ),
    "loop that stores": (
        "NPU712",
        """
        def run(experts, x, choice, share):
            result = torch.zeros_like(x)
            for number, expert in enumerate(experts):
                rows, slots = torch.where(choice == number)
                result[rows] += expert(x[rows]) * share[rows, slots, None]
            return result
        """,
    ),
    "stochastic depth": (
        "NPU714",
        """
        def run(x, rate=0.0, training=False, scaled=True):
            if rate == 0.0 or not training:
                return x
            kept = 1 - rate
            shape = (x.shape[0],) + (1,) * (x.ndim - 1)
            drawn = x.new_empty(shape).bernoulli_(kept)
            if kept > 0.0 and scaled:
                drawn.div_(kept)
            return x * drawn
        """,
    ),
    "stochastic depth, rounded": (
        "NPU714",
        """
        def run(x, rate, training):
            kept = 1 - rate
            shape = (x.shape[0],) + (1,) * (x.ndim - 1)
            drawn = kept + torch.rand(shape, dtype=x.dtype, device=x.device)
            drawn.floor_()
            return x.div(kept) * drawn
        """,
    ),
}


@pytest.mark.parametrize(("rule", "text"), ADVICE.values(), ids=ADVICE)
def test_what_no_edit_replaces_is_told(rule: str, text: str) -> None:
    found = [f for f in findings(function(text)) if f.rule.code == rule]
    assert len(found) == 1
    assert found[0].fixes == ()
    assert found[0].note is not None


NEAR_MISSES = {
    "in turn": "def run(x):\n    return F.silu(x[..., ::2]) * x[..., 1::2]\n",
    "clipped": """
        def run(self, both):
            gate, up = both[..., ::2], both[..., 1::2]
            gate = gate.clamp(min=None, max=self.limit)
            up = up.clamp(min=-self.limit, max=self.limit)
            return (up + 1) * (gate * torch.sigmoid(gate * self.alpha))
        """,
}


@pytest.mark.parametrize("text", NEAR_MISSES.values(), ids=NEAR_MISSES)
def test_a_near_miss_has_a_reason_and_no_fix(text: str) -> None:
    known = CATALOGUE.rule_named("almost-fused")
    found = [f for f in findings(function(text)) if f.rule.code.startswith("NPU7")]
    assert [f.rule for f in found] == ([] if known is None else [known])
    assert not any(f.fixes for f in found)


def test_code_that_is_scripted_has_no_fix() -> None:
    source = function(
        """
        @torch.jit.script
        def run(x):
            return x * torch.sigmoid(1.702 * x)
        """
    )
    (found,) = (f for f in findings(source) if f.rule.code == "NPU705")
    assert found.fixes == ()


def test_comments_and_other_uses_stay() -> None:
    source = unit(
        """
        gate = F.silu(self.w1(x))  # the gate
        hidden = gate * self.w3(x)
        return self.w2(hidden) + gate.mean()
        """
    )
    rewritten = fixed(source)
    assert "# the gate" in rewritten
    assert_same_behaviour(source, rewritten, "Unit", inputs=[(5, 8)])


def test_the_reason_for_a_configured_activation_is_told() -> None:
    source = unit(
        "return self.w2(self.act(self.w1(x)) * self.w3(x))", more="self.act = ACT2FN[self.name]"
    )
    (found,) = (f for f in findings(source) if f.rule.code == "NPU703")
    assert found.note is not None
    assert "with SiLU this is SwiGLU, with GELU it is GEGLU" in found.note.en
    assert [fix.title.en for fix in found.fixes] == [
        "Use torch_npu.npu_swiglu, if the configured activation is SiLU",
        "Use torch_npu.npu_geglu, if the configured activation is the exact GELU",
        "Use torch_npu.npu_geglu, if the configured activation is GELU with tanh",
    ]


GATED = "return self.w2(self.act(self.w1(x)) * self.w3(x))"
CONFIGURED = {
    "by a default": (', hidden_act="silu"', "self.act = ACT2FN[hidden_act]", True),
    "by a class": (", act_layer=nn.SiLU", "self.act = act_layer()", True),
    "elsewhere": ("", "self.act = ACT2FN[self.config.hidden_act]", False),
    "by who builds it": (", act=None", "self.act = act", False),
    "by a default for GELU": (', hidden_act="gelu"', "self.act = ACT2FN[hidden_act]", False),
}


@pytest.mark.parametrize("name", CONFIGURED)
def test_only_what_the_code_says_is_applied_without_asking(name: str) -> None:
    parameters, more, is_said = CONFIGURED[name]
    source = unit(GATED, parameters=parameters, more=more)
    assert fixed(source, applicability=Applicability.MANUAL) != source
    assert (fixed(source) != source) == is_said


def test_a_gate_of_quick_gelu_is_no_geglu() -> None:
    source = function("def run(gate, up):\n    return gate * torch.sigmoid(1.702 * gate) * up\n")
    assert codes(source) == ["NPU705"]


SMOOTHED = function(
    """
    class Smoothed(nn.Module):
        def __init__(self, classes, share=0.1):
            super().__init__()
            self.classes, self.share = classes, share
            self.logarithm = nn.LogSoftmax(dim=1)

        def forward(self, x, y):
            table = self.logarithm(x)
            rows = torch.zeros(table.size()).scatter_(1, y.unsqueeze(1).data.cpu(), 1).npu()
            rows = (1 - self.share) * rows + self.share / self.classes
            return (-rows * table).mean(0).sum()
    """
)


def test_smoothed_targets_are_told_without_an_edit() -> None:
    assert codes(SMOOTHED) == ["NPU713"]
    assert fixed(SMOOTHED, applicability=Applicability.MANUAL) == SMOOTHED
    of_a_teacher = SMOOTHED.replace("torch.zeros(table.size()).scatter_", "y.softmax(1).scatter_")
    assert codes(of_a_teacher) == []
