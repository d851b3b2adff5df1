import torch
from torch import nn


class Scale(nn.Module):
    """Scales by what the first batch has at most, and follows what comes behind."""

    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))
        self.register_buffer("largest", torch.zeros(width))
        self.is_set = False

    def prepare(self, x):
        with torch.no_grad():
            largest = x.abs().amax(0)
            self.scale.data.copy_(1 / largest)

    def follow(self, x):
        self.largest.data.mul_(0.5).add_(x.detach().abs().amax(0), alpha=0.5)

    def forward(self, x):
        if not self.is_set:
            self.prepare(x)
            self.is_set = True
        if self.training:
            self.follow(x)
        return x * self.scale + self.largest


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = Scale(3)
        self.out = nn.Linear(3, 1)

    def forward(self, x):
        return self.out(self.scale(x))
