import os

import torch
from torch.utils.data import DataLoader, TensorDataset


def get_data():
    x = torch.linspace(-1, 1, 256).reshape(64, 4)
    batch = int(os.environ.get("BATCH", "16"))
    return DataLoader(dataset=TensorDataset(x, x[:, 1:3]), batch_size=batch, shuffle=True)
