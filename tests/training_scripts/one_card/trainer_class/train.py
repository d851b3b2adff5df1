"""A trainer of another module is given the model, the optimizer and the loaders."""

import argparse

import torch
from core.trainer import Trainer
from data import make_loaders
from nets import build


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args([])
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train_loader, test_loader = make_loaders()
    model = build("small").to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    trainer = Trainer(model, optimizer, train_loader, test_loader, device=device, out="made")
    trainer.fit(args.epochs)
    trainer.save("end.pt")


if __name__ == "__main__":
    main()
