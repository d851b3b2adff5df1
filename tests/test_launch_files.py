"""What is found in scripts, Dockerfiles, settings and lists of requirements, and what is not.

Each case is the name of a file and its text, with findings marked as in `helpers`.
"""

import gc
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import CATALOGUE, Mark, code, marked, unmarked
from lsp_client import LspClient
from npulens.analysis import StatementCache, analyze
from npulens.catalog.model import Applicability, Finding, Target
from npulens.fixes.apply import fix_text
from npulens.text.document import Document
from npulens.text.kinds import Kind, kind_of
from npulens.workspace.files.discovery import discover
from npulens.workspace.runs.run import Checker
from npulens.workspace.settings.configuration import Configuration


def findings(file: str, text: str) -> tuple[Finding, ...]:
    return analyze(Document(file, text), CATALOGUE, Target())


def fixed(file: str, text: str, applicability: Applicability = Applicability.UNSAFE) -> str:
    def found(text: str) -> tuple[Finding, ...]:
        return findings(file, text)

    kind = kind_of(file, text)
    result = fix_text(text, found, applicability, kind=kind)
    assert not result.refused
    assert fix_text(result.text, found, applicability, kind=kind).text == result.text
    return result.text


def check(file: str, snippet: str) -> str:
    """Assert that exactly what is marked is found; returns the text."""
    text, expected = unmarked(code(snippet))
    found = sorted(Mark(*f.span, f.rule.code) for f in findings(file, text))
    assert marked(text, found) == marked(text, expected)
    with_cache = analyze(Document(file, text), CATALOGUE, Target(), StatementCache())
    assert with_cache == findings(file, text)
    return text


SHELL = [
    'install() { pip install -q "$@"; }\n'
    "install torch --index-url '⟦NPU905:https://wheels.example.org/whl/cu128⟧'",
    "export ⟦NPU901:CUDA_VISIBLE_DEVICES⟧=0,1",
    "export ⟦NPU901:CUDA_VISIBLE_DEVICES⟧=\npython train.py",
    "⟦NPU901:CUDA_VISIBLE_DEVICES⟧='-1' python train.py",
    "⟦NPU901:CUDA_VISIBLE_DEVICES⟧=0 python train.py",
    "env ⟦NPU901:CUDA_VISIBLE_DEVICES⟧=0 python train.py",
    "nohup env -i ⟦NPU901:CUDA_VISIBLE_DEVICES⟧='0' python train.py &",
    'if [ -z "$⟦NPU901:CUDA_VISIBLE_DEVICES⟧" ]; then exit 1; fi',
    "N=${#⟦NPU901:CUDA_VISIBLE_DEVICES⟧}",
    "N=$(echo \"$⟦NPU901:CUDA_VISIBLE_DEVICES⟧\" | tr ',' ' ' | wc -w)",
    "unset ⟦NPU901:CUDA_VISIBLE_DEVICES⟧",
    "bash -c '⟦NPU901:CUDA_VISIBLE_DEVICES⟧=0 python a.py'",
    'ssh host "cd x && ⟦NPU901:CUDA_VISIBLE_DEVICES⟧=1 python a.py"',
    "export ⟦NPU901:NCCL_DEBUG⟧=INFO ⟦NPU901:NCCL_SOCKET_IFNAME⟧=eth0",
    "mpirun -x ⟦NPU901:NCCL_DEBUG⟧=INFO -x ⟦NPU901:NCCL_IB_DISABLE⟧ python a.py",
    "srun --export=ALL,⟦NPU901:NCCL_DEBUG⟧=INFO python a.py",
    'export ⟦NPU901:PYTORCH_CUDA_ALLOC_CONF⟧="expandable_segments:True"',
    "export ⟦NPU901:CUDA_LAUNCH_BLOCKING⟧=1",
    "export ⟦NPU901:CUDA_HOME⟧=/usr/local/cuda",
    "python train.py --backend ⟦NPU902:nccl⟧",
    'python train.py --dist-backend=⟦NPU902:nccl⟧ --device "⟦NPU902:cuda:1⟧"',
    "python train.py \\\n  --lr 1 \\\n  --device \\\n  ⟦NPU902:cuda⟧",
    'ARGS="--lr 1 --device ⟦NPU902:cuda⟧"\npython train.py $ARGS',
    "ARGS=(\n  --lr 1  # a comment\n  --backend ⟦NPU902:nccl⟧\n)",
    "python fit.py --accelerator ⟦NPU902:gpu⟧ --devices 2",
    "python fit.py trainer.accelerator=⟦NPU902:gpu⟧ trainer.max_epochs=3",
    "python train.py model.device=⟦NPU902:cuda:0⟧",
    "torchrun --nproc_per_node=⟦NPU902:gpu⟧ train.py",
    "#!/bin/bash\n#SBATCH ⟦NPU903:--gres=gpu:8⟧\n#SBATCH ⟦NPU903:--gpus-per-node 8⟧",
    "srun -p x ⟦NPU903:--gres=gpu:${GPUS}⟧ python -u train.py",
    "docker run ⟦NPU903:--gpus all⟧ ⟦NPU903:--runtime=nvidia⟧ me/image python a.py",
    "docker run --rm ⟦NPU904:nvidia/cuda:12.1.1-base⟧ python a.py",
    "⟦NPU906:nvidia-smi⟧",
    "N=$(⟦NPU906:nvidia-smi⟧ -L | wc -l)",
    "watch -n 1 ⟦NPU906:nvidia-smi⟧",
    "⟦NPU906:nvidia-docker⟧ run --rm me/image python a.py",
    "⟦NPU906:nsys⟧ profile -o out python train.py",
    "pip install ⟦NPU905:torch==2.1.0+cu118⟧ -f ⟦NPU905:https://wheels.example.org/whl/cu118⟧",
    "python -m pip install ⟦NPU905:flash-attn⟧ --no-build-isolation",
    "conda install pytorch ⟦NPU905:pytorch-cuda=11.8⟧ -c pytorch -c nvidia",
    # Python in quotes
    'python -c "import torch; ⟦NPU101:torch.cuda.empty_cache⟧()"',
    "conda run -n a python3 -c 'import ⟦NPU602:flash_attn⟧'",
    'python -c "\nimport torch\nx = torch.ones(1, device=\\⟦NPU110:"cuda\\⟧")\n"',
    'python -c "\nimport torch\nf(f\'{n or \\"no\\"}\')\n⟦NPU101:torch.cuda.empty_cache⟧()\n"',
    "#$ ⟦NPU903:-l gpu=true⟧\n#$ ⟦NPU903:-l tmem=1G,gpu_type=a6000⟧",
    "#$ ⟦NPU903:-pe gpu⟧ 1\n#$ -pe smp 4",
    '$VENV_PY -c "import torch; ⟦NPU101:torch.cuda.empty_cache⟧()"',
    # commands that a variable holds
    'export SRUN="srun -K --ntasks=1 ⟦NPU903:--gpus=1⟧ --mem 4"',
    'SRUN="srun -K ⟦NPU903:--gpus=1⟧"\n$SRUN python a.py',
    "cd DeepSpeed && ⟦NPU901:DS_BUILD_OPS⟧=1 ./install.sh",
    # files that a script writes
    "cat > job.slurm <<EOF\n#!/bin/bash\n#SBATCH ⟦NPU903:--gres=gpu:8⟧\nEOF\nsbatch job.slurm",
    "{\n  cat <<EOF\n#!/usr/bin/env bash\n#SBATCH ⟦NPU903:--gpus-per-task=${N}⟧\nEOF\n} > $JOB",
    "cat > a.slurm <<EOF\n#SBATCH ⟦NPU903:--cpus-per-gpu=4⟧\nEOF",
    "cat <<EOF | tee fit.py\nimport torch\n⟦NPU101:torch.cuda.empty_cache⟧()\nEOF",
    "cat << 'EOF' > conf/fit.yaml\ntrainer:\n  accelerator: ⟦NPU902:gpu⟧\n  devices: 8\nEOF",
    "cat > requirements.txt <<EOF\n⟦NPU905:flash-attn==2.5⟧\nEOF",
    # programs that start others in an environment
    "poetry run pip install ⟦NPU905:flash-attn⟧",
    "conda run -n a --no-capture-output python -m pip install ⟦NPU905:flash-attn⟧",
    "uv run --with torch ⟦NPU906:nvidia-smi⟧",
    "⟦NPU906:gpustat⟧ -i",
    "ray start --head ⟦NPU903:--num-gpus=8⟧ --port 6379",
    "python - <<'EOF'\nimport torch\nx = torch.ones(1).⟦NPU105:cuda⟧()\nEOF",
    "bash <<EOF\n⟦NPU901:CUDA_VISIBLE_DEVICES⟧=0 python a.py\nEOF",
    'IFS="," read -ra CARDS <<< "$⟦NPU901:CUDA_VISIBLE_DEVICES⟧"',
    'alias submit="srun -p x ⟦NPU903:--gres=gpu:1⟧ --cpus-per-task 10"',
    "pip install ⟦NPU905:./dist/xformers-0.0.20-cp310-cp310-linux_x86_64.whl⟧",
    "pip install ⟦NPU905:flash_attn-2.7.4.post1+cu12torch2.6-cp311-cp311-linux_x86_64.whl⟧",
    "export ⟦NPU917:TASK_QUEUE_ENABLE⟧=0",
    "export HCCL_CONNECT_TIMEOUT=1200\n⟦NPU919:torchrun⟧ --nproc_per_node=8 train.py",
    'docker run ⟦NPU903:--gpus "device=all"⟧ me/image',
    "docker run ⟦NPU904:nvcr.example.org/nvidia/tritonserver:21.02-py3⟧ tritonserver",
    # Where a variable is set, the places that read it are no news.
    "⟦NPU901:NVIDIA_VISIBLE_DEVICES⟧=${NVIDIA_VISIBLE_DEVICES:=all}",
    "export ⟦NPU901:CUDA_VISIBLE_DEVICES⟧=0\npython a.py\nunset CUDA_VISIBLE_DEVICES",
    "⟦NPU901:CUDA_VISIBLE_DEVICES⟧=0 python a.py\n⟦NPU901:CUDA_VISIBLE_DEVICES⟧=1 python a.py",
    "⟦NPU901:NVIDIA_VISIBLE_DEVICES⟧=0\nexport NVIDIA_VISIBLE_DEVICES",
    # What has no counterpart is told once.
    "⟦NPU901:NCCL_DEBUG⟧=INFO python a.py\nNCCL_DEBUG=INFO python b.py\necho $NCCL_DEBUG",
    "pip install --no-binary flash-attn ⟦NPU905:flash-attn==2.5.6⟧",
    "pip install --only-binary flash-attn ⟦NPU905:flash-attn==2.5.6⟧",
    "pip install --no-cache-dir ⟦NPU905:flash-attn==2.5.6⟧",
    "pip3 install --no-cache-dir --no-build-isolation ⟦NPU905:flash-attn==2.7.0.post2⟧",
    "pip install -U --no-deps ⟦NPU905:xformers==0.0.22⟧",
    "uv pip install --no-build-isolation-package flash-attn --no-cache ⟦NPU905:flash-attn⟧",
    "case $1 in\n  cu118) export CUDA_HOME=/x ;;\n  *) ⟦NPU906:nvidia-smi⟧ ;;\nesac",
    "python train.py ⟦NPU605:--load_in_8bit⟧ ⟦NPU605:--use_8bit_adam⟧ --seed 1",
    "CUDA=cu102\npip install ⟦NPU606:torch-scatter⟧ -f ⟦NPU905:https://a.example.org/whl/torch-1.9+${CUDA}.html⟧",
    "WORLD_SIZE=$(($SLURM_NNODES * $⟦NPU903:SLURM_GPUS_ON_NODE⟧))",
    "python train.py ⟦NPU605:--quantization_bit 8⟧ ⟦NPU605:--load_8bit⟧",
    "python train.py ⟦NPU605:--load_in_8bit True⟧ --optim ⟦NPU605:paged_adamw_8bit⟧",
    "accelerate launch train.py ⟦NPU902:--enable_xformers_memory_efficient_attention⟧ --fp16",
    "python train.py --per_device_train_batch_size 4 ⟦NPU902:--tf32 True⟧ --bf16 True",
    "python train.py --optim ⟦NPU902:adamw_apex_fused⟧ --attn_impl ⟦NPU604:flash_attention_2⟧",
]

NOT_SHELL = [
    "BUILD=cpu\npip install torch-sputnik -f https://a.example.org/whl/torch-2.1+${BUILD}.html",
    "python train.py --load_in_8bit False --tf32 True --optim adamw_torch",
    "torchrun pretrain_gpt.py --use-flash-attn --tensor-model-parallel-size 2",
    "# export CUDA_VISIBLE_DEVICES=0",
    "echo 'export CUDA_VISIBLE_DEVICES=0'",
    "echo run with --device cuda",
    'printf "--backend nccl\\n"',
    "cat <<EOF\nCUDA_VISIBLE_DEVICES=0 python a.py --device cuda\nEOF",
    "grep CUDA_VISIBLE_DEVICES *.py",
    "sed -i 's/CUDA_VISIBLE_DEVICES/X/' a.py",
    "git commit -m 'set CUDA_VISIBLE_DEVICES=0'",
    "MY_CUDA_VISIBLE_DEVICES=0 python a.py",
    "echo $CUDA_VISIBLE_DEVICES_OLD",
    "export CUDA_DEVICE_MAX_CONNECTIONS=1",
    "export CUDA_OF_MY_OWN=1",
    "export ASCEND_RT_VISIBLE_DEVICES=0,1",
    "export CUDA_VISIBLE_DEVICES=0\nexport ASCEND_RT_VISIBLE_DEVICES=0",
    "if command -v npu-smi; then D=npu; else export CUDA_VISIBLE_DEVICES=0; fi",
    "case $DEVICE in\n  npu) python a.py --device npu ;;\n  *) python a.py --device cuda ;;\nesac",
    "torchrun pretrain_gpt.py --distributed-backend nccl",
    "python train.py --device cpu --backend gloo",
    "python train.py --device-file cuda --name cuda --model nccl",
    "python train.py --backend inductor --gpus 8",
    "cmake -DUSE_CUDA=ON -DBACKEND=cuda ..",
    "command -v nvidia-smi && echo NVIDIA",
    "poetry run python train.py flash-attn",
    "poetry run pip uninstall -y flash-attn",
    "python -c 'print(1)'\npython -c \"$CODE\"",
    "cat <<EOF\nusage: sbatch --gres=gpu:1 train.sh\nEOF",
    "cat > notes.txt <<EOF\nCUDA_VISIBLE_DEVICES=0\nEOF",
    "[ $KIND = NPU ] && ray start --resources='{\"NPU\": 8}' || ray start --num-gpus=8",
    "command -v nvidia-smi > /dev/null && nvidia-smi || echo no cards",
    "#!/bin/bash\n# use #SBATCH --gres=gpu:8 for more\n#SBATCH --ntasks=8",
    "#SBATCH --gres=npu:8",
    "srun python train.py --gpus 8 --gres gpu",
    "docker build -t me/image:cuda11.8 .",
    "docker run --device=/dev/davinci0 ascendai/cann:8.1 python a.py",
    "pip install torch==2.1.0 --index-url https://wheels.example.org/whl/cpu",
    "pip uninstall -y flash-attn transformer-engine",
    "python train.py --attn flash-attn",
    "export TASK_QUEUE_ENABLE=2\nexport HCCL_CONNECT_TIMEOUT=1200\ntorchrun train.py",
    "export HCCL_CONNECT_TIMEOUT=1200\nsource env.sh\ntorchrun train.py",
    "python train.py --device npu:0 --backend hccl",
    "gcloud compute instances create x --accelerator type=nvidia-tesla-t4,count=1",
    "cmake -DTORCH_CUDA_ARCH_LIST=$TORCH_CUDA_ARCH_LIST ..",
    "uv sync --no-install-package nvidia-nccl-cu12 --no-install-package flash-attn",
    "case $V in\n  cu118)\n    export CUDA_HOME=/usr/local/cuda-11.8\n    ;;\nesac",
    "if command -v nvidia-smi > /dev/null; then\n  NAME=$(nvidia-smi -L)\nfi",
    "which nvidia-smi && nvidia-smi",
    "export NCCL_ALGO=^NVLS",
    "case $V in\n  cpu) export CUDA_VISIBLE_DEVICES= ;;\nesac",
    "LIBRARY=${CUDA_HOME:-/usr/local/cuda}/lib64",
    "NAME=$(nvidia-smi -L 2>/dev/null | head -1 || true)",
    "docker pull nvcr.example.org/nvidia/tensorflow:20.06-tf1-py3",
    "docker pull nvcr.example.org/nvidia/tritonserver:20.10-py3-clientsdk",
]

OTHER = [
    (
        "Dockerfile",
        "FROM ⟦NPU904:nvidia/cudagl:11.3.1-devel⟧\n"
        "RUN dpkg -i ⟦NPU905:cuda-keyring⟧_1.0-1_all.deb && dpkg -i ./foo_1.deb && dpkg -l",
    ),
    ("Dockerfile", "FROM ⟦NPU904:registry.example.org/docker/xla:nightly_3.8_cuda_11.8⟧"),
    (
        "Dockerfile",
        "FROM ubuntu:22.04 AS cuda\n"
        "COPY --from=⟦NPU904:nvidia/opengl:1.0-glvnd-runtime⟧ \\\n  /usr/lib /usr/lib\n"
        "COPY --chown=a:b \\\n  --from=⟦NPU904:nvidia/cuda:12.1.1-devel⟧ /a /b\n"
        "COPY --from=cuda /gpu /gpu",
    ),
    ("environment.yml", "dependencies:\n  - ⟦NPU905:nvidiacub⟧\n  - fvcore"),
    (".circleci/config.yml", "jobs:\n  a:\n    steps:\n      - run: ⟦NPU906:nvidia-smi⟧\n"),
    (
        ".circleci/config.yml",
        "jobs:\n  - run:\n      command: |\n"
        "        docker build . --build-arg A=<< parameters.a >>\n"
        "        docker run ⟦NPU903:--gpus all⟧ image\n",
    ),
    (
        "Dockerfile",
        'FROM x\nARG ⟦NPU905:K2_VERSION⟧="1.24.4.dev20240328+cuda11.8.torch2.2.2"\n'
        "RUN pip install k2==$K2_VERSION -f ⟦NPU905:https://k2.example.org/k2/cuda.html⟧",
    ),
    (
        ".github/workflows/a.yml",
        "strategy:\n  matrix:\n    python-version: [⟦NPU920:3.6⟧, 3.10]\n"
        "    torch: [⟦NPU920:1.3.1⟧, 2.6.0]\n    include:\n      - torch: ⟦NPU920:1.3.1⟧\n"
        "        torchvision: ⟦NPU920:0.4.2⟧",
    ),
    (
        ".github/workflows/a.yml",
        "strategy:\n  matrix:\n    torch: [⟦NPU905:1.8.0+cu101⟧, 2.6.0]\n    include:\n"
        "      - kernels: ⟦NPU905:1.5.0+cu101⟧\n        wheels: 2.6.0+cpu",
    ),
    ("run.sh", "python a.py --distributed-backend ⟦NPU902:nccl⟧"),
    ("docker/cpu.Dockerfile", "FROM ⟦NPU904:nvidia/cuda:12.1.1-devel⟧"),
    ("docker/Dockerfile.linting", "FROM ⟦NPU904:nvidia/cuda:12.1.1-devel⟧"),
    ("requirements-cuda.txt", "⟦NPU905:torch==2.1.0+cu118⟧"),
    ("requirements2.0.txt", "⟦NPU905:torch==2.0.1+cu118⟧"),
    ("run/wrapper.sb", "#!/bin/bash\n#SBATCH ⟦NPU903:--gres=gpu:1⟧"),
    (
        "cog.yaml",
        "build:\n  python_packages:\n"
        "    - torch==2.6.0 --extra-index-url=⟦NPU905:https://wheels.example.org/whl/cu113⟧",
    ),
    ("Dockerfile", "FROM ⟦NPU904:nvidia/cuda:12.1.1-cudnn8-devel-ubuntu22.04⟧ AS base"),
    (
        "Dockerfile",
        "FROM --platform=linux/amd64 ⟦NPU904:images.example.org/nvidia/pytorch:24.01-py3⟧",
    ),
    (
        "Dockerfile.train",
        "ARG BASE=⟦NPU904:pytorch/pytorch:2.1.0-cuda12.1-cudnn8-devel⟧\nFROM $BASE",
    ),
    ("Dockerfile", "FROM x\nENV ⟦NPU901:CUDA_HOME⟧=/usr/local/cuda A=b"),
    ("Dockerfile", "FROM x\nENV ⟦NPU901:NVIDIA_VISIBLE_DEVICES⟧ all"),
    (
        "Dockerfile",
        "FROM x\nRUN apt-get update && \\\n    pip install ⟦NPU905:torch==2.1.0+cu118⟧ \\\n"
        "    --index-url ⟦NPU905:https://wheels.example.org/whl/cu118⟧",
    ),
    ("Dockerfile", 'FROM x\nCMD ["python", "a.py", "--device", "⟦NPU902:cuda⟧"]'),
    ("Dockerfile", "FROM x\nRUN <<EOF\npip install ⟦NPU905:flash-attn⟧\nEOF\n"),
    (
        "Dockerfile",
        "FROM x\nRUN --network=none --mount=type=cache,target=/x \\\n pip install ⟦NPU905:cupy⟧\n",
    ),
    ("Dockerfile", "FROM x\nRUN --network=none <<EOF\npip install ⟦NPU905:flash-attn⟧\nEOF\n"),
    (
        "Dockerfile",
        "FROM x\nRUN pip install \\\n  ⟦NPU905:flash-attn⟧ && \\\n  python - <<'PY'\n"
        "import torch\nx = torch.ones(1).⟦NPU105:cuda⟧()\nPY\nRUN pip install ⟦NPU905:cupy⟧\n",
    ),
    ("docker/cu118.Dockerfile", "FROM ⟦NPU904:nvidia/cuda:11.8.0-devel⟧"),
    ("docker/docker-cuda/Dockerfile", "FROM ⟦NPU904:nvidia/cuda:12.1.1-devel⟧"),
    ("Dockerfile.gpu", "FROM ⟦NPU904:nvidia/cuda:${CUDA_VERSION}-cudnn${CUDNN}-devel-ubuntu22.04⟧"),
    ("Dockerfile", "FROM ⟦NPU904:${REGISTRY}/nvidia/cuda:12.1.1⟧"),
    ("Dockerfile", "FROM ⟦NPU904:ultralytics/ultralytics:latest⟧"),
    ("a.yaml", "efficient_attention_backend: ⟦NPU902:xformers⟧\nattention: xformers"),
    ("requirements.txt", "optimum[⟦NPU905:onnxruntime-gpu⟧]==1.20\nrembg[cli]"),
    (
        "Makefile",
        "⟦NPU901:CUDA_HOME⟧ ?= /usr/local/cuda\nNVCC := $(CUDA_HOME)/bin/⟦NPU906:nvcc⟧\n"
        "\ntrain: data\n\t@echo cuda\n\tpython train.py --device ⟦NPU902:cuda⟧ \\\n"
        "\t    --backend ⟦NPU902:nccl⟧\n",
    ),
    ("rules.mk", "install:\n\tuv venv && \\\n\tuv pip install ⟦NPU905:flash-attn⟧\n"),
    (
        "Dockerfile_serve",
        'ARG ⟦NPU920:PYTORCH⟧="1.6.0"\nARG ⟦NPU907:CUDA⟧="10.1"\n'
        "FROM ⟦NPU904:pytorch/pytorch:${PYTORCH}-cuda${CUDA}-devel⟧\n"
        'RUN ["/bin/bash", "-c", "pip install ⟦NPU905:xformers⟧"]',
    ),
    (
        "Dockerfile",
        "FROM x\nRUN a && \\\n# ----\n# pip install xformers\n# ----\n"
        "    pip install \\\n        ⟦NPU905:flash-attn⟧",
    ),
    ("Dockerfile", "FROM x\nRUN git clone ⟦NPU905:https://code.example.org/NVIDIA/apex⟧"),
    ("cog.yaml", 'build:\n  cuda: "⟦NPU903:11.3⟧"\n  python_version: "3.8"'),
    (
        "environment.yaml",
        "channels:\n  - nvidia\ndependencies:\n  - ⟦NPU905:pytorch-mutex=1.0=cuda⟧\n"
        "  - ⟦NPU905:_pytorch_select=0.2=gpu_0⟧\n  - _pytorch_select=0.1=cpu_0\n"
        "  - ⟦NPU905:libnpp=11.8.0.86=0⟧\n  - ⟦NPU905:libnvjpeg-dev=11.9=0⟧",
    ),
    ("Dockerfile", "FROM ⟦NPU904:me/base:py310-cu${CUDA}⟧"),
    ("Dockerfile", "FROM ⟦NPU904:me/base:torch1.7-cuda10.1⟧"),
    ("Dockerfile", "FROM ⟦NPU904:pytorch/pytorch⟧\nRUN python a.py"),
    ("Dockerfile", "FROM ⟦NPU904:pytorch/pytorch:latest⟧ AS cannot"),
    ("Dockerfile", "FROM ⟦NPU904:nvcr.io/nvidia/pytorch:23.10-py3⟧"),
    ("Dockerfile", "ARG TAG=cannot\nARG BASE=⟦NPU904:nvidia/cuda:12.1.1⟧\nFROM ${BASE}"),
    ("Dockerfile", "FROM x\nENV ⟦NPU901:TORCH_CUDA_ARCH_LIST⟧='8.0' ⟦NPU901:FORCE_CUDA⟧=1"),
    ("Dockerfile", "FROM x\nENV ⟦NPU901:TCNN_CUDA_ARCHITECTURES⟧=86"),
    ("Dockerfile", "FROM x\nENV LD_LIBRARY_PATH ⟦NPU907:/usr/local/cuda/lib64⟧:$LD_LIBRARY_PATH"),
    (
        "Dockerfile",
        "FROM x\nRUN apt-get update && apt-get install -y git ⟦NPU905:libnccl2⟧ \\\n"
        "    ⟦NPU905:cuda-toolkit-12-1⟧ ⟦NPU905:libcudnn8-dev=8.9⟧ && rm -rf /x",
    ),
    ("Dockerfile", "FROM x\nRUN sudo apt install -qq ⟦NPU905:nvidia-cuda-toolkit⟧"),
    (
        "Dockerfile",
        "FROM x\nRUN pip install ⟦NPU905:git+https://code.example.org/NVlabs/tiny-cuda-nn#sub=a⟧",
    ),
    (
        "Dockerfile",
        "FROM x\nARG CUDA=cu118\nRUN pip install ⟦NPU905:torch==2.1.0+${CUDA}⟧ \\\n"
        "    -f ⟦NPU905:https://wheels.example.org/whl/cu${CUDA_VERSION}⟧",
    ),
    ("Dockerfile", "FROM x\nRUN pip install ⟦NPU905:torch==2.1.0+cu$CUDA⟧"),
    ("Dockerfile", "FROM x\nARG INDEX=⟦NPU905:https://wheels.example.org/whl/cu118⟧"),
    ("Dockerfile", "FROM x\nRUN yum install -y ⟦NPU905:cuda-nvcc-11-8⟧ gcc"),
    (
        "docker-compose.yml",
        "services:\n  a:\n    image: ⟦NPU904:nvidia/cuda:12.1.1⟧\n    runtime: ⟦NPU903:nvidia⟧",
    ),
    (
        "compose.yaml",
        "environment:\n  - ⟦NPU901:CUDA_VISIBLE_DEVICES⟧=0\n  - ⟦NPU901:NCCL_DEBUG⟧=INFO",
    ),
    ("compose.yaml", "devices:\n  - driver: ⟦NPU903:nvidia⟧\n    capabilities: [⟦NPU903:gpu⟧]"),
    ("Dockerfile", 'FROM x\nENV DEVICE="⟦NPU902:cuda⟧"\nARG BACKEND=⟦NPU902:nccl⟧'),
    ("requirements.txt", "⟦NPU606:faster-whisper==1.0⟧\n⟦NPU606:ctranslate2⟧"),
    ("a.sh", "#SBATCH ⟦NPU903:--constraint gpu80⟧\n#SBATCH --constraint=cpu\npython a.py"),
    ("Dockerfile", "ARG NAME\nFROM ⟦NPU904:${NAME}:10.2-cudnn7-devel-ubuntu18.04⟧"),
    (
        "Dockerfile",
        "FROM x\nRUN pip install ⟦NPU905:https://a.example.org/k2-1.23+cuda11.6.torch1.13.1-cp310.whl⟧",
    ),
    ("run.sh", "python a.py --trainer.accelerator ⟦NPU118:auto⟧ --trainer.devices 8"),
    ("compose.yaml", "devices:\n  - count: 1\n    capabilities: [⟦NPU903:gpu⟧]"),
    ("tests/recipe.yaml", "env:\n  NCCL_ALGO: Ring\ndevice: ⟦NPU902:cuda⟧"),
    (
        "train.sub",
        "executable = train.sh\narguments = --device ⟦NPU902:cuda⟧ --seed 1\n"
        "Requirements = ⟦NPU903:(CUDACapability >= 7.0) && (Memory > 4000)⟧\n"
        "⟦NPU903:request_GPUs = 1⟧\n⟦NPU903:+GPUMem = 10000⟧\nqueue",
    ),
    ("a.sh", '#SBATCH ⟦NPU903:--constraint="[a5000|a6000|a100|3090]"⟧'),
    ("a.sh", "#SBATCH ⟦NPU903:--constraint='gpu_mem:32GB'⟧  # large ones"),
    ("a.sh", "#SBATCH ⟦NPU903:-C a40⟧ -N 1"),
    ("a.sh", "N=$(ds_ssh ⟦NPU906:nvidia-smi⟧ -L | wc -l)\npdsh -w a,b ⟦NPU906:nvidia-smi⟧"),
    ("a.sh", "fuser -v ⟦NPU907:/dev/nvidia0⟧\ndocker run --device=⟦NPU907:/dev/nvidia0⟧ me/image"),
    ("a.sh", "pip install ⟦NPU905:spconv-cu${CUDA/./}⟧ timm"),
    (
        "a.sh",
        "cat > Dockerfile <<EOM\nFROM me/base\nRUN pip install ⟦NPU905:spconv-cu$V⟧\nEOM",
    ),
    ("Dockerfile", "FROM a\nRUN rm ⟦NPU907:/etc/apt/sources.list.d/cuda.list⟧ && apt-get update"),
    (
        "a.yaml",
        "job:\n  machine_type: ⟦NPU903:a2-highgpu-1g⟧\n  accelerator_type: ⟦NPU903:NVIDIA_L4⟧",
    ),
    ("a.yaml", "estimator:\n  instance_type: ⟦NPU903:ml.p3.2xlarge⟧"),
    (
        "run.submit_file",
        "request_gpus = ⟦NPU903:$(gpus)⟧\nrequire_gpus = ⟦NPU903:Capability > 7⟧",
    ),
    ("tests/recipe.yaml", "envs:\n  ⟦NPU901:CUDA_VISIBLE_DEVICES⟧: 0,1"),
    ("recipe.yaml", "env:\n  ⟦NPU901:NCCL_ALGO⟧: Ring"),
    ("a.yaml", "args:\n  --device: ⟦NPU902:cuda⟧"),
    ("compose.yaml", "command: python a.py --device ⟦NPU902:cuda⟧ --lr 1"),
    ("job.yaml", "server_container_image: ⟦NPU904:a.example.org/nvidia/pytorch:24.01-py3⟧"),
    ("job.yaml", 'command: ["python", "a.py", "--backend", "⟦NPU902:nccl⟧"]'),
    ("job.yaml", "env:\n  - name: ⟦NPU901:CUDA_VISIBLE_DEVICES⟧\n    value: '0'"),
    ("job.yaml", "limits:\n  ⟦NPU903:nvidia.com/gpu: 8⟧"),
    ("job.yaml", 'limits:\n  ⟦NPU903:"nvidia.com/gpu": "8"⟧'),
    ("job.yaml", "nodeSelector:\n  nvidia.com/gpu.product: ⟦NPU903:A100-SXM4-80GB⟧"),
    ("job.yaml", "nodeSelector:\n  cloud.google.com/gke-accelerator: ⟦NPU903:nvidia-l4⟧"),
    ("job.yaml", "tolerations:\n  - key: ⟦NPU903:nvidia.com/gpu⟧\n    operator: Exists"),
    ("job.yaml", "spec:\n  runtimeClassName: ⟦NPU903:nvidia⟧"),
    ("compose.yaml", "services:\n  a:\n    gpus: ⟦NPU903:all⟧"),
    (
        "compose.yaml",
        "devices:\n  - driver: cdi\n    device_ids:\n      - ⟦NPU903:nvidia.com/gpu=all⟧",
    ),
    ("compose.yaml", "devices:\n  - ⟦NPU903:/dev/nvidia0:/dev/nvidia0⟧"),
    ("job.yaml", "limits:\n  ⟦NPU903:nvidia.com/mig-1g.5gb: 1⟧"),
    ("values.yaml", "image:\n  repository: ⟦NPU904:nvidia/cuda⟧\n  tag: 12.1.1"),
    ("ray.yaml", "docker:\n  image: ⟦NPU904:rayproject/ray-ml:2.9.0-gpu⟧"),
    ("compose.yaml", "services:\n  a:\n    image: ⟦NPU904:vllm/vllm-openai:latest⟧"),
    (
        "compose.yaml",
        "environment:\n  PIP_EXTRA_INDEX_URL: ⟦NPU905:https://a.example.org/whl/cu118⟧",
    ),
    ("task.yaml", "resources:\n  accelerators: ⟦NPU903:A100:8⟧\nrun: python a.py"),
    ("task.yaml", "resources:\n  accelerators: {⟦NPU903:H100⟧: 8}"),
    ("task.yaml", "resources:\n  accelerators:\n    ⟦NPU903:L40S⟧: 1"),
    ("task.yaml", "resources:\n  accelerators: [⟦NPU903:A10G:1⟧, ⟦NPU903:A100-80GB:8⟧]"),
    ("cog.yaml", 'build:\n  ⟦NPU903:gpu: true⟧\n  python_version: "3.10"'),
    ("launcher.yaml", "_target_: x.SlurmLauncher\n⟦NPU903:gpus_per_node: 4⟧\ngres: ⟦NPU903:gpu:4⟧"),
    (".devcontainer/devcontainer.json", '{"runArgs": ["⟦NPU903:--gpus", "all"⟧, "--ipc=host"]}'),
    (".devcontainer/devcontainer.json", '{"runArgs": ["⟦NPU903:--gpus=all⟧"]}'),
    (
        "job.yaml",
        "run: |\n  export ⟦NPU901:NCCL_DEBUG⟧=INFO\n  python a.py --device ⟦NPU902:cuda⟧\nnext: 1",
    ),
    ("a.yaml", "device: ⟦NPU902:cuda⟧"),
    ("a.yaml", "devices:\n  vae: ⟦NPU902:cuda:0⟧\n  encoder: ⟦NPU902:cuda⟧\n  decoder: cpu"),
    ("a.yaml", "fit_device:\n  vae: ⟦NPU902:cuda⟧"),
    ("a.yaml", "teacher: ⟦NPU902:cuda:3⟧"),
    ("a.json", '{"device": "⟦NPU902:cuda⟧", "val_epoch": 1}'),
    ("a.json", '{"device": "⟦NPU902:cuda⟧", "val_loss": "mse", "test_metric": "psnr"}'),
    (
        "a.json",
        '{"python_version": "3.10", "cuda_version": "12.1", "device": "⟦NPU902:cuda⟧"}',
    ),
    (
        "environment.yml",
        "dependencies:\n  - pip:\n    - --find-links ⟦NPU905:https://a.b/jax-releases/jax_cuda_releases.html⟧",
    ),
    (
        "pyproject.toml",
        '[dependency-groups]\ncuda = ["⟦NPU905:flash-attn⟧"]\n[tool.uv]\ndefault-groups = ["cuda"]',
    ),
    ("a.yaml", "device: npu:0\nteacher_device: ⟦NPU902:cuda⟧"),
    ("a.yaml", 'device: "⟦NPU902:cuda:0⟧"  # the first'),
    ("a.yaml", "train: {device: ⟦NPU902:cuda:1⟧, lr: 0.1}"),
    ("a.yaml", "- eval_device: '⟦NPU902:cuda⟧'"),
    ("a.yaml", "dist_params:\n  backend: ⟦NPU902:nccl⟧"),
    ("a.yaml", "distributed_backend: ⟦NPU902:nccl⟧"),
    ("a.yaml", "trainer:\n  max_epochs: 3\n  accelerator: ⟦NPU902:gpu⟧"),
    ("accelerate.yaml", "distributed_type: ⟦NPU902:MULTI_GPU⟧\nnum_processes: 8"),
    (
        "env.yml",
        "dependencies:\n  - ⟦NPU905:cudatoolkit=11.3⟧\n  - pip:\n    - ⟦NPU905:torch==1.12+cu113⟧",
    ),
    (
        ".github/workflows/a.yml",
        "env:\n  ⟦NPU901:CUDA_VISIBLE_DEVICES⟧: 0",
    ),
    (
        ".github/workflows/a.yml",
        "a:\n  container:\n    image: ⟦NPU904:nvidia/cuda:12.1.1⟧",
    ),
    (".github/workflows/a.yml", "jobs:\n  a:\n    runs-on: [self-hosted, ⟦NPU903:gpu-a100⟧]"),
    (
        ".circleci/config.yml",
        "a:\n  machine:\n    image: ⟦NPU904:ubuntu-1604-cuda-11.1:202012-01⟧\n"
        "  resource_class: ⟦NPU903:gpu.nvidia.small⟧",
    ),
    (".circleci/config.yml", "jobs:\n  - tests:\n      pytorch_version: '⟦NPU905:1.9+cu111⟧'"),
    (
        "run.sh",
        '#BSUB ⟦NPU903:-gpu "num=4"⟧\n#PBS ⟦NPU903:-l select=1:ngpus=4⟧\n#$ ⟦NPU903:-l gpu=2⟧',
    ),
    ("run.sh", 'bsub -q a ⟦NPU903:-gpu num=1:gmem=1G⟧ "python train.py --device ⟦NPU902:cuda⟧"'),
    (
        "run.sh",
        'URL="⟦NPU905:https://a.org/v2/flash_attn-2.8.3+cu12torch2.8-${PY}.whl⟧"\nwget $URL',
    ),
    (
        "Dockerfile",
        "FROM x\nRUN W=⟦NPU905:https://a.org/v2/pkg-2.8.3+cu12.whl⟧ && pip install $(basename $W)\n"
        "RUN W=https://a.org/v2/pkg-2.8.3.whl && pip install $(basename $W)",
    ),
    (
        "pyproject.toml",
        '[tool.poetry.dependencies]\ntorchvision = {version = "⟦NPU905:^0.17.2+cu121⟧", '
        'source = "x"}\n'
        'torchaudio = "^2.1"',
    ),
    (
        "train.yaml",
        "model:\n  attn_config:\n    attn_impl: ⟦NPU902:flash⟧\n  other:\n    attn_impl: torch",
    ),
    ("run.sh", "colmap sequential_matcher ⟦NPU902:--SiftMatching.use_gpu 1⟧"),
    ("requirements.txt", "⟦NPU905:https://a.org/me/KNN_CUDA/0.2/KNN_CUDA-0.2-py3-none-any.whl⟧"),
    ("requirements.txt", "⟦NPU905:torch-points-kernels⟧\n⟦NPU905:me-cuda==1.0⟧"),
    (
        "a.yaml",
        "affinity:\n- matchExpressions:\n  - key: ⟦NPU903:nvidia.com/gpu.product⟧\n"
        "    operator: In\n    values:\n    - ⟦NPU903:NVIDIA-RTX-A6000⟧\n"
        "    - ⟦NPU903:Tesla-T4⟧\n    - other",
    ),
    (
        "a.yaml",
        "train:\n  accelerator_type: ⟦NPU903:NVIDIA_L4⟧\n  machineSpec:\n"
        "    acceleratorType: ⟦NPU903:NVIDIA_TESLA_T4⟧\n"
        "  serving_container: ⟦NPU904:a.dev/vertex-ai/prediction/pytorch-gpu.2-0:latest⟧",
    ),
    ("a.json", '{"imageUri": "⟦NPU904:a.dev/training/pytorch-gpu.2-3.py310:latest⟧"}'),
    ("Dockerfile", "FROM ⟦NPU904:a.amazonaws.com/pytorch-training:2.0.1-gpu-py310⟧"),
    (
        "a.yaml",
        "launcher:\n  name: submitit_slurm\n  constraint: ⟦NPU903:volta32gb⟧\n"
        "  partition: ⟦NPU903:gpu_a100⟧\n  ⟦NPU903:gpus_per_node: 8⟧",
    ),
    ("requirements.txt", "⟦NPU905:fastembed-gpu⟧\n⟦NPU905:swin3d⟧\nfastembed"),
    (
        "environment.yml",
        "dependencies:\n  - ⟦NPU905:libsearch=1.7.2=hdbd6f0c_0_cuda10.2⟧\n"
        "  - ⟦NPU905:dgl-cuda10.1=0.6=py38_0⟧\n  - ⟦NPU905:vision=4.5=py38_cu113_0⟧\n"
        "  - ⟦NPU905:arrays=*=*cuda*⟧",
    ),
    ("run.sh", "conda install ⟦NPU905:arrays=0.4.14=cuda112py310_0⟧ numpy"),
    ("run.sh", "#SBATCH ⟦NPU903:-C a100⟧\n#SBATCH ⟦NPU903:--constraint=v100-32g⟧\n#SBATCH -c 8"),
    ("run.sh", 'echo "export PATH=⟦NPU907:/usr/local/cuda/bin⟧:$PATH" >> /etc/bash.bashrc'),
    ("run.sh", "echo 'export ⟦NPU901:CUDA_HOME⟧=/opt/cuda' >> ~/.bashrc"),
    ("run.sh", "mkdir -p ⟦NPU907:/opt/nvidia/deepstream⟧"),
    (
        "Dockerfile",
        "FROM a\nARG ⟦NPU920:TORCHVISION_VERSION⟧=0.16.2\nENV ⟦NPU920:PYTHON_VERSION⟧=3.6\n"
        "RUN conda create python=${PYTHON_VERSION}\n"
        "RUN pip install torchvision==${TORCHVISION_VERSION}",
    ),
    ("Dockerfile", "ARG SOURCE=⟦NPU904:ghcr.io/me/cuda-python3.10⟧\nFROM $SOURCE"),
    ("a.yaml", "optim:\n  name: ⟦NPU902:distributed_fused_adam⟧\n  lr: 1"),
    ("a.yaml", "limit_train_batches: 10\n⟦NPU902:gpus: 1⟧"),
    ("run.sh", "docker exec -it d2 ⟦NPU906:nvidia-smi⟧"),
    ("run.sh", "sudo bash ./⟦NPU906:NVIDIA-Linux-x86_64-430.40.run⟧ -s"),
    ("run.sh", "wget -q '⟦NPU905:https://a.com/nvidia_driver/NVIDIA-Linux-x86_64.run⟧'"),
    ("run.sh", "ldconfig ⟦NPU907:/usr/local/cuda/targets/x86_64-linux/lib/stubs⟧"),
    ("run.sh", 'pip install -v --global-option="⟦NPU905:--cuda_ext⟧" .'),
    ("run.sh", "python setup.py install ⟦NPU905:--force_cuda⟧"),
    ("run.sh", "sudo apt-get install -y ⟦NPU905:nvidia-docker2⟧ ⟦NPU905:nvidia-driver-535⟧"),
    ("run.sh", "⟦NPU901:HOROVOD_GPU_ALLREDUCE⟧=NCCL pip install ⟦NPU905:horovod==0.28⟧"),
    ("Makefile", "N=$(shell ⟦NPU906:nvidia-smi⟧ -L | wc -l)\nall:\n\tpython train.py"),
    ("environment.yml", "dependencies:\n  - ⟦NPU905:torchaudio=2.0.2=py311_cu117⟧"),
    ("run.sh", "qsub ⟦NPU903:-l nodes=1:gpus=2⟧ run.sh"),
    ("a.json", '{"model": {"device": "⟦NPU902:cuda⟧", "n": [1, 2]}}'),
    ("a.json", '{"dist_backend": "⟦NPU902:nccl⟧"}'),
    ("a.json", '{"env": {"⟦NPU901:CUDA_VISIBLE_DEVICES⟧": "0,1"}}'),
    ("a.toml", 'device = "⟦NPU902:cuda:0⟧"'),
    ("a.toml", "[train.dist]\nbackend = '⟦NPU902:nccl⟧' # x"),
    ("a.toml", 'env = { ⟦NPU901:NCCL_DEBUG⟧ = "INFO", device = "⟦NPU902:cuda⟧" }'),
    ("pyproject.toml", '[project]\ndependencies = [\n  "numpy",\n  "⟦NPU905:flash-attn>=2⟧",\n]'),
    (
        "requirements.txt",
        "--extra-index-url ⟦NPU905:https://wheels.example.org/whl/cu121⟧\nnumpy",
    ),
    ("requirements-dev.txt", "⟦NPU905:nvidia-nccl-cu12==2.20⟧ ; sys_platform == 'linux'"),
    ("train.ini", "[train]\ndevice = ⟦NPU902:cuda:0⟧\n\nbackend: ⟦NPU902:nccl⟧  ; for all"),
    ("train.cfg", "  device = '⟦NPU902:cuda⟧'\n  [a]\n  ⟦NPU901:NCCL_DEBUG⟧ = INFO"),
    ("tox.ini", "[testenv]\ncommands =\n  pytest -n 2\n  python a.py --device ⟦NPU902:cuda⟧"),
    ("tox.ini", "[testenv]\nsetenv =\n  ⟦NPU901:CUDA_VISIBLE_DEVICES⟧=0\n"),
    ("requirements/train.txt", "⟦NPU905:torch == 2.1.0+cu118⟧  # pinned"),
]

NOT_OTHER = [
    (
        "a.yaml",
        "search:\n  values: [cuda, cpu]\n  accelerator_type: TPU_V5\n  container: gpu-trainer",
    ),
    ("a.yaml", "a:\n  container: a.dev/training/pytorch-cpu.2-3.py310:latest"),
    ("a.yaml", "launcher:\n  name: submitit_slurm\n  constraint: bigmem\n  partition: cpu"),
    ("a.yaml", "solver:\n  constraint: gpu_memory\n  partition: gpu"),
    (
        "environment.yml",
        "dependencies:\n  - ucx=1.9=h123_nocuda\n  - hwloc=2.4=nocuda\n  - a=1.0=hcc0f113_0",
    ),
    ("Dockerfile", "FROM ubuntu:22.04\n# FROM nvidia/cuda:12\nLABEL base=nvidia/cuda:12"),
    ("Dockerfile", "FROM python:3.10\nRUN echo CUDA_HOME=/usr/local/cuda"),
    ("Dockerfile", "FROM ascendai/cann:8.1.rc1-910b\nENV CUDA_HOME=x"),
    ("Dockerfile", "FROM x\nENV FORCE_CUDA=0 LD_LIBRARY_PATH=/usr/local/lib:$LD_LIBRARY_PATH"),
    ("Dockerfile", "FROM x\nRUN apt-get remove -y libnccl2 && apt-get install -y git libopenblas"),
    ("Dockerfile", "FROM team/pytorch:2.1\nARG CUDA_VERSION=11.8"),
    ("Dockerfile", "FROM x\nRUN pip install torch==2.1.0+${ARCH} torch==${V}+cpu"),
    ("values.yaml", "repository: nvidia/cuda\ncompose:\n  image: rayproject/ray:2.9.0"),
    ("compose.yaml", "devices:\n  - /dev/davinci0\nurl: https://example.org/whl/cu118"),
    ("job.yaml", "limits:\n  huawei.com/Ascend910: 8\n  key: app\n  gpus: 4"),
    ("a.yaml", "accelerators: [cpu, gpu]\ngpu: true\ngpus_per_node: 4"),
    ("Dockerfile", "FROM nvidia/cuda:12.1.1-devel\nCOPY kernels/cute/ /app/"),
    ("Dockerfile", "FROM pytorch/pytorch:2.1.0-cpu"),
    ("Dockerfile", "FROM ultralytics/ultralytics:latest-cpu"),
    ("Dockerfile", "FROM x\nRUN apt-get install -y python3.10 python3-dev"),
    ("Dockerfile", "ARG TORCH_VERSION=2.1.0\nFROM me/torch:${TORCH_VERSION}"),
    ("cog.yaml", 'build:\n  gpu: false\n  python_version: "3.8"'),
    ("Makefile", "# python train.py --device cuda\nNVCC = gcc\ncuda: a.o\n\tgcc a.o\n"),
    ("compose.yaml", "services:\n  a:\n    image: me/app:1.0\n    runtime: runc"),
    ("a.yaml", "name: cuda\nmodel: nccl\ntitle: device cuda"),
    ("a.yaml", "device: cpu\nbackend: gloo"),
    ("a.yaml", "# device: cuda\ndevice: npu"),
    ("a.yaml", "devices:\n  - cuda\n  - cpu"),
    ("a.yaml", "text: |\n  device: cuda\n  backend: nccl\nlast: 1"),
    ("a.yaml", 'text: "first\n  device: cuda\n  last"'),
    ("a.yaml", "accelerator: gpu\nzone: east"),
    (
        ".circleci/config.yml",
        "a:\n  machine:\n    image: ubuntu-2004:202107-02\n  resource_class: medium",
    ),
    (".github/workflows/a.yml", "jobs:\n  a:\n    runs-on: ubuntu-latest"),
    ("a.yaml", "hint: run nvidia-smi first"),
    ("run.sh", "echo 'export CUDA_HOME=/opt/cuda' >> notes.txt"),
    ("run.sh", "colmap mapper\npython run.py --use_gpu 1"),
    ("run.sh", "colmap sequential_matcher --SiftMatching.use_gpu 0"),
    ("requirements.txt", "https://a.org/me/tools/0.2/tools-0.2-py3-none-any.whl"),
    ("run.sh", "qsub -l walltime=1:00:00,ncpus=4 run.sh\nbsub -n 4 python train.py --gpu 0"),
    ("a.yaml", "tensor_model_parallel_size: 2\ndistributed_backend: nccl"),
    ("a.yaml", "distributed_type: MULTI_NPU"),
    ("a.yaml", "device: ${oc.env:DEVICE,cuda}"),
    ("a.yaml", "description: CUDA_VISIBLE_DEVICES is not read"),
    ("a.json", '{"text": "device: cuda", "description": "--device cuda"}'),
    ("a.json", '["device", "cuda"]'),
    ("a.json", '{"device_names": ["cuda", "npu"]}'),
    ("ds.json", '{"communication_data_type": "fp16", "zero_optimization": {"stage": 3}}'),
    ("a.ini", "; device = cuda\n# device = cuda\n[cuda]\nname = device cuda\ndevice cuda"),
    ("a.ini", "[a]\ntext = one\n  device = cuda\n  two\n"),
    ("a.toml", '# device = "cuda"\nname = "cuda"'),
    ("a.toml", 'text = """\ndevice = "cuda"\n"""'),
    (
        "pyproject.toml",
        '[dependency-groups]\ncuda = ["flash-attn"]\n[tool.uv]\ndefault-groups = ["dev"]',
    ),
    ("a.json", '{"device": "cuda", "git_commit": "1a", "final_loss": 0.5}'),
    ("pyproject.toml", '[tool.x]\nkeywords = ["cuda", "nccl"]'),
    ("requirements.txt", "torch==2.1.0\n# torch==2.1.0+cu118\nflash-attn-npu"),
    ("a.yaml", "args:\n  --tensor-model-parallel-size: 1\n  --distributed-backend: nccl"),
    (".github/workflows/a.yml", "jobs:\n  a:\n    steps:\n      - run: pytest cuda\n"),
    (
        ".github/workflows/a.yml",
        "strategy:\n  matrix:\n    torch: [2.1.0, 2.6.0]\n    python: ['3.10']\ntorch: 1.3.1",
    ),
    ("tests/run.sh", "export NCCL_NVLS_ENABLE=0"),
    ("a.sh", "#SBATCH --constraint=skylake&ib\n#SBATCH --constraint='nogpu'\n#SBATCH -C rome4"),
    ("Dockerfile", "FROM a\nRUN rm -f /etc/apt/sources.list.d/cuda.list; rm -rf /tmp/cuda.list"),
    ("a.sh", "pip install $NAME-cu another-cpu$V my-$CU"),
    ("a.sh", "echo /dev/nvidia0\nls /dev/davinci0"),
    ("a.yaml", "machine_type: e2-highcpu-8\ninstance_type: ml.m5.xlarge"),
    ("train.sub", "executable = train.sh\nrequest_gpus = 0\nrequest_cpus = 4\nqueue"),
    ("movie.sub", "{1}{2}Look, cuda!\n{3}{4}request_gpus"),
    ("Dockerfile", "FROM nvcr.example.org/nvidia/mxnet:22.10-py3\nENV CUDA_HOME=/usr/local/cuda"),
    ("requirements.txt", "--extra-index-url https://wheels.example.org/whl/cpu\ncutlass-docs"),
]


@pytest.mark.parametrize("snippet", SHELL)
def test_found_in_scripts(snippet: str) -> None:
    check("run.sh", snippet + "\n")


def test_hiding_all_cards_is_only_to_be_known() -> None:
    """Nothing fails there: what is ported takes the NPU where the CPU was meant."""
    [found] = findings("run.sh", "CUDA_VISIBLE_DEVICES='-1' python train.py\n")
    assert found.effective_severity.value == "info"
    assert "hides every GPU" in found.message("en")
    beside = "CUDA_VISIBLE_DEVICES= ASCEND_RT_VISIBLE_DEVICES= python train.py\n"
    assert not findings("run.sh", beside)


@pytest.mark.parametrize("snippet", NOT_SHELL)
def test_not_found_in_scripts(snippet: str) -> None:
    check("run.sh", snippet + "\n")


@pytest.mark.parametrize(("file", "snippet"), OTHER)
def test_found_in_other_files(file: str, snippet: str) -> None:
    check(file, snippet + "\n")


@pytest.mark.parametrize(("file", "snippet"), NOT_OTHER)
def test_not_found_in_other_files(file: str, snippet: str) -> None:
    check(file, snippet + "\n")


@pytest.mark.family(50)
@pytest.mark.parametrize("snippet", SHELL + [snippet for _, snippet in OTHER])
def test_crlf_changes_nothing(snippet: str) -> None:
    cases = {text: file for file, text in OTHER}
    file = cases.get(snippet, "run.sh")
    text, expected = unmarked(snippet.replace("\n", "\r\n") + "\r\n")
    assert [f.span for f in findings(file, text)] == [(m.start, m.end) for m in expected]


FIXED = [
    (
        "run.sh",
        "export CUDA_VISIBLE_DEVICES=0\nexport CUDA_VISIBLE_DEVICES=\n",
        "export ASCEND_RT_VISIBLE_DEVICES=0\nexport ASCEND_RT_VISIBLE_DEVICES=\n",
    ),
    ("run.sh", "export CUDA_VISIBLE_DEVICES=0,1\n", "export ASCEND_RT_VISIBLE_DEVICES=0,1\n"),
    ("run.sh", "export CUDA_VISIBLE_DEVICES=3,1\n", "export CUDA_VISIBLE_DEVICES=3,1\n"),
    ("run.sh", "export CUDA_VISIBLE_DEVICES=-1\n", "export CUDA_VISIBLE_DEVICES=-1\n"),
    (
        "run.sh",
        'export CUDA_VISIBLE_DEVICES="0,1"\necho "on $CUDA_VISIBLE_DEVICES"\n',
        'export ASCEND_RT_VISIBLE_DEVICES="0,1"\necho "on $ASCEND_RT_VISIBLE_DEVICES"\n',
    ),
    ("run.sh", "python a.py --device='cuda:0' # cuda\n", "python a.py --device='npu:0' # cuda\n"),
    ("run.sh", "python a.py --b cuda --backend nccl\n", "python a.py --b cuda --backend hccl\n"),
    (
        "a.yaml",
        "b: 1\ndevice:   'cuda:0'   # keep cuda\na: 2\n",
        "b: 1\ndevice:   'npu:0'   # keep cuda\na: 2\n",
    ),
    ("a.json", '{"b": 1, "device":"cuda" }', '{"b": 1, "device":"npu" }'),
    ("a.toml", "device='cuda' # cuda\n", "device='npu' # cuda\n"),
    ("a.yaml", "backend: cpu:gloo,cuda:nccl\n", "backend: cpu:gloo,npu:hccl\n"),
    ("a.yaml", "distributed_type: MULTI_GPU\n", "distributed_type: MULTI_NPU\n"),
]


@pytest.mark.parametrize(("file", "before", "after"), FIXED)
def test_fixes_touch_the_word_alone(file: str, before: str, after: str) -> None:
    assert fixed(file, before) == after


PINS = {
    "torch==2.1.0+cu118": "torch==2.1.0+cpu",
    "torch==2.8+cu126": "torch==2.8+cpu",
    "torch == 2.7.1+cu128 ; python_version > '3.8'": "torch == 2.7.1+cpu ; python_version > '3.8'",
    "torchvision==0.22.1+cu118": "torchvision==0.22.1+cpu",
    "torchaudio==2.5.1+cu118": "torchaudio==2.5.1+cpu",
}
NO_PINS = [
    *("torch==1.7.1+cu101", "torch==2.0.1+cu118", "torch==2.7.0+cu118", "torch==2.5.0+cu121"),
    *("torchvision==0.8.2+cu101", "torchaudio==0.7.2+cu101", "torch==2.8.0.dev20250101+cu128"),
    *("torch>=1.7+cu101", "torch!=2.8.0+cu126", "torch==2.8.0+cu126,<3"),
]


@pytest.mark.parametrize(("before", "after"), PINS.items())
def test_a_pin_of_a_release_for_torch_npu_keeps_its_version(before: str, after: str) -> None:
    assert fixed("requirements.txt", f"{before}\n") == f"{after}\n"


@pytest.mark.parametrize("pin", NO_PINS)
@pytest.mark.parametrize("file", ["requirements.txt", "run.sh"])
def test_no_pin_is_made_up(pin: str, file: str) -> None:
    """torch_npu has no release for it, so the CPU build would be of no use either."""
    text = f"pip install '{pin}'\n" if file == "run.sh" else f"{pin}\n"
    (finding,) = findings(file, text)
    assert finding.fixes == ()
    for language in ("en", "zh"):
        message = finding.message(language)
        assert all(version in message for version in ("2.6.0", "2.7.1", "2.14.0"))


def test_nothing_is_written_into_python_in_quotes() -> None:
    """`import torch_npu` needs a line of its own, and its strings might end the quotes."""
    text = "python -c 'import torch; torch.cuda.empty_cache()'\n"
    assert fixed("run.sh", text) == text


def test_a_version_in_a_variable_may_be_any() -> None:
    text = 'pip install "torch==${V}+cu118"\n'
    assert fixed("run.sh", text) == 'pip install "torch==${V}+cpu"\n'


def test_the_address_of_a_wheel_is_not_half_renamed() -> None:
    """Its file name has the build, too; there is no such file in the folder for the CPU."""
    wheel = "https://wheels.example.org/whl/cu101/torch-1.7.1%2Bcu101-cp37-cp37m-linux_x86_64.whl"
    (finding,) = findings("run.sh", f"pip install {wheel}\n")
    assert finding.fixes == ()
    assert "2.7.1" in finding.message("en")


@pytest.mark.parametrize(
    ("value", "is_safe"),
    [("0", True), ("0,1,2", True), ('"0,3"', True), ("$GPUS", False), ("3,1", False), ("", False)],
)
def test_only_ascending_numbers_are_renamed_without_reading(value: str, is_safe: bool) -> None:
    text = f"export CUDA_VISIBLE_DEVICES={value}\npython a.py\n"
    assert (fixed("run.sh", text, Applicability.SAFE) != text) == is_safe


@pytest.mark.parametrize(
    ("path", "first_line", "kind"),
    [
        ("a.py", "", Kind.PYTHON),
        ("a/run.sh", "", Kind.SHELL),
        ("job.slurm", "", Kind.SHELL),
        ("job.sbatch", "", Kind.SHELL),
        ("run", "#!/bin/bash", Kind.SHELL),
        ("run", "#!/usr/bin/env bash", Kind.SHELL),
        ("run", "#!/bin/sh -e", Kind.SHELL),
        ("run", "#!/usr/bin/env python", Kind.PYTHON),
        ("run", "#!/usr/bin/fish", Kind.PYTHON),
        ("-", "", Kind.PYTHON),
        ("docker/Dockerfile", "", Kind.DOCKERFILE),
        ("Dockerfile.gpu", "", Kind.DOCKERFILE),
        ("train.dockerfile", "", Kind.DOCKERFILE),
        ("file:///a/Dockerfile", "", Kind.DOCKERFILE),
        ("compose.yaml", "", Kind.YAML),
        ("a.YML", "", Kind.YAML),
        (".env", "", Kind.ENVIRONMENT),
        ("conf/train.env", "", Kind.ENVIRONMENT),
        (".env.local", "", Kind.ENVIRONMENT),
        ("env.py", "", Kind.PYTHON),
        (".env.json", "", Kind.JSON),
        ("ds.json", "", Kind.JSON),
        ("pyproject.toml", "", Kind.TOML),
        ("Pipfile", "", Kind.TOML),
        ("setup.cfg", "", Kind.INI),
        ("conf/train.ini", "", Kind.INI),
        ("requirements-gpu.txt", "", Kind.REQUIREMENTS),
        ("requirements/base.txt", "", Kind.REQUIREMENTS),
        ("dev_requirements.in", "", Kind.REQUIREMENTS),
    ],
)
def test_a_name_or_first_line_tells_the_kind(path: str, first_line: str, kind: Kind) -> None:
    assert kind_of(path, first_line + "\n") is kind


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("run.sh", "export NCCL_DEBUG=1  # npulens: ignore[NPU901]"),
        ("a.yaml", "device: cuda  # npulens: ignore"),
        ("a.toml", "device = 'cuda'  # npulens: ignore[gpu-setting]"),
        ("requirements.txt", "flash-attn  # npulens: ignore[NPU905]"),
        ("Dockerfile", "# npulens: ignore-file\nFROM nvidia/cuda:12"),
    ],
)
def test_a_comment_silences(file: str, line: str) -> None:
    assert findings(file, line + "\n") == ()
    bare = line.replace("npulens", "others")
    assert len(findings(file, bare + "\n")) == 1


def test_an_idle_comment_is_told() -> None:
    [finding] = findings("run.sh", "python a.py  # npulens: ignore[NPU901]\n")
    assert finding.rule.code == "NPU002"
    assert fixed("run.sh", "python a.py  # npulens: ignore[NPU901]\n") == "python a.py\n"
    assert findings("run.sh", "echo '# npulens: ignore[NPU901]'\n") == ()


def test_folders_are_searched_for_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.py", "run.sh", "Dockerfile", "a.yaml", "a.toml", "a.json", "requirements.txt"):
        Path(name).write_text("device: cuda\n")
    Path("start").write_text("#!/bin/bash\nnvidia-smi\n")
    Path("LICENSE").write_text("text\n")
    Path("notes.txt").write_text("device: cuda\n")
    Path("package-lock.json").write_text('{"device": "cuda"}')
    Path("data.json").write_text('{"device": "cuda"}' + " " * 300_000)
    Path("build").mkdir()
    Path("build/run.sh").write_text("nvidia-smi\n")
    found = [path.as_posix() for path in discover(["."], [], Path()).files]
    assert sorted(found) == sorted(
        ["Dockerfile", "a.json", "a.py", "a.toml", "a.yaml", "requirements.txt", "run.sh", "start"]
    )
    assert discover(["."], ["*.sh", "a.*"], Path()).files == [
        Path(name) for name in ("Dockerfile", "requirements.txt", "start")
    ]


def test_a_file_of_variables(tmp_path: Path) -> None:
    text = "# for the launcher\nWANDB=x y\nCUDA_VISIBLE_DEVICES=0,1\nexport NCCL_DEBUG='INFO'\n(\n"
    assert [f.rule.code for f in findings(".env", text)] == ["NPU901", "NPU901"]
    after = fixed(".env", text)
    assert "ASCEND_RT_VISIBLE_DEVICES=0,1\n" in after
    (tmp_path / ".env").write_text(text)
    assert discover([str(tmp_path)], [], Path()).files == [tmp_path / ".env"]


def test_a_file_that_is_named_is_read_whatever_its_size(tmp_path: Path) -> None:
    path = tmp_path / "data.json"
    path.write_text('{"device": "cuda"' + " " * 300_000 + "}")
    assert discover([str(path)], [], Path()).files == [path]
    report = Checker(CATALOGUE, Configuration()).check_file(path)
    assert [f.rule.code for f in report.findings] == ["NPU902"]


@pytest.mark.family(50)
@pytest.mark.parametrize(("file", "snippet"), [("run.sh", s) for s in SHELL] + OTHER)
def test_the_search_for_words_misses_nothing(file: str, snippet: str) -> None:
    text, expected = unmarked(snippet + "\n")
    report = Checker(CATALOGUE, Configuration()).check_bytes(file, text.encode())
    assert [f.rule.code for f in report.findings] == [m.code for m in expected]


def test_bytes_that_are_no_text_are_told_and_not_raised() -> None:
    report = Checker(CATALOGUE, Configuration()).check_bytes("run.sh", b"# \xff\nnvidia-smi\n")
    assert [f.rule.code for f in report.findings] == ["NPU003"]


FILES = ["a.sh", ".env", "Dockerfile", "a.yaml", "a.json", "a.toml", "a.ini", "requirements.txt"]
FILES += ["pyproject.toml", "setup.cfg", "environment.yml"]
ENDLESS = [
    "RUN a << parameters.b >> c\n",
    "$(", "(", "{", "[", '"', "'", "`", "<<E\n", "#\n", "a: ", "- ", "a=", "\\\n", "\\", ",", "a ",
    "FROM a\n", "ENV A=b \\\n", "RUN <<EOF\n", '{"a":', "a:\n", " a:\n  ", "x" * 50, "| ", "a: |\n",
    "CUDA_VISIBLE_DEVICES=0 ", "$CUDA_VISIBLE_DEVICES\n", "--device cuda ", "torch==1+cu", "=[",
    "dependencies:\n- ", "- a::", "[options]\ninstall_requires=\n ", "git+https://", " \t", "@ a/",
    "[tool.poetry.dependencies]\na={", "a>=1 --", "https://a/whl/cu1", " \\\n --hash", "\t;",
    "device: cuda\n", '"device": "cuda",', "'''", '"""', "${", "a/b/",
    "RUN a \\  \n\n# x\n", "- run: python -c 'x'\n",
    "((", "$((", "((a) ", "<(", "[[ a ", "a=( ", "if x; then ", "case x in a) ", "f() {", "@(",
    "a && ", "[ a ] || ", "[ -o a ", "-o a ", '"a" ', "sudo ", "X=$X\n", "docker run $X\n",
    "ssh h 'a'\n", "'a' ssh ", "cat <<E\n E\n", "x=`a`\n", "if a; then b; fi\n", "elif a; then b\n",
    "poetry run ", "python -c 'x.cuda()'\n",
]  # fmt: skip


def test_of_what_a_service_runs_nothing_is_more_than_information() -> None:
    text = "jobs:\n  a:\n    container:\n      image: nvidia/cuda:12.1.1\n    steps:\n"
    text += '      - run: python -c "import torch; torch.cuda.synchronize()"\n'
    found = findings(".github/workflows/a.yml", text)
    assert [f.rule.code for f in found] == ["NPU904", "NPU101"]
    assert {f.effective_severity.value for f in found} == {"info"}
    assert findings("deploy/a.yml", text)[0].effective_severity.value == "warning"


@pytest.mark.endurance
@pytest.mark.parametrize("segment", ENDLESS)
@pytest.mark.parametrize("file", [name for name in FILES if name != ".env"])  # read as `a.sh` is
def test_time_is_in_proportion_to_size(file: str, segment: str) -> None:
    def seconds(size: int) -> float:
        start = time.process_time()
        findings(file, segment * (size // len(segment)))
        return time.process_time() - start

    def measured() -> tuple[float, float]:
        return max(seconds(10_000), 0.001), seconds(160_000)

    seconds(1000)
    gc.freeze()  # else each collection looks through what other tests have left behind
    try:
        small, large = measured()
        for _ in range(2):  # a machine that is busy once is not busy three times at the same test
            if large < small * 60:
                break
            small, large = measured()
    finally:
        gc.unfreeze()
    assert large < small * 60, f"{small:.3f} s, then {large:.3f} s for 16 times the text"


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(FILES), st.lists(st.sampled_from([*ENDLESS, "\n", " ", "é𝄞", "\r", "\0"])))
def test_nothing_raises(file: str, segments: list[str]) -> None:
    text = "".join(segments)
    for finding in findings(file, text):
        assert 0 <= finding.span.start <= finding.span.end <= len(text)
    fixed(file, text)


@pytest.mark.family(3)
@pytest.mark.parametrize(
    ("uri", "language", "text"),
    [
        ("file:///p/run.sh", "shellscript", "export CUDA_VISIBLE_DEVICES=0\n"),
        ("file:///p/a.yaml", "yaml", "device: cuda\n"),
        ("file:///p/Dockerfile", "dockerfile", "FROM x\nRUN nvidia-smi\n"),
        ("file:///p/a.toml", "toml", "device = 'cuda'\n"),
        ("untitled:Untitled-1", "shellscript", "nvidia-smi\n"),
        ("file:///p/.env", "dotenv", "CUDA_VISIBLE_DEVICES=0\n"),
        ("file:///p/.env", "plaintext", "CUDA_VISIBLE_DEVICES=0\n"),
    ],
)
def test_the_editor_shows_them_with_fixes(uri: str, language: str, text: str) -> None:
    with LspClient() as client:
        client.initialize()
        client.open(uri, text, language=language)
        [diagnostic] = client.diagnostics(uri, 1)
        assert diagnostic["source"] == "npulens"
        start, end = diagnostic["range"]["start"], diagnostic["range"]["end"]
        places = [(place["line"], place["character"]) for place in (start, end)]
        assert client.code_actions(uri, *places)[0]["kind"] == "quickfix"
        client.shut_down()
