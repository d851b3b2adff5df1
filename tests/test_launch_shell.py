"""What is found in scripts, by what is read of them and by which arm an NPU machine takes.

Each case is a script with the expected findings marked as in `helpers`.
"""

import pytest

from helpers import CATALOGUE, Mark, code, marked, unmarked
from npulens.analysis import analyze
from npulens.catalog.model import Applicability, Finding, Target
from npulens.fixes.apply import fix_text
from npulens.text.document import Document
from npulens.text.kinds import Kind


def findings(text: str) -> tuple[Finding, ...]:
    return analyze(Document("run.sh", text), CATALOGUE, Target())


def check(snippet: str) -> None:
    text, expected = unmarked(code(snippet + "\n"))
    found = sorted(Mark(*f.span, f.rule.code) for f in findings(text))
    assert marked(text, found) == marked(text, expected)


READ = [
    # Each of these hid what comes behind it, or what stands in it.
    "PORT=$(( (RANDOM<<15)|RANDOM ))\nexport ⟦NPU901:CUDA_VISIBLE_DEVICES⟧=0",
    "((i<<2))\n⟦NPU906:nvidia-smi⟧",
    "[[ a < b ]]\n⟦NPU906:nvidia-smi⟧",
    "cat <<A <<B\n--device cuda\nA\n--device cuda\nB\n⟦NPU906:nvidia-smi⟧",
    "X=$(cat <<E\n)\nE\n)\npython a.py --device ⟦NPU902:cuda⟧",
    "cat <<EOF\nN=$(⟦NPU906:nvidia-smi⟧ -L)\nEOF",
    'PYTHONPATH="$(dirname $0)/..":$PYTHONPATH srun ⟦NPU903:--gres=gpu:8⟧ '
    "python train.py --device ⟦NPU902:cuda⟧",
    'A=1 B="$(cmd with space)" python x.py --device ⟦NPU902:cuda⟧',
    "env A=b -u C ⟦NPU901:NCCL_DEBUG⟧=INFO python a.py",
    "env -u X ⟦NPU906:nvidia-smi⟧ -L",
    "ssh host 'cd x; ⟦NPU906:nvidia-smi⟧'",
    "ssh -p 22 host ⟦NPU906:nvidia-smi⟧ -L",
    'ssh host "python a.py --device ⟦NPU902:cuda⟧; true"',
    "bash -c '⟦NPU906:nvidia-smi⟧ && python a.py --device ⟦NPU902:cuda⟧'",
    "docker run me/image bash -lc '⟦NPU906:nvidia-smi⟧'",
    "su - me -c 'export ⟦NPU901:NCCL_DEBUG⟧=INFO'",
    'eval "export ⟦NPU901:CUDA_LAUNCH_BLOCKING⟧=1"',
    "timeout -s KILL 10 ⟦NPU906:nvidia-smi⟧",
    "nohup srun -l -N2 ⟦NPU906:nvidia-smi⟧ -L &",
    "mpirun -mca btl tcp -np 4 ⟦NPU906:nvidia-smi⟧",
    "time { ⟦NPU906:nvidia-smi⟧; }",
    "cat <<< $(⟦NPU906:nvidia-smi⟧)",
    "while read -r l; do echo $l; done < <(⟦NPU906:nvidia-smi⟧ -L)",
    "case $x in\n  (a) ⟦NPU906:nvidia-smi⟧ ;;\n  b) ;;\nesac",
    "args=(--device ⟦NPU902:cuda⟧)\nargs+=(--backend ⟦NPU902:nccl⟧)",
    "f() {\n  ⟦NPU906:nvidia-smi⟧\n}",
    'echo "`⟦NPU906:nvidia-smi⟧ -L`"',
    "echo $'it\\'s' # python\n⟦NPU906:nvidia-smi⟧",
    'echo "${x:-"a b"}"; ⟦NPU906:nvidia-smi⟧',
    # The options behind a program are its own, whatever starts it.
    "clear; srun singularity exec ⟦NPU903:--nv⟧ -B /a:/a $IMAGE bash -c 'python $CMD'",
    # A variable may hold the command.
    'PIP="python -m pip install -U" && $PIP ⟦NPU905:xformers⟧',
    'APT="apt-get install -y"\nDEBIAN_FRONTEND=x $APT ⟦NPU920:python3.6⟧ ⟦NPU920:python3.6-dev⟧',
    "sudo apt-get install -y ⟦NPU905:libnccl2⟧ git",
    "git clone --depth 1 ⟦NPU905:https://code.example.org/NVIDIA/apex.git⟧",
    "git clone ⟦NPU905:https://code.example.org/me/SparseConvNet⟧ && cd SparseConvNet",
    "export ⟦NPU901:NCCL_TREE_THRESHOLD⟧=0",
    'if [ ${device} == "⟦NPU902:cuda⟧" ]; then n=2; fi\n[[ $name = cuda ]] && exit',
    '[ "$device" = cuda ] && a || b\n[ "$device" = "npu" ] && c',
    'pip install "rembg[⟦NPU905:gpu⟧]" .[⟦NPU905:tensorrt⟧] trl[peft]',
    'pip install -e ".[dev,⟦NPU905:flash-attn⟧]"',
    "⟦NPU906:trtexec⟧ --onnx=a.onnx",
    'lmms-eval --model_args pretrained="a/b",device="⟦NPU902:cuda⟧" --tasks t',
    "lmms-eval --model_args k=1,device=cpu,y=cuda",
    "python main.py --sync_bn ⟦NPU902:apex⟧ --name apex",
    "python train.py --amp-impl ⟦NPU902:apex⟧",
    'ARGS="--max_epochs 1 ⟦NPU902:--gpus 8⟧"\npython a.py $ARGS',
    "python a.py --gpus ⟦NPU902:$N⟧ --accumulate_grad_batches 2",
    "⟦NPU907:CUDA_VERSION⟧=11.8\nwget https://a.example.org/$CUDA_VERSION/x",
    "⟦NPU920:TORCH_VERSION⟧=1.6.0\npip install torch==$TORCH_VERSION",
    "pip install mmcv-full -f ⟦NPU905:https://a.example.org/mmcv/dist/cu${CUDA//./}/index.html⟧",
]

PROBES = [
    # The command that a script waits for, decides by or counts with is not there.
    "until ⟦NPU906:nvidia-smi⟧ >/dev/null 2>&1; do sleep 5; done",
    "while ! ⟦NPU906:nvidia-smi⟧; do sleep 1; done",
    "until command -v ⟦NPU906:nvidia-smi⟧; do sleep 1; done",
    "if ⟦NPU906:nvidia-smi⟧ > /dev/null 2>&1; then N=1; fi",
    "if a; then b; elif ⟦NPU906:nvidia-smi⟧; then python a.py; else python b.py; fi",
    "if ! ⟦NPU906:nvidia-smi⟧ | grep -q A100; then exit 1; fi",
    "N=$(⟦NPU906:nvidia-smi⟧ -L | wc -l)",
    "N=$(⟦NPU906:nvidia-smi⟧ --query-gpu=count --format=csv,noheader || true)",
    "N=$(⟦NPU906:nvidia-smi⟧ -L 2>/dev/null | grep -c GPU || true)",
    "N=$(⟦NPU906:nvidia-smi⟧ -L || echo 0)",
    "N=${1:-$(⟦NPU906:nvidia-smi⟧ -L | wc -l)}",
    "if command -v nvidia-smi > /dev/null; then\n  N=$(⟦NPU906:nvidia-smi⟧ -L | wc -l)\nfi",
    "if command -v ⟦NPU906:nvidia-smi⟧ >/dev/null; then n=$(⟦NPU906:nvidia-smi⟧ -L | wc -l); "
    "else n=-1; fi",
    "command -v ⟦NPU906:nvidia-smi⟧ && N=1",
    "command -v ⟦NPU906:nvidia-smi⟧ || exit 1",
    "if ! which ⟦NPU906:nvidia-smi⟧; then\n  echo no cards\n  exit 1\nfi\nnvidia-smi",
    'if [ -x "$(command -v ⟦NPU906:nvidia-smi⟧)" ]; then DEVICE=gpu; else DEVICE=cpu; fi',
    "if command -v ⟦NPU906:nvidia-smi⟧; then python a.py; else python a.py --cpu; fi",
    "if command -v nvidia-smi; then\n  nvidia-smi\nfi\n⟦NPU906:nvidia-smi⟧ -L",
]

NO_PROBES = [
    "if command -v nvidia-smi; then nvidia-smi; else echo no cards; fi",
    "command -v nvidia-smi >/dev/null 2>&1 && nvidia-smi",
    "which nvidia-smi && nvidia-smi -L || true",
    'if [ -x "$(command -v nvidia-smi)" ]; then nvidia-smi; fi',
    "if command -v nvidia-smi; then NAME=$(nvidia-smi -L | head -1); fi",
    "nvidia-smi || true",
    "NAME=$(nvidia-smi -L 2>/dev/null | head -1 || true)",
    "has() { command -v nvidia-smi; }\nif has; then nvidia-smi; fi",
    "if ! command -v nvidia-smi; then exit 0; fi\nnvidia-smi",
    "if command -v nvidia-smi; then pip install x; else pip install y; fi",
    "command -v nsys && PREFIX=x",
    "if command -v nvcc; then python setup.py; fi",
    "if nvidia-smi; then D=cuda; elif npu-smi info; then D=npu; else D=cpu; fi",
    "if command -v nvidia-smi; then D=cuda; elif command -v npu-smi; then D=npu; fi",
]

ARMS = [
    # Only the arms beside one for the NPU are for others.
    "if [ $D = npu ]; then a; fi\nexport ⟦NPU901:CUDA_VISIBLE_DEVICES⟧=0",
    "if [ $D = npu ]; then python a.py --device ⟦NPU902:cuda⟧; else python --device cuda; fi",
    "if [ $D != npu ]; then python --device cuda; else python a.py --device ⟦NPU902:cuda⟧; fi",
    "if [ $D = cuda ]; then python --device cuda; elif [ $D = npu ]; then b; else c; fi",
    "if [ -n $X ]; then python --device ⟦NPU902:cuda⟧; elif [ $D = npu ]; then b; fi",
    "if [ $D = npu ] && [ $X ]; then a; else python --device ⟦NPU902:cuda⟧; fi",
    "if [ $D = npu ] || [ $D = x ]; then a; else python --device cuda; fi",
    'if [[ "$D" == *npu* && -d /dev/davinci0 ]]; then a; else python --device cuda; fi',
    "if [ -z $NPU_COUNT ]; then python --device cuda; else python --device ⟦NPU902:cuda⟧; fi",
    "if (( NPU_COUNT > 0 )); then a; else python --device cuda; fi",
    "if (( NPU_COUNT == 0 )); then python --device cuda; else python --device ⟦NPU902:cuda⟧; fi",
    "if [ $NPUS -eq 0 ]; then python --device cuda; fi",
    "if is_npu; then a; else python --device cuda; fi",
    'if python -c "import torch_npu"; then a; else python --device cuda; fi',
    "if ls /dev/davinci0; then a; else python --device cuda; fi",
    "if lspci | grep -qi ascend; then a; else python --device cuda; fi",
    "if [ $D = npu ]; then a; exit; fi\npython --device cuda",
    "f() {\n  if [ $D = npu ]; then a; return; fi\n  python --device cuda\n}\n"
    "python --device ⟦NPU902:cuda⟧",
    "[ $D = npu ] && a || python --device cuda",
    "[ $D = npu ] || python --device cuda",
    "case $D in\n  npu) a --device ⟦NPU902:cuda⟧ ;;\n  *) b --device cuda ;;\nesac\n"
    "c --device ⟦NPU902:cuda⟧",
    "case $D in gpu|cuda) a --device cuda;; npu|ascend*) b;; esac",
    "case $1 in --npu) a;; --gpu) b --device ⟦NPU902:cuda⟧;; esac",
    "case $D in cuda) a --device ⟦NPU902:cuda⟧;; cpu) b --device cuda;; esac",
    "case $D in\n  npu)\n    if a; then\n      b --device ⟦NPU902:cuda⟧\n    fi ;;\nesac",
    "if [ -f $INPUT ]; then a; else python --device ⟦NPU902:cuda⟧; fi",
    "if [ $ORDER = ascending ]; then a; else python --device ⟦NPU902:cuda⟧; fi",
    # What fixes write says nothing of whom the other arm is for.
    "if npu-smi info; then python --device ⟦NPU902:cuda⟧; else b --device ⟦NPU902:cuda⟧; fi",
    "if [ $ASCEND_RT_VISIBLE_DEVICES ]; then a; else python --device ⟦NPU902:cuda⟧; fi",
    "if [ $ASCEND_LAUNCH_BLOCKING = 1 ]; then a; else b --device ⟦NPU902:cuda⟧; fi",
    "if [ $B = hccl ]; then a; else python --device ⟦NPU902:cuda⟧; fi",
    "if python a.py --device npu; then b; else python --device ⟦NPU902:cuda⟧; fi",
    "python a.py --device npu || python b.py --device ⟦NPU902:cuda⟧",
]

CLUSTERS = [
    "#SBATCH ⟦NPU903:-p gpu⟧\n#SBATCH ⟦NPU903:-G 4⟧\n#SBATCH ⟦NPU903:--gres gpu:a100:2⟧",
    "#SBATCH ⟦NPU903:--gres=gpu:a100:2⟧\n#SBATCH ⟦NPU903:--gpus-per-node=4⟧",
    "srun ⟦NPU903:-G 4⟧ python a.py -G 4",
    "srun ⟦NPU903:-G2⟧ ⟦NPU903:-p gpu⟧ python a.py",
    "srun ⟦NPU903:--gres gpu:4⟧ ⟦NPU903:--gpus-per-node=4⟧ python a.py",
    "#SBATCH -N 1 ⟦NPU903:--gpus-per-node=A40:1⟧\n#SBATCH --exclusive ⟦NPU903:--gres=gpu:2⟧",
    '#BSUB -R "select[gpu]" ⟦NPU903:-gpu "num=1"⟧\n#PBS ⟦NPU903:-l ngpus=1⟧ ⟦NPU903:-q gpu⟧',
    "#SBATCH -N 1 # --gres=gpu:1\n#SBATCH --mail-user=-gres=gpu:1",
    "#SBATCH ⟦NPU903:--partition=gpu_a100⟧\n#SBATCH ⟦NPU903:-p bme_a10080g⟧ ⟦NPU903:--qos=gpu⟧",
    "#SBATCH --partition=npu_gpu\n#SBATCH -p cpu\n#SBATCH --qos=long -p data40,nogpu",
    "sbatch ⟦NPU903:-p v100⟧ job.sh -p v100",
    "python a.py ⟦NPU902:--enable_xformers_memory_efficient_attention⟧ \\",
    "GRES='⟦NPU903:--gres=gpu:4⟧'\nsrun $GRES python a.py",
    "module load gcc/11 ⟦NPU907:cuda/11.8⟧ ⟦NPU907:nccl⟧ ⟦NPU907:cudnn⟧",
    "module add ⟦NPU907:cudatoolkit⟧; ml load ⟦NPU907:CUDA/12.1.1⟧; ml ⟦NPU907:nvhpc⟧ gcc",
    "module load ⟦NPU907:NCCL/2.4.7-1-cuda.10.0⟧",
    "module load ⟦NPU907:PyTorch-bundle/1.12.1-foss-2022a-CUDA-11.7.0⟧ PyTorch/2.1.2-foss-2023a",
    "module load ⟦NPU907:pytorch/1.9_cu111⟧ ⟦NPU907:pytorch-gpu/py3/1.10⟧ cuneiform/2 gcc/cu-1",
    "spack load ⟦NPU907:cuda@11.8⟧",
    "module load ⟦NPU920:python/3.6.4_gcc5⟧ ⟦NPU907:cuda/9.0⟧\nmodule load ⟦NPU920:Python/2.7⟧",
    "module load python/3.10 Python/3.11.5-GCC gcc/3.6",
    "python a.py ⟦NPU902:--gpus=${n}⟧ --accelerator=ddp\nn=-1",
    "n=0\npython a.py --gpus=${n} --accelerator=ddp",
    "⟦NPU901:CUDA_VISIBLE_DEVICES⟧= python a.py",
    "export ⟦NPU901:CUDA_VISIBLE_DEVICES⟧=-1\nASCEND=1 python a.py",
    "module unload cuda; module purge; module avail cuda; module use /x/cuda; ml -t list",
    "module load cann/8.0",
    "source ⟦NPU907:/usr/local/cuda/bin/setup.sh⟧",
    ". ⟦NPU907:/opt/cuda-11.8/env.sh⟧",
    "source activate cuda_env; source cuda.sh; source ~/cuda_tests/env.sh",
    "export LD_LIBRARY_PATH=⟦NPU907:/usr/local/cuda/lib64⟧:$LD_LIBRARY_PATH",
    "export PATH=$PATH:⟦NPU907:/usr/local/cuda-12.1/bin⟧",
    'PATH="⟦NPU907:$CUDA_PATH/bin⟧:$PATH" python a.py',
    "export PATH=$HOME/my-cuda-project/bin:$PATH",
    "LD_PRELOAD=⟦NPU907:/usr/lib/x86_64-linux-gnu/libnccl.so.2⟧ python a.py",
    "LD_PRELOAD=/usr/lib/libjemalloc.so python a.py",
    "IMG=⟦NPU904:nvcr.example.org/nvidia/pytorch:${TAG}-py3⟧\ndocker run $IMG",
    'X=⟦NPU904:nvcr.example.org/nvidia/pytorch:${TAG}-py3⟧; docker run --rm "$X" python a.py',
    "docker run ${IMAGE:-⟦NPU904:nvidia/cuda:12.1⟧} python a.py",
    "readonly docker_image=${1:-⟦NPU904:nvidia/cuda:12.1⟧}",
    "srun --container-image=⟦NPU904:nvcr.example.org#nvidia/pytorch:24.01-py3⟧ python a.py",
    "docker run ⟦NPU904:$REGISTRY/nvidia/pytorch:24.01-py3⟧",
    "X=nvidia/cuda:12.1; echo $X",
    "singularity exec ⟦NPU903:--nv⟧ image.sif python a.py --nv",
    "apptainer run ⟦NPU903:--nv⟧ docker://⟦NPU904:nvidia/cuda:12.1⟧ python a.py",
    "singularity exec image.sif python a.py",
    'OPTS="⟦NPU903:--gpus all⟧ --rm"\ndocker run $OPTS me/image',
    'ARGS=(⟦NPU903:--runtime=nvidia⟧ -v x)\ndocker run "${ARGS[@]}" me/image',
    "D=⟦NPU902:cuda⟧\npython a.py --device $D",
    "D=${1:-⟦NPU902:cuda⟧}\npython a.py --device ${D}",
    "python a.py --device=${D:-⟦NPU902:cuda:0⟧} b.device=${E:-⟦NPU902:cuda⟧}",
    "D=cuda\npython a.py --name $D",
    'D=cuda\n[ "$1" = npu ] && D=npu\npython a.py --device $D',
    "export PATH=/opt/conda/envs/cuda/bin:$PATH",
    "python a.py --distributed_backend=⟦NPU902:nccl⟧ trainer.distributed_backend=⟦NPU902:nccl⟧",
    "torchrun pretrain_gpt.py --tensor-model-parallel-size 2 --distributed_backend nccl",
    "torchrun --nproc-per-node=⟦NPU902:gpu⟧ a.py",
    "deepspeed a.py --dist_backend ⟦NPU902:nccl⟧",
    "accelerate launch a.py --backend=⟦NPU902:nccl⟧",
    "pip install ⟦NPU905:torch==2.1.0+cu$V⟧ '⟦NPU905:torchvision==0.16+cu${V//./}⟧'",
    "pip install torch --index-url ⟦NPU905:https://wheels.example.org/whl/cu${V}⟧",
    "export PIP_INDEX_URL=⟦NPU905:https://wheels.example.org/whl/cu121⟧",
    "uv run --python 3.11 python a.py --impl flash-attn",
]


VALUES = [
    "export ⟦NPU908:TASK_QUEUE_ENABLE⟧=3",
    "export ⟦NPU908:CPU_AFFINITY_CONF⟧=5,npuX:3",
    "⟦NPU908:CPU_AFFINITY_CONF⟧=1,npuX:3 python a.py",
    "export ⟦NPU908:NPU_ASD_ENABLE⟧=7",
    "export ⟦NPU908:NPU_ASD_CONFIG⟧=enabled:yes",
    "export ⟦NPU908:HCCL_BUFFSIZE⟧=abc",
    "export ⟦NPU908:HCCL_RDMA_TC⟧=133",
    "export ⟦NPU908:HCCL_RDMA_SL⟧=9",
    'export ⟦NPU908:PYTORCH_NPU_ALLOC_CONF⟧="expandable_segment:True"',
    "export ⟦NPU908:MULTI_STREAM_MEMORY_REUSE⟧=5",
    "export ⟦NPU910:ACL_OP_SELECT_IMPL_MODE⟧=fast",
    "export TASK_QUEUE_ENABLE=2 MULTI_STREAM_MEMORY_REUSE=3 NPU_ASD_ENABLE=1 HCCL_RDMA_SL=4",
    "export CPU_AFFINITY_CONF=1; CPU_AFFINITY_CONF=2,npu0:0-15,npu1:16-31,npu_affine:1 a",
    "export CPU_AFFINITY_CONF=1,lazy_bind:0 NPU_ASD_CONFIG=enable:true,cooldown:5",
    "export HCCL_BUFFSIZE=200 HCCL_RDMA_TC=132 HCCL_INTRA_ROCE_ENABLE=1",
    "export PYTORCH_NPU_ALLOC_CONF=expandable_segments:True,max_split_size_mb:128",
    "export HCCL_BUFFSIZE=$SIZE TASK_QUEUE_ENABLE=${1:-2} PYTORCH_NPU_ALLOC_CONF= HCCL_RDMA_SL",
    "export PYTORCH_NPU_ALLOC_CONF='roundup_power2_divisions:[256:1,512:2]'",
    "if [ $TASK_QUEUE_ENABLE = 3 ]; then echo $HCCL_BUFFSIZE; fi",
]


@pytest.mark.parametrize("snippet", READ + PROBES + ARMS + CLUSTERS + VALUES)
def test_found(snippet: str) -> None:
    check(snippet)


@pytest.mark.parametrize("snippet", NO_PROBES)
def test_nothing_is_found(snippet: str) -> None:
    check(snippet)


def fixed(text: str) -> str:
    result = fix_text(text, findings, Applicability.UNSAFE, kind=Kind.SHELL)
    assert not result.refused
    return result.text


@pytest.mark.parametrize(
    "script",
    [
        "if nvidia-smi; then python a.py --device cuda; else python b.py --device cuda; fi\n",
        "nvidia-smi && export CUDA_VISIBLE_DEVICES=3,1 || python b.py --backend nccl:gloo\n",
        "if [ $CUDA_LAUNCH_BLOCKING ]; then CUDA_LAUNCH_BLOCKING=0; else module load cuda; fi\n",
        "python a.py --device cuda || python a.py --device cuda:1 --gres=gpu\nmodule load cuda\n",
    ],
)
def test_a_fix_hides_nothing(script: str) -> None:
    """What had no fix is found as before when all else is fixed."""
    before = [f.rule.code for f in findings(script) if not f.fixes]
    after = [f.rule.code for f in findings(fixed(script)) if f.rule.code != "NPU917"]
    assert after == before


def test_a_wait_for_cards_has_a_fix() -> None:
    assert fixed("until nvidia-smi; do sleep 1; done\n") == (
        "until npu-smi info; do sleep 1; done\n"
    )


def test_a_variable_in_a_build_has_a_fix() -> None:
    assert fixed("pip install torch==2.1.0+cu${V}\n") == "pip install torch==2.1.0+cpu\n"


def test_the_value_of_a_variable_has_a_fix() -> None:
    script = "D=cuda:1\npython a.py --device $D\n"
    assert fixed(script) == "D=npu:1\npython a.py --device $D\n"
