"""Packages beside PyTorch: what each library's import and uses lead to, and what is left alone."""

# ruff: noqa: E501

import re
from dataclasses import replace

import pytest

from helpers import CATALOGUE, check, each_fix, findings, fixed
from npulens.analysis import analyze
from npulens.catalog.model import Severity, Target
from npulens.catalog.project_model import ProjectFacts
from npulens.text.document import Document

# Every library that the facts name, one row or more each; `None`: it works, or is found elsewhere.
LIBRARIES = [
    ("apex (NVIDIA)", "import apex", "NPU604 info"),
    ("apex (NVIDIA)", "from apex import amp\n# model = amp.initialize(model)", "NPU604 info"),
    ("apex (NVIDIA)", "from apex.optimizers import FusedLAMB", "NPU603 error"),
    ("apex (NVIDIA)", "from apex.contrib.layer_norm import FastLayerNorm", "NPU602 error"),
    ("amp_C", "import amp_C", "NPU602 error"),
    ("amp_C", "from apex.multi_tensor_apply import multi_tensor_applier", "NPU602 error"),
    ("flash_attn", "from flash_attn import flash_attn_func", "NPU602 error"),
    ("flash_attn", "import flash_attn_2_cuda", "NPU602 error"),
    ("xformers", "import xformers.ops", "NPU602 error"),
    ("bitsandbytes", "import bitsandbytes as bnb", "NPU604 info"),
    ("bitsandbytes", "from bitsandbytes.nn import Linear8bitLt", "NPU605 warning"),
    ("deepspeed", "import deepspeed\nfrom deepspeed.ops.adam import FusedAdam", None),
    ("deepspeed", "from deepspeed.ops.lion import FusedLion", "NPU605 warning"),
    ("megatron-core / Megatron-LM", "from megatron.core import parallel_state", "NPU604 info"),
    ("bmtrain", "import bmtrain as bmt", "NPU602 error"),
    ("colossalai", "import colossalai", None),
    ("colossalai", "from colossalai.nn.optimizer import HybridAdam", "NPU605 warning"),
    ("grouped_gemm", "from grouped_gemm import ops", "NPU602 error"),
    ("composer (MosaicML)", "from composer import Trainer", "NPU602 error"),
    ("triton", "import triton", "NPU604 info"),
    ("liger-kernel", "from liger_kernel.transformers import apply", "NPU604 info"),
    ("transformer_engine", "import transformer_engine.pytorch as te", "NPU602 error"),
    ("vllm", "from vllm import LLM", "NPU604 hint"),
    ("transformers", "from transformers import AutoModel", None),
    ("accelerate", "from accelerate import Accelerator", None),
    ("peft", "from peft import LoraConfig", None),
    ("trl", "from trl import SFTTrainer", None),
    ("diffusers", "from diffusers import DiffusionPipeline", None),
    ("verl", "import verl", None),
    ("LLaMA-Factory", "import llamafactory", None),
    ("mmcv / mmcv-full", "from mmcv.cnn import ConvModule", None),
    ("mmcv / mmcv-full", "from mmcv.ops import nms", "NPU604 info"),
    ("mmcv / mmcv-full", "from mmcv.ops import CornerPool", None),
    ("mmcv / mmcv-full", "from mmcv.ops import CARAFE", "NPU605 warning"),
    ("spconv", "import spconv.pytorch as spconv", "NPU602 error"),
    ("torch_scatter", "from torch_scatter import scatter_max", "NPU602 error"),
    ("torch_geometric", "from torch_geometric.data import Data", "NPU606 hint"),
    ("detectron2", "from detectron2.config import get_cfg", "NPU606 hint"),
    ("detectron2", "from detectron2 import _C", "NPU602 error"),
    ("torchvision", "from torchvision import transforms", None),
    ("torchvision", "from torchvision.ops import nms\nnms(b, s, 1)", "NPU604 info"),
    ("torchvision", "from torchvision.ops import roi_align", "NPU715 info"),
    ("onnxruntime-gpu", "import onnxruntime", None),
    ("onnxruntime-gpu", 'providers = ["CUDAExecutionProvider"]', "NPU610 warning"),
    ("nvidia-dali", "from nvidia.dali import pipeline_def", "NPU602 error"),
    ("cupy", "import cupy", "NPU602 error"),
    ("tensorrt / torch_tensorrt", "from mmcv.tensorrt import onnx2trt", "NPU602 error"),
    ("tensorrt / torch_tensorrt", "from mmcv import tensorrt", "NPU602 error"),
    ("numba.cuda", "from numba import cuda", "NPU602 error"),
    ("numba.cuda", "from numba import jit", None),
    ("pycuda", "import pycuda.driver as driver", "NPU602 error"),
    ("pynvml / nvidia-ml-py", "import pynvml", "NPU602 error"),
    ("pynvml / nvidia-ml-py", "from GPUtil import getGPUs", "NPU602 error"),
    ("tensorrt / torch_tensorrt", "import tensorrt as trt", "NPU602 error"),
    ("tensorrt / torch_tensorrt", "from torch2trt import torch2trt", "NPU602 error"),
    ("horovod", "import horovod.torch as hvd", "NPU602 error"),
    ("horovod", "import horovod.tensorflow as hvd", None),
    ("faiss-gpu", "import faiss", None),
    ("faiss-gpu", "from faiss import StandardGpuResources", "NPU602 error"),
    ("nvtx", "import nvtx", "NPU602 error"),
    ("cuda-python / cutlass", "from cuda.bindings import driver", "NPU602 error"),
    ("cuda-python / cutlass", "import cutlass", "NPU602 error"),
    ("causal_conv1d", "from causal_conv1d import causal_conv1d_fn", "NPU602 error"),
    ("mamba_ssm", "from mamba_ssm import Mamba", "NPU602 error"),
    ("CUDA C++ extension", "from torch.utils.cpp_extension import CUDAExtension", "NPU601 error"),
    ("torch.nn.DataParallel", "from torch.nn import DataParallel", "NPU202 error"),
]

# Those that the facts do not name.
OTHERS = [
    ("import tinycudann as tcnn", "NPU602 error"),
    ("import nvdiffrast.torch as dr", "NPU602 error"),
    ("import nerfacc", "NPU602 error"),
    ("import torchsparse.nn as spnn", "NPU602 error"),
    ("import MinkowskiEngine as ME", "NPU602 error"),
    ("from pointnet2_ops import pointnet2_utils", "NPU602 error"),
    ("from gsplat import rasterization", "NPU602 error"),
    ("from diff_gaussian_rasterization import GaussianRasterizer", "NPU602 error"),
    ("from simple_knn._C import distCUDA2", "NPU602 error"),
    ("import kaolin as kal", "NPU602 error"),
    ("from pytorch3d.structures import Meshes", "NPU606 hint"),
    ("from pytorch3d.transforms import quaternion_to_matrix", None),
    ("from pytorch3d.ops import knn_points", "NPU605 warning"),
    ("from pytorch3d import _C", "NPU602 error"),
    ("from sageattention import sageattn", "NPU602 error"),
    ("import flashinfer", "NPU602 error"),
    ("from apex.fp16_utils import FP16_Optimizer", "NPU604 info"),
    ("import cudf", "NPU602 error"),
    ("from cuml.cluster import KMeans", "NPU602 error"),
    ("import pyg_lib", "NPU606 hint"),
    ("from torch_spline_conv import spline_conv", "NPU606 hint"),
]


@pytest.mark.parametrize(("code", "expected"), OTHERS)
def test_each_other_library(code: str, expected: str | None) -> None:
    test_each_library(code, code, expected)


@pytest.mark.parametrize(("library", "code", "expected"), LIBRARIES)
def test_each_library(library: str, code: str, expected: str | None) -> None:
    found = [f"{f.rule.code} {f.effective_severity.value}" for f in findings(code + "\n")]
    assert found == ([] if expected is None else [expected]), library


def test_all_libraries_of_the_facts_are_looked_at() -> None:
    assert len({library for library, _, _ in LIBRARIES}) == 43


@pytest.mark.parametrize(
    "snippet",
    [
        "import ⟦NPU602:cupy as cp⟧\nx = cp.arange(3)\ny = cp.asnumpy(x)\n",
        "import os, ⟦NPU602:pynvml⟧, sys\npynvml.nvmlInit()\n",
        "from ⟦NPU602:mamba_ssm.ops⟧ import first, second\n",
        "from ⟦NPU602:transformer_engine.pytorch⟧ import (\n    Linear,\n    LayerNorm,\n)\n",
        "from ⟦NPU602:cupy⟧ import *\n",
        "import importlib\ncp = importlib.import_module(⟦NPU602:'cupy'⟧)\nx = cp.arange(3)\n",
        "from importlib import import_module\nt = import_module(⟦NPU604:'triton.language'⟧)\n",
        "cp = __import__(⟦NPU602:'cupy'⟧)\n",
        "from flash_attn import ⟦NPU602:flash_attn_func⟧, ⟦NPU602:flash_attn_varlen_func as v⟧\n",
        "from ⟦NPU602:flash_attn.bert_padding⟧ import pad_input, unpad_input\n",
        "def is_flash_available():\n    import ⟦NPU602:flash_attn⟧\n    return True\n",
        "import ⟦NPU602:xformers.ops as xops⟧\ny = ⟦NPU708:xops.memory_efficient_attention⟧(q, k, v)\n",
        "import ⟦NPU602:xformers.ops⟧\ny = ⟦NPU708:xformers.ops.memory_efficient_attention⟧(q, k)\n",
        "import ⟦NPU602:flash_attn⟧\ny = ⟦NPU708:flash_attn.flash_attn_func⟧(q, k, v)\n",
        "import ⟦NPU604:bitsandbytes as bnb⟧\no = ⟦NPU605:bnb.optim.PagedAdamW8bit⟧(p)\n",
        "import ⟦NPU605:bitsandbytes.optim as optim⟧\n",
        "import apex\nn = ⟦NPU603:apex.normalization.FusedLayerNorm⟧(8)\n",
        "import apex as a\nn = ⟦NPU603:a.parallel.convert_syncbn_model⟧(m)\n",
        "import apex\nclass N(⟦NPU603:apex.normalization.FusedLayerNorm⟧):\n    pass\n",
        "from ⟦NPU602:apex.transformer⟧ import parallel_state\n",
        "import faiss\nclass Index:\n    def __init__(self, use_gpu=True):\n"
        "        self.use_gpu = use_gpu\n    def build(self):\n        if self.use_gpu:\n"
        "            self.index = ⟦NPU602:faiss.index_cpu_to_all_gpus⟧(self.index)\n",
        "import faiss, torch\ndef build(index):\n    use_gpu = ⟦NPU101:torch.cuda.is_available⟧()\n"
        "    if use_gpu:\n        index = ⟦NPU602:faiss.index_cpu_to_all_gpus⟧(index)\n",
        "import faiss\ndef build(index, args):\n    if args.use_gpu:\n"
        "        index = ⟦NPU602:faiss.index_cpu_to_all_gpus⟧(index)\n",
        "import faiss\nr = ⟦NPU602:faiss.StandardGpuResources⟧()\nr2 = faiss.StandardGpuResources()\n",
        "import torchvision\nk = ⟦NPU604:torchvision.ops.nms⟧(b, s, 0.5)\nj = torchvision.ops.nms(b, s, 1)\n",
        "import numba\n@⟦NPU602:numba.cuda.jit⟧\ndef f(x):\n    pass\n",
        "from ⟦NPU604:triton⟧ import jit\nimport triton.language as tl\n\n@jit\ndef f(x):\n    pass\n",
        "def load():\n    import ⟦NPU602:nvtx⟧\n    nvtx.push_range('a')\n",
        "if args.fp16:\n    from ⟦NPU602:apex.fused_dense⟧ import FusedDense\n",
        "try:\n    import ⟦NPU602:cupy⟧\nexcept ImportError:\n    raise RuntimeError('install cupy')\n",
        "try:\n    import ⟦NPU602:cupy⟧\nexcept ImportError as e:\n    print(e)\n    sys.exit(1)\n",
        "try:\n    import ⟦NPU602:cupy⟧\nexcept ValueError:\n    pass\n",
        "if use_flash:\n    from flash_attn import ⟦NPU602:flash_attn_func⟧\n",
        "from ⟦NPU604:mmcv.ops⟧ import nms, point_sample\n",
        "def build():\n    import ⟦NPU602:cupy⟧\n    return cupy\nk = build()\n",
        "def build():\n    import ⟦NPU602:cupy⟧\n    return cupy\nif use_cupy:\n    k = build()\n",
        "def build():\n    import ⟦NPU602:cupy⟧\n    return cupy\nif has_cupy():\n    k = build()\nj = build()\n",
        "def build():\n    import ⟦NPU602:cupy⟧\n    return build\n",
        "from torch.utils.cpp_extension import load\ndef build():\n    return ⟦NPU601:load⟧('k', s)\nk = build()\n",
        "from torch.utils.cpp_extension import load\nk = ⟦NPU601:load⟧('k', s, with_cuda=True)\n",
        "import importlib\nif not is_cupy_available():\n    import ⟦NPU602:pycuda⟧\n",
        "c = Config(⟦NPU605:load_in_8bit=True⟧)\n",
        "import transformers as t\nc = ⟦NPU604:t.BitsAndBytesConfig⟧(⟦NPU605:load_in_4bit=True⟧)\n",
        "from transformers import ⟦NPU604:BitsAndBytesConfig as C⟧\nc = C(True, load_in_4bit=args.four)\n",
        "from transformers import ⟦NPU604:BitsAndBytesConfig as C⟧\nc = C(load_in_4bit=True, **more)\n",
        "import transformers as t\nc = ⟦NPU604:t.BitsAndBytesConfig⟧(load_in_4bit=True, bnb_4bit_quant_type=q)\n",
        "from transformers import A\nm = A.from_pretrained('x', ⟦NPU605:load_in_4bit=True⟧)\n",
        "c = Config(load_in_4bit=True, bnb_4bit_quant_type=⟦NPU605:'fp4'⟧)\n",
        "from ⟦NPU602:isaacgym⟧ import gymapi\n",
        "import ⟦NPU602:lietorch⟧\n",
        "from ⟦NPU601:torch.utils.ffi⟧ import create_extension\n",
        "import torch\nfrom peft import ⟦NPU605:prepare_model_for_int8_training⟧\n",
        "c = Config(⟦NPU605:load_in_8bit=args.eight⟧)\n",
        "class Server:\n    def __init__(self):\n        if not is_fastapi_available():\n            raise ImportError\n"
        "    def f(self):\n        return Config(⟦NPU605:load_in_8bit=True⟧)\n",
        "from transformers import A\nm = A.from_pretrained('x', ⟦NPU605:load_in_8bit=True⟧)\n",
        "m = A.from_pretrained('x', attn_implementation=⟦NPU611:'flash_attention_2'⟧)\n",
        "m = A.from_pretrained('x', ⟦NPU611:use_flash_attention_2=True⟧)\n",
        "m = A.from_pretrained('x', attn_implementation=⟦NPU605:'flash_attention_3'⟧)\n",
        "k = dict(attn_implementation=⟦NPU611:'flash_attention_2'⟧ if fast else 'eager')\n",
        "k = {'attn_implementation': ⟦NPU611:'flash_attention_2'⟧}\nm = A.from_pretrained('x', **k)\n",
        "c._attn_implementation = ⟦NPU611:'flash_attention_2'⟧\n",
        "class C:\n    attn_implementation: str = ⟦NPU611:'flash_attention_2'⟧\n",
        "class C:\n    attn_implementation: str = field(default=⟦NPU611:'flash_attention_2'⟧)\n",
        "def f(x, attn_implementation=⟦NPU611:'flash_attention_2'⟧):\n    pass\n",
        "def f(x, *, text_attn_implementation=⟦NPU611:'flash_attention_2'⟧):\n    pass\n",
        "p.add_argument('--attn_implementation', default=⟦NPU611:'flash_attention_2'⟧)\n",
        "model.set_attn_implementation(⟦NPU611:'flash_attention_2'⟧)\n",
        's = ort.InferenceSession("m", providers=[⟦NPU610:"TensorrtExecutionProvider"⟧, "CPUExecutionProvider"])\n',
        'p = [(⟦NPU610:"CUDAExecutionProvider"⟧, {"device_id": 0})]\n',
        'import os\nos.system(⟦NPU609:"nvidia-smi -L"⟧)\n',
        'import subprocess as sp\nsp.check_output([⟦NPU609:"nvidia-smi"⟧, "-L"])\n',
        'from subprocess import Popen\nPopen(⟦NPU609:"watch nvidia-smi"⟧, shell=True)\n',
        'import shutil\np = shutil.which(⟦NPU609:"nvidia-smi"⟧)\n',
        'import os\nos.popen(⟦NPU609:f"nvidia-smi -i {rank}"⟧)\n',
        'lines = run_command([⟦NPU609:"nvidia-smi"⟧, "-L"]) + self.run([⟦NPU609:"nvidia-smi"⟧])\n',
        'import os\nCOMMAND = "nvidia-smi"\nos.system(⟦NPU609:COMMAND⟧)\n',
        'import subprocess\nquery = ⟦NPU609:"nvidia-smi --query-gpu=name"⟧\n'
        "subprocess.check_output(query.split())\nsubprocess.run(query, shell=True)\n",
        "import ⟦NPU604:apex⟧\nprint('apex is there')\n",
        "from torchpack import distributed as dist\n⟦NPU605:dist.init⟧()\n",
        "model.unet.⟦NPU602:enable_xformers_memory_efficient_attention⟧(attention_op=None)\n",
        "try:\n    pipe.⟦NPU602:enable_xformers_memory_efficient_attention⟧()\n"
        "except ImportError:\n    raise RuntimeError('install xformers')\n",
        "from kornia.utils.helpers import ⟦NPU605:get_cuda_device_if_available⟧\n",
        "from ⟦NPU602:warpconvnet.geometry.types.voxels⟧ import Voxels\n",
    ],
)
def test_found(snippet: str) -> None:
    check(snippet)


@pytest.mark.parametrize(
    "snippet",
    [
        # optional imports
        "try:\n    import cupy\nexcept ImportError:\n    cupy = None\n",
        "import importlib\ntry:\n    cp = importlib.import_module('cupy')\nexcept ImportError:\n    cp = None\n",
        "import importlib\nmodule = importlib.import_module('.cupy', __package__)\n",
        "if config._attn_implementation == 'flash_attention_2':\n    x = 1\n",
        "CLASSES = {'eager': Attention, 'flash_attention_2': FlashAttention}\n",
        "m = A.from_pretrained('x', use_flash_attention_2=False)\n",
        "p.add_argument('--attn_implementation', choices=['sdpa', 'flash_attention_2'])\n",
        "k = 'flash_attention_2' if is_flash_attn_2_available() else 'sdpa'\nm = f(attn_implementation=k)\n",
        "m = f(attn_implementation='flash_attention_2' if is_flash_attn_2_available() else 'sdpa')\n",
        "import importlib.util\nhas_cupy = importlib.util.find_spec('cupy') is not None\n",
        "try:\n    import cupy\nexcept (ImportError, OSError):\n    cupy = None\n",
        "try:\n    from flash_attn import flash_attn_func\nexcept:\n    flash_attn_func = None\n",
        "try:\n    import amp_C\n    HAVE = True\nexcept ModuleNotFoundError:\n    HAVE = False\n",
        "try:\n    import apex\nexcept ImportError:\n    OK = False\nelse:\n    from apex.mlp import MLP\n",
        "import contextlib\nwith contextlib.suppress(ImportError):\n    import pynvml\n",
        "if is_flash_attn_2_available():\n    from flash_attn import flash_attn_func\n",
        "if not is_xformers_available():\n    x = None\nelse:\n    import xformers\n",
        'if importlib.util.find_spec("cupy") is not None:\n    import cupy\n',
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import cupy\n",
        "def f():\n    if not is_pynvml_available():\n        return None\n    import pynvml\n    return pynvml\n",
        "HAS = False\ntry:\n    import cupy\n    HAS = True\nexcept ImportError:\n    pass\nif HAS:\n    import cupyx\n",
        "from importlib.util import find_spec\nHAS = find_spec('cupy') is not None\nif HAS:\n    import cupy\n",
        "def f(x):\n    if x:\n        if not has_cupy():\n            raise ImportError('x')\n        import cupy\n",
        "@require_bitsandbytes\nclass T:\n    def test(self):\n        import bitsandbytes\n",
        '@unittest.skipUnless(HAVE, "x")\ndef test():\n    import cupy\n',
        # uses of optional imports
        "try:\n    import apex\nexcept ImportError:\n    apex = None\ndef f(p):\n    return apex.optimizers.FusedSGD(p)\n",
        "try:\n    import xformers.ops as x\nexcept ImportError:\n    x = None\ny = x.memory_efficient_attention(q) if x else None\n",
        "from transformers.utils import is_bnb_available\nif is_bnb_available():\n    import bitsandbytes as bnb\ndef f(m):\n    return isinstance(m, bnb.nn.Linear8bitLt)\n",
        # other modules of the same or a similar name
        "from .triton import kernel\n",
        "from . import apex\nn = apex.normalization.FusedLayerNorm(3)\n",
        "from project.cupy import array\n",
        "import triton_ascend\n",
        "import cupyish\nimport nvtx_tools\n",
        "from cuda import nms\n",
        "import cuda\n",
        "class apex:\n    class optimizers:\n        FusedSGD = 1\nprint(apex.optimizers.FusedSGD)\n",
        "def f(cupy):\n    return cupy.array(1)\n",
        "triton = object()\ntriton.jit\n",
        # words in texts
        '"""Needs flash_attn, apex and cupy: import cupy."""\n',
        '# import cupy\nx = "import cupy"\n',
        'raise ImportError("install flash_attn")\n',
        'lib = "xformers"\n',
        # what runs on the NPU
        "from apex.optimizers import NpuFusedSGD\n",
        "import apex\no = apex.optimizers.NpuFusedAdam(p)\n",
        "from bitsandbytes_npu import nf4\n",
        "from torchvision.ops import box_iou, box_convert\n",
        "import faiss\ni = faiss.IndexFlatL2(8)\n",
        "from mmcv.cnn import build_norm_layer\n",
        "from mmcv.ops import point_sample, nms_match\n",
        "from mmcv.ops.merge_cells import SumCell\n",
        "from deepspeed.ops.adam import DeepSpeedCPUAdam\n",
        # what the callers look after
        "import mx_driving\nimport torch_npu\n",
        "c = Config(load_in_8bit=False, load_in_4bit=True)\n",
        "import transformers as t\nm = t.A.from_pretrained('x', load_in_4bit=True, quantization_config=c)\n",
        "from elsewhere import A\nm = A.from_pretrained('x', load_in_4bit=True)\n",
        "c = Config(load_in_8bit=False)\n",
        "@require_bitsandbytes\ndef test_it():\n    c = Config(load_in_8bit=True)\n",
        'p = ["CANNExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider"]\n',
        'p = ["CPUExecutionProvider", "OpenVINOExecutionProvider"]\n',
        # what is used of it is reported there, or works
        "import apex\nx = apex.unknown_part(3)\n",
        "try:\n    import apex\nexcept ImportError:\n    apex = None\n",
        # attention of diffusers, which has PyTorch's without xformers
        "try:\n    if fast:\n        pipe.enable_xformers_memory_efficient_attention()\n"
        "except Exception as e:\n    print(e)\n",
        "from diffusers.utils.import_utils import is_xformers_available\n"
        "if is_xformers_available():\n    unet.enable_xformers_memory_efficient_attention()\n",
        "class Unet:\n    def enable_xformers_memory_efficient_attention(self):\n        pass\n"
        "Unet().enable_xformers_memory_efficient_attention()\n",
        # commands
        'print("nvidia-smi")\n',
        'TOOLS = ["nvidia-smi", "rocm-smi"]\n',
        'import os\nos.system("npu-smi info")\n',
        'import os\nos.system("my-nvidia-smi-like")\n',
        'def system(x):\n    return x\nsystem("nvidia-smi")\n',
        'import shutil\nclass CUDAAccelerator:\n    def f(self):\n        return shutil.which("nvidia-smi")\n',
    ],
)
def test_left_alone(snippet: str) -> None:
    """But for the hint that the code goes on without the library."""
    assert {finding.rule.code for finding in findings(snippet)} <= {"NPU613"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "import torch\nfrom apex.normalization import FusedLayerNorm as Norm\n",
            "import torch\nfrom torch.nn import LayerNorm as Norm\n",
        ),
        (
            "import torch\nfrom apex.parallel import DistributedDataParallel as DDP, SyncBatchNorm\n",
            "import torch\nfrom torch.nn import SyncBatchNorm\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n",
        ),
        (
            "import torch\nimport apex\nn = apex.normalization.FusedLayerNorm(8)\n",
            "import torch\nn = torch.nn.LayerNorm(8)\n",
        ),
        (
            "import torch\nimport apex\no = apex.optimizers.FusedAdam(p, lr=1e-3)\n",
            "import torch\nimport torch_npu\n"
            "o = torch_npu.optim.NpuFusedAdamW(p, lr=1e-3, weight_decay=0.0)\n",
        ),
        (
            "import torch\nimport apex\no = apex.optimizers.FusedAdam(p, adam_w_mode=False, lr=1)\n",
            "import torch\nimport torch_npu\no = torch_npu.optim.NpuFusedAdam(p, lr=1)\n",
        ),
        (
            "import torch\nimport apex\no = apex.optimizers.FusedAdam(adam_w_mode=True, params=p, weight_decay=.1)\n",
            "import torch\nimport torch_npu\n"
            "o = torch_npu.optim.NpuFusedAdamW(params=p, weight_decay=.1)\n",
        ),
        (
            'import subprocess\nsubprocess.run(["nvidia-smi"])\n',
            'import subprocess\nsubprocess.run(["npu-smi", "info"])\n',
        ),
        (
            "import shutil\nshutil.which('nvidia-smi')\n",
            "import shutil\nshutil.which('npu-smi')\n",
        ),
        (
            "p = ['CUDAExecutionProvider', 'CPUExecutionProvider']\n",
            "p = ['CANNExecutionProvider', 'CPUExecutionProvider']\n",
        ),
    ],
)
def test_fixed(before: str, after: str) -> None:
    assert fixed(before) == after
    assert all(applicability == "unsafe" for _, applicability, _ in each_fix(before))


@pytest.mark.parametrize(
    "code",
    [
        "import apex\no = apex.optimizers.FusedAdam(p, amsgrad=True)\n",
        "import apex\no = apex.optimizers.FusedAdam(p, 1e-3, False)\n",
        "import apex\no = apex.optimizers.FusedAdam(p, **options)\n",
        "import apex\no = apex.optimizers.FusedAdam(*a)\n",
        "import apex\no = apex.optimizers.FusedAdam(p, adam_w_mode=mode)\n",
        "import apex\nn = apex.normalization.FusedRMSNorm(8)\n",
        "import apex\no = apex.optimizers.FusedLAMB(p)\n",
        "from apex.parallel import convert_syncbn_model\n",
        "from flash_attn import flash_attn_func\n",
        'import os\nos.system("nvidia-smi -L")\n',
        'import subprocess\nsubprocess.run(["nvidia-smi", "-L"])\n',
    ],
)
def test_no_edit_where_arguments_do_not_map(code: str) -> None:
    assert findings(code)
    assert fixed(code) == code


def test_every_public_function_of_flash_attn_is_told_about() -> None:
    names = ("", "_varlen"), ("", "_kvpacked", "_qkvpacked")
    functions = [f"flash_attn{v}{p}_func" for v in names[0] for p in names[1]]
    for name in [*functions, "flash_attn_with_kvcache"]:
        (found,) = findings(f"from flash_attn import {name}\n")
        assert found.arguments["symbol"] == f"flash_attn.{name}"
        assert found.note is not None and "torch_npu.npu_fus" in found.note.en


def test_a_module_of_the_project_hides_the_library() -> None:
    target = replace(Target(), project=ProjectFacts(own_modules=frozenset({"triton", "apex"})))
    code = "import triton\nfrom apex.mlp import MLP\nimport cupy\n"
    found = analyze(Document("a.py", code), CATALOGUE, target)
    assert [f.arguments["symbol"] for f in found] == ["cupy"]


def test_packages_are_told_of_once_in_a_file() -> None:
    code = "import triton\nimport triton.language as tl\n\n\ndef f():\n    import triton\n"
    assert len(findings(code)) == 1


def test_imports_of_what_does_not_work_are_all_told_of() -> None:
    code = "def f():\n    import cupy\n\n\ndef g():\n    import cupy\n"
    assert len(findings(code)) == 2


def test_texts_of_the_table_are_in_both_languages() -> None:
    for entry in CATALOGUE.libraries.values():
        if entry.note is not None:
            assert re.search("[一-鿿]", entry.note.zh), entry.symbol
            assert entry.note.en.endswith(".") and entry.note.zh.endswith("。"), entry.symbol
            quoted = [set(re.findall("`[^`]+`", text)) for text in entry.note]
            assert quoted[0] == quoted[1], entry.symbol


def test_no_library_that_needs_a_build_is_an_error() -> None:
    for entry in CATALOGUE.libraries.values():
        if entry.rule.code == "NPU604":
            assert entry.severity in (None, Severity.INFO, Severity.HINT)


def test_many_guards_take_time_in_proportion() -> None:
    code = "try:\n    import cupy\nexcept ImportError:\n    cupy = None\n" * 2000
    assert [finding.rule.code for finding in findings(code)] == ["NPU613"]


@pytest.mark.parametrize(
    "source",
    [
        "from apex import amp\nm, o = amp.initialize(m, o)\n",
        "import apex\nn = apex.normalization.FusedLayerNorm(8)\n",
        "from apex.optimizers import FusedAdam\no = FusedAdam(p)\n",
    ],
)
def test_a_module_of_the_project_is_no_library(source: str) -> None:
    own = Target(project=ProjectFacts(own_modules=frozenset({"apex"})))
    assert not analyze(Document("a.py", source), CATALOGUE, own)
    assert analyze(Document("a.py", source), CATALOGUE, Target())


def test_pytorch_is_never_a_module_of_the_project() -> None:
    own = Target(project=ProjectFacts(own_modules=frozenset({"torch"})))
    assert analyze(Document("a.py", "import torch\ntorch.cuda.synchronize()\n"), CATALOGUE, own)
