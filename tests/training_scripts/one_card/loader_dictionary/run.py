"""Loaders by phase, from another module; the loop over the phases is in a third."""

import torch
from data import loaders_by_phase
from phases import fit
from torch import nn


def main():
    torch.manual_seed(3)
    loaders = loaders_by_phase()
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    net = net.to("cuda" if torch.cuda.is_available() else "cpu")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    net, history = fit(net, loaders, nn.CrossEntropyLoss(), optimizer, scheduler, 3)
    torch.save({"net": net.state_dict(), "history": torch.tensor(history)}, "end.pt")


main()
