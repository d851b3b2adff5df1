"""A loader with a sampler of its own."""

import os

import torch
from torch import nn
from torch.utils.data import DataLoader, SubsetRandomSampler, TensorDataset, WeightedRandomSampler


def main():
    torch.manual_seed(9)
    batch = int(os.environ.get("BATCH", "16"))
    x = torch.randn(80, 4)
    data = TensorDataset(x, x.sum(1, keepdim=True))
    generator = torch.Generator().manual_seed(1)
    sampler = WeightedRandomSampler(torch.rand(80), 64, generator=generator)
    train_loader = DataLoader(data, batch_size=batch, sampler=sampler)
    valid_loader = DataLoader(data, batch_size=batch, sampler=SubsetRandomSampler(range(64, 80)))
    model = nn.Linear(4, 1).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(2):
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x.cuda()), y.cuda())
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            print(sum(nn.functional.mse_loss(model(x.cuda()), y.cuda()) for x, y in valid_loader))
    torch.save(model.state_dict(), "end.pt")


main()
