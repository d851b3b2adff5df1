"""Small projects of the kinds that people migrate, as files by name."""

import stat
from collections.abc import Mapping
from pathlib import Path

CLASSIFIER = {
    "main.py": """\
import argparse
import os

import torch
import torch.nn as nn
from torch.cuda.amp import GradScaler, autocast
from torch.utils.data import DataLoader

from data.folders import pictures
from models import build

parser = argparse.ArgumentParser()
parser.add_argument("--gpu", default=0, type=int)
parser.add_argument("--epochs", default=90, type=int)


def train(loader, model, criterion, optimizer, scaler):
    model.train()
    for images, target in loader:
        images = images.cuda(non_blocking=True)
        target = target.cuda(non_blocking=True)
        with autocast():
            loss = criterion(model(images), target)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


def main():
    args = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    torch.cuda.set_device(args.gpu)
    torch.cuda.manual_seed_all(1)
    model = nn.DataParallel(build()).cuda()
    model = model.to(memory_format=torch.channels_last)
    criterion = nn.CrossEntropyLoss().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    loader = DataLoader(pictures("train"), batch_size=256, shuffle=True, pin_memory=True)
    scaler = GradScaler()
    for epoch in range(args.epochs):
        train(loader, model, criterion, optimizer, scaler)
    torch.save(model.state_dict(), os.path.join("out", "model.pt"))
    print(torch.cuda.max_memory_allocated() / 2**20, "MB")


if __name__ == "__main__":
    main()
""",
    "models/__init__.py": "from models.net import build\n",
    "models/net.py": """\
import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Conv2d(3, 8, 3)
        self.head = nn.Linear(8, 10)

    def forward(self, x):
        x = self.features(x).mean((2, 3))
        if x.is_cuda:
            x = x.half()
        return self.head(x)


def build():
    return Net()
""",
    "data/__init__.py": "",
    "data/folders.py": "def pictures(part):\n    raise NotImplementedError(part)\n",
    "run.sh": "#!/bin/sh\nexport CUDA_VISIBLE_DEVICES=0,1\npython main.py --epochs 10\n",
    "requirements.txt": "torch==2.8.0\nnvidia-ml-py\n",
    "Dockerfile": "FROM nvidia/cuda:12.1.0-runtime-ubuntu22.04\nCOPY . /work\nCMD python main.py\n",
    "README.md": "# Classifier\n\nRun `main.py --gpu 0` with `torch.cuda`.\n",
    "weights.bin": "\x00\x01\x02 torch.cuda \xff",
}
"""Pictures, mixed precision, several cards in one process, a container."""

LANGUAGE_MODEL = {
    "train.py": """\
import time

import torch
import yaml
from torch.utils.data import DataLoader

from corpus import Corpus
from model import Model


def batches(corpus, device):
    return DataLoader(corpus, batch_size=20, shuffle=True)


def evaluate(model, corpus, device):
    model.eval()
    total = 0.0
    with torch.no_grad():
        for text in batches(corpus, device):
            total += model(text.to(device)).item()
    return total


def main():
    config = yaml.safe_load(open("config.yaml"))
    device = torch.device(config["device"] if torch.cuda.is_available() else "cpu")
    model = Model(config["width"]).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config["rate"])
    start = torch.cuda.Event(enable_timing=True)
    for epoch in range(config["epochs"]):
        start.record()
        for text in batches(Corpus("train"), device):
            loss = model(text.to(device))
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        torch.cuda.synchronize()
        print(epoch, time.time(), evaluate(model, Corpus("valid"), device))
        torch.cuda.empty_cache()


main()
""",
    "model.py": """\
import torch
import torch.nn as nn
import torch.nn.functional as F


class Norm(nn.Module):
    def __init__(self, width, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x):
        variance = x.pow(2).mean(-1, keepdim=True)
        return self.weight * (x * torch.rsqrt(variance + self.eps))


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = Norm(width)
        self.gate = nn.Linear(width, width)
        self.up = nn.Linear(width, width)

    def forward(self, x):
        x = self.norm(x)
        return (F.silu(self.gate(x)) * self.up(x)).mean()
""",
    "corpus.py": "class Corpus(list):\n    def __init__(self, part):\n        super().__init__()\n",
    "config.yaml": "device: cuda  # or cpu\nwidth: 64\nrate: 0.001\nepochs: 3\n",
    "scripts/launch.sh": "#!/bin/bash\nnvidia-smi\nCUDA_LAUNCH_BLOCKING=1 python ../train.py\n",
}
"""A loop at the top of one script, settings in YAML, operators that can be fused."""

ADVERSARIES = {
    "dcgan/main.py": """\
import torch
import torch.nn as nn
import torch.utils.data
from torch.nn.parallel import data_parallel

ngpu = 1
device = torch.device("cuda:0" if torch.cuda.is_available() and ngpu > 0 else "cpu")


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Linear(100, 64)

    def forward(self, x):
        if x.is_cuda and ngpu > 1:
            return data_parallel(self.main, x, range(ngpu))
        return self.main(x)


netG = Generator().to(device)
netD = nn.Linear(64, 1).to(device)
optimizerD = torch.optim.Adam(netD.parameters())
optimizerG = torch.optim.Adam(netG.parameters())
loader = torch.utils.data.DataLoader(torch.randn(64, 64), batch_size=8, shuffle=True)
for epoch in range(2):
    for real in loader:
        netD.zero_grad()
        error = netD(real.to(device)).mean() - netD(netG(torch.randn(8, 100, device=device))).mean()
        error.backward()
        optimizerD.step()
    torch.save(netG.state_dict(), "netG.pth")
""",
    "dcgan/requirements.txt": "torch\ntorchvision\n",
}
"""Two models, all at the top of a module."""

PROCESSES = {
    "ddp/train.py": """\
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP


def run(rank, world_size):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["NCCL_DEBUG"] = "INFO"
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
    torch.cuda.set_device(rank)
    model = DDP(torch.nn.Linear(10, 10).to(rank), device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loss = model(torch.randn(20, 10).to(f"cuda:{rank}")).sum()
    loss.backward()
    optimizer.step()
    if dist.get_backend() == "nccl":
        print("ok")
    dist.destroy_process_group()


if __name__ == "__main__":
    world_size = torch.cuda.device_count()
    mp.spawn(run, args=(world_size,), nprocs=world_size)
""",
    "ddp/job.slurm": "#!/bin/bash\n#SBATCH --gres=gpu:4\nsrun python train.py\n",
    "ddp/run.sh": "#!/bin/bash\nexport NCCL_SOCKET_IFNAME=eth0\n"
    "torchrun --nproc_per_node 4 train.py\n",
}
"""A process for each card already."""

KERNELS = {
    "setup.py": """\
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

setup(
    name="lltm",
    ext_modules=[CUDAExtension("lltm_cuda", ["lltm_cuda.cpp", "kernel.cu"])],
    cmdclass={"build_ext": BuildExtension},
)
""",
    "lltm_cuda.cpp": """\
#include <torch/extension.h>

torch::Tensor lltm_forward(torch::Tensor input);

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("forward", &lltm_forward, "LLTM forward (CUDA)");
}
""",
    "kernel.cu": "#include <torch/extension.h>\n__global__ void k(float *x) { x[0] = 1; }\n",
    "lltm.py": """\
import lltm_cuda
import torch


def run(x):
    return lltm_cuda.forward(x.cuda())


for seed in range(3):
    torch.cuda.manual_seed(seed)
    print(run(torch.ones(3)))
""",
}
"""An extension that a person has to port."""

PROJECTS: Mapping[str, Mapping[str, str]] = {
    "classifier": CLASSIFIER,
    "language-model": LANGUAGE_MODEL,
    "adversaries": ADVERSARIES,
    "processes": PROCESSES,
    "kernels": KERNELS,
}


def write_project(files: Mapping[str, str], folder: Path) -> Path:
    """Write files; scripts can be started, and what is no text is bytes."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("latin-1" if name.endswith(".bin") else "utf-8"))
        if name.endswith(".sh"):
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return folder
