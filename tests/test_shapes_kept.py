"""Shapes of names that an editor keeps while other code is typed are those of a new analysis."""

import tracemalloc
from collections.abc import Iterator
from contextlib import suppress

import pytest

from helpers import CATALOGUE, code
from npulens.analysis import (
    ShapeReport,
    StatementCache,
    analyze,
    analyze_shapes,
    shapes_of_names,
)
from npulens.catalog.model import Target
from npulens.text.document import Document

BEHIND_BASES = """
    import torch
    from torch import nn

    class Base(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 8)

    class Inner(Base):
        def forward(self, x):
            y = self.layer(x)
            return y

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.i = Inner()

        def forward(self, x):
            w = self.i(x)
            return w

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.b = Block()

        def forward(self, x):
            z = self.b(x)
            return z
"""
MADE_BY_A_FUNCTION = """
    import torch
    from torch import nn

    def make(a):
        return nn.Linear(a, 8)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.p = make(4)

        def one(self, x):
            y = self.p(x)
            return y

        def two(self, x):
            z = self.p(x)
            return z
"""
MADE_OF_A_FUNCTION = """
    import torch
    from torch import nn

    def sized():
        return torch.zeros(3, 8)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(sized())

        def one(self, x):
            y = self.w * 2
            return y

        def two(self, x):
            z = self.w * 3
            return z
"""


class _CancelledError(Exception):
    """A key was pressed."""


def names_in(source: str, cache: StatementCache) -> dict[str, str]:
    """The shape of each name that is shown once a text was analysed."""
    analyze(Document("m.py", source), CATALOGUE, Target(), cache)
    return by_name(source, shapes_of_names(cache))


def by_name(source: str, report: ShapeReport) -> dict[str, str]:
    return {source[slice(*hint.span)]: hint.shape for hint in report.hints if hint.shape}


@pytest.mark.parametrize(
    ("text", "name", "before", "after"),
    [
        (BEHIND_BASES, "y", "[..., 8]", "[..., 9]"),
        (BEHIND_BASES, "w", "[..., 8]", "[..., 9]"),
        (BEHIND_BASES, "z", "[..., 8]", "[..., 9]"),
        (MADE_BY_A_FUNCTION, "y", "[..., 8]", "[..., 9]"),
        (MADE_BY_A_FUNCTION, "z", "[..., 8]", "[..., 9]"),
        (MADE_OF_A_FUNCTION, "y", "[3, 8]", "[3, 9]"),
        (MADE_OF_A_FUNCTION, "z", "[3, 8]", "[3, 9]"),
    ],
)
def test_kept_shapes_follow_what_is_typed(text: str, name: str, before: str, after: str) -> None:
    source = code(text)
    cache = StatementCache()
    assert names_in(source, cache)[name] == before
    edited = source.replace("8", "9")
    assert names_in(edited, cache) == names_in(edited, StatementCache())
    assert names_in(edited, cache)[name] == after


@pytest.mark.parametrize("text", [BEHIND_BASES, MADE_BY_A_FUNCTION, MADE_OF_A_FUNCTION])
def test_shapes_follow_what_is_typed_also_when_a_key_cancels_them(text: str) -> None:
    source = code(text)
    middle, last = source.replace("8", "9"), source.replace("8", "16")
    for allowed in range(12):
        cache = StatementCache()
        names_in(source, cache)
        left = iter(range(allowed))

        def check_cancelled(left: Iterator[int] = left) -> None:
            if next(left, None) is None:
                raise _CancelledError

        analyze(Document("m.py", middle), CATALOGUE, Target(), cache)
        with suppress(_CancelledError):
            shapes_of_names(cache, check_cancelled)
        for text_then in (middle, last):
            assert names_in(text_then, cache) == names_in(text_then, StatementCache())


PARAMETERS = """
import torch
from torch import nn


def begun():
    return torch.zeros(3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.p0 = nn.Parameter(begun())
MADE
    def forward(self, x):
        return x[self.p20 > 0]
"""


def test_parameters_made_of_each_other_keep_once_what_they_rest_on() -> None:
    made = (f"        self.p{n + 1} = nn.Parameter(self.p{n} + self.p{n})\n" for n in range(20))
    document = Document("m.py", PARAMETERS.replace("MADE", "".join(made)))
    analyze_shapes(Document("n.py", PARAMETERS.replace("MADE", "")), CATALOGUE)  # reads tables
    tracemalloc.start()
    try:
        report = analyze_shapes(document, CATALOGUE)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [each.hotspot.symbol for each in report.ranked] == ["x[self.p20 > 0]"]
    assert most < 8_000_000


LENGTHS = """
    import copy
    import torch

    class Cutter:
        def __init__(self, net):
            self.net = net
            self.longest = None

        def measure(self, x: torch.Tensor):
            n = x.sum()
            self.longest = int(n)
            self.net.parameters()

        def cut(self, x: torch.Tensor):
            return x[: self.longest], self.net.cpu()
"""
EDITS = [
    ("x.sum()", "x.shape[0]"),
    ("int(n)", "x.shape[0]"),
    ("int(n)", "int(n)\n        self.longest = 3"),
    ("self.net.parameters()", "self.net.forward()"),
]


@pytest.mark.parametrize(("before", "after"), EDITS)
def test_what_methods_read_and_keep_follows_what_is_typed(before: str, after: str) -> None:
    source = code(LENGTHS)
    changed = source.replace(before, after, 1)
    cache = StatementCache()
    found = []
    for text in (source, changed, source):
        document = Document("m.py", text)
        analyze(document, CATALOGUE, Target(), cache)
        found.append([each.hotspot.symbol for each in analyze_shapes(document, CATALOGUE).ranked])
        expected = analyze(document, CATALOGUE, Target(), StatementCache())
        assert analyze(document, CATALOGUE, Target(), cache) == expected
    assert found[0] == found[2] != found[1]
