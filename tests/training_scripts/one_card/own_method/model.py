from torch import nn


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(4, 2)
        self.decoder = nn.Linear(2, 4)

    def encode(self, x):
        return self.encoder(x).tanh()

    def loss(self, x):
        return nn.functional.mse_loss(self.decoder(self.encode(x)), x)
