"""Asks what kind of device something is on."""

import torch
from torch import nn

device = torch.device("cuda")
host = torch.ones(2, 4)

if device.type == "mps":
    host = host.to("cuda:1")
elif device.type == "cuda":
    torch.cuda.synchronize()
else:
    torch.cuda.empty_cache()

if host.device.type == "cpu":
    copy = host.cuda()
else:
    copy = host.to("cuda:0")

if not host.is_cuda:
    other = host.to("cuda")
if copy.is_cuda:
    other = copy.cuda()

match device.type:
    case "xpu":
        torch.cuda.init()
    case "cuda":
        torch.cuda.current_device()
    case _:
        torch.cuda.ipc_collect()

chosen = (
    host.cuda(1)
    if device.type == "hpu"
    else host.cuda()
)  # fmt: skip


def seeded(device_type):
    if device_type == "xla":
        return torch.cuda.manual_seed_all(1)
    return torch.manual_seed(1)


seeded(device.type)
model = nn.Linear(4, 2).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    model(chosen).sum().backward()
    optimizer.step()
