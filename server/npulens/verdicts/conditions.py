"""What a condition comes to on an NPU, read off what its parts mean and never off its text.

One evaluator for all: conditions are taken as they are after their own fixes, so that
`torch.cuda.is_available()` holds and its `else` does not run. Three answers: it holds, it does not,
nobody knows; an answer names what decides.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from npulens.catalog.model import TorchVersion
from npulens.catalog.verdict_tables import ConditionTable
from npulens.syntax.meanings import Instance, Member, Qualified, Value, resolve
from npulens.syntax.other_modules import OtherModules
from npulens.syntax.pytorch_names import IN_ALL_RELEASES
from npulens.syntax.scopes import Scope
from npulens.syntax.values import last_name
from npulens.verdicts.answers import UNKNOWN, Answer, joined
from npulens.verdicts.library_questions import queried_library
from npulens.verdicts.releases import by_beginning, by_release, within_releases

_NPU_NAME = re.compile(r"(?:\A|_)(?:npus?|ascend)(?:\Z|_)|NPU|Npu|Ascend", re.ASCII)
_DEVICE_NAME = re.compile(
    r"device|accelerator|platform|backend|\b(?:type|dev)\b|hardware|arch|(?:\b|_)mode\b",
    re.IGNORECASE,
)
_KEEPS = re.compile(
    r"offload|out|dest|target|map|stor|cach|buffer|load|save|param|optim", re.IGNORECASE
)
"""What something is kept in or moved to, which may be the host beside an NPU."""
_BESIDE = frozenset({"cpu", "meta"})
"""Devices that are there beside an NPU."""
_NPUS = frozenset({"npu", "ascend"})
_NUMBERED = re.compile(r":\d+\Z")
_WORDS = re.compile(r"[^\W_]+")
_CHOICES = ({"use", "cuda"}, {"use", "gpu"})
_NEW_NAMES = frozenset({"torch.accelerator", "torch.npu"}) | IN_ALL_RELEASES
_NEW_MEMBERS = frozenset({"GradScaler", "autocast", "custom_fwd", "custom_bwd", "compile"})
_COUNTS = frozenset(
    {"torch.cuda.device_count", "torch.npu.device_count", "torch.accelerator.device_count"}
)
_STRING_TESTS = frozenset({"startswith", "__eq__"})


@dataclass(frozen=True, slots=True)
class Known:
    """What is known for all conditions of a module.

    Attributes:
        table: What names answer on an NPU.
        torch_version: The release that the code shall run on.
        missing_libraries: The roots of libraries that cannot be imported on an NPU.
        missing_names: Names of the module that represent something of such a library, or say that
            it is there, and are `None` or false without it.
        device_functions: Functions of the module that say which device is used, and know the NPU.
        devices_elsewhere: Those of other modules of the project.
        uses_npu: Whoever starts the code has chosen the NPU, and not the host beside it.
        cards: How many there are at least.
        in_step: A step of a model on the NPU is evaluated: tensors are there, and nothing is
            exported, traced or compiled.
    """

    table: ConditionTable
    torch_version: TorchVersion
    missing_libraries: frozenset[str] = frozenset()
    missing_names: frozenset[str] = frozenset()
    device_functions: frozenset[str] = frozenset()
    devices_elsewhere: OtherModules[bool] | None = None
    uses_npu: bool = False
    cards: int = 1
    in_step: bool = False


def answer(test: ast.expr, scope: Scope, known: Known) -> Answer:
    """What a condition evaluates to on an NPU."""
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
    """A name that is used as a condition."""
    name = node.id if isinstance(node, ast.Name) else node.attr
    if isinstance(node, ast.Name) and name in known.missing_names:
        return Answer(False, "fallback", node)
    if queried_library(node, known.missing_libraries):
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
    """A call that is used as a condition."""
    callee = node.func
    name = last_name(callee)
    if name == "hasattr" and len(node.args) == 2:
        return _has_attribute(node, scope, known)
    if name in _STRING_TESTS and isinstance(callee, ast.Attribute) and len(node.args) == 1:
        version = by_beginning(node, known.torch_version)
        return (
            version
            if version.holds is not None
            else _among(callee.value, node.args[0], node, True, scope, known)
        )
    if name == "is_torch_version" and len(node.args) == 2:
        return by_release(node, known.torch_version)
    within = within_releases(node, name, known.torch_version)
    if within.holds is not None:
        return within
    if _NPU_NAME.search(name):
        return Answer(True, "npu-way-beside", node)
    if queried_library(node, known.missing_libraries):
        return Answer(False, "fallback", node)
    of_values = _of_values(node, resolve(node, scope), known)
    return of_values if of_values.holds is not None else _by_words(name, node, known)


def _of_values(node: ast.expr, values: list[Value], known: Known) -> Answer:
    """What a name is that may only be one thing."""
    if len(values) != 1 or not isinstance(values[0], (Qualified, Instance, Member)):
        return UNKNOWN
    name = values[0].name
    if isinstance(values[0], Qualified) and name.partition(".")[0] in known.missing_libraries:
        return UNKNOWN  # where it is not imported nothing is checked
    kind = known.table.names.get(name)
    if kind is None or (isinstance(values[0], Qualified) and name.endswith("is_available")):
        return UNKNOWN
    if kind == "holds":
        is_npus = "cuda" not in name
        return Answer(True, "npu-way-beside" if is_npus else "never-runs-on-npu", node)
    return Answer(False, kind, node)


@lru_cache(maxsize=8_192)
def _words_of(name: str) -> tuple[str, ...]:
    """The words of a name in lower case; most names occur in a project many times."""
    return tuple(word.lower() for word in _WORDS.findall(name))


def _by_words(name: str, node: ast.expr, known: Known) -> Answer:
    """`is_torch_xpu_available()`, `use_tpu`, `in_colab`: devices of other makers, other places.

    In a step `is_tracing()` and `self.onnx_export`, too.
    """
    words = _words_of(name)
    if known.in_step and known.table.is_export(words):
        return Answer(False, "elsewhere", node)
    if known.uses_npu and {*words} in _CHOICES:
        return Answer(True, "never-runs-on-npu", node)
    if not known.table.places.isdisjoint(words):
        return Answer(False, "elsewhere", node)
    if known.table.makers.isdisjoint(words):
        return UNKNOWN
    is_query = not {"is", "use", "on", "has", "available", "with"}.isdisjoint(words)
    if (is_query or len(words) == 1) and not {"cuda", "gpu", "npu"} & {*words}:
        return Answer(False, "other-device", node)
    return UNKNOWN


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
    if name in known.table.gone:
        return Answer(False, "older-torch", node)
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
        found = _among(left, right, test, is_positive, scope, known)
        if found.holds is None and not isinstance(relation, (ast.In, ast.NotIn)):
            found = _among(right, left, test, is_positive, scope, known)
        if found.holds is None and isinstance(left, ast.Constant):
            found = _among(right, left, test, is_positive, scope, known)
        if found.holds is not None:
            return found
    version = by_release(test, known.torch_version)
    return version if version.holds is not None else _compared_number(test, scope, known)


def _compared_to_none(
    left: ast.expr, right: ast.expr, test: ast.Compare, scope: Scope, known: Known
) -> Answer:
    """`flash_attn is not None`, `torch.version.cuda is None`."""
    if not isinstance(right, ast.Constant) or right.value is not None:
        return UNKNOWN
    if not isinstance(left, (ast.Name, ast.Attribute, ast.Call)):
        return UNKNOWN
    is_missing = isinstance(left, ast.Name) and left.id in known.missing_names
    if is_missing or queried_library(left, known.missing_libraries):
        found = Answer(False, "fallback", test)
    else:
        found = _of_values(left, resolve(left, scope), known)._replace(node=test)
    if found.holds is not False:
        return UNKNOWN
    return found if isinstance(test.ops[0], ast.IsNot) else found.negated()


def _among(
    device: ast.expr,
    given: ast.expr,
    test: ast.expr,
    is_positive: bool,
    scope: Scope,
    known: Known,
) -> Answer:
    """`device.type == "cpu"`, `device in ("cuda", "npu")`: on an NPU the device is `npu`.

    Whether code runs on the NPU or the CPU of such a machine is its own choice: of `"cuda"`, which
    fixes rename, nothing is known unless the choice is.
    """
    elements = given.elts if isinstance(given, (ast.Tuple, ast.List, ast.Set)) else [given]
    values = [_device_given(each, scope) for each in elements]
    names = {_NUMBERED.sub("", value).rstrip(":").lower() for value in values if value}
    if not values or None in values:
        return UNKNOWN
    if not names.isdisjoint(_NPUS):
        return Answer(is_positive, "npu-way-beside", test)
    name = _device_name(device)
    if known.uses_npu and "cuda" in names and name:
        return Answer(is_positive, "never-runs-on-npu", test)
    if not names <= known.table.makers | _BESIDE or not name:
        return UNKNOWN
    if not names.isdisjoint(_BESIDE) and _KEEPS.search(name) is not None:
        return UNKNOWN
    if "cpu" in names and not known.in_step and _is_device_of_tensor(device):
        return UNKNOWN  # a tensor may still be on the host
    return Answer(not is_positive, "other-device", test)


def _device_given(node: ast.expr, scope: Scope) -> str | None:
    """What `"cpu"` or `torch.device("cpu")` says; `None` of everything else."""
    if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
        is_device = isinstance(node.args[0], ast.Constant) and Instance("torch.device") in (
            resolve(node, scope)
        )
        return _device_given(node.args[0], scope) if is_device else None
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return node.value if is_text else None  # type: ignore[attr-defined]


def _is_device_of_tensor(node: ast.expr) -> bool:
    """`x.device.type`, `str(x.device)`; `self.device.type` is a device that somebody chose."""
    if isinstance(node, ast.Call):
        return len(node.args) == 1 and _is_device_of_tensor(node.args[0])
    if isinstance(node, ast.Attribute) and node.attr == "type":
        node = node.value
    if not isinstance(node, ast.Attribute) or node.attr != "device":
        return False
    return not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls", "args"))


def _device_name(node: ast.expr) -> str:
    """The name by which an expression says that it is a device, or the type of one; else nothing.

    Of `self.offload_device.type` that is `offload_device`.
    """
    if isinstance(node, ast.Call):
        return _device_name_of_call(node)
    if isinstance(node, ast.Subscript):
        key = node.slice.value if isinstance(node.slice, ast.Constant) else ""
        return _if_device(str(key)) or _device_name(node.value)
    if isinstance(node, ast.Attribute):
        owner = _device_name(node.value) if node.attr == "type" else ""
        return owner or _if_device(node.attr)
    return _if_device(node.id) if isinstance(node, ast.Name) else ""


def _device_name_of_call(node: ast.Call) -> str:
    """The same of `str(device)`, `device.lower()`, `getattr(config, "device")`, `get_device()`."""
    callee = node.func
    name = last_name(callee)
    if name in ("str", "lower", "getattr") and (node.args or isinstance(callee, ast.Attribute)):
        inner = callee.value if isinstance(callee, ast.Attribute) else node.args[0]
        attributes = (str(a.value) for a in node.args[1:2] if isinstance(a, ast.Constant))
        return _device_name(inner) or "".join(map(_if_device, attributes))
    return _if_device(name)


def _if_device(name: str) -> str:
    return name if _DEVICE_NAME.search(name) is not None else ""


def _compared_number(test: ast.Compare, scope: Scope, known: Known) -> Answer:
    """A card's capability, which NPUs do not have; how many devices there are."""
    relation, right = test.ops[0], test.comparators[0]
    if isinstance(right, ast.Constant) and not isinstance(right.value, (int, float)):
        return UNKNOWN
    names = set(_compared_names(test.left, scope))
    if names & known.table.cards and isinstance(relation, (ast.GtE, ast.Gt, ast.Eq, ast.In)):
        return Answer(False, "cuda-alone", test)
    if names and names <= _COUNTS and isinstance(right, ast.Constant) and type(right.value) is int:
        holds = _of_count(relation, right.value, known.cards)
        return UNKNOWN if holds is None else Answer(holds, "never-runs-on-npu", test)
    return UNKNOWN


def _of_count(relation: ast.cmpop, number: int, fewest: int) -> bool | None:
    """What a comparison comes to of every count from the fewest on."""
    if isinstance(relation, (ast.Gt, ast.NotEq)) and number < fewest:
        return True
    if isinstance(relation, ast.GtE) and number <= fewest:
        return True
    if isinstance(relation, (ast.LtE, ast.Eq)) and number < fewest:
        return False
    return False if isinstance(relation, ast.Lt) and number <= fewest else None


def _compared_names(node: ast.expr, scope: Scope) -> Iterator[str]:
    """What was called for a value, or for a part of it."""
    while isinstance(node, ast.Subscript):
        node = node.value
    for value in resolve(node, scope):
        if isinstance(value, (Instance, Member)):
            yield value.name
