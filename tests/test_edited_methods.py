"""While one method is edited, what is known of the others is kept, and no answer changes."""

import random
from collections.abc import Iterator

import pytest

from helpers import CATALOGUE, NPU, code, findings
from npulens.analysis import StatementCache, analyze
from npulens.catalog.model import Target, TorchVersion
from npulens.text.document import Document

# Methods that lean on each other in every way there is: calls, attributes, helpers, base classes.
MODULE = code(
    '''
    import torch
    from torch import Tensor, nn


    def pick(x, chosen):
        return x[chosen]


    class Base(nn.Module):
        def scaled(self, x: Tensor) -> Tensor:
            return x * self.scale

        def lengths(self, x: Tensor) -> list:
            return x.sum(-1).cpu().tolist()


    class Norm(Base):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(width))
            self.scale = 2.0
            self.eps = 1e-6

        def variance(self, x: Tensor) -> Tensor:
            """The mean of the squares, in x.item() of an example."""
            return x.pow(2).mean(-1, keepdim=True)

        def forward(self, x: Tensor) -> Tensor:
            variance = self.variance(x)
            x = x * torch.rsqrt(variance + self.eps)
            return self.weight * x

        def kept(self, x: Tensor, mask: Tensor) -> Tensor:
            return pick(x, mask.bool())


    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = Norm(8)
            self.device = "cuda"

        def on_host(self, x: Tensor) -> Tensor:
            return x.cpu()

        def _count(self, x: Tensor) -> int:
            return int((x > 0).sum())

        def forward(self, x: Tensor) -> Tensor:
            x = self.norm(x).to("cuda")
            kept = x[x > 0]
            if self._count(x) > 1:
                kept = kept * 2
            return self.norm.scaled(kept)

        def evaluate(self, x: Tensor) -> Tensor:
            torch.cuda.synchronize()
            return self.norm.kept(self.on_host(x), x > 0)
    '''
)
TYPED = (
    *("a", " ", "#", "(", ")", '"', "'''", "x + 1", "self.", "\n", "    ", ", b", "@", "if "),
    *(".item()", "[mask]", "x = x[x > 0]\n        ", "cuda", "return ", ".any()", "not "),
    *("self.eps = ", "self.scale", "self._count(x)", "\r", "\\", "1", "def "),
)


def edited(text: str, chance: random.Random) -> str:
    """A text with something else at one place, most often at the end of a line."""
    start = chance.randrange(len(text))
    if chance.random() < 0.6:
        start = max(text.find("\n", start), 0)
    end = start + chance.choice((0, 0, 1, 3))
    return text[:start] + chance.choice(TYPED) + text[end:]


SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.endurance) for seed in range(1, 8))]


@pytest.mark.parametrize("seed", SEEDS)
def test_edits_within_methods(seed: int) -> None:
    chance = random.Random(seed)
    cache = StatementCache()
    text = MODULE
    for _ in range(40):
        if chance.random() < 0.2:
            text = MODULE
        text = edited(text, chance)
        assert findings(text, cache=cache) == findings(text)
        assert cache.shapes == shapes(text)


TARGET = Target(TorchVersion(2, 8), NPU)


class StoppedError(Exception):
    """The analysis is not wanted any more."""


@pytest.mark.parametrize("seed", SEEDS)
def test_an_analysis_that_is_stopped_leaves_a_good_cache(seed: int) -> None:
    chance = random.Random(seed)
    cache = StatementCache()
    text = MODULE
    stopped = 0
    for _ in range(60):
        text = MODULE if chance.random() < 0.1 else edited(text, chance)
        left = iter(range(chance.choice((0, 1, 2, 4, 8, 1000))))

        def check_cancelled(left: Iterator[int] = left) -> None:
            if next(left, None) is None:
                raise StoppedError

        try:
            found = analyze(
                Document("snippet.py", text, 1), CATALOGUE, TARGET, cache, check_cancelled
            )
        except StoppedError:
            stopped += 1
        else:
            assert found == findings(text)
            assert cache.shapes == shapes(text)
    assert 10 < stopped < 50


CHANGES = [
    # what is edited, and what another method or class says then
    ("x.pow(2)", "x.pow(3)"),
    ("self.eps = 1e-6", "self.eps = 1e-6 + torch.ones(1)"),
    ("return x.cpu()", "return x + 1"),
    ("return int((x > 0).sum())", "return len(x.shape)"),
    ("return x[chosen]", "return x + chosen"),
    ("return x * self.scale", "return x[x > 1]"),
    ("kept = x[x > 0]", "kept = x[:3]"),
    ("def variance(self, x", "def variance(self, y"),
    ("self.norm = Norm(8)", "self.norm = nn.LayerNorm(8)"),
]


@pytest.mark.parametrize(("before", "after"), CHANGES)
def test_what_rests_on_an_edited_method_is_found_anew(before: str, after: str) -> None:
    changed = MODULE.replace(before, after)
    assert changed != MODULE
    assert findings(changed) != findings(MODULE) or shapes(changed) != shapes(MODULE)
    cache = StatementCache()
    for text in (MODULE, changed, MODULE):
        assert findings(text, cache=cache) == findings(text)
        assert cache.shapes == shapes(text)


def shapes(text: str) -> object:
    """What an editor shows of a text that it has not seen before."""
    fresh = StatementCache()
    findings(text, cache=fresh)
    return fresh.shapes


COMMENTED = code(
    '''
    import torch
    from torch import Tensor, nn


    class Head(nn.Module):  # a head
        """Picks what counts; x[mask] # and more"""

        note = "# no comment"

        @torch.no_grad()  # a decorator
        def forward(self, x: Tensor, mask: Tensor) -> Tensor:
            # what is masked
            kept = x[mask > 0]
            text = """
            # part of a string
            """
            total = kept.sum(
                -1,
            )
            if (
                total.max()
                > 1
            ):
                total = total \\
                    + 1
            a = total.item(); b = "#"
            for row in x:
                gate = row * torch.sigmoid(row)
            return self.other(total.cuda(), a), gate


        # between methods
        def other(self, x: Tensor, n: int) -> Tensor:
            variance = x.pow(2).mean(-1, keepdim=True)

            return x * torch.rsqrt(variance + 1e-6)


    def loose(head: Head, x: Tensor) -> Tensor:
        return head.other(x[x > 0], 1).to("cuda")
    '''
)


@pytest.mark.family(2)
@pytest.mark.parametrize(
    "typed",
    ["  # npu", " ", "  # .cuda()", " # npulens: ignore", "\\", '  # """', " # \0", " # \ud800"],
)
@pytest.mark.parametrize("ending", ["\n", "\r"])
def test_what_is_found_follows_comments(typed: str, ending: str) -> None:
    whole = COMMENTED.replace("\n", ending)
    lines = COMMENTED.split("\n")
    cache = StatementCache()
    of_whole = findings(whole), shapes(whole)
    for index, line in enumerate(lines):
        for size in (2, len(typed), 0):
            text = ending.join([*lines[:index], line + typed[:size], *lines[index + 1 :]])
            alone = of_whole if text == whole else (findings(text), shapes(text))
            found = findings(text, cache=cache)
            assert (found, cache.shapes) == alone, (line, typed[:size])


def test_a_definition_that_is_pasted_a_second_time_is_the_one_that_counts() -> None:
    gate = code(
        """
        class Gate(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.proj = nn.Linear(width, width * 2)

            def forward(self, x):
                x, gate = self.proj(x).chunk(2, dim=-1)
                return x * F.gelu(gate)


        """
    )
    start = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n\n"
    end = "class Net(nn.Module):\n    pass\n"
    cache = StatementCache()
    for body in (gate, gate + gate, gate + gate + "\n", gate):
        document = Document("file.py", f"{start}{body}{end}", 1)
        kept = analyze(document, CATALOGUE, Target(), cache)
        assert kept == analyze(document, CATALOGUE, Target())
        assert [finding.rule.code for finding in kept] == ["NPU704"]
