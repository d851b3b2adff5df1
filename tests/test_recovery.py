"""Code that does not parse costs the broken statement, and an edit costs what it changes."""

import random
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helpers import CATALOGUE, NPU, bug, code, findings, fixed, marked, marks, parses, unmarked
from npulens.analysis import StatementCache, analyze
from npulens.catalog.model import Target, TorchVersion
from npulens.syntax.statements import split_statements
from npulens.text.document import Document

SYNTAX = ("NPU001", "NPU004")

# Every `.cuda()` that is marked survives what is broken beside it. How many syntax errors are
# reported, and where exactly, is not the business of this table; at least one must be.
BROKEN = [
    # brackets
    "a.⟦cuda⟧()\nb.cuda(\nc.⟦cuda⟧()",
    "def f():\n    a.⟦cuda⟧()\n    b.cuda(\n    c.⟦cuda⟧()\n\ndef g():\n    d.⟦cuda⟧()",
    "class A:\n    def f(self):\n        a.⟦cuda⟧()\n        b.cuda(\n    def g(self):\n"
    "        c.⟦cuda⟧()\nd.⟦cuda⟧()",
    "class A:\n    def f(self):\n        a.⟦cuda⟧()\n        b = [1, 2\n        c.⟦cuda⟧()\n"
    "    def g(self):\n        d.⟦cuda⟧()\ne.⟦cuda⟧()",
    "class A:\n    class B:\n        def f(self):\n            if a:\n                b.cuda(\n"
    "            c.⟦cuda⟧()\n        def g(self):\n            d.⟦cuda⟧()\ne.⟦cuda⟧()",
    "for i in a:\n    with b:\n        c.⟦cuda⟧()\n        d = {1: 2\n    e.⟦cuda⟧()\nf.⟦cuda⟧()",
    "a.⟦cuda⟧()\nb = )(\nc.⟦cuda⟧()",
    "a.⟦cuda⟧()\nb = ]\nc.⟦cuda⟧()",
    "foo(\n    a,\n    b.\n)\nc.⟦cuda⟧()",
    "x = {\n    'a': 1,\n    'b': c.\n}\nd.⟦cuda⟧()",
    "a.⟦cuda⟧()\ndef f():\n    b.⟦cuda⟧()\n    x = (1,\n         2",
    # strings
    "class A:\n    def f(self):\n        x = 'abc\n        a.⟦cuda⟧()\n    def g(self):\n"
    "        b.⟦cuda⟧()\nc.⟦cuda⟧()",
    "def f():\n    x = 'it's'\n    a.⟦cuda⟧()\nb.⟦cuda⟧()",
    "class A:\n    def f(self):\n        x = '''abc\n        a.⟦cuda⟧()\n    def g(self):\n"
    "        b.⟦cuda⟧()\nc.⟦cuda⟧()",
    "def f():\n    '''Doc\n    a.⟦cuda⟧()\n\ndef g():\n    b.⟦cuda⟧()\nc.⟦cuda⟧()",
    "a.⟦cuda⟧()\nx = f'{b(}'\nc.⟦cuda⟧()",
    "a.⟦cuda⟧()\nx = f'{b'\nc.⟦cuda⟧()",
    "# it's (\na.⟦cuda⟧()\nx = (\nb.⟦cuda⟧()",
    "x = '#' + (\na.⟦cuda⟧()",
    # half-typed statements
    "a.⟦cuda⟧()\nx.\nb.⟦cuda⟧()",
    "a.⟦cuda⟧()\nx =\nb.⟦cuda⟧()",
    "import\na.⟦cuda⟧()",
    "import torch.\na.⟦cuda⟧()",
    "from torch import\na.⟦cuda⟧()",
    "from torch import (nn,\na.⟦cuda⟧()",
    "def f():\n    return a.\n    b.⟦cuda⟧()\nc.⟦cuda⟧()",
    "def f():\n    a.⟦cuda⟧()\n    x = 5 +\n    b.⟦cuda⟧()",
    "def f():\n    a.⟦cuda⟧()\n    x = 1 if\n    b.⟦cuda⟧()",
    "a.⟦cuda⟧()\nlambda x\nb.⟦cuda⟧()",
    "async def f():\n    await\n    a.⟦cuda⟧()\nb.⟦cuda⟧()",
    "def f():\n    for x in\n    a.⟦cuda⟧()\nb.⟦cuda⟧()",
    "a.⟦cuda⟧()\nx = a ? b\nc.⟦cuda⟧()",
    "a.⟦cuda⟧()\nx = “b”\nc.⟦cuda⟧()",
    "a.⟦cuda⟧()\nx = a \\ b\nc.⟦cuda⟧()",
    "a.⟦cuda⟧()\nNone = 3\nc.⟦cuda⟧()",
    "a.⟦cuda⟧()\nx = 08\nc.⟦cuda⟧()",
    # missing colon, empty body
    "class A\n    def f(self):\n        a.⟦cuda⟧()\nb.⟦cuda⟧()",
    "class A:\n    def f(self)\n        a.⟦cuda⟧()\n    def g(self):\n        b.⟦cuda⟧()\n"
    "c.⟦cuda⟧()",
    "def f(a, b)\n    a.⟦cuda⟧()\nb.⟦cuda⟧()",
    "for x in y\n    a.⟦cuda⟧()\nb.⟦cuda⟧()",
    "while True\n    a.⟦cuda⟧()\nb.⟦cuda⟧()",
    "with a as b\n    c.⟦cuda⟧()\nd.⟦cuda⟧()",
    "def f():\n\na.⟦cuda⟧()",
    "def f():\n    # to do\na.⟦cuda⟧()",
    "for x in y:\na.⟦cuda⟧()",
    "class A:\na.⟦cuda⟧()",
    # clauses
    "try:\n    a.⟦cuda⟧()\nb.⟦cuda⟧()",
    "try:\n    a.cuda(\nexcept E:\n    b.⟦cuda⟧()\nfinally:\n    c.⟦cuda⟧()\nd.⟦cuda⟧()",
    "try:\n    a.⟦cuda⟧()\nexc\nb.⟦cuda⟧()",
    "try:\n    a.⟦cuda⟧()\nexcept E, e:\n    b.⟦cuda⟧()\nc.⟦cuda⟧()",
    "if x:\n    a.cuda(\nelse:\n    b.⟦cuda⟧()\nc.⟦cuda⟧()",
    "if x:\n    a.⟦cuda⟧()\n    pass\n   else:\n    b.cuda()\nc.⟦cuda⟧()",
    "match x:\n    case 1:\n        a.cuda(\n    case 2:\n        b.⟦cuda⟧()\nc.⟦cuda⟧()",
    # indentation
    "def f():\n    a.⟦cuda⟧()\n  b.⟦cuda⟧()\n    c.⟦cuda⟧()\nd.⟦cuda⟧()",
    "def f():\n    a.⟦cuda⟧()\n      b.cuda()\n    c.⟦cuda⟧()\nd.⟦cuda⟧()",
    "def f():\n\ta.⟦cuda⟧()\n        b.⟦cuda⟧()\nc.⟦cuda⟧()",
    "a.⟦cuda⟧()\n  b.cuda()\nc.⟦cuda⟧()",
    # stray lines
    ")\na.⟦cuda⟧()",
    "a.⟦cuda⟧()\n)\nb.⟦cuda⟧()",
    "    }\na.⟦cuda⟧()",
    "else:\n    a.cuda()\nb.⟦cuda⟧()",
    "except E:\n    a.cuda()\nb.⟦cuda⟧()",
    # Python 2
    "print 'x'\na.⟦cuda⟧()",
    "def f():\n    print 'x'\n    a.⟦cuda⟧()\nb.⟦cuda⟧()",
    "def f():\n    a.⟦cuda⟧()\n    print 'x', y\n    exec 'x'\n    raise E, 'x'\n    b.⟦cuda⟧()",
    "class A:\n    def f(self):\n        print 'x'\n        a.⟦cuda⟧()\n    def g(self):\n"
    "        if b:\n            print >>f, 'x'\n            c.⟦cuda⟧()",
    # merge conflicts
    "a.⟦cuda⟧()\n<<<<<<< HEAD\nb.⟦cuda⟧()\n=======\nc.⟦cuda⟧()\n>>>>>>> theirs\nd.⟦cuda⟧()",
    "def f():\n    a.⟦cuda⟧()\n<<<<<<< HEAD\n    b.⟦cuda⟧()\n=======\n    c.⟦cuda⟧()\n"
    ">>>>>>> theirs\n    d.⟦cuda⟧()\ne.⟦cuda⟧()",
    "class A:\n    def f(self):\n        a.⟦cuda⟧()\n<<<<<<< HEAD\n    def g(self):\n"
    "        b.⟦cuda⟧()\n=======\n    def h(self):\n        c.⟦cuda⟧()\n>>>>>>> theirs\n"
    "    def i(self):\n        d.⟦cuda⟧()\ne.⟦cuda⟧()",
    # decorators
    "@\ndef f():\n    a.⟦cuda⟧()\nb.⟦cuda⟧()",
    "@dec(\ndef f():\n    a.⟦cuda⟧()\nb.⟦cuda⟧()",
    "@dec\nclass A:\n    @\n    def f(self):\n        a.⟦cuda⟧()\nb.⟦cuda⟧()",
    "class A:\n    @property\n    def f(self):\n        a.cuda(\n    @property\n    def g(self):\n"
    "        b.⟦cuda⟧()\nc.⟦cuda⟧()",
    "a.⟦cuda⟧()\n@dec\n",
    "@dec\nx = 3\na.⟦cuda⟧()",
    # truncated
    "a.⟦cuda⟧()\ndef f():\n    b.⟦cuda⟧()\n    x = foo(1, 'abc",
    "a.⟦cuda⟧()\ndef f():\n    b.⟦cuda⟧()\n    if x:",
    "a.⟦cuda⟧()\nclass A:\n    def f(self):\n        b.⟦cuda⟧()\n        return (",
    "a.⟦cuda⟧()\nx = '''abc",
    "a.⟦cuda⟧()\nx = 1 + \\",
    "a.⟦cuda⟧()\n\0\nb.⟦cuda⟧()",
    "if x\n    a.⟦cuda⟧()\nelse:\n    b.⟦cuda⟧()\nc.⟦cuda⟧()",
    "if x:\n    a.⟦cuda⟧()\nelse\n    b.⟦cuda⟧()\nc.⟦cuda⟧()",
    "if x:\n    a.⟦cuda⟧()\nelif y\n    b.⟦cuda⟧()\nelse:\n    c.⟦cuda⟧()\nd.⟦cuda⟧()",
    "match x:\n    case 1\n        a.⟦cuda⟧()\n    case 2:\n        b.⟦cuda⟧()\nc.⟦cuda⟧()",
    "  a.⟦cuda⟧()\nb.⟦cuda⟧()",
]

# What is lost with the broken statement, though nothing is wrong with it.
LOST = [
    "@dec\ndef f(:\n    a.⟦cuda⟧()\nb.⟦cuda⟧()",
    "def f(a, b\n    c.⟦cuda⟧()\n    d.⟦cuda⟧()\ne.⟦cuda⟧()",
]
BROKEN_OR_LOST = [*BROKEN, *(bug("more than the broken statement", row) for row in LOST)]


def survivors(snippet: str) -> tuple[str, list[int]]:
    """The source of a snippet and where what is marked stands."""
    source, expected = unmarked(snippet.replace("⟦cuda⟧", "⟦NPU105:cuda⟧"))
    return source, [mark.start for mark in expected]


@pytest.mark.parametrize("ending", ["\n", "", "\r\n"], ids=["LF", "none", "CRLF"])
@pytest.mark.parametrize("snippet", BROKEN_OR_LOST)
def test_only_the_broken_statement_is_lost(snippet: str, ending: str) -> None:
    source, expected = survivors(snippet + ("\n" if ending else ""))
    if ending == "\r\n":
        expected = [place + source.count("\n", 0, place) for place in expected]
        source = source.replace("\n", "\r\n")
    found = findings(source)
    places = {f.span.start for f in found if f.rule.code == "NPU105"}
    assert marked(source, []) == source
    assert places >= set(expected), marked(source, marks(source))
    assert any(f.rule.code in SYNTAX for f in found)


@pytest.mark.parametrize("snippet", BROKEN + LOST)
def test_a_syntax_error_has_a_place_in_the_text(snippet: str) -> None:
    source, _ = survivors(snippet)
    problems = [f for f in findings(source) if f.rule.code in SYNTAX]
    assert len({f.span for f in problems}) == len(problems)
    for problem in problems:
        assert 0 <= problem.span.start <= problem.span.end <= len(source)
        assert problem.arguments["detail"]


@pytest.mark.parametrize("snippet", BROKEN_OR_LOST)
def test_broken_code_is_fixed_where_it_can_be_read(snippet: str) -> None:
    source, expected = survivors(snippet)
    assert fixed(source).count(".npu()") >= len(expected)


VALID = [
    "@dec\n\n# comment\n@dec2\ndef f():\n    a.⟦cuda⟧()\nb.⟦cuda⟧()",
    "@dec  # comment\n\n\n\nclass A:\n    x = a.⟦cuda⟧()\nb.⟦cuda⟧()",
    "@dec(\n    a.⟦cuda⟧()\n)\ndef f(): ...\nb.⟦cuda⟧()",
    "x = (\na.⟦cuda⟧(),\nb.⟦cuda⟧(),\n)\nc.⟦cuda⟧()",
    "x = '''\ndef f():\na.cuda()\n'''\nb.⟦cuda⟧()",
    'x = """\n\'\'\' (\n"""; a.⟦cuda⟧()\nb.⟦cuda⟧()',
    "if x: a.⟦cuda⟧()\nelse: b.⟦cuda⟧()\nc.⟦cuda⟧()",
    "x = a.⟦cuda⟧() + \\\nb.⟦cuda⟧()\nc.⟦cuda⟧()",
    "if x:\n    a.⟦cuda⟧()\n# comment\nelse:\n    b.⟦cuda⟧()",
    "def f():\n    a.⟦cuda⟧()\n# comment\n    b.⟦cuda⟧()",
    "a.⟦cuda⟧(); b.⟦cuda⟧(); c.⟦cuda⟧()",
    "\n\n\n   # comment\na.⟦cuda⟧()\n   ",
    "\x0c\na.⟦cuda⟧()\n\x0cb.⟦cuda⟧()",
]


@pytest.mark.parametrize("snippet", VALID)
def test_nothing_is_broken_here(snippet: str) -> None:
    source, expected = survivors(snippet)
    for text in (source, source.replace("\n", "\r\n")):
        found = findings(text)
        assert {f.rule.code for f in found} == {"NPU105"}
        assert len(found) == len(expected)
        assert findings(text, cache=StatementCache()) == found


def long_file(methods: int = 300) -> list[str]:
    """The lines of a module of 3,000 lines with one call to find in every method."""
    lines = ["import torch", "import torch_npu  # noqa: F401", ""]
    for index in range(methods // 5):
        lines += ["", f"class Block{index}(torch.nn.Module):"]
        for method in range(5):
            lines += [
                f"    def method{method}(self, x, y=None):",
                '        """Computes (something)."""',
                "        if y is None:",
                "            y = [x, {'a': 1},",
                "                 (2, 3)]",
                "        for item in y:",
                "            x = x + item  # it's",
                f"        z = self.part{index}.cuda()",
                "        return x, z",
                "",
            ]
    return lines


def test_typing_a_call_in_a_long_file_keeps_everything_else() -> None:
    lines = long_file()
    assert len(lines) > 3000
    all_found = len(findings("\n".join(lines)))
    assert all_found == 300
    places = [index for index, line in enumerate(lines) if "return x, z" in line]
    cache = StatementCache()
    for place in random.Random(1).sample(places, 5):
        for typed in ("model", "model.", "model.cuda(", "model.cuda('", "x = [model.cuda("):
            text = "\n".join([*lines[:place], f"        {typed}", *lines[place:]])
            found = [f for f in findings(text, cache=cache) if f.rule.code == "NPU105"]
            assert len(found) == all_found, typed


def test_a_line_missing_from_a_long_file_keeps_everything_else() -> None:
    lines = long_file(50)
    for place in range(5, 30):
        text = "\n".join(lines[:place] + lines[place + 1 :])
        found = [f for f in findings(text) if f.rule.code == "NPU105"]
        assert len(found) >= 48, lines[place]


def test_each_state_of_a_file_being_typed_is_analysed() -> None:
    source = code("""
        import torch
        from torch import nn


        @torch.no_grad()
        def evaluate(model, device="cuda:0"):
            '''Runs on "cuda".'''
            model = model.cuda()
            for batch in loader:
                x = f"{torch.cuda.memory_allocated()} on {device}"
            return {"device": "cuda",
                    "x": x}


        class Net(nn.Module):
            def forward(self, x):
                return x.to("cuda") if x.is_cuda else x.cuda()
        """)
    cache = StatementCache()
    for end in range(len(source) + 1):
        assert findings(source[:end], cache=cache) == findings(source[:end])


def test_what_can_be_read_grows_with_what_is_typed() -> None:
    source = "import torch\n" + "def f():\n    x.cuda()\n" * 5 + "y = (\n"
    assert len([f for f in findings(source) if f.rule.code == "NPU105"]) == 5


REPEATABLE = settings(
    deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
)

# Edits: a module of statements that depend on each other, changed step by step.
STATEMENTS = [
    "import torch\n",
    "import torch as t\n",
    "from torch import cuda\n",
    "from torch.nn import *\n",
    "from torch_npu.contrib import transfer_to_npu\n",
    "import torch_npu  # noqa: F401\n",
    "c = torch.cuda\n",
    "c = 3\n",
    "del torch\n",
    "c.synchronize()\n",
    "cuda.synchronize(); torch.cuda.empty_cache()\n",
    "x.cuda()\n",
    "x.cuda()  # npulens: ignore[NPU105]\n",
    "y = 3  # npulens: ignore\n",
    "# npulens: ignore-file\n",
    "d = 'cuda'\n",
    "x.to(d)\n",
    "PREFIX = 'cuda'\nx.to(f'{PREFIX}:0')\n",
    "def f(device='cuda'):\n    return x.to(device)\n",
    "def f(d='cuda'):\n    global c\n    c = torch.cuda\n    return x.to(d)\n",
    "class A:\n    def cuda(self):\n        return self\n\n    def go(self):\n"
    "        self.cuda()\n",
    "class B(A):\n    t = torch\n    def go(self):\n        self.t.cuda.synchronize()\n",
    "A().cuda()\n",
    "if is_npu_available():\n    x.npu()\nelse:\n    x.cuda()\n",
    "def is_npu_available():\n    return True\n",
    "try:\n    import torch\nexcept ImportError:\n    torch = None\n",
    "@torch.no_grad()\ndef g():\n    import torch\n    torch.cuda.synchronize()\n",
    "DataParallel(m)\n",
    "'''\nx.cuda()\n'''\n",
    "s = '漢字😀'; x.cuda()\n",
    "\n",
    "# torch.cuda\n",
    "if (n := torch.cuda): n.synchronize()\n",
    "x.cuda(\n",
    "'''\n",
    "else:\n    x.cuda()\n",
    "    x.cuda()\n",
    "def h(:\n    x.cuda()\n",
    "@dec\n",
    "x = \\\n",
    ")\n",
]
FRAGMENTS = [
    "",
    "\n",
    "    ",
    "(",
    ")",
    "'''",
    '"',
    "'",
    "#",
    "\\",
    "\\\n",
    "x.cuda()\n",
    "cuda",
    "@",
    "else:\n",
    ":",
    "é漢😀",
    "\x0c",
    "\0",
    "\t",
    "import torch\n",
    "torch",
    "npu",
    "# npulens: ignore",
    "\u2028",
]


@st.composite
def histories(draw: st.DrawFn) -> list[str]:
    """The texts of a file that is edited: pieces replaced, moved, repeated, removed."""
    text = "".join(draw(st.lists(st.sampled_from(STATEMENTS), max_size=8)))
    texts = [text]
    for _ in range(draw(st.integers(1, 6))):
        kind = draw(st.sampled_from(["replace", "insert", "move", "repeat", "statement", "undo"]))
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 30)))
        if kind == "replace":
            text = text[:start] + draw(st.sampled_from(FRAGMENTS)) + text[end:]
        elif kind == "insert":
            text = text[:start] + draw(st.sampled_from(FRAGMENTS)) + text[start:]
        elif kind == "undo":
            text = draw(st.sampled_from(texts))
        else:
            lines = text.splitlines(keepends=True)
            at = draw(st.integers(0, len(lines)))
            moved = lines[at : at + draw(st.integers(1, 3))]
            if kind == "move":
                del lines[at : at + len(moved)]
                at = draw(st.integers(0, len(lines)))
            elif kind == "statement":
                moved = [draw(st.sampled_from(STATEMENTS))]
            text = "".join(lines[:at] + moved + lines[at:])
        texts.append(text)
    return texts


@settings(
    max_examples=250,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
@given(histories())
def test_with_what_is_known_the_answer_is_the_same(texts: list[str]) -> None:
    cache = StatementCache()
    for text in texts:
        kept = findings(text, cache=cache)
        assert kept == findings(text)
        assert "".join(split_statements(text)) == text


VALID_STATEMENTS = [s for s in STATEMENTS if parses(s)]


@settings(
    max_examples=150,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
@given(
    st.lists(st.sampled_from(VALID_STATEMENTS), unique=True, max_size=10),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=6),
)
def test_moved_and_removed_statements(segments: list[str], moves: list[tuple[int, int]]) -> None:
    cache = StatementCache()
    for source, target in [(0, 0), *moves]:
        moved = segments[source : source + 1]
        if source != target:
            segments = segments[:source] + segments[source + 1 :]
        segments = (
            segments if source + target == 9 else segments[:target] + moved + segments[target:]
        )
        segments = list(dict.fromkeys(segments))
        text = "".join(segments)
        assert findings(text, cache=cache) == findings(text)


@settings(
    max_examples=60,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
@given(st.lists(st.sampled_from([s for s in STATEMENTS if not s.startswith(" ")]), max_size=10))
def test_every_place_lies_in_the_text_and_every_fix_parses_as_before(segments: list[str]) -> None:
    text = "".join(segments)
    for finding in findings(text):
        assert 0 <= finding.span.start <= finding.span.end <= len(text)
        for fix in finding.fixes:
            for one, two in pairwise(sorted(fix.edits)):
                assert not one.span.overlaps(two.span)
    fixed(text)


@settings(
    max_examples=200,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
@given(
    st.text(alphabet=st.sampled_from(" \n\t()[]{}'\"\\#@:=.,;xif\r\x0c\0é😀\ud800"), max_size=60)
)
def test_any_text_is_analysed(text: str) -> None:
    cache = StatementCache()
    assert findings(text + "\nx.cuda()\n", cache=cache) == findings(text + "\nx.cuda()\n")


def test_mixed_line_endings_with_a_cache() -> None:
    text = "cuda.synchronize(); torch.cuda.empty_cache()\r\nimport torch\n"
    assert findings(text, cache=StatementCache()) == findings(text)


def test_another_target_or_style_is_another_answer() -> None:
    text = "import torch\nx.to('cuda')\ntorch.cuda.synchronize()\n"
    cache = StatementCache()
    document = Document("a.py", text, 1)
    for version in (TorchVersion(2, 8), TorchVersion(2, 5), TorchVersion(2, 8)):
        target = Target(version, NPU)
        assert analyze(document, CATALOGUE, target, cache) == analyze(document, CATALOGUE, target)


def test_a_statement_that_moves_keeps_its_findings() -> None:
    cache = StatementCache()
    first = findings("import torch\n\n\nx.cuda()\n", cache=cache)
    second = findings("import torch\ny = 1\n\n\n\nx.cuda()\n", cache=cache)
    assert [f.span.start + 7 for f in first] == [f.span.start for f in second]


def test_the_same_statement_twice_has_two_findings() -> None:
    cache = StatementCache()
    for count in (1, 3, 2, 5):
        text = "import torch\n" + "x.cuda()\n" * count
        assert findings(text, cache=cache) == findings(text)
        assert len(findings(text)) == count


def test_a_repeated_statement_may_mean_something_else() -> None:
    cache = StatementCache()
    text = "import torch\nc = torch.cuda\nc.synchronize()\nc = 3\nc.synchronize()\n"
    for source in (text, text.replace("c = 3", "c = 4"), text):
        assert findings(source, cache=cache) == findings(source)
        assert len(findings(source)) == 2
