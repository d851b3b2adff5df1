"""Gradient accumulation under mixed precision, with an average of the weights."""

import copy
import os

import torch
from torch import nn
from torch.cuda.amp import GradScaler, autocast
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm


class Points(Dataset):
    def __init__(self):
        self.x = torch.randn(64, 4, generator=torch.Generator().manual_seed(6))

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return {"x": self.x[index], "y": self.x[index].sum()}


class EMA:
    def __init__(self, model, decay):
        self.model = copy.deepcopy(model)
        self.decay = decay

    def update(self, model):
        with torch.no_grad():
            for average, new in zip(self.model.parameters(), model.parameters()):
                average.mul_(self.decay).add_(new, alpha=1 - self.decay)


def main():
    torch.manual_seed(6)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).cuda()
    ema = EMA(model, 0.9)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    is_mixed = torch.cuda.is_available()
    scaler = GradScaler(enabled=is_mixed)
    loader = DataLoader(Points(), batch_size=int(os.environ.get("BATCH", "16")), shuffle=True)
    accumulation = 2
    for epoch in range(2):
        bar = tqdm(loader, desc="train")
        optimizer.zero_grad()
        for i, batch in enumerate(bar):
            with autocast(enabled=is_mixed):
                out = model(batch["x"].cuda()).squeeze(1)
                loss = nn.functional.mse_loss(out, batch["y"].cuda()) / accumulation
            scaler.scale(loss).backward()
            if (i + 1) % accumulation == 0 or i + 1 == len(loader):
                scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
                ema.update(model)
            bar.set_postfix(loss=loss.item())
    torch.save({"model": model.state_dict(), "ema": ema.model.state_dict()}, "end.pt")


if __name__ == "__main__":
    main()
