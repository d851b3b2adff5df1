"""The function that trains moves the model to its device, which is the model itself."""

import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def validate(model, x, device):
    model.eval()
    with torch.no_grad():
        model = model.to(device)
        model(x.to(device)).mean()
    model.train()


def train(model, loader, optimizer, device="cuda"):
    model = model.to(device)
    net = model.train()
    for epoch in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(net(x.to(device)), y.to(device)).backward()
            optimizer.step()
        validate(model, x, device)
    torch.save(model.cpu().state_dict(), "end.pt")


def main():
    torch.manual_seed(9)
    x = torch.linspace(-1, 1, 192).reshape(64, 3)
    batch = int(os.environ.get("BATCH", "16"))
    loader = DataLoader(TensorDataset(x, x**2), batch_size=batch, shuffle=True)
    model = nn.Linear(3, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train(model, loader, optimizer)


if __name__ == "__main__":
    main()
