"""The criterion has parameters of its own, and an average of the weights is kept."""

import torch
from average import Average
from data import make_loader
from losses import ProxyLoss
from torch import nn
from updates import run_epoch


def main():
    torch.manual_seed(8)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8).eval(), nn.Linear(8, 3)).cuda()
    criterion = ProxyLoss(3).cuda()
    groups = [{"params": model.parameters()}]
    groups.append({"params": criterion.proxies, "lr": 0.2})
    optimizer = torch.optim.SGD(groups, lr=0.05)
    average = Average(model, 0.9)
    loader = make_loader()
    for epoch in range(3):
        run_epoch(model, criterion, optimizer, loader, average)
    state = [model.state_dict(), criterion.state_dict(), average.kept]
    torch.save(state, "end.pt")


if __name__ == "__main__":
    main()
