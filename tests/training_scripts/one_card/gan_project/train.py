"""Two models and two optimizers, whose steps are methods of a class that is derived."""

import torch
from data import get_loader
from solver import GanSolver

torch.manual_seed(2)
solver = GanSolver(get_loader(), epochs=3)
solver.train()
solver.save("end.pt")
