"""Image classification with DistributedDataParallel, started by torchrun."""

import argparse
import os
import time

import torch
import torch.backends.cudnn as cudnn
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

parser = argparse.ArgumentParser(description="ImageNet training")
parser.add_argument("--epochs", default=1, type=int)
parser.add_argument("-b", "--batch-size", default=8, type=int)
parser.add_argument("--lr", default=0.05, type=float)
parser.add_argument("--momentum", default=0.9, type=float)
parser.add_argument("--wd", default=1e-4, type=float)
parser.add_argument("-j", "--workers", default=0, type=int)
parser.add_argument("-p", "--print-freq", default=1, type=int)
parser.add_argument("--dist-backend", default="nccl", type=str)
parser.add_argument("--dist-url", default="env://", type=str)
parser.add_argument("--seed", default=7, type=int)
parser.add_argument("--output", default="checkpoint.pth.tar")


class FakeImages(Dataset):
    def __init__(self, length=48, classes=10):
        self.length, self.classes = length, classes

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        g = torch.Generator().manual_seed(index)
        return torch.randn(3, 32, 32, generator=g), index % self.classes


class BasicBlock(nn.Module):
    def __init__(self, inplanes, planes, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(inplanes, planes, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or inplanes != planes:
            self.downsample = nn.Sequential(
                nn.Conv2d(inplanes, planes, 1, stride, bias=False), nn.BatchNorm2d(planes)
            )

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self, classes=10, width=8):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)
        )
        self.layer1 = BasicBlock(width, width)
        self.layer2 = BasicBlock(width, 2 * width, 2)
        self.fc = nn.Linear(2 * width, classes)

    def forward(self, x):
        x = self.layer2(self.layer1(self.stem(x)))
        return self.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))


class AverageMeter:
    def __init__(self, name):
        self.name, self.sum, self.count = name, 0.0, 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n

    @property
    def avg(self):
        return self.sum / max(self.count, 1)


def accuracy(output, target, topk=(1,)):
    with torch.no_grad():
        maxk = max(topk)
        _, pred = output.topk(maxk, 1, True, True)
        correct = pred.t().eq(target.view(1, -1).expand_as(pred.t()))
        return [correct[:k].reshape(-1).float().sum(0) * 100.0 / target.size(0) for k in topk]


def train(loader, model, criterion, optimizer, epoch, args, local_rank):
    losses, top1 = AverageMeter("Loss"), AverageMeter("Acc@1")
    model.train()
    end = time.time()
    for i, (images, target) in enumerate(loader):
        images = images.cuda(local_rank, non_blocking=True).to(memory_format=torch.channels_last)
        target = target.cuda(local_rank, non_blocking=True)
        output = model(images)
        loss = criterion(output, target)
        acc1, _ = accuracy(output, target, topk=(1, 5))
        losses.update(loss.item(), images.size(0))
        top1.update(acc1.item(), images.size(0))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        torch.cuda.synchronize()
        if i % args.print_freq == 0 and dist.get_rank() == 0:
            print(
                f"Epoch [{epoch}][{i}] loss {losses.avg:.4f} acc {top1.avg:.2f} {time.time() - end:.2f}s"
            )


@torch.no_grad()
def validate(loader, model, criterion, local_rank):
    model.eval()
    total = torch.zeros(2, device=f"cuda:{local_rank}")
    for images, target in loader:
        images, target = images.cuda(local_rank), target.cuda(local_rank)
        output = model(images)
        total += torch.stack([criterion(output, target), accuracy(output, target)[0]])
    dist.all_reduce(total, op=dist.ReduceOp.SUM)
    return (total / dist.get_world_size() / len(loader)).tolist()


def main():
    args = parser.parse_args()
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.manual_seed(args.seed)
    torch.cuda.manual_seed_all(args.seed)
    cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.cuda.set_device(local_rank)
    dist.init_process_group(backend=args.dist_backend, init_method=args.dist_url)

    model = ResNet().cuda(local_rank)
    model = nn.SyncBatchNorm.convert_sync_batchnorm(model) if dist.get_world_size() > 1 else model
    model = model.to(memory_format=torch.channels_last)
    model = DDP(model, device_ids=[local_rank], output_device=local_rank)
    criterion = nn.CrossEntropyLoss().cuda(local_rank)
    optimizer = torch.optim.SGD(
        model.parameters(), args.lr, momentum=args.momentum, weight_decay=args.wd
    )
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=30, gamma=0.1)

    dataset = FakeImages()
    sampler = DistributedSampler(dataset)
    loader = DataLoader(
        dataset, args.batch_size, num_workers=args.workers, pin_memory=True, sampler=sampler
    )
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        train(loader, model, criterion, optimizer, epoch, args, local_rank)
        loss, acc = validate(loader, model, criterion, local_rank)
        scheduler.step()
        if dist.get_rank() == 0:
            print(f"validation loss {loss:.4f} acc {acc:.2f}")
            torch.save({"epoch": epoch, "state_dict": model.state_dict()}, args.output)
        dist.barrier()
        checkpoint = torch.load(args.output, map_location=f"cuda:{local_rank}")
        model.load_state_dict(checkpoint["state_dict"])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
