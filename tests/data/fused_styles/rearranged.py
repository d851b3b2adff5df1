"""Computations that public code writes with einops."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from einops import einsum as named_einsum
from einops import rearrange, repeat


def turn_einops_halves(t, pos):  # NPU706
    x1, x2 = rearrange(t, "... (j d) -> ... j d", j=2).unbind(dim=-2)
    return t * pos.cos() + torch.cat((-x2, x1), dim=-1) * pos.sin()


def turn_einops(t, freqs):  # NPU706
    x = rearrange(t, "... (d r) -> ... d r", r=2)
    x1, x2 = x.unbind(dim=-1)
    turned = rearrange(torch.stack((-x2, x1), dim=-1), "... d r -> ... (d r)")
    return (t * freqs.cos()) + (turned * freqs.sin())


class ChannelAttention(nn.Module):  # NPU707|NPU719
    """Of restoration: channels attend to each other."""

    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.temperature = nn.Parameter(torch.ones(heads, 1, 1))
        self.qkv = nn.Conv2d(dim, dim * 3, 1)

    def forward(self, x):
        b, c, h, w = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=1)
        q, k, v = (rearrange(t, "b (n c) h w -> b n c (h w)", n=self.heads) for t in (q, k, v))
        q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
        attn = (q @ k.transpose(-2, -1)) * self.temperature
        return rearrange(attn.softmax(dim=-1) @ v, "b n c (h w) -> b (n c) h w", h=h, w=w)


class NamedAxes(nn.Module):  # NPU707
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.scale = heads, (dim // heads) ** -0.5
        self.to_qkv = nn.Linear(dim, dim * 3)

    def forward(self, x):
        q, k, v = rearrange(
            self.to_qkv(x), "b n (three h d) -> three b h n d", three=3, h=self.heads
        )
        weights = named_einsum(q, k, "b h query d, b h key d -> b h query key") * self.scale
        weights = weights.softmax(dim=-1)
        out = named_einsum(weights, v, "b h query key, b h key d -> b h query d")
        return rearrange(out, "b h n d -> b n (h d)")


class CrossAttentionPairs(nn.Module):  # NPU707
    def __init__(self, query_dim, context_dim, heads, dim_head):
        super().__init__()
        self.scale, self.heads = dim_head**-0.5, heads
        inner = heads * dim_head
        self.to_q, self.to_k, self.to_v = (
            nn.Linear(query_dim, inner),
            nn.Linear(context_dim, inner),
            nn.Linear(context_dim, inner),
        )

    def forward(self, x, context=None, mask=None):
        h = self.heads
        q = self.to_q(x)
        context = x if context is None else context
        k, v = self.to_k(context), self.to_v(context)
        q, k, v = map(lambda t: rearrange(t, "b n (h d) -> b h n d", h=h), (q, k, v))
        sim = torch.einsum("b h i d, b h j d -> b h i j", q, k) * self.scale
        if mask is not None:
            mask = rearrange(mask, "b ... -> b (...)")
            mask = repeat(mask, "b j -> b h () j", h=h)
            sim.masked_fill_(~mask, -torch.finfo(sim.dtype).max)
        attn = sim.softmax(dim=-1)
        out = torch.einsum("b h i j, b h j d -> b h i d", attn, v)
        return rearrange(out, "b h n d -> b n (h d)")
