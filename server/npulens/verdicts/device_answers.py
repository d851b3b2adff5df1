"""Functions that say which device is used, and know the NPU: their callers have been ported.

`if get_device_name() == "cuda":` is then about CUDA alone, and right as it is.
"""

import ast
import re
from collections.abc import Iterator

from npulens.syntax.meanings import Instance, LocalInstance, resolve
from npulens.syntax.scopes import Scope
from npulens.verdicts.answers import UNKNOWN, Answer, joined
from npulens.verdicts.conditions import Known

_FUNCTION = re.compile(r"^(?:async )?def (\w*device\w*)\(", re.MULTILINE)
_NEXT = re.compile(r"^[\w@]", re.MULTILINE)
"""What follows a function."""
_KNOWS_NPU = re.compile(
    r"""["']npu\b|\b(?:current_accelerator|_get_available_device_type)\("""
    r"""|\bis_\w*npu_available|\btorch_npu\b|\.npu\."""
)
TRACES = (
    *('"npu', "'npu", "npu_available", "torch_npu", ".npu."),
    *("current_accelerator(", "_get_available_device_type("),
)
"""One of these is in a function that knows the NPU; found far sooner than by expression."""
_OF_PYTORCH = frozenset(
    {"torch.accelerator.current_accelerator", "torch._utils._get_available_device_type"}
)


def device_functions(text: str) -> Iterator[str]:
    """The names of such functions at the top of a module, or of a part of it."""
    if not any(trace in text for trace in TRACES):
        return
    for function in _FUNCTION.finditer(text):
        end = _NEXT.search(text, function.end())
        if _KNOWS_NPU.search(text, function.end(), end.start() if end else len(text)):
            yield function[1]


def is_from_device_function(node: ast.expr, scope: Scope, known: Known) -> bool:
    """Whether an expression is what such a function returned, or the type of it."""
    if isinstance(node, ast.Attribute) and node.attr == "type":
        node = node.value
    for value in resolve(node, scope):
        if isinstance(value, LocalInstance) and value.definition.name in known.device_functions:
            return True
        if isinstance(value, Instance) and (
            value.name in _OF_PYTORCH
            or (known.devices_elsewhere is not None and known.devices_elsewhere.find(value.name))
        ):
            return True
    return False


def holds_on_cuda(test: ast.expr, scope: Scope, known: Known) -> bool | None:
    """Whether a test of what such a function says holds on CUDA and not on the NPU.

    Returns `False` if it does not hold on CUDA, `None` of every other test.
    """
    found = joined(test, lambda part: _compares(part, scope, known))
    return None if found.holds is None else not found.holds


def _compares(test: ast.expr, scope: Scope, known: Known) -> Answer:
    """What `get_device() == "cuda"` and `get_device().startswith("cuda")` come to on an NPU."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        is_positive = isinstance(test.ops[0], (ast.Eq, ast.In))
        if not is_positive and not isinstance(test.ops[0], (ast.NotEq, ast.NotIn)):
            return UNKNOWN
        device, given = test.left, test.comparators[0]
    elif isinstance(test, ast.Call) and isinstance(test.func, ast.Attribute) and test.args:
        is_positive = True
        if test.func.attr != "startswith":
            return UNKNOWN
        device, given = test.func.value, test.args[0]
    else:
        return UNKNOWN
    is_about_cuda = _is_cuda_alone(given) and is_from_device_function(device, scope, known)
    return Answer(not is_positive, "ported", test) if is_about_cuda else UNKNOWN


def _is_cuda_alone(node: ast.expr) -> bool:
    """`"cuda"` or `("cuda", "xpu")`."""
    elements = node.elts if isinstance(node, (ast.Tuple, ast.List, ast.Set)) else [node]
    values = [element.value for element in elements if isinstance(element, ast.Constant)]
    return "cuda" in values and "npu" not in values
