import torch
from torch import nn


class ProxyLoss(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.proxies = nn.Parameter(torch.randn(classes, 3))

    def forward(self, x, y):
        return nn.functional.cross_entropy(x @ self.proxies.t(), y)
