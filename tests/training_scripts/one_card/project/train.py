"""Model and loaders come from other files of the project, which also save."""

import torch
from data import get_loaders
from nets import make_net, save_net

device = torch.device("cuda")


def main():
    torch.manual_seed(13)
    train_loader, test_loader = get_loaders()
    net = make_net().to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(2):
        for x, y in train_loader:
            loss = torch.nn.functional.mse_loss(net(x.to(device)), y.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    save_net(net, "end.pt")


if __name__ == "__main__":
    main()
