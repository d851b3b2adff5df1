from torch import nn


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Linear(4, width)
        self.outer = nn.Linear(width, 2)

    def forward(self, x):
        return self.outer(self.inner(x).relu())

    def predict(self, x):
        return self(x).clamp(-4, 4)


def build_model(width=8):
    return Net(width)
