"""Everything that names a CUDA device: where it is found, the exact text, and what it becomes."""

import ast

import pytest

from helpers import (
    AGNOSTIC,
    SHIM,
    bug,
    check,
    code,
    each_fix,
    findings,
    fixed,
    marks,
    unmarked,
)
from npulens.analysis import StatementCache
from npulens.catalog.model import Applicability, Severity
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
    'from helpers import to_device\nbatch = to_device(batch, ⟦NPU110:"cuda"⟧)',
    'accelerator_type = ⟦NPU110:"cuda"⟧',
    'kind = getattr(self, "accelerator_type", ⟦NPU110:"cuda"⟧)',
    'box = gr.Dropdown([⟦NPU110:"cuda"⟧, "cpu"], value=⟦NPU110:"cuda"⟧, label="device")',
    'helpers.move_to_device(batch, ⟦NPU110:"cuda:0"⟧)',
    'from helpers import build_device_mesh\nmesh = build_device_mesh(⟦NPU110:"cuda"⟧, (8,))',
    'torch.load(p, ⟦NPU110:"cuda"⟧)',
    'from fid import distance\nvalue = distance(paths, 256, ⟦NPU110:"cuda"⟧, 2048)',
    'if kind == "mps":\n    pass\nelif kind == ⟦NPU111:"cuda"⟧:\n    pass',
    'add_argument("--gpu_type", default=⟦NPU110:"cuda"⟧)\nhas_metal = args.gpu_type == "mps"',
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
    'AutoModel.from_pretrained(name, device_map={"": ⟦NPU110:"cuda"⟧, "lm_head": "cpu"})',
    'device_map = {"": ⟦NPU110:"cuda"⟧}',
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
    'for device in ["cpu"] + [⟦NPU110:"cuda"⟧] if gpu else []: run(device)',
    'devices = [⟦NPU110:"cuda"⟧] + other_devices',
    'devices.append(⟦NPU110:"cuda"⟧)',
    'if ⟦NPU101:torch.cuda.is_available⟧():\n    kinds.append(⟦NPU110:"cuda:0"⟧)',
    'if ⟦NPU101:torch.cuda.is_available⟧():\n    kinds += [⟦NPU110:"cuda"⟧]',
    '@parameterized.expand([("a.py", ("cpu", ⟦NPU110:"cuda"⟧))])\ndef test(config, where): pass',
    'devices = [⟦NPU110:"cuda:0"⟧, ⟦NPU110:"cuda:1"⟧]',
    'd = ⟦NPU110:"cuda"⟧\nx.to(d)',
    # comparisons
    'if device == ⟦NPU111:"cuda"⟧: pass',
    'load_state_dict(path, location=⟦NPU110:"cuda"⟧)',
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
    'd = str(device).strip().lower().replace(⟦NPU110:"cuda:"⟧, "").replace("none", "")',
    'd = args.device.removeprefix(⟦NPU110:"cuda:"⟧)',
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
    'parser.add_argument("-d", "--device", type=str, default=⟦NPU110:"cuda:0"⟧, help="cuda or '
    'cpu")',
    'parser.add_argument("--device", choices=["cpu", ⟦NPU110:"cuda"⟧], default=⟦NPU110:"cuda"⟧)',
    'parser.add_argument("--dev", dest="device", default=⟦NPU110:"cuda"⟧)',
    'parser.add_argument("-d", "--dev", default=⟦NPU110:"cuda"⟧)',
    'parser.add_argument("--on", default=⟦NPU110:"cuda"⟧, choices=["cpu", ⟦NPU110:"cuda"⟧])',
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
    'run([⟦NPU110:"cuda:"⟧ + str(i) for i in range(n)])',
    'names = {i: ⟦NPU110:"cuda:"⟧ + str(i) for i in range(n)}',
    'names = tuple(map(lambda i: ⟦NPU110:"cuda:"⟧ + str(i), range(n)))',
    'run([torch.device(⟦NPU110:f"cuda:{i}"⟧) for i in range(n)])',
    'run([⟦NPU110:"cuda:%d"⟧ % i for i in range(n)])',
    'run([⟦NPU110:"cuda:{}"⟧.format(i) for i in range(n)])',
    'x.to(⟦NPU110:f"cuda:{rank}"⟧)',
    'd = ⟦NPU110:f"cuda:{rank}"⟧',
    'd = ⟦NPU110:f"cuda:{args.local_rank}"⟧',
    "run(⟦NPU110:f'cuda:{rank % n}'⟧)",
    'd = ⟦NPU110:"cuda:%d"⟧ % rank',
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
    "torch.load(p, map_location=lambda storage, loc: storage.⟦NPU105:cuda⟧(0))",
    "torch.load(p, map_location=lambda storage, loc: storage.⟦NPU105:cuda⟧())",
    'torch.load(p, map_location=torch.device(⟦NPU110:"cuda"⟧))',
    'torch.load(p, map_location={⟦NPU110:"cuda:1"⟧: ⟦NPU110:"cuda:0"⟧})',
    'torch.load(p, map_location={⟦NPU110:f"cuda:{0}"⟧: ⟦NPU110:f"cuda:{rank}"⟧})',
    "places = {'cuda:0': 'cpu', ⟦NPU110:'cuda:1'⟧: ⟦NPU110:'cuda:0'⟧}",
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
    "def get_device():\n    if ⟦NPU101:torch.cuda.is_available⟧():\n"
    '        return ⟦NPU110:"cuda"⟧\n    return "cpu"',
    'class A:\n    @property\n    def device(self):\n        return ⟦NPU110:"cuda"⟧',
    'def default_device() -> str:\n    return ⟦NPU110:"cuda"⟧ if n else "cpu"',
    'async def get_device():\n    return ⟦NPU110:"cuda"⟧',
    'def get_devices():\n    yield ⟦NPU110:"cuda:0"⟧',
    "get_device = lambda: ⟦NPU110:'cuda'⟧",
    # what is called later
    'from functools import partial\nmove = partial(torch.Tensor.to, device=⟦NPU110:"cuda"⟧)',
    'from functools import partial\nmake = partial(torch.Generator, ⟦NPU110:"cuda"⟧)',
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


@pytest.mark.family(60)
@pytest.mark.parametrize("snippet", STRINGS)
def test_device_strings_become_npu(snippet: str) -> None:
    source, _ = unmarked(with_torch(snippet))
    assert (
        fixed(source) == f"import torch\nimport torch_npu  # noqa: F401\n{in_npu_style(snippet)}\n"
    )


@pytest.mark.family(60)
@pytest.mark.parametrize("snippet", STRINGS)
def test_every_fix_on_offer_leaves_python(snippet: str) -> None:
    source, _ = unmarked(with_torch(snippet))
    for _, _, result in each_fix(source):
        ast.parse(result)


SAVED = {
    "to the host, of files from a GPU alone": (
        "torch.load(p, map_location={⟦NPU110:'cuda:0'⟧: 'cpu'})"
    ),
    "to the host, of files from several GPUs": (
        "torch.load(p, {⟦NPU110:'cuda:0'⟧: 'cpu', 'cuda:1': 'cpu'})"
    ),
    "no place of a file": "x = {'cuda:0': 'cpu'}",
    "to the host, of files from either": (
        "torch.load(p, map_location={'cuda:0': 'cpu', 'npu:0': 'cpu'})"
    ),
    "written in other ways": "x = {'cuda:%d' % 0: 'cpu', f'cuda:{1}': 'cpu'}",
    "of files from a GPU alone": "places = {⟦NPU110:'cuda:1'⟧: 'npu:0'}",
    "of files from either": "places = {'cuda:1': 'npu:0', 'npu:1': 'npu:0'}",
    "settings by device": "x = {'cuda': 'cpu', ⟦NPU110:'cuda:1'⟧: '20GiB'}",
}


@pytest.mark.parametrize("name", SAVED)
def test_where_tensors_of_a_file_were(name: str) -> None:
    check(with_torch(SAVED[name]))


def test_safe_fixes_leave_where_tensors_of_a_file_were() -> None:
    """Files that were saved on a GPU could not be loaded any more."""
    plugin = "import torch_npu  # noqa: F401\n"
    source = 'import torch\ntorch.load(p, map_location={"cuda:0": f"cuda:{rank}"})\n'
    after = source.replace('f"cuda', 'f"npu').replace("torch\n", "torch\n" + plugin, 1)
    assert fixed(source, applicability=Applicability.SAFE) == after
    [left] = findings(after)
    assert (left.rule.code, left.effective_severity) == ("NPU110", Severity.INFO)


# What device-agnostic style makes of a line: the device, or its type where a string is meant.
CHOSEN = (
    'device = torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")'
)
AGNOSTIC_STRINGS = [
    ('x.to("cuda")', "x.to(device)"),
    ("x = torch.zeros(3, device='cuda')", "x = torch.zeros(3, device=device)"),
    ('x.to(f"cuda:{rank}")', 'x.to(f"{device.type}:{rank}")'),
    ('x.to("cuda:1")', 'x.to(f"{device.type}:1")'),
    ('x.to("cuda:{}".format(rank))', 'x.to(f"{device.type}:{rank}")'),
    ('run_device = "cuda"', "run_device = device.type"),
    ("x.cuda()", "x.to(device)"),
    ("x.cuda(non_blocking=True)", "x.to(device, non_blocking=True)"),
    ("model = net.cuda().eval()", "model = net.to(device).eval()"),
]
WITHOUT_A_DEVICE = [
    ('d = torch.device("cuda")', CHOSEN.replace("device =", "d =", 1)),
    ('if x.device.type == "cuda": pass', 'if x.device.type != "cpu": pass'),
    ('if x.device.type != "cuda": pass', 'if x.device.type == "cpu": pass'),
    (
        'd = "cuda" if torch.cuda.is_available() else "cpu"',
        f'd = {TYPE} if torch.accelerator.is_available() else "cpu"',
    ),
    (
        'd = torch.device("cuda" if on and torch.cuda.is_available() else "cpu")',
        f'd = {DEVICE} if on and torch.accelerator.is_available() else torch.device("cpu")',
    ),
    ("if x.is_cuda: pass", 'if x.device.type != "cpu": pass'),
    ("y = not x.is_cuda", 'y = not (x.device.type != "cpu")'),
    ("torch.cuda.synchronize()", "torch.accelerator.synchronize()"),
    ("n = torch.cuda.device_count()", "n = torch.accelerator.device_count()"),
    ("torch.cuda.set_device(0)", "torch.accelerator.set_device_index(0)"),
    ('if d in ("cpu", "cuda"): pass', 'if d in ("cpu", "cuda"): pass'),
]


@pytest.mark.parametrize(("before", "after"), AGNOSTIC_STRINGS)
def test_device_agnostic_style_has_one_device(before: str, after: str) -> None:
    written = fixed(f"import torch\n{before}\n", AGNOSTIC)
    assert written == f"import torch\n\n{CHOSEN}\n{after}\n"


@pytest.mark.parametrize(("before", "after"), WITHOUT_A_DEVICE)
def test_device_agnostic_style_asks_for_the_accelerator(before: str, after: str) -> None:
    assert fixed(f"import torch\n{before}\n", AGNOSTIC) == f"import torch\n{after}\n"


def test_device_agnostic_style_leaves_a_match_statement_that_parses() -> None:
    source = 'import torch\nmatch device.type:\n    case "cuda":\n        x.to("cuda")\n'
    assert "x.to(any_device)" in fixed(source, AGNOSTIC)


def test_device_agnostic_style_brings_a_name_for_torch() -> None:
    written = fixed('from torch import nn\nx.to("cuda")\n', AGNOSTIC)
    assert written == f"import torch\nfrom torch import nn\n\n{CHOSEN}\nx.to(device)\n"


def test_device_agnostic_style_uses_the_name_torch_has() -> None:
    assert fixed("import torch as t\nt.cuda.synchronize()\n", AGNOSTIC) == (
        "import torch as t\nt.accelerator.synchronize()\n"
    )


# Methods and properties: code before and behind `import torch`, then what they become.
METHODS = [
    ("x.⟦NPU105:cuda⟧()", "x.npu()"),
    ("x.⟦NPU105:cuda⟧(0)", "x.npu(0)"),
    ("x.⟦NPU105:cuda⟧(device)", "x.npu(device)"),
    ("x.⟦NPU105:cuda⟧(device=0)", "x.npu(device=0)"),
    ("x.⟦NPU105:cuda⟧(non_blocking=True)", "x.npu(non_blocking=True)"),
    ("x.⟦NPU105:cuda⟧(*a, **k)", "x.npu(*a, **k)"),
    ("x.⟦NPU105:cuda⟧(⟦NPU110:'cuda:0'⟧)", "x.npu('npu:0')"),
    ("x.⟦NPU105:cuda⟧  (  )", "x.npu  (  )"),
    ("x . ⟦NPU105:cuda⟧ ()", "x . npu ()"),
    ("x.⟦NPU105:cuda⟧(\n    0,  # first\n)", "x.npu(\n    0,  # first\n)"),
    ("(x\n    .⟦NPU105:cuda⟧()\n    .half())", "(x\n    .npu()\n    .half())"),
    ("x.\\\n⟦NPU105:cuda⟧()", "x.\\\nnpu()"),
    ("x.⟦NPU105:cuda⟧().⟦NPU105:cuda⟧()", "x.npu().npu()"),
    ("self.net.⟦NPU105:cuda⟧()", "self.net.npu()"),
    ("self.nets[0].⟦NPU105:cuda⟧()", "self.nets[0].npu()"),
    ("build()(x).⟦NPU105:cuda⟧()", "build()(x).npu()"),
    ("(a + b).⟦NPU105:cuda⟧()", "(a + b).npu()"),
    ("z = a + b\nz.⟦NPU105:cuda⟧()", "z = a + b\nz.npu()"),
    ("z = a * b\nz.⟦NPU105:cuda⟧()", "z = a * b\nz.npu()"),
    ("z = 'a' + b\nz.cuda()", "z = 'a' + b\nz.cuda()"),
    ("(yield).⟦NPU105:cuda⟧()", "(yield).npu()"),
    ("torch.zeros(3).⟦NPU105:cuda⟧()", "torch.zeros(3).npu()"),
    ("x = [t.⟦NPU105:cuda⟧() for t in xs]", "x = [t.npu() for t in xs]"),
    ("x = map(lambda t: t.⟦NPU105:cuda⟧(), xs)", "x = map(lambda t: t.npu(), xs)"),
    ("a, b = a.⟦NPU105:cuda⟧(), b.⟦NPU105:cuda⟧()", "a, b = a.npu(), b.npu()"),
    ("f(x.⟦NPU105:cuda⟧(), key=y.⟦NPU105:cuda⟧())", "f(x.npu(), key=y.npu())"),
    ("if x.⟦NPU106:is_cuda⟧: pass", "if x.is_npu: pass"),
    ("assert all(t.⟦NPU106:is_cuda⟧ for t in ts)", "assert all(t.is_npu for t in ts)"),
    ("y = f(x).⟦NPU106:is_cuda⟧", "y = f(x).is_npu"),
    ("y = x.grad.data.⟦NPU106:is_cuda⟧ and not z", "y = x.grad.data.is_npu and not z"),
    ("print(x.⟦NPU106:is_cuda⟧)", "print(x.is_npu)"),
    ("print('is', x.⟦NPU106:is_cuda⟧)", "print('is', x.is_npu)"),
    ("logger.info('moved', x.⟦NPU105:cuda⟧())", "logger.info('moved', x.npu())"),
    ("y = f'{x.⟦NPU105:cuda⟧().sum()}'", "y = f'{x.npu().sum()}'"),
    ("print(f'{x.⟦NPU105:cuda⟧().sum()}')", "print(f'{x.npu().sum()}')"),
    ("raise E(f'{x.⟦NPU106:is_cuda⟧}')", "raise E(f'{x.is_npu}')"),
    ("assert ok, f'{x.⟦NPU106:is_cuda⟧}'", "assert ok, f'{x.is_npu}'"),
    ("x.⟦NPU103:__cuda_array_interface__⟧", "x.__cuda_array_interface__"),
    bug("a method that is not called", "f = x.⟦NPU105:cuda⟧", "f = x.npu"),
    ("map(torch.Tensor.⟦NPU105:cuda⟧, xs)", "map(torch.Tensor.npu, xs)"),
    ("torch.Tensor.⟦NPU105:cuda⟧(x)", "torch.Tensor.npu(x)"),
    ("hasattr(x, 'is_cuda')", "hasattr(x, 'is_cuda')"),
    ("x.cuda = True", "x.cuda = True"),
]


@pytest.mark.parametrize(("before", "after"), METHODS)
def test_methods_and_properties(before: str, after: str) -> None:
    source = check(with_torch(before))
    moved = "import torch_npu  # noqa: F401\n" if "npu" in after else ""
    assert fixed(source) == f"import torch\n{moved}{after}\n"


# Tensor types. There is no NPU type to make the default.
TYPES = [
    ("x.type(⟦NPU107:torch.cuda.FloatTensor⟧)", "x.type(torch.npu.FloatTensor)"),
    ("x.type(⟦NPU107:'torch.cuda.FloatTensor'⟧)", "x.type('torch.npu.FloatTensor')"),
    ("x = ⟦NPU107:torch.cuda.HalfTensor⟧(3)", "x = torch.npu.HalfTensor(3)"),
    ("isinstance(x, ⟦NPU107:torch.cuda.LongTensor⟧)", "isinstance(x, torch.npu.LongTensor)"),
    (
        "T = ⟦NPU107:torch.cuda.FloatTensor⟧ if use_gpu else torch.FloatTensor",
        "T = torch.npu.FloatTensor if use_gpu else torch.FloatTensor",
    ),
    ("def f(x: ⟦NPU107:torch.cuda.FloatTensor⟧): ...", "def f(x: torch.npu.FloatTensor): ..."),
    (
        "torch.set_default_tensor_type(⟦NPU107:torch.cuda.FloatTensor⟧)",
        "torch.set_default_tensor_type(torch.cuda.FloatTensor)",
    ),
    (
        "torch.set_default_tensor_type(⟦NPU107:'torch.cuda.FloatTensor'⟧)",
        "torch.set_default_tensor_type('torch.cuda.FloatTensor')",
    ),
    (
        "torch.set_default_tensor_type(⟦NPU107:torch.cuda.FloatTensor⟧ if a else host)",
        "torch.set_default_tensor_type(torch.cuda.FloatTensor if a else host)",
    ),
    (
        "torch.set_default_tensor_type(t=⟦NPU107:torch.cuda.FloatTensor⟧)",
        "torch.set_default_tensor_type(t=torch.cuda.FloatTensor)",
    ),
    ("torch.set_default_tensor_type(torch.FloatTensor)",) * 2,
]


@pytest.mark.parametrize(("before", "after"), TYPES)
def test_tensor_types(before: str, after: str) -> None:
    source = check(with_torch(before))
    moved = "import torch_npu  # noqa: F401\n" if "npu" in after else ""
    assert fixed(source) == f"import torch\n{moved}{after}\n"


@pytest.mark.parametrize(
    "snippet",
    [
        'import xgboost\nxgboost.XGBClassifier(device=⟦NPU110:"cuda"⟧)',
        'from lightgbm import LGBMRanker\nLGBMRanker(device_type=⟦NPU110:"cuda"⟧)',
    ],
)
def test_libraries_that_know_no_npu_are_not_given_its_name(snippet: str) -> None:
    source = check(with_torch(snippet))
    assert fixed(source) == source


@pytest.mark.parametrize(
    "snippet",
    [
        'import xgboost\nxgboost.train({"device": "cuda"}, rows)',
        'import lightgbm as lgb\nsettings = dict(num_leaves=31, device="cuda")',
    ],
)
def test_settings_that_may_be_theirs_are_for_a_person(snippet: str) -> None:
    (finding,) = findings(with_torch(snippet))
    assert [fix.applicability for fix in finding.fixes] == [Applicability.UNSAFE]


def test_the_default_tensor_type_becomes_a_default_device_in_words() -> None:
    (finding,) = findings("import torch\ntorch.set_default_tensor_type(torch.cuda.FloatTensor)\n")
    assert 'torch.set_default_device("npu")' in finding.message("en")


# A device is known by its constant: the constant is changed where it serves as a device alone, and
# the use is reported, without a fix, where the constant is only a part. There the constant is asked
# for.
CONSTANTS = [
    'NAME = ⟦NPU110:"cuda"⟧\nx.to(NAME)',
    'class C:\n    NAME = ⟦NPU110:"cuda"⟧\nx.to(C.NAME)',
    'def f(name=⟦NPU110:"cuda"⟧):\n    x.to(name)',
    'PREFIX = ⟦NPU110:"cuda"⟧\nx.to(⟦NPU110:f"{PREFIX}:{i}"⟧)',
    'PREFIX = ⟦NPU110:"cuda"⟧\nx.to(⟦NPU110:PREFIX + ":0"⟧)',
    'PREFIX = ⟦NPU110:"cuda"⟧\nx.to(⟦NPU110:"%s:%d" % (PREFIX, 3)⟧)',
    'PREFIX = ⟦NPU110:"cuda"⟧\nx.to(⟦NPU110:"{}:{}".format(PREFIX, 3)⟧)',
    'class C:\n    P = ⟦NPU110:"cuda"⟧\nx.to(⟦NPU110:f"{C.P}:{i}"⟧)',
    'class C:\n    P = ⟦NPU110:"cuda"⟧\n    def f(self):\n        x.to(⟦NPU110:self.P + ":0"⟧)',
    'def f(p=⟦NPU110:"cuda"⟧):\n    x.to(⟦NPU110:"%s:%d" % (p, 3)⟧)',
    "x.to(⟦NPU110:f\"{'cuda'}:{i}\"⟧)",
    'x.to(⟦NPU110:"%s:%d" % ("cuda", 1)⟧)',
    'PREFIX = "cpu"\nx.to(f"{PREFIX}:{i}")',
    'PREFIX = "npu"\nx.to(f"{PREFIX}:{i}")',
    'x.to(f"{prefix}:{i}")',
    'x.to("{}:{}".format(kind, i))',
    'PREFIX = ⟦NPU110:"cuda"⟧\nlog(f"{PREFIX}:{i}")',
]


@pytest.mark.parametrize("snippet", CONSTANTS)
def test_constants_are_folded(snippet: str) -> None:
    check(with_torch(snippet))


# Exact places whatever stands before them.
PLACES = [
    's = "漢字"; x.⟦NPU105:cuda⟧()',
    's = "😀😀"; x.to(⟦NPU110:"cuda"⟧)',
    "模型.⟦NPU105:cuda⟧()",
    '模型.to(⟦NPU110:"cuda"⟧); ñandú.⟦NPU105:cuda⟧()',
    "if y:\n\tx.⟦NPU105:cuda⟧()",
    "if y:\n\t\tx.to(\t⟦NPU110:'cuda'⟧)",
    's = f"é漢😀{⟦NPU101:torch.cuda.device_count⟧()}"',
    's = f"""\n漢 {⟦NPU101:torch.cuda.device_count⟧()} 漢 {x.⟦NPU105:cuda⟧()}\n"""',
    's = ("漢" f"{⟦NPU101:torch.cuda.device_count⟧()}"\n   f"{x.⟦NPU105:cuda⟧()}")',
    's = f"{y!r:>{⟦NPU101:torch.cuda.device_count⟧()}}"',
    's = f"{{}}{⟦NPU101:torch.cuda.device_count⟧()}{{"',
    's = f"{ ⟦NPU101:torch.cuda.device_count⟧() = }"',
    's = rf"\\d{⟦NPU101:torch.cuda.device_count⟧()}"',
    's = f"\\N{EM DASH}{⟦NPU101:torch.cuda.device_count⟧()}"',
    "s = f\"{x.to(⟦NPU110:'cuda'⟧)}\"",
    "s = f\"{a}{f'{⟦NPU101:torch.cuda.device_count⟧()}'}\"",
    's = "a\\\nb"; x.⟦NPU105:cuda⟧()',
    "s = 'x'  # 漢字 cuda\ny.⟦NPU105:cuda⟧()",
    "\x0cx.⟦NPU105:cuda⟧()",
    's = "a\u2028b"; x.⟦NPU105:cuda⟧()\ny.⟦NPU105:cuda⟧()',
    's = "a\x0bb\x85c"; x.⟦NPU105:cuda⟧()\ny.⟦NPU105:cuda⟧()',
    "⟦NPU101:torch . cuda . synchronize⟧ ( )",
    "(⟦NPU101:torch\n  .cuda\n  .synchronize⟧())",
    "⟦NPU101:torch.cuda.\\\n  synchronize⟧()",
]


@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("snippet", PLACES)
def test_places_are_exact(snippet: str, newline: str) -> None:
    source = check(with_torch(snippet).replace("\n", newline))
    repaired = fixed(source)
    assert "cuda" not in repaired.replace("漢字 cuda", "")
    assert ("\r\n" in repaired) is (newline == "\r\n")
    assert repaired.isascii() == source.isascii()


def test_a_byte_order_mark_moves_nothing() -> None:
    source = decode_source(b"\xef\xbb\xbfimport torch\r\nx.cuda()\r\n")
    assert [(m.start, m.end) for m in marks(source.text)] == [(16, 20)]
    assert fixed(source.text) == "import torch\r\nimport torch_npu  # noqa: F401\r\nx.npu()\r\n"


def test_an_old_encoding_moves_nothing() -> None:
    text = "# -*- coding: gbk -*-\nimport torch\ns = '模型'; x.cuda()\n"
    source = decode_source(text.encode("gbk"))
    assert marks(source.text) == marks(text)
    assert fixed(source.text) == text.replace("x.cuda", "x.npu").replace(
        "import torch\n", "import torch\nimport torch_npu  # noqa: F401\n"
    )


def test_formatting_outside_the_edits_stays() -> None:
    source = code("""
        import   torch   # the library


        def   f( x ,y= {  'device' :"cuda"} ) :  # odd
            # "cuda" is only a word here
            return(   x .cuda( )   +y   )   ;

        """)
    assert fixed(source) == source.replace(
        "library\n", "library\nimport torch_npu  # noqa: F401\n"
    ).replace(':"cuda"', ':"npu"').replace(".cuda(", ".npu(")


def test_only_safe_fixes_when_asked() -> None:
    source = "import torch\nlevel = torch.cuda.get_device_properties(0)\nx = x.cuda()\n"
    assert fixed(source, applicability=Applicability.SAFE) == (
        "import torch\nimport torch_npu  # noqa: F401\n"
        "level = torch.cuda.get_device_properties(0)\nx = x.npu()\n"
    )


def test_a_comparison_follows_the_renamed_device() -> None:
    source = 'import torch\nd = torch.device("cuda")\nhalf = d.type == "cuda"\n'
    assert fixed(source, applicability=Applicability.SAFE) == (
        'import torch\nimport torch_npu  # noqa: F401\nd = torch.device("npu")\n'
        'half = d.type == "npu"\n'
    )


def test_findings_come_in_order_and_once() -> None:
    source = 'import torch\nx.to("cuda").cuda(torch.device("cuda:0")).to("cuda")\n' * 3
    found = findings(source)
    assert [f.span for f in found] == sorted({f.span for f in found})


def test_what_it_says_names_the_word_and_its_counterpart() -> None:
    (finding,) = findings('import torch\nx.to("cuda:0")\n')
    assert '"cuda:0"' in finding.message("en")
    assert '"npu:0"' in finding.message("en")
    assert '"npu:0"' in finding.message("zh")


@pytest.mark.parametrize(
    ("test", "is_safe"),
    [
        ("x.device.type == 'cuda'", True),
        ("str(x.device).startswith('cuda')", True),
        ("'cuda' in str(device)", True),
        ("device == 'cuda'", False),
        ("args.device.startswith('cuda')", False),
        ("args.device in ('cuda', 'mps')", False),
    ],
)
def test_the_shim_renames_devices_and_no_texts(test: str, is_safe: bool) -> None:
    source = f"import torch\n\ndef run(x, device, args):\n    return {test}\n"
    (found,) = findings(source, SHIM)
    assert found.rule.code == "NPU111"
    assert found.fixes[0].applicability is (Applicability.SAFE if is_safe else Applicability.UNSAFE)


def test_accelerate_calls_several_npus_by_another_name() -> None:
    check(
        code(
            """
        from accelerate import Accelerator, DistributedType

        accelerator = Accelerator()
        kind = accelerator.distributed_type
        assert kind in [DistributedType.FSDP, ⟦NPU111:DistributedType.MULTI_GPU⟧]
        many = kind in (DistributedType.MULTI_GPU, DistributedType.MULTI_NPU)
        """
        )
    )


# A module's `cuda` moves its parameters and buffers, one after another: without any, it does
# nothing and needs no CUDA (run with PyTorch 2.13 without CUDA).
LOSSES = [
    ("a = nn.CrossEntropyLoss().cuda()", Severity.INFO),
    ("a = nn.CrossEntropyLoss(ignore_index=255).cuda(gpu)", Severity.INFO),
    ("a = nn.MSELoss(reduction='none').cuda()", Severity.INFO),
    ("a = nn.L1Loss()\na = a.cuda()", Severity.INFO),
    ("a = nn.CrossEntropyLoss(weight=w).cuda()", Severity.ERROR),
    ("a = nn.CrossEntropyLoss(w).cuda()", Severity.ERROR),
    ("a = nn.CrossEntropyLoss(**options).cuda()", Severity.ERROR),
    ("a = nn.BCEWithLogitsLoss(pos_weight=w).cuda()", Severity.ERROR),
    ("a = nn.CrossEntropyLoss(weight=w)\na.cuda()", Severity.ERROR),
    ("a = nn.L1Loss() if plain else Perceptual()\na.cuda()", Severity.ERROR),
    ("a = nn.TripletMarginWithDistanceLoss(distance_function=Net()).cuda()", Severity.ERROR),
    ("a = nn.Linear(2, 2).cuda()", Severity.ERROR),
]


@pytest.mark.parametrize(("text", "severity"), LOSSES)
def test_moving_a_loss_that_holds_nothing_is_no_error(text: str, severity: Severity) -> None:
    (found,) = findings("import torch\nfrom torch import nn\n" + text)
    assert (found.rule.code, found.effective_severity) == ("NPU105", severity)


# `torch.manual_seed` seeds the devices of plugins as well (torch/random.py, from 2.1 on).
SEEDS = [
    ("torch.manual_seed(1)\ntorch.cuda.manual_seed(1)", Severity.INFO),
    (
        "def f():\n    torch.manual_seed(1)\n    torch.cuda.manual_seed_all(1)",
        Severity.INFO,
    ),
    ("torch.cuda.manual_seed_all(1)", Severity.ERROR),
    (
        "def f():\n    torch.manual_seed(1)\n\n\ndef g():\n    torch.cuda.manual_seed(1)",
        Severity.ERROR,
    ),
]


@pytest.mark.parametrize(("text", "severity"), SEEDS)
def test_seeds_beside_one_for_all_devices_are_no_error(text: str, severity: Severity) -> None:
    (found,) = findings("import torch\n" + text)
    assert (found.rule.code, found.effective_severity) == ("NPU101", severity)
    kept = findings("import torch\n" + text, cache=StatementCache())
    assert kept == (found,), "with a cache the answer is another"
    (older,) = findings("import torch\n" + text, torch=(2, 0))
    assert older.effective_severity is Severity.ERROR


def test_names_that_are_only_compared_have_fixes_to_read() -> None:
    """All together, so that no half of them is renamed; what `to` takes is renamed throughout."""
    compared = code(
        """
        import torch
        add_argument("--gpu_type", default="cuda")
        if args.gpu_type == "cuda":
            pass
        elif args.gpu_type == "mps":
            pass
        """
    )
    assert [f.fixes[0].applicability for f in findings(compared)] == [Applicability.UNSAFE] * 2
    taken = "import torch\nkind = 'cuda'\nx.to(kind)\nif kind == 'cuda':\n    pass\n"
    assert [f.fixes[0].applicability for f in findings(taken)] == [Applicability.SAFE] * 2


ERRORS = {
    'if "⟦NPU111:CUDA out of memory⟧. " in str(e): pass': 'if "out of memory. " in str(e): pass',
    "if '⟦NPU111:CUDA out of memory⟧' not in error.args[0]: raise": (
        "if 'out of memory' not in error.args[0]: raise"
    ),
    'if "CUDA out of memory" in ("CUDA out of memory", "other"): pass': "",
    'print("CUDA out of memory")': "",
    f"'CUDA' if 0x{'f' * 9_000} in x else 0": "",
}


@pytest.mark.parametrize(("snippet", "becomes"), ERRORS.items())
def test_texts_of_errors_are_those_of_all_devices(snippet: str, becomes: str) -> None:
    check(with_torch(snippet))
    source, _ = unmarked(with_torch(snippet))
    assert fixed(source) == (with_torch(becomes) if becomes else source)


def test_devices_are_renamed_with_the_question_for_them() -> None:
    """A safe fix of the question alone would have the machine of an NPU use CUDA."""
    source = (
        "import torch\n\n"
        'for device in ["cpu"] + ["cuda"] if torch.cuda.is_available() else []:\n    run(device)\n'
        "kinds = []\n"
        'if torch.cuda.is_available():\n    kinds.append("cuda")\n'
        'for device in ("cpu", "cuda"):\n'
        '    if device == "cuda" and not torch.cuda.is_available():\n        continue\n'
    )
    made = fixed(source, applicability=Applicability.SAFE)
    assert made.replace("import torch_npu  # noqa: F401\n", "") == source.replace("cuda", "npu")
