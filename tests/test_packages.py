"""Packages for CUDA: the entry of one says the same of its imports and of requests for it."""

import pytest

from helpers import CATALOGUE
from npulens.analysis import analyze
from npulens.catalog.model import Finding, Severity, Target
from npulens.catalog.tables import Place
from npulens.text.document import Document
from npulens.workspace.runs.run import Checker
from npulens.workspace.settings.configuration import Configuration

ABSENT = [
    *("unsloth", "pointnet2", "knn_cuda", "chamfer_3D", "MultiScaleDeformableAttention", "DCNv4"),
    *("raymarching", "_gridencoder", "droid_backends", "cvcuda", "tigre", "legged_gym"),
    *("warpctc_pytorch", "megablocks", "sgl_kernel", "nunchaku", "exllamav2_kernels", "eetq"),
    *("spatial_correlation_sampler", "neural_renderer", "pcdet", "fused_bilagrid", "skcuda"),
]
WITH_A_WARNING = ["awq", "auto_gptq", "dgl", "pykeops", "warp", "k2", "fast_rnnt", "encoding"]
OTHERWISE = ["fla", "gemlite", "tilelang", "sglang", "cut_cross_entropy"]
NOT_KNOWN = ["fairscale", "openfold", "nerfstudio", "hqq", "kernels", "xlstm", "whisperx", "nemo"]
PLAIN = [
    *("kornia", "kornia_rs", "brax", "einops", "timm", "trimesh", "open3d", "tritonclient"),
    *("codecarbon", "numba", "ninja", "pyrender", "mcubes", "geomloss", "gpytorch", "torchmetrics"),
    *("mambapy", "rotary_embedding_torch", "local_attention", "lion_pytorch", "decord", "raft"),
    *("accelerate", "peft", "trl", "deepspeed", "onnx", "onnxruntime", "torchdiffeq", "monai"),
]


def findings(code: str, file: str = "run.py") -> list[Finding]:
    return list(analyze(Document(file, code), CATALOGUE, Target()))


@pytest.mark.parametrize("module", ABSENT)
def test_an_import_that_fails_is_an_error(module: str) -> None:
    (found,) = findings(f"import torch\nimport {module}\n")
    assert (found.rule.code, found.effective_severity) == ("NPU602", Severity.ERROR)


@pytest.mark.parametrize("module", WITH_A_WARNING)
def test_what_can_be_imported_and_not_used_is_a_warning(module: str) -> None:
    (found,) = findings(f"import torch\nfrom {module} import part\n")
    assert found.effective_severity is Severity.WARNING


@pytest.mark.parametrize("module", OTHERWISE)
def test_what_needs_another_build_is_information(module: str) -> None:
    (found,) = findings(f"import torch\nimport {module}\n")
    assert found.rule.code == "NPU604"


@pytest.mark.parametrize("module", NOT_KNOWN)
def test_what_nobody_has_tried_is_a_hint(module: str) -> None:
    (found,) = findings(f"import torch\nimport {module}\n")
    assert (found.rule.code, found.effective_severity) == ("NPU606", Severity.HINT)


@pytest.mark.parametrize("module", PLAIN)
def test_what_runs_everywhere_is_left_alone(module: str) -> None:
    assert findings(f"import torch\nimport {module}\n") == []
    assert findings(f"{module.replace('_', '-')}==1.0\n", "requirements.txt") == []


@pytest.mark.parametrize("module", [*ABSENT, *OTHERWISE, *NOT_KNOWN])
def test_an_import_with_another_way_is_at_most_a_hint(module: str) -> None:
    code = f"import torch\ntry:\n    import {module} as m\nexcept ImportError:\n    m = None\n"
    assert {found.rule.code for found in findings(code)} <= {"NPU613"}


ASKED = [
    ("fla", "is_flash_linear_attention_available()"),
    ("awq", "is_auto_awq_available()"),
    ("auto_gptq", "is_auto_gptq_available()"),
    ("causal_conv1d", "is_causal_conv1d_available()"),
    ("unsloth", 'importlib.util.find_spec("unsloth")'),
]


@pytest.mark.parametrize(("module", "question"), ASKED)
def test_an_import_behind_a_question_is_at_most_a_hint(module: str, question: str) -> None:
    asked = f"if {question}:\n    from {module} import part\nelse:\n    part = None\n"
    code = f"import importlib\nimport torch\n\n{asked}"
    assert {found.rule.code for found in findings(code)} <= {"NPU613"}


def test_a_requirement_says_what_the_import_says() -> None:
    """As far as a package has no further entry for some of its releases."""
    imports = {(e.note, e.source): e for e in CATALOGUE.libraries.values() if e.note is not None}
    requests = [e for e in CATALOGUE.launch[Place.PACKAGE] if (e.note, e.source) in imports]
    assert len(requests) > 80
    for entry in requests:
        imported = imports[entry.note, entry.source]
        assert entry.rule.name == (imported.rule.requested or imported.rule.name)
        assert entry.severity is imported.severity


INSTALLING = [
    'import os\nos.system("pip install -q ⟦flash-attn⟧ ninja 2>/dev/null")\n',
    'import subprocess\nsubprocess.run(["pip", "install", "⟦flash-attn⟧"])\n',
    "import subprocess, sys\n"
    'subprocess.check_call([sys.executable, "-m", "pip", "install", "⟦unsloth⟧"])\n',
    'import shlex, subprocess\nsubprocess.run(shlex.split("pip install ⟦flash-attn⟧"))\n',
    "from setuptools import setup\n\n"
    'requirements = ["⟦flash-attn⟧"]\n\nsetup(install_requires=requirements)\n',
]


@pytest.mark.parametrize("marked", INSTALLING)
def test_what_programs_install_is_found(marked: str) -> None:
    code = marked.replace("⟦", "").replace("⟧", "")
    (found,) = findings(code)
    start = marked.index("⟦")
    assert (found.rule.code, found.span.start) == ("NPU905", start)
    checked = Checker(CATALOGUE, Configuration()).check_bytes("run.py", code.encode())
    assert len(checked.findings) == 1  # it is read, although it holds no word of PyTorch


COMMANDS = {
    "fairseq-train data --lr 1": "NPU606",
    "fairseq-generate data": "NPU606",
    "ns-train nerfacto": "NPU606",
    "vllm serve model": "NPU604",
    "python -m vllm.entrypoints.openai.api_server --model m": "NPU604",
    "python3 -m sglang.launch_server": "NPU604",
    "trtllm-build --checkpoint_dir a": "NPU906",
}
OTHER_COMMANDS = ["fairseq-preprocess a", "pip install vllm-ascend; vllm serve m", "python -m http"]


@pytest.mark.parametrize(("command", "code"), COMMANDS.items())
def test_commands_of_packages_are_found(command: str, code: str) -> None:
    assert [found.rule.code for found in findings(command + "\n", "run.sh")] == [code]


@pytest.mark.parametrize("command", OTHER_COMMANDS)
def test_other_commands_are_left_alone(command: str) -> None:
    assert findings(command + "\n", "run.sh") == []
