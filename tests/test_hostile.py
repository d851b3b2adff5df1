"""Texts that are made to break an analyser: no exception, and time in proportion to size."""

import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from helpers import findings, fixed
from npulens.fixes.instruments.inserting import instrumented
from npulens.fixes.instruments.known_instruments import BY_NAME
from npulens.fixes.scripts import UnclearError

pytestmark = pytest.mark.endurance

HEAD = "import torch\n"
Maker = Callable[[int], str]


def numbered(line: str) -> Maker:
    """A text of lines in which `#` is the number of the line and `@` that of the one before."""
    return lambda size: "".join(
        line.replace("#", str(index + 1)).replace("@", str(index)) for index in range(size)
    )


def repeated(line: str, last: str = "") -> Maker:
    return lambda size: line * size + last


# Name: what makes the text, and a size that takes a tenth of a second or so.
TEXTS: dict[str, tuple[Maker, int]] = {
    "brackets": (lambda n: "x = " + "[" * n + "torch.cuda" + "]" * n + "\ny.cuda()\n", 5000),
    "open brackets": (lambda n: "x = " + "[" * n + "\ny.cuda()\n", 5000),
    "nested calls": (lambda n: "x = " + "f(" * n + "y.cuda()" + ")" * n + "\n", 5000),
    "sum": (lambda n: "x = " + " + ".join(["y.cuda()"] * n) + "\n", 3000),
    "sum of strings": (lambda n: "device = " + " + ".join(['"cuda:0"'] * n) + "\n", 3000),
    "chain": (lambda n: "x = y" + ".cuda()" * n + "\n", 400),
    "chain of strings": (lambda n: "x = y" + '.to("cuda")' * n + "\n", 400),
    "attributes": (lambda n: "x = torch.cuda" + ".a" * n + ".cuda()\n", 1500),
    "subscripts": (lambda n: "x = y" + "[0]" * n + ".cuda()\n", 1500),
    "one line": (repeated("x.cuda();", "\n"), 2000),
    "one line of calls": (lambda n: "x = [" + "torch.cuda.synchronize(), " * n + "]\n", 2000),
    "one line of numbers": (lambda n: "x = [" + "1," * n + "torch.cuda]\n", 50_000),
    "long string": (lambda n: 'x = "' + "cuda " * n + '"; y.cuda()\n', 200_000),
    "long word": (lambda n: "x" * n + ".cuda()\n", 200_000),
    "long comment": (lambda n: "#" * n + "\nx.cuda()\n", 200_000),
    "white space": (lambda n: " " * n + "\n" + "\n" * n + "x.cuda()\n", 100_000),
    "aliases": (lambda n: "x0 = torch\n" + numbered("x# = x@.a\n")(n) + f"x{n}.cuda.x()\n", 2000),
    "aliases in use": (lambda n: "x0 = torch.cuda\n" + numbered("x# = x@\nx#.x()\n")(n), 300),
    "aliases backwards": (
        lambda n: numbered("x@ = x#\n")(n) + f"x{n} = torch\nx0.cuda.x()\n",
        2000,
    ),
    "alias of itself": (repeated("x = x.a if c else x.cuda\n", "x.synchronize()\n"), 100),
    "alias set again": (repeated("if c: x = torch.cuda\nx.synchronize()\n"), 500),
    "either": (
        lambda n: "x0 = torch.cuda\n" + numbered("x# = x@ if c else x@\n")(n) + "x9.a()\n",
        300,
    ),
    "variables in a function": (
        lambda n: (
            "import os\ndef f():\n"
            + ' x = os.environ.get("CUDA_VISIBLE_DEVICES")\n if x: raise E\n' * n
        ),
        300,
    ),
    "memory formats in a function": (
        lambda n: (
            "def f(x):\n"
            + " a = x.is_contiguous(memory_format=torch.channels_last)\n y = 1 if a else 2\n" * n
        ),
        300,
    ),
    "operators in a function": (
        lambda n: "from mmcv.ops import nms\ndef f(b):\n a = b.cpu()\n" + " nms(a)\n" * n,
        1000,
    ),
    "attributes made of attributes": (
        lambda n: (
            "class A:\n def __init__(self, x):\n  x0 = torch.nn.Softmax(-1)\n"
            + numbered("  x# = wrapped(x@)\n")(n)
            + f"  self.x = x{n}\n def forward(self, q, k, v):\n  return self.x(q @ k.mT) @ v\n"
        ),
        1000,
    ),
    "methods that use each other": (
        lambda n: (
            "class A:\n" + numbered(" def m#(self, x):\n  return self.m@(x).softmax(-1) * x\n")(n)
        ),
        200,
    ),
    "helpers of helpers": (
        numbered("def f#(x):\n return f@(x) * torch.sigmoid(x)\n"),
        200,
    ),
    "joins in a loop": (
        lambda n: "def f(x, y):\n for i in y:\n" + "  x = torch.cat([x, i])\n" * n,
        400,  # few enough that no budget ends it
    ),
    "clippings": (
        lambda n: (
            "def f(m, loss, o):\n s = torch.cuda.amp.GradScaler()\n s.scale(loss).backward()\n"
            + " torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0)\n" * n
            + " s.step(o)\n"
        ),
        300,
    ),
    "misspelt variables": (
        repeated("os.environ['HCCL_CONNECT_TIME_OUT'] = '1'\n"),
        500,
    ),
    "or": (lambda n: "x = " + " or ".join(["torch.cuda"] * n) + "\nx.synchronize()\n", 1000),
    "doubled strings": (
        lambda n: 'x0 = "cuda"\n' + numbered('x# = f"{x@}{x@}"\n')(n) + f"y.to(x{n} + 'a')\n",
        300,
    ),
    "string of strings": (lambda n: "y.to(f'{x}" + "{x}" * n + "')\n", 1000),
    "members": (
        lambda n: (
            "class A:\n"
            + numbered("    a# = torch.cuda\n    def f#(self): self.a#.synchronize()\n")(n)
        ),
        300,
    ),
    "members of members": (
        lambda n: (
            "class A:\n    def f(self):\n        self.a0 = torch\n"
            + numbered("        self.a# = self.a@\n")(n)
            + f"        self.a{n}.cuda.synchronize()\n"
        ),
        300,
    ),
    "parameters": (
        lambda n: "def f(" + ", ".join(f"a{i}=torch.cuda" for i in range(n)) + "):\n    a3.x()\n",
        1000,
    ),
    "walrus": (numbered("if (x# := torch.cuda): x#.synchronize()\n"), 300),
    "walrus in one line": (
        lambda n: "x = [" + numbered("(x# := torch.cuda), x#.synchronize(), ")(n) + "]\n",
        300,
    ),
    "global": (numbered("def f#():\n    global x\n    x = torch.cuda\n    x.synchronize()\n"), 300),
    "same function": (repeated("def f():\n    return x.cuda()\n"), 1000),
    "stars": (lambda n: "from torch.cuda import *\n" * n + "synchronize()\n", 300),
    "imports": (repeated("import torch\n", "x.cuda()\n"), 800),
    "lazy imports": (numbered("def f#():\n    import torch\n    torch.cuda.synchronize()\n"), 300),
    "imported names": (
        lambda n: "from torch.cuda import " + ", ".join(f"a{i}" for i in range(n)) + "\n",
        1000,
    ),
    "imported names that are fixed": (
        lambda n: "from torch import (" + numbered("cuda as c#, ")(n) + ")\n",
        300,
    ),
    "one imported name": (lambda n: "from torch import (" + "cuda, " * n + ")\n", 300),
    "attention of attention": (
        lambda n: (
            "def f(x, k, v):\n"
            + "    x = torch.softmax(x @ k.transpose(-2, -1) / 8.0, dim=-1) @ v\n" * n
            + "    return x\n"
        ),
        150,
    ),
    "calls of calls": (
        lambda n: (
            "def f0(x: torch.Tensor):\n    return x[x > 0].sum()\n"
            + numbered("def f#(x: torch.Tensor):\n    return f@(x) + f@(x[x > 1])\n")(n)
        ),
        200,
    ),
    "arms": (lambda n: "if a: pass\n" + 'elif b == "cuda": x.cuda()\n' * n, 200),
    "long if chain": (lambda n: "if a: pass\n" + 'elif b == "cuda": x.cuda()\n' * n, 600),
    "exits": (
        lambda n: "def f():\n" + '    if npu: return 1\n    if b == "cuda": x.cuda()\n' * n,
        500,
    ),
    "cases": (lambda n: "match device:\n" + '    case "cuda": x.cuda()\n' * n, 500),
    "answers beside the NPU": (
        lambda n: "def f():\n" + "    a = torch.cuda.is_available()\n" * n + "    b = torch.npu\n",
        300,
    ),
    "settings of Lightning": (
        lambda n: (
            "".join(f"from m import a{i}\n" for i in range(n))
            + "lightning = x\n"
            + "x['accelerator'] = 'gpu'\n" * n
        ),
        300,
    ),
    "dictionary": (lambda n: "x = {" + '"device": "cuda",' * n + "}\n", 2000),
    "list": (lambda n: "device = [" + '"cuda:0",' * n + "]\n", 2000),
    "comparisons": (lambda n: "x = device" + ' == "cuda" == device' * n + "\n", 300),
    "conditions": (lambda n: "x = " + 'device == "cuda" or ' * n + "y\n", 500),
    "conditionals": (lambda n: "device = " + '"cuda" if a else ' * n + '"cpu"\n', 60),
    "comprehension": (lambda n: "x = [y.cuda() " + "for a in b " * n + "]\n", 150),
    "lambdas": (lambda n: "x = " + "lambda: " * n + "y.cuda()\n", 80),
    "decorators": (repeated("@torch.cuda.x\n", "def f(): pass\n"), 1000),
    "decorators of nothing": (repeated("@torch.cuda.x\n", "x.cuda()\n"), 1000),
    "blocks too deep for Python": (
        lambda n: "".join(" " * i + "if a:\n" for i in range(n)) + " " * n + "x.cuda()\n",
        150,
    ),
    "blocks": (
        lambda n: "".join(" " * i + "if a:\n" for i in range(n)) + " " * n + "x.cuda()\n",
        30,
    ),
    "open blocks": (
        lambda n: "".join(" " * i + "if a:\n" for i in range(n)) + " " * n + "x.cuda(\n",
        45,
    ),
    "functions too deep for Python": (
        lambda n: "".join(" " * i + f"def f{i}():\n" for i in range(n)) + " " * n + "x.cuda()\n",
        150,
    ),
    "functions": (
        lambda n: "".join(" " * i + f"def f{i}():\n" for i in range(n)) + " " * n + "x.cuda()\n",
        30,
    ),
    "Python 2": (repeated('print "x"\nx.cuda()\n'), 1000),
    "Python 2 in functions": (
        repeated('def f():\n    if a:\n        print "x"\n        x.cuda()\n'),
        300,
    ),
    "open strings": (repeated("x = '\n", "x.cuda()\n"), 1000),
    "triple quotes": (lambda n: '"""\n' * (2 * n + 1) + "x.cuda()\n", 1000),
    "continued lines": (repeated("x = 1 + \\\n", "x.cuda()\n"), 1000),
    "backslashes": (lambda n: 'x = "' + "\\" * n + "\nx.cuda()\n", 50_000),
    "merge conflicts": (repeated("<<<<<<< a\nx.cuda()\n=======\ny.cuda()\n>>>>>>> b\n"), 300),
    "suppressed": (repeated("x.cuda()  # npulens: ignore[NPU105]\n"), 1000),
    "not suppressed": (repeated("x.cuda()\n", "y = 1  # npulens: ignore\n"), 1000),
    "unused suppressions": (repeated("x = 1  # npulens: ignore[NPU105]\n"), 1000),
    "suppressed codes": (
        lambda n: "x.cuda()  # npulens: ignore[" + ",".join(f"N{i}" for i in range(n)) + "]\n",
        500,
    ),
    "suppressed line": (repeated("x.cuda();", "# npulens: ignore\n"), 1000),
    "NUL": (lambda n: "\0" * n + "\nx.cuda()\n", 10_000),
    "surrogates": (repeated('x = "\ud800"; y.cuda()\n'), 300),
    "lone carriage returns": (repeated("x.cuda()\r"), 1000),
    "form feeds": (repeated("\x0cx.cuda()\n"), 1000),
    "form feeds, broken": (repeated("\x0cx.cuda()\n", "y = (\n"), 500),
    "line separators, broken": (repeated("x = '\u2028'; x.cuda()\n", "y = (\n"), 500),
    "emoji": (repeated('x = "😀漢", y.cuda()\n'), 1000),
    "emoji in one line": (lambda n: "x = [" + '"😀漢", y.cuda(),' * n + "]\n", 500),
    "f-strings": (repeated('x = f"{y.cuda()} {a!r:>{b}}"\n'), 500),
}


@pytest.mark.parametrize("name", TEXTS)
def test_no_text_raises(name: str) -> None:
    make, size = TEXTS[name]
    text = HEAD + make(size)
    for finding in findings(text):
        assert 0 <= finding.span.start <= finding.span.end <= len(text)


@pytest.mark.parametrize("name", TEXTS)
def test_time_is_in_proportion_to_size(name: str) -> None:
    make, size = TEXTS[name]
    findings(HEAD + make(1))  # what is loaded at first use is no matter of size
    require_proportion(HEAD + make(size), HEAD + make(3 * size), findings)


def require_proportion(small: str, large: str, work: Callable[[str], object]) -> None:
    """See that work on a text takes time in proportion to its size."""
    grown = len(large) / len(small)  # more than three times where indentation grows, too
    times: dict[str, list[float]] = {small: [], large: []}
    for _ in range(3):
        for text, taken in times.items():
            taken.append(cost(text, work))  # the least of them is that of a quiet moment
        ratio = (min(times[large]) + 0.01) / (min(times[small]) + 0.01)
        if ratio < 2 * grown:
            return
    pytest.fail(f"{grown:.1f} times the text takes {ratio:.1f} times as long")


def cost(text: str, work: Callable[[str], object]) -> float:
    gc.disable()  # what other tests left behind says nothing about this text
    try:
        start = time.process_time()
        work(text)
        return time.process_time() - start
    finally:
        gc.enable()


AGENT = """\
class Agent:
    def update(self, x):
        self.loss(x).backward()
        self.optimizer.step()
def train(loader, agent):
    for x in loader:
"""
NET = """\
class Net(torch.nn.Module):
    def forward(self, x, mask):
"""
TRAINED = """\
        return x
net = Net()
optimizer = torch.optim.Adam(net.parameters())
for x, y in loader:
    loss = net(x, y).sum()
    loss.backward()
    optimizer.step()
"""
# What is instrumented, with what, and a size.
INSTRUMENTED: dict[str, tuple[Maker, str, int]] = {
    "calls of something unknown": (
        lambda n: AGENT + "        agent.update(agent.loss(x))\n" * n,
        "step-time",
        200,
    ),
    "calls of a large method that is unknown": (
        lambda n: (
            AGENT.replace("\n        self.opt", "\n        self.loss(x)" * n + "\n        self.opt")
            + "        agent.update(agent.loss(x))\n" * n
        ),
        "step-time",
        200,
    ),
    "values that are filled in": (
        lambda n: (
            NET
            + numbered("        low# = -1\n        x = x.masked_fill(mask, low#)\n")(n)
            + TRAINED
        ),
        "float16",
        300,
    ),
}


@pytest.mark.parametrize("name", INSTRUMENTED)
def test_time_of_instruments_is_in_proportion_to_size(name: str) -> None:
    make, kind, size = INSTRUMENTED[name]

    def work(text: str) -> None:
        with suppress(UnclearError):
            instrumented(f"{text}\n# {time.perf_counter()}\n", BY_NAME[kind])  # nothing is kept

    work(HEAD + make(1))
    require_proportion(HEAD + make(size), HEAD + make(3 * size), work)


# Large texts, in a process of their own so that no crash or endless loop harms the others.
FUNCTION = "def f(x):\n    x = x.cuda()\n    return x\n\n"
LARGE: dict[str, tuple[Callable[[], str], int]] = {
    "2 MB in one line": (
        lambda: "x = [" + ("torch.cuda.synchronize(), '" + "x" * 180 + "', ") * 9_700 + "]\n",
        9_700,
    ),
    "2 MB in one string": (lambda: 'x = "' + "cuda:0 " * 290_000 + '"\ny.cuda()\n', 1),
    "50,000 lines without a word": (lambda: "x = [1, 2, 3]\n" * 50_000, 0),
    "20,000 lines": (lambda: FUNCTION * 5_000, 5_000),
    "20,000 lines, broken": (lambda: FUNCTION * 5_000 + "x = (", 5_001),
    "4,000 tensors (SC-04)": (
        lambda: numbered("x# = torch.zeros(#).cuda()\n")(4_000),
        4_000,
    ),
    # Python itself gives up on these: at least one finding, of whatever kind.
    "100,000 brackets": (lambda: "x = " + "(" * 100_000 + ")" * 100_000 + "\ny.cuda()\n", -1),
    "100,000 operators": (lambda: "x = " + "-" * 100_000 + "1\ny.cuda()\n", -1),
    "100,000 attributes": (lambda: "x = torch" + ".cuda" * 100_000 + "\n", -1),
    "100,000 terms": (lambda: "x = " + "1 + " * 100_000 + "1\ny.cuda()\n", -1),
}
PROGRAM = """
import sys
from helpers import findings
from test_hostile import HEAD, LARGE
print(len(findings(HEAD + LARGE[sys.argv[1]][0]())))
"""


@pytest.mark.parametrize("name", LARGE)
def test_large_texts_end(name: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, name],
        cwd=Path(__file__).parent,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    expected = LARGE[name][1]
    assert int(run.stdout) == expected if expected >= 0 else int(run.stdout) > 0


def test_a_statement_python_accepts_is_not_called_broken() -> None:
    # SC-03: `ast` alone gives up on it with the usual recursion limit.
    text = HEAD + "x = " + " + ".join(["y"] * 900) + "\nz" + ".a()" * 400 + "\nx.cuda()\n"
    assert [f.rule.code for f in findings(text)] == ["NPU105"]


def test_many_fixes_in_one_file() -> None:
    text = HEAD + "x.cuda(); y.to('cuda'); torch.cuda.synchronize()\n" * 500
    assert "cuda" not in fixed(text)


def test_a_helper_that_always_raises() -> None:
    helper = "def fail(x):\n    raise ValueError(x)\n"
    function = "def f(x, g):\n    fail(x)\n    return torch.nn.functional.silu(x) * g\n"
    assert "NPU703" in [f.rule.code for f in findings(HEAD + helper + function)]
