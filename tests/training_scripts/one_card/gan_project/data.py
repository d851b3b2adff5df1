import os

import torch
from torch.utils.data import DataLoader, TensorDataset


def get_loader():
    x = torch.linspace(-1, 1, 256).reshape(64, 4)
    return DataLoader(TensorDataset(x), int(os.environ.get("BATCH", "16")), True)
