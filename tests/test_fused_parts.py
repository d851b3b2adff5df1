"""Computations of which each function holds only a part: whose finding it is, once."""

import pytest

from helpers import code, findings
from npulens.analysis import StatementCache, analyze
from npulens.catalog.loader import load_catalogue
from npulens.catalog.model import Target
from npulens.text.document import Document

HEAD = """
import torch
from torch import nn
from torch.nn import functional as F
from transformers.activations import ACT2FN
"""

SPREAD = {
    "softmax in a helper, products in its caller": (
        """
        def weigh(scores):
            return scores.softmax(-1)


        def attend(q, k, v):
            return weigh(q @ k.transpose(-1, -2)) @ v
        """,
        ["attend"],
    ),
    "all of it in a helper": (
        """
        def attend(q, k, v):
            return (q @ k.transpose(-1, -2)).softmax(-1) @ v


        def run(q, k, v, mask):
            return attend(q, k, v) if mask is None else attend(q, k, v + mask)
        """,
        ["attend"],
    ),
    "two methods and the one that joins them": (
        """
        class Attention(nn.Module):
            def weights(self, scores):
                return scores.softmax(-1)

            def scores(self, q, k):
                return torch.matmul(q, k.transpose(-1, -2))

            def forward(self, q, k, v):
                return torch.matmul(self.weights(self.scores(q, k)), v)
        """,
        ["forward"],
    ),
    "a method of a base class": (
        """
        class Base(nn.Module):
            def weights(self, scores):
                return scores.softmax(-1)


        class Attention(Base):
            def forward(self, q, k, v):
                return self.weights(q @ k.transpose(-1, -2)) @ F.softplus(F.gelu(v))
        """,
        ["forward"],
    ),
    "a module that the constructor makes": (
        """
        class Attention(nn.Module):
            def __init__(self):
                super().__init__()
                soft = nn.Softmax(dim=-1)
                self.soft = soft

            def forward(self, q, k, v):
                return self.soft(q @ k.transpose(-1, -2)) @ v
        """,
        ["forward"],
    ),
    "a norm of PyTorch's own": (
        """
        class Block(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.norm = nn.RMSNorm(width, eps=1e-6)

            def forward(self, x):
                return self.norm(x)
        """,
        ["forward"],
    ),
    "an activation by its name": (
        """
        class Unit(nn.Module):
            def __init__(self):
                super().__init__()
                self.act = ACT2FN["quick_gelu"]

            def forward(self, x):
                return self.act(x)
        """,
        ["forward"],
    ),
    "the root in a helper, the gain in a method": (
        """
        def unit(x, eps):
            return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)


        class Norm(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.weight = nn.Parameter(torch.ones(width))

            def forward(self, x):
                return unit(x, 1e-6) * self.weight
        """,
        ["forward"],
    ),
}


@pytest.mark.parametrize(("source", "functions"), SPREAD.values(), ids=SPREAD)
def test_is_found_once(source: str, functions: list[str]) -> None:
    text = code(HEAD) + "\n\n" + code(source)
    places = [found.span.start for found in findings(text) if found.rule.family == "fused"]
    assert [text[:place].rpartition("def ")[2].partition("(")[0] for place in places] == functions


EDITS = {
    "a helper gets the softmax": (
        "def weigh(scores):\n    return scores.{}\n\n\n"
        "def attend(q, k, v):\n    return weigh(q @ k.transpose(-1, -2)) @ v\n",
        ("tanh()", "softmax(-1)", "tanh()"),
    ),
    "a helper loses the products": (
        "def mixed(q, k, v):\n    return {}\n\n\n"
        "def attend(q, k, v, mask):\n    return mixed(q, k, v) @ v\n",
        ("(q @ k.mT).softmax(-1) @ v", "(q @ k.mT).softmax(-1)", "(q * k).softmax(-1)"),
    ),
    "a method of a base class": (
        "class Base(nn.Module):\n    def weights(self, scores):\n        return scores.{}\n\n\n"
        "class Attention(Base):\n    def forward(self, q, k, v):\n"
        "        return self.weights(q @ k.transpose(-1, -2)) @ F.gelu(v)\n",
        ("tanh()", "softmax(-1)", "tanh()"),
    ),
    "a class between": (
        "class Base(nn.Module):\n    def weights(self, scores):\n        return scores.{}\n\n\n"
        "class Middle(Base):\n    pass\n\n\n"
        "class Attention(Middle):\n    def forward(self, q, k, v):\n"
        "        return self.weights(q @ k.transpose(-1, -2)) @ F.gelu(v)\n",
        ("tanh()", "softmax(-1)", "tanh()"),
    ),
}


@pytest.mark.parametrize(("source", "states"), EDITS.values(), ids=EDITS)
def test_an_edit_of_one_part_is_seen_in_the_others(source: str, states: tuple[str, ...]) -> None:
    cache, catalogue, told = StatementCache(), load_catalogue(), []
    for state in states:
        document = Document("model.py", code(HEAD) + "\n\n" + source.replace("{}", state))
        fresh = analyze(document, catalogue, Target())
        assert analyze(document, catalogue, Target(), cache) == fresh
        told.append([f.span for f in fresh if f.rule.family == "fused"])
    assert told[0] != told[1]


SPELLINGS = {
    "a product on a line of its own": (
        "def norm(x, weight):\n"
        "    return (\n"
        "        x\n"
        "        * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)\n"
        "        * weight\n"
        "    )"
    ),
    "a product by name": (
        "def norm(x, weight):\n"
        "    root = torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)\n"
        "    return torch.mul(torch.mul(x, root), weight)"
    ),
    "a power without spaces": (
        "def norm(x, weight):\n    return x * ((x*x).mean(-1, keepdim=True) + 1e-6)**-0.5 * weight"
    ),
    "a power with spaces": (
        "def norm(x, weight):\n"
        "    return x * (x.square().mean(-1, keepdim=True) + 1e-6) ** -0.5 * weight"
    ),
    "a power on a line of its own": (
        "def norm(x, weight):\n"
        "    root = (\n"
        "        (x.square().mean(-1, keepdim=True) + 1e-6)\n"
        "        ** -0.5\n"
        "    )\n"
        "    return x * root * weight"
    ),
    "a quotient by name": (
        "def norm(x, weight):\n"
        "    mean = torch.mean(x.square(), -1, keepdim=True)\n"
        "    return torch.div(x, torch.sqrt(mean + 1e-6)) * weight"
    ),
    "a mask of a large number": (
        "def soft(scores, mask):\n"
        "    scores = (scores * 0.125).masked_fill(mask, -10000.0)\n"
        "    return torch.softmax(scores, dim=-1)"
    ),
    "a loss by what it chooses": (
        "def loss(logits, target):\n    return F.nll_loss(F.log_softmax(logits, dim=-1), target)"
    ),
}


@pytest.mark.parametrize("source", SPELLINGS.values(), ids=SPELLINGS)
def test_is_found_however_it_is_written(source: str) -> None:
    text = f"{code(HEAD)}\n\n{source}\n"
    assert [found.rule.family for found in findings(text)] == ["fused"]
