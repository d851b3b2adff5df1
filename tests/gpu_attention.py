"""Stand-ins for flash-attn and xformers on the CPU: what their attention functions compute."""

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional


def attend(
    query: Tensor, key: Tensor, value: Tensor, scale: float | None, corner: str | None
) -> Tensor:
    """Attention of (batch, length, heads, size); keys and values may have fewer heads.

    `corner` is where the diagonal of a causal mask ends or starts: `top left` or `bottom right`.
    """
    groups = query.shape[2] // key.shape[2]
    key, value = (each.repeat_interleave(groups, 2) for each in (key, value))
    rows, columns = query.shape[1], key.shape[1]
    shift = columns - rows if corner == "bottom right" else 0
    kept = torch.ones(rows, columns, dtype=torch.bool)
    kept = kept.tril(shift) if corner else kept
    heads_first = [each.transpose(1, 2) for each in (query, key, value)]
    out = functional.scaled_dot_product_attention(*heads_first, attn_mask=kept, scale=scale)
    return out.transpose(1, 2)


def flash_attn_func(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    **options: object,
) -> Tensor:
    assert dropout_p == 0.0
    return attend(q, k, v, softmax_scale, "bottom right" if causal else None)


def flash_attn_qkvpacked_func(qkv: Tensor, *arguments: Any, **options: Any) -> Tensor:
    return flash_attn_func(*qkv.unbind(2), *arguments, **options)


def flash_attn_kvpacked_func(q: Tensor, kv: Tensor, *arguments: Any, **options: Any) -> Tensor:
    return flash_attn_func(q, *kv.unbind(2), *arguments, **options)


def flash_attn_varlen_func(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    *,
    corner: str = "bottom right",
) -> Tensor:
    assert dropout_p == 0.0
    bounds: Sequence[list[int]] = (cu_seqlens_q.tolist(), cu_seqlens_k.tolist())
    parts = []
    for i in range(len(bounds[0]) - 1):
        rows = slice(bounds[0][i], bounds[0][i + 1])
        columns = slice(bounds[1][i], bounds[1][i + 1])
        one = [q[None, rows], k[None, columns], v[None, columns]]
        parts.append(attend(*one, softmax_scale, corner if causal else None)[0])
    return torch.cat(parts)


def flash_attn_varlen_qkvpacked_func(
    qkv: Tensor, cu_seqlens: Tensor, max_seqlen: int, *arguments: Any, **options: Any
) -> Tensor:
    lengths = (cu_seqlens, cu_seqlens, max_seqlen, max_seqlen)
    return flash_attn_varlen_func(*qkv.unbind(1), *lengths, *arguments, **options)


def flash_attn_varlen_kvpacked_func(
    q: Tensor, kv: Tensor, *arguments: Any, **options: Any
) -> Tensor:
    return flash_attn_varlen_func(q, *kv.unbind(1), *arguments, **options)


def flash_attn_unpadded_func(*arguments: Any, **options: Any) -> Tensor:
    return flash_attn_varlen_func(*arguments, **options, corner="top left")


class LowerTriangularMask:
    corner = "top left"


class LowerTriangularFromBottomRightMask:
    corner = "bottom right"


def memory_efficient_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_bias: Any = None,
    p: float = 0.0,
    scale: float | None = None,
    *,
    op: object = None,
) -> Tensor:
    assert p == 0.0
    tensors = (query, key, value)
    if query.dim() == 3:
        tensors = tuple(each.unsqueeze(2) for each in tensors)
    out = attend(*tensors, scale, getattr(attn_bias, "corner", None))
    return out.squeeze(2) if query.dim() == 3 else out


def modules() -> dict[str, ModuleType]:
    """The stand-ins by the names of the modules that have them."""
    made = {}
    for name in ("flash_attn", "flash_attn.flash_attn_interface", "xformers", "xformers.ops"):
        made[name] = ModuleType(name)
        for known, value in globals().items():
            is_theirs = "flash_attn" in known or known.startswith(("memory_", "LowerTriangular"))
            if is_theirs:
                setattr(made[name], known, value)
    made["flash_attn"].__path__ = []
    made["xformers"].__path__ = []
    made["xformers"].ops = made["xformers.ops"]  # type: ignore[attr-defined]
    return made
