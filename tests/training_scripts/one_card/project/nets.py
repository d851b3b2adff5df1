import torch


def make_net():
    return torch.nn.Linear(4, 1)


def save_net(net, path):
    torch.save(net.state_dict(), path)
