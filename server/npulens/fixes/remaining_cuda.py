"""What a migrated script would still use of CUDA.

The check leaves alone what an author has decided for both devices. A script that several processes
run fails in all of them at the first `.cuda()`, so nothing else may be left alone there.
"""

import ast
import re
from collections.abc import Iterator

from npulens.fixes.scripts import Script
from npulens.syntax.walking import parents_below

_DEVICE = re.compile(r"cuda(?::\d+)?")
_BY_NAME = frozenset({"getattr", "hasattr", "setattr", "get", "pop"})
_NOT_A_DEVICE = frozenset({"help", "dest", "description"})
_DECIDING = (ast.If, ast.Try)


def remaining_cuda(script: Script, original: str) -> Iterator[ast.expr]:
    """Calls of `.cuda()` and devices that are CUDA's, but for code that names the NPU by itself."""
    parents = parents_below(script.tree)
    for node in parents:
        if not isinstance(node, ast.expr) or not (
            _moves(node, parents) or _is_device(node, parents)
        ):
            continue
        if not _is_decided(node, script, original, parents):
            yield node


def _moves(node: ast.expr, parents: dict[ast.AST, ast.AST]) -> bool:
    """`x.cuda` of `x.cuda()` or `(x.cuda if ... else x.cpu)()`; `args.cuda` is a flag."""
    if not _is_method(node):
        return False
    called: ast.AST = node
    while isinstance(parents[called], ast.IfExp):
        called = parents[called]
    parent = parents[called]
    return isinstance(parent, ast.Call) and parent.func is called


def _is_method(node: ast.expr) -> bool:
    """`x.cuda` or `getattr(x, "cuda")`."""
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "getattr":
        return any(getattr(each, "value", None) == "cuda" for each in node.args[1:2])
    return isinstance(node, ast.Attribute) and node.attr == "cuda" and not _is_torch(node.value)


def _is_torch(node: ast.expr) -> bool:
    return getattr(node, "id", getattr(node, "attr", "")) in ("torch", "th", "backends")


def _is_device(node: ast.expr, parents: dict[ast.AST, ast.AST]) -> bool:
    """A string that is no key, no name of an attribute and no text for people."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return False
    parent = parents[node]
    if isinstance(parent, ast.Call):
        name = getattr(parent.func, "attr", getattr(parent.func, "id", ""))
        is_other = name in _BY_NAME
    elif isinstance(parent, ast.keyword):
        is_other = parent.arg in _NOT_A_DEVICE
    elif isinstance(parent, ast.Dict):
        is_other = node in parent.keys
    else:
        is_other = isinstance(parent, (ast.Subscript, ast.Expr, ast.JoinedStr))
    return not is_other and _DEVICE.fullmatch(node.value) is not None


def _is_decided(
    node: ast.AST, script: Script, original: str, parents: dict[ast.AST, ast.AST]
) -> bool:
    """Whether the author's own code around it names the NPU: `"npu" if ... else "cuda"`."""
    outer: ast.AST | None = node
    is_innermost = True
    while outer is not None:
        if isinstance(outer, ast.stmt):
            if is_innermost or isinstance(outer, _DECIDING):
                source = script.source(outer)
                if "npu" in source.lower() and source in original:
                    return True
            is_innermost = False
        outer = parents.get(outer)
    return False
