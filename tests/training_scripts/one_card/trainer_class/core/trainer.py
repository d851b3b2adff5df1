import os

import torch
from torch import nn
from tqdm import tqdm


class Trainer:
    def __init__(self, model, optimizer, train_loader, test_loader, device, out):
        self.model = model
        self.optimizer = optimizer
        self.train_loader = train_loader
        self.test_loader = test_loader
        self.device = device
        self.criterion = nn.CrossEntropyLoss()
        self.out = out
        if not os.path.exists(out):
            os.makedirs(out)
        self.history = []

    def fit(self, epochs):
        for epoch in range(epochs):
            loss = self.run_epoch(epoch)
            accuracy = self.evaluate()
            self.history.append((loss, accuracy))
            with open(os.path.join(self.out, "log.csv"), "a") as log:
                log.write(f"{epoch},{loss:.6f},{accuracy:.4f}\n")

    def run_epoch(self, epoch):
        self.model.train()
        total, count = 0.0, 0
        for x, y in tqdm(self.train_loader, desc=f"epoch {epoch}"):
            x, y = x.to(self.device), y.to(self.device)
            loss = self.criterion(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item() * len(y)
            count += len(y)
        return total / count

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        right = 0
        for x, y in self.test_loader:
            right += (self.model(x.to(self.device)).argmax(1).cpu() == y).sum().item()
        return right / len(self.test_loader.dataset)

    def save(self, path):
        state = {"model": self.model.state_dict(), "history": torch.tensor(self.history)}
        torch.save(state, path)
