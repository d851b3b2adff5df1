"""A class that makes its model and trains it, with a log and files."""

import logging
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
BATCH = int(os.environ.get("BATCH", "16"))


class Solver:
    def __init__(self, data, folder):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.loader = DataLoader(data, batch_size=BATCH, shuffle=True, drop_last=True)
        self.folder = folder
        if not os.path.exists(folder):
            os.mkdir(folder)
        self.build()

    def build(self):
        self.model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        self.model.to(self.device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.01)
        self.criterion = nn.MSELoss()

    def train_epoch(self, epoch):
        self.model.train()
        total = 0.0
        for step, (x, y) in enumerate(self.loader):
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(x.to(self.device)), y.to(self.device))
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / len(self.loader)

    def train(self):
        history = []
        with open(os.path.join(self.folder, "log.txt"), "w") as log:
            for epoch in range(3):
                history.append(self.train_epoch(epoch))
                log.write(f"{epoch} {history[-1]:.4f}\n")
                logging.info("epoch %d", epoch)
        self.save("end.pt", history)

    def save(self, path, history):
        torch.save({"model": self.model.state_dict(), "history": torch.tensor(history)}, path)


if __name__ == "__main__":
    torch.manual_seed(4)
    x = torch.randn(64, 4)
    solver = Solver(TensorDataset(x, x[:, :2] * 2), "made")
    solver.train()
