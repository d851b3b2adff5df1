"""Options of the loaders in dictionaries, as in PyTorch's example for MNIST."""

import argparse
import os

import torch
import torch.nn.functional as F
from torch import nn


def train(args, model, device, train_loader, optimizer, epoch):
    model.train()
    for batch_idx, (data, target) in enumerate(train_loader):
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        loss = F.nll_loss(F.log_softmax(model(data), 1), target)
        loss.backward()
        optimizer.step()
        if args.dry_run:
            break


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dry-run", action="store_true")
    args = parser.parse_args([])
    torch.manual_seed(7)
    use_cuda = torch.cuda.is_available()
    device = torch.device("cuda" if use_cuda else "cpu")
    train_kwargs = {"batch_size": int(os.environ.get("BATCH", "16"))}
    more = {"num_workers": 0, "shuffle": True}
    train_kwargs.update(more)
    x = torch.randn(64, 6)
    train_loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(x, x.argmax(1)), **train_kwargs
    )
    model = nn.Linear(6, 6).to(device)
    optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
    for epoch in range(1, 3):
        train(args, model, device, train_loader, optimizer, epoch)
    torch.save(model.state_dict(), "end.pt")


if __name__ == "__main__":
    main()
