import os

import torch
from torch.utils.data import DataLoader, TensorDataset


def make_loader():
    x = torch.linspace(-1, 1, 256).reshape(64, 4)
    batch = int(os.environ.get("BATCH", "16"))
    return DataLoader(TensorDataset(x, torch.arange(64) % 3), batch_size=batch, shuffle=True)
