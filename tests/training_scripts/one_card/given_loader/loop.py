from torch.nn import functional as F
from tqdm import tqdm


def train_epoch(model, loader, optimizer):
    total = 0.0
    bar = tqdm(loader, desc="train")
    for x, y in bar:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)
