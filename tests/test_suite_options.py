"""Options of Megatron-LM, MindSpeed and the suites built on both, in scripts that run them.

Each case is a script or a file of settings, with findings marked as in `helpers`.
"""

import pytest

from helpers import CATALOGUE, Mark, code, marked, unmarked
from npulens.analysis import analyze
from npulens.catalog.model import Applicability, Finding, Target
from npulens.catalog.project_model import ProjectFacts
from npulens.catalog.suite_tables import SuiteEntry
from npulens.fixes.apply import fix_text
from npulens.text.document import Document
from npulens.text.kinds import kind_of
from npulens.workspace.files.relevance import Relevance

GPT = "torchrun pretrain_gpt.py --micro-batch-size 1"
ASCEND = "source /usr/local/Ascend/ascend-toolkit/set_env.sh\n"


def findings(text: str, file: str = "run.sh") -> tuple[Finding, ...]:
    return analyze(Document(file, text), CATALOGUE, Target())


def check(snippet: str, file: str = "run.sh") -> None:
    text, _ = unmarked(snippet)
    found = [Mark(*f.span, f.rule.code) for f in findings(text, file) if f.rule.code == "NPU924"]
    assert marked(text, found) == snippet


FOUND = [
    # names that no suite has
    f"{GPT} ⟦NPU924:--use_fused_rmsnorm⟧ --normalization RMSNorm",
    f"{GPT} ⟦NPU924:--use-fuesd-swiglu⟧ --swiglu",
    f"{ASCEND}{GPT} ⟦NPU924:--tensor_model_parallel_size⟧=2",
    # in variables and arrays
    f'A="--bf16 ⟦NPU924:--use-fused-swglu⟧"\n{GPT} $A',
    f'A=(--bf16 ⟦NPU924:--use-fused-swglu⟧)\n{GPT} "${{A[@]}}"',
    f'A="--bf16"\nA="$A ⟦NPU924:--use-fused-swglu⟧"\n{GPT} $A',
    f"A=(--bf16)\nA+=(⟦NPU924:--use-fused-swglu⟧)\n{GPT} ${{A[@]}}",
    f"if [ $X ]; then\n  A=⟦NPU924:--use-fused-swglu⟧\nfi\n{GPT} $A",
    "T=pretrain_gpt.py\ntorchrun $T --micro-batch-size 1 ⟦NPU924:--use-fused-swglu⟧",
    # a program of another name
    f"{ASCEND}python a.py --micro-batch-size 1 --seq-length 8 --bf16 --train-iters 9"
    " ⟦NPU924:--overlap-grad-reducee⟧",
    # old names
    f"cd MindSpeed-LLM\n{GPT} ⟦NPU924:--use-mc2⟧ --ckpt-format torch",
    # values
    f"{GPT} ⟦NPU924:--context-parallel-algo⟧ ulysses",
    f"{GPT} ⟦NPU924:--distributed-backend⟧ hccl",
    f'A="⟦NPU924:--context-parallel-algo⟧ \\\n  ulysses"\n{GPT} $A',
    # contradictions, reported at the one whose feature refuses the other
    f"{GPT} --bf16 --reuse-fp32-param ⟦NPU924:--swap-optimizer⟧ --use-distributed-optimizer",
    f"A=--swap-attention\n{GPT} --use-flash-attn $A ⟦NPU924:--moe-fb-overlap⟧ --moe-grouped-gemm",
    f"{GPT} ⟦NPU924:--use-ascend-mc2⟧ --sequence-parallel --tensor-model-parallel-size 1",
    # what is missing
    f"{GPT} ⟦NPU924:--reuse-fp32-param⟧",
    f"{GPT} ⟦NPU924:--use-fused-rotary-pos-emb⟧ --position-embedding-type none",
    f"A=--bf16\n{GPT} $A ⟦NPU924:--swap-optimizer⟧",
    # what would be worth it
    f"{ASCEND}{GPT} ⟦NPU924:--swiglu⟧",
    f"{GPT} ⟦NPU924:--swiglu⟧ --sparse-mode 2",
]

NOT_FOUND = [
    f"{GPT} --distributed-backend nccl",
    # no suite
    "python train.py --jit-compile --use_fused_swiglu --seed 1 --lr 0.1",
    'echo "pretrain_gpt.py --micro-batch-size 1 --use-fused-swglu"',
    "python prepare.py --tokenizer-type a --use-fused-swglu",
    # a backslash at once behind an option, between quotes
    f'A="--bf16\\\n  --reuse-fp32-param\\\n"\n{GPT} $A',
    f'A="--context-parallel-algo \\\n  ulysses_cp_algo --sparse-mode\\\n  2"\n{GPT} $A',
    # options of torchrun are none of the suite
    "torchrun --master_addr a --nproc_per_node 8 pretrain_gpt.py --micro-batch-size 1",
    # a fork in which options are spelt in another way
    f"{ASCEND}{GPT} --train_iters 1 --seq_length 1 --hidden_size 2 --num_layers 3",
    # not for the NPU
    f"{GPT} --tensor_model_parallel_size 2",
    # another number, an option of one's own
    f"{GPT} --use-flash-attn2 --my-own-option 3",
    # words that are not known may bring it
    f"{GPT} --reuse-fp32-param $MORE",
    f'{GPT} --reuse-fp32-param "$@"',
    f"A=\n[ $X ] && A=--bf16\n{GPT} --reuse-fp32-param $A",
    f"A=$B\n{GPT} --reuse-fp32-param $A",
    f"{GPT} --reuse-fp32-param --use-checkpoint-args",
    f"{GPT} --use-fused-rmsnorm --normalization $NORM",
    # only one of them is given at a time
    "if [ $X ]; then\n  A=--swap-attention\nelse\n  A=--moe-fb-overlap\nfi\n"
    f"{GPT} --use-flash-attn --moe-grouped-gemm $A",
    # values in variables
    f"{GPT} --context-parallel-algo $ALGO",
    f"{GPT} --context-parallel-algo ${{ALGO}}_cp_algo",
    # not for the NPU
    f"{GPT} --swiglu --normalization RMSNorm",
    # a release before the new names
    f"cd MindSpeed-LLM\n{GPT} --use-mc2",
    # MindSpeed-MM has some of the old names of MindSpeed-LLM
    "torchrun pretrain_sora.py --micro-batch-size 1 --use-deter-comp --mm-model a.json",
]


@pytest.mark.parametrize("snippet", FOUND)
def test_found(snippet: str) -> None:
    check(code(snippet + "\n"))


@pytest.mark.parametrize("snippet", NOT_FOUND)
def test_not_found(snippet: str) -> None:
    check(code(snippet + "\n"))


def test_found_in_lists_of_settings() -> None:
    options = ["--micro-batch-size", "1", "⟦NPU924:--use-fused-swglu⟧"]
    words = "".join(f'  - "{word}"\n' for word in ("python", "pretrain_gpt.py", *options))
    check(f"command:\n{words}", "job.yaml")


def test_what_is_worth_giving_is_told_once_for_a_command() -> None:
    script = f"{ASCEND}{GPT} --swiglu --normalization RMSNorm --position-embedding-type rope\n"
    [found] = findings(script)
    assert found.effective_severity.value == "hint"
    for name in ("swiglu", "rmsnorm", "rotary-pos-emb"):
        assert f"`--use-fused-{name}`" in found.message("en")

    def again(text: str) -> tuple[Finding, ...]:
        return findings(text)

    result = fix_text(script, again, Applicability.UNSAFE, kind=kind_of("run.sh", script))
    assert result.text == (
        f"{ASCEND}{GPT} --use-fused-swiglu --swiglu --use-fused-rmsnorm --normalization RMSNorm"
        " --use-fused-rotary-pos-emb --position-embedding-type rope\n"
    )


MINDSPEED_LLM = "cd MindSpeed-LLM\n"
ENTRIES = [entry for entries in CATALOGUE.suite.entries.values() for entry in entries]


def given(condition: str) -> str:
    """A condition as an option of a command."""
    option = condition.partition(" or ")[0]
    flags = CATALOGUE.suite.flags
    return option if " " in option or option in flags else f"{option} 2"


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.option)
def test_each_entry(entry: SuiteEntry) -> None:
    """What it is broken by is found, and not without."""
    option = given(entry.option)
    beside = [*map(given, entry.when[:1])]
    needed = [*map(given, entry.needs), *beside]
    broken = [[option, *needed, given(other)] for other in entry.excludes]
    broken += [[option, *beside, *map(given, entry.needs[1:])]] * bool(entry.needs)
    broken += [[entry.option, "never"]] * bool(entry.choices)
    broken += [[option, *beside]] * bool(entry.renamed)
    broken += [[*beside, condition] for condition in map(given, entry.profits)]
    for options in broken:
        found = findings(f"{MINDSPEED_LLM}{GPT} {' '.join(options)}\n")
        assert "suite-option" in [each.rule.name for each in found], options
    assert broken or entry.marks or entry.opens


def test_an_option_of_which_a_value_is_asked_takes_one() -> None:
    lists = (each for e in ENTRIES for each in (e.needs, e.excludes, e.when, e.profits, e.unless))
    ways = [way for conditions in lists for each in conditions for way in each.split(" or ")]
    assert not {way for way in ways if " " in way and way.split()[0] in CATALOGUE.suite.flags}
    assert not {e.option for e in ENTRIES if e.choices and e.option in CATALOGUE.suite.flags}


def test_no_option_of_the_suites_is_called_misspelt() -> None:
    table = CATALOGUE.suite
    assert len(table.known) > 1000
    assert table.entries.keys() <= table.known
    listed = table.flags | {name for name in table.known if name not in table.flags}
    words = " ".join(sorted(listed - table.entries.keys()))
    assert not [f for f in findings(f"{GPT} {words}\n") if "close" in f.message("en")]


def test_files_with_such_options_are_read() -> None:
    relevance = Relevance(CATALOGUE, ProjectFacts())
    for line in ("torchrun pretrain_gpt.py --bf16", "python a.py --seq-length 1 --train-iters 2"):
        assert relevance.may_have_findings("run.sh", line.encode())
