"""Code that asks for CUDA for CUDA's own sake is right as it is; code that looks like it is not."""

import pytest

from helpers import check, findings
from npulens.catalog.model import Applicability

CUDA_ONLY = [
    # kernels that may be missing, with another way
    "try:\n    from ⟦NPU613:mamba_ssm⟧ import scan\nexcept ImportError:\n    scan = None\n"
    "fast = all((scan, scan))\n"
    "def f(self):\n    if not fast or 'cuda' not in self.w.device.type:\n"
    "        raise ValueError('no fast kernels')",
    # kernels that the module builds, with another way
    "kernel = None\ndef build():\n    global kernel\n    names = ['a.cpp', 'a.cu']\n"
    "    kernel = plugins.load('k', sources=names)\n    return kernel is not None\n"
    "def fast(x):\n    return kernel.run(x)\n"
    "def f(x, kind):\n    if kind == 'cuda' and x.device.type == 'cuda' and build():\n"
    "        return fast(x)\n    return slow(x)",
    # architectures
    "if torch.cuda.is_available() and torch.cuda.get_device_capability()[0] >= 8:\n    fast = True",
    "def f(x):\n    if x.is_cuda and x.ndim > 3 and torch.cuda.get_device_capability()[0] >= 9:\n"
    "        return a(x)\n    return b(x)",
    "if torch.cuda.is_available():\n    major, _ = torch.cuda.get_device_capability()\n"
    "    if major < 8:\n        raise ValueError('too old')",
    # ways around CUDA attention kernels
    # ROCm, places without an NPU, libraries of old
    "if torch.version.hip is not None and torch.cuda.device_count() > 1:\n    pass",
    "if in_colab and not torch.cuda.is_available():\n    pass",
    "if is_sagemaker_enabled():\n    device = torch.device('cuda', rank)",
    "def check(self):\n    if not is_xformers_available():\n        raise ImportError('xformers')\n"
    "    if not torch.cuda.is_available():\n        raise RuntimeError('a GPU is needed')\n"
    "    major = torch.cuda.get_device_capability()[0]",
    # the NPU is seeded too, in another block
    "def seed_all(seed):\n    if torch_there():\n        torch.cuda.manual_seed_all(seed)\n"
    "    if is_npu_available():\n        torch.npu.manual_seed_all(seed)",
    "if kind == 'cuda':\n    assert torch.cuda.is_available()\n"
    "if kind == 'npu':\n    assert torch.npu.is_available()",
    # for releases of PyTorch older than any for the NPU
    "def f(device):\n    try:\n        return torch.get_autocast_dtype(device)\n"
    "    except AttributeError:\n        pass\n    assert device == 'cuda'",
    "def f(device):\n    try:\n        return torch.is_autocast_enabled(device)\n"
    "    except (AttributeError, TypeError):\n        return device == 'cuda'",
    "if torch.__version__ == 'parrots':\n    if torch.cuda.is_available():\n        m.cuda()",
    "if torch.__version__ != 'parrots':\n    pass\nelse:\n    m.cuda()",
    "old = TORCH_VERSION == (1, 8) and torch.cuda.is_available()",
    "if torch.__version__.startswith('0'):\n    torch.cuda.synchronize()",
    "if not torch.__version__.startswith('0.'):\n    pass\nelse:\n    m.cuda()",
    # what is moved to a GPU works on the host as well
    "import faiss\nif torch.cuda.is_available():\n    r = faiss.StandardGpuResources()\n"
    "    index = faiss.index_cpu_to_gpu(r, 0, index)",
    "import faiss\nif (device == 'cuda' and a) or b:\n    if hasattr(faiss, 'x'):\n"
    "        index = faiss.index_cpu_to_all_gpus(index)\nelse:\n    log('on the host')",
    "import faiss\nclass Index:\n    def __init__(self, use_gpu=False):\n"
    "        self.use_gpu = use_gpu\n    def build(self):\n        if self.use_gpu:\n"
    "            self.index = faiss.index_cpu_to_all_gpus(self.index)",
    "import faiss\ndef build(index, wanted):\n    use_gpu = wanted and faiss.get_num_gpus() > 0\n"
    "    if use_gpu:\n        index = faiss.index_cpu_to_all_gpus(index)\n    return index",
    # the namespace of whatever device there is
    "def f():\n    try:\n        return getattr(torch, device_name())\n"
    "    except AttributeError:\n        log('not there')\n        return torch.cuda",
    # what only concerns another device
    "device = 'cuda' if device == 'cpu' else device",
    "device = backend() if backend() != 'hip' else 'cuda'",
    # NVIDIA's cards are told from others
    "IS_NVIDIA_HOPPER: bool = device == 'cuda' and torch.cuda.get_device_capability()[0] >= 9",
    # a class that moves by name, and in general
    # a flag for kernels
    # a method with its like for the NPU
    "class Boxes:\n    def cuda(self):\n        return Boxes(self.data.cuda())\n"
    "    def npu(self):\n        return Boxes(self.data.npu())",
    # a name that may be that of an NPU
    "def f(kind):\n    if kind not in ('gpu', 'npu'):\n        raise ValueError(kind)\n"
    "    if kind == 'gpu':\n        kind = 'cuda'\n    return torch.device(kind)",
    # variables that only CUDA has: asked for, emptied, put back, set for CUDA's sake
    "import os\nfound = os.environ.get('NCCL_DEBUG')",
    "import os\nos.environ['CUBLAS_WORKSPACE_CONFIG'] = ''",
    "import os\nos.environ['TORCH_CUDA_ARCH_LIST'] = before",
    "import os\nif not check_cuda_links():\n    os.environ['NCCL_P2P_DISABLE'] = '1'",
    "import os\ndef f():\n    os.environ['CUDA_LAUNCH_BLOCKING'] = '1'\n"
    "    os.environ['ASCEND_LAUNCH_BLOCKING'] = '1'",
    # switches of CUDA libraries, set for CUDA
    "def f(use_cuda):\n    if use_cuda and fast:\n"
    "        torch.backends.cuda.matmul.allow_tf32 = True",
    # apex, if it is there
    "try:\n    from apex import amp\nexcept ImportError:\n    amp = None\n"
    "class Scaler:\n    def __call__(self, loss, o):\n        with amp.scale_loss(loss, o) as s:\n"
    "            s.backward()",
    # methods with arguments that no tensor takes
    "def f(self, x, meta):\n    self.quantizer.cuda(x, meta=meta, device=x.device)",
    "backend.cuda(1, 2, 3)",
    # libraries with several accelerators
    # device-neutral names beside them
    "class A:\n    stream: torch.cuda.Stream | torch.Stream | None = None",
    "kind = 'cuda'\nif accelerator_is_there():\n"
    "    kind = torch.accelerator.current_accelerator().type",
]


@pytest.mark.parametrize("snippet", CUDA_ONLY)
def test_cuda_only_code_is_left_alone(snippet: str) -> None:
    check("import torch\n" + snippet)


LOOK_ALIKES = [
    # names of functions and variables say nothing
    "def f(x):\n    if x.⟦NPU106:is_cuda⟧:\n        return roll_cuda(x)\n    return roll(x)",
    "def f(x):\n    if x.device.type == ⟦NPU111:'cuda'⟧:\n        return scan_kernel(x)\n"
    "    return scan(x)",
    "def f(device):\n    is_nvidia = device.type == ⟦NPU111:'cuda'⟧\n    return is_nvidia",
    "ops = load()\ndef f(x):\n    if ops is not None and x.⟦NPU106:is_cuda⟧:\n"
    "        return ops.run(x)\n    return g(x)",
    # what is said when it stops
    "if not ⟦NPU101:torch.cuda.is_available⟧():\n    raise ValueError('xformers wants CUDA')",
    # a class that moves by name, which its users may call
    "class Boxes:\n    def to(self, device):\n        return Boxes(self.data.to(device))\n"
    "    def cuda(self):\n        return Boxes(self.data.⟦NPU105:cuda⟧())",
    # nothing shows what a function of a module calls
    "names = ['a.cu']\nkernel = build('k', names)\ndef f(x):\n"
    "    if x.⟦NPU106:is_cuda⟧:\n        return other(x)\n    return g(x)",
    # layouts that a kernel wants
    "def f(q, k, mask):\n    if q.device.type == ⟦NPU111:'cuda'⟧ and mask is not None:\n"
    "        q = q.contiguous()\n        k = k.contiguous()\n    return attend(q, k, mask)",
    "if ⟦NPU101:torch.cuda.is_available⟧():\n    import ⟦NPU602:pynvml⟧\n    x = x.⟦NPU105:cuda⟧()",
    # moving is not a kernel
    "def f(x):\n    if not x.⟦NPU106:is_cuda⟧:\n        x = to_cuda(x)\n    return x",
    "def f(x):\n    if x.⟦NPU106:is_cuda⟧:\n        ⟦NPU101:torch.cuda.synchronize⟧()",
    # an object that may be missing, but no kernel
    "if args is not None and ⟦NPU101:torch.cuda.is_available⟧():\n    args.n = 1",
    "if model is not None and x.⟦NPU106:is_cuda⟧:\n    model.train()",
    # torch is no CUDA library
    "if is_torch_available() and ⟦NPU101:torch.cuda.is_available⟧():\n    pass",
    # a training script that refuses to run
    "if not ⟦NPU101:torch.cuda.is_available⟧():\n    raise RuntimeError('a GPU is needed')",
    "assert ⟦NPU101:torch.cuda.is_available⟧(), 'no GPU'",
    # the architecture, with nothing in front
    "major = ⟦NPU103:torch.cuda.get_device_capability⟧()[0]",
    # a guard whose body does other things too
    "if ⟦NPU101:torch.cuda.is_available⟧():\n"
    "    big = ⟦NPU103:torch.cuda.get_device_capability⟧()[0] >= 8\n"
    "    ⟦NPU101:torch.cuda.set_device⟧(0)",
    # a namespace by name, and what stands for another reason
    "def f():\n    try:\n        return getattr(torch, name)\n"
    "    except ImportError:\n        return ⟦NPU101:torch.cuda⟧",
    "def f():\n    try:\n        return getattr(models, name)\n"
    "    except AttributeError:\n        return ⟦NPU101:torch.cuda⟧",
    # a default, and a name for any card
    "device = ⟦NPU110:'cuda'⟧ if device == 'auto' else device",
    "device = ⟦NPU110:'cuda'⟧ if args.device == 'gpu' else args.device",
    "device = ⟦NPU110:'cuda'⟧ if kind == 'cpu' else device",
    "device = ⟦NPU110:'cuda'⟧ if device != 'cpu' else device",
    "def f(device):\n    is_fast = device.type == ⟦NPU111:'cuda'⟧\n    return is_fast",
    # other copies than contiguous ones
    "def f(q):\n    if q.device.type == ⟦NPU111:'cuda'⟧:\n        q = q.half()\n    return q",
    "def check(self):\n    if not is_torch_available():\n        raise ImportError('torch')\n"
    "    if not ⟦NPU101:torch.cuda.is_available⟧():\n        raise RuntimeError('no GPU')",
    "def run(self):\n    if not is_fiddle_available():\n        raise ImportError('fiddle')\n"
    "    ⟦NPU101:torch.cuda.synchronize⟧()",
    "class A:\n    hip = torch.version.hip\n    def f(self):\n        ⟦NPU101:torch.cuda.init⟧()\n"
    "        return ⟦NPU112:torch.version.cuda⟧",
    "def check(self):\n    if not is_bnb_available():\n        raise ImportError('bnb')\n"
    "    if not (⟦NPU101:torch.cuda.is_available⟧() or torch.xpu.is_available()):\n"
    "        raise RuntimeError('no device')",
    "x.⟦NPU105:cuda⟧(device=0, non_blocking=True)",
    "def seed_all(seed):\n    if torch_there():\n        ⟦NPU101:torch.cuda.seed_all⟧()\n"
    "    if is_npu_available():\n        torch.npu.empty_cache()",
    "class CUDAPrefetcher:\n    def __init__(self):\n"
    "        self.stream = ⟦NPU101:torch.cuda.Stream⟧()",
    "fast = get_device().type == ⟦NPU111:'cuda'⟧",
    "def attend(x):\n    no_cuda = x.device.type != ⟦NPU111:'cuda'⟧\n"
    "    if no_cuda:\n        return slow(x)\n    return fast(x)",
    "def f(x):\n    if x.device.type == ⟦NPU111:'cuda'⟧:\n        raise ValueError('too large')",
    "if kind == 'npu':\n    torch.npu.synchronize()\n"
    "if device_type == ⟦NPU111:'cuda'⟧:\n    ⟦NPU101:torch.cuda.empty_cache⟧()",
    "def f(x):\n    use_cuda = x.⟦NPU106:is_cuda⟧\n    return move(x, use_cuda)",
    "class Boxes:\n    def cuda(self):\n        return Boxes(self.data.⟦NPU105:cuda⟧())",
    "def f(model):\n    try:\n        return model.device\n"
    "    except AttributeError:\n        pass\n    return torch.device(⟦NPU110:'cuda'⟧)",
    "def f(kind):\n    if kind == 'gpu':\n        device = ⟦NPU110:'cuda'⟧\n    return device",
    "def f(x, device):\n    if isinstance(x, Tensor):\n        x.⟦NPU105:cuda⟧(device)",
    "import os\nos.environ[⟦NPU901:'NCCL_DEBUG'⟧] = 'INFO'",
    "import os\nif args.gpu:\n    os.environ[⟦NPU901:'CUDA_VISIBLE_DEVICES'⟧] = '0'",
    "import os\nassert ready\nos.environ[⟦NPU901:'PYTORCH_CUDA_ALLOC_CONF'⟧] = 'x'",
    # helpers that merely have the word in their names
    "def get_cuda_device():\n    return torch.device(⟦NPU110:'cuda'⟧)",
    "def check_cuda():\n    return ⟦NPU101:torch.cuda.is_available⟧()",
    # a second value that has nothing to do with the NPU
    "kind = ⟦NPU110:'cuda'⟧\nif small:\n    kind = 'cpu'\nx.to(kind)",
    "s: ⟦NPU101:torch.cuda.Stream⟧ | None = None",
    # names of functions and classes settle nothing
    "def get_cuda_capability():\n    return ⟦NPU102:torch.cuda.get_device_capability⟧()",
    "def require_torch_cuda(test):\n"
    "    return skip_unless(⟦NPU101:torch.cuda.is_available⟧(), test)",
    "class SageMakerArguments:\n    def device(self):\n"
    "        return torch.device(⟦NPU110:'cuda'⟧, self.rank)",
    "class CUDA_Accelerator(Base):\n    def count(self):\n"
    "        return ⟦NPU101:torch.cuda.device_count⟧()",
    "def cuda_kernels_forward(x):\n    with ⟦NPU101:torch.cuda.device⟧(x.device):\n"
    "        return scan(x)",
    "def use_xformers(x):\n    x = torch.randn(2, device=⟦NPU110:'cuda'⟧)",
    "def f(device):\n    if device.type == ⟦NPU111:'cuda'⟧:\n"
    "        device = _setup_cuda_device(device)\n    return device",
    # a method of a class that nobody knows
    "def f(module, device):\n    if isinstance(module, QuantLinear):\n"
    "        module.⟦NPU105:cuda⟧(device)",
    # what refuses, or runs something for CUDA, where CUDA is there
    "def f(a):\n    if a.device.type != ⟦NPU111:'cuda'⟧:\n"
    "        raise ValueError('The CUDA kernel wants CUDA tensors.')\n    return run(a)",
    "if not ⟦NPU101:torch.cuda.is_available⟧():\n"
    "    raise ValueError('this backend is only supported on CUDA')",
    "if ⟦NPU101:torch.cuda.is_available⟧():\n    import ⟦NPU602:pynvml as nvml⟧\n"
    "    nvml.nvmlInit()",
    "stream = torch.Stream() if new else ⟦NPU101:torch.cuda.Stream⟧()",
    # a library of which nothing is known may be there
    "def check(self):\n    if not is_fiddle_available():\n        raise ImportError('fiddle')\n"
    "    if not ⟦NPU101:torch.cuda.is_available⟧():\n        raise RuntimeError('no GPU')",
]


@pytest.mark.parametrize("snippet", LOOK_ALIKES)
def test_look_alikes_are_found(snippet: str) -> None:
    check("import torch\n" + snippet)


CAREFUL = [
    "def f(x):\n    if x.⟦is_cuda⟧:\n        return roll_cuda(x)\n    return roll(x)",
    "def f(x):\n    if x.device.type == ⟦'cuda'⟧:\n        return scan_kernel(x)\n    return 0",
    "class Hash(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n"
    "        use_cuda = x.⟦is_cuda⟧\n        return kernels.hash(x, use_cuda)",
]
"""What is asked may decide about a kernel that knows CUDA alone: such a fix has to be read."""


@pytest.mark.parametrize("snippet", CAREFUL)
def test_what_may_choose_a_kernel_is_no_safe_fix(snippet: str) -> None:
    source = "import torch\n" + snippet.replace("⟦", "").replace("⟧", "")
    found = [finding for finding in findings(source) if finding.rule.family == "device"]
    assert found and all(
        fix.applicability is not Applicability.SAFE for each in found for fix in each.fixes
    )


def test_what_is_moved_where_no_kernel_is_called_is_a_safe_fix() -> None:
    (found,) = findings("import torch\ndef f(x):\n    if x.is_cuda:\n        x = x + 1\n")
    assert found.fixes[0].applicability is Applicability.SAFE
