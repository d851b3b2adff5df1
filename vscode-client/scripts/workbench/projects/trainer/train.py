"""Trains a classifier on one GPU."""

import torch
from torch import nn

DEVICE = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")


def make_model(width, classes):
    model = nn.Sequential(
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, classes),
    )
    return model.cuda()


def train(model, loader, steps):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaler = torch.cuda.amp.GradScaler()
    for step, (images, labels) in zip(range(steps), loader):
        images = images.cuda(non_blocking=True)
        labels = labels.to("cuda", non_blocking=True)

        with torch.cuda.amp.autocast():
            loss = nn.functional.cross_entropy(model(images), labels)

        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        if step % 100 == 0:
            print(step, loss.item(), torch.cuda.max_memory_allocated())


if __name__ == "__main__":
    torch.cuda.manual_seed_all(7)
    batch = torch.randn(8, 16), torch.zeros(8, dtype=torch.long)
    train(make_model(16, 4), [batch] * 3, 3)
