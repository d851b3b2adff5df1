"""Rotations, losses, depth and optimizers as forks of public code write them."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def rotate_every_two(x):
    x1 = x[..., ::2]
    x2 = x[..., 1::2]
    x = torch.stack((-x2, x1), dim=-1)
    return x.flatten(-2)


def turn_interleaved(q, k, sin, cos):  # NPU706
    q = (q * cos) + (rotate_every_two(q) * sin)
    k = (k * cos) + (rotate_every_two(k) * sin)
    return q, k


def rotate_half(x):
    half = x.shape[-1] // 2
    return torch.cat([-x[..., half:], x[..., :half]], dim=-1)


def turn_halves(q, k, cos, sin, position_ids):  # NPU706
    cos = cos[position_ids].unsqueeze(1)
    sin = sin[position_ids].unsqueeze(1)
    return (q * cos) + (rotate_half(q) * sin), (k * cos) + (rotate_half(k) * sin)


class RotaryFork(nn.Module):  # NPU706
    def __init__(self, dim, base=10000):
        super().__init__()
        inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2).float() / dim))
        self.register_buffer("inv_freq", inv_freq)

    def forward(self, x):
        t = torch.arange(x.shape[-2], device=x.device).type_as(self.inv_freq)
        freqs = torch.einsum("i,j->ij", t, self.inv_freq)
        emb = torch.cat((freqs, freqs), dim=-1)
        return x * emb.cos() + rotate_half(x) * emb.sin()


def turn_pairs(x, freqs_cis):  # NPU706
    x_ = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    freqs_cis = freqs_cis.view(1, x_.size(1), 1, x_.size(3))
    return torch.view_as_real(x_ * freqs_cis).flatten(3).type_as(x)


def turn_stacked(x, cos, sin):  # NPU706
    xshaped = x.float().reshape(*x.shape[:-1], -1, 2)
    out = torch.stack(
        [
            xshaped[..., 0] * cos - xshaped[..., 1] * sin,
            xshaped[..., 1] * cos + xshaped[..., 0] * sin,
        ],
        -1,
    )
    return out.flatten(-2).type_as(x)


def turn_split(x, cos, sin):  # NPU706
    x1, x2 = torch.chunk(x, 2, dim=-1)
    y1 = x1 * cos - x2 * sin
    y2 = x2 * cos + x1 * sin
    return torch.cat((y1, y2), dim=-1)


def turn_partial(q, cos, sin, rotary_dim):  # NPU706
    q_rot, q_pass = q[..., :rotary_dim], q[..., rotary_dim:]
    q_rot = (q_rot * cos) + (rotate_half(q_rot) * sin)
    return torch.cat((q_rot, q_pass), dim=-1)


class Axial(nn.Module):  # NPU706
    """Two axes, each with half of the head."""

    def turn(self, tokens, cos, sin):
        return tokens * cos + rotate_half(tokens) * sin

    def forward(self, tokens, cos_y, sin_y, cos_x, sin_x):
        y, x = tokens.chunk(2, dim=-1)
        return torch.cat((self.turn(y, cos_y, sin_y), self.turn(x, cos_x, sin_x)), dim=-1)


def not_turned(x, cos, sin):
    """The sign is missing: a mirror and no rotation."""
    x1, x2 = x.chunk(2, dim=-1)
    return x * cos + torch.cat((x2, x1), dim=-1) * sin


def added_positions(x, cos, sin):
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((x1 + cos, x2 + sin), dim=-1)


def turned_in_the_plane(points, angle):
    c, s = torch.cos(angle), torch.sin(angle)
    x, y = points[..., 0], points[..., 1]
    return torch.stack((x * c - y * s, x * s + y * c), dim=-1)


def negative_likelihood(logits, y):  # NPU713
    return F.nll_loss(F.log_softmax(logits, dim=1), y)


def by_rows(logits, targets):  # NPU713
    logp = F.log_softmax(logits, dim=-1)
    n = targets.shape[0]
    return -logp[torch.arange(n), targets].mean()


def by_normalizer(logits, targets):  # NPU713
    lse = torch.logsumexp(logits, dim=-1)
    picked = logits.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    return (lse - picked).mean()


def token_logprobs(logits, labels):  # NPU713
    logits = logits[:, :-1, :]
    labels = labels[:, 1:]
    logps = torch.log_softmax(logits, dim=-1)
    return torch.gather(logps, dim=-1, index=labels.unsqueeze(-1)).squeeze(-1)


def soft_targets(logits, targets):
    return torch.sum(-targets * F.log_softmax(logits, dim=-1), dim=-1).mean()


def contrast(a, b, heat):
    logits = a @ b.t() / heat
    return -torch.diag(F.log_softmax(logits, dim=1)).mean()


def entropy(logits):
    p = F.softmax(logits, dim=-1)
    return -(p * F.log_softmax(logits, dim=-1)).sum(-1)


class DropPath(nn.Module):  # NPU714
    def __init__(self, p=0.0):
        super().__init__()
        self.p = p

    def forward(self, x):
        if self.p == 0.0 or not self.training:
            return x
        keep = 1 - self.p
        mask = torch.rand((x.shape[0],) + (1,) * (x.ndim - 1), dtype=x.dtype, device=x.device)
        mask = (mask + keep).floor()
        return x / keep * mask


def drop_connect(inputs, p, training):  # NPU714
    if not training:
        return inputs
    batch_size = inputs.shape[0]
    keep_prob = 1 - p
    random_tensor = keep_prob
    random_tensor += torch.rand([batch_size, 1, 1, 1], dtype=inputs.dtype, device=inputs.device)
    binary_tensor = torch.floor(random_tensor)
    return inputs / keep_prob * binary_tensor


def masks_tokens(x, ratio):
    """Masking of single tokens is no stochastic depth."""
    keep = torch.rand(x.shape[0], x.shape[1], 1, device=x.device) > ratio
    return x * keep


def optimizer_of_table(model, name, lr):  # NPU716
    model.cuda()
    table = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
    return table[name](model.parameters(), lr=lr)


def optimizer_partial(model, lr):  # NPU716
    from functools import partial

    model.cuda()
    make = partial(torch.optim.AdamW, lr=lr, betas=(0.9, 0.95))
    return make(model.parameters())


def optimizer_with_options(model, options):  # NPU716
    model.cuda()
    return torch.optim.AdamW(model.parameters(), **options)


def optimizer_choice(model, use_sgd):  # NPU716
    model.cuda()
    cls = torch.optim.SGD if use_sgd else torch.optim.Adam
    return cls(model.parameters(), lr=0.1)


def optimizer_nano(model, lr, betas):  # NPU716
    import inspect

    model.cuda()
    params = [p for p in model.parameters() if p.requires_grad]
    available = "fused" in inspect.signature(torch.optim.AdamW).parameters
    extra = dict(fused=True) if available else dict()
    return torch.optim.AdamW(params, lr=lr, betas=betas, **extra)


def optimizer_of_lbfgs(model):
    model.cuda()
    return torch.optim.LBFGS(model.parameters())
