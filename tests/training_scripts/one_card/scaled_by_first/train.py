"""A layer takes its scale from the first batch, in which every second sample is larger."""

import os

import torch
from layers import Net
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(5)
    x = torch.randn(64, 3)
    x[::2] *= 10
    batch = int(os.environ.get("BATCH", "16"))
    loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=batch, shuffle=True)
    model = Net().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.l1_loss(model(x.cuda()), y.cuda()).backward()
            optimizer.step()
    torch.save(model.state_dict(), "end.pt")


if __name__ == "__main__":
    main()
