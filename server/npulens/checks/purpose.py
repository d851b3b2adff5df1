"""What code is for, told by the names around it and by what its module imports.

Code for the host or for another accelerator keeps its APIs; so does the wrapper of a CUDA library.
"""

import ast
import re

from npulens.catalog.model import Rule
from npulens.catalog.settlements import Settlement
from npulens.checks.context import Context
from npulens.syntax.bindings import Function
from npulens.syntax.scopes import Scope

_NAMED = re.compile(
    r"(?<!to)(?<!from)(?<!offload)_cpu\Z|\Acpu_(?!offload)"
    r"|Dataset\Z|Collat(?:e|or)\Z|\Acollate|\A__getitem__\Z|(?i:cudnn|nvshmem)"
)
"""Functions for the host, those that load data, and those about a library for CUDA."""
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

    It says so by its name, as `_init_weight_cpu` and `TextDataset.__getitem__`, or by what it uses.
    """
    current: Scope | None = scope
    while current is not None:
        node = getattr(current, "node", None)
        if isinstance(node, ast.AST):
            if node not in context.spared_functions:
                text = context.source(node) if isinstance(node, Function) else "cuda"
                uses_other = "cuda" not in text and _OTHER_BACKEND.search(text) is not None
                named = _NAMED.search(getattr(node, "name", "")) is not None
                context.spared_functions[node] = named or uses_other
            if context.spared_functions[node]:
                return True
        current = getattr(current, "owner", None) or current.parent
    return False
