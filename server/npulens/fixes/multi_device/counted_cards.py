"""The number of cards in the size of a batch: a process has one card, and the batch of one."""

import ast
from collections.abc import Iterator

from npulens.fixes.multi_device.loaders import Loaders
from npulens.fixes.multi_device.reading import Reading, last_name
from npulens.syntax.walking import nodes_below
from npulens.training.flow import Value

_COUNTING = frozenset({"torch.cuda.device_count", "torch.npu.device_count"})
_MOST_STEPS = 60


def counted_cards(reading: Reading, loaders: Loaders) -> tuple[ast.Call, ...]:
    """The calls that count cards for the size of a batch of a divided loader."""
    found: dict[ast.Call, None] = {}
    for loader in loaders.made:
        for size in _sizes(reading, loader):
            found.update(dict.fromkeys(_counting(reading, size)))
    return tuple(found)


def _sizes(reading: Reading, loader: ast.expr) -> Iterator[ast.expr]:
    """What a call of `DataLoader` is given as the size of its batches."""
    assert isinstance(loader, ast.Call)
    if len(loader.args) > 1:
        yield loader.args[1]
    for keyword in loader.keywords:
        if keyword.arg == "batch_size":
            yield keyword.value
        elif keyword.arg is None:
            for value in reading.flow.origins(keyword.value):
                if isinstance(value.node, ast.Dict):
                    pairs = zip(value.node.keys, value.node.values, strict=True)
                    yield from (v for k, v in pairs if getattr(k, "value", None) == "batch_size")


def _counting(reading: Reading, size: ast.expr) -> Iterator[ast.Call]:
    """The calls that count cards for a number, also by way of variables."""
    pending: list[ast.AST] = [size]
    known: set[ast.AST] = set()
    while pending and len(known) < _MOST_STEPS:
        top = pending.pop()
        for node in nodes_below(top):
            if node in known or node not in reading.flow.places:
                continue
            known.add(node)
            if isinstance(node, ast.Call) and last_name(node.func) == "device_count":
                if not _COUNTING.isdisjoint(reading.names(node.func)):
                    yield node
            elif isinstance(node, (ast.Name, ast.Attribute)):
                pending += [each.node for each in reading.flow.behind(Value(node))]
