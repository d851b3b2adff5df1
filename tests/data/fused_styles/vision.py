"""Attention of vision, speech and diffusion as forks of public code write it, with twins."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class ViTBlock(nn.Module):  # NPU707
    def __init__(self, dim, num_heads=8, qkv_bias=True):
        super().__init__()
        self.num_heads = num_heads
        head_dim = dim // num_heads
        self.scale = head_dim**-0.5
        self.qkv = nn.Linear(dim, dim * 3, bias=qkv_bias)
        self.attn_drop = nn.Dropout(0.0)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        B, N, C = x.shape
        qkv = (
            self.qkv(x).reshape(B, N, 3, self.num_heads, C // self.num_heads).permute(2, 0, 3, 1, 4)
        )
        q, k, v = qkv[0], qkv[1], qkv[2]
        attn = (q @ k.transpose(-2, -1)) * self.scale
        attn = attn.softmax(dim=-1)
        attn = self.attn_drop(attn)
        x = (attn @ v).transpose(1, 2).reshape(B, N, C)
        return self.proj(x)


class ClassAttention(nn.Module):  # NPU707|NPU719
    def __init__(self, dim, num_heads=8):
        super().__init__()
        self.num_heads, self.scale = num_heads, (dim // num_heads) ** -0.5
        self.q, self.k, self.v = (nn.Linear(dim, dim, bias=False) for _ in range(3))

    def forward(self, x):
        B, N, C = x.shape
        q = self.q(x[:, 0]).unsqueeze(1).reshape(B, 1, self.num_heads, -1).permute(0, 2, 1, 3)
        k = self.k(x).reshape(B, N, self.num_heads, -1).permute(0, 2, 1, 3)
        q = q * self.scale
        v = self.v(x).reshape(B, N, self.num_heads, -1).permute(0, 2, 1, 3)
        attn = (q @ k.transpose(-2, -1)).softmax(dim=-1)
        return (attn @ v).transpose(1, 2).reshape(B, 1, C)


class SpatialReduction(nn.Module):  # NPU707
    def __init__(self, dim, num_heads, sr):
        super().__init__()
        self.num_heads, self.scale = num_heads, (dim // num_heads) ** -0.5
        self.q, self.kv = nn.Linear(dim, dim), nn.Linear(dim, dim * 2)
        self.sr, self.norm = nn.Conv2d(dim, dim, sr, sr), nn.LayerNorm(dim)

    def forward(self, x, H, W):
        B, N, C = x.shape
        q = self.q(x).reshape(B, N, self.num_heads, C // self.num_heads).permute(0, 2, 1, 3)
        x_ = x.permute(0, 2, 1).reshape(B, C, H, W)
        x_ = self.norm(self.sr(x_).reshape(B, C, -1).permute(0, 2, 1))
        kv = (
            self.kv(x_)
            .reshape(B, -1, 2, self.num_heads, C // self.num_heads)
            .permute(2, 0, 3, 1, 4)
        )
        k, v = kv[0], kv[1]
        attn = (q @ k.transpose(-2, -1)) * self.scale
        attn = attn.softmax(dim=-1)
        return (attn @ v).transpose(1, 2).reshape(B, N, C)


class AttnBlock(nn.Module):  # NPU707|NPU719
    """Of the U-Net of latent diffusion: one head over all pixels."""

    def __init__(self, in_channels):
        super().__init__()
        self.norm = nn.GroupNorm(32, in_channels)
        self.q, self.k, self.v = (
            nn.Conv2d(in_channels, in_channels, 1, bias=False) for _ in range(3)
        )
        self.proj_out = nn.Conv2d(in_channels, in_channels, 1)

    def forward(self, x):
        h_ = self.norm(x)
        q, k, v = self.q(h_), self.k(h_), self.v(h_)
        b, c, h, w = q.shape
        q = q.reshape(b, c, h * w).permute(0, 2, 1)
        k = k.reshape(b, c, h * w)
        w_ = torch.bmm(q, k)
        w_ = w_ * (int(c) ** (-0.5))
        w_ = torch.nn.functional.softmax(w_, dim=2)
        v = v.reshape(b, c, h * w)
        w_ = w_.permute(0, 2, 1)
        h_ = torch.bmm(v, w_)
        return x + self.proj_out(h_.reshape(b, c, h, w))


class QkvAttention(nn.Module):  # NPU707|NPU719
    """Of guided diffusion."""

    def __init__(self, n_heads):
        super().__init__()
        self.n_heads = n_heads

    def forward(self, qkv):
        bs, width, length = qkv.shape
        ch = width // (3 * self.n_heads)
        q, k, v = qkv.reshape(bs * self.n_heads, ch * 3, length).split(ch, dim=1)
        scale = 1 / math.sqrt(math.sqrt(ch))
        weight = torch.einsum("bct,bcs->bts", q * scale, k * scale)
        weight = torch.softmax(weight.float(), dim=-1).type(weight.dtype)
        a = torch.einsum("bts,bcs->bct", weight, v)
        return a.reshape(bs, -1, length)


class NonLocal(nn.Module):  # NPU707|NPU719
    def __init__(self, c):
        super().__init__()
        self.theta, self.phi, self.g = (nn.Conv2d(c, c // 2, 1, bias=False) for _ in range(3))

    def forward(self, x):
        b, c, h, w = x.shape
        theta = self.theta(x).view(b, -1, h * w).permute(0, 2, 1)
        phi = self.phi(x).view(b, -1, h * w)
        g = self.g(x).view(b, -1, h * w).permute(0, 2, 1)
        attention = F.softmax(torch.matmul(theta, phi), dim=-1)
        return torch.matmul(attention, g).permute(0, 2, 1).reshape(b, -1, h, w)


class SaganAttention(nn.Module):  # NPU707|NPU719
    def __init__(self, c):
        super().__init__()
        self.query, self.key, self.value = (
            nn.Conv2d(c, c // 8, 1),
            nn.Conv2d(c, c // 8, 1),
            nn.Conv2d(c, c, 1),
        )
        self.gamma = nn.Parameter(torch.zeros(1))
        self.softmax = nn.Softmax(dim=-1)

    def forward(self, x):
        b, c, w, h = x.size()
        query = self.query(x).view(b, -1, w * h).permute(0, 2, 1)
        key = self.key(x).view(b, -1, w * h)
        attention = self.softmax(torch.bmm(query, key))
        value = self.value(x).view(b, -1, w * h)
        out = torch.bmm(value, attention.permute(0, 2, 1)).view(b, c, w, h)
        return self.gamma * out + x


class MemoryEfficientHeads(nn.Module):  # NPU707|NPU719
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, query, key, value, mask):
        scores = torch.baddbmm(mask, query, key.transpose(-1, -2), beta=1, alpha=self.scale)
        return torch.bmm(scores.softmax(dim=-1), value)


class NoMaskBaddbmm(nn.Module):  # NPU707|NPU719
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, query, key, value):
        scores = torch.baddbmm(
            torch.empty(query.shape[0], query.shape[1], key.shape[1], dtype=query.dtype, device=query.device),
            query,
            key.transpose(-1, -2),
            beta=0,
            alpha=self.scale,
        )
        probs = scores.softmax(dim=-1)
        return torch.bmm(probs.to(value.dtype), value)


class RelativeShift(nn.Module):  # NPU719
    """Of conformers: keys and positions, the second shifted."""

    def __init__(self, heads, d):
        super().__init__()
        self.u, self.v = nn.Parameter(torch.zeros(heads, d)), nn.Parameter(torch.zeros(heads, d))
        self.scale = d**-0.5

    def shift(self, x):
        b, h, t, n = x.size()
        zeros = x.new_zeros(b, h, t, 1)
        return torch.cat([zeros, x], dim=-1).view(b, h, n + 1, t)[:, :, 1:].view_as(x)

    def forward(self, q, k, v, p, mask):
        content = torch.matmul((q + self.u).transpose(1, 2), k.permute(0, 2, 3, 1))
        position = torch.matmul((q + self.v).transpose(1, 2), p.permute(0, 2, 3, 1))
        scores = (content + self.shift(position)) * self.scale
        scores = scores.masked_fill(mask, -1e4)
        return torch.matmul(F.softmax(scores, -1), v.transpose(1, 2))


class EspnetAttention(nn.Module):  # NPU707|NPU719
    def __init__(self, n_head, n_feat):
        super().__init__()
        self.d_k, self.h = n_feat // n_head, n_head
        self.linear_q, self.linear_k = nn.Linear(n_feat, n_feat), nn.Linear(n_feat, n_feat)
        self.linear_v, self.linear_out = nn.Linear(n_feat, n_feat), nn.Linear(n_feat, n_feat)
        self.dropout = nn.Dropout(0.1)

    def forward(self, query, key, value, mask):
        n = query.size(0)
        q = self.linear_q(query).view(n, -1, self.h, self.d_k).transpose(1, 2)
        k = self.linear_k(key).view(n, -1, self.h, self.d_k).transpose(1, 2)
        v = self.linear_v(value).view(n, -1, self.h, self.d_k).transpose(1, 2)
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(self.d_k)
        mask = mask.unsqueeze(1).eq(0)
        scores = scores.masked_fill(mask, torch.finfo(scores.dtype).min)
        attn = torch.softmax(scores, dim=-1).masked_fill(mask, 0.0)
        x = torch.matmul(self.dropout(attn), v)
        return self.linear_out(x.transpose(1, 2).contiguous().view(n, -1, self.h * self.d_k))


class ScaledDotProduct(nn.Module):  # NPU707|NPU719
    """Of a tutorial on translation: the weights are returned, too."""

    def __init__(self, temperature, attn_dropout=0.1):
        super().__init__()
        self.temperature = temperature
        self.dropout = nn.Dropout(attn_dropout)

    def forward(self, q, k, v, mask=None):
        attn = torch.matmul(q / self.temperature, k.transpose(2, 3))
        if mask is not None:
            attn = attn.masked_fill(mask == 0, -1e9)
        attn = self.dropout(F.softmax(attn, dim=-1))
        return torch.matmul(attn, v), attn


class BatchedHeads(nn.Module):  # NPU707|NPU719
    """Heads beside the batch."""

    def __init__(self, d, heads):
        super().__init__()
        self.heads, self.softmax = heads, nn.Softmax(dim=2)
        self.q, self.k, self.v = (nn.Linear(d, d, bias=False) for _ in range(3))

    def forward(self, x):
        q = torch.cat(self.q(x).chunk(self.heads, dim=-1), dim=0)
        k = torch.cat(self.k(x).chunk(self.heads, dim=-1), dim=0)
        v = torch.cat(self.v(x).chunk(self.heads, dim=-1), dim=0)
        weights = self.softmax(torch.bmm(q, k.transpose(1, 2)) / math.sqrt(k.size(-1)))
        return torch.cat(torch.bmm(weights, v).chunk(self.heads, dim=0), dim=-1)


class CosineAttention(nn.Module):  # NPU707|NPU719
    def __init__(self, heads):
        super().__init__()
        self.logit_scale = nn.Parameter(torch.log(10 * torch.ones((heads, 1, 1))))

    def forward(self, q, k, v):
        attn = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1)
        scale = torch.clamp(self.logit_scale, max=math.log(100.0)).exp()
        return (attn * scale).softmax(dim=-1) @ v


class SqueezeExcite(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.fc = nn.Sequential(nn.Linear(c, c // 4), nn.SiLU(), nn.Linear(c // 4, c), nn.Sigmoid())

    def forward(self, x):
        return x * self.fc(x.mean((2, 3)))[:, :, None, None]


class LearnedQueries(nn.Module):  # NPU707|NPU719
    def __init__(self, dim, heads, count):
        super().__init__()
        self.heads, self.hd = heads, dim // heads
        self.queries = nn.Parameter(torch.randn(1, heads, count, dim // heads))
        self.kv = nn.Linear(dim, 2 * dim)

    def forward(self, x):
        b, n, _ = x.shape
        k, v = self.kv(x).reshape(b, n, 2, self.heads, self.hd).permute(2, 0, 3, 1, 4)
        q = self.queries.expand(b, -1, -1, -1)
        return ((q @ k.transpose(-1, -2)) * self.hd**-0.5).softmax(-1) @ v


class AdditiveAttention(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, 1)

    def forward(self, queries, keys, values):
        features = torch.tanh(self.q(queries).unsqueeze(2) + self.k(keys).unsqueeze(1))
        weights = F.softmax(self.v(features).squeeze(-1), dim=-1)
        return torch.bmm(weights, values)


class GraphAttention(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.w, self.a = nn.Linear(d, d), nn.Parameter(torch.randn(2 * d, 1))

    def forward(self, h, adj):
        wh = self.w(h)
        e = F.leaky_relu(wh @ self.a[: wh.shape[-1]] + (wh @ self.a[wh.shape[-1] :]).T)
        attention = torch.where(adj > 0, e, -9e15 * torch.ones_like(e))
        return F.softmax(attention, dim=1) @ wh


class MixtureOfLogits(nn.Module):
    def forward(self, gates, experts):
        weights = torch.softmax(gates, dim=-1)
        return torch.einsum("be,bed->bd", weights, experts)


class TaylorAttention(nn.Module):
    def forward(self, q, k, v):
        scores = 1 + q @ k.transpose(-1, -2)
        return scores / scores.sum(-1, keepdim=True) @ v


class DoubleSoftmax(nn.Module):
    def forward(self, x, memory):
        logits = x @ memory.t()
        return F.softmax(logits, dim=-1), F.softmax(logits, dim=0)


class DifferentialHeads(nn.Module):  # NPU719
    """The difference of two softmaxes."""

    def forward(self, q1, q2, k1, k2, v, lam):
        one = (q1 @ k1.transpose(-1, -2)).softmax(dim=-1)
        two = (q2 @ k2.transpose(-1, -2)).softmax(dim=-1)
        return (one - lam * two) @ v


class ManualSdpa(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
