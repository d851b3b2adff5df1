"""Environment variables and command lines in Python."""

import pytest

from helpers import CATALOGUE, check, code, findings, fixed
from npulens.analysis import StatementCache, analyze
from npulens.catalog.model import Applicability, Target
from npulens.text.document import Document

FOUND = [
    'os.environ["⟦⟧CUDA_VISIBLE_DEVICES"] = "0,1"',
    'os.environ["⟦⟧CUDA_VISIBLE_DEVICES"] = str(rank)',
    'x = os.environ["⟦⟧CUDA_VISIBLE_DEVICES"].split(",")',
    'x = os.environ.get("⟦⟧CUDA_VISIBLE_DEVICES", "")',
    'os.environ.setdefault("⟦⟧NCCL_DEBUG", "INFO")',
    'os.environ.update({"⟦⟧NCCL_DEBUG": "INFO"})',
    'os.environ["⟦⟧NCCL_TREE_THRESHOLD"] = "0"',
    'os.environ["⟦⟧RWKV_CUDA_ON"] = "1"',
    'os.environ.setdefault("⟦⟧TORCH_NCCL_TRACE_BUFFER_SIZE", "2000")',
    'if on_host:\n    os.environ["⟦⟧CUDA_VISIBLE_DEVICES"] = ""',
    'os.environ.pop("⟦⟧CUDA_VISIBLE_DEVICES", None)',
    'def choose(): os.environ["⟦⟧CUDA_VISIBLE_DEVICES"] = "-1"',
    'def count(): return os.environ.get("⟦⟧CUDA_VISIBLE_DEVICES") or ask("nvidia-smi")',
    'os.environ.pop("⟦⟧TORCH_NCCL_ASYNC_ERROR_HANDLING", None)',
    'del os.environ["⟦⟧CUDA_VISIBLE_DEVICES"]',
    'x = os.getenv("⟦⟧NCCL_SOCKET_IFNAME")',
    'os.putenv("⟦⟧CUDA_LAUNCH_BLOCKING", "1")',
    'os.unsetenv("⟦⟧CUDA_LAUNCH_BLOCKING")',
    'x = "⟦⟧CUDA_VISIBLE_DEVICES" in os.environ',
    'env = {**os.environ, "⟦⟧CUDA_VISIBLE_DEVICES": "0"}',
    'env = os.environ.copy(); env["⟦⟧CUDA_VISIBLE_DEVICES"] = "1"',
    'NAME = "⟦⟧PYTORCH_CUDA_ALLOC_CONF"; os.environ[NAME] = "x"',
    'monkeypatch.setenv("⟦⟧CUDA_VISIBLE_DEVICES", "0")',
]
SCRIPTS = {
    "a compiler": "import subprocess\nsubprocess.run([home + '/bin/⟦NPU906:nvcc⟧', '-V'])",
    "a profiler": "import os\nos.system(f'⟦NPU906:nsys⟧ profile python {script}')",
    "a path that is joined": (
        "import os, subprocess\n"
        "subprocess.check_output([os.path.join(home, 'bin', '⟦NPU906:nvcc⟧'), '--version'])"
    ),
    "a search for a compiler": "import shutil\nhas_nvcc = shutil.which('nvcc')",
    "another program": "import subprocess\nsubprocess.run(['python', 'nvcc.py'])",
    "of Slurm": (
        'S = """#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH ⟦NPU903:--gres=gpu:8⟧\n'
        'export ⟦NPU901:CUDA_VISIBLE_DEVICES⟧=0,1\nsrun python a.py --backend ⟦NPU902:nccl⟧\n"""'
    ),
    "indented and filled in": (
        'def write(n):\n    return textwrap.dedent(f"""\\\n        #!/usr/bin/env bash\n'
        '        #SBATCH ⟦NPU903:--gpus-per-node={n}⟧\n        ⟦NPU906:nvidia-smi⟧\n        """)'
    ),
    "without a first line": "S = '''\ntorchrun train.py --device ⟦NPU902:cuda⟧\n'''",
    "for another program": "S = '''#!/usr/bin/env python\n#SBATCH --gres=gpu:8\n'''",
    "in a text for people": "S = '''Run this:\nsrun --gres=gpu:8 python a.py --device cuda'''",
    "of what a module is for": '"""srun --gres=gpu:8 python train.py --device cuda\n"""',
    "for the NPU": "S = '''#!/bin/bash\n#SBATCH --gres=npu:8\ntorchrun train.py\n'''",
    "submitted": (
        "import submitit\nexecutor = submitit.AutoExecutor(folder)\n"
        "executor.update_parameters(⟦NPU903:gpus_per_node=8⟧, ⟦NPU903:slurm_gres='gpu:8'⟧, nodes=2)"
    ),
    "submitted by what comes from elsewhere": (
        "def f(executor):\n"
        "    executor.update_parameters(⟦NPU903:gpus_per_node=8⟧, slurm_partition='p')"
    ),
    "submitted by Dora": "def explorer(launcher):\n    launcher.slurm_(⟦NPU903:gpus=8⟧, time=60)",
    "submitted with parameters of a dictionary": (
        "def f(executor, args):\n    kwargs = {}\n"
        "    if args.large:\n        ⟦NPU903:kwargs['slurm_constraint'] = 'volta32gb'⟧\n"
        "    kwargs.update({⟦NPU903:'slurm_gres': 'gpu:8'⟧, 'slurm_time': 60})\n"
        "    more = dict(⟦NPU903:slurm_partition='gpu_a100'⟧, slurm_mem='8gb')\n"
        "    executor.update_parameters(nodes=2, **kwargs, **more)"
    ),
    "submitted with parameters of sbatch": (
        "import submitit\nexecutor = submitit.AutoExecutor(folder)\n"
        "executor.update_parameters(\n"
        "    slurm_additional_parameters={⟦NPU903:'constraint': 'a100'⟧, 'account': 'me'}\n)\n"
        "options = {⟦NPU903:'gpus_per_node': 8⟧, 'nodes': 2}"
    ),
    "parameters without GPUs": (
        "kwargs['slurm_constraint'] = 'bigmem'\nslurm_partition = 'cpu'\n"
        "options = {'gpus_per_node': 8, 'gres': 'gpu:8'}"
    ),
    "submitted without GPUs": (
        "import submitit\nexecutor = submitit.AutoExecutor(folder)\n"
        "executor.update_parameters(gpus_per_node=0, slurm_gres='npu:8')\n"
        "layer.update_parameters(gpus_per_node=8)"
    ),
}
TRAINING = "for batch in loader:\n    model(batch).backward()"
WITHOUT_QUOTES = [
    'env = dict(os.environ, ⟦NPU901:CUDA_VISIBLE_DEVICES⟧="0")',
    'os.environ.update(⟦NPU901:NCCL_DEBUG⟧="INFO")',
    'os.system("⟦NPU901:CUDA_VISIBLE_DEVICES⟧=0 python a.py")',
    'command = "⟦NPU901:CUDA_VISIBLE_DEVICES⟧=0 python a.py"\nrun(command)',
    'command = f"⟦NPU901:CUDA_VISIBLE_DEVICES⟧={gpu} python {script} --lr 1"',
    'cmd = (f"⟦NPU901:CUDA_VISIBLE_DEVICES⟧={i} python -m {x} "\n'
    '       # on the card\n       f"--device ⟦NPU902:cuda⟧ " r"--name cuda")',
    'args = [⟦NPU903:f"--gres=gpu:{n}"⟧, "job.slurm", "--gres=fpga:1"]',
    'subprocess.run(["sbatch", "⟦NPU903:--gres=gpu:8⟧", "job.slurm"])',
    'run(["⟦NPU901:NCCL_SOCKET_IFNAME⟧=eth0 OMP_NUM_THREADS=1 torchrun a.py", "b"])',
    "import ray\n@ray.remote(⟦NPU903:num_gpus=1⟧)\nclass Worker:\n    pass",
    "import ray\nw = Worker.options(⟦NPU903:num_gpus=n⟧, name='w').remote()",
    "from ray import tune\ntune.run(f, resources_per_trial={'cpu': 1, ⟦NPU903:'gpu'⟧: 1})",
    'f.write("#SBATCH ⟦NPU903:--gpus=1⟧\\n")',
    'spec = {"machine_type": "n1", "accelerator_type": ⟦NPU903:"NVIDIA_TESLA_T4"⟧, "count": 1}',
    'job.run(accelerator_type=⟦NPU903:"NVIDIA_L4"⟧, accelerator_count=1)',
    'command = f"sbatch ⟦NPU903:--gres=gpu:{n}⟧ run.sh"',
    "command = f'bsub -q long ⟦NPU903:-gpu num={n}:j_exclusive=yes⟧ python train.py'",
    'wanted = ⟦NPU903:f"-gpu num={n}:j_exclusive=yes:gmem=23G"⟧',
    'wanted = "-gpu is what gmem is for"',
    'f.write("#!/bin/bash\\nexport ⟦NPU901:CUDA_VISIBLE_DEVICES⟧=0\\n")',
    "cmd = f'cp {a} {b} \\n\\\n  ⟦NPU901:CUDA_VISIBLE_DEVICES⟧=\"0\" python {c} \\\n  --x 1'",
    'cards = int(os.environ[⟦NPU903:"SLURM_GPUS_ON_NODE"⟧])',
    'run("export ⟦NPU901:CUDA_VISIBLE_DEVICES⟧=1; python a.py")',
    'subprocess.run("⟦NPU901:CUDA_VISIBLE_DEVICES⟧=0 python a.py", shell=True)',
    'subprocess.check_call("python a.py --device ⟦NPU902:cuda⟧", shell=True)',
    'subprocess.Popen(["python", "a.py", "--backend", "⟦NPU902:nccl⟧"])',
    'subprocess.run(args=["python", "a.py", "--dist-backend=⟦NPU902:nccl⟧", str(n)])',
    'os.system(f"python {name} --backend ⟦NPU902:nccl⟧")',
    'run(⟦NPU609:"nvidia-smi"⟧)',
    'subprocess.check_output([⟦NPU609:"nvidia-smi"⟧, "-L"])',
    f'os.environ[⟦NPU917:"TASK_QUEUE_ENABLE"⟧] = "0"\n{TRAINING}',
    f'os.environ.setdefault(⟦NPU917:"ASCEND_LAUNCH_BLOCKING"⟧, "1")\n{TRAINING}',
    'os.environ[⟦NPU908:"HCCL_CONNECT_TIMEOUT"⟧] = "30min"',
    'def f():\n    os.environ.setdefault(⟦NPU908:"HCCL_RDMA_SL"⟧, "9")',
    'os.environ.update(⟦NPU908:HCCL_DETERMINISTIC⟧="1")',
    'env = {**os.environ, ⟦NPU908:"PYTORCH_NPU_ALLOC_CONF"⟧: "expandable_segment:True"}',
]
NOT_FOUND = [
    "def repeatable():\n    os.environ['CUDA_LAUNCH_BLOCKING'] = '1'\n"
    "    os.environ['CUBLAS_WORKSPACE_CONFIG'] = ':16:8'\n"
    "    torch.use_deterministic_algorithms(True)",
    "# os.environ['CUDA_VISIBLE_DEVICES'] = '0'",
    'print("set CUDA_VISIBLE_DEVICES=0 first")',
    'raise ValueError("CUDA_VISIBLE_DEVICES is empty")',
    'os.environ["ASCEND_RT_VISIBLE_DEVICES"] = "0"',
    'os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = "1"',
    'os.environ["MY_CUDA_VISIBLE_DEVICES"] = "0"',
    'os.environ["TASK_QUEUE_ENABLE"] = "0"',
    'os.environ["TORCH_HCCL_ASYNC_ERROR_HANDLING"] = "3"',
    'os.environ["HCCL_CONNECT_TIME_OUT"] = "3"\nx = os.getenv("HCCL_CONNECT_TIME_OUT")',
    'os.environ["HCCL_CONNECT_TIMEOUT"] = str(minutes * 60)',
    'names = {"HCCL_CONNECT_TIMEOUT": seconds}',
    f'os.environ["TASK_QUEUE_ENABLE"] = "2"\n{TRAINING}',
    f'def debug():\n    os.environ["ASCEND_LAUNCH_BLOCKING"] = "1"\n{TRAINING}',
    f'os.environ["ASCEND_LAUNCH_BLOCKING"] = flag\n{TRAINING}',
    'os.system("echo CUDA_VISIBLE_DEVICES=0")',
    "import ray\n@ray.remote(num_gpus=0)\nclass Worker:\n    pass",
    "w = Worker.options(num_gpus=n, name='w').remote()",
    'print("usage: CUDA_VISIBLE_DEVICES=0 python a.py")',
    'print("CUDA_VISIBLE_DEVICES=0 is not set")',
    'command = "OMP_NUM_THREADS=1 python a.py"',
    'os.system("python pretrain_gpt.py --distributed-backend nccl")',
    'text = "Start it by CUDA_VISIBLE_DEVICES=0 python a.py"',
    'execute("python a.py --backend nccl")',
    'subprocess.run(["which", "nvidia-smi"])',
    'os.system("ASCEND_RT_VISIBLE_DEVICES=0 python a.py --device npu")',
    "CUDA_VISIBLE_DEVICES = 0",
    'cluster = LocalCluster(CUDA_VISIBLE_DEVICES="0,1")',
    'os.environ["NCCL_ALGO"] = "^NVLS"',
    'os.environ["CUDA_VISIBLE_DEVICES"] = ""',
    'os.environ["CUDA_VISIBLE_DEVICES"] = "-1"',
    """def clean(env):
    for name in ("TORCHELASTIC_RUN_ID", "TORCH_NCCL_ASYNC_ERROR_HANDLING"):
        env.pop(name, None)
""",
    """def make_pool():
    setting = os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "")
    if "expandable_segments" in setting:
        raise RuntimeError("not with this setting")
""",
    """def index_of_card():
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    return pynvml.nvmlDeviceGetHandleByIndex(int(visible.split(",")[0]))
""",
    """def set_up():
    os.environ["HCCL_DETERMINISTIC"] = "true"
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":16:8"
""",
    'logger.info("python a.py --device cuda")',
]
IMPORTS = "import os, subprocess\nfrom subprocess import getoutput as run\n"


@pytest.mark.parametrize("snippet", FOUND)
def test_names_of_variables_are_found(snippet: str) -> None:
    start = snippet.index('"⟦⟧')
    end = snippet.index('"', start + 1) + 1
    name = snippet[start:end].replace("⟦⟧", "")
    check(f"{IMPORTS}{snippet[:start]}⟦NPU901:{name}⟧{snippet[end:]}\n")


@pytest.mark.parametrize(
    ("path", "variable", "is_reported"),
    [
        ("train.py", "NCCL_NVLS_ENABLE", True),
        ("tests/conftest.py", "NCCL_NVLS_ENABLE", False),
        ("tests/conftest.py", "CUDA_VISIBLE_DEVICES", True),
    ],
)
def test_the_path_says_whose_variable_it_is(path: str, variable: str, is_reported: bool) -> None:
    text = f'import os\n\nos.environ["{variable}"] = "1"\n'
    assert bool(analyze(Document(path, text), CATALOGUE, Target())) is is_reported


@pytest.mark.parametrize("snippet", WITHOUT_QUOTES)
def test_keywords_and_command_lines_are_found(snippet: str) -> None:
    check(f"{IMPORTS}{snippet}\n")


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_that_python_writes(name: str) -> None:
    check(SCRIPTS[name] + "\n")


@pytest.mark.parametrize("snippet", NOT_FOUND)
def test_what_looks_alike_is_not_found(snippet: str) -> None:
    check(f"{IMPORTS}{snippet}\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('env = dict(os.environ, CUDA_VISIBLE_DEVICES="0")', None),
        ('os.environ["CUDA_VISIBLE_DEVICES"] = "0,1"', None),
        (
            'os.environ["CUDA_VISIBLE_DEVICES"] = "1,0"',
            'os.environ["CUDA_VISIBLE_DEVICES"] = "1,0"',
        ),
        ('os.system("CUDA_VISIBLE_DEVICES=0 python a.py")', None),
        (
            'os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "backend:cudaMallocAsync"',
            'os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "backend:cudaMallocAsync"',
        ),
        (
            'subprocess.run(["python", "a.py", "--device", "cuda:0"])',
            'subprocess.run(["python", "a.py", "--device", "npu:0"])',
        ),
    ],
)
def test_fixes(before: str, after: str | None) -> None:
    if after is None:
        after = before.replace("CUDA_VISIBLE", "ASCEND_RT_VISIBLE")
    assert fixed(f"{IMPORTS}{before}\n") == f"{IMPORTS}{after}\n"


@pytest.mark.parametrize(
    ("value", "is_safe"), [('"0,1"', True), ('"0"', True), ('"2,1"', False), ("gpus", False)]
)
def test_only_ascending_numbers_are_safe(value: str, is_safe: bool) -> None:
    source = f'{IMPORTS}os.environ["CUDA_VISIBLE_DEVICES"] = {value}\n'
    assert (fixed(source, applicability=Applicability.SAFE) != source) == is_safe


def test_the_note_says_what_is_asked_of_the_value() -> None:
    [finding] = findings(code('import os\nos.environ["CUDA_VISIBLE_DEVICES"] = "1,0"\n'))
    assert "ascending" in finding.message("en")
    assert "升序" in finding.message("zh")


def test_a_variable_that_another_statement_reads_is_the_modules_own() -> None:
    source = 'import os\nos.environ["HCCL_CONNECT_TIME_OUT"] = "3"\n'
    reading = 'x = os.getenv("HCCL_CONNECT_TIME_OUT")\n'
    for cache in (None, StatementCache()):  # an editor reads each statement by itself
        assert [f.rule.code for f in findings(source, cache=cache)] == ["NPU910"]
        assert not findings(source + reading, cache=cache)
