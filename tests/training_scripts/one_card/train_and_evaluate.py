"""A train and a test loader that functions are given, accuracy of both, a schedule."""

import os

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

BATCH = int(os.environ.get("BATCH", "16"))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 16), nn.ReLU())
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        return self.head(self.body(x))


def train(model, device, train_loader, optimizer, epoch):
    model.train()
    total, correct = 0.0, 0
    for batch_idx, (data, target) in enumerate(train_loader):
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        output = model(data)
        loss = F.cross_entropy(output, target)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(data)
        correct += output.argmax(1).eq(target).sum().item()
    print("epoch", epoch, total / len(train_loader.dataset), correct)
    return total / len(train_loader.dataset)


def test(model, device, test_loader):
    model.eval()
    test_loss = 0
    with torch.no_grad():
        for data, target in test_loader:
            output = model(data.to(device))
            test_loss += F.cross_entropy(output, target.to(device), reduction="sum").item()
    return test_loss / len(test_loader.dataset)


def main():
    torch.manual_seed(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    x = torch.randn(64, 6)
    y = x.sum(1).abs().long().clamp(max=2)
    train_loader = DataLoader(TensorDataset(x, y), batch_size=BATCH, shuffle=True)
    test_loader = DataLoader(TensorDataset(x[:20], y[:20]), batch_size=7, shuffle=False)
    model = Net().to(device)
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.7)
    figures = []
    for epoch in range(1, 4):
        figures.append(train(model, device, train_loader, optimizer, epoch))
        figures.append(test(model, device, test_loader))
        scheduler.step()
    torch.save({"weights": model.state_dict(), "figures": torch.tensor(figures)}, "end.pt")


if __name__ == "__main__":
    main()
