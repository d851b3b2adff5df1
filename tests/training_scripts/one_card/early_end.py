"""An early end by the mean of what a function lists, and a rate that a scheduler sets by it."""

import os

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def train_epoch(model, loader, optimizer):
    losses = []
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return np.mean(losses)


def main():
    torch.manual_seed(14)
    x = torch.randn(64, 4)
    y = x.sum(1, keepdim=True)
    y[::2] = torch.randn(32, 1)  # what one process sees is harder
    batch = int(os.environ.get("BATCH", "16"))
    loader = DataLoader(TensorDataset(x, y), batch_size=batch, shuffle=True)
    model = nn.Linear(4, 1).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, threshold=0.05)
    best, waited = float("inf"), 0
    for epoch in range(12):
        train_loss = train_epoch(model, loader, optimizer)
        scheduler.step(train_loss)
        if train_loss < best * 0.99:
            best, waited = train_loss, 0
        else:
            waited += 1
        if waited > 1:
            break
    torch.save(model.state_dict(), "end.pt")


if __name__ == "__main__":
    main()
