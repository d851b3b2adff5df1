"""What scripts and settings say to the tools of the NPU, and numbers that contradict each other.

Each case is the name of a file and its text, with findings marked as in `helpers`.
"""

import pytest

from helpers import CATALOGUE, check_file, findings_in
from npulens.analysis import analyze
from npulens.catalog.model import Finding, Severity, Target
from npulens.text.document import Document

OF_TOOLS = {"NPU909", "NPU922", "NPU923", "NPU925"}


def findings(file: str, text: str) -> list[Finding]:
    return findings_in(file, text, OF_TOOLS)


def check(file: str, snippet: str) -> list[Finding]:
    return check_file(file, snippet, OF_TOOLS)


COMMANDS = [
    "msprof-analyze -d p ⟦NPU923:-i⟧ out",
    "msprof-analyze advisor all -d p ⟦NPU923:-i⟧ out",
    "msprof-analyze cluster -m ⟦NPU923:communication⟧ -d p",
    "msprof-analyze --mode=⟦NPU923:slowrank⟧ -d p",
    "msprof-analyze ⟦NPU923:analyse⟧ -d p",
    "msprof-analyze advisor ⟦NPU923:overall⟧ -d p",
    "msprof-analyze ⟦NPU923:advisor⟧ -d p",
    "nohup msprof-analyze -d p ⟦NPU923:-i⟧ out > log 2>&1 &",
    "bash -c 'msprof-analyze -d p ⟦NPU923:-i⟧ out'",
    "msprobe -f pytorch compare ⟦NPU923:-b⟧ gpu.json -c npu.json -l api",
    "msprobe compare ⟦NPU923:-i⟧ compare.json",
    "msprobe -f pytorch compare ⟦NPU923:-tp⟧ a ⟦NPU923:-gp⟧ b",
    "msprobe ⟦NPU923:run_ut⟧ -api_info dump.json",
    "msprobe ⟦NPU923:multi_run_ut⟧ -api_info dump.json -n 8",
    "msprobe ⟦NPU923:graph⟧ -tp a -o out",
    "msprobe ⟦NPU923:nan_analyze⟧ -i step0",
    "msprobe ⟦NPU923:op_generate⟧",
    "msprobe -f pytorch ⟦NPU923:acc_check⟧ -api_info dump.json",
    "msprobe --framework=pytorch ⟦NPU923:graph_visualize⟧ -tp a",
    "pip install mindstudio-probe==26.2.0\nmsprobe -f pytorch ⟦NPU923:run_ut⟧ -api_info dump.json",
    "msprobe -f pytorch compare -i a.json\nmsprobe ⟦NPU923:config_check⟧ -c a.zip b.zip",
    "msprobe ⟦NPU923:dump⟧ -o out",
    "atc --model=m.onnx --framework=⟦NPU923:onnx⟧ --soc_version=Ascend910B3",
    "⟦NPU923:atc⟧ --model=m.onnx --framework=5 --output=m",
    "${HOME}/latest/bin/atc --model=m --framework ⟦NPU923:4⟧ --soc_version=Ascend910B3",
    "atc --framework=5 ⟦NPU923:--precision_mode⟧=force_fp16 --precision_mode_v2=fp16 $SOC",
    "atc --framework=5 ⟦NPU923:--op_select_implmode⟧ high_precision --soc_version=a",
]
NO_COMMANDS = [
    "msprof-analyze -d p -m $MODE",
    "msprof-analyze -d p -m all -o out --force",
    "msprof-analyze auto-completion",
    "msprof-analyze advisor $WHAT -d p",
    "msprobe -V",
    "msprobe $ARGS",
    "msprobe -f $FRAMEWORK run_ut -api_info a",
    "msprobe ./run_ut",
    "msprobe acc_check -api_info a -f",
    "echo msprobe run_ut",
    "pip install msprobe",
    "ARGS='--framework=5'; run $ARGS",
    "atc --model=m --framework=$FRAMEWORK --soc_version=$SOC",
    "atc --model=m --framework=5 $MORE",
    'atc --model=m --framework=5 "$@"',
    "atc --mode=1 --om=m.om --json=m.json --framework=5",
    "atc --help",
    "model=atc; $model --framework=5 --soc_version=a",
    "# msprof-analyze -d p -i out",
]


@pytest.mark.parametrize("snippet", COMMANDS)
def test_a_command_line_that_a_tool_does_not_take(snippet: str) -> None:
    check("run.sh", snippet)


@pytest.mark.parametrize("text", NO_COMMANDS)
def test_a_command_line_that_is_fine_or_not_known(text: str) -> None:
    assert findings("run.sh", text) == []


@pytest.mark.parametrize(
    ("file", "snippet"),
    [
        ("Dockerfile", "FROM ascend/cann:8\nRUN msprof-analyze -d p ⟦NPU923:-i⟧ out\n"),
        ("Makefile", "all:\n\tmsprof-analyze -d p ⟦NPU923:-i⟧ out\n"),
        ("job.slurm", "#!/bin/bash\nsrun msprof-analyze -d p ⟦NPU923:-i⟧ out\n"),
        ("job.yaml", "run: |\n  msprof-analyze -d p ⟦NPU923:-i⟧ out\n"),
        ("job.yaml", 'command: ["msprof-analyze", "-d", "p", "⟦NPU923:-i⟧", "out"]\n'),
    ],
)
def test_wherever_commands_stand(file: str, snippet: str) -> None:
    check(file, snippet)


NUMBERS = [
    "export ASCEND_RT_VISIBLE_DEVICES=0,1\ntorchrun --nproc_per_node=⟦NPU922:4⟧ a.py",
    'ASCEND_RT_VISIBLE_DEVICES="0" python -m torch.distributed.run --nproc-per-node ⟦NPU922:2⟧ a',
    "export ASCEND_RT_VISIBLE_DEVICES=0,1\nN=⟦NPU922:8⟧\nARGS=(--nproc_per_node $N)\n"
    "torchrun ${ARGS[@]} a.py",
    "torchrun --nnodes=2 --master_addr=⟦NPU922:localhost⟧ --node_rank=$RANK a.py",
    'NNODES=4\nMASTER_ADDR="⟦NPU922:127.0.0.1⟧"\nrun',
    "NPUS_PER_NODE=16\ntorchrun --nproc_per_node ⟦NPU922:8⟧ a.py",
    "GPUS_PER_NODE=8\nN=⟦NPU922:4⟧\ntorchrun --nproc_per_node $N a.py",
]
NO_NUMBERS = [
    "export ASCEND_RT_VISIBLE_DEVICES=0,1\ntorchrun --nproc_per_node=2 a.py",
    "export ASCEND_RT_VISIBLE_DEVICES=$CARDS\ntorchrun --nproc_per_node=8 a.py",
    "ASCEND_RT_VISIBLE_DEVICES=0 python a.py\ntorchrun --nproc_per_node=8 a.py",
    "export ASCEND_RT_VISIBLE_DEVICES=0\nunset ASCEND_RT_VISIBLE_DEVICES\n"
    "torchrun --nproc_per_node=8 a.py",
    "torchrun --nproc_per_node=8 a.py\nexport ASCEND_RT_VISIBLE_DEVICES=0",
    "export ASCEND_RT_VISIBLE_DEVICES=0\nread N\ntorchrun --nproc_per_node=$N a.py",
    "export ASCEND_RT_VISIBLE_DEVICES=0\nN=8\nwhile read N; do\n"
    "torchrun --nproc_per_node=$N a.py; done",
    "export ASCEND_RT_VISIBLE_DEVICES=0\necho torchrun --nproc_per_node=8 a.py",
    "[ $A ] && export ASCEND_RT_VISIBLE_DEVICES=0\ntorchrun --nproc_per_node=8 a.py",
    "NNODES=1\nMASTER_ADDR=localhost\nrun",
    "NNODES=${NNODES:-2}\nMASTER_ADDR=localhost\nrun",
    "NNODES=2\nMASTER_ADDR=${MASTER_ADDR:-localhost}\nrun",
    "NNODES=2\nMASTER_ADDR=localhost\nif [ $A ]; then MASTER_ADDR=$B; fi\nrun",
    "NNODES=1\nwhile getopts n: o; do NNODES=2; done\nMASTER_ADDR=localhost\nrun",
    "torchrun --nnodes=1:4 --master_addr=localhost a.py",
    "torchrun --nnodes=2 --node_rank=0 --master_addr=localhost a.py",
    "torchrun --nnodes=2 --node_rank=0 --master_addr=localhost a.py &\n"
    "torchrun --nnodes=2 --node_rank=1 --master_addr=localhost a.py",
    "NPUS_PER_NODE=8\ntorchrun --nproc_per_node $NPUS_PER_NODE a\ntorchrun --nproc_per_node 1 b",
    "NPUS_PER_NODE=8\nN=$((NPUS_PER_NODE / 2))\ntorchrun --nproc_per_node $N a.py",
]


@pytest.mark.parametrize("snippet", NUMBERS)
def test_numbers_that_contradict_each_other(snippet: str) -> None:
    check("run.sh", snippet)


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_numbers_that_agree_or_are_not_known(text: str) -> None:
    assert findings("run.sh", text) == []


def test_how_much_such_numbers_matter() -> None:
    (devices,) = check("run.sh", NUMBERS[0])
    assert devices.severity is Severity.ERROR
    assert [related.span for related in devices.related] == [(7, 32)]
    (nodes,) = check("run.sh", NUMBERS[4])
    assert nodes.severity is None
    (edited,) = findings("run.sh", "NODE_RANK=0\nNNODES=4\nMASTER_ADDR=localhost\nrun")
    assert edited.severity is Severity.INFO


TOGETHER = [
    ("a.sh", "export ⟦NPU909:NPU_ASD_ENABLE⟧=1 NPU_ASD_CONFIG=enable:false"),
    ("a.sh", "export ⟦NPU909:NPU_ASD_ENABLE⟧=0\nexport NPU_ASD_CONFIG=enable:true,cooldown:5"),
    (
        "a.sh",
        "export ⟦NPU909:NPU_ASD_UPPER_THRESH⟧=3,3\nexport ⟦NPU909:NPU_ASD_SIGMA_THRESH⟧=3,3\n"
        "export NPU_ASD_CONFIG=enable:true",
    ),
    ("a.sh", "export ⟦NPU909:CPU_AFFINITY_CONF⟧=2,npu0:0-1\nexport PER_STREAM_QUEUE=1"),
    ("a.sh", "export TASK_QUEUE_ENABLE=0\nexport ⟦NPU909:PER_STREAM_QUEUE⟧=1"),
    ("a.sh", "TASK_QUEUE_ENABLE=0 ⟦NPU909:TORCH_NPU_LAZY_FUSION⟧=True python a.py"),
    ("a.sh", "export ASCEND_LAUNCH_BLOCKING=1\nexport ⟦NPU909:TASK_QUEUE_ENABLE⟧=2"),
    ("a.sh", "export HCCL_DETERMINISTIC=TRUE\nexport ⟦NPU909:HCCL_OP_EXPANSION_MODE⟧=AIV"),
    (
        "a.sh",
        'export HCCL_DETERMINISTIC="strict"\n⟦NPU909:HCCL_OP_EXPANSION_MODE⟧="AIV" python a.py',
    ),
    ("a.sh", "export INF_NAN_MODE_ENABLE=1 ⟦NPU909:INF_NAN_MODE_FORCE_DISABLE⟧=1"),
    ("a.sh", "export ⟦NPU909:HCCL_INTRA_ROCE_ENABLE⟧=1 HCCL_INTRA_PCIE_ENABLE=1"),
    (
        "a.sh",
        "export ⟦NPU909:PYTORCH_NPU_ALLOC_CONF⟧=expandable_segments:True\n"
        "export PYTORCH_ALLOC_CONF=expandable_segments:True",
    ),
    (".env", "⟦NPU909:NPU_ASD_ENABLE⟧=1\nNPU_ASD_CONFIG=enable:true\n"),
    (
        "Dockerfile",
        "FROM ascend/cann:8\nENV ⟦NPU909:NPU_ASD_ENABLE⟧=1\nENV NPU_ASD_CONFIG=enable:true\n",
    ),
    ("a.yaml", "env:\n  ⟦NPU909:NPU_ASD_ENABLE⟧: 1\n  NPU_ASD_CONFIG: enable:true\n"),
    ("a.yaml", "env:\n  - ⟦NPU909:NPU_ASD_ENABLE⟧=1\n  - NPU_ASD_CONFIG=enable:true\n"),
    (
        "a.yaml",
        "env:\n- name: ⟦NPU909:NPU_ASD_ENABLE⟧\n  value: '1'\n"
        "- name: NPU_ASD_CONFIG\n  value: enable:true\n",
    ),
    ("a.json", '{"env": {"⟦NPU909:NPU_ASD_ENABLE⟧": "1", "NPU_ASD_CONFIG": "enable:true"}}'),
]
APART = [
    ("a.sh", "export NPU_ASD_ENABLE=0\nexport NPU_ASD_CONFIG=enable:false"),
    ("a.sh", "export NPU_ASD_ENABLE=$A\nexport NPU_ASD_CONFIG=enable:true"),
    ("a.sh", "export NPU_ASD_ENABLE=1\nunset NPU_ASD_ENABLE\nexport NPU_ASD_CONFIG=enable:true"),
    ("a.sh", "if a; then export NPU_ASD_ENABLE=1\nelse export NPU_ASD_CONFIG=enable:true; fi"),
    ("a.sh", "NPU_ASD_ENABLE=1 a\nNPU_ASD_CONFIG=enable:true b"),
    ("a.sh", "export CPU_AFFINITY_CONF=1\nexport PER_STREAM_QUEUE=1"),
    ("a.sh", "echo NPU_ASD_ENABLE=1 && export NPU_ASD_CONFIG=enable:true"),
    ("Dockerfile", "FROM a AS b\nENV NPU_ASD_ENABLE=1\nFROM c\nENV NPU_ASD_CONFIG=enable:true\n"),
    (
        "a.yaml",
        "cases:\n- name: a\n  env:\n    NPU_ASD_ENABLE: 1\n"
        "- name: b\n  env:\n    NPU_ASD_CONFIG: enable:true\n",
    ),
    ("a.yaml", "cases:\n- NPU_ASD_ENABLE: 1\n- NPU_ASD_CONFIG: enable:true\n"),
    ("a.json", '[{"NPU_ASD_ENABLE": "1"}, {"NPU_ASD_CONFIG": "enable:true"}]'),
    ("a.yaml", ""),
]


@pytest.mark.parametrize(("file", "snippet"), TOGETHER)
def test_variables_that_do_not_go_together(file: str, snippet: str) -> None:
    check(file, snippet)


@pytest.mark.parametrize(("file", "text"), APART)
def test_variables_that_are_not_set_together(file: str, text: str) -> None:
    assert findings(file, text) == []


def msprobe(more: str) -> str:
    return '{"task": "tensor", "dump_path": "d", "level": "L1", ' + more + "}"


def profiler(more: str) -> str:
    return '{"prof_dir": "./", ' + more + "}"


SETTINGS = [
    '{"task": ⟦NPU925:"tensors"⟧, "dump_path": "d", "step": [1]}',
    '{"task": ⟦NPU925:"run_ut"⟧, "dump_path": "d", "rank": []}',
    '{"task": ⟦NPU925:"overflow_check"⟧, "dump_path": "d", "rank": []}',
    '{"task": ⟦NPU925:"grad_probe"⟧, "dump_path": "d", "rank": []}',
    '{"task": ⟦NPU925:"free_benchmark"⟧, "dump_path": "d", "rank": []}',
    '{"dump_path": "d", "statistics": {"list": ["a"]}, "level": ⟦NPU925:"l1"⟧}',
    msprobe('"step": ⟦NPU925:5⟧'),
    msprobe('"rank": ⟦NPU925:"0-3"⟧'),
    msprobe('"tensor": {"list": ⟦NPU925:"conv"⟧}'),
    msprobe('"enable_dataloader": ⟦NPU925:true⟧'),
    msprobe('"extra_info": ⟦NPU925:"true"⟧'),
    msprobe('"dump_enable": ⟦NPU925:"False"⟧'),
    msprobe('"async_dump": ⟦NPU925:true⟧, "tensor": {"list": []}'),
    msprobe('"⟦NPU925:dump_mode⟧": "api", "⟦NPU925:dump_iter⟧": "10|20"'),
    '{"dump": {"common_dump_settings": {"⟦NPU925:dump_mode⟧": "api", "⟦NPU925:dump_iter⟧": "1"}}}',
    profiler('"experimental_config": {"⟦NPU925:aicore_metrics⟧": "PipeUtilization"}'),
    profiler('"experimental_config": {"aic_metrics": ⟦NPU925:"PipeUtilization"⟧}'),
    profiler(
        '"experimental_config": {"profiler_level": "Level0", "aic_metrics": ⟦NPU925:"Memory"⟧}'
    ),
    profiler('"analyse": ⟦NPU925:"true"⟧, "experimental_config": {"l2_cache": ⟦NPU925:"false"⟧}'),
    profiler('"is_rank": ⟦NPU925:true⟧, "experimental_config": {"mstx": true}'),
    '{"activities": ["CPU", ⟦NPU925:"CUDA"⟧], "experimental_config": {"mstx": true}}',
]
NO_SETTINGS = [
    '{"task": "translation", "level": 5, "step": 3}',
    '{"task": "overflow", "dump_dir": "d", "level": "L3"}',
    '{"dump": {"dump_path": "d", "dump_mode": "all", "dump_step": "0|5-10"}}',
    '{"common_dump_settings": {"dump_mode": 0}, "e2e_dump_settings": {"enable": true}}',
    '{"experimental_config": {"foo": "true"}}',
    '{"prof_dir": "a", "analyse": "true"}',
    msprobe('"async_dump": true, "tensor": {"list": ["conv"]}'),
    msprobe('"enable_dataloader": false, "rank": [0, "4-6"], "step": []'),
    '{"task": "tensor", "dump_path": "d", "level": "debug", "async_dump": true}',
    '{"task": "", "dump_path": "d", "level": ""}',
    '{"task": "statistics", "dump_path": "d", "level": "mix", "overflow_check": {"a": "all"}}',
    profiler('"is_rank": true, "rank_list": [0], "experimental_config": {"mstx": false}'),
    profiler(
        '"activities": ["CPU", "NPU"], "experimental_config":'
        ' {"profiler_level": "Level2", "aic_metrics": "Memory", "export_type": ["db"]}'
    ),
    profiler('"experimental_config": {"profiler_level": "Level0", "aic_metrics": "AiCoreNone"}'),
]


@pytest.mark.parametrize("snippet", SETTINGS)
def test_settings_that_a_tool_does_not_take(snippet: str) -> None:
    check("any_name.json", snippet)


@pytest.mark.parametrize("text", NO_SETTINGS)
def test_settings_that_are_fine_or_of_something_else(text: str) -> None:
    assert findings("config.json", text) == []


def test_an_image_for_the_npu_settles_nothing_that_is_written_for_it() -> None:
    text = "FROM ascend/cann:8.0\nENV TASK_QUEUE_ENABLE=7\n"
    (found,) = analyze(Document("Dockerfile", text), CATALOGUE, Target())
    assert found.rule.code == "NPU908"
