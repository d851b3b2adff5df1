"""The size of a batch is that of a card times the number of cards."""

import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(4)
    count = torch.cuda.device_count()
    options = {"batch_size": int(os.environ.get("BATCH", "16")) * max(count, 1), "shuffle": True}
    x = torch.randn(64, 3)
    loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), **options)
    model = nn.Linear(3, 1).cuda()
    if count > 1:
        model = nn.DataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x.cuda()), y.cuda()).backward()
            optimizer.step()
    torch.save(model.state_dict(), "end.pt")


if __name__ == "__main__":
    main()
