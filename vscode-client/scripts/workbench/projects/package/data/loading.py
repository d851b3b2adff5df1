import torch


def batches(tensors):
    for tensor in tensors:
        yield tensor.cuda()
    torch.cuda.synchronize()
