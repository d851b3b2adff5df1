"""What is offered for computations in the styles of public code computes what they did."""

import ast
from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
import torch
from torch import nn

from fused_execution import differences, run_module
from helpers import apply_edits
from migration import findings
from npulens.catalog.model import Target

pytestmark = pytest.mark.emulated

FOLDER = Path(__file__).parent / "data" / "fused_styles"
FILES = ("decoders.py", "gates.py", "layers.py", "spellings.py", "turns.py", "vision.py")
"""The others import libraries that are not installed for tests."""
HEADS = (2, 4, 6, 16)
TOKENS = (2, 6, 32)
PIXELS = (2, 32, 4, 4)
MASK = ("bool", 2, 1, 6, 6)
GATE: dict[str, Any] = {"d": 32, "h": 16}
MODEL: dict[str, Any] = {"dim": 32, "heads": 4}


class Example(NamedTuple):
    """How a style is run: what it is given, and what its constructor is.

    Where a choice decides which fix holds, `chosen` has what the constructor is given for each but
    the first.
    """

    inputs: list[Any]
    arguments: Mapping[str, Any] = MappingProxyType({})
    chosen: Sequence[Mapping[str, Any]] = ()


OF_TOKENS = Example([TOKENS], {"d": 32})
OF_HIDDEN = Example([TOKENS], {"dim": 32, "hidden": 16})
OF_PAIRS = Example([(2, 6, 4, 16), (1, 6, 1, 8), (1, 6, 1, 8)])
EXAMPLES = {
    "GroupedByInterleave": Example([TOKENS], {**MODEL, "groups": 2}),
    "BufferedWhere": Example([TOKENS], {**MODEL, "block": 8}),
    "AnnotatedTransformer": Example([TOKENS] * 3, {"h": 4, "d_model": 32, "dropout": 0.0}),
    "QueryKeyNorm": Example([TOKENS, ("above", 0, 6, 6)], MODEL),
    "MultiQueryViews": Example([TOKENS, MASK], MODEL),
    "NormBySquares": OF_TOKENS,
    "NormBySquare": OF_TOKENS,
    "NormInPieces": OF_TOKENS,
    "NormWithZeros": OF_TOKENS,
    "NormWithBias": OF_TOKENS,
    "NormInPlace": OF_TOKENS,
    "NormGated": OF_TOKENS,
    "ResidualThenNorm": Example([TOKENS, TOKENS], {"d": 32}),
    "NormWithGainOnRequest": OF_TOKENS,
    "GateChunk": Example([TOKENS], GATE),
    "GateSplit": Example([TOKENS], GATE),
    "GateSlices": Example([TOKENS], GATE),
    "GateInPlace": Example([TOKENS], GATE),
    "GateByModule": Example([TOKENS], GATE),
    "GateByOwnModule": Example([TOKENS], GATE),
    "GateByLambda": Example([TOKENS], GATE),
    "SwiGLU": Example([TOKENS]),
    "LlamaMLP": OF_HIDDEN,
    "Packed": OF_HIDDEN,
    "SwishByHand": OF_HIDDEN,
    "GateBySwish": OF_HIDDEN,
    "LambdaGate": OF_HIDDEN,
    "ChatGLMGate": OF_HIDDEN,
    "InPlace": OF_HIDDEN,
    "DefaultActivation": OF_HIDDEN._replace(
        chosen=[{"act_layer": nn.GELU}, {"act_layer": partial(nn.GELU, approximate="tanh")}]
    ),
    "DictOfActivations": OF_HIDDEN._replace(chosen=[{"act": "gelu"}, {"act": "gelu_tanh"}]),
    "GEGLU": Example([TOKENS]),
    "DiffusersGEGLU": Example([TOKENS], {"dim_in": 32, "dim_out": 16}),
    "T5Gated": Example([TOKENS], {"d_model": 32, "d_ff": 16, "dropout": 0.0}),
    "GemmaMLP": Example([TOKENS], {"hidden_size": 32, "intermediate_size": 16}),
    "NewGELU": Example([TOKENS]),
    "ErfGELU": Example([TOKENS]),
    "QuickGELU": Example([TOKENS]),
    "gelu_with_tensor": Example([TOKENS]),
    "gelu_by_constant": Example([TOKENS]),
    "GateOfConvolutions": Example([PIXELS], {"d": 32}),
    "GateGelu": Example([TOKENS], GATE),
    "GateGeluTanh": Example([TOKENS], GATE),
    "NewGelu": Example([TOKENS]),
    "gelu_erf": Example([TOKENS]),
    "gelu_cube": Example([TOKENS]),
    "gelu_factored": Example([TOKENS]),
    "QuickGelu": Example([TOKENS]),
    "turn_interleaved": Example([HEADS, HEADS, (1, 1, 6, 16), (1, 1, 6, 16)]),
    "turn_halves": Example([HEADS, HEADS, (9, 16), (9, 16), ("int", 9, 2, 6)]),
    "turn_pairs": Example([(2, 6, 4, 16), ("complex", 6, 8)]),
    "turn_stacked": OF_PAIRS,
    "turn_split": OF_PAIRS,
    "turn_partial": Example([(2, 4, 6, 24), (1, 1, 6, 16), (1, 1, 6, 16), 16]),
    "Axial": Example([(2, 4, 6, 32), *[(1, 1, 6, 16)] * 4]),
    "negative_likelihood": Example([(6, 11), ("int", 11, 6)]),
    "by_rows": Example([(6, 11), ("int", 11, 6)]),
    "by_normalizer": Example([(6, 11), ("int", 11, 6)]),
    "token_logprobs": Example([(2, 6, 11), ("int", 11, 2, 6)]),
    "ViTBlock": Example([TOKENS], {"dim": 32, "num_heads": 4}),
    "ClassAttention": Example([TOKENS], {"dim": 32, "num_heads": 4}),
    "SpatialReduction": Example([(2, 16, 32), 4, 4], {"dim": 32, "num_heads": 4, "sr": 2}),
    "AttnBlock": Example([PIXELS], {"in_channels": 32}),
    "QkvAttention": Example([(2, 96, 16)], {"n_heads": 2}),
    "NonLocal": Example([PIXELS], {"c": 32}),
    "NoMaskBaddbmm": Example([(8, 6, 16)] * 3, {"scale": 0.25}),
    "BatchedHeads": Example([TOKENS], {"d": 32, "heads": 4}),
    "SingleHead": Example(
        [TOKENS], {"n_embd": 32, "head_size": 16, "block_size": 8, "dropout": 0.0}
    ),
    "NormByMethods": Example([TOKENS], {"hidden_size": 32}),
    "NormAndItself": Example([TOKENS], {"dim": 32}),
    "NormBySums": Example([TOKENS], {"dim": 32}),
    "NormByRootOfLength": OF_TOKENS,
    "NormGivenToHelper": OF_TOKENS,
    "GateOfEvenParts": Example([TOKENS], GATE),
    "GateOfSums": Example([TOKENS], GATE),
    "turn_by_one_table": Example([(2, 6, 4, 16), (9, 8, 2)]),
    "TurnByOwnLength": Example([(6, 2, 4, 32)], {"d": 16}),
    "TurnByNamedHalf": Example([HEADS, HEADS, ("int", 9, 6)], {"head_dim": 16}),
    "turn_joined": OF_PAIRS,
    "turn_as_complex": Example([HEADS, ("complex", 1, 1, 6, 8)]),
    "turn_apart": Example([HEADS, HEADS, (1, 1, 6, 8), (1, 1, 6, 8)]),
    "AttendByLengths": Example([TOKENS, ("int", 6, 2)], MODEL),
    "AttendScaledTwice": Example([TOKENS], {"width": 32, "heads": 4}),
    "SingleHeadOfLecture": Example([TOKENS], {"width": 32, "size": 16, "block": 8}),
    "MaskedInHeads": Example([TOKENS, None, ("bool", 2, 1, 6)], {"d": 32, "h": 4}),
    "SequenceFirst": Example([(6, 2, 32), ("bool", 2, 6)], {"d": 32, "h": 4}),
    "attend_with_full_like": Example([HEADS, HEADS, HEADS, ("bool", 2, 1, 6, 6)]),
    "Correspondence": Example([(2, 32, 6), (2, 32, 5), (2, 3, 5)]),
    "GroupedByExpand": Example([TOKENS], {**MODEL, "groups": 2}),
    "likelihood_of_rows": Example([(6, 11), ("int", 11, 6)]),
    "likelihood_of_flat": Example([(2, 6, 11), ("int", 11, 2, 6)]),
    "chosen_less_total": Example([(2, 6, 11), ("int", 11, 2, 6)]),
    "logarithm_of_chosen": Example([(6, 11), ("int", 11, 6)]),
    "focal": Example([(6, 11), ("int", 11, 6)]),
    "picked_by_helper": Example([(2, 6, 11), ("int", 11, 2, 6)]),
    "summed_as_before": Example([(6, 11), ("int", 11, 6)]),
    "LearnedQueries": Example([TOKENS], {**MODEL, "count": 3}),
}


def offered() -> list[tuple[str, str, int]]:
    """The styles for which there is a fix, each with its file and the number of the fix."""
    return [
        (file, name, number)
        for file in FILES
        for name, texts in rewritten(file).items()
        for number in range(len(texts))
    ]


@cache
def rewritten(file: str) -> dict[str, list[str]]:
    """The text of a file with each single fix, by the definition that the fix is in."""
    text = (FOLDER / file).read_text(encoding="utf-8")
    tree = ast.parse(text)
    found: dict[str, list[str]] = {}
    for finding in findings(text, Target()):
        line = text.count("\n", 0, finding.span.start) + 1
        for node in tree.body:
            is_definition = isinstance(node, ast.ClassDef | ast.FunctionDef)
            if is_definition and node.lineno <= line <= (node.end_lineno or 0):
                if not finding.rule.code.startswith("NPU7") or finding.rule.code == "NPU716":
                    continue
                for fix in finding.fixes:
                    found.setdefault(node.name, []).append(apply_edits(text, fix.edits))
    return found


def test_all_styles_with_a_fix_are_run() -> None:
    assert EXAMPLES.keys() == {name for _, name, _ in offered()}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("file", "name", "number"), offered())
def test_a_fix_of_a_style_computes_the_same(
    file: str, name: str, number: int, dtype: torch.dtype
) -> None:
    example = EXAMPLES[name]
    chosen = example.chosen[number - 1] if number and example.chosen else {}
    before = (FOLDER / file).read_text(encoding="utf-8")
    runs = [
        run_module(
            text,
            name,
            {**example.arguments, **chosen},
            3,
            example.inputs,
            training=False,
            is_npu=True,
            dtype=dtype,
        )
        for text in (before, rewritten(file)[name][number])
    ]
    assert differences(*runs) == []
