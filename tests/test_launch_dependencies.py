"""Packages that a project asks for: builds for CUDA in lists and tables of every kind."""

import pytest

from helpers import CATALOGUE
from npulens.catalog.model import Applicability
from npulens.workspace.runs.run import Checker
from npulens.workspace.settings.configuration import Configuration
from test_launch_files import check, findings, fixed

CUDA_ONLY = [
    *("flash-attn", "flash_attn>=2", "flash-attn==2.5.8", "flash-attn-3", "xformers==0.0.23"),
    *("apex", "mamba-ssm[causal-conv1d]", "causal_conv1d>=1.4"),
    *("spconv-cu118", "cupy-cuda12x", "cupy", "nvidia-cublas-cu12==12.1.3.1"),
    *("nvidia-nccl-cu11", "nvidia-cudnn-cu13", "nvidia-cuda-runtime", "nvidia-pyindex"),
    *("tensorrt", "tensorrt-llm", "simple-knn", "gsplat", "nerfacc", "onnxruntime-gpu"),
    *("tinycudann", "nvdiffrast", "MinkowskiEngine", "torchsparse", "pytorch3d", "kaolin"),
    *("diff-gaussian-rasterization", "diff-surfel-rasterization", "GPUtil>=1.4", "SparseConvNet"),
    *("faiss-gpu", "faiss-gpu-cu12", "dgl-cu118", "cuml-cu12", "jax[cuda12]", "jax[cuda12_pip]"),
    *("jaxlib==0.4.20+cuda12.cudnn89", "transformer-engine[pytorch]"),
    *("unsloth[cu121]==2024.8", "autoawq>=0.2", "nvidia-dali", "knn_cuda", "pointops", "eetq"),
    *("tensorflow-gpu==2.4", "paddlepaddle-gpu", "mxnet-cu112", "nvidia-ml-py"),
    *("git+https://code.example.org/fundamentalvision/Pointnet2.git", "third_party/pointops"),
    *("grouped_gemm", "flashinfer-python", "nvidia-dali-cuda120"),
    *("torch_sparse==0.6.18+pt21cu118", "mmcv-full==1.7.0+torch1.13cu117", "dgl==1.1.2+cu118"),
    *("torch==2.1.0+cu118", "torchvision==0.16.0+cu118", "xformers==0.0.22+cu118"),
    *("torch @ https://wheels.example.org/whl/cu118/torch-2.1.0%2Bcu118-cp310-x86_64.whl",),
    *("flash-attn @ https://wheels.example.org/flash_attn-2.5.8+cu122torch2.3-cp310-x86_64.whl",),
    *("git+https://code.example.org/NVlabs/tiny-cuda-nn/#subdirectory=bindings/torch",),
    *("git+https://code.example.org/NVlabs/nvdiffrast.git@v0.3.1",),
    *("git+https://code.example.org/facebookresearch/pytorch3d.git@stable",),
    *("git+ssh://git@code.example.org/graphdeco-inria/diff-gaussian-rasterization",),
    *("git+https://code.example.org/NVIDIA/apex", "submodules/diff-gaussian-rasterization"),
    *("pytorch3d @ git+https://code.example.org/facebookresearch/pytorch3d.git",),
]
WITH_ANOTHER_BUILD = [
    "triton>=2.1",
    "torchtriton==2.1.0",
    "pytorch-triton",
    "bitsandbytes",
    "vllm==0.6.3",
]
PLAIN = [
    *("torch==2.1.0", "torch", "torch==2.1.0+cpu", "deepspeed", "accelerate", "transformers"),
    *("faiss-cpu", "onnxruntime", "mamba", "triton-ascend", "vllm-ascend", "torch-npu==2.1.0"),
    *("tensorflow==2.4", "jax[cpu]", "jax", "bitsandbytes-npu-beta", "flash-attn-npu"),
    *("mxnet", "paddlepaddle", "apex-legends", "cudaq", "tritonclient[all]", "spconv"),
    *("git+https://code.example.org/huggingface/peft", "submodules/utils", "./cuda/helpers"),
    *("mmcv-full==1.7.0", "onnxruntime-cann", "cupyx-docs", "torch>=2.1,<2.9", "dgl-life"),
    *("kornia", "einops", "timm", "open3d", "trimesh", "ninja", "numba", "pykeops-io", "warp"),
    *("torch-fidelity", "lightning", "codecarbon", "gpytorch", "tensorboard", "kernels-mixer"),
]
IN_FILES = [
    ("requirements.txt", "⟦%s⟧\nnumpy"),
    ("requirements++.txt", "-r requirements+.txt\n⟦%s⟧"),
    ("requirements.txt", "numpy\n  ⟦%s⟧ ; python_version > '3.8'  # for the kernels"),
    ("constraints.txt", "⟦%s⟧"),
    ("environment.yml", "dependencies:\n  - python=3.10\n  - pip:\n    - '⟦%s⟧'"),
    ("pyproject.toml", '[project]\ndependencies = [\n  "numpy",\n  "⟦%s⟧",\n]'),
    ("pyproject.toml", '[project.optional-dependencies]\ntrain = ["⟦%s⟧"]'),
    ("pyproject.toml", '[dependency-groups]\ndev = ["pytest", "⟦%s⟧"]'),
    ("pyproject.toml", '[build-system]\nrequires = ["setuptools", "⟦%s⟧"]'),
    ("pyproject.toml", '[tool.pdm.dev-dependencies]\ntrain = ["⟦%s⟧"]'),
    ("pyproject.toml", '[tool.hatch.envs.train]\ndependencies = ["⟦%s⟧"]'),
    ("pyproject.toml", '[tool.hatch.envs.train]\nextra-dependencies = ["⟦%s⟧"]'),
    ("pyproject.toml", '[tool.uv]\ndev-dependencies = ["⟦%s⟧"]'),
    ("pyproject.toml", '[tool.uv]\nconstraint-dependencies = ["⟦%s⟧"]'),
    ("pyproject.toml", 'project.dependencies = ["⟦%s⟧"]'),
    ("setup.cfg", "[options]\ninstall_requires =\n    numpy\n    ⟦%s⟧\n"),
    ("setup.cfg", "[options.extras_require]\ntrain =\n    ⟦%s⟧  # for the kernels\n"),
    ("tox.ini", "[testenv]\ndeps =\n  ⟦%s⟧\n"),
    ("cog.yaml", 'build:\n  python_packages:\n    - "⟦%s⟧"'),
]
TABLES = [
    ("pyproject.toml", '[tool.poetry.dependencies]\n⟦flash-attn = "^2.5"⟧\nnumpy = "*"'),
    ("pyproject.toml", '[tool.poetry.group.train.dependencies]\n⟦xformers = "*"⟧'),
    ("pyproject.toml", '[tool.poetry.dev-dependencies]\n⟦spconv-cu118 = "2.3"⟧'),
    ("pyproject.toml", '[tool.poetry.dependencies]\n⟦torch = "2.1.0+cu118"⟧'),
    ("pyproject.toml", "[tool.poetry.dependencies]\n⟦torch = '==2.1.0+cu118'⟧"),
    ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = {version = "⟦2.1.0+cu118⟧"}'),
    (
        "pyproject.toml",
        '[tool.poetry.dependencies]\nxformers = { git = "⟦https://example.org/x.git⟧" }',
    ),
    ("pyproject.toml", '[tool.poetry.dependencies.xformers]\nversion = "⟦0.6⟧"\noptional = true'),
    (
        "pyproject.toml",
        '[tool.poetry.dependencies]\ntorch = {url = "⟦https://a.example.org/whl/cu118/'
        'torch-2.1.0%2Bcu118-cp310-linux_x86_64.whl⟧"}',
    ),
    (
        "pyproject.toml",
        '[[tool.poetry.source]]\nname = "torch"\nurl = "⟦https://a.example.org/whl/cu118⟧"',
    ),
    (
        "pyproject.toml",
        '[tool.uv.sources]\ntorch = { index = "torch" }\n[[tool.uv.index]]\nname = "torch"\n'
        'url = "⟦https://a.example.org/whl/cu121⟧"\nexplicit = true',
    ),
    (
        "pyproject.toml",
        '[tool.uv]\nextra-index-url = ["⟦https://a.example.org/whl/cu121⟧"]',
    ),
    ("pixi.toml", '[dependencies]\npython = "3.10"\n⟦pytorch-cuda = "11.8.*"⟧'),
    ("pixi.toml", '[pypi-dependencies]\nflash-attn = { version = "⟦*⟧" }'),
    ("pixi.toml", '[pypi-options]\nextra-index-urls = ["⟦https://a.example.org/whl/cu121⟧"]'),
    ("Pipfile", '[packages]\n⟦flash-attn = "*"⟧\nnumpy = "*"'),
    ("Pipfile", '[[source]]\nurl = "⟦https://a.example.org/whl/cu121⟧"\nverify_ssl = true'),
    ("environment.yml", "dependencies:\n  - ⟦pytorch-cuda=11.8⟧\n  - ⟦cudatoolkit=11.3⟧"),
    (
        "environment.yml",
        "dependencies:\n  - ⟦gds-tools=1.6.1.9=0⟧\n  - ⟦nsight-compute=2023.1.1.4=0⟧",
    ),
    ("environment.yml", "dependencies:\n  - ⟦cudnn⟧\n  - ⟦nccl⟧\n  - ⟦cuda-nvcc=12.1⟧"),
    ("environment.yml", "dependencies:\n  - ⟦nvidia::cuda-toolkit⟧\n  - ⟦nvidia/label/x::cuda⟧"),
    ("environment.yml", "dependencies:\n  - ⟦pytorch=2.1.0=py3.10_cuda11.8_cudnn8.7.0_0⟧"),
    ("environment.yml", "dependencies:\n  - ⟦pytorch-gpu⟧\n  - ⟦cuda-version=12.1⟧"),
    (
        "environment.yml",
        "dependencies:\n- pip:\n  - --extra-index-url ⟦https://a.example.org/whl/cu117⟧\n"
        "  - -f ⟦https://data.example.org/whl/torch-2.1.0+cu118.html⟧",
    ),
    ("requirements.txt", "--index-url=⟦https://a.example.org/whl/cu118⟧\ntorch"),
    ("requirements.txt", "--find-links ⟦https://a.example.org/whl/torch_stable.html⟧\ntorch==2.1"),
    ("requirements.txt", "torch --index-url ⟦https://a.example.org/whl/cu118⟧\nnumpy"),
    ("requirements.txt", "-f ⟦https://data.example.org/whl/torch-2.1.0+cu118.html⟧"),
    ("requirements.txt", "-f ⟦https://data.example.org/wheels/cu118/repo.html⟧"),
    ("requirements.txt", "-f ⟦https://a.example.org/mmcv/dist/cu118/torch2.0/index.html⟧"),
    ("requirements.txt", "-e ⟦git+https://a.example.org/NVIDIA/apex.git#egg=apex⟧"),
    ("requirements.txt", "⟦https://a.example.org/whl/cu118/torch-2.1.0%2Bcu118-cp310.whl⟧"),
    ("requirements.txt", "⟦torch==2.1.0+cu118⟧ \\\n    --hash=sha256:0123456789abcdef"),
]
NOT_IN_FILES = [
    ("pyproject.toml", '[project.optional-dependencies]\ncuda = ["flash-attn", "cupy-cuda12x"]'),
    ("pyproject.toml", '[project.optional-dependencies]\ngpu = ["onnxruntime-gpu"]'),
    ("pyproject.toml", '[dependency-groups]\ntest-cu118 = ["torch==2.1.0+cu118"]'),
    ("pixi.toml", '[feature.cuda.dependencies]\npytorch-cuda = "12.*"'),
    ("pyproject.toml", '[tool.poetry.extras]\nall = ["flash-attn"]'),
    ("pyproject.toml", '[project]\nkeywords = ["triton", "apex", "vllm"]'),
    ("pyproject.toml", '[[tool.mypy.overrides]]\nmodule = ["triton", "flash_attn", "apex"]'),
    ("pyproject.toml", '[tool.isort]\nknown_third_party = ["xformers"]\ntriton = "x"'),
    ("pyproject.toml", '[project.urls]\nHomepage = "https://developer.nvidia.com/x"'),
    ("Cargo.toml", '[dependencies]\ntriton = "1.0"\nnccl = "2"'),
    ("setup.cfg", "[isort]\nknown_third_party = triton,xformers\n[mypy-triton.*]\nignore = True"),
    ("setup.cfg", "[metadata]\nkeywords =\n    triton\n    apex\n"),
    ("a.yaml", "backends:\n  - triton\n  - vllm\ntrain:\n  - apex\nall: [triton, xformers]"),
    (
        "environment.yml",
        "channels:\n  - pytorch\n  - nvidia\n  - conda-forge\ndependencies:\n  - pip",
    ),
    ("environment.yml", "dependencies:\n  - pytorch=2.1.0=py3.10_cpu_0\n  - cpuonly"),
    ("requirements.txt", "-r triton/requirements.txt\n-e apex/tools"),
    ("run.sh", "pip install -r triton/requirements.txt"),
    ("requirements.txt", "# flash-attn\n-r other.txt\n-c constraints.txt\n--pre"),
    (
        "requirements.txt",
        "--find-links https://a.example.org/whl/torch_stable.html\ntorch==2.1+cpu",
    ),
]


@pytest.mark.parametrize("package", CUDA_ONLY)
def test_builds_for_cuda_are_found(package: str) -> None:
    check("requirements.txt", f"numpy\n⟦NPU905:{package}⟧\n")


@pytest.mark.parametrize("package", WITH_ANOTHER_BUILD)
def test_what_has_another_build_for_the_npu_is_told_so(package: str) -> None:
    check("requirements.txt", f"⟦NPU604:{package}⟧\n")
    name = package.partition("=")[0].rstrip(">")
    build = "bitsandbytes-npu-beta" if name == "bitsandbytes" else f"{name}-ascend"
    check("requirements.txt", f"{package}\n{build}\n")


@pytest.mark.parametrize("package", CUDA_ONLY)
def test_the_search_for_words_misses_none(package: str) -> None:
    report = Checker(CATALOGUE, Configuration()).check_bytes("requirements.txt", package.encode())
    assert [f.rule.code for f in report.findings] == ["NPU905"]


@pytest.mark.parametrize("package", PLAIN)
def test_other_packages_are_not(package: str) -> None:
    check("requirements.txt", f"numpy\n{package}\n")


@pytest.mark.parametrize("package", ["flash-attn>=2", "torch==2.1.0+cu118", "spconv-cu118"])
@pytest.mark.parametrize(("file", "text"), IN_FILES)
def test_every_list_of_packages_is_read(file: str, text: str, package: str) -> None:
    check(file, (text % package).replace("⟦", "⟦NPU905:") + "\n")


@pytest.mark.parametrize(("file", "text"), TABLES)
def test_tables_channels_and_indexes_are_read(file: str, text: str) -> None:
    check(file, text.replace("⟦", "⟦NPU905:") + "\n")


@pytest.mark.parametrize(("file", "text"), NOT_IN_FILES)
def test_what_names_packages_for_another_reason_is_not_found(file: str, text: str) -> None:
    check(file, text + "\n")


FIXED = [
    (
        "pyproject.toml",
        '[tool.poetry.dependencies]\ntorch = "2.1.0+cu118"\n',
        '[tool.poetry.dependencies]\ntorch = "2.1.0+cpu"\n',
    ),
    (
        "pyproject.toml",
        '[tool.poetry.dependencies]\ntorch = {version = "2.7.1+cu118", optional = true}\n',
        '[tool.poetry.dependencies]\ntorch = {version = "2.7.1+cpu", optional = true}\n',
    ),
    (
        "pyproject.toml",
        '[[tool.uv.index]]\nurl = "https://a.example.org/whl/cu121"\n',
        '[[tool.uv.index]]\nurl = "https://a.example.org/whl/cpu"\n',
    ),
    ("setup.cfg", "[options]\ninstall_requires =\n  torch==2.1.0+cu118\n", None),
]
UNFIXED = [
    *("torch==2.0.1+cu118", "flash-attn", "xformers", "bitsandbytes", "vllm", "onnxruntime-gpu==1"),
    *("triton==2.1.0", "faiss-gpu==1.7.2", "torch @ https://a.example.org/whl/cu118/t%2Bcu118.whl"),
    *("-f https://a.example.org/whl/torch_stable.html", "-f https://a.example.org/t-2+cu118.html"),
    *("torch==2.1.0+cu118 --hash=sha256:0123456789abcdef",),
]


@pytest.mark.parametrize(("file", "before", "after"), FIXED)
def test_fixes(file: str, before: str, after: str | None) -> None:
    after = before.replace("+cu118", "+cpu") if after is None else after
    assert fixed(file, before) == after
    assert fixed(file, before, Applicability.SAFE) == before


@pytest.mark.parametrize("line", UNFIXED)
def test_what_has_no_build_for_the_npu_has_no_fix(line: str) -> None:
    (finding,) = findings("requirements.txt", line + "\n")
    assert finding.fixes == ()
    assert finding.message("en") != finding.message("zh")
