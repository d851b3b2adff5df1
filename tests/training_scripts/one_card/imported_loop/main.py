"""The loop is a function of another module, imported under another name."""

import torch
from data import build_data
from engine import evaluate, train_one_epoch as train_epoch
from models.net import build_model

if __name__ == "__main__":
    torch.manual_seed(1)
    model = build_model().cuda()
    train_loader, valid_loader, _ = build_data()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    best = float("inf")
    for epoch in range(3):
        loss = train_epoch(model, train_loader, optimizer, epoch)
        valid = evaluate(model, valid_loader)
        if valid < best:
            best = valid
            torch.save({"loss": torch.tensor(loss), "valid": torch.tensor(valid)}, "best.pt")
    torch.save(model.state_dict(), "end.pt")
