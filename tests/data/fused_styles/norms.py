"""RMSNorm as public code writes it. A definition with a mark computes what the mark names."""

import math

import torch
import torch.nn.functional as F
from einops import rearrange, reduce
from torch import nn


class WidthFromAttribute(nn.Module):  # NPU701
    def __init__(self, dim=512, eps=1e-8, dtype=None):
        super().__init__()
        self.dim = dim
        self.eps = eps
        self.gain = nn.Parameter(torch.ones(dim, dtype=dtype))

    def forward(self, x):
        mean_square = x.pow(2).sum(-1, keepdim=True) / self.dim
        return x / torch.sqrt(mean_square + self.eps) * self.gain


class OptionalGain(nn.Module):  # NPU701
    def __init__(self, dim, eps=1e-6, affine=True):
        super().__init__()
        self.eps = eps
        self.affine = affine
        if affine:
            self.weight = nn.Parameter(torch.ones(dim))
        else:
            self.register_parameter("weight", None)

    def forward(self, x):
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
        if self.weight is not None:
            x = x * self.weight
        return x


class OptionalGainByFlag(nn.Module):  # NPU701
    def __init__(self, dim, eps=1e-6, affine=True):
        super().__init__()
        self.eps = eps
        self.affine = affine
        if affine:
            self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        normed = x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + self.eps)
        return normed * self.weight if self.affine else normed


class NestedHelper(nn.Module):  # NPU701
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        def rms(t):
            return torch.rsqrt(t.pow(2).mean(-1, keepdim=True) + self.eps)

        return (x.float() * rms(x.float())).to(x.dtype) * self.weight


class LambdaAttribute(nn.Module):  # NPU701
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.norm = lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)

    def forward(self, x):
        return self.weight * self.norm(x)


class OnePlusGain(nn.Module):  # NPU701
    def __init__(self, dim, eps=1e-6, add_unit_offset=True):
        super().__init__()
        self.eps = eps
        self.add_unit_offset = add_unit_offset
        self.weight = nn.Parameter(torch.zeros(dim))

    def _norm(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)

    def forward(self, x):
        output = self._norm(x.float())
        if self.add_unit_offset:
            output = output * (1 + self.weight.float())
        else:
            output = output * self.weight.float()
        return output.type_as(x)


class ByLength(nn.Module):  # NPU719
    def __init__(self, dim):
        super().__init__()
        self.scale = dim**0.5
        self.g = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return F.normalize(x, dim=-1) * self.scale * self.g


class ByLengthOfChannels(nn.Module):  # NPU719
    def __init__(self, dim):
        super().__init__()
        self.g = nn.Parameter(torch.ones(1, dim, 1, 1))

    def forward(self, x):
        return F.normalize(x, dim=1) * self.g * (x.shape[1] ** 0.5)


class GammaPlusOne(nn.Module):  # NPU719
    def __init__(self, dim):
        super().__init__()
        self.scale = dim**0.5
        self.gamma = nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        return F.normalize(x, dim=-1) * self.scale * (self.gamma + 1)


class LikeT5(nn.Module):  # NPU701
    def __init__(self, hidden_size, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.variance_epsilon = eps

    def forward(self, hidden_states):
        variance = hidden_states.to(torch.float32).pow(2).mean(-1, keepdim=True)
        hidden_states = hidden_states * torch.rsqrt(variance + self.variance_epsilon)
        if self.weight.dtype in [torch.float16, torch.bfloat16]:
            hidden_states = hidden_states.to(self.weight.dtype)
        return self.weight * hidden_states


class LikeChatGLM(nn.Module):  # NPU701
    def __init__(self, normalized_shape, eps=1e-5, device=None, dtype=None, **kwargs):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(normalized_shape, device=device, dtype=dtype))
        self.eps = eps

    def forward(self, hidden_states):
        input_dtype = hidden_states.dtype
        variance = hidden_states.to(torch.float32).pow(2).mean(-1, keepdim=True)
        hidden_states = hidden_states * torch.rsqrt(variance + self.eps)
        return (self.weight * hidden_states).to(input_dtype)


class RootMeanSquare(nn.Module):  # NPU701
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        rms = (torch.mean(x**2, dim=-1, keepdim=True) + self.eps) ** 0.5
        return self.weight * (x / rms)


class MeanOfProduct(nn.Module):  # NPU701
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        ms = torch.mean(x * x, -1, keepdim=True)
        return torch.mul(x, (ms + self.eps).rsqrt()).mul(self.scale)


class ByEinops(nn.Module):  # NPU701
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))

    def forward(self, x):
        rms = torch.sqrt(reduce(x**2, "... d -> ... 1", "mean") + self.eps)
        return x / rms * self.weight


class UnsqueezedMean(nn.Module):  # NPU701
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))

    def forward(self, x):
        rms = torch.sqrt((x**2).mean(dim=-1) + self.eps).unsqueeze(-1)
        return x / rms * self.weight


class ThirdDimension(nn.Module):  # NPU719
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.d_model, self.eps = d_model, eps
        self.weight = nn.Parameter(torch.ones(d_model))

    def forward(self, x):
        squares = torch.sum(torch.mul(x, x), dim=2, keepdim=True)
        rms = torch.sqrt(squares / self.d_model + self.eps)
        return torch.mul(torch.div(x, rms), self.weight)


class HeadNorms(nn.Module):  # NPU701
    def __init__(self, dim, head_dim, eps=1e-6):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)
        self.head_dim = head_dim
        self.eps = eps
        self.q_weight = nn.Parameter(torch.ones(head_dim))

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q = rearrange(q, "b n (h d) -> b h n d", d=self.head_dim)
        q = q * torch.rsqrt(q.pow(2).mean(-1, keepdim=True) + self.eps) * self.q_weight
        return F.scaled_dot_product_attention(q, k, v)


class Centred(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.a = nn.Parameter(torch.ones(dim))
        self.b = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        std = x.std(-1, keepdim=True)
        return self.a * (x - mean) / (std + self.eps) + self.b


class Contrastive(nn.Module):
    def forward(self, a, b, temperature=0.07):
        a, b = F.normalize(a, dim=-1), F.normalize(b, dim=-1)
        return a @ b.t() / math.exp(temperature)
