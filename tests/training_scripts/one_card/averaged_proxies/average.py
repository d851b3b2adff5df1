import torch


class Average:
    def __init__(self, model, decay):
        self.decay = decay
        self.kept = {n: p.detach().clone() for n, p in model.named_parameters()}

    @torch.no_grad()
    def update(self, model):
        for name, parameter in model.named_parameters():
            self.kept[name].mul_(self.decay).add_(parameter, alpha=1 - self.decay)
