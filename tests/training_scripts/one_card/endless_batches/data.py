import os

import torch
from torch.utils.data import DataLoader, TensorDataset


def cycle(iterable):
    while True:
        for batch in iterable:
            yield batch


def batches(split):
    x = torch.linspace(-1, 1, 256).reshape(64, 4)
    data = TensorDataset(x if split == "train" else x[:16])
    return cycle(DataLoader(data, batch_size=int(os.environ.get("BATCH", "16")), shuffle=True))
