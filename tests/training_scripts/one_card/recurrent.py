"""A recurrent model with a method that begins its state, several passes in a step."""

import os

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Tagger(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.cell = nn.GRUCell(3, width)
        self.out = nn.Linear(width, 2)

    def init_hidden(self, size):
        weight = next(self.parameters()).data
        return weight.new_zeros(size, self.width)

    def forward(self, x, hidden):
        hidden = self.cell(x, hidden)
        return self.out(hidden), hidden


def train_epoch(tagger, batches, optimizer, device):
    for x, y in batches:
        hidden = tagger.init_hidden(x.size(0))
        loss = 0
        for at in range(x.size(1)):
            out, hidden = tagger(x[:, at].to(device), hidden)
            loss = loss + nn.functional.cross_entropy(out, y.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main(device="cuda"):
    torch.manual_seed(12)
    x = torch.randn(32, 5, 3)
    loaders = (
        DataLoader(TensorDataset(x, (x.sum((1, 2)) > 0).long()), int(os.environ.get("BATCH", "16"))),
        DataLoader(TensorDataset(x[:8], x[:8, 0, 0].long())),
    )
    tagger = Tagger(6).to(device)
    optimizer = optim.RMSprop(tagger.parameters(), lr=0.01)
    for cycle in range(2):
        for epoch in range(2):
            train_epoch(tagger, loaders[0], optimizer, device)
    torch.save(tagger.state_dict(), "end.pt")


if __name__ == "__main__":
    main()
