import os
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Config:
    epochs: int = 3
    batch: int = int(os.environ.get("BATCH", "16"))
    lr: float = 0.05
    device: str = "cuda:0" if torch.cuda.is_available() else "cpu"

    def build_model(self):
        return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))

    def build_optimizer(self, model):
        weights = [p for n, p in model.named_parameters() if n.endswith("weight")]
        biases = [p for n, p in model.named_parameters() if not n.endswith("weight")]
        groups = [{"params": weights, "weight_decay": 0.01}, {"params": biases}]
        return torch.optim.AdamW(groups, lr=self.lr)
