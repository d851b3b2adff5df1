"""Attention written out: which spellings are recognised, what is written, what is left alone."""

from textwrap import dedent
from typing import NamedTuple

import pytest

from fused_execution import assert_same_behaviour
from npulens.analysis import analyze
from npulens.catalog.loader import load_catalogue
from npulens.catalog.model import Finding, Target
from npulens.text.document import Document

CATALOGUE = load_catalogue()
HEAD = """
import math
import torch
import torch.nn.functional as F
from torch import nn
"""
HEADS = [(2, 3, 6, 8), (2, 3, 6, 8), (2, 3, 6, 8)]
MERGED = [(6, 5, 8), (6, 5, 8), (6, 5, 8)]
INSIDE = [(2, 6, 3, 8), (2, 6, 3, 8), (2, 6, 3, 8)]
TOKENS = [(2, 6, 24)]


class Case(NamedTuple):
    """Code, the inputs it is run with, and what the fix must hold and leave."""

    name: str
    code: str
    inputs: list[object]
    written: tuple[str, ...] = ()


def function(body: str, parameters: str = "q, k, v") -> str:
    lines = dedent(body).strip().splitlines()
    return f"{HEAD}\n\ndef attend({parameters}):\n" + "".join(f"    {line}\n" for line in lines)


def module(body: str, constructor: str = "", parameters: str = "q, k, v") -> str:
    made = "".join(f"        {line}\n" for line in dedent(constructor).strip().splitlines())
    lines = "".join(f"        {line}\n" for line in dedent(body).strip().splitlines())
    head = f"{HEAD}\n\nclass Attend(nn.Module):\n    def __init__(self):\n"
    return (
        f"{head}        super().__init__()\n{made}\n    def forward(self, {parameters}):\n{lines}"
    )


FUSED = [
    Case(
        "matmul, divided by a root",
        function("""
            scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.size(-1))
            weights = F.softmax(scores, dim=-1)
            return torch.matmul(weights, v)
        """),
        HEADS,
        ("q.shape[1]", '"BNSD"', "scale=q.size(-1) ** -0.5", ")[0]"),
    ),
    Case(
        "query scaled first, dimensions counted from the front",
        function("""
            q = q * q.shape[-1] ** -0.5
            return torch.softmax(q @ k.transpose(2, 3), dim=3) @ v
        """),
        HEADS,
        ("scale=q.shape[-1] ** -0.5",),
    ),
    Case(
        "masked before it is scaled",
        function("""
            scores = q @ k.transpose(2, 3)
            drop = torch.triu(torch.ones(6, 6), diagonal=1).bool()
            scores.masked_fill_(drop, -torch.inf)
            weights = torch.softmax(scores / k.shape[-1] ** 0.5, dim=-1)
            return weights @ v
        """),
        HEADS,
        ("atten_mask", "scale=k.shape[-1] ** -0.5"),
    ),
    Case(
        "a scale that was made a tensor",
        function("""
            scores = q @ k.transpose(-2, -1)
            scores = scores / torch.sqrt(torch.tensor(k.shape[-1], dtype=torch.float32))
            return torch.softmax(scores, dim=-1) @ v
        """),
        HEADS,
        ("scale=k.shape[-1] ** -0.5",),
    ),
    Case(
        "no scale",
        function("""
            # keys against queries
            weights = (q @ k.mT).softmax(-1)
            return weights @ v
        """),
        HEADS,
        ("scale=1.0", "# keys against queries"),
    ),
    Case(
        "float32 for the softmax alone",
        function("""
            scores = q @ k.permute(0, 1, 3, 2) * 0.35
            weights = F.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype)
            return weights @ v
        """),
        HEADS,
        ("scale=0.35",),
    ),
    Case(
        "key scaled",
        function("return torch.softmax(q @ (k * 0.25).transpose(-1, -2), -1) @ v"),
        HEADS,
        ("scale=0.25",),
    ),
    Case(
        "mask of what is kept",
        function(
            """
            scores = (q @ k.transpose(-2, -1)) * 0.3
            scores = scores.masked_fill(~keep, torch.finfo(scores.dtype).min)
            return scores.softmax(dim=-1) @ v
            """,
            "q, k, v, drop, keep=None",
        ).replace("~keep", "drop"),
        [*HEADS, ("bool", 2, 1, 1, 6)],
        ("atten_mask=torch.broadcast_to(drop, (*q.shape[:3], k.shape[2]))",),
    ),
    Case(
        "where with what is left out first",
        function(
            """
            scores = (q @ k.transpose(-2, -1)) * 0.3
            scores = torch.where(drop, float("-inf"), scores)
            return scores.softmax(dim=-1) @ v
            """,
            "q, k, v, drop",
        ),
        [*HEADS, ("bool", 6, 6)],
        ("torch.broadcast_to(drop,",),
    ),
    Case(
        "where with what is kept first",
        function(
            """
            scores = (q @ k.transpose(-2, -1)) * 0.3
            scores = torch.where(drop.logical_not(), scores, -1e9)
            return scores.softmax(dim=-1) @ v
            """,
            "q, k, v, drop",
        ),
        [*HEADS, ("bool", 6, 6)],
        ("atten_mask=",),
    ),
    Case(
        "where with the lowest number that somebody wrote down",
        function(
            """
            scores = (q @ k.transpose(-2, -1)) * 0.3
            lowest = -2.3819763e38
            keep = ~drop[:, None, :, :]
            return torch.where(keep, scores, lowest).softmax(dim=-1) @ v
            """,
            "q, k, v, drop",
        ),
        [*HEADS, ("bool", 2, 6, 6)],
        ("atten_mask=",),
    ),
    Case(
        "dropout of torch itself",
        function("""
            weights = torch.softmax((q @ k.transpose(-2, -1)) * 0.3, dim=-1)
            return torch.dropout(weights, 0.0, train=True) @ v
        """),
        HEADS,
        ("npu_fusion_attention(",),
    ),
    Case(
        "zeros filled with minus infinity and added",
        function(
            """
            added = torch.zeros(6, 6).masked_fill(drop, float("-inf"))
            scores = (q @ k.transpose(-2, -1)) * 0.3 + added
            return scores.softmax(dim=-1) @ v
            """,
            "q, k, v, drop",
        ),
        [*HEADS, ("bool", 6, 6)],
        ("torch.broadcast_to(drop,",),
    ),
    Case(
        "mask that may be none",
        function(
            """
            scores = (q @ k.transpose(-2, -1)) * 0.3
            if mask is not None:
                scores = scores.masked_fill(mask == 0, -1e9)
            return scores.softmax(dim=-1) @ v
            """,
            "q, k, v, mask=None",
        ),
        HEADS,
        ("atten_mask=None if mask is None else torch.broadcast_to(mask == 0,",),
    ),
    Case(
        "a causal mask, and one of padding that may be none",
        function(
            """
            scores = (q @ k.transpose(-2, -1)) * 0.3
            scores = scores.masked_fill(later, float("-inf"))
            if padding != None:
                scores = scores.masked_fill(~padding, float("-inf"))
            return scores.softmax(dim=-1) @ v
            """,
            "q, k, v, later, padding=None",
        ),
        [*HEADS, ("above", 1, 6, 6)],
        ("torch.broadcast_to(later | ((~padding) if padding is not None else False),",),
    ),
    Case(
        "both of two masks",
        function(
            """
            scores = (q @ k.transpose(-2, -1)) * 0.3
            scores = scores.masked_fill(later, float("-inf"))
            return scores.masked_fill(padding, float("-inf")).softmax(dim=-1) @ v
            """,
            "q, k, v, later, padding",
        ),
        [*HEADS, ("above", 1, 6, 6), ("above", 4, 1, 6)],
        ("torch.broadcast_to(later | padding,",),
    ),
    Case(
        "heads behind the sequence, a causal mask that an option asks for, and one of padding",
        function(
            """
            scores = torch.einsum("b l h d, b s h d -> b h l s", q, k) * 0.3
            if causal:
                later = torch.triu(torch.ones(6, 6, dtype=torch.bool), diagonal=1)
                scores = scores.masked_fill(later, float("-inf"))
            if padding is not None:
                scores = scores.masked_fill(padding, float("-inf"))
            return torch.einsum("bhls,bshd->blhd", scores.softmax(-1), v)
            """,
            "q, k, v, causal, padding=None",
        ),
        [*INSIDE, True],
        ("q.shape[2]", '"BSND"', "if causal else False)", "if causal or padding is not None"),
    ),
    Case(
        "the same with a mask, in place",
        function(
            """
            scores = (q @ k.transpose(-2, -1)) * 0.3
            if mask is not None:
                scores.masked_fill_(mask, -1e9)
            return scores.softmax(dim=-1) @ v
            """,
            "q, k, v, mask=None",
        ),
        [*HEADS, ("bool", 2, 1, 1, 6)],
        ("None if mask is None else torch.broadcast_to(mask,",),
    ),
    Case(
        "triangle made on the way",
        function("""
            length = q.shape[-2]
            later = torch.triu(torch.ones(length, length, dtype=torch.bool), diagonal=1)
            scores = (q @ k.transpose(-2, -1)) / math.sqrt(q.size(-1))
            return F.softmax(scores.masked_fill(later, float("-inf")), dim=-1) @ v
        """),
        HEADS,
        ("sparse_mode=2", "(2048, 2048,"),
    ),
    Case(
        "triangle aligned to the last key",
        function("""
            rows, columns = q.shape[2], k.shape[2]
            later = torch.ones(rows, columns, dtype=torch.bool).triu(columns - rows + 1)
            scores = (q @ k.transpose(-2, -1)) / math.sqrt(q.size(-1))
            return F.softmax(scores.masked_fill(later, float("-inf")), dim=-1) @ v
        """),
        [(2, 3, 4, 8), (2, 3, 6, 8), (2, 3, 6, 8)],
        ("sparse_mode=3",),
    ),
    Case(
        "bmm of three dimensions",
        function("""
            scores = torch.bmm(q, k.transpose(1, 2)) * 0.3
            return torch.bmm(F.softmax(scores, dim=2), v)
        """),
        MERGED,
        ('1, "BSH"',),
    ),
    Case(
        "einsum of three dimensions",
        function("""
            scores = torch.einsum("b i d, b j d -> b i j", q, k) * 0.3
            return torch.einsum("b i j, b j d -> b i d", scores.softmax(dim=-1), v)
        """),
        MERGED,
        ('1, "BSH"',),
    ),
    Case(
        "einsum with heads first",
        function("""
            scores = torch.einsum("bhid,bhjd->bhij", q, k) * 0.3
            return torch.einsum("bhij,bhjd->bhid", scores.softmax(dim=-1), v)
        """),
        HEADS,
        ('q.shape[1], "BNSD"',),
    ),
    Case(
        "einsum with heads inside",
        function("""
            scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5
            return torch.einsum("bhqk,bkhd->bqhd", torch.softmax(scores, -1), v)
        """),
        INSIDE,
        ('q.shape[2], "BSND"',),
    ),
    Case(
        "einsum over lists",
        function("""
            scores = torch.einsum("bhlk,bhtk->bhlt", [q, k]) * 0.3
            return torch.einsum("bhlt,bhtv->bhlv", [scores.softmax(dim=-1), v])
        """),
        HEADS,
        ('q.shape[1], "BNSD"', "scale=0.3"),
    ),
    Case(
        "a root of the scale on both sides",
        function("""
            scale = 1 / math.sqrt(math.sqrt(q.shape[-1]))
            scores = torch.matmul(q * scale, k.transpose(-1, -2) * scale)
            return torch.matmul(torch.softmax(scores, dim=-1), v)
        """),
        HEADS,
        ("scale=q.shape[-1] ** -0.5",),
    ),
    Case(
        "the same number on both sides",
        module(
            """
            weights = (q * self.scale) @ (k * self.scale).transpose(-2, -1)
            return torch.softmax(weights.float(), dim=-1).type(weights.dtype) @ v
            """,
            "self.scale = 0.6",
        ),
        HEADS,
        ("scale=self.scale ** 2",),
    ),
    Case(
        "one head over channels, keys and values with channels first",
        module(
            """
            batch, channels, height, width = x.shape
            q = self.q(x).reshape(batch, channels, height * width).permute(0, 2, 1)
            k = self.k(x).reshape(batch, channels, height * width)
            weights = torch.bmm(q, k) * (int(channels) ** (-0.5))
            weights = F.softmax(weights, dim=2)
            v = self.v(x).reshape(batch, channels, height * width)
            weights = weights.permute(0, 2, 1)
            return torch.bmm(v, weights).reshape(batch, channels, height, width)
            """,
            "self.q, self.k, self.v = nn.Conv2d(8, 8, 1), nn.Conv2d(8, 8, 1), nn.Conv2d(8, 8, 1)",
            "x",
        ),
        [(2, 8, 3, 4)],
        ('1, "BSH"', "k.transpose(1, 2)", "v.transpose(1, 2)", "[0].transpose(1, 2).reshape("),
    ),
    Case(
        "one head over channels, scaled where that is wanted",
        module(
            """
            q, k = x.flatten(2), x.flatten(2)
            weights = torch.matmul(q.view(2, 8, 12).permute(0, 2, 1), k)
            if self.by_root:
                weights /= x.shape[1] ** 0.5
            weights = weights.softmax(dim=-1)
            return torch.matmul(k, weights.permute(0, 2, 1)).view(2, 8, 3, 4)
            """,
            "self.by_root = torch.get_num_threads() > 0",
            "x",
        ),
        [(2, 8, 3, 4)],
        ("scale=x.shape[1] ** -0.5 if self.by_root else 1",),
    ),
    Case(
        "scaled where a factor is given",
        module(
            """
            scores = q @ k.transpose(-2, -1)
            if self.scale is not None:
                scores = scores * self.scale
            return scores.softmax(dim=-1) @ v
            """,
            "self.scale = scale",
        ).replace("__init__(self)", "__init__(self, scale=0.3)"),
        HEADS,
        ("scale=1 if (self.scale is None) else self.scale",),
    ),
    Case(
        "one head over channels, keys alone with channels first",
        function("""
            weights = F.softmax(torch.bmm(q, k) * 0.3, dim=2)
            return torch.bmm(weights, v)
        """),
        [(2, 6, 8), (2, 8, 5), (2, 5, 8)],
        ('1, "BSH"', "k.transpose(1, 2)"),
    ),
    Case(
        "heads in the batch, channels first, by einsum",
        function("""
            scale = 1 / math.sqrt(math.sqrt(q.shape[1]))
            weights = torch.einsum("bct,bcs->bts", q * scale, k * scale)
            weights = torch.softmax(weights.float(), dim=-1).type(weights.dtype)
            return torch.einsum("bts,bcs->bct", weights, v)
        """),
        [(2, 8, 6), (2, 8, 5), (2, 8, 5)],
        ('1, "BSH"', "q.transpose(-2, -1)", "[0].transpose(1, 2)"),
    ),
    Case(
        "one key and value for all heads",
        module(
            """
            scores = torch.einsum("bnhk,bmk->bnhm", q, k) * 0.3
            weights = self.drop(scores.softmax(dim=-1))
            return torch.einsum("bnhm,bmv->bnhv", weights, v)
            """,
            "self.drop = nn.Dropout(0.0)",
        ),
        [(2, 6, 3, 8), (2, 5, 8), (2, 5, 8)],
        ('q.flatten(1, 2), k, v, 1, "BSH"', "[0].unflatten(1, q.shape[1:3])"),
    ),
    Case(
        "baddbmm whose addend counts nothing",
        function("""
            empty = torch.empty(q.shape[0], q.shape[1], k.shape[1])
            scores = torch.baddbmm(empty, q, k.transpose(-1, -2), beta=0, alpha=0.3)
            return torch.bmm(scores.softmax(dim=-1), v)
        """),
        MERGED,
        ("scale=0.3",),
    ),
    Case(
        "modules for softmax and dropout, one projection",
        module(
            """
            batch, length, width = x.shape
            qkv = self.qkv(x).reshape(batch, length, 3, 3, 8).permute(2, 0, 3, 1, 4)
            q, k, v = qkv[0], qkv[1], qkv[2]
            weights = self.drop(self.softmax((q @ k.transpose(-2, -1)) * self.scale))
            return (weights @ v).transpose(1, 2).reshape(batch, length, width)
            """,
            """
            self.qkv = nn.Linear(24, 72)
            self.scale = 8 ** -0.5
            self.softmax = nn.Softmax(dim=-1)
            self.drop = nn.Dropout(0.0)
            """,
            "x",
        ),
        TOKENS,
        ("scale=self.scale", "q, k, v = qkv[0], qkv[1], qkv[2]", ")[0].transpose(1, 2).reshape("),
    ),
    Case(
        "function for dropout",
        module(
            """
            weights = F.softmax((q @ k.transpose(-2, -1)) * self.scale, dim=-1)
            weights = F.dropout(weights, p=self.rate, training=self.training)
            return weights @ v
            """,
            "self.scale, self.rate = 0.3, 0.0",
        ),
        HEADS,
        ("keep_prob=1.0 - self.rate if self.training else 1.0",),
    ),
    Case(
        "buffer with a triangle",
        module(
            """
            length = q.size(2)
            scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
            hidden = self.past[:, :, :length, :length] == 0
            scores = scores.masked_fill(hidden, float("-inf"))
            out = self.drop(scores.softmax(dim=-1)) @ v
            return out.transpose(1, 2).flatten(2)
            """,
            """
            self.drop = nn.Dropout(0.0)
            self.register_buffer("past", torch.tril(torch.ones(9, 9)).view(1, 1, 9, 9))
            """,
        ),
        HEADS,
        ("sparse_mode=2", "scale=1.0 / math.sqrt(k.size(-1))"),
    ),
]
FUSED.append(
    Case(
        "buffer that is there only where it is needed",
        FUSED[-1].code.replace(
            "        self.register", "        if self.training:\n            self.register"
        ),
        HEADS,
        ("sparse_mode=2",),
    )
)

SCORES = "scores = (q @ k.transpose(-2, -1)) * 0.3\n"
LEFT_ALONE = {
    "softmax over queries": SCORES + "return scores.softmax(dim=-2) @ v",
    "weights returned": SCORES + "w = scores.softmax(-1)\nreturn w @ v, w",
    "scores returned": SCORES + "return scores.softmax(-1) @ v, scores",
    "weights kept": SCORES + "w = scores.softmax(-1)\nq.weights = w\nreturn w @ v",
    "softcap": SCORES + "return torch.softmax(torch.tanh(scores / 50) * 50, -1) @ v",
    "bias": SCORES + "return torch.softmax(scores + bias, -1) @ v",
    "mask before scaling by a tensor": "return torch.softmax(q @ k.mT * bias, -1) @ v",
    "dropout before softmax": SCORES + "return torch.softmax(F.dropout(scores, 0.1), -1) @ v",
    "weights of heads": SCORES + "return (scores.softmax(-1) * bias) @ v",
    "heads mixed": SCORES + "return torch.einsum('bhij,hg->bgij', scores.softmax(-1), bias) @ v",
    "filled with a small number": SCORES + "return scores.masked_fill(bias, -1.0).softmax(-1) @ v",
    "masked after softmax": SCORES + "return scores.softmax(-1).masked_fill(bias, 0.0) @ v",
    "scores not transposed": "return torch.softmax(q @ k * 0.3, -1) @ v",
    "value first": SCORES + "return v @ scores.softmax(-1)",
    "five dimensions": "q = q.view(2, 3, 2, 3, 8)\n" + SCORES + "return scores.softmax(-1) @ v",
    "one key, softmax over heads": (
        "s = torch.einsum('bnhk,bmk->bnhm', q, k).softmax(-2)\n"
        "return torch.einsum('bnhm,bmv->bnhv', s, v)"
    ),
    "one key, heads mixed": (
        "s = torch.einsum('bnhk,bmk->bnhm', q, k).softmax(-1)\n"
        "return torch.einsum('bnhm,bmv->bhnv', s, v)"
    ),
    "channels first, weights not turned back": (
        "w = torch.softmax(torch.bmm(q, k) * 0.3, dim=2)\nreturn torch.bmm(v, w)"
    ),
    "channels first, softmax over queries": (
        "w = torch.softmax(torch.bmm(q, k) * 0.3, dim=1)\nreturn torch.bmm(w, v)"
    ),
    "attention over channels": (
        "w = torch.bmm(q, k.transpose(1, 2)).softmax(-1)\nreturn torch.bmm(v, w)"
    ),
    "sigmoid": SCORES + "return torch.sigmoid(scores) @ v",
}


def found(code: str, *rules: str) -> list[Finding]:
    """The findings of some rules."""
    findings = analyze(Document("model.py", code), CATALOGUE, Target())
    return [finding for finding in findings if finding.rule.code in rules]


def fixed(code: str) -> str:
    """The code with the first fix of its only finding."""
    (finding,) = found(code, "NPU707")
    for edit in sorted(finding.fixes[0].edits, key=lambda edit: edit.span, reverse=True):
        code = code[: edit.span.start] + edit.replacement + code[edit.span.end :]
    return code


@pytest.mark.parametrize("case", FUSED, ids=lambda case: case.name)
def test_attention_is_rewritten_and_computes_the_same(case: Case) -> None:
    rewritten = fixed(case.code)
    flat = " ".join(rewritten.replace(",\n", ", ").split()).replace("( ", "(")
    for part in ("torch_npu.npu_fusion_attention(", *case.written):
        assert part in rewritten or part in flat, rewritten
    assert "softmax(" not in rewritten.replace("nn.Softmax(", "")
    name = "Attend" if "class Attend" in case.code else "attend"
    assert_same_behaviour(case.code, rewritten, name, inputs=case.inputs)


@pytest.mark.parametrize("body", LEFT_ALONE.values(), ids=LEFT_ALONE.keys())
def test_what_is_not_plain_attention_is_left_alone(body: str) -> None:
    assert found(function(body, "q, k, v, bias"), "NPU707") == []


def test_a_mask_made_where_an_option_asks_for_it_goes_along() -> None:
    code = function(
        """
        scores = q @ k.transpose(-2, -1) * 0.3
        if causal:
            later = torch.triu(torch.ones(6, 6, dtype=torch.bool), diagonal=1)
            scores = scores.masked_fill(later, float("-inf"))
        return scores.softmax(-1) @ v
        """,
        "q, k, v, causal",
    )
    rewritten = fixed(code)
    assert "if causal:" not in rewritten
    assert "later" not in rewritten
    assert_same_behaviour(code, rewritten, "attend", inputs=[*HEADS, True])


@pytest.mark.parametrize(("channels", "fixes"), [("dim", 0), ("dim // 8", 1)])
def test_no_fix_where_values_are_wider_than_keys(channels: str, fixes: int) -> None:
    text = dedent(f"""
        import torch
        from torch import nn


        class Positions(nn.Module):
            def __init__(self, dim):
                super().__init__()
                self.query = nn.Conv2d(dim, dim // 8, 1)
                self.key = nn.Conv2d(in_channels=dim, out_channels=dim // 8, kernel_size=1)
                self.value = nn.Conv2d(dim, {channels}, kernel_size=1)

            def forward(self, x):
                b, c, h, w = x.size()
                query = self.query(x).view(b, -1, h * w).permute(0, 2, 1)
                key = self.key(x).view(b, -1, h * w)
                weights = torch.bmm(query, key).softmax(dim=-1)
                value = self.value(x).view(b, -1, h * w)
                return torch.bmm(value, weights.permute(0, 2, 1))
        """)
    (finding,) = found(text, "NPU707")
    assert len(finding.fixes) == fixes


def test_projections_of_unknown_layers_may_be_of_any_size() -> None:
    text = module(
        "k, v = self.key(k), self.value(v)\nreturn torch.softmax(q @ k.transpose(-2, -1), -1) @ v",
        "for layer in nn.ModuleList([nn.Linear(8, 8)]):\n    self.key = self.value = layer",
    )
    (finding,) = found(text, "NPU707")
    assert finding.fixes


AT_HAND = """
import torch
from torch import nn
from torch.nn import functional as F


class Attend(nn.Module):
    def __init__(self):
        super().__init__()
        self.flash = hasattr(F, "scaled_dot_product_attention")

    def forward(self, q, k, v):
        if {condition}:
            return F.scaled_dot_product_attention(q, k, v)
        return F.softmax(q @ k.transpose(-2, -1) * 0.125, dim=-1) @ v
"""


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("self.flash", 0),
        ("hasattr(torch.nn.functional, 'scaled_dot_product_attention')", 0),
        ("self.flash and not self.training", 1),
        ("hasattr(F, 'flex_attention')", 1),
    ],
)
def test_what_only_older_releases_reach_is_left_alone(condition: str, expected: int) -> None:
    assert len(found(AT_HAND.replace("{condition}", condition), "NPU707")) == expected


def test_dropout_keeps_its_rate_in_training_and_none_in_evaluation() -> None:
    code = module(
        "return self.drop(torch.softmax(q @ k.mT, -1)) @ v", "self.drop = nn.Dropout(0.5)"
    )
    assert_same_behaviour(code, fixed(code), "Attend", inputs=HEADS)
    assert_same_behaviour(code, fixed(code), "Attend", inputs=HEADS, training=False)


@pytest.mark.parametrize(
    "mask",
    [
        'torch.zeros(6, 6).masked_fill(hidden, float("-inf"))',
        "(1.0 - hidden) * -10000.0",
        "hidden[:, None].to(q.dtype)",
        'torch.full((6, 6), float("-inf")).triu(1)',
    ],
)
def test_float_masks_of_sdpa_are_told(mask: str) -> None:
    code = function(
        f"mask = {mask}\nreturn F.scaled_dot_product_attention(q, k, v, attn_mask=mask)",
        "q, k, v, hidden",
    )
    (finding,) = found(code, "NPU709")
    assert not finding.fixes


FILLED = {
    "part of zeros": """
        mask = torch.zeros((6, 6), dtype=q.dtype)
        mask[:n, :n] = float("-inf")
        mask[:n, :n].fill_diagonal_(0)
        mask = mask.unsqueeze(0).unsqueeze(0)
    """,
    "zeros in a loop": """
        mask = torch.full((6, 6), float("-inf"), dtype=q.dtype)
        for i in range(6):
            mask[i, : (i // n + 1) * n] = 0
        if n > 3:
            mask = mask.unsqueeze(0).expand(n, -1, -1)
    """,
}


@pytest.mark.parametrize("made", FILLED.values(), ids=FILLED)
def test_float_masks_that_are_filled_are_told(made: str) -> None:
    call = "return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)"
    (finding,) = found(function(f"{dedent(made)}\n{call}", "q, k, v, n"), "NPU709")
    assert not finding.fixes


@pytest.mark.parametrize("made", ["mask[:n] = True", "for i in range(n):\n    mask[i, :i] = True"])
def test_boolean_masks_that_are_filled_are_not(made: str) -> None:
    body = (
        f"mask = torch.zeros(6, 6, dtype=torch.bool)\n{made}\n"
        "return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)"
    )
    assert found(function(body, "q, k, v, n"), "NPU709") == []


@pytest.mark.parametrize("mask", ["hidden", "None", "hidden.bool()", "~hidden", "hidden == 0"])
def test_other_masks_of_sdpa_are_not(mask: str) -> None:
    code = function(
        f"return F.scaled_dot_product_attention(q, k, v, attn_mask={mask})", "q, k, v, hidden"
    )
    assert found(code, "NPU709") == []


def test_masked_softmax_is_told_where_the_weights_are_wanted() -> None:
    code = function(
        'return torch.softmax((scores * 0.3).masked_fill(drop, float("-inf")), -1)',
        "scores, drop",
    )
    (finding,) = found(code, "NPU710")
    assert not finding.fixes


@pytest.mark.parametrize("body", ["scores.softmax(-1)", "scores.masked_fill(drop, 0).softmax(-1)"])
def test_other_softmax_is_not(body: str) -> None:
    assert found(function(f"return {body}", "scores, drop"), "NPU710") == []


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("weights = scores.softmax(-1)\nreturn weights @ v, weights", "weights are used besides"),
        (
            "if bias is not None:\n    scores = scores + bias\nreturn scores.softmax(-1) @ v",
            "added",
        ),
        (
            "rest = scores.amax(-1, keepdim=True) - scores\nreturn rest.softmax(-1) @ v",
            "scores take another way",
        ),
        (
            "weights = scores.softmax(-1) if bias is None else scores / scores.shape[-1]\n"
            "return weights @ v",
            "come from something else in some cases",
        ),
    ],
)
def test_what_stands_in_the_way_is_told(body: str, reason: str) -> None:
    (finding,) = found(function(SCORES + body, "q, k, v, bias=None"), "NPU719")
    assert reason in finding.message("en")
    assert not finding.fixes


@pytest.mark.parametrize(
    ("values", "fixes"), [("v.transpose(1, 2)", False), ("v.float().transpose(1, 2)", True)]
)
def test_no_fix_where_values_stay_narrower_than_queries(values: str, fixes: bool) -> None:
    body = f"""
        q, k = q.to(torch.float32), k.to(torch.float32)
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), {values}
        weights = (q @ k.transpose(2, 3)).softmax(-1)
        return weights.to(v.dtype) @ v
    """
    (finding,) = found(function(body), "NPU707")
    assert bool(finding.fixes) is fixes


@pytest.mark.parametrize(
    ("made", "fixes"), [("unbind(-1)", False), ("view(3, 2, 3, 6, 8).unbind(0)", True)]
)
def test_no_fix_where_nothing_shows_four_dimensions(made: str, fixes: bool) -> None:
    body = f"q, k, v = self.project(x).{made}\nreturn (q @ k.mT).softmax(-1) @ v"
    (finding,) = found(module(body, "", "x"), "NPU707")
    assert bool(finding.fixes) is fixes


@pytest.mark.parametrize("made", ["self.block.dropout(weights)", "self.block.linear(weights)"])
def test_modules_of_another_module_are_no_methods_of_tensors(made: str) -> None:
    body = f"{SCORES}weights = scores.softmax(-1)\nreturn {made} @ v"
    (finding,) = found(
        module(body, "self.block = block").replace("(self)", "(self, block)"), "NPU719"
    )
    assert "changed between softmax" in finding.message("en")
