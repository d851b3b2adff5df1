"""Attention as public code writes it."""

import math

import einops
from functools import partial

import torch
import torch.nn as nn
import torch.nn.functional as F
from einops import rearrange, repeat
from torch import einsum


class MinGPT(nn.Module):  # NPU707
    def __init__(self, n_embd, n_head, block_size, pdrop):
        super().__init__()
        self.key = nn.Linear(n_embd, n_embd)
        self.query = nn.Linear(n_embd, n_embd)
        self.value = nn.Linear(n_embd, n_embd)
        self.attn_drop = nn.Dropout(pdrop)
        self.register_buffer(
            "mask",
            torch.tril(torch.ones(block_size, block_size)).view(1, 1, block_size, block_size),
        )
        self.n_head = n_head

    def forward(self, x, layer_past=None):
        B, T, C = x.size()
        k = self.key(x).view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        q = self.query(x).view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = self.value(x).view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.mask[:, :, :T, :T] == 0, float("-inf"))
        att = F.softmax(att, dim=-1)
        att = self.attn_drop(att)
        y = att @ v
        return y.transpose(1, 2).contiguous().view(B, T, C)


class MaskOrCausal(nn.Module):  # NPU707
    def __init__(self, dim, heads):
        super().__init__()
        self.h, self.d = heads, dim // heads
        self.qkv = nn.Linear(dim, 3 * dim)

    def forward(self, x, mask=None):
        B, T, C = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.h, self.d).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / self.d**0.5
        if mask is None:
            causal = torch.triu(torch.ones(T, T, device=x.device), diagonal=1).bool()
            scores = scores.masked_fill(causal, float("-inf"))
        else:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        return torch.softmax(scores, dim=-1) @ v


class CausalByFlag(nn.Module):  # NPU707
    def __init__(self, dim, heads, causal=False, max_len=512):
        super().__init__()
        self.h, self.d, self.causal = heads, dim // heads, causal
        self.qkv = nn.Linear(dim, 3 * dim)
        self.register_buffer("tri", torch.triu(torch.ones(max_len, max_len), 1).bool())

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.h, self.d).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / self.d**0.5
        if self.causal:
            scores = scores.masked_fill(self.tri[:T, :T], float("-inf"))
        return torch.softmax(scores, dim=-1) @ v


class LucidrainsViT(nn.Module):  # NPU707
    def __init__(self, dim, heads=8, dim_head=64, dropout=0.0):
        super().__init__()
        self.heads = heads
        self.scale = dim_head**-0.5
        self.attend = nn.Softmax(dim=-1)
        self.dropout = nn.Dropout(dropout)
        self.to_qkv = nn.Linear(dim, dim_head * heads * 3, bias=False)

    def forward(self, x):
        qkv = self.to_qkv(x).chunk(3, dim=-1)
        q, k, v = map(lambda t: rearrange(t, "b n (h d) -> b h n d", h=self.heads), qkv)
        dots = torch.matmul(q, k.transpose(-1, -2)) * self.scale
        attn = self.dropout(self.attend(dots))
        out = torch.matmul(attn, v)
        return rearrange(out, "b h n d -> b n (h d)")


class LucidrainsCausal(nn.Module):  # NPU707
    def __init__(self, dim, heads=8, dim_head=64, causal=True):
        super().__init__()
        self.heads, self.scale, self.causal = heads, dim_head**-0.5, causal
        self.to_q = nn.Linear(dim, dim_head * heads)
        self.to_kv = nn.Linear(dim, dim_head * heads * 2)

    def forward(self, x, mask=None):
        q, k, v = (self.to_q(x), *self.to_kv(x).chunk(2, dim=-1))
        q, k, v = map(lambda t: rearrange(t, "b n (h d) -> b h n d", h=self.heads), (q, k, v))
        q = q * self.scale
        sim = einsum("b h i d, b h j d -> b h i j", q, k)
        max_neg_value = -torch.finfo(sim.dtype).max
        if mask is not None:
            mask = rearrange(mask, "b j -> b 1 1 j")
            sim = sim.masked_fill(~mask, max_neg_value)
        if self.causal:
            i, j = sim.shape[-2:]
            causal_mask = torch.ones((i, j), dtype=torch.bool, device=x.device).triu(j - i + 1)
            sim = sim.masked_fill(causal_mask, max_neg_value)
        attn = sim.softmax(dim=-1)
        return einsum("b h i j, b h j d -> b h i d", attn, v)


class MultiQuery(nn.Module):  # NPU707|NPU719
    def __init__(self, dim, heads=8, dim_head=64):
        super().__init__()
        self.heads, self.scale = heads, dim_head**-0.5
        self.to_q = nn.Linear(dim, dim_head * heads)
        self.to_kv = nn.Linear(dim, dim_head * 2)

    def forward(self, x, causal_mask):
        q, (k, v) = self.to_q(x), self.to_kv(x).chunk(2, dim=-1)
        q = rearrange(q, "b n (h d) -> b h n d", h=self.heads) * self.scale
        sim = einsum("b h i d, b j d -> b h i j", q, k)
        sim = sim.masked_fill(causal_mask, -torch.finfo(sim.dtype).max)
        attn = sim.softmax(dim=-1)
        return einsum("b h i j, b j d -> b h i d", attn, v)


class CrossAttention(nn.Module):  # NPU707
    def __init__(self, query_dim, context_dim, heads=8, dim_head=64):
        super().__init__()
        self.heads, self.scale = heads, dim_head**-0.5
        self.to_q = nn.Linear(query_dim, heads * dim_head)
        self.to_k = nn.Linear(context_dim, heads * dim_head)
        self.to_v = nn.Linear(context_dim, heads * dim_head)

    def forward(self, x, context):
        h = self.heads
        q, k, v = self.to_q(x), self.to_k(context), self.to_v(context)
        q, k, v = map(lambda t: rearrange(t, "b n (h d) -> (b h) n d", h=h), (q, k, v))
        sim = einsum("b i d, b j d -> b i j", q, k) * self.scale
        attn = sim.softmax(dim=-1)
        out = einsum("b i j, b j d -> b i d", attn, v)
        return rearrange(out, "(b h) n d -> b n (h d)", h=h)


class TimmFallback(nn.Module):  # NPU707
    def __init__(self, dim, num_heads=8, qkv_bias=False, qk_norm=False, attn_drop=0.0):
        super().__init__()
        self.num_heads, self.head_dim = num_heads, dim // num_heads
        self.scale = self.head_dim**-0.5
        self.fused_attn = True
        self.qkv = nn.Linear(dim, dim * 3, bias=qkv_bias)
        self.q_norm = nn.LayerNorm(self.head_dim) if qk_norm else nn.Identity()
        self.k_norm = nn.LayerNorm(self.head_dim) if qk_norm else nn.Identity()
        self.attn_drop = nn.Dropout(attn_drop)

    def forward(self, x):
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.num_heads, self.head_dim).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        q, k = self.q_norm(q), self.k_norm(k)
        q = q * self.scale
        attn = q @ k.transpose(-2, -1)
        attn = attn.softmax(dim=-1)
        attn = self.attn_drop(attn)
        return (attn @ v).transpose(1, 2).reshape(B, N, C)


class Swin(nn.Module):  # NPU707|NPU719
    def __init__(self, dim, num_heads, window):
        super().__init__()
        self.num_heads, self.scale = num_heads, (dim // num_heads) ** -0.5
        self.table = nn.Parameter(torch.zeros((2 * window - 1) ** 2, num_heads))
        self.register_buffer("index", torch.zeros(window**2, window**2, dtype=torch.long))
        self.qkv = nn.Linear(dim, dim * 3)
        self.softmax = nn.Softmax(dim=-1)

    def forward(self, x, mask=None):
        B_, N, C = x.shape
        qkv = self.qkv(x).reshape(B_, N, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        attn = (q * self.scale) @ k.transpose(-2, -1)
        bias = self.table[self.index.view(-1)].view(N, N, -1).permute(2, 0, 1).contiguous()
        attn = attn + bias.unsqueeze(0)
        if mask is not None:
            nW = mask.shape[0]
            attn = attn.view(B_ // nW, nW, self.num_heads, N, N) + mask.unsqueeze(1).unsqueeze(0)
            attn = attn.view(-1, self.num_heads, N, N)
            attn = self.softmax(attn)
        else:
            attn = self.softmax(attn)
        return (attn @ v).transpose(1, 2).reshape(B_, N, C)


class HeadMask(nn.Module):  # NPU719
    def __init__(self, dim, heads):
        super().__init__()
        self.h, self.d = heads, dim // heads
        self.dropout = nn.Dropout(0.1)

    def forward(self, query, key, value, attention_mask=None, head_mask=None):
        scores = torch.matmul(query, key.transpose(-1, -2)) / math.sqrt(self.d)
        if attention_mask is not None:
            scores = scores + attention_mask
        probs = self.dropout(nn.functional.softmax(scores, dim=-1))
        if head_mask is not None:
            probs = probs * head_mask
        return torch.matmul(probs, value)


class RelativeShift(nn.Module):  # NPU719
    def __init__(self, dim, heads, dropout=0.1):
        super().__init__()
        self.h, self.d = heads, dim // heads
        self.q = nn.Linear(dim, dim)
        self.k = nn.Linear(dim, dim)
        self.v = nn.Linear(dim, dim)
        self.pos = nn.Linear(dim, dim, bias=False)
        self.u = nn.Parameter(torch.zeros(heads, self.d))
        self.w = nn.Parameter(torch.zeros(heads, self.d))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, pos, mask=None):
        B, T, C = x.shape
        q = self.q(x).view(B, T, self.h, self.d)
        k = self.k(x).view(B, T, self.h, self.d).permute(0, 2, 1, 3)
        v = self.v(x).view(B, T, self.h, self.d).permute(0, 2, 1, 3)
        p = self.pos(pos).view(B, -1, self.h, self.d)
        content = torch.matmul((q + self.u).transpose(1, 2), k.transpose(2, 3))
        position = torch.matmul((q + self.w).transpose(1, 2), p.permute(0, 2, 3, 1))
        score = (content + self.shift(position)) / math.sqrt(self.d)
        if mask is not None:
            score.masked_fill_(mask.unsqueeze(1), -1e9)
        attn = self.dropout(F.softmax(score, -1))
        return torch.matmul(attn, v).transpose(1, 2).reshape(B, T, C)

    def shift(self, position):
        b, h, t1, t2 = position.size()
        zeros = position.new_zeros(b, h, t1, 1)
        padded = torch.cat([zeros, position], dim=-1).view(b, h, t2 + 1, t1)
        return padded[:, :, 1:].view_as(position)


class TransformerXL(nn.Module):  # NPU719
    def __init__(self, heads, d):
        super().__init__()
        self.scale = 1 / d**0.5
        self.drop = nn.Dropout(0.1)

    def forward(self, q, k, v, r, u, w, mask):
        AC = torch.einsum("ibnd,jbnd->ijbn", (q + u, k))
        BD = torch.einsum("ibnd,jnd->ijbn", (q + w, r))
        score = (AC + BD).mul_(self.scale)
        score = score.masked_fill(mask[:, :, None, None], -float("inf"))
        prob = self.drop(F.softmax(score, dim=1))
        return torch.einsum("ijbn,jbnd->ibnd", (prob, v))


class LikeT5(nn.Module):  # NPU719
    def __init__(self, dim, heads):
        super().__init__()
        self.h, self.d = heads, dim // heads
        self.dropout = 0.1

    def forward(self, q, k, v, position_bias):
        scores = torch.matmul(q, k.transpose(3, 2))
        scores += position_bias
        weights = F.softmax(scores.float(), dim=-1).type_as(scores)
        weights = F.dropout(weights, p=self.dropout, training=self.training)
        return torch.matmul(weights, v)


class Alibi(nn.Module):  # NPU719
    def forward(self, q, k, v, slopes, mask):
        n = k.shape[-2]
        bias = slopes[:, None, None] * torch.arange(n, device=q.device)[None, None, :]
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + bias
        scores = scores.masked_fill(mask, float("-inf"))
        return F.softmax(scores, dim=-1) @ v


class SoftCap(nn.Module):  # NPU719
    def forward(self, q, k, v, mask, cap: float = 50.0):
        scores = torch.matmul(q, k.transpose(2, 3)) * q.shape[-1] ** -0.5
        scores = torch.tanh(scores / cap) * cap
        scores = scores + mask
        return torch.matmul(F.softmax(scores.float(), dim=-1).type_as(q), v)


class NanToNum(nn.Module):  # NPU719
    def forward(self, q, k, v, mask):
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        scores = scores.masked_fill(mask, float("-inf"))
        weights = torch.nan_to_num(torch.softmax(scores, dim=-1))
        return weights @ v


class MaskedAgain(nn.Module):  # NPU719
    def __init__(self, dropout=0.1):
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(self, q, k, v, mask):
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.size(-1))
        mask = mask.unsqueeze(1).eq(0)
        scores = scores.masked_fill(mask, -float("inf"))
        attn = torch.softmax(scores, dim=-1).masked_fill(mask, 0.0)
        return torch.matmul(self.dropout(attn), v)


class Talking(nn.Module):  # NPU719
    def __init__(self, heads):
        super().__init__()
        self.before = nn.Linear(heads, heads)
        self.after = nn.Linear(heads, heads)

    def forward(self, q, k, v):
        attn = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
        attn = self.before(attn.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        attn = attn.softmax(dim=-1)
        attn = self.after(attn.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        return attn @ v


def scaled_dot_product(query, key, value, mask=None, dropout=None):  # NPU719
    d_k = query.size(-1)
    scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(d_k)
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    p_attn = F.softmax(scores, dim=-1)
    if dropout is not None:
        p_attn = dropout(p_attn)
    return torch.matmul(p_attn, value), p_attn


def softmax_by_hand(x, dim=-1):
    powers = torch.exp(x - x.max(dim=dim, keepdim=True)[0])
    return powers / powers.sum(dim=dim, keepdim=True)


def attend_by_own_softmax(Q, K, V, mask=None):  # NPU707
    scores = torch.einsum("...qd, ...kd->...qk", Q, K)
    scores = scores / torch.sqrt(torch.tensor(Q.shape[-1], dtype=scores.dtype))
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return torch.einsum("...qk, ...kv->...qv", softmax_by_hand(scores), V)


def attend_by_named_axes(Q, K, V, mask):  # NPU707
    logits = einops.einsum(Q, K, "... queries d_k, ... keys d_k -> ... queries keys")
    logits = torch.where(mask, logits, -torch.inf)
    weights = F.softmax(logits / math.sqrt(Q.shape[-1]), dim=-1)
    return einops.einsum(weights, V, "... queries keys, ... keys d_v -> ... queries d_v")


def attend_scaled_by_tensor(q, k, v):  # NPU707
    matmul_qk = torch.matmul(q, k.transpose(-1, -2))
    dk = torch.tensor(k.shape[-1], dtype=torch.float32)
    logits = matmul_qk / torch.sqrt(dk)
    return torch.matmul(torch.softmax(logits, dim=-1), v)


class Grouped(nn.Module):  # NPU707
    def __init__(self, n_heads, n_kv, d):
        super().__init__()
        self.n_rep, self.d = n_heads // n_kv, d

    def forward(self, q, k, v, mask):
        b, n, heads, d = k.shape
        k = (
            k[:, :, :, None, :]
            .expand(b, n, heads, self.n_rep, d)
            .reshape(b, n, heads * self.n_rep, d)
        )
        v = (
            v[:, :, :, None, :]
            .expand(b, n, heads, self.n_rep, d)
            .reshape(b, n, heads * self.n_rep, d)
        )
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
        scores = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(self.d)
        scores = scores.masked_fill(mask == 0, float("-inf"))
        return torch.matmul(F.softmax(scores.float(), dim=-1).type_as(q), v)


class FloatMask(nn.Module):  # NPU707|NPU719
    def forward(self, q, k, v, start_pos, seqlen):
        mask = None
        if seqlen > 1:
            mask = torch.full((seqlen, seqlen), float("-inf"), device=q.device)
            mask = torch.triu(mask, diagonal=1)
        scores = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores + mask
        scores = F.softmax(scores.float(), dim=-1).type_as(q)
        return torch.matmul(scores, v)


class WhereMask(nn.Module):  # NPU707
    def forward(self, q, k, v, bias):
        w = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(v.size(-1))
        nd, ns = w.size(-2), w.size(-1)
        b = bias[:, :, ns - nd : ns, :ns].bool()
        w = torch.where(b, w, torch.finfo(w.dtype).min)
        return torch.matmul(nn.functional.softmax(w, dim=-1), v)


class GPT2Old(nn.Module):  # NPU707|NPU719
    def forward(self, q, k, v, b):
        w = torch.matmul(q, k)
        w = w / math.sqrt(v.size(-1))
        w = w * b - 1e4 * (1 - b)
        w = nn.Softmax(dim=-1)(w)
        return torch.matmul(w, v)


class DETRHead(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.norm = heads, float(dim / heads) ** -0.5

    def forward(self, q, k, mask=None):
        weights = torch.einsum("bqnc,bnchw->bqnhw", q * self.norm, k)
        if mask is not None:
            weights.masked_fill_(mask.unsqueeze(1).unsqueeze(1), float("-inf"))
        return F.softmax(weights.flatten(2), dim=-1).view(weights.size())


class NonLocal(nn.Module):  # NPU707
    def __init__(self, c, inter):
        super().__init__()
        self.g = nn.Conv2d(c, inter, 1)
        self.theta = nn.Conv2d(c, inter, 1)
        self.phi = nn.Conv2d(c, inter, 1)
        self.inter = inter

    def forward(self, x):
        b = x.size(0)
        g_x = self.g(x).view(b, self.inter, -1).permute(0, 2, 1)
        theta_x = self.theta(x).view(b, self.inter, -1).permute(0, 2, 1)
        phi_x = self.phi(x).view(b, self.inter, -1)
        f = torch.matmul(theta_x, phi_x)
        y = torch.matmul(F.softmax(f, dim=-1), g_x)
        return y.permute(0, 2, 1).contiguous().view(b, self.inter, *x.size()[2:])


def sdpa_with_float_mask(q, k, v, padding):  # NPU709
    mask = torch.zeros(padding.shape, dtype=q.dtype, device=q.device)
    mask = mask.masked_fill(padding, float("-inf"))
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :])


def masked_probabilities(scores, mask):  # NPU710
    scores = scores / 8.0
    scores = scores.masked_fill(mask, -10000.0)
    return torch.softmax(scores, dim=-1)


def linear_attention(q, k, v):
    q, k = q.softmax(dim=-1), k.softmax(dim=-2)
    context = k.transpose(-2, -1) @ v
    return q @ context


def pooled(x, w):
    weights = torch.softmax(x @ w, dim=1)
    return (weights * x).sum(dim=1)


def sample(logits, temperature):
    probs = F.softmax(logits[:, -1] / temperature, dim=-1)
    return torch.multinomial(probs, 1)


def spread_softmax(scores, dim=-1, alpha=32**2):
    scores = scores / alpha
    scores = scores - torch.amax(scores, dim=dim, keepdim=True).detach()
    return (scores * alpha).softmax(dim=dim)


class SoftmaxByFlag(nn.Module):  # NPU707
    def __init__(self, dim, heads, stable):
        super().__init__()
        self.heads, self.stable = heads, stable
        self.scale = (dim // heads) ** -0.5
        self.to_qkv = nn.Linear(dim, dim * 3)

    def forward(self, x, mask=None):
        softmax = spread_softmax if self.stable else torch.softmax
        q, k, v = self.to_qkv(x).chunk(3, dim=-1)
        q, k, v = map(lambda t: rearrange(t, "b n (h d) -> b h n d", h=self.heads), (q, k, v))
        scores = torch.einsum("b h i d, b h j d -> b h i j", q * self.scale, k)
        if mask is not None:
            scores.masked_fill_(~mask[:, None, None], -torch.finfo(scores.dtype).max)
        return torch.einsum("b h i j, b h j d -> b h i d", softmax(scores, dim=-1), v)


class SoftmaxByPartial(nn.Module):  # NPU707
    def __init__(self, scale):
        super().__init__()
        self.scale = scale
        self.weigh = partial(F.softmax, dim=-1)

    def forward(self, q, k, v):
        return self.weigh(q @ k.transpose(-1, -2) * self.scale) @ v


class SoftmaxOverQueries(nn.Module):
    def __init__(self, scale, flag):
        super().__init__()
        self.scale, self.flag = scale, flag

    def forward(self, q, k, v):
        softmax = torch.sigmoid if self.flag else torch.tanh
        return softmax(q @ k.transpose(-1, -2) * self.scale) @ v


class LearnedBias(nn.Module):  # NPU709
    def __init__(self, heads, length, places):
        super().__init__()
        self.heads, self.length, self.places = heads, length, places
        self.table = nn.Parameter(torch.zeros(4 * length, heads))

    def forward(self, q, k, v):
        bias = self.table[self.places.view(-1)].view(self.length, self.length, self.heads)
        bias = bias.permute(2, 0, 1).unsqueeze(0)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias)


class EmbeddedBias(nn.Module):  # NPU709
    def __init__(self, heads, places):
        super().__init__()
        self.places = places
        self.table = nn.Embedding(32, heads)

    def forward(self, q, k, v):
        bias = self.table(self.places).permute(2, 0, 1)
        return F.scaled_dot_product_attention(q, k, v, bias[None], is_causal=False)


class ThreeDimensions(nn.Module):  # NPU719
    def __init__(self, heads):
        super().__init__()
        self.heads = heads

    def forward(self, qkv):
        b, width, length = qkv.shape
        size = width // (3 * self.heads)
        q, k, v = qkv.reshape(b * self.heads, 3 * size, length).split(size, dim=1)
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v)
