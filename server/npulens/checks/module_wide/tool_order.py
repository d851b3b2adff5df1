"""Calls of the precision tools that come too late, or too early, to do their work.

Sources: Ascend/msprobe, docs/zh/user_guide/config_check_instruct.md, docs/zh/support/faq.md;
python/msprobe/core/config_check/checkers/random_checker.py.
"""

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from npulens.catalog.messages import message
from npulens.catalog.model import Finding, LocalizedText
from npulens.catalog.tables import Catalogue
from npulens.checks.shared_rules import TOOL_USE
from npulens.checks.whole_module import WholeModule
from npulens.syntax.meanings import Local, Qualified, Value, resolve
from npulens.syntax.scopes import definitions_around

_CHECKER = "msprobe.core.config_check.ConfigChecker"
_PATCHING = f"{_CHECKER}.apply_patches"
_DEBUGGER = "msprobe.pytorch.PrecisionDebugger"
_ENGINE = "vllm.LLM"
_RECORDED = frozenset(
    {f"random.{name}" for name in ("random", "randint", "uniform", "choice")}
    | {f"numpy.random.{name}" for name in ("rand", "randint", "choice", "normal")}
    | {f"torch.{name}" for name in ("rand", "randint", "randn", "manual_seed")}
    | {f"torch.{name}_like" for name in ("rand", "randint", "randn")}
)
"""What `apply_patches` replaces by functions that keep a record."""


class _Call(NamedTuple):
    """A call, what it may be of, and the function or class that it stands in."""

    node: ast.Call
    meanings: Sequence[Value]
    place: ast.AST | None

    def is_of(self, name: str) -> bool:
        return Qualified(name) in self.meanings


def misplaced_tool_calls(module: WholeModule, catalogue: Catalogue) -> Iterator[Finding]:
    """`ConfigChecker.apply_patches()` behind what it records, a debugger before vLLM's engine."""
    if "msprobe" not in module.text:
        return
    calls = sorted(_calls(module), key=lambda call: module.lines.span(call.node).start)
    for index, call in enumerate(calls):
        before = [each for each in calls[:index] if each.place is call.place]
        if call.is_of(_PATCHING) and any(map(_draws, before)):
            yield _finding(call, message("tool-use.patched-late"), module, catalogue)
        elif call.is_of(_ENGINE):
            for debugger in (each for each in before if each.is_of(_DEBUGGER)):
                yield _finding(debugger, message("tool-use.before-engine"), module, catalogue)


def _calls(module: WholeModule) -> Iterator[_Call]:
    for node, scope in module.scoped:
        if isinstance(node, ast.Call):
            place = next(definitions_around(scope), None)
            yield _Call(node, resolve(node.func, scope), place)


def _draws(call: _Call) -> bool:
    """Whether a call draws random numbers, as whatever makes a model does for its weights."""
    return call.is_of(_CHECKER) or any(map(_is_random, call.meanings))


def _is_random(meaning: Value) -> bool:
    if isinstance(meaning, Local):
        return any((base.path or (base.root,))[-1] == "Module" for base in meaning.definition.bases)
    if not isinstance(meaning, Qualified):
        return False
    package, _, name = meaning.name.rpartition(".")
    is_layer = package == "torch.nn" and name[:1].isupper() and not name.endswith("Loss")
    return is_layer or meaning.name in _RECORDED


def _finding(
    call: _Call, note: LocalizedText, module: WholeModule, catalogue: Catalogue
) -> Finding:
    callee = call.node.func
    arguments = {"symbol": module.source(callee), "replacement": ""}
    return Finding(catalogue.required(TOOL_USE), module.lines.span(callee), arguments, note)
