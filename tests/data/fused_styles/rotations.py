"""Rotary position embeddings as public code writes them."""

import torch
import torch.nn as nn
from einops import rearrange, repeat


def rotate_half(x):
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)


def apply_rotary_pos_emb(q, k, cos, sin, unsqueeze_dim=1):  # NPU706
    cos = cos.unsqueeze(unsqueeze_dim)
    sin = sin.unsqueeze(unsqueeze_dim)
    q_embed = (q * cos) + (rotate_half(q) * sin)
    k_embed = (k * cos) + (rotate_half(k) * sin)
    return q_embed, k_embed


def rotate_half_of_pairs(x):
    x = rearrange(x, "... (d r) -> ... d r", r=2)
    x1, x2 = x.unbind(dim=-1)
    x = torch.stack((-x2, x1), dim=-1)
    return rearrange(x, "... d r -> ... (d r)")


def apply_rotary_emb_of_pairs(freqs, t, scale=1.0):  # NPU706
    return (t * freqs.cos() * scale) + (rotate_half_of_pairs(t) * freqs.sin() * scale)


def rotate_half_first(x):
    x = rearrange(x, "... (j d) -> ... j d", j=2)
    x1, x2 = x.unbind(dim=-2)
    return torch.cat((-x2, x1), dim=-1)


def apply_rotary_of_halves(pos, t):  # NPU706
    return t * pos.cos() + rotate_half_first(t) * pos.sin()


def apply_partly(t, freqs, scale=1):  # NPU706
    rot_dim, seq_len = freqs.shape[-1], t.shape[-2]
    freqs = freqs[-seq_len:, :]
    t, t_unrotated = t[..., :rot_dim], t[..., rot_dim:]
    t = (t * freqs.cos() * scale) + (rotate_half(t) * freqs.sin() * scale)
    return torch.cat((t, t_unrotated), dim=-1)


def apply_rotary_complex(xq, xk, freqs_cis):  # NPU706
    xq_ = torch.view_as_complex(xq.float().reshape(*xq.shape[:-1], -1, 2))
    xk_ = torch.view_as_complex(xk.float().reshape(*xk.shape[:-1], -1, 2))
    freqs_cis = freqs_cis.view(1, xq_.size(1), 1, xq_.size(3))
    xq_out = torch.view_as_real(xq_ * freqs_cis).flatten(3)
    xk_out = torch.view_as_real(xk_ * freqs_cis).flatten(3)
    return xq_out.type_as(xq), xk_out.type_as(xk)


def apply_rotary_complex_by_flag(x, freqs_cis, interleaved=True):  # NPU706
    dtype = x.dtype
    shape = x.shape
    if not interleaved:
        x = x.view(*shape[:-1], 2, -1).transpose(-1, -2).contiguous()
    x = torch.view_as_complex(x.float().view(*shape[:-1], -1, 2))
    freqs_cis = freqs_cis.view(1, x.size(1), 1, x.size(-1))
    y = torch.view_as_real(x * freqs_cis).flatten(3)
    if not interleaved:
        y = torch.cat([y[..., 0::2], y[..., 1::2]], dim=-1)
    return y.to(dtype)


def apply_gptj(q, sin, cos):  # NPU706
    x1 = q[..., ::2]
    x2 = q[..., 1::2]
    return torch.stack((x1 * cos - x2 * sin, x1 * sin + x2 * cos), dim=-1).flatten(-2)


def apply_rotary_halves(x, cos, sin):  # NPU706
    d = x.shape[3] // 2
    x1 = x[..., :d]
    x2 = x[..., d:]
    y1 = x1 * cos + x2 * sin
    y2 = x1 * (-sin) + x2 * cos
    return torch.cat([y1, y2], 3).to(x.dtype)


def apply_rotary_split(x, cos, sin):  # NPU706
    x1, x2 = torch.split(x, x.shape[-1] // 2, dim=-1)
    return torch.cat((x1 * cos - x2 * sin, x2 * cos + x1 * sin), dim=-1)


def apply_rotary_first_part(x, cos, sin, rotary_dim):  # NPU706
    x_rot, x_pass = x[..., :rotary_dim], x[..., rotary_dim:]
    x_rot = x_rot * cos + rotate_half(x_rot) * sin
    return torch.cat([x_rot, x_pass], dim=-1)


class Rotary(nn.Module):  # NPU706
    def __init__(self, dim, max_len=2048, base=10000, offset=0):
        super().__init__()
        inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2).float() / dim))
        angles = torch.outer(torch.arange(max_len).float(), inv_freq)
        self.register_buffer("cos_cached", torch.cat([angles, angles], dim=-1).cos())
        self.register_buffer("sin_cached", torch.cat([angles, angles], dim=-1).sin())

    def rotate(self, x):
        half = x.shape[-1] // 2
        return torch.cat([-x[..., half:], x[..., :half]], dim=-1)

    def forward(self, x):
        n = x.shape[-2]
        cos = self.cos_cached[:n][None, None]
        sin = self.sin_cached[:n][None, None]
        return x * cos + self.rotate(x) * sin


class RotationMatrix(nn.Module):  # NPU706|NPU719
    def __init__(self, theta, d_k, max_seq_len):
        super().__init__()
        angles = torch.outer(torch.arange(max_seq_len), theta ** -(torch.arange(0, d_k, 2) / d_k))
        cos, sin = angles.cos(), angles.sin()
        row1 = torch.stack((cos, -sin), dim=-1)
        row2 = torch.stack((sin, cos), dim=-1)
        self.register_buffer("matrix", torch.stack((row1, row2), dim=-2))

    def forward(self, x, token_positions):
        pairs = rearrange(x, "... s (h d) -> ... s h d", d=2)
        rotation = self.matrix[token_positions]
        rotated = torch.einsum("... s h i j, ... s h j -> ... s h i", rotation, pairs)
        return rearrange(rotated, "... s h d -> ... s (h d)")


class StackedPairs(nn.Module):  # NPU706
    def __init__(self, theta, d_k, max_seq_len):
        super().__init__()
        angles = torch.outer(torch.arange(max_seq_len), theta ** -(torch.arange(0, d_k, 2) / d_k))
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, x, positions):
        cos, sin = self.cos[positions], self.sin[positions]
        even, odd = x[..., 0::2], x[..., 1::2]
        out = torch.empty_like(x)
        out[..., 0::2] = even * cos - odd * sin
        out[..., 1::2] = even * sin + odd * cos
        return out


class ScaledRotary(nn.Module):  # NPU706
    def __init__(self, dim, scale_base=512):
        super().__init__()
        self.scale_base = scale_base
        scale = (torch.arange(0, dim, 2) + 0.4 * dim) / (1.4 * dim)
        self.register_buffer("scale", scale)

    def forward(self, x, freqs, positions):
        power = (positions - len(positions) // 2) / self.scale_base
        scale = self.scale ** rearrange(power, "n -> n 1")
        scale = torch.cat((scale, scale), dim=-1)
        return x * freqs.cos() * scale + rotate_half(x) * freqs.sin() * scale


def apply_rope_2d(x, cos, sin):  # NPU706
    q_pass, q_rot = x[..., 1:, :], x[..., :1, :]
    q_pass = q_pass * cos + rotate_half(q_pass) * sin
    return torch.cat((q_rot, q_pass), dim=-2)


def repeated_tables(x, sin, cos):  # NPU706
    sin = repeat(sin, "n d -> n (d j)", j=2)
    cos = repeat(cos, "n d -> n (d j)", j=2)
    return x * cos + rotate_half_of_pairs(x) * sin


def rotate_points(points, angle):
    cos, sin = torch.cos(angle), torch.sin(angle)
    x, y = points.unbind(-1)
    return torch.stack((x * cos - y * sin, x * sin + y * cos), dim=-1)


def for_broadcast(freqs, x):
    last = x.ndim - 1
    return freqs.view([d if i in (1, last) else 1 for i, d in enumerate(x.shape)])


def apply_rotary_parts(q, k, freqs_cos, freqs_sin):  # NPU706
    q_r, q_i = q.float().reshape(q.shape[:-1] + (-1, 2)).unbind(-1)
    k_r, k_i = k.float().reshape(k.shape[:-1] + (-1, 2)).unbind(-1)
    freqs_cos = for_broadcast(freqs_cos, q_r)
    freqs_sin = for_broadcast(freqs_sin, q_r)
    q_out = torch.stack([q_r * freqs_cos - q_i * freqs_sin, q_r * freqs_sin + q_i * freqs_cos], -1)
    k_out = torch.stack([k_r * freqs_cos - k_i * freqs_sin, k_r * freqs_sin + k_i * freqs_cos], -1)
    return q_out.flatten(3).type_as(q), k_out.flatten(3).type_as(k)
