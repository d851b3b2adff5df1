"""Attention."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from npulens_emulator.operators.arguments import (
    not_described,
    require,
    require_dtype,
    require_same_dtype,
)
from npulens_emulator.operators.masks import OPERATOR, UNLIMITED, masked_positions

Outputs = tuple[Tensor, Tensor, Tensor, Tensor, int, int, int]

LAYOUTS = ("BSH", "SBH", "BSND", "BNSD", "TND")
PERMUTATIONS = {"BSND": (0, 2, 1, 3), "BNSD": (0, 1, 2, 3), "SBND": (1, 2, 0, 3)}
"""From a layout with heads to BNSD."""


class Options(NamedTuple):
    """What does not depend on the layout."""

    head_num: int
    scale: float
    keep_prob: float
    atten_mask: Tensor | None
    sparse_mode: int
    pre_tockens: int
    next_tockens: int


def npu_fusion_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    head_num: int,
    input_layout: str,
    pse: Tensor | None = None,
    padding_mask: Tensor | None = None,
    atten_mask: Tensor | None = None,
    scale: float = 1.0,
    keep_prob: float = 1.0,
    pre_tockens: int = UNLIMITED,
    next_tockens: int = UNLIMITED,
    inner_precise: int = 0,
    prefix: Sequence[int] | None = None,
    actual_seq_qlen: Sequence[int] | None = None,
    actual_seq_kvlen: Sequence[int] | None = None,
    sparse_mode: int = 0,
    gen_mask_parallel: bool = True,
    sync: bool = False,
    softmax_layout: str = "",
    sink: Tensor | None = None,
    dropout_mask: Tensor | None = None,
    seed: int = 0,
    offset: int = 0,
) -> Outputs:
    """`softmax(scale * query @ key^T, masked) @ value`, with dropout of the probabilities.

    `head_num` is the number of query heads; keys and values may have fewer (a divisor). With the
    layout TND sequences lie behind each other, and `actual_seq_qlen` and `actual_seq_kvlen` are
    lists of where each ends.

    Returns:
        The result in the layout of `query`; in place of the six others, which are not described,
        empty tensors and zeros.
    """
    require(input_layout in LAYOUTS, OPERATOR, f"unknown input_layout {input_layout!r}")
    require(isinstance(head_num, int), OPERATOR, "head_num must be an int")
    require(0.0 < keep_prob <= 1.0, OPERATOR, "keep_prob must be above 0 and at most 1")
    require(padding_mask is None, OPERATOR, "padding_mask is not supported")
    for name, given in {
        "pse": pse,
        "prefix": prefix,
        "softmax_layout": softmax_layout or None,
        "sink": sink,
        "dropout_mask": dropout_mask,
        "seed or offset": seed or offset or None,
    }.items():
        if given is not None:
            not_described(OPERATOR, name)
    require_dtype(OPERATOR, query)
    require_same_dtype(OPERATOR, query, key, value)
    options = Options(
        head_num, scale, keep_prob, atten_mask, sparse_mode, pre_tockens, next_tockens
    )
    if input_layout == "TND":
        query_ends = _ends("actual_seq_qlen", actual_seq_qlen, query)
        key_ends = _ends("actual_seq_kvlen", actual_seq_kvlen, key)
        out = _attend_sequences((query, key, value), query_ends, key_ends, options)
    else:
        size = query.shape[-1] // head_num
        key_heads = key.shape[-1] // size if input_layout.endswith("H") else head_num
        heads = _attend(
            _to_heads(query, input_layout, head_num),
            _to_heads(key, input_layout, key_heads),
            _to_heads(value, input_layout, key_heads),
            options,
        )
        out = _from_heads(heads, input_layout)
    empty = query.new_empty(0)
    return out, empty, empty, empty, 0, 0, 0


def _ends(name: str, given: Sequence[int] | None, tensor: Tensor) -> list[int]:
    """The ends of sequences, which must be host integers and not start with 0."""
    if not isinstance(given, list | tuple) or not all(isinstance(end, int) for end in given):
        raise TypeError(f"{OPERATOR}: {name} must be a list of int")
    ends = list(given)
    require(bool(ends) and ends[0] > 0, OPERATOR, f"{name} holds ends, without the leading 0")
    require(ends == sorted(ends), OPERATOR, f"{name} must be cumulative")
    require(ends[-1] == tensor.shape[0], OPERATOR, f"{name} does not end at T")
    return ends


def _to_heads(tensor: Tensor, layout: str, heads: int) -> Tensor:
    """A tensor in BNSD, of which H is cut into heads."""
    if layout in PERMUTATIONS:
        require(tensor.dim() == 4, OPERATOR, f"layout {layout} means four dimensions")
        return tensor.permute(PERMUTATIONS[layout])
    require(tensor.dim() == 3, OPERATOR, f"layout {layout} means three dimensions")
    require(tensor.shape[-1] % heads == 0, OPERATOR, "H is not a multiple of the heads")
    with_heads = tensor.reshape(*tensor.shape[:2], heads, -1)
    return with_heads.permute(PERMUTATIONS[layout.replace("H", "ND")])


def _from_heads(tensor: Tensor, layout: str) -> Tensor:
    """The reverse of `_to_heads`."""
    with_heads = layout.replace("H", "ND")
    # Each of the permutations but that of SBND is its own reverse.
    back = (2, 0, 1, 3) if with_heads == "SBND" else PERMUTATIONS[with_heads]
    permuted = tensor.permute(back)
    return permuted.flatten(-2) if layout.endswith("H") else permuted


def _attend_sequences(
    tensors: tuple[Tensor, Tensor, Tensor],
    query_ends: list[int],
    key_ends: list[int],
    options: Options,
) -> Tensor:
    """Attention within each of the sequences of TND."""
    if options.atten_mask is not None and options.sparse_mode in (0, 1):
        not_described(OPERATOR, "a full mask with the layout TND")
    require(len(query_ends) == len(key_ends), OPERATOR, "the lists of ends differ in length")
    parts = []
    query_start = key_start = 0
    for query_end, key_end in zip(query_ends, key_ends, strict=True):
        query, key, value = (
            tensor[start:end].transpose(0, 1).unsqueeze(0)
            for tensor, start, end in zip(
                tensors,
                (query_start, key_start, key_start),
                (query_end, key_end, key_end),
                strict=True,
            )
        )
        parts.append(_attend(query, key, value, options)[0].transpose(0, 1))
        query_start, key_start = query_end, key_end
    return torch.cat(parts)


def _attend(query: Tensor, key: Tensor, value: Tensor, options: Options) -> Tensor:
    """Attention of tensors in BNSD, computed in float32."""
    heads, key_heads, size = query.shape[1], key.shape[1], query.shape[-1]
    require(heads == options.head_num, OPERATOR, f"query has {heads} heads, not {options.head_num}")
    require(heads <= 256 and heads % key_heads == 0, OPERATOR, "query heads do not fit key heads")
    require(size <= 768 and size == key.shape[-1], OPERATOR, "head sizes differ or are above 768")
    require(value.shape[:3] == key.shape[:3], OPERATOR, "key and value differ in shape")
    require(value.shape[-1] <= size, OPERATOR, "the head size of value is above that of key")
    groups = heads // key_heads
    key, value = (each.float().repeat_interleave(groups, 1) for each in (key, value))
    scores = (query.float() @ key.transpose(-2, -1)) * options.scale
    masked = masked_positions(scores.shape, *options[3:])
    if masked is not None:
        scores = scores.masked_fill(masked, float("-inf"))
    probabilities = functional.dropout(torch.softmax(scores, -1), 1.0 - options.keep_prob)
    return (probabilities @ value).to(query.dtype)
