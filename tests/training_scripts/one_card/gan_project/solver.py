import torch
from base import Solver
from networks import Discriminator, Generator
from torch import nn


class GanSolver(Solver):
    def build(self):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.G = Generator().to(self.device)
        self.D = Discriminator().to(self.device)
        self.loss = nn.BCEWithLogitsLoss()
        self.optim_g = torch.optim.Adam(self.G.parameters(), lr=0.01)
        self.optim_d = torch.optim.Adam(self.D.parameters(), lr=0.01)

    def step(self, real):
        real = real.to(self.device)
        z = real.flip(1)
        ones, zeros = torch.ones(len(real), 1), torch.zeros(len(real), 1)
        ones, zeros = ones.to(self.device), zeros.to(self.device)
        fake = self.G(z)
        self.optim_d.zero_grad()
        loss_d = self.loss(self.D(real), ones) + self.loss(self.D(fake.detach()), zeros)
        loss_d.backward()
        self.optim_d.step()
        self.optim_g.zero_grad()
        loss_g = self.loss(self.D(fake), ones)
        loss_g.backward()
        self.optim_g.step()

    def save(self, path):
        torch.save([self.G.state_dict(), self.D.state_dict()], path)
