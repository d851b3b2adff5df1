import os

import torch
from torch.utils.data import DataLoader, TensorDataset


def get_loaders():
    x = torch.randn(64, 4)
    data = TensorDataset(x, x.mean(1, keepdim=True))
    batch = int(os.environ.get("BATCH", "16"))
    return DataLoader(data, batch, shuffle=True), DataLoader(data, batch)
