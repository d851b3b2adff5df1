"""Norms, gates and activations as forks of public code write them, with twins that are none."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class NormBySquares(nn.Module):  # NPU701
    def __init__(self, d, eps=1e-8):
        super().__init__()
        self.eps = eps
        self.g = nn.Parameter(torch.ones(d))

    def forward(self, x):
        ms = (x * x).mean(dim=-1, keepdim=True)
        return x / torch.sqrt(ms + self.eps) * self.g


class NormBySquare(nn.Module):  # NPU701
    def __init__(self, d, eps=1e-8):
        super().__init__()
        self.eps = eps
        self.scale = nn.Parameter(torch.ones(d))

    def forward(self, x):
        rms = torch.sqrt(torch.mean(torch.square(x), dim=-1, keepdim=True) + self.eps)
        return self.scale * (x / rms)


class NormInPieces(nn.Module):  # NPU701
    def __init__(self, d, eps=1e-6):
        super().__init__()
        self.variance_epsilon = eps
        self.weight = nn.Parameter(torch.ones(d))

    def _norm(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)

    def forward(self, hidden_states):
        output = self._norm(hidden_states.float())
        output = output * (1.0 + self.weight.float())
        return output.type_as(hidden_states)


class NormWithZeros(nn.Module):  # NPU701
    def __init__(self, d, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.zeros(d))

    def forward(self, x):
        dtype = x.dtype
        x = x.to(torch.float32)
        var = torch.mean(x**2, dim=-1, keepdim=True)
        x = x * torch.rsqrt(var + self.eps)
        x = x * (1 + self.weight)
        return x.to(dtype)


class NormWithBias(nn.Module):  # NPU701|NPU719
    def __init__(self, d, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight, self.bias = nn.Parameter(torch.ones(d)), nn.Parameter(torch.zeros(d))

    def forward(self, x):
        norm = x.pow(2).mean(-1, keepdim=True).add(self.eps).rsqrt()
        return x * norm * self.weight + self.bias


class NormByLength(nn.Module):  # NPU719
    def __init__(self, d):
        super().__init__()
        self.scale = d**0.5
        self.gamma = nn.Parameter(torch.ones(d))

    def forward(self, x):
        return F.normalize(x, dim=-1) * self.scale * self.gamma


class NormByNorm(nn.Module):  # NPU701|NPU719
    def __init__(self, d, eps=1e-8):
        super().__init__()
        self.d, self.eps = d, eps
        self.scale = nn.Parameter(torch.ones(d))

    def forward(self, x):
        norm_x = x.norm(2, dim=-1, keepdim=True)
        rms_x = norm_x * self.d ** (-1.0 / 2)
        return self.scale * (x / (rms_x + self.eps))


class NormEpsilonOutside(nn.Module):  # NPU719
    def __init__(self, d, eps=1e-8):
        super().__init__()
        self.eps = eps
        self.scale = nn.Parameter(torch.ones(d))

    def forward(self, x):
        rms = x.pow(2).mean(-1, keepdim=True).sqrt()
        return x / (rms + self.eps) * self.scale


class NormInPlace(nn.Module):  # NPU701
    def __init__(self, d, eps=1e-6):
        super().__init__()
        self.eps, self.weight = eps, nn.Parameter(torch.ones(d))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cuda", enabled=False):
            y = x.float()
            inverse = torch.rsqrt(y.square().mean(dim=-1, keepdim=True).add_(self.eps))
            y = y * inverse
        return (y * self.weight).to(x.dtype)


class NormOfGroups(nn.Module):  # NPU701|NPU719
    def __init__(self, d, groups, eps=1e-5):
        super().__init__()
        self.groups, self.eps = groups, eps
        self.weight = nn.Parameter(torch.ones(d))

    def forward(self, x):
        shape = x.shape
        x = x.view(*shape[:-1], self.groups, shape[-1] // self.groups)
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
        return x.view(shape) * self.weight


class NormGated(nn.Module):  # NPU701|NPU703
    def __init__(self, d, eps=1e-5):
        super().__init__()
        self.eps, self.weight = eps, nn.Parameter(torch.ones(d))

    def forward(self, x, z=None):
        if z is not None:
            x = x * F.silu(z)
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class NormOfPart(nn.Module):
    """Only a part of the features is looked at."""

    def __init__(self, d, p=0.25, eps=1e-8):
        super().__init__()
        self.d, self.p, self.eps = d, p, eps
        self.scale = nn.Parameter(torch.ones(d))

    def forward(self, x):
        size = int(self.d * self.p)
        part, _ = torch.split(x, [size, self.d - size], dim=-1)
        norm_x = part.norm(2, dim=-1, keepdim=True)
        return self.scale * x / (norm_x * size**-0.5 + self.eps)


class LayerNormByHand(nn.Module):
    def __init__(self, d, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.a_2, self.b_2 = nn.Parameter(torch.ones(d)), nn.Parameter(torch.zeros(d))

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        std = x.std(-1, keepdim=True)
        return self.a_2 * (x - mean) / (std + self.eps) + self.b_2


class CenteredNorm(nn.Module):
    def __init__(self, d, eps=1e-6):
        super().__init__()
        self.eps, self.weight = eps, nn.Parameter(torch.ones(d))

    def forward(self, x):
        x = x - x.mean(-1, keepdim=True)
        var = x.pow(2).mean(-1, keepdim=True)
        return x * torch.rsqrt(var + self.eps) * self.weight


class AbsNorm(nn.Module):
    def __init__(self, d, eps=1e-6):
        super().__init__()
        self.eps, self.weight = eps, nn.Parameter(torch.ones(d))

    def forward(self, x):
        return x / (x.abs().mean(-1, keepdim=True) + self.eps) * self.weight


class ResidualThenNorm(nn.Module):  # NPU701|NPU702
    def __init__(self, d, eps=1e-6):
        super().__init__()
        self.norm = nn.RMSNorm(d, eps=eps)

    def forward(self, x, residual):
        residual = x + residual
        return self.norm(residual), residual


class NormWithGainOnRequest(nn.Module):  # NPU701
    def __init__(self, d, eps=1e-6, affine=False):
        super().__init__()
        self.norm = nn.RMSNorm(d, eps=eps, elementwise_affine=affine)

    def forward(self, x):
        return x + self.norm(x)


class NormOrNothing(nn.Module):  # NPU701
    def __init__(self, d, normed=True):
        super().__init__()
        self.norm = nn.RMSNorm(d, eps=1e-6) if normed else nn.Identity()

    def forward(self, x):
        return x + self.norm(x)


class NormInOneArm(nn.Module):  # NPU701
    def __init__(self, d, normed=True):
        super().__init__()
        if normed:
            self.norm = nn.RMSNorm(d, eps=1e-8, elementwise_affine=False)
        else:
            self.norm = nn.Identity()

    def forward(self, x):
        return x + self.norm(x)


class LayerNormOrNothing(nn.Module):
    def __init__(self, d, normed=True):
        super().__init__()
        self.norm = nn.LayerNorm(d) if normed else nn.Identity()

    def forward(self, x):
        return x + self.norm(x)


class GateChunk(nn.Module):  # NPU703
    def __init__(self, d, h):
        super().__init__()
        self.w12, self.w3 = nn.Linear(d, 2 * h), nn.Linear(h, d)

    def forward(self, x):
        x1, x2 = self.w12(x).chunk(2, dim=-1)
        hidden = F.silu(x1) * x2
        return self.w3(hidden)


class GateSplit(nn.Module):  # NPU703
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.up, self.down = nn.Linear(d, 2 * h), nn.Linear(h, d)

    def forward(self, x):
        gate, up = torch.split(self.up(x), self.h, dim=-1)
        return self.down(gate * torch.sigmoid(gate) * up)


class GateSlices(nn.Module):  # NPU703
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.up, self.down = nn.Linear(d, 2 * h), nn.Linear(h, d)

    def forward(self, x):
        y = self.up(x)
        gate, up = y[..., : self.h], y[..., self.h :]
        return self.down(F.silu(gate) * up)


class GateInPlace(nn.Module):  # NPU703
    def __init__(self, d, h):
        super().__init__()
        self.gate_proj, self.up_proj = nn.Linear(d, h), nn.Linear(d, h)
        self.down_proj = nn.Linear(h, d)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)).mul_(self.up_proj(x)))


class GateByModule(nn.Module):  # NPU703
    def __init__(self, d, h):
        super().__init__()
        self.w1, self.w2, self.w3 = nn.Linear(d, h), nn.Linear(h, d), nn.Linear(d, h)
        self.act = nn.SiLU(inplace=True)

    def forward(self, x):
        gate = self.act(self.w1(x))
        value = self.w3(x)
        return self.w2(gate * value)


class Swish(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(x)


class GateByOwnModule(nn.Module):  # NPU703
    def __init__(self, d, h):
        super().__init__()
        self.w1, self.w2, self.w3 = nn.Linear(d, h), nn.Linear(h, d), nn.Linear(d, h)
        self.swish = Swish()

    def forward(self, x):
        return self.w2(self.swish(self.w1(x)) * self.w3(x))


class SwiGLU(nn.Module):  # NPU703
    def forward(self, x):
        x, gate = x.chunk(2, dim=-1)
        return F.silu(gate) * x


class GateInSequence(nn.Module):  # NPU703
    def __init__(self, d, h):
        super().__init__()
        self.gate = nn.Sequential(nn.Linear(d, h), nn.SiLU())
        self.up, self.down = nn.Linear(d, h), nn.Linear(h, d)

    def forward(self, x):
        return self.down(self.gate(x) * self.up(x))


swish = lambda x: x * torch.sigmoid(x)


class GateByLambda(nn.Module):  # NPU703
    def __init__(self, d, h):
        super().__init__()
        self.u, self.g, self.d = nn.Linear(d, h), nn.Linear(d, h), nn.Linear(h, d)

    def forward(self, x):
        return self.d(swish(self.g(x)) * self.u(x))


class GateOfConvolutions(nn.Module):  # NPU703|NPU719
    def __init__(self, d):
        super().__init__()
        self.conv = nn.Conv2d(d, 2 * d, 1)

    def forward(self, x):
        a, b = self.conv(x).chunk(2, dim=1)
        return F.silu(a) * b


class GateBySigmoid(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.up = nn.Linear(d, 2 * h)

    def forward(self, x):
        a, b = self.up(x).chunk(2, dim=-1)
        return a * torch.sigmoid(b)


class GateOfTanh(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.up = nn.Linear(d, 2 * h)

    def forward(self, x):
        a, b = self.up(x).chunk(2, dim=-1)
        return torch.tanh(a) * torch.sigmoid(b)


class ReluGate(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.up = nn.Linear(d, 2 * h)

    def forward(self, x):
        a, b = self.up(x).chunk(2, dim=-1)
        return F.relu(a) * b


class SiluOfProduct(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.up = nn.Linear(d, 2 * h)

    def forward(self, x):
        a, b = self.up(x).chunk(2, dim=-1)
        return F.silu(a * b)


class Modulated(nn.Module):
    """A shift and a scale of conditions, as in DiT: nothing is gated."""

    def __init__(self, d):
        super().__init__()
        self.ada = nn.Sequential(nn.SiLU(), nn.Linear(d, 2 * d))
        self.norm = nn.LayerNorm(d, elementwise_affine=False)

    def forward(self, x, c):
        shift, scale = self.ada(c).chunk(2, dim=-1)
        return self.norm(x) * (1 + scale.unsqueeze(1)) + shift.unsqueeze(1)


class GateGelu(nn.Module):  # NPU704
    def __init__(self, d, h):
        super().__init__()
        self.proj = nn.Linear(d, h * 2)

    def forward(self, x):
        x, gate = self.proj(x).chunk(2, dim=-1)
        return x * F.gelu(gate)


class GateGeluTanh(nn.Module):  # NPU704
    def __init__(self, d, h):
        super().__init__()
        self.gate, self.up, self.down = nn.Linear(d, h), nn.Linear(d, h), nn.Linear(h, d)

    def forward(self, x):
        gate = F.gelu(self.gate(x), approximate="tanh")
        return self.down(gate * self.up(x))


class NewGelu(nn.Module):  # NPU705
    def forward(self, x):
        return (
            0.5
            * x
            * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))
        )


def gelu_erf(x):  # NPU705
    return x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0)))


def gelu_cube(x):  # NPU705
    cube = x * x * x
    inner = 0.7978845608028654 * (x + 0.044715 * cube)
    return 0.5 * x * (1 + inner.tanh())


def gelu_factored(x):  # NPU705
    return 0.5 * x * (1 + torch.tanh(x * 0.7978845608 * (1 + 0.044715 * x * x)))


class QuickGelu(nn.Module):  # NPU705
    def forward(self, x):
        return x * torch.sigmoid(1.702 * x)


def gelu_other(x):
    return 0.5 * x * (1 + torch.tanh(x + 0.1 * x**3))


def swish_learned(x, beta):
    return x * torch.sigmoid(beta * x)
