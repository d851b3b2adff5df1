"""Rotary position embedding: what is recognised, what is left alone, and that fixes compute it."""

import re
from textwrap import dedent
from typing import NamedTuple

import pytest

from fused_execution import assert_same_behaviour
from migration import findings, fixed
from npulens.catalog.model import Target

HEADER = "import torch\nimport torch_npu\nfrom torch import nn\n\n\n"
HEADS = (2, 4, 6, 16)
TABLE = (1, 1, 6, 16)
NARROW = (1, 1, 6, 8)
WHOLE = [HEADS, TABLE, TABLE]
PARTS = [HEADS, NARROW, NARROW]

ROTATE_HALF = """
def rotate_half(x):
    first = x[..., : x.shape[-1] // 2]
    second = x[..., x.shape[-1] // 2 :]
    return torch.cat((-second, first), dim=-1)


"""
ROTATE_PAIRS = """
def rotate_every_two(x):
    even, odd = x[..., ::2], x[..., 1::2]
    return torch.stack((-odd, even), dim=-1).flatten(-2)


"""


class Spelling(NamedTuple):
    """A function `turn` that the operator replaces.

    Attributes:
        name: for the test.
        code: the module behind the header.
        wanted: lines of the fixed text, without indentation.
        inputs: of `turn`, for the comparison.
        gone: texts that the fix takes out.
    """

    name: str
    code: str
    wanted: tuple[str, ...]
    inputs: list[tuple[object, ...]]
    gone: tuple[str, ...] = ()


PLAIN = "torch_npu.npu_rotary_mul(x, cos, sin)"
PAIRWISE = 'torch_npu.npu_rotary_mul(x, cos, sin, rotary_mode="interleave")'
WIDE_PAIRS = (
    "torch_npu.npu_rotary_mul("
    'x, cos.repeat_interleave(2, -1), sin.repeat_interleave(2, -1), "interleave")'
)

SPELLINGS = [
    Spelling(
        "queries and keys",
        ROTATE_HALF
        + """
def turn(q, k, cos, sin, unsqueeze_dim=1):
    cos = cos.unsqueeze(unsqueeze_dim)
    sin = sin.unsqueeze(unsqueeze_dim)
    q_embed = (q * cos) + (rotate_half(q) * sin)
    k_embed = (k * cos) + (rotate_half(k) * sin)
    return q_embed, k_embed
""",
        (
            "q_embed = torch_npu.npu_rotary_mul(q, cos, sin)",
            "k_embed = torch_npu.npu_rotary_mul(k, cos, sin)",
        ),
        [HEADS, (2, 2, 6, 16), (2, 6, 16), (2, 6, 16)],
    ),
    Spelling(
        "a static method of the class that is called by its name",
        """
class Rotations:
    @staticmethod
    def half(x):
        first, second = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
        return torch.cat((-second, first), dim=-1)

    @staticmethod
    def applied(x, cos, sin):
        return (x * cos) + (Rotations.half(x) * sin)


def turn(x, cos, sin):
    return Rotations.applied(x, cos, sin)
""",
        (f"return {PLAIN}",),
        WHOLE,
    ),
    Spelling(
        "a static method of another class",
        """
class Rotations:
    @staticmethod
    def half(x):
        first, second = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
        return torch.cat((-second, first), dim=-1)


def turn(x, cos, sin):
    return x * cos + Rotations.half(x) * sin
""",
        (f"return {PLAIN}",),
        WHOLE,
    ),
    Spelling(
        "a function in a function that calls the one beside it",
        """
def turn(q, k, cos, sin):
    def half(x):
        first, second = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
        return torch.cat((-second, first), dim=-1)

    def both(q, k, cos, sin):
        turned = (q * cos) + (half(q) * sin)
        return turned, (k * cos) + (half(k) * sin)

    return both(q, k, cos, sin)
""",
        (
            "turned = torch_npu.npu_rotary_mul(q, cos, sin)",
            "return turned, torch_npu.npu_rotary_mul(k, cos, sin)",
        ),
        [HEADS, HEADS, TABLE, TABLE],
    ),
    Spelling(
        "pairs the other way round, one of each negated in its place",
        """
def turn(x, cos, sin):
    turned = x.unflatten(-1, (-1, 2)).flip(-1)
    turned[..., 0] = -turned[..., 0]
    return x * cos + turned.flatten(-2) * sin
""",
        (f"return {PAIRWISE}",),
        WHOLE,
    ),
    Spelling(
        "pairs the other way round by a function, and stacked with a sign",
        """
def turn(x, cos, sin):
    swapped = torch.flip(x.reshape(*x.shape[:-1], -1, 2), dims=(-1,))
    rotated = torch.stack([-swapped[..., 0], swapped[..., 1]], dim=-1).flatten(-2)
    return x * cos + rotated * sin
""",
        (f"return {PAIRWISE}",),
        WHOLE,
    ),
    Spelling(
        "one statement for both",
        ROTATE_HALF
        + """
def turn(q, k, cos, sin):
    return (q * cos) + (rotate_half(q) * sin), (k * cos) + (rotate_half(k) * sin)
""",
        ("return torch_npu.npu_rotary_mul(q, cos, sin), torch_npu.npu_rotary_mul(k, cos, sin)",),
        [HEADS, HEADS, TABLE, TABLE],
    ),
    Spelling(
        "a part of the head",
        ROTATE_HALF
        + """
def turn(q, cos, sin):
    rotary_dim = cos.shape[-1]
    q_rot, q_pass = q[..., :rotary_dim], q[..., rotary_dim:]
    q_rot = q_rot * cos + rotate_half(q_rot) * sin
    return torch.cat((q_rot, q_pass), dim=-1)
""",
        ("q_rot = torch_npu.npu_rotary_mul(q_rot, cos, sin)",),
        [HEADS, NARROW, NARROW],
    ),
    Spelling(
        "tables of positions",
        ROTATE_HALF
        + """
def turn(x, cos, sin, position_ids):
    cos = cos[position_ids].unsqueeze(1)
    sin = sin[position_ids].unsqueeze(1)
    return x * cos + rotate_half(x) * sin
""",
        (f"return {PLAIN}",),
        [HEADS, (9, 16), (9, 16), ("int", 9, 2, 6)],
    ),
    Spelling(
        "computed in float32",
        ROTATE_HALF
        + """
def turn(x, cos, sin):
    dtype = x.dtype
    x, cos, sin = x.float(), cos.float(), sin.float()
    turned = (x * cos) + (rotate_half(x) * sin)
    turned = turned.to(dtype)
    return turned
""",
        (
            "x, cos, sin = x.float(), cos.float(), sin.float()",
            f"turned = {PLAIN}",
            "turned = turned.to(dtype)",
        ),
        WHOLE,
    ),
    Spelling(
        "each factor cast",
        ROTATE_HALF
        + """
def turn(x, cos, sin):
    return (x.float() * cos + rotate_half(x).float() * sin).to(x.dtype)
""",
        ("return torch_npu.npu_rotary_mul(x.float(), cos, sin).to(x.dtype)",),
        WHOLE,
    ),
    Spelling(
        "halves by an attribute",
        """
class Turn(nn.Module):
    def __init__(self, head_size):
        super().__init__()
        self.head_size = head_size

    def forward(self, x, cos, sin):
        begin = x[..., : self.head_size // 2]
        end = x[..., self.head_size // 2 :]
        rotated = torch.cat((-end, begin), dim=-1)
        return (x * cos) + (rotated * sin)
""",
        (f"return {PLAIN}",),
        WHOLE,
        ("rotated", "begin"),
    ),
    Spelling(
        "halves by einops",
        """
from einops import rearrange


def turn(x, cos, sin):
    pair = rearrange(x, "... (j d) -> ... j d", j=2)
    first, second = pair.unbind(dim=-2)
    return x * cos + torch.cat((-second, first), dim=-1) * sin
""",
        (f"return {PLAIN}",),
        [],
        ("rearrange(x",),
    ),
    Spelling(
        "halves by the number of dimensions",
        """
def turn(x, cos, sin):
    first, second = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return x * cos + torch.cat((-second, first), dim=first.ndim - 1) * sin
""",
        (f"return {PLAIN}",),
        WHOLE,
        ("first",),
    ),
    Spelling(
        "neighbours",
        ROTATE_PAIRS
        + """
def turn(x, cos, sin):
    return (x * cos) + (rotate_every_two(x) * sin)
""",
        (f"return {PAIRWISE}",),
        WHOLE,
    ),
    Spelling(
        "neighbours by whole slices, repeated tables",
        """
def turn(x, cos, sin):
    cos = torch.repeat_interleave(cos[:, :, None, :], 2, 3)
    sin = torch.repeat_interleave(sin[:, :, None, :], 2, 3)
    even, odd = x[:, :, :, ::2], x[:, :, :, 1::2]
    rotated = torch.stack((-odd, even), dim=-1)
    rotated = rotated.view(rotated.shape[0], rotated.shape[1], rotated.shape[2], -1)
    return x * cos + rotated * sin
""",
        (f"return {PAIRWISE}", "cos = torch.repeat_interleave(cos[:, :, None, :], 2, 3)"),
        [(2, 6, 4, 16), (1, 6, 8), (1, 6, 8)],
        ("rotated",),
    ),
    Spelling(
        "neighbours by reshape",
        """
def turn(x, cos, sin):
    pairs = x.reshape(*x.shape[:-1], -1, 2)
    real, imaginary = pairs.unbind(-1)
    rotated = torch.stack([-imaginary, real], dim=-1).flatten(3)
    return (x.float() * cos + rotated.float() * sin).to(x.dtype)
""",
        (
            "return torch_npu.npu_rotary_mul("
            'x.float(), cos, sin, rotary_mode="interleave").to(x.dtype)',
        ),
        WHOLE,
        ("pairs", "rotated"),
    ),
    Spelling(
        "neighbours stored",
        """
def rotate_pairs(x):
    rotated = torch.zeros_like(x, dtype=x.dtype, device=x.device)
    rotated[..., ::2] = -x[..., 1::2]
    rotated[..., 1::2] = x[..., ::2]
    return rotated


def turn(x, cos, sin):
    return x * cos + rotate_pairs(x) * sin
""",
        (f"return {PAIRWISE}",),
        WHOLE,
    ),
    Spelling(
        "stacked back to a shape",
        """
def turn(x, cos, sin):
    rotated = torch.stack([-x[..., 1::2], x[..., ::2]], dim=-1).reshape_as(x)
    return x * cos + rotated * sin
""",
        (f"return {PAIRWISE}",),
        WHOLE,
        ("rotated",),
    ),
    Spelling(
        "a flag",
        """
def rotate(x, interleaved):
    if not interleaved:
        first, second = torch.chunk(x, 2, dim=-1)
        return torch.cat((-second, first), dim=-1)
    even, odd = x[..., ::2], x[..., 1::2]
    return torch.stack((-odd, even), dim=-1).flatten(-2)


def turn(x, cos, sin, rotary_interleaved=False):
    return (x * cos) + (rotate(x, rotary_interleaved) * sin)
""",
        (
            "return torch_npu.npu_rotary_mul("
            'x, cos, sin, "interleave" if rotary_interleaved else "half")',
        ),
        WHOLE,
    ),
    Spelling(
        "a number for a flag",
        """
def turn(x, cos, sin, unbind_dim=-1):
    if unbind_dim == -1:
        real, imaginary = x.reshape(*x.shape[:-1], -1, 2).unbind(-1)
        rotated = torch.stack([-imaginary, real], dim=-1).flatten(3)
    elif unbind_dim == -2:
        real, imaginary = x.reshape(*x.shape[:-1], 2, -1).unbind(-2)
        rotated = torch.cat([-imaginary, real], dim=-1)
    else:
        raise ValueError(unbind_dim)
    return (x.float() * cos + rotated.float() * sin).to(x.dtype)
""",
        (
            "return torch_npu.npu_rotary_mul("
            'x.float(), cos, sin, "interleave" if unbind_dim == -1 else "half").to(x.dtype)',
        ),
        WHOLE,
    ),
    Spelling(
        "halves part by part",
        """
def turn(x, cos, sin):
    first, second = torch.chunk(x, 2, dim=-1)
    one = first * cos - second * sin
    other = second * cos + first * sin
    return torch.cat((one, other), dim=-1)
""",
        (
            "return torch_npu.npu_rotary_mul("
            "x, torch.cat((cos,) * 2, dim=-1), torch.cat((sin,) * 2, dim=-1))",
        ),
        PARTS,
        ("chunk", "other"),
    ),
    Spelling(
        "neighbours part by part",
        """
def turn(x, cos, sin):
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)
""",
        (f"return {WIDE_PAIRS}",),
        PARTS,
        ("even",),
    ),
    Spelling(
        "neighbours part by part by index",
        """
def turn(x, cos, sin):
    pairs = x.float().reshape(*x.shape[:-1], -1, 2)
    turned = torch.stack(
        [pairs[..., 0] * cos - pairs[..., 1] * sin, pairs[..., 1] * cos + pairs[..., 0] * sin], -1
    )
    # heads stay apart
    turned = turned.flatten(3)
    return turned.type_as(x)
""",
        ("# heads stay apart", f"turned = {WIDE_PAIRS.replace('(x,', '(x.float(),')}"),
        PARTS,
        ("pairs",),
    ),
    Spelling(
        "neighbours part by part, cast inside",
        """
def turn(x, cos, sin):
    even = x[..., 0::2].float()
    odd = x[..., 1::2].float()
    one = (even * cos - odd * sin).to(x.dtype)
    other = (even * sin + odd * cos).to(x.dtype)
    return torch.stack([one, other], dim=-1).flatten(-2)
""",
        (f"return {WIDE_PAIRS.replace('(x,', '(x.float(),')}.to(x.dtype)",),
        PARTS,
        ("even",),
    ),
    Spelling(
        "neighbours part by part, stored",
        """
def turn(x, freqs_cos, freqs_sin):
    one, other = x.unflatten(-1, (-1, 2)).unbind(-1)
    cos = freqs_cos[..., 0::2]
    sin = freqs_sin[..., 1::2]
    out = torch.empty_like(x)
    out[..., 0::2] = one * cos - other * sin
    out[..., 1::2] = one * sin + other * cos
    return out.type_as(x)
""",
        (f"out = {WIDE_PAIRS}.to(x)", "return out.type_as(x)", "cos = freqs_cos[..., 0::2]"),
        WHOLE,
        ("empty_like", "unbind"),
    ),
    Spelling(
        "complex numbers",
        """
def turn(x, freqs_cis):
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    turned = torch.view_as_real(pairs * freqs_cis).flatten(3)
    return turned.type_as(x)
""",
        (
            "turned = torch_npu.npu_rotary_mul(x.float(), freqs_cis.real.repeat_interleave(2, -1), "
            'freqs_cis.imag.repeat_interleave(2, -1), "interleave")',
        ),
        [HEADS, ("complex", 1, 1, 6, 8)],
        ("view_as_complex",),
    ),
    Spelling(
        "complex numbers, cast back before they are put together",
        """
def turn(x, freqs_cis):
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * freqs_cis).type_as(x).flatten(3)
""",
        (
            "return torch_npu.npu_rotary_mul(x.float(), freqs_cis.real.repeat_interleave(2, -1), "
            'freqs_cis.imag.repeat_interleave(2, -1), "interleave").to(x)',
        ),
        [HEADS, ("complex", 1, 1, 6, 8)],
        ("view_as_complex",),
    ),
    Spelling(
        "halves as complex numbers",
        """
def turn(x, freqs_cis):
    batch, length, heads, _ = x.shape
    halves = x.float().reshape(batch, length, heads, 2, -1).transpose(-1, -2).contiguous()
    turned = torch.view_as_real(torch.view_as_complex(halves) * freqs_cis).transpose(-1, -2)
    return turned.reshape(batch, length, heads, -1).type_as(x)
""",
        (
            "return torch_npu.npu_rotary_mul(x.float(), torch.cat((freqs_cis.real,) * 2, dim=-1), "
            "torch.cat((freqs_cis.imag,) * 2, dim=-1)).type_as(x)",
        ),
        [HEADS, ("complex", 1, 1, 6, 8)],
        ("view_as_complex",),
    ),
    Spelling(
        "halves as complex numbers, stacked and cut again",
        """
def turn(x, freqs_cis):
    halves = torch.view_as_complex(torch.stack(torch.chunk(x.float(), 2, dim=-1), dim=-1))
    turned = torch.view_as_real(halves * freqs_cis).type_as(x)
    turned = torch.cat(torch.chunk(turned, 2, dim=-1), dim=-2)
    return turned.reshape(turned.shape[0], turned.shape[1], turned.shape[2], -1)
""",
        (
            "return torch_npu.npu_rotary_mul(x.float(), torch.cat((freqs_cis.real,) * 2, dim=-1), "
            "torch.cat((freqs_cis.imag,) * 2, dim=-1)).to(x)",
        ),
        [HEADS, ("complex", 1, 1, 6, 8)],
        ("view_as_complex",),
    ),
    Spelling(
        "the two of each pair written one by one",
        """
def turn(x, cos, sin):
    pairs = x.reshape(*x.shape[:-1], -1, 2)
    turned = torch.zeros_like(pairs)
    turned[..., 0] = pairs[..., 0] * cos - pairs[..., 1] * sin
    turned[..., 1] = pairs[..., 0] * sin + pairs[..., 1] * cos
    return turned.flatten(-2)
""",
        (
            "return torch_npu.npu_rotary_mul(x, cos.repeat_interleave(2, -1), "
            'sin.repeat_interleave(2, -1), "interleave").to(x)',
        ),
        [HEADS, NARROW, NARROW],
        ("zeros_like", "turned"),
    ),
    Spelling(
        "halves as rows, stacked again",
        """
def turn(x, cos, sin):
    halves = x.view(*x.shape[:-1], 2, 8)
    first, second = halves[..., 0, :], halves[..., 1, :]
    turned = torch.stack([first * cos - second * sin, first * sin + second * cos], dim=-2)
    return turned.view_as(x)
""",
        (
            "return torch_npu.npu_rotary_mul("
            "x, torch.cat((cos,) * 2, dim=-1), torch.cat((sin,) * 2, dim=-1))",
        ),
        [HEADS, NARROW, NARROW],
    ),
    Spelling(
        "a function in a function",
        """
def turn(x, cos, sin):
    def apply(heads, cosines, sines):
        first, second = heads.chunk(2, dim=-1)
        rotary = torch.cat((-second, first), dim=-1)
        return heads * cosines + rotary * sines

    return apply(x, *(cos, sin))
""",
        ("return torch_npu.npu_rotary_mul(heads, cosines, sines)",),
        WHOLE,
        ("chunk",),
    ),
    Spelling(
        "each of a list",
        ROTATE_HALF
        + """
def turn(x, y, cos, sin):
    return [t * cos + rotate_half(t) * sin for t in (x, y)]
""",
        ("return [torch_npu.npu_rotary_mul(t, cos, sin) for t in (x, y)]",),
        [HEADS, HEADS, TABLE, TABLE],
    ),
    Spelling(
        "flash-attention",
        """
from flash_attn.layers.rotary import apply_rotary_emb


def turn(x, cos, sin):
    return apply_rotary_emb(x, cos, sin)
""",
        (
            "return torch_npu.npu_rotary_mul("
            "x, torch.cat((cos.unsqueeze(0).unsqueeze(2),) * 2, dim=-1), "
            "torch.cat((sin.unsqueeze(0).unsqueeze(2),) * 2, dim=-1))",
        ),
        [],
    ),
    Spelling(
        "flash-attention, neighbours",
        """
from flash_attn.layers.rotary import apply_rotary_emb_func


def turn(x, cos, sin):
    return apply_rotary_emb_func(x, cos, sin, interleaved=True, inplace=False)
""",
        (
            "return torch_npu.npu_rotary_mul(x, "
            "cos.unsqueeze(0).unsqueeze(2).repeat_interleave(2, -1), "
            'sin.unsqueeze(0).unsqueeze(2).repeat_interleave(2, -1), "interleave")',
        ),
        [],
    ),
    Spelling(
        "rotated with the tables exchanged, which is another turn but just this one",
        ROTATE_HALF
        + """
def turn(x, cos, sin):
    return x * sin + rotate_half(x) * cos
""",
        ("return torch_npu.npu_rotary_mul(x, sin, cos)",),
        WHOLE,
    ),
]

TRAPS = {
    "the other direction": "x * cos - rotate_half(x) * sin",
    "exchanged halves": "x * cos + torch.cat((second, -first), dim=-1) * sin",
    "second half not negated": "x * cos + torch.cat((second, first), dim=-1) * sin",
    "both halves negated": "x * cos + torch.cat((-second, -first), dim=-1) * sin",
    "another tensor rotated": "x * cos + rotate_half(y) * sin",
    "rotated twice": "rotate_half(x) * cos + rotate_half(x) * sin",
    "gain of the first term": "2 * x * cos + rotate_half(x) * sin * cos * sin",
    "a sum of three": "x * cos + rotate_half(x) * sin / cos.sum() + y",
    "not multiplied": "x * cos + rotate_half(x)",
    "along the sequence": "x * cos + torch.cat((-second, first), dim=-2) * sin",
    "halves of the sequence": (
        "x * cos + torch.cat((-x.chunk(2, dim=-2)[1], x.chunk(2, dim=-2)[0]), dim=-1) * sin"
    ),
    "a third": "x * cos + torch.cat((-x[..., 5:], x[..., :5]), dim=-1) * sin",
    "neighbours as halves": "x * cos + torch.cat((-x[..., 1::2], x[..., ::2]), dim=-1) * sin",
    "halves as neighbours": "x * cos + torch.stack((-second, first), -1).flatten(-2) * sin",
    "neighbours the other way": (
        "x * cos + torch.stack((x[..., 1::2], -x[..., ::2]), -1).flatten(-2) * sin"
    ),
    "neighbours before heads are told apart": (
        "x * cos + torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(2) * sin"
    ),
    "part by part, one sign": (
        "torch.cat((first * cos + second * sin, second * cos + first * sin), dim=-1)"
    ),
    "part by part, put together otherwise": (
        "torch.stack((first * cos - second * sin, second * cos + first * sin), -1).flatten(-2)"
    ),
    "complex numbers of another shape": (
        "torch.view_as_real(torch.view_as_complex(x.reshape(8, -1, 2)) * cos).flatten(-2)"
    ),
}


def text_of(code: str) -> str:
    return HEADER + dedent(code).lstrip("\n")


def unbroken(code: str) -> list[str]:
    """The lines of code, a call with one argument to a line taken as the one line it would be."""
    lines = [""]
    for line in map(str.strip, code.splitlines()):
        if lines[-1].endswith("("):
            lines[-1] += line
        elif lines[-1].endswith(","):
            closes = line.startswith(")")
            lines[-1] = lines[-1][:-1] + line if closes else f"{lines[-1]} {line}"
        else:
            lines.append(line)
    return lines


def without_adapting(line: str) -> str:
    """A line without what makes arguments agree in type and dimensions, which is tested apart."""
    if "npu_rotary_mul" not in line:
        return line
    line = re.sub(r"\[\(None,\) \* \(\w+\.dim\(\) - \w+\.dim\(\)\)\]", "", line)
    return re.sub(r"\.to\(\w+\.dtype\)(?=[,).])|(?<=cos|sin)\.float\(\)(?=[,.)])", "", line)


def rotary(text: str) -> list[str]:
    return [found.rule.code for found in findings(text, Target()) if found.rule.code == "NPU706"]


@pytest.mark.parametrize("spelling", SPELLINGS, ids=lambda spelling: spelling.name)
def test_a_spelling_becomes_the_operator(spelling: Spelling) -> None:
    text = text_of(spelling.code)
    assert rotary(text)
    after = fixed(text, Target())
    lines = list(map(without_adapting, unbroken(after)))
    for wanted in spelling.wanted:
        assert wanted in lines, after
    for gone in spelling.gone:
        assert gone not in after
    assert not rotary(after)


@pytest.mark.parametrize(
    "spelling", [each for each in SPELLINGS if each.inputs], ids=lambda spelling: spelling.name
)
def test_the_fixed_code_computes_the_same(spelling: Spelling) -> None:
    text = text_of(spelling.code)
    is_class = "class Turn" in text
    assert_same_behaviour(
        text,
        fixed(text, Target()),
        "Turn" if is_class else "turn",
        inputs=spelling.inputs,
        arguments={"head_size": 16} if is_class else {},
    )


@pytest.mark.parametrize("expression", TRAPS.values(), ids=TRAPS.keys())
def test_what_is_no_such_rotation_is_left_alone(expression: str) -> None:
    text = HEADER + ROTATE_HALF.lstrip("\n")
    text += "def rotary(x, y, cos, sin):\n    first, second = x.chunk(2, dim=-1)\n"
    text += f"    return {expression}\n"
    assert not rotary(text)


@pytest.mark.parametrize(
    "binding",
    ["def half(x):\n        return x.flip(-1)", "half = given", "half = lambda x: x"],
)
def test_a_name_that_is_bound_twice_is_no_function_beside(binding: str) -> None:
    text = text_of(
        f"""
def turn(x, cos, sin, given):
    def half(x):
        first, second = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
        return torch.cat((-second, first), dim=-1)

    {binding}

    def inner(x):
        return x * cos + half(x) * sin

    return inner(x)
"""
    )
    assert not rotary(text)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [("2, 4, 6, 16", 1), ("48, 4, 16", 1), ("2, 4, 2, 3, 16", 0), ("48, 16", 0), ("*sizes", 1)],
)
def test_the_number_of_dimensions_counts_where_it_is_known(sizes: str, expected: int) -> None:
    text = text_of(
        ROTATE_HALF
        + f"""
def rotary(x, cos, sin, sizes):
    x = x.view({sizes})
    return x * cos + rotate_half(x) * sin
"""
    )
    assert len(rotary(text)) == expected


@pytest.mark.parametrize(
    "arguments",
    ["True, True", "inplace=True", "cu_seqlens=starts", "seqlen_offsets=3", "interleaved=flag"],
)
def test_a_call_of_flash_attention_that_does_more_is_left_alone(arguments: str) -> None:
    text = text_of(
        f"""
from flash_attn.layers.rotary import apply_rotary_emb


def rotary(x, cos, sin, starts, flag):
    return apply_rotary_emb(x, cos, sin, {arguments})
"""
    )
    assert not rotary(text)


def test_each_of_two_fixes_can_be_applied_alone() -> None:
    text = text_of(SPELLINGS[0].code)
    found = [each for each in findings(text, Target()) if each.rule.code == "NPU706"]
    assert len(found) == 2
    for finding in found:
        edit = finding.fixes[0].edits[-1] if len(finding.fixes[0].edits) == 1 else None
        assert edit is not None
        after = text[: edit.span.start] + edit.replacement + text[edit.span.end :]
        assert after.count("npu_rotary_mul") == 1
        assert_same_behaviour(text, after, "turn", inputs=SPELLINGS[0].inputs)


def test_the_function_that_rotates_has_the_finding_and_not_its_callers() -> None:
    text = text_of(
        ROTATE_HALF
        + """
def apply_rotary_pos_emb(q, k, cos, sin):
    return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin


class Attention(nn.Module):
    def forward(self, q, k, cos, sin):
        q, k = apply_rotary_pos_emb(q, k, cos, sin)
        q = q.contiguous()
        return q @ k.transpose(-1, -2)
"""
    )
    found = [each for each in findings(text, Target()) if each.rule.code == "NPU706"]
    assert [text[each.span.start : each.span.end] for each in found] == [
        "q * cos + rotate_half(q) * sin",
        "k * cos + rotate_half(k) * sin",
    ]
