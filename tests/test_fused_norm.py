"""RMSNorm in the ways people write it, its near misses, and what only looks like it."""

from textwrap import indent

import pytest
import torch

from fused_execution import assert_same_behaviour
from helpers import code, each_fix, findings, fixed
from npulens.analysis import StatementCache
from npulens.catalog.model import Applicability

HEAD = code("""
    import torch
    import torch.nn.functional as F
    from torch import nn


    def root_mean_square(x, eps):
        return torch.sqrt(x.pow(2).mean(-1, keepdim=True) + eps)


    def rms_norm(x, weight, eps=1e-6):
        return x / root_mean_square(x, eps) * weight


    class Norm(nn.Module):
        def __init__(self, size, eps=1e-6):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(size))
            self.bias = nn.Parameter(torch.zeros(size))
            self.single = nn.Parameter(torch.ones(1))
            self.norm = nn.RMSNorm(size, eps=eps)
            self.plain = nn.RMSNorm(size)
            self.weightless = nn.RMSNorm(size, eps, elementwise_affine=False)
            self.eps = eps
            self.size = size
            self.scale = size**0.5

        def _norm(self, x):
            return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)

""")
CALL = "torch_npu.npu_rms_norm(x, self.weight.to(x.dtype), epsilon=self.eps)[0]"


def module(body: str) -> str:
    """A module whose `forward` has this body; the head around it has findings of its own."""
    return f"{HEAD}    def forward(self, x, gate=None):\n{indent(code(body), ' ' * 8)}"


def in_forward(source: str) -> list[str]:
    """Codes of the findings in `forward` that are about norms."""
    start = source.index("def forward")
    return [
        f.rule.code
        for f in findings(source)
        if f.span.start > start and f.rule.code in ("NPU701", "NPU702", "NPU719")
    ]


SPELLINGS = {
    "llama": (
        """
        dtype = x.dtype
        x = x.to(torch.float32)
        variance = x.pow(2).mean(-1, keepdim=True)
        x = x * torch.rsqrt(variance + self.eps)
        return self.weight * x.to(dtype)
        """,
        f"return {CALL}",
    ),
    "helper of the class": (
        "return self._norm(x.float()).type_as(x) * self.weight",
        f"return {CALL}",
    ),
    "one plus the weight": (
        "return (self._norm(x.float()) * (1.0 + self.weight.float())).type_as(x)",
        "return torch_npu.npu_rms_norm(x, 1.0 + self.weight.float(), epsilon=self.eps)[0]",
    ),
    "divided by the root": (
        "return x / torch.sqrt(torch.mean(x * x, -1, True) + self.eps) * self.weight",
        f"return {CALL}",
    ),
    "power of minus a half": (
        "return self.weight * x * (x.square().mean(dim=-1, keepdim=True) + self.eps) ** -0.5",
        f"return {CALL}",
    ),
    "methods only": (
        "return x.mul(x.pow(2).mean(-1, keepdim=True).add(self.eps).rsqrt()).mul(self.weight)",
        f"return {CALL}",
    ),
    "sum by size": (
        """
        mean = x.pow(2).sum(-1, keepdim=True) / x.shape[-1]
        return self.weight * x / (mean + self.eps).sqrt()
        """,
        f"return {CALL}",
    ),
    "dimension put back": (
        """
        size = x.square().mean(-1)[..., None]
        return x * (size + self.eps).rsqrt() * self.weight
        """,
        f"return {CALL}",
    ),
    "in place": (
        """
        scale = x.pow(2).mean(-1, keepdim=True)
        scale = scale.add_(self.eps).rsqrt_()
        return self.weight * (x * scale)
        """,
        f"return {CALL}",
    ),
    "reciprocal": (
        "return x * torch.reciprocal(torch.sqrt(x.pow(2).mean(-1, True) + self.eps)) * self.weight",
        f"return {CALL}",
    ),
    "function of the file": (
        "return rms_norm(x, self.weight, self.eps)",
        None,  # the function is told of, once
    ),
    "half of a function of the file": (
        "return self.weight * (x / root_mean_square(x, self.eps))",
        f"return {CALL}",
    ),
    "with a bias behind": (
        """
        y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
        return y * self.weight + self.bias
        """,
        f"return {CALL} + self.bias",
    ),
    "gated behind": (
        """
        dtype = x.dtype
        x = x.float()
        mean = x.pow(2).mean(-1, keepdim=True)
        # The gate comes last.
        x = x * torch.rsqrt(mean + self.eps)
        x = self.weight * x.to(dtype)
        return torch.relu(x) * 2
        """,
        f"# The gate comes last.\n        x = {CALL}\n        return torch.relu(x) * 2",
    ),
    "type of the weight": (
        """
        y = x * torch.rsqrt(x.to(torch.float32).pow(2).mean(-1, keepdim=True) + self.eps)
        if self.weight.dtype in [torch.float16, torch.bfloat16]:
            y = y.to(self.weight.dtype)
        return self.weight * y
        """,
        f"return {CALL}",
    ),
    "function of torch": (
        "return F.rms_norm(x, (self.size,), self.weight, self.eps)",
        f"return {CALL}",
    ),
    "function of torch, its own epsilon": (
        "return F.rms_norm(x, (self.size,), self.weight)",
        "self.weight.to(x.dtype),\n            epsilon=torch.finfo(x.dtype).eps,\n        )[0]",
    ),
    "module of torch": (
        "return torch.relu(self.norm(x + 1))",
        "x + 1,\n            self.norm.weight.to(x.dtype),\n            epsilon=self.norm.eps,\n",
    ),
    "module of torch, its own epsilon": (
        "return self.plain(x)",
        "self.plain.weight.to(x.dtype),\n            epsilon=torch.finfo(x.dtype).eps,\n",
    ),
    "without autocast": (
        """
        with torch.autocast("cpu", enabled=False):
            mean = x.float().pow(2).mean(-1, keepdim=True)
            y = x * torch.rsqrt(mean + self.eps)
        return y.to(x.dtype) * self.weight
        """,
        f"gate=None):\n        return {CALL}",
    ),
    "constant epsilon": (
        "return x * torch.rsqrt((x**2).mean(-1, keepdim=True) + 1e-5) * self.weight",
        "return torch_npu.npu_rms_norm(x, self.weight.to(x.dtype), epsilon=1e-05)[0]",
    ),
}


@pytest.mark.parametrize(("body", "expected"), SPELLINGS.values(), ids=SPELLINGS.keys())
def test_a_spelling_is_found_and_replaced(body: str, expected: str | None) -> None:
    source = module(body)
    if expected is None:
        assert in_forward(source) == []
        return
    assert in_forward(source) == ["NPU701"]
    start = source.index("def forward")
    assert expected in fixed(source)[start:]
    for _, applicability, text in each_fix(source):
        assert applicability == "unsafe"
        assert_same_behaviour(source, text, "Norm", inputs=[(2, 3, 16)], arguments={"size": 16})


def test_torchscript_is_told_but_not_edited() -> None:
    source = HEAD.replace("def rms_norm(", "@torch.jit.script\ndef rms_norm(")
    found = [f for f in findings(source) if f.rule.code == "NPU701"]
    assert [len(f.fixes) for f in found] == [0]
    assert [len(f.fixes) for f in findings(HEAD) if f.rule.code == "NPU701"] == [2]


def test_an_argument_computed_in_another_type_is_told_but_not_edited() -> None:
    source = module("""
        dtype = x.dtype
        x = x.to(torch.float32)
        x = x * F.relu(gate.to(torch.float32))
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * x.to(dtype)
    """)
    assert in_forward(source) == ["NPU701"]
    start = source.index("def forward")
    assert not [
        f for f in findings(source) if f.rule.code == "NPU701" and f.span.start > start and f.fixes
    ]


@pytest.mark.parametrize("body", [SPELLINGS["llama"][0], SPELLINGS["type of the weight"][0]])
def test_half_precision_stays_what_it_was(body: str) -> None:
    source = module(body)
    for _, _, text in each_fix(source):
        assert_same_behaviour(
            source, text, "Norm", inputs=[(2, 16)], arguments={"size": 16}, dtype=torch.bfloat16
        )


NEAR_MISSES = {
    "epsilon beside the root": (
        "return self.weight * (x / (x.pow(2).mean(-1, keepdim=True).sqrt() + self.eps))",
        "added to the root",
    ),
    "length and root of the width": (
        """
        size = x.norm(2, dim=-1, keepdim=True) * self.size ** (-1.0 / 2)
        return self.weight * (x / (size + self.eps))
        """,
        "added to the root",
    ),
    "unit length": (
        "return F.normalize(x, dim=-1) * self.scale * self.weight",
        "bounded from below",
    ),
    "bounded length": (
        """
        length = torch.norm(x, dim=-1, keepdim=True) * self.size**-0.5
        return x / length.clamp(min=self.eps) * self.weight
        """,
        "bounded from below",
    ),
    "no gain": ("return self._norm(x)", "needs a gain"),
    "module without a gain": ("return self.weightless(x)", "needs a gain"),
    "one number for a gain": ("return self._norm(x) * self.single", "another shape"),
    "no epsilon": (
        "return x / torch.sqrt(x.pow(2).mean(-1, keepdim=True)) * self.weight",
        "gives NaN",
    ),
    "channels": (
        "return x * torch.rsqrt(x.pow(2).mean(1, keepdim=True) + self.eps)",
        "another dimension",
    ),
}


@pytest.mark.parametrize(("body", "reason"), NEAR_MISSES.values(), ids=NEAR_MISSES.keys())
def test_a_near_miss_is_told_with_its_reason(body: str, reason: str) -> None:
    source = module(body)
    assert in_forward(source) in (["NPU719"], [])
    told = [f for f in findings(source) if f.rule.code == "NPU719"]
    assert any(reason in f.message("en") for f in told), [f.message("en") for f in told]
    assert all(not f.fixes and f.message("zh") for f in told)


NOT_FOUND = {
    "layer norm": """
        x = x - x.mean(-1, keepdim=True)
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
        """,
    "layer norm by variance": """
        mean = x.mean(-1, keepdim=True)
        variance = (x - mean).pow(2).mean(-1, keepdim=True)
        return self.weight * ((x - mean) / torch.sqrt(variance + self.eps)) + self.bias
        """,
    "variance": "return self.weight * x * torch.rsqrt(x.var(-1, keepdim=True) + self.eps)",
    "another tensor's size": """
        return self.weight * x * torch.rsqrt(gate.pow(2).mean(-1, keepdim=True) + self.eps)
        """,
    "mean of values": "return self.weight * x * torch.rsqrt(x.mean(-1, keepdim=True) + self.eps)",
    "mean of cubes": """
        return self.weight * x * torch.rsqrt(x.pow(3).mean(-1, keepdim=True) + self.eps)
        """,
    "dimension lost": "return self.weight * x * torch.rsqrt(x.pow(2).mean(-1) + self.eps)",
    "sum": "return self.weight * x * torch.rsqrt(x.pow(2).sum(-1, keepdim=True) + self.eps)",
    "sum by another size": """
        mean = x.pow(2).sum(-1, keepdim=True) / x.shape[1]
        return self.weight * x * torch.rsqrt(mean + self.eps)
        """,
    "multiplied by the root": """
        return self.weight * x * torch.sqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
        """,
    "fourth root": "return self.weight * x * (x.pow(2).mean(-1, keepdim=True) + self.eps) ** -0.25",
    "unit length alone": "return F.normalize(x, dim=-1)",
    "changed before it is used": """
        mean = x.pow(2).mean(-1, keepdim=True)
        x.mul_(2)
        return self.weight * x * torch.rsqrt(mean + self.eps)
        """,
    "in a loop": """
        mean = x.pow(2).mean(-1, keepdim=True)
        for _ in range(2):
            x = torch.relu(x) * torch.rsqrt(mean + self.eps)
        return x
        """,
}


@pytest.mark.parametrize("body", NOT_FOUND.values(), ids=NOT_FOUND.keys())
def test_what_only_looks_like_it_is_left_alone(body: str) -> None:
    assert in_forward(module(body)) == []


RESIDUAL = code("""
    import torch
    import torch.nn.functional as F
    from torch import nn


    class Block(nn.Module):
        def __init__(self, size):
            super().__init__()
            self.norm = nn.RMSNorm(size, eps=1e-5)

        @torch.no_grad()
        def forward(self, x, residual):
            residual = residual + x
            return self.norm(residual), residual
""")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("", "", "NPU702"),
        ("torch.no_grad", "torch.inference_mode", "NPU702"),
        ("        @torch.no_grad()\n".removeprefix("    "), "", "NPU701"),
        ("residual + x", "residual - x", "NPU701"),
        ("residual + x", "residual + 1", "NPU701"),
    ],
)
def test_the_sum_counts_only_without_gradients(old: str, new: str, expected: str) -> None:
    source = RESIDUAL.replace(old, new) if old else RESIDUAL
    assert source != RESIDUAL or not old
    found = [f for f in findings(source) if f.rule.code.startswith("NPU7")]
    assert [f.rule.code for f in found] == [expected]
    assert bool(found[0].fixes) == (expected == "NPU701")


def test_the_function_is_found_without_its_module() -> None:
    source = code("""
        from torch.nn.functional import rms_norm

        def scaled(x, weight):
            return rms_norm(x, (8,), weight, 1e-6)
    """)
    assert [f.rule.code for f in findings(source)] == ["NPU701"]


HELPER = code("""
    import torch
    from torch import nn


    def mean_square(x):
        return x.pow(2).mean(-1, keepdim=True)


    class Norm(nn.Module):
        def __init__(self, size):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(size))

        def forward(self, x):
            return self.weight * x * torch.rsqrt(mean_square(x) + 1e-6)
""")
BASE = HELPER.replace("class Norm(nn.Module)", "class Norm(Base)") + code("""


    class Base(nn.Module):
        width = 4
""")
UNIT = code("""
    import torch


    def unit(x):
        return x


    def run(x, weight):
        return weight * unit(x)
""")
EDITS = [
    (UNIT, "x\n\n", "x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)\n\n"),
    (HELPER, "x.pow(2)", "x.pow(3)"),
    (HELPER, "x.pow(2)", "(x * x)"),
    (HELPER, ".mean(-1", ".mean(1"),
    (HELPER, "def mean_square", "def other"),
    (HELPER, "    return x.pow(2).mean(-1, keepdim=True)", "    return x.pow(2"),
    (HELPER, "import torch\n", "import numpy as torch\n"),
    (HELPER, "from torch import nn\n", "from torch import nn\n\n\ndef unrelated():\n    pass\n"),
    (HELPER, HELPER[HELPER.index("def mean") : HELPER.index("class")], ""),
    (BASE, "    width = 4", "    def reset(self):\n        self.weight = None"),
    (BASE, "class Base(nn.Module)", "class Bases(nn.Module)"),
]


@pytest.mark.parametrize(("source", "old", "new"), EDITS)
def test_findings_after_an_edit_are_those_of_a_new_reading(source: str, old: str, new: str) -> None:
    assert source.count(old) == 1
    other = source.replace(old, new)
    cache = StatementCache()
    for text in (source, other, source, other, other + "\n\nlast = 1\n", source):
        assert findings(text, cache=cache) == findings(text), text


KEEPS_DIMENSION = """import torch
from torch import nn


class Norm(nn.Module):
    def __init__(self, size, dim=-1, eps=1e-5):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(size))
        self.dim = dim
        self.eps = eps

    def forward(self, x):
        square = torch.mean(x * x, dim=self.dim, keepdim=True)
        return self.scale * (x * torch.rsqrt(square + self.eps))
"""


def test_a_kept_dimension_that_is_the_last_by_default_is_told_with_its_condition() -> None:
    (found,) = findings(KEEPS_DIMENSION)
    assert found.rule.code == "NPU701"
    npu, *_ = found.fixes
    assert npu.applicability is Applicability.UNSAFE
    assert "by default" in npu.title.en
    _, _, after = each_fix(KEEPS_DIMENSION)[0]
    assert_same_behaviour(KEEPS_DIMENSION, after, "Norm", inputs=[(2, 5, 8)], arguments={"size": 8})


@pytest.mark.parametrize("default", ["dim=1", "dim", "dim=None"])
def test_another_kept_dimension_is_left_alone(default: str) -> None:
    assert not findings(KEEPS_DIMENSION.replace("dim=-1, eps=1e-5", f"{default}, eps=1"))
