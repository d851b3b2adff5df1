"""Which files can have findings, determined from their bytes: the others need not be parsed."""

import re
from collections.abc import Iterable, Iterator
from functools import cached_property

from npulens.catalog.project_model import ProjectFacts
from npulens.catalog.tables import Catalogue
from npulens.checks.other_files.cpp_bindings import BINDERS
from npulens.text.kinds import Kind, kind_of

_TAKES_TORCH = re.compile(
    rb"(?:^|[;:])[ \t]*(?:import|from)\b.{0,100}?\btorch"
    rb"|^[ \t]*torch\w*[ \t]*(?:,|\r?$|as\b)"  # one of many names in brackets
    rb"|[\"']torch"  # a requirement, or imported by its name
)
"""In a line: PyTorch is imported or required, not only spoken of as in comments and examples."""
_PYTHON_WORDS = (
    *("cuda", "CUDA", "nccl", "NCCL", "npulens"),
    *("#SBATCH", "srun", "--gres", "submitit", "torchrun", "slurm_(", "gpus_per_node"),
    *("slurm_constraint", "slurm_gres", "slurm_partition", "slurm_additional"),
    *("sbatch", "bsub", "BSUB", "j_exclusive", "gmodel", "gmem"),
    *("flash_att", "xformers", "_8bit", "_32bit", "4bit", "fp4", "tf32", "accelerator"),
    *("OptimizerNames", "__global__"),
    *("num_gpus", "resources_per_trial", "install_requires", "extras_require"),
    *("pip install", '"pip"', "'pip'", "conda install"),
    *("LGBM", "num_leaves", "GPU_", "gpus=", "machine_type", "instance_type"),
)
_CMAKE_WORDS = (b".cu", b"CUDA", b"cuda", b"TensorRT", b"nvinfer", b"cublas", b"cudnn")
_LAUNCH_WORDS = (
    *("cuda", "CUDA", "nccl", "NCCL", "nvidia", "NVIDIA", "gpu", "GPU", "npulens"),
    *("#SBATCH", "constraint", "horovod", "HOROVOD", "natten", "rnnt", "odec", "fused_"),
    *("nsys", "ncu", "nvprof", "nvcc", "flash", "+cu", "-cu", "/cu", "transformer"),
    *("8bit", "8_bit", "paged", "tf32", "channels_last", "strategy", "attn", "attention"),
    *("4bit", "fp4"),
    *("quantize", "accelerator", "gres", "tres_per", "rmsprop", "tensorrt", "HCCL", "ASCEND_"),
    *("TASK_QUEUE", "torch", "TORCH", "cudnn", "CUDNN", "cublas", "CUBLAS", "xformers", "apex"),
    *(
        "DS_BUILD",
        "deepspeed",
        "colossalai",
        "gds-tools",
        "nsight",
        "cutensor",
        "cuquantum",
        "_32bit",
    ),
    *("accelerate", "peft", "mmcv", "ultralytics", "singularity", "apptainer", "arseConv"),
    *("triton", "bitsandbytes", "vllm", "mamba", "causal", "gemm", "gaussian", "rasteri", "knn"),
    *("gsplat", "raymarching", "nerfacc", "nvdiff", "inkowski", "kaolin", "cupy", "cufft"),
    *(
        "cusparse",
        "cusolver",
        "curand",
        "cufile",
        "libnpp",
        "libnv",
        "CU_",
        "whisper",
        "cpm-kernels",
    ),
    *(
        "deep-ep",
        "deepep",
        "DeepEP",
        "sparseconvnet",
        "nvtop",
        "nvitop",
        "trtexec",
        "polygraphy",
        "compute-sanitizer",
    ),
    *(
        "NPU_",
        "MULTI_STREAM",
        "MSPROBE_",
        "ACL_PRECISION",
        "ACL_OPTYPE",
        "STREAM_MEMORY",
        "CPU_AFFINITY",
        "ACL_OP",
        "NUMBAPRO",
        "PER_STREAM_QUEUE",
    ),
    *("trtllm", "ns-train", "ns-eval", "ns-render", "ns-viewer"),
    *("pretrain_", "posttrain_", "-parallel", "micro-batch", "seq-length", "train-iters"),
    *("msprobe", "msprof-analyze", "soc_version", "precision_mode", "implmode", "--framework"),
    *("dump_path", "experimental_config", "common_dump_settings"),
    *("MASTER_ADDR", "master_addr", "nproc_per_node", "nproc-per-node"),
    *("machineType", "machine_type", "instance_type", "instanceType", "InstanceType"),
    *("COMBINED_", "INF_NAN_MODE", "OOM_SNAPSHOT", "STREAMS_PER_DEVICE", "ACL_DEVICE_SYNC"),
)
_SHORTEST = 5
"""In characters: shorter names of libraries are parts of many words."""
_IMPORT = re.compile(rb"\bimport\b")
_WORD = re.compile(rb"[A-Za-z_]\w*")
_NAMING = (
    *(b"import_module", b"__import__", b"find_spec", b"importorskip", b"_available"),
    *(b"subprocess", b"os.system", b"popen", b"Popen", b"shlex", b"os.exec", b"os.spawn"),
)
"""Where these are, names of modules and programs may be in texts."""
_INSTALLING = (
    *(b"pip", b"conda", b"depend", b"require", b"package", b"install", b"image", b"python"),
    *(b"module", b"run", b"command"),
)
"""Settings that install or start something have one of these."""
_READ_WHOLE = frozenset({Kind.REQUIREMENTS, Kind.DOCKERFILE})
"""Files of a few lines, in each of which something may be said of the releases of Python."""


class Relevance:
    """Separates files without findings from those that have to be read."""

    def __init__(self, catalogue: Catalogue, project: ProjectFacts) -> None:
        returning = sorted({name for _, name, _ in project.members.returned_shapes})
        own = _encoded((*project.words, *returning))
        self._python = (*_encoded(_words_of(catalogue)), *own)
        self._catalogue = catalogue
        roots = {name.partition(".")[0] for name in catalogue.libraries}
        choosing = {e.callable for entries in catalogue.choosing.values() for e in entries}
        modules = roots | {name.partition(".")[0] for name in choosing}
        self._modules = frozenset(_encoded(modules - {"torch"}))
        self._launch = _encoded(_LAUNCH_WORDS)
        self._native = _encoded((*BINDERS, "__global__", "cuda", "CUDA"))

    def may_have_findings(self, path: str, data: bytes) -> bool:
        """Whether a file holds a word that a finding, or a comment for npulens, needs."""
        if b"\0" in data:
            return True  # as in UTF-16, which has no such word
        kind = kind_of(path, data[:200].decode("latin-1"))
        if kind is Kind.NOTEBOOK and b"torch" in data:
            return True  # its lines are in strings
        if kind in (Kind.PYTHON, Kind.NOTEBOOK):
            return (
                _takes_torch(data)
                or any(word in data for word in self._python)
                or self._names_module(data)
            )
        if kind in _READ_WHOLE:
            return True
        if kind is Kind.CMAKE:
            return any(word in data for word in _CMAKE_WORDS)
        if kind is Kind.NATIVE:
            return any(word in data for word in self._native)
        if any(word in data for word in self._launch):
            return True
        installs = kind is Kind.SHELL or any(word in data for word in _INSTALLING)
        if not installs:
            return False
        words = b"\n".join({*data.translate(self._apart).split()})  # each once: a fraction of it
        return any(package in words for package in self._packages)

    @cached_property
    def _packages(self) -> tuple[bytes, ...]:
        """The names of packages in which there is none of the other words."""
        roots = {name.partition(".")[0] for name in self._catalogue.libraries}
        packages = {root for root in roots if len(root) >= _SHORTEST} | self._catalogue.packages
        return _encoded(
            package
            for package in sorted(packages)
            if not any(word in package for word in _LAUNCH_WORDS)
        )

    @cached_property
    def _apart(self) -> bytes:
        """Blanks for all that is in no name of a package."""
        letters = frozenset(b"".join(self._packages))
        return bytes(letter if letter in letters else 32 for letter in range(256))

    def _names_module(self, data: bytes) -> bool:
        """Whether a program imports a module of the tables, or may name one in a text."""
        if any(word in data for word in _NAMING):
            return not self._modules.isdisjoint(_WORD.findall(data))
        return any(
            not self._modules.isdisjoint(_WORD.findall(line)) for line in _importing_lines(data)
        )


def _importing_lines(data: bytes) -> Iterator[bytes]:
    """The lines that import something, without their comments."""
    place = data.find(b"import")
    while place >= 0:
        end = data.find(b"\n", place)
        end = len(data) if end < 0 else end
        line = data[data.rfind(b"\n", 0, place) + 1 : end].partition(b"#")[0]
        if _IMPORT.search(line) is not None:
            yield line
        place = data.find(b"import", end)


def _takes_torch(data: bytes) -> bool:
    """Whether a program imports PyTorch in some way; a search for lines is the quickest."""
    place = data.find(b"torch")
    while place >= 0:
        end = data.find(b"\n", place)
        end = len(data) if end < 0 else end
        if _TAKES_TORCH.search(data[data.rfind(b"\n", 0, place) + 1 : end]) is not None:
            return True
        place = data.find(b"torch", end)
    return False


def _encoded(words: Iterable[str]) -> tuple[bytes, ...]:
    return tuple(word.encode() for word in words)


def _words_of(catalogue: Catalogue) -> list[str]:
    """Words of Python besides modules; one that has another of them in it is not needed."""
    words = {
        *_PYTHON_WORDS,
        *(symbol.partition(".")[0] for symbol in catalogue.symbols),
        *catalogue.methods,
        *catalogue.environment,
    }
    words.discard("torch")
    ordered = [*_PYTHON_WORDS, *sorted(words.difference(_PYTHON_WORDS))]  # the commonest first
    # One by one they are found sooner than by one regular expression.
    return [w for w in ordered if not any(o in w for o in words if o != w)]
