import os

import torch
from torch.utils.data import DataLoader, TensorDataset

BATCH = int(os.environ.get("BATCH", "16"))


def loaders_by_phase():
    x = torch.linspace(-1, 1, 256).reshape(64, 4)
    y = torch.arange(64) % 3
    sets = {"train": TensorDataset(x, y), "val": TensorDataset(x[::4], y[::4])}
    return {
        phase: DataLoader(sets[phase], batch_size=BATCH, shuffle=phase == "train")
        for phase in ("train", "val")
    }
