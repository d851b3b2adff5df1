"""Groups of parameters come from sets, and steps call a method of the model."""

import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU())
        self.head = nn.Linear(8, 2)

    def loss(self, x, y):
        return nn.functional.cross_entropy(self.head(self.body(x)), y)


def main():
    torch.manual_seed(3)
    x = torch.linspace(-1, 1, 256).reshape(64, 4)
    batch = int(os.environ.get("BATCH", "16"))
    loader = DataLoader(TensorDataset(x, torch.arange(64) % 2), batch_size=batch, shuffle=True)
    model = Embedder().cuda()
    groups = [
        {"params": list(set(model.parameters()).difference(set(model.head.parameters())))},
        {"params": model.head.parameters(), "lr": 0.1},
    ]
    optimizer = torch.optim.SGD(groups, lr=0.05)
    for epoch in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            loss = model.loss(x.cuda(), y.cuda())
            loss.backward()
            optimizer.step()
    torch.save(model.state_dict(), "end.pt")


if __name__ == "__main__":
    main()
