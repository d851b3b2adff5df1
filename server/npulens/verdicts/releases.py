"""Conditions on the release of PyTorch, which the release that the code shall run on decides."""

import ast
import operator
import re
from collections.abc import Callable, Mapping

from npulens.catalog.model import TorchVersion
from npulens.syntax.walking import nodes_below
from npulens.verdicts.answers import UNKNOWN, Answer

_VERSION = re.compile(r"\d+(?:\.\d+)*")
_VERSION_NAME = re.compile(r"torch_?(?:version|major)", re.IGNORECASE)
_ORDER: Mapping[type[ast.cmpop], Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_RELATIONS = dict(zip(("<", "<=", ">", ">="), _ORDER.values(), strict=True))


def by_release(test: ast.Call | ast.Compare, release: TorchVersion) -> Answer:
    """`TORCH_VERSION >= (1, 6)`, `is_torch_version("<", "2.1")`: what the target's release says.

    A release that the tables begin with is the oldest that code can be meant for.
    """
    if isinstance(test, ast.Call):
        strings = [a.value for a in test.args if isinstance(a, ast.Constant)]
        if len(strings) != 2 or not all(isinstance(each, str) for each in strings):
            return UNKNOWN
        relation, given = str(strings[0]), _numbers(str(strings[1]))
        compare = _RELATIONS.get(relation)
    else:
        if isinstance(test.ops[0], (ast.Eq, ast.NotEq)):
            return _by_exact_release(test, release)
        compare = _ORDER.get(type(test.ops[0]))
        if compare is None or not _names_version(test.left):
            return UNKNOWN
        given = _version_of(test.comparators[0])
    if compare is None or not given:
        return UNKNOWN
    if isinstance(test, ast.Compare) and (part := _part_of(test.left)) is not None:
        numbers = (*release,)[part : part + 1]
        is_known = part > 0 and len(given) == 1 and numbers != given
        return Answer(compare(numbers, given), "older-torch", test) if is_known else UNKNOWN
    target: tuple[int, ...] = (*release,)[: len(given)]
    if len(given) < 2 and given[0] > 9:
        return UNKNOWN
    if given[: len(target)] == target:
        return UNKNOWN
    return Answer(bool(compare(target, given)), "older-torch", test)


def _part_of(node: ast.expr) -> int | None:
    """Which number of a release is taken: 1 of `int(torch.__version__.split(".")[1])`."""
    for each in nodes_below(node):
        if isinstance(each, ast.Subscript) and isinstance(each.slice, ast.Constant):
            index = each.slice.value
            return index if isinstance(index, int) and index > 0 else None
        if isinstance(each, ast.Attribute) and each.attr == "minor":
            return 1
    return None


def _by_exact_release(test: ast.Compare, release: TorchVersion) -> Answer:
    """`TORCH_VERSION == (1, 8)`; `torch.__version__ == "parrots"`, which is no release at all."""
    if not _names_version(test.left):
        return UNKNOWN
    other, is_equal = test.comparators[0], isinstance(test.ops[0], ast.Eq)
    if isinstance(other, ast.Constant) and isinstance(other.value, str) and other.value.isalpha():
        return Answer(not is_equal, "elsewhere", test)
    given = _version_of(other)
    if not given or given >= (*release,)[: len(given)]:
        return UNKNOWN
    if len(given) == 1 and _part_of(test.left) is not None:
        return UNKNOWN
    return Answer(not is_equal, "older-torch", test)


def by_beginning(node: ast.Call, release: TorchVersion) -> Answer:
    """`torch.__version__.startswith("0.")`."""
    assert isinstance(node.func, ast.Attribute)
    given = getattr(node.args[0], "value", None)
    if not isinstance(given, str) or not given or not _names_version(node.func.value):
        return UNKNOWN
    target = ".".join(map(str, (*release,)))
    is_known = target.startswith(given) or not given.startswith(target)
    return Answer(target.startswith(given), "older-torch", node) if is_known else UNKNOWN


def within_releases(node: ast.Call, name: str, release: TorchVersion) -> Answer:
    """`required_torch_version(max_version="2.0")`: what the target's release says.

    `name` is the last part of what is called.
    """
    target = (*release,) if _VERSION_NAME.search(name) is not None else ()
    for keyword in node.keywords:
        given = _numbers(str(getattr(keyword.value, "value", "")))
        if given and keyword.arg == "max_version" and given < target:
            return Answer(False, "older-torch", node)
    return UNKNOWN


def _names_version(node: ast.expr) -> bool:
    """Whether an expression is the release of PyTorch, or a part of it."""
    return any(_VERSION_NAME.search(_name(part)) is not None for part in nodes_below(node))


def _name(node: ast.AST) -> str:
    """`torch_version` of `torch.__version__`, of others the name or the last part of it."""
    if isinstance(node, ast.Attribute) and node.attr == "__version__":
        return f"{getattr(node.value, 'id', '')}_version"
    return getattr(node, "id", "") or getattr(node, "attr", "")


def _version_of(node: ast.expr) -> tuple[int, ...]:
    """`"1.10"`, `(1, 10)`, `[1, 10]`, `parse("1.10")`, `1`."""
    if isinstance(node, ast.Call) and node.args:
        return _version_of(node.args[0])
    if isinstance(node, (ast.Tuple, ast.List)):
        values = [each.value for each in node.elts if isinstance(each, ast.Constant)]
        numbers = [
            int(value) for value in values if isinstance(value, (int, str)) and str(value).isdigit()
        ]
        return tuple(numbers) if len(numbers) == len(node.elts) else ()
    if isinstance(node, ast.Constant):
        return (node.value,) if type(node.value) is int else _numbers(str(node.value))
    return ()


def _numbers(text: str) -> tuple[int, ...]:
    match = _VERSION.match(text)
    return tuple(map(int, match.group().split(".")[:3])) if match is not None else ()
