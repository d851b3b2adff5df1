"""More spellings of the computations: what is put together of sums, parts, columns and helpers."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class NormByMethods(nn.Module):  # NPU701
    def __init__(self, hidden_size, eps=1e-6):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(hidden_size))
        self.eps = eps

    def forward(self, hidden):
        dtype = hidden.dtype
        hidden = hidden.float()
        var = hidden.square().mean(dim=(-1,), keepdim=True)
        hidden = hidden.mul(torch.rsqrt(var.add(self.eps)))
        return (self.scale * hidden).to(dtype)


class NormAndItself(nn.Module):  # NPU701
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.gamma = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x):
        rms = torch.sqrt(torch.mean(x**2, -1, True) + self.eps)
        y = x / rms
        return torch.addcmul(y, y, self.gamma)


class NormBySums(nn.Module):  # NPU701
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.g = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        ms = torch.einsum("...d,...d->...", x, x) / x.size(-1)
        return x * torch.rsqrt(ms + self.eps).unsqueeze(-1) * self.g


class NormByRootOfLength(nn.Module):  # NPU701
    def __init__(self, d, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))
        self.eps = eps

    def forward(self, x):
        norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        rms = norm / math.sqrt(x.shape[-1])
        return self.weight * x / torch.sqrt(rms**2 + self.eps)


class NormOfBoundedSquare(nn.Module):  # NPU719
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        v = x.pow(2).mean(dim=-1, keepdim=True)
        return x / v.clamp(min=self.eps).sqrt() * self.weight


def normed_without_gain(x):  # NPU719
    return F.rms_norm(x, (x.size(-1),))


def scaled_by(x, gain):
    return x * gain


class NormGivenToHelper(nn.Module):  # NPU701
    def __init__(self, d):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))

    def forward(self, x):
        return scaled_by(x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6), self.weight)


class GateOfEvenParts(nn.Module):  # NPU703
    def __init__(self, d, h):
        super().__init__()
        self.w12 = nn.Linear(d, 2 * h)
        self.w3 = nn.Linear(h, d)

    def forward(self, x):
        a, b = self.w12(x).tensor_split(2, dim=-1)
        return self.w3(F.silu(a).mul(b))


class GateOfSums(nn.Module):  # NPU703
    def __init__(self, d, h):
        super().__init__()
        self.w1 = nn.Parameter(torch.randn(h, d))
        self.w2 = nn.Parameter(torch.randn(h, d))
        self.w3 = nn.Parameter(torch.randn(d, h))

    def forward(self, x):
        gate = torch.einsum("...d,hd->...h", x, self.w1)
        up = torch.einsum("...d,hd->...h", x, self.w2)
        return torch.einsum("...h,dh->...d", torch.sigmoid(gate) * gate * up, self.w3)


def rot_half(x):
    x1, x2 = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return torch.cat([-x2, x1], dim=-1)


def turn_by_one_table(x, rope_table):  # NPU706
    T = x.size(1)
    rope_table = rope_table[:T]
    pairs = x.float().reshape(*x.shape[:-1], -1, 2)
    rope_table = rope_table.view(1, pairs.size(1), 1, pairs.size(3), 2)
    turned = torch.stack(
        [
            pairs[..., 0] * rope_table[..., 0] - pairs[..., 1] * rope_table[..., 1],
            pairs[..., 1] * rope_table[..., 0] + pairs[..., 0] * rope_table[..., 1],
        ],
        -1,
    )
    turned = turned.flatten(3)
    return turned.type_as(x)


def turn_by_columns(q, k, rotations):  # NPU706|NPU719
    q_ = q.float().reshape(*q.shape[:-1], -1, 1, 2)
    k_ = k.float().reshape(*k.shape[:-1], -1, 1, 2)
    q_out = rotations[..., 0] * q_[..., 0] + rotations[..., 1] * q_[..., 1]
    k_out = rotations[..., 0] * k_[..., 0] + rotations[..., 1] * k_[..., 1]
    return q_out.reshape(*q.shape).type_as(q), k_out.reshape(*k.shape).type_as(k)


class TurnByOwnLength(nn.Module):  # NPU706
    def __init__(self, d, base=10000):
        super().__init__()
        self.base = base
        self.d = d
        self.cos_cached = None
        self.sin_cached = None

    def _remember(self, x):
        length = x.shape[0]
        inverse = 1.0 / (self.base ** (torch.arange(0, self.d, 2).float() / self.d)).to(x.device)
        places = torch.arange(length, device=x.device).float()
        angles = torch.einsum("n,d->nd", places, inverse)
        doubled = torch.cat([angles, angles], dim=1)
        self.cos_cached = doubled.cos()[:, None, None, :].to(x)
        self.sin_cached = doubled.sin()[:, None, None, :].to(x)

    def _swapped(self, x):
        d_2 = self.d // 2
        return torch.cat([-x[:, :, :, d_2:], x[:, :, :, :d_2]], dim=-1)

    def forward(self, x):
        self._remember(x)
        turning, rest = x[..., : self.d], x[..., self.d :]
        swapped = self._swapped(turning)
        turning = (turning * self.cos_cached[: x.shape[0]]) + (
            swapped * self.sin_cached[: x.shape[0]]
        )
        return torch.cat((turning, rest), dim=-1)


class TurnByNamedHalf(nn.Module):  # NPU706
    def __init__(self, head_dim):
        super().__init__()
        self.head_dim = head_dim

    def rotate(self, x, cos, sin):
        x1 = x[..., : self.head_dim // 2]
        x2 = x[..., self.head_dim // 2 :]
        return torch.cat([x1 * cos - x2 * sin, x1 * sin + x2 * cos], -1)

    def forward(self, q, k, pos):
        inv = 1.0 / (10000 ** (torch.arange(0, self.head_dim, 2, device=q.device) / self.head_dim))
        ang = pos[:, None] * inv[None, :]
        cos, sin = ang.cos()[None, None].to(q), ang.sin()[None, None].to(q)
        return self.rotate(q, cos, sin), self.rotate(k, cos, sin)


def turn_joined(x, cos, sin):  # NPU706
    x = x.view(*x.shape[:-1], x.shape[-1] // 2, 2)
    a, b = x[..., 0], x[..., 1]
    ra = a * cos - b * sin
    rb = a * sin + b * cos
    return torch.cat([ra.unsqueeze(-1), rb.unsqueeze(-1)], dim=-1).flatten(-2)


def turn_as_complex(x, freqs):  # NPU706
    z = torch.complex(x[..., 0::2].float(), x[..., 1::2].float())
    z = z * freqs
    return torch.stack([z.real, z.imag], dim=-1).flatten(-2).type_as(x)


def turn_apart(q, k, cos, sin):  # NPU706
    q1, q2 = q[..., 0::2], q[..., 1::2]
    turned = torch.cat([q1 * cos - q2 * sin, q2 * cos + q1 * sin], dim=-1)
    return turned


class AttendByLengths(nn.Module):  # NPU707
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.q = nn.Linear(dim, dim)
        self.k = nn.Linear(dim, dim, bias=False)
        self.v = nn.Linear(dim, dim)

    def forward(self, x, lengths):
        b, s, d = x.shape
        q = self.q(x).view(b, s, self.heads, -1)
        k = self.k(x).view(b, s, self.heads, -1)
        v = self.v(x).view(b, s, self.heads, -1)
        mask = torch.arange(s, device=x.device)[None, :] > lengths[:, None]
        score = torch.einsum("bqhc,bkhc->bhqk", q, k) * (d // self.heads) ** -0.5
        score = score.masked_fill(mask[:, None, None], float("-inf"))
        w = torch.softmax(score, -1)
        return torch.einsum("bhqk,bkhc->bqhc", w, v).reshape(b, s, d)


class AttendScaledTwice(nn.Module):  # NPU707
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def attend(self, q, k, v):
        width = q.shape[-1]
        scale = (width // self.heads) ** -0.25
        q = q.view(*q.shape[:2], self.heads, -1).permute(0, 2, 1, 3) * scale
        k = k.view(*k.shape[:2], self.heads, -1).permute(0, 2, 3, 1) * scale
        v = v.view(*v.shape[:2], self.heads, -1).permute(0, 2, 1, 3)
        qk = q @ k
        w = F.softmax(qk.float(), dim=-1).to(q.dtype)
        return (w @ v).permute(0, 2, 1, 3).flatten(start_dim=2)

    def forward(self, x):
        return self.out(self.attend(self.query(x), self.key(x), self.value(x)))


class SingleHeadOfLecture(nn.Module):  # NPU707
    def __init__(self, width, size, block):
        super().__init__()
        self.key = nn.Linear(width, size, bias=False)
        self.query = nn.Linear(width, size, bias=False)
        self.value = nn.Linear(width, size, bias=False)
        self.register_buffer("past", torch.tril(torch.ones(block, block)))
        self.dropout = nn.Dropout(0.2)

    def forward(self, x):
        B, T, C = x.shape
        k, q, v = self.key(x), self.query(x), self.value(x)
        scores = q @ k.transpose(-2, -1) * C**-0.5
        scores = scores.masked_fill(self.past[:T, :T] == 0, float("-inf"))
        scores = F.softmax(scores, dim=-1)
        scores = self.dropout(scores)
        return scores @ v


class MaskedInHeads(nn.Module):  # NPU707
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.q, self.v = nn.Linear(d, d), nn.Linear(d, d)
        self.k = nn.Linear(d, d, bias=False)

    def _shape(self, t, s, b):
        return t.view(b, s, self.h, -1).transpose(1, 2).contiguous()

    def forward(self, hs, kv=None, mask=None):
        b, t, d = hs.size()
        src = hs if kv is None else kv
        q = self._shape(self.q(hs) * (d // self.h) ** -0.5, t, b).view(b * self.h, t, -1)
        k = self._shape(self.k(src), src.size(1), b).view(b * self.h, -1, d // self.h)
        v = self._shape(self.v(src), src.size(1), b).view(b * self.h, -1, d // self.h)
        w = torch.bmm(q, k.transpose(1, 2))
        if mask is not None:
            w = w.view(b, self.h, t, -1).masked_fill(mask[:, None], float("-inf"))
            w = w.view(b * self.h, t, -1)
        w = F.softmax(w, dim=-1)
        o = torch.bmm(w, v)
        return o.view(b, self.h, t, -1).transpose(1, 2).reshape(b, t, d)


class SequenceFirst(nn.Module):  # NPU707
    def __init__(self, d, h):
        super().__init__()
        self.h, self.hd = h, d // h
        self.in_proj = nn.Linear(d, 3 * d)

    def forward(self, x, key_padding_mask=None):
        L, B, D = x.shape
        q, k, v = self.in_proj(x).chunk(3, dim=-1)
        q = q.contiguous().view(L, B * self.h, self.hd).transpose(0, 1)
        k = k.contiguous().view(L, B * self.h, self.hd).transpose(0, 1)
        v = v.contiguous().view(L, B * self.h, self.hd).transpose(0, 1)
        a = torch.bmm(q * self.hd**-0.5, k.transpose(1, 2))
        if key_padding_mask is not None:
            a = a.view(B, self.h, L, L)
            a = a.masked_fill(key_padding_mask.unsqueeze(1).unsqueeze(2), float("-inf"))
            a = a.view(B * self.h, L, L)
        a = F.softmax(a, dim=-1)
        o = torch.bmm(a, v).transpose(0, 1).contiguous().view(L, B, D)
        return o


def attend_with_full_like(q, k, v, mask):  # NPU707
    logits = torch.matmul(q, k.permute(0, 1, 3, 2))
    logits = logits / torch.sqrt(torch.tensor(q.shape[-1], dtype=torch.float32))
    logits = torch.where(mask, torch.full_like(logits, -1e9), logits)
    return torch.matmul(torch.softmax(logits, dim=-1), v)


class Correspondence(nn.Module):  # NPU707
    def forward(self, source, target, tgt):
        d_k = source.size(1)
        scores = torch.matmul(source.transpose(2, 1).contiguous(), target) / math.sqrt(d_k)
        scores = torch.softmax(scores, dim=2)
        moved = torch.matmul(tgt, scores.transpose(2, 1).contiguous())
        return moved


class ChannelsReturned(nn.Module):  # NPU719
    def __init__(self, c):
        super().__init__()
        self.query_conv = nn.Conv2d(c, c // 8, 1)
        self.key_conv = nn.Conv2d(c, c // 8, 1)
        self.value_conv = nn.Conv2d(c, c, 1)
        self.gamma = nn.Parameter(torch.zeros(1))
        self.softmax = nn.Softmax(dim=-1)

    def forward(self, x):
        B, C, W, H = x.size()
        q = self.query_conv(x).view(B, -1, W * H).permute(0, 2, 1)
        k = self.key_conv(x).view(B, -1, W * H)
        energy = torch.bmm(q, k)
        attention = self.softmax(energy)
        v = self.value_conv(x).view(B, -1, W * H)
        out = torch.bmm(v, attention.permute(0, 2, 1))
        out = out.view(B, C, W, H)
        return self.gamma * out + x, attention


class BiasThenHeads(nn.Module):  # NPU719
    def __init__(self, d, h, n):
        super().__init__()
        self.h = h
        self.scale = d**-0.5
        self.qkv = nn.Linear(d, 3 * d)
        self.mixed = nn.Conv2d(h, h, 1)
        self.biases = nn.Parameter(torch.zeros(h, n * n))
        self.register_buffer("places", torch.arange(n * n).view(n, n))

    def forward(self, x):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        attn = (q @ k.transpose(-2, -1)) * self.scale + (
            self.biases[:, self.places] if self.training else self.ab
        )
        attn = self.mixed(attn)
        attn = attn.softmax(dim=-1)
        return (attn @ v).transpose(1, 2).reshape(B, N, C)


class GroupedByExpand(nn.Module):  # NPU707
    def __init__(self, dim, heads, groups):
        super().__init__()
        self.heads, self.groups, self.hd = heads, groups, dim // heads
        self.wq = nn.Linear(dim, heads * self.hd)
        self.wk = nn.Linear(dim, groups * self.hd)
        self.wv = nn.Linear(dim, groups * self.hd)
        self.wo = nn.Linear(dim, dim)

    def forward(self, x, cache=None):
        b, t, _ = x.shape
        q = self.wq(x).view(b, t, self.heads, self.hd).transpose(1, 2)
        k = self.wk(x).view(b, t, self.groups, self.hd).transpose(1, 2)
        v = self.wv(x).view(b, t, self.groups, self.hd).transpose(1, 2)
        if cache is not None:
            k = torch.cat([cache[0], k], dim=2)
            v = torch.cat([cache[1], v], dim=2)
        new_cache = (k, v)
        rep = self.heads // self.groups
        k = k[:, :, None].expand(-1, -1, rep, -1, -1).reshape(b, self.heads, -1, self.hd)
        v = v[:, :, None].expand(-1, -1, rep, -1, -1).reshape(b, self.heads, -1, self.hd)
        s = q @ k.transpose(2, 3) / math.sqrt(self.hd)
        T = k.shape[2]
        m = torch.ones(t, T, dtype=torch.bool, device=x.device).tril(T - t)
        s = s.masked_fill(~m, float("-inf"))
        p = s.softmax(dim=-1)
        o = (p @ v).transpose(1, 2).reshape(b, t, -1)
        return self.wo(o), new_cache


def likelihood_of_rows(logits, target):  # NPU713
    lse = torch.logsumexp(logits, dim=1)
    return (lse - logits[torch.arange(len(target)), target]).mean()


def likelihood_of_flat(logits, labels):  # NPU713
    probs = F.log_softmax(logits.float(), dim=-1)
    return F.nll_loss(probs.view(-1, probs.size(-1)), labels.view(-1), ignore_index=-100)


def chosen_less_total(logits, labels):  # NPU713
    sel = torch.gather(logits, -1, labels.unsqueeze(-1)).squeeze(-1)
    return sel - logits.logsumexp(-1)


def logarithm_of_chosen(logits, y):  # NPU713
    p = torch.softmax(logits, dim=1)
    return -torch.log(p[torch.arange(y.size(0)), y]).mean()


def drop_with_full(x, p, training):  # NPU714
    if p and training:
        keep = 1.0 - p
        m = torch.bernoulli(torch.full((x.shape[0],) + (1,) * (x.dim() - 1), keep, device=x.device))
        return x * m / keep
    return x


def of_own_logarithms(logits, actions):  # NPU713
    logp = logits - logits.logsumexp(dim=-1, keepdim=True)
    return logp.gather(-1, actions.long().unsqueeze(-1)).squeeze(-1)


def shifted_labels(logits, labels):  # NPU713
    logp = F.log_softmax(logits[:, :-1], dim=-1)
    return torch.gather(logp, 2, labels[:, 1:, None])[..., 0]


def focal(logits, targets, gamma=2.0):  # NPU713|NPU719
    logp = F.log_softmax(logits, dim=1)
    logpt = logp.gather(1, targets.view(-1, 1)).view(-1)
    pt = logpt.exp()
    return (-((1 - pt) ** gamma) * logpt).mean()


def pick(data, label):
    return torch.gather(data, -1, label.unsqueeze(-1)).squeeze(-1)


def picked_by_helper(logits, labels):  # NPU713
    logp = F.log_softmax(logits, dim=-1)
    chosen = pick(logp, labels)
    return chosen


def summed_as_before(out, target):  # NPU713
    return F.nll_loss(F.log_softmax(out, dim=1), target, size_average=False)
