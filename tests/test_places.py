"""Findings and fixes stand at the place that they are about, also beside code that is broken."""

import json
from pathlib import Path

import pytest

from commands import codes, invoke
from helpers import CATALOGUE, code, findings
from npulens.analysis import StatementCache
from npulens.catalog.model import Edit
from npulens.fixes.edit_guard import EditGuard
from npulens.text.spans import Span

NESTED = code(
    '''
    import torch

    {line}

    def run(func, data):
        """Run a function.

        It is important that this text stays as it is.
        """
        return func(data)

    def clean(x: torch.Tensor):
        def inner(x):
            y = torch.zeros(8, dtype=torch.uint8, device=x.device)
            y[y == 0] = 5
            return y
        return run(inner, x)
    '''
)
BROKEN = ["x = ", "def f(:", "print 'Python 2'", "type Pair = = int", "x = (1,", "class"]


@pytest.mark.parametrize("line", [*BROKEN, "type Pair = tuple[int, int]", "x = 1"])
def test_a_fix_in_a_nested_function_leaves_the_text_of_others_alone(here: Path, line: str) -> None:
    before = NESTED.format(line=line)
    (here / "a.py").write_text(before)
    _, _, errors = invoke("fix", "a.py")
    expected = before.replace("y[y == 0] = 5", "y.masked_fill_(y == 0, 5)")
    assert (here / "a.py").read_text() == expected
    assert "internal error" not in errors


@pytest.mark.parametrize("line", BROKEN)
@pytest.mark.parametrize("cached", [False, True])
def test_a_place_in_a_shorter_statement_is_found(line: str, cached: bool) -> None:
    source = code(
        f"""
        import torch
        def apply(func, data):
            return func(data)
            {line}
        def reduce(tensor):
            def inner(tensor):
                loss.backward()


                now = loss.item()
            return apply(inner, tensor)
        """
    )
    cache = StatementCache() if cached else None
    found = {
        source[slice(*f.span)] for f in findings(source, cache=cache) if f.rule.family != "engine"
    }
    assert found == {"loss.item()"}


@pytest.mark.parametrize("clause", ["else:", "elif x:", "except OSError:", "finally:"])
@pytest.mark.parametrize("cached", [False, True])
def test_a_clause_of_nothing_leaves_the_class_before_it_whole(clause: str, cached: bool) -> None:
    source = code(
        """
        import torch
        from torch import nn

        class Solver:
            def __init__(self):
                self.net = nn.Linear(2, 2)

            def train(self, loader):
                for x in loader:
                    loss = self.net(x).sum()
                    loss.backward()
                    print(loss.item())
        """
    )
    before = findings(source)
    assert [f.rule.code for f in before] == ["NPU805"]
    found = findings(f"{source}\n{clause}\n", cache=StatementCache() if cached else None)
    assert [f for f in found if f.rule.code != "NPU001"] == list(before)
    assert len(found) == len(before) + 1


LAMBDAS = code(
    """
    import torch

    def each(function, boxes: torch.Tensor):
        return [function(box) for box in boxes]


    def rows(boxes: torch.Tensor, mask: torch.Tensor):
        boxes.backward()


        return each(lambda box: box.nonzero(), boxes)
    """
)


@pytest.mark.parametrize("end", ["", "x = \n"])
def test_what_happens_in_a_lambda_stands_where_it_is_written(end: str) -> None:
    source = LAMBDAS + end
    found = {source[slice(*f.span)] for f in findings(source) if f.rule.family == "dynamic"}
    assert found == {"box.nonzero()"}


@pytest.mark.parametrize(
    ("line", "edit", "fits"),
    [
        ("x.cuda()", Edit(Span(2, 6), "npu", "cuda"), True),
        ("x.cuda()", Edit(Span(2, 6), "npu", "gpu"), False),  # the text is another one
        ("x.cuda()", Edit(Span(3, 6), "npu", "uda"), False),  # splits a word
        ("x = 1", Edit(Span(5, 5), "0"), True),
        ("xy = 1", Edit(Span(1, 1), "0"), False),
        ('x.to("cuda:0")', Edit(Span(6, 10), "npu", "cuda"), True),
        ('"""It is text."""', Edit(Span(3, 8), "npu", "It is"), False),
        ("x = 1  # cuda", Edit(Span(9, 13), "npu", "cuda"), False),
        ("x = 1  # cuda", Edit(Span(0, 13), "", "x = 1  # cuda"), True),
        ("x = 1  # cuda", Edit(Span(13, 13), "\ny = 2"), True),
        ("x = 1", Edit(Span(4, 9), "2", "1"), False),  # ends behind the text
    ],
)
def test_an_edit_replaces_what_it_is_made_for(line: str, edit: Edit, fits: bool) -> None:
    assert EditGuard(line, CATALOGUE.triggers).fits(edit) is fits


UNENDING = {
    "family": "endless",
    "rules": [
        {
            "code": "END001",
            "name": "to-and-fro",
            "severity": "error",
            "message": {
                "en": "`{symbol}` becomes `{replacement}`.",
                "zh": "改为 `{replacement}`。",
            },
            "explanation": {"en": "Rename.", "zh": "改名。"},
            "examples": [{"before": ["import acme", "acme.left()"], "after": None}],
        }
    ],
    "symbols": [
        {"symbol": f"acme.{one}", "rule": "to-and-fro", "becomes": f"acme.{other}"}
        | {"fix": "safe", "source": "none"}
        for one, other in (("left", "right"), ("right", "left"))
    ],
}


def test_fixes_that_never_end_change_nothing_and_are_a_failure(here: Path) -> None:
    (here / "own.json").write_text(json.dumps(UNENDING))
    (here / "npulens.toml").write_text('extend-rules = ["own.json"]\n')
    (here / "a.py").write_text("import acme\n\nacme.left()\n")
    status, output, errors = invoke("fix", "a.py")
    assert (here / "a.py").read_text() == "import acme\n\nacme.left()\n"
    assert status == 2
    assert errors == "npulens: a.py: not fixed: its fixes still change it after 50 passes\n"
    assert "Fixed 0 problems" in output
    assert codes("a.py") == ["END001"]
