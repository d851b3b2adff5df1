"""Several GPUs the old way."""

import os

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

os.environ["CUDA_VISIBLE_DEVICES"] = "0"


class RandomDataset(Dataset):
    def __init__(self, size, length):
        self.len = length
        self.data = torch.randn(length, size)
        self.target = self.data.sum(dim=1, keepdim=True)

    def __getitem__(self, index):
        return self.data[index], self.target[index]

    def __len__(self):
        return self.len


class Model(nn.Module):
    def __init__(self, input_size, output_size):
        super().__init__()
        self.fc1 = nn.Linear(input_size, 16)
        self.fc2 = nn.Linear(16, output_size)

    def forward(self, input):
        output = self.fc2(torch.tanh(self.fc1(input)))
        print("\tIn Model: input size", input.size(), "output size", output.size())
        return output


torch.manual_seed(4)
model = Model(6, 1)
if torch.cuda.device_count() > 1:
    print("Let's use", torch.cuda.device_count(), "GPUs!")
model = nn.DataParallel(model, device_ids=list(range(torch.cuda.device_count())))
model = model.cuda()
optimizer = torch.optim.SGD(model.module.parameters(), lr=0.05)
loader = DataLoader(RandomDataset(6, 24), batch_size=24, shuffle=True, pin_memory=True)
criterion = nn.MSELoss().cuda()
for epoch in range(4):
    for data, target in loader:
        data = data.cuda(non_blocking=True)
        target = target.cuda(non_blocking=True)
        loss = criterion(model(data), target).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"Outside: {data.device.type} {loss.item():.4f}")
    torch.save(model.module.state_dict(), "model.pth")
    model.module.load_state_dict(torch.load("model.pth", map_location=lambda s, l: s.cuda()))
