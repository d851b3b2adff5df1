import torch
import torch.distributed as dist

from data.loading import batches
from models.encoder import Encoder


def main():
    dist.init_process_group(backend="nccl")
    torch.cuda.set_device(dist.get_rank())
    encoder = Encoder(16).cuda()
    for batch in batches([torch.randn(4, 16)]):
        print(encoder(batch).sum())


main()
