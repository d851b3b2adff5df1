"""Mixed precision with apex, as it was done before PyTorch had it."""

import argparse

import torch
import torch.nn as nn
from apex import amp
from apex.optimizers import FusedAdam

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=1e-3)
parser.add_argument("--max-grad-norm", type=float, default=1.0)
args = parser.parse_args()

torch.manual_seed(2)
torch.backends.cudnn.benchmark = True

model = nn.Sequential(
    nn.Conv2d(3, 8, 3, padding=1),
    nn.BatchNorm2d(8),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(4),
    nn.Flatten(),
    nn.Linear(128, 10),
).cuda()
optimizer = FusedAdam(model.parameters(), lr=args.lr, weight_decay=1e-4)
model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
criterion = nn.CrossEntropyLoss().cuda()
for step in range(5):
    images = torch.randn(8, 3, 16, 16).cuda()
    labels = torch.randint(0, 10, (8,)).cuda()
    output = model(images)
    loss = criterion(output, labels)
    optimizer.zero_grad()
    with amp.scale_loss(loss, optimizer) as scaled_loss:
        scaled_loss.backward()
    torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), args.max_grad_norm)
    optimizer.step()
    print(f"{step}: {loss.item():.4f}")
torch.cuda.synchronize()
