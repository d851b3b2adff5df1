"""Uses libraries for CUDA where they are there, and what older releases had."""

import torch
import torch.nn.functional as F
from torch import nn

try:
    import flash_attn
except ImportError:
    flash_attn = None

try:
    import xformers.ops as xops

    HAS_XFORMERS = True
except ImportError:
    HAS_XFORMERS = False


def attend(q, k, v):
    if flash_attn is not None:
        return flash_attn.flash_attn_func(q, k, v)
    if HAS_XFORMERS:
        return xops.memory_efficient_attention(q, k, v)
    return F.scaled_dot_product_attention(q, k, v)


def norm(size):
    try:
        from apex.normalization import FusedLayerNorm
    except ImportError:
        return nn.LayerNorm(size)
    return FusedLayerNorm(size)


if torch.__version__ < "1.6":
    from apex import amp
if torch.version.cuda:
    torch.cuda.init()
if torch.version.hip:
    torch.cuda.empty_cache()
if hasattr(torch, "mlu"):
    torch.cuda.synchronize()

model = norm(8).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    x = torch.randn(1, 2, 4, 8, device="cuda")
    model(attend(x, x, x)).square().mean().backward()
    optimizer.step()
