import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, width)
        self.register_buffer("scale", torch.ones(width, device="cuda"))

    def forward(self, x):
        return self.layer(x) * self.scale


def load(path, width):
    encoder = Encoder(width)
    encoder.load_state_dict(torch.load(path, map_location="cuda"))
    return encoder.cuda()
