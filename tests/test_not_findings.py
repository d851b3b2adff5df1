"""What is no finding: words, the user's own names, and code that already knows the NPU."""

import pytest

from helpers import AGNOSTIC, SHIM, bug, check, code, findings, fixed, marks, unmarked
from npulens.catalog.model import Severity

# Every snippet stands behind `import torch`; unless marked, nothing in it is a finding.
WORDS = [
    # comments, docstrings
    "# torch.cuda.synchronize(), x.cuda() and 'cuda:0'",
    'def f(device):\n    """Moves to "cuda" with x.cuda() and torch.cuda.synchronize()."""',
    'class A:\n    """device = "cuda:0" """',
    '"""On cuda:0."""',
    "def f():\n    'cuda'",
    "x = 1\n'''cuda:0'''\ny = 2",
    # log, error and help texts
    "print('cuda:0')",
    "print('on', 'cuda:0', end='')",
    "print(f'on cuda:{i}')",
    "print(f'cuda:{i}')",
    "logger.info('moving to cuda:0')",
    "logger.warning('no %s', 'cuda:0')",
    "logging.error(f'cuda:{i} is gone')",
    "self.log.debug('cuda')",
    "warnings.warn('cuda:0')",
    "raise ValueError('device must be cuda:0')",
    "raise ValueError('cuda:0')",
    "raise RuntimeError(f'no cuda:{i}')",
    "raise ValueError('expected device cuda, got ' + device)",
    "assert x, 'cuda:0'",
    "assert x, f'cuda:{i}'",
    "parser.add_argument('--n', help='cuda:0')",
    "parser.add_argument('--device', help='cuda')",
    "parser.add_argument('--device', metavar='cuda')",
    "@click.option('--device', help='cuda:0')\ndef main(device): ...",
    bug("a help text in a dictionary", "x = field(metadata={'help': 'cuda:0'})"),
    "@unittest.skipIf(n < 2, reason='cuda:0')\ndef test(): ...",
    "self.fail(msg='cuda:0')",
    # paths, URLs, packages, other languages
    "url = 'https://pytorch.org/docs/stable/torch.cuda.html'",
    "device_docs = 'https://pytorch.org/docs/stable/torch.cuda.html'",
    "path = '/usr/local/cuda'",
    "device_file = '/dev/cuda0'",
    "name = 'ckpt_cuda:0.pt'",
    "device_name = 'ckpt_cuda:0.pt'",
    "name = 'barracuda: a fish'",
    "device = 'barracuda'",
    "device = 'cudart'",
    "device = 'my-cuda'",
    "extras = {'cuda': ['cupy'], 'dev': ['ruff']}",
    "logger = logging.getLogger('cuda')",
    "requires = ['torch+cuda']",
    "source = '''#include <cuda.h>\nc10::cuda::getCurrentCUDAStream(); x.cuda(); \"cuda:0\"'''",
    "device_source = 'c10::cuda::CUDAStream s = torch.cuda.x;'",
    "s = 'torch.cuda on cuda:0'",
    "s = 'see torch.cuda.FloatTensor'",
    "d = {'torch.cuda.synchronize()': 3}",
    "x.to('CUDA graphs')",
    # a word, where no device is meant
    "x['cuda']",
    "opts = {'cuda': True}",
    "opts = {'cuda': True}\nrun(**opts)",
    "vars(args)['cuda']",
    "vars(args)['cuda'] = False",
    "getattr(args, 'cuda', False)",
    "hasattr(args, 'cuda')",
    "setattr(args, 'cuda', True)",
    "'cuda' in args and args['cuda']",
    "parser.add_argument('--cuda', action='store_true')",
    "parser.add_argument('--no-cuda', action='store_true', default=False)",
    "parser.add_argument('--use-device', action='store_true')\nif args.cuda: pass",
    "args.cuda = not args.no_cuda",
    "self.cuda = cuda",
    "def f(cuda=True): ...\nf(cuda=False)",
    "for cuda in (True, False): pass",
    "cfg.CUDA",
    "cfg.cuda_graph_notes",
    "cfg.cuda.enabled",
    "cfg.is_cuda_graph",
    "class DeviceType:\n    CUDA = 1\nDeviceType.CUDA",
    "class Kind(Enum):\n    CUDA = 'cuda'\n    CPU = 'cpu'",
    "def f(x: Literal['cuda', 'cpu']): ...",
    "__all__ = ['cuda']",
    "import my.cuda",
    "from my import cuda\ncuda.synchronize()",
    "from . import cuda\ncuda.synchronize()",
    "from .cuda import synchronize\nsynchronize()",
    # devices that are no CUDA device
    "torch.device('cpu')",
    "torch.device('meta')",
    "x.to('mps')",
    "x.to('npu')",
    "x.to('npu:0')",
    "x.to(0)",
    "x.to(dtype)",
    "x.to(device)",
    "x.to(x.device)",
    "torch.zeros(3, device=x.device)",
    "logger.to(sink)",
    "foo.set_device(3)",
    "r.to(weights)",
    "Date().to('utc')",
    # shapes that break today's tool (BR-08 to BR-14)
    "self.t.to(*args, **kw)",
    "x.to(**kw)",
    "x.to(copy=True)",
    "x.to(non_blocking=True, device=d)",
    "x.to(next(it))",
    "x.to((yield))",
    "async def f():\n    x.to(await g())",
    "x.to(\n    d\n)",
    "torch.zeros(3, device={0: a}[k])",
    "x.to({0: a}[k])",
    "x.to(d := g())",
    "hasattr(model.module, 'x')",
    "hasattr(get().module, 'x')",
    "d[key] = value",
    "parser.set_defaults(func=cmd)",
]


# Nothing shows what these mean: they are asked about, and no command changes them.
ASKED = [
    "cmd = ['nvcc', '-x', 'cu', ⟦NPU110:'cuda'⟧]",
    "name = ⟦NPU110:'cuda'⟧",
    "tag = ⟦NPU110:'cuda'⟧ if x else ''",
    "⟦NPU110:'cuda'⟧ in args",
    "if name == ⟦NPU110:'cuda'⟧: pass",
    "f(name=⟦NPU110:'cuda'⟧)",
    "x.append(⟦NPU110:'cuda'⟧)",
    "kernel(mutates_args=(), device_types=⟦NPU110:'cuda'⟧)",
    "kinds = [⟦NPU110:'cuda'⟧, 'rocm']",
]


@pytest.mark.parametrize("snippet", ASKED)
def test_what_may_be_a_device_is_asked_and_left(snippet: str) -> None:
    source = check(f"import torch\n{snippet}\n")
    assert {f.effective_severity for f in findings(source)} == {Severity.INFO}
    assert fixed(source) == fixed(source, AGNOSTIC) == source


@pytest.mark.parametrize("snippet", WORDS)
def test_words_are_no_findings(snippet: str) -> None:
    check(f"import torch\n{snippet}\n")


@pytest.mark.parametrize("snippet", WORDS)
def test_words_stay_as_they_are(snippet: str) -> None:
    source = f"import torch\n{snippet}\n"
    assert fixed(source) == source
    assert fixed(source, AGNOSTIC) == source


# The user's own definitions (BR-01, BR-02, BR-19, BR-20, FP-07).
OWN_NAMES = [
    "def cuda(x): return x\ncuda(b)",
    "def is_cuda(x): return x\nis_cuda(b)",
    "class Box:\n    def cuda(self): return self\nBox().cuda()",
    "class Box:\n    def cuda(self): return self\nb = Box()\nb.cuda()",
    "class Box:\n    def cuda(self): return self\n    def go(self): return self.cuda()",
    "class Box:\n    cuda = 3\n    def go(self): return self.cuda",
    "class Box:\n    @property\n    def is_cuda(self): return False\nb = Box()\nb.is_cuda",
    "class Box:\n    is_cuda = False\nb = Box()\nb.is_cuda",
    (
        "class Box:\n    def __init__(self): self.is_cuda = False\n"
        "    def f(self): return self.is_cuda"
    ),
    "class Box:\n    is_cuda: bool\n    def f(self): return self.is_cuda",
    "class Box:\n    def cuda(self): return self\ndef f():\n    b = Box()\n    b.cuda()",
    "class Box:\n    def cuda(self): return self\ndef f(b: Box): return b.cuda()",
    bug(
        "an annotation in quotes",
        "class Box:\n    def cuda(self): return self\ndef f(b: 'Box'): return b.cuda()",
    ),
    bug(
        "a base class of this file",
        "class Box:\n    def cuda(self): return self\nclass Small(Box):\n    pass\nSmall().cuda()",
    ),
    "class Box:\n    pass\nBox().cuda()",
    bug(
        "an instance made by cls()",
        "class Box:\n    def cuda(self): return self\n    @classmethod\n"
        "    def of(cls): return cls().cuda()",
    ),
    "import mine\nmine.cuda()",
    "s = 'text'\ns.cuda()",
    "class torch:\n    class cuda:\n        def synchronize(): pass\ntorch.cuda.synchronize()",
    "torch = Foo()\ntorch.cuda.synchronize()",
    "del torch\ntorch.cuda.synchronize()",
    "import jax as torch\ntorch.cuda.synchronize()",
    "from . import torch\ntorch.cuda.synchronize()",
    "from mine import torch\ntorch.cuda.synchronize()",
    "def f(torch):\n    torch.cuda.synchronize()",
    "def f(*torch):\n    torch.cuda.synchronize()",
    "def f(**torch):\n    torch.cuda.synchronize()",
    "def f(a, *, torch=None):\n    torch.cuda.synchronize()",
    "async def f(torch):\n    torch.cuda.synchronize()",
    "f = lambda torch: torch.cuda.synchronize()",
    "def f():\n    torch = g()\n    torch.cuda.synchronize()",
    "def f():\n    torch.cuda.synchronize()\n    torch = g()",
    "def f():\n    import mine as torch\n    torch.cuda.synchronize()",
    "def f(torch):\n    def g():\n        torch.cuda.synchronize()",
    "def f(torch):\n    return [torch.cuda.x for i in y]",
    "[torch.cuda.synchronize() for torch in xs]",
    "{torch.cuda.x: 1 for torch in xs}",
    "{torch.cuda.x for torch in xs if torch.cuda.y}",
    "all(torch.cuda.x for a, (b, torch) in xs)",
    "for torch in xs:\n    torch.cuda.synchronize()",
    "for a, torch in xs:\n    torch.cuda.synchronize()",
    "with f() as torch:\n    torch.cuda.synchronize()",
    "with f() as (a, torch):\n    torch.cuda.synchronize()",
    "try:\n    pass\nexcept E as torch:\n    torch.cuda.synchronize()",
    "match x:\n    case [torch]:\n        torch.cuda.synchronize()",
    "match x:\n    case {'a': torch}:\n        torch.cuda.synchronize()",
    "match x:\n    case {'a': 1, **torch}:\n        torch.cuda.synchronize()",
    "match x:\n    case [*torch]:\n        torch.cuda.synchronize()",
    "match x:\n    case C(a=torch):\n        torch.cuda.synchronize()",
    "match x:\n    case int() as torch if torch.cuda.y:\n        pass",
    "if (torch := f()):\n    torch.cuda.synchronize()",
    "a, torch = f()\ntorch.cuda.synchronize()",
    "[a, *torch] = f()\ntorch.cuda.synchronize()",
    "torch: object = f()\ntorch.cuda.synchronize()",
    "torch += 1\ntorch.cuda.synchronize()",
    "class A:\n    torch = f()\n    torch.cuda.synchronize()",
    "def torch(): ...\ntorch.cuda.synchronize()",
]


@pytest.mark.parametrize("snippet", OWN_NAMES)
def test_own_names_are_no_findings(snippet: str) -> None:
    check(f"import torch\n{snippet}\n")


def test_a_parameter_named_like_an_alias_elsewhere() -> None:
    check(
        code("""
        import torch


        def a():
            backend = ⟦NPU101:torch.cuda⟧
            ⟦NPU101:backend.synchronize⟧()


        def b(backend):
            backend.synchronize()


        def c():
            backend = Foo()
            backend.synchronize()
        """)
    )


def test_a_class_scope_is_not_seen_by_its_methods() -> None:
    check(
        code("""
        import torch


        class A:
            torch = None

            def f(self):
                ⟦NPU101:torch.cuda.synchronize⟧()
        """)
    )


def test_a_class_with_its_own_cuda_keeps_its_calls_out_of_safe_fixes() -> None:
    source = code("""
        import torch


        class Net(Base):
            def cuda(self, device=None):
                return self


        def run(net):
            return net.cuda()
        """)
    for finding in findings(source):
        assert all(fix.applicability.value == "unsafe" for fix in finding.fixes)


# Code that has been moved to the NPU already, or never runs there.
PORTED = [
    "torch.npu.synchronize()",
    "x.npu()",
    "device = 'npu'",
    "import torch_npu\ntorch_npu.npu.set_device(0)",
    "if device == 'npu':\n    x.npu()\nelif device == 'cuda':\n    x.cuda()",
    "if device == 'cuda':\n    x.cuda()\nelif device == 'npu':\n    x.npu()",
    "if device == 'cuda':\n    x.cuda()\nelif device == 'npu':\n    x.npu()\nelse:\n    pass",
    "if device.type == 'cuda':\n    torch.cuda.synchronize()\n"
    "elif device.type == 'xpu':\n    torch.xpu.synchronize()\n"
    "elif device.type == 'npu':\n    torch.npu.synchronize()",
    "if torch.cuda.is_available():\n    m = m.cuda()\n"
    "elif kind == 'npu' and torch.npu.is_available():\n    m = m.npu()",
    "if kind in ('ascend', 'camb'):\n    f()\nelif kind == 'cuda':\n    torch.cuda.set_device(0)",
    "if device == 'cuda':\n    torch.cuda.set_device(0)\n"
    "elif device == torch._C._get_privateuse1_backend_name():\n    other.set_device(0)",
    "def f():\n    has_cuda = torch.cuda.is_available()\n    if has_cuda or npu_there():\n"
    "        return (torch.cuda if has_cuda else torch.npu).device_count()",
    "if is_npu_available():\n    d = 'npu'\nelse:\n    d = 'cuda'",
    "if is_torch_npu_available():\n    d = 'npu'\nelif torch.cuda.is_available():\n    d = 'cuda'",
    "if torch.cuda.is_available():\n    d = 'cuda'\nelif is_torch_npu_available():\n    d = 'npu'",
    "if hasattr(torch, 'npu') and torch.npu.is_available():\n    d = 'npu'\nelse:\n    d = 'cuda'",
    "if is_npu_available():\n    x.npu()",
    "if is_npu:\n    torch.npu.synchronize()\nelse:\n    torch.cuda.synchronize()",
    "if not is_npu_available():\n    torch.cuda.synchronize()",
    "if not is_npu:\n    x = x.cuda()\nelse:\n    x = x.npu()",
    "def f():\n    if is_npu_available():\n        return 'npu'\n"
    "    if torch.cuda.is_available():\n        return 'cuda'\n    return 'cpu'",
    "def get_device():\n    if torch.cuda.is_available():\n        return 'cuda'\n"
    "    if is_npu_available():\n        return 'npu'\n    return 'cpu'",
    "def get_device():\n    if is_npu_available():\n        return 'npu'\n    elif x:\n"
    "        return 'cuda'\n    return 'cpu'",
    "for d in ds:\n    if is_npu_available():\n        continue\n    x.cuda()",
    "def f():\n    if is_npu_available():\n        raise E\n    x.cuda()",
    "ok = torch.cuda.is_available() or torch.npu.is_available()",
    "ok = is_npu_available() or torch.cuda.is_available()",
    "if torch.cuda.is_available() or is_npu_available(): pass",
    "E = {'cuda': torch.cuda.synchronize, 'npu': torch.npu.synchronize}",
    "E = {'cuda': torch.cuda, 'npu': torch.npu, 'cpu': None}[device]",
    "E = {'npu': 'hccl', 'cuda': 'nccl', 'cpu': 'gloo'}",
    "device = 'npu' if is_npu_available() else 'cuda'",
    "device = 'cuda' if torch.cuda.is_available() else 'npu'",
    "device = 'npu' if npu() else 'cuda' if torch.cuda.is_available() else 'cpu'",
    "x.to('npu' if is_npu_available() else 'cuda')",
    "torch.device('npu' if is_npu_available() else 'cuda')",
    "f(device='npu' if is_npu_available() else 'cuda')",
    "def f(device='npu' if is_npu_available() else 'cuda'): ...",
    "def get_device():\n    return 'npu' if is_npu_available() else 'cuda'",
    "cfg = {'device': 'npu' if is_npu_available() else 'cuda'}",
    "cfg['device'] = 'npu' if is_npu_available() else 'cuda'",
    "sync = torch.npu.synchronize if is_npu_available() else torch.cuda.synchronize",
    "(torch.npu if is_npu_available() else torch.cuda).synchronize()",
    "if x.device.type in ('cuda', 'npu'): pass",
    "if x.device.type in ['cpu', 'cuda', 'xpu', 'npu']: pass",
    "if x.device.type not in {'cuda', 'npu'}: pass",
    "if device == 'cuda' or device == 'npu': pass",
    "if x.is_cuda or x.is_npu: pass",
    "if device.startswith(('cuda', 'npu')): pass",
    "parser.add_argument('--device', choices=['cpu', 'cuda', 'npu'], default='npu')",
    "match device:\n    case 'cuda':\n        x.cuda()\n    case 'npu':\n        x.npu()",
    "match device:\n    case 'cuda' | 'npu':\n        pass",
    "device = device.replace('cuda:', 'npu:')",
    "text = text.replace('cuda:', '')",
    "device = torch.accelerator.current_accelerator()\nx.to(device)",
    "x.to(torch.accelerator.current_accelerator().type)",
    "device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else "
    "'cpu'",
    (
        "if hasattr(torch, 'accelerator'):\n    torch.accelerator.synchronize()\n"
        "else:\n    torch.cuda.synchronize()"
    ),
    "if hasattr(torch.nn.functional, 'scaled_dot_product_attention'):\n    mode = 'sdpa'\n"
    "else:\n    import xformers\n    mode = 'xformers'",
    # the twin for the NPU is another statement of the block
    "def f(self, device):\n    self.is_cuda = device.type == 'cuda' and torch.cuda.is_available()\n"
    "    self.is_npu = device.type == 'npu' and torch.npu.is_available()",
    "def save(states):\n    if torch.cuda.is_available():\n"
    "        states['cuda'] = torch.cuda.get_rng_state_all()\n    if is_xla():\n        pass\n"
    "    if is_torch_npu_available():\n        states['npu'] = torch.npu.get_rng_state_all()",
    "def seed(s):\n    torch.cuda.manual_seed_all(s)\n    if is_npu_available():\n"
    "        torch.npu.manual_seed_all(s)",
    # whether a library for CUDA works is rightly answered with no
    "def is_flash_attn_available():\n    return found('flash_attn') and torch.cuda.is_available()",
    "try:\n    import ⟦NPU613:causal_conv1d⟧\nexcept ImportError:\n    causal_conv1d = None\n"
    "fast = causal_conv1d is not None and 'cuda' in x.device.type",
    "same = device_type in ['cuda', 'rocm']",
    "mod = getattr(torch, device_type, torch.cuda)",
    "try:\n    import torch_npu  # noqa: F401\n    d = 'npu'\nexcept ImportError:\n    d = 'cuda'",
    "try:\n    import torch_npu  # noqa: F401\nexcept ImportError:\n    x.cuda()",
    "backend = 'hccl' if is_npu_available() else 'nccl'",
    "DEVICES = ('cuda', 'npu', 'xpu')",
    # branches of other devices
    "if device == 'cpu':\n    torch.load(p, map_location='cuda')",
    "if device.type == 'mps':\n    x.cuda()",
    "if torch.backends.mps.is_available():\n    d = torch.device('mps')",
    "if torch.xpu.is_available():\n    torch.xpu.synchronize()",
    "if not ⟦NPU101:torch.cuda.is_available⟧():\n    torch.load(p, map_location='cuda')",
]


@pytest.mark.parametrize("snippet", PORTED)
def test_ported_code_is_left_alone(snippet: str) -> None:
    check(f"import torch\n{snippet}\n")


# What stands beside ported code is still found.
BESIDE = [
    "if is_npu_available():\n    d = 'npu'\nx.⟦NPU105:cuda⟧()",
    "if device == 'npu':\n    pass\n⟦NPU101:torch.cuda.synchronize⟧()",
    "device = 'npu' if is_npu_available() else 'cuda'\ny.to(⟦NPU110:'cuda'⟧)",
    "def f():\n    if is_npu_available():\n        return\n\ndef g():\n    x.⟦NPU105:cuda⟧()",
    "d = 'npu'\nx.⟦NPU105:cuda⟧()",
    "E = {'cuda': torch.cuda, 'npu': torch.npu}\nx.⟦NPU105:cuda⟧()",
    "def f():\n    has_cuda = ⟦NPU101:torch.cuda.is_available⟧()\n"
    "    a = torch.cuda if has_cuda else torch.npu\n    return a if has_cuda else None",
    "if ⟦NPU101:torch.cuda.is_available⟧():\n    m = m.⟦NPU105:cuda⟧()\n"
    "elif kind == 'npu' and torch.npu.is_available():\n    print(m)",
    "import torch_npu  # noqa: F401\nx.⟦NPU105:cuda⟧()",
    "import torch_npu  # noqa: F401\nx = f(1)\nx = x.⟦NPU105:cuda⟧()",
    "if device != 'npu' and debug:\n    pass\nx.⟦NPU105:cuda⟧()",
    "if device != 'cpu':\n    x.⟦NPU105:cuda⟧()",
    "if device == 'cpu':\n    pass\nelse:\n    x.⟦NPU105:cuda⟧()",
    "if ⟦NPU101:torch.cuda.is_available⟧():\n    x.⟦NPU105:cuda⟧()",
    "if not ⟦NPU101:torch.cuda.is_available⟧():\n    pass\nelse:\n    x.⟦NPU105:cuda⟧()",
    "if cpu_offload:\n    x.⟦NPU105:cuda⟧()",
    "if input_num:\n    x.⟦NPU105:cuda⟧()",
    "device = torch.accelerator.current_accelerator().type if new else ⟦NPU110:'cuda'⟧",
    "fast = is_fast_path_available and ⟦NPU111:'cuda'⟧ in x.device.type",
    "if gpu_input.npu_bytes:\n    pass\nx.⟦NPU105:cuda⟧()",
]


@pytest.mark.parametrize("snippet", BESIDE)
def test_code_beside_is_found(snippet: str) -> None:
    check(f"import torch\n{snippet}\n")


# The text is for people, what stands in its braces is code.
MESSAGES = [
    "print(f'{⟦NPU101:torch.cuda.memory_allocated⟧() / 1e9:.2f} GB on cuda:0')",
    "print('used', ⟦NPU101:torch.cuda.max_memory_allocated⟧())",
    "print('used %d' % ⟦NPU101:torch.cuda.max_memory_allocated⟧())",
    "print('used {}'.format(⟦NPU101:torch.cuda.max_memory_allocated⟧()))",
    "logger.info(f'{⟦NPU101:torch.cuda.current_device⟧()}')",
    "logger.info('on %s', ⟦NPU101:torch.cuda.get_device_name⟧(0))",
    "raise RuntimeError(f'on {⟦NPU101:torch.cuda.get_device_name⟧(0)}')",
    "raise RuntimeError('on ' + ⟦NPU101:torch.cuda.get_device_name⟧(0))",
    "assert ok, f'on {⟦NPU101:torch.cuda.get_device_name⟧(0)}'",
    "warnings.warn(f'{⟦NPU101:torch.cuda.device_count⟧()} cards')",
    "raise ⟦NPU101:torch.cuda.OutOfMemoryError⟧('cuda:0')",
    "parser.add_argument('--n', default=⟦NPU101:torch.cuda.device_count⟧(), help='cuda:0')",
]


@pytest.mark.parametrize("snippet", MESSAGES)
def test_code_in_messages_is_found(snippet: str) -> None:
    check(f"import torch\n{snippet}\n")


# Rewrites that broke with today's tool: what ours makes of them.
REWRITES = [
    # BR-06: a map of backends
    (
        "dist.init_process_group(backend='cuda:nccl,cpu:gloo')",
        "dist.init_process_group(backend='npu:hccl,cpu:gloo')",
    ),
    # BR-07: one string, several words
    ("s = 'torch.cuda on cuda:0'; x.to('cuda')", "s = 'torch.cuda on cuda:0'; x.to('npu')"),
    # BR-11: an expression stays one expression
    (
        "y = torch.zeros(3, device=torch.cuda.current_device())",
        "y = torch.zeros(3, device=torch.npu.current_device())",
    ),
    # BR-12: an argument over several lines
    (
        "x.to(\n    'cuda'  # here\n    if ok else\n    other,\n)",
        "x.to(\n    'npu'  # here\n    if ok else\n    other,\n)",
    ),
    # BR-21: the vendor's own names
    ("g = torch.cuda.CUDAGraph()", "g = torch.npu.NPUGraph()"),
    # BR-24, BR-25
    (
        "d = torch.device('cpu') if n else torch.device('cuda')",
        "d = torch.device('cpu') if n else torch.device('npu')",
    ),
    ("logger.to(sink); x.cuda(non_blocking=True)", "logger.to(sink); x.npu(non_blocking=True)"),
    # BR-36
    ("y = torch.zeros(3, device=x.device).cuda()", "y = torch.zeros(3, device=x.device).npu()"),
    # BR-37: what has been moved stays
    ("x.npu(); y.cuda()", "x.npu(); y.npu()"),
]


@pytest.mark.parametrize(("before", "after"), REWRITES)
def test_rewrites(before: str, after: str) -> None:
    assert (
        fixed(f"import torch\n{before}\n")
        == f"import torch\nimport torch_npu  # noqa: F401\n{after}\n"
    )


def test_renamed_members_are_imported_under_the_old_name() -> None:
    source = "from torch.cuda.memory import CUDAPluggableAllocator\nCUDAPluggableAllocator(p)\n"
    assert "NPUPluggableAllocator as CUDAPluggableAllocator" in fixed(source)


def test_torch_has_no_profiler_activity_of_the_npu() -> None:
    source = "from torch.profiler import ProfilerActivity\nProfilerActivity.CUDA\n"
    assert "from torch.profiler import ProfilerActivity\nProfilerActivity.NPU" not in fixed(source)


def test_a_model_file_without_a_gpu_gets_no_import() -> None:
    source = code("""
        import torch
        from torch import nn


        class Net(nn.Module):
            def forward(self, x):
                return torch.relu(x.to(self.weight.device))
        """)
    assert fixed(source) == source


# With `transfer_to_npu` what the shim patches is no finding.
SHIMMED = [
    "x.cuda()",
    "x.is_cuda",
    "torch.cuda.synchronize()",
    "x.to('cuda')",
    "torch.zeros(3, device='cuda')",
    "device = 'cuda'",
    "device = 'cuda' if torch.cuda.is_available() else 'cpu'\nif device == 'cuda': pass",
    "device = 'cuda:0'\nif device.startswith('cuda'): pass",
    "device = 'cuda'\nmatch device:\n    case 'cuda': pass",
    "def run(device='cuda'):\n    return device != 'cuda'",
]


@pytest.mark.parametrize("snippet", SHIMMED)
def test_the_runtime_shim_makes_these_work(snippet: str) -> None:
    assert marks(f"import torch\n{snippet}\n", SHIM) == []
    assert marks(f"import torch\nfrom torch_npu.contrib import transfer_to_npu\n{snippet}\n") == []


def test_snippets_are_python() -> None:
    for case in WORDS + OWN_NAMES + PORTED + BESIDE + MESSAGES:
        snippet = case if isinstance(case, str) else case.values[0]
        if "await" not in snippet and "yield" not in snippet:
            compile(unmarked(snippet)[0], "snippet", "exec")


HALF_FIXED = [
    # a fix was clicked on one of two places: the other one is still a finding
    'device = ⟦NPU110:"cuda"⟧ if torch.npu.is_available() else "cpu"',
    'device = "npu" if ⟦NPU101:torch.cuda.is_available⟧() else "cpu"',
    "ok = torch.npu.is_available() and ⟦NPU101:torch.cuda.is_bf16_supported⟧()",
    "if torch.npu.is_available():\n    ⟦NPU101:torch.cuda.manual_seed⟧(0)",
    "def pick():\n    if torch.npu.is_available():\n"
    '        device = ⟦NPU110:"cuda"⟧\n        return device',
    "if torch.npu.is_available():\n    torch.npu.manual_seed(0)\n"
    "if ⟦NPU101:torch.cuda.is_available⟧():\n    ⟦NPU101:torch.cuda.empty_cache⟧()",
    "torch.npu.synchronize()\nrun()\n⟦NPU101:torch.cuda.synchronize⟧()",
]


@pytest.mark.parametrize("snippet", HALF_FIXED)
def test_half_fixed_code_is_not_taken_for_ported(snippet: str) -> None:
    check("import torch\n" + snippet)


@pytest.mark.parametrize(
    "snippet",
    [
        "import torch\nif torch.cuda.is_available():\n    torch.cuda.empty_cache()\n"
        "if is_npu_available():\n    torch.npu.empty_cache()\n",
        "import torch\nhas_cuda_now = torch.cuda.is_available()\nhas_npu_now = npu_is_there()\n",
    ],
)
def test_statements_of_a_module_are_read_together(snippet: str) -> None:
    check(snippet)


OTHER_FRAMEWORKS = {
    "import paddle\ndef f(x): return x.cuda()": [],
    "import oneflow as flow\nx = flow.ones(2)\nx.cuda()": [],
    "from jittor import nn\ndef f(x): return x.cuda()": [],
    "import paddle\nimport torch\ndef f(x): return x.cuda()": ["NPU105"],
    "from paddle import x\nfrom torch import nn\ndef f(x): return x.cuda()": ["NPU105"],
    "import tensorboard\ndef f(x): return x.cuda()": ["NPU105"],
}


@pytest.mark.parametrize("text", OTHER_FRAMEWORKS)
def test_tensors_of_other_frameworks(text: str) -> None:
    assert [finding.rule.code for finding in findings(text)] == OTHER_FRAMEWORKS[text]
