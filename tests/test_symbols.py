"""Every fact about `torch.cuda`, in every spelling, from the code to the finding and its fix.

What is expected comes from the list of facts and from the tables below, not from the rules.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from migration import (
    Marked,
    findings,
    findings_at,
    fixed,
    import_problems,
    marked,
    name_of_found,
    one_spelling,
)

from npulens.catalog.model import MigrationStyle, Target, TorchVersion

DATA = Path(__file__).parent / "data"
TARGET = Target()
AGNOSTIC = Target(style=MigrationStyle.DEVICE_AGNOSTIC)
SHIM = Target(style=MigrationStyle.RUNTIME_SHIM)


class Fact(NamedTuple):
    """What `torch_npu` makes of a name of the CUDA world."""

    symbol: str
    status: str
    counterpart: str


class AtRunTime(NamedTuple):
    """Whether `transfer_to_npu` makes a name work, and since which torch_npu there is one."""

    patched: bool
    since: str


def rows(name: str) -> list[list[str]]:
    lines = (DATA / name).read_text(encoding="utf-8").splitlines()[1:]
    return [line.split("\t") for line in lines]


FACTS = {symbol: Fact(symbol, *rest) for symbol, *rest in rows("torch_cuda_api.tsv")}
AT_RUN_TIME = {
    symbol: AtRunTime(patched == "yes", since)
    for symbol, patched, since in rows("transfer_to_npu.tsv")
}

NO_FINDING = {
    "torch.Tensor.record_stream": "same name; what matters is the stream it is given",
    "torch.Tensor.device": "same name; what matters is what its type is compared with",
    "env:CUDA_DEVICE_MAX_CONNECTIONS": "same name; Megatron on the NPU reads it too",
}

RULES = [
    # The first pattern that matches decides, then the status.
    (r"torch\.cuda\.amp\b", "NPU301"),
    (r"torch\.cuda\.nccl\b", "NPU203"),
    (r"torch\.cuda\.nvtx\b", "NPU502"),
    (r"torch\.cuda\.sparse\b|torch\.cuda\.Complex\w+Storage", "NPU103"),
    (r"torch\.cuda\.\w+(Tensor|Storage)", "NPU107"),
    (r"torch\.cuda\.has_\w+|torch\.version\.cuda|torch\.has_cuda", "NPU112"),
    (r"torch\.backends\.(cuda\.is_built|cudnn\.is_available|cudnn\.version)", "NPU112"),
    (r"torch\.backends\.", "NPU402"),
    (r"torch\.channels_last", "NPU401"),
    (r"torch\.(nn\.DataParallel|nn\.parallel\.data_parallel)", "NPU202"),
    (r"torch\.distributed\.(is_nccl_available|ProcessGroupNCCL)", "NPU203"),
    (r"torch\.profiler\.", "NPU502"),
    (r"torch\.jit\.script|torch\.nn\.attention\.sdpa_kernel", "NPU501"),
    (r"torch\.utils\.cpp_extension\.", "NPU601"),
    (r"torch\.amp\.GradScaler", "NPU303"),
    (r"torch\.[gs]et_autocast_gpu_dtype", "NPU302"),
]
RULE_OF_STATUS = {
    "same-name": "NPU101",
    "renamed": "NPU101",
    "partial": "NPU102",
    "unsupported": "NPU103",
}


def rule_of(symbol: str) -> str:
    for pattern, code in RULES:
        if re.match(pattern, symbol):
            return code
    assert symbol.startswith("torch.cuda."), symbol
    return RULE_OF_STATUS[FACTS[symbol].status]


BY_HAND = {
    "torch.backends.cudnn.deterministic": "a flag that is set becomes a function that is called",
    "torch.utils.cpp_extension.CUDAExtension": "the CUDA sources it compiles must be ported",
    "torch.amp.GradScaler": "the parameters differ, and without arguments it means CUDA",
    "env:NCCL_BUFFSIZE": "bytes there, megabytes here",
    "env:NCCL_ALGO": "the values differ",
    "env:CUDA_HOME": "what is looked for below the path differs",
}
REPLACED_THOUGH_UNSUPPORTED = {
    "torch.has_cuda": "torch.npu.is_available()",  # a flag asked becomes a question called
}


def counterpart(symbol: str) -> str | None:
    """The name a fix must lead to, `None` where no fix is due."""
    fact = FACTS[symbol]
    if symbol in REPLACED_THOUGH_UNSUPPORTED:
        return REPLACED_THOUGH_UNSUPPORTED[symbol]
    if fact.status == "unsupported" or symbol in BY_HAND or fact.counterpart in ("", symbol):
        return None
    return one_spelling(fact.counterpart)


# Names.

MODULES = {
    "torch",
    "torch.amp",
    "torch.backends.cuda",
    "torch.backends.cudnn",
    "torch.cuda",
    "torch.distributed",
    "torch.jit",
    "torch.nn",
    "torch.nn.attention",
    "torch.nn.parallel",
    "torch.profiler",
    "torch.utils.cpp_extension",
    "torch.version",
} | {
    f"torch.cuda.{name}"
    for name in (
        "_sanitizer amp comm gds graphs green_contexts jiterator memory nccl nvtx profiler random "
        "sparse streams tunable"
    ).split()
}
FLAGS = re.compile(
    r"torch\.backends\..*(tf32|benchmark|deterministic|enabled|limit|reduction|plan_cache)\Z"
    r"(?<!sdp_enabled)"
)
"""Attributes that are read and set in their module; imported they would be mere values."""

METHODS = re.compile(r"torch\.(Tensor|nn\.Module|\w*Storage|storage\.\w+)\.")
NAMES = [
    symbol
    for symbol in FACTS
    if re.fullmatch(r"[\w.]+", symbol) and not METHODS.match(symbol) and symbol not in NO_FINDING
]


def parts(symbol: str) -> tuple[str, str]:
    """The module that has a name, and the rest."""
    module = symbol.rpartition(".")[0]
    while module not in MODULES:
        module = module.rpartition(".")[0]
    return module, symbol[len(module) + 1 :]


def spellings(symbol: str) -> Iterator[tuple[str, str]]:
    """Code that uses the name, the place that must be found marked."""
    module, path = parts(symbol)
    parent, _, leaf = module.rpartition(".")
    short = symbol.removeprefix("torch.")
    yield "full", f"import torch\n\nfound = «{symbol}»\n"
    yield "torch-as", f"import torch as th\n\nfound = «th.{short}»\n"
    yield "in-method", (
        f"import torch\n\n\nclass User:\n    def use(self):\n        found = «{symbol}»\n"
    )
    yield "module-assigned", f"import torch\n\ndev = {module}\nfound = «dev.{path}»\n"
    if parent:
        yield "module-imported", f"import {module}\n\nfound = «{symbol}»\n"
        yield "module-as", f"import {module} as m\n\nfound = «m.{path}»\n"
        yield "from-parent", f"from {parent} import {leaf}\n\nfound = «{leaf}.{path}»\n"
        yield "from-parent-as", f"from {parent} import {leaf} as c\n\nfound = «c.{path}»\n"
    if symbol in MODULES:
        yield "import", f"import «{symbol}»\n\nfound = {symbol}\n"
        yield "import-as", f"import «{symbol} as m»\n\nfound = m\n"
    if FLAGS.search(symbol):
        yield "set", f"import torch\n\n«{symbol}» = False\n"
        yield "set-alias", f"import {module} as m\n\n«m.{path}» = False\n"
    elif "." in path:
        owner = path.partition(".")[0]
        yield "from", f"from {module} import {owner}\n\nfound = «{path}»\n"
    else:
        yield "from", f"from {module} import «{path}»\n\nfound = {path}\n"
        yield "from-as", f"from {module} import «{path} as mine»\n\nfound = mine\n"
        yield "from-among-others", (
            f"from {module} import (\n    this,\n    «{path}»,\n    that,\n)\n\nfound = {path}\n"
        )


class Case(NamedTuple):
    symbol: str
    spelling: str
    code: Marked


CASES = [
    Case(symbol, spelling, marked(code)) for symbol in NAMES for spelling, code in spellings(symbol)
]

UNDECIDABLE = {
    # An attribute becomes a call, which an import cannot say.
    ("torch.has_cuda", "from"),
    ("torch.has_cuda", "from-as"),
    ("torch.has_cuda", "from-among-others"),
}


def fix_is_due(case: Case) -> bool:
    return counterpart(case.symbol) is not None and (case.symbol, case.spelling) not in UNDECIDABLE


KNOWN_BUGS: list[tuple[str, str, str]] = []


def parametrized(test: str, cases: list[Case]) -> Any:
    """The cases of one test, those that a known bug spoils marked."""
    found = []
    for case in cases:
        name = f"{case.symbol}-{case.spelling}"
        marks = [
            pytest.mark.xfail(strict=True, reason=reason)
            for of_test, pattern, reason in KNOWN_BUGS
            if of_test == test and re.fullmatch(pattern, name)
        ]
        found.append(pytest.param(case, id=name, marks=marks[:1]))
    return pytest.mark.parametrize("case", found)


def codes_at(code: Marked, target: Target) -> list[tuple[str, str]]:
    """Rule and text of each finding that touches the marked place."""
    return [
        (finding.rule.code, code.text[finding.span.start : finding.span.end])
        for finding in findings_at(code, target)
    ]


def remaining_codes(text: str, target: Target) -> set[str]:
    """The rules still broken, but for the neighbours that were there before."""
    found = ((f.rule.code, text[f.span.start : f.span.end]) for f in findings(text, target))
    return {code for code, place in found if place not in ("this", "that")}


@parametrized("found", CASES)
def test_a_name_is_found_where_it_stands(case: Case) -> None:
    assert codes_at(case.code, TARGET) == [(rule_of(case.symbol), case.code.place)]


@parametrized("fixed", [case for case in CASES if fix_is_due(case)])
def test_the_fix_leads_to_the_counterpart(case: Case) -> None:
    text = fixed(case.code.text, TARGET)
    assert name_of_found(text) == counterpart(case.symbol)
    assert import_problems(text) == []
    assert rule_of(case.symbol) not in remaining_codes(text, TARGET)
    assert fixed(text, TARGET) == text


@parametrized("kept", [case for case in CASES if not fix_is_due(case)])
def test_what_has_no_counterpart_has_no_fix_and_stays_a_finding(case: Case) -> None:
    assert [finding.fixes for finding in findings_at(case.code, TARGET)] == [()]
    text = fixed(case.code.text, TARGET)
    leaf = case.symbol.rpartition(".")[2]
    assert any(leaf in text[f.span.start : f.span.end] for f in findings(text, TARGET))


def test_every_fact_is_tested_or_needs_no_finding() -> None:
    pass
