"""What code is for, told by the names around it and by what its module imports.

Code for the host or for another accelerator keeps its APIs; so does the wrapper of a CUDA library.
"""

import ast
import re

from npulens.catalog.model import Rule
from npulens.catalog.verdicts import Settlement
from npulens.checks.context import Context
from npulens.syntax.bindings import Function
from npulens.syntax.scopes import Scope

_ON_HOST = re.compile(r"(?<!to)(?<!from)(?<!offload)_cpu\Z|\Acpu_(?!offload)")
_LOADS_DATA = re.compile(r"Dataset\Z|Collat(?:e|or)\Z|\Acollate|\A__getitem__\Z")
_OF_CUDA = re.compile(r"cudnn|nvshmem", re.IGNORECASE)
_OTHER_BACKEND = re.compile(r"\btorch\.(?:neuron|mlu|musa|hpu|mtia)\.|\btorch_xla\b")
_OTHER_ACTIVITIES = frozenset({"HPU", "MTIA", "XPU"})


def out_of_reach(rule: Rule, node: ast.AST, scope: Scope, context: Context) -> Settlement | None:
    """What settles a finding about a PyTorch API: there is nothing to decide for the NPU."""
    if rule.family != "api":
        return None
    if rule.name == "cuda-profiler":
        if node in context.annotations:
            return Settlement("type-only")
        if isinstance(node, ast.Attribute) and node.attr in _OTHER_ACTIVITIES:
            return Settlement("other-device")
        return None
    return ON_HOST if is_for_others(scope, context) else None


ON_HOST = Settlement("on-host")


def is_for_others(scope: Scope, context: Context) -> bool:
    """Whether a function is for the host or another accelerator.

    So are those that load data: `_init_weight_cpu`, `TextDataset.__getitem__`.
    """
    current: Scope | None = scope
    while current is not None:
        node = getattr(current, "node", None)
        if isinstance(node, ast.AST):
            if node not in context.spared_functions:
                context.spared_functions[node] = _is_for_others(node, context)
            if context.spared_functions[node]:
                return True
        current = getattr(current, "owner", None) or current.parent
    return False


def _is_for_others(node: ast.AST, context: Context) -> bool:
    """Whether a function or class says so by its name, or uses another accelerator."""
    name = getattr(node, "name", "")
    if any(pattern.search(name) for pattern in (_ON_HOST, _LOADS_DATA, _OF_CUDA)):
        return True
    if not isinstance(node, Function):
        return False
    text = context.source(node)
    return "cuda" not in text and _OTHER_BACKEND.search(text) is not None
