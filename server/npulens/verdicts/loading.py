"""Conditions that only choose where a checkpoint is read to.

`torch.load(path) if torch.cuda.is_available() else torch.load(path, map_location="cpu")`: as it is,
an NPU machine reads to the host, which always works. With the NPU in the condition the file is read
to the device that it was saved on, and of a GPU there is none.
"""

import ast
import re
from collections.abc import Sequence

from npulens.syntax.walking import nodes_below

_OPTION = "map_location"
_HOST = "cpu"
_GIVEN = re.compile(rf"{_OPTION}\s*=[\s(]*\Z")
LONGEST_BEFORE = 60
"""How much text in front of an expression is read to see what it is passed to."""


def read_to_host(first: Sequence[ast.AST], second: Sequence[ast.AST]) -> bool:
    """Whether two arms, statements or expressions, differ in that one of them reads to the host."""
    if len(first) != 1 or len(second) != 1 or type(first[0]) is not type(second[0]):
        return False
    if hasattr(first[0], "body"):
        return False  # a chain of conditions, each of which would look at all behind it
    given = [option.value for node in (first[0], second[0]) for option in _options(node)]
    same = _without_locations(first[0]) == _without_locations(second[0])
    return same and [_location(value) for value in given] == [_HOST]


def chooses_host(node: ast.IfExp, before: str) -> bool:
    """`map_location = None if torch.cuda.is_available() else "cpu"`, or given so to a call.

    `before` is the text in front of it, `LONGEST_BEFORE` of it at most.
    """
    arms = {_location(node.body), _location(node.orelse)}
    return _GIVEN.search(before) is not None and arms == {_HOST, None}


def _options(node: ast.AST) -> list[ast.keyword]:
    calls = (part for part in nodes_below(node) if isinstance(part, ast.Call))
    return [option for call in calls for option in call.keywords if option.arg == _OPTION]


def _without_locations(node: ast.AST) -> list[str]:
    """What a node consists of, in order, but for `map_location`."""
    left_out = {id(part) for option in _options(node) for part in nodes_below(option)}
    return [_shown(part) for part in nodes_below(node) if id(part) not in left_out]


def _shown(node: ast.AST) -> str:
    if isinstance(node, ast.Constant):
        return repr(node.value)
    name = getattr(node, "id", "") or getattr(node, "attr", "")
    return f"{type(node).__name__} {name}"


def _location(node: ast.expr) -> object:
    """What is given as a location: `None`, `"cpu"` in whatever form, or something else.

    `"cpu"`, `torch.device("cpu")`, `lambda storage, location: storage`.
    """
    if isinstance(node, ast.Call) and len(node.args) == 1:
        return _location(node.args[0])
    if isinstance(node, ast.Lambda):
        arguments = [argument.arg for argument in node.args.args]
        is_host = isinstance(node.body, ast.Name) and arguments[:1] == [node.body.id]
        return _HOST if is_host else ...
    return node.value if isinstance(node, ast.Constant) else ...
