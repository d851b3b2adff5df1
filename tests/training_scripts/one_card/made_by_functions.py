"""Model, optimizer and loaders come from functions; one loader function serves both loaders."""

import argparse
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=int(os.environ.get("BATCH", "16")))
    parser.add_argument("--gpu", type=int, default=0)
    return parser.parse_args([])


def make_loader(data, batch_size, training):
    return DataLoader(data, batch_size=batch_size, shuffle=training, num_workers=0)


def get_loaders(args):
    torch.manual_seed(3)
    x = torch.randn(48, 4)
    data = TensorDataset(x, x.mean(1, keepdim=True))
    return make_loader(data, args.batch_size, True), make_loader(data, args.batch_size, False)


def build_model(width):
    model = nn.Sequential(nn.Linear(4, width), nn.GELU(), nn.Linear(width, 1))
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.2)
    return model


def build_optimizer(net):
    decayed = [p for n, p in net.named_parameters() if "weight" in n]
    others = [p for n, p in net.named_parameters() if "weight" not in n]
    groups = [{"params": decayed, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.SGD(groups, lr=0.1)


def validate(net, loader, args):
    total = 0.0
    with torch.no_grad():
        for x, y in loader:
            loss = nn.functional.mse_loss(net(x.cuda(args.gpu)), y.cuda(args.gpu))
            total += loss.item() * len(x)
    return total / len(loader.dataset)


def main():
    args = get_args()
    train_loader, val_loader = get_loaders(args)
    net = build_model(8)
    net.cuda(args.gpu)
    optimizer = build_optimizer(net)
    best = float("inf")
    for epoch in range(2):
        for x, y in train_loader:
            x, y = x.cuda(args.gpu), y.cuda(args.gpu)
            loss = nn.functional.mse_loss(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
        figure = validate(net, val_loader, args)
        if figure < best:
            best = figure
            torch.save(net.state_dict(), "best.pt")
    torch.save({"net": net.state_dict(), "best": torch.tensor(best)}, "end.pt")


if __name__ == "__main__":
    main()
