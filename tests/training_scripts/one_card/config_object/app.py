import torch
from dataset import Points
from torch import nn
from torch.utils.data import DataLoader


class Application:
    def __init__(self, config):
        torch.manual_seed(5)
        self.config = config
        self.model = config.build_model().to(config.device)
        self.optimizer = config.build_optimizer(self.model)
        self.loader = self.build_loader()
        self.criterion = nn.MSELoss()

    def build_loader(self):
        return DataLoader(Points(64), batch_size=self.config.batch, shuffle=True)

    def run(self):
        for self.epoch in range(self.config.epochs):
            for number, (x, y) in enumerate(self.loader):
                x, y = x.to(self.config.device), y.to(self.config.device)
                loss = self.criterion(self.model(x), y) / 2
                loss.backward()
                if number % 2 == 1:
                    self.optimizer.step()
                    self.optimizer.zero_grad()
        torch.save(self.model.state_dict(), "end.pt")
