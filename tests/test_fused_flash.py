"""NPU708: calls of flash-attn and xformers, run before and after their rewriting."""

import re
import sys
from collections.abc import Sequence
from textwrap import dedent

import pytest
import torch

import gpu_attention
from fused_execution import assert_same_behaviour
from helpers import CATALOGUE, findings, fixed, unmarked

Shape = tuple[int, ...]

SEPARATE: list[Shape] = [(2, 5, 4, 8), (2, 5, 4, 8), (2, 5, 4, 8)]
GROUPED: list[Shape] = [(2, 5, 4, 8), (2, 5, 2, 8), (2, 5, 2, 8)]
LONGER_KEYS: list[Shape] = [(2, 3, 4, 8), (2, 7, 4, 8), (2, 7, 4, 8)]
HEADS_FIRST: list[Shape] = [(2, 4, 5, 8), (2, 4, 5, 8), (2, 4, 5, 8)]
ENDS = torch.tensor([0, 3, 4, 9], dtype=torch.int32)
LONGER_ENDS = torch.tensor([0, 5, 7, 12], dtype=torch.int32)
TOKENS: list[Shape] = [(9, 4, 8), (9, 4, 8), (9, 4, 8)]

ORIGINALS: list[tuple[str, str, Sequence[object]]] = [
    ("plain", "return flash_attn_func(q, k, v)", SEPARATE),
    ("causal", "return flash_attn_func(q, k, v, causal=True)", SEPARATE),
    ("bottom right", "return flash_attn_func(q, k, v, causal=True)", LONGER_KEYS),
    ("fewer key heads", "return flash_attn_func(q, k, v, causal=True)", GROUPED),
    ("by position", "return flash_attn_func(q, k, v, 0.0, 0.3, True)", SEPARATE),
    ("by keyword", "return flash_attn_func(v=v, k=k, q=q, softmax_scale=None)", GROUPED),
    ("scale", "return flash_attn_func(q, k, v, softmax_scale=1 / 3)", SEPARATE),
    ("none in a name", "s = None\nreturn flash_attn_func(q, k, v, softmax_scale=s)", SEPARATE),
    ("dropout", "p = 0.0\nreturn flash_attn_func(q, k, v, dropout_p=p, causal=False)", SEPARATE),
    ("condition", "return flash_attn_func(q, k, v, causal=q.shape[1] > 1)", LONGER_KEYS),
    ("no condition", "c = False\nreturn flash_attn_func(q, k, v, causal=c)", LONGER_KEYS),
    (
        "turned",
        "q, k, v = (t.half().float() for t in (q, k, v))\n"
        "return flash_attn_func(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2),\n"
        "                       causal=True).flatten(2)",
        HEADS_FIRST,
    ),
    ("cast", "return flash_attn_func(q.to(torch.float32), k, v, causal=True)", SEPARATE),
    (
        "computed",
        "return flash_attn_func(torch.cat([q, q], 1), k, v, causal=True)",
        [(2, 2, 4, 8), (2, 5, 4, 8), (2, 5, 4, 8)],
    ),
    ("packed", "return flash_attn_qkvpacked_func(q, 0.0, causal=True)", [(2, 5, 3, 4, 8)]),
    (
        "packed and shaped",
        "return flash_attn_qkvpacked_func(q.view(2, 5, 3, 4, 8), causal=True).flatten(2)",
        [(2, 5, 96)],
    ),
    (
        "stacked",
        "return flash_attn_qkvpacked_func(torch.stack([q, k, v], dim=2), causal=True)",
        SEPARATE,
    ),
    (
        "kv packed",
        "return flash_attn_kvpacked_func(q, k, causal=True)",
        [GROUPED[0], (2, 7, 2, 2, 8)],
    ),
    (
        "kv stacked",
        "return flash_attn_kvpacked_func(q, torch.stack((k, v), 2), softmax_scale=0.2)",
        GROUPED,
    ),
    (
        "lengths",
        "return flash_attn_varlen_func(q, k, v, ends, ends, 5, 5, causal=True)",
        [*TOKENS, ENDS],
    ),
    (
        "two lengths",
        "return flash_attn_varlen_func(q, k, v, cu_seqlens_q=ends, cu_seqlens_k=key_ends,\n"
        "    max_seqlen_q=5, max_seqlen_k=5, causal=True)",
        [(9, 4, 8), (12, 2, 8), (12, 2, 8), ENDS, LONGER_ENDS],
    ),
    (
        "packed lengths",
        "return flash_attn_varlen_qkvpacked_func(q, k, 5, 0.0, causal=True)",
        [(9, 3, 4, 8), ENDS],
    ),
    (
        "kv packed lengths",
        "return flash_attn_varlen_kvpacked_func(q, k, v, ends, 5, 5, softmax_scale=0.5)",
        [(9, 4, 8), (12, 2, 2, 8), ENDS, LONGER_ENDS],
    ),
    (
        "first release",
        "return flash_attn_unpadded_func(q, k, v, ends, key_ends, 5, 5, 0.0, causal=True)",
        [(9, 4, 8), (12, 4, 8), (12, 4, 8), ENDS, LONGER_ENDS],
    ),
    (
        "turned tokens",
        "return flash_attn_varlen_func(q.transpose(1, 2), k, v, ends, ends, 5, 5)",
        [(9, 8, 4), (9, 4, 8), (9, 4, 8), ENDS],
    ),
    ("xformers", "return xops.memory_efficient_attention(q, k, v)", LONGER_KEYS),
    (
        "xformers with all",
        "return xops.memory_efficient_attention(q, k, v, None, 0.0, 0.4, op=None)",
        SEPARATE,
    ),
    (
        "top left",
        "mask = xops.LowerTriangularMask()\n"
        "return xops.memory_efficient_attention(q, k, v, attn_bias=mask)",
        LONGER_KEYS,
    ),
    (
        "bottom right of xformers",
        "return xops.memory_efficient_attention(\n"
        "    q, k, v, attn_bias=xops.LowerTriangularFromBottomRightMask())",
        LONGER_KEYS,
    ),
    (
        "mask on a condition",
        "return xops.memory_efficient_attention(\n"
        "    q, k, v, attn_bias=xops.LowerTriangularMask() if q.shape[1] > 1 else None)",
        LONGER_KEYS,
    ),
    (
        "three dimensions",
        "q, k, v = (t.reshape(2, 5, 32) for t in (q, k, v))\n"
        "return xops.memory_efficient_attention(q, k, v, scale=0.1)",
        SEPARATE,
    ),
    ("alias of a module", "return fa.flash_attn_func(q, k, v)", SEPARATE),
    (
        "renamed",
        "return varlen(q, k, v, ends, ends, max_seqlen_q=5, max_seqlen_k=5)",
        [*TOKENS, ENDS],
    ),
]

IMPORTS = """\
import torch
import flash_attn.flash_attn_interface as fa
import xformers.ops as xops
from flash_attn import flash_attn_func, flash_attn_kvpacked_func, flash_attn_qkvpacked_func
from flash_attn import flash_attn_varlen_kvpacked_func, flash_attn_varlen_qkvpacked_func
from flash_attn.flash_attn_interface import flash_attn_unpadded_func, flash_attn_varlen_func
from flash_attn.flash_attn_interface import flash_attn_varlen_func as varlen


"""
"""All at once; what the rewriting leaves of them is another test."""


@pytest.mark.parametrize(
    ("body", "inputs"), [row[1:] for row in ORIGINALS], ids=[row[0] for row in ORIGINALS]
)
def test_rewritten_calls_compute_the_same(
    body: str, inputs: Sequence[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["q", "k", "v", "ends", "key_ends"][: len(inputs)]
    if "kvpacked" in body and "varlen" in body and "qkv" not in body:
        names = ["q", "k", "v", "ends"]  # `v` and `ends` are the two lists of lengths here
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    original = f"{IMPORTS}def attention({', '.join(names)}):\n{lines}"
    rewritten = fixed(original)
    assert "npu_fusion_attention" in rewritten
    assert "NPU708" not in {finding.rule.code for finding in findings(rewritten)}
    for name, module in gpu_attention.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    assert_same_behaviour(original, rewritten, "attention", inputs=inputs)


MODULE = """\
import torch
from torch import nn
from flash_attn import flash_attn_qkvpacked_func


class SelfAttention(nn.Module):
    def __init__(self, width=32, heads=4, causal=True, scale=None):
        super().__init__()
        self.heads = heads
        self.causal = causal
        self.scale = scale
        self.dropout = 0.0
        self.projection = nn.Linear(width, 3 * width)

    def forward(self, x):
        out = flash_attn_qkvpacked_func(
            self.projection(x).unflatten(-1, (3, self.heads, -1)),
            self.dropout if self.training else 0.0,  # none where it is only evaluated
            softmax_scale=self.scale,
            causal=self.causal,
        )
        return out.flatten(2)
"""


@pytest.mark.parametrize("arguments", [{}, {"causal": False, "scale": 0.3}])
def test_a_module_keeps_its_parameters_and_comments(
    arguments: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    rewritten = fixed(MODULE)
    assert "flash_attn" not in rewritten
    assert "# none where it is only evaluated" in rewritten
    for name, module in gpu_attention.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    assert_same_behaviour(
        MODULE, rewritten, "SelfAttention", inputs=[(2, 6, 32)], arguments=arguments
    )


FLASH = "from flash_attn import flash_attn_func, flash_attn_varlen_func\n"
XFORMERS = "import flash_attn_interface\nimport xformers.ops as xops\n\n\n"
CALL = "def f(q, k, v):\n    return flash_attn_func(q, k, v)"

BY_HAND = [
    ("window_size", "return flash_attn_func(q, k, v, window_size=(8, 0))"),
    ("window_size", "return flash_attn_func(q, k, v, window_size=w)"),
    ("softcap", "return flash_attn_func(q, k, v, softcap=30.0)"),
    ("alibi_slopes", "return flash_attn_func(q, k, v, alibi_slopes=w)"),
    ("return_attn_probs", "o, l, _ = flash_attn_func(q, k, v, return_attn_probs=True)"),
    ("**", "return flash_attn_func(q, k, v, **options)"),
    ("**", "return flash_attn_func(*q)"),
    ("**", "return flash_attn_func(q, k, v, 0.0, None, True, (-1, -1))"),
    ("**", "return flash_attn_func(q, k, v, unheard_of=1)"),
    ("**", "return flash_attn_func(q, k)"),
    ("npu_fused_infer", "return flash_attn_varlen_func(q, k, v, w, w, 1, 1, block_table=n)"),
    ("condition", "return flash_attn_func(q, k, v, causal=c())"),
    ("name first", "return [flash_attn_func(q(), k, v) for _ in v]"),
    ("release", "return flash_attn_interface.flash_attn_func(q, k, v)"),
    ("atten_mask", "return xops.memory_efficient_attention(q, k, v, w)"),
    (
        "atten_mask",
        "b = None\n    if c:\n        b = xops.LowerTriangularMask()\n"
        "    return xops.memory_efficient_attention(q, k, v, b)",
    ),
    (
        "atten_mask",
        "b = xops.fmha.BlockDiagonalMask.from_seqlens(n)\n"
        "    return xops.memory_efficient_attention(q, k, v, attn_bias=b)",
    ),
    (
        "five",
        "q = q.view(1, 2, 3, 4, 5)\n    return xops.memory_efficient_attention(q, k, v)",
    ),
    ("output_dtype", "return xops.memory_efficient_attention(q, k, v, output_dtype=w)"),
]


@pytest.mark.parametrize(("reason", "body"), BY_HAND)
def test_what_has_no_certain_counterpart_is_told_with_the_reason(reason: str, body: str) -> None:
    code = f"{FLASH}{XFORMERS}def f(q, k, v, w, n, c, **options):\n    {body}\n"
    (found,) = [finding for finding in findings(code) if finding.rule.code == "NPU708"]
    assert not found.fixes
    assert reason in found.message("en")
    assert re.search("[一-鿿]", found.message("zh"))
    assert fixed(code) == code


@pytest.mark.parametrize(
    "code",
    [
        "from transformers.utils import is_flash_attn_2_available\n"
        f"if is_flash_attn_2_available():\n    from flash_attn import flash_attn_func\n{CALL}",
        "def f(q, k, v):\n    if is_flash_attn_available():\n"
        "        from flash_attn import flash_attn_func\n"
        "        return flash_attn_func(q, k, v)\n    return plain(q, k, v)",
        "def f(q, k, v):\n    try:\n        import xformers.ops as x\n"
        "        return x.memory_efficient_attention(q, k, v)\n    except ImportError:\n"
        "        return q",
        "try:\n    import xformers.ops as x\nexcept ImportError:\n    x = None\n"
        "def f(q):\n    return x.memory_efficient_attention(q, q, q) if x is not None else q",
        "def f(q):\n    if not XFORMERS_AVAILABLE:\n        return q\n"
        "    import xformers.ops as x\n    return x.memory_efficient_attention(q, q, q)",
        f"from .attention import flash_attn_func\n{CALL}",
        "def flash_attn_func(q, k, v):\n    return q\nx = flash_attn_func(1, 2, 3)",
        "def f(flash_attn_func, q):\n    return flash_attn_func(q, q, q)",
        "class A:\n    def memory_efficient_attention(self, q):\n        return q\n"
        "    def f(self, q):\n        return self.memory_efficient_attention(q)",
        'TEXT = "flash_attn_func(q, k, v)"',
        "from transformers.integrations.npu_flash_attention import npu_flash_attn_func\n"
        "flash_attn_func = npu_flash_attn_func\n" + CALL,
        "if is_torch_npu_available():\n    from own import flash_attn_func\nelse:\n"
        f"    from flash_attn import flash_attn_func\n{CALL}",
    ],
)
def test_calls_that_have_another_way_are_left_alone(code: str) -> None:
    assert "NPU708" not in {finding.rule.code for finding in findings(code + "\n")}


@pytest.mark.parametrize(
    "code",
    [
        "try:\n    from flash_attn import flash_attn_func\nexcept ImportError:\n"
        f"    flash_attn_func = None\n{CALL}",
        "try:\n    import flash_attn\nexcept ImportError:\n    flash_attn = None\n"
        "def f(q):\n    return flash_attn.flash_attn_func(q, q, q)",
    ],
)
def test_a_call_that_nobody_guards_is_the_only_way(code: str) -> None:
    found = {finding.rule.code: finding for finding in findings(code + "\n")}
    assert found.keys() == {"NPU602", "NPU708"}
    assert found["NPU708"].fixes


@pytest.mark.parametrize(
    ("code", "marks"),
    [
        (
            "from flash_attn import ⟦NPU602:flash_attn_func⟧\n"
            "def f(q, k, v):\n    return ⟦NPU708:flash_attn_func⟧(q, k, v)\n",
            2,
        ),
        (
            "import ⟦NPU602:xformers.ops⟧\n"
            "y = ⟦NPU708:xformers.ops.memory_efficient_attention⟧(q, k, v)\n",
            2,
        ),
        (
            "from flash_attn import ⟦NPU602:flash_attn_func⟧\nclass A:\n"
            "    def __init__(self):\n        self.core = flash_attn_func\n"
            "    def f(self, q):\n        return ⟦NPU708:self.core⟧(q, q, q)\n",
            2,
        ),
        (
            "if flash:\n    from flash_attn import ⟦NPU602:flash_attn_func⟧\n"
            "    y = ⟦NPU708:flash_attn_func⟧(q, q, q)\n",
            2,
        ),
    ],
)
def test_each_place_has_one_finding(code: str, marks: int) -> None:
    source, expected = unmarked(code)
    found = sorted((*finding.span, finding.rule.code) for finding in findings(source))
    assert found == sorted(tuple(mark) for mark in expected)
    assert len(found) == marks


@pytest.mark.parametrize(
    ("imports", "left"),
    [
        ("from flash_attn import flash_attn_func\n", ""),
        ("from flash_attn import flash_attn_func, flash_attn_with_kvcache\n", ""),
        (
            "from flash_attn import flash_attn_func, flash_attn_with_kvcache\n"
            "other = flash_attn_with_kvcache\n",
            "from flash_attn import flash_attn_with_kvcache\nother = flash_attn_with_kvcache\n",
        ),
        (
            "from flash_attn import (\n    flash_attn_func,\n    flash_attn_kvpacked_func,\n)\n"
            "other = flash_attn_kvpacked_func\n",
            "from flash_attn import (\n    flash_attn_kvpacked_func,\n)\n"
            "other = flash_attn_kvpacked_func\n",
        ),
        (
            'from flash_attn import flash_attn_func\n__all__ = ["flash_attn_func"]\n',
            'from flash_attn import flash_attn_func\n__all__ = ["flash_attn_func"]\n',
        ),
        (
            "from flash_attn import flash_attn_func  # the fast one\n",
            "from flash_attn import flash_attn_func  # the fast one\n",
        ),
    ],
)
def test_imports_without_use_are_taken_out(imports: str, left: str) -> None:
    rest = "\n\ndef f(q, k, v):\n    return {}\n"
    operator = "torch_npu.npu_fusion_attention"
    written = f'{operator}(q, k, v, q.shape[2], "BSND", scale=q.shape[-1] ** -0.5)[0]'
    head = "import torch_npu\n"
    result = fixed(head + imports + rest.format("flash_attn_func(q, k, v)"))
    assert result == head + left + rest.format(written)


def test_an_import_without_use_stays_where_nothing_was_rewritten() -> None:
    code = "from flash_attn import flash_attn_func\n"
    assert fixed(code) == code


def test_a_mask_brings_the_import_of_torch() -> None:
    code = FLASH + "\n\ndef f(q, k, v):\n    return flash_attn_func(q, k, v, causal=True)\n"
    assert fixed(code).startswith("import torch\nimport torch_npu\n")


def test_a_name_that_is_taken_is_not_used_again() -> None:
    code = FLASH + dedent(
        """\
        def f(make, query, k, v):
            out = flash_attn_func(make(query), k, v)
            return out, query
        """
    )
    assert "    attention_query = make(query)\n" in fixed(code)


def test_facts_on_arguments_are_in_the_table() -> None:
    facts = [e for e in CATALOGUE.libraries.values() if e.rule.code == "NPU708"]
    assert len(facts) > 20
    assert all(entry.note is not None and entry.source for entry in facts)
