"""Small scripts for CUDA, one for each way to write something; each prints what it computes.

They run on the CPU as they are, unless they are among `NEEDS_CUDA`.
"""

CHOICE = 'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")\n'
MODEL = """
torch.manual_seed(0)
model = torch.nn.Linear(4, 2).to(device)
x = torch.randn(3, 4).to(device)
"""
STEP = """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.4f}")
"""
TRAIN = MODEL + STEP
USE = "print(torch.ones(2, device=device).sum().item())\n"

SCRIPTS = {
    # the device that is chosen
    "choice": CHOICE + TRAIN,
    "choice of a string": 'device = "cuda" if torch.cuda.is_available() else "cpu"\n' + TRAIN,
    "choice of a card": (
        'device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")\n' + TRAIN
    ),
    "choice of a card by name": (
        'device = "cuda:0" if torch.cuda.is_available() else "cpu"\n' + TRAIN
    ),
    "choice of a number": (
        'rank = 0\ndevice = f"cuda:{rank}" if torch.cuda.is_available() else "cpu"\n' + TRAIN
    ),
    "choice with a wish": (
        "wish = True\n"
        'device = torch.device("cuda" if wish and torch.cuda.is_available() else "cpu")\n' + TRAIN
    ),
    "choice in arms": (
        'if torch.cuda.is_available():\n    device = torch.device("cuda")\nelse:\n'
        '    device = torch.device("cpu")\n' + TRAIN
    ),
    "choice in a function": (
        'def choose():\n    return torch.device("cuda" if torch.cuda.is_available() else "cpu")\n'
        "device = choose()\n" + TRAIN
    ),
    "choice by options": (
        "import argparse\nparser = argparse.ArgumentParser()\n"
        'parser.add_argument("--no-cuda", action="store_true")\nargs = parser.parse_args([])\n'
        "use_cuda = not args.no_cuda and torch.cuda.is_available()\n"
        'device = torch.device("cuda" if use_cuda else "cpu")\n' + TRAIN
    ),
    "choice of an attribute": (
        "class Trainer:\n    def __init__(self):\n"
        '        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")\n'
        "device = Trainer().device\n" + TRAIN
    ),
    # what is moved under a condition
    "moved if there": (
        "torch.manual_seed(0)\nmodel = torch.nn.Linear(4, 2)\nx = torch.randn(3, 4)\n"
        "if torch.cuda.is_available():\n    model = model.cuda()\n    x = x.cuda()\n" + STEP
    ),
    "moved to a string if there": (
        "torch.manual_seed(0)\nmodel = torch.nn.Linear(4, 2)\nx = torch.randn(3, 4)\n"
        'if torch.cuda.is_available():\n    model.to("cuda")\n    x = x.to("cuda")\n' + STEP
    ),
    "moved by a flag": (
        "torch.manual_seed(0)\ncuda = torch.cuda.is_available()\nmodel = torch.nn.Linear(4, 2)\n"
        "x = torch.randn(3, 4)\nif cuda:\n    model.cuda()\n    x = x.cuda(non_blocking=True)\n"
        + STEP
    ),
    "made there": (
        "torch.manual_seed(0)\nx = torch.arange(4.0)\nif torch.cuda.is_available():\n"
        '    x = torch.arange(4.0, device="cuda")\nprint(x.sum().item())\n'
    ),
    # seeds
    "seeds": CHOICE + "torch.manual_seed(1)\ntorch.cuda.manual_seed_all(1)\n" + USE,
    "seeds of several": (
        CHOICE + "def seed(n):\n    torch.manual_seed(n)\n    torch.cuda.manual_seed(n)\n"
        "    torch.cuda.manual_seed_all(n)\nseed(3)\nprint(torch.rand(2))\n" + USE
    ),
    "seeds of the device alone": (
        CHOICE + "torch.manual_seed(1)\nprint(torch.rand(2))\ntorch.cuda.manual_seed_all(5)\n"
        "print(torch.rand(2))\n" + USE
    ),
    "seeds if there": (
        CHOICE + "torch.manual_seed(2)\nif torch.cuda.is_available():\n"
        "    torch.cuda.manual_seed(7)\nprint(torch.rand(2))\n" + USE
    ),
    # memory
    "emptied": CHOICE + USE + "torch.cuda.empty_cache()\n",
    "emptied twice": (
        CHOICE + USE + "def clean():\n    torch.cuda.empty_cache()\n"
        "    torch.cuda.empty_cache()\n    return 1\nprint(clean())\n"
    ),
    "memory of a run": CHOICE + USE + "print(torch.cuda.max_memory_allocated() >= 0)\n",
    "memory if there": (
        CHOICE + USE + "if torch.cuda.is_available():\n"
        "    used = torch.cuda.memory_allocated() / 2**20\nelse:\n    used = 0\nprint(used >= 0)\n"
    ),
    # time
    "synchronised": (
        CHOICE + USE + "if torch.cuda.is_available():\n    torch.cuda.synchronize()\n"
    ),
    "synchronised by device": (
        CHOICE + USE + 'if device.type == "cuda":\n    torch.cuda.synchronize(device)\n'
    ),
    "not on the host": (
        CHOICE + USE + 'if device.type != "cuda":\n    print("host")\nelse:\n    print("card")\n'
    ),
    "counted": CHOICE + USE + "print(max(torch.cuda.device_count(), 1) >= 1)\n",
    "a stream if there": (
        CHOICE + USE + "if torch.cuda.is_available():\n    stream = torch.cuda.Stream()\n"
        "    with torch.cuda.stream(stream):\n        torch.ones(2, device=device)\n"
        "    torch.cuda.current_stream().wait_stream(stream)\n"
    ),
    # where tensors are
    "asked for": CHOICE + MODEL + "if x.is_cuda:\n    x = x + 0\nprint(x.shape)\n" + STEP,
    "asked for beside another": (
        CHOICE + MODEL + "if x.is_cuda and x.dim() == 2:\n    x = x * 1\n" + STEP
    ),
    "asked for not": CHOICE + MODEL + "if not x.is_cuda:\n    x = x * 1\n" + STEP,
    "compared": CHOICE + MODEL + 'fast = x.device.type == "cuda"\n' + STEP,
    # mixed precision
    "autocast": (
        CHOICE + MODEL + "with torch.cuda.amp.autocast():\n    y = model(x)\n"
        "print(y.dtype == torch.float32 or device.type != 'cpu')\n" + STEP
    ),
    "autocast by name": (
        CHOICE
        + MODEL
        + 'with torch.autocast("cuda", dtype=torch.float16):\n    y = model(x)\n'
        + STEP
    ),
    "autocast by keyword": (
        CHOICE + MODEL + 'with torch.autocast(device_type="cuda", enabled=True):\n'
        "    y = model(x)\n" + STEP
    ),
    "autocast that may be off": (
        CHOICE + MODEL + "amp = True\nwith torch.cuda.amp.autocast(enabled=amp):\n"
        "    y = model(x)\n" + STEP
    ),
    "autocast that is imported": (
        "from torch.cuda.amp import autocast\n" + CHOICE + MODEL + "with autocast():\n"
        "    y = model(x)\n" + STEP
    ),
    "scaler": (
        "from torch.cuda.amp import GradScaler, autocast\n"
        + CHOICE
        + MODEL
        + "scaler = GradScaler()\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "for _ in range(2):\n    with autocast():\n        loss = model(x).square().mean()\n"
        "    scaler.scale(loss).backward()\n    scaler.step(optimizer)\n    scaler.update()\n"
        '    print(f"{loss.item():.2f}")\n'
    ),
    "scaler that may be off": (
        CHOICE + MODEL + "amp = False\nscaler = torch.cuda.amp.GradScaler(enabled=amp)\n"
        "print(scaler.is_enabled())\n" + STEP
    ),
    "scaler by name": (
        CHOICE + MODEL + 'scaler = torch.amp.GradScaler("cuda", init_scale=8.0)\n'
        "print(scaler.is_enabled() or device.type == 'cpu')\n" + STEP
    ),
    "own operator": (
        "from torch.cuda.amp import custom_bwd, custom_fwd\n"
        + CHOICE
        + "class Twice(torch.autograd.Function):\n    @staticmethod\n    @custom_fwd\n"
        "    def forward(ctx, x):\n        return x * 2\n    @staticmethod\n    @custom_bwd\n"
        "    def backward(ctx, g):\n        return g * 2\n"
        "x = torch.ones(2, device=device, requires_grad=True)\nTwice.apply(x).sum().backward()\n"
        "print(x.grad)\n"
    ),
    # files
    "loaded": (
        CHOICE + MODEL + "import io\nfile = io.BytesIO()\ntorch.save(model.state_dict(), file)\n"
        "file.seek(0)\nif torch.cuda.is_available():\n"
        '    state = torch.load(file, map_location="cuda")\nelse:\n'
        '    state = torch.load(file, map_location="cpu")\nmodel.load_state_dict(state)\n' + STEP
    ),
    "loaded to a choice": (
        CHOICE + MODEL + "import io\nfile = io.BytesIO()\ntorch.save(model.state_dict(), file)\n"
        'file.seek(0)\nplace = "cuda:0" if torch.cuda.is_available() else "cpu"\n'
        "model.load_state_dict(torch.load(file, map_location=place))\n" + STEP
    ),
    "scaler of a card": (
        'device = "cuda" if torch.cuda.is_available() else "cpu"\nrank = 0\n'
        'if torch.cuda.is_available():\n    device = f"cuda:{rank}"\n'
        'kind = "cuda" if "cuda" in device else "cpu"\n'
        + MODEL
        + "scaler = torch.cuda.amp.GradScaler()\n"
        "with torch.autocast(kind, enabled=kind != 'cpu'):\n    y = model(x)\n" + STEP
    ),
    # what a helper is given
    "given to a function": (
        "def ones(n, device):\n    return torch.ones(n, device=device)\n"
        + CHOICE
        + "print(ones(3, device).sum().item())\n"
    ),
    # what has an arm
    "wrapped": CHOICE
    + "torch.manual_seed(0)\nmodel = torch.nn.Linear(4, 2)\n"
    + "if torch.cuda.device_count() > 1:\n    model = torch.nn.DataParallel(model)\n"
    + "model.to(device)\nx = torch.randn(3, 4).to(device)\n"
    + STEP,
    "profiled": CHOICE
    + MODEL
    + "from torch.profiler import ProfilerActivity, profile\n"
    + "with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]):\n    model(x)\n"
    + STEP,
    # only where there is CUDA
    "moved": "torch.manual_seed(0)\nmodel = torch.nn.Linear(4, 2).cuda()\n"
    "x = torch.randn(3, 4).cuda()\n" + STEP,
    "moved by name": (
        'torch.manual_seed(0)\nmodel = torch.nn.Linear(4, 2).to("cuda")\n'
        'x = torch.randn(3, 4, device="cpu").to("cuda")\n' + STEP
    ),
    "moved to a card": (
        "torch.manual_seed(0)\nlocal_rank = int(0)\ntorch.cuda.set_device(local_rank)\n"
        "model = torch.nn.Linear(4, 2).cuda(local_rank)\n"
        "x = torch.randn(3, 4).cuda(local_rank, non_blocking=True)\n" + STEP
    ),
    "moved to a card or none": (
        "import argparse\nparser = argparse.ArgumentParser()\n"
        'parser.add_argument("--gpu", type=int, default=None)\nargs = parser.parse_args([])\n'
        "torch.manual_seed(0)\nmodel = torch.nn.Linear(4, 2).cuda(args.gpu)\n"
        "x = torch.randn(3, 4).cuda(args.gpu)\n" + STEP
    ),
    "marked": CHOICE + USE + 'torch.cuda.nvtx.range_push("step")\ntorch.cuda.nvtx.range_pop()\n',
    "made by a type": ("total = torch.cuda.FloatTensor([1.0, 2.0])\nprint(total.sum().item())\n"),
    "timed": (
        CHOICE.replace(' if torch.cuda.is_available() else "cpu"', "")
        + USE
        + "start = torch.cuda.Event(enable_timing=True)\nstart.record()\n"
        "torch.cuda.synchronize()\n"
    ),
}
"""By what they show, each without `import torch`."""

NEEDS_CUDA = frozenset(
    {"moved", "moved by name", "moved to a card", "moved to a card or none", "made by a type"}
    | {"timed", "marked"}
)
"""Scripts that fail where there is no CUDA; written for all devices they may run there."""
