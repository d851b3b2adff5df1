import torch
from torch import nn


class BaseTrainer:
    def __init__(self, model, loader, config):
        self.config = config
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model = model.to(self.device)
        self.loader = loader
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=config["lr"])

    def train(self):
        for epoch in range(self.config["epochs"]):
            for batch in self.loader:
                self.train_step(batch)

    def train_step(self, batch):
        raise NotImplementedError

    def save(self, path):
        torch.save(self.model.state_dict(), path)


class RegressionTrainer(BaseTrainer):
    def __init__(self, model, loader, config):
        super().__init__(model, loader, config)
        self.criterion = nn.SmoothL1Loss()

    def train_step(self, batch):
        x, y = (each.to(self.device) for each in batch)
        self.optimizer.zero_grad()
        loss = self.criterion(self.model(x), y)
        loss.backward()
        self.optimizer.step()
