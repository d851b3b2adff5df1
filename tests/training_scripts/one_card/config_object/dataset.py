import torch
from torch.utils.data import Dataset


class Points(Dataset):
    def __init__(self, count):
        self.x = torch.linspace(-1, 1, count * 4).reshape(count, 4)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, at):
        return self.x[at], self.x[at, :2] ** 2
