"""`DataParallel` if an option asks for it, and the model without it beside."""

import argparse
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--data-parallel", action="store_true")
args = parser.parse_args([])


def main(args):
    os.environ["CUDA_VISIBLE_DEVICES"] = "0"
    torch.manual_seed(8)
    x = torch.randn(64, 3)
    loader = DataLoader(
        TensorDataset(x, x**2), batch_size=int(os.environ.get("BATCH", "16")), shuffle=True
    )
    model = nn.Linear(3, 3)
    model_without_ddp = model
    if args.data_parallel and torch.cuda.device_count() > 1:
        model = nn.DataParallel(model)
        model_without_ddp = model.module
    model.cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.l1_loss(model(x.cuda()), y.cuda()).backward()
            optimizer.step()
    if isinstance(model, nn.DataParallel):
        state = model.module.state_dict()
    else:
        state = model.state_dict()
    torch.save([state, model_without_ddp.state_dict()], "end.pt")


if __name__ == "__main__":
    main(args)
