"""What code is for, by the names around it and what its module imports.

Code for the host or for another accelerator keeps its APIs; so does the wrapper of a CUDA library.
"""

import ast

from npulens.catalog.model import Rule
from npulens.catalog.rule_properties import SettledBy
from npulens.catalog.settlements import Settlement
from npulens.checks.context import Context
from npulens.syntax.scopes import Scope

ON_HOST = Settlement("on-host")
_OTHER_ACTIVITIES = frozenset({"HPU", "MTIA", "XPU"})


def out_of_reach(rule: Rule, node: ast.AST, scope: Scope, context: Context) -> Settlement | None:
    """What settles a finding about a PyTorch API: there is nothing to decide for the NPU."""
    if rule.family != "api":
        return None
    if rule.name == "cuda-profiler":
        if node in context.notes.annotations:
            return Settlement("type-only")
        if isinstance(node, ast.Attribute) and node.attr in _OTHER_ACTIVITIES:
            return Settlement("other-device")
        return None
    if SettledBy.OTHER_WAY in rule.settled_by:
        return context.fallback(node)
    return ON_HOST if context.lookups.is_for_others(scope) else None
