"""What is said to grow grows when it is run, and every other joined tensor keeps its length."""

import ast
import sys
from itertools import pairwise
from types import FrameType
from typing import Any

import pytest
import torch

from helpers import CATALOGUE, findings
from npulens.analysis import analyze_shapes
from npulens.text.document import Document

SOURCE = """
import torch
from torch import Tensor


def forward(ids: Tensor, steps: int = 4) -> Tensor:
    for _ in range(steps):
        token = ids[:, -1:] + 1
        ids = torch.cat([ids, token], dim=-1)
    return ids


def forward_masks(mask: Tensor) -> Tensor:
    while mask.shape[1] < 9:
        mask = torch.cat((mask, mask[:, -1:]), dim=1)
        both = torch.cat((mask[:, :2], mask[:, :2]), dim=1)
    return both


def forward_window(ids: Tensor) -> Tensor:
    for _ in range(5):
        ids = torch.cat([ids, ids[:, -1:]], dim=1)
        ids = ids[:, 1:]
    return ids


def forward_cut(ids: Tensor) -> Tensor:
    for _ in range(5):
        ids = torch.cat([ids, ids[:, -1:]], dim=1)[:, 1:]
    return ids


def forward_preallocated(ids: Tensor) -> Tensor:
    made = ids.new_zeros(2, 9)
    for step in range(9):
        made[:, step] = ids[:, 0] + step
    return made


def forward_joined(ids: Tensor) -> Tensor:
    parts = []
    for step in range(4):
        parts.append(ids + step)
    whole = torch.cat(parts, dim=1)
    return whole


def forward_anew(ids: Tensor) -> Tensor:
    for step in range(4):
        part = ids + step
        part = torch.cat([part, ids], dim=1)
    return part


def forward_layers(ids: Tensor) -> list:
    past = [ids, ids, ids]
    for _ in range(3):
        for layer in range(3):
            past[layer] = torch.cat([past[layer], ids], dim=1)
    for layer in range(3):
        past[layer] = torch.cat([past[layer], ids], dim=1)
    return past


def forward_stacked(ids: Tensor) -> Tensor:
    rows = ids[:1]
    for _ in range(3):
        rows = torch.vstack([rows, ids[:1]])
    return rows


class Cache:
    def __init__(self) -> None:
        self.keys: Tensor | None = None
        self.recent: Tensor | None = None
        self.layers: list = []

    def forward(self, keys: Tensor) -> Tensor:
        if self.keys is None:
            self.keys = keys
            self.recent = keys
            self.layers = [keys]
        else:
            self.keys = torch.cat([self.keys, keys], dim=1)
            self.layers[0] = torch.cat([self.layers[0], keys], dim=1)
            self.recent = torch.cat([self.recent, keys], dim=1)
            self.recent = self.recent[:, -3:]
        joined = torch.cat([keys, keys], dim=1)
        return joined


def run(ids: Tensor) -> None:
    for function in (
        *(forward, forward_masks, forward_window, forward_cut, forward_preallocated),
        *(forward_joined, forward_anew, forward_stacked),
    ):
        function(ids)
    # Two loops over the same list: only what one loop makes longer in each of its turns grows.
    forward_layers(ids)
    cache = Cache()
    for _ in range(4):
        cache.forward(ids)
"""
IN_ONE_PASS = {"past[layer]"}
"""What one line assigns to several elements is compared element by element."""


def joining() -> dict[int, str]:
    """The targets of the lines that join tensors."""
    found = {}
    for node in ast.walk(ast.parse(SOURCE)):
        if isinstance(node, ast.Assign) and "torch." in ast.unparse(node.value):
            found[node.lineno] = ast.unparse(node.targets[0])
    return found


def grown() -> tuple[set[int], set[int]]:
    """The lines that made something longer each time they ran, and all that ran."""
    targets = joining()
    lengths: dict[tuple[int, object], list[int]] = {}
    before: dict[int, int] = {}

    def note(frame: FrameType) -> None:
        line = before.pop(id(frame), None)
        if line is not None:
            value = eval(targets[line], frame.f_globals, frame.f_locals)
            place = frame.f_locals.get("layer") if targets[line] in IN_ONE_PASS else None
            lengths.setdefault((line, place), []).append(value.numel())

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != "grown.py":
            return None
        if event in ("line", "return"):
            note(frame)
        if event == "line" and frame.f_lineno in targets:
            before[id(frame)] = frame.f_lineno
        return trace

    space: dict[str, Any] = {}
    exec(compile(SOURCE, "grown.py", "exec"), space)
    outer = sys.gettrace()
    sys.settrace(trace)
    try:
        space["run"](torch.ones(2, 3))
    finally:
        sys.settrace(outer)
    longer = {
        line
        for (line, _), found in lengths.items()
        if len(found) > 1 and all(a < b for a, b in pairwise(found))
    }
    return longer, {line for line, _ in lengths}


def test_what_is_said_to_grow_does_and_nothing_else() -> None:
    report = analyze_shapes(Document("snippet.py", SOURCE), CATALOGUE)
    document = Document("snippet.py", SOURCE)
    said = {
        document.position_at(each.hotspot.span.start).line + 1
        for each in report.ranked
        if each.hotspot.rule == "growing-tensor"
    }
    longer, reached = grown()
    assert len(reached) >= 13
    assert len(longer) >= 6
    assert said == longer


def test_the_calls_that_take_what_grows_belong_to_the_finding() -> None:
    source = SOURCE.replace("token = ids[:, -1:] + 1", "token = step(ids, 1)")
    report = analyze_shapes(Document("snippet.py", source), CATALOGUE)
    (place,) = (e for e in report.ranked if e.hotspot.function == "forward")
    assert [source[slice(*span)] for _, span in place.hotspot.used] == ["step(ids, 1)"]


LAYERS = """
import torch
from torch import Tensor, nn


class Dense(nn.ModuleList):
    def forward(self, x: Tensor) -> Tensor:
        for layer in self:
            x = torch.cat([x, layer(x)], dim=1)
        for _, layer in enumerate(self.more[1:]):
            x = torch.cat([x, layer(x)], dim=1)
        for _ in range(self.steps):
            x = torch.cat([x, self.head(x)], dim=1)
        return x
"""


def test_a_loop_over_layers_is_as_long_as_the_model() -> None:
    document = Document("model.py", LAYERS)
    report = analyze_shapes(document, CATALOGUE)
    grown = [
        document.position_at(each.hotspot.span.start).line + 1
        for each in report.ranked
        if each.hotspot.rule == "growing-tensor"
    ]
    assert grown == [13]


ONE_TURN = """
import torch


def forward(x, n):
    pose = x
    for step in range(n):
        if TEST:
            pose = torch.cat((pose, pose), dim=0)
        x = x + pose.sum()
    return x
"""


@pytest.mark.parametrize(
    ("test", "grows"),
    [
        ("step == 0", False),
        ("flag and step == 0", False),
        ("step != 0", True),
        ("flag == 0", True),
    ],
)
def test_what_one_turn_of_a_loop_joins_does_not_grow(test: str, *, grows: bool) -> None:
    found = findings(ONE_TURN.replace("TEST", test))
    assert any(finding.rule.code == "NPU809" for finding in found) is grows
