"""What a condition comes to on an NPU, read off what its parts mean and never off its text.

One evaluator for all: conditions are taken as they are after their own fixes, so that
`torch.cuda.is_available()` holds and its `else` does not run. Three answers: it holds, it does not,
nobody knows; an answer tells what decides.
"""

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from npulens.catalog.model import TorchVersion
from npulens.catalog.verdict_tables import ConditionTable
from npulens.syntax.meanings import Instance, Member, Qualified, Value, resolve
from npulens.syntax.other_modules import OtherModules
from npulens.syntax.scopes import Scope
from npulens.syntax.walking import nodes_below
from npulens.verdicts.answers import UNKNOWN, Answer, joined

_NPU_NAME = re.compile(r"(?:\A|_)(?:npus?|ascend)(?:\Z|_)|NPU|Npu|Ascend", re.ASCII)
_DEVICE_NAME = re.compile(
    r"device|accelerator|platform|backend|\btype\b|hardware|arch", re.IGNORECASE
)
_NUMBERED = re.compile(r":\d+\Z")
_VERSION = re.compile(r"\d+(?:\.\d+)*")
_VERSION_NAME = re.compile(r"torch_?(?:version|major)", re.IGNORECASE)
_ASKS_FOR_LIBRARY = re.compile(
    r"available|installed|find_spec|found|exists|package|importable|has_", re.IGNORECASE
)
_IS_LIBRARY_AVAILABLE = re.compile(
    r"\A_?(?:is|has|have)_(\w+?)(?:_2|_3)?_?(?:is_)?(?:available|installed)\Z"
)
_WORDS = re.compile(r"[^\W_]+")
_ORDER: Mapping[type[ast.cmpop], Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_RELATIONS = dict(zip(("<", "<=", ">", ">="), _ORDER.values(), strict=True))
_NEW_NAMES = frozenset({"torch.accelerator", "torch.npu", "torch.get_autocast_dtype"})
_NEW_MEMBERS = frozenset({"GradScaler", "autocast", "custom_fwd", "custom_bwd", "compile"})
_STRING_TESTS = frozenset({"startswith", "__eq__"})


@dataclass(frozen=True, slots=True)
class Known:
    """What is known for all conditions of a module.

    Attributes:
        table: What names answer on an NPU.
        torch_version: The release that the code shall run on.
        missing_libraries: The roots of libraries that cannot be imported on an NPU.
        missing_names: Names of the module that stand for something of such a library, or say that
            it is there, and are `None` or false without it.
        device_functions: Functions of the module that say which device is used, and know the NPU.
        devices_elsewhere: Those of other modules of the project.
    """

    table: ConditionTable
    torch_version: TorchVersion
    missing_libraries: frozenset[str] = frozenset()
    missing_names: frozenset[str] = frozenset()
    device_functions: frozenset[str] = frozenset()
    devices_elsewhere: OtherModules[bool] | None = None


def answer(test: ast.expr, scope: Scope, known: Known) -> Answer:
    """What a condition comes to on an NPU."""
    return joined(test, lambda part: _of_part(part, scope, known))


def _of_part(test: ast.expr, scope: Scope, known: Known) -> Answer:
    """What a condition comes to that joins no others."""
    if isinstance(test, ast.Compare):
        return _compared(test, scope, known)
    if isinstance(test, ast.Call):
        return _called(test, scope, known)
    if isinstance(test, (ast.Name, ast.Attribute)):
        return _named(test, scope, known)
    return UNKNOWN


def _named(node: ast.Name | ast.Attribute, scope: Scope, known: Known) -> Answer:
    """A name that is asked whether it is true."""
    name = node.id if isinstance(node, ast.Name) else node.attr
    if isinstance(node, ast.Name) and name in known.missing_names:
        return Answer(False, "fallback", node)
    if _is_property_of_tensor(node):
        return UNKNOWN  # a tensor may still be on the host
    if _NPU_NAME.search(name):
        return Answer(True, "npu-way-beside", node)
    of_values = _of_values(node, resolve(node, scope), known)
    return of_values if of_values.holds is not None else _by_words(name, node, known)


def _is_property_of_tensor(node: ast.expr) -> bool:
    """`x.is_cuda`, and what a fix makes of it; `self.is_npu` is somebody's own."""
    if not isinstance(node, ast.Attribute) or node.attr not in ("is_cuda", "is_npu"):
        return False
    return not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"))


def _called(node: ast.Call, scope: Scope, known: Known) -> Answer:
    """A call that is asked whether it is true."""
    callee = node.func
    name = callee.attr if isinstance(callee, ast.Attribute) else getattr(callee, "id", "")
    if name == "hasattr" and len(node.args) == 2:
        return _has_attribute(node, scope, known)
    if name in _STRING_TESTS and isinstance(callee, ast.Attribute) and len(node.args) == 1:
        return _among(callee.value, node.args[0], node, True, known)
    if name == "is_torch_version" and len(node.args) == 2:
        return _by_version(node, known)
    if _VERSION_NAME.search(name):
        return _within_versions(node, known)
    if _NPU_NAME.search(name):
        return Answer(True, "npu-way-beside", node)
    library = _library_asked_for(name, node, known)
    if library:
        return Answer(False, "fallback", node)
    of_values = _of_values(node, resolve(node, scope), known)
    return of_values if of_values.holds is not None else _by_words(name, node, known)


def _of_values(node: ast.expr, values: list[Value], known: Known) -> Answer:
    """What a name is that may only be one thing."""
    if len(values) != 1 or not isinstance(values[0], (Qualified, Instance, Member)):
        return UNKNOWN
    name = values[0].name
    if isinstance(values[0], Qualified) and name.partition(".")[0] in known.missing_libraries:
        return UNKNOWN  # where it is not imported nothing of it is asked
    kind = known.table.names.get(name)
    if kind is None or (isinstance(values[0], Qualified) and name.endswith("is_available")):
        return UNKNOWN
    if kind == "holds":
        is_npus = "cuda" not in name
        return Answer(True, "npu-way-beside" if is_npus else "never-runs-on-npu", node)
    return Answer(False, kind, node)


def _by_words(name: str, node: ast.expr, known: Known) -> Answer:
    """`is_torch_xpu_available()`, `use_tpu`, `in_colab`: devices of other makers, other places."""
    words = [word.lower() for word in _WORDS.findall(name)]
    if not known.table.places.isdisjoint(words):
        return Answer(False, "elsewhere", node)
    if known.table.makers.isdisjoint(words):
        return UNKNOWN
    asks = not {"is", "use", "on", "has", "available", "with"}.isdisjoint(words)
    if (asks or len(words) == 1) and not {"cuda", "gpu", "npu"} & {*words}:
        return Answer(False, "other-device", node)
    return UNKNOWN


def _library_asked_for(name: str, node: ast.Call, known: Known) -> str:
    """The library whose being there a call asks for, if an NPU does not have it."""
    match = _IS_LIBRARY_AVAILABLE.match(name)
    asked = [match[1]] if match is not None else []
    if _ASKS_FOR_LIBRARY.search(name):
        strings = (a.value for a in node.args[:1] if isinstance(a, ast.Constant))
        asked += [value.partition(".")[0] for value in strings if isinstance(value, str)]
    return next((each for each in asked if each in known.missing_libraries), "")


def _has_attribute(node: ast.Call, scope: Scope, known: Known) -> Answer:
    """`hasattr(torch, "accelerator")`: what the target's release has."""
    owner, attribute = node.args
    if not isinstance(attribute, ast.Constant) or not isinstance(attribute.value, str):
        return UNKNOWN
    values = resolve(owner, scope)
    if len(values) != 1 or not isinstance(values[0], Qualified):
        return UNKNOWN
    name = f"{values[0].name}.{attribute.value}"
    if name in _NEW_NAMES:
        return Answer(True, "older-torch", node)
    if attribute.value in _NEW_MEMBERS and values[0].name in ("torch", "torch.amp"):
        return Answer(True, "older-torch", node)
    if values[0].name == "torch" and attribute.value in known.table.makers - {"mps", "xpu", "mtia"}:
        return Answer(False, "other-device", node)
    return UNKNOWN


def _compared(test: ast.Compare, scope: Scope, known: Known) -> Answer:
    """A comparison of two things."""
    if len(test.ops) != 1:
        return UNKNOWN
    left, right, relation = test.left, test.comparators[0], test.ops[0]
    if isinstance(relation, (ast.Is, ast.IsNot)):
        return _compared_to_none(left, right, test, scope, known)
    if isinstance(relation, (ast.Eq, ast.NotEq, ast.In, ast.NotIn)):
        is_positive = isinstance(relation, (ast.Eq, ast.In))
        found = _among(left, right, test, is_positive, known)
        if found.holds is None and not isinstance(relation, (ast.In, ast.NotIn)):
            found = _among(right, left, test, is_positive, known)
        if found.holds is None and isinstance(left, ast.Constant):
            found = _among(right, left, test, is_positive, known)
        if found.holds is not None:
            return found
    version = _by_version(test, known)
    return version if version.holds is not None else _compared_number(test, scope, known)


def _compared_to_none(
    left: ast.expr, right: ast.expr, test: ast.Compare, scope: Scope, known: Known
) -> Answer:
    """`flash_attn is not None`, `torch.version.cuda is None`."""
    if not isinstance(right, ast.Constant) or right.value is not None:
        return UNKNOWN
    if not isinstance(left, (ast.Name, ast.Attribute)):
        return UNKNOWN
    if isinstance(left, ast.Name) and left.id in known.missing_names:
        found = Answer(False, "fallback", test)
    else:
        found = _of_values(left, resolve(left, scope), known)._replace(node=test)
    if found.holds is not False:
        return UNKNOWN
    return found if isinstance(test.ops[0], ast.IsNot) else found.negated()


def _among(
    device: ast.expr, given: ast.expr, test: ast.expr, is_positive: bool, known: Known
) -> Answer:
    """`device.type == "cpu"`, `device in ("cuda", "npu")`: on an NPU the device is `npu`.

    Whether code runs on the NPU or the CPU of such a machine is its own choice: of `"cuda"`, which
    fixes rename, nothing is known.
    """
    elements = given.elts if isinstance(given, (ast.Tuple, ast.List, ast.Set)) else [given]
    values = [each.value for each in elements if isinstance(each, ast.Constant)]
    if not values or len(values) != len(elements) or not all(isinstance(v, str) for v in values):
        return UNKNOWN
    names = {_NUMBERED.sub("", str(value)).rstrip(":").lower() for value in values}
    if "npu" in names:
        return Answer(is_positive, "npu-way-beside", test)
    if "cpu" in names and _is_device_of_tensor(device):
        return UNKNOWN  # a tensor may still be on the host
    if names <= known.table.makers | {"cpu", "meta"} and _is_device(device):
        return Answer(not is_positive, "other-device", test)
    return UNKNOWN


def _is_device_of_tensor(node: ast.expr) -> bool:
    """`x.device.type`, `str(x.device)`; `self.device.type` is a device that somebody chose."""
    if isinstance(node, ast.Call):
        return len(node.args) == 1 and _is_device_of_tensor(node.args[0])
    if isinstance(node, ast.Attribute) and node.attr == "type":
        node = node.value
    if not isinstance(node, ast.Attribute) or node.attr != "device":
        return False
    return not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls", "args"))


def _is_device(node: ast.expr) -> bool:
    """Whether an expression says by its name that it is a device or the type of one."""
    if isinstance(node, ast.Call):
        callee = node.func
        name = callee.attr if isinstance(callee, ast.Attribute) else getattr(callee, "id", "")
        if name in ("str", "lower", "getattr") and (node.args or isinstance(callee, ast.Attribute)):
            inner = callee.value if isinstance(callee, ast.Attribute) else node.args[0]
            return _is_device(inner) or any(
                isinstance(a, ast.Constant) and _DEVICE_NAME.search(str(a.value)) is not None
                for a in node.args[1:2]
            )
        return _DEVICE_NAME.search(name) is not None
    if isinstance(node, ast.Subscript):
        key = node.slice.value if isinstance(node.slice, ast.Constant) else ""
        return _DEVICE_NAME.search(str(key)) is not None or _is_device(node.value)
    if isinstance(node, ast.Attribute):
        return _DEVICE_NAME.search(node.attr) is not None
    return isinstance(node, ast.Name) and _DEVICE_NAME.search(node.id) is not None


def _by_version(test: ast.expr, known: Known) -> Answer:
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
        assert isinstance(test, ast.Compare)
        compare = _ORDER.get(type(test.ops[0]))
        if compare is None or not _names_version(test.left):
            return UNKNOWN
        given = _version_of(test.comparators[0])
    if compare is None or not given:
        return UNKNOWN
    target: tuple[int, ...] = (*known.torch_version,)[: len(given)]
    if len(given) < 2 and given[0] > 9:
        return UNKNOWN
    if given[: len(target)] == target:
        return UNKNOWN
    return Answer(bool(compare(target, given)), "older-torch", test)


def _within_versions(node: ast.Call, known: Known) -> Answer:
    """`required_torch_version(max_version="2.0")`: what the target's release says."""
    target = (*known.torch_version,)
    for keyword in node.keywords:
        given = _numbers(str(getattr(keyword.value, "value", "")))
        if given and keyword.arg == "max_version" and given < target:
            return Answer(False, "older-torch", node)
    return UNKNOWN


def _names_version(node: ast.expr) -> bool:
    """Whether an expression is the release of PyTorch, or a part of it."""
    return any(
        (isinstance(part, ast.Attribute) and _is_version_attribute(part))
        or (isinstance(part, ast.Name) and _VERSION_NAME.search(part.id) is not None)
        for part in nodes_below(node)
    )


def _is_version_attribute(node: ast.Attribute) -> bool:
    if node.attr == "__version__":
        return isinstance(node.value, ast.Name) and node.value.id == "torch"
    return _VERSION_NAME.search(node.attr) is not None


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


def _compared_number(test: ast.Compare, scope: Scope, known: Known) -> Answer:
    """A card's capability, which NPUs do not have; how many devices there are."""
    relation, right = test.ops[0], test.comparators[0]
    names = set(_asked(test.left, scope))
    if names & known.table.cards and isinstance(relation, (ast.GtE, ast.Gt, ast.Eq, ast.In)):
        return Answer(False, "cuda-alone", test)
    if names == {"torch.cuda.device_count"} and isinstance(right, ast.Constant):
        if right.value == 0 and isinstance(relation, (ast.Gt, ast.NotEq)):
            return Answer(True, "never-runs-on-npu", test)
        if right.value == 0 and isinstance(relation, (ast.Eq, ast.LtE)):
            return Answer(False, "never-runs-on-npu", test)
    return UNKNOWN


def _asked(node: ast.expr, scope: Scope) -> Iterator[str]:
    """What was called for a value, or for a part of it."""
    while isinstance(node, ast.Subscript):
        node = node.value
    for value in resolve(node, scope):
        if isinstance(value, (Instance, Member)):
            yield value.name
