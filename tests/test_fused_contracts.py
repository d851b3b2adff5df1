"""What fused operators ask of their arguments together: types, dimensions, values that are there.

Each module makes its tables, and mixes types, as models do that a fix has once made to fail.
"""

import pytest
import torch

from fused_execution import differences, draw, run_module
from helpers import code, each_fix
from migration import findings
from npulens.catalog.model import Target

HALVES = """
    import torch
    from torch import nn


    def rotate_half(x):
        first, second = x.chunk(2, dim=-1)
        return torch.cat((-second, first), dim=-1)


    def tables(length, size):
        angles = torch.outer(torch.arange(length), 100.0 ** -(torch.arange(0, size, 2) / size))
        return torch.cat((angles, angles), dim=-1)


"""
NORM = """
    import torch
    from torch import nn


    class Norm(nn.Module):
        def __init__(self, size=16, eps=1e-6):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(size))
            self.eps = eps

"""
BFLOAT16 = torch.bfloat16
# A module, its class or function, what it is given as shapes and types, the type of parameters.
Inputs = list[tuple[tuple[int, ...], torch.dtype]]
CASES: dict[str, tuple[str, str, Inputs, torch.dtype]] = {
    "a sum divided by the width of the gain": (
        NORM
        + """
            self.size = size

        def forward(self, x):
            square = x.float().pow(2).sum(-1, keepdim=True) / self.size
            return (x * torch.rsqrt(square + self.eps)).to(x.dtype) * self.weight
        """,
        "Norm",
        [((2, 6, 16), BFLOAT16)],
        BFLOAT16,
    ),
    "a turn back with narrow tables": (
        """
    import torch


    def turn(x, cos, sin):
        first, second = x.chunk(2, dim=-1)
        return torch.cat((first * cos + second * sin, second * cos - first * sin), dim=-1)
        """,
        "turn",
        [((2, 4, 6, 16), torch.float32), ((6, 8), torch.float32), ((6, 8), torch.float32)],
        torch.float32,
    ),
    "tables of a grid laid out as two dimensions": (
        HALVES
        + """
    def turn(x):
        grid = tables(6, 16).reshape(2, 3, 16)
        cos, sin = grid.cos().view(-1, 16), grid.sin().view(-1, 16)
        return x * cos + rotate_half(x) * sin
        """,
        "turn",
        [((2, 4, 6, 16), torch.float32)],
        torch.float32,
    ),
    "tables of two dimensions": (
        HALVES
        + """
    def turn(x):
        angles = tables(6, 16)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        return x * cos + rotate_half(x) * sin
        """,
        "turn",
        [((2, 4, 6, 16), torch.float32)],
        torch.float32,
    ),
    "tables of two dimensions, given": (
        HALVES
        + """
    def turn(x, cos, sin):
        turned = (x * cos) + (rotate_half(x) * sin)
        return turned.to(dtype=x.dtype)
        """,
        "turn",
        [((2, 4, 6, 16), BFLOAT16), ((6, 16), torch.float32), ((6, 16), torch.float32)],
        BFLOAT16,
    ),
    "tables in float32 beside half precision": (
        HALVES
        + """
    def turn(q, k, cos, sin):
        q_type, k_type = q.dtype, k.dtype
        cos = cos.unsqueeze(1)
        sin = sin.unsqueeze(1)
        q_embed = (q * cos) + (rotate_half(q) * sin)
        k_embed = (k * cos) + (rotate_half(k) * sin)
        return q_embed.to(q_type), k_embed.to(k_type)
        """,
        "turn",
        [
            *[((2, 4, 6, 16), BFLOAT16)] * 2,
            *[((2, 6, 16), torch.float32)] * 2,
        ],
        BFLOAT16,
    ),
    "heads in float32 beside tables in half precision": (
        HALVES
        + """
    def turn(q, cos, sin):
        dtype = q.dtype
        q = q.float()
        cos = cos.unsqueeze(1)
        sin = sin.unsqueeze(1)
        turned = (q * cos) + (rotate_half(q) * sin)
        return turned.to(dtype=dtype)
        """,
        "turn",
        [((2, 4, 6, 16), BFLOAT16), ((2, 6, 16), BFLOAT16), ((2, 6, 16), BFLOAT16)],
        BFLOAT16,
    ),
    "narrow tables of two dimensions": (
        """
    import torch


    def turn(x, cos, sin):
        first, second = x.chunk(2, dim=-1)
        return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
        """,
        "turn",
        [((2, 4, 6, 16), torch.float32), ((6, 8), torch.float32), ((6, 8), torch.float32)],
        torch.float32,
    ),
    "neighbours, tables of two dimensions": (
        """
    import torch


    def turn(x, cos, sin):
        even, odd = x[..., ::2], x[..., 1::2]
        rotated = torch.stack((-odd, even), dim=-1).flatten(-2)
        return x * cos + rotated * sin
        """,
        "turn",
        [((2, 4, 6, 16), torch.float32), ((6, 16), torch.float32), ((6, 16), torch.float32)],
        torch.float32,
    ),
    "a residual in float32 beside a weight in half precision": (
        NORM
        + """
        def forward(self, hidden):
            dtype = hidden.dtype
            hidden = hidden.to(torch.float32)
            variance = hidden.pow(2).mean(-1, keepdim=True)
            hidden = hidden * torch.rsqrt(variance + self.eps)
            return self.weight * hidden.to(dtype)
        """,
        "Norm",
        [((2, 5, 16), torch.float32)],
        BFLOAT16,
    ),
    "a sum of two types": (
        """
    import torch
    from torch import nn


    class Block(nn.Module):
        def __init__(self, size=16):
            super().__init__()
            self.norm = nn.RMSNorm(size, eps=1e-5)

        def forward(self, x, residual):
            return self.norm(x + residual)
        """,
        "Block",
        [((2, 5, 16), BFLOAT16), ((2, 5, 16), torch.float32)],
        torch.float32,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_rewrite_runs_where_types_and_dimensions_differ(name: str) -> None:
    snippet, target, inputs, dtype = CASES[name]
    source = code(snippet)
    tensors = [draw(*shape, seed=n).to(kind) for n, (shape, kind) in enumerate(inputs)]
    rewritten = [text for _, _, text in each_fix(source) if "torch_npu.npu_" in text]
    assert rewritten
    expected = run_module(source, target, {}, 3, tensors, dtype=dtype)
    for text in rewritten:
        is_beside = "is_npu" in text or ".device.type" in text
        actual = run_module(text, target, {}, 3, tensors, dtype=dtype, is_npu=is_beside)
        assert differences(expected, actual, 5.0) == []


WITHOUT_WEIGHT = {
    "one statement": "self.weight = nn.Parameter(torch.ones(size)) if affine else None",
    "two arms": """
            if affine:
                self.weight = nn.Parameter(torch.ones(size))
            else:
                self.weight = None
    """,
    "a parameter that is none": """
            if affine:
                self.weight = nn.Parameter(torch.ones(size))
            else:
                self.register_parameter("weight", None)
    """,
}
GUARDED = """
            if self.weight is not None:
                x = x * self.weight
            return x
"""
MODULE = """
    import torch
    from torch import nn


    class Norm(nn.Module):
        def __init__(self, size, affine=True):
            super().__init__()
            {}

        def forward(self, x):
            x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
            {}
"""


@pytest.mark.parametrize("made", WITHOUT_WEIGHT)
@pytest.mark.parametrize("used", ["return x * self.weight", GUARDED.strip()])
def test_a_weight_that_may_be_none_is_passed_to_no_operator(made: str, used: str) -> None:
    """Where a condition is around it, what it needs is what the other way returns."""
    source = code(MODULE.format(WITHOUT_WEIGHT[made].strip(), used))
    (found,) = [each for each in findings(source, Target()) if each.rule.code == "NPU701"]
    assert not found.fixes


def test_a_weight_behind_a_condition_is_passed() -> None:
    both = """
            if self.weight is not None:
                return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight
            return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
    """
    source = code(MODULE.format(WITHOUT_WEIGHT["two arms"].strip(), both.strip()))
    source = source.replace(
        " x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)\n", " x = +x\n"
    )
    rewritten = [text for style, _, text in each_fix(source) if style == "npu"]
    assert rewritten
    for text in rewritten:
        for affine in (True, False):
            arguments = {"size": 16, "affine": affine}
            runs = [
                run_module(each, "Norm", arguments, 5, [draw(2, 16)]) for each in (source, text)
            ]
            assert differences(*runs) == []


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("cos, sin = cos.to(x.dtype)[None, None], sin.to(x.dtype)[None, None]", "x, cos, sin"),
        ("cos, sin = cos.to(x)[None, None], sin.to(x)[None, None]", "x, cos, sin"),
        (
            "x, cos, sin = x.view(2, 4, 6, 16).half(), cos.view(6, 16).half(), "
            "sin.view(6, 16).half()",
            "x, cos[None, None], sin[None, None]",
        ),
    ],
)
def test_nothing_is_added_where_the_code_shows_it(body: str, expected: str) -> None:
    source = code(HALVES) + (
        f"\n\ndef turn(x, cos, sin):\n    {body}\n    return x * cos + rotate_half(x) * sin\n"
    )
    texts = [text for _, _, text in each_fix(source)]
    assert any(f"npu_rotary_mul({expected})" in text for text in texts), texts


@pytest.mark.parametrize(("laid_out", "is_offered"), [("", False), (".view(-1, 16)", True)])
def test_tables_with_positions_in_two_dimensions_are_given_to_no_operator(
    laid_out: str, is_offered: bool
) -> None:
    source = code(HALVES) + (
        "\n\ndef joined(parts):\n"
        "    sizes = [max(pair) for pair in zip(*(each.shape[:2] for each in parts))]\n"
        "    return torch.cat([each.expand(*sizes, -1) for each in parts], dim=-1)\n"
        "\n\nclass Turn(nn.Module):\n"
        "    def __init__(self, length):\n"
        "        super().__init__()\n"
        "        angles = tables(length, 8)\n"
        "        angles = joined((angles[:, None, :], angles[None, :, :]))\n"
        f"        self.register_buffer('cos', angles.cos(){laid_out})\n"
        f"        self.register_buffer('sin', angles.sin(){laid_out})\n"
        "\n"
        "    def forward(self, x):\n"
        "        return x * self.cos + rotate_half(x) * self.sin\n"
    )
    found = [each for each in findings(source, Target()) if each.rule.code == "NPU706"]
    assert len(found) == 1
    assert bool(found[0].fixes) is is_offered


def test_a_module_that_a_function_makes_is_not_made_twice() -> None:
    source = code(
        """
        import torch
        from torch import nn


        def normed(y, eps=1e-6):
            norm = nn.RMSNorm(y.size(-1), eps=eps)
            return norm(y)
        """
    )
    texts = [text for _, _, text in each_fix(source) if "npu_rms_norm" in text]
    assert texts
    for text in texts:
        assert text.count("nn.RMSNorm(") == 1, text
        runs = [run_module(each, "normed", {}, 0, [draw(2, 16)]) for each in (source, text)]
        assert not differences(*runs)


def test_moving_a_table_to_the_device_shows_no_type() -> None:
    source = code(HALVES) + (
        "\n\ndef turn(x, cos, sin):\n"
        "    cos, sin = cos.to(x.device)[None, None], sin.to(device=x.device)[None, None]\n"
        "    return x * cos + rotate_half(x) * sin\n"
    )
    texts = [text for _, _, text in each_fix(source)]
    assert any("npu_rotary_mul(x, cos.to(x.dtype), sin.to(x.dtype))" in t for t in texts), texts


@pytest.mark.parametrize("position", ["1", "position"])
def test_a_table_with_one_more_dimension_may_lack_the_first(position: str) -> None:
    source = code(HALVES) + (
        "\n\ndef turn(x, cos, sin, position=1):\n"
        f"    cos, sin = cos.unsqueeze({position}), sin.unsqueeze({position})\n"
        "    return x * cos + rotate_half(x) * sin\n"
    )
    text = next(text for _, _, text in each_fix(source) if "npu_rotary_mul" in text)
    table = draw(6, 16, seed=1)
    for cos in (table, table.expand(2, 6, 16)):  # heads behind the sequence
        inputs = [draw(2, 6, 4, 16) if cos.dim() == 2 else draw(2, 4, 6, 16), cos, cos]
        before, after = (run_module(each, "turn", {}, 0, inputs) for each in (source, text))
        assert not differences(before, after)


def test_a_tensor_that_is_still_used_keeps_all_that_was_written_into_it() -> None:
    source = code(
        """
        import torch


        def scaled(x, weight):
            h = torch.zeros_like(x)
            h[..., :4] = x[..., :4]
            h[..., 6:] = x[..., 6:]
            square = h.pow(2).mean(-1, keepdim=True)
            normed = h * torch.rsqrt(square + 1e-6)
            return normed * weight
        """
    )
    texts = [text for _, _, text in each_fix(source) if "npu_rms_norm" in text]
    assert texts
    for text in texts:
        assert "h[..., :4] =" in text
        assert "h[..., 6:] =" in text
        assert "square" not in text


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, BFLOAT16])
@pytest.mark.parametrize("epsilon", ["eps=1e-5, ", ""])
def test_a_norm_that_may_have_no_gain_gets_ones(
    affine: bool, dtype: torch.dtype, epsilon: str
) -> None:
    source = code(
        f"""
        import torch
        from torch.nn.modules.normalization import RMSNorm


        class Block(torch.nn.Module):
            def __init__(self, shape, affine):
                super().__init__()
                self.norm = RMSNorm(shape, {epsilon}elementwise_affine=affine)

            def forward(self, x):
                return 2 * self.norm(x)
        """
    )
    texts = [text for _, _, text in each_fix(source) if "npu_rms_norm" in text]
    assert texts
    arguments = {"shape": (4, 16), "affine": affine}
    for text in texts:
        runs = [
            run_module(each, "Block", arguments, 3, [draw(2, 4, 16).to(dtype)], dtype=dtype)
            for each in (source, text)
        ]
        assert not differences(*runs)


def test_a_norm_that_may_not_be_there_is_told_without_a_fix() -> None:
    source = code(
        """
        from torch import nn


        class Block(nn.Module):
            def __init__(self, size, normed):
                super().__init__()
                self.norm = nn.Identity() if not normed else nn.RMSNorm(size)

            def forward(self, x):
                return self.norm(x)
        """
    )
    (found,) = [each for each in findings(source, Target()) if each.rule.code.startswith("NPU7")]
    assert found.rule.code == "NPU701" and not found.fixes
    assert "Identity" in found.message("en") and "Identity" in found.message("zh")
