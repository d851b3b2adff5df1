"""What meters, sums over an epoch and metrics hold, which is read where it is written."""

from pathlib import Path

import pytest

from helpers import CATALOGUE, code
from npulens.analysis import analyze_shapes
from npulens.text.document import Document
from test_shapes_elsewhere import project, told

METER = """
        import torch
        import torch.nn.functional as F
        from tools.meters import Unknown

        class Meter:
            def update(self, value, count=1):
                {}
                self.last = value
                self.total += value * count
                self.count += count
                self.mean = self.total / self.count if self.count else 0

        def train(model, loader, writer):
            losses = {}()
            for step, (x, y) in enumerate(loader):
                loss = F.mse_loss(model(x.cuda()), y.cuda())
                loss.backward()
                losses.update({}, len(x))
                {}
"""
KEPT = [
    ('writer.add_scalar("loss", losses.last, step)', "losses.last"),
    ('writer.add_scalar("loss", losses.total / 2, step)', "losses.total / 2"),
    ('print("%.3f" % losses.mean)', '"%.3f" % losses.mean'),
    ('text = f"{losses.mean:.3f}"', "losses.mean"),
    ('"{m.mean:.3f}".format(m=losses)', '"{m.mean:.3f}".format(m=losses)'),
]
READ = ["value = float(value.detach())", "value = value.item()"]


def _found(snippet: str) -> list[tuple[str, bool]]:
    ranked = analyze_shapes(Document("m.py", code(snippet)), CATALOGUE).ranked
    hotspots = (each.hotspot for each in ranked)
    return [(h.symbol, h.is_sure) for h in hotspots if h.function == "train"]


@pytest.mark.parametrize(("statement", "symbol"), KEPT)
def test_what_a_meter_keeps_is_read_where_it_is_written(statement: str, symbol: str) -> None:
    snippet = METER.format("pass", "Meter", "loss.data", statement)
    assert _found(snippet) == [(symbol, True)]


@pytest.mark.parametrize("read", READ)
@pytest.mark.parametrize("statement", [statement for statement, _ in KEPT])
def test_a_meter_that_reads_what_it_is_given_keeps_numbers(read: str, statement: str) -> None:
    assert _found(METER.format(read, "Meter", "loss", statement)) == []


def test_a_meter_keeps_no_tensor_of_its_count() -> None:
    assert _found(METER.format("pass", "Meter", "loss", "print(losses.count)")) == []


def test_numbers_that_a_meter_is_given_are_no_tensors() -> None:
    snippet = METER.format("pass", "Unknown", "float(3)", "print(losses.avg)")
    assert _found(snippet) == []


def test_a_meter_of_another_module_very_likely_keeps_them() -> None:
    snippet = METER.format("pass", "Unknown", "loss", "print(losses.avg, losses.count)")
    assert _found(snippet) == [("losses.avg", False)]


TERMS = """
        import torch

        def train(model, loader, parts, weight, run):
            total, factor = 0, 1
            known = 2
            for x in loader:
                first, second = parts(model(x))
                loss = first + 0.5 * second + weight * known
                loss.backward()
                total += {} / len(loader)
            print(f"{{total:.3f}}")
"""
SUMMED = """
        import torch

        def train(model, x, parts, run, weight):
            known = 1
            total = 0
            for name in parts:
                part = parts[name](model(x))
                run.log({{name: float({})}})
                total += {}
            run.backward(total)
"""
METRICS = """
        import torch

        def train(metrics, run, table):
            for name in metrics:
                values = metrics[name].aggregate().to({})
                run.log({{"mean": float(values.mean()), "first": float(values[0])}})
"""


@pytest.mark.parametrize("term", ["first", "second"])
def test_terms_of_a_loss_are_very_likely_tensors(term: str) -> None:
    assert _found(TERMS.format(term)) == [("total", False)]


@pytest.mark.parametrize("term", ["weight", "known"])
def test_weights_of_terms_are_none(term: str) -> None:
    assert _found(TERMS.format(term)) == []


@pytest.mark.parametrize(
    ("read", "term", "expected"),
    [
        ("part", "part", [("float(part)", False)]),
        ("part", "known * part", [("float(part)", False)]),
        ("weight", "weight * part", []),
        ("weight", "part * weight", []),
    ],
)
def test_what_a_loop_adds_up_to_a_loss_is_too(
    read: str, term: str, expected: list[tuple[str, bool]]
) -> None:
    assert _found(SUMMED.format(read, term)) == expected


def test_what_is_moved_and_reduced_is_a_tensor() -> None:
    found = sorted(_found(METRICS.format("run.device")))
    assert found == [("float(values.mean())", True), ("float(values[0])", True)]


def test_quantities_with_units_are_none() -> None:
    assert ("float(values[0])", True) not in _found(METRICS.format('"metres"'))


METERS = """
class Sum:
    def __init__(self):
        self.total = 0

    def update(self, value, count=1):
        self.total += value.detach() * count
        self.count = count
        self.mean = self.total / count


class Reader(object):
    def update(self, value):
        if hasattr(value, "item"):
            value = value.item()
        self.mean = value


class Totals:
    def add(self, name, amount):
        self.amount += amount


class Log:
    def update(self, **values):
        for name, value in values.items():
            self.sums[name] += value.item()
"""
IMPORTING = """
import torch
import torch.nn.functional as F
from pack import meters
from pack.meters import Log, Reader, Sum, Totals


class Trainer:
    def __init__(self, writer):
        self.losses = Sum()
        self.writer = writer

    def train(self, model, loader):
        meter = {made}
        for x, y in loader:
            loss = F.mse_loss(model(x.cuda()), y.cuda())
            loss.backward()
            {statement}
"""
MADE = [
    ("Sum()", "meter.update(loss, 2); print(meter.mean, meter.count)", ["meter.mean"]),
    ("meters.Sum()", "meter.update(value=loss); print(meter.total)", ["meter.total"]),
    ("Sum()", "meter.update(2.0); print(meter.mean)", []),
    ("None", "self.losses.update(loss); print(self.losses.mean)", ["self.losses.mean"]),
    ("Reader()", "meter.update(loss); print(meter.mean, meter.avg)", []),
    ("Totals()", "meter.add('loss', loss); print(meter.amount)", ["meter.amount"]),
    ("Totals()", "meter.add(loss, 1); print(meter.amount)", []),
    ("Log()", "meter.update(loss=loss); print(meter.avg)", []),
]


@pytest.mark.parametrize(("made", "statement", "expected"), MADE)
def test_the_class_of_another_module_says_what_it_keeps(
    tmp_path: Path, made: str, statement: str, expected: list[str]
) -> None:
    text = IMPORTING.format(made=made, statement=statement)
    files = {"pack/__init__.py": "", "pack/meters.py": METERS, "train.py": text}
    assert told(project(tmp_path / "project", files), "train.py") == expected
