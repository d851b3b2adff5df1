"""Train a small residual network on NVIDIA GPUs: an ordinary script for npulens to check.

Start it with `torchrun --nproc-per-node 4 train_gpu.py`, or with `python` for a single process.
"""

import argparse
import logging
import os
import random
import time

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.cuda.amp import GradScaler, autocast
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "max_split_size_mb:128"
os.environ.setdefault("NCCL_SOCKET_IFNAME", "eth0")

log = logging.getLogger("train")


def parse_arguments():
    parser = argparse.ArgumentParser(description="Train a residual network with CUDA.")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--backend", default="nccl", help="nccl on GPUs, gloo elsewhere")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--resume", metavar="CHECKPOINT")
    parser.add_argument("--output", default="checkpoint.pt")
    parser.add_argument("--measure", action="store_true", help="time a CUDA graph at the end")
    return parser.parse_args()


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    torch.backends.cuda.matmul.allow_tf32 = True


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.convolution = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        return x + F.relu(self.norm(self.convolution(x)))


class SmallResNet(nn.Module):
    def __init__(self, classes=10, width=64, depth=4):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, padding=1)
        self.blocks = nn.Sequential(*(Block(width) for _ in range(depth)))
        self.head = nn.Linear(width, classes)

    def forward(self, images):
        return self.head(self.blocks(self.stem(images)).mean(dim=(2, 3)))


class Prefetcher:
    """Copies the next batch to the GPU on a stream of its own while the current one is used."""

    def __init__(self, loader, device):
        self.loader = loader
        self.device = device
        self.stream = torch.cuda.Stream()

    def __iter__(self):
        ready = None
        for images, labels in self.loader:
            with torch.cuda.stream(self.stream):
                images = images.cuda(non_blocking=True)
                labels = labels.to(self.device, non_blocking=True)
                images = images.contiguous(memory_format=torch.channels_last)
            if ready is not None:
                yield ready
            torch.cuda.current_stream().wait_stream(self.stream)
            ready = images, labels
        if ready is not None:
            yield ready


def make_loader(batch_size, distributed):
    data = TensorDataset(torch.randn(2048, 3, 32, 32), torch.randint(0, 10, (2048,)))
    sampler = DistributedSampler(data) if distributed else None
    return DataLoader(data, batch_size, sampler is None, sampler, pin_memory=True, drop_last=True)


def train_epoch(model, batches, optimizer, scaler, dtype):
    model.train()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    total = torch.cuda.FloatTensor(1).zero_()
    for images, labels in batches:
        assert images.is_cuda, "the batch has to be on the GPU"
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.nvtx.range_push("forward")
        with autocast(dtype=dtype):
            loss = F.cross_entropy(model(images), labels)
        torch.cuda.nvtx.range_pop()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        total += loss.detach()
    end.record()
    torch.cuda.synchronize()
    return total.item(), begin.elapsed_time(end)


def measure_graph(model, batch_size):
    """Milliseconds for one inference replayed from a CUDA graph."""
    model.eval()
    images = torch.randn(batch_size, 3, 32, 32, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad():
        model(images)
        with torch.cuda.graph(graph):
            model(images)
    begin = time.perf_counter()
    graph.replay()
    torch.cuda.current_stream().synchronize()
    return (time.perf_counter() - begin) * 1000


def main():
    logging.basicConfig(level=logging.INFO)
    args = parse_arguments()
    if not torch.cuda.is_available():
        raise SystemExit("this script needs a CUDA device")
    seed_everything(args.seed)

    local_rank = int(os.environ.get("LOCAL_RANK", 0))
    distributed = "WORLD_SIZE" in os.environ
    device = torch.device(args.device, local_rank)
    torch.cuda.set_device(local_rank)
    if distributed:
        dist.init_process_group(backend=args.backend)
        if dist.get_backend() == "nccl":
            log.info("NCCL %s", torch.cuda.nccl.version())
    dtype = torch.bfloat16 if torch.cuda.get_device_capability() >= (8, 0) else torch.float16
    log.info("%s, CUDA %s", torch.cuda.get_device_name(), torch.version.cuda)

    model = SmallResNet().to(device)
    if args.resume:
        checkpoint = torch.load(args.resume, map_location=f"cuda:{local_rank}")
        model.load_state_dict(checkpoint["model"])
        torch.cuda.set_rng_state(checkpoint["cuda_rng"])
    if distributed:
        model = DistributedDataParallel(model, device_ids=[local_rank])
    elif torch.cuda.device_count() > 1:
        model = nn.DataParallel(model)

    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scaler = GradScaler(enabled=device.type == "cuda")
    batches = Prefetcher(make_loader(args.batch_size, distributed), device)
    for epoch in range(args.epochs):
        torch.cuda.reset_peak_memory_stats()
        loss, milliseconds = train_epoch(model, batches, optimizer, scaler, dtype)
        peak = torch.cuda.max_memory_allocated() / 2**20
        log.info("epoch %d: loss %.3f, %.0f ms, %.0f MiB", epoch, loss, milliseconds, peak)
        torch.cuda.empty_cache()

    if local_rank == 0:
        state = {"model": model.state_dict(), "cuda_rng": torch.cuda.get_rng_state()}
        torch.save(state, args.output)
        if args.measure:
            log.info("%.2f ms with a CUDA graph", measure_graph(model, args.batch_size))
            print(torch.cuda.memory_summary(abbreviated=True))
    if distributed:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
