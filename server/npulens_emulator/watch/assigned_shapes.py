"""The shapes of tensors that the user's code assigns to names, if the settings ask for them."""

import ast
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from npulens_emulator.watch.record import Record

Name = tuple[int, str]
"""A name that is assigned, with its line."""
_Tracer = Callable[[FrameType, str, Any], Any]
_Names = Mapping[int, tuple[int, tuple[Name, ...]]]
"""For each line of a statement that assigns: where that starts, and the names."""


def with_shapes(record: Record, before: _Tracer) -> _Tracer:
    """A function for `sys.settrace` that notes shapes besides what another one does.

    Args:
        record: Where they are noted.
        before: The other one.
    """
    known: dict[str, _Names] = {}

    def names_of(filename: str) -> _Names:
        if filename not in known:
            known[filename] = {}
            if record.relative(filename) is not None:
                known[filename] = assigned_names(filename)
        return known[filename]

    def on_call(frame: FrameType, event: str, argument: Any) -> Any:
        inner = before(frame, event, argument)
        names = names_of(frame.f_code.co_filename)
        return _Follower(record, names, inner) if names else inner

    return on_call


def assigned_names(filename: str) -> _Names:
    """The names that each line of a file belongs to the assignment of; empty if it has none."""
    try:
        tree = ast.parse(Path(filename).read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    found: dict[int, tuple[int, tuple[Name, ...]]] = {}
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = tuple(
            (each.lineno, each.id)
            for target in targets
            for each in ast.walk(target)
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
        )
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
            if names:
                found[line] = node.lineno, names
    return found


class _Follower:
    """Follows one frame: what a statement has assigned is there when another line begins."""

    __slots__ = ("_inner", "_names", "_pending", "_record", "_start")

    def __init__(self, record: Record, names: _Names, inner: Any) -> None:
        self._record = record
        self._names = names
        self._inner = inner
        self._pending: tuple[Name, ...] = ()
        self._start = 0

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        if self._inner is not None:
            self._inner(frame, event, argument)
        start, names = self._names.get(frame.f_lineno, (0, ()))
        if event == "return" or (event == "line" and (start != self._start or not start)):
            if self._pending:
                self._note(frame)
            self._start, self._pending = start, names
        elif event == "exception":
            self._start, self._pending = 0, ()
        return self

    def _note(self, frame: FrameType) -> None:
        torch = sys.modules.get("torch")
        kind = getattr(torch, "Tensor", None)
        path = self._record.relative(frame.f_code.co_filename)
        if kind is None or path is None:
            return
        held = frame.f_locals
        for line, name in self._pending:
            value = held.get(name)
            if isinstance(value, kind):
                self._record.note_shape((path, line, name), tuple(value.shape))
