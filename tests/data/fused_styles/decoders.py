"""Attention of language models as forks of public code write it, each with a twin that is none."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor


def repeat_kv(x, n_rep):
    bs, slen, n_kv_heads, head_dim = x.shape
    if n_rep == 1:
        return x
    return (
        x[:, :, :, None, :]
        .expand(bs, slen, n_kv_heads, n_rep, head_dim)
        .reshape(bs, slen, n_kv_heads * n_rep, head_dim)
    )


class LlamaFork(nn.Module):  # NPU707|NPU719
    def __init__(self, dim, n_heads, n_kv_heads):
        super().__init__()
        self.n_heads, self.n_kv_heads = n_heads, n_kv_heads
        self.n_rep = n_heads // n_kv_heads
        self.head_dim = dim // n_heads
        self.wq = nn.Linear(dim, n_heads * self.head_dim, bias=False)
        self.wk = nn.Linear(dim, n_kv_heads * self.head_dim, bias=False)
        self.wv = nn.Linear(dim, n_kv_heads * self.head_dim, bias=False)
        self.attn_dropout = nn.Dropout(0.1)

    def forward(self, x, mask):
        bsz, seqlen, _ = x.shape
        xq, xk, xv = self.wq(x), self.wk(x), self.wv(x)
        xq = xq.view(bsz, seqlen, self.n_heads, self.head_dim)
        xk = xk.view(bsz, seqlen, self.n_kv_heads, self.head_dim)
        xv = xv.view(bsz, seqlen, self.n_kv_heads, self.head_dim)
        xk = repeat_kv(xk, self.n_rep)
        xv = repeat_kv(xv, self.n_rep)
        xq, xk, xv = xq.transpose(1, 2), xk.transpose(1, 2), xv.transpose(1, 2)
        scores = torch.matmul(xq, xk.transpose(2, 3)) / math.sqrt(self.head_dim)
        scores = scores + mask[:, :, :seqlen, :seqlen]
        scores = F.softmax(scores.float(), dim=-1).type_as(xq)
        scores = self.attn_dropout(scores)
        output = torch.matmul(scores, xv)
        return output.transpose(1, 2).contiguous().view(bsz, seqlen, -1)


class GroupedByInterleave(nn.Module):  # NPU707
    def __init__(self, dim, heads, groups):
        super().__init__()
        self.heads, self.groups, self.hd = heads, groups, dim // heads
        self.q = nn.Linear(dim, dim, bias=False)
        self.kv = nn.Linear(dim, 2 * groups * self.hd, bias=False)
        self.register_buffer("bias", torch.tril(torch.ones(1, 1, 512, 512, dtype=torch.bool)))

    def forward(self, x):
        b, t, c = x.size()
        q = self.q(x).view(b, t, self.heads, self.hd).transpose(1, 2)
        k, v = self.kv(x).view(b, t, 2, self.groups, self.hd).unbind(2)
        k = k.transpose(1, 2).repeat_interleave(self.heads // self.groups, dim=1)
        v = v.transpose(1, 2).repeat_interleave(self.heads // self.groups, dim=1)
        att = torch.einsum("bhqd,bhkd->bhqk", q, k) / self.hd**0.5
        att = att.masked_fill(~self.bias[:, :, :t, :t], torch.finfo(att.dtype).min)
        att = att.softmax(-1)
        return torch.einsum("bhqk,bhkd->bhqd", att, v).transpose(1, 2).flatten(2)


class BufferedWhere(nn.Module):  # NPU707
    def __init__(self, dim, heads, block):
        super().__init__()
        self.heads, self.scale = heads, (dim // heads) ** -0.5
        self.c_attn = nn.Linear(dim, 3 * dim)
        mask = torch.tril(torch.ones((block, block), dtype=torch.uint8)).view(1, 1, block, block)
        self.register_buffer("bias", mask, persistent=False)
        self.register_buffer("masked_bias", torch.tensor(-1e4))

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.c_attn(x).split(C, dim=2)
        q = q.view(B, T, self.heads, -1).permute(0, 2, 1, 3)
        k = k.view(B, T, self.heads, -1).permute(0, 2, 3, 1)
        v = v.view(B, T, self.heads, -1).permute(0, 2, 1, 3)
        w = torch.matmul(q, k) * self.scale
        w = torch.where(self.bias[:, :, :T, :T].bool(), w, self.masked_bias.to(w.dtype))
        w = nn.Softmax(dim=-1)(w)
        return torch.matmul(w, v).permute(0, 2, 1, 3).reshape(B, T, C)


class GptOne(nn.Module):  # NPU707|NPU719
    def __init__(self, dim, heads, block):
        super().__init__()
        self.n_head = heads
        self.c_attn = nn.Linear(dim, 3 * dim)
        self.register_buffer("bias", torch.tril(torch.ones(block, block)).view(1, 1, block, block))

    def _attn(self, q, k, v):
        w = torch.matmul(q, k)
        w = w / math.sqrt(v.size(-1))
        b = self.bias[:, :, : w.size(-2), : w.size(-1)]
        w = w * b + -1e4 * (1 - b)
        w = F.softmax(w, dim=-1)
        return torch.matmul(w, v)

    def split_heads(self, x, k=False):
        x = x.view(*x.size()[:-1], self.n_head, x.size(-1) // self.n_head)
        return x.permute(0, 2, 3, 1) if k else x.permute(0, 2, 1, 3)

    def forward(self, x):
        q, k, v = self.c_attn(x).chunk(3, dim=-1)
        a = self._attn(self.split_heads(q), self.split_heads(k, k=True), self.split_heads(v))
        return a.permute(0, 2, 1, 3).contiguous().flatten(-2)


class SingleHead(nn.Module):  # NPU707|NPU719
    """One head of a tutorial."""

    def __init__(self, n_embd, head_size, block_size, dropout):
        super().__init__()
        self.key = nn.Linear(n_embd, head_size, bias=False)
        self.query = nn.Linear(n_embd, head_size, bias=False)
        self.value = nn.Linear(n_embd, head_size, bias=False)
        self.register_buffer("tril", torch.tril(torch.ones(block_size, block_size)))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        B, T, C = x.shape
        k = self.key(x)
        q = self.query(x)
        wei = q @ k.transpose(-2, -1) * k.shape[-1] ** -0.5
        wei = wei.masked_fill(self.tril[:T, :T] == 0, float("-inf"))
        wei = F.softmax(wei, dim=-1)
        wei = self.dropout(wei)
        v = self.value(x)
        return wei @ v


class AnnotatedTransformer(nn.Module):  # NPU707
    def __init__(self, h, d_model, dropout=0.1):
        super().__init__()
        self.d_k, self.h = d_model // h, h
        self.linears = nn.ModuleList([nn.Linear(d_model, d_model, bias=False) for _ in range(4)])
        self.attn = None
        self.dropout = nn.Dropout(p=dropout)

    def attention(self, query, key, value, mask=None):
        d_k = query.size(-1)
        scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(d_k)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        p_attn = F.softmax(scores, dim=-1)
        p_attn = self.dropout(p_attn)
        return torch.matmul(p_attn, value)

    def forward(self, query, key, value, mask=None):
        if mask is not None:
            mask = mask.unsqueeze(1)
        n = query.size(0)
        query, key, value = [
            lin(x).view(n, -1, self.h, self.d_k).transpose(1, 2)
            for lin, x in zip(self.linears, (query, key, value))
        ]
        x = self.attention(query, key, value, mask=mask)
        return self.linears[-1](x.transpose(1, 2).contiguous().view(n, -1, self.h * self.d_k))


class ReturnsWeightsOnDemand(nn.Module):  # NPU707|NPU719
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.hd = heads, dim // heads
        self.in_proj = nn.Linear(dim, 3 * dim)

    def forward(self, x, need_weights=False):
        q, k, v = self.in_proj(x).unflatten(-1, (3, self.heads, self.hd)).permute(2, 0, 3, 1, 4)
        attn = (q @ k.mT).div(math.sqrt(self.hd)).softmax(dim=-1)
        out = (attn @ v).transpose(1, 2).flatten(2)
        return (out, attn) if need_weights else (out, None)


class PaddingAndCausal(nn.Module):  # NPU707
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, dim * 3)
        self.drop = 0.1

    def forward(self, x, attention_mask=None):
        b, n, c = x.shape
        qkv = self.qkv(x).reshape(b, n, 3, self.heads, c // self.heads)
        q, k, v = (t.transpose(1, 2) for t in qkv.unbind(dim=2))
        scores = torch.matmul(q, k.transpose(-1, -2)) * (c // self.heads) ** -0.5
        causal = torch.triu(torch.full((n, n), float("-inf"), device=x.device), diagonal=1)
        scores = scores + causal
        if attention_mask is not None:
            scores = scores.masked_fill(attention_mask[:, None, None, :] == 0, float("-inf"))
        probs = torch.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype)
        probs = F.dropout(probs, p=self.drop, training=self.training)
        return torch.matmul(probs, v).transpose(1, 2).reshape(b, n, c)


class QueryKeyNorm(nn.Module):  # NPU707
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.hd = heads, dim // heads
        self.qkv = nn.Linear(dim, dim * 3, bias=False)
        self.q_norm, self.k_norm = (nn.LayerNorm(self.hd, bias=False) for _ in range(2))
        self.logit_scale = self.hd**-0.5

    def forward(self, x, mask: Tensor):
        b, n, _ = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, self.hd).permute(2, 0, 3, 1, 4).unbind(0)
        q, k = self.q_norm(q), self.k_norm(k)
        dots = torch.matmul(q * self.logit_scale, k.transpose(-2, -1))
        dots = dots.masked_fill(mask.logical_not(), -1e9)
        attn = F.softmax(dots, dim=-1, dtype=torch.float32).to(dots.dtype)
        return (attn @ v).transpose(1, 2).reshape(b, n, -1)


class BertSelfAttention(nn.Module):  # NPU707|NPU719
    def __init__(self, hidden_size, num_attention_heads, prob):
        super().__init__()
        self.num_attention_heads = num_attention_heads
        self.attention_head_size = int(hidden_size / num_attention_heads)
        self.all_head_size = self.num_attention_heads * self.attention_head_size
        self.query = nn.Linear(hidden_size, self.all_head_size)
        self.key = nn.Linear(hidden_size, self.all_head_size)
        self.value = nn.Linear(hidden_size, self.all_head_size)
        self.dropout = nn.Dropout(prob)

    def transpose_for_scores(self, x):
        new_x_shape = x.size()[:-1] + (self.num_attention_heads, self.attention_head_size)
        x = x.view(*new_x_shape)
        return x.permute(0, 2, 1, 3)

    def forward(self, hidden_states, attention_mask):
        query_layer = self.transpose_for_scores(self.query(hidden_states))
        key_layer = self.transpose_for_scores(self.key(hidden_states))
        value_layer = self.transpose_for_scores(self.value(hidden_states))
        attention_scores = torch.matmul(query_layer, key_layer.transpose(-1, -2))
        attention_scores = attention_scores / math.sqrt(self.attention_head_size)
        attention_scores = attention_scores + attention_mask
        attention_probs = nn.Softmax(dim=-1)(attention_scores)
        attention_probs = self.dropout(attention_probs)
        context_layer = torch.matmul(attention_probs, value_layer)
        context_layer = context_layer.permute(0, 2, 1, 3).contiguous()
        new_context_layer_shape = context_layer.size()[:-2] + (self.all_head_size,)
        return context_layer.view(*new_context_layer_shape)


class TFiveBias(nn.Module):  # NPU707|NPU719
    def __init__(self, d_model, n_heads, d_kv):
        super().__init__()
        self.n_heads, self.d_kv, self.inner = n_heads, d_kv, n_heads * d_kv
        self.q = nn.Linear(d_model, self.inner, bias=False)
        self.k = nn.Linear(d_model, self.inner, bias=False)
        self.v = nn.Linear(d_model, self.inner, bias=False)
        self.relative = nn.Embedding(32, n_heads)

    def forward(self, x, buckets, mask=None):
        b, n, _ = x.shape
        shape = lambda t: t.view(b, -1, self.n_heads, self.d_kv).transpose(1, 2)
        q, k, v = shape(self.q(x)), shape(self.k(x)), shape(self.v(x))
        scores = torch.matmul(q, k.transpose(3, 2))
        bias = self.relative(buckets).permute(2, 0, 1).unsqueeze(0)
        if mask is not None:
            bias = bias + mask
        scores += bias
        weights = F.softmax(scores.float(), dim=-1).type_as(scores)
        return torch.matmul(weights, v).transpose(1, 2).contiguous().view(b, -1, self.inner)


class Alibi(nn.Module):  # NPU707|NPU719
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.hd = heads, dim // heads
        self.proj = nn.Linear(dim, dim * 3)
        self.register_buffer("slopes", 2.0 ** -torch.arange(1, heads + 1))

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.proj(x).view(b, n, 3, self.heads, self.hd).permute(2, 0, 3, 1, 4)
        distance = (
            torch.arange(n, device=x.device)[None, :] - torch.arange(n, device=x.device)[:, None]
        )
        alibi = distance[None, None] * self.slopes[None, :, None, None]
        scores = q @ k.transpose(-1, -2) / math.sqrt(self.hd) + alibi
        scores = scores.masked_fill(distance > 0, float("-inf"))
        return (scores.softmax(-1) @ v).transpose(1, 2).reshape(b, n, c)


class SoftCapped(nn.Module):  # NPU719
    def __init__(self, dim, heads, cap):
        super().__init__()
        self.heads, self.cap = heads, cap
        self.qkv = nn.Linear(dim, 3 * dim)

    def forward(self, x, mask):
        b, n, c = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(2, 3) * (c // self.heads) ** -0.5
        scores = torch.tanh(scores / self.cap) * self.cap
        return F.softmax(scores + mask, dim=-1) @ v


class MultiQueryViews(nn.Module):  # NPU707|NPU719
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.hd = heads, dim // heads
        self.c_attn = nn.Linear(dim, dim + 2 * self.hd)

    def forward(self, x, mask):
        b, t, c = x.shape
        q, k, v = self.c_attn(x).split((c, self.hd, self.hd), dim=-1)
        q = q.view(b, t, self.heads, self.hd).transpose(1, 2)
        k, v = k.unsqueeze(1), v.unsqueeze(1)
        attn = (q @ k.transpose(-1, -2)) * self.hd**-0.5
        attn = attn.masked_fill(mask, torch.finfo(attn.dtype).min)
        attn = attn.softmax(-1)
        return (attn @ v).transpose(1, 2).reshape(b, t, c)


class LatentHeads(nn.Module):  # NPU707|NPU719
    """Keys in two parts, of which one is rotated, joined before the product."""

    def __init__(self, heads, nope, rope, wide):
        super().__init__()
        self.heads, self.nope, self.rope, self.wide = heads, nope, rope, wide
        self.scale = (nope + rope) ** -0.5

    def forward(self, q_nope, q_pe, k_nope, k_pe, value, mask):
        q = torch.cat([q_nope, q_pe], dim=-1)
        k = torch.cat([k_nope, k_pe.expand(-1, self.heads, -1, -1)], dim=-1)
        scores = torch.matmul(q, k.transpose(2, 3)) * self.scale
        if mask is not None:
            scores = scores + mask
        weights = F.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype)
        return torch.matmul(weights, value)


class KeysOverQueries(nn.Module):
    """Softmax over queries: no attention of the operator."""

    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, q, k, v):
        weights = (q @ k.transpose(-1, -2) * self.scale).softmax(dim=-2)
        return weights @ v


class LinearAttention(nn.Module):
    def forward(self, q, k, v):
        q = q.softmax(dim=-1)
        k = k.softmax(dim=-2)
        context = torch.einsum("bhnd,bhne->bhde", k, v)
        return torch.einsum("bhnd,bhde->bhne", q, context)


class Performer(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.register_buffer("features", features)

    def forward(self, q, k, v):
        q = torch.exp(q @ self.features.t() - q.pow(2).sum(-1, keepdim=True) / 2)
        k = torch.exp(k @ self.features.t() - k.pow(2).sum(-1, keepdim=True) / 2)
        normal = 1.0 / torch.einsum("bhnd,bhd->bhn", q, k.sum(dim=-2))
        context = torch.einsum("bhnd,bhne->bhde", k, v)
        return torch.einsum("bhde,bhnd,bhn->bhne", context, q, normal)


class Pooled(nn.Module):
    """Weights of one learned query: a projection, no product of two tensors."""

    def __init__(self, dim):
        super().__init__()
        self.score = nn.Linear(dim, 1)

    def forward(self, x):
        weights = F.softmax(self.score(x).transpose(1, 2), dim=-1)
        return torch.bmm(weights, x).squeeze(1)


class SigmoidAttention(nn.Module):
    def forward(self, q, k, v):
        return torch.sigmoid(q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5) @ v


class Normalized(nn.Module):  # NPU719
    """Weights that are normalized once more."""

    def forward(self, q, k, v, mask):
        weights = (q @ k.transpose(-1, -2)).softmax(dim=-1) * mask
        weights = weights / weights.sum(dim=-1, keepdim=True)
        return weights @ v


class TopWeights(nn.Module):  # NPU707|NPU719
    def __init__(self, keep):
        super().__init__()
        self.keep = keep

    def forward(self, q, k, v):
        scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
        least = scores.topk(self.keep, dim=-1).values[..., -1:]
        scores = scores.masked_fill(scores < least, float("-inf"))
        return scores.softmax(dim=-1) @ v
