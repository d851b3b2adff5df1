"""Has been taken to the NPU in part, as projects are."""

import torch
import torch_npu
from torch import nn


def is_npu_available() -> bool:
    return hasattr(torch, "npu") and torch.npu.is_available()


def kind() -> str:
    if is_npu_available():
        return "npu"
    if torch.cuda.is_available():
        torch.cuda.set_device(0)
        return "cuda"
    return "cpu"


device = torch.device(kind())
if device.type == "npu":
    torch.npu.synchronize()
elif device.type == "cuda":
    torch.cuda.synchronize()

if is_npu_available():
    model = nn.Linear(4, 2).npu()
else:
    model = nn.Linear(4, 2).cuda()


def seed(number: int) -> None:
    if torch.npu.is_available():
        torch.npu.manual_seed(number)
        return
    torch.cuda.manual_seed(number)


seed(0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    if not is_npu_available():
        torch.cuda.empty_cache()
    model(torch.ones(2, 4).to(device)).sum().backward()
    optimizer.step()
