"""What a `setup.py` requests: packages in the arguments of `setup`."""

import ast
import re
from collections.abc import Iterator
from contextlib import nullcontext

from npulens.checks.context import Context
from npulens.checks.other_files.dependencies import is_for_hardware, requirement
from npulens.checks.other_files.launch_report import LaunchReport
from npulens.checks.python.launching.environment import take_over
from npulens.syntax.meanings import resolve
from npulens.syntax.scopes import Scope

_SETUP = "setuptools.setup"
_LISTS = frozenset({"install_requires", "setup_requires", "tests_require", "requires"})
_TABLE = "extras_require"
_NAMES = re.compile(r"require|\breqs\b|_reqs|extras|\b_?deps\b", re.IGNORECASE)
"""Names of lists and tables that go to `setup` under a name of their own."""


def called(node: ast.Call, scope: Scope, context: Context) -> None:
    """`setup(install_requires=["torch==1.10"], extras_require={"train": ["apex"]})`."""
    if not any(keyword.arg in _LISTS or keyword.arg == _TABLE for keyword in node.keywords):
        return
    if not any(getattr(value, "name", "") == _SETUP for value in resolve(node.func, scope)):
        return
    for keyword in node.keywords:
        if keyword.arg in _LISTS or keyword.arg == _TABLE:
            _read(keyword.value, context)


def assigned(node: ast.Assign, scope: Scope, context: Context) -> None:
    """`install_requires = ["torch==1.10"]`, in a module that imports setuptools."""
    names = [target.id for target in node.targets if isinstance(target, ast.Name)]
    if "setup" in context.facts.signs.decisive_words and any(map(_NAMES.search, names)):
        _read(node.value, context)


def _read(node: ast.expr, context: Context) -> None:
    report = LaunchReport(context.code.text, context.catalogue, context.target)
    for string, for_hardware in _strings(node):
        span = context.span(string)
        text = str(string.value)
        if len(text) + 2 == span.end - span.start:  # a plain string in single quotation marks
            with report.settling("other-device") if for_hardware else nullcontext():
                requirement(report, span.start + 1, text)
    take_over(report.finish(), context)


def _strings(node: ast.expr, for_hardware: bool = False) -> Iterator[tuple[ast.Constant, bool]]:
    """The elements of lists, and whether they are of an extra for one kind of hardware."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node, for_hardware
    elif isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        for element in node.elts:
            yield from _strings(element, for_hardware)
    elif isinstance(node, ast.BinOp):
        yield from _strings(node.left, for_hardware)
        yield from _strings(node.right, for_hardware)
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            extra = key.value if isinstance(key, ast.Constant) else ""
            yield from _strings(value, for_hardware or is_for_hardware(str(extra)))
