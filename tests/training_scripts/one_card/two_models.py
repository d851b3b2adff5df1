"""A generator and a discriminator, each with an optimizer of its own."""

import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

batch_size = int(os.environ.get("BATCH", "16"))
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(5)
data = TensorDataset(torch.randn(64, 2) * 0.5 + 1, torch.randn(64, 3))
loader = DataLoader(data, batch_size, True)

netG = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2)).to(device)
netD = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1)).to(device)


def weights_init(m):
    if isinstance(m, nn.Linear):
        nn.init.normal_(m.weight, 0.0, 0.3)


netG.apply(weights_init)
netD.apply(weights_init)
criterion = nn.BCEWithLogitsLoss()
optD = torch.optim.SGD(netD.parameters(), lr=0.05)
optG = torch.optim.SGD(netG.parameters(), lr=0.05)

for epoch in range(2):
    for i, (real, noise) in enumerate(loader, 0):
        real, noise = real.to(device), noise.to(device)
        netD.zero_grad()
        label = torch.ones(real.size(0), 1, device=device)
        errD_real = criterion(netD(real), label)
        errD_real.backward()
        fake = netG(noise)
        errD_fake = criterion(netD(fake.detach()), label * 0)
        errD_fake.backward()
        optD.step()
        netG.zero_grad()
        errG = criterion(netD(fake), label)
        errG.backward()
        optG.step()
        if i % 2 == 0:
            print(f"[{epoch}][{i}] Loss_D: {errD_real.item() + errD_fake.item():.4f}")
    torch.save(netG.state_dict(), "netG_%d.pt" % epoch)
torch.save([netG.state_dict(), netD.state_dict()], "end.pt")
