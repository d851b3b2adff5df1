"""Denoising diffusion with a U-Net, mixed precision and an average of the weights."""

import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.cuda.amp import GradScaler, autocast

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
TIMESTEPS = 50


def timestep_embedding(t, dim):
    half = dim // 2
    freqs = torch.exp(-math.log(10000) * torch.arange(half, device=t.device).float() / half)
    args = t[:, None].float() * freqs[None]
    return torch.cat([torch.cos(args), torch.sin(args)], dim=-1)


class ResBlock(nn.Module):
    def __init__(self, cin, cout, emb):
        super().__init__()
        self.norm1 = nn.GroupNorm(4, cin)
        self.conv1 = nn.Conv2d(cin, cout, 3, padding=1)
        self.emb = nn.Linear(emb, cout)
        self.norm2 = nn.GroupNorm(4, cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, padding=1)
        self.skip = nn.Conv2d(cin, cout, 1) if cin != cout else nn.Identity()

    def forward(self, x, emb):
        h = self.conv1(F.silu(self.norm1(x)))
        h = h + self.emb(F.silu(emb))[:, :, None, None]
        h = self.conv2(F.silu(self.norm2(h)))
        return h + self.skip(x)


class AttentionBlock(nn.Module):
    def __init__(self, channels, heads=2):
        super().__init__()
        self.heads = heads
        self.norm = nn.GroupNorm(4, channels)
        self.qkv = nn.Conv1d(channels, channels * 3, 1)
        self.proj = nn.Conv1d(channels, channels, 1)

    def forward(self, x):
        b, c, h, w = x.shape
        flat = self.norm(x).reshape(b, c, h * w)
        q, k, v = self.qkv(flat).reshape(b * self.heads, 3 * c // self.heads, h * w).chunk(3, dim=1)
        scale = 1 / math.sqrt(math.sqrt(c // self.heads))
        weight = torch.einsum("bct,bcs->bts", q * scale, k * scale)
        weight = torch.softmax(weight.float(), dim=-1).type(weight.dtype)
        out = torch.einsum("bts,bcs->bct", weight, v).reshape(b, c, h * w)
        return x + self.proj(out).reshape(b, c, h, w)


class UNet(nn.Module):
    def __init__(self, width=8, emb=16):
        super().__init__()
        self.width = width
        self.time = nn.Sequential(nn.Linear(width, emb), nn.SiLU(), nn.Linear(emb, emb))
        self.inp = nn.Conv2d(3, width, 3, padding=1)
        self.down = ResBlock(width, width, emb)
        self.mid1 = ResBlock(width, 2 * width, emb)
        self.attn = AttentionBlock(2 * width)
        self.mid2 = ResBlock(2 * width, width, emb)
        self.up = ResBlock(2 * width, width, emb)
        self.out = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x, t):
        emb = self.time(timestep_embedding(t, self.width))
        h0 = self.down(self.inp(x), emb)
        h = F.avg_pool2d(h0, 2)
        h = self.mid2(self.attn(self.mid1(h, emb)), emb)
        h = F.interpolate(h, scale_factor=2, mode="nearest")
        return self.out(self.up(torch.cat([h, h0], dim=1), emb))


class EMA:
    def __init__(self, model, decay=0.99):
        self.model = copy.deepcopy(model).eval()
        self.decay = decay
        for p in self.model.parameters():
            p.requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for ema_v, model_v in zip(self.model.state_dict().values(), model.state_dict().values()):
            ema_v.copy_(ema_v * self.decay + (1.0 - self.decay) * model_v.to(ema_v.device))


def main():
    torch.manual_seed(5)
    torch.cuda.manual_seed(5)
    torch.backends.cudnn.benchmark = True
    betas = torch.linspace(1e-4, 0.02, TIMESTEPS).cuda()
    alphas_cumprod = torch.cumprod(1.0 - betas, dim=0)
    model = UNet().to(device)
    ema = EMA(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaler = GradScaler(init_scale=1024.0)
    for step in range(4):
        x0 = torch.rand(4, 3, 16, 16).cuda(non_blocking=True) * 2 - 1
        t = torch.randint(0, TIMESTEPS, (x0.size(0),), device=x0.device)
        noise = torch.randn_like(x0)
        a = alphas_cumprod[t][:, None, None, None]
        xt = a.sqrt() * x0 + (1 - a).sqrt() * noise
        optimizer.zero_grad(set_to_none=True)
        with autocast():
            loss = F.mse_loss(model(xt, t), noise)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        ema.update(model)
        print(f"step {step}: loss {loss.item():.4f}, scale {scaler.get_scale()}")
    torch.save(ema.model.state_dict(), "ema.pt")
    torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
