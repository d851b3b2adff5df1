"""Every fact about `torch.cuda`, in every spelling, from the code to the finding and its fix.

What is expected comes from the list of facts and from the tables below, not from the rules.
"""

import re
from collections.abc import Iterator
from itertools import groupby
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
    "torch.backends.cudnn.deterministic": "the function refuses operators, the flag never did",
    "torch.cuda.get_device_capability": "it is None on the NPU",
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
    for name in [
        "_sanitizer",
        "amp",
        "comm",
        "gds",
        "graphs",
        "green_contexts",
        "jiterator",
        "memory",
        "nccl",
        "nvtx",
        "profiler",
        "random",
        "sparse",
        "streams",
        "tunable",
    ]
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
    yield (
        "in-method",
        (f"import torch\n\n\nclass User:\n    def use(self):\n        found = «{symbol}»\n"),
    )
    yield "module-assigned", f"import torch\n\ndev = {module}\nfound = «dev.{path}»\n"
    if parent:
        yield "module-imported", f"import {module}\n\nfound = «{symbol}»\n"
        yield "module-as", f"import {module} as m\n\nuse(«m.{path}»)\n"
        yield "from-parent", f"from {parent} import {leaf}\n\nuse(«{leaf}.{path}»)\n"
        yield "from-parent-as", f"from {parent} import {leaf} as c\n\nfound = «c.{path}»\n"
    if symbol in MODULES:
        yield "import", f"import «{symbol}»\n\nfound = {symbol}\n"
        yield "import-as", f"import «{symbol} as m»\n\nfound = m\n"
    if symbol == "torch.backends.cudnn.enabled":
        pass  # there is no cuDNN to turn on or off, see test_layout.py
    elif FLAGS.search(symbol):
        # To what an option says: some values ask for nothing on the NPU, see test_layout.py.
        yield "set", f"import torch\n\n«{symbol}» = options.wanted\n"
        yield "set-alias", f"import {module} as m\n\n«m.{path}» = options.wanted\n"
    elif "." in path:
        owner = path.partition(".")[0]
        yield "from", f"from {module} import {owner}\n\nfound = «{path}»\n"
    else:
        yield "from", f"from {module} import «{path}»\n\nfound = {path}\n"
        yield "from-as", f"from {module} import «{path} as mine»\n\nfound = mine\n"
        yield (
            "from-among-others",
            (f"from {module} import (\n    this,\n    «{path}»,\n    that,\n)\n\nfound = {path}\n"),
        )


class Case(NamedTuple):
    symbol: str
    spelling: str
    code: Marked


CASES = [
    Case(symbol, spelling, marked(code)) for symbol in NAMES for spelling, code in spellings(symbol)
]

CASES_OF = {symbol: list(cases) for symbol, cases in groupby(CASES, key=lambda case: case.symbol)}
"""In one test for each symbol: one for each spelling would take longer to start than to run."""

UNDECIDABLE = {
    # An attribute becomes a call, which an import cannot say.
    ("torch.has_cuda", "from"),
    ("torch.has_cuda", "from-as"),
    ("torch.has_cuda", "from-among-others"),
}


BY_ALIAS = ("module-as", "module-assigned", "from-parent", "from-parent-as", "from", "from-as")
"""Where the line that binds a name is fixed, and those that use it stay as they are."""


def fix_is_due(case: Case) -> bool:
    return counterpart(case.symbol) is not None and (case.symbol, case.spelling) not in UNDECIDABLE


def parametrized(cases: list[Case]) -> Any:
    """The cases of one test, by symbol and spelling."""
    found = [pytest.param(case, id=f"{case.symbol}-{case.spelling}") for case in cases]
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


@pytest.mark.family(60)
@pytest.mark.parametrize("symbol", NAMES)
def test_a_name_is_found_where_it_stands_and_becomes_its_counterpart(symbol: str) -> None:
    for case in CASES_OF[symbol]:
        is_found_and_becomes_its_counterpart(case)


def is_found_and_becomes_its_counterpart(case: Case) -> None:
    assert codes_at(case.code, TARGET) == [(rule_of(case.symbol), case.code.place)]
    text = fixed(case.code.text, TARGET)
    if fix_is_due(case):
        assert name_of_found(text) == counterpart(case.symbol)
        assert import_problems(text) == []
        assert rule_of(case.symbol) not in remaining_codes(text, TARGET)
        assert fixed(text, TARGET) == text
        stays = counterpart(case.symbol) == case.symbol.replace("torch.cuda.", "torch.npu.")
        if stays and case.spelling in BY_ALIAS:
            assert text.splitlines()[-1] == case.code.text.splitlines()[-1]
    else:
        assert [finding.fixes for finding in findings_at(case.code, TARGET)] == [()]
        if case.symbol in FAILS_WHERE_ASKED:
            text = text.replace("use(", "found = (") + "bad = found()[0]\n"
        assert still_found(case.symbol, text, TARGET)


FAILS_WHERE_ASKED = {"torch.cuda.get_device_capability"}
"""What the NPU has by that name, too, with a result that nothing can be asked of."""


def still_found(symbol: str, text: str, target: Target) -> bool:
    """Whether a name is a finding wherever else the fixes of its surroundings left it."""
    leaf = symbol.rpartition(".")[2]
    found = findings(text, target)
    if symbol in FAILS_WHERE_ASKED:
        return any(f.arguments.get("symbol") == symbol for f in found)
    return any(leaf in text[f.span.start : f.span.end] for f in found)


# Members of classes, reached through an instance.

INSTANCES = {
    "variable": "import torch\n\ngraph = torch.cuda.CUDAGraph()\nfound = «graph.{}»\n",
    "torch-as": "import torch as th\n\ngraph = th.cuda.CUDAGraph()\nfound = «graph.{}»\n",
    "from": "from torch.cuda import CUDAGraph\n\ngraph = CUDAGraph()\nfound = «graph.{}»\n",
    "module-as": "import torch.cuda as c\n\ngraph = c.CUDAGraph()\nfound = «graph.{}»()\n",
    "attribute": (
        "import torch\n\n\nclass Runner:\n    def __init__(self):\n"
        "        self.graph = torch.cuda.CUDAGraph()\n\n"
        "    def run(self):\n        found = «self.graph.{}»\n"
    ),
}
MEMBERS = [symbol for symbol in NAMES if symbol.startswith("torch.cuda.CUDAGraph.")]
UNSUPPORTED_MEMBERS = [
    Case(symbol, spelling, marked(code.format(symbol.rpartition(".")[2])))
    for symbol in MEMBERS
    if FACTS[symbol].status == "unsupported"
    for spelling, code in INSTANCES.items()
]
SUPPORTED_MEMBERS = [
    Case(symbol, "variable", marked(INSTANCES["variable"].format(symbol.rpartition(".")[2])))
    for symbol in MEMBERS
    if FACTS[symbol].status != "unsupported"
]


@parametrized(UNSUPPORTED_MEMBERS)
def test_an_unsupported_member_of_an_instance_is_found(case: Case) -> None:
    assert codes_at(case.code, TARGET) == [("NPU103", case.code.place)]
    assert [finding.fixes for finding in findings_at(case.code, TARGET)] == [()]


@parametrized(UNSUPPORTED_MEMBERS)
def test_an_unsupported_member_stays_a_finding_when_the_class_is_fixed(case: Case) -> None:
    text = fixed(case.code.text, TARGET)
    assert "NPUGraph" in text
    assert still_found(case.symbol, text, TARGET)


@parametrized(SUPPORTED_MEMBERS)
def test_a_member_that_the_npu_has_is_no_finding_once_its_class_is(case: Case) -> None:
    assert codes_at(case.code, TARGET) == []
    assert [f.rule.code for f in findings(case.code.text, TARGET)] == ["NPU102"]


# Methods and properties.

HEADERS = {
    "full": "import torch\n",
    "torch-as": "import torch as th\n",
    "from": "from torch import nn, ones\n",
}
METHOD_USES = {
    "torch.Tensor.cuda": {
        "parameter": "x.«cuda»()",
        "result": "torch.ones(2).«cuda»(non_blocking=True)",
        "device-given": "x.«cuda»(rank)",
        "in-chain": "x.detach().«cuda»().float()",
    },
    "torch.nn.Module.cuda": {
        "parameter": "model.«cuda»()",
        "result": "torch.nn.Linear(2, 2).«cuda»()",
        "attribute": "rank.network.«cuda»()",
    },
    "torch.UntypedStorage.cuda": {"result": "x.untyped_storage().«cuda»()"},
    "torch.Tensor.is_cuda": {
        "parameter": "x.«is_cuda»",
        "result": "torch.ones(2).«is_cuda»",
        "negated": "not x.«is_cuda»",
    },
    "torch.storage.TypedStorage.is_cuda": {"result": "x.storage().«is_cuda»"},
    "torch.UntypedStorage.is_cuda": {"result": "x.untyped_storage().«is_cuda»"},
    "torch.Tensor.__cuda_array_interface__": {"parameter": "x.«__cuda_array_interface__»"},
}
METHOD_RULES = {"cuda": "NPU105", "is_cuda": "NPU106", "__cuda_array_interface__": "NPU103"}


def in_function(header: str, expression: str) -> Marked:
    """Code around an expression that speaks of torch in the way of the header."""
    if header == HEADERS["torch-as"]:
        expression = re.sub(r"\btorch\.", "th.", expression)
    elif header.startswith("from"):
        expression = expression.replace("torch.", "")
    arguments = "x, model, rank, ranks, path, data"
    return marked(f"{header}\n\ndef use({arguments}):\n    return {expression}\n")


METHOD_CASES = [
    Case(symbol, f"{spelling}-{use}", in_function(header, expression))
    for symbol, uses in METHOD_USES.items()
    for use, expression in uses.items()
    for spelling, header in HEADERS.items()
]


@parametrized(METHOD_CASES)
def test_a_method_is_found_by_its_name_and_becomes_its_counterpart(case: Case) -> None:
    assert codes_at(case.code, TARGET) == [(METHOD_RULES[case.code.place], case.code.place)]
    becomes = counterpart(case.symbol)
    text = fixed(case.code.text, TARGET)
    if becomes is None:
        assert [finding.fixes for finding in findings_at(case.code, TARGET)] == [()]
        assert text == case.code.text
    else:
        assert text == with_plugin(case.code.with_place(becomes.rpartition(".")[2]))
        assert findings(text, TARGET) == ()


@pytest.mark.parametrize("symbol", [symbol for symbol in METHOD_USES if symbol.endswith(".cuda")])
def test_a_method_named_through_its_class_is_found(symbol: str) -> None:
    """A property cannot be handed on like this."""
    text = f"import torch\n\nfound = list(map({symbol}, data))\n"
    assert [finding.rule.code for finding in findings(text, TARGET)] == ["NPU105"]


def with_plugin(text: str) -> str:
    """The text with torch_npu imported behind its first line, which imports torch."""
    return text.replace("\n", "\nimport torch_npu  # noqa: F401\n", 1)


# Strings that name a device or a backend.


class Call(NamedTuple):
    callable: str
    arguments: dict[str, str]
    indexed: bool = False
    """Whether `cuda:1` is an answer too."""
    rule: str = "NPU110"


BY_POSITION_AND_NAME = {"position": "{}", "keyword": "device={}"}
CALLS = {
    'torch.device("cuda")': Call("device", {"position": "{}", "keyword": "type={}"}, True),
    'torch.Stream(device="cuda")': Call("Stream", BY_POSITION_AND_NAME, True),
    'torch.Event(device="cuda")': Call("Event", BY_POSITION_AND_NAME, True),
    'torch.Generator(device="cuda")': Call("Generator", BY_POSITION_AND_NAME, True),
    'torch.load(map_location="cuda")': Call(
        "load", {"position": "path, {}", "keyword": "path, map_location={}"}, True
    ),
    'torch.get_device_module("cuda")': Call("get_device_module", BY_POSITION_AND_NAME),
    'torch.random.fork_rng(device_type="cuda")': Call(
        "random.fork_rng", {"keyword": "device_type={}"}
    ),
    'torch.utils.data.DataLoader(pin_memory_device="cuda")': Call(
        "utils.data.DataLoader", {"keyword": "data, pin_memory=True, pin_memory_device={}"}, True
    ),
    'torch.autocast("cuda")': Call(
        "autocast", {"position": "{}", "keyword": "device_type={}"}, rule="NPU302"
    ),
    'torch.amp.autocast("cuda")': Call(
        "amp.autocast", {"position": "{}", "keyword": "device_type={}"}, rule="NPU302"
    ),
    'torch.amp.custom_fwd(device_type="cuda")': Call(
        "amp.custom_fwd", {"keyword": "device_type={}"}, rule="NPU302"
    ),
    'torch.amp.custom_bwd(device_type="cuda")': Call(
        "amp.custom_bwd", {"keyword": "device_type={}"}, rule="NPU302"
    ),
    'torch.is_autocast_enabled("cuda")': Call(
        "is_autocast_enabled", {"position": "{}"}, rule="NPU302"
    ),
    'torch.distributed.init_process_group(backend="nccl")': Call(
        "distributed.init_process_group",
        {"position": "{}", "keyword": "backend={}", "keyword-later": "rank=rank, backend={}"},
        rule="NPU201",
    ),
    'torch.distributed.new_group(backend="nccl")': Call(
        "distributed.new_group",
        {"position": "ranks, None, {}", "keyword": "ranks, backend={}"},
        rule="NPU201",
    ),
}
NEW_WORDS = {"cuda": "npu", "nccl": "hccl"}
ANOTHER_WAY = {
    'torch.is_autocast_enabled("cuda")': "the same question, with the device type as its argument"
}


def literals(word: str, indexed: bool) -> dict[str, str]:
    found = {"plain": f'"{word}"', "single-quoted": f"'{word}'"}
    if indexed:
        found |= {"indexed": f'"{word}:1"', "f-string": f'f"{word}:{{rank}}"'}
    return found


def call_spellings(name: str) -> dict[str, tuple[str, str]]:
    """Header, and what the callable is called below it."""
    module, _, leaf = f"torch.{name}".rpartition(".")
    found = {
        "full": ("import torch\n", f"torch.{name}"),
        "torch-as": ("import torch as th\n", f"th.{name}"),
        "from": (f"from {module} import {leaf}\n", leaf),
        "module-assigned": (f"import torch\n\ndev = {module}\n", f"dev.{leaf}"),
    }
    if module != "torch":
        found["module-imported"] = (f"import {module}\n", f"torch.{name}")
        found["module-as"] = (f"import {module} as m\n", f"m.{leaf}")
    return found


def call_cases() -> Iterator[Case]:
    for symbol, call in CALLS.items():
        old = "nccl" if "nccl" in symbol else "cuda"
        for spelling, (header, callee) in call_spellings(call.callable).items():
            for how, arguments in call.arguments.items():
                for kind, literal in literals(old, call.indexed).items():
                    given = arguments.format(f"«{literal}»")
                    code = in_function(header, f"{callee}({given})")
                    yield Case(symbol, f"{spelling}-{how}-{kind}", code)


CALL_CASES = list(call_cases())


def with_new_words(text: str) -> str:
    return re.sub("|".join(NEW_WORDS), lambda match: NEW_WORDS[match.group()], text)


def expected_text(code: Marked) -> str:
    return with_plugin(code.with_place(with_new_words(code.place)))


@pytest.mark.parametrize("symbol", CALLS)
def test_the_facts_name_the_same_words(symbol: str) -> None:
    new = FACTS[symbol].counterpart
    assert new == with_new_words(symbol) or new in with_new_words(symbol) or symbol in ANOTHER_WAY


@pytest.mark.family(60)
@parametrized(CALL_CASES)
def test_a_word_given_to_a_call_is_found_and_becomes_the_other(case: Case) -> None:
    assert codes_at(case.code, TARGET) == [(CALLS[case.symbol].rule, case.code.place)]
    text = fixed(case.code.text, TARGET)
    assert text == expected_text(case.code)
    assert findings(text, TARGET) == ()


WORDS = {
    "torch.Tensor.to": (
        "NPU110",
        {
            "position": "x.to({})",
            "keyword": "x.to(device={})",
            "with-type": "x.to({}, torch.float16, non_blocking=True)",
            "in-chain": "torch.ones(2).to({}).sum()",
        },
    ),
    "torch.nn.Module.to": (
        "NPU110",
        {"position": "torch.nn.Linear(2, 2).to({})", "keyword": "model.to(device={})"},
    ),
    "torch.nn.Module.to_empty": ("NPU110", {"keyword": "model.to_empty(device={})"}),
    "torch.Tensor.pin_memory": (
        "NPU110",
        {"position": "x.pin_memory({})", "keyword": "x.pin_memory(device={})"},
    ),
    "torch.Tensor.is_pinned": (
        "NPU110",
        {"position": "x.is_pinned({})", "keyword": "x.is_pinned(device={})"},
    ),
    '"cuda"': (
        "NPU110",
        {
            "factory": "torch.zeros(2, device={})",
            "chosen": "torch.ones(2, device={} if rank else 'cpu')",
            "dictionary": "dict(path, device={})",
            "entry": 'path | {{"device": {}}}',
            "keyword-of-anything": "path(device={})",
            "default": "(lambda device={}: device)",
        },
    ),
    "torch.Tensor.device": (
        "NPU111",
        {
            "equal": "x.device.type == {}",
            "unequal": "x.device.type != {}",
            "turned": "{} == x.device.type",
            "start": "str(x.device).startswith({})",
        },
    ),
    'torch.distributed.get_backend()=="nccl"': (
        "NPU201",
        {
            "equal": "torch.distributed.get_backend() == {}",
            "unequal": "torch.distributed.get_backend(path) != {}",
            "turned": "{} == torch.distributed.get_backend()",
            "member": "torch.distributed.get_backend() in ({}, 'gloo')",
        },
    ),
}


def word_cases() -> Iterator[Case]:
    for symbol, (rule, uses) in WORDS.items():
        word = "nccl" if rule == "NPU201" else "cuda"
        for how, expression in uses.items():
            for kind, literal in literals(word, rule == "NPU110").items():
                for spelling in ("full", "torch-as"):
                    code = in_function(HEADERS[spelling], expression.format(f"«{literal}»"))
                    yield Case(symbol, f"{spelling}-{how}-{kind}", code)


WORD_CASES = list(word_cases())


@pytest.mark.family(40)
@parametrized(WORD_CASES)
def test_a_word_is_found_where_a_device_or_a_backend_is_meant(case: Case) -> None:
    assert codes_at(case.code, TARGET) == [(WORDS[case.symbol][0], case.code.place)]
    text = fixed(case.code.text, TARGET)
    assert text == expected_text(case.code)
    assert findings(text, TARGET) == ()


DEFAULT_TYPE = "torch.set_default_tensor_type(torch.cuda.FloatTensor)"
DEFAULT_TYPES = [
    Case(DEFAULT_TYPE, spelling, marked(code))
    for spelling, code in {
        "full": "import torch\n\ntorch.set_default_tensor_type(«torch.cuda.FloatTensor»)\n",
        "keyword": "import torch\n\ntorch.set_default_tensor_type(t=«torch.cuda.HalfTensor»)\n",
        "torch-as": "import torch as th\n\nth.set_default_tensor_type(«th.cuda.FloatTensor»)\n",
        "from": (
            "import torch\nfrom torch import set_default_tensor_type\n\n"
            "set_default_tensor_type(«torch.cuda.FloatTensor»)\n"
        ),
        "string": "import torch\n\ntorch.set_default_tensor_type(«'torch.cuda.FloatTensor'»)\n",
    }.items()
]


@parametrized(DEFAULT_TYPES)
def test_a_default_tensor_type_is_found_and_changed_by_hand(case: Case) -> None:
    """It takes no type of the NPU; two calls do together what it did."""
    assert codes_at(case.code, TARGET) == [("NPU107", case.code.place)]
    assert "torch.set_default_device" in findings_at(case.code, TARGET)[0].message("en")
    assert fixed(case.code.text, TARGET) == case.code.text


# Environment variables.

ENVIRONMENT_USES = {
    "set": "import os\n\nos.environ[«{}»] = '1'\n",
    "read": "import os\n\nfound = os.getenv(«{}»)\n",
    "asked": "import os\n\nfound = «{}» in os.environ\n",
    "from": "from os import environ\n\nfound = environ.get(«{}», '0')\n",
    "module-as": "import os as system\n\nsystem.environ.setdefault(«{}», '0')\n",
    "deleted": "import os\n\ndel os.environ[«{}»]\n",
    "handed-on": "import subprocess\n\nsubprocess.run(['ls'], env={{«{}»: '0'}})\n",
}
WISHES = frozenset({"set", "module-as", "handed-on"})
"""The uses that set a variable. Only to ask for one that cannot be renamed does no harm."""
OTHER_RANGE = frozenset({"env:PYTORCH_CUDA_ALLOC_CONF", "env:NCCL_IB_TC", "env:NCCL_IB_TIMEOUT"})
"""The value of the tests is none that their counterparts take."""
OTHER_VALUES = frozenset({"env:NCCL_BUFFSIZE", "env:NCCL_ALGO", "env:CUDA_HOME"})
"""They have a counterpart whose values are others."""
ENVIRONMENT = [
    Case(symbol, use, marked(code.format(f'"{symbol.removeprefix("env:")}"')))
    for symbol in FACTS
    if symbol.startswith("env:") and symbol not in NO_FINDING
    for use, code in ENVIRONMENT_USES.items()
]


@parametrized(ENVIRONMENT)
def test_a_variable_is_found_and_becomes_its_counterpart(case: Case) -> None:
    becomes = counterpart(case.symbol)
    if case.spelling not in WISHES and (becomes is None or case.symbol in OTHER_VALUES):
        assert codes_at(case.code, TARGET) == []
        return
    assert codes_at(case.code, TARGET) == [("NPU901", case.code.place)]
    text = fixed(case.code.text, TARGET)
    if becomes is None:
        assert [finding.fixes for finding in findings_at(case.code, TARGET)] == [()]
        assert text == case.code.text
    else:
        assert text == case.code.with_place(f'"{becomes}"')
        found = [finding.rule.code for finding in findings(text, TARGET)]
        assert found == ["NPU908"] * len(found) if case.symbol in OTHER_RANGE else found == []


# What is right as it is.

AS_IT_IS = {
    "torch.Tensor.record_stream": "x.record_stream(stream)",
    "torch.Tensor.device": "y = torch.zeros(2, device=x.device)",
    "env:CUDA_DEVICE_MAX_CONNECTIONS": "os.environ['CUDA_DEVICE_MAX_CONNECTIONS'] = '1'",
}


@pytest.mark.parametrize("symbol", NO_FINDING)
@pytest.mark.parametrize("target", [TARGET, AGNOSTIC, SHIM], ids=lambda target: target.style.value)
def test_what_has_the_same_name_is_no_finding(symbol: str, target: Target) -> None:
    assert findings(f"import os\n\nimport torch\n\n{AS_IT_IS[symbol]}\n", target) == ()


def test_every_fact_is_tested_or_needs_no_finding() -> None:
    tested = {*NAMES, *METHOD_USES, *CALLS, *WORDS, DEFAULT_TYPE, *(c.symbol for c in ENVIRONMENT)}
    assert len(FACTS) == len(AT_RUN_TIME) == 365
    assert tested | NO_FINDING.keys() == FACTS.keys() == AT_RUN_TIME.keys()
    assert NO_FINDING.keys() == AS_IT_IS.keys()
    assert BY_HAND.keys() | ANOTHER_WAY.keys() <= tested


# Device-agnostic style.

ACCELERATOR = {
    # torch.accelerator as PyTorch 2.6 brought it.
    "torch.cuda.current_device": "torch.accelerator.current_device_index",
    "torch.cuda.current_stream": "torch.accelerator.current_stream",
    "torch.cuda.device_count": "torch.accelerator.device_count",
    "torch.cuda.is_available": "torch.accelerator.is_available",
    "torch.cuda.set_device": "torch.accelerator.set_device_index",
    "torch.cuda.set_stream": "torch.accelerator.set_stream",
    "torch.cuda.synchronize": "torch.accelerator.synchronize",
}


@parametrized([case for case in CASES if case.symbol in ACCELERATOR])
def test_agnostic_style_asks_the_accelerator(case: Case) -> None:
    text = fixed(case.code.text, AGNOSTIC)
    assert name_of_found(text) == ACCELERATOR[case.symbol]
    assert "npu" not in text
    assert rule_of(case.symbol) not in remaining_codes(text, AGNOSTIC)
    assert fixed(text, AGNOSTIC) == text


@pytest.mark.family(60)
@parametrized(
    [
        case
        for case in CASES
        if case.spelling in ("full", "module-as", "from")
        and fix_is_due(case)
        and case.symbol not in ACCELERATOR
    ],
)
def test_agnostic_style_names_no_other_vendor(case: Case) -> None:
    text = fixed(case.code.text, AGNOSTIC)
    assert not re.search("npu|hccl", text)
    assert import_problems(text) == []


INTRODUCED = (
    'device = torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")'
)
AGNOSTIC_TEXTS = {
    "x.cuda()": "x.to(device)",
    "x.cuda(non_blocking=True)": "x.to(device, non_blocking=True)",
    "x.is_cuda": 'x.device.type != "cpu"',
    'torch.zeros(2, device="cuda")': "torch.zeros(2, device=device)",
    'torch.Generator(device="cuda")': "torch.Generator(device=device)",
    'x.to(f"cuda:{rank}")': 'x.to(f"{device.type}:{rank}")',
    'x.device.type == "cuda"': 'x.device.type != "cpu"',
}


@pytest.mark.parametrize("before", AGNOSTIC_TEXTS)
def test_agnostic_style_asks_for_the_device(before: str) -> None:
    code, after = "\n\ndef use(x, rank):\n    return {}\n", AGNOSTIC_TEXTS[before]
    text = fixed(f"import torch\n{code.format(before)}", AGNOSTIC)
    introduced = f"\n{INTRODUCED}\n" if re.search(r"(?<!\.)\bdevice\b(?!=)", after) else ""
    assert text == f"import torch\n{introduced}{code.format(after)}"
    assert findings(text, AGNOSTIC) == ()


# Migration at run time.

SHIM_IMPORT = "from torch_npu.contrib import transfer_to_npu\n"
ONE_OF_EACH = [
    *(case for case in CASES if case.spelling in ("full", "module-as", "from")),
    *(case for case in METHOD_CASES if case.spelling.startswith("full-")),
    *(case for case in CALL_CASES if re.match("(full|from)-.*-plain", case.spelling)),
    *(
        case
        for case in WORD_CASES
        if case.spelling.startswith("full-")
        and case.symbol not in ('"cuda"', "torch.Tensor.device")
    ),
    *DEFAULT_TYPES[:1],
    *(case for case in ENVIRONMENT if case.spelling == "set"),
]


@pytest.mark.family(80)
@parametrized(ONE_OF_EACH)
def test_the_shim_silences_what_it_patches_and_nothing_else(case: Case) -> None:
    first_line, _, rest = case.code.text.partition("\n")
    in_file = f"{first_line}\n{SHIM_IMPORT}{rest}"
    moved = Marked(in_file, case.code.start + len(SHIM_IMPORT), case.code.end + len(SHIM_IMPORT))
    # What `from torch import ...` takes before the shim is not patched; see test_run_time.py.
    if case.code.start < len(first_line) or first_line.startswith("from"):
        in_file = f"import torch\n{SHIM_IMPORT}{case.code.text}"
        distance = len(in_file) - len(case.code.text)
        moved = Marked(in_file, case.code.start + distance, case.code.end + distance)
    expected = codes_at(case.code, TARGET)
    assert expected
    if AT_RUN_TIME[case.symbol].patched:
        expected = []
    assert codes_at(case.code, SHIM) == expected
    assert codes_at(moved, TARGET) == expected


SILENT = ("torch.ones(2, device={})", "x.to({})", "dict(device={})", "torch.load(path, {})")
LOUD = {
    "torch.device({})": "NPU110",
    "x.device.type == {}": "NPU111",
    "str(x.device).startswith({})": "NPU111",
}


@pytest.mark.parametrize("use", [*SILENT, *LOUD])
def test_the_shim_and_the_word_cuda(use: str) -> None:
    code = in_function(HEADERS["full"], use.format('«"cuda"»'))
    expected = [(LOUD[use], '"cuda"')] if use in LOUD else []
    assert codes_at(code, SHIM) == expected


# Versions of torch_npu.

YOUNG = [
    case
    for case in CASES
    if AT_RUN_TIME[case.symbol].since and case.spelling in ("full", "module-as", "from")
]


@parametrized(YOUNG)
def test_a_name_that_the_target_lacks_is_unsupported(case: Case) -> None:
    since = TorchVersion(*map(int, AT_RUN_TIME[case.symbol].since.split(".")))
    older = Target(TorchVersion(since.major, since.minor - 1))
    (finding,) = findings_at(case.code, older)
    assert codes_at(case.code, older) == [("NPU103", case.code.place)]
    assert finding.fixes == ()
    assert str(since) in finding.message("en")
    assert str(since) in finding.message("zh")
    for version in (since, TorchVersion(2, 8)):
        (finding,) = findings_at(case.code, Target(version))
        assert finding.rule.code == "NPU101"
        assert finding.fixes


@parametrized(YOUNG)
def test_what_the_target_lacks_stays_a_finding_when_the_rest_is_fixed(case: Case) -> None:
    since = TorchVersion(*map(int, AT_RUN_TIME[case.symbol].since.split(".")))
    older = Target(TorchVersion(since.major, since.minor - 1))
    text = fixed(case.code.text, older)
    assert still_found(case.symbol, text, older)
