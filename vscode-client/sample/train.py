"""A small transformer block, trained on a GPU: something for npulens to move to the NPU."""

import torch
import torch.nn as nn
from torch.cuda.amp import GradScaler, autocast


class RMSNorm(nn.Module):
    def __init__(self, width, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x):
        variance = x.pow(2).mean(-1, keepdim=True)
        return self.weight * (x * torch.rsqrt(variance + self.eps))


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = RMSNorm(width)
        self.inner = nn.Linear(width, 4 * width)
        self.outer = nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.outer(torch.relu(self.inner(self.norm(x))))


def main():
    torch.cuda.manual_seed_all(7)
    device = torch.device("cuda")
    model = Block(256).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaler = GradScaler()
    for step in range(100):
        batch = torch.randn(32, 128, 256, device=device)
        with autocast():
            errors = (model(batch) - batch).square().mean(-1)
            largest = errors[errors > errors.mean()]
            loss = largest.mean()
        optimizer.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    torch.cuda.synchronize()
    print(f"loss {loss.item():.4f}, peak {torch.cuda.max_memory_allocated() >> 20} MiB")


if __name__ == "__main__":
    main()
