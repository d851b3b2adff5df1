import torch
from torch.nn import functional as F


@torch.no_grad()
def validate(model, loader, device):
    model.eval()
    total = 0.0
    for x, y in loader:
        total += F.l1_loss(model(x.to(device)), y.to(device), reduction="sum").item()
    return total / len(loader.dataset)
