import os

import torch
from torch.utils.data import DataLoader, IterableDataset


class Stream(IterableDataset):
    def __iter__(self):
        for number in range(64):
            x = torch.full((4,), number / 64)
            yield x, x[:2] * 3


def stream_loader():
    return DataLoader(Stream(), batch_size=int(os.environ.get("BATCH", "16")))
