"""Everything that names a CUDA device: where it is found, the exact text, and what it becomes."""

import ast

import pytest
from helpers import AGNOSTIC, NPU, bug, check, code, each_fix, findings, fixed, marks, unmarked

from npulens.catalog.model import Applicability
from npulens.text.decoding import decode_source

TYPE = "torch.accelerator.current_accelerator().type"
DEVICE = "torch.accelerator.current_accelerator()"

# One line or a few, with `import torch` before them. In NPU style every marked text has its `cuda`
# replaced by `npu`.
STRINGS = [
    # arguments by position
    'x.to(⟦NPU110:"cuda"⟧)',
    "x.to(⟦NPU110:'cuda'⟧)",
    'x.to(⟦NPU110:"cuda:0"⟧)',
    'x.to(⟦NPU110:"cuda"⟧, torch.float16)',
    'x.to(⟦NPU110:"cuda"⟧, non_blocking=True)',
    'self.model.encoder[0].to(⟦NPU110:"cuda"⟧)',
    'build().to(⟦NPU110:"cuda"⟧).eval()',
    'torch.device(⟦NPU110:"cuda"⟧)',
    'torch.device(⟦NPU110:"cuda"⟧, 0)',
    'torch.device(⟦NPU110:"cuda:1"⟧)',
    'torch.set_default_device(⟦NPU110:"cuda"⟧)',
    'torch.load(p, ⟦NPU110:"cuda"⟧)',
    'x.pin_memory(⟦NPU110:"cuda"⟧)',
    'torch.get_device_module(⟦NPU110:"cuda"⟧)',
    'torch.Generator(⟦NPU110:"cuda"⟧)',
    'mesh = torch.distributed.init_device_mesh(⟦NPU110:"cuda"⟧, (2, 4))',
    # arguments by keyword
    'torch.zeros(3, device=⟦NPU110:"cuda"⟧)',
    "torch.zeros(3, device=⟦NPU110:'cuda:0'⟧, dtype=d)",
    'torch.Generator(device=⟦NPU110:"cuda"⟧)',
    'x.to(device=⟦NPU110:"cuda"⟧)',
    'x.new_zeros(3, device=⟦NPU110:"cuda"⟧)',
    'pipeline("text-generation", device=⟦NPU110:"cuda:0"⟧)',
    'AutoModel.from_pretrained(name, device_map=⟦NPU110:"cuda"⟧)',
    'Trainer(model, output_device=⟦NPU110:"cuda"⟧)',
    'Config(device_type=⟦NPU110:"cuda"⟧)',
    'DataLoader(ds, pin_memory_device=⟦NPU110:"cuda"⟧)',
    'run(target_device=⟦NPU110:"cuda"⟧)',
    'super().__init__(device=⟦NPU110:"cuda"⟧)',
    'torch.zeros(3, device=torch.device(⟦NPU110:"cuda"⟧))',
    'torch.zeros(3, **{"device": ⟦NPU110:"cuda"⟧})',
    "partial(torch.zeros, device=⟦NPU110:'cuda'⟧)",
    'with torch.autocast(⟦NPU302:"cuda"⟧): pass',
    'with torch.autocast(device_type=⟦NPU302:"cuda"⟧, dtype=d): pass',
    'with torch.device(⟦NPU110:"cuda"⟧): pass',
    # defaults
    'def f(device=⟦NPU110:"cuda"⟧): ...',
    'def f(x, *, device: str = ⟦NPU110:"cuda"⟧): ...',
    'def f(x, /, device=⟦NPU110:"cuda:0"⟧): ...',
    'async def f(device=⟦NPU110:"cuda"⟧): ...',
    'f = lambda x, device=⟦NPU110:"cuda"⟧: x.to(device)',
    'def f(device=torch.device(⟦NPU110:"cuda"⟧)): ...',
    'class A:\n    def __init__(self, device=⟦NPU110:"cuda"⟧): ...',
    'def f(map_location=⟦NPU110:"cuda"⟧): ...',
    'def f(dev=⟦NPU110:"cuda"⟧): ...',
    'def f(x, d=⟦NPU110:"cuda"⟧):\n    return x.to(d)',
    # assignments
    'device = ⟦NPU110:"cuda"⟧',
    'DEVICE = ⟦NPU110:"cuda"⟧',
    'device: str = ⟦NPU110:"cuda"⟧',
    'dev = device = ⟦NPU110:"cuda"⟧',
    'device, n = ⟦NPU110:"cuda"⟧, 3',
    'n, (device, m) = 1, (⟦NPU110:"cuda"⟧, 2)',
    'self.device = ⟦NPU110:"cuda"⟧',
    'cfg.model.device = ⟦NPU110:"cuda"⟧',
    'config["device"] = ⟦NPU110:"cuda"⟧',
    'config["train"]["device"] = ⟦NPU110:"cuda"⟧',
    "config['map_location'] = ⟦NPU110:'cuda:0'⟧",
    'if (device := ⟦NPU110:"cuda"⟧): pass',
    "args.device = args.device or ⟦NPU110:'cuda'⟧",
    'device = device if device is not None else ⟦NPU110:"cuda"⟧',
    'device = (\n    ⟦NPU110:"cuda"⟧\n)',
    'for device in (⟦NPU110:"cuda"⟧, "cpu"): run(device)',
    'for device in ["cpu", ⟦NPU110:"cuda:0"⟧]: run(device)',
    'devices = [⟦NPU110:"cuda:0"⟧, ⟦NPU110:"cuda:1"⟧]',
    'd = ⟦NPU110:"cuda"⟧\nx.to(d)',
    # comparisons
    'if device == ⟦NPU111:"cuda"⟧: pass',
    'if ⟦NPU111:"cuda"⟧ == device: pass',
    'if device != ⟦NPU111:"cuda"⟧: pass',
    'if device.type == ⟦NPU111:"cuda"⟧: pass',
    'if x.device.type == ⟦NPU111:"cuda"⟧: pass',
    'if self.device.type != ⟦NPU111:"cuda"⟧: pass',
    'if str(device) == ⟦NPU111:"cuda:0"⟧: pass',
    'if ⟦NPU111:"cuda"⟧ in str(device): pass',
    'if ⟦NPU111:"cuda"⟧ not in str(x.device): pass',
    'if args.device in [⟦NPU111:"cuda"⟧, "mps"]: pass',
    'if args.device not in (⟦NPU111:"cuda"⟧, "mps"): pass',
    'if device.startswith(⟦NPU111:"cuda"⟧): pass',
    'if str(device).startswith(⟦NPU111:"cuda:"⟧): pass',
    'if device.startswith((⟦NPU111:"cuda"⟧, "mps")): pass',
    'if device.lower().strip().startswith(⟦NPU111:"cuda"⟧): pass',
    'if device.split(":")[0] == ⟦NPU111:"cuda"⟧: pass',
    'if cfg["device"] == ⟦NPU111:"cuda"⟧: pass',
    'if get_device() == ⟦NPU111:"cuda"⟧: pass',
    'if getattr(x, "device", None) == ⟦NPU111:"cuda"⟧: pass',
    'if torch.device(d).type == ⟦NPU111:"cuda"⟧: pass',
    'd = torch.device(n)\nif d.type == ⟦NPU111:"cuda"⟧: pass',
    'if x.device == torch.device(⟦NPU110:"cuda"⟧): pass',
    'if x.device == torch.device(⟦NPU110:"cuda:0"⟧): pass',
    'y = [p for p in ps if p.device.type == ⟦NPU111:"cuda"⟧]',
    'while device == ⟦NPU111:"cuda"⟧: pass',
    'ok = device == ⟦NPU111:"cuda"⟧ and n > 3',
    'assert device == ⟦NPU111:"cuda"⟧, "needs cuda"',
    'assert x.device.type == ⟦NPU111:"cuda"⟧',
    'match device.type:\n    case ⟦NPU111:"cuda"⟧:\n        pass\n    case _:\n        pass',
    'match device:\n    case ⟦NPU111:"cuda"⟧ | "mps":\n        pass',
    'match device:\n    case ⟦NPU111:"cuda:0"⟧ as d if d:\n        pass',
    # dictionaries and options
    'opts = {"device": ⟦NPU110:"cuda"⟧}',
    'opts = {"train": {"device": ⟦NPU110:"cuda:0"⟧, "n": 3}}',
    'opts = dict(device=⟦NPU110:"cuda"⟧)',
    'opts.update(device=⟦NPU110:"cuda"⟧)',
    'opts.update({"device": ⟦NPU110:"cuda"⟧})',
    'cfg.get("device", ⟦NPU110:"cuda"⟧)',
    'cfg.setdefault("device", ⟦NPU110:"cuda"⟧)',
    'kwargs.pop("device", ⟦NPU110:"cuda"⟧)',
    'getattr(args, "device", ⟦NPU110:"cuda"⟧)',
    'setattr(args, "device", ⟦NPU110:"cuda"⟧)',
    'os.environ.get("DEVICE", ⟦NPU110:"cuda"⟧)',
    'os.getenv("DEVICE", ⟦NPU110:"cuda"⟧)',
    'parser.add_argument("--device", default=⟦NPU110:"cuda"⟧)',
    'parser.add_argument("-d", "--device", type=str, default=⟦NPU110:"cuda:0"⟧, help="cuda or cpu")',
    'parser.add_argument("--device", choices=["cpu", ⟦NPU110:"cuda"⟧], default=⟦NPU110:"cuda"⟧)',
    'parser.add_argument("--dev", dest="device", default=⟦NPU110:"cuda"⟧)',
    'parser.set_defaults(device=⟦NPU110:"cuda"⟧)',
    'parser.add_argument("--device", nargs="?", const=⟦NPU110:"cuda"⟧)',
    '@click.option("--device", default=⟦NPU110:"cuda"⟧)\ndef main(device): ...',
    '@click.option("--device", type=click.Choice([⟦NPU110:"cuda"⟧, "cpu"]))\ndef main(device): ...',
    'def main(device: str = typer.Option(⟦NPU110:"cuda"⟧)): ...',
    'def main(device: str = typer.Option(⟦NPU110:"cuda"⟧, "--device", help="cuda")): ...',
    'def main(device: Annotated[str, typer.Option()] = ⟦NPU110:"cuda"⟧): ...',
    'flags.DEFINE_string("device", ⟦NPU110:"cuda"⟧, "which cuda device")',
    '@pytest.mark.parametrize("device", ["cpu", ⟦NPU110:"cuda"⟧])\ndef test(device): ...',
    '@dataclass\nclass C:\n    device: str = ⟦NPU110:"cuda"⟧',
    '@dataclass\nclass C:\n    device: str = field(default=⟦NPU110:"cuda"⟧)',
    '@dataclass\nclass C:\n    device: str = dataclasses.field(default=⟦NPU110:"cuda"⟧)',
    'class C(BaseModel):\n    device: str = Field(default=⟦NPU110:"cuda"⟧)',
    'class C(BaseModel):\n    device: str = Field(⟦NPU110:"cuda"⟧, description="cuda or cpu")',
    '@dataclass\nclass C:\n    device: str = field(default_factory=lambda: ⟦NPU110:"cuda"⟧)',
    "class C(NamedTuple):\n    device: str = ⟦NPU110:'cuda'⟧",
    # strings put together
    'x.to(⟦NPU110:f"cuda:{rank}"⟧)',
    'd = ⟦NPU110:f"cuda:{rank}"⟧',
    'd = ⟦NPU110:f"cuda:{args.local_rank}"⟧',
    "run(⟦NPU110:f'cuda:{rank % n}'⟧)",
    'd = ⟦NPU110:"cuda:%d" % rank⟧',
    'x.to(⟦NPU110:"cuda:%d"⟧ % rank)',
    'x.to(⟦NPU110:"cuda:%s"⟧ % (rank,))',
    'x.to(⟦NPU110:"cuda:{}"⟧.format(rank))',
    'x.to(⟦NPU110:"cuda:{rank}"⟧.format(rank=rank))',
    'x.to(⟦NPU110:"cuda:"⟧ + str(rank))',
    'device = ⟦NPU110:"cuda:"⟧ + str(rank)',
    'torch.device(⟦NPU110:"cuda:"⟧ + args.gpu)',
    'torch.device(⟦NPU110:"cuda"⟧ + ":" + str(i))',
    'torch.device(⟦NPU110:"cuda"⟧ + (":" + str(i) if i else ""))',
    'x.to(⟦NPU110:r"cuda"⟧)',
    'x.to(⟦NPU110:u"cuda"⟧)',
    'x.to(⟦NPU110:"""cuda"""⟧)',
    'x.to(⟦NPU110:f"cuda"⟧)',
    'x.to(⟦NPU110:rf"cuda:{i}"⟧)',
    'x.to(⟦NPU110:F"cuda:{i}"⟧)',
    'x.to(⟦NPU110:"cuda:" "0"⟧)',
    'x.to(⟦NPU110:"cuda:" f"{i}"⟧)',
    'd = ⟦NPU110:f"cuda:{rank}"⟧ if rank >= 0 else "cpu"',
    # map_location
    'torch.load(p, map_location=⟦NPU110:"cuda"⟧)',
    'torch.load(p, map_location=⟦NPU110:f"cuda:{rank}"⟧)',
    'torch.load(p, map_location=lambda storage, loc: storage.⟦NPU105:cuda⟧(0))',
    'torch.load(p, map_location=lambda storage, loc: storage.⟦NPU105:cuda⟧())',
    'torch.load(p, map_location=torch.device(⟦NPU110:"cuda"⟧))',
    'torch.load(p, map_location={⟦NPU110:"cuda:1"⟧: ⟦NPU110:"cuda:0"⟧})',
    'torch.load(p, map_location={⟦NPU110:"cuda:%d"⟧ % 0: ⟦NPU110:"cuda:%d"⟧ % rank})',
    'torch.hub.load_state_dict_from_url(u, map_location=⟦NPU110:"cuda"⟧)',
    'torch.jit.load(p, map_location=⟦NPU110:"cuda"⟧)',
    'load_checkpoint(m, p, map_location=⟦NPU110:"cuda"⟧)',
    # conditional expressions and returns
    'd = ⟦NPU110:"cuda"⟧ if ⟦NPU101:torch.cuda.is_available⟧() else "cpu"',
    'run(⟦NPU110:"cuda"⟧ if ⟦NPU101:torch.cuda.is_available⟧() else "cpu")',
    'run(⟦NPU110:"cuda:0"⟧ if use_cuda else "cpu")',
    'd = torch.device(⟦NPU110:"cuda"⟧ if ⟦NPU101:torch.cuda.is_available⟧() else "cpu")',
    'd = "cpu" if not ⟦NPU101:torch.cuda.is_available⟧() else ⟦NPU110:"cuda"⟧',
    'd = ⟦NPU110:"cuda"⟧ if ⟦NPU101:torch.cuda.is_available⟧() else "mps" if mps() else "cpu"',
    'def get_device():\n    return ⟦NPU110:"cuda"⟧',
    'def pick_device(n):\n    return ⟦NPU110:f"cuda:{n}"⟧',
    'def get_device():\n    if ⟦NPU101:torch.cuda.is_available⟧():\n'
    '        return ⟦NPU110:"cuda"⟧\n    return "cpu"',
    'class A:\n    @property\n    def device(self):\n        return ⟦NPU110:"cuda"⟧',
    'def default_device() -> str:\n    return ⟦NPU110:"cuda"⟧ if n else "cpu"',
    'async def get_device():\n    return ⟦NPU110:"cuda"⟧',
    'def get_devices():\n    yield ⟦NPU110:"cuda:0"⟧',
    "get_device = lambda: ⟦NPU110:'cuda'⟧",
    # functions of the file whose parameter is named after a device
    'def move(x, device): return x.to(device)\nmove(x, ⟦NPU110:"cuda"⟧)',
    'def move(x, device): return x.to(device)\nmove(x, device=⟦NPU110:"cuda"⟧)',
    'class Net:\n    def __init__(self, device): ...\nNet(⟦NPU110:"cuda"⟧)',
]


def with_torch(snippet: str) -> str:
    return f"import torch\n{snippet}\n"


def in_npu_style(snippet: str) -> str:
    """The snippet with `npu` for `cuda` in everything marked."""
    source, expected = unmarked(snippet)
    for mark in sorted(expected, reverse=True):
        text = source[mark.start : mark.end].replace("cuda", "npu")
        source = source[: mark.start] + text + source[mark.end :]
    return source


@pytest.mark.parametrize("snippet", STRINGS)
def test_device_strings_are_found(snippet: str) -> None:
    check(with_torch(snippet))


@pytest.mark.parametrize("snippet", STRINGS)
def test_device_strings_become_npu(snippet: str) -> None:
    source, _ = unmarked(with_torch(snippet))
    assert fixed(source) == f"import torch\nimport torch_npu\n{in_npu_style(snippet)}\n"
