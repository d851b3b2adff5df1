"""Runs functions and records which tensors change shape with the data, and which lines wait."""

import ast
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

WAITING = frozenset(
    {"_local_scalar_dense", "nonzero", "masked_select", "_unique", "_unique2", "unique_dim"}
    | {"unique_consecutive", "unique_dim_consecutive", "bincount", "equal", "allclose", "argwhere"}
    | {"is_nonzero", "item"}
)
"""ATen operators after which the host has to know something about values."""
WAITING_METHODS = frozenset({"cpu", "numpy", "tolist", "__repr__", "__format__", "__contains__"})
"""Python methods that copy to the host without such an operator."""

_BY_TENSOR = "aten.repeat_interleave.Tensor"

Name = tuple[int, str]
"""An assigned name with the line of its assignment."""
Shapes = list[tuple[int, ...]]


class _Marker(ast.NodeTransformer):
    """Puts a call behind each assignment that is told what was assigned."""

    def visit(self, node: ast.AST) -> Any:
        self.generic_visit(node)
        if isinstance(node, ast.AugAssign | ast.AnnAssign):
            return [node, *self._records(node, [node.target])]
        if isinstance(node, ast.Assign):
            return [node, *self._records(node, node.targets)]
        return node

    def _records(self, node: ast.stmt, targets: Sequence[ast.expr]) -> list[ast.stmt]:
        names = [n for target in targets for n in assigned_names(target)]
        made = [
            ast.parse(f"__assigned__({node.lineno}, {name!r}, {name})").body[0] for name in names
        ]
        for statement in made:
            for inner in ast.walk(statement):
                if hasattr(inner, "lineno"):
                    ast.copy_location(inner, node)
        return made


def with_marks(source: str) -> CodeType:
    """A module that calls `__assigned__(line, name, value)` behind each assignment of a name."""
    return compile(_Marker().visit(ast.parse(source)), "marked.py", "exec")


def assigned_names(target: ast.expr) -> list[str]:
    """The plain names that a target assigns."""
    if isinstance(target, ast.Name):
        return [target.id]
    if isinstance(target, ast.Tuple | ast.List):
        return [name for element in target.elts for name in assigned_names(element)]
    return []


class Execution:
    """Runs the functions of a file.

    Attributes:
        shapes: Of each assigned tensor its shapes, run by run.
        waits: The lines that waited for values in some run.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.shapes: dict[Name, dict[str, list[Shapes]]] = {}
        self.waits: set[int] = set()
        self._run: dict[Name, Shapes] = {}
        self.checks_range = False  # `one_hot` does so on the CPU alone
        tree = _inside_functions(ast.parse(path.read_text(encoding="utf-8")))
        self._code: CodeType = compile(tree, str(path), "exec")
        self.module: dict[str, Any] = {"__name__": "functions", "__assigned__": self._assigned}
        exec(self._code, self.module)

    def run(self, root: str, function: Callable[..., Any], arguments: Sequence[object]) -> None:
        """Call a function once; `root` tells its runs from those of others."""
        self._run = {}
        with _Functions(self), _Operators(self), torch.no_grad():
            function(*arguments)
        for name, shapes in self._run.items():
            self.shapes.setdefault(name, {}).setdefault(root, []).append(shapes)

    def changing(self) -> Mapping[Name, bool]:
        """Of each assigned tensor whether its shape is another where the data are others."""
        return {
            name: any(_differ(runs) for runs in by_root.values())
            for name, by_root in self.shapes.items()
        }

    def _assigned(self, line: int, name: str, value: object) -> None:
        if isinstance(value, Tensor):
            self._run.setdefault((line, name), []).append(tuple(value.shape))

    def waited(self) -> None:
        """Note the line of the innermost frame of the file."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename == str(self.path):
                self.waits.add(frame.f_lineno)
                return
            frame = frame.f_back


def _inside_functions(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            _Marker().generic_visit(node)
    return tree


def _differ(runs: Sequence[Shapes]) -> bool:
    """Whether two runs have another shape at the same turn of a loop."""
    return any(first != second for run in runs for first, second in zip(runs[0], run, strict=False))


class _Operators(TorchDispatchMode):
    def __init__(self, execution: Execution) -> None:
        super().__init__()
        self._execution = execution

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if _waits(func, args, kwargs or {}) and not self._execution.checks_range:
            self._execution.waited()
        return func(*args, **(kwargs or {}))


def _waits(func: Any, args: Sequence[Any], keywords: Mapping[str, Any]) -> bool:
    name = func._schema.name.removeprefix("aten::")
    if str(func) == _BY_TENSOR:
        return keywords.get("output_size") is None  # given, it need not be read from the device
    return name in WAITING or _indexes_by_mask(func, args)


def _indexes_by_mask(func: Any, args: Sequence[Any]) -> bool:
    if func._schema.name != "aten::index":
        return False
    return any(index is not None and index.dtype in (torch.bool, torch.uint8) for index in args[1])


class _Functions(TorchFunctionMode):
    def __init__(self, execution: Execution) -> None:
        super().__init__()
        self._execution = execution

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        is_method = getattr(func, "__name__", "") in WAITING_METHODS
        if is_method and args and isinstance(args[0], Tensor):
            self._execution.waited()
        known_classes = len(args) > 1 or (kwargs or {}).get("num_classes", -1) != -1
        before = self._execution.checks_range
        self._execution.checks_range = is_named(func, "one_hot") and known_classes
        try:
            return func(*args, **(kwargs or {}))
        finally:
            self._execution.checks_range = before


def is_named(func: Any, name: str) -> bool:
    """Whether a function of PyTorch has this name."""
    return getattr(func, "__name__", "") == name
