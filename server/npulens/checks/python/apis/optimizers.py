"""Where a fused optimizer may replace one of PyTorch."""

import ast
import re

from npulens.catalog.localized import LocalizedText
from npulens.catalog.messages import message
from npulens.catalog.model import MigrationStyle
from npulens.checks.context import Context
from npulens.syntax.scopes import ModuleScope, Scope
from npulens.syntax.values import Defined

_EVALUATION = re.compile(
    r"test_(?:step|(?:one_)?epoch(?:_end)?|(?:data)?loader|loop|model|net(?:work)?|set|batch|data"
    r"|all|acc\w*|metrics?|performance|classifier|policy|agent)\Z"
)
"""Functions of trainers, and methods of modules of Lightning, which test no code."""
_STORED = re.compile(r"\bself\.(\w+)[ \t]*=[ \t]*\Z")
_LONGEST_TARGET = 100


def may_be_fused(node: ast.Call | ast.Dict, scope: Scope, context: Context) -> bool:
    """Whether advice on an optimizer that is made or named is of use, as far as the module shows.

    Tests, code for any device and an optimizer of single tensors are left alone. A module that
    only makes optimizers for others need not name the device if the project does.
    """
    evidence = context.facts.signs.evidence
    is_made_for_others = evidence.makes_optimizer_for_others and context.target.project.names_cuda
    return (
        (evidence.may_fuse_optimizer or is_made_for_others)
        and context.target.style is not MigrationStyle.DEVICE_AGNOSTIC
        and not _is_test(scope, context)
        and not (isinstance(node, ast.Call) and _is_of_single_tensors(node))
        and not _is_never_stepped(node, context)
    )


def against_edit(context: Context) -> LocalizedText | None:
    """What other lines have to change before a fused optimizer is right, if there are any."""
    evidence = context.facts.signs.evidence
    if evidence.loses_gradients:
        return message("check.optimizer-gradients")
    if evidence.is_stepped_by_library:
        return message("check.optimizer-in-library")
    if evidence.makes_optimizer_for_others and not evidence.clears_gradients:
        return message("check.optimizer-elsewhere")
    return None


def _is_never_stepped(node: ast.expr, context: Context) -> bool:
    """`self.spare = Adam(...)`, where nothing of the project steps what has that name."""
    unstepped = context.target.project.unused.optimizers
    if not unstepped:
        return False
    start = context.span(node).start
    stored = _STORED.search(context.code.text[max(start - _LONGEST_TARGET, 0) : start])
    return stored is not None and stored[1] in unstepped


def _is_test(scope: Scope, context: Context) -> bool:
    """Whether the module is one of tests; a script may have a function for them too.

    What makes its optimizer when it is imported is a script: tests do that when they run.
    """
    is_script = context.facts.signs.evidence.is_script or isinstance(scope, ModuleScope)
    return any(
        isinstance(binding.value, Defined) and _names_tests(binding.value, is_script)
        for found in context.module.module.names.values()
        for _, bindings in found
        for binding in bindings
    )


def _names_tests(definition: Defined, is_script: bool) -> bool:
    if definition.is_class:
        names = {name for name, _ in definition.members if name.startswith("test_")}
        return not all(map(_EVALUATION.match, names))
    name = definition.name
    evaluates = _EVALUATION.match(name) is not None and name != "test_step"
    return name.startswith("test_") and not evaluates and not is_script


def _is_of_single_tensors(node: ast.Call) -> bool:
    """`SGD([image], lr=1)`: nothing to fuse; a list of groups is made of dictionaries."""
    given = [*node.args[:1], *(k.value for k in node.keywords if k.arg == "params")]
    return (
        bool(given)
        and isinstance(given[0], (ast.List, ast.Tuple))
        and all(isinstance(element, (ast.Name, ast.Attribute)) for element in given[0].elts)
    )
