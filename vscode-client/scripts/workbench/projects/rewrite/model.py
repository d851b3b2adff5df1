import math

import torch
from torch import nn
from torch.nn import functional as F

DEVICE = torch.device("cuda")


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        variance = x.pow(2).mean(-1, keepdim=True)
        x = x * torch.rsqrt(variance + self.eps)
        return self.weight * x


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm = RMSNorm(width)
        self.project = nn.Linear(width, 3 * width)

    def forward(self, x):
        batch, length, width = x.size()
        q, k, v = self.project(self.norm(x)).split(width, dim=2)
        shape = (batch, length, self.heads, width // self.heads)
        q = q.view(shape).transpose(1, 2)
        k = k.view(shape).transpose(1, 2)
        v = v.view(shape).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = F.softmax(att, dim=-1)
        y = att @ v
        return y.transpose(1, 2).reshape(batch, length, width)


model = Attention(16, 4).to(DEVICE)
