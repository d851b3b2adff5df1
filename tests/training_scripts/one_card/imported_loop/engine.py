import torch
import torch.nn.functional as F


def train_one_epoch(net, loader, optim, epoch):
    net.train()
    running = 0.0
    for step, batch in enumerate(loader):
        optim.zero_grad()
        loss = F.mse_loss(net(batch["x"].cuda()), batch["y"].cuda())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optim.step()
        running += loss.item()
    return running / len(loader)


def evaluate(net, loader):
    net.eval()
    total = 0.0
    with torch.no_grad():
        for batch in loader:
            total += F.mse_loss(net.predict(batch["x"].cuda()), batch["y"].cuda()).item()
    return total / len(loader)
