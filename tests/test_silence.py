"""Why a place is silent: the counts of `check`, `--explain-silence`, and `npulens explain`."""

import csv
import json
import re
from pathlib import Path

import pytest

from commands import invoke
from helpers import CATALOGUE, check, code
from npulens.analysis import judge
from npulens.catalog.model import Target
from npulens.catalog.shipped_rules import rules_folder
from npulens.catalog.verdict_tables import read_reasons
from npulens.text.document import Document

CHINESE = re.compile(r"[\u4e00-\u9fff]")
SCRIPT = code(
    """
    import torch

    device = "npu" if is_npu_available() else "cuda"
    if device == "npu":
        torch.npu.synchronize()
    elif device == "cuda":
        torch.cuda.synchronize()
    model.cuda()
    """
)


def reasons(source: str) -> list[tuple[int, str, str]]:
    """The line, rule and reason of each settled place."""
    found = judge(Document("a.py", source), CATALOGUE, Target()).settled
    return [
        (source.count("\n", 0, f.span.start) + 1, f.rule.code, f.settlement.reason)
        for f in found
        if f.settlement is not None
    ]


def test_each_settled_place_has_a_reason() -> None:
    assert reasons(SCRIPT) == [
        (3, "NPU110", "npu-way-beside"),
        (6, "NPU111", "npu-way-beside"),
        (7, "NPU101", "npu-way-beside"),
    ]


REASONS = {
    "if not torch.cuda.is_available():\n    x.cuda()": "never-runs-on-npu",
    "if device.type == 'mps':\n    x.cuda()": "other-device",
    "if any((d.type == 'mps', torch.xpu.is_available())):\n    x.cuda()": "other-device",
    "if in_colab():\n    x.cuda()": "elsewhere",
    "ways = {'cuda': torch.cuda.synchronize, 'mps': torch.mps.synchronize}": "other-device",
    "if torch.version.cuda:\n    x.cuda()": "cuda-alone",
    "if torch.__version__ < '1.8':\n    x.cuda()": "older-torch",
    "if TORCH_MAJOR == 1 and TORCH_MINOR < 8:\n    x.cuda()": "older-torch",
    "if int(torch.__version__.split('.')[0]) == 1:\n    x.cuda()": "older-torch",
    "f = torch.rfft if hasattr(torch, 'rfft') else torch.fft.rfft": "older-torch",
    "try:\n    from torch._six import inf\nexcept ImportError:\n    inf = float('inf')": "fallback",
    "try:\n    import cupy, cupy.linalg\nexcept ImportError:\n    cupy = None": "fallback",
    "from pytorch_lightning import Trainer\nTrainer(progress_bar_refresh_rate=5)": "on-host",
    "print('cuda:0')": "text",
    "print(torch.version.cuda)": "text",
    "logger.info(f'built for {torch.version.cuda}')": "text",
    "x.cuda()  # npulens: ignore": "suppressed",
    "from torch.cuda.amp import autocast\nwith autocast():\n    pass": "reported-at-import",
    "def f():\n    from torch.cuda.amp import autocast\n\n    def g():\n"
    "        with autocast():\n            pass": "reported-at-import",
    "from torch.utils.cpp_extension import CUDAExtension as E\ne = E('a', [])": (
        "reported-at-build"
    ),
    "from torch import cuda\nfrom torch.cuda.amp import custom_fwd\n"
    "@custom_fwd\ndef forward(x):\n    cuda.synchronize()": "reported-at-import",
    "from torch.utils.cpp_extension import load\nbuild = load": "reported-at-import",
    "import torch.backends.cudnn as cudnn": "no-effect",
    "y = upfirdn(x, impl='cuda')\nif impl == 'ref':\n    pass": "own-word",
    "KINDS = ('ref', 'cuda')": "own-word",
    "def kind() -> Literal['io', 'cuda']:\n    return 'cuda'": "own-word",
    "def kind(fast):\n    if fast:\n        return 'cuda'\n    return 'plain'": "own-word",
    "name = 'ref' if slow else 'cuda'": "own-word",
    "state['cuda'] = 1": "own-word",
    "if 'cuda' in state:\n    put(state['cuda'])": "own-word",
    "state = config.get('cuda')": "own-word",
    "if hasattr(batch, 'cuda'):\n    pass": "own-word",
    "sources = os.path.join('ext', 'cuda')": "own-word",
    "sources = here / 'cuda'": "own-word",
    "def f(x, kind: Literal['cpu', 'cuda']):\n    pass": "type-only",
    "def f(graph):\n    for node in graph.findAllNodes('prim::Constant'):\n"
    "        if str(node['value']).startswith('cuda'):\n            pass": "no-effect",
    "def f(m):\n    layers = (torch.nn.Linear, torch.nn.TransformerEncoder)\n"
    "    return isinstance(m, layers)": "type-only",
    "ok = isinstance(m, torch.nn.TransformerEncoder)": "type-only",
    "from torch.utils import cpp_extension\nextension = cpp_extension.CppExtension\n"
    "if torch.cuda.is_available():\n    extension = cpp_extension.CUDAExtension": (
        "reported-at-build"
    ),
    "with torch.backends.cudnn.flags(enabled=False):\n    pass": "no-effect",
    "import apex\nstate = apex.amp": "reported-at-use",
    "from gsplat import rasterization as draw\ndraw(x)": "reported-at-import",
    "from apex import amp\nmodel = amp.initialize(model)": "reported-at-use",
    "import os\nlevel = os.environ.get('NCCL_DEBUG')": "no-effect",
    "TABLE = {'cuda': 'cuda:0', 'npu': 'npu:0'}": "npu-way-beside",
    "if hasattr(torch.nn.functional, 'scaled_dot_product_attention'):\n    kind = 'sdpa'\n"
    "else:\n    import xformers.ops\n    kind = 'other'\n"
    "def f(q):\n    return xformers.ops.memory_efficient_attention(q, q, q)": "older-torch",
    "try:\n    from apex import amp\nexcept ImportError:\n    amp = None\n"
    "def f(loss, optimizer):\n    with amp.scale_loss(loss, optimizer) as scaled:\n"
    "        scaled.backward()": "fallback",
}

UNKNOWN = (
    "library = 'nccl'",
    "kind = 'nccl'\nbuild(kind)",
    "def init_process_group(b): ...\ninit_process_group('nccl')",
    "y = upfirdn(x, impl='cuda')",
    "if self.mode == 'cuda':\n    pass",
    "if v != 'cuda':\n    pass",
    "MARKS = ('cuda error', 'nccl')",
    "seen.append(('cuda', 2))",
    "assert seen == ['cuda', 'mamba']",
    "KNOWN = ('cuda', 'xpu', 'mps')",
    "class Settings:\n    kind: Literal['auto', 'cuda']",
    "@torch.library.custom_op('a::b', device_types='cuda')\ndef f(x):\n    pass",
    "name = 'gpu' if old else 'cuda'",
    "if 'cuda' in text:\n    pass",
    "subprocess.run(['python', 'a.py', '--name', 'cuda'])",
)


@pytest.mark.parametrize("source", UNKNOWN)
def test_a_word_that_nothing_explains_is_a_question(source: str) -> None:
    judged = judge(Document("a.py", f"import torch\n{source}\n"), CATALOGUE, Target())
    assert [finding.effective_severity.value for finding in judged.findings] == ["info"]
    assert not judged.settled


def test_the_card_beside_the_host_is_no_other_device() -> None:
    check(
        "import torch\n"
        "KINDS = {'cpu': ⟦NPU502:torch.profiler.ProfilerActivity.CPU⟧,"
        " 'cuda': ⟦NPU502:torch.profiler.ProfilerActivity.CUDA⟧}\n"
    )
    check("import torch\nways = {'cuda': torch.cuda.synchronize, 'mps': torch.mps.synchronize}\n")


def test_what_takes_the_place_of_a_class_leaves_that_where_it_is_missing() -> None:
    taken = code(
        """
        from torch import nn


        class Norm(nn.Module):
            pass


        try:
            from apex.normalization import FusedRMSNorm

            Norm = FusedRMSNorm
        except ImportError:
            pass
        """
    )
    found = judge(Document("a.py", taken), CATALOGUE, Target()).findings
    assert [finding.rule.code for finding in found] == ["NPU613"]
    alone = taken.replace("class Norm", "class Other")
    found = judge(Document("a.py", alone), CATALOGUE, Target()).findings
    assert [finding.rule.code for finding in found] == ["NPU603"]


def test_a_release_of_cuda_that_is_only_recorded_is_information() -> None:
    severities = {
        "row = {'cuda': torch.version.cuda}": "info",
        "row['cuda'] = str(torch.version.cuda)": "info",
        "release = torch.version.cuda": "warning",
        "row = {'cuda': float(torch.version.cuda)}": "warning",
    }
    for source, severity in severities.items():
        document = Document("a.py", f"import torch\n{source}\n")
        (finding,) = judge(document, CATALOGUE, Target()).findings
        assert finding.effective_severity.value == severity


def test_random_numbers_for_no_device() -> None:
    check("import torch\nwith torch.random.fork_rng(devices=[]):\n    pass\n")
    check("import torch\nwith ⟦NPU501:torch.random.fork_rng⟧(devices=[0]):\n    pass\n")


def test_names_of_cases_are_text() -> None:
    cases = "@pytest.mark.parametrize('host', [True, False], ids=['cpu', 'cuda'])"
    assert reasons(f"import torch\n{cases}\ndef test_it(host):\n    pass\n") == [
        (2, "NPU110", "text")
    ]


def test_a_file_of_computed_figures_is_a_record() -> None:
    figures = [f"0.123456789{number}" for number in range(5)]
    for count, settled in ((5, True), (4, False)):
        text = json.dumps({"device": "cuda", "figures": [float(f) for f in figures[:count]]})
        judged = judge(Document("a.json", text), CATALOGUE, Target())
        assert bool(judged.settled) is settled
        assert bool(judged.findings) is not settled


def test_a_word_of_a_command_is_told_once() -> None:
    check("import torch\narguments = parse(['--epochs', '3', '--device', '⟦NPU902:cuda⟧'])\n")
    assert not reasons("import torch\narguments = parse(['--device', 'cuda'])\n")


TURN = """import torch
import torch.nn.functional as F


def turned(x, theta):
    grid = F.affine_grid(theta, x.size())WHERE
    return F.grid_sample(x, grid)
"""


@pytest.mark.parametrize(
    ("where", "settled"), [("", True), (".to(x.device)", False), (".to(device='cpu')", True)]
)
def test_data_are_prepared_on_the_host_unless_a_function_follows_a_device(
    where: str, *, settled: bool
) -> None:
    document = Document("training/augment.py", TURN.replace("WHERE", where))
    judged = judge(document, CATALOGUE, Target(torch_version=(2, 6)))
    assert any("grid_sample" in f.message("en") for f in judged.findings) is not settled
    assert {f.settlement.reason for f in judged.settled if f.settlement} == (
        {"file-role"} if settled else set()
    )


def test_the_shim_answers_no_question() -> None:
    source = "from torch_npu.contrib import transfer_to_npu\nsend(x, transport='nccl')\n"
    judged = judge(Document("a.py", f"import torch\n{source}"), CATALOGUE, Target())
    assert [finding.rule.code for finding in judged.findings] == ["NPU201"]


def test_keys_of_a_table_that_devices_are_looked_up_in_are_devices() -> None:
    table = """KERNELS = {"cpu": plain, ⟦NPU110:"cuda"⟧: quick}"""
    check(f"import torch\n{table}\nrun = KERNELS[x.device.type]\n")
    check(f"import torch\n{table}\nrun = KERNELS.get(device, plain)\n")
    names = """NAMES = {"cpu": "host", "cuda": "card"}"""
    check(f"import torch\n{names}\nprint(NAMES['cpu'])\n")


@pytest.mark.parametrize("source", REASONS)
def test_the_reason(source: str) -> None:
    assert {reason for _, _, reason in reasons(f"import torch\n{source}\n")} == {REASONS[source]}


def test_what_the_shim_makes_work_is_settled_not_left_out() -> None:
    """Without the import that patches the names each of them is found."""
    source = code(
        """
        import torch
        from torch_npu.contrib import transfer_to_npu
        from torch.cuda.amp import GradScaler

        device = "cuda" if torch.cuda.is_available() else "cpu"
        x = torch.ones(2, device="cuda").cuda()
        torch.distributed.init_process_group("nccl")
        x.is_cuda
        """
    )
    settled = [(line, rule) for line, rule, reason in reasons(source) if reason == "by-shim"]
    assert settled == [
        (3, "NPU301"),
        (5, "NPU110"),
        (5, "NPU101"),
        (6, "NPU110"),
        (6, "NPU105"),
        (7, "NPU201"),
        (8, "NPU106"),
    ]
    document = Document("a.py", source.replace("from torch_npu.contrib", "# "))
    found = judge(document, CATALOGUE, Target()).findings
    assert {rule for _, rule in settled} <= {finding.rule.code for finding in found}


def test_what_is_used_of_a_module_is_not_settled_beside_its_finding() -> None:
    """`cuda` of `cuda.synchronize()` is no place of its own."""
    source = (
        "from torch import cuda\nfrom torch.cuda import amp\ncuda.synchronize()\namp.autocast()\n"
    )
    assert not reasons(source)


def test_a_table_of_states_is_no_table_of_devices() -> None:
    check(
        "import torch\nstate = {'cpu': torch.get_rng_state(), "
        "'cuda': ⟦NPU101:torch.cuda.get_rng_state⟧()}"
    )
    check("import torch\nthere = {'npu': npu_there(), 'cuda': torch.cuda.is_available()}")


NO_FALLBACK = [
    # a handler that only says what is missing, or ends the program
    "import logging\ntry:\n    import xformers.ops\nexcept ImportError:\n"
    "    logging.error('missing')\ny = xformers.ops.memory_efficient_attention(q, k, v)",
    "try:\n    import apex\nexcept ImportError:\n    raise ImportError('needed')\n"
    "m = apex.parallel.convert_syncbn_model(m)",
    # where the program ends there is no other way, but the library is what has to be replaced
    "def f(on):\n    if on:\n        if not is_xformers_available():\n            raise E\n"
    "        x = torch.ones(2, device='cuda')\n    torch.cuda.synchronize()",
    # names settle nothing
    "def train_with_xformers(m, b):\n    torch.cuda.set_device(0)\n    return m.cuda()(b.cuda())",
    "def set_up(device, rank):\n    if device.type == 'cuda':\n        _set_up_cuda(rank)",
    # an arm for the NPU that does not do the same
    "if is_npu_available():\n    torch.npu.manual_seed(0)\n"
    "if torch.cuda.is_available():\n    m = torch.nn.DataParallel(m.cuda())",
    # where a tensor is is known at run time only
    "if not x.is_cuda:\n    x = x.cuda()",
    "if x.device.type == 'cpu':\n    x = x.cuda()",
    "if str(x.device) == 'cpu':\n    x = x.cuda()",
    "if self.device == 'cpu':\n    p.data = p.data.to(torch.cuda.current_device())",
]


@pytest.mark.parametrize("source", NO_FALLBACK)
def test_what_has_to_change_is_found(source: str) -> None:
    document = Document("a.py", f"import torch\n{source}\n")
    assert judge(document, CATALOGUE, Target()).findings
    found = {finding.rule.code for finding in judge(document, CATALOGUE, Target()).findings}
    assert found & {"NPU101", "NPU105", "NPU111", "NPU202", "NPU602", "NPU603"}


def test_every_reason_is_worded_in_both_languages() -> None:
    for wording in read_reasons(rules_folder()).values():
        for text in wording:
            assert text.en
            assert CHINESE.search(text.zh)


def test_check_counts_and_lists_what_is_settled(here: Path) -> None:
    (here / "a.py").write_text(SCRIPT)
    for _ in range(2):  # the second time from the cache
        _, output, _ = invoke("check", "a.py")
        counts = "3 with a way for the NPU beside them"
        last = f"3 places are settled ({counts}); --explain-silence lists them."
        assert output.splitlines()[-1] == last
    _, output, _ = invoke("check", "a.py", "--language", "zh")
    assert output.splitlines()[-1].startswith("3 处无需处理（3 已有 NPU 实现）")
    _, output, _ = invoke("check", "a.py", "--explain-silence")
    assert (
        "a.py:7:5: settled NPU101 cuda-api: `torch.cuda.synchronize`: "
        'the NPU has a way of its own here (line 4, `device == "npu"`) [npu-way-beside]'
    ) in output
    assert "共" not in output
    _, output, _ = invoke("check", "a.py", "--explain-silence", "--language", "zh")
    assert "无需处理 NPU101 cuda-api" in output


def test_no_reason_is_worded_where_nobody_asks(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "a.py").write_text(SCRIPT)

    def fail(*_: object) -> str:
        raise AssertionError

    for module in ("report.silence_text", "verdicts.overruling", "lsp.requests.hover"):
        monkeypatch.setattr(f"npulens.{module}.why_settled", fail)
    for options in ([], ["--fix", "--allow-dirty"], ["--output-format", "sarif"], ["--statistics"]):
        assert invoke("check", *options)[0] == (0 if "--fix" in options else 1)
        (here / "a.py").write_text(SCRIPT)
    with pytest.raises(AssertionError):
        invoke("check", "--explain-silence")


def test_settled_places_in_json(here: Path) -> None:
    (here / "a.py").write_text(SCRIPT)
    (here / "b.py").write_text("import torch\nif device == 'mps':\n    x.cuda()\n")
    plain = json.loads(invoke("check", "--output-format", "json")[1])
    assert all("verdict" not in record for record in plain)
    records = json.loads(invoke("check", "--output-format", "json", "--explain-silence")[1])
    settled = [r for r in records if r.get("verdict") == "settled"]
    assert [(r["path"], r["line"], r["reason"], r["because"]) for r in settled] == [
        ("a.py", 3, "npu-way-beside", {"line": 3, "column": 19}),
        ("a.py", 6, "npu-way-beside", {"line": 4, "column": 4}),
        ("a.py", 7, "npu-way-beside", {"line": 4, "column": 4}),
        ("b.py", 3, "other-device", {"line": 2, "column": 4}),
    ]


def test_settled_places_for_spreadsheets_and_in_one_line_each(here: Path) -> None:
    (here / "a.py").write_text("import torch\nif device == 'mps':\n    x.cuda()\n")
    why = "`cuda`: this is for another device (line 2, `device == 'mps'`) [other-device]"
    options = ("check", "--explain-silence", "--output-format")
    _, output, _ = invoke(*options, "concise")
    assert output == f"a.py:3:7: settled NPU105 cuda-method: {why}\n"
    heading, row = csv.reader(invoke(*options, "csv")[1].splitlines())
    cells = dict(zip(heading, row, strict=True))
    assert (cells["line"], cells["severity"], cells["message"]) == ("3", "settled", why)
    plain = invoke("check", "--output-format", "csv")[1]
    assert plain.count("\n") == 1


def test_settled_places_in_sarif(here: Path) -> None:
    (here / "a.py").write_text(SCRIPT)
    plain = invoke("check", "--output-format", "sarif")[1]
    (result,) = json.loads(plain)["runs"][0]["results"]
    assert "kind" not in result
    _, output, _ = invoke("check", "--output-format", "sarif", "--explain-silence")
    results = json.loads(output)["runs"][0]["results"]
    settled = [each for each in results if "kind" in each]
    assert [each for each in results if "kind" not in each] == [{**result}]
    assert len(settled) == 3
    assert {(each["kind"], each["level"]) for each in settled} == {("notApplicable", "none")}
    last = settled[-1]
    assert last["message"]["text"].startswith("`torch.cuda.synchronize`: the NPU has a way of its")
    assert last["properties"] == {"reason": "npu-way-beside"}
    (decides,) = last["relatedLocations"]
    assert decides["physicalLocation"]["region"]["startLine"] == 4
    _, output, _ = invoke(
        "check", "--output-format", "sarif", "--explain-silence", "--language", "zh"
    )
    last = json.loads(output)["runs"][0]["results"][-1]
    assert last["relatedLocations"][0]["message"]["text"] == "由此处决定"


def test_what_is_reported_elsewhere_is_informational_in_sarif(here: Path) -> None:
    (here / "a.py").write_text("import torch\n" + "torch.backends.cudnn.benchmark = True\n" * 2)
    _, output, _ = invoke("check", "--output-format", "sarif", "--explain-silence")
    results = json.loads(output)["runs"][0]["results"]
    kinds = {each["properties"]["reason"]: each["kind"] for each in results if "kind" in each}
    assert kinds == {"reported-once": "informational"}


@pytest.mark.parametrize("form", ["github", "gitlab", "junit"])
def test_what_knows_only_problems_lists_nothing_settled(here: Path, form: str) -> None:
    (here / "a.py").write_text(SCRIPT)
    code, output, errors = invoke("check", "--explain-silence", "--output-format", form)
    assert (code, output) == (2, "")
    assert f"lists what is no problem, and {form} knows only problems" in errors
    code, output, errors = invoke("check", "--explain-silence", "--statistics")
    assert (code, output) == (2, "")
    assert "--explain-silence lists places, and --statistics has none" in errors


def test_a_rule_that_is_off_is_a_reason(here: Path) -> None:
    (here / "a.py").write_text("import torch\nx.cuda()\n")
    _, output, _ = invoke("check", "a.py", "--ignore", "NPU105", "--explain-silence")
    assert "settled NPU105 cuda-method: `cuda`: the configuration turns the rule off" in output


@pytest.mark.parametrize("change", ["--fix", "--add-suppressions"])
def test_what_is_settled_is_that_of_a_changed_file(here: Path, change: str) -> None:
    (here / "a.py").write_text("import torch\nx.cuda()\nif device == 'mps':\n    y.cuda()\n")
    _, output, _ = invoke("check", "a.py", change, "--allow-dirty", "--explain-silence")
    line = 5 if change == "--fix" else 4  # behind the import that the fix adds
    assert f"a.py:{line}:7: settled NPU105 cuda-method: `cuda`: this is for another" in output


def test_explaining_a_line(here: Path) -> None:
    (here / "a.py").write_text(SCRIPT)
    assert invoke("explain", "a.py:8")[1].startswith("a.py:8:7: error NPU105 cuda-method: ")
    assert "settled NPU101" in invoke("explain", "a.py:7")[1]
    nothing = "a.py:1: npulens finds nothing in this line that belongs to CUDA.\n"
    assert invoke("explain", "a.py:1") == (0, nothing, "")
    assert "没有发现" in invoke("explain", "a.py:1", "--language", "zh")[1]


@pytest.mark.parametrize(
    "place", ["a.py", "a.py:0", "a.py:x", "a.py:²", f"a.py:{'9' * 5000}", "a.py:99", "missing.py:1"]
)
def test_what_names_no_line_is_refused(here: Path, place: str) -> None:
    (here / "a.py").write_text(SCRIPT)
    exit_code, output, errors = invoke("explain", place)
    assert (exit_code, output) == (2, "")
    assert errors.startswith("npulens: ")
    assert errors.count("\n") == 1


def test_what_only_a_missing_library_reaches_says_so() -> None:
    """`raise` is no fallback: the library that is asked for is what has to be replaced."""
    source = (
        "import torch\n\ndef check():\n    if not is_xformers_available():\n"
        "        raise ImportError('xformers')\n    return torch.ones(2, device='cuda')\n"
    )
    assert reasons(source) == [(6, "NPU110", "reported-with-library")]


SHOWN_BY_NOTHING = [
    "p.add_argument('--opt', default='adam')\np.add_argument('--where', default='cuda')",
    "sample(bootstrap_on='cuda')",
    "Process(target=train, args=('resnet50', 'cuda'))",
    "pool.apply_async(run, ('resnet50', 'cuda'))",
    "MODEL, WHERE = 'resnet50', 'cuda'",
    "subprocess.run(['python', 'a.py', 'cuda'])",
    "mode = 'cuda'\nif mode == 'GPU': pass",
    "KINDS = ('CPU', 'cuda')",
    "KERNELS: dict = {'cpu': a, 'cuda': b}\nKERNELS[x.device.type](x)",
    "def f():\n    def where():\n        return 'cuda'\n    return 'plain'",
    "NCCL_BACKEND = 'nccl'\ntorch.distributed.init_process_group(backend=NCCL_BACKEND)",
    "p.add_argument('--distributed-backend', default='nccl')\na = p.parse_args()\n"
    "torch.distributed.init_process_group(a.distributed_backend)",
]


@pytest.mark.parametrize("source", SHOWN_BY_NOTHING)
def test_what_stands_beside_a_word_by_chance_settles_nothing(source: str) -> None:
    text = f"import torch\n{source}\n"
    judged = judge(Document("a.py", text), CATALOGUE, Target())
    assert any(finding.rule.code in ("NPU110", "NPU111", "NPU201") for finding in judged.findings)
